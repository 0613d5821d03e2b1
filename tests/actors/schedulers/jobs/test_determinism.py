"""The same seed gives the same bits: however arrays grow, wherever a run pauses, and in a Ray actor."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from emulations import (
    MODERATE,
    OBSERVED,
    SMALL,
    TWINS,
    VARIANTS,
    cases,
    differing,
    digest,
    digests,
    mixed_workload,
    named,
    run_setting,
    setting_of,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.hosting.virtual import emulate
from actors.kernel.queue import make_queue
from actors.kernel.world import make_entries
from actors.schedulers.jobs import build
from actors.schedulers.registry import scheduler_names


@pytest.fixture(scope="module")
def expected() -> dict[str, str]:
    return digests(SMALL)


def test_cases_cover_every_scheduler_there_is() -> None:
    from actors.schedulers.registry import built_in_schedulers

    jobs = {s.name for s in built_in_schedulers() if s.family == "jobs"}  # of coflows: beside this folder
    assert jobs | {"own"} == set(VARIANTS) | set(TWINS)
    assert set(VARIANTS) - {"own"} <= set(scheduler_names("jobs"))


def test_the_same_again(expected: dict[str, str]) -> None:
    assert not differing(expected, digests(SMALL))


def test_growth_changes_nothing(expected: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    grown = 0

    def tiny_queue(seq: np.ndarray, room: int) -> Any:
        nonlocal grown
        grown += 1
        return make_queue(seq, room, 2)

    monkeypatch.setattr(build, "make_queue", tiny_queue)
    monkeypatch.setattr(build, "make_entries", lambda: make_entries(1))
    assert not differing(expected, digests(SMALL))
    assert grown == len(expected)


@pytest.mark.parametrize("most", [1, 7])
def test_where_a_run_pauses_changes_nothing(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    # The host may stop the loop after any number of events.
    from actors.hosting.partition import Partition

    step = Partition._step
    paused = [(name, setting) for name, setting in cases(SMALL) if "varies" in name]
    whole = {name: digest(run_setting(setting, OBSERVED)) for name, setting in paused}
    monkeypatch.setattr(Partition, "_step", lambda self, until: step(self, until, np.int64(most)))
    assert not differing(whole, {name: digest(run_setting(setting, OBSERVED)) for name, setting in paused})


@pytest.mark.parametrize("scheduler", ["random", "sparrow", "hawk", "eagle", "central-lwl", "dist-lwl"])
def test_an_emulation_does_not_change_its_workload(scheduler: str) -> None:
    workload = mixed_workload(20, 1)
    before = workload.fingerprint()
    setting = setting_of(named(scheduler), workload, 4)
    run_setting(setting)
    assert workload.fingerprint() == before
    assert digest(run_setting(setting, OBSERVED)) == digest(run_setting(setting, OBSERVED))


@settings(max_examples=20)
@given(seed=st.integers(0, 2**63 - 1))
def test_any_seed_is_accepted(seed: int) -> None:
    run_setting(setting_of("sparrow", mixed_workload(5, 1), 4, seed=seed))


@pytest.mark.ray
def test_in_a_ray_actor(ray_session: None) -> None:
    wanted = ("sparrow {} varies", "eagle {'least_probes': 3} constant", "own {} constant")
    chosen = {name: setting for name, setting in cases(MODERATE) if name in wanted}
    assert len(chosen) == len(wanted)
    for name, setting in chosen.items():
        here = digest(run_setting(setting, OBSERVED))
        assert digest(emulate(setting, OBSERVED, in_process=False)) == here, name
