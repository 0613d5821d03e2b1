"""Start-up: what a whole process takes, from the shell's point of view.

How to run: `python -m benchmarks.startup [--repeats 3] [--workload PATH|yahoo]`
Targets for GOOG_subtrace at 15,000 nodes: 3 s in-process and 10 s through Ray with a warm cache of compiled code;
60 s for the first run on a machine, compilation included.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SHARED = Path(os.environ.get("EMU_SHARED", Path(__file__).resolve().parents[2] / "shared"))
TRACE = SHARED / "traces" / "GOOG_subtrace.tr"


def process_s(scheduler: str, workload: str, *options: str, cache: str | None = None) -> float:
    """Seconds that `emu run` takes, its own start and end included."""
    environment = {**os.environ, **({"EMU_CACHE_DIR": cache} if cache else {})}
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "emu", "run", "--scheduler", scheduler, "--workload", workload]
        command += ["--nodes", "15000", "--out", f"{folder}/run", "--json", *options]
        begin = time.perf_counter()
        done = subprocess.run(command, check=True, env=environment, capture_output=True)
        taken_s = time.perf_counter() - begin
        assert json.loads(done.stdout)["jobs"]["all"]["count"] > 0
        return taken_s


def main() -> int:
    """Print the medians."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--workload", default=str(TRACE) if TRACE.exists() else "yahoo")
    options = parser.parse_args()
    met = True
    print(f"{options.workload}, 15,000 nodes: seconds of the whole process, median of {options.repeats}")
    for scheduler in ("sparrow", "hawk", "eagle", "central-lwl", "dist-lwl"):
        with tempfile.TemporaryDirectory() as cache:
            first = process_s(scheduler, options.workload, cache=cache)
            inside, through_ray = (
                statistics.median(
                    process_s(scheduler, options.workload, *extra, cache=cache)
                    for _ in range(options.repeats)
                )
                for extra in (("--in-process",), ())
            )
        met &= first <= 60 and inside <= 3 and through_ray <= 10
        print(
            f"{scheduler:12s} in-process {inside:5.2f} (3)   through Ray {through_ray:5.2f} (10)"
            f"   first run {first:5.1f} (60)"
        )
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
