"""A report of runs: one HTML page that needs nothing but itself."""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from emu import run_directory as rd
from emu.by_constraint import KindRow, WaitRow, compare_kinds, compare_waits, times
from emu.comparison import GROUPS, Row, compare_class
from emu.drawing import to_svg
from emu.metrics import STATISTICS, confidence_95
from emu.plots import group_figures, timeline_figure
from emu.results import Result, read_result
from emu.tables import TIMES, number, with_error
from workloads.errors import InputError
from workloads.units import format_duration

MARK = "<!-- made by emu report -->"
_CSS = """
body { font: 15px/1.5 system-ui, sans-serif; color: #1a1a1a; }
body { max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.6rem; margin-bottom: .2rem; } h2 { font-size: 1.25rem; margin-top: 2.5rem; }
h2, h3 { border-bottom: 1px solid #ddd; padding-bottom: .2rem; }
h3 { font-size: 1.05rem; margin-top: 1.8rem; }
table { border-collapse: collapse; margin: .8rem 0; font-variant-numeric: tabular-nums; }
th, td { padding: .2rem .7rem; text-align: right; border-bottom: 1px solid #eee; white-space: nowrap; }
th { font-weight: 600; background: #f6f6f6; } td:first-child, th:first-child { text-align: left; }
.ratio { color: #666; } .best { font-weight: 600; } .note { background: #fff6e0; padding: .5rem .8rem; }
.sub { color: #555; margin-top: 0; }
pre { background: #f6f6f6; padding: .8rem; overflow-x: auto; font-size: 13px; }
.figures { display: flex; flex-wrap: wrap; gap: 1rem; } figure { margin: 0; flex: 1 1 24rem; min-width: 0; }
svg { width: 100%; height: auto; } svg text { font-family: system-ui, sans-serif; }
figcaption { color: #555; font-size: 13px; } details { margin: .6rem 0; } summary { cursor: pointer; }
"""


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
    parts = [f"<h1>{_text(title)}</h1>", f'<p class="sub">{_text(_what(runs))}</p>']
    parts += [f'<p class="note">{_text(n)}</p>' for n in dict.fromkeys(n for r in runs for n in r.notes)]
    for group in group_runs(runs):
        parts += _group_section(group)
    parts.append("<h2>Runs</h2>")
    for run in runs:
        parts += _run_section(run, is_open=len(runs) == 1)
    body = "\n".join(parts)
    return (
        f'<!DOCTYPE html>\n{MARK}\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{_text(title)}</title>\n"
        f"<style>{_CSS}</style>\n</head>\n<body>\n{body}\n</body>\n</html>\n"
    )


def group_runs(runs: Sequence[Result]) -> list[dict[str, list[Result]]]:
    """Return the runs that can be compared, by scheduler: the same jobs, nodes, warm-up and seeds."""
    groups: dict[tuple[Any, ...], dict[str, list[Result]]] = {}
    for run in runs:
        groups.setdefault(_same(run), {}).setdefault(run.summary["scheduler"], []).append(run)
    whole = []
    for group in groups.values():
        for own in group.values():
            own.sort(key=lambda r: r.summary["seed"])
        seeds = [[r.summary["seed"] for r in own] for own in group.values()]
        equal = all(s == seeds[0] for s in seeds)
        distinct = all(len(set(s)) == len(s) for s in seeds)
        # Runs that do not pair up, seed by seed, are shown without ratios to each other.
        whole += (
            [group] if equal and distinct else [{name: [run]} for name, own in group.items() for run in own]
        )
    return whole


def _same(run: Result) -> tuple[Any, ...]:
    inputs = tuple(i["sha256"] for i in run.manifest.get("inputs", ()) if i.get("what") == "workload")
    config = run.manifest.get("config", {})
    return (
        run.summary["workload"],
        run.summary["nodes"],
        inputs,
        config.get("short_cutoff"),
        config.get("warmup"),
    )


def _what(runs: Sequence[Result]) -> str:
    def several(values: Iterable[Any], one: str) -> str:
        distinct = list(dict.fromkeys(values))
        return str(distinct[0]) if len(distinct) == 1 else f"{len(distinct)} {one}s"

    schedulers = several((r.summary["scheduler"] for r in runs), "scheduler")
    workload = several((r.summary["workload"] for r in runs), "workload")
    nodes = several((f"{r.summary['nodes']:,} nodes" for r in runs), "size")
    seeds = several((f"seed {r.summary['seed']}" for r in runs), "seed")
    return f"{schedulers} on {workload}, {nodes}, {seeds}; clock {runs[0].summary['clock']}"


def _group_section(group: dict[str, list[Result]]) -> list[str]:
    first = next(iter(group.values()))[0]
    warmup_s = _warmup(first)
    seeds = [r.summary["seed"] for r in next(iter(group.values()))]
    seed = f"seed {seeds[0]}" if len(seeds) == 1 else f"{len(seeds)} seeds, means ± 95 %"
    parts = [
        f"<h2>{_text(first.summary['workload'])} on {first.summary['nodes']:,} nodes, {_text(seed)}</h2>"
    ]
    parts.append(
        "<p>Job completion time in seconds"
        + (f", and as a multiple of that under {_text(next(iter(group)))}" if len(group) > 1 else "")
        + (f"; jobs of the first {_text(format_duration(warmup_s))} left out" if warmup_s else "")
        + ".</p>"
    )
    for name in GROUPS:
        rows = compare_class(group, name, warmup_s)
        if rows:
            parts += [f"<h3>{name.capitalize()} jobs ({number(rows[0].count)})</h3>", _class_table(rows)]
    parts += [*_wait_section(compare_waits(group)), *_kind_section(compare_kinds(group))]
    if len(group) > 1:
        parts += _counter_section(group)
    shown = [_figure(f.drawn, f.caption) for f in group_figures(group, warmup_s)]
    return [*parts, f'<div class="figures">{"".join(shown)}</div>']


