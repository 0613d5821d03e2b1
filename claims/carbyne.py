"""The figures of Carbyne's paper beside ours: completion times, makespan, fairness, and what they depend on.

How to run: ``python -m claims.carbyne [SECTION...] [--seeds 5] [--set NAME=VALUE,...]``

250 DAGs of `query-dags` on 100 machines of 20 cores with heartbeats of 1 s, as in YARN, in this process. Each figure is
the mean over seeds with its 95 % half-width; ratios are taken seed by seed. `--set` gives options of the generator,
such as ``diversity=0``, or ``heartbeat_s=0`` to match on events. Sections:

- ``offline``, ``online``: figures 4 and 5, table 3, section 5.4.5 (arrivals at once; Poisson arrivals, 20 s apart).
- ``unseen``: figure 4 where DRF and SJF see cores and memory alone, and tasks slow each other down by over-use.
- ``loads``: figure 9, fewer machines for the same work.
- ``errors``: figure 10, demands and durations misestimated.
- ``altruism``: figure 11. ``dagps``: figure 12.
- ``slower``: section 5.2.3, jobs that take longer under Carbyne.
- ``leftover``: section 2.2, what of the resources that jobs would hold need not be held now, and what of a job that
  depends on.
- ``simulator``: as the authors' public simulator has it: one machine as large as all, under DRF leftovers to the job
  that is furthest over its share, and the longest completion time in place of the makespan.
- ``facebook``, ``microsoft``: table 4. The hours of a trace are kept, and there are as few machines as bring it to a
  load, where the paper has 3,000 and 10,000 (minutes).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import Any, NamedTuple

import numpy as np

import emu
from actors.hosting.outcome import Observe
from actors.hosting.partition import Partition
from benchmarks.measuring import run_sections, setting_of, show
from clusters.cluster import load_cluster
from emu.results.metrics import confidence_95
from emu.results.text_tables import with_error
from workloads.arrow import optional_column
from workloads.catalogue import load_workload
from workloads.dags import DagWorkload
from workloads.info.dags import shapes
from workloads.transform.primitives import set_column, with_tables

# What Carbyne's jobs would hold and need not: sampled from the resource manager's plans while a run goes on.
#
# At each sample, of a job with tasks to launch: what it would hold if it launched all it may into its share, and what
# of that its plan says must run now. The rest could be left to others without a later end (Grandl et al., OSDI 2016,
# section 2.2).

EVENTS = np.int64(200)
MOST_EVENTS = 1_000_000_000  # a run has far fewer
"""Between two samples."""
PROPERTIES = ("num_stages", "barriers", "depth", "disjoint_paths", "critical_path_s")


class Leftover(NamedTuple):
    """Shares that need not be held, and what they go with."""

    shares: dict[str, tuple[float, float]]  # by resource: median and mean over samples
    correlation: dict[str, float]  # over time, with properties of the jobs that are there


def leftover_shares(seed: int, options: Mapping[str, Any], nodes: int = 100) -> Leftover:
    """Run Carbyne on DAGs of queries, and return what of the resources need not be held."""
    workload = load_workload("query-dags", seed=seed, options=options)
    assert isinstance(workload, DagWorkload)
    setting = setting_of("carbyne", workload, load_cluster("carbyne", nodes), seed=seed)
    partition = Partition(setting, Observe())
    partition.start()
    samples, there = [], []
    with np.errstate(over="ignore"):
        while not partition._step(2**62, EVENTS):
            assert partition.world.queue.now.events[0] < MOST_EVENTS, "no end"
            would, must, jobs = held_now(partition.world, partition.state)
            if jobs.size:
                samples.append((would.sum(axis=0), must.sum(axis=0)))
                there.append(jobs)
    totals, needed = (np.array(column) for column in zip(*samples, strict=True))
    free = np.divide(totals - needed, totals, out=np.full(totals.shape, np.nan), where=totals > 0)
    shares = {
        name: (float(np.nanmedian(free[:, r])), float(np.nanmean(free[:, r])))
        for r, name in enumerate(workload.resources)
    }
    return Leftover(shares, _correlation(workload, (totals - needed).mean(axis=1), there))


def held_now(world: Any, state: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return what jobs would hold, what they must, each [K, R] as shares of the cluster, and the jobs [K]."""
    m, plan, total = state.matcher, state.plan, np.maximum(world.machines.total, 1)
    jobs = m.run.jobs[: int(m.run.num_jobs[0])].copy()
    jobs = jobs[m.altruistic[jobs]]
    would, must = np.zeros((2, jobs.size, total.size))
    for i, job in enumerate(jobs.tolist()):
        room = np.maximum(m.share[job], plan.largest[job]).astype(np.float64)
        first, end = world.first_stage[job], world.first_stage[job + 1]
        demand = world.stages.demand[first:end].astype(np.float64)
        running = (demand * plan.packing.running[first:end, None]).sum(axis=0)
        ready = (demand * world.stages.ready[first:end, None]).sum(axis=0)
        would[i] = np.minimum(np.maximum(room, running), running + ready) / total
        must[i] = (
            np.minimum(running + (demand * plan.must[first:end, None]).sum(axis=0), would[i] * total) / total
        )
    return would, must, jobs


