"""Sampling without late binding: probes ask for queue lengths, and tasks are placed by the answers.

The two forms that Sparrow is compared with in its paper (SOSP'13, sections 3.1 and 3.2): per-task sampling, where
each task goes to the less loaded of its own few random nodes, and batch sampling, where the m tasks of a job go to
the m least loaded of all the nodes probed for the job.

1. A job arrives: ask nodes for their queue length.
2. A node answers at once: entries that wait, less its idle slots.
   One that is down counts as the longest queue there is, when its failure has been detected.
3. When all answers are there, bind each task to a node and send it. Queues may have changed by then.
   Tasks that must be spread go one by one to the shortest queue of a node that may run them; if no node asked may, to
   a random node that may.
"""

from typing import NamedTuple

import numpy as np

from actors.kernel.compiled import compiled, inlined
from actors.kernel.eligible import eligible_count, eligible_node, level_of
from actors.kernel.faults import is_down
from actors.kernel.messages import send_lost_again
from actors.kernel.random import PROBES, below, random_bits
from actors.kernel.records import Records, records
from actors.kernel.room import idle_slots
from actors.kernel.world import N_PLACEMENTS, N_PROBES, NONE, World
from actors.nodes import load_messages
from actors.nodes.messages import send_placed
from actors.nodes.waiting import length_of
from actors.schedulers.jobs.job_info import tasks_of
from actors.schedulers.jobs.least_work import CHOICE, keep_least
from actors.schedulers.jobs.probing import NO_VERSION
from actors.schedulers.jobs.spreading import NODE_0, draw_node, hold, may_run, must_spread

LONGEST = np.int64(1) << 40
ANSWER = np.dtype([("node", "i8"), ("length", "i8")])


class Sampling(NamedTuple):
    """Answers to probes, and scratch space; empty where tasks are bound late."""

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


@inlined
def answers_of(p: Sampling, job: int) -> int:
    """Return for how many answers the job waits in all."""
    return p.first_answer[job + 1] - p.first_answer[job]


@inlined
def ask_lengths(w: World, p: Sampling, t: int, me: int, job: int, nodes: np.ndarray) -> None:
    """Step 1: ask the nodes for their queue lengths; with per-task sampling they are drawn here."""
    count = answers_of(p, job)
    w.counts[N_PROBES] += count
    for i in range(count):
        if p.per_task:
            node = eligible_node(w, job, below(random_bits(w.seed, PROBES, job, i), eligible_count(w, job)))
        else:
            node = nodes[i]
        load_messages.send_ask_length(w, t, me, node, job, np.int64(i))


@compiled
def answer_length(w: World, t: int, node: int) -> None:
    """Step 2: send the number of entries that wait here, less the idle slots."""
    job, probe = load_messages.read_ask_length(w)
    length = -idle_slots(w, node)
    if is_down(w, node):
        if w.faults.actors.detected[node] == 0:
            # Messages of an instant come before the detection: one nanosecond later it is done.
            load_messages.send_ask_length_again(w, w.faults.actors.detect[node] + 1, node, job, probe)
            return
        length = LONGEST
    entry = w.nodes.head[node]
    while entry != NONE:
        length += length_of(w.entries, entry)
        entry = w.entries.next[entry]
    load_messages.send_length(w, t, node, w.work.home[job], job, probe, node, length)


@compiled
def on_length(w: World, p: Sampling, t: int, me: int) -> None:
    """Step 3: note an answer; place the job when it was the last one."""
    job, probe, node, length = load_messages.read_length(w)
    first, end = p.first_answer[job], p.first_answer[job + 1]
    p.answers.node[first + probe], p.answers.length[first + probe] = node, length
    w.jobs.answers[job] += 1
    if w.jobs.answers[job] == end - first:
        tasks = tasks_of(w, job)
        w.counts[N_PLACEMENTS] += tasks
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
            send_placed(w, t, me, chosen, job, task, level_of(w, job), tasks, NO_VERSION)


@compiled
def place_spread(w: World, p: Sampling, t: int, me: int, job: int, tasks: int) -> None:
    """Step 3 for tasks that must be spread."""
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
    """Choose for each task the shortest queue of its own nodes, the first asked among equals."""
    each = (end - first) // tasks
    for task in range(tasks):
        best = task * each
        for i in range(best + 1, best + each):
            if p.answers.length[first + i] < p.answers.length[first + best]:
                best = i
        p.choice.node[task] = best


@compiled
def choose_of_all(p: Sampling, first: int, end: int, tasks: int) -> None:
    """Choose the `tasks` shortest queues of all nodes asked, the first asked among equals."""
    choice = p.choice
    size: int = 0
    for i in range(end - first):
        length = p.answers.length[first + i]
        size = keep_least(choice, size, tasks, length, i)
