"""What the description of a job tells its scheduler."""

from actors.kernel.compiled import inlined
from actors.kernel.hints import Bool, Int
from actors.kernel.world import World


@inlined
def is_long(w: World, job: Int) -> Bool:
    """Whether the job is long by its estimate."""
    return w.work.is_long[job] == 1


@inlined
def tasks_of(w: World, job: Int) -> Int:
    """How many tasks the job has."""
    return w.work.end_task[job] - w.work.first_task[job]
