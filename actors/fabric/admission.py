"""Admission of coflows with deadlines: what the coordinator has decided of each, and what it sends the agents.

At a decision a coflow is admitted, or rejected; and one that was rejected may be admitted later. A coflow is dropped if
its deadline has passed, or if it is rejected and no other decision can admit it: then it never finishes, unless all its
flows end before their agents know. The agents
that send its flows receive the verdict each time that it changes, one message for each of its ingress ports. Rates
come with schedules as always; the agents of a coflow that is dropped forget its flows.
"""

from typing import NamedTuple

import numpy as np

from actors.fabric.coordinator import SPARE, note_schedule
from actors.fabric.counters import N_ADMISSIONS, N_DROPPED, N_REJECTIONS, N_VERDICTS
from actors.fabric.fabric_world import CoflowWorld
from actors.fabric.greedy import Matching, end_stopped_flow, free_port, move_group, stop_flow
from actors.fabric.intervals import charge
from actors.fabric.messages import TELL, read_due, send_due, send_verdict
from actors.fabric.ports import last_end
from actors.fabric.ranking import Ranking
from actors.kernel.compiled import compiled, inlined
from actors.kernel.counters import N_ARRIVED
from actors.kernel.queue import NONE
from actors.kernel.world import NEVER

UNDECIDED = NONE
REJECTED, ADMITTED = np.int64(0), np.int64(1)
DROPPED, LATE = np.int64(2), np.int64(3)  # rejected for good; dropped as it is late


class Admission(NamedTuple):
    """The verdicts on C coflows; times in ns."""

    deadline: np.ndarray  # [C] NEVER: it has none
    verdict: np.ndarray  # [C] UNDECIDED, REJECTED, ADMITTED, DROPPED or LATE
    admitted: np.ndarray  # [C] when it was last admitted; NEVER: it was not
    rejected: np.ndarray  # [C] when it was last rejected, likewise
    changed: np.ndarray  # [C] the first `changes` of them have a verdict that their agents do not know
    changes: np.ndarray  # [1]
    sent: np.ndarray  # [2] changes that were sent to all agents; agents to which that of the next one was
    unended: np.ndarray  # [C] flows of a dropped coflow whose ends were not received
    bytes_sent: np.ndarray  # [C] float64, what a dropped coflow has sent when the decision takes effect


def make_admission(deadline_ns: np.ndarray) -> Admission:
    """Return the state in which nothing is decided about coflows with these deadlines, NEVER for none."""
    coflows = deadline_ns.size
    return Admission(
        deadline=np.minimum(deadline_ns, NEVER),
        verdict=np.full(coflows, UNDECIDED),
        admitted=np.full(coflows, NEVER),
        rejected=np.full(coflows, NEVER),
        changed=np.zeros(coflows, np.int64),
        changes=np.zeros(1, np.int64),
        sent=np.zeros(2, np.int64),
        unended=np.zeros(coflows, np.int64),
        bytes_sent=np.zeros(coflows),
    )


@inlined
def is_dropped(a: Admission, coflow: int) -> bool:
    """Return whether a coflow was dropped."""
    return a.verdict[coflow] >= DROPPED


@inlined
def time_left(a: Admission, coflow: int, effective: int) -> float:
    """Return the ns from when a schedule takes effect until a coflow's deadline, infinite if it has none."""
    deadline = a.deadline[coflow]
    return np.inf if deadline == NEVER else np.float64(deadline - effective)


@compiled
def decide_verdict(w: CoflowWorld, a: Admission, t: int, coflow: int, verdict: int) -> None:
    """Decide about a coflow, at most once in a decision; `send_verdicts` sends its agents what has changed."""
    was = a.verdict[coflow]
    if was == verdict:
        return
    a.verdict[coflow] = verdict
    a.changed[a.changes[0]] = coflow
    a.changes[0] += 1
    if verdict == ADMITTED:
        a.admitted[coflow] = t
        w.counts[N_ADMISSIONS] += 1
    elif verdict != LATE and was != REJECTED:
        a.rejected[coflow] = t
        w.counts[N_REJECTIONS] += 1


