"""Sizing: the fewest nodes, or the cheapest mix of machine types, on which a scheduler meets targets, by runs."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Unpack

import numpy as np
import numpy.typing as npt

from clusters.cluster import Cluster
from clusters.machine_types import (
    MOST_PRICE,
    counts_text,
    machine_counts,
    machines_text,
    price_of,
    type_counts,
    type_prices,
)
from clusters.schema import RACK_SIZE
from emu import disk
from emu.configuration.config import Config, Place, layer_from_arguments, resolve
from emu.configuration.family_keys import family_of, for_family
from emu.configuration.loading import CannotRun, Loading, load_cluster_of, load_of_family
from emu.configuration.plan import Plan, prepare
from emu.configuration.replicas import Replica, of_replica
from emu.configuration.schedulers import find_schedulers
from emu.configuration.seeds import seeds_of, seeds_text, varied, with_first_seed
from emu.configuration.settings import Settings
from emu.configuration.workload_cache import WorkloadCache
from emu.directories import run_directory as rd
from emu.directories.names import CONFIG, SUMMARY
from emu.explaining.explain import with_events_of
from emu.families.registry import families, family_of_summary
from emu.results.bottlenecks import BOTTLENECKS
from emu.results.measures import Measure
from emu.results.metrics import after_warmup, confidence_95, describe_metrics
from emu.results.notebook import as_html
from emu.results.result import read_result, values_of
from emu.results.text_tables import align, number, percent
from emu.running.progress import bar_of
from emu.running.resuming import opened
from emu.sweeps.mixes import MOST_SIZES, Counts, find_cheapest
from emu.sweeps.parallel_runs import Bar, Hosting, Run, RunFailed, run_all
from emu.sweeps.targets import (
    MET,
    NOT_MET,
    SPANS,
    TOLERANCE,
    Search,
    Sizing,
    Target,
    Waits,
    find_fewest,
    read_targets,
    verdict_of,
)
from workloads.arrow import column, optional_column
from workloads.errors import InputError
from workloads.hints import did_you_mean, in_words

Measured = tuple[tuple[float, float], ...]
SIZE = "size"
CURVE = (0.5, 0.8, 0.9, 1.1, 1.2, 2.0)
"""Sizes around an answer, as shares of it."""
AMPLE = 1000
"""Nodes on which all jobs can run, as a rule; where some cannot, a much larger cluster is asked."""
MOST_AMPLE = 1_000_000
EVERY_TYPE = 20_000
"""Nodes of which a described cluster has each of its machine types, as a rule."""
_UNKNOWN = (math.nan, math.nan)
_SLOWDOWN = Measure("slowdown", "p99")
_ALONE = 1.05
"""A job with a slowdown of at most this takes only the time of its tasks."""


@dataclass(frozen=True)
class Asked:
    """What a search is asked for besides its targets: see `size`; `mix` is the most mixes that are measured."""

    low: int | None = None
    high: int | None = None
    tolerance: float = TOLERANCE
    mix: int | None = None
    prices: Mapping[str, float] = field(default_factory=dict)
    curve: Sequence[float] = ()
    waits: bool = False

    def check(self) -> None:
        """Raise `InputError`, which names the option, for a value that is out of range, or two that exclude another."""
        low, high, mix = self.low, self.high, self.mix
        for name, bound in (("low", low), ("high", high)):
            if bound is not None and bound < 1:
                raise InputError(f"--{name}: {bound} is too little; the least is 1")
        if low is not None and high is not None and low > high:
            raise InputError(f"--low: {low} is more than --high {high}")
        if not 0 <= self.tolerance < 1:
            raise InputError(f"--tolerance: {self.tolerance:g} is not a share in 0 <= share < 1, such as 1%")
        if mix is not None and mix < 1:
            raise InputError(f"--mix: {mix} is too little; the least is 1")
        if mix is not None and low is not None:
            why = "as the cheapest mix may have fewer nodes; --high bounds it"
            raise InputError(f"--low: not allowed with --mix, {why}")
        for name, price in self.prices.items():
            if not 0 < price < MOST_PRICE:
                wrong = f"is not a price above 0 and below {MOST_PRICE:g}"
                raise InputError(f"--price: {price:g} of {name!r} {wrong}")
        for share in self.curve:
            if not 0 < share < math.inf:
                raise InputError(f"--curve: {share:g} is not a share of the answer above 0, such as 0.9")


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
    bar: Bar | None = None
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
                runs += [Run.of(plan, self._folder(size, plan.seed)) for plan in plans]
        self._run(runs, f"size {sizes[0].nodes:,}")
        for size in new:
            values, verdict = tuple(_UNKNOWN for _ in self.targets), NOT_MET
            if not lacking[size].jobs:
                values = tuple(
                    confidence_95([_value(run, target, self.place) for run in self.folders(size)])
                    for target in self.targets
                )
                verdict = verdict_of(self.targets, values)
            cluster = self.cluster(size)
            price = price_of(cluster, self.prices)
            self.probes[size] = Probe(size, values, verdict, lacking[size], machine_counts(cluster), price)
            if self.show is not None:
                self.show(self.probes[size])

    def _run(self, runs: Sequence[Run], label: str) -> None:
        """Compute the runs that are missing; the first that fails ends the search."""
        missing = [run for run in runs if not run.is_done()]

        def ended(run: Run, error: str | None) -> None:
            if error is not None:
                raise RunFailed(f"{run.folder} failed: {error}")

        bar = self.bar(label, len(runs), len(runs) - len(missing)) if self.bar else nullcontext()
        with bar as show:
            run_all(missing, len(runs), self.place, self.hosting, ended, self.tell, show)

    def holds(self, size: Size) -> bool:
        """Whether a size meets all targets."""
        self.measure(size)
        return self.probes[size].holds

    def folders(self, size: Size) -> list[Path]:
        """Return the runs of a size, one for each seed; none where some job cannot run."""
        if size in self.probes and self.probes[size].lacking.jobs:
            return []
        return [self._folder(size, seed) for seed in seeds_of(self.config)]

    def _folder(self, size: Size, seed: int) -> Path:
        return self.place / size.folder / f"seed={seed}"

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
        jobs = np.setdiff1d(_ids(self._workload(seed)), self.dropped[seed])
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
                self.dropped[seed] = np.setdiff1d(_ids(self._workload(seed)), self._kept(largest, seed))
        return first[0], ample.nodes

    def _kept(self, size: Size, seed: int) -> npt.NDArray[np.int64]:
        """Return the ids of the jobs that can run on a size."""
        try:
            return _ids(self.plan(size, seed, infeasible="drop").source)
        except CannotRun:
            return np.zeros(0, np.int64)

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


def _ids(workload: Any) -> npt.NDArray[np.int64]:
    return column(workload.jobs, "job_id")


def _value(folder: Path, target: Target, out: Path) -> float:
    """Return a target's figure in a run of the directory `out`."""
    summary = disk.read_json(folder / SUMMARY, f"has no {SUMMARY}")
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
    values = {metric: values_of(run, metric, "all", run.warmup_s)[own] for metric in family.metrics}
    return describe_metrics(values)


