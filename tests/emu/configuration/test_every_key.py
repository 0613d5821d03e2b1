"""Every key of the configuration changes what it is about: none is accepted and ignored.

The runs of a case differ in one key. Keys that say where a run is hosted must change nothing, which is checked too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from key_cases import (
    ALONE,
    APART,
    AWARE,
    CASES,
    COFLOWS,
    HEADS,
    HOSTED,
    JOBS,
    OF_COFLOWS,
    WINDOWS,
    cases,
    planner,
    small_jobs,
    with_a_job_that_no_node_can_run,
)

from actors.environment import Pace
from emu.configuration.keys import BY_NAME, KEYS, SHARED
from emu.configuration.plan import Plan
from emu.configuration.replicas import Replica
from emu.results.comparison import Comparison
from emu.results.result import Result
from emu.running.emulation import checkpoints_of, execute, observe
from workloads.errors import InputError

HERE = {"in_process": "true"}


@pytest.fixture(scope="module")
def planned(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Plan]:
    return planner(tmp_path_factory.mktemp("keys"))


@pytest.fixture(scope="module")
def ran(planned: Callable[..., Plan]) -> Callable[..., Result]:
    """Run a plan in this process; equal ones once."""
    done: dict[Any, Result] = {}

    def run(sets: Mapping[str, str]) -> Result:
        key = tuple(sorted(sets.items()))
        if key not in done:
            plan = planned({**sets, **HERE})
            done[key] = execute(plan, 0)
        return done[key]

    return run


def seen(result: Result, moves: str) -> Any:
    """What a case is about, in a form that can be compared."""
    if moves == "summary":
        part = {"jobs", "coflows", "dags"}
        return {name: value for name, value in result.summary.items() if name in part}
    if moves == "events":
        return None if result.events is None else result.events.to_pydict()
    table = {"heads": result.heads, "timeline": result.timeline, "tasks": result.tasks or result.flows}[moves]
    return None if table is None else table.to_pydict()


@pytest.mark.parametrize("name", cases())
def test_every_key_changes_what_it_is_about(name: str, ran: Callable[..., Result]) -> None:
    case, key = cases()[name], name.removesuffix(" of coflows")
    without = {k: v for k, v in case.base.items() if k != key}
    if BY_NAME[key].choices:
        tried = {*case.values, *([] if case.without is ALONE else [BY_NAME[key].default])}
        assert tried >= set(BY_NAME[key].choices), f"try every choice of {key}"
    given = {value: {**without, key: value} for value in case.values}
    if key == "load_by":
        del given["nodes"]["nodes"]  # it is what is found
    if case.without is None and (key in case.base or BY_NAME[key].default not in case.values):
        given["base"] = dict(case.base)
    elif case.without:
        given["by default"] = dict(case.without)
    found = {value: seen(ran(sets), case.moves) for value, sets in given.items()}
    assert len(found) > 1
    same = [f"{a} and {b}" for a, b in combinations(found, 2) if found[a] == found[b]]
    assert not same, f"{key} is accepted and ignored: {'; '.join(same)} give the same {case.moves}"


def test_there_is_a_case_of_every_key() -> None:
    for key in KEYS:
        if key.kind == "table":
            continue
        known = key.name in CASES or key.name in HOSTED or key.name in APART
        assert known, (
            f"no value is tried of the key {key.name}: add a case to CASES of "
            "tests/emu/configuration/key_cases.toml that changes the result, "
            "or the key to HOSTED if it must not change any"
        )
        if key in SHARED and key.name in CASES:
            both = key.name in OF_COFLOWS or f"{key.name} of coflows" in APART
            assert both, f"no value is tried of the key {key.name} with coflows: add a case to OF_COFLOWS"
    assert {*CASES, *OF_COFLOWS, *HOSTED} <= set(BY_NAME)
    assert {name.removesuffix(" of coflows") for name in APART} <= set(BY_NAME)
    for why in APART.values():
        assert set(re.findall(r"`(test_\w+)`", why)) <= set(globals())


# Keys with a test of their own.


def test_seeds_are_runs(planned: Callable[..., Plan]) -> None:
    replicas = [planned({**JOBS, "seeds": n}).replicas for n in "13"]
    assert replicas == [(Replica(1),), (Replica(1), Replica(2), Replica(3))]


def test_infeasible_jobs_are_refused_or_dropped(planned: Callable[..., Plan]) -> None:
    work = with_a_job_that_no_node_can_run(small_jobs())
    with pytest.raises(InputError, match="no node satisfies cores >= 999"):
        planned({**AWARE, "infeasible": "fail"}, work)
    assert planned({**AWARE, "infeasible": "drop"}, work).workload.num_jobs == small_jobs().num_jobs - 1


@pytest.mark.parametrize("base", [JOBS, COFLOWS | {"network.delay": "1 ms"}], ids=["jobs", "coflows"])
def test_keys_that_say_where_a_run_is_hosted_change_nothing(
    base: dict[str, str], planned: Callable[..., Plan], ran: Callable[..., Result], tmp_path: Path
) -> None:
    here = ran(base)
    for partitions in "2", "3":
        shared = ran({**base, **WINDOWS, "partitions": partitions})
        assert shared.summary["windows"]["partitions"] == int(partitions)
        for moves in ("heads", "timeline"):
            assert seen(shared, moves) == seen(here, moves)
        assert shared.counters == here.counters
    kept = {}
    for sets in ({}, {"checkpoint.period": "never"}, {"checkpoint.period": "7 s", "checkpoint.keep": "5"}):
        plan = planned({**base, **HERE, **sets})
        folder = tmp_path / f"{base['scheduler']}{len(kept)}"
        with checkpoints_of(plan, 0, folder, observe(plan, 0, folder)) as checkpoints:
            assert checkpoints is not None
            kept[str(sets)] = (checkpoints.period_s, checkpoints.keep)
        assert seen(execute(plan, 0, out=folder), "heads") == seen(here, "heads")
    assert list(kept.values()) == [(60.0, 2), (float("inf"), 2), (7.0, 5)]


def test_keys_of_ray_reach_it(planned: Callable[..., Plan], monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether, where and how Ray hosts a run; that this changes no bit is held in `test_ray` and `test_conformance`."""
    from actors.hosting import runs, windows

    lines: list[dict[str, Any]] = []

    def host(setting: Any, observe: Any, **given: Any) -> Any:
        lines.append(given)
        raise KeyboardInterrupt

    monkeypatch.setattr(runs, "emulate", host)
    monkeypatch.setattr(windows, "emulate_windows", host)
    for sets in (
        {},
        {"in_process": "true"},
        {"address": "ray://there:1"},
        {**WINDOWS, "windows.transport": "calls", "address": "ray://there:1"},
        {**WINDOWS, "windows.transport": "memory"},
        WINDOWS,
    ):
        with pytest.raises(KeyboardInterrupt):
            execute(planned({**JOBS, **sets}), 0)
    assert [given.get("in_process") for given in lines] == [False, True, False, False, False, False]
    assert [given["address"] for given in lines] == [None, None, "ray://there:1", "ray://there:1", None, None]
    assert [given.get("transport") for given in lines[3:]] == ["calls", "memory", "auto"]


