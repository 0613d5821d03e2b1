"""Parameters of schedulers, and the registry that finds schedulers by name, file or class."""

from __future__ import annotations

import importlib.metadata
import pickle
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from emulations import FewestTasks, emulate_small, jobs
from python_process import run_python

from actors.scheduler import Parameter, Scheduler, needs_global_view, resolve_parameters
from actors.schedulers.registry import ENTRY_POINTS, built_in_schedulers, find_scheduler, scheduler_names
from workloads.errors import InputError


def message_of(error: pytest.ExceptionInfo[InputError]) -> str:
    text = str(error.value)
    assert len(text.splitlines()) == 1
    return text


def test_defaults_are_those_of_the_papers() -> None:
    eagle = resolve_parameters(find_scheduler("eagle"), {})
    assert (eagle["probe_ratio"], eagle["least_probes"], eagle["slack"]) == (2.0, 20, 5.0)
    assert (eagle["sticky"], eagle["shortest_first"], eagle["live_progress"]) == (True, True, False)
    hawk = resolve_parameters(find_scheduler("hawk"), {})
    assert (hawk["steal_attempts"], hawk["steal_limit"], hawk["steal_choice"]) == (10, 10_000, "group")
    assert resolve_parameters(find_scheduler("dist-lwl"), {})["heartbeat_s"] == 8.0


@pytest.mark.parametrize("scheduler", built_in_schedulers(), ids=lambda s: s.name)
def test_every_default_is_a_value_of_its_own_kind(scheduler: Scheduler) -> None:
    resolved = resolve_parameters(scheduler, {})
    assert list(resolved) == [p.name for p in scheduler.parameters]
    for p in scheduler.parameters:
        assert p.parse(p.default, scheduler.name) == p.default
        assert p.meaning
        if p.kind == "duration":
            assert p.name.endswith("_s")
    assert scheduler.doc.strip()
    assert {n for n in scheduler.global_view if n != "always"} <= resolved.keys()


@pytest.mark.parametrize(
    ("scheduler", "given", "expected"),
    [
        ("eagle", {"slack": "2.5"}, 2.5),
        ("eagle", {"sticky": "no"}, False),
        ("eagle", {"sticky": True}, True),
        ("eagle", {"least_probes": "12"}, 12),
        ("eagle", {"least_probes": 12.0}, 12),
        ("dist-lwl", {"heartbeat_s": "250 ms"}, 0.25),
        ("hawk", {"steal_choice": "random"}, "random"),
    ],
)
def test_values_are_taken_as_text_too(scheduler: str, given: dict[str, Any], expected: Any) -> None:
    ((name, _),) = given.items()
    resolved = resolve_parameters(find_scheduler(scheduler), given)[name]
    assert resolved == expected
    assert type(resolved) is type(expected)


@pytest.mark.parametrize(
    ("scheduler", "given", "expected"),
    [
        ("eagle", {"slak": 1}, "did you mean 'slack'"),
        ("eagle", {"slack": "much"}, "'much' is not a number"),
        ("eagle", {"slack": float("nan")}, "not a number"),
        ("eagle", {"slack": float("inf")}, "not a number"),
        ("eagle", {"slack": None}, "not a number"),
        ("eagle", {"slack": -1}, "parameter slack of eagle: -1"),
        ("eagle", {"slack": True}, "not a number"),
        ("eagle", {"least_probes": 2.5}, "not a whole number"),
        ("eagle", {"least_probes": "2.5"}, "not a whole number"),
        ("eagle", {"least_probes": 0}, "1"),
        ("eagle", {"least_probes": 10**9}, "100000"),
        ("eagle", {"least_probes": 1e400}, "not a whole number"),
        ("eagle", {"sticky": "maybe"}, "neither true nor false"),
        ("eagle", {"sticky": 2}, "neither true nor false"),
        ("sparrow", {"probe_ratio": 0.5}, "probe_ratio of sparrow"),
        ("hawk", {"steal_choice": "all"}, "'all' is not one of its values; known: group, random"),
        ("dist-lwl", {"heartbeat_s": "8 apples"}, "heartbeat_s of dist-lwl"),
        ("central-fifo", {"probe_ratio": 2}, "central-fifo has no parameter 'probe_ratio'"),
    ],
)
def test_wrong_parameters_are_named(scheduler: str, given: dict[str, Any], expected: str) -> None:
    with pytest.raises(InputError) as error:
        resolve_parameters(find_scheduler(scheduler), given)
    text = message_of(error)
    assert expected in text
    assert next(iter(given)) in text


def test_bounds_of_a_share() -> None:
    share = Parameter("part", 0.5, "share", "a part")
    assert share.parse("17%", "x") == 0.17
    with pytest.raises(InputError, match="part of x"):
        share.parse("170%", "x")


def test_parameters_decide_whether_a_scheduler_has_a_global_view() -> None:
    eagle, ideal, sparrow = (find_scheduler(n) for n in ("eagle", "ideal-eagle", "sparrow"))
    assert not needs_global_view(eagle, resolve_parameters(eagle, {}))
    assert needs_global_view(eagle, resolve_parameters(eagle, {"live_progress": True}))
    assert needs_global_view(ideal, resolve_parameters(ideal, {}))
    assert not needs_global_view(sparrow, resolve_parameters(sparrow, {}))


