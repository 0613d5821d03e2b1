"""Parameters of users' own schedulers, and variants of any scheduler."""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from emulations import emulate_small, jobs

from actors.scheduler import resolve_parameters
from actors.schedulers.registry import find_scheduler
from actors.schedulers.user.own import make_own
from actors.schedulers.variants import Variant, make_variant, named_apart, read_variant, variant
from workloads.errors import InputError

WORKLOAD = jobs((0, [1, 1]), (1, [1]))


class Base:
    """Places tasks by a rule."""

    shift = 0
    LIMIT = 7
    _hidden = 1

    def place(self, job: Any, nodes: Any) -> Any:
        return [(self.first() + i) % len(nodes.slots) for i in range(job.num_tasks)]

    def first(self) -> int:
        return self.shift


class Own(Base):
    """To the k-th node and those after it."""

    wait_s = "8 ms"
    sizes = (1, 2)

    def __init__(self, k: int = 2, *, mode: str = "plain", limit: Any = None, table: Any = ()):
        self.k = k
        self.mode = mode
        self.limit = limit
        self.made_with = self.shift  # attributes are there before __init__ is called

    def first(self) -> int:
        assert self.made_with == self.shift
        return self.shift + self.k


def parameters(scheduler: Any) -> dict[str, Any]:
    return {p.name: p.default for p in find_scheduler(scheduler).parameters}


def nodes_of(scheduler: Any, nodes: int = 8, **given: Any) -> list[int]:
    outcome = emulate_small(scheduler, WORKLOAD, nodes, **given)
    assert outcome.tasks is not None
    return outcome.tasks["node"].tolist()


def test_keywords_and_attributes_are_parameters() -> None:
    found = find_scheduler(Own)
    assert [(p.name, p.default, p.kind) for p in found.parameters] == [
        ("shift", 0, "integer"),
        ("wait_s", 0.008, "duration"),
        ("k", 2, "integer"),
        ("mode", "plain", "text"),
        ("limit", None, "any"),
    ]
    assert found.doc == "To the k-th node and those after it."
    assert found.policy == found.name == "Own"


def test_they_reach_the_class() -> None:
    assert nodes_of(Own) == [2, 3, 2]
    assert nodes_of(Own, k="4") == [4, 5, 4]
    assert nodes_of(Own, k=1, shift=2) == [3, 4, 3]
    assert nodes_of(variant(Own, k=6)) == [6, 7, 6]
    assert Own.shift == 0


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"kk": 1}, "Own has no parameter 'kk'; did you mean 'k'"),
        ({"k": "many"}, "parameter k of Own: 'many' is not a whole number"),
        ({"k": 2.5}, "not a whole number"),
        ({"wait_s": "8 apples"}, "parameter wait_s of Own: '8 apples' is not a duration"),
        ({"mode": 3}, "parameter mode of Own: 3 is not text"),
        ({"LIMIT": 3}, "no parameter 'LIMIT'"),
        ({"table": 3}, "no parameter 'table'"),
        ({"_hidden": 3}, "no parameter '_hidden'"),
    ],
)
def test_wrong_ones_are_named(given: dict[str, Any], expected: str) -> None:
    with pytest.raises(InputError, match=expected):
        resolve_parameters(find_scheduler(Own), given)


@pytest.mark.parametrize(
    ("text", "value"),
    [("3", 3), ("2.5", 2.5), ("true", True), ("none", None), ("far", "far"), (7, 7), (None, None)],
)
def test_what_is_none_takes_anything(text: Any, value: Any) -> None:
    assert resolve_parameters(find_scheduler(Own), {"limit": text})["limit"] == value


@dataclass
class Made(Base):
    """A dataclass."""

    share: float = 0.5
    size_bytes: int = 1 << 20
    eager: bool = False
    at: float = float("inf")


def test_a_dataclass_and_its_kinds() -> None:
    kinds = {p.name: p.kind for p in find_scheduler(Made).parameters}
    assert kinds == {
        "shift": "integer",
        "share": "number",
        "size_bytes": "size",
        "eager": "flag",
        "at": "any",
    }
    given = {"share": "0.25", "size_bytes": "2 MiB", "eager": "yes", "at": 3}
    assert make_own(Made, resolve_parameters(find_scheduler(Made), given)) == Made(0.25, 1 << 21, True, 3)


class Wants(Base):
    """Cannot be made without arguments."""

    def __init__(self, where: int, k: int = 1):
        self.where = where
        self.k = k


def test_a_class_that_wants_arguments_is_refused_and_its_objects_are_not() -> None:
    with pytest.raises(
        InputError, match=r"scheduler Wants: __init__ has no default for where; .*Wants\(where=…\)"
    ):
        find_scheduler(Wants)
    assert parameters(Wants(5)) == {"shift": 0, "k": 1, "where": 5}
    assert find_scheduler(Wants(np.int64(5))).name == "Wants(where=5)"


def test_an_object_has_its_own_values() -> None:
    found = find_scheduler(Own(4, mode="x"))
    assert (found.name, found.policy, found.fixed) == ("Own(k=4,mode=x)", "Own", ("k", "mode"))
    assert nodes_of(Own(4)) == [4, 5, 4]
    assert find_scheduler(Own()).name == "Own"
    assert resolve_parameters(found, {"k": 4, "shift": "0"})["k"] == 4
    with pytest.raises(InputError, match=r"Own\(k=4,mode=x\) has k=4 of its own, not 3"):
        resolve_parameters(found, {"k": 3})
    named = Own(4)
    named.name = "mine"
    assert (find_scheduler(named).name, find_scheduler(named).policy) == ("mine", "Own")


