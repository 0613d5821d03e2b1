"""Updates of coflows, beside their examples (`golden/coflows/updates.txt`): who takes them, and how many bytes."""

from __future__ import annotations

from dataclasses import replace

import pytest
from coflow_emulations import TASKS, coflows, instants, setting_of, updated
from emulations import OBSERVED, run_setting

from actors.hosting.partition import Partition
from actors.schedulers.registry import find_scheduler, scheduler_names
from workloads.coflow_updates import MOVE, RESTART, SENDER, make_updates
from workloads.coflow_updates import Row as Update
from workloads.errors import InputError

NS = 1_000_000_000


TWO = coflows((0.0, [(0, 1, 4.0), (2, 1, 3.0)]), ports=4)


def test_the_key_of_a_coflow_is_that_of_what_it_is_now() -> None:
    # Two senders move to one, so that the first coflow is narrower, longer, and as heavy as before.
    pair = [(0.0, [(0, 2, 2.0), (1, 2, 2.0), (0, 3, 2.0), (1, 3, 2.0)]), (0.0, [(4, 0, 3.0), (4, 1, 3.0)])]
    workload = coflows(*pair, ports=5)
    keys = {}
    for scheduler in ("fifo", "scf", "ncf", "lcf"):
        partition = Partition(updated(scheduler, workload, [Update(0.5, 0, MOVE, SENDER, 1, 0)]), TASKS)
        partition.start()
        steps = instants(partition)
        next(steps)
        before = partition.state.key.tolist()
        next(steps)
        keys[scheduler] = (before, partition.state.key.tolist())
    assert keys == {
        "fifo": ([0.0, 1.0], [0.0, 1.0]),
        "scf": ([2.0, 3.0], [4.0, 3.0]),
        "ncf": ([2.0, 1.0], [1.0, 1.0]),
        "lcf": ([8.0, 6.0], [8.0, 6.0]),
    }


def test_schedulers_without_updates_refuse_them() -> None:
    rows = [Update(1.0, 0, RESTART, SENDER, 0)]
    for scheduler in scheduler_names("coflows"):
        setting = replace(setting_of(scheduler, TWO), updates=make_updates(rows, TWO))
        if find_scheduler(scheduler).updatable == "always":
            assert run_setting(setting).counters["coflow_updates"] == 1
            continue
        with pytest.raises(InputError, match=rf"^{scheduler} .*takes? updates of coflows"):
            Partition(setting, OBSERVED)


def test_more_bytes_than_the_counter_holds_are_refused() -> None:
    work = coflows((0, [(0, 1, 1e18)]), ports=2)
    restarts = [Update(1.0 + i, 0, RESTART, SENDER, 0) for i in range(5)]
    assert len(make_updates(restarts[:4], work).coflow) == 4
    with pytest.raises(InputError, match=r"field size_bytes: 5e\+18 bytes may have to be sent again"):
        make_updates(restarts, work)
