"""What is derived from a trace of coflows: wide ones, those with skew, more skew, more ports."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.workloads.family_examples import coflows_of
from tests.workloads.strategies import coflows
from workloads.arrow import column
from workloads.coflows import CoflowWorkload, make_coflow_workload
from workloads.errors import InputError
from workloads.generators.coflows import synthetic_coflows
from workloads.info import describe, render
from workloads.readers.coflow_benchmark import read_coflow_benchmark
from workloads.transform import TRANSFORMATIONS, history, keep_coflows, redo, replicate, skew
from workloads.transform.coflows import flow_skew

SHARED = Path(os.environ.get("EMU_SHARED") or Path(__file__).parents[3].parent / "shared")
TRACE = SHARED / "traces" / "FB2010-1Hr-150-0.txt"
with_trace = pytest.mark.skipif(not TRACE.exists(), reason="no traces beside the repository")


def four() -> CoflowWorkload:
    """One flow, a shuffle of equal flows, two flows of skew 3, four of skew 5."""
    return coflows_of(
        [
            (0.0, None, {(0, 0): 5.0}),
            (1.0, 9.0, {(s, r): 4.0 for r in range(3) for s in range(3)}),
            (2.0, None, {(0, 1): 1.0, (0, 2): 3.0}),
            (3.0, None, {(0, 1): 1.0, (1, 1): 1.0, (0, 2): 5.0, (1, 2): 5.0}),
        ],
        ports=3,
    )


def variation(workload: CoflowWorkload) -> np.ndarray:
    """The coefficient of variation of what the senders of each coflow send, computed one by one."""
    arrays = workload.arrays()
    found = []
    for first, end in zip(arrays.first_flow[:-1], arrays.first_flow[1:], strict=True):
        sent = np.bincount(arrays.ingress[first:end], arrays.size_bytes[first:end])
        sent = sent[np.unique(arrays.ingress[first:end])]
        found.append(np.std(sent) / np.mean(sent))
    return np.array(found)


def received(workload: CoflowWorkload) -> dict[tuple[int, int], float]:
    """What each receiver of each coflow gets."""
    got: dict[tuple[int, int], float] = {}
    for flow in workload.flows.to_pylist():
        key = flow["coflow_id"], flow["egress"]
        got[key] = got.get(key, 0.0) + flow["size_bytes"]
    return got


@with_trace
@pytest.mark.reference
def test_the_derived_traces_of_philae():
    trace = read_coflow_benchmark(TRACE)
    # Philae has 142, 100, 65, 51, 43: those above k, not from k on, but for one coflow that it counts above 3 and 4.
    assert [keep_coflows(trace, skew_above=k).num_coflows for k in range(1, 6)] == [142, 100, 64, 50, 43]
    assert [int((flow_skew(trace) >= k).sum()) for k in range(1, 6)] == [526, 128, 95, 60, 49]
    assert keep_coflows(trace, wider_than=7).num_coflows == 269
    six = replicate(trace, 6)
    assert (six.num_ports, six.num_coflows) == (900, 6 * 526)
    assert (np.diff(column(six.coflows, "arrival_s").reshape(526, 6), axis=1) == 0).all()
    mantri = skew(trace)
    got = variation(mantri)
    assert np.quantile(got, [0.5, 0.9]) == pytest.approx([0.34, 3.1], rel=1e-3)
    assert np.count_nonzero(got) == np.count_nonzero(column(trace.coflows, "senders") > 1)
    np.testing.assert_allclose(
        column(mantri.coflows, "size_bytes"), column(trace.coflows, "size_bytes"), rtol=1e-12
    )
    assert column(mantri.flows, "size_bytes").min() > 10_000


def test_senders_of_a_shuffle_vary_as_asked():
    was = synthetic_coflows(coflows=400, mean_width=100.0)
    made = skew(was, cv_median=0.2, cv_p90=1.5, seed=3)
    got = variation(made)
    assert np.quantile(got, [0.5, 0.9]) == pytest.approx([0.2, 1.5], rel=1e-3)
    assert made.notes == (
        "skew: c.v. of what senders send: median 0.2 (0.2 asked for), 90th percentile 1.5 (1.5); "
        f"{np.count_nonzero(column(was.coflows, 'senders') == 1)} of 400 coflows have one sender",
    )
    assert (got <= np.sqrt(column(was.coflows, "senders") - 1)).all()
    assert column(made.flows, "ingress").tolist() == column(was.flows, "ingress").tolist()
    assert column(made.flows, "egress").tolist() == column(was.flows, "egress").tolist()
    assert skew(was, 0.2, 1.5, seed=4).fingerprint() != made.fingerprint()
    assert redo([was], history(made)[0]).fingerprint() == made.fingerprint()


def test_flows_to_a_receiver_vary_as_asked_and_senders_less():
    was = synthetic_coflows(coflows=400, mean_width=100.0)
    of_senders, of_flows = (skew(was, cv_median=0.2, cv_p90=1.5, of=of) for of in ("senders", "flows"))
    expected = "skew: c.v. of the flows to a receiver: median 0.2 (0.2 asked for), 90th percentile 1.5 (1.5)"
    assert of_flows.notes[0].startswith(expected)
    assert variation(of_flows).mean() < 0.7 * variation(of_senders).mean()
    assert flow_skew(of_flows).mean() > 0.5 * flow_skew(of_senders).mean()
    one = coflows_of([(0.0, None, {(c, 5): 10.0 for c in range(5)})], ports=6)
    assert (
        variation(skew(one, of="flows")) == variation(skew(one)) > 0
    )  # one receiver: its flows are the senders


@given(
    workload=coflows(),
    seed=st.integers(0, 5),
    cv_p90=st.floats(0.34, 100),
    of=st.sampled_from(["senders", "flows"]),
)
@settings(max_examples=20)
def test_what_receivers_get_stays(workload, seed, cv_p90, of):
    made = skew(workload, cv_p90=cv_p90, of=of, seed=seed)
    want = received(workload)
    assert received(made) == pytest.approx(want, rel=1e-9)
    assert column(made.flows, "size_bytes").min() > 0
    assert made.coflows["size_bytes"].to_pylist() == pytest.approx(
        workload.coflows["size_bytes"].to_pylist(), rel=1e-9
    )
    others = [name for name in made.coflows.column_names if name != "size_bytes"]
    assert made.coflows.select(others).equals(workload.coflows.select(others))


def test_narrow_coflows_get_what_they_can_and_it_is_said():
    pair = coflows_of([(float(c), None, {(0, 1): 1.0, (1, 1): 1.0}) for c in range(10)], ports=2)
    made = skew(pair)
    assert variation(made).max() == pytest.approx(0.95)  # of two senders at most 1
    assert "90th percentile 0.95 (3.1)" in made.notes[0]
    one = coflows_of([(0.0, None, {(0, 1): 1.0})], ports=2)
    assert skew(one).fingerprint() == one.fingerprint()


def test_options_are_read_from_text():
    assert TRANSFORMATIONS["filter"].parse({"wider_than": "7", "skew_above": "1.5"}) == {
        "wider_than": 7,
        "skew_above": 1.5,
    }
    assert TRANSFORMATIONS["skew"].parse({"cv_p90": "2", "seed": "3"}) == {"cv_p90": 2.0, "seed": 3}
    with pytest.raises(InputError, match=r"--cv-median: .much. is not a number"):
        TRANSFORMATIONS["skew"].parse({"cv_median": "much"})


def test_flows_between_the_same_ports_and_to_the_own_port_are_reported():
    twice = make_coflow_workload(
        "twice", [0.0, 1.0], [4, 2], [0, 0, 0, 1, 0, 0], [1, 1, 1, 1, 1, 0], [1.0] * 6, num_ports=2
    )
    d = describe(twice)
    assert (d["flows_to_own_port"], d["flows_of_same_ports"]) == (2, 2)
    assert "2 flows from a port to itself, 2 between the ports of another of their coflow" in render(d)
    assert "of another of their coflow" not in render(describe(four()))