def test_names_are_unique_and_found() -> None:
    names = scheduler_names()
    assert len(set(names)) == len(names)
    assert names[: len(built_in_schedulers())] == tuple(s.name for s in built_in_schedulers())
    for name in names:
        assert find_scheduler(name).name == name
    assert scheduler_names("no such family") == ()


def test_an_unknown_name_gives_the_nearest() -> None:
    with pytest.raises(InputError) as error:
        find_scheduler("eagel")
    assert "did you mean 'eagle'" in message_of(error)
    with pytest.raises(InputError) as error:
        find_scheduler("")
    assert "known: aalo, " in message_of(error)


@pytest.mark.parametrize("scheduler", [*(s.name for s in built_in_schedulers()), FewestTasks])
def test_a_scheduler_travels_and_is_made_again(scheduler: Any) -> None:
    found = find_scheduler(scheduler)
    again = pickle.loads(pickle.dumps(found))
    assert again.name == found.name
    assert again.advance is found.advance
    assert find_scheduler(found) is found


RELAY = """
import pickle, sys
given = pickle.loads(bytes.fromhex("{given}"))
again = pickle.loads(pickle.dumps(given))
own = sys.modules[given.build.__module__].advance
print(given.advance is own, again.advance is own)
"""


@pytest.mark.parametrize("scheduler", ["hawk", "eagle@slack=2", "examples.least_loaded:LeastLoaded"])
def test_a_process_passes_a_scheduler_on_as_it_came(scheduler: str) -> None:
    # The process that starts Ray's actors passes on what it got. A compiled loop that went along would arrive without
    # its disk cache, and each actor would compile it.
    given = pickle.dumps(find_scheduler(scheduler)).hex()
    assert run_python(RELAY.format(given=given)).split() == ["True", "True"]


def entry_point(monkeypatch: pytest.MonkeyPatch, name: str, loaded: Any) -> None:
    """Another package registers a scheduler."""
    entry = SimpleNamespace(name=name, load=lambda: loaded)

    def entry_points(*, group: str = "", name: str | None = None) -> Any:
        if not group:  # numba asks for all, when it compiles first
            return importlib.metadata.EntryPoints()
        return [entry] if group == ENTRY_POINTS and name in (None, entry.name) else []

    monkeypatch.setattr(importlib.metadata, "entry_points", entry_points)


def test_entry_points_are_found_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    entry_point(monkeypatch, "fewest", FewestTasks)
    assert scheduler_names()[-1] == "fewest"
    assert find_scheduler("fewest").name == "fewest"
    outcome = emulate_small("fewest", jobs((0, [1, 1])), 2)
    assert outcome.tasks is not None
    assert outcome.tasks["node"].tolist() == [0, 1]
    with pytest.raises(InputError, match="did you mean 'fewest'"):
        find_scheduler("fewst")


def test_an_entry_point_may_be_a_scheduler_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    entry_point(monkeypatch, "mine", find_scheduler("sparrow"))
    assert find_scheduler("mine").advance is find_scheduler("sparrow").advance


def test_an_entry_point_is_listed_with_its_family(monkeypatch: pytest.MonkeyPatch) -> None:
    entry_point(monkeypatch, "fewest", FewestTasks)
    assert scheduler_names("jobs")[-1] == "fewest"
    assert "fewest" not in scheduler_names("coflows")
    entry_point(monkeypatch, "shortest", find_scheduler("sebf"))
    assert scheduler_names("coflows")[-1] == "shortest"
    assert "shortest" not in scheduler_names("jobs")


def test_an_entry_point_that_cannot_be_loaded_is_of_no_family(monkeypatch: pytest.MonkeyPatch) -> None:
    entry_point(monkeypatch, "broken", object())
    assert "broken" in scheduler_names()
    assert "broken" not in (*scheduler_names("jobs"), *scheduler_names("coflows"))


