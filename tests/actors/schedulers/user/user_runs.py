"""Small runs of schedulers of one's own that probe, and what is left of their objects."""

from typing import Any

import numpy as np
from bounded_runs import steps

import emu
from actors.hosting.partition import Partition
from emu.configuration.plan import configure, prepare
from emu.running.emulation import observe

SMALL: dict[str, Any] = {
    "workload": "yahoo",
    "nodes": 60,
    "workload_options": {"jobs": 40},
    "in_process": True,
    "seed": 3,
}
FAILING = {"dynamics_mtbf": "5 h", "dynamics_mttr": "100 s"}


def ran(scheduler: Any, **settings: Any) -> emu.Result:
    result = emu.run(scheduler, **{**SMALL, "output_tasks": True, **settings})
    assert isinstance(result, emu.Result)
    return result


def started(scheduler: type, **settings: Any) -> Partition:
    """A partition before its first event."""
    plan = prepare(configure({**SMALL, "scheduler": scheduler, "output_tasks": True, **settings}))
    partition = Partition(plan.setting(0), observe(plan, 0, None))
    partition.start()
    return partition


def objects_of(partition: Partition) -> dict[int, Any]:
    """The objects of schedulers, by number."""
    host: Any = partition._answer
    return {actor - partition.world.nodes.size: own for actor, own in host.schedulers.items() if actor >= 0}


def objects(scheduler: type, **settings: Any) -> dict[int, Any]:
    """The objects of a run, by scheduler."""
    partition = started(scheduler, **settings)
    assert partition.run(60.0).done
    return objects_of(partition)


def with_and_without_a_pause(scheduler: type, **settings: Any) -> tuple[Partition, Partition]:
    """A run to its end, and another that went on from a snapshot of it; both have the same ends of tasks."""
    whole, resumed = started(scheduler, **settings), started(scheduler, **settings)
    for _ in steps(whole, 500):
        if whole.world.queue.now[0].events >= 3000:
            break
    resumed.restore(whole.snapshot())
    for partition in (whole, resumed):
        assert partition.run(60.0).done
    ends = [partition.outcome().tasks["finish_ns"] for partition in (whole, resumed)]
    assert np.array_equal(*ends)
    return whole, resumed
