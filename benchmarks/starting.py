"""What comes before the engine: whole processes, compiling, loading and converting.

How to run: `python -m benchmarks.starting [SECTION...] [--schedulers a,b] [--repeats 3] [--rows 10000000]`
For debugging: `--repeats 1`, `--rows 100000`. Each measurement is a process of its own. Sections:

- ``start-up``: a whole `emu run` of GOOG_subtrace on 15,000 nodes. Targets: 3 s in-process and 10 s through Ray with a
  warm cache of compiled code; 60 s for the first run on a machine, compilation included.
- ``compiling``: seconds of CPU that a small run takes with a cold cache, less those with a warm one. *Alone*: the cache
  is empty. *Shared*: it holds another policy of the family: sparrow, sebf or drf. Targets on 2 idle cores: sparrow
  alone 10 s, any policy with what is shared 8 s.
- ``loading``: a workload with the arrays that the engine reads. Targets: a million tasks in 0.5 s from Parquet and 3 s
  from `.tr`, ten million in 3 s from Parquet; imports are not in the time.
- ``converting``: task events shaped like Google's of 2011, plain and gzip, from the source's files to the last file of
  the workload. Targets: a million rows a second, at most 1.5 GiB.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from actors.schedulers.registry import built_in_schedulers
from benchmarks.measuring import SHARED, run_python, run_sections, show, verdict
from tests.workloads.google_shaped import write_google_shaped
from workloads.catalogue import load_workload, save_workload

TRACE = SHARED / "traces" / "GOOG_subtrace.tr"
FIRST = {"jobs": "sparrow", "coflows": "sebf", "dags": "drf"}
"""By family, the policy that is compiled before another one where code is shared."""
SMALL_RUN = """
import sys
import emu
from actors.schedulers.registry import find_scheduler
name, nodes, options = {
    "jobs": ("poisson", 20, {"jobs": 100}),
    "coflows": ("synthetic-coflows", None, {"coflows": 100, "ports": 20}),
    "dags": ("facebook-mapreduce", 10, {"jobs": 20, "tasks": 400}),
}[sys.argv[2]]
more = {"short_cutoff": "90%"} if find_scheduler(sys.argv[1]).hybrid else {}
emu.run(sys.argv[1], name, nodes, in_process=True, workload_options=options, **more)
"""
LOADED = ((25_000, "", 0.5), (25_000, ".tr", 3.0), (25_000, ".tr.gz", 3.0), (250_000, "", 3.0))
"""Jobs of the generator `yahoo`, about 40 tasks each; what the name ends with; seconds."""
LOAD = """
import json, resource, sys, time
import pyarrow.parquet
from workloads.catalogue import load_workload
begin = time.perf_counter()
tasks = load_workload(sys.argv[1]).arrays().duration_ns.size
took_s = time.perf_counter() - begin
print(json.dumps([took_s, tasks, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024]))
"""
CONVERT = """
import json, resource, sys, time
from workloads.readers.google_2011 import convert_google_2011
from workloads.readers.report import Report
report, begin = Report(), time.perf_counter()
convert_google_2011(*sys.argv[1:], report=report)
took_s = time.perf_counter() - begin
rows = [part.split()[0] for part in report.as_metadata()["read"].split("; ") if " rows of " in part]
most_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(json.dumps([took_s, most_kib / 2**20, sum(int(count.replace(",", "")) for count in rows)]))
"""


def start_up(asked: argparse.Namespace) -> None:
    """Print what whole processes take."""
    workload = str(TRACE) if TRACE.exists() else "yahoo"
    rows = [["", "in-process", "(3)", "through Ray", "(10)", "first run", "(60)"]]
    for name in asked.schedulers or ("sparrow", "hawk", "eagle", "central-lwl", "dist-lwl"):
        with tempfile.TemporaryDirectory() as cache:
            first = process_s(name, workload, cache)
            inside, through_ray = (
                statistics.median(process_s(name, workload, cache, *more) for _ in range(asked.repeats))
                for more in (("--in-process",), ())
            )
        found = ((inside, 3), (through_ray, 10), (first, 60))
        rows.append([name, *(text for s, most in found for text in (f"{s:.2f}", verdict(s, most)))])
    show(f"{workload}, 15,000 nodes: seconds of the whole process, median of {asked.repeats}", rows)


def process_s(scheduler: str, workload: str, cache: str, *more: str) -> float:
    """Return the seconds that `emu run` takes, its own start and end included."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "emu", "run", "--scheduler", scheduler, "--workload", workload]
        command += ["--nodes", "15000", "--out", f"{folder}/run", "--json", *more]
        begin = time.perf_counter()
        subprocess.run(command, check=True, env={**os.environ, "EMU_CACHE_DIR": cache}, capture_output=True)
        return time.perf_counter() - begin


