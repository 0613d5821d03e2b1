"""`emu workload`: list, describe, convert, make, transform and fetch workloads."""

from __future__ import annotations

import textwrap
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from emu import disk
from emu.results.text_tables import align
from emu.running.progress import bytes_bar
from emu.terminal import put, say, warn
from workloads.errors import InputError
from workloads.hints import did_you_mean
from workloads.units import parse_duration
from workloads.values import read_value

if TYPE_CHECKING:
    from workloads.transform.primitives import Workload


def run_action(options: Namespace) -> int:
    """Do what the options of ``emu workload`` ask for."""
    own = {"list": _list, "info": _info, "convert": _convert, "synth": _synth, "fetch": _fetch}
    return own.get(options.action, _transform)(options)


def _list(options: Namespace) -> int:
    from workloads.catalogue import generators
    from workloads.formats import FORMATS
    from workloads.limits import FREE_BYTES
    from workloads.options import options_line

    if options.json:
        made = [{"generator": name, "about": about} for name, about in generators().items()]
        read = [
            {"format": name, "about": known.about, "family": known.family, "writes": known.write is not None}
            for name, known in FORMATS.items()
        ]
        put(disk.to_json({"generators": made, "formats": read}))
        return 0
    lines = ["generators"]
    for name, about in generators().items():
        what, _, given = about.partition(" (")
        lines += _entry(name, what, given.removesuffix(")"))
    lines += ["", "formats"]
    for name, known in FORMATS.items():
        what = f"{known.about}; {known.family}; {'read and written' if known.write else 'read'}"
        lines += _entry(name, what, options_line(known.convert or known.read))
    lines += [
        "",
        "limits, of all of them: max_tasks, of a source by the memory that is free; "
        f"max_bytes={FREE_BYTES} or more, by the source's size",
    ]
    put("\n".join(lines))
    return 0


def _entry(name: str, about: str, options: str) -> list[str]:
    """Return the lines of a list about one generator or format."""
    given = textwrap.wrap(options, 100, initial_indent=" " * 8, subsequent_indent=" " * 8)
    return [f"  {name:<17} {about}", *given]


def _info(options: Namespace) -> int:
    from workloads.generators.published import closeness, render_closeness
    from workloads.info import describe, render
    from workloads.jobs import JobWorkload

    nodes = [read_value("integer", n, "--nodes", low=1) for n in options.nodes]
    plots = _plots(options.plot)
    workload = _load(options)
    description = describe(workload, nodes)
    parts = [render(description)]
    if options.cluster is not None:
        held, texts = _on_cluster(options, nodes, workload)
        description |= held
        parts += texts
    if isinstance(workload, JobWorkload) and (close := closeness(workload)) is not None:
        description["closeness"] = close
        parts.append(render_closeness(close))
    if options.json:
        warn(workload.notes)
        put(disk.to_json(description))
    else:
        put("\n".join(parts))
    if plots:
        from emu.report.drawing import write_figure
        from emu.report.workload_plots import workload_figure

        figure = workload_figure(workload, description)
        try:
            for path in plots:
                write_figure(figure, path)
        except OSError as error:
            raise InputError(f"--plot: {path} cannot be written: {error.strerror or error}") from None
        say(f"drawn: {', '.join(path.name for path in plots)}")
    return 0


def _plots(given: str | None) -> list[Path]:
    """Return the files that ``--plot`` asks for; a wrong ending is refused before the workload is loaded."""
    if given is None:
        return []
    from emu.report.drawing import figure_paths

    try:
        return figure_paths(Path(given))
    except InputError as error:
        raise InputError(f"--plot: {error.message}") from None


def _on_cluster(options: Namespace, nodes: list[int], workload: Workload) -> tuple[dict[str, Any], list[str]]:
    """Return what tasks hold of the cluster, and its nodes that satisfy their constraints: as data and as texts."""
    from clusters.cluster import load_cluster
    from clusters.figures import (
        constraint_figures,
        describe_constraints,
        describe_resources,
        resource_figures,
    )
    from clusters.matching import match
    from workloads.coflows import CoflowWorkload

    if isinstance(workload, CoflowWorkload):
        wrong = f"{workload.name} is a workload of coflows, which have no constraints and hold no resources"
        raise InputError(f"--cluster: {wrong}")
    if len(nodes) > 1:
        raise InputError("--nodes: give one number of nodes with --cluster")
    cluster = load_cluster(options.cluster, nodes[0] if nodes else None)
    held = resource_figures(workload, cluster)
    constraints = constraint_figures(workload, cluster, match(workload, cluster))
    texts = [describe_resources(workload, held), describe_constraints(workload, cluster)]
    return {"resources": held, "constraints": constraints}, texts