def _correlation(workload: DagWorkload, amount: np.ndarray, there: list[np.ndarray]) -> dict[str, float]:
    """Return Pearson's correlation over time of what need not be held with sums and means over the jobs there."""
    found = {}
    for name, values in shapes(workload).items():
        if name in PROPERTIES:
            of_jobs = np.asarray(values, np.float64)
            for how, summary in (("sum", np.sum), ("mean", np.mean), ("std", np.std)):
                over_time = np.array([summary(of_jobs[jobs]) for jobs in there])
                found[f"{name}, {how}"] = float(np.corrcoef(over_time, amount)[0, 1])
    return found


PACKING = "tetris@remaining_weight=0"
"""Tetris without regard to the work that jobs have left, as the authors of Carbyne simulate it."""
OVER_SHARE = "drf@leftover=over-share"
POOLED = 100
"""Machines that the authors' simulator takes as one."""
SCHEDULERS = (
    "carbyne",
    "carbyne@completion=kept",
    "drf",
    "sjf",
    "srtf",
    PACKING,
    "tetris",
    "tetris-fair@fairness=0.99",
    "dagps",
)
BASES = ("carbyne", "drf", PACKING)
PERCENTILES = (50, 75, 95)
HEARTBEAT = "heartbeat_s"
INDICES = ("fairness", "fairness_running", "fairness_up_to_share")


class Run(NamedTuple):
    """What is kept of a run."""

    jct_s: np.ndarray  # [J]
    makespan_s: float
    jain: float  # mean over windows of 60 s, of the jobs that are there
    jain_running: float  # the same of those that run tasks
    jain_up_to_share: float  # the same of what jobs hold up to their fair share
    nodes: int


Runs = Mapping[str, Sequence[Run]]
"""By scheduler, a run for each seed."""


def runs_of(
    schedulers: Sequence[str],
    seeds: int,
    nodes: int | None,
    options: Mapping[str, Any],
    workload: str | Callable[[int, Mapping[str, Any]], DagWorkload] = "query-dags",
    **keys: Any,
) -> Runs:
    """Run each scheduler with each seed on the same workloads: one of a name, or what is made of seed and options.

    Without `nodes` these follow from keys.
    """
    found: dict[str, list[Run]] = {}
    for name in schedulers:
        for seed in range(1, seeds + 1):
            of_generator = {k: v for k, v in options.items() if k != HEARTBEAT}
            parameters = {HEARTBEAT: options.get(HEARTBEAT, 1.0), **keys.get("parameters", {})}
            given = {"in_process": True, "seed": seed, "workload_options": of_generator, **keys}
            given["parameters"] = parameters
            of = workload
            if not isinstance(of, str):
                of = of(seed, given.pop("workload_options"))
            result = emu.run(name, of, nodes, **given)
            dags, jobs = result.summary["dags"], result.summary["jobs"]
            jain = [dags.get(part, {}).get("mean", np.nan) for part in INDICES]
            found.setdefault(name, []).append(
                Run(optional_column(result.jobs, "jct_s"), jobs["makespan_s"], *jain, result.summary["nodes"])
            )
    return found


def pair(values: Sequence[float]) -> str:
    """Return mean and half-width as text."""
    return with_error(*confidence_95(list(values)), digits=3)


def over(runs: Runs, name: str, base: str, of: Callable[[Run], float]) -> str:
    """Return a figure of a scheduler over that of another, seed by seed."""
    return pair([of(a) / of(b) for a, b in zip(runs[name], runs[base], strict=True)])


def mean_jct(run: Run) -> float:
    """Return the mean completion time."""
    return float(run.jct_s.mean())


def factors(runs: Runs, name: str, first: str = "carbyne") -> list[str]:
    """Return factors of improvement of the first scheduler over another: average, and percentiles job by job."""
    ratios = [other.jct_s / own.jct_s for other, own in zip(runs[name], runs[first], strict=True)]
    return [
        over(runs, name, first, mean_jct),
        *(pair([np.percentile(r, p) for r in ratios]) for p in PERCENTILES),
    ]


HEAD = ["over carbyne", *(f"P{p}" for p in PERCENTILES)]