class Mixed(NamedTuple):
    """The result of a search for the cheapest mix.

    Attributes
    ----------
    size : Size | None
        The cheapest that was found to meet the targets; None without one.
    tried : int
        How many mixes were measured, and further sizes in the proportions of the cluster.
    is_cut : bool
        Whether the search ended for the number of mixes that it may measure.
    own : Size | None
        The fewest nodes in the proportions of the cluster.
    """

    size: Size | None
    tried: int
    is_cut: bool
    own: Size | None


def check_prices(trials: Trials, must_have: bool) -> None:
    """Refuse prices of machine types that the cluster does not have, and a type without a price beside others.

    Where all types must have one, as for mixes, also a cluster of which no mix can be made.
    """
    cluster = trials.cluster(Size(EVERY_TYPE)) if trials.prices or must_have else None
    if cluster is None:
        return
    found = type_prices(cluster, trials.prices)
    for name in trials.prices:
        if name not in found:
            raise InputError(f"--price: there is no machine type {name!r}{did_you_mean(name, found)}")
    lacking = [name for name, price in found.items() if not price]
    if lacking:
        where = f"price_per_hour in the description of {cluster.name}, or --price '{lacking[0]}=0.35'"
        option = "--mix" if must_have else "--price"
        raise InputError(f"{option}: no price is known of {in_words(lacking)}; give {where}")
    if must_have:
        try:
            trials.cluster(Size.of(list(found), [1] * len(found)))
        except InputError as error:
            raise InputError(f"--mix: {error.message.removeprefix('machines: ')}") from None