def _convert(options: Namespace) -> int:
    from workloads.catalogue import convert_workload
    from workloads.readers.report import Report

    report = Report()
    with _saving(), bytes_bar() as progress:
        notes = convert_workload(
            options.workload,
            options.to,
            options=_given(options),
            format=options.format,
            to_format=options.to_format,
            overwrite=options.overwrite,
            report=report,
            progress=progress,
        )
    put("\n".join([*report.lines(), f"written to {options.to}"]))
    warn(text for text in notes if text not in report.lines())
    return 0


def _synth(options: Namespace) -> int:
    from workloads.catalogue import generate, generators, options_without_meaning

    if options.workload not in generators():
        raise InputError(
            f"unknown generator {options.workload!r}{did_you_mean(options.workload, generators())}"
        )
    given = _given(options)
    for name, why in options_without_meaning(options.workload, given).items():
        raise InputError(f"--set {name}: {why}")
    if options.seed is not None:
        given["seed"] = read_value("integer", options.seed, "--seed", low=0)
    _save(generate(options.workload, given), options.to, options)
    return 0


def _fetch(options: Namespace) -> int:
    from workloads.public.data_folder import fetch, size_text
    from workloads.public.traces import public_traces

    if options.name is None:
        rows = [["trace", "size", "licence", "format", "what"]]
        rows += [[t.name, size_text(t), t.licence, t.format, t.what] for t in public_traces().values()]
        put("\n".join(align(rows, 9)))
        return 0
    timeout_s = parse_duration(options.timeout, "--timeout")
    with bytes_bar() as progress:
        fetch(
            options.name,
            folder=options.folder,
            progress=progress,
            tell=put,
            mirror=options.mirror,
            timeout_s=timeout_s,
        )
    return 0


def _transform(options: Namespace) -> int:
    from workloads.catalogue import load_workload
    from workloads.limits import LIMIT_NAMES, limited, take_limits
    from workloads.transform import TRANSFORMATIONS, describe_frequencies, frequencies

    step = TRANSFORMATIONS[options.action]
    given = {
        option.name: text
        for option in step.options
        if (text := getattr(options, f"step_{option.name}")) is not None
    }
    arguments = step.parse(given)
    limits, other = take_limits(_given(options))
    for name in other:
        raise InputError(f"--set: {name!r} is not a limit{did_you_mean(name, LIMIT_NAMES)}")
    with bytes_bar() as progress:
        paths = options.workload if step.many_in else [options.workload]
        loaded = [load_workload(path, options=vars(limits), progress=progress) for path in paths]
    with limited(limits):
        made = step.function(loaded if step.many_in else loaded[0], **arguments)
    if step.many_out:
        for part in made.values():
            _save(part, str(Path(options.to) / part.name), options)
    else:
        _save(made, options.to, options)
    if options.action == "constrain":
        put("\n".join(describe_frequencies(frequencies(made))))
    return 0


def _given(options: Namespace) -> dict[str, Any]:
    """Return the options of ``--set``."""
    given: dict[str, Any] = {}
    for text in options.set:
        name, equals, value = text.partition("=")
        if not equals:
            raise InputError(f"--set: {text!r} is not of the form name=value, such as jobs=1000")
        given[name.strip().removeprefix("workload_options.")] = value.strip() or value
    return given


def _load(options: Namespace) -> Workload:
    from workloads.catalogue import load_workload

    with bytes_bar() as progress:
        return load_workload(
            options.workload, options=_given(options), format=options.format, progress=progress
        )


@contextmanager
def _saving() -> Iterator[None]:
    """Within, the error about a workload that exists names the option that replaces it."""
    try:
        yield
    except InputError as error:
        if "exists already" not in error.message:
            raise
        wrong = "exists already; choose another name, or give --overwrite"
        raise InputError(wrong, file=error.file) from None


def _save(workload: Workload, to: str, options: Namespace) -> None:
    from workloads.catalogue import save_workload
    from workloads.transform.primitives import family

    with _saving():
        lost = save_workload(workload, to, overwrite=options.overwrite)
    warn([*workload.notes, *lost])
    heads = family(workload).name
    parts = "flows" if heads == "coflows" else "tasks"
    put(f"{', '.join(f'{getattr(workload, t).num_rows:,} {t}' for t in (heads, parts))} in {to}")
