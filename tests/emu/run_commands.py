"""Commands that run a small workload, and the tables that they write."""

from pathlib import Path

RUN = ("run", "--scheduler", "random", "--workload", "small", "--nodes", "20", "--in-process")
COMPARE = ("compare", "--schedulers", "random,central-fifo", *RUN[3:])
TABLES = ("jobs.parquet", "timeline.parquet")
SIZE = (
    "size", "--target", "p50 < 1h", "--scheduler", "random", "--workload", "small", "--in-process", "--low", "9",
)  # fmt: skip


def same_bytes(one: Path, other: Path) -> bool:
    return all((one / n).read_bytes() == (other / n).read_bytes() for n in TABLES)
