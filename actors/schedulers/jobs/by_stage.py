"""Schedulers of jobs that run DAG jobs: each stage is a job, which arrives when all tasks of its parents have ended.

So a cluster manager that schedules jobs of independent tasks is used by a framework whose jobs have stages, as Spark
uses Sparrow (SOSP 2013, section 4): the framework submits a stage when its input is there.

1. A stage without parents arrives when its job is submitted. All stages of a job go to one scheduler, and are short or
   long as the job is, by the mean duration of all of its tasks (Hawk, ATC 2015, section 3.3).
2. The scheduler learns of the end of a task one network delay later. When it knows that the last task of the last
   parent of a stage has ended, the stage arrives at that instant, behind all other messages.
3. Over a network a task that has been given a slot, or its demand, fetches its input first, and holds it meanwhile.

**Deviations from the papers.** A task waits for all tasks of its stage's parents, over one-to-one edges too. Remaining
work, by which nodes of Eagle order their queues, is that of the stage. Schedulers know durations of tasks, and not how
long their fetches take.
"""

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from actors.machines.worlds import DagWorlds
from actors.nodes.world import COUNTERS, World
from actors.nodes.worlds import JOB_WORLDS
from actors.scheduler import NO_NETWORK, NO_QUEUES_AT_NODES, Host, Scheduler
from actors.setting import Setting
from workloads.conversion import stages_as_jobs


class _StageWorlds(DagWorlds):
    """Worlds of jobs that are the stages of DAG jobs: what they say of jobs is of those."""

    counters = COUNTERS
    also = JOB_WORLDS.family
    schedulers_share = JOB_WORLDS.schedulers_share
    events_a_part = JOB_WORLDS.events_a_part
    event_ns = JOB_WORLDS.event_ns

    def start_nodes(self, world: World, setting: Setting, own: slice) -> None:
        """Nodes have idle slots and an empty queue."""
        JOB_WORLDS.start_nodes(world, replace(setting, resources=setting.workload.resources), own)

    def needed_bytes(self, setting: Setting) -> tuple[int, int]:
        """What they need as jobs, and what every partition knows of stages."""
        each, together = JOB_WORLDS.needed_bytes(setting)
        return each + super().needed_bytes(setting)[0], together

    def ends(self, world: World, is_here: np.ndarray) -> tuple[np.ndarray, ...]:
        """A DAG job starts with the first of its stages, and ends with the last."""
        stage = np.flatnonzero(is_here)
        jobs, first = np.unique(world.stages.job[stage], return_index=True)
        if jobs.size == 0:
            return jobs, jobs, jobs, jobs
        return (
            jobs,
            np.minimum.reduceat(world.jobs.start[stage], first),
            np.maximum.reduceat(world.jobs.finish[stage], first),
            np.add.reduceat(world.jobs.unfinished[stage], first),
        )

    def evicted(self, world: World) -> np.ndarray | None:
        """Of a DAG job: of all of its stages."""
        found = super().evicted(world)
        if found is None:
            return None
        return np.add.reduceat(found, np.unique(world.stages.job, return_index=True)[1], axis=1)

    def owners(self, world: World) -> dict[str, np.ndarray]:
        """What is a job in messages is a stage."""
        job = world.stages.job
        return {"jobs": job, "tasks": np.repeat(job, np.diff(world.stages.first_task))}


STAGE_WORLDS = _StageWorlds()


def by_stage(scheduler: Scheduler) -> Scheduler:
    """Return a scheduler of jobs as one of DAG jobs, which runs them stage by stage."""
    return replace(
        scheduler,
        worlds=STAGE_WORLDS,
        build=partial(build, scheduler),
        host=None if scheduler.host is None else partial(make_host, scheduler),
        about=scheduler.doc,
        ignores=(
            *(one for one in scheduler.ignores if one[0] != NO_QUEUES_AT_NODES[0]),
            ("overuse", "its nodes start no task that does not fit"),
            ("network.locality_wait", "it sends tasks to nodes wherever their input lies"),
            *NO_NETWORK,
        ),
        remade=(by_stage, (scheduler,)),
    )


def of_stages(scheduler: Scheduler, setting: Setting) -> Setting:
    """Return the setting of a scheduler of jobs, whose jobs are the stages."""
    dag = setting.workload
    return replace(
        setting, scheduler=scheduler, workload=stages_as_jobs(dag), dag=dag, resources=dag.resources
    )


def build(scheduler: Scheduler, setting: Setting) -> tuple[World, Any]:
    """Return the world and the scheduler's state at time 0."""
    built: tuple[World, Any] = scheduler.build(of_stages(scheduler, setting))
    return built


def make_host(scheduler: Scheduler, setting: Setting) -> Host:
    """Return the Python side of a scheduler that has one."""
    assert scheduler.host is not None
    return scheduler.host(of_stages(scheduler, setting))
