"""Memory that processes of one machine share. It has no name: it is gone with the last process, whatever ends that.

One process makes it, the others open it by way of that one's process.
"""

import mmap
import os
from abc import ABC, abstractmethod
from pathlib import Path
from typing import NamedTuple

import numpy as np

from actors.hosting.grouping import Grouping
from actors.hosting.outcome import peak_rss_mb
from actors.hosting.partition import Partition
from actors.kernel.system_calls import CAN_SHARE

WORD_BYTES = 8
NAME = "emu-partitions"  # of the memory in lists of open files


class Place(NamedTuple):
    """Where the shared memory of a run is: an open file of a process."""

    process: int
    file: int

    @property
    def path(self) -> Path:
        """Return the path by which other processes of this user open it."""
        return Path(f"/proc/{self.process}/fd/{self.file}")

    def is_here(self) -> bool:
        """Return whether this process can open it; in another container a process may have the same number."""
        try:
            return os.readlink(self.path).startswith(f"/memfd:{NAME}") and os.access(self.path, os.W_OK)
        except OSError:
            return False

    def open(self) -> np.ndarray:
        """Return its words."""
        with self.path.open("r+b") as file:
            return np.frombuffer(mmap.mmap(file.fileno(), 0), np.int64)


def offer_words(words: int) -> Place:
    """Make so many words that others can open, until this process closes the place's file."""
    file = os.memfd_create(NAME)
    os.ftruncate(file, words * WORD_BYTES)
    return Place(os.getpid(), file)


class SharingPartition(Partition, ABC):
    """One of several partitions, which shares memory with those of its machine.

    `can_share` may be called at any time, all else after `join`. One offers memory, each takes part in it by a method
    `share_memory` of its own, and then the first withdraws it.
    """

    @abstractmethod
    def shared_words(self) -> int:
        """Return how many words the partitions of a machine share."""

    def can_share(self, place: Place | None = None) -> bool:
        """Return whether this process can share memory, and open that of another."""
        return CAN_SHARE and (place is None or place.is_here())

    def offer(self) -> Place:
        """Make the memory that the partitions of this machine share."""
        self._place = offer_words(self.shared_words())
        return self._place

    def withdraw(self) -> None:
        """Close the file of the memory, when all take part: it is gone with the last of them."""
        os.close(self._place.file)

    def memory_mb(self) -> float:
        """Return the most memory this process has held, MiB."""
        return peak_rss_mb()

    @property
    def joined(self) -> Grouping:
        """The grouping that this partition is of."""
        assert self._grouping is not None
        return self._grouping
