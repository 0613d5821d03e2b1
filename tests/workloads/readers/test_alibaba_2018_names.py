"""What names of stages say of the DAG, and when a stage begins that waits for others: rules 5 and 11."""

import pyarrow.parquet as pq
import pytest

from tests.workloads.alibaba_files import CUT, attempt, folder_of, stage, tables
from workloads.readers.report import Report


def test_what_follows_the_last_of_a_name_that_is_cut_off_is_no_dependency(tmp_path):
    rows = [stage("j_1", name) for name in ("M1", "M2_5", "M7", CUT)]
    got = tables(folder_of(tmp_path / "in", "".join(rows)), tmp_path / "out")
    assert got["stages"]["name"] == ["M1", "M2_5", CUT, "M7"]
    assert got["edges"] == {"job_id": [1] * 3, "parent": [0, 2, 3], "child": [2, 1, 2]}  # no cycle of 2 and 5
    ends = CUT[:-1]  # cut off behind the _: nothing follows it
    whole = f"{ends}2_3_1"  # in a table that has longer names, none is cut off
    for name, parents in ((f"{ends[:-1]}0_", [0, 3]), (whole, [0, 1, 3])):
        rows = [stage("j_1", n) for n in ("M1", "M2", "M7", name)]
        got = tables(folder_of(tmp_path / "in", "".join(rows)), tmp_path / f"out{len(name)}")
        assert [
            p for p, c in zip(got["edges"]["parent"], got["edges"]["child"], strict=True) if c == 2
        ] == parents


def test_a_suffix_is_no_dependency_and_the_stage_stays_in_the_dag(tmp_path):
    rows = "".join(stage("j_1", name) for name in ("M7", "M9_7", "J10_7_9_Stg4", "M4_Stg3", "M3_4_x1_2"))
    got = tables(folder_of(tmp_path / "in", rows), tmp_path / "out")
    assert got["stages"]["name"] == ["M4_Stg3", "M7", "M9_7", "J10_7_9_Stg4", "M3_4_x1_2"]
    assert got["edges"] == {"job_id": [1] * 3, "parent": [1, 1, 2], "child": [2, 3, 3]}


@pytest.mark.parametrize(
    ("options", "durations", "expected"),
    [
        (
            {},
            [10.0, 5.0, 0.0, 3.0],
            "since it was registered and the last stage that it depends on had ended;",
        ),
        ({"shortest_s": 1}, [10.0, 5.0, 1.0, 3.0], "shortest_s=1"),
        (
            {"starts": "registered"},
            [10.0, 15.0, 12.0, 3.0],
            "registered, with the wait for the stages that it",
        ),
    ],
)
def test_a_stage_begins_when_it_is_ready(tmp_path, options, durations, expected):
    """All were registered at 100 but the last: 2 waits for 1, 3 for 2 but ends before it, 4 began after 1."""
    rows = stage("j_1", "M1") + stage("j_1", "R2_1", end=115) + stage("j_1", "R3_2", end=112)
    source = folder_of(tmp_path / "in", rows + stage("j_1", "R4_1", start=111, end=114))
    got = tables(source, tmp_path / "out", **options)
    assert got["tasks"]["duration_s"] == durations
    metadata = pq.read_schema(tmp_path / "out" / "jobs.parquet").metadata[b"metadata"].decode()
    assert expected in metadata
    assert "3 stages that were registered before" not in metadata
    assert "2 stages that were registered before those that they depend on had ended" in metadata


def test_durations_of_instances_are_their_own(tmp_path):
    rows = stage("j_1", "M1") + stage("j_1", "R2_1", end=115) + stage("j_1", "R3_1", end=117)
    source = folder_of(
        tmp_path / "in", rows, attempt("j_1", "M1") + attempt("j_1", "R2_1", start=104, end=111)
    )
    report = Report()
    got = tables(source, tmp_path / "out", report=report)
    assert got["tasks"]["duration_s"] == [10.0, 7.0, 7.0]  # the last: of the stage, which has none
    assert (
        "repaired 1: stages that were registered before those that they depend on had ended: taken to begin then"
        in (report.lines())
    )
