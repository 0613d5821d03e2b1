"""What it costs to compile a policy: seconds of CPU with a cold cache, beside another checkout in turn.

    python -m benchmarks.compiling                        each policy alone, and behind sparrow, sebf or drf
    python -m benchmarks.compiling --beside ../before --schedulers sparrow,philae --repeats 3

A policy is compiled by the first run of a process, of a workload of a hundred jobs or coflows, or of 20 DAG jobs; what
a second process takes for the same run, with all compiled, is taken off. *Alone*: the cache is empty. *Shared*: it
holds another policy of the family: sparrow, sebf or drf. Targets: sparrow alone 10 s, any policy with what is shared
8 s (medians, 2 idle cores).
"""  # fmt: skip

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from actors.schedulers.registry import built_in_schedulers

HERE = Path(__file__).resolve().parents[1]
SHARED = {"jobs": "sparrow", "coflows": "sebf", "dags": "drf"}
RUN = """
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
ALONE_S, SHARED_S = 10.0, 8.0


def cpu_s(root: Path, scheduler: str, family: str, cache: str) -> float:
    """Seconds of CPU of a process that runs a scheduler of a checkout."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [sys.executable, "-c", RUN, scheduler, family],
        cwd=root,
        env={**os.environ, "EMU_CACHE_DIR": cache, "PYTHONPATH": str(root)},
        check=True,
        capture_output=True,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def compiling_s(root: Path, scheduler: str, family: str, *before: str) -> float:
    """Seconds of CPU to compile a scheduler where `before` are compiled."""
    with tempfile.TemporaryDirectory() as cache:
        for other in before:
            cpu_s(root, other, family, cache)
        cold = cpu_s(root, scheduler, family, cache)
        return cold - cpu_s(root, scheduler, family, cache)


def main() -> int:
    """Print a line a policy; exit code 1 if a target is missed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    loops = {s.advance: s for s in reversed(built_in_schedulers())}  # one name for each loop
    parser.add_argument(
        "--schedulers", default=",".join(s.name for s in built_in_schedulers() if loops[s.advance] is s)
    )
    parser.add_argument("--beside", type=Path, help="another checkout")
    parser.add_argument("--repeats", type=int, default=1)
    options = parser.parse_args()
    roots = [HERE, *([options.beside.resolve()] if options.beside else [])]
    families, met = {s.name: s.family for s in built_in_schedulers()}, True
    print(f"{'policy':20s}{'alone':>10s}{'shared':>10s}   seconds of CPU; {' | '.join(map(str, roots))}")
    for name in options.schedulers.split(","):
        family = families[name]
        alone: dict[Path, list[float]] = {root: [] for root in roots}
        shared: dict[Path, list[float]] = {root: [] for root in roots}
        for _ in range(options.repeats):
            for root in roots:
                alone[root].append(compiling_s(root, name, family))
                if name != SHARED[family]:
                    shared[root].append(compiling_s(root, name, family, SHARED[family]))
        for root in roots:
            one = statistics.median(alone[root])
            other = statistics.median(shared[root]) if shared[root] else float("nan")
            print(f"{name:20s}{one:10.1f}{other:10.1f}   {'' if root == HERE else 'beside'}", flush=True)
            if root == HERE:
                met &= (name != "sparrow" or one <= ALONE_S) and not other > SHARED_S
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
