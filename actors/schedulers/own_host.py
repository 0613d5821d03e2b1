"""The Python side of an emulation whose scheduler is a user's own object: made, asked, pickled for checkpoints."""

import copy
import traceback
from typing import Any

from actors.schedulers.own_pickle import pickled, unpickled
from workloads.errors import InputError


class OwnHost:
    """A user's scheduler. What it raises becomes one line that names its place."""

    def __init__(self, own: Any, name: str, size: int, seed: int):
        """Make the class anew, or copy the object, and call its `start(size, seed)` if it has one."""
        self.scheduler = own() if isinstance(own, type) else copy.deepcopy(own)
        self.name = name
        if hasattr(self.scheduler, "start"):
            self.scheduler.start(size, seed)

    def ask(self, method: str, *arguments: Any, about: str = "") -> Any:
        """What a method of the user's returns; `about` says in an error what it was asked about."""
        try:
            return getattr(self.scheduler, method)(*arguments)
        except Exception as error:  # whatever a user's code raises is theirs to see, with its place
            where = traceback.extract_tb(error.__traceback__)[-1]
            raise InputError(
                f"scheduler {self.name}: {method}() raised {type(error).__name__}: {error}{about}",
                file=where.filename,
                line=where.lineno,
            ) from error

    def share_done(self, world: Any, state: Any) -> float:
        """The share of all that the scheduler will be asked that it has been asked, 0..1, as far as one can tell."""
        raise NotImplementedError

    def save(self) -> bytes:
        """The scheduler as it is now.

        Raises:
            InputError: it holds what cannot be pickled.
        """
        try:
            return pickled(self.scheduler)
        except Exception as error:  # pickle and a user's __getstate__ raise what they like
            raise InputError(
                f"scheduler {self.name} cannot be pickled for a checkpoint ({type(error).__name__}: {error}); give it"
                " a __getstate__ that leaves out what cannot, or run with --set checkpoint.period=never"
            ) from None

    def load(self, saved: bytes) -> None:
        """Take up the scheduler that `save` saved."""
        self.scheduler = unpickled(saved, type(self.scheduler))