def compared(title: str, runs: Runs) -> None:
    """Print completion times, makespan and fairness of schedulers beside each other."""
    rows = []
    for name, own in runs.items():
        less = less_than_drf(runs, name, lambda run: run.jain)
        efficiency = [over(runs, name, PACKING, lambda run: run.makespan_s)]
        fairness = [pair([run.jain for run in own]), less, pair([run.jain_running for run in own])]
        fairness.append(pair([run.jain_up_to_share for run in own]))
        fairness.append(less_than_drf(runs, name, lambda run: run.jain_up_to_share))
        rows.append([name, mean_text(own), *factors(runs, name), *efficiency, *fairness])
    head = ["", "mean JCT (s)", *HEAD, "makespan over packing", "Jain", "less drf", "of running"]
    head += ["up to the share", "less drf"]
    show(title, [head, *rows])


def less_than_drf(runs: Runs, name: str, of: Callable[[Run], float]) -> str:
    """Return a figure of a scheduler less that of DRF, seed by seed."""
    return pair([of(a) - of(b) for a, b in zip(runs[name], runs["drf"], strict=True)])


def mean_text(runs: Sequence[Run]) -> str:
    """Return the mean completion time as text."""
    return pair([mean_jct(run) for run in runs])


def offline(seeds: int, options: Mapping[str, Any]) -> None:
    """Figure 4: all jobs at once."""
    compared("offline", runs_of(SCHEDULERS, seeds, 100, {**options, "arrivals": "at-once"}))


def online(seeds: int, options: Mapping[str, Any]) -> None:
    """Figure 5 and table 3: Poisson arrivals."""
    compared("online", runs_of(SCHEDULERS, seeds, 100, options))


def unseen(seeds: int, options: Mapping[str, Any]) -> None:
    """Figure 4 where YARN's schedulers see cores and memory alone, and over-used machines are slow."""
    blind = [f"{name}@sees=cores+memory" for name in ("drf", "sjf")]
    runs = runs_of(
        ("carbyne", PACKING, *blind, "drf", "sjf"),
        seeds,
        100,
        {**options, "arrivals": "at-once"},
        overuse="slows",
    )
    compared("offline, disks and network not seen", runs)


def loads(seeds: int, options: Mapping[str, Any]) -> None:
    """Figure 9: the same work on fewer machines."""
    rows = []
    for times, nodes in ((1, 100), (2, 50), (4, 25), (6, 17)):
        runs = runs_of(BASES, seeds, nodes, options)
        rows.append([f"{times}x", *factors(runs, "drf"), *factors(runs, PACKING)])
    percentiles = [f"P{p}" for p in PERCENTILES]
    show("load", [["", "over drf", *percentiles, "over tetris, packing alone", *percentiles], *rows])


def errors(seeds: int, options: Mapping[str, Any]) -> None:
    """Figure 10: all demands and durations too small or too large by a share, or by random shares."""
    rows = []
    for error, size in [*(("constant", size) for size in (-0.5, -0.25, 0.25, 0.5)), ("random", 0.5)]:
        keys = {"estimates_error": error, "estimates_size": size, "estimates_demands": True}
        runs = runs_of(BASES, seeds, 100, options, **keys)
        over_others = [factors(runs, name)[0] for name in BASES[1:]]
        rows.append([f"{error} {size:+.0%}", mean_text(runs["carbyne"]), *over_others])
    show("errors of estimates", [["", "mean JCT (s)", "over drf", "over tetris, packing alone"], *rows])


def altruism(seeds: int, options: Mapping[str, Any]) -> None:
    """Figure 11: jobs that are altruistic with a probability."""
    base = runs_of(BASES[1:], seeds, 100, options)
    rows = []
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        runs = {**base, **runs_of(BASES[:1], seeds, 100, options, parameters={"altruism": share})}
        rows.append([f"{share:.0%}", *(factors(runs, name)[0] for name in BASES[1:])])
    show("probability of altruism", [["", "over drf", "over tetris, packing alone"], *rows])


def dagps(seeds: int, options: Mapping[str, Any]) -> None:
    """Figure 12: plans by DAGPS in place of Tetris; ends of plans that are renewed or kept."""
    base = runs_of(BASES[1:], seeds, 100, options)
    rows = []
    for packing, completion in product(("tetris", "dagps"), ("renewed", "kept")):
        parameters = {"packing": packing, "completion": completion}
        runs = {**base, **runs_of(BASES[:1], seeds, 100, options, parameters=parameters)}
        rows.append([f"carbyne + {packing}, {completion}", *factors(runs, "drf"), factors(runs, PACKING)[0]])
    show("plans", [["", "over drf", *HEAD[1:], "over tetris, packing alone"], *rows])


def slower(seeds: int, options: Mapping[str, Any]) -> None:
    """Section 5.2.3: jobs that take longer under Carbyne."""
    runs = runs_of(BASES, seeds, 100, options)
    rows = []
    for name in BASES[1:]:
        ratios = [a.jct_s / b.jct_s for a, b in zip(runs[name], runs["carbyne"], strict=True)]
        below = [pair([100 * float((r < limit).mean()) for r in ratios]) for limit in (1.0, 0.8)]
        rows.append([name, *below, pair([r.min() for r in ratios])])
    head = ["than under", "longer", "factor below 0.8", "least factor"]
    show("jobs that take longer under carbyne (%)", [head, *rows])