def search_mixes(trials: Trials, nodes: int | None, most_nodes: int, tolerance: float, most: int) -> Mixed:
    """Search the cheapest mix that meets the targets, from the fewest nodes in the proportions of the cluster on.

    `most_nodes` are those of all types beyond which nothing is tried, and `most` bounds the mixes that are measured.
    """
    prices = type_prices(trials.cluster(Size(EVERY_TYPE)), trials.prices)
    types = list(prices)

    def counts_of(size: Size) -> Counts:
        counts = type_counts(trials.cluster(size))
        return tuple(counts.get(name, 0) for name in types)

    own = None if nodes is None else Size(nodes)
    start = None if own is None else counts_of(own)
    less = [size for size, probe in trials.probes.items() if not probe.holds and (own is None or size < own)]
    found = find_cheapest(
        lambda counts: trials.holds(Size.of(types, counts)),
        list(prices.values()),
        start,
        most_nodes,
        tolerance,
        most,
        failed=[counts_of(size) for size in less],
    )
    size = own if found.counts is None or found.counts == start else Size.of(types, found.counts)
    return Mixed(size, len(trials.probes), found.is_cut, own)


@dataclass(frozen=True, repr=False)
class SizeResult:
    """The answer, and the runs it rests on.

    Attributes
    ----------
    nodes : int | None
        The fewest nodes that were found to meet all targets, over the whole of the 95 % intervals; None if the most
        nodes that were tried do not.
    fails : int | None
        The most nodes below that at which a target is not met, or an interval spans its bound; None without such nodes.
    probes : tuple of Probe
        By number of nodes.
    targets : tuple of Target
    note : str
        What the user must know about the answer.
    summary : dict
        The content of ``summary.json``.
    path : Path
    """

    nodes: int | None
    fails: int | None
    probes: tuple[Probe, ...]
    targets: tuple[Target, ...]
    note: str
    summary: dict[str, Any] = field(repr=False)
    path: Path

    def to_text(self) -> str:
        """Return the probes as a table, and the answer."""
        rows = [["nodes", *map(str, self.targets), ""]]
        for probe in self.probes:
            cells = [t.shown(*value) for t, value in zip(self.targets, probe.values, strict=True)]
            rows.append([str(probe.size).replace(" nodes", "", 1), *cells, probe.verdict_text])
        return "\n".join([*align(rows, 0), "", self.answer, *remarks_of(self.summary)]) + "\n"

    def __repr__(self) -> str:
        return f"<SizeResult: {self.answer}; {len(self.probes)} sizes tried in {self.path}>"

    def _repr_html_(self) -> str:
        """Return the probes and the answer as HTML, for notebooks."""
        return as_html(self.answer, [self.to_pandas().to_html(index=False)])

    @property
    def answer(self) -> str:
        """The answer in a line."""
        return answer_of(self.nodes, self.note)

    def to_pandas(self) -> Any:
        """Return a frame row per probe: nodes, whether it holds, each target's mean and half-width, machines and price.

        Machines as in ``fast=3, plain=5``; the price is of an hour, NaN where it is not known.
        """
        import pandas as pd

        return pd.DataFrame(
            {"nodes": p.nodes, "holds": p.holds}
            | {str(t): value for t, (value, _) in zip(self.targets, p.values, strict=True)}
            | {f"{t} ±": half for t, (_, half) in zip(self.targets, p.values, strict=True)}
            | {
                "machines": counts_text(p.machines),
                "price_per_hour": math.nan if p.price is None else p.price,
            }
            for p in self.probes
        )


