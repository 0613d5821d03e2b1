"""Sizing: the fewest nodes on which a scheduler meets targets, by bisection over runs."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Unpack

from clusters.machine_types import MOST_PRICE, counts_text
from emu import disk
from emu.configuration.config import Config, layer_from_arguments, resolve
from emu.configuration.family_keys import family_of, for_family
from emu.configuration.schedulers import find_schedulers
from emu.configuration.seeds import seeds_of, varied, with_first_seed
from emu.configuration.settings import Settings
from emu.directories import run_directory as rd
from emu.directories.names import CONFIG, SUMMARY
from emu.families.registry import families
from emu.results.notebook import as_html
from emu.results.text_tables import align
from emu.running.many_runs import opened
from emu.running.progress import bar_of
from emu.sweeps.mixed_sizes import Mixed, check_prices, search_mixes
from emu.sweeps.mixes import MOST_SIZES
from emu.sweeps.parallel_runs import Hosting
from emu.sweeps.size_note import Found, limits_of, note_of, remarks_of, waits_of
from emu.sweeps.sizes import AMPLE, Probe, Size, Trials, most_of, start_of, summaries
from emu.sweeps.targets import NOT_MET, SPANS, TOLERANCE, Search, Sizing, Target, find_fewest, read_targets
from workloads.errors import InputError

SIZE = "size"
CURVE = (0.5, 0.8, 0.9, 1.1, 1.2, 2.0)
"""Sizes around an answer, as shares of it."""


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
    bounds: dict[str, Any] = {"low": low, "high": high, "tolerance": tolerance}
    bounds |= {"mix": MOST_SIZES if mix is True else mix or None, "prices": prices}
    bounds |= {"curve": CURVE if curve is True else curve or (), "waits": waits}
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
    mix: int | None = None,
    prices: Mapping[str, float] | None = None,
    curve: Sequence[float] = (),
    waits: bool = False,
    overwrite: bool = False,
    tell: Callable[[str], None] | None = None,
    show: Callable[[Probe], None] | None = None,
    bar: Callable[[str, int, int], AbstractContextManager[Any]] | None = None,
) -> SizeResult:
    """Find the fewest nodes for a configuration without a number of nodes; `show` is given each probe as it ends."""
    config = with_first_seed(config)
    _check(config, low, high, tolerance)
    _check_cost(low, mix, prices or {}, curve)
    config = _of_family(config)
    if config["short_cutoff"] is None and any(target.job_class in ("short", "long") for target in targets):
        config = config.but(short_cutoff="auto")  # a target on classes needs them
    trials = Trials(config, targets, Path(), hosting, tell, show, bar, prices or {})
    first, ample = trials.begin(high)
    first.family[Sizing].check_targets(first, targets)
    check_prices(trials, mix is not None)
    name = f"{SIZE}-{rd.safe_name(first.schedulers[0].name)}-{rd.safe_name(first.workload.name)}"
    trials.place = place = Path(out) if out is not None else Path("runs") / name
    with opened(place, SIZE, _described(config), overwrite):
        if low is not None and high is not None and low < high:
            trials.measure(Size(low), Size(high))  # both at once, where there is room
        most = most_of(config, first)
        if ample is not None:
            most = max(most, ample)
        elif most < AMPLE and not trials.all_run(Size(most)):
            most = AMPLE
        search = find_fewest(
            lambda nodes: trials.holds(Size(nodes)),
            start_of(config, first, trials.cache),
            low=low,
            high=high,
            tolerance=tolerance,
            most=most,
        )
        mixed, reach = None, high if high is not None else most
        if mix is not None:
            if (
                high is None and search.holds is not None
            ):  # nodes of a type may be small: at the most four a task
                reach = max(most, 4 * first.work[0])
            mixed = search_mixes(trials, search.holds, reach, tolerance, mix)
        open_from = None
        if mixed is None or mixed.size is None or not mixed.size.machines:
            open_from = _least_open(search, trials, low, tolerance)
        _measure_curve(search, trials, mixed, curve)
        result = _result(search, trials, low, high, mixed, open_from, waits)
        disk.write_json(place / SUMMARY, result.summary)
        runs = [
            f.relative_to(place).as_posix() for probe in result.probes for f in trials.folders(probe.size)
        ]
        rd.conclude(place, {**rd.read_manifest(place), "runs": runs}, [CONFIG, SUMMARY])
    return result


def _least_open(search: Search, trials: Trials, low: int | None, tolerance: float) -> int | None:
    """Return the fewest nodes for which the seeds leave open whether the targets are met; None where they decide."""
    fails = search.fails
    if search.holds is None or fails is None or trials.probes[Size(fails)].verdict != SPANS:
        return None

    def is_open(nodes: int) -> bool:
        trials.measure(Size(nodes))
        return trials.probes[Size(nodes)].verdict != NOT_MET

    return find_fewest(is_open, fails, low=low, high=fails, tolerance=tolerance).holds


def _measure_curve(search: Search, trials: Trials, mixed: Mixed | None, shares: Sequence[float]) -> None:
    """Measure sizes around the answer, which are shares of it."""
    size = None if search.holds is None else Size(search.holds)
    size = mixed.size if mixed is not None else size
    if size is None:
        return
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


def _check(config: Config, low: int | None, high: int | None, tolerance: float) -> None:
    if config["nodes"] is not None:
        raise config.error("nodes", "emu size finds the number of nodes; --low and --high bound it")
    if config["machines"] is not None:
        raise config.error("machines", "emu size finds the machines; --mix searches the number of each type")
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


def _check_cost(
    low: int | None, mix: int | None, prices: Mapping[str, float], curve: Sequence[float]
) -> None:
    if mix is not None and mix < 1:
        raise InputError(f"--mix: {mix} is too little; the least is 1")
    if mix is not None and low is not None:
        raise InputError(
            "--low: not allowed with --mix, as the cheapest mix may have fewer nodes; --high bounds it"
        )
    for name, price in prices.items():
        if not 0 < price < MOST_PRICE:
            raise InputError(
                f"--price: {price:g} of {name!r} is not a price above 0 and below {MOST_PRICE:g}"
            )
    for share in curve:
        if not 0 < share < math.inf:
            raise InputError(f"--curve: {share:g} is not a share of the answer above 0, such as 0.9")


def _described(config: Config) -> dict[str, Any]:
    """Return what identifies the runs of a search, which includes neither seeds nor targets."""
    return {name: value for name, value in config.given().items() if name not in ("seed", "seeds")}


def _result(
    search: Search,
    trials: Trials,
    low: int | None,
    high: int | None,
    mixed: Mixed | None,
    open_from: int | None,
    waits: bool,
) -> SizeResult:
    probes = tuple(trials.probes[size] for size in sorted(trials.probes))
    targets, seeds = trials.targets, list(seeds_of(trials.config))
    size = Size(search.holds or search.fails or 0)
    if mixed is not None and mixed.size is not None:
        size = mixed.size
    at = trials.probes[size]
    of_runs = summaries(trials.folders(size))
    left_out = max(ids.size for ids in trials.dropped.values())
    note = note_of(
        Found(
            search,
            targets,
            of_runs,
            low,
            high,
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
        **(waits_of(trials.folders(size)[0], targets) if waits and of_runs else {}),
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
