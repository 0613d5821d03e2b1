"""What every scheduler of the registry promises, tried on cases that are drawn from what each declares.

Cases, and the checks of their tables, are those of `emu.testing.check_scheduler`. Only here are the same bits for any
number of partitions, wherever a run pauses, however arrays grow, after checkpoints, compiled and as plain
Python. More cases are in test_many_cases.py; what each parameter changes is in test_parameters.py.
"""

from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest
from bounded_runs import few_events, started, steps
from checkpointing import digest_with_restores
from conformance import (
    CASES,
    NAMES,
    NOT_CONSERVING,
    SCHEDULERS,
    differing,
    digests_of_all,
    invariants_hold,
    no_flow_waits_while_its_ports_idle,
    planned,
    reported,
    tiny_arrays,
    whole,
)
from emulations import OBSERVED, digest, run_setting, run_windows
from python_process import run_python

from actors.hosting import windows
from actors.hosting.outcome import merge_shares
from actors.hosting.partition import Partition
from actors.kernel.compiled import config
from actors.setting import Dynamics
from emu.families.drawn_cases import ALL

OTHER = 2  # the other case that is run in several ways: of DAG jobs it has a network
SAME = [ALL, pytest.param(OTHER, marks=pytest.mark.slow("a second case"))]
DIVISIBLE = [name for name, s in SCHEDULERS.items() if "always" not in s.global_view]


@pytest.mark.parametrize("name", NAMES)
def test_invariants_hold(name: str) -> None:
    for seed in CASES:
        invariants_hold(SCHEDULERS[name], seed)


@pytest.mark.parametrize("seed", SAME)
@pytest.mark.parametrize("name", DIVISIBLE)
def test_the_same_for_any_number_of_partitions(name: str, seed: int | str) -> None:
    setting, one = whole(name, seed)
    outcomes = [run_windows(setting, OBSERVED, partitions) for partitions in (1, 2, 3)]
    assert [found.partitions for found in outcomes] == [1, 2, 3]
    assert digest(outcomes[0]) == digest(one)
    for found in outcomes[1:]:
        assert differing(reported(setting, outcomes[0]), reported(setting, found)) == []
        assert found.delayed == (0, 0, 0)


@pytest.mark.parametrize("seed", SAME)
@pytest.mark.parametrize("name", NAMES)
def test_the_same_again_wherever_a_run_pauses_and_however_arrays_grow(
    name: str, seed: int | str, monkeypatch: pytest.MonkeyPatch
) -> None:
    setting, one = whole(name, seed)
    tiny_arrays(monkeypatch)
    partition = started(setting, OBSERVED)
    for _ in steps(partition, 1 if seed == ALL else 7):
        pass
    assert digest(partition.outcome()) == digest(one)


@pytest.mark.parametrize("seed", SAME)
@pytest.mark.parametrize("name", NAMES)
def test_the_same_after_moves_to_new_partitions(name: str, seed: int | str) -> None:
    setting, one = whole(name, seed)
    found, moves = digest_with_restores(
        setting, seed=1, most=25 if setting.scheduler.family == "coflows" else 100
    )
    assert found == digest(one)
    assert moves > 0


@pytest.mark.parametrize("name", DIVISIBLE)
def test_several_partitions_go_on_from_a_barrier(name: str) -> None:
    setting, one = whole(name, ALL)
    window = windows.window_ns(setting, None)

    def joined() -> tuple[list[Partition], list[bytes]]:
        hosts = [started(setting, OBSERVED) for _ in range(2)]
        grouping = windows.divide(setting, hosts[0].cast(), 2)
        return hosts, [host.join(grouping, k) for k, host in enumerate(hosts)]

    class Stop(Exception):
        pass

    hosts, frames = joined()
    done, stops = 0, 0

    def barrier(message: bytes) -> list[bytes]:
        nonlocal done
        if done == 5:
            raise Stop
        done += 1
        return [host.window(message) for host in hosts]

    while True:
        try:
            windows.Windows(barrier, frames, window, setting).run(math.inf)
            break
        except Stop:
            saved = [host.snapshot() for host in hosts]
            hosts, _ = joined()
            frames = [host.restore(each) for host, each in zip(hosts, saved, strict=True)]
            done, stops = (0, stops + 1) if stops < 3 else (-(10**9), stops)
    outcome = merge_shares(setting, [host.share() for host in hosts])
    assert digest(outcome) == digest(one)
    assert stops > 0


@pytest.mark.parametrize(
    "name", [n for n, s in SCHEDULERS.items() if s.family == "coflows" and n not in NOT_CONSERVING]
)
def test_no_flow_waits_while_both_of_its_ports_idle(name: str) -> None:
    for seed in CASES:
        no_flow_waits_while_its_ports_idle(planned(SCHEDULERS[name], seed))


def test_cases_of_other_seeds_differ() -> None:
    for name in ("hawk", "philae", "drf"):  # of each family
        outcomes = [run_setting(planned(SCHEDULERS[name], seed).setting, OBSERVED) for seed in (0, OTHER)]
        assert digest(outcomes[0]) != digest(outcomes[1])


# Compiled, and in Ray


# Nothing may be compiled in that process, and an index past the end must be an error: otherwise it shows nothing.
PLAIN = """
from actors.kernel.cost import take
from actors.kernel.queue import CURSOR, MESSAGE, copy_message
from actors.kernel.records import records
assert type(take).__name__ == "function"
try:
    copy_message(records(CURSOR, 1), records(MESSAGE, 3), 3)
    raise SystemExit("bounds are not checked")
except IndexError:
    pass
import json, sys
sys.path[:0] = ["tests/actors", "tests"]
from pytest import MonkeyPatch
import conformance
from workloads.errors import InputError
conformance.tiny_arrays(MonkeyPatch())
print(json.dumps(conformance.digests_of_all()))
"""


@pytest.mark.slow("compiles every scheduler")
@pytest.mark.compiled
@pytest.mark.skipif(bool(config.DISABLE_JIT), reason="compares with compiled code")
def test_compiled_as_plain_python_with_bounds_checks_while_arrays_grow() -> None:
    plain = json.loads(run_python(PLAIN, NUMBA_DISABLE_JIT="1"))
    found = digests_of_all()
    assert [name for name in found if found[name] != plain[name]] == []


@pytest.mark.ray
@pytest.mark.parametrize("name", ["sparrow", "eagle", "FewestTasks", "philae", "carbyne"])
def test_the_same_in_a_ray_actor(ray_session: None, name: str) -> None:
    from actors.hosting.runs import emulate

    setting, one = whole(name, OTHER)
    assert digest(emulate(setting, OBSERVED, in_process=False, progress=few_events)) == digest(one)


@pytest.mark.parametrize("seed", [0, 1, 2**63 - 1])
def test_any_seed_is_accepted(seed: int) -> None:
    setting = replace(planned(SCHEDULERS["sparrow"], 5).setting, seed=seed)
    assert (run_setting(setting).finish_ns > 0).all()


def test_nodes_fail_by_draws_and_are_down_as_long_as_repairs_take() -> None:
    """Cases have planned outages, too, behind which drawn ones that never come would hide."""
    dynamics = Dynamics(mtbf_s=30.0, mttr_s=5.0)
    counters = run_setting(replace(planned(SCHEDULERS["sparrow"], OTHER).setting, dynamics=dynamics)).counters
    assert counters["node_failures"] > 5
    assert 1e9 < counters["node_downtime_ns"] / counters["node_failures"] < 15e9