def answer_of(nodes: int | None, note: str) -> str:
    """Return the answer of a search in a line."""
    return f"{'no number of nodes was found' if nodes is None else f'{nodes:,} nodes'}: {note}"


def size(
    target: str | Sequence[str],
    scheduler: Any,
    workload: Any,
    *,
    low: int | None = None,
    high: int | None = None,
    tolerance: float = TOLERANCE,
    mix: bool | int = False,
    prices: Mapping[str, float] | None = None,
    curve: bool | Sequence[float] = False,
    waits: bool = False,
    out: str | Path | None = None,
    parallel: int | None = None,
    retries: int = Hosting.retries,
    overwrite: bool = False,
    seeds: int | Sequence[int] | None = None,
    parameters: Mapping[str, Any] | None = None,
    progress: bool | None = None,
    **settings: Unpack[Settings],
) -> SizeResult:
    """Find the fewest nodes on which a scheduler meets targets.

    Parameters
    ----------
    target : str or sequence of str
        ``"short.p99 < 60s"``: class (all, short, long; ``all`` if left out), or a priority or a tenant, as in
        ``"priority:9.wait.p99 < 60s"`` and ``"tenant:ads.mean < 1h"``; figure of completion times (mean, p50,
        p90, p95, p99, p99.9, max), or such a one of ``wait``, ``slowdown`` or ``bounded_slowdown``, as in
        ``"short.wait.p99 < 5s"`` and ``"slowdown.p99 < 3"``; ``<`` or ``<=``; a duration, or of slowdowns a number.
        All must hold.
    scheduler, workload, seeds, parameters, **settings
        As in `emu.run`; of several seeds the whole 95 % interval of the mean must be
        within the bound.
    low, high : int, optional
        Bounds of the search; by default they are found by doubling and halving from where offered load is 1. No mix has
        more nodes than `high`; `low` is not allowed with `mix`.
    tolerance : float
        The search ends when the fewest nodes that meet the targets are this close, as a share, to a number that does
        not; 0 looks for neighbours.
    mix : bool or int
        Whether the cheapest mix of machine types is searched; a number is that of the mixes that are measured at the
        most, 100 by default.
    prices : mapping of str to float, optional
        Of an hour of a node, by machine type; by default the cluster's own (`price_per_hour`).
    curve : bool or sequence of float
        Sizes to measure around the answer besides, as shares of it; true: 0.5, 0.8, 0.9, 1.1, 1.2 and 2.
    waits : bool
        Whether the answer states what the jobs of each target waited for, in shares; its first run is repeated for it.
    out : path, optional
        Its directory; by default ``runs/size-SCHEDULER-WORKLOAD``. Runs that are there are not repeated.
    parallel, retries, overwrite, progress
        As in `emu.sweep`.

    Returns
    -------
    SizeResult

    Raises
    ------
    InputError
        A target, name or value is wrong.
    RunFailed
        A run failed.
    """
    asked = {"scheduler": scheduler, "workload": workload, "seeds": seeds, "parameters": parameters}
    config = resolve([layer_from_arguments({**asked, **settings})])
    targets = read_targets([target] if isinstance(target, str) else target)
    hosting = Hosting(parallel, retries, config["in_process"], config["address"])
    most, shares = MOST_SIZES if mix is True else mix or None, CURVE if curve is True else curve or ()
    bounds = Asked(low, high, tolerance, most, prices or {}, shares, waits)
    return find_size(config, targets, hosting, bounds, out, overwrite, bar=bar_of(progress))


