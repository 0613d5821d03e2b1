"""A user's own scheduler of coflows: an order or rates, what it sees, and the errors for wrong answers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from coflow_emulations import COSTS, TASKS, coflows, setting_of
from emulations import digest, run_setting, run_windows

from actors.schedulers.registry import find_scheduler
from actors.setting import Setting
from examples.smallest_coflow import EqualShares, LeastSent
from workloads.errors import InputError

WORKLOAD = coflows(
    (0.0, [(0, 0, 4.0), (0, 1, 2.0)]), (1.0, [(1, 1, 3.0)]), (1.0, [(0, 0, 1.0), (1, 0, 1.0)]), ports=2
)


def own(scheduler: Any, **given: Any) -> Setting:
    return setting_of(scheduler, WORKLOAD, **given)


def ccts(setting: Setting) -> list[float]:
    finish = run_setting(setting).finish_ns / 1e9
    return (finish - setting.workload.arrays().arrival_ns / 1e9).tolist()


class LastComes:
    """The last to come is served first."""

    def order(self, coflows: Any, now_s: float) -> Any:
        return np.argsort(-coflows.arrival_s, kind="stable")


class Smallest:
    """The smallest coflow first."""

    clairvoyant = True

    def order(self, coflows: Any, now_s: float) -> Any:
        return np.argsort(coflows.size_bytes, kind="stable")


def test_an_order_is_served_greedily() -> None:
    # 0>0 of coflow 0 runs from 0 on. At 1, coflow 1 has 1>1, and coflow 2 (which came with it, and so is after
    # it) takes 0>0 from coflow 0: it ends at 2, and 0 goes on with 0>0 until coflow 2's 1>0 asks: at 4, when
    # 1>1 is done, 1>0 takes egress 0, where 0>0 has 1 B left, and coflow 0's 0>1 runs 4 to 6 meanwhile. 0>0
    # goes on at 6 and ends at 7.
    assert ccts(own(LastComes)) == [7.0, 3.0, 4.0]


def test_the_clairvoyant_see_sizes() -> None:
    # Coflow 2 has 2 B, coflow 1 has 3, coflow 0 has 6. At 1: 0>0 of coflow 2 (to 2), then its 1>0 (2 to 3).
    # Until 2 coflow 1 has port 1 in: 1>1 runs 1 to 2, waits for 1>0, and runs 3 to 5. Coflow 0: 0>0 has 3 B
    # left, 0>1 2: at 2 ingress 0 is free, egress 1 too: 0>1 runs 2 to 3, then 0>0 runs 3 to 6, and 0>1 has 1 B
    # left and runs 6 to 7.
    assert ccts(own(Smallest)) == [7.0, 4.0, 2.0]


def test_what_it_sees() -> None:
    seen = []

    class Watching(LastComes):
        def order(self, coflows: Any, now_s: float) -> Any:
            view = (coflows.coflow, coflows.width, coflows.flows_left, coflows.bytes_sent, coflows.arrival_s)
            seen.append((now_s, *(column.tolist() for column in view)))
            assert coflows.size_bytes is None
            assert not coflows.bytes_sent.flags.writeable
            return super().order(coflows, now_s)

    ccts(own(Watching))
    assert (
        seen
        == [
            (0.0, [0], [2], [2], [0.0], [0.0]),
            (1.0, [0, 1, 2], [2, 1, 2], [2, 1, 2], [1.0, 0.0, 0.0], [0.0, 1.0, 1.0]),
            (4.0, [0, 2], [2, 2], [2, 1], [3.0, 1.0], [0.0, 1.0]),
            (5.0, [0], [2], [2], [4.0], [0.0]),
            (7.0, [], [], [], [], []),
        ][: len(seen)]
    )
    assert len(seen) >= 4


def test_rates_hold_until_it_is_asked_again() -> None:
    # From 0 to 1 both flows of coflow 0 have 1/2. From 1 on port 0 (in) has three flows, port 1 (in) two,
    # egress 0 three: 0>0, 0>0 (coflow 2) and 0>1 have 1/3, 1>0 has 1/3, 1>1 has 1/2 of either side. 0>0 of
    # coflow 2 and 1>0 end at 4. Then 0>0 has 2.5 B left, 0>1 has 0.5, 1>1 has 1.5: 0>1 and 1>1 share egress 1,
    # each flow has 1/2 but 1>1 too (1/2 of egress 1): 0>1 ends at 5, 1>1 has 1 B left and then all of port 1:
    # ends at 6; 0>0 has 2 B left and ends at 7.
    assert ccts(own(EqualShares)) == pytest.approx([7.0, 5.0, 3.0])


def test_partitions_delays_and_costs_change_nothing_or_what_they_should() -> None:
    for scheduler in (LastComes, LeastSent, EqualShares):
        setting = own(scheduler, delay_s=0.25, costs=COSTS)
        whole = digest(run_setting(setting, TASKS))
        for partitions in (2, 3):
            assert digest(run_windows(setting, TASKS, partitions)) == whole


def test_rates_may_be_more_messages_than_one_event_may_send() -> None:
    # 400 flows between 20 senders and 20 receivers, of 1 B: each has a 20th of its ports, until all end at 20 s.
    flows = [(source, sink, 1.0) for source in range(20) for sink in range(20)]
    setting = setting_of(EqualShares, coflows((0.0, flows), ports=20), delay_s=0.25)
    found = run_setting(setting, TASKS)
    assert found.tasks is not None
    assert found.tasks["finish_ns"].tolist() == [20_500_000_000] * 400
    for partitions in (2, 3):
        assert digest(run_windows(setting, TASKS, partitions)) == digest(found)


class Wrong(LastComes):
    """Gives back what it was made with."""

    def __init__(self, answer: Any = None):
        self.answer = answer

    def order(self, coflows: Any, now_s: float) -> Any:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (np.array([0.5]), "it must return their places 0, 1"),
        (np.array([1]), "each of 0 to 0 must be there"),
        (np.array([0, 1]), "shape (2,) for 1 coflows"),
        (None, "it must return their places"),
        (KeyError("size"), "order() raised KeyError: 'size'"),
    ],
)
def test_a_wrong_order_is_named(answer: Any, expected: str) -> None:
    with pytest.raises(InputError) as caught:
        ccts(own(Wrong(answer)))
    assert "scheduler Wrong: " in str(caught.value)
    assert expected in str(caught.value)


class Rated:
    """Gives every flow the same rate."""

    def __init__(self, rate: Any = None):
        self.rate = rate

    def rates(self, coflows: Any, flows: Any, now_s: float) -> Any:
        return np.full(flows.ingress.size, self.rate)


@pytest.mark.parametrize(
    ("rate", "expected"),
    [
        (1.0, "gives ingress port 0 2 bytes per second, and it carries 1"),
        (-1.0, "what is not one rate, 0 or more"),
        (np.nan, "what is not one rate, 0 or more"),
        (0.0, "have not finished"),
    ],
)
def test_wrong_rates_are_named(rate: float, expected: str) -> None:
    with pytest.raises(InputError) as caught:
        ccts(own(Rated(rate)))
    assert expected in str(caught.value)


def test_an_interval_that_is_none_is_named() -> None:
    class Hasty(LastComes):
        interval_s = "1 parsec"

    with pytest.raises(InputError, match="interval_s of Hasty"):
        own(Hasty)


class ByWhatItSees:
    """The smallest coflow first if it may see sizes, else the last to come; asked now and then if it wants."""

    clairvoyant = False
    interval_s: Any = None

    def __init__(self, last: bool = True):
        self.last = last

    def order(self, coflows: Any, now_s: float) -> Any:
        if self.clairvoyant:
            return np.argsort(coflows.size_bytes, kind="stable")
        return np.argsort(-coflows.arrival_s if self.last else coflows.arrival_s, kind="stable")


def test_its_parameters_are_keywords_attributes_and_the_interval() -> None:
    found = find_scheduler(ByWhatItSees)
    assert {p.name: p.kind for p in found.parameters} == {
        "clairvoyant": "flag",
        "last": "flag",
        "interval_s": "duration",
    }
    last, sees, first = (
        ccts(own(ByWhatItSees, **given)) for given in ({}, {"clairvoyant": "true"}, {"last": False})
    )
    assert (last, sees) == (ccts(own(LastComes)), ccts(own(Smallest)))
    assert len({tuple(last), tuple(sees), tuple(first)}) == 3
    asked = [
        run_setting(own(ByWhatItSees, **given)).counters["decisions"]
        for given in ({}, {"interval_s": "0.1 s"})
    ]
    assert asked[1] > asked[0]
    with pytest.raises(InputError, match="parameter interval_s of ByWhatItSees: '1 ns' is too little"):
        own(ByWhatItSees, interval_s="1 ns")
    assert ccts(own(ByWhatItSees(last=False))) == first
