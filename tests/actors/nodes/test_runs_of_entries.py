"""Alike entries of a queue that are kept as one run give the same bits as entries each by itself."""

from __future__ import annotations

import pytest
from bounded_runs import finish, started, steps
from emulations import OBSERVED, SMALL, VARIANTS, cases, digest, jobs, setting_of
from hard_settings import settings_of
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.hosting.outcome import Outcome
from actors.hosting.partition import Partition
from actors.kernel.compiled import config
from actors.kernel.queue import NONE
from actors.nodes.waiting import length_of
from actors.setting import Setting

EXAMPLES = 8 if config.DISABLE_JIT else 25


def run(setting: Setting, runs: int) -> Outcome:
    partition = Partition(setting, OBSERVED)
    partition.world = partition.world._replace(rules=partition.world.rules._replace(runs=runs))
    partition.start()
    return finish(partition).outcome()


@pytest.mark.slow("many drawn cases")
@pytest.mark.parametrize("scheduler", sorted(VARIANTS))
def test_in_every_case(scheduler: str) -> None:
    for name, setting in cases(SMALL):
        if name.split()[0] == scheduler and setting.scheduler.name != "yacc-d":
            assert digest(run(setting, 1)) == digest(run(setting, 0)), name


@pytest.mark.parametrize("scheduler", ["sparrow", "hawk", "eagle", "dist-lwl", "phoenix"])
def test_in_hard_settings(scheduler: str) -> None:
    @settings(max_examples=EXAMPLES, deadline=None)
    @given(data=st.data())
    def check(data: st.DataObject) -> None:
        setting = data.draw(settings_of(scheduler))
        assert digest(run(setting, 1)) == digest(run(setting, 0))

    check()


@pytest.mark.parametrize("scheduler", ["eagle", "sparrow", "dist-lwl", "hawk"])
@pytest.mark.parametrize("cutoff_s", [0.0, 100.0])
def test_of_a_job_of_many_tasks_a_queue_has_a_few_runs(scheduler: str, cutoff_s: float) -> None:
    """A walk through a queue takes a step for each run, not for each entry."""
    setting = setting_of(
        scheduler, jobs((0.0, [3.0] * 200), (1.0, [2.0])), 4, cutoff_s=cutoff_s, long_partition=0.75
    )
    partition = started(setting, OBSERVED)
    longest, most_runs = 0, 0
    for _ in steps(partition, 20):
        world = partition.world
        for head in world.nodes.head:
            lengths, entry = [], int(head)
            while entry != NONE:
                lengths.append(int(length_of(world.entries, entry)))
                entry = int(world.entries.next[entry])
            longest, most_runs = max(longest, sum(lengths)), max(most_runs, len(lengths))
    assert longest > 40
    assert most_runs <= 6