def find_size(
    config: Config,
    targets: Sequence[Target],
    hosting: Hosting,
    asked: Asked,
    out: str | Path | None = None,
    overwrite: bool = False,
    tell: Callable[[str], None] | None = None,
    show: Callable[[Probe], None] | None = None,
    bar: Bar | None = None,
) -> SizeResult:
    """Find the fewest nodes for a configuration without a number of nodes; `show` is given each probe as it ends."""
    config = with_first_seed(config)
    _check(config)
    asked.check()
    config = _of_family(config)
    if config["short_cutoff"] is None and any(target.job_class in ("short", "long") for target in targets):
        config = config.but(short_cutoff="auto")  # a target on classes needs them
    trials = Trials(config, targets, Path(), hosting, tell, show, bar, asked.prices)
    first, ample = trials.begin(asked.high)
    first.family[Sizing].check_targets(first, targets)
    check_prices(trials, asked.mix is not None)
    name = f"{SIZE}-{rd.safe_name(first.schedulers[0].name)}-{rd.safe_name(first.workload.name)}"
    trials.place = place = Path(out) if out is not None else Path("runs") / name
    # What identifies the runs of a search includes neither seeds nor targets.
    described = {name: value for name, value in config.given().items() if name not in ("seed", "seeds")}
    with opened(place, SIZE, described, overwrite):
        result = _search(trials, asked, first, ample)
        disk.write_json(place / SUMMARY, result.summary)
        runs = [
            f.relative_to(place).as_posix() for probe in result.probes for f in trials.folders(probe.size)
        ]
        rd.conclude(place, {**rd.read_manifest(place), "runs": runs}, [CONFIG, SUMMARY])
    return result


def _search(trials: Trials, asked: Asked, first: Plan, ample: int | None) -> SizeResult:
    """Measure sizes until the answer is found, and those around it that are asked for."""
    low, high, tolerance = asked.low, asked.high, asked.tolerance
    if low is not None and high is not None and low < high:
        trials.measure(Size(low), Size(high))  # both at once, where there is room
    most = most_of(trials.config, first)
    if ample is not None:
        most = max(most, ample)
    elif most < AMPLE and not all(trials.plan_if_all_run(Size(most), s)[0] for s in seeds_of(trials.config)):
        most = AMPLE
    fewest = partial(find_fewest, low=low, tolerance=tolerance)
    start = start_of(trials.config, first, trials.cache)
    search = fewest(lambda nodes: trials.holds(Size(nodes)), start, high=high, most=most)
    mixed, reach = None, high if high is not None else most
    if asked.mix is not None:
        if high is None and search.holds is not None:  # nodes of a type may be small: at the most four a task
            reach = max(most, 4 * first.work[0])
        mixed = search_mixes(trials, search.holds, reach, tolerance, asked.mix)
    size = Size(search.holds or search.fails or 0) if mixed is None or mixed.size is None else mixed.size
    open_from, fails = None, search.fails
    if fails is None or search.holds is None or size.machines:
        pass
    elif trials.probes[Size(fails)].verdict == SPANS:  # from which number on do the seeds leave it open?

        def is_open(nodes: int) -> bool:
            trials.measure(Size(nodes))
            return trials.probes[Size(nodes)].verdict != NOT_MET

        open_from = fewest(is_open, fails, high=fails).holds
    if trials.probes[size].holds:
        _measure_curve(trials, size, asked.curve)
    return _result(search, trials, asked, mixed, size, open_from)


def _measure_curve(trials: Trials, size: Size, shares: Sequence[float]) -> None:
    """Measure sizes around the answer, which are shares of it."""
    for share in shares:
        if size.machines:
            # 1.1 * 50 is 55, and a little more in floating point
            counts = [math.ceil(round(share * count, 9)) for _, count in size.machines]
            trials.measure(Size.of([name for name, _ in size.machines], counts))
        else:
            trials.measure(Size(max(round(share * size.nodes), 1)))


