import json
import os
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workloads.arrow import column
from workloads.catalogue import load_workload
from workloads.coflows import CoflowWorkload
from workloads.generators.arrivals import PROCESSES
from workloads.generators.coflows import LEVELS, MEGABYTE, SHAPES, synthetic_coflows
from workloads.readers.coflow_benchmark import read_coflow_benchmark, write_coflow_benchmark
from workloads.transform.load import fabric_bytes_per_s, offered_bytes_per_s

TRACE = (
    Path(os.environ.get("EMU_SHARED") or Path(__file__).parents[3].parent / "shared")
    / "traces"
    / "FB2010-1Hr-150-0.txt"
)


def figures(workload: CoflowWorkload) -> dict[str, np.ndarray]:
    """What is drawn of each coflow: senders, receivers, mean flow and longest over shortest."""
    arrays = workload.arrays()
    first = arrays.first_flow[:-1]
    longest, shortest = (f.reduceat(arrays.size_bytes, first) for f in (np.maximum, np.minimum))
    return {
        "senders": column(workload.coflows, "senders"),
        "receivers": column(workload.coflows, "receivers"),
        "flow_mb": column(workload.coflows, "size_bytes") / column(workload.coflows, "width") / MEGABYTE,
        "skew": longest / shortest,
    }


def of_shape(found: dict[str, np.ndarray], name: str) -> np.ndarray:
    some = [(found[side] > 1) == (name in wide) for side, wide in SIDES.items()]
    return some[0] & some[1]


@cache
def many() -> CoflowWorkload:
    return synthetic_coflows(coflows=4 * 526)


SIDES = {"senders": ("incast", "shuffle"), "receivers": ("outcast", "shuffle")}


@given(
    st.fixed_dictionaries(
        {
            "coflows": st.integers(1, 40),
            "seed": st.integers(0, 2**64 - 1),
            "ports": st.integers(1, 60),
            "load": st.floats(0.01, 5),
            "port_speed_bps": st.floats(1e6, 1e12),
            "mean_size_bytes": st.none() | st.floats(1, 1e9),
            "skew": st.floats(0, 10),
            "arrivals": st.sampled_from(PROCESSES),
        }
    )
)
@settings(max_examples=20)
def test_any_parameters_in_range_give_shuffles_between_distinct_ports(options):
    workload = synthetic_coflows(**options)
    assert (workload.num_coflows, workload.num_ports) == (options["coflows"], options["ports"])
    assert not workload.notes
    arrays = workload.arrays()
    of_flow = np.repeat(np.arange(workload.num_coflows), np.diff(arrays.first_flow))
    pairs = (of_flow * workload.num_ports + arrays.ingress) * workload.num_ports + arrays.egress
    assert len(np.unique(pairs)) == workload.num_flows
    sides = [column(workload.coflows, side) for side in ("senders", "receivers")]
    np.testing.assert_array_equal(sides[0] * sides[1], column(workload.coflows, "width"))
    assert (arrays.size_bytes == np.rint(arrays.size_bytes)).all()
    assert synthetic_coflows(**options).fingerprint() == workload.fingerprint()


def test_seeds_differ_and_the_metadata_say_what_was_asked_for():
    made = [synthetic_coflows(coflows=50, seed=seed) for seed in (0, 1)]
    assert made[0].fingerprint() != made[1].fingerprint()
    assert "coflows=50 seed=1 ports=150 load=0.55 port_speed_bps=1e+09" in made[1].metadata["parameters"]
    json.dumps(made[0].metadata)


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
def test_the_coflows_of_a_shape_have_its_quantiles(shape):
    found = figures(many())
    own = of_shape(found, shape.name)
    assert own.sum() == shape.coflows * 4
    for name, values in found.items():
        want = getattr(shape, name)
        for level in (0.1, 0.25, 0.5, 0.75, 0.9):
            got = np.quantile(values[own], level)
            assert got == pytest.approx(want[int(np.argmax(level <= LEVELS))], rel=0.05, abs=0.51), name


