"""The Python side of an emulation whose scheduler is a user's own object: made, asked, pickled for checkpoints."""

import copy
from abc import abstractmethod
from typing import Any

import numpy as np

from actors.scheduler import Host
from actors.schedulers.user.errors import defined_at, raised
from actors.schedulers.user.parameters import make_own
from actors.schedulers.user.pickling import pickled, unpickled
from workloads.errors import InputError


def first_outside(ids: np.ndarray, count: int) -> int | None:
    """Return the first of some whole numbers that is not from 0 to `count` - 1; None if all are."""
    wrong = ids[(ids < 0) | (ids >= count)]
    return int(wrong[0]) if wrong.size else None


class OwnHost(Host):
    """A user's scheduler. What it raises becomes one line that names its place."""

    def __init__(self, own: Any, setting: Any):
        """Make an object of the class, or copy the object, and call its `start(nodes or ports, seed)` if it has one."""
        self.name = setting.scheduler.name
        self._asked = ""
        method = "__init__" if isinstance(own, type) else "__deepcopy__"
        try:
            self.scheduler = (
                make_own(own, setting.parameters) if isinstance(own, type) else copy.deepcopy(own)
            )
        except BaseException as error:  # whatever a user's code raises is shown, with its place
            raise self._raised(method, error) from error
        if hasattr(self.scheduler, "start"):
            self.ask("start", *self.start_arguments(setting))

    def start_arguments(self, setting: Any) -> tuple[Any, ...]:
        """Return what `start` gets: the number of nodes or ports, and the seed."""
        return setting.cluster.num_nodes, setting.seed

    def ask(self, method: str, *arguments: Any, about: str = "") -> Any:
        """Call a method of the user's scheduler, and return its result; `about` tells in errors what it was for."""
        self._asked = method
        try:  # thousands of times a second, so without another call in between
            return getattr(self.scheduler, method)(*arguments)
        except BaseException as error:  # as above
            raise self._raised(method, error, about) from error

    def array_of(self, answer: Any, kind: Any = None) -> np.ndarray:
        """Return the answer of a user's method as an array; without dimensions if it cannot be made one."""
        try:
            return np.asarray(answer, kind)
        except (TypeError, ValueError, OverflowError):  # such as rows of different lengths
            return np.array(None)
        except BaseException as error:  # as above
            raise self._raised(self._asked, error) from error

    def placed(self, error: InputError) -> InputError:
        """Return an error about what the user's scheduler has answered, with the place of the method."""
        return InputError(error.message, **defined_at(type(self.scheduler), self._asked))

    def _raised(self, method: str, error: BaseException, about: str = "") -> InputError:
        return raised(f"scheduler {self.name}: {method}() raised ", error, about)

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
        except BaseException as error:  # pickle and a user's __getstate__ raise what they like
            if isinstance(error, KeyboardInterrupt):
                raise
            raise InputError(
                f"scheduler {self.name} cannot be pickled for a checkpoint ({type(error).__name__}: {error}); give it"
                " a __getstate__ that leaves out what cannot, or run with --set checkpoint.period=never"
            ) from None

    def load(self, saved: bytes) -> None:
        """Restore the scheduler that `save` saved."""
        self.scheduler = unpickled(saved, type(self.scheduler))
