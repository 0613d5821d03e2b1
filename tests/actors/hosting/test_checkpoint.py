"""A run that is taken up again from a snapshot, anywhere, gives the same bits; what a policy remembers goes with it."""

from __future__ import annotations

import dataclasses
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bounded_runs import bounded, finish
from checkpointing import digest_with_restores, started
from emulations import OBSERVED, digest, mixed_workload, named, run_setting, setting_of

from actors.hosting.snapshot import Refused
from actors.kernel.compiled import config
from actors.kernel.queue import NEVER, make_queue
from actors.nodes.world import make_entries
from actors.schedulers.jobs import build
from actors.setting import Costs
from workloads.errors import InputError


@pytest.mark.skipif(bool(config.DISABLE_JIT), reason="nothing is compiled")
def test_nothing_is_compiled_again_after_a_restore(monkeypatch: pytest.MonkeyPatch) -> None:
    from numba.core.dispatcher import Dispatcher

    def signatures() -> dict[str, int]:
        modules = [m for name, m in sys.modules.items() if name.startswith("actors.")]
        found = [v for module in modules for v in vars(module).values() if isinstance(v, Dispatcher)]
        return {f"{d.__module__}.{d.__name__}": len(d.signatures) for d in found}

    setting = setting_of("dist-lwl", mixed_workload(40, 2), 5, heartbeat_s=3)
    monkeypatch.setattr(build, "make_queue", lambda seq, room, **_: make_queue(seq, room, 2))
    monkeypatch.setattr(build, "make_entries", lambda: make_entries(1))
    partition = started(setting)
    small = partition.world.entries.size
    with np.errstate(over="ignore"):
        for _ in range(30):
            partition._step(int(NEVER), np.int64(20))
    assert partition.world.entries.size > small  # what has grown is replaced
    saved = partition.snapshot()
    before = signatures()
    again = started(setting)
    again.restore(saved)
    finish(again)
    assert signatures() == before
    assert digest(again.outcome()) == digest(run_setting(setting, OBSERVED))


def test_what_is_known_by_two_names_stays_one() -> None:
    setting = setting_of("dist-lwl", mixed_workload(20, 2), 5, heartbeat_s=3)
    saved = started(setting).snapshot()
    partition = started(setting)
    partition.restore(saved)
    world, state = partition.world, partition.state
    assert np.shares_memory(world.queue.seq, world.nodes)
    assert state.short.ledger.work is state.long.ledger.work


def test_a_snapshot_of_another_setting_is_refused() -> None:
    workload = mixed_workload(20, 2)
    saved = started(setting_of("sparrow", workload, 5)).snapshot()
    with pytest.raises(Refused, match=r"has other arrays|has shape|is .* here"):
        started(setting_of("hawk", workload, 5)).restore(saved)
    with pytest.raises(Refused, match=r"world\.network\.seed is 1 here and 0 there"):
        started(setting_of("sparrow", workload, 5, seed=1)).restore(saved)


def test_measured_costs_survive_a_move() -> None:

    setting = setting_of(named("own"), mixed_workload(20, 1), 4)
    setting = dataclasses.replace(setting, costs=Costs("measured"))
    partition, done = started(setting), False
    with np.errstate(over="ignore"):
        for _ in bounded():
            if done:
                break
            done = partition._step(int(NEVER), np.int64(7))
            saved = partition.snapshot()
            partition = started(setting)
            partition.restore(saved)
    outcome = partition.outcome()
    assert (outcome.finish_ns > 0).all()
    # A handler whose clock was another process's would have been charged hours.
    assert outcome.costs["cost"].max() < 60e9
    assert outcome.costs.size == outcome.servers["served"].sum()


# A user's own scheduler.

OWN = """
import numpy as np

class Memory:
    def __init__(self):
        self.seen = 0

class Careful:
    def __init__(self):
        self.memory, self.rng, self.key = Memory(), np.random.default_rng(3), order

    def place(self, job, nodes):
        self.memory.seen += 1
        return self.rng.integers(0, len(nodes.slots), job.num_tasks)

def order(node):
    return node
"""


@pytest.mark.parametrize("known", [True, False], ids=["by its module", "by the wire"])
def test_an_own_scheduler_remembers(known: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "careful.py").write_text(OWN)
    setting = setting_of(f"{tmp_path / 'careful.py'}:Careful", mixed_workload(20, 1), 4)
    whole = digest(run_setting(setting, OBSERVED))
    if not known:  # as in a Ray worker, which has the class and no module
        monkeypatch.delitem(sys.modules, "own_careful")
    assert digest_with_restores(setting, 5)[0] == whole


def test_one_that_cannot_be_pickled_is_said_at_the_first_checkpoint(tmp_path: Path) -> None:
    class Stubborn:
        def __init__(self) -> None:
            self.lock = threading.Lock()

        def place(self, job: Any, nodes: Any) -> list[int]:
            return [0] * job.num_tasks

    setting = setting_of(Stubborn, mixed_workload(20, 1), 4)
    partition = started(setting)
    with pytest.raises(
        InputError, match=r"scheduler Stubborn cannot be pickled .* --set checkpoint.period=never"
    ):
        partition.snapshot()
