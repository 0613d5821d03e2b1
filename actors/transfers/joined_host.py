"""The Python side of runs over a network in which the resource manager, the coordinator, or both, decide in Python."""

import pickle
from typing import Any

from actors.fabric.messages import DECIDE
from actors.kernel.counters import N_STARTED
from actors.scheduler import Host
from workloads.errors import InputError


class JoinedHost(Host):
    """Asks the host whose decision is due, with the world and the state that this one knows.

    Args:
        manager, coordinator: None: it decides in compiled code.
    """

    def __init__(self, manager: Host | None, coordinator: Host | None):
        self._manager, self._coordinator = manager, coordinator
        self._hosts = [host for host in (manager, coordinator) if host is not None]
        self._asked = self._hosts[0]

    def compile(self, world: Any, state: Any) -> None:
        """Compile the functions that the hosts call."""
        if self._manager is not None:
            self._manager.compile(world, state.schedulers)
        if self._coordinator is not None:
            self._coordinator.compile(state.network.world, state.network.coordinator)

    def __call__(self, world: Any, state: Any) -> None:
        """Handle the event in `world.queue.now`."""
        if self._coordinator is not None and world.queue.now[0].kind == DECIDE:
            self._asked = self._coordinator
            self._coordinator(state.network.world, state.network.coordinator)
        elif self._manager is not None:
            self._asked = self._manager
            self._manager(world, state.schedulers)

    def share_done(self, world: Any, state: Any) -> float:
        """Return the share of the tasks that have been started."""
        return float(world.counts[N_STARTED : N_STARTED + 2].sum()) / world.inputs.node.size

    def placed(self, error: InputError) -> InputError:
        """Return an error about what was decided last, with the place of the code that decided."""
        return self._asked.placed(error)

    def save(self) -> bytes:
        """Return the states of the hosts."""
        return pickle.dumps([host.save() for host in self._hosts])

    def load(self, saved: bytes) -> None:
        """Restore the states that `save` returned."""
        for host, of_it in zip(self._hosts, pickle.loads(saved), strict=True):
            host.load(of_it)
