"""Several resource managers: each works as one alone would, on its share of the machines and of the jobs."""

from __future__ import annotations

import dataclasses

import numpy as np
import pyarrow as pa
import pytest
from emulations import run_setting

from actors.hosting.outcome import Observe, Outcome
from actors.hosting.partition import Partition
from actors.kernel.queue import IDLE, NEVER
from actors.setting import Dynamics, Network, Setting
from clusters.cluster import Cluster
from clusters.failures import NODE, SCHEDULER, Outages
from tests.actors.dag_settings import mixed_dags, setting_of, unlike_machines
from workloads.errors import InputError
from workloads.transform.primitives import take

MANAGERS = 2
WORKLOAD = mixed_dags(24, seed=5)


def machines() -> Cluster:
    """Two times the five unlike machines, which two managers divide between them."""
    table = unlike_machines().table
    both = pa.concat_tables([table, table])
    return Cluster("ten", both.set_column(0, both.schema.field(0), pa.array(np.arange(10))))


def run(setting: Setting) -> Outcome:
    return run_setting(setting)


@pytest.mark.parametrize(
    "scheduler", ["drf", "capacity", "tetris", "tetris-fair", "srtf", "heft", "dagps", "carbyne"]
)
def test_each_manager_does_what_one_alone_does(scheduler: str) -> None:
    network = Network(0.0)
    whole = run(setting_of(scheduler, WORKLOAD, machines(), network=network, managers=MANAGERS))
    assert whole.tasks is not None
    first_task = WORKLOAD.arrays().first_task
    for manager in range(MANAGERS):
        jobs = np.arange(manager, WORKLOAD.num_jobs, MANAGERS)
        alone = run(setting_of(scheduler, take(WORKLOAD, jobs), unlike_machines(), network=network))
        assert alone.tasks is not None
        tasks = np.concatenate([np.arange(first_task[job], first_task[job + 1]) for job in jobs])
        assert (whole.tasks["start_ns"][tasks] == alone.tasks["start_ns"]).all()
        assert (whole.tasks["node"][tasks] == alone.tasks["node"] + 5 * manager).all()


def test_a_manager_that_fails_holds_up_its_jobs_alone() -> None:
    setting = setting_of("drf", WORKLOAD, machines(), managers=MANAGERS)
    whole = run(setting)
    down = Outages(np.array([SCHEDULER]), np.array([1]), np.array([5.0]), np.array([25.0]))
    failing = run(dataclasses.replace(setting, dynamics=Dynamics(outages=down)))
    assert (failing.finish_ns[0::2] == whole.finish_ns[0::2]).all()
    assert failing.finish_ns[1::2].sum() > whole.finish_ns[1::2].sum()
    assert failing.counters["scheduler_failures"] == 1


def test_what_managers_cannot_do_is_refused() -> None:
    with pytest.raises(
        InputError, match="parameter managers of drf: 11 for 10 machines; want at most one for each"
    ):
        run(setting_of("drf", WORKLOAD, machines(), managers=11))
    for_good = Outages(np.full(5, NODE), np.arange(5), np.ones(5), np.full(5, np.inf))
    halved = dataclasses.replace(
        setting_of("drf", WORKLOAD, machines(), managers=2), dynamics=Dynamics(outages=for_good)
    )
    with pytest.raises(
        InputError, match="all machines of manager 0, 0 to 4, fail for good; one of them must have a"
    ):
        run(halved)
    large = setting_of("drf", WORKLOAD, machines(), managers=10)
    place, cores = (
        WORKLOAD.stages.column_names.index("cpu_cores"),
        pa.array(np.full(WORKLOAD.num_stages, 2.5)),
    )
    stages = WORKLOAD.stages.set_column(place, WORKLOAD.stages.schema.field(place), cores)
    large = dataclasses.replace(large, workload=dataclasses.replace(WORKLOAD, stages=stages))
    with pytest.raises(InputError, match=r"stage \d+, fit on no machine of manager 3, 3 to 3; want fewer"):
        run(large)


@pytest.mark.parametrize("jobs", [1, 2])
def test_machines_of_a_manager_without_jobs_send_no_heartbeats(jobs: int) -> None:
    """Of three managers one, or two, never see a last job end: the run ends all the same."""
    few = take(WORKLOAD, np.arange(jobs))
    setting = setting_of("drf", few, machines(), managers=3, heartbeat_s=1.0)
    partition = Partition(setting, Observe(tasks=True))
    partition.start()
    assert setting.scheduler.advance(partition.world, partition.state, NEVER, np.int64(20_000)) == IDLE
    outcome = partition.outcome()
    machines_with_jobs = sum((3, 3, 4)[:jobs])
    last_s = (outcome.finish_ns.max() - WORKLOAD.arrays().submit_ns[0]) / 1e9
    assert 0 < outcome.counters["heartbeats"] <= machines_with_jobs * (last_s + 2)
