"""Sparrow (SOSP 2013): batch sampling with late binding.

Schedulers without state probe randomly chosen nodes, more of them than the job has tasks. A probe waits its turn in the
node's queue; then the node asks for a task, and gets one as long as the job has one left.

1. A job of m tasks arrives at one of the schedulers, which take jobs in turn: it probes `probe_ratio` · m nodes, all
   different.
2. A node whose slot falls idle takes the probe at the head of its queue and requests a task from the job's scheduler.
3. The scheduler answers with the job's next task, or with none. The node holds the slot until the answer arrives; after
   an answer without a task it continues with its queue.

With two probes a task, a task costs 8 events: two probes, two requests, two answers, its end, its report.

The paper's two earlier forms are values of `sampling`: `batch` places the tasks
on the least loaded of the probed nodes, `per-task` each task on the less loaded of its own nodes.

**Deviations from the paper.** The paper does not say what happens when a job has more probes than there are nodes: here
every node is probed in turn, and the rest at random. There is no proactive cancellation, and nodes do not share their
slots between users by weights (section 4.2). The authors of Eagle simulate Sparrow with draws with replacement:
`replacement=true`.

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
from actors.constraints import eligible_count, eligible_node, level_of
from actors.failures import is_down
from actors.kernel.compiled import compiled, inlined
from actors.kernel.messages import ARRIVAL, LOST, RECEIVED, send_lost_again
from actors.kernel.queue import NONE
from actors.kernel.random import PROBES, below, random_bits
from actors.kernel.records import Records, records
from actors.nodes import messages
from actors.nodes.messages import ASK_LENGTH, DISPATCH, LENGTH, REQUEST, send_placed
from actors.nodes.waiting import length_of
from actors.nodes.world import N_PLACEMENTS, N_PROBES, Rules, World
from actors.nodes.worlds import JOB_WORLDS
from actors.resources import idle_slots
from actors.scheduler import ALL_ALIKE, Parameter, Scheduler, constraint_aware
from actors.schedulers.jobs import late_binding
from actors.schedulers.jobs.build import build_world, most_tasks
from actors.schedulers.jobs.job_info import tasks_of
from actors.schedulers.jobs.least_work import CHOICE, keep_least
from actors.schedulers.jobs.probing import (
    FIRST_ROUND,
    NO_VERSION,
    Probing,
    draw_nodes,
    make_probing,
    send_probes,
)
from actors.schedulers.jobs.spreading import NODE_0, draw_node, hold, may_run, must_spread, settle_rack
from actors.setting import Setting

# Where the steps stand:
# 1. `on_arrival`; `send_probes` and `draw_nodes` of actors/schedulers/jobs/probing.py
# 2. `serve` and `give_slot` of actors/nodes/worker.py
# 3. `on_request` of actors/schedulers/jobs/late_binding.py; at the node `take_in` of actors/nodes/worker.py

LONGEST = np.int64(1) << 40  # what counts as the queue length of a node that is known to be down
ANSWER = np.dtype([("node", "i8"), ("length", "i8")])


class Sampling(NamedTuple):
    """Of the earlier forms: answers to probes, and scratch space; empty where tasks are bound late."""

    per_task: bool  # each task has its own nodes; else the job's tasks share all
    first_answer: np.ndarray  # [J + 1] where a job's answers begin
    answers: Records  # ANSWER, in the order in which the nodes were asked
    choice: Records  # [most tasks of a job] CHOICE, scratch


def make_sampling(probes: np.ndarray, most_tasks: int, per_task: bool) -> Sampling:
    """Sampling for jobs that send `probes` [J] probes."""
    first = np.concatenate([[0], np.cumsum(probes, dtype=np.int64)])
    return Sampling(
        per_task, first, records(ANSWER, int(first[-1])), records(CHOICE, most_tasks if probes.size else 0)
    )


class State(NamedTuple):
    """Sparrow's parameters and scratch space."""

    probing: Probing
    sampling: Sampling
    binds_late: bool  # else one of the earlier forms


@compiled
def on_arrival(w: World, p: State, t: int, me: int, job: int) -> None:
    """Step 1: probe; without late binding, step A."""
    tasks = late_binding.next_arrival(w, me, job)
    if p.binds_late:
        send_probes(w, t, me, p.probing, job, tasks)
    else:
        settle_rack(w, job, NODE_0)
        if not p.sampling.per_task:
            draw_nodes(w, p.probing, job, answers_of(p.sampling, job))
        ask_lengths(w, p.sampling, t, me, job, p.probing.nodes)


@inlined
def on_lost(w: World, p: State, t: int, me: int) -> None:
    """Replace what a failure has lost."""
    if p.binds_late:
        late_binding.probe_again(w, t, me, FIRST_ROUND)
    else:
        late_binding.send_again(w, t, me, NODE_0)


@inlined
def on_dispatch(w: World, p: State, t: int, me: int) -> None:
    """Hand out what runs again, as its output was lost, or what waited for that."""
    late_binding.hand_out_owed(w, t, me, p.binds_late, NODE_0)


# The paper's two earlier forms (section 3, "Per-task sampling" and "Batch sampling"): probes ask for queue lengths, and
# tasks are placed by the answers. With per-task sampling each task goes to the less loaded of its own few random nodes,
# with batch sampling the m tasks of a job go to the m least loaded of all the nodes probed for the job.
#
# A. A job arrives: its scheduler asks nodes for their queue length.
# B. A node answers at once: entries that wait, less its idle slots. One that is down counts as the longest queue there
#    is, when its failure has been detected.
# C. When all answers are there, the scheduler binds each task to a node and sends it. Queues may have changed by then.
#    Tasks that must be spread go one by one to the shortest queue of a node that may run them; if no node that was
#    asked may, to a random node that may.


