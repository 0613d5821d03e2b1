"""Deadlines and weights laid over coflows, coflows drawn, other arrivals; and what other steps do to deadlines."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.workloads.family_examples import coflows_of, dags_of
from tests.workloads.generators.test_deadline_coflows import FAR, figures, kolmogorov
from tests.workloads.strategies import coflows
from workloads.arrow import column, optional_column
from workloads.coflows import CoflowWorkload
from workloads.errors import InputError
from workloads.generators.coflows import synthetic_coflows
from workloads.generators.deadline_coflows import deadline_coflows
from workloads.isolation import isolated_s, with_port_speeds
from workloads.jobs import make_workload
from workloads.readers.coflow_benchmark import read_coflow_benchmark
from workloads.readers.coflowlib import read_coflowlib
from workloads.readers.parquet import read_coflows, write_parquet
from workloads.transform import (
    TRANSFORMATIONS,
    deadlines,
    draw,
    history,
    keep_coflows,
    merge,
    redo,
    replicate,
    resample,
    retime,
    sample,
    scale,
    skew,
    time_slice,
    weights,
)

SHARED = Path(os.environ.get("EMU_SHARED") or Path(__file__).parents[3].parent / "shared")
GBPS = 1e9


def relative_s(workload: CoflowWorkload) -> np.ndarray:
    return optional_column(workload.coflows, "deadline_s") - column(workload.coflows, "arrival_s")


def four() -> CoflowWorkload:
    """Widths 1, 4, 2, 6 on four ports; the first and the last have a deadline."""
    return coflows_of(
        [
            (0.0, 2.0, {(3, 2): 5.0}),
            (1.0, None, {(s, r): 4.0 for r in range(2) for s in range(2)}),
            (2.0, None, {(0, 1): 1.0, (2, 1): 3.0}),
            (3.0, 9.0, {(s, r): 1.0 for r in range(2) for s in range(3)}),
        ],
        ports=4,
    )


def test_deadlines_are_factors_of_the_time_alone_and_replace_those_there_are():
    trace = synthetic_coflows(coflows=4000, ports=20, mean_width=10.0)
    made = deadlines(trace, least=1.2, most=3.2, port_speed_bps=GBPS)
    assert set(made.arrays().egress_bytes_per_s.tolist()) == {GBPS / 8}
    factor = relative_s(made) / isolated_s(made)
    assert 1.2 <= factor.min() < factor.max() <= 3.2 * (1 + 1e-6)
    assert kolmogorov((factor - 1.2) / 2) < FAR
    assert made.flows.equals(trace.flows)
    others = [name for name in trace.coflows.column_names if name != "deadline_s"]
    assert made.coflows.select(others).equals(trace.coflows.select(others))
    again = deadlines(made, share=0.5, seed=2)
    assert again.coflows["deadline_s"].null_count == pytest.approx(2000, abs=150)
    assert not np.isin(
        optional_column(again.coflows, "deadline_s"), optional_column(made.coflows, "deadline_s")
    ).any()
    assert deadlines(again, share=0.0).fingerprint() == with_port_speeds(trace, GBPS / 8).fingerprint()
    assert deadlines(four(), share=0.0).coflows["deadline_s"].null_count == 4  # which needs no speed


def test_deadlines_are_for_the_speed_of_the_ports():
    trace = synthetic_coflows(coflows=50, ports=20, mean_width=10.0)
    slow, fast = (deadlines(trace, port_speed_bps=speed) for speed in (GBPS / 2, GBPS))
    np.testing.assert_allclose(relative_s(slow), 2 * relative_s(fast), rtol=1e-6)
    with pytest.raises(
        InputError, match="field port_speed_bps: the ports of deadline-coflows state their speed"
    ):
        deadlines(deadline_coflows(), port_speed_bps=GBPS)


def test_weights_are_two_and_replace_those_there_are():
    made = weights(
        synthetic_coflows(coflows=4000, ports=20, mean_width=5.0), heavy_share=0.2, heavy_weight=7.5
    )
    weight = column(made.coflows, "weight")
    assert set(weight.tolist()) == {1.0, 7.5}
    assert np.mean(weight == 7.5) == pytest.approx(0.2, abs=0.03)
    assert set(weights(made, heavy_share=0.0).coflows["weight"].to_pylist()) == {1.0}


def test_steps_with_the_same_seed_draw_nothing_that_goes_together():
    made = weights(deadlines(deadline_coflows(coflows=4000, seed=1), share=0.5, seed=1), seed=1)
    has = ~np.isnan(relative_s(made))
    assert abs(np.corrcoef(has, column(made.coflows, "weight"))[0, 1]) < 0.06


def test_coflows_are_drawn_with_replacement_from_narrow_ones():
    made = draw(four(), 3000, max_width=2)
    assert made.coflows["coflow_id"].to_pylist() == [*range(3000)]
    assert set(made.coflows["arrival_s"].to_pylist()) == {0.0}
    width = column(made.coflows, "width")
    assert np.mean(width == 1) == pytest.approx(0.5, abs=0.05)
    assert set(width.tolist()) == {1, 2}
    relative = relative_s(made)
    assert set(relative[width == 1].tolist()) == {2.0}  # kept
    assert np.isnan(relative[width == 2]).all()
    assert set(draw(four(), 300).coflows["width"].to_pylist()) == {1, 4, 2, 6}


def test_ports_are_folded():
    made = draw(four(), 50, max_width=2, ports=2)
    assert made.num_ports == 2
    for coflow, flows in zip(made.coflows.to_pylist(), by_coflow(made), strict=True):
        assert flows in (
            [(1, 0, 5.0)],
            [(0, 1, 1.0), (0, 1, 3.0)],
        )  # 3 to 2 became 1 to 0, 2 to 1 became 0 to 1
        assert (coflow["senders"], coflow["receivers"]) == (1, 1)
        assert coflow["size_bytes"] == sum(size for *_, size in flows)
    assert draw(four(), 50, ports=4).num_ports == 4
    of_two_speeds = coflows_of([(0.0, None, {(0, 1): 1.0})], ports=4, port_bytes_per_s=1.0)
    ports = of_two_speeds.ports
    ports = ports.set_column(1, ports.schema.field(1), pa.array([1.0, 2.0, 1.0, 3.0]))
    with pytest.raises(
        InputError, match="port 3 would become port 1, which has another ingress_bytes_per_s: 2 and not 3"
    ):
        draw(replace(of_two_speeds, ports=ports), 5, ports=2)


def by_coflow(workload: CoflowWorkload) -> list[list[tuple[int, int, float]]]:
    found: dict[int, list[tuple[int, int, float]]] = {
        c: [] for c in workload.coflows["coflow_id"].to_pylist()
    }
    for flow in workload.flows.to_pylist():
        found[flow["coflow_id"]].append((flow["ingress"], flow["egress"], flow["size_bytes"]))
    return [*found.values()]


def test_new_times_keep_the_order_and_the_time_to_the_deadline():
    made = retime(four(), rate_per_s=0.5, seed=3)
    times = column(made.coflows, "arrival_s")
    assert made.coflows["coflow_id"].to_pylist() == [0, 1, 2, 3]
    assert (np.diff(times) > 0).all()
    np.testing.assert_allclose(relative_s(made), [2.0, np.nan, np.nan, 6.0])
    at_once = retime(made, arrivals="at-once")
    assert at_once.coflows["arrival_s"].to_pylist() == [0.0] * 4
    np.testing.assert_allclose(relative_s(at_once), [2.0, np.nan, np.nan, 6.0])
    together = retime(synthetic_coflows(coflows=500, ports=5), batch_least=5, batch_most=5)
    assert len(np.unique(column(together.coflows, "arrival_s"))) == 100
    jobs = retime(make_workload("j", [0.0, 0.0, 0.0], [1] * 3, [1.0] * 3), rate_per_s=10.0)
    assert (np.diff(column(jobs.jobs, "submit_s")) > 0).all()
    assert retime(dags_of([(5.0, [[1.0]], [], None)]), arrivals="at-once").jobs["submit_s"].to_pylist() == [
        0.0
    ]


def moved() -> CoflowWorkload:
    return deadline_coflows(coflows=60, arrivals="poisson", rate_per_s=6.0, heavy_share=0.3)


@pytest.mark.parametrize(
    "step",
    [
        lambda w: scale(w, load=0.5),
        lambda w: time_slice(w, 2.0, 8.0),
        lambda w: sample(w, share=0.5),
        lambda w: replicate(w, 2, jitter_s=1.0),
        lambda w: resample(w, block_s=3.0),
        lambda w: merge([w, retime(w, rate_per_s=2.0)], align=True),
        lambda w: retime(w, rate_per_s=1.0),
        lambda w: draw(w, 30),
        lambda w: keep_coflows(w, wider_than=5),
    ],
    ids=["scale", "slice", "sample", "replicate", "resample", "merge", "retime", "draw", "filter"],
)
def test_steps_that_move_or_choose_coflows_keep_their_factors_and_weights(step: Any) -> None:
    was, made = moved(), step(moved())

    def demands(workload: CoflowWorkload) -> np.ndarray:
        columns = relative_s(workload), isolated_s(workload), column(workload.coflows, "weight")
        return np.stack(columns, axis=1)

    for row in demands(made):
        assert np.abs(demands(was) - row).max(axis=1).min() < 1e-8
    assert made.fingerprint() != was.fingerprint()


def test_skew_keeps_deadlines_and_may_so_make_them_impossible():
    was = deadlines(synthetic_coflows(coflows=200, ports=20, mean_width=30.0), most=1.2, port_speed_bps=GBPS)
    made = skew(was)
    assert made.coflows["deadline_s"].equals(was.coflows["deadline_s"])
    assert (relative_s(made) < isolated_s(made) * (1 - 1e-6)).any()


@given(workload=coflows(), seed=st.integers(0, 9), most=st.floats(1, 5))
@settings(max_examples=20)
def test_what_is_laid_over_goes_through_tables_and_history(tmp_path_factory, workload, seed, most):
    made: CoflowWorkload = with_port_speeds(workload, 1e12)
    assume(isolated_s(made).max() * most < 1e9)  # else a deadline would be later than all times
    steps: list[tuple[str, dict[str, Any]]] = [
        ("draw", {"count": 7, "seed": seed}),
        ("retime", {"batch_most": 3, "seed": seed}),
        ("deadlines", {"most": most, "share": 0.7, "seed": seed}),
        ("weights", {"heavy_weight": 3.5, "seed": seed}),
    ]
    for name, options in steps:
        before, made = made, TRANSFORMATIONS[name].function(made, **options)
        assert redo([before], history(made)[-1]).fingerprint() == made.fingerprint()
    folder = tmp_path_factory.mktemp("w") / "made"
    write_parquet(made, folder)
    again = read_coflows(folder)
    assert again.fingerprint() == made.fingerprint()
    assert history(again) == history(made)


@pytest.mark.slow("many drawn cases")
@pytest.mark.reference
@pytest.mark.parametrize("width", [10, 40])
def test_the_facebook_instances_could_have_been_drawn_from_the_trace(width: int) -> None:
    trace, published = (
        SHARED / "traces/FB2010-1Hr-150-0.txt",
        SHARED / f"traces/coflowlib/off_facebook_m10_c{width}.zip",
    )
    if not (trace.exists() and published.exists()):
        pytest.skip(f"{trace} or {published} is not there")
    source = read_coflow_benchmark(trace)
    made = []
    for seed in range(100):
        drawn = draw(source, width, max_width=width, ports=10, seed=seed)
        made.append(deadlines(drawn, port_speed_bps=8 * 2**20, seed=seed))  # a megabyte takes 1 s
    ours = figures(made)
    theirs = figures([read_coflowlib(published, instance=n) for n in range(1, 101)])
    ours["single"] /= 2**20
    ours["wide"] /= 2**20
    for what in ("width", "factor", "alone"):
        assert kolmogorov(ours[what], theirs[what]) < FAR, what
    for what in (
        "single",
        "wide",
    ):  # flows of a coflow are alike, so that a test for independent ones says too much
        for level in (0.25, 0.5, 0.75):
            assert np.quantile(ours[what], level) == pytest.approx(np.quantile(theirs[what], level), abs=1), (
                what
            )
    own, folded = (
        np.mean([np.mean(w.arrays().ingress == w.arrays().egress) for w in each])
        for each in (made, [read_coflowlib(published, instance=n) for n in range(1, 101)])
    )
    assert own == pytest.approx(folded, abs=0.03)


def test_options_are_read_from_text():
    assert TRANSFORMATIONS["deadlines"].parse(
        {"most": "1.5", "share": "40%", "port_speed_bps": "10 Gbps"}
    ) == {
        "most": 1.5,
        "share": 0.4,
        "port_speed_bps": 1e10,
    }
    flags = [option.flag for option in TRANSFORMATIONS["retime"].options]
    assert flags[1] == "--rate-per-s"
    assert flags[6] == "--period"
    with pytest.raises(InputError, match=r"--rate-per-s: .fast. is not a number"):
        TRANSFORMATIONS["retime"].parse({"rate_per_s": "fast"})
