"""What every scheduler of jobs does for the jobs it owns: take arrivals, hand out tasks, book completions.

Late binding (Sparrow, SOSP'13, section 3.4): a probe reserves a place in a node's queue; which task runs
there is settled when its turn comes, in the order in which the tasks stand in the workload.
"""

from actors.kernel.compiled import inlined
from actors.kernel.queue import ARRIVAL, NO_TASK, TASK, send, wake
from actors.kernel.world import N_ARRIVED, N_EMPTY, NONE


@inlined
def next_arrival(w, me, job):
    """Job `job` has arrived: count it, and wait for this scheduler's next one."""
    tasks = w.work.end_task[job] - w.work.first_task[job]
    w.counts[N_ARRIVED + w.work.report_class[job]] += tasks
    following = w.work.next_job[job]
    if following != NONE:
        wake(w, w.work.submit[following], me, ARRIVAL, following, NONE, NONE)
    return tasks


@inlined
def on_request(w, t, me, job, node):
    """A probe's turn has come at `node`: give it the job's next task, or say that there is none."""
    task, end, kind = w.jobs.next_task[job], w.work.end_task[job], NO_TASK
    if task < end:
        w.jobs.next_task[job] = task + 1
        kind = TASK
    else:
        w.counts[N_EMPTY] += 1
    send(w, t, me, node, kind, job, task, end - task - 1, NONE)


@inlined
def on_done(w, job, start, finish):
    """A task ended: book its times in its job."""
    jobs = w.jobs
    jobs.unfinished[job] -= 1
    jobs.start[job] = min(jobs.start[job], start)
    jobs.finish[job] = max(jobs.finish[job], finish)
