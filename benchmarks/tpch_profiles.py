"""TPC-H profiles of Decima's simulator, made into the tables that the format ``tpch`` reads.

How to run, in a clone of the repository: `python -m benchmarks.tpch_profiles spark_env/tpch tpch` (3 s), with the
folder of github.com/hongzimao/decima-sim, or the one of `emu workload fetch decima-tpch`, and a new one.

The folder has one for each size of the data (``2g``, ``10g``, ...), and these for each query q ``adj_mat_q.npy`` (edges
from parent to child), ``task_duration_q.npy`` (by stage, wave and number of executors a list of ms) and perhaps
``stage_id_to_node_idx_map_q.npy`` (Spark's numbers of stages). All but the first hold pickles, which are programs. The
unpickler here knows three of NumPy's names and puts a class of this file in place of each, so that nothing that a file
names is imported or called. It does not limit memory: convert only files from a source that you trust.
"""

import io
import pickle
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.measuring import parser_of
from workloads.errors import InputError
from workloads.readers.tpch import DURATIONS, EDGES, MATRIX, TABLES, WAVES

_MOST_BYTES = 64 << 20


class _Held:
    """In place of an array, of its class and of its type: keeps what it holds."""

    items: Any = None

    def __init__(self, *_: Any) -> None:
        pass

    def __setstate__(self, state: Any) -> None:
        self.items = state[4] if len(state) == 5 else None


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        known = ("numpy.multiarray._reconstruct", "numpy.ndarray", "numpy.dtype")
        place = f"{re.sub('^numpy[.]_?core[.]', 'numpy.', module)}.{name}"
        if place not in known:
            raise pickle.UnpicklingError(f"it names {module}.{name}, which is not admitted")
        return _Held


def unpickled(path: Path) -> Any:
    """Return the object in a ``.npy`` file of one.

    Raises
    ------
    InputError
        It is not such a file, or its pickle names something else than an array.
    """
    try:
        with open(path, "rb") as file:
            np.lib.format.read_magic(file)
            np.lib.format.read_array_header_1_0(file)
            array = _Unpickler(io.BytesIO(file.read(_MOST_BYTES)), encoding="latin-1").load()
        (value,) = array.items
    # A damaged pickle raises whatever its instructions lead to.
    except Exception as error:
        raise InputError(f"is not a dictionary in an array of NumPy ({error})", file=path) from None
    return value


def edges_of(path: Path) -> tuple[int, list[tuple[int, int]]]:
    """Return the number of stages, and the edges of a matrix."""
    try:
        matrix = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise InputError(f"is not a matrix of NumPy ({error})", file=path) from None
    if matrix.ndim != 2 or len({*matrix.shape}) > 1 or not np.isin(matrix, (0, 1)).all():
        raise InputError("is not a square matrix of 0 and 1", file=path)
    return len(matrix), [(int(parent), int(child)) for parent, child in np.argwhere(matrix == 1)]


def durations_of(
    path: Path, stages: int, spark: dict[int, int]
) -> Iterator[tuple[int, int, int, str, float]]:
    """Yield stage, Spark's number of it, executors, wave and ms of each task that ran."""
    profile = unpickled(path)
    try:
        for stage in range(stages):
            for wave in WAVES:
                for executors, took in sorted(profile[stage][wave].items()):
                    yield from ((stage, spark[stage], int(executors), wave, float(ms)) for ms in took)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        wrong = f"is not a dictionary of stages, waves and executors ({error!r})"
        raise InputError(wrong, file=path) from None


def stages_of_spark(path: Path, stages: int) -> dict[int, int]:
    """Return the number that Spark gives each stage."""
    try:
        found = {int(stage): int(number) for number, stage in unpickled(path).items()}
    except (AttributeError, TypeError, ValueError) as error:
        raise InputError(f"is not a dictionary of numbers of stages ({error!r})", file=path) from None
    if sorted(found) != list(range(stages)):
        raise InputError(f"is of the stages {sorted(found)}; want 0 to {stages - 1}", file=path)
    return found


def tables_of(folder: Path) -> tuple[pa.Table, pa.Table]:
    """Return the durations and the edges of all queries of a folder of sizes, or of one size."""
    durations, edges = [], []
    sizes = [folder] if any(folder.glob("adj_mat_*.npy")) else sorted(folder.iterdir())
    for size in filter(Path.is_dir, sizes):
        numbers = sorted(int(found[1]) for file in size.iterdir() if (found := MATRIX.fullmatch(file.name)))
        for query in numbers:
            begin = (size.resolve().name, query)
            stages, between = edges_of(size / f"adj_mat_{query}.npy")
            names = size / f"stage_id_to_node_idx_map_{query}.npy"
            spark = dict(zip(range(stages), range(stages), strict=True))
            if names.exists():
                spark = stages_of_spark(names, stages)
            edges += [(*begin, *edge) for edge in between]
            rows = durations_of(size / f"task_duration_{query}.npy", stages, spark)
            durations += [(*begin, *row) for row in rows]
    if not durations:
        raise InputError("holds no adj_mat_1.npy, nor folders such as 2g that do", file=folder)
    return tuple(
        pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in rows], schema)
        for rows, schema in ((durations, DURATIONS), (edges, EDGES))
    )


def main() -> int:
    """Convert a folder."""
    parser = parser_of(__doc__)
    parser.add_argument("folder", type=Path, help="Decima's spark_env/tpch")
    parser.add_argument("to", type=Path, help="the folder to write")
    given = parser.parse_args()
    try:
        tables = tables_of(given.folder)
    except (InputError, OSError) as error:
        sys.exit(f"error: {error}")
    given.to.mkdir(parents=True, exist_ok=True)
    for name, table in zip(TABLES, tables, strict=True):
        pq.write_table(table, given.to / name, compression="zstd", write_page_checksum=True)
        print(f"{given.to / name}: {table.num_rows:,} rows")
    return 0


if __name__ == "__main__":
    sys.exit(main())
