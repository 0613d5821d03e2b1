"""Properties of a job that its scheduler reads from the job's description."""

from actors.kernel.compiled import inlined
from actors.nodes.world import World


@inlined
def is_long(w: World, job: int) -> bool:
    """Whether the job is long by its estimate."""
    return w.work.is_long[job] == 1


@inlined
def tasks_of(w: World, job: int) -> int:
    """Return how many tasks the job has."""
    return w.work.end_task[job] - w.work.first_task[job]
