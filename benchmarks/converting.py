"""How fast a trace larger than memory is converted: task events shaped like Google's of 2011, plain and gzip.

How to run: `python -m benchmarks.converting [--rows 10000000]`
For debugging: `--rows 100000 --repeats 1`
Ends with 1 if the median of a form is below a million rows a second, or a conversion took more than 1.5 GiB. Each
runs in a process of its own, from the source's files to the last file of the workload.
"""

import argparse
import multiprocessing
import os
import resource
import statistics
import sys
import tempfile
import time
from pathlib import Path

from tests.workloads.google_shaped import write_google_shaped
from workloads.readers.google_2011 import convert_google_2011
from workloads.readers.report import Report

MIN_ROWS_PER_S, MAX_BYTES = 1e6, 1.5 * 2**30
SHARDS = 20


def convert(source: Path) -> tuple[int, float, int]:
    """Return rows, seconds and the process's peak memory in bytes."""
    report = Report()
    with tempfile.TemporaryDirectory() as folder:
        begin = time.perf_counter()
        convert_google_2011(source, Path(folder) / "workload", report=report)
        took_s = time.perf_counter() - begin
    rows = sum(
        int(part.split()[0].replace(",", ""))
        for part in report.as_metadata()["read"].split("; ")
        if " rows of " in part
    )
    return rows, took_s, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def measure(source: Path, repeats: int) -> bool:
    """Print the conversions of a source; whether they meet the targets."""
    speeds, peaks = [], []
    for _ in range(repeats):
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            rows, took_s, peak = pool.apply(convert, (source,))
        speeds.append(rows / took_s)
        peaks.append(peak)
        load = os.getloadavg()[0]
        print(
            f"{source.name:>6} {rows:>12,} rows {took_s:7.2f} s {rows / took_s:>12,.0f} rows/s "
            f"{peak / 2**30:5.2f} GiB   (load {load:.1f})"
        )
    median = statistics.median(speeds)
    met = median >= MIN_ROWS_PER_S and max(peaks) <= MAX_BYTES
    print(f"{source.name:>6} median {median:,.0f} rows/s: {'met' if met else 'missed'}")
    return met


def main() -> int:
    """Measure plain and gzip."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    print(f"{os.cpu_count()} cores")
    with tempfile.TemporaryDirectory() as folder:
        met = []
        for name in ("plain", "gzip"):
            source = Path(folder) / name
            process = multiprocessing.get_context("spawn").Process(
                target=write_google_shaped,
                args=(source,),
                kwargs={"task_rows": options.rows, "shards": SHARDS, "packed": name == "gzip"},
            )
            process.start()
            process.join()
            met.append(measure(source, options.repeats))
    return 0 if all(met) else 1


if __name__ == "__main__":
    sys.exit(main())
