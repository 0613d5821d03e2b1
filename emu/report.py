"""A report of runs: one HTML page that needs nothing but itself."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from emu import run_directory as rd
from emu.by_constraint import KindRow, WaitRow, compare_kinds, compare_waits, times
from emu.coflow_report import TIMELINE_CAPTION
from emu.coflow_report import group_section as coflow_section
from emu.coflow_report import run_facts as coflow_facts
from emu.job_comparison import GROUPS, Row, compare_class
from emu.keys import COFLOWS
from emu.metrics import STATISTICS, confidence_95
from emu.page import CSS, figure_of, pairs, table, text
from emu.plots import group_figures, timeline_figure
from emu.results import Result, read_result
from emu.seeds import CONSTRAINTS, WORKLOAD, alike_note, head_of
from emu.tables import TIMES, number, with_error
from workloads.errors import InputError
from workloads.units import format_duration

MARK = "<!-- made by emu report -->"


def read_runs(folders: Iterable[str | Path]) -> list[Result]:
    """Return the results in run directories; one of a comparison or of several seeds stands for its runs.

    Raises
    ------
    InputError
        A folder is not a run directory, is given twice, or its run did not finish.
    """
    found: list[Result] = []
    for folder in map(Path, folders):
        manifest = rd.read_manifest(folder)
        if manifest.get("status") != rd.FINISHED:
            raise InputError(f"the run is {manifest.get('status')!r}, not finished", file=folder)
        inner = manifest.get("runs")
        found += (
            [read_result(folder / name) for name in inner] if inner is not None else [read_result(folder)]
        )
    paths = [r.path.resolve() for r in found if r.path is not None]
    twice = next((p for i, p in enumerate(paths) if p in paths[:i]), None)
    if twice is not None:
        raise InputError("is given twice", file=twice)
    return found


def write_report(path: Path, text: str) -> Path:
    """Write a page; a file that is there is replaced only if it is a report."""
    try:
        if path.exists() and MARK not in path.read_text(encoding="utf-8", errors="replace")[:200]:
            raise InputError("exists and is not a report; give another file with --out", file=path)
        rd.write_text(path, text)
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror}", file=path) from None
    return path


def render_report(runs: Sequence[Result], title: str = "Emu report") -> str:
    """Return the page of any runs: those of the same jobs, nodes and seeds are compared, each is shown."""
    parts = [f"<h1>{text(title)}</h1>", f'<p class="sub">{text(_what(runs))}</p>']
    parts += [f'<p class="note">{text(n)}</p>' for n in dict.fromkeys(n for r in runs for n in r.notes)]
    for group in group_runs(runs):
        parts += _group_section(group)
    parts.append("<h2>Runs</h2>")
    for run in runs:
        parts += _run_section(run, is_open=len(runs) == 1)
    body = "\n".join(parts)
    return (
        f'<!DOCTYPE html>\n{MARK}\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{text(title)}</title>\n"
        f"<style>{CSS}</style>\n</head>\n<body>\n{body}\n</body>\n</html>\n"
    )


def group_runs(runs: Sequence[Result]) -> list[dict[str, list[Result]]]:
    """Return the runs that can be compared, by scheduler: the same nodes, warm-up, seeds, and jobs seed by seed."""
    groups: dict[tuple[Any, ...], dict[str, list[Result]]] = {}
    for run in runs:
        groups.setdefault(_same(run), {}).setdefault(run.summary["scheduler"], []).append(run)
    whole = []
    for group in groups.values():
        for own in group.values():
            own.sort(key=lambda r: r.summary["seed"])
        seeds = [[r.summary["seed"] for r in own] for own in group.values()]
        equal = all(s == seeds[0] for s in seeds)
        equal &= all(len(set(map(_jobs_of, pair))) == 1 for pair in zip(*group.values(), strict=False))
        distinct = all(len(set(s)) == len(s) for s in seeds)
        # Runs that do not pair up, seed by seed, are shown without ratios to each other.
        whole += (
            [group] if equal and distinct else [{name: [run]} for name, own in group.items() for run in own]
        )
    return whole


def _same(run: Result) -> tuple[Any, ...]:
    """Return what runs have in common that can be compared: all that their jobs come from, but for seeds."""
    config = run.manifest.get("config", {})
    drawn = set(run.summary.get("drawn", ())) & {WORKLOAD, CONSTRAINTS}
    made_by = [config.get(name) for name in ("workload_options", "constraints", "resample", "load")]
    return (
        run.summary["workload"],
        run.summary["nodes"],
        repr(made_by) if drawn else _jobs_of(run),
        config.get("short_cutoff"),
        config.get("warmup"),
    )


def _jobs_of(run: Result) -> tuple[str, ...]:
    """Return the hashes of the jobs, or coflows, of a run."""
    return tuple(i["sha256"] for i in run.manifest.get("inputs", ()) if i.get("what") == "workload")


def _what(runs: Sequence[Result]) -> str:
    def several(values: Iterable[Any], one: str) -> str:
        distinct = list(dict.fromkeys(values))
        return str(distinct[0]) if len(distinct) == 1 else f"{len(distinct)} {one}s"

    schedulers = several((r.summary["scheduler"] for r in runs), "scheduler")
    workload = several((r.summary["workload"] for r in runs), "workload")
    nodes = several(
        (f"{r.summary['nodes']:,} {'ports' if r.family == COFLOWS else 'nodes'}" for r in runs), "size"
    )
    seeds = several((f"seed {r.summary['seed']}" for r in runs), "seed")
    return f"{schedulers} on {workload}, {nodes}, {seeds}; clock {runs[0].summary['clock']}"


def _group_section(group: dict[str, list[Result]]) -> list[str]:
    first = next(iter(group.values()))[0]
    warmup_s = _warmup(first)
    of_runs = {name: [r.summary for r in runs] for name, runs in group.items()}
    parts = [f"<h2>{text(head_of(next(iter(of_runs.values()))))}</h2>"]
    if alike := alike_note(of_runs).strip():
        parts.append(f'<p class="note">{text(alike)}</p>')
    parts += (coflow_section if first.family == COFLOWS else _job_section)(group, warmup_s)
    if len(group) > 1:
        parts += _counter_section(group)
    shown = [figure_of(f.drawn, f.caption) for f in group_figures(group, warmup_s)]
    return [*parts, f'<div class="figures">{"".join(shown)}</div>']


def _job_section(group: dict[str, list[Result]], warmup_s: float) -> list[str]:
    """Return the tables of runs of the same jobs."""
    parts = [
        "<p>Job completion time in seconds"
        + (f", and as a multiple of that under {text(next(iter(group)))}" if len(group) > 1 else "")
        + (f"; jobs of the first {text(format_duration(warmup_s))} left out" if warmup_s else "")
        + ".</p>"
    ]
    for name in GROUPS:
        rows = compare_class(group, name, warmup_s)
        if rows:
            parts += [f"<h3>{name.capitalize()} jobs ({number(rows[0].count)})</h3>", _class_table(rows)]
    return [*parts, *_wait_section(compare_waits(group)), *_kind_section(compare_kinds(group))]


def _class_table(rows: list[Row]) -> str:
    several = len(rows) > 1
    head = ["scheduler"]
    for s in STATISTICS:
        head += [s, TIMES] if several else [s]
    cells = []
    for row in rows:
        line = [text(row.scheduler)]
        for s in STATISTICS:
            best = several and row.times[s][0] == min(r.times[s][0] for r in rows)
            line.append(f'<span class="best">{text(with_error(*row.times[s]))}</span>' if best else
                        text(with_error(*row.times[s])))  # fmt: skip
            if several:
                mean, half = row.ratios[s]
                shown = "" if row is rows[0] else with_error(mean, half, f"{mean:.2f}")
                line.append(f'<span class="ratio">{text(shown)}</span>')
        if several:
            line.append("" if row is rows[0] else text(f"{row.improved:.1%}"))
        cells.append(line)
    return table([*map(text, head), *(["jobs improved"] if several else [])], cells)


def _wait_section(rows: list[WaitRow]) -> list[str]:
    """Return how long jobs with and without constraints waited; nothing where none has any."""
    if not rows:
        return []
    cells = [[r.scheduler, f"{r.group} jobs", *(with_error(*r.times[s]) for s in STATISTICS)] for r in rows]
    return [
        "<h3>Queueing delay</h3>",
        "<p>Seconds until a job's first task starts, where a class has jobs with constraints and without.</p>",
        table(["scheduler", "jobs", *STATISTICS], [[text(cell) for cell in line] for line in cells]),
    ]


def _kind_section(rows: list[KindRow]) -> list[str]:
    """Return what each kind of constraint does to short jobs; nothing where none has any."""
    if not rows:
        return []
    first, *others = rows[0].mean
    head = ["constraint", "jobs"]
    for name in (first, *others):
        head += [name, *([TIMES] if name != first else []), "slowdown"]
    cells = []
    for row in rows:
        line = [row.kind, number(row.count)]
        for name in row.mean:
            ratio = [times(row.ratio[name])] if name != first else []
            line += [with_error(*row.mean[name]), *ratio, times(row.slowdown[name])]
        cells.append([text(cell) for cell in line])
    told = f", as a multiple of that under {first}" if others else ""
    return [
        "<h3>Short jobs by kind of constraint</h3>",
        f"<p>Mean completion time in seconds{text(told)}, and the relative slowdown: total completion time over "
        "total ideal time, as a multiple of that of the run's unconstrained short jobs.</p>",
        table([text(cell) for cell in head], cells),
    ]


def _counter_section(group: Mapping[str, list[Result]]) -> list[str]:
    """Return how often each mechanism fired, scheduler by scheduler."""
    names = list(dict.fromkeys(name for runs in group.values() for r in runs for name in r.counters))
    if not names:
        return []
    cells = []
    for name in names:
        found = [[r.counters[name] for r in runs if name in r.counters] for runs in group.values()]
        shown = [with_error(*confidence_95(values)) if values else "" for values in found]
        cells.append([text(name.replace("_", " ")), *map(text, shown)])
    return [
        "<h3>What the mechanisms did</h3>",
        "<p>How often each fired in a run.</p>",
        table(["counter", *map(text, group)], cells),
    ]


def _run_section(run: Result, is_open: bool) -> list[str]:
    s = run.summary
    of_coflows = run.family == COFLOWS
    unit = "ports" if of_coflows else "nodes"
    head = f"{s['scheduler']} on {s['workload']}, {s['nodes']:,} {unit}, seed {s['seed']}"
    facts = coflow_facts(run) if of_coflows else _job_facts(s)
    parts = [f"<details{' open' if is_open else ''}><summary>{text(head)}</summary>"]
    parts.append(table(["figure", "value"], pairs(facts)))
    if run.counters:
        counted = {name.replace("_", " "): f"{value:,.0f}" for name, value in run.counters.items()}
        parts += [
            "<p>What the scheduler's mechanisms did:</p>",
            table(["counter", "count"], pairs(counted)),
        ]
    figure = timeline_figure(run)
    if figure is not None:
        caption = "Utilisation of all slots, and tasks that wait, by class of their job"
        parts.append(figure_of(figure, TIMELINE_CAPTION if of_coflows else caption))
    parts.append(f"<p>Configuration ({text(rd.CONFIG)}):</p><pre>{text(run.config)}</pre>")
    versions = ", ".join(f"{k} {v}" for k, v in run.manifest.get("versions", {}).items())
    return [*parts, f'<p class="sub">{text(versions)}</p></details>']


def _job_facts(summary: Mapping[str, Any]) -> dict[str, str]:
    """Return what the table of one run of jobs says."""
    jobs, engine = summary["jobs"], summary["engine"]
    facts = {
        "makespan": format_duration(jobs["makespan_s"]) if "makespan_s" in jobs else "-",
        "Jain index of slowdown": number(jobs.get("jain_index")),
        "tasks": f"{engine['tasks']:,}",
        "events": f"{engine['events']:,}",
        "engine time": format_duration(engine["wall_s"]),
        "tasks per second of engine time": f"{engine['tasks_per_s']:,.0f}",
    }
    if "unfinished" in jobs:
        facts["jobs that did not finish"] = f"{jobs['unfinished']:,}"
    return facts


def _warmup(run: Result) -> float:
    from workloads.units import parse_duration

    return parse_duration(run.manifest.get("config", {}).get("warmup", 0.0), "warmup")