def test_objects_of_a_class_are_named_by_the_parameters_that_differ() -> None:
    def names(*schedulers: Any) -> list[str]:
        return [s.name for s in named_apart([find_scheduler(s) for s in schedulers])]

    assert names(Own(2), Own(4)) == ["Own(k=2)", "Own(k=4)"]
    assert names(Own(2, mode="x"), Own(4, mode="x"), "eagle") == ["Own(k=2)", "Own(k=4)", "eagle"]
    assert names(Own(2, mode="x"), Own(4), Own(4, mode="y")) == [
        "Own(k=2,mode=x)",
        "Own(k=4,mode=plain)",
        "Own(k=4,mode=y)",
    ]
    assert names(Own(4), Made()) == ["Own(k=4)", "Made"]
    assert names(Own(3), Own(3)) == ["Own(k=3)"] * 2  # who takes both has to refuse them


def test_variants_have_settings_and_a_name() -> None:
    found = find_scheduler("eagle@slack=2@sticky=no")
    assert (found.name, found.policy) == ("eagle(sticky=false,slack=2)", "eagle")
    resolved = resolve_parameters(found, {"probe_ratio": 3})
    assert (resolved["slack"], resolved["sticky"], resolved["probe_ratio"]) == (2.0, False, 3.0)
    with pytest.raises(InputError, match=r"eagle\(sticky=false,slack=2\) has slack=2 of its own, not 4"):
        resolve_parameters(found, {"slack": 4})
    assert find_scheduler(variant("eagle", slack=2)).name == "eagle(slack=2)"
    assert find_scheduler(variant("eagle", name="mild", slack="1.5")).name == "mild"
    inner = find_scheduler(variant("eagle@slack=2", sticky=False))
    assert inner.name == found.name
    assert inner.parameters == found.parameters
    assert find_scheduler("eagle").parameters == find_scheduler(variant("eagle")).parameters


def test_a_variant_emulates_as_the_policy_with_that_parameter() -> None:
    small = jobs((0, [5, 5, 5]), (1, [2, 2]), (2, [9]))
    one = emulate_small("sparrow", small, 2, probe_ratio=1.0)
    other = emulate_small("sparrow@probe_ratio=1", small, 2)
    default = emulate_small("sparrow", small, 2)
    assert one.finish_ns.tolist() == other.finish_ns.tolist()
    assert one.counters == other.counters != default.counters


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("eagle@slak=2", "eagle has no parameter 'slak'; did you mean 'slack'"),
        ("eagle@slack=-1", "parameter slack of eagle: '-1' is too little"),
        ("eagel@slack=1", "no scheduler 'eagel'; did you mean 'eagle'"),
        ("eagle@slack=1@slack=2", "gives a parameter twice"),
        ("eagle@slack", "a variant is written NAME@PARAMETER=VALUE"),
        ("eagle@=2", "a variant is written NAME@PARAMETER=VALUE"),
        (variant(Own(4), k=3), r"Own\(k=4\) has k=4 of its own, not 3"),
    ],
)
def test_wrong_variants_are_named(given: Any, expected: str) -> None:
    with pytest.raises(InputError, match=expected):
        find_scheduler(given)


@pytest.mark.parametrize(
    ("text", "scheduler", "settings"),
    [
        ("eagle@slack=2", "eagle", {"slack": "2"}),
        ("a/me@x/own.py:LL@k=4@wait_s=8 ms", "a/me@x/own.py:LL", {"k": "4", "wait_s": "8 ms"}),
    ],
)
def test_variants_as_text(text: str, scheduler: str, settings: dict[str, str]) -> None:
    read = read_variant(text)
    assert read is not None
    assert (read.scheduler, read.settings) == (scheduler, settings)
    assert read_variant(scheduler) is None


def test_a_class_in_a_file_with_settings(tmp_path: Path) -> None:
    path = tmp_path / "own.py"
    path.write_text(
        "class LL:\n    def __init__(self, k=2):\n        self.k = k\n"
        "    def place(self, job, nodes):\n        return [self.k] * job.num_tasks\n"
    )
    assert nodes_of(f"{path}:LL@k=4") == [4, 4, 4]
    assert find_scheduler(f"{path}:LL@k=4").name == "LL(k=4)"


@pytest.mark.parametrize(
    "given",
    ["eagle@slack=2", variant("eagle", name="mild", slack=2), variant(Own, k=3), Own(4)],
    ids=["text", "named", "class", "object"],
)
def test_they_travel(given: str | Variant) -> None:
    found = find_scheduler(given)
    again = pickle.loads(pickle.dumps(found))
    assert (again.name, again.policy, again.parameters) == (found.name, found.policy, found.parameters)
    made = make_variant(found, {}, "other")
    assert pickle.loads(pickle.dumps(made)).name == "other"


def test_what_init_and_start_raise_is_the_users_to_see() -> None:
    class Refuses(Base):
        def __init__(self, k: int = 1):
            if k > 2:
                raise ValueError("k is too large")

    class Stumbles(Base):
        def start(self, num_nodes: int, seed: int) -> None:
            raise KeyError("seed")

    with pytest.raises(
        InputError, match=r"scheduler Refuses: __init__\(\) raised ValueError: k is too large"
    ):
        nodes_of(Refuses, k=3)
    with pytest.raises(InputError, match=r"scheduler Stumbles: start\(\) raised KeyError"):
        nodes_of(Stumbles)
