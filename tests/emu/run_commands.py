"""Commands that run a small workload, and the tables that they write."""

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

RUN = ("run", "--scheduler", "random", "--workload", "small", "--nodes", "20", "--in-process")
COMPARE = ("compare", "--schedulers", "random,central-fifo", *RUN[3:])
TABLES = ("jobs.parquet", "timeline.parquet")
SIZE = (
    "size", "--target", "p50 < 1h", "--scheduler", "random", "--workload", "small", "--in-process", "--low", "9",
)  # fmt: skip

MACHINES = """\
[[machines]]
type = "small"
share = "50%"
cores = 2
price_per_hour = 1.0
[[machines]]
type = "big"
share = "50%"
cores = 8
price_per_hour = 6.5
"""
"""A file of two types of machines."""


def same_bytes(one: Path, other: Path) -> bool:
    return all((one / n).read_bytes() == (other / n).read_bytes() for n in TABLES)


@contextmanager
def files_at_most(size_bytes: int) -> Iterator[None]:
    """A limit on the size of files: the system writes a part, and then refuses."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
