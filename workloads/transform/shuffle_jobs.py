"""Jobs around coflows: each coflow becomes the shuffle of a job of two stages, ``map`` and ``reduce``.

1. The job arrives when the coflow does, and has its id. Its maps are as many as the coflow has senders, its reducers as
   many as it has receivers, and the edge between them, from all to all, carries the coflow's bytes.
2. A share of the job's time is spent in the shuffle: of the shuffle alone on the switch
   (`workloads.isolation.isolated_s`) and the tasks before and after it, without waiting. The times of the tasks follow
   from it: with a share s and a shuffle of t seconds, maps and reducers together take t (1 - s) / s, of which maps take
   the part `map_share`. All tasks of a stage are alike.
3. Shares of jobs follow Philae (section 9.2, and there Aalo [1]_): 61 % of the jobs spend less than 25 % of their
   time in the shuffle, 13 % spend 25 to 49 %, 14 % spend 50 to 74 %, and the others (12 %) more. Within these ranges
   shares are uniform, from 5 % to 95 % in all: the ends are ours, as a share near 0 would make a job that hardly ends.
   Shares are at evenly spaced ranks, so that each workload meets the four figures, and given to jobs in random order,
   as the paper does not say that they go together with anything.

What is lost, and in a note if the coflows have it: which port sends to which (tasks run where a scheduler places them,
and what a task sends or gets is an equal part of the edge's bytes), deadlines and weights. A port of Facebook's trace
is a rack with all of a job's mappers in it: it becomes one task. The input that maps read is not known. Where tasks
wait for nodes, or share one with others that send, the shuffle's share is not the one that was drawn.

References
----------
.. [1] M. Chowdhury, I. Stoica. Efficient Coflow Scheduling Without Prior Knowledge. SIGCOMM 2015.
"""

from __future__ import annotations

import numpy as np

from workloads.arrow import column
from workloads.coflows import PORT_SPEEDS, CoflowWorkload
from workloads.dags import DagWorkload, make_dag_workload
from workloads.defaults import DEFAULT_SEED
from workloads.errors import InputError
from workloads.generators.draws import check_positive, check_share, generator
from workloads.isolation import isolated_s, with_port_speeds
from workloads.jobs import Float64Array
from workloads.limits import check_tasks
from workloads.transform.coflows import flow_skew
from workloads.transform.history import recorded
from workloads.transform.primitives import Workload, arrivals_s, as_coflows
from workloads.units import parse_share

PHILAE = "philae"
MAP_SHARE = 0.5
_CURVE = (
    (0.0, 0.05),
    (0.61, 0.25),
    (0.74, 0.50),
    (0.88, 0.75),
    (1.0, 0.95),
)  # rank, share of time in the shuffle
_STREAM = 0x5AFF1E
_EQUAL = 1 + 1e-9


def shuffle_jobs(
    workload: Workload,
    shuffle_share: str = PHILAE,
    map_share: float = MAP_SHARE,
    port_speed_bps: float | None = None,
    seed: int = DEFAULT_SEED,
) -> DagWorkload:
    """Return a job for each coflow: maps, a shuffle with the coflow's bytes, reducers.

    Parameters
    ----------
    workload : CoflowWorkload
    shuffle_share : str
        The share of a job's time that is spent in the shuffle: ``philae`` for the shares that Philae states, or the
        share of all jobs, such as ``25%``; above 0.
    map_share : float
        How much of the remaining time the maps take, 0..1; reducers take the rest.
    port_speed_bps : float, optional
        Speed of the ports (bit/s) of which the workload states none, at which the times of shuffles are taken.
    seed : int

    Raises
    ------
    InputError
        The workload has no coflows; it does not state the speed of its ports and none is given, or the reverse; there
        would be too many tasks, or too long ones; or an option is out of range.
    """
    coflows = as_coflows(workload, "jobs are made around coflows")
    check_share("map_share", map_share)
    timed = coflows
    if port_speed_bps is not None:
        check_positive("port_speed_bps", port_speed_bps)
        if all(coflows.ports[name].null_count == 0 for name in PORT_SPEEDS):
            raise InputError(f"the ports of {coflows.name} state their speed", field="port_speed_bps")
        timed = with_port_speeds(coflows, port_speed_bps / 8)
    share = _draw_shares(shuffle_share, coflows.num_coflows, seed)
    tasks = np.stack([column(coflows.coflows, name) for name in ("senders", "receivers")], axis=1)
    check_tasks(int(tasks.sum()), field="senders")
    others_s = isolated_s(timed) * (1 - share) / share
    task_s = np.stack([others_s * map_share, others_s * (1 - map_share)], axis=1).round(9)
    job = np.arange(coflows.num_coflows)
    made = make_dag_workload(
        coflows.name,
        arrivals_s(coflows),
        np.full(len(job), 2),
        tasks.ravel(),
        np.repeat(task_s.ravel(), tasks.ravel()),
        np.stack([job, np.zeros_like(job), np.ones_like(job)], axis=1),
        stage_mean_s=task_s.ravel(),
        stage_name=["map", "reduce"] * len(job),
        edge_bytes=column(coflows.coflows, "size_bytes"),
        job_id=column(coflows.coflows, "coflow_id"),
        metadata=coflows.metadata,
        notes=(*coflows.notes, *_lost(coflows)),
    )
    options = {
        "shuffle_share": shuffle_share,
        "map_share": map_share,
        "port_speed_bps": port_speed_bps,
        "seed": seed,
    }
    outcome = f"{made.num_jobs:,} jobs, {made.num_tasks:,} tasks, {float(share.mean()):.1%} of their time in shuffles"
    return recorded(made, "jobs", options, outcome)


def _draw_shares(shuffle_share: str, count: int, seed: int) -> Float64Array:
    """Return the share of each job's time that it spends in its shuffle, shape (count,)."""
    rng = generator(seed, _STREAM)
    if shuffle_share == PHILAE:
        ranks, share = np.array(_CURVE).T
        drawn: Float64Array = np.interp((rng.permutation(count) + 0.5) / count, ranks, share)
        return drawn
    try:
        of_all = parse_share(shuffle_share, "")
    except InputError:
        of_all = 0.0
    if not of_all > 0:
        wrong = f"{shuffle_share!r} is neither {PHILAE!r} nor a share above 0, such as '25%'"
        raise InputError(wrong, field="shuffle_share")
    return np.full(count, of_all)


def _lost(coflows: CoflowWorkload) -> tuple[str, ...]:
    """Return a note on what the coflows have and the jobs have not; none where that is nothing."""
    table, count = coflows.coflows, coflows.num_coflows
    pairs = column(table, "senders") * column(table, "receivers")
    uneven = int(np.count_nonzero((column(table, "width") != pairs) | (flow_skew(coflows) > _EQUAL)))
    deadlines = count - table["deadline_s"].null_count
    weights = int(np.count_nonzero(column(table, "weight") != 1))
    lost = [
        f"{number:,} of {count:,} {what}"
        for number, what in (
            (uneven, "coflows have flows that differ, or lack some: their bytes are spread evenly"),
            (deadlines, "deadlines are left out"),
            (weights, "weights are left out"),
        )
        if number
    ]
    ports = "ports of coflows are left out: tasks run where a scheduler places them"
    return (f"jobs: {'; '.join([ports, *lost])}",)
