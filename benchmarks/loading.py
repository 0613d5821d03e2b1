"""Loading: how long workloads of a million and of ten million tasks take from Parquet and from `.tr`.

How to run: `python -m benchmarks.loading [--repeats 5]`
Each load is a process of its own; its imports are not in the time. Targets: a million tasks in 0.5 s from Parquet and
3 s from `.tr`, ten million in 3 s from Parquet, the arrays that the engine reads included.
"""

import argparse
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from workloads.catalogue import load_workload, save_workload

# Jobs of the generator `yahoo`, about 40 tasks each; format; seconds.
TARGETS = (
    (25_000, "parquet", 0.5),
    (25_000, "tr", 3.0),
    (25_000, "tr.gz", 3.0),
    (250_000, "parquet", 3.0),
)
PROCESS = """
import resource, sys, time
import pyarrow.parquet
from workloads.catalogue import load_workload
begin = time.perf_counter()
tasks = load_workload(sys.argv[1]).arrays().duration_ns.size
took = time.perf_counter() - begin
print(took, tasks, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""


def main() -> int:
    """Print the medians."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    met = True
    with tempfile.TemporaryDirectory() as folder:
        print(f"seconds, median of {options.repeats} (target); the most memory held")
        for jobs, form, target_s in TARGETS:
            path = Path(folder) / (f"yahoo-{jobs}" + ("" if form == "parquet" else f".{form}"))
            save_workload(load_workload("yahoo", seed=0, options={"jobs": jobs}), path)
            command = [sys.executable, "-c", PROCESS, str(path)]
            times_s = []
            for _ in range(options.repeats):
                output = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
                times_s.append(float(output[0]))
            median_s = statistics.median(times_s)
            met &= median_s <= target_s
            print(
                f"{int(output[1]):>11,} tasks  {form:8s} {median_s:5.2f} ({target_s})  {float(output[2]):,.0f} MiB"
            )
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
