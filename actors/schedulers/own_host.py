"""The Python side of an emulation whose scheduler is a user's own object: made, asked, pickled for checkpoints."""

import copy
import traceback
from abc import ABC, abstractmethod
from typing import Any

from actors.schedulers.own_parameters import make_own
from actors.schedulers.own_pickle import pickled, unpickled
from workloads.errors import InputError


class OwnHost(ABC):
    """A user's scheduler. What it raises becomes one line that names its place."""

    def __init__(self, own: Any, setting: Any):
        """Make an object of the class, or copy the object, and call its `start(nodes or ports, seed)` if it has one."""
        self.name = setting.scheduler.name
        if isinstance(own, type):
            try:
                self.scheduler = make_own(own, setting.parameters)
            except Exception as error:  # whatever a user's code raises is theirs to see, with its place
                raise self._raised("__init__", error) from error
        else:
            self.scheduler = copy.deepcopy(own)
        if hasattr(self.scheduler, "start"):
            self.ask("start", *self.start_arguments(setting))

    def start_arguments(self, setting: Any) -> tuple[Any, ...]:
        """Return what `start` gets: the number of nodes or ports, and the seed."""
        return setting.cluster.num_nodes, setting.seed

    def ask(self, method: str, *arguments: Any, about: str = "") -> Any:
        """Call a method of the user's scheduler, and return its result; `about` says in an error what it was for."""
        try:  # thousands of times a second, so without another call in between
            return getattr(self.scheduler, method)(*arguments)
        except Exception as error:  # as above
            raise self._raised(method, error, about) from error

    def _raised(self, method: str, error: Exception, about: str = "") -> InputError:
        """Return what a user's code has raised, with its place."""
        where = traceback.extract_tb(error.__traceback__)[-1]
        text = f"scheduler {self.name}: {method}() raised {type(error).__name__}: {error}{about}"
        return InputError(text, file=where.filename, line=where.lineno)

    @abstractmethod
    def share_done(self, world: Any, state: Any) -> float:
        """Return the estimated share of all calls to the scheduler that have been made, 0 to 1."""

    def save(self) -> bytes:
        """Return the user's scheduler, pickled.

        Raises:
            InputError: the scheduler holds something that cannot be pickled.
        """
        try:
            return pickled(self.scheduler)
        except Exception as error:  # pickle and a user's __getstate__ raise what they like
            raise InputError(
                f"scheduler {self.name} cannot be pickled for a checkpoint ({type(error).__name__}: {error}); give it"
                " a __getstate__ that leaves out what cannot, or run with --set checkpoint.period=never"
            ) from None

    def load(self, saved: bytes) -> None:
        """Restore the scheduler that `save` saved."""
        self.scheduler = unpickled(saved, type(self.scheduler))