def test_an_entry_point_that_raises_is_listed_with_the_reason(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from emu.cli import main

    def load() -> None:
        raise RuntimeError("no licence")

    entry = SimpleNamespace(name="theirs", value="package.module:Theirs", load=load)
    monkeypatch.setattr(
        importlib.metadata,
        "entry_points",
        lambda *, group="", name=None: [entry] if group == ENTRY_POINTS and name in (None, "theirs") else [],
    )
    with pytest.raises(
        InputError, match=r"scheduler theirs: package\.module:Theirs: RuntimeError: no licence"
    ):
        find_scheduler("theirs")
    assert "theirs" not in scheduler_names("jobs")
    assert main(["schedulers"]) == 0
    (row,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("theirs")]
    assert "cannot be loaded" in row
    assert "no licence" in row


def test_an_entry_point_cannot_take_a_built_in_name(monkeypatch: pytest.MonkeyPatch) -> None:
    entry_point(monkeypatch, "eagle", FewestTasks)
    assert find_scheduler("eagle").hybrid
    assert scheduler_names().count("eagle") == 1


OWN = '''
import numpy as np

class LastNode:
    """Everything to the last node."""

    def __init__(self, node=None):
        self.node = node

    def start(self, num_nodes, seed):
        self.node = num_nodes - 1

    def place(self, job, nodes):
        return np.full(job.num_tasks, self.node)

class Nothing:
    pass
'''


def test_a_class_in_a_file(tmp_path: Path) -> None:
    path = tmp_path / "own policy.py"
    path.write_text(OWN)
    found = find_scheduler(f"{path}:LastNode")
    assert (found.name, found.title) == ("LastNode", "Everything to the last node.")
    outcome = emulate_small(found, jobs((0, [1, 1, 1])), 4)
    assert outcome.tasks is not None
    assert outcome.tasks["node"].tolist() == [3, 3, 3]


def test_a_class_in_a_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own_policy_module.py").write_text(OWN)
    monkeypatch.syspath_prepend(tmp_path)
    assert find_scheduler("own_policy_module:LastNode").name == "LastNode"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("LastNod", "did you mean 'LastNode'"),
        ("Nothing", "no method place"),
        ("", "LastNode"),
    ],
)
def test_a_wrong_name_in_a_file_is_named(tmp_path: Path, name: str, expected: str) -> None:
    path = tmp_path / "own.py"
    path.write_text(OWN)
    with pytest.raises(InputError) as error:
        find_scheduler(f"{path}:{name}")
    assert expected in message_of(error)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (None, "missing.py"),
        ("def place(:\n", "must be Python"),
        ("import a_module_that_is_not_there", "a_module_that_is_not_there"),
        ("raise RuntimeError('no licence')", "no licence"),
    ],
)
def test_a_file_that_cannot_be_loaded_is_named(tmp_path: Path, text: str | None, expected: str) -> None:
    path = tmp_path / "missing.py"
    if text is not None:
        path.write_text(text)
    with pytest.raises(InputError) as error:
        find_scheduler(f"{path}:Own")
    assert expected in message_of(error)
    assert "missing.py" in str(error.value)
    with pytest.raises(InputError, match="no_such_module"):
        find_scheduler("no_such_module:Own")


class Fixed:
    """Returns what it was given."""

    def __init__(self, ids: Any):
        self.ids = ids

    def place(self, job: Any, nodes: Any) -> Any:
        return self.ids


@pytest.mark.parametrize("ids", [[1, 2], (1, 2), np.array([1, 2], np.uint8), np.array([1, 2], np.int32)])
def test_node_ids_may_be_any_whole_numbers(ids: Any) -> None:
    outcome = emulate_small(Fixed(ids), jobs((0, [1, 1])), 3)
    assert outcome.tasks is not None
    assert outcome.tasks["node"].tolist() == [1, 2]


@pytest.mark.parametrize(
    ("ids", "expected"),
    [
        ([0], "2 whole numbers"),
        ([0, 1, 2], "2 whole numbers"),
        ([[0, 1]], "2 whole numbers"),
        (None, "2 whole numbers"),
        ([0.0, 1.0], "float64"),
        ([True, False], "bool"),
        (["a", "b"], "2 whole numbers"),
        ([0, 3], "node 3 for job 0; node ids are 0 to 2"),
        ([-1, 0], "node -1 for job 0"),
        (np.array([0, 2**64 - 1], np.uint64), "node 18446744073709551615"),
    ],
)
def test_wrong_node_ids_are_named(ids: Any, expected: str) -> None:
    with pytest.raises(InputError) as error:
        emulate_small(Fixed(ids), jobs((0, [1, 1])), 3)
    assert expected in message_of(error)
    assert "scheduler Fixed" in str(error.value)


def test_an_error_in_place_is_the_users_to_see() -> None:
    class Breaks:
        def place(self, job: Any, nodes: Any) -> Any:
            raise KeyError("lost")

    with pytest.raises(InputError) as error:
        emulate_small(Breaks, jobs((0, [1, 1])), 3)
    assert "KeyError" in message_of(error)
    assert "test_policy.py" in str(error.value)


def test_what_a_scheduler_is_shown_cannot_be_changed() -> None:
    class Meddles:
        def place(self, job: Any, nodes: Any) -> Any:
            for column in (nodes.work_left_s, nodes.tasks, nodes.slots):
                assert not column.flags.writeable
            return np.zeros(job.num_tasks, np.int64)

    emulate_small(Meddles, jobs((0, [1]), (1, [1])), 2)


def test_each_emulation_makes_an_object_of_a_class_and_copies_an_object() -> None:
    class Counts:
        seen = 0

        def place(self, job: Any, nodes: Any) -> Any:
            self.seen += 1
            assert self.seen == job.job_id + 1
            return [0] * job.num_tasks

    own = Counts()
    for scheduler in (Counts, Counts, own, own):
        emulate_small(scheduler, jobs((0, [1]), (1, [1])), 2)
    assert own.seen == 0
