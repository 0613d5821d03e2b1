"""The Python side of runs over a network in which a user's resource manager decides."""

from typing import Any

from actors.scheduler import Host, Scheduler
from actors.setting import Setting
from workloads.errors import InputError


class JoinedHost(Host):
    """Asks the host of the resource manager, which sees its own state alone."""

    def __init__(self, scheduler: Scheduler, setting: Setting):
        assert scheduler.host is not None
        self._manager = scheduler.host(setting)

    def compile(self, world: Any, state: Any) -> None:
        """Compile the functions that the host calls, before the run begins."""
        self._manager.compile(world, state.manager)

    def __call__(self, world: Any, state: Any) -> None:
        """Handle the event in `world.queue.now`."""
        self._manager(world, state.manager)

    def share_done(self, world: Any, state: Any) -> float | None:
        """Return the estimated share of all decisions that have been made."""
        return self._manager.share_done(world, state.manager)

    def placed(self, error: InputError) -> InputError:
        """Return an error about what was decided, with the place of the code that decided."""
        return self._manager.placed(error)

    def save(self) -> bytes:
        """Return the state of the host, for a checkpoint."""
        return self._manager.save()

    def load(self, saved: bytes) -> None:
        """Restore the state that `save` returned."""
        self._manager.load(saved)
