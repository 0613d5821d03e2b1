"""The events of a run in blocks of jobs, so that what reads them all needs no more memory for a longer run."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from emu.explaining.event_record import NONE, IntArray, Record
from workloads.arrow import to_numpy


def records_by_block(
    events: Iterator[pa.RecordBatch], block_of_job: IntArray, kinds: Sequence[str], fields: Sequence[str]
) -> Iterator[Record]:
    """Yield the events of each block of jobs, in order; they are kept in temporary files until then.

    Parameters
    ----------
    events : iterator of pyarrow.RecordBatch
        With the columns of ``events.parquet``.
    block_of_job : ndarray of int64, shape (num_jobs,)
        The block of each job, from 0.
    kinds, fields : sequence of str
        The kinds that are kept, and which of `records.FIELDS`, ``job`` among them.
    """
    row = np.dtype([("code", np.int64), *((name, np.int64) for name in fields)])
    with ExitStack() as stack:
        files = [stack.enter_context(tempfile.TemporaryFile()) for _ in range(int(block_of_job.max()) + 1)]
        for batch in events:
            rows = _rows_of(batch, kinds, fields, row)
            blocks = block_of_job[rows["job"]]
            for block in np.unique(blocks).tolist():
                rows[blocks == block].tofile(files[block])
        for file in files:
            file.seek(0)
            rows = np.fromfile(file, row)
            yield Record(
                rows["code"], list(kinds), {name: np.ascontiguousarray(rows[name]) for name in fields}
            )
            file.truncate(0)


def _rows_of(
    batch: pa.RecordBatch, kinds: Sequence[str], fields: Sequence[str], row: np.dtype[Any]
) -> npt.NDArray[Any]:
    """Return the events of a batch that are of some kinds and name a job, as rows."""
    names = batch["kind"].dictionary.to_pylist()
    code_of = np.array([kinds.index(name) if name in kinds else NONE for name in names])
    codes = code_of[to_numpy(batch["kind"].indices)]
    jobs = to_numpy(batch["job"].fill_null(NONE))
    kept = np.flatnonzero((codes != NONE) & (jobs != NONE))
    rows = np.empty(kept.size, row)
    rows["code"] = codes[kept]
    for name in fields:
        values = batch[name]
        rows[name] = to_numpy(values.fill_null(NONE) if values.null_count else values)[kept]
    return rows