def test_keys_of_the_clock_live_reach_it(
    planned: Callable[..., Plan], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What they do there is held in `test_live` and `test_live_runs`, which take their time."""
    from actors.hosting import live

    actual: dict[str, Any] = {}

    def host(setting: Any, observe: Any, pace: Pace, **given: Any) -> Any:
        actual.update(vars(pace), **given)
        raise KeyboardInterrupt

    monkeypatch.setattr(live, "emulate_live", host)
    for name, value, wanted in (
        ("dilation", "2", 2.0),
        ("live.tick", "5 ms", 0.005),
        ("live.lateness_bound", "1 s", 1.0),
        ("partitions", "3", 3),
        ("in_process", "true", True),
        ("address", "ray://there:1", "ray://there:1"),
    ):
        found = []
        for sets in ({}, {name: value}):
            with pytest.raises(KeyboardInterrupt):
                execute(planned({**JOBS, "clock": "live", **sets}), 0)
            found.append(
                actual[{"live.tick": "tick_s", "live.lateness_bound": "lateness_bound_s"}.get(name, name)]
            )
        assert found[0] != found[1] == wanted


@pytest.mark.parametrize(("base", "other"), [(JOBS, "random"), (COFLOWS, "aalo")], ids=["jobs", "coflows"])
def test_tolerances_move_what_is_equal(base: dict[str, str], other: str, ran: Callable[..., Result]) -> None:
    def equal(**sets: str) -> float:
        names = (base["scheduler"], other)
        compared = Comparison({name: [ran({**base, **sets, "scheduler": name})] for name in names}, "", {})
        share: float = compared.summaries[1]["equal"]["all"]["mean"]
        return share

    usual = equal(**{"tolerance.absolute": "0 s", "tolerance.relative": "0%"})
    assert usual < equal(**{"tolerance.absolute": "0 s", "tolerance.relative": "90%"})
    assert usual < equal(**{"tolerance.absolute": "1 h", "tolerance.relative": "0%"}) == 1.0


@pytest.mark.parametrize("base", [JOBS, COFLOWS], ids=["jobs", "coflows"])
def test_models_of_cost(base: dict[str, str], ran: Callable[..., Result], tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    none = ran({**base, "cost.model": "none"})
    fixed = ran({**base, "cost.model": "fixed", "cost.per_message": "20 ms"})
    measured = ran({**base, "cost.model": "measured"})
    assert none.costs is None
    assert measured.costs is not None
    if base is JOBS:
        assert measured.costs.num_rows == measured.summary["schedulers"]["messages"]
    dear = pa.array([5_000_000] * measured.costs.num_rows, pa.int64())
    pq.write_table(measured.costs.set_column(1, "cost_ns", dear), tmp_path / "dear.parquet")
    pq.write_table(measured.costs, tmp_path / "costs.parquet")
    again, slow = (
        ran({**base, "cost.model": "recorded", "cost.file": str(tmp_path / name)})
        for name in ("costs.parquet", "dear.parquet")
    )
    assert seen(again, HEADS) == seen(measured, HEADS)
    assert again.counters == measured.counters
    tables = [seen(result, HEADS) for result in (none, fixed, slow)]
    assert all(a != b for a, b in combinations(tables, 2))


def test_ports_without_flows(ran: Callable[..., Result]) -> None:
    few, many = ran(COFLOWS), ran({**COFLOWS, "nodes": "9"})
    assert seen(few, HEADS) == seen(many, HEADS)
    assert [r.summary["nodes"] for r in (few, many)] == [4, 9]
    assert seen(few, "timeline") != seen(many, "timeline")  # utilisation is of all ports
