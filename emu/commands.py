"""What each command does, from parsed options to what is printed and written."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from emu import run_directory as rd
from emu.config import Given, Layer, Place, layer_from_options, layer_from_set, read_value, resolve
from emu.config_file import layer_from_file
from emu.emulation import execute
from emu.keys import BY_NAME, KINDS
from emu.plan import Plan, prepare
from emu.progress import progress_bar, say
from emu.tables import align, render_summary, to_ascii
from workloads.errors import InputError

MAIN_JOB = {"scheduler": ("sparrow", "hawk", "eagle", "central-lwl"), "workload": "yahoo", "nodes": 15_000}


def put(text: str) -> None:
    """Print to standard output; signs that its encoding lacks are replaced."""
    try:
        text.encode(sys.stdout.encoding or "ascii")
    except UnicodeEncodeError:
        text = to_ascii(text)
    sys.stdout.write(text if text.endswith("\n") else text + "\n")


def warn(notes: Iterable[str]) -> None:
    """Say what the user must know, on standard error, wherever that goes."""
    for note in notes:
        print(f"emu: note: {note}", file=sys.stderr, flush=True)


def version() -> int:
    """Print the version."""
    import emu

    put(f"emu {emu.__version__}")
    return 0


def run(options: Namespace) -> int:
    """Emulate one scheduler."""
    if options.resume is not None:
        return _resume(options.resume, options.json)
    plan = _plan(options, "scheduler")
    if len(plan.schedulers) > 1:
        raise plan.config.error("scheduler", "emu run takes one scheduler; emu compare takes several")
    warn(plan.notes)
    scheduler, seeds = plan.schedulers[0].name, plan.seeds
    name = f"{_short(scheduler)}-{plan.workload.name}-{plan.cluster.num_nodes}"
    if len(seeds) > 1:
        return _run_together(plan, options, f"{name}-seeds-{seeds[0]}-to-{seeds[-1]}")
    seed = seeds[0]
    manifest, config = plan.manifest(0, seed), plan.config_toml(0, seed)
    out = (
        rd.claim(options.out, manifest, config)
        if options.out
        else rd.claim_new(f"{name}-{seed}", manifest, config)
    )
    _say_how(plan)
    with rd.running(out), progress_bar(scheduler, plan.workload.num_tasks) as progress:
        result = execute(plan, 0, seed, progress, say)
        result.write(out)
    put(rd.to_json(result.summary) if options.json else f"{render_summary(result.summary)}results in {out}")
    return 0


def compare(options: Namespace) -> int:
    """Emulate several schedulers on the same workload and compare them."""
    if options.resume is not None:
        return _resume(options.resume, options.json)
    plan = _plan(options, "schedulers")
    warn(plan.notes)
    return _run_together(
        plan, options, f"compare-{plan.workload.name}-{plan.cluster.num_nodes}-{plan.seeds[0]}"
    )


def main_job(options: Namespace) -> int:
    """Do what Emu is for, at full size: the comparison that runs without arguments."""
    plan = _plan(options, "schedulers", MAIN_JOB)
    names = ", ".join(s.name for s in plan.schedulers)
    say(f"comparing {names} on the workload {plan.workload.name} over {plan.cluster.num_nodes:,} nodes")
    warn(plan.notes)
    return _run_together(
        plan, options, f"compare-{plan.workload.name}-{plan.cluster.num_nodes}-{plan.seeds[0]}"
    )


def validate(options: Namespace) -> int:
    """Print the fully resolved configuration of a file, or say what is wrong with it."""
    plan = prepare(resolve([layer_from_file(options.file), layer_from_set(options.set)]))
    warn(plan.notes)
    put(plan.config_toml())
    return 0


def report(options: Namespace) -> int:
    """Write one page about run directories."""
    from emu.report import read_runs, render_report, write_report

    runs = read_runs(options.folders)
    single = Path(options.folders[0]) if len(options.folders) == 1 else Path()
    put(str(write_report(Path(options.out) if options.out else single / "report.html", render_report(runs))))
    return 0


def schedulers(options: Namespace) -> int:
    """List the schedulers, or describe one."""
    from actors.schedulers.registry import find_scheduler, scheduler_names

    if options.name is None:
        known = [find_scheduler(name) for name in scheduler_names()]
        put(
            "\n".join(
                align(
                    [["scheduler", "family", "what it does"], *([s.name, s.family, s.title] for s in known)],
                    9,
                )
            )
        )
        return 0
    scheduler = find_scheduler(options.name)
    lines = [f"{scheduler.name} ({scheduler.family}): {scheduler.title}", f"paper: {scheduler.paper}"]
    if scheduler.hybrid:
        lines.append("treats short and long jobs apart: needs a short cut-off")
    lines += ["", scheduler.doc.strip()] if scheduler.doc and scheduler.doc.strip() else []
    if scheduler.parameters:
        rows = [["parameter", "default", "kind", "meaning"]]
        for p in scheduler.parameters:
            kind = " | ".join(p.choices) if p.choices else p.kind
            rows.append([p.name, _shown(p.default), kind, p.meaning])
        lines += ["", *align(rows, 9)]
    put("\n".join(lines))
    return 0


def workload_list(options: Namespace) -> int:
    """List the generators."""
    from workloads.catalogue import generators

    put("\n".join(align([[name, about] for name, about in generators().items()], 9)))
    return 0


def workload_info(options: Namespace) -> int:
    """Describe a workload in numbers."""
    from workloads.info import describe, render

    nodes = [read_value(BY_NAME["nodes"], Given(n, Place("--nodes"))) for n in options.nodes]
    workload = _load(options)
    description = describe(workload, nodes)
    if options.json:
        warn(workload.notes)
    put(rd.to_json(description) if options.json else render(description))
    return 0


def workload_convert(options: Namespace) -> int:
    """Write a workload in another format."""
    from workloads.catalogue import load_workload

    return _save(load_workload(options.workload), options)


def workload_synth(options: Namespace) -> int:
    """Generate a workload and write it."""
    from workloads.catalogue import generators
    from workloads.hints import did_you_mean

    if options.workload not in generators():
        raise InputError(
            f"unknown generator {options.workload!r}{did_you_mean(options.workload, generators())}"
        )
    return _save(_load(options), options)


def workload_fetch(options: Namespace) -> int:
    """Say that traces are not fetched yet."""
    raise InputError(
        "emu workload fetch is not in this version; download the trace and use emu workload convert"
    )


def cluster_list(options: Namespace) -> int:
    """List the presets."""
    from clusters.cluster import presets

    put("\n".join(align([[name, about] for name, about in presets().items()], 9)))
    return 0


def cluster_info(options: Namespace) -> int:
    """Describe a cluster."""
    from clusters.cluster import describe_cluster, load_cluster

    given = {"cluster": options.cluster, "nodes": options.nodes}
    config = resolve([layer_from_set(options.set), layer_from_options(given)])
    with config.blame("cluster"):
        put(describe_cluster(load_cluster(config["cluster"], config["nodes"], slots=config["slots"])))
    return 0


def _plan(options: Namespace, schedulers: str, defaults: dict[str, Any] | None = None) -> Plan:
    """Return the plan of the options of ``run`` or ``compare``; `schedulers` is the option that has those."""
    for name in ("partitions", "quantum", "dilation"):
        if getattr(options, name) is not None:
            raise InputError(
                f"--{name}: the clocks 'windows' and 'live' are not in this version; there is 'virtual'"
            )
    names = [key.name for key in BY_NAME.values() if key.option and key.name != "scheduler"]
    given: Layer = layer_from_options({name: getattr(options, name) for name in names})
    if (value := getattr(options, schedulers)) is not None:
        given["scheduler"] = Given(value, Place(f"--{schedulers}"))
    layers = [layer_from_file(options.config)] if options.config else []
    return prepare(resolve([*layers, layer_from_set(options.set), given], defaults))


def _run_together(plan: Plan, options: Namespace, name: str) -> int:
    """Run all schedulers and seeds of a plan into one directory and print what they come to."""
    from emu.comparison import run_plan, save_comparison

    manifest, config = plan.manifest(), plan.config_toml()
    out = rd.claim(options.out, manifest, config) if options.out else rd.claim_new(name, manifest, config)
    _say_how(plan)
    with rd.running(out):
        comparison = run_plan(plan, out, progress_bar, say)
        say("writing the report")
        save_comparison(comparison, out)
    summaries = comparison.summaries
    if options.json:
        put(rd.to_json(summaries if len(summaries) > 1 else summaries[0]))
    elif len(summaries) > 1:
        put(f"{comparison.to_text()}\nresults in {out}, report in {out / 'report.html'}")
    else:
        put(f"{render_summary(summaries[0])}results in {out}")
    return 0


def _resume(folder: str, as_json: bool) -> int:
    """Show a run that is finished; going on with one that is not is of a later version."""
    out = Path(folder)
    status = rd.read_manifest(out).get("status")
    if status != rd.FINISHED:
        raise InputError(
            f"--resume: {out} is {status}, and going on with a run is not in this version; "
            f"start it anew with --config {out / rd.CONFIG}"
        )
    summary: Any = rd.read_json(out / rd.SUMMARY, "has no summary.json")
    if as_json:
        put(rd.to_json(summary))
    else:
        put("\n".join(render_summary(s) for s in (summary if isinstance(summary, list) else [summary])))
    return 0


def _load(options: Namespace) -> Any:
    """Return the workload of ``info`` and ``synth``, with the generator's options."""
    from workloads.catalogue import load_workload

    given: dict[str, str] = {}
    for text in options.set:
        name, equals, value = text.partition("=")
        if not equals:
            raise InputError(f"--set: {text!r} is not of the form name=value, such as jobs=1000")
        given[name.strip().removeprefix("workload_options.")] = value.strip()
    if getattr(options, "seed", None) is not None:
        given["seed"] = KINDS["integer"].read(BY_NAME["seed"], options.seed)
    return load_workload(options.workload, options=given or None)


def _save(workload: Any, options: Namespace) -> int:
    from workloads.catalogue import save_workload

    try:
        lost = save_workload(workload, options.to, overwrite=options.overwrite)
    except InputError as error:
        if "exists already" in error.message:
            raise InputError(
                "exists already; choose another name, or give --overwrite", file=error.file
            ) from None
        raise
    warn([*workload.notes, *lost])
    put(f"{workload.num_jobs:,} jobs, {workload.num_tasks:,} tasks in {options.to}")
    return 0


def _say_how(plan: Plan) -> None:
    if not plan.config["in_process"]:
        say("starting Ray, which takes about 5 s; --in-process does without" if plan.config["address"] is None
            else f"joining Ray at {plan.config['address']}")  # fmt: skip


def _short(scheduler: str) -> str:
    """Return a scheduler's name for a directory: of ``path/to/file.py:Class`` the class."""
    return scheduler.rpartition(":")[2]


def _shown(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
