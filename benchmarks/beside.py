"""Engine time of schedulers in several checkouts, run in turn: seconds of CPU from the first event to the last.

    python -m benchmarks.beside --checkouts ../before,. [--schedulers sparrow,eagle] [--repeats 5] [--tasks 1000000]
        [--nodes 15000]

Schedulers of jobs run `yahoo` on so many nodes, those of coflows 150 ports, those of DAG jobs 100 machines. Each run
is a process of its own, whose code is compiled already. The first checkout is the one that the others are compared
with: a ratio above 1 is slower. `ratio` is the median over rounds of the ratio within a round, since a machine that
others use is slower for minutes; `best` is the ratio of the least of each.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
from operator import truediv
from pathlib import Path

from tqdm import tqdm

from benchmarks.measuring import options, run_python

# What engines measure by the wall clock, they measure here by the CPU time of the process.
RUN = """
import json, sys, time
time.perf_counter = time.process_time
import emu
from actors.schedulers.registry import find_scheduler
scheduler, tasks, nodes = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
family = find_scheduler(scheduler).family
if family == "coflows":
    options = {"coflows": max(tasks // 200, 10), "ports": 150}
    result = emu.run(scheduler, "synthetic-coflows", in_process=True, workload_options=options)
elif family == "dags":
    options = {"jobs": max(tasks // 110, 10)}
    result = emu.run(scheduler, "query-dags", 100, in_process=True, workload_options=options)
else:
    options = {"jobs": max(tasks // 40, 10), "nodes": nodes, "seed": 0}
    result = emu.run(scheduler, "yahoo", nodes, in_process=True, workload_options=options)
print(json.dumps([result.summary["engine"]["wall_s"], result.summary["engine"]["events"]]))
"""


def run_once(root: Path, cache: str, *arguments: object) -> tuple[float, int]:
    """Engine time of one run of a checkout, s of CPU, and the events it handled."""
    printed = run_python(RUN, *arguments, root=root, EMU_CACHE_DIR=cache)
    engine_s, events = json.loads(printed.splitlines()[-1])
    return float(engine_s), int(events)


def main() -> int:
    """Print a line for each scheduler and checkout; exit code 1 if one handled other events than the first."""
    schedulers = ("sparrow", "hawk", "eagle", "central-lwl", "dist-lwl")
    size = {"tasks": 1_000_000, "nodes": 15_000}
    asked = options(__doc__, checkouts=(".",), schedulers=schedulers, repeats=5, **size)
    roots = [Path(path).resolve() for path in asked.checkouts]
    same = True
    print(f"{'scheduler':<14}{'checkout':<34}{'median s':>10}{'least s':>10}{'ratio':>8}{'best':>8}")
    with tempfile.TemporaryDirectory() as folder:
        caches = {root: str(Path(folder, str(i))) for i, root in enumerate(roots)}
        for scheduler in asked.schedulers:
            took: dict[Path, list[float]] = {root: [] for root in roots}
            events = {}
            for root in roots:
                run_once(root, caches[root], scheduler, 1000, 100)  # compiles
            for _ in tqdm(range(asked.repeats), desc=scheduler, disable=None, leave=False):
                for root in roots:
                    seconds, events[root] = run_once(root, caches[root], scheduler, asked.tasks, asked.nodes)
                    took[root].append(seconds)
            first = took[roots[0]]
            for root in roots:
                median, least = statistics.median(took[root]), min(took[root])
                paired = statistics.median(map(truediv, took[root], first))
                other = "" if events[root] == events[roots[0]] else "  OTHER EVENTS"
                same &= not other
                row = f"{scheduler:<14}{root.name:<34}{median:>10.3f}{least:>10.3f}"
                print(f"{row}{paired:>8.3f}{least / min(first):>8.3f}{other}", flush=True)
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
