"""Sizes of a cluster that a search tries: which jobs can run on each, its runs, and what they measured."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from clusters.cluster import Cluster
from clusters.machine_types import counts_text, machine_counts, price_of
from clusters.schema import RACK_SIZE
from emu import disk
from emu.configuration.config import Config, Place
from emu.configuration.loading import CannotRun, Loading, load_cluster_of, load_of_family
from emu.configuration.plan import Plan, prepare
from emu.configuration.replicas import Replica, of_replica
from emu.configuration.schedulers import find_schedulers
from emu.configuration.seeds import seeds_of
from emu.configuration.workload_cache import WorkloadCache
from emu.directories.names import SUMMARY
from emu.families.registry import family_of_summary
from emu.results.metrics import after_warmup, confidence_95, describe_metrics
from emu.results.result import Summarising, read_result
from emu.sweeps.parallel_runs import Hosting, Run, RunFailed, run_all
from emu.sweeps.targets import MET, NOT_MET, Sizing, Target, verdict_of
from workloads.arrow import column, optional_column
from workloads.errors import InputError

Measured = tuple[tuple[float, float], ...]
AMPLE = 1000
"""Nodes on which all jobs can run, as a rule; where some cannot, a much larger cluster is asked."""
MOST_AMPLE = 1_000_000
EVERY_TYPE = 20_000
"""Nodes of which a described cluster has each of its machine types, as a rule."""
_UNKNOWN = (math.nan, math.nan)


class Size(NamedTuple):
    """A number of nodes of the cluster; its machine types come in proportion, or with a number of nodes each."""

    nodes: int
    machines: tuple[tuple[str, int], ...] = ()

    @classmethod
    def of(cls, types: Sequence[str], counts: Sequence[int]) -> Size:
        """Return the size with a number of nodes of each machine type."""
        return cls(sum(counts), tuple(zip(types, counts, strict=True)))

    @property
    def folder(self) -> str:
        """The name of the folder of its runs."""
        if self.machines:
            return f"machines={'-'.join(str(count) for _, count in self.machines)}"
        return f"nodes={self.nodes}"

    def __str__(self) -> str:
        there = ", ".join(f"{count:,} {name}" for name, count in self.machines if count)
        return f"{self.nodes:,} nodes ({there})" if there else f"{self.nodes:,} nodes"


class Lacking(NamedTuple):
    """The number of jobs that cannot run on a size, in any of its runs the most, and of how many."""

    jobs: int = 0
    of: int = 0

    def __str__(self) -> str:
        return f"{self.jobs:,} of {self.of:,} jobs cannot run"


NONE_LACKS = Lacking()


@dataclass(frozen=True)
class Probe:
    """The measurements at one size: for each target its mean over the seeds, and 95 % half-width.

    Where some job cannot run there are none, and the targets are not met.
    """

    size: Size
    values: Measured
    verdict: str
    """`MET`, `SPANS` or `NOT_MET` (`emu.sweeps.targets`): the worst of the targets'."""
    lacking: Lacking = NONE_LACKS
    machines: Mapping[str, int] = field(default_factory=dict)
    """Nodes by machine type (`clusters.machine_types.machine_counts`)."""
    price: float | None = None
    """What they cost an hour; None without prices."""

    @property
    def nodes(self) -> int:
        """Its number of nodes."""
        return self.size.nodes

    @property
    def verdict_text(self) -> str:
        """The verdict, and the jobs that cannot run if there are any."""
        return f"{self.verdict}: {self.lacking}" if self.lacking.jobs else self.verdict

    @property
    def holds(self) -> bool:
        """Whether all targets are met, over the whole of their intervals."""
        return self.verdict == MET

    def described(self) -> dict[str, Any]:
        """Return the machines, where there are several types, and what they cost an hour, where that is known."""
        machines = {"machines": dict(self.machines)} if len(self.machines) > 1 or self.size.machines else {}
        return machines | ({} if self.price is None else {"price_per_hour": self.price})