def _of_family(config: Config) -> Config:
    """Return the configuration with the defaults of its family; refuse schedulers whose size cannot be searched."""
    found = find_schedulers(config) if config["scheduler"] else ()
    if not found:
        return config
    able = [family for family in families() if family[Sizing].nodes_for_load is not None]
    if (family := family_of(config, found)) not in able:
        why = f"{found[0].name} is for {family.name}, whose number of {family.node}s is not searched"
        raise config.error("scheduler", f"{why}; emu size is for {' and '.join(one.name for one in able)}")
    return for_family(config, family, found[0].name)


def _check(config: Config) -> None:
    """Refuse keys that a search determines, or that would change with it."""
    if config["nodes"] is not None:
        raise config.error("nodes", "emu size finds the number of nodes; --low and --high bound it")
    if config["machines"] is not None:
        raise config.error("machines", "emu size finds the machines; --mix searches the number of each type")
    if config["load"] is not None:
        raise config.error("load", "not allowed: the workload would change with every number of nodes")
    if config["scheduler"] is not None and len(config["scheduler"]) > 1:
        raise config.error("scheduler", "emu size takes one scheduler")


def _result(
    search: Search,
    trials: Trials,
    asked: Asked,
    mixed: Mixed | None,
    size: Size,
    open_from: int | None,
) -> SizeResult:
    """Return the answer on a size, or without one what the largest size has shown."""
    probes = tuple(trials.probes[size] for size in sorted(trials.probes))
    targets, seeds = trials.targets, list(seeds_of(trials.config))
    at, folders = trials.probes[size], trials.folders(size)
    of_runs = [disk.read_json(folder / SUMMARY, f"has no {SUMMARY}") for folder in folders]
    left_out = max(ids.size for ids in trials.dropped.values())
    note = note_of(
        Found(
            search,
            targets,
            of_runs,
            asked.low,
            asked.high,
            None if search.fails is None else trials.probes[Size(search.fails)],
            at if at.holds else None,
            left_out,
            mixed,
            trials.config["without"],
            open_from,
            [p for p in probes if not p.size.machines],
        )
    )
    nodes = at.nodes if at.holds else None
    summary = {
        "nodes": nodes,
        "fails": search.fails if not size.machines else None,
        **at.described(),
        **({} if open_from is None or nodes is None else {"open": [open_from, nodes]}),
        **({"limits": limits} if (limits := limits_of(of_runs)) else {}),
        **(waits_of(folders[0], targets) if asked.waits and of_runs else {}),
        "targets": [str(t) for t in targets],
        "note": note,
        "seeds": seeds,
        "varied": varied(of_runs),
        **({"left_out": left_out} if left_out else {}),
        "runs": size.folder,
        **({} if mixed is None else {"is_mix": True}),
        "probes": [
            {
                "nodes": p.nodes,
                "runs": p.size.folder,
                "holds": p.holds,
                **({"cannot_run": p.lacking.jobs, "of_jobs": p.lacking.of} if p.lacking.jobs else {}),
                **p.described(),
                "values": [{"mean": _number(value), "half_95": _number(half)} for value, half in p.values],
            }
            for p in probes
        ],
    }
    return SizeResult(nodes, summary["fails"], probes, tuple(targets), note, summary, trials.place)


def _number(value: float) -> float | None:
    return value if math.isfinite(value) else None


class Found(NamedTuple):
    """What the note of an answer is made of.

    Attributes
    ----------
    search : Search
    targets : sequence of Target
    of_runs : sequence
        The summaries of the runs on the answer, or without an answer on the most nodes that were tried; none where
        some job cannot run there.
    low, high : int, optional
        The bounds that were given.
    fails, answer : Probe, optional
        On `search.fails` nodes, and on those of the answer.
    left_out : int
        How many jobs run on no size, and were left out.
    mixed : Mixed, optional
        The search for the cheapest mix, if there was one.
    without : float
        The share of the nodes that are missing in each run.
    open_from : int, optional
        The fewest nodes for which the seeds leave open whether the targets are met.
    in_proportion : sequence of Probe
        All sizes that were tried in the proportions of the cluster.
    """

    search: Search
    targets: Sequence[Target]
    of_runs: Sequence[Mapping[str, Any]]
    low: int | None = None
    high: int | None = None
    fails: Probe | None = None
    answer: Probe | None = None
    left_out: int = 0
    mixed: Mixed | None = None
    without: float = 0.0
    open_from: int | None = None
    in_proportion: Sequence[Probe] = ()


