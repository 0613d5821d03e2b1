"""The synthetic traffic of DCoflow against the numbers of its authors' generator and against their instances."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workloads.arrow import column
from workloads.catalogue import load_workload, options_without_meaning
from workloads.coflows import CoflowWorkload
from workloads.generators.arrivals import RATED_PROCESSES
from workloads.generators.deadline_coflows import deadline_coflows
from workloads.isolation import isolated_s
from workloads.readers.coflowlib import list_coflowlib, read_coflowlib, write_coflowlib

SHARED = Path(os.environ.get("EMU_SHARED") or Path(__file__).parents[3].parent / "shared")
MANY = 20_000


@cache
def many() -> CoflowWorkload:
    return deadline_coflows(
        coflows=MANY, ports=10, mean_flow_bytes=1.0, port_speed_bps=8.0, heavy_share=0.3, seed=7
    )


def factors(workload: CoflowWorkload) -> np.ndarray:
    """The time to the deadline over the time alone, in whole nanoseconds as the kernel has them."""
    arrays = workload.arrays()
    return (arrays.deadline_ns - arrays.arrival_ns) / (isolated_s(workload) * 1e9)


def kolmogorov(values: np.ndarray, other: np.ndarray | None = None) -> float:
    """The largest difference of two empirical distributions, or of one and of uniform 0..1, times sqrt(n)."""
    if other is None:
        at = np.sort(values)
        steps = np.arange(len(at) + 1) / len(at)
        return float(max(np.max(steps[1:] - at), np.max(at - steps[:-1])) * np.sqrt(len(at)))
    at = np.concatenate([values, other])
    shares = [np.searchsorted(np.sort(v), at, "right") / len(v) for v in (values, other)]
    n = len(values) * len(other) / len(at)
    return float(np.abs(shares[0] - shares[1]).max() * np.sqrt(n))


FAR = 1.95
"""Kolmogorov's statistic is above this by chance once in a thousand times."""


def test_types_and_widths_are_those_of_the_paper():
    width = column(many().coflows, "width")
    assert np.mean(width == 1) == pytest.approx(0.6, abs=3 * np.sqrt(0.24 / MANY))
    found, counts = np.unique(width[width > 1], return_counts=True)
    assert found.tolist() == [7, 8, 9, 10]  # ceil(2 * 10 / 3) to 10
    expected = counts.sum() / 4
    assert ((counts - expected) ** 2 / expected).sum() < 16.3  # chi squared, 3 degrees of freedom, 0.1 %
    for ports, least in ((2, 2), (3, 2), (4, 3), (100, 67)):
        wide = column(deadline_coflows(ports=ports, coflows=3000).coflows, "width")
        assert (wide[wide > 1].min(), wide.max()) == (least, ports)


def test_the_first_coflow_is_of_one_flow_and_the_second_of_several():
    for seed in range(20):
        assert [w == 1 for w in deadline_coflows(coflows=2, seed=seed).coflows["width"].to_pylist()] == [1, 0]
    assert deadline_coflows(coflows=1, single_share=0.01).num_flows == 1
    assert deadline_coflows(coflows=2, single_share=1.0).num_flows == 2  # where only one type is asked for
    assert column(deadline_coflows(coflows=2, single_share=0.0).coflows, "width").min() >= 7


def test_volumes_are_normal_with_the_means_of_both_types():
    sizes = many().arrays().size_bytes
    of_wide = np.repeat(column(many().coflows, "width") > 1, column(many().coflows, "width"))
    for own, mean in ((sizes[~of_wide], 1.0), (sizes[of_wide], 0.8)):
        assert own.mean() == pytest.approx(mean, abs=4 * 0.2 / np.sqrt(len(own)))
        assert own.std() == pytest.approx(0.2, rel=0.03)
        assert np.mean(np.abs(own - mean) < 0.2) == pytest.approx(0.683, abs=0.015)  # normal, not uniform
    np.testing.assert_array_equal(sizes, np.round(sizes, 5))


