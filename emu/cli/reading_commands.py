"""``emu explain``, ``timeline``, ``plot`` and ``report``: what is made of runs that have ended."""

from __future__ import annotations

import json
from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from emu.cli.parser import KINDS, WIDTHS
from emu.directories.names import REPORT
from emu.results.result import Result, read_result
from emu.results.run_groups import workload_hash
from emu.sweeps.report_input import read_runs, sections_of
from emu.terminal import put
from workloads.doing import doing
from workloads.errors import InputError
from workloads.file_extensions import check_extension
from workloads.values import read_value

if TYPE_CHECKING:
    from emu.report.drawing import Look

MOST_NUMBERS = 10_000_000
"""Of a span."""


def explain_run(options: Namespace) -> int:
    """Explain one job, beside the same of another run, or all jobs."""
    from emu.explaining.causes import render_causes
    from emu.explaining.explain import causes, explain
    from emu.explaining.explanation import render_beside

    first = read_result(options.folder)
    second = None if options.beside is None else read_result(options.beside)
    if second is not None and workload_hash(first) != workload_hash(second):
        raise InputError(
            f"is a run of another workload than {first.path}: {_input_of(second)}, not {_input_of(first)}; --beside "
            "takes a run of the same workload, with the same seed where it is generated",
            file=second.path,
        )
    if options.job is None:
        tables = [(run, causes(run)) for run in (first, second) if run is not None]
        if options.json:
            put(json.dumps([{"run": str(run.path), "causes": table.to_pydict()} for run, table in tables]))
        else:
            put(render_causes(tables))
        return 0
    job = read_value("integer", options.job, "JOB", low=0)
    explanations = [explain(run, job) for run in (first, second) if run is not None]
    if options.json:
        put(json.dumps([one.as_dict() for one in explanations], indent=2))
    elif len(explanations) == 1:
        put(explanations[0].render(details=options.details))
    else:
        put(render_beside(*explanations, details=options.details))
    return 0


def _input_of(run: Result) -> str:
    """Return the name of the workload of a run, and the beginning of its hash."""
    return f"{run.summary['workload']} (sha256 {workload_hash(run)[:12]})"


def write_run(options: Namespace) -> int:
    """Write the timeline of a run."""
    from emu.explaining.explain import recorded
    from emu.explaining.timeline import write_timeline

    nodes, jobs = (_numbers(f"--{name}", getattr(options, name)) for name in ("nodes", "jobs"))
    name = Path(options.folder).resolve().name
    path = Path(f"{name}-trace.json" if options.out is None else options.out)
    check_extension(path, "JSON", (".json",), "--out")
    entries = write_timeline(recorded(options.folder), path, nodes=nodes, jobs=jobs)
    put(f"{entries:,} entries in {path}: open it at https://ui.perfetto.dev or chrome://tracing")
    return 0


def report(options: Namespace) -> int:
    """Write one page about run directories."""
    from emu.report.report import render_report, write_report

    folders = options.folders
    if options.out:
        check_extension(options.out, "a page of HTML", (".html", ".htm"), "--out")
    with doing("reading the runs and drawing"):
        page = render_report(read_runs(folders), sections=sections_of(folders))
    single = Path(folders[0]) if len(folders) == 1 else Path()
    put(str(write_report(Path(options.out) if options.out else single / REPORT, page)))
    return 0


def plot_runs(options: Namespace) -> int:
    """Draw runs, write the figure and print where it is."""
    from emu import plots

    kind = options.kind
    taken = KINDS[kind].options if kind in KINDS else ("schedulers",)
    for name in dict.fromkeys(name for one in KINDS.values() for name in one.options):
        if getattr(options, name) is not None and name not in taken:
            raise InputError(f"--{name}: {kind} has none; it takes {', '.join(f'--{of}' for of in taken)}")
    runs = read_runs(options.folders)
    given = {name: text for name in taken if (text := getattr(options, name)) is not None}
    if given.get("metric") == "completion":
        del given["metric"]
    if "of" in given:
        given["groups"] = given.pop("of")
        if kind in ("cdf", "ccdf"):
            given["group"] = given.pop("groups")
    for name in given.keys() & {"schedulers", "statistics", "groups"}:
        given[name] = [one.strip() for one in given[name].split(",")]
    if "nodes" in given:
        given["nodes"] = _numbers("--nodes", given["nodes"])
    if "job" in given:
        given["job"] = read_value("integer", given["job"], "--job", low=0)
    if kind not in KINDS:
        given["name"] = kind
    figure = getattr(plots, kind if kind in KINDS else "named")(runs, look=_look(options), **given)
    put("\n".join(str(path) for path in plots.save(figure, kind if options.out is None else options.out)))
    return 0


def _look(options: Namespace) -> Look:
    """Return the look that the options ask for."""
    from emu.report.drawing import Look

    width = WIDTHS.get(options.width, options.width)
    given = {"font_size": options.font_size, "width": width, "height": options.height}
    read = {
        name: read_value("number", value, f"--{name.replace('_', '-')}", low=1)
        for name, value in given.items()
        if value is not None
    }
    return Look(**read)


def _numbers(what: str, text: str | None) -> list[int] | None:
    """Return the numbers of a text such as ``0-20,31``, None for None; errors name the option `what`."""
    if text is None:
        return None
    found: list[int] = []
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        if (
            not first.isdecimal()
            or (dash and not last.isdecimal())
            or (dash and int(last) - int(first) > MOST_NUMBERS)
        ):
            raise InputError(f"{what}: {part.strip()!r} is neither a number nor a span such as 0-20")
        found += range(int(first), int(last if dash else first) + 1)
    return found
