"""Bytes that tasks of an instance of WfFormat send each other: the sizes of the files that they write and read."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

from workloads.readers.report import Report
from workloads.readers.wfcommons_instance import Instance


class Moved(NamedTuple):
    """Bytes that the tasks of an instance read, by stage.

    Attributes
    ----------
    known : bool
        Whether any task names a file. If none does, nothing is known of bytes.
    sent : mapping of (int, int) to float
        Parent stage and child stage, and the bytes between them, where there are files; NaN where not known.
    read : mapping of int to float
        A stage, and the bytes that its tasks read of files that no other task writes, where there are such.
    """

    known: bool
    sent: Mapping[tuple[int, int], float]
    read: Mapping[int, float]

    def between(self, parent: int, child: int) -> float:
        """Return the bytes on an edge, NaN where not known."""
        return self.sent.get((parent, child), 0.0) if self.known else math.nan

    def of_input(self, stage: int) -> float:
        """Return the bytes of input that a stage reads, NaN where not known."""
        return self.read.get(stage, 0.0) if self.known else math.nan


def bytes_moved(instance: Instance, stage_of: Mapping[int, int], report: Report) -> Moved:
    """Return the bytes between stages, and those that stages read of the instance's input.

    `stage_of` has the stage of each task, by their places in the instance.
    """
    writers: dict[str, set[int]] = {}
    for place, task in enumerate(instance.tasks):
        for file in task.writes:
            writers.setdefault(file, set()).add(place)
    sent: dict[tuple[int, int], float] = {}
    read: dict[int, float] = {}
    apart, nameless = 0, set()
    for place, task in enumerate(instance.tasks):
        own = stage_of[place]
        for file in task.reads:
            size, of_file = instance.file_bytes.get(file, math.nan), writers.get(file, set())
            if math.isnan(size):
                nameless.add(file)
            if of_file <= {place}:
                read[own] = read.get(own, 0.0) + size
            elif of_parents := of_file & task.parents:
                edge = (stage_of[min(of_parents)], own)
                sent[edge] = sent.get(edge, 0.0) + size
            else:
                apart += 1
    report.repaired(
        "files that several tasks write: taken as of the first that is a parent of the task that reads",
        sum(len(tasks) > 1 for tasks in writers.values()),
    )
    report.dropped("files read of a task that is no parent of the one that reads: their bytes", apart)
    report.dropped("files of which no size is stated: the bytes where they are read", len(nameless))
    return Moved(bool(writers) or any(task.reads for task in instance.tasks), sent, read)