@compiled
def drop_greedy(
    w: CoflowWorld, a: Admission, r: Ranking, m: Matching, t: int, coflow: int, verdict: int
) -> None:
    """Drop a coflow, as DROPPED or LATE, under greedy rates: its flows stop, and it never finishes."""
    fabric, flows, coflows = w.fabric, w.fabric.flows, w.fabric.coflows
    effective = t + w.network.delay_ns
    move_group(fabric, r, m, effective, coflow, NONE)
    for flow in range(coflows.first_flow[coflow], coflows.first_flow[coflow + 1]):
        a.bytes_sent[coflow] += flows.size[flow]
        if flows.finish[flow] == NEVER:
            if m.flow[flows.source[flow]] == flow:  # as under `flow_order=workload`
                stop_flow(fabric, m, effective, flow)
                free_port(m, flows.source[flow])
                free_port(m, flows.sink[flow])
            a.bytes_sent[coflow] -= flows.left[flow]
            end_stopped_flow(fabric, r, effective, flow)
            flows.finish[flow] = NONE
            a.unended[coflow] += 1
            w.counts[N_ARRIVED] -= 1
    coflows.finish[coflow] = NONE
    w.counts[N_DROPPED] += 1
    decide_verdict(w, a, t, coflow, verdict)


@compiled
def ends_dropped(w: CoflowWorld, a: Admission, flow: int, ended: int) -> bool:
    """Return whether the FLOW_DONE at hand is of a coflow that was dropped; it has ended if all its flows have.

    Flows end after that while the verdict, or the message of their end, is on its way.
    """
    coflow = w.fabric.flows.coflow[flow]
    if not is_dropped(a, coflow):
        return False
    w.counts[N_ARRIVED] += 1  # as its agent has counted an end
    w.fabric.flows.finish[flow] = ended
    a.unended[coflow] -= 1
    if a.unended[coflow] == 0:
        w.fabric.coflows.finish[coflow] = last_end(w.fabric, coflow)
    return True


@compiled
def charge_verdicts(w: CoflowWorld, a: Admission) -> None:
    """Charge what the messages of all new verdicts cost, each as much as a schedule for an agent."""
    charge(w, w.prices.schedule * count_verdicts(w, a))


@inlined
def count_verdicts(w: CoflowWorld, a: Admission) -> int:
    """Count the messages of all new verdicts; return how many they are."""
    messages: int = 0
    for i in range(a.changes[0]):
        messages += num_senders(w, a.changed[i])
    w.counts[N_VERDICTS] += messages
    return messages


@inlined
def num_senders(w: CoflowWorld, coflow: int) -> int:
    """Return at how many ingress ports a coflow has flows, those that have ended included."""
    of_group = w.fabric.lines.of_group
    return of_group[coflow + 1, 0] - of_group[coflow, 0]


@compiled
def send_verdicts(w: CoflowWorld, a: Admission, t: int, others: int) -> None:
    """Send the agents new verdicts, as many as one event may send; a further event at once sends the others.

    Args:
        others: messages that the event at hand has sent besides.
    """
    lines, room = w.fabric.lines, w.queue.room - SPARE - others
    while a.sent[0] < a.changes[0]:
        coflow = a.changed[a.sent[0]]
        line = lines.of_group[coflow, 0] + a.sent[1]
        if line >= lines.of_group[coflow + 1, 0]:
            a.sent[0] += 1
            a.sent[1] = 0
            continue
        if room <= 0:
            send_due(w, TELL, read_due(w))
            return
        room -= 1
        a.sent[1] += 1
        send_verdict(w, t, lines.port[line], line, a.verdict[coflow])
        note_schedule(w, lines.port[line])
    a.changes[0] = a.sent[0] = 0
