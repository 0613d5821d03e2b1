"""Loading: how long a workload of about a million tasks takes from Parquet and from `.tr`.

How to run: `python -m benchmarks.loading [--repeats 5]`
Each load is a process of its own; its imports are not in the time. Targets: 0.5 s from Parquet, 3 s from `.tr`, the
arrays that the engine reads included.
"""

import argparse
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from workloads.catalogue import load_workload, save_workload

TARGETS_S = {"parquet": 0.5, "tr": 3.0, "tr.gz": 3.0}
PROCESS = """
import sys, time
import pyarrow.parquet
from workloads.catalogue import load_workload
begin = time.perf_counter()
load_workload(sys.argv[1]).arrays()
print(time.perf_counter() - begin)
"""


def main() -> int:
    """Print the medians."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    workload = load_workload("yahoo", options={"jobs": 25_000})
    met = True
    with tempfile.TemporaryDirectory() as folder:
        print(
            f"{workload.num_tasks:,} tasks, {workload.num_jobs:,} jobs: seconds, median of {options.repeats}"
        )
        for form, target_s in TARGETS_S.items():
            path = Path(folder) / ("yahoo" if form == "parquet" else f"yahoo.{form}")
            save_workload(workload, path)
            command = [sys.executable, "-c", PROCESS, str(path)]
            times_s = [
                float(subprocess.run(command, check=True, capture_output=True).stdout)
                for _ in range(options.repeats)
            ]
            median_s = statistics.median(times_s)
            met &= median_s <= target_s
            print(f"{form:8s} {median_s:5.2f} ({target_s})")
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
