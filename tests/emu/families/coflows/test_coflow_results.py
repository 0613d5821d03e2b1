"""Tables and summaries of coflows: figures computed by hand from outcomes made by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from coflow_cases import SWITCH, four_coflows, outcome_of, result_of
from hypothesis import given
from hypothesis import strategies as st

from actors.schedulers.coflows.learned_and_admitted import Admitted
from actors.setting import Switch
from emu.columns import from_flags
from emu.families.coflows.metrics import BINS, describe_coflows, in_group, job_times, shuffle_shares
from emu.families.coflows.plan import ports_of
from emu.families.coflows.results import (
    TABLES,
    coflows_table,
    coordinator_figures,
    flows_table,
    program_figures,
    timeline_table,
)
from emu.results.metrics import summarise_replicas
from emu.results.paired_comparison import quotients
from emu.results.result import read_result
from tests.workloads.family_examples import coflows_of
from workloads.arrow import optional_column

CCT = [5.0, 2.5, 400.0, None]


@pytest.fixture
def coflows() -> pa.Table:
    outcome = outcome_of(four_coflows(), CCT, [1.0, None, 100.0, None], [np.nan, 3e6, np.nan, np.nan])
    return coflows_table(four_coflows(), outcome, SWITCH)


def test_the_table_of_coflows_by_hand(coflows: pa.Table) -> None:
    rows = coflows.to_pydict()
    assert coflows.column_names == [c.name for c in TABLES["coflows"].columns]
    assert rows["cct_s"] == CCT
    assert rows["finish_s"] == [5.0, 12.5, 420.0, None]
    assert rows["start_s"] == [1.0, 11.0, 21.0, None]
    assert rows["ideal_s"] == [4.0, 1.0, 200.0, 200.0]
    assert rows["slowdown"] == [1.25, 2.5, 2.0, None]
    assert rows["met_deadline"] == [True, False, None, None]  # due at 5 s, ended at 5 s: met
    assert rows["admitted"] == [True] * 4
    assert rows["learned_s"] == [1.0, None, 100.0, None]
    assert rows["learned_bytes"] == [1e6, None, 1e6, None]
    assert rows["estimated_bytes"] == [None, 3e6, None, None]
    assert (rows["width"], rows["senders"], rows["receivers"]) == ([3, 8, 1, 8], [2, 2, 1, 2], [2, 4, 1, 4])


def test_a_scheduler_that_learns_nothing_leaves_these_columns_null() -> None:
    table = coflows_table(four_coflows(), outcome_of(four_coflows(), CCT), SWITCH)
    for name in ("learned_s", "learned_bytes", "estimated_bytes"):
        assert table[name].null_count == 4
    assert not {"learning", "estimates"} & set(describe_coflows(table))


ADMITTED = Admitted(
    np.array([True, True, False, True]),
    np.array([0, 11, -1, 30]) * 10**9,
    np.array([-1, 10, 20, -1]) * 10**9,
    np.array([3.0, 1.0, 0.25]),
    np.zeros(4),
)


def test_what_a_scheduler_admitted_by_hand() -> None:
    table = coflows_table(four_coflows(), outcome_of(four_coflows(), CCT, admitted=ADMITTED), SWITCH)
    rows = table.to_pydict()
    assert rows["admitted"] == [True, True, False, True]
    assert rows["admitted_s"] == [0.0, 11.0, None, 30.0]
    assert rows["rejected_s"] == [None, 10.0, 20.0, None]
    assert table["learned_s"].null_count == 4
    summary = describe_coflows(table)
    # Of two that have deadlines and were admitted one is late; the other took 5 s, and 4 s alone.
    assert summary["prediction_error"] == 0.5
    assert summary["normalised_cct"] == {"mean": 1.25, "p50": 1.25, "p90": 1.25}


def test_programs_that_were_solved_are_in_the_summary() -> None:
    outcome = outcome_of(four_coflows(), CCT, admitted=ADMITTED)
    assert program_figures(outcome) == {"programs": {"solved": 3, "limited": 1, "worst_gap": 0.25}}
    none = outcome_of(four_coflows(), CCT, admitted=ADMITTED._replace(solved=np.zeros(3)))
    assert program_figures(none) == program_figures(outcome_of(four_coflows(), CCT)) == {}


def test_without_admission_all_are_admitted_and_nothing_was_predicted() -> None:
    table = coflows_table(four_coflows(), outcome_of(four_coflows(), CCT), SWITCH)
    assert table["admitted"].to_pylist() == [True] * 4
    assert table["admitted_s"].null_count == table["rejected_s"].null_count == 4
    summary = describe_coflows(table)
    assert "prediction_error" not in summary
    assert summary["normalised_cct"]["mean"] == 1.25


def test_a_run_in_which_no_coflow_finishes() -> None:
    admitted = Admitted(np.zeros(4, bool), np.full(4, -1), np.zeros(4, np.int64), np.zeros(3), np.zeros(4))
    table = coflows_table(four_coflows(), outcome_of(four_coflows(), [None] * 4, admitted=admitted), SWITCH)
    summary = describe_coflows(table)
    assert (summary["count"], summary["unfinished"], summary["acceptance_rate"]) == (0, 4, 0.0)
    assert not {"prediction_error", "normalised_cct", "makespan_s"} & set(summary)


def test_flows_and_timeline() -> None:
    outcome = outcome_of(four_coflows(), CCT)
    assert outcome.tasks is not None
    flows = flows_table(four_coflows(), outcome.tasks, SWITCH).to_pydict()
    assert flows["coflow_id"][:4] == [0, 0, 0, 1]
    assert flows["flow"][:4] == [0, 1, 2, 0]
    assert flows["finish_s"][2:4] == [5.0, 12.5]
    assert flows["start_s"][-1] is None
    timeline = timeline_table(outcome.timeline)
    assert timeline.column_names == [c.name for c in TABLES["timeline"].columns]
    assert timeline["running_flows"].to_pylist() == [0, 1, 2]


def test_flows_from_a_port_to_itself_may_be_free() -> None:
    shuffle = coflows_of([(0.0, None, {(0, 0): 5e6, (0, 1): 1e6}), (1.0, None, {(1, 1): 1e6})], ports=2)
    assert ports_of(shuffle, Switch(1e6)).isolated_s.tolist() == [6.0, 1.0]
    free = ports_of(shuffle, Switch(1e6, local_is_free=True))
    assert free.isolated_s.tolist() == [1.0, 0.0]
    assert free.busiest == ("ingress", 0, 1.0)
    table = coflows_table(shuffle, outcome_of(shuffle, [2.0, 0.0]), Switch(1e6, local_is_free=True))
    assert table["slowdown"].to_pylist() == [2.0, None]


def test_ports_have_their_own_speed_where_the_workload_says_it() -> None:
    shuffle = coflows_of([(0.0, None, {(0, 1): 6e6})], ports=2, port_bytes_per_s=3e6)
    assert ports_of(shuffle, Switch(1e6)).isolated_s.tolist() == [2.0]
    assert ports_of(shuffle, Switch(1e6)).bytes_per_s == 6e6


def test_the_summary_by_hand(coflows: pa.Table) -> None:
    summary = describe_coflows(coflows)
    assert (summary["count"], summary["mean"], summary["p50"]) == (3, 407.5 / 3, 5.0)
    assert (summary["makespan_s"], summary["unfinished"]) == (420.0, 1)
    assert (summary["acceptance_rate"], summary["weighted_acceptance_rate"]) == (0.5, 0.5)
    assert {name: part["count"] for name, part in summary["bins"].items()} == {
        "bin-1": 1,
        "bin-2": 1,
        "bin-3": 1,
        "bin-4": 0,  # its only coflow did not finish
    }
    learning = summary["learning"]
    assert (learning["count"], learning["late"]) == (2, 0.5)  # after 20 % and after 25 % of their time
    assert learning["cct_share"]["mean"] == pytest.approx(0.225)
    assert learning["bytes_share"]["mean"] == pytest.approx((1 / 5 + 1 / 200) / 2)
    assert summary["estimates"]["mean"] == pytest.approx(0.5)  # 3 MB for 2 MB


def test_weights_count_in_the_acceptance_rate() -> None:
    table = coflows_table(four_coflows(), outcome_of(four_coflows(), CCT), SWITCH)
    at = table.schema.get_field_index("weight")
    heavy = table.set_column(at, "weight", pa.array([3.0, 1.0, 7.0, 7.0]))
    assert describe_coflows(heavy)["weighted_acceptance_rate"] == 0.75


def test_a_warm_up_leaves_coflows_out_of_all_but_the_makespan(coflows: pa.Table) -> None:
    summary = describe_coflows(coflows, warmup_s=15.0)
    assert (summary["count"], summary["mean"], summary["makespan_s"]) == (1, 400.0, 420.0)
    assert "acceptance_rate" not in summary
    assert set(summary["bins"]) == {"bin-3", "bin-4"}
    assert summary["learning"]["count"] == 1


def test_what_was_known_at_the_arrival_was_not_learned() -> None:
    outcome = outcome_of(four_coflows(), [5.0, 0.0, 5.0, 5.0], [0.0, 2.0, 1.0, None])  # nor what took no time
    assert describe_coflows(coflows_table(four_coflows(), outcome, SWITCH))["learning"]["count"] == 1


@given(
    st.lists(
        st.tuples(st.integers(1, 12), st.floats(1, 3e8, exclude_max=True)),
        min_size=1,
        max_size=30,
    )
)
def test_every_coflow_is_in_one_bin(shapes: list[tuple[int, float]]) -> None:
    width, size = zip(*shapes, strict=True)
    table = pa.table({"width": width, "size_bytes": size})
    assert (sum(in_group(table, name).astype(int) for name in BINS) == 1).all()
    assert in_group(table, "all").all()


def test_bins_end_at_7_flows_and_100_mb() -> None:
    table = pa.table({"width": [7, 8, 7, 8], "size_bytes": [100e6, 100e6, 100e6 + 1, 100e6 + 1]})
    assert [in_group(table, name).tolist().index(True) for name in BINS] == [0, 1, 2, 3]


def test_coordinator_figures_are_shares_of_the_intervals() -> None:
    counters = {"intervals": 200, "intervals_missed": 30, "agents_heard": 1000}
    figures = coordinator_figures(counters)["coordinator"]
    assert (figures["missed"], figures["without_rates"], figures["agents_heard"]) == (0.15, 0.0, 5.0)
    assert "work_s" not in figures
    assert coordinator_figures(counters, busy_ns=10**9)["coordinator"]["work_s"] == 0.005
    assert coordinator_figures({"decisions": 3}) == {}


def test_speedups_leave_out_what_took_no_time_or_did_not_end() -> None:
    first, other = np.array([2.0, 0.0, np.nan, 4.0, 4.0]), np.array([3.0, 1.0, 1.0, np.nan, 2.0])
    assert quotients(other, first, np.ones(5, bool)).tolist() == [1.5, 0.5]
    assert quotients(other, first, np.array([False] * 4 + [True])).tolist() == [0.5]


def test_shuffle_shares_are_the_papers() -> None:
    share = shuffle_shares(40_000)
    counts, _ = np.histogram(share, [0.0, 0.25, 0.5, 0.75, 1.0])
    assert counts / len(share) == pytest.approx([0.61, 0.13, 0.14, 0.12], abs=0.01)
    assert share.min() > 0
    assert np.median(share[share < 0.25]) == pytest.approx(0.125, abs=0.01)  # evenly within a range
    assert shuffle_shares(5, seed=1).tolist() == shuffle_shares(5, seed=1).tolist()


def test_jobs_compute_as_long_under_every_scheduler() -> None:
    base, share = np.array([2.0, 2.0]), np.array([0.5, 0.1])
    assert job_times(base, base, share).tolist() == [4.0, 20.0]
    assert job_times(base, np.array([4.0, 4.0]), share).tolist() == [6.0, 22.0]


def test_a_run_directory_of_coflows_is_read_as_it_was_written(tmp_path: Path) -> None:
    result = result_of("philae", outcome_of(four_coflows(), CCT, [1.0, None, 1.0, None], intervals=7))
    out = result.save(tmp_path / "r")
    names = {
        "config.toml",
        "manifest.json",
        "summary.json",
        *(f"{name}.parquet" for name in TABLES if name != "costs"),
    }
    assert {p.name for p in out.iterdir()} == names
    again = read_result(out)
    assert (again.family, again.jobs, again.tasks) == ("coflows", None, None)
    assert again.coflows.equals(result.coflows)
    assert again.flows.equals(result.flows)
    assert again.timeline.schema.metadata == result.timeline.schema.metadata
    assert again.summary == result.summary


def test_several_seeds_have_means_and_intervals() -> None:
    runs = [
        result_of(
            "aalo", outcome_of(four_coflows(), cct, [1.0] * 4, intervals=10, intervals_missed=missed), s
        )
        for s, (cct, missed) in enumerate([([4.0] * 4, 1), ([8.0] * 4, 3)])
    ]
    summary = summarise_replicas([r.summary for r in runs])
    assert (summary["seeds"], summary["coflows"]["mean"]) == ([0, 1], 6.0)
    low, high = summary["confidence_95"]["coflows"]["mean"]
    assert (low + high) / 2 == 6.0
    assert summary["coflows"]["learning"]["cct_share"]["mean"] == pytest.approx((1 / 4 + 1 / 8) / 2)
    assert summary["coordinator"]["missed"] == pytest.approx(0.2)
    assert summary["coflows"]["bins"]["bin-4"]["mean"] == 6.0


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=40))
def test_flags_hold_what_they_are_given(pairs: list[tuple[bool, bool]]) -> None:
    values, valid = (np.array(column) for column in zip(*pairs, strict=True))
    assert from_flags(values, valid).to_pylist() == [bool(v) if ok else None for v, ok in pairs]
    assert from_flags(values).to_pylist() == values.tolist()


def test_numbers_of_no_finished_coflow_are_not_there() -> None:
    table = coflows_table(four_coflows(), outcome_of(four_coflows(), [None] * 4), SWITCH)
    summary = describe_coflows(table)
    assert (summary["count"], summary["unfinished"]) == (0, 4)
    assert "makespan_s" not in summary
    assert np.isnan(optional_column(table, "cct_s")).all()