@dataclass(eq=False)
class Trials:
    """The sizes that a search has tried. A size is measured once; `show` is given each as it ends.

    Attributes
    ----------
    dropped : dict
        By seed the ids of the jobs that run on no size, which are left out on every size.
    probes : dict
        By size.
    """

    config: Config
    targets: Sequence[Target]
    place: Path
    hosting: Hosting
    tell: Callable[[str], None] | None = None
    show: Callable[[Probe], None] | None = None
    bar: Callable[[str, int, int], AbstractContextManager[Any]] | None = None
    prices: Mapping[str, float] = field(
        default_factory=dict
    )  # of an hour, by machine type, beside the cluster's
    cache: WorkloadCache = field(default_factory=WorkloadCache)
    dropped: dict[int, npt.NDArray[np.int64]] = field(default_factory=dict)
    probes: dict[Size, Probe] = field(default_factory=dict)

    def measure(self, *sizes: Size) -> None:
        """Measure sizes, all at once where there is room; those that are measured already are not again."""
        new = [size for size in dict.fromkeys(sizes) if size not in self.probes]
        lacking, runs = {}, []
        for size in new:
            found = [self.plan_if_all_run(size, seed) for seed in seeds_of(self.config)]
            lacking[size] = max(lacks for _, lacks in found)
            plans = [plan for plan, _ in found if plan is not None]
            if not lacking[size].jobs:
                runs += [Run.of(plan, folder_of(self.place, size, plan.seed)) for plan in plans]
        missing = [run for run in runs if not run.is_done()]
        label = f"size {sizes[0].nodes:,}"
        with self.bar(label, len(runs), len(runs) - len(missing)) if self.bar else nullcontext() as shown:
            _run(missing, len(runs), self.hosting, self.tell, shown)
        for size in new:
            values, verdict = tuple(_UNKNOWN for _ in self.targets), NOT_MET
            if not lacking[size].jobs:
                own = self.folders(size)
                values = tuple(confidence_95([_value(f, t, self.place) for f in own]) for t in self.targets)
                verdict = verdict_of(self.targets, values)
            cluster = self.cluster(size)
            price = price_of(cluster, self.prices)
            self.probes[size] = Probe(size, values, verdict, lacking[size], machine_counts(cluster), price)
            if self.show is not None:
                self.show(self.probes[size])

    def holds(self, size: Size) -> bool:
        """Whether a size meets all targets."""
        self.measure(size)
        return self.probes[size].holds

    def folders(self, size: Size) -> list[Path]:
        """Return the runs of a size, one for each seed; none where some job cannot run."""
        if size in self.probes and self.probes[size].lacking.jobs:
            return []
        return [folder_of(self.place, size, seed) for seed in seeds_of(self.config)]

    def plan(self, size: Size, seed: int, **values: Any) -> Plan:
        """Return the plan of a run on a size; `values` are those of further keys."""
        places = {**self.config.places, "nodes": Place(str(size))}
        own = of_replica(self._sized(size), Replica(seed)).but(**values)
        return prepare(replace(own, places=places), self.cache)

    def cluster(self, size: Size) -> Cluster:
        """Return the cluster of a size, with the nodes that are missing in its runs."""
        return load_cluster_of(self._sized(size).but(without=0.0), size.nodes, self.cache)

    def _sized(self, size: Size) -> Config:
        machines = counts_text(dict(size.machines)) if size.machines else None
        return self.config.but(nodes=size.nodes, machines=machines)

    def plan_if_all_run(self, size: Size, seed: int) -> tuple[Plan | None, Lacking]:
        """Return the plan of a run on a size, None if some job cannot run there, and how many of how many."""
        plan, kept = None, np.zeros(0, np.int64)
        try:
            plan = self.plan(size, seed)
            kept = _ids(plan.source)
        except CannotRun:
            if self.config["infeasible"] != "drop":
                kept = self._kept(size, seed)
        jobs = np.setdiff1d(self._ids_of_all(seed), self.dropped[seed])
        lacks = np.setxor1d(jobs, kept).size  # another job than on other sizes counts as one that lacks, too
        return plan if not lacks else None, Lacking(lacks, jobs.size)

    def begin(self, high: int | None) -> tuple[Plan, int | None]:
        """Find which jobs run on no size, and return the plan of a size on which all others run, and its nodes.

        The number of nodes is that of a size that is large enough for all jobs, None where that is as a rule so.

        Raises
        ------
        InputError
            A job can run on no number of nodes of the cluster, and is not to be dropped: it is named.
        """
        seeds = list(seeds_of(self.config))
        self.dropped = {seed: np.zeros(0, np.int64) for seed in seeds}
        plans = [self.plan_if_all_run(Size(high or AMPLE), seed)[0] for seed in seeds]
        if plans[0] is not None and all(plans):
            return plans[0], None
        ample = Size(self._more_than_enough(seeds))
        first = [self.plan(ample, seed) for seed in seeds]
        if self.config["infeasible"] == "drop":
            largest = ample if high is None else Size(high)
            first = [self.plan(largest, seed) for seed in seeds]
            for seed in seeds:
                self.dropped[seed] = np.setdiff1d(self._ids_of_all(seed), self._kept(largest, seed))
        return first[0], ample.nodes

    def all_run(self, size: Size) -> bool:
        """Whether all jobs can run on a size, with every seed, except those that run on none."""
        return all(self.plan_if_all_run(size, seed)[0] is not None for seed in seeds_of(self.config))

    def _kept(self, size: Size, seed: int) -> npt.NDArray[np.int64]:
        """Return the ids of the jobs that can run on a size."""
        try:
            return _ids(self.plan(size, seed, infeasible="drop").source)
        except CannotRun:
            return np.zeros(0, np.int64)

    def _ids_of_all(self, seed: int) -> npt.NDArray[np.int64]:
        return _ids(self._workload(seed))

    def _workload(self, seed: int) -> Any:
        """Return the workload of a seed, with the jobs that cannot run."""
        scheduler = find_schedulers(self.config)[0]
        config = of_replica(self.config, Replica(seed))
        return load_of_family(config, self.cache, scheduler.family, scheduler.name).workload

    def _more_than_enough(self, seeds: Sequence[int]) -> int:
        """Return nodes on which a job that does not run there runs on no number of nodes: each machine type is there,
        and room for the widest job, in racks of its own and on a node for each task."""
        widest = max(int(column(self._workload(seed).jobs, "num_tasks").max()) for seed in seeds)
        return min(max(EVERY_TYPE, RACK_SIZE * widest), MOST_AMPLE)


