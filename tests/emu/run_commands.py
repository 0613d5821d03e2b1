"""Commands that run a small workload, and the tables that they write."""

RUN = ("run", "--scheduler", "random", "--workload", "small", "--nodes", "20", "--in-process")
COMPARE = ("compare", "--schedulers", "random,central-fifo", *RUN[3:])
TABLES = ("jobs.parquet", "timeline.parquet")
SIZE = (
    "size", "--target", "p50 < 1h", "--scheduler", "random", "--workload", "small", "--in-process", "--low", "9",
)  # fmt: skip