@inlined
def answers_of(p: Sampling, job: int) -> int:
    """Return for how many answers the job waits in all."""
    return p.first_answer[job + 1] - p.first_answer[job]


@inlined
def ask_lengths(w: World, p: Sampling, t: int, me: int, job: int, nodes: np.ndarray) -> None:
    """Step A: ask the nodes for their queue lengths; with per-task sampling they are drawn here."""
    count = answers_of(p, job)
    w.counts[N_PROBES] += count
    for i in range(count):
        if p.per_task:
            node = eligible_node(w, job, below(random_bits(w.seed, PROBES, job, i), eligible_count(w, job)))
        else:
            node = nodes[i]
        messages.send_ask_length(w, t, me, node, job, np.int64(i))


@compiled
def answer_length(w: World, t: int, node: int) -> None:
    """Step B: send the number of entries that wait here, less the idle slots."""
    job, probe = messages.read_ask_length(w)
    length = -idle_slots(w, node)
    if is_down(w, node):
        if w.faults.actors.detected[node] == 0:
            # Messages of an instant come before the detection: one nanosecond later it is done.
            messages.send_ask_length_again(w, w.faults.actors.detect[node] + 1, node, job, probe)
            return
        length = LONGEST
    entry = w.nodes.head[node]
    while entry != NONE:
        length += length_of(w.entries, entry)
        entry = w.entries.next[entry]
    messages.send_length(w, t, node, w.work.home[job], job, probe, node, length)


@compiled
def on_length(w: World, p: Sampling, t: int, me: int) -> None:
    """Step C: note an answer; place the job when it was the last one."""
    job, probe, node, length = messages.read_length(w)
    first, end = p.first_answer[job], p.first_answer[job + 1]
    p.answers.node[first + probe], p.answers.length[first + probe] = node, length
    w.jobs.answers[job] += 1
    if w.jobs.answers[job] == end - first:
        tasks = tasks_of(w, job)
        w.counts[N_PLACEMENTS] += tasks
        w.jobs.next_task[job] = w.work.end_task[job]
        if late_binding.waits_again(w, job):
            late_binding.keep_all(w, job)
            return
        if must_spread(w, job):
            place_spread(w, p, t, me, job, tasks)
            return
        if p.per_task:
            choose_per_task(p, first, end, tasks)
        else:
            choose_of_all(p, first, end, tasks)
        for i in range(tasks):
            chosen = p.answers.node[first + p.choice.node[i]]
            task = w.work.first_task[job] + i
            late_binding.note_handed_out(w, t, task, chosen)
            send_placed(w, t, me, chosen, job, task, level_of(w, job), tasks, NO_VERSION)


@compiled
def place_spread(w: World, p: Sampling, t: int, me: int, job: int, tasks: int) -> None:
    """Step C for tasks that must be spread."""
    first = p.first_answer[job]
    each = (p.first_answer[job + 1] - first) // tasks
    for i in range(tasks):
        begin, end = first, p.first_answer[job + 1]
        if p.per_task:
            begin, end = first + i * each, first + (i + 1) * each
        node: int = NONE
        shortest = LONGEST + 1
        for place in range(begin, end):
            length = p.answers.length[place]
            if length < shortest and may_run(w, job, p.answers.node[place]):
                node, shortest = p.answers.node[place], length
        if node == NONE:
            node = draw_node(w, job, NODE_0)
        task = w.work.first_task[job] + i
        if node == NONE:
            send_lost_again(w, t, me, job, task)
        else:
            hold(w, job, node)
            send_placed(w, t, me, node, job, task, level_of(w, job), tasks, NO_VERSION)


@compiled
def choose_per_task(p: Sampling, first: int, end: int, tasks: int) -> None:
    """Step C, per-task sampling: choose for each the shortest queue of its own nodes; among equals the first asked."""
    each = (end - first) // tasks
    for task in range(tasks):
        best = task * each
        for i in range(best + 1, best + each):
            if p.answers.length[first + i] < p.answers.length[first + best]:
                best = i
        p.choice.node[task] = best


@compiled
def choose_of_all(p: Sampling, first: int, end: int, tasks: int) -> None:
    """Step C, batch sampling: choose the `tasks` shortest queues of all nodes asked; among equals the first asked."""
    choice = p.choice
    size: int = 0
    for i in range(end - first):
        length = p.answers.length[first + i]
        size = keep_least(choice, size, tasks, length, i)


advance = late_binding.make_job_loop(
    __name__,
    State,
    {
        REQUEST: late_binding.on_request,
        LENGTH: on_length,
        ARRIVAL: on_arrival,
        LOST: on_lost,
        RECEIVED: late_binding.on_received,
        DISPATCH: on_dispatch,
    },
    at_nodes={ASK_LENGTH: answer_length},
    on_node_state=late_binding.on_node_state,
)


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
        make_sampling(probes[:0] if late else probes, most, per_task),
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
    runs_again=True,
    ignores=ALL_ALIKE,
    draws=True,
)

SPARROW_C = constraint_aware(SPARROW, "sparrow-c")
