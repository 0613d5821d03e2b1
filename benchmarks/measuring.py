"""What benchmarks share: where traces are, settings of the engine and the time it takes, processes, tables."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from actors.hosting.partition import Observe, Partition, Progress
from actors.scheduler import resolve_parameters
from actors.schedulers.registry import find_scheduler
from actors.setting import Setting
from clusters.cluster import Cluster, load_cluster
from emu.results.text_tables import align
from workloads.jobs import JobWorkload

ROOT = Path(__file__).resolve().parents[1]
SHARED = Path(os.environ.get("EMU_SHARED", ROOT.parent / "shared"))
T, K = TypeVar("T"), TypeVar("K")
MOST_S = 3600.0  # of wall time, for one run


class Times(NamedTuple):
    """What the engine takes from the first event to the last; compilation and set-up are not in it."""

    wall_s: float
    cpu_s: float
    progress: Progress


def parser_of(doc: str | None) -> argparse.ArgumentParser:
    """Return a parser whose help is the docstring of a benchmark."""
    return argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)


class Choice(NamedTuple):
    """An option with some values, the first of which is its default."""

    values: tuple[Any, ...]


def options(doc: str | None, *positional: str, **given: Any) -> argparse.Namespace:
    """Return what a command line asks for; its help is the docstring of the benchmark.

    `given` has the options by name with their defaults: False of a flag, a type where there is none, `Choice`, and a
    tuple of values that stand with commas, in `positional` with spaces too.
    """
    return parse(parser_of(doc), *positional, **given)


def parse(parser: argparse.ArgumentParser, *positional: str, **given: Any) -> argparse.Namespace:
    """Return what a command line asks for, with the options of `options`."""
    for name, default in given.items():
        form: dict[str, Any] = {
            "default": default,
            "type": Path if isinstance(default, Path) else type(default),
        }
        if default is False:
            form = {"action": "store_true"}
        elif isinstance(default, Choice):
            form = {"default": default.values[0], "choices": default.values, "type": type(default.values[0])}
        elif isinstance(default, tuple):
            kind = type(default[0]) if default else str
            form["type"] = partial(_with_commas, kind)
        elif isinstance(default, type):
            form = {"type": default if default is not tuple else partial(_with_commas, str)}
        if name in positional:
            parser.add_argument(name, nargs="*", **form)
        else:
            parser.add_argument(f"--{name.replace('_', '-')}", **form)
    asked = parser.parse_args()
    for name in positional:
        if (words := getattr(asked, name)) is not given[name]:
            setattr(asked, name, [value for word in words for value in word])
    return asked


def _with_commas(kind: Callable[[str], T], text: str) -> list[T]:
    return [kind(part) for part in text.split(",")]


def run_sections(
    doc: str | None,
    sections: Mapping[str, Callable[..., None]],
    default: Sequence[str] = (),
    arguments: Callable[[argparse.Namespace], tuple[Any, ...]] = lambda asked: (asked,),
    **given: Any,
) -> None:
    """Call the sections that are asked for, or the default, or all, with the options or with `arguments` of them."""
    parser = parser_of(doc)
    asked = parse(parser, "sections", sections=(), **given)
    if unknown := [name for name in asked.sections if name not in sections]:
        parser.error(f"there is no section {', '.join(unknown)}; there are {', '.join(sections)}")
    for name in asked.sections or default or sections:
        sections[name](*arguments(asked))


def setting_of(
    scheduler: Any, workload: Any, cluster: Cluster | int, parameters: Mapping[str, Any] = {}, **more: Any
) -> Setting:
    """Return the emulation of a workload, with its own cut-off and long partition, on a cluster or on so many nodes."""
    found = find_scheduler(scheduler)
    if isinstance(workload, JobWorkload):
        more.setdefault("short_cutoff_s", workload.short_cutoff_s or float("inf"))
        more.setdefault("long_partition", (workload.long_partition or 1.0) if found.hybrid else 1.0)
    if isinstance(cluster, int):
        cluster = load_cluster("homogeneous", cluster)
    resolved = resolve_parameters(found, dict(parameters))
    return Setting(found, resolved, workload, cluster, **{"seed": 1, **more})


def engine_times(setting: Setting, observe: Observe | None = None) -> Times:
    """Run a setting in this process."""
    return run_engine(setting, observe)[0]


def run_engine(setting: Setting, observe: Observe | None = None) -> tuple[Times, Partition]:
    """Run a setting in this process; return the partition too, which holds as much memory as the run."""
    partition = Partition(setting, observe or Observe())
    partition.start()
    begin_s = time.process_time()
    progress = partition.run(MOST_S)
    assert progress.done, "no end within an hour"
    return Times(partition.wall_s, time.process_time() - begin_s, progress), partition


def in_turn(repeats: int, measures: Mapping[K, Callable[[], T]]) -> dict[K, list[T]]:
    """Return what each gives, so many times, in turn: a slow spell of the machine does not fall on one alone."""
    found: dict[K, list[T]] = {name: [] for name in measures}
    for _ in range(repeats):
        for name, measure in measures.items():
            found[name].append(measure())
    return found


def run_python(code: str, *arguments: object, root: Path = ROOT, **environment: str) -> str:
    """Run a program in a process of its own, with the packages of a checkout; return what it prints."""
    ended = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root), **environment},
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    return ended.stdout


def show(head: str, rows: Sequence[Sequence[str]]) -> None:
    """Print a table."""
    print(head, *align(rows), "", sep="\n", flush=True)


def verdict(value: float, most: float | None = None, least: float | None = None) -> str:
    """Return whether a value keeps to a limit, as text; nothing where there is none."""
    if most is None and least is None:
        return ""
    met = (most is None or value <= most) and (least is None or value >= least)
    return "met" if met else "missed"
