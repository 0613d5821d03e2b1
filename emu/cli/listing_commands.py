"""``emu schedulers``, ``emu cluster`` and ``emu new``: lists, descriptions, and files to start a scheduler from."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from emu import disk
from emu.configuration.config import layer_from_options, layer_from_set, resolve
from emu.configuration.loading import load_cluster_of
from emu.configuration.workload_cache import WorkloadCache
from emu.results.text_tables import align
from emu.terminal import put, warn
from workloads.errors import InputError

if TYPE_CHECKING:
    from actors.scheduler import Scheduler


def schedulers(options: Namespace) -> int:
    """List the schedulers, or describe one."""
    from actors.schedulers.registry import find_scheduler, scheduler_names

    if options.name is not None:
        found = find_scheduler(options.name)
        put(disk.to_json(_as_data(found)) if options.json else _as_text(found))
        return 0
    rows = [_described(name) for name in scheduler_names()]
    if options.json:
        put(disk.to_json([dict(zip(("scheduler", "family", "about"), row, strict=True)) for row in rows]))
    else:
        put("\n".join(align([["scheduler", "family", "what it does"], *rows], 9)))
    return 0


def _as_text(scheduler: Scheduler) -> str:
    lines = [f"{scheduler.name} ({scheduler.family}): {scheduler.title}", f"paper: {scheduler.paper}"]
    if scheduler.hybrid:
        lines.append(
            "treats short and long jobs differently: by --short-cutoff, else by the workload's own cut-off, "
            "else 90% of the jobs are short"
        )
    lines += ["", scheduler.doc.strip()] if scheduler.doc and scheduler.doc.strip() else []
    if scheduler.parameters:
        rows = [["parameter", "default", "kind", "meaning"]]
        for p in scheduler.parameters:
            kind = " | ".join(p.choices) if p.choices else p.kind
            rows.append([p.name, _shown(p.default), kind, p.about])
        lines += ["", *align(rows, 9)]
    return "\n".join(lines)


def _as_data(scheduler: Scheduler) -> dict[str, Any]:
    return {
        "scheduler": scheduler.name,
        "family": scheduler.family,
        "about": scheduler.title,
        "paper": scheduler.paper,
        "needs_cutoff": scheduler.hybrid,
        "doc": (scheduler.doc or "").strip(),
        "parameters": [
            {name: getattr(p, name) for name in ("name", "default", "kind", "choices", "about")}
            for p in scheduler.parameters
        ],
    }


def _described(name: str) -> list[str]:
    """Return the row of a scheduler in the list; of one that cannot be loaded, the reason."""
    from actors.schedulers.registry import find_scheduler

    try:
        found = find_scheduler(name)
    except InputError as error:  # of another package
        return [name, "-", f"cannot be loaded: {error.message}"]
    return [name, found.family, found.title]


def cluster(options: Namespace) -> int:
    """List the presets, or describe a cluster."""
    if options.action == "list":
        from clusters.cluster import presets

        found = presets()
        if options.json:
            put(disk.to_json([{"cluster": name, "about": about} for name, about in found.items()]))
        else:
            put("\n".join(align([[name, about] for name, about in found.items()], 9)))
        return 0
    from clusters.figures import cluster_figures, describe_cluster

    given = {"cluster": options.cluster, "nodes": options.nodes}
    config = resolve([layer_from_set(options.set), layer_from_options(given)])
    described = load_cluster_of(config, config["nodes"], WorkloadCache())
    warn(described.notes)
    put(disk.to_json(cluster_figures(described)) if options.json else describe_cluster(described))
    return 0


def _shown(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def write_new(options: Namespace) -> int:
    """Write a scheduler to start from and its test, and print what to do with them."""
    from emu.starting.new_scheduler import COMPILED, KINDS, object_of, run_of, write_copy, write_scheduler

    if options.what != "scheduler":
        raise InputError(f"unknown kind of file {options.what!r}; want: emu new scheduler NAME")
    if not Path(options.out).is_dir():
        raise InputError(f"--out: {options.out} is not a folder")
    if options.source is not None:
        if options.kind is not None:
            raise InputError("--kind: not with --from, whose copy is of the same kind; leave one of them out")
        module, test = write_copy(options.name, options.source, options.out)
        named = f"{module}:{object_of(options.name, COMPILED)}"
        about, run = f"a copy of {options.source}, which is yours to change", run_of(options.source)
        command = f"emu compare --schedulers {options.source},{named}"
    else:
        kind = options.kind or COMPILED
        module, test = write_scheduler(options.name, kind, options.out)
        about, run = KINDS[kind].about, KINDS[kind].run
        command = f"emu run --scheduler {module}:{object_of(options.name, kind)}"
    put(f"{module}: {about}\n{test}: its test\n\npytest {test}\n{command} {run} --in-process")
    return 0
