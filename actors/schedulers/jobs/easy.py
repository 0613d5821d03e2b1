"""EASY backfilling: first come first served with a reservation for the queue's first job, which no other may delay.

The scheduler of the Argonne SP1 (Lifka), as Mu'alem and Feitelson define it. Jobs are gangs, whose tasks all start at
one instant.

1. A job arrives: it joins the queue of one central scheduler, in order of priority, the largest first, and of arrival.
2. While all tasks of the queue's first job fit on idle slots, they are placed there, and the next job is the first.
3. If the first job does not fit, it gets a reservation. The *shadow time* is when enough slots are expected to be idle,
   by the expected ends of what runs; the *extra* slots are those that will be idle then beyond what the job needs.
4. The jobs behind it are looked at in the order of the queue. One starts now if it fits on idle slots and either is
   expected to end by the shadow time or needs no more than the extra slots, which are then fewer.
5. A node reports a task's end; its slot is idle for the scheduler when the report has arrived.

A job is expected to run as long as its user has requested, where the workload states that (`plan_by`). One that runs
longer goes on, and is expected to end at once: 1 ns from now. The reservation is made again at each decision. All that
happens at one instant is known before the scheduler decides.

**Deviations from the paper.** All slots that are expected to fall idle at the shadow time count for the extra ones,
also those of jobs that end with the last one needed. Reservations count slots, not nodes: of a job that states a number
of nodes, as many slots as it has tasks; while so many are idle, but not on nodes as it needs them, no job passes it. A
job that is no gang (`gangs`) starts its tasks one by one, and each of them may be backfilled. A job is not ended when
it has run as long as requested. To the scheduler a job takes two network delays longer. Failures of nodes are refused,
as a gang that loses a task would have to start again.
"""

from actors.kernel.compiled import compiled, entry
from actors.kernel.cost import take
from actors.kernel.messages import ARRIVAL, read_job
from actors.kernel.queue import RUNNING
from actors.kernel.world import NEVER, NONE, World
from actors.nodes.messages import DISPATCH, DONE
from actors.nodes.worker import node_event
from actors.nodes.worlds import JOB_WORLDS
from actors.scheduler import Scheduler
from actors.schedulers.jobs.gang_ends import row_at
from actors.schedulers.jobs.gangs import (
    GANGS,
    PLAN_BY,
    Gangs,
    build_gangs,
    is_gang,
    note_arrival,
    note_end,
    start,
    start_heads,
    tasks_that_fit,
    tasks_to_start,
)


@compiled
def reserve(p: Gangs, t: int, slots: int) -> tuple[int, int]:
    """Step 3: return when so many slots are expected to be idle, and how many more than these are idle then."""
    ends, idle = p.ends, p.room.total[0]
    shadow, i = t, 0
    while i < ends.span[1]:
        row = row_at(ends, i)
        end = max(ends.rows.end[row], t + 1)
        if idle >= slots and end > shadow:
            break
        shadow = end
        idle += ends.rows.tasks[row]
        i += 1
    return shadow, idle - slots


@compiled
def backfill(w: World, p: Gangs, t: int, me: int, head: int) -> None:
    """Steps 3 and 4: start jobs behind the first one that do not delay it."""
    needs = tasks_to_start(w, head) if is_gang(p, head) else 1
    shadow, extra = reserve(p, t, needs)
    if (
        shadow == t
    ):  # enough slots, but not on nodes as the first job needs them: more fall idle until they are
        return
    job = p.jobs.next[head]
    while job != NONE and p.room.total[0] > 0:
        after = p.jobs.next[job]
        count = tasks_that_fit(w, p, job)
        ends_before = min(t + p.jobs.holds[job], NEVER) <= shadow
        if not ends_before and count > extra:
            count = 0 if is_gang(p, job) else extra
        if count > 0:
            start(w, p, t, me, job, count)
            if not ends_before:
                extra -= count
        job = after


@entry
def advance(w: World, p: Gangs, until: int, most: int) -> int:
    """Handle events before `until`, at most `most` of them; return the stop reason."""
    message = w.queue.now
    for _ in range(most):
        why = take(w, until)
        if why != RUNNING:
            return why
        t, kind, me = message.time[0], message.kind[0], message.dst[0]
        if me < w.nodes.size:
            node_event(w, me)
        elif kind == DONE:
            note_end(w, p, me)
        elif kind == ARRIVAL:
            note_arrival(w, p, me, read_job(w))
        elif kind == DISPATCH:
            p.queue.is_woken[0] = 0
            head = start_heads(w, p, t, me)
            if head != NONE and p.room.total[0] > 0:
                backfill(w, p, t, me, head)
    return RUNNING


EASY = Scheduler(
    name="easy",
    title="gangs, EASY backfilling",
    paper="Lifka: The ANL/IBM SP scheduling system, JSSPP 1995; Mu'alem, Feitelson: Utilization, predictability,"
    " workloads, and user runtime estimates in scheduling the IBM SP2 with backfilling, IEEE TPDS 12(6), 2001",
    parameters=(GANGS, PLAN_BY),
    worlds=JOB_WORLDS,
    build=build_gangs,
    advance=advance,
    gangs=True,
    slots_only=True,
    ignores=(("long_partition", "it treats all jobs alike"),),
    about=__doc__ or "",
)