def _class_table(rows: list[Row]) -> str:
    several = len(rows) > 1
    head = ["scheduler"]
    for s in STATISTICS:
        head += [s, TIMES] if several else [s]
    cells = []
    for row in rows:
        line = [_text(row.scheduler)]
        for s in STATISTICS:
            best = several and row.times[s][0] == min(r.times[s][0] for r in rows)
            line.append(f'<span class="best">{_text(with_error(*row.times[s]))}</span>' if best else
                        _text(with_error(*row.times[s])))  # fmt: skip
            if several:
                mean, half = row.ratios[s]
                shown = "" if row is rows[0] else with_error(mean, half, f"{mean:.2f}")
                line.append(f'<span class="ratio">{_text(shown)}</span>')
        if several:
            line.append("" if row is rows[0] else _text(f"{row.improved:.1%}"))
        cells.append(line)
    return _table([*map(_text, head), *(["jobs improved"] if several else [])], cells)


def _wait_section(rows: list[WaitRow]) -> list[str]:
    """Return how long jobs with and without constraints waited; nothing where none has any."""
    if not rows:
        return []
    cells = [[r.scheduler, f"{r.group} jobs", *(with_error(*r.times[s]) for s in STATISTICS)] for r in rows]
    return [
        "<h3>Queueing delay</h3>",
        "<p>Seconds until a job's first task starts, where a class has jobs with constraints and without.</p>",
        _table(["scheduler", "jobs", *STATISTICS], [[_text(cell) for cell in line] for line in cells]),
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
        cells.append([_text(cell) for cell in line])
    told = f", as a multiple of that under {first}" if others else ""
    return [
        "<h3>Short jobs by kind of constraint</h3>",
        f"<p>Mean completion time in seconds{_text(told)}, and the relative slowdown: total completion time over "
        "total ideal time, as a multiple of that of the run's unconstrained short jobs.</p>",
        _table([_text(cell) for cell in head], cells),
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
        cells.append([_text(name.replace("_", " ")), *map(_text, shown)])
    return [
        "<h3>What the mechanisms did</h3>",
        "<p>How often each fired in a run.</p>",
        _table(["counter", *map(_text, group)], cells),
    ]


def _run_section(run: Result, is_open: bool) -> list[str]:
    s = run.summary
    engine = s["engine"]
    head = f"{s['scheduler']} on {s['workload']}, {s['nodes']:,} nodes, seed {s['seed']}"
    facts = {
        "makespan": format_duration(s["jobs"]["makespan_s"]) if "makespan_s" in s["jobs"] else "-",
        "Jain index of slowdown": number(s["jobs"].get("jain_index")),
        "tasks": f"{engine['tasks']:,}",
        "events": f"{engine['events']:,}",
        "engine time": format_duration(engine["wall_s"]),
        "tasks per second of engine time": f"{engine['tasks_per_s']:,.0f}",
    }
    if "unfinished" in s["jobs"]:
        facts["jobs that did not finish"] = f"{s['jobs']['unfinished']:,}"
    parts = [f"<details{' open' if is_open else ''}><summary>{_text(head)}</summary>"]
    parts.append(_table(["figure", "value"], _pairs(facts)))
    if run.counters:
        counted = {name.replace("_", " "): f"{value:,.0f}" for name, value in run.counters.items()}
        parts += [
            "<p>What the scheduler's mechanisms did:</p>",
            _table(["counter", "count"], _pairs(counted)),
        ]
    figure = timeline_figure(run)
    if figure is not None:
        parts.append(_figure(figure, "Utilisation of all slots, and tasks that wait, by class of their job"))
    parts.append(f"<p>Configuration ({_text(rd.CONFIG)}):</p><pre>{_text(run.config)}</pre>")
    versions = ", ".join(f"{k} {v}" for k, v in run.manifest.get("versions", {}).items())
    return [*parts, f'<p class="sub">{_text(versions)}</p></details>']


def _warmup(run: Result) -> float:
    from workloads.units import parse_duration

    return parse_duration(run.manifest.get("config", {}).get("warmup", 0.0), "warmup")


def _figure(figure: Any, caption: str) -> str:
    return f"<figure>{to_svg(figure)}<figcaption>{_text(caption)}</figcaption></figure>"


def _pairs(facts: Mapping[str, str]) -> list[list[str]]:
    return [[_text(name), _text(value)] for name, value in facts.items()]


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table; cells are HTML already."""
    top = "".join(f"<th>{cell}</th>" for cell in head)
    lines = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>\n" for row in rows)
    return f"<table><thead><tr>{top}</tr></thead>\n<tbody>{lines}</tbody></table>"


def _text(value: object) -> str:
    return html.escape(str(value))
