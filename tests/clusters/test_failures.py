"""Schedules of failures in files: what they say, and what is refused with its place."""

from __future__ import annotations

import contextlib
import math
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from clusters.cluster import build_cluster
from clusters.failures import CENTRAL, NODE, SCHEDULER, load_outages
from workloads.errors import InputError

HEADER = "target,fail_s,repair_s\n"
GOOD = "node 17,120,3720\n3,0.5,\nscheduler 2, 600 ,900\n\nCentral,1000,1060\nnode 17,10,120\n"
CLUSTER = build_cluster("c", [1] * 20, rack=np.arange(20) // 8, machine_type=["fast"] * 5 + ["plain"] * 15)
ROWS = [(NODE, 3, 0.5, math.inf), (NODE, 17, 10, 120), (NODE, 17, 120, 3720), (SCHEDULER, 2, 600, 900)]


def load(path: Path) -> list[tuple[int, int, float, float]]:
    found = load_outages(path, CLUSTER, 1)
    columns = (found.kind, found.number, found.fail_s, found.repair_s)
    return list(zip(*(c.tolist() for c in columns), strict=True))


def outages(text: str) -> list[tuple[int, int, float, float]]:
    """What a file says, for calls/clusters_failures.txt; errors name no folder."""
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        Path("f.csv").write_text(text)
        return load(Path("f.csv"))


def test_a_csv_file_is_read_by_target_and_time(tmp_path: Path) -> None:
    path = tmp_path / "failures.csv"
    path.write_text(HEADER + GOOD)
    assert load(path) == [*ROWS, (CENTRAL, 0, 1000, 1060)]
    path.write_text(
        "\ufeffrepair_s,target,fail_s\n900,scheduler 2,600\n", encoding="utf-8"
    )  # any order of columns
    assert load(path) == [ROWS[3]]


def test_a_parquet_table_says_the_same(tmp_path: Path) -> None:
    path = tmp_path / "failures.parquet"
    columns = {
        "target": ["node 17", "3", "scheduler 2", "central", "node 17"],
        "fail_s": [120.0, 0.5, 600, 1000, 10],
        "repair_s": [3720.0, None, 900, 1060, 120],
    }
    pq.write_table(pa.table(columns), path)
    assert load(path) == [*ROWS, (CENTRAL, 0, 1000, 1060)]
    numbers = pa.table({"target": [3, 4], "fail_s": [1, 2], "repair_s": [2, 3]})
    pq.write_table(numbers, path)
    assert load(path) == [(NODE, 3, 1, 2), (NODE, 4, 2, 3)]
    pq.write_table(numbers.drop_columns(["repair_s"]), path)
    with pytest.raises(InputError, match=r"failures\.parquet: field repair_s: want one such column"):
        load(path)


def test_files_that_are_no_schedules(tmp_path: Path) -> None:
    (tmp_path / "failures.csv").write_text(HEADER + GOOD)
    with pytest.raises(InputError, match=r"failure\.csv: no such file.*failures\.csv"):
        load(tmp_path / "failure.csv")
    for name, content in (("a.csv", b"\xff\xfe\x00"), ("a.parquet", b"PAR1 not"), ("b.csv", b'"a')):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(InputError) as error:
            load(tmp_path / name)
        assert len(str(error.value).splitlines()) == 1
    with pytest.raises(InputError):
        load(tmp_path)  # a folder


def test_a_file_larger_than_memory_is_not_read_to_its_end(tmp_path: Path) -> None:
    """Sparse: it takes no room on the disk; a line of it would take 16 TiB of memory."""
    with open(tmp_path / "f.csv", "wb") as file:
        file.write(b"target,fail_s,repair_s\n1,0,9\n")
        file.truncate(4 << 40)
    with pytest.raises(
        InputError, match=r"f.csv: line 3: has 131,072 characters or more; is it a CSV file\?"
    ):
        load(tmp_path / "f.csv")


def nodes_of(path: Path, target: str, seed: int = 1) -> list[int]:
    path.write_text(f"{HEADER}{target},5,9\n")
    found = load_outages(path, CLUSTER, seed)
    assert set(found.kind.tolist()) == {NODE}
    return found.number.tolist()


@pytest.mark.parametrize(
    ("target", "count", "among"),
    [
        ("10%", 2, range(20)),
        ("12.5 % of nodes", 3, range(20)),  # 2.5 is rounded up
        ("1%", 1, range(20)),  # at least one
        ("100% of NODES", 20, range(20)),
        ("50% of rack 1", 4, range(8, 16)),
        ("40% of type fast", 2, range(5)),
        ("20% of type plain", 3, range(5, 20)),
    ],
)
def test_a_share_is_drawn_from_the_seed(target: str, count: int, among: range, tmp_path: Path) -> None:
    path = tmp_path / "f.csv"
    drawn = [nodes_of(path, target, seed) for seed in range(8)]
    assert all(len(set(nodes)) == count and set(nodes) <= set(among) for nodes in drawn)
    assert drawn[3] == nodes_of(path, target, 3)
    if count < len(among):
        assert len({tuple(nodes) for nodes in drawn}) > 2


def test_a_share_of_racks_takes_whole_racks(tmp_path: Path) -> None:
    racks = [set(range(8)), set(range(8, 16)), set(range(16, 20))]
    drawn = [set(nodes_of(tmp_path / "f.csv", "34% of racks", seed)) for seed in range(9)]
    assert all(nodes in racks for nodes in drawn)
    assert len({min(nodes) for nodes in drawn}) == 3


def test_each_row_has_draws_of_its_own_and_overlaps_are_one_outage(tmp_path: Path) -> None:
    path = tmp_path / "f.csv"
    path.write_text(f"{HEADER}50%,10,20\n50%,15,30\n3,18,\n")
    rows = load(path)
    of_node = {n: [row[2:] for row in rows if row[1] == n] for n in range(20)}
    assert (18, math.inf) in of_node[3] or any(start <= 15 and math.isinf(end) for start, end in of_node[3])
    others = {tuple(outages) for node, outages in of_node.items() if node != 3}
    assert others == {(), ((10, 20),), ((15, 30),), ((10, 30),)}