def test_pairs_of_ports_are_distinct_in_a_coflow_and_all_alike():
    arrays = many().arrays()
    pair = arrays.ingress * 10 + arrays.egress
    of_flow = np.repeat(np.arange(MANY), np.diff(arrays.first_flow))
    assert len(np.unique(of_flow * 100 + pair)) == len(pair)
    counts = np.bincount(pair, minlength=100)
    expected = len(pair) / 100
    assert ((counts - expected) ** 2 / expected).sum() < 149  # 99 degrees of freedom, 0.1 %
    assert np.mean(arrays.ingress == arrays.egress) == pytest.approx(0.1, abs=0.005)


def test_deadlines_are_uniform_factors_of_the_time_alone():
    factor = factors(many())
    assert factor.min() >= 1  # in nanoseconds: none is rounded away
    assert factor.max() <= 2 + 1e-8
    assert kolmogorov(factor - 1) < FAR
    assert np.corrcoef(factor, column(many().coflows, "width"))[0, 1] == pytest.approx(0, abs=0.03)
    other = factors(deadline_coflows(coflows=MANY, deadline_least=0.5, deadline_most=4.0))
    assert kolmogorov((other - 0.5) / 3.5) < FAR
    exact = deadline_coflows(coflows=500, deadline_most=1.0, arrivals="poisson")
    assert np.abs(factors(exact) - 1).max() < 1e-7
    some = deadline_coflows(coflows=MANY, deadline_share=0.25)
    assert some.coflows["deadline_s"].null_count / MANY == pytest.approx(0.75, abs=0.01)


def test_weights_are_heavy_by_chance_whatever_the_type():
    weight, single = column(many().coflows, "weight"), column(many().coflows, "width") == 1
    assert set(weight.tolist()) == {1.0, 2.0}
    for own in (weight[single], weight[~single]):
        assert np.mean(own == 2) == pytest.approx(0.3, abs=0.02)
    assert set(deadline_coflows().coflows["weight"].to_pylist()) == {1.0}


@pytest.mark.parametrize("rate_per_s", [2.0, 10.0])
def test_arrivals_are_poisson_at_the_rate(rate_per_s):
    workload = deadline_coflows(coflows=MANY, arrivals="poisson", rate_per_s=rate_per_s)
    times = column(workload.coflows, "arrival_s")
    gaps = np.diff(times, prepend=0.0)
    assert gaps.mean() == pytest.approx(1 / rate_per_s, rel=0.03)
    assert kolmogorov(np.exp(-gaps * rate_per_s)) < FAR
    assert set(deadline_coflows().coflows["arrival_s"].to_pylist()) == {0.0}


def test_other_arrivals_deadlines_or_weights_leave_the_flows_as_they_are():
    same = deadline_coflows(seed=3)
    for options in (
        {"arrivals": "poisson", "rate_per_s": 2.0, "batch_most": 9},
        {"deadline_most": 5.0, "deadline_share": 0.5},
        {"heavy_share": 0.5, "heavy_weight": 7.0},
    ):
        made = deadline_coflows(seed=3, **options)
        assert made.flows.equals(same.flows)
        assert made.fingerprint() != same.fingerprint()
    assert not deadline_coflows(seed=4).flows.equals(same.flows)


@given(
    st.fixed_dictionaries(
        {
            "coflows": st.integers(1, 30),
            "seed": st.integers(0, 2**64 - 1),
            "ports": st.integers(1, 12),
            "single_share": st.floats(0, 1),
            "mean_flow_bytes": st.floats(1e-3, 1e7),
            "flow_sd": st.floats(0, 5),
            "wide_ratio": st.floats(0.01, 5),
            "port_speed_bps": st.floats(1e3, 1e12),
            "deadline_least": st.floats(0.1, 2),
            "deadline_most": st.floats(2, 9),
            "heavy_share": st.floats(0, 1),
            "heavy_weight": st.floats(0.01, 100),
            "arrivals": st.sampled_from(RATED_PROCESSES),
            "rate_per_s": st.floats(0.01, 1e3),
            "batch_most": st.integers(1, 40),
        }
    )
)
@settings(max_examples=20)
def test_any_parameters_in_range_give_coflows_that_read_back_from_an_instance(tmp_path_factory, options):
    workload = deadline_coflows(**options)
    assert (workload.num_coflows, workload.num_ports) == (options["coflows"], options["ports"])
    assert not workload.notes
    width = column(workload.coflows, "width")
    assert width.max() <= options["ports"]
    path = tmp_path_factory.mktemp("lib") / "w.txt"
    write_coflowlib(workload, path)
    assert read_coflowlib(path).fingerprint() == workload.fingerprint()
    assert deadline_coflows(**options).fingerprint() == workload.fingerprint()


