"""A table of recorded costs is an input like any other: checked, and its sha256 is in the manifest."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import emu
from workloads.errors import InputError
from workloads.jobs import JobWorkload, make_workload

GOOD: dict[str, list[Any]] = {"scheduler": [0, 1, 0], "cost_ns": [1_000_000, 0, 2_000_000]}


@pytest.fixture(scope="module")
def workload() -> JobWorkload:
    return make_workload("few", [0.0, 1.0], [2, 2], [1.0, 2.0, 3.0, 4.0])


def write(path: Path, columns: dict[str, Any]) -> Path:
    pq.write_table(pa.table(columns), path)
    return path


def run(workload: JobWorkload, path: Path, **more: Any) -> Any:
    return emu.run("sparrow", workload, 4, cost_model="recorded", cost_file=path, in_process=True, **more)


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "negative": ({"cost_ns": [5, -1, 5]}, "line 2: field cost_ns: is -1; want a whole number from 0 to"),
    "null": ({"cost_ns": [5, 6, None]}, "line 3: field cost_ns: is null; want"),
    "too long": ({"cost_ns": [2**62, 0, 0]}, f"line 1: field cost_ns: is {2**62}; want"),
    "too long together": (
        {"cost_ns": [2**59, 0, 2**60 - 5]},
        "field cost_ns: the costs of scheduler 0 add up to",
    ),
    "beyond int64": (
        {"cost_ns": pa.array([2**63 + 1, 0, 0], pa.uint64())},
        "field cost_ns: is of type uint64; want int64",
    ),
    "floats": ({"cost_ns": [0.5, 1.0, float("nan")]}, "field cost_ns: is of type double; want int64"),
    "texts": ({"cost_ns": ["1", "2", "3"]}, "field cost_ns: is of type string; want int64"),
    "times": ({"cost_ns": pa.array([1, 2, 3], pa.timestamp("ns"))}, "is of type timestamp"),
    "null scheduler": ({"scheduler": [0, None, 0]}, "line 2: field scheduler: is null; want"),
    "negative scheduler": ({"scheduler": [0, 0, -3]}, "line 3: field scheduler: is -3; want"),
    "no such scheduler": ({"scheduler": [0, 70, 0]}, "there is no scheduler 70; this run has 0 to"),
    "empty": (
        {"scheduler": pa.array([], pa.int64()), "cost_ns": pa.array([], pa.int64())},
        "has no rows; want the cost of each message",
    ),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_cannot_be_a_cost_is_refused(what: str, workload: JobWorkload, tmp_path: Path) -> None:
    changed, wrong = WRONG[what]
    path = write(tmp_path / "costs.parquet", GOOD | changed)
    with pytest.raises(InputError) as caught:
        run(workload, path)
    assert wrong in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("given", "wrong"),
    [
        ({}, "cost.file: goes with"),
        ({"cost_file": "no-such.parquet"}, "no-such.parquet: is not a table of recorded"),
    ],
)
def test_a_table_that_is_not_there(workload: JobWorkload, given: dict[str, str], wrong: str) -> None:
    with pytest.raises(InputError, match=wrong):
        emu.run("sparrow", workload, 4, cost_model="recorded", in_process=True, **given)


def test_a_column_that_is_not_there(workload: JobWorkload, tmp_path: Path) -> None:
    path = write(tmp_path / "costs.parquet", {"scheduler": [0], "cost": [1]})
    with pytest.raises(InputError, match="field cost_ns: is not there"):
        run(workload, path)


def test_a_small_file_that_would_take_the_memory_is_refused(workload: JobWorkload, tmp_path: Path) -> None:
    """Wide texts in a dictionary, which reading would spell out to 20 GB, and numbers that repeat."""
    rows = pa.array(["x" * 20_000]).dictionary_encode().take(pa.array([0] * 1_000_000))
    path = write(tmp_path / "texts.parquet", {"scheduler": rows, "cost_ns": pa.array([0] * 1_000_000)})
    with pytest.raises(InputError, match="field scheduler: is of type string; want int64"):
        run(workload, path)
    zeros = pa.array([0]).take(pa.array([0] * 20_000_000))
    path = write(tmp_path / "zeros.parquet", {"scheduler": zeros, "cost_ns": zeros})
    assert path.stat().st_size < 1 << 20
    with pytest.raises(InputError, match=r"would take 0\.3 GiB of memory; no run writes such a file"):
        run(workload, path)


def test_a_footer_that_states_few_rows_does_not_hide_them(workload: JobWorkload, tmp_path: Path) -> None:
    """Row groups have their own numbers of rows, which are the ones that are read."""
    rows = 20_000_000
    zeros = pa.array([0]).take(pa.array([0] * rows))
    path = write(tmp_path / "costs.parquet", {"scheduler": zeros, "cost_ns": zeros})
    data, stated = path.read_bytes(), varint(rows)
    assert data.count(stated) == 1
    path.write_bytes(data.replace(stated, varint(4, len(stated))))
    assert pq.read_metadata(path).num_rows == 4
    with pytest.raises(InputError, match=r"would take 0\.3 GiB of memory; no run writes such a file"):
        run(workload, path)


def varint(value: int, size: int = 0) -> bytes:
    """Return a whole number as Parquet's footers have it, in `size` bytes at least."""
    value, found = value << 1, bytearray()
    while value > 127 or len(found) < size - 1:
        found.append(value & 127 | 128)
        value >>= 7
    return bytes([*found, value])


def test_a_pipe_is_not_waited_for(workload: JobWorkload, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "costs.parquet")
    with pytest.raises(InputError, match="is not a plain file"):
        run(workload, tmp_path / "costs.parquet")


def test_the_file_is_among_the_inputs(workload: JobWorkload, tmp_path: Path) -> None:
    path = write(tmp_path / "costs.parquet", GOOD)
    run(workload, path, out=tmp_path / "r")
    inputs = json.loads((tmp_path / "r" / "manifest.json").read_text())["inputs"]
    (found,) = (one for one in inputs if one["what"] == "costs file")
    assert found["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
    assert found["name"] == str(path)
