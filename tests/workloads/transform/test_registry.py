"""Steps as text: what they are read as, what they do, and their errors."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.workloads.family_examples import coflows_of
from workloads.coflows import CoflowWorkload
from workloads.errors import InputError
from workloads.transform import TRANSFORMATIONS, deadlines, history, sample, weights
from workloads.transform.registry import parse_steps


def coflows(ports: int = 3) -> CoflowWorkload:
    rows = [(0.5 * k, None, {(k % ports, (k + 1) % ports): 1e6 * (k + 1)}) for k in range(12)]
    return coflows_of(rows, ports=ports)


@pytest.mark.parametrize(
    ("text", "shortest"),
    [
        ("deadlines", "deadlines"),
        ("deadlines --most 4 --port-speed '1 Gbps'", "deadlines most=4 port_speed_bps='1 Gbps'"),
        ("deadlines port_speed_bps='1 Gbps' most=4", "deadlines most=4 port_speed_bps='1 Gbps'"),
        ("deadlines --port-speed='1 Gbps' --most=4", "deadlines most=4 port_speed_bps='1 Gbps'"),
        ("constrain model='cores >= 8: 60%; x'", "constrain model='cores >= 8: 60%; x'"),
    ],
)
def test_a_step_has_one_shortest_form(text: str, shortest: str) -> None:
    if "; x" in text:  # a semicolon in quotes divides nothing
        assert [step.name for step in parse_steps(text)] == ["constrain"]
    assert [str(step) for step in parse_steps(text)] == [shortest]
    assert parse_steps(shortest) == parse_steps(text)


@given(st.lists(st.sampled_from(["weights", "deadlines most=3", "sample --share 50%", "truncate cap=3s"])))
def test_steps_read_back_from_their_text(texts: list[str]) -> None:
    steps = parse_steps("; ".join(texts))
    assert len(steps) == len(texts)
    assert parse_steps(";".join(map(str, steps))) == steps


def test_steps_do_what_the_transformations_do() -> None:
    made = coflows()
    for step in parse_steps("deadlines most=4 port_speed='8 Mbps' seed=3; weights; sample count=5"):
        made = step.apply(made, 9)
    by_hand = deadlines(coflows(), most=4, port_speed_bps=8e6, seed=3)
    assert made.fingerprint() == sample(weights(by_hand, seed=9), count=5, seed=9).fingerprint()
    assert [line.partition(" ")[0] for line in history(made)] == ["deadlines", "weights", "sample"]


def test_a_step_without_draws_follows_no_seed() -> None:
    follows = [parse_steps(text)[0].follows_seed for text in ("weights", "weights seed=1", "truncate cap=1s")]
    assert follows == [True, False, False]


def test_every_transformation_of_one_workload_is_a_step() -> None:
    able = [name for name, step in TRANSFORMATIONS.items() if not (step.many_in or step.many_out)]
    assert set(TRANSFORMATIONS) - set(able) == {"merge", "split"}
    for name in able:
        required = [
            f"{o.name}={'1s' if o.kind == 'duration' else 1}"
            for o in TRANSFORMATIONS[name].options
            if o.required
        ]
        assert parse_steps(" ".join([name, *required]))[0].name == name


def test_a_step_that_does_not_fit_the_workload_is_named() -> None:
    for text, error in (
        ("deadlines most=0.5", "deadlines: --most: 0.5 is below least, 1.0"),
        ("truncate cap=1s", "truncate: "),
        ("deadlines", "deadlines: "),  # its ports state no speed
    ):
        with pytest.raises(InputError) as caught:
            parse_steps(text)[0].apply(coflows(), 1)
        assert str(caught.value).startswith(error)
