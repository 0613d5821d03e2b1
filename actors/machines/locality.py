"""Locality by delay scheduling (Zaharia et al., EuroSys 2010, sections 3.3 and 4.1).

A task whose part of the job's input is on a machine goes before the other tasks of its stage there. A stage without
such a task is passed over on a machine, until its job has waited since it was first passed over; from then on the job
launches anywhere, until it has launched a local task. Stages that read no part of the job's input do not wait, nor do
those whose tasks have homes: these run there alone, without a wait.
"""

import numpy as np

from actors.kernel.compiled import compiled, inlined
from actors.kernel.inputs import is_pushed, local_task, reads_part
from actors.kernel.queue import NEVER, NONE
from actors.machines.dag_world import DagWorld
from actors.machines.manager_state import Manager, Matcher, set_alarm
from actors.machines.runnable import end_of_jobs, make_job_fresh, take_ready

# Of `Matcher.wait_end`: the job launches anywhere, and all machines have been considered since; or it has launched a
# local task, and where it was passed over before that it will be again.
OVER, ENDED_BY_LAUNCH = np.int64(0), NEVER - 1


@inlined
def is_to_be_passed(w: DagWorld, m: Matcher, t: int, node: int, stage: int) -> bool:
    """Whether a stage has no task that may be launched on a machine, as its job waits for local ones."""
    is_waiting = m.locality_wait > 0 and m.wait_end[w.stages.job[stage]] > t
    return is_waiting and reads_part(w.inputs, stage) and local_task(w, stage, node) == NONE


@compiled
def pass_over(w: DagWorld, p: Manager, me: int, t: int, stage: int) -> None:
    """Pass over a stage whose turn it was: its job's wait begins, unless it has begun.

    At its end the manager matches again. With heartbeats the next one of a machine is early enough.
    """
    m, job = p.matcher, w.stages.job[stage]
    if m.wait_end[job] >= ENDED_BY_LAUNCH:
        m.wait_end[job] = t + m.locality_wait
        if w.heartbeat == 0:
            set_alarm(w, p, me, t, m.wait_end[job])


@compiled
def end_waits(w: DagWorld, m: Matcher, band: int, t: int) -> int:
    """Consider the jobs whose wait has ended for all machines; return when the next wait of a job of the band ends."""
    nearest: int = NEVER
    for i in range(m.run.first_job[band], end_of_jobs(m.run, band)):
        job = m.run.jobs[i]
        if m.wait_end[job] == ENDED_BY_LAUNCH:
            m.wait_end[job] = NEVER
            make_job_fresh(m.run, band, job)
        elif m.wait_end[job] > t:
            nearest = min(nearest, m.wait_end[job])
        elif m.wait_end[job] != OVER:
            m.wait_end[job] = OVER
            make_job_fresh(m.run, band, job)
    return nearest


@inlined
def take_task(w: DagWorld, p: Manager, me: int, t: int, band: int, node: int, stage: int) -> int:
    """Return the task of a stage that is launched on a machine: the next one, or with locality first a local one.

    A local one ends its job's wait. Another one begins if the job is passed over on a machine that has room still: the
    manager matches again to find out. With heartbeats the next one of a machine is early enough.
    """
    m, job = p.matcher, w.stages.job[stage]
    local: int = NONE
    if is_pushed(w.inputs, stage):
        local = local_task(w, stage, node)
    elif m.prefers_local and reads_part(w.inputs, stage):
        local = local_task(w, stage, node)
        if local != NONE and m.wait_end[job] != NEVER:
            m.wait_end[job] = NEVER if w.heartbeat > 0 else ENDED_BY_LAUNCH
            if w.heartbeat == 0:
                set_alarm(w, p, me, t, t)
    return take_ready(w, m.run, band, stage, local)