def test_a_wider_coflow_has_longer_flows_and_more_skew():
    found = figures(many())
    own = of_shape(found, "shuffle")
    ranks = np.argsort(np.argsort([found[name][own] for name in found], axis=1), axis=1)
    together = np.corrcoef(ranks)  # senders, receivers, flow, skew
    assert together[1, 3] == pytest.approx(0.71, abs=0.1)  # 0.62 to 0.68 over six seeds
    assert together[2, 3] == pytest.approx(0.66, abs=0.1)
    assert 0.2 < together[1, 2] < 0.6
    assert 0.3 < together[0, 1] < 0.6


@pytest.mark.reference
def test_without_options_it_is_like_the_trace():
    if not TRACE.exists():
        pytest.skip(f"{TRACE} is not there")
    trace, made = read_coflow_benchmark(TRACE), [synthetic_coflows(seed=seed) for seed in range(5)]
    flows = np.mean([w.num_flows for w in made])
    assert flows == pytest.approx(trace.num_flows, rel=0.05)
    wide = [np.count_nonzero(column(w.coflows, "width") > 7) for w in (trace, *made)]
    assert np.mean(wide[1:]) == pytest.approx(wide[0], rel=0.05)
    own, others = figures(trace), [figures(w) for w in made]
    for name in ("senders", "receivers"):
        assert np.mean([o[name].mean() for o in others]) == pytest.approx(own[name].mean(), rel=0.1)
    sizes = [np.quantile(column(w.coflows, "size_bytes"), (0.25, 0.5, 0.75)) for w in (trace, *made)]
    np.testing.assert_allclose(np.mean(sizes[1:], axis=0), sizes[0], rtol=0.35)


@pytest.mark.parametrize("arrivals", PROCESSES)
def test_the_offered_load_is_met_in_expectation(arrivals):
    loads = []
    for seed in range(5):
        workload = synthetic_coflows(
            coflows=3_000, seed=seed, mean_width=20.0, load=0.8, port_speed_bps=10e9, arrivals=arrivals,
            burst_jobs=3.0, period_s=60.0,
        )  # fmt: skip
        loads.append(offered_bytes_per_s(workload) / fabric_bytes_per_s(workload, 10e9))
        # The metadata count from time 0, the workload's own load from its first arrival.
        assert float(workload.metadata["offered_load"].split()[0]) == pytest.approx(loads[-1], rel=0.02)
    assert np.mean(loads) == pytest.approx(0.8, rel=0.1)


@pytest.mark.parametrize(
    ("ports", "mean_width"), [(150, 1.0), (150, 6.5), (150, 200), (150, 4_000), (2_000, 3_000.0)]
)
def test_the_mean_width_is_met(ports, mean_width):
    workload = synthetic_coflows(coflows=600, ports=ports, mean_width=mean_width)
    assert workload.num_flows / 600 == pytest.approx(mean_width, rel=0.01)
    assert max(figures(workload)["senders"]) <= ports


def test_skew_is_a_power_and_size_a_factor():
    as_measured, equal, twice = (figures(synthetic_coflows(coflows=300, skew=s)) for s in (1, 0, 2))
    np.testing.assert_array_equal(equal["skew"], 1.0)
    np.testing.assert_allclose(twice["skew"], as_measured["skew"] ** 2, rtol=0.05)
    sized = synthetic_coflows(coflows=300, mean_size_bytes=5e9)
    assert column(sized.coflows, "size_bytes").mean() == pytest.approx(5e9, rel=1e-6)
    np.testing.assert_allclose(figures(sized)["skew"], as_measured["skew"], rtol=0.1)


@pytest.mark.slow("fifty thousand coflows")
def test_fifty_thousand_coflows_on_fifteen_thousand_ports():
    workload = load_workload(
        "synthetic-coflows",
        options={"coflows": "50,000", "ports": "15,000", "mean_width": "20", "port_speed_bps": "10 Gbps"},
    )
    assert workload.num_coflows == 50_000
    assert workload.num_flows == pytest.approx(1_000_000, rel=0.005)
    assert "on 15000 ports of 10 Gbps" in workload.metadata["offered_load"]
    used = np.bincount(column(workload.flows, "egress"), minlength=15_000)
    assert used.min() > 0  # coflows are all over the switch


def test_it_can_be_written_as_a_coflow_benchmark(tmp_path):
    workload = synthetic_coflows(coflows=40)
    write_coflow_benchmark(workload, tmp_path / "made.txt")
    assert read_coflow_benchmark(tmp_path / "made.txt").fingerprint() == workload.fingerprint()
