"""The commands: from parsed options to printed and written results."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from emu import disk
from emu.configuration.config import Config, Given, Layer, Place, layer_from_options, layer_from_set, resolve
from emu.configuration.config_file import layer_from_file
from emu.configuration.keys import BY_NAME
from emu.configuration.plan import Plan, prepare
from emu.directories import run_directory as rd
from emu.directories.names import CONFIG, SUMMARY
from emu.families.registry import family_of_summary
from emu.results.comparison import Comparison
from emu.results.measures import read_measures
from emu.results.reasons import render_reasons
from emu.results.records import placed
from emu.results.summary_text import render_summary
from emu.running.progress import progress_bar, runs_bar
from emu.running.runs import begun_with, run_folders, run_in
from emu.terminal import note, put, say, warn
from workloads.doing import doing
from workloads.errors import InputError
from workloads.values import read_value

if TYPE_CHECKING:
    from emu.sweeps.parallel_runs import Hosting

RESUME_OPTIONS = ("address", "in_process")
"""Options that --resume takes: where to continue a run."""
VIEW_OPTIONS = ("json", "columns", "reasons")
"""Options that select the output."""
MAIN_JOB = {"scheduler": ("sparrow", "hawk", "eagle", "central-lwl"), "workload": "yahoo", "nodes": 15_000}


def version() -> int:
    """Print the version."""
    import emu

    put(f"emu {emu.__version__}")
    return 0


def run(options: Namespace) -> int:
    """Emulate one scheduler."""
    if options.resume is not None:
        return _resume(options)
    plan = _plan(options, "scheduler")
    _columns(options, plan.family.name)
    if len(plan.schedulers) > 1:
        raise plan.config.error("scheduler", "emu run takes one scheduler; emu compare takes several")
    warn(plan.notes)
    name = f"{_short(plan.schedulers[0].name)}-{plan.name}-{plan.cluster.num_nodes}"
    several = not plan.is_batch and (len(plan.replicas) > 1 or isinstance(plan.config["seeds"], tuple))
    name += f"-seeds-{_span([r.seed for r in plan.replicas])}" if several else f"-{plan.seed}"
    return _run_new(plan, options, name, several or plan.is_batch)


def compare(options: Namespace, defaults: dict[str, Any] | None = None) -> int:
    """Emulate several schedulers on the same workload and compare them; `MAIN_JOB` are defaults without arguments."""
    if options.resume is not None:
        return _resume(options)
    plan = _plan(options, "schedulers", defaults)
    _columns(options, plan.family.name)
    if defaults is not None:
        names = ", ".join(s.name for s in plan.schedulers)
        say(f"comparing {names} on the workload {plan.name} over {plan.cluster.num_nodes:,} nodes")
    warn(plan.notes)
    name = f"compare-{plan.name}-{plan.cluster.num_nodes}-{plan.seed}"
    return _run_new(plan, options, name, together=True)


def sweep(options: Namespace) -> int:
    """Run a grid of emulations."""
    from emu.sweeps.sweep import prepare_sweep, run_sweep

    _announce_code(options)
    ready = prepare_sweep(options.file, options.out, options.set)
    columns = _columns(options, ready.runs[0].plan.family.name)
    warn(ready.notes)
    if options.dry_run:
        put(disk.to_json(ready.described()) if options.json else ready.to_text())
        return 0
    hosting = _hosting(options, ready.grid.base)
    result = run_sweep(ready, hosting, runs_bar, say, columns, options.reasons, bool(options.overwrite))
    if options.json:
        put(disk.to_json(result.summary))
        warn(f"failed: {path}: {error}" for path, error in result.failures.items())
    else:
        put(f"{result.to_text()}\nresults in {result.path}")
    return 1 if result.failures else 0


def size(options: Namespace) -> int:
    """Find the fewest nodes that meet a target."""
    from clusters.machine_types import read_prices
    from emu.sweeps.mixes import MOST_SIZES
    from emu.sweeps.parallel_runs import RunFailed
    from emu.sweeps.size_report import render_probe
    from emu.sweeps.sizing import Asked, find_size, remarks_of
    from emu.sweeps.targets import TOLERANCE, read_targets

    if options.resume is not None:
        raise InputError("--resume: emu size takes up its directory by itself, where --out names it")
    targets = read_targets(options.target)
    config = _config(options, "scheduler")
    given = _bound(options, "tolerance", "share", least=0)
    mix = MOST_SIZES if options.mix == "" else _bound(options, "mix", "integer")
    hosting = _hosting(options, config)
    asked = Asked(
        low=_bound(options, "low", "integer"),
        high=_bound(options, "high", "integer"),
        tolerance=TOLERANCE if given is None else given,
        mix=mix,
        curve=_curve(options.curve),
        waits=options.waits,
        prices={} if options.price is None else read_prices(options.price, "--price"),
    )
    show = None if options.json else lambda probe: put(render_probe(probe, targets))
    try:
        result = find_size(
            config, targets, hosting, asked, options.out, bool(options.overwrite), say, show, runs_bar
        )
    except RunFailed as error:
        note(str(error))
        return 1
    text = "\n".join(["", result.answer, *remarks_of(result.summary), f"results in {result.path}"])
    put(disk.to_json(result.summary) if options.json else text)
    return 0 if result.nodes is not None else 1


def _curve(text: str | None) -> tuple[float, ...]:
    """Return the sizes around an answer that an option asks for, as shares of it."""
    from emu.sweeps.sizing import CURVE

    if not text:
        return () if text is None else CURVE
    try:
        return tuple(read_value("load", part.strip(), "--curve") for part in text.split(","))
    except InputError:
        wrong = "is not a list of shares of the answer, such as '50%,90%,200%'"
        raise InputError(f"--curve: {text!r} {wrong}") from None


def validate(options: Namespace) -> int:
    """Print the fully resolved configuration of a file, or its error."""
    _announce_code(options)
    plan = prepare(resolve([layer_from_file(options.file), layer_from_set(options.set)]))
    warn(plan.notes)
    put(plan.config_toml())
    return 0


def _announce_code(options: Namespace) -> None:
    """Print which schedulers of a file are code; it is run to get their parameters, and ``--no-code`` refuses it."""
    from emu.configuration.config_file import code_of

    for text, place in code_of(options.file, options.set):
        if options.no_code:
            raise place.error(f"{text!r} is code, and --no-code was given; read it, then leave that out")
        if getattr(options, "dry_run", True):  # a sweep that is not a dry run runs the scheduler anyway
            note(f"{text} is code: it is loaded, and so run, to know its parameters; --no-code refuses it")


def _hosting(options: Namespace, config: Config) -> Hosting:
    """Return where the runs of a sweep or a search are computed."""
    from emu.sweeps.parallel_runs import Hosting

    retries = _bound(options, "retries", "integer", least=0)
    return Hosting(
        parallel=_bound(options, "parallel", "integer"),
        retries=Hosting.retries if retries is None else retries,
        in_process=bool(options.in_process) or config["in_process"],
        address=options.address or config["address"],
    )


def _bound(options: Namespace, name: str, kind: str, least: int = 1) -> Any:
    """Return the value of an option that is not a key; None if it is not given."""
    value = getattr(options, name)
    return None if value is None else read_value(kind, value, f"--{name}", low=least)


def _plan(options: Namespace, schedulers: str, defaults: dict[str, Any] | None = None) -> Plan:
    """Return the plan of the options of ``run`` or ``compare``; `schedulers` is the option that has those."""
    config = _config(options, schedulers, defaults)
    if not config["in_process"]:
        from actors.hosting.child import begin

        begin(config["address"])  # it takes seconds, in which the workload is made
    with doing("making the workload and the cluster"):
        return prepare(config)


def _config(options: Namespace, schedulers: str, defaults: dict[str, Any] | None = None) -> Config:
    """Return the configuration of the options of a command that emulates."""
    names = [key.name for key in BY_NAME.values() if key.option and key.name != "scheduler"]
    given: Layer = layer_from_options({name: getattr(options, name) for name in names})
    if (value := getattr(options, schedulers)) is not None:
        given["scheduler"] = Given(value, Place(f"--{schedulers}"))
    layers = [layer_from_file(options.config)] if options.config else []
    return resolve([*layers, layer_from_set(options.set), given], defaults)


def _columns(options: Namespace, family: str) -> list[str] | None:
    """Return the names of the figures that tables are asked to show; None for the usual ones."""
    if options.columns is None:
        return None
    names = [name.strip() for name in options.columns.split(",")]
    read_measures(names, family, "--columns")
    return names


def _text_of(summary: dict[str, Any], options: Namespace) -> str:
    """Return a summary as text, as the options ask for it."""
    family = family_of_summary(summary)
    shown = read_measures(_columns(options, family.name), family.name)
    return render_summary(summary, shown) + (render_reasons([summary]) if options.reasons else "")


def _run_new(plan: Plan, options: Namespace, name: str, together: bool) -> int:
    """Run a plan in the directory that the options ask for, by default a new one, `name`, and print its results."""
    overwrite, begins = bool(options.overwrite), begun_with(plan, together)
    if options.out or overwrite:
        claimed = rd.claimed(options.out or Path("runs") / rd.safe_name(name), *begins, overwrite=overwrite)
    else:
        claimed = rd.claimed_new(name, *begins)
    with claimed as out:
        return _run(plan, out, options, together)


def _run(plan: Plan, out: Path, options: Namespace, together: bool) -> int:
    """Run the only run of a plan, or all `together`, in their directory, and print their results."""
    if not plan.config["in_process"]:
        from actors.hosting.child import address_of

        address = address_of(plan.config["address"])
        say("starting Ray, which takes about 5 s; --in-process does without" if address is None
            else f"joining Ray at {address}")  # fmt: skip
    if plan.is_batch:  # of many short runs
        with runs_bar(plan.name, len(run_folders(plan))) as show:
            found = run_in(plan, together, out, tell=say, show=show)
    else:
        found = run_in(plan, together, out, partial(progress_bar, unit=plan.work[1]), say)
    if not isinstance(found, Comparison):
        as_json = disk.to_json(placed(found.summary, out)) if options.json else ""
        put(as_json or f"{_text_of(found.summary, options)}results in {out}")
        return 0
    warn(found.notes[len(plan.notes) :])
    summaries = found.summaries
    if options.json:
        put(disk.to_json(summaries if len(summaries) > 1 else summaries[0]))
        warn(f"failed: {path}: {error}" for path, error in found.failures.items())
    elif len(summaries) > 1:
        text = found.to_text(_columns(options, plan.family.name), options.reasons)
        put(f"{text}\nresults in {out}, report in {out / 'report.html'}")
    else:
        put(f"{_text_of(summaries[0], options)}{found.failed_text()}results in {out}")
    return 1 if found.failures else 0


def _resume(options: Namespace) -> int:
    """Continue a run, or several, that ended early; show a finished one."""
    from emu.running.resuming import holds_several, read_finished, reopened

    _only_with_resume(options)
    out = Path(options.resume)
    if (found := read_finished(out)) is None:
        hosting = {name: getattr(options, name) for name in RESUME_OPTIONS}
        with reopened(out, layer_from_options(hosting)) as plan:
            if plan is not None:
                warn(plan.notes)
                return _run(plan, out, options, holds_several(out))
        found = read_finished(out)
    summary: Any = disk.read_json(out / SUMMARY, f"has no {SUMMARY}")
    if options.json:
        several = isinstance(summary, list)
        put(disk.to_json([placed(s, out) for s in summary] if several else placed(summary, out)))
    elif isinstance(summary, list) and isinstance(found, Comparison):
        put(found.to_text(_columns(options, found.family), options.reasons))
    else:
        put(_text_of(summary, options))
    return 0


def _only_with_resume(options: Namespace) -> None:
    """Refuse options that a run which has begun cannot take."""
    common = ("command", "resume", "debug", "quiet", "verbose", "version")
    for name, value in vars(options).items():
        if value and name not in (*common, *VIEW_OPTIONS, *RESUME_OPTIONS):
            option = "--" + name.replace("_", "-")
            raise InputError(f"{option}: not with --resume, which continues with {CONFIG} of the directory")


def _span(seeds: Sequence[int]) -> str:
    """Return seeds for a directory's name: those that follow one another by the first and the last."""
    if len(seeds) > 1 and list(seeds) == list(range(seeds[0], seeds[-1] + 1)):
        return f"{seeds[0]}-to-{seeds[-1]}"
    return "-".join(map(str, seeds)) if len(seeds) <= 8 else f"{seeds[0]}-and-{len(seeds) - 1}-more"


def _short(scheduler: str) -> str:
    """Return a scheduler's name for a directory: of ``path/to/file.py:Class`` the class."""
    return scheduler.rpartition(":")[2]
