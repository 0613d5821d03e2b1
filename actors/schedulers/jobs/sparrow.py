"""Sparrow (SOSP 2013): batch sampling with late binding.

Schedulers without state probe randomly chosen nodes, more of them than the job has tasks. A probe waits its turn in the
node's queue; then the node asks for a task, and gets one as long as the job has one left.

1. A job of m tasks arrives at one of the schedulers, which take jobs in turn: it probes `probe_ratio` · m nodes, all
   different.
2. A node whose slot falls idle takes the probe at the head of its queue and requests a task from the job's scheduler.
3. The scheduler answers with the job's next task, or with none. The node holds the slot until the answer arrives; after
   an answer without a task it continues with its queue.

With two probes a task, a task costs 8 events: two probes, two requests, two answers, its end, its report.

The paper's two earlier forms are values of `sampling` (`actors/schedulers/jobs/sampling.py`): `batch` places the tasks
on the least loaded of the probed nodes, `per-task` each task on the less loaded of its own nodes.

**Deviations from the paper.** The paper does not say what happens when a job has more probes than there are nodes: here
every node is probed in turn, and the rest at random. There is no proactive cancellation. The authors of Eagle simulate
Sparrow with draws with replacement: `replacement=true`.

`sparrow-c` is constraint-aware: it probes nodes that satisfy the job (section 4.1), with each form of sampling. Tasks
that must be spread are handed out to nodes that may run them; a probe at another node is answered by none, and one goes
elsewhere in its place. Deviations from the paper: constraints are those of a job, not of each task. The rules for
`same-rack`, `spread-racks` and `spread-nodes`, and for more probes than nodes, are ours.
"""

import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from actors.causes import BEHIND_EQUALS, Remedy
from actors.kernel.compiled import compiled, entry
from actors.kernel.cost import take
from actors.kernel.faults import receive_node_state
from actors.kernel.messages import ARRIVAL, LOST, NODE_DOWN, NODE_UP, read_job
from actors.kernel.queue import RUNNING
from actors.kernel.world import Rules, World
from actors.nodes.load_messages import ASK_LENGTH, LENGTH
from actors.nodes.messages import DONE, REQUEST
from actors.nodes.worker import node_event
from actors.nodes.worlds import JOB_WORLDS
from actors.scheduler import ALL_ALIKE, Parameter, Scheduler, constraint_aware
from actors.schedulers.jobs import late_binding, sampling
from actors.schedulers.jobs.build import build_world, most_tasks
from actors.schedulers.jobs.probing import FIRST_ROUND, Probing, draw_nodes, make_probing, send_probes
from actors.schedulers.jobs.spreading import settle_rack
from actors.setting import Setting


class State(NamedTuple):
    """Sparrow's parameters and scratch space."""

    probing: Probing
    sampling: sampling.Sampling
    late_binding: bool


@compiled
def on_arrival(w: World, p: State, t: int, me: int, job: int) -> None:
    """Step 1: probe."""
    tasks = late_binding.next_arrival(w, me, job)
    if p.late_binding:
        send_probes(w, t, me, p.probing, job, tasks)
    else:
        settle_rack(w, job, late_binding.NODE_0)
        if not p.sampling.per_task:
            draw_nodes(w, p.probing, job, sampling.answers_of(p.sampling, job))
        sampling.ask_lengths(w, p.sampling, t, me, job, p.probing.nodes)


@entry
def advance(w: World, p: State, until: int, most: int) -> int:
    """Handle events before `until`, at most `most` of them; return the stop reason."""
    message = w.queue.now
    for _ in range(most):
        why = take(w, until)
        if why != RUNNING:
            return why
        t, kind, me = message.time[0], message.kind[0], message.dst[0]
        if me < w.nodes.size:
            if kind == ASK_LENGTH:
                sampling.answer_length(w, t, me)
            else:
                node_event(w, me)
        elif kind == REQUEST:
            late_binding.on_request(w, t, me)
        elif kind == DONE:
            late_binding.on_done(w)
        elif kind == LENGTH:
            sampling.on_length(w, p.sampling, t, me)
        elif kind == ARRIVAL:
            on_arrival(w, p, t, me, read_job(w))
        elif kind == LOST:
            if p.late_binding:
                late_binding.probe_again(w, t, me, FIRST_ROUND)
            else:
                late_binding.send_again(w, t, me, late_binding.NODE_0)
        elif kind == NODE_DOWN or kind == NODE_UP:
            receive_node_state(w)
    return RUNNING


def build(setting: Setting) -> tuple[World, State]:
    """Make the world and the scheduler's state at time 0."""
    p = setting.parameters
    most, late = most_tasks(setting), p["sampling"] == "batch-late"
    per_task = p["sampling"] == "per-task"
    world = build_world(
        setting,
        Rules(),
        most_sends=lambda tasks: math.ceil(p["probe_ratio"]) * tasks,
        schedulers=p["schedulers"],
    )
    tasks = world.work.end_task - world.work.first_task
    # With per-task sampling, each task has a whole number of nodes of its own.
    probes = (tasks * math.ceil(p["probe_ratio"]) if per_task else np.ceil(p["probe_ratio"] * tasks)).astype(
        int
    )
    return world, State(
        make_probing(p["probe_ratio"], 1, p["replacement"], setting.cluster.num_nodes, most),
        sampling.make_sampling(probes[:0] if late else probes, most, per_task),
        late,
    )


PROBE_RATIO = Parameter(
    "probe_ratio",
    2.0,
    "number",
    "probes per task",
    low=1.0,
    high=100.0,
    addresses=tuple(
        Remedy(cause, "more probes for each task find shorter queues") for cause in BEHIND_EQUALS
    ),
)
REPLACEMENT = Parameter(
    "replacement", False, "flag", "draw nodes with replacement, as the authors of Eagle simulate it"
)
SCHEDULERS = Parameter(
    "schedulers",
    10,
    "integer",
    "probe schedulers that share the jobs in turn",
    low=1,
    high=10_000,
    addresses=(Remedy("decision", "more of them share the jobs"),),
)

SPARROW = Scheduler(
    name="sparrow",
    title="batch sampling with late binding",
    paper="Ousterhout, Wendell, Zaharia, Stoica: Sparrow, SOSP 2013, doi 10.1145/2517349.2522716",
    parameters=(
        PROBE_RATIO,
        Parameter(
            "sampling",
            "batch-late",
            "choice",
            "batch sampling with late binding, batch sampling, or per-task sampling",
            choices=("batch-late", "batch", "per-task"),
        ),
        replace(REPLACEMENT, needs=("sampling=batch-late|batch",)),
        SCHEDULERS,
    ),
    worlds=JOB_WORLDS,
    build=build,
    advance=advance,
    preempts=True,
    ignores=ALL_ALIKE,
    draws=True,
)

SPARROW_C = constraint_aware(SPARROW, "sparrow-c")
