"""A judge of runs of jobs whose tasks need resources: from the tables alone, it shares no code with the engine.

It reads the rows of ``tasks.parquet``, the workload's jobs and tasks, and the cluster's nodes, and counts in whole
billionths, so that a node that holds 1e-9 of a core too much is found. `check_run` checks that every task ran once,
that no node ever held more than it has, and that gangs started together; `check_priorities` checks that no task of
lower priority started where one of higher priority waited that would have fit in its place.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow as pa

from clusters.cluster import Cluster
from workloads.jobs import JobWorkload

BILLION = 10**9
SLACK_S = 1e-6
"""Times in tables are rounded: equal times may differ by less than this."""
_END, _NO_TIME, _START = range(3)
"""At one instant ends make room for tasks that take no time, and those for starts."""
_OF_LARGEST = {
    "memory": "memory_bytes",
    "disk_in": "max_disks",
    "disk_out": "max_disks",
    "network_in": "port_bps",
    "network_out": "port_bps",
}


class Task(NamedTuple):
    """A task that ran: its job's row, node, times (s), demand in billionths by resource, and its job's priority."""

    job: int
    node: int
    start_s: float
    finish_s: float
    demand: tuple[int, ...]
    priority: int


class Judged(NamedTuple):
    """The tasks of a run, the resources that count, and what each node has of them in billionths."""

    tasks: list[Task]
    resources: tuple[str, ...]
    capacity: list[tuple[int, ...]]


def check_run(
    tasks: pa.Table,
    workload: JobWorkload,
    cluster: Cluster,
    *,
    resources: Sequence[str] | None = None,
    lasting: bool = True,
    gangs_within_s: float | None = None,
    events: pa.Table | None = None,
) -> dict[str, list[float]]:
    """Return the most that each node held of each resource, at one time; raise AssertionError for a run that is wrong.

    Parameters
    ----------
    tasks : pyarrow.Table
        The rows of ``tasks.parquet``, or of `Result.tasks`.
    resources : sequence of str, optional
        Those that tasks hold; without any a task takes one slot. By default those that the workload states.
    lasting : bool
        Whether tasks take as long as the workload says: not where they straggle or nodes differ in speed.
    gangs_within_s : float, optional
        Where gangs start together: the most that the starts of a gang may differ, as messages to nodes take different
        times; 0 with a constant delay. None: the scheduler starts tasks one by one.
    events : pyarrow.Table, optional
        The rows of ``events.parquet`` of a run with preemption: a task that was evicted held what it needs until then.
    """
    _every_task_once(tasks, workload, cluster, lasting)
    judged = judge(tasks, workload, cluster, resources)
    if gangs_within_s is not None:
        _gangs_together(judged.tasks, workload, gangs_within_s)
    if events is not None:
        ran = judged.tasks[:]
        for kind, task, node, start_ns, end_ns in zip(
            *(events[name].to_pylist() for name in ("kind", "task", "node", "d", "time_ns")), strict=True
        ):
            if kind == "EVICT":
                judged.tasks.append(
                    ran[task]._replace(node=node, start_s=start_ns / BILLION, finish_s=end_ns / BILLION)
                )
    return _within_capacity(judged)


def check_priorities(
    tasks: pa.Table,
    workload: JobWorkload,
    cluster: Cluster,
    *,
    resources: Sequence[str] | None = None,
    asking_s: float = 0.0,
) -> int:
    """Return how often a task of higher priority waited while another started, and could not have run in its place.

    Raises AssertionError where it could: it was in the queue of the same node, and would have fit there beside all
    tasks that ran there then but the one that started.

    Parameters
    ----------
    tasks : pyarrow.Table
        With ``enqueued_s``, which runs with `output.events` have.
    asking_s : float
        Of schedulers that bind late: how long a node waits for the answer to its request. The queue is judged as it was
        when the node asked, from when on the task has its room. Room that is held while an answer comes that turns out
        to be empty is not in the table, so that a run with such answers (`empty_answers`) cannot be judged.
    """
    judged = judge(tasks, workload, cluster, resources)
    enqueued_s = tasks["enqueued_s"].to_pylist()
    on_node = defaultdict(list)
    for place, task in enumerate(judged.tasks):
        on_node[task.node].append((enqueued_s[place], task._replace(start_s=task.start_s - asking_s)))
    waited = 0
    for node, here in on_node.items():
        for _, low in here:
            at_s = low.start_s
            above = [
                high
                for since_s, high in here
                if high.priority > low.priority and since_s < at_s - SLACK_S and high.start_s > at_s + SLACK_S
            ]
            if not above:
                continue
            others = [t for _, t in here if t is not low and t.start_s <= at_s + SLACK_S < t.finish_s]
            room = [c - sum(t.demand[r] for t in others) for r, c in enumerate(judged.capacity[node])]
            for high in above:
                waited += 1
                if all(need <= left for need, left in zip(high.demand, room, strict=True)):
                    raise AssertionError(
                        f"node {node}, {at_s:.9g} s: a task of job {low.job}, priority {low.priority}, started while "
                        f"one of job {high.job}, priority {high.priority}, waited there that would have fit"
                    )
    return waited


def judge(
    tasks: pa.Table, workload: JobWorkload, cluster: Cluster, resources: Sequence[str] | None = None
) -> Judged:
    """Return the tasks of a run with what they need, and what nodes have."""
    of_jobs, of_tasks = workload.jobs.to_pydict(), workload.tasks.to_pydict()
    names = tuple(
        dict.fromkeys(
            name
            for table in (of_jobs, of_tasks)
            for name, values in table.items()
            if _is_resource(name) and any(value is not None for value in values)
        )
    )
    names = (names if resources is None else tuple(resources)) or ("slots",)
    row = {job: place for place, job in enumerate(of_jobs["job_id"])}
    priority = of_jobs.get("priority", [None] * len(row))
    found = []
    for place, (node, start_s, finish_s) in enumerate(
        zip(*(tasks[name].to_pylist() for name in ("node", "start_s", "finish_s")), strict=True)
    ):
        job = row[of_tasks["job_id"][place]]
        demand = tuple(
            BILLION if name == "slots" else _billionths(_stated(name, place, job, of_tasks, of_jobs))
            for name in names
        )
        found.append(Task(job, node, start_s, finish_s, demand, priority[job] or 0))
    columns = cluster.table.to_pydict()
    capacity = [tuple(_billionths(_capacity(n, node, columns)) for n in names) for node in columns["node_id"]]
    return Judged(found, names, capacity)


def _every_task_once(tasks: pa.Table, workload: JobWorkload, cluster: Cluster, lasting: bool) -> None:
    ran, stated = tasks.to_pydict(), workload.tasks.to_pydict()
    assert ran["job_id"] == stated["job_id"], "the rows are not the tasks of the workload, each once"
    submit_s = dict(
        zip(workload.jobs["job_id"].to_pylist(), workload.jobs["submit_s"].to_pylist(), strict=True)
    )
    for place, job in enumerate(ran["job_id"]):
        node, start_s, finish_s = (ran[name][place] for name in ("node", "start_s", "finish_s"))
        task = f"task {place}, of job {job},"
        assert None not in (node, start_s, finish_s), f"{task} did not run"
        assert 0 <= node < cluster.num_nodes, f"{task} ran on node {node}, which does not exist"
        assert start_s >= submit_s[job] - SLACK_S, f"{task} started before its job arrived"
        assert finish_s >= start_s, f"{task} finished before it started"
        off = abs(finish_s - start_s - stated["duration_s"][place])
        assert not lasting or off <= SLACK_S, f"{task} did not run for its duration"


def _within_capacity(judged: Judged) -> dict[str, list[float]]:
    """Check each node over time."""
    changes = defaultdict(list)
    for task in judged.tasks:
        if task.finish_s > task.start_s:
            changes[task.node] += [(task.finish_s, _END, task), (task.start_s, _START, task)]
        else:
            changes[task.node].append((task.start_s, _NO_TIME, task))
    most = [[0] * len(judged.resources) for _ in judged.capacity]
    for node, of_node in changes.items():
        held = [0] * len(judged.resources)
        for time_s, change, task in sorted(of_node, key=lambda row: row[:2]):
            for r, name in enumerate(judged.resources):
                then = held[r] + (-task.demand[r] if change == _END else task.demand[r])
                held[r] = held[r] if change == _NO_TIME else then
                most[node][r] = max(most[node][r], then)
                over = then - judged.capacity[node][r]
                assert over <= 0, (
                    f"node {node}, {time_s:.9g} s: {then / BILLION:.9f} of {name} held, which is "
                    f"{over / BILLION:.9f} more than it has"
                )
    return {name: [of[r] / BILLION for of in most] for r, name in enumerate(judged.resources)}


def _gangs_together(tasks: list[Task], workload: JobWorkload, within_s: float) -> None:
    of_jobs = workload.jobs.to_pydict()
    members = defaultdict(list)
    for task in tasks:
        members[task.job].append(task)
    for job, nodes in enumerate(of_jobs.get("gang_nodes", [])):
        if nodes is None:
            continue
        starts_s = [task.start_s for task in members[job]]
        apart_s = max(starts_s) - min(starts_s)
        assert apart_s <= within_s + SLACK_S, f"the tasks of gang {job} started {apart_s:.9g} s apart"
        on = len({task.node for task in members[job]})
        wanted = min(nodes, len(starts_s)) or on
        assert on == wanted, f"gang {job} ran on {on} nodes, not on {wanted}"


def _stated(
    name: str, task: int, job: int, of_tasks: Mapping[str, list[Any]], of_jobs: Mapping[str, list[Any]]
) -> float:
    """Return what a task states that it needs, else what its job states, else 0."""
    for table, row in ((of_tasks, task), (of_jobs, job)):
        if name in table and table[name][row] is not None:
            return float(table[name][row])
    return 0.0


def _capacity(name: str, node: int, columns: Mapping[str, list[Any]]) -> float:
    if name in ("slots", "cpu_cores"):
        return float(columns[name][node])
    if name == "memory_gib":
        return float(columns["memory_bytes"][node] / 1024**3)
    if name in _OF_LARGEST:
        of_nodes = columns[_OF_LARGEST[name]]
        return float(of_nodes[node] / max(of_nodes))
    return float(columns[name][node] or 0) if name in columns else 0.0


def _is_resource(name: str) -> bool:
    return name in ("cpu_cores", "memory_gib", *_OF_LARGEST) or name.startswith("attr:")


def _billionths(amount: float) -> int:
    return round(amount * BILLION)