def compiling(asked: argparse.Namespace) -> None:
    """Print what it costs to compile a policy."""
    loops = {s.advance: s.name for s in reversed(built_in_schedulers())}  # one name for each loop
    families = {s.name: s.family for s in built_in_schedulers()}
    rows = [["policy", "alone", "shared", ""]]
    for name in asked.schedulers or sorted(loops.values(), key=[*families].index):
        family = families[name]
        alone = statistics.median(compiling_s(name, family) for _ in range(asked.repeats))
        row, met = [name, f"{alone:.1f}"], verdict(alone, 10.0) if name == "sparrow" else ""
        if name != FIRST[family]:
            shared = statistics.median(compiling_s(name, family, FIRST[family]) for _ in range(asked.repeats))
            row, met = [*row, f"{shared:.1f}"], verdict(shared, 8.0)
        rows.append([*row, met])
    show("seconds of CPU to compile", rows)


def compiling_s(scheduler: str, family: str, *before: str) -> float:
    """Return the seconds of CPU to compile a scheduler where `before` are compiled."""
    with tempfile.TemporaryDirectory() as cache:
        took_s = []
        for name in (*before, scheduler, scheduler):
            begin = resource.getrusage(resource.RUSAGE_CHILDREN)
            run_python(SMALL_RUN, name, family, EMU_CACHE_DIR=cache)
            end = resource.getrusage(resource.RUSAGE_CHILDREN)
            took_s.append(end.ru_utime + end.ru_stime - begin.ru_utime - begin.ru_stime)
        return took_s[-2] - took_s[-1]


def loading(asked: argparse.Namespace) -> None:
    """Print what it takes to load a workload."""
    rows = [["tasks", "format", "s", "target", "", "MiB"]]
    with tempfile.TemporaryDirectory() as folder:
        for jobs, ending, target_s in LOADED:
            path = Path(folder) / f"yahoo-{jobs}{ending}"
            save_workload(
                load_workload("yahoo", seed=0, options={"jobs": jobs, "max_tasks": 20_000_000}), path
            )
            found = [json.loads(run_python(LOAD, path)) for _ in range(asked.repeats)]
            median_s = statistics.median(took_s for took_s, _, _ in found)
            _, tasks, most_mib = found[-1]
            figures = [f"{median_s:.2f}", f"{target_s}", verdict(median_s, target_s), f"{most_mib:,.0f}"]
            rows.append([f"{tasks:,}", ending or "Parquet", *figures])
    show(f"seconds, median of {asked.repeats}; the most memory", rows)


def converting(asked: argparse.Namespace) -> None:
    """Print how fast a trace larger than memory is converted."""
    rows = [["", "rows", "rows/s", "target", "", "GiB", "target", ""]]
    with tempfile.TemporaryDirectory() as folder:
        for name in ("plain", "gzip"):
            source = Path(folder) / name
            write_google_shaped(source, task_rows=asked.rows, shards=20, packed=name == "gzip")
            places = [Path(folder) / f"{name}-{i}" for i in range(asked.repeats)]
            found = [json.loads(run_python(CONVERT, source, place)) for place in places]
            speed = statistics.median(rows_read / took_s for took_s, _, rows_read in found)
            most = max(gib for _, gib, _ in found)
            figures = [f"{speed:,.0f}", "1,000,000", verdict(speed, least=1e6)]
            rows.append([name, f"{found[0][2]:,}", *figures, f"{most:.2f}", "1.5", verdict(most, 1.5)])
    show(f"a trace like Google's of 2011, {os.cpu_count()} cores", rows)


SECTIONS: dict[str, Callable[[argparse.Namespace], None]] = {
    "start-up": start_up,
    "compiling": compiling,
    "loading": loading,
    "converting": converting,
}


def main() -> None:
    """Measure the sections that are asked for."""
    run_sections(__doc__, SECTIONS, schedulers=tuple, repeats=3, rows=10_000_000)


if __name__ == "__main__":
    main()