def figures(workloads: list[CoflowWorkload]) -> dict[str, np.ndarray]:
    """What is drawn, over several instances."""
    of_wide = [np.repeat((w := column(x.coflows, "width")) > 1, w) for x in workloads]
    sizes = [x.arrays().size_bytes for x in workloads]
    return {
        "width": np.concatenate([column(x.coflows, "width") for x in workloads]),
        "single": np.concatenate([s[~wide] for s, wide in zip(sizes, of_wide, strict=True)]),
        "wide": np.concatenate([s[wide] for s, wide in zip(sizes, of_wide, strict=True)]),
        "factor": np.concatenate([factors(x) for x in workloads]),
        "alone": np.concatenate([isolated_s(x) for x in workloads]),
        "weight": np.concatenate([x.arrays().weight for x in workloads]),
        "gap": np.concatenate([np.diff(column(x.coflows, "arrival_s")) for x in workloads]),
    }


@pytest.mark.slow("many drawn cases")
@pytest.mark.reference
@pytest.mark.parametrize(
    ("name", "count", "options"),
    [
        ("off_synthetic_m10_c10", 100, {"coflows": 10}),
        ("off_synthetic_m10_c40", 100, {"coflows": 40}),
        ("w_off_synthetic_m10_c40", 100, {"coflows": 40, "heavy_share": 0.3}),
        (
            "on_synthetic_nobatch_m10_c2000_l10",
            3,
            {"coflows": 2000, "wide_ratio": 1.0, "arrivals": "poisson", "rate_per_s": 10.0},
        ),
    ],
)
def test_the_published_instances_could_have_been_drawn_by_it(
    name: str, count: int, options: dict[str, Any]
) -> None:
    path = SHARED / "traces" / "coflowlib" / f"{name}.zip"
    if not path.exists():
        pytest.skip(f"{path} is not there")
    published = figures([read_coflowlib(path, instance=n) for n in range(1, count + 1)])
    units = {"mean_flow_bytes": 1.0, "port_speed_bps": 8.0}
    made = figures([deadline_coflows(seed=seed, **units, **options) for seed in range(count)])
    for what, own in published.items():
        assert kolmogorov(made[what], own) < FAR, what
    assert len(list_coflowlib(path)) >= count


def test_options_are_read_from_text_and_those_without_meaning_named():
    made = load_workload(
        "deadline-coflows",
        options={"ports": "100", "coflows": "1,000", "port_speed_bps": "10 Gbps", "mean_flow_bytes": "1 MB"},
    )
    assert made.arrays().ingress_bytes_per_s[0] == 1.25e9
    assert made.arrays().size_bytes.mean() == pytest.approx(0.8e6, rel=0.05)
    given = {"rate_per_s": 2.0, "batch_most": 3, "heavy_weight": 5.0}
    assert options_without_meaning("deadline-coflows", given) == {
        "rate_per_s": "goes with arrivals=poisson or bursty or diurnal, and arrivals is at-once",
        "batch_most": "goes with arrivals=poisson or bursty or diurnal, and arrivals is at-once",
        "heavy_weight": "goes with heavy_share, and heavy_share is 0.0",
    }
    assert not options_without_meaning(
        "deadline-coflows", given | {"arrivals": "diurnal", "heavy_share": 0.1}
    )