def folder_of(out: Path, size: Size, seed: int) -> Path:
    """Return where a run of a search lies in its directory."""
    return out / size.folder / f"seed={seed}"


def start_of(config: Config, plan: Plan, cache: WorkloadCache) -> int:
    """Return where to begin: the nodes on which offered load is 1, or without a load a slot for each task."""
    slots_per_node = _slots_per_node(config, plan)
    enough = max(math.ceil(plan.work[0] / slots_per_node), 1)
    nodes_for_load = plan.family[Sizing].nodes_for_load
    if nodes_for_load is None or not plan.load:
        return enough
    whole = config.but(without=0.0)  # one node may be enough for this load, and cannot be missing
    return min(nodes_for_load(whole, plan.workload, 1.0, cache), enough)


def most_of(config: Config, plan: Plan) -> int:
    """Return where more nodes cannot help any more: four slots for each task, whenever it arrives."""
    return max(math.ceil(4 * plan.work[0] / _slots_per_node(config, plan)), 1)


def _slots_per_node(config: Config, plan: Plan) -> float:
    """Return the slots of a node in the mean; with resources 1 at the most, as one task may take a whole node."""
    slots = plan.cluster.total_slots / plan.cluster.num_nodes
    if plan.own.get("resources"):
        as_slots = plan.family[Loading].capacity(config, plan.workload, plan.cluster)
        slots = min(as_slots / plan.cluster.num_nodes, 1.0)
    return slots


def summaries(folders: Sequence[Path]) -> list[dict[str, Any]]:
    """Return the summaries of runs."""
    return [disk.read_json(folder / SUMMARY, f"has no {SUMMARY}") for folder in folders]


def _ids(workload: Any) -> npt.NDArray[np.int64]:
    return column(workload.jobs, "job_id")


def _run(
    runs: Sequence[Run],
    total: int,
    hosting: Hosting,
    tell: Callable[[str], None] | None,
    shown: Callable[[int, int, str], None] | None,
) -> None:
    """Compute runs; the first that fails ends the search."""
    done = total - len(runs)

    def started(run: Run) -> None:
        if shown is not None:
            shown(done, 0, f"{run.folder.parent.name}/{run.folder.name}")

    def ended(run: Run, error: str | None) -> None:
        nonlocal done
        if error is not None:
            raise RunFailed(f"{run.folder} failed: {error}")
        done += 1
        started(run)

    run_all(runs, hosting, started, ended, tell)


def _value(folder: Path, target: Target, out: Path) -> float:
    """Return a target's figure in a run of the directory `out`."""
    (summary,) = summaries([folder])
    group = group_of(folder, summary, target)
    if not group.get("count"):
        lacking = f"{summary['workload']} of seed {summary['seed']} has no {target.jobs} that count"
        raise InputError(f"--target: {target}: {lacking}")
    value = target.measure.of(group)
    if math.isnan(value):  # what an earlier version measured
        raise InputError(f"--out: {out} has runs of an earlier version, without {target.measure.name}")
    return value


def group_of(folder: Path, summary: Mapping[str, Any], target: Target) -> Mapping[str, Any]:
    """Return the figures of the jobs that a target is on: of a class by the summary, else of the table of jobs."""
    family = family_of_summary(summary)
    if target.is_on_class:
        return family.part_of(summary[family.heads], target.job_class)
    run = read_result(folder)
    counted = after_warmup(optional_column(run.heads, family.arrival), run.warmup_s)
    own = family[Sizing].jobs_of(run.heads, target.job_class)[counted]
    values = {
        metric: family[Summarising].values(run, metric, "all", run.warmup_s)[own] for metric in family.metrics
    }
    return describe_metrics(values)
