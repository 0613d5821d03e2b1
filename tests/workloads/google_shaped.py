"""Tables shaped like Google's cluster trace of 2011, in any size: for the benchmark and for tests.

`task_events` and `job_events` with all their columns, in shards by time as published. Tasks are evicted, fail and
run again; some are killed, some run before the trace begins or when it ends, some rows are said to be missing.
"""

from __future__ import annotations

import gzip
import io
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv

BEGIN_US, END_US = 600_000_000, 2_506_200_000_000  # 29 days
SUBMIT, SCHEDULE, EVICT, FAIL, FINISH, KILL = range(6)
_DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"


def write_google_shaped(
    folder: Path, *, task_rows: int, shards: int = 4, packed: bool = False, seed: int = 0
) -> None:
    """Write ``task_events`` of about `task_rows` rows, and ``job_events``, each in `shards` files."""
    rng = np.random.default_rng(seed)
    jobs = max(task_rows // 120, 1)  # the trace: 672,000 jobs, 25 million tasks, 145 million rows
    submit = np.sort(rng.integers(BEGIN_US, END_US, jobs))
    submit[: jobs // 200] = 0
    ids = 3_000_000 + np.cumsum(rng.integers(1, 9000, jobs))
    users = pa.array(["".join(rng.choice([*_DIGITS], 43)) + "=" for _ in range(max(jobs // 700, 3))])
    user = rng.integers(0, len(users), jobs)
    priority = rng.choice([0, 1, 2, 4, 6, 8, 9, 10], jobs)

    # About 5.7 rows a task: 1.9 attempts of 3 rows. Attempts of a task follow each other.
    attempts = rng.geometric(0.53, max(task_rows * 10 // 57, 1))
    job = np.sort(np.minimum((rng.pareto(1.2, len(attempts)) * jobs / 20).astype(np.int64), jobs - 1))
    first_of_job = np.append(True, job[1:] != job[:-1])
    index = np.arange(len(job)) - np.maximum.accumulate(np.where(first_of_job, np.arange(len(job)), 0))
    task = np.repeat(np.arange(len(job)), attempts)
    first = np.cumsum(attempts) - attempts
    last = np.zeros(len(task), bool)
    last[first + attempts - 1] = True
    waits, runs = (rng.exponential(1e6 * mean, len(task)).astype(np.int64) for mean in (20, 700))
    spans = np.cumsum(waits + runs)
    begin = submit[job[task]] + spans - waits - runs - np.repeat((spans - waits - runs)[first], attempts)
    end_kind = np.where(
        last,
        rng.choice([FINISH, KILL], len(task), p=[0.75, 0.25]),
        rng.choice([EVICT, FAIL], len(task)),
    )
    time = np.stack([begin, begin + waits, begin + waits + runs], 1).ravel()
    kind = np.stack([np.full_like(end_kind, SUBMIT), np.full_like(end_kind, SCHEDULE), end_kind], 1).ravel()
    rows = np.flatnonzero(time < END_US)
    rows = rows[np.argsort(time[rows], kind="stable")]
    of_task = np.repeat(task, 3)[rows]
    of_job = job[of_task]
    count = len(rows)
    texts = pa.array([f"{value / 1e4:g}" for value in rng.integers(1, 5000, 997)])
    sizes = [texts.take(pa.array(rng.integers(0, 997, count))) for _ in range(3)]
    # Now and then the record is not the event's own: see "missing info" in the trace's description.
    missing = pa.array(rng.integers(0, 3, count), mask=rng.random(count) > 0.001)
    machine = pa.array(rng.integers(1, 5_000_000_000, count), mask=kind[rows] == SUBMIT)
    _write(
        folder / "task_events",
        [
            pa.array(time[rows]), missing, pa.array(ids[of_job]), pa.array(index[of_task]), machine,
            pa.array(kind[rows]), users.take(pa.array(user[of_job])),
            pa.array(priority[of_job] % 4), pa.array(priority[of_job]), *sizes,
            pa.array(np.zeros(count, np.int64)),
        ],
        shards, packed,
    )  # fmt: skip
    names = pa.array([f"job-{i}" for i in range(jobs)])
    _write(
        folder / "job_events",
        [
            pa.array(submit), pa.nulls(jobs, pa.int64()), pa.array(ids), pa.array(np.zeros(jobs, np.int64)),
            users.take(pa.array(user)), pa.array(priority % 4), names, names,
        ],
        shards, packed,
    )  # fmt: skip


def _write(folder: Path, columns: list[pa.Array], shards: int, packed: bool) -> None:
    table = pa.table({str(i): column for i, column in enumerate(columns)})
    folder.mkdir(parents=True, exist_ok=True)
    options = pa.csv.WriteOptions(include_header=False, quoting_style="none")
    bounds = np.linspace(0, table.num_rows, shards + 1).astype(int)
    for shard, (begin, end) in enumerate(pairwise(bounds.tolist())):
        text = io.BytesIO()
        pa.csv.write_csv(table.slice(begin, end - begin), text, options)
        path = folder / f"part-{shard:05}-of-{shards:05}.csv"
        if packed:
            path.with_suffix(".csv.gz").write_bytes(gzip.compress(text.getbuffer(), 6))
        else:
            path.write_bytes(text.getbuffer())
