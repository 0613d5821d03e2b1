"""Runs over a network in several partitions: one has the network and all machines, the others have schedulers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from actors.hosting.choosing import choose_partitions
from actors.hosting.grouping import BESIDE_NETWORK
from actors.hosting.partition import Partition
from actors.hosting.recorded import read_events
from actors.hosting.recording import Recording
from actors.hosting.windows import check_partitions, divide
from actors.setting import Costs, Network, Setting
from tests.actors.dag_settings import mixed_dags, with_bytes
from tests.actors.dag_settings import setting_of as dag_setting
from tests.actors.transfers.failing_runs import failing, outages
from tests.actors.transfers.own_coordinators import Smallest
from tests.actors.transfers.runs import MACHINES
from tests.actors.transfers.runs import over as joined
from tests.emulations import OBSERVED, digest, run_setting, run_windows
from workloads.errors import InputError

pytestmark = pytest.mark.slow("many partitions")

DELAY_S = 0.05
WORK = with_bytes(mixed_dags(), 3)


def over(network: Any, scheduler: Any = "drf", work: Any = WORK, **given: Any) -> Setting:
    return joined(network, work, scheduler=scheduler, delay_s=DELAY_S, **given)


def staged(scheduler: str, work: Any, network: str, delay_s: float) -> Setting:
    given = {"short_cutoff_s": 3.0, "long_partition": 0.8, "delay_s": delay_s}
    return joined(network, work, MACHINES, scheduler, **given)


def switched(setting: Setting, **given: Any) -> Setting:
    return replace(setting, switch=replace(setting.switch, **given))


def with_outages(setting: Setting, seed: int = 1) -> Setting:
    return failing(setting, outages(np.random.default_rng(seed), 60.0), 0.5)


# Further networks, with every scheduler of DAG jobs: tests/actors/test_conformance.py
CASES: dict[str, Callable[[], Setting]] = {
    "three managers": lambda: over("sebf", managers=3),
    "a coordinator of one's own": lambda: over(Smallest),
    "costs": lambda: over("saath", "tetris", managers=2, costs=Costs("fixed", per_message_s=0.01)),
    "delays that differ": lambda: replace(over("fair", managers=2), network=Network(0.02, spread_s=0.05)),
    "pushed coflows": lambda: switched(over("sebf", managers=3), shuffle="push"),
    "failures": lambda: with_outages(over("fair", managers=3)),
    "failures and coflows": lambda: with_outages(over("sebf", managers=2), 2),
    "sparrow": lambda: staged("sparrow", WORK, network="fair", delay_s=DELAY_S),
    "eagle and coflows": lambda: staged("eagle", WORK, network="philae", delay_s=DELAY_S),
    "sparrow and failures": lambda: with_outages(staged("sparrow", WORK, network="fair", delay_s=DELAY_S), 2),
    "random, coflows and failures": lambda: with_outages(
        staged("random", WORK, network="sebf", delay_s=DELAY_S), 2
    ),
    "central-lwl": lambda: staged("central-lwl", WORK, network="sebf", delay_s=DELAY_S),
}


@pytest.mark.parametrize("case", CASES)
def test_results_are_those_of_one_partition(case: str) -> None:
    setting = CASES[case]()
    whole = run_setting(setting, OBSERVED)
    schedulers = Partition(setting, OBSERVED, whole=False).cast().probe_schedulers
    for partitions in {1, 2, min(schedulers, 3) + 1}:
        found = run_windows(setting, OBSERVED, partitions)
        assert found.partitions == partitions
        assert digest(found) == digest(whole), f"{partitions} partitions"
        assert found.delayed == (0, 0, 0)
        if setting.dynamics.outages is not None:
            assert whole.counters["run_again"] > 0


@pytest.mark.parametrize(
    "case", ["three managers", "costs", "pushed coflows", "failures", "delays that differ"]
)
def test_recorded_events_have_the_order_of_one_partition(case: str, tmp_path: Path) -> None:
    setting, found = CASES[case](), []
    for partitions in (1, 2):
        folder = tmp_path / str(partitions)
        folder.mkdir()
        recording = Recording(folder)
        run = run_windows if partitions > 1 else run_setting
        run(setting, replace(OBSERVED, events=recording), *([partitions] if partitions > 1 else []))
        columns = zip(*read_events(recording, setting), strict=True)
        found.append([np.concatenate(column) for column in columns])
    for one, other in zip(*found, strict=True):
        assert np.array_equal(one, other)


@pytest.mark.parametrize("network", ["fair", "sebf", "none"])
def test_a_failure_after_the_last_end_changes_nothing(network: str) -> None:
    work = with_bytes(mixed_dags(jobs=4, seed=3), 3)
    setting = dag_setting("drf", work, MACHINES, network=Network(DELAY_S), managers=2)
    setting = setting if network == "none" else over(network, work=work, managers=2)
    end_s = run_setting(failing(setting, [(0, 5000.0, 5001.0)], 1.0)).finish_ns.max() / 1e9
    for after_s in (0.001, 0.02, 0.06, 0.09, 0.11, 0.3):
        late = failing(setting, [(0, end_s + after_s, end_s + after_s + 1.0)], 0.0)
        assert digest(run_windows(late, OBSERVED, 3)) == digest(run_setting(late, OBSERVED)), after_s


def test_messages_that_are_late_by_a_quantum_are_counted() -> None:
    found = run_windows(over("fair", managers=2), OBSERVED, 3, quantum_s=0.5)
    late, _, most_ns = found.delayed
    assert late > 0
    assert 0 < most_ns < 500_000_000


def test_one_partition_has_the_network_and_all_machines() -> None:
    setting = over("sebf", managers=3)
    cast = Partition(setting, OBSERVED, whole=False).cast()
    assert (cast.nodes, cast.probe_schedulers, cast.probes_share) == (5, 3, BESIDE_NETWORK)
    described = [[divide(setting, cast, k).describe(i) for i in range(k)] for k in (1, 2, 4)]
    assert described == [
        ["the network of 5 nodes, 3 schedulers"],
        ["3 schedulers", "the network of 5 nodes"],
        ["1 scheduler", "1 scheduler", "1 scheduler", "the network of 5 nodes"],
    ]
    *_, last = (divide(setting, cast, 4).hosted(k) for k in range(4))
    assert last == (range(5), range(8, 9))  # the coordinator is the actor after the managers
    with pytest.raises(InputError, match=r"^--partitions: 5 partitions for one network .* the most is 4$"):
        check_partitions(setting, 5)
    assert choose_partitions(setting, 50_000_000)[0] == 1
