"""How many partitions pay: a dense run on several cores takes several, all others one."""

from __future__ import annotations

import re

from emulations import mixed_workload, setting_of

from actors.hosting.choosing import EXCHANGE_US, barrier_us, choose_partitions, expect
from actors.hosting.outcome import Observe
from actors.hosting.partition import Partition
from actors.hosting.windows import window_ns
from actors.setting import Setting
from workloads.catalogue import load_workload


def poisson(tasks: int, mean_task_s: float) -> Setting:
    options = {"jobs": tasks // 100, "tasks_per_job": 100, "nodes": 15_000, "mean_task_s": mean_task_s}
    return setting_of("sparrow", load_workload("poisson", options=options), 15_000)


def test_many_events_a_window_take_as_many_partitions_as_there_are_cores() -> None:
    setting = poisson(9_000_000, 0.1)
    assert choose_partitions(setting, window_ns(setting, None), cores=4)[0] == 4
    assert choose_partitions(setting, window_ns(setting, None), cores=2)[0] == 2
    assert choose_partitions(setting, window_ns(setting, None), cores=1)[0] == 1


def test_few_events_a_window_take_one() -> None:
    setting = poisson(2_000_000, 1000.0)
    partitions, reason = choose_partitions(setting, window_ns(setting, None), cores=4)
    assert partitions == 1
    assert re.match(
        r"--partitions auto: 1; expected are .* in one partition, .* in 2 \(.* windows of", reason
    )


def test_where_one_actor_has_most_of_the_work_others_do_not_help() -> None:
    setting = poisson(9_000_000, 0.1)
    cast = Partition(setting, Observe()).cast()
    window = window_ns(setting, None)
    alone = expect(setting, cast, window, 1, 4).seconds
    assert expect(setting, cast, window, 4, 4).seconds < 0.6 * alone
    one_central = type(cast)(cast.nodes, 1, 0.0, 0.9)
    assert expect(setting, one_central, window, 4, 4).seconds > alone


def test_a_cluster_of_one_node_takes_no_more_than_it_can() -> None:
    setting = setting_of("central-fifo", mixed_workload(20, seed=1), 1)
    partitions, reason = choose_partitions(setting, window_ns(setting, None), cores=8)
    assert partitions == 1
    assert "in 4" not in reason


def test_exchange_between_machines_and_many_partitions_take_time() -> None:
    on_one = [barrier_us(k, k, 1, 1000.0) for k in (2, 8, 32)]
    assert on_one == sorted(on_one)
    assert barrier_us(8, 2, 1, 1000.0) > barrier_us(8, 8, 1, 1000.0)
    on_two, on_eight = barrier_us(64, 64, 2, 1000.0), barrier_us(256, 256, 8, 1000.0)
    assert barrier_us(64, 64, 1, 1000.0) + EXCHANGE_US < on_two < on_eight
    assert barrier_us(64, 64, 2, 9000.0) > on_two  # messages take their time
    setting = poisson(900_000, 0.1)
    cast, window = Partition(setting, Observe(), whole=False).cast(), window_ns(setting, None)
    apart, together = (expect(setting, cast, window, 4, 4, machines) for machines in (2, 1))
    assert apart.windows == together.windows
    assert apart.engine_s > together.engine_s + together.windows * EXCHANGE_US / 1e6