def note_of(found: Found) -> str:
    """Return the note of an answer."""
    search, targets, of_runs, low, high, fails, answer, left_out, mixed, without, *_ = found
    many = "all targets are" if len(targets) > 1 else f"{targets[0]} is"
    none = "not all targets are" if len(targets) > 1 else f"{targets[0]} is not"
    spanned = fails is not None and fails.verdict == SPANS
    lacking = fails.lacking if fails is not None else NONE_LACKS
    if answer is not None and answer.size.machines:
        note = f"{many} met"
    elif search.holds is None:
        which = "--high" if high is not None else "the most that was tried: more slots than tasks"
        note = f"{none} met even on {search.fails:,}, {which}"
        if lacking.jobs:
            note += f"; there {lacking}"
        elif spanned:
            note += "; there the 95 % interval spans the bound: more --seeds narrow it"
        note += _alone(targets, of_runs) if of_runs else ""
    elif search.fails is None:
        fewer = " already, fewer may do" if search.holds == low and low > 1 else ", the fewest there can be"
        note = f"{many} met{fewer}"
    elif lacking.jobs:
        none_below = "not all are" if len(targets) > 1 else "is not"
        note = f"{many} met, and {none_below} on {search.fails:,}, where {lacking}"
    else:
        below = "one is not" if len(targets) > 1 else "is not"
        if spanned:
            below = "the 95 % interval spans the bound"
        note = f"{many} met, and {below} on {search.fails:,}"
    note += _against(found)
    if answer is not None:
        machines = machines_text(answer.machines, of_one=mixed is not None)
        note += f"; machines: {machines}" if machines else ""
        note += "" if answer.price is None else f"; {number(answer.price)} an hour"
    note += "" if mixed is None else _mixed(mixed)
    if without:
        note += f"; {percent(without)} of the nodes, at least one, are missing in each run"
    seeds = [run["seed"] for run in of_runs]
    if len(seeds) > 1:
        note += f"; {seeds_text(seeds, varied(of_runs), of_runs[0].get('resample_block_s'))}"
    if left_out:
        note += f"; {left_out:,} jobs that run on no size are left out on each"
    return note + _failures(of_runs)


def _against(found: Found) -> str:
    """Return from which number of nodes the seeds leave the answer open, and sizes that contradict it."""
    search, answer = found.search, found.answer
    if answer is None or answer.size.machines:
        return ""
    note = ""
    if found.open_from is not None:
        note = f"; from {found.open_from:,} to {answer.nodes:,} the seeds leave it open"
    more = [f"{p.nodes:,}" for p in found.in_proportion if p.nodes > answer.nodes and p.verdict == NOT_MET]
    less = [f"{p.nodes:,}" for p in found.in_proportion if p.nodes < (search.fails or 0) and p.holds]
    note += f"; not met on {in_words(more)}, though there are more" if more else ""
    return note + (f"; met on {in_words(less)}, though there are fewer" if less else "")