def leftover(seeds: int, options: Mapping[str, Any]) -> None:
    """Section 2.2: what need not be held, by resource, and what of a job it goes with."""
    found = [leftover_shares(seed, options) for seed in range(1, seeds + 1)]
    rows = [
        [name, *(pair([100 * f.shares[name][k] for f in found]) for k in range(2))]
        for name in found[0].shares
    ]
    show("what jobs would hold and need not (%)", [["", "median", "mean"], *rows])
    rows = [[name, pair([f.correlation[name] for f in found])] for name in found[0].correlation]
    show("correlation over time of what need not be held with the DAGs that are there", [["", "r"], *rows])


def simulator(seeds: int, options: Mapping[str, Any]) -> None:
    """The setting of the authors' public simulator, beside 100 machines; all jobs at once, and over time."""
    names = ("carbyne", "drf", OVER_SHARE, "srtf", PACKING)
    for arrivals, nodes in product(("at-once", "poisson"), (100, 1)):
        given = {**options, "arrivals": arrivals}
        if nodes == 1:
            keys = {"cluster": "homogeneous", "slots": 20 * POOLED, "workload": pooled}
            runs = runs_of(names, seeds, nodes, given, **keys)
        else:
            runs = runs_of(names, seeds, nodes, given)
        rows = []
        for name, own in runs.items():
            spans = (over(runs, name, PACKING, of) for of in (lambda run: run.makespan_s, longest_jct))
            rows.append([name, mean_text(own), *factors(runs, name), *spans])
        head = ["", "mean JCT (s)", *HEAD, "makespan over packing", "longest JCT over packing"]
        show(f"{'one machine' if nodes == 1 else '100 machines'}, {arrivals}", [head, *rows])


def longest_jct(run: Run) -> float:
    """Return the longest completion time, which the authors' simulator prints as makespan."""
    return float(run.jct_s.max())


def pooled(seed: int, options: Mapping[str, Any]) -> DagWorkload:
    """Return the queries for one machine as large as `POOLED` of them: demands of shares are of that one."""
    found = load_workload("query-dags", seed=seed, options=options)
    assert isinstance(found, DagWorkload)
    stages = found.stages
    for name in found.resources:
        if name != "cpu_cores":
            stages = set_column(stages, name, optional_column(stages, name) / POOLED)
    return with_tables(found, stages=stages)


def production(workload: str, seeds: int, options: Mapping[str, Any], loads: Sequence[float]) -> None:
    """Table 4: traces like those of production clusters, brought to loads: the paper does not say its own."""
    for load in loads:
        found = runs_of(BASES, seeds, None, options, workload, load=load, load_by="nodes")
        rows = [[name, mean_text(found[name]), *factors(found, name)] for name in found]
        machines = pair([run.nodes for run in found["carbyne"]])
        show(f"{workload}, load {load:g}: {machines} machines", [["", "mean JCT (s)", *HEAD], *rows])


MICROSOFT = {HEARTBEAT: 0.0, "jobs": 30_000, "mix": "microsoft", "mean_gap_s": 0.72}
"""Over six hours, as Facebook's trace: the paper does not say over how many."""
SECTIONS: dict[str, Callable[[int, Mapping[str, Any]], None]] = {
    "offline": offline,
    "online": online,
    "unseen": unseen,
    "loads": loads,
    "errors": errors,
    "altruism": altruism,
    "dagps": dagps,
    "slower": slower,
    "leftover": leftover,
    "simulator": simulator,
    "facebook": lambda seeds, options: production(
        "facebook-mapreduce", seeds, {HEARTBEAT: 0.0, **options}, (0.8, 0.9, 1.0, 1.1)
    ),
    "microsoft": lambda seeds, options: production(
        "query-dags", min(seeds, 1), {**MICROSOFT, **options}, (0.9, 1.0)
    ),
}
SLOW = ("facebook", "microsoft")


def main() -> None:
    """Print the sections that are asked for."""
    quick = [name for name in SECTIONS if name not in SLOW]
    run_sections(__doc__, SECTIONS, quick, seeds_and_options, seeds=5, set=())


def seeds_and_options(asked: Any) -> tuple[int, dict[str, Any]]:
    """Return the seeds, and the options of the generator, that a command line asks for."""
    jobs = {"jobs": asked.jobs} if hasattr(asked, "jobs") else {}
    return asked.seeds, {**jobs, **dict(text.split("=", 1) for text in asked.set)}


if __name__ == "__main__":
    main()
