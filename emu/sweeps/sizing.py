"""Sizing: the fewest nodes on which a scheduler meets targets, by bisection over runs."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Unpack

from emu import disk
from emu.configuration.config import Config, Place, layer_from_arguments, resolve
from emu.configuration.loading import Loading
from emu.configuration.plan import Plan, prepare
from emu.configuration.replicas import Replica, of_replica
from emu.configuration.schedulers import find_schedulers
from emu.configuration.seeds import seeds_of, varied, with_first_seed
from emu.configuration.settings import Settings
from emu.configuration.workload_cache import WorkloadCache
from emu.directories import run_directory as rd
from emu.directories.names import CONFIG, SUMMARY
from emu.families.registry import families, family_of_summary, find_family
from emu.results.metrics import confidence_95
from emu.results.notebook import as_html
from emu.results.text_tables import align
from emu.running.many_runs import opened
from emu.running.progress import bar_of
from emu.sweeps.parallel_runs import Hosting, Run, RunFailed, run_all
from emu.sweeps.size_note import note_of
from emu.sweeps.targets import (
    MET,
    SPANS,
    TOLERANCE,
    Search,
    Sizing,
    Target,
    find_fewest,
    read_targets,
    verdict_of,
)
from workloads.errors import InputError

SIZE = "size"
Measured = tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class Probe:
    """The measurements at one number of nodes: for each target its mean over the seeds, and 95 % half-width."""

    nodes: int
    values: Measured
    verdict: str
    """`MET`, `SPANS` or `NOT_MET` (`emu.sweeps.targets`): the worst of the targets'."""

    @property
    def holds(self) -> bool:
        """Whether all targets are met, over the whole of their intervals."""
        return self.verdict == MET


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
            rows.append([f"{probe.nodes:,}", *cells, probe.verdict])
        return "\n".join([*align(rows, 0), "", self.answer]) + "\n"

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
        """Return one frame row per probe: nodes, whether it holds, and each target's mean and half-width."""
        import pandas as pd

        return pd.DataFrame(
            {"nodes": p.nodes, "holds": p.holds}
            | {str(t): value for t, (value, _) in zip(self.targets, p.values, strict=True)}
            | {f"{t} ±": half for t, (_, half) in zip(self.targets, p.values, strict=True)}
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
        ``"short.p99 < 60s"``: class (all, short, long; ``all`` if left out); figure of completion times (mean, p50,
        p90, p95, p99, p99.9, max), or such a one of ``wait``, ``slowdown`` or ``bounded_slowdown``, as in
        ``"short.wait.p99 < 5s"`` and ``"slowdown.p99 < 3"``; ``<`` or ``<=``; a duration, or of slowdowns a number.
        All must hold.
    scheduler, workload, seeds, parameters, **settings
        As in `emu.run`; of several seeds the whole 95 % interval of the mean must be
        within the bound.
    low, high : int, optional
        Bounds of the search; by default they are found by doubling and halving from where offered load is 1.
    tolerance : float
        The search ends when the fewest nodes that meet the targets are this close, as a share, to a number that does
        not; 0 looks for neighbours.
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
    bounds: dict[str, Any] = {"low": low, "high": high, "tolerance": tolerance}
    return find_size(config, targets, hosting, **bounds, out=out, overwrite=overwrite, bar=bar_of(progress))


def find_size(
    config: Config,
    targets: Sequence[Target],
    hosting: Hosting,
    *,
    low: int | None = None,
    high: int | None = None,
    tolerance: float = TOLERANCE,
    out: str | Path | None = None,
    overwrite: bool = False,
    tell: Callable[[str], None] | None = None,
    show: Callable[[Probe], None] | None = None,
    bar: Callable[[str, int, int], AbstractContextManager[Any]] | None = None,
) -> SizeResult:
    """Find the fewest nodes for a configuration without a number of nodes; `show` is given each probe as it ends."""
    config = with_first_seed(config)
    _check(config, low, high, tolerance)
    _check_family(config)
    cache = WorkloadCache()
    first = _plan(config, low or high or 1, config["seed"], cache)
    first.family[Sizing].check_targets(first, targets)
    name = f"{SIZE}-{rd.safe_name(first.schedulers[0].name)}-{rd.safe_name(first.workload.name)}"
    place = Path(out) if out is not None else Path("runs") / name
    probes: dict[int, Probe] = {}

    def measure(*counts: int) -> None:
        new = [n for n in dict.fromkeys(counts) if n not in probes]
        runs = [
            Run.of(_plan(config, n, seed, cache), folder_of(place, n, seed))
            for n in new
            for seed in seeds_of(config)
        ]
        missing = [run for run in runs if not run.is_done()]
        label = f"{SIZE} {counts[0]:,}"
        with bar(label, len(runs), len(runs) - len(missing)) if bar else nullcontext() as shown:
            _run(missing, len(runs), hosting, tell, shown)
        for nodes in new:
            probes[nodes] = _probe(nodes, config, targets, place)
            if show is not None:
                show(probes[nodes])

    def holds(nodes: int) -> bool:
        measure(nodes)
        return probes[nodes].holds

    with opened(place, SIZE, _described(config), overwrite):
        if low is not None and high is not None and low < high:
            measure(low, high)  # both at once, where there is room
        start = _start(config, first, cache)
        search = find_fewest(holds, start, low=low, high=high, tolerance=tolerance, most=_most(config, first))
        made = tuple(probes[n] for n in sorted(probes))
        rests_on = _summaries(search.holds or search.fails or made[0].nodes, config, place)
        result = _result(search, made, targets, low, high, place, rests_on)
        disk.write_json(place / SUMMARY, result.summary)
        runs = [
            folder_of(place, p.nodes, s).relative_to(place).as_posix() for p in made for s in seeds_of(config)
        ]
        rd.conclude(place, {**rd.read_manifest(place), "runs": runs}, [CONFIG, SUMMARY])
    return result


def _check_family(config: Config) -> None:
    """Refuse schedulers whose number of nodes cannot be searched."""
    found = find_schedulers(config) if config["scheduler"] else ()
    able = [family for family in families() if family[Sizing].nodes_for_load is not None]
    if found and (family := find_family(found[0].family)) not in able:
        why = f"{found[0].name} is for {family.name}, whose number of {family.node}s is not searched"
        raise config.error("scheduler", f"{why}; emu size is for {' and '.join(one.name for one in able)}")


def _check(config: Config, low: int | None, high: int | None, tolerance: float) -> None:
    if config["nodes"] is not None:
        raise config.error("nodes", "emu size finds the number of nodes; --low and --high bound it")
    if config["load"] is not None:
        raise config.error("load", "not allowed: the workload would change with every number of nodes")
    if config["scheduler"] is not None and len(config["scheduler"]) > 1:
        raise config.error("scheduler", "emu size takes one scheduler")
    for name, bound in (("--low", low), ("--high", high)):
        if bound is not None and bound < 1:
            raise InputError(f"{name}: {bound} is too little; the least is 1")
    if low is not None and high is not None and low > high:
        raise InputError(f"--low: {low} is more than --high {high}")
    if not 0 <= tolerance < 1:
        raise InputError(f"--tolerance: {tolerance:g} is not a share in 0 <= share < 1, such as 1%")


def _plan(config: Config, nodes: int, seed: int, cache: WorkloadCache) -> Plan:
    places = {**config.places, "nodes": Place(f"{nodes} nodes")}
    return prepare(replace(of_replica(config, Replica(seed)).but(nodes=nodes), places=places), cache)


def folder_of(out: Path, nodes: int, seed: int) -> Path:
    """Return where a run of a search lies in its directory."""
    return out / f"nodes={nodes}" / f"seed={seed}"


def _described(config: Config) -> dict[str, Any]:
    """Return what identifies the runs of a search, which includes neither seeds nor targets."""
    return {name: value for name, value in config.given().items() if name not in ("seed", "seeds")}


def _start(config: Config, plan: Plan, cache: WorkloadCache) -> int:
    """Return where to begin: the nodes on which offered load is 1, or without a load a slot for each task."""
    slots_per_node = _slots_per_node(config, plan)
    enough = max(math.ceil(plan.work[0] / slots_per_node), 1)
    nodes_for_load = plan.family[Sizing].nodes_for_load
    if nodes_for_load is None or not plan.load:
        return enough
    return min(nodes_for_load(config, plan.workload, 1.0, cache), enough)


def _most(config: Config, plan: Plan) -> int:
    """Return where more nodes cannot help any more: four slots for each task, whenever it arrives."""
    return max(math.ceil(4 * plan.work[0] / _slots_per_node(config, plan)), 1)


def _slots_per_node(config: Config, plan: Plan) -> float:
    """Return the slots of a node in the mean; with resources 1 at the most, as one task may take a whole node."""
    slots = plan.cluster.total_slots / plan.cluster.num_nodes
    if plan.own.get("resources"):
        as_slots = plan.family[Loading].capacity(config, plan.workload, plan.cluster)
        slots = min(as_slots / plan.cluster.num_nodes, 1.0)
    return slots


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


def _probe(nodes: int, config: Config, targets: Sequence[Target], out: Path) -> Probe:
    """Return the figures of the runs of one number of nodes."""
    summaries = _summaries(nodes, config, out)
    values = tuple(confidence_95([_value(s, t, out) for s in summaries]) for t in targets)
    return Probe(nodes, values, verdict_of(targets, values))


def _summaries(nodes: int, config: Config, out: Path) -> list[dict[str, Any]]:
    """Return the summaries of the runs of one number of nodes, by seed."""
    folders = [folder_of(out, nodes, seed) for seed in seeds_of(config)]
    return [disk.read_json(folder / SUMMARY, "has no summary.json") for folder in folders]


def _value(summary: Mapping[str, Any], target: Target, out: Path) -> float:
    """Return a target's figure in the summary of a run of the directory `out`."""
    family = family_of_summary(summary)
    group = family.part_of(summary[family.heads], target.job_class)
    if not group.get("count"):
        lacking = f"{summary['workload']} of seed {summary['seed']} has no {target.job_class} jobs that count"
        raise InputError(f"--target: {target}: {lacking}")
    value = target.measure.of(group)
    if math.isnan(value):  # what an earlier version measured
        raise InputError(f"--out: {out} has runs of an earlier version, without {target.measure.name}")
    return value


def _result(
    search: Search,
    probes: tuple[Probe, ...],
    targets: Sequence[Target],
    low: int | None,
    high: int | None,
    out: Path,
    of_runs: Sequence[Mapping[str, Any]],
) -> SizeResult:
    spanned = next((p.verdict == SPANS for p in probes if p.nodes == search.fails), False)
    note = note_of(search, targets, low, high, spanned, of_runs)
    summary = {
        "nodes": search.holds,
        "fails": search.fails,
        "targets": [str(t) for t in targets],
        "note": note,
        "seeds": [run["seed"] for run in of_runs],
        "varied": varied(of_runs),
        "probes": [
            {
                "nodes": p.nodes,
                "holds": p.holds,
                "values": [{"mean": _number(value), "half_95": _number(half)} for value, half in p.values],
            }
            for p in probes
        ],
    }
    return SizeResult(search.holds, search.fails, probes, tuple(targets), note, summary, out)


def _number(value: float) -> float | None:
    return value if math.isfinite(value) else None