def limits_of(of_runs: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return what limits the runs on the answer, a sentence each: the fullest resource, and bottlenecks."""
    used = [run[family_of_summary(run).heads].get("used", {}) for run in of_runs]
    busy = [run.get("utilisation", {}).get("while_arriving") for run in of_runs]
    found = []
    if used and all(used):
        means = {name: sum(own[name] for own in used) / len(used) for name in used[0]}
        fullest = max(means, key=lambda name: means[name])
        rest = [f"{name} {percent(share)}" for name, share in means.items() if name != fullest]
        others = f", {in_words(rest)}" if rest else ""
        found.append(
            f"{fullest} is the fullest resource there: {percent(means[fullest])} of it is held in the mean{others}"
        )
    elif busy and None not in busy:
        found.append(f"nodes are {percent(sum(busy) / len(busy))} busy there while jobs arrive")
    texts = [text for run in of_runs for text in run.get(BOTTLENECKS, ())]
    return found + list(dict.fromkeys(texts))[:2]


def remarks_of(summary: Mapping[str, Any]) -> list[str]:
    """Return what limits the answer of a search, and what jobs wait for there, a sentence each."""
    return [text for key in ("limits", "waits") for text in summary.get(key, ())]


def waits_of(folder: Path, targets: Sequence[Target]) -> dict[str, Any]:
    """Return what the jobs of each target waited for in a run, as sentences and as numbers by group."""
    run = read_result(folder)
    of_group = family_of_summary(run.summary)[Sizing].waits
    groups = {target.job_class: target for target in targets}
    found = {group: known for group in groups if (known := of_group(run, group, with_events_of)) is not None}
    texts = [_waits_text(groups[group], known) for group, known in found.items()]
    return {"waits": texts, "waits_by_reason": {group: known._asdict() for group, known in found.items()}}


def _waits_text(target: Target, waits: Waits) -> str:
    """Return what the jobs of a target waited for, in shares of their delay, as a sentence."""
    delay_s = sum(waits.reasons.values())
    which = target.jobs if waits.jobs == waits.of else f"{target.jobs} ({waits.jobs:,} of {waits.of:,})"
    if not delay_s:
        return f"{which} wait for nothing there"
    shares = [f"{percent(s / delay_s)} for {reason}" for reason, s in waits.reasons.items()]
    part = percent(delay_s / waits.total_s)
    return f"{which} wait for {part} of their completion times there: of that {', '.join(shares)}"


def _mixed(mixed: Mixed) -> str:
    """Return how sure it is that a mix is the cheapest."""
    if mixed.size is None:
        return f"; of {mixed.tried:,} sizes and mixes that were tried none meets it"
    note = (
        f", the least of {mixed.tried:,} sizes and mixes that were tried, not proved to be the least there is"
    )
    if mixed.is_cut:
        note += "; the search ended for its number of mixes, a larger --mix tries more"
    if mixed.own is not None and mixed.own != mixed.size:
        note += f"; in the proportions of the cluster it takes {mixed.own}"
    return note


def _alone(targets: Sequence[Target], of_runs: Sequence[Mapping[str, Any]]) -> str:
    """Return the remark that jobs take as long alone, so that more nodes cannot help; empty if that is not so."""
    for target in targets:
        if target.measure.metric or not target.is_on_class:  # not of completion times in a summary
            continue
        of_all = [(family_of_summary(run), run) for run in of_runs]
        groups = [family.part_of(run[family.heads], target.job_class) for family, run in of_all]
        if any(target.holds(target.measure.of(group)) for group in groups):
            continue
        slowdown = max(_SLOWDOWN.of(group) for group in groups)
        if slowdown <= _ALONE:
            alone = f"{target.jobs} take that long alone, too (slowdown {number(slowdown)} at p99)"
            return f"; there {alone}, so that no number of nodes meets {target}"
    return ""


def _failures(of_runs: Sequence[Mapping[str, Any]]) -> str:
    """Return how many times nodes failed, which is a condition of the answer; empty if none did."""
    counts = sorted(run["counters"].get("node_failures", 0) for run in of_runs)
    if not any(counts):  # also without runs
        return ""
    least, most = f"{counts[0]:,}", f"{counts[-1]:,}"
    times = "once" if most == least == "1" else f"{least if least == most else f'{least} to {most}'} times"
    return f"; nodes failed {times} in {'its run' if len(counts) == 1 else 'each run'}"
