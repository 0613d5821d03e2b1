"""Copies, merged and split workloads of jobs; history, and transformations by name."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import workloads
from test_transform_selection import FEW, content, five, is_well_formed

from workloads.arrow import column
from workloads.errors import InputError
from workloads.jobs import JobWorkload, make_workload
from workloads.readers.parquet import read_parquet, write_parquet
from workloads.transform import (
    TRANSFORMATIONS,
    busy_slots,
    history,
    merge,
    redo,
    replicate,
    scale,
    split,
    time_slice,
    truncate,
)


def labelled(workload: JobWorkload) -> bool:
    tenants = set(workload.jobs["tenant"].to_pylist())
    return tenants != {None} and "none" not in tenants


@FEW
@given(workload=workloads(labelled=True), copies=st.integers(1, 3), seed=st.integers(0, 9))
def test_copies_multiply_the_work_and_leave_the_span(workload: JobWorkload, copies: int, seed: int) -> None:
    made = replicate(workload, copies, seed=seed)
    assert is_well_formed(made)
    assert made.jobs["job_id"].to_pylist() == list(range(copies * workload.num_jobs))
    durations = Counter(workload.tasks["duration_s"].to_pylist())
    assert Counter(made.tasks["duration_s"].to_pylist()) == Counter(
        {d: copies * n for d, n in durations.items()}
    )
    was, now = column(workload.jobs, "submit_s"), column(made.jobs, "submit_s")
    assert (was[0], was[-1]) == (now[0], now[-1])
    assert redo([workload], history(made)[-1]).fingerprint() == made.fingerprint()


def test_the_load_of_each_node_stays() -> None:
    assert busy_slots(replicate(five(), 3)) == pytest.approx(3 * busy_slots(five()))


def test_arrivals_of_copies_are_shifted_by_up_to_half_the_jitter() -> None:
    workload = make_workload("w", np.arange(0.0, 100.0, 10.0), np.ones(10, int), np.arange(10.0))
    made = replicate(workload, 20, jitter_s=4.0, seed=1)
    shift_s = column(made.jobs, "submit_s") - 10.0 * column(made.tasks, "duration_s")
    assert np.abs(shift_s).max() <= 2.0
    assert np.abs(shift_s).max() > 1.5
    assert (shift_s == 0).sum() == 10  # the first copy
    assert replicate(workload, 2, jitter_s=0.0).jobs["submit_s"].to_pylist() == [
        10.0 * (n // 2) for n in range(20)
    ]


@pytest.mark.parametrize(
    ("copies", "jitter_s", "message"),
    [
        (0, None, "field copies: 0 is not"),
        (2, -1.0, "is not a shift"),
        (2, 10.5, "to the 10 s that the arrivals"),
    ],
)
def test_copies_that_cannot_be_are_refused(copies: int, jitter_s: float | None, message: str) -> None:
    with pytest.raises(InputError, match=message):
        replicate(five(), copies, jitter_s)


@FEW
@given(workload=workloads(labelled=True).filter(labelled))
def test_what_is_split_can_be_merged(workload: JobWorkload) -> None:
    parts = split(workload)
    assert all(is_well_formed(part) for part in parts.values())
    assert all(
        set(part.jobs["tenant"].to_pylist()) == {None if tenant == "none" else tenant}
        for tenant, part in parts.items()
    )
    if len(parts) > 1:
        made = merge(list(parts.values()))
        assert is_well_formed(made)
        assert content(made, ids=False) == content(workload, ids=False)
        assert (made.short_cutoff_s, made.long_partition) == (
            workload.short_cutoff_s,
            workload.long_partition,
        )
    tenant, part = next(iter(parts.items()))
    assert redo([workload], history(part)[-1]).fingerprint() == part.fingerprint(), tenant


def test_split_by_hand() -> None:
    parts = split(five())
    assert list(parts) == ["a", "b", "none"]
    assert parts["b"].jobs["job_id"].to_pylist() == [8, 5]
    assert parts["b"].tasks["duration_s"].to_pylist() == [2.0, 3.0, 7.0, 8.0, 90.0]
    assert parts["b"].name == "five-b"
    assert history(parts["b"]) == ("split tenant=b # 2 of 5 jobs",)


def test_tenants_become_names_of_plain_letters() -> None:
    tenants = ["../x y", "z", "é", "ü"]
    named = make_workload("w", [0.0] * 4, [1] * 4, [1.0] * 4, tenant=tenants)
    assert list(split(named)) == tenants
    assert [part.name for part in split(named).values()] == ["w-.._x_y", "w-z", "w-_#1", "w-_#2"]


def test_workloads_without_tenants_are_not_split() -> None:
    with pytest.raises(InputError, match="no job of w has a tenant"):
        split(make_workload("w", [0.0], [1], [1.0]))
    with pytest.raises(InputError, match="a tenant called 'none' and jobs without one"):
        split(make_workload("w", [0.0, 1.0], [1, 1], [1.0, 1.0], tenant=["none", None]))


def test_merged_by_hand() -> None:
    other = make_workload("other", [5.0, 7.0], [1, 1], [4.0, 3.0], short_cutoff_s=10.0, notes=("look",))
    made = merge([five(), other], align=True)
    assert made.name == "five+other"
    assert made.jobs["submit_s"].to_pylist() == [0.0, 0.0, 1.0, 2.0, 2.0, 3.0, 10.0]
    assert made.jobs["job_id"].to_pylist() == list(range(7))
    assert made.tasks["duration_s"].to_pylist() == [1.0, 4.0, 2.0, 3.0, 50.0, 3.0, 5.0, 7.0, 8.0, 90.0]
    assert made.jobs["tenant"].to_pylist() == ["a", None, "b", "a", None, None, "b"]
    assert (made.short_cutoff_s, made.long_partition) == (10.0, None)
    assert made.notes == (
        "five: read so",
        "other: look",
        "merged workloads differ in the long partition (five: 0.9, other: None), so that the result has none",
    )
    assert made.metadata == {
        "merged.1.name": "five",
        "merged.1.origin": "by hand",
        "merged.2.name": "other",
        "transformed.1": "merge label=no align=yes # 5 of five, 2 of other",
    }
    assert redo([five(), other], history(made)[0]).fingerprint() == made.fingerprint()


def test_merged_jobs_have_their_source_as_tenant() -> None:
    made = merge([five(), five()], label=True, name="twice")
    assert made.name == "twice"
    assert made.jobs["tenant"].to_pylist()[:2] == ["five#1/a", "five#2/a"]
    assert "five#1" in split(made)


def test_one_workload_is_not_merged() -> None:
    with pytest.raises(InputError, match="two workloads or more"):
        merge([five()])


@FEW
@given(workload=workloads(labelled=True), load=st.floats(0.01, 2), nodes=st.integers(1, 10**6))
def test_scale_meets_the_load(workload: JobWorkload, load: float, nodes: int) -> None:
    try:
        made = scale(workload, load, nodes, slots=2)
    except InputError as error:
        assert any(w in str(error) for w in ("at once", "any time", "would arrive after"))  # noqa: PT017
        return
    submit_s = column(made.jobs, "submit_s")
    # Differences of times carry the rounding of the times.
    rounding = float(np.spacing(submit_s[-1])) * 4 / max(float(submit_s[-1] - submit_s[0]), 1e-300)
    assert busy_slots(made) / (2 * nodes) == pytest.approx(load, rel=1e-9 + rounding)
    assert made.tasks.equals(workload.tasks)
    assert redo([workload], history(made)[-1]).fingerprint() == made.fingerprint()


def test_a_load_at_which_all_would_arrive_at_once_is_refused() -> None:
    tiny = make_workload("tiny", [0.0, 1.0], [1, 1], [0.0, 5e-324])
    with pytest.raises(InputError, match="at a load of 1 on 2 slots all jobs of tiny would arrive at once"):
        scale(tiny, 1.0, 1, slots=2)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"load": 0.5}, "field nodes: give the number of nodes"),
        ({"load": 0.0, "nodes": 5}, "field load: 0.0 is not a number above 0"),
        ({"load": 0.5, "nodes": 0}, "field nodes: 0 is not"),
        ({"load": 0.5, "nodes": 5, "port_speed_bps": 1e9}, "which use no ports"),
        ({"load": 1e-12, "nodes": 1}, "the last job of five would arrive after"),
    ],
)
def test_a_load_that_cannot_be_is_refused(options: dict[str, float], message: str) -> None:
    with pytest.raises(InputError, match=message):
        scale(five(), **options)  # type: ignore[arg-type]


def test_history_is_in_order_and_can_be_done_again() -> None:
    made = five()
    for step in range(5):
        made = truncate(time_slice(made, 0.0, 700.0 - step, rebase=False), 80.0 - step)
    made = scale(made, 0.8, 3)
    assert list(made.metadata)[1:] == [f"transformed.{n}" for n in range(1, 12)]
    again = five()
    for line in history(made):
        again = redo([again], line)
    assert again.fingerprint() == made.fingerprint()
    assert history(again) == history(made)


def test_history_travels_with_the_files(tmp_path: Path) -> None:
    made = truncate(time_slice(five(), 601.0), 8.0)
    write_parquet(made, tmp_path / "made")
    read = read_parquet(tmp_path / "made")
    assert history(read) == history(made)
    again = five()
    for line in history(read):
        again = redo([again], line)
    assert again.fingerprint() == read.fingerprint()


def test_options_are_read_from_text() -> None:
    scaling, slicing = TRANSFORMATIONS["scale"], TRANSFORMATIONS["slice"]
    assert scaling.parse({"load": "90%", "nodes": "15,000", "port_speed_bps": "1 Gbps"}) == {
        "load": 0.9,
        "nodes": 15000,
        "port_speed_bps": 1e9,
    }
    assert slicing.parse({"start_s": "1h", "rebase": "no"}) == {"start_s": 3600.0, "rebase": False}
    assert [option.flag for option in scaling.options] == ["--load", "--nodes", "--slots", "--port-speed"]
    assert [option.flag for option in slicing.options] == ["--start", "--end", "--rebase"]


@pytest.mark.parametrize(
    ("name", "given", "message"),
    [
        ("scale", {"nodes": "5"}, "--load: required"),
        ("scale", {"laod": "5"}, "unknown option 'laod'; did you mean 'load'"),
        ("scale", {"load": "much"}, "--load: 'much' is not a load such as"),
        ("scale", {"load": "1", "nodes": "1.5"}, "--nodes: '1.5' is not a whole number"),
        ("slice", {"start_s": "noon"}, "--start: 'noon' is not a duration"),
        ("slice", {"rebase": "maybe"}, "--rebase: 'maybe' is neither true nor false"),
        ("sample", {"share": "20"}, "--share: '20' is more than the whole"),
    ],
)
def test_options_that_are_wrong_are_named(name: str, given: dict[str, str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        TRANSFORMATIONS[name].parse(given)


def test_lines_that_name_no_transformation_are_refused() -> None:
    with pytest.raises(InputError, match="unknown transformation 'slcie'; did you mean 'slice'"):
        redo([five()], "slcie start_s=1")
    with pytest.raises(InputError, match="slice takes one workload, not 2"):
        redo([five(), five()], "slice start_s=1")
    with pytest.raises(InputError, match="unknown tenant 'c'"):
        redo([five()], "split tenant=c")


def test_every_option_is_a_parameter_of_its_function() -> None:
    import inspect

    for name, step in TRANSFORMATIONS.items():
        parameters = list(inspect.signature(step.function).parameters)
        assert [option.name for option in step.options] == parameters[1:], name
