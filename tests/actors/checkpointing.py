"""What tests of checkpoints and of recovery share; also imported by processes that they start."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from bounded_runs import bounded
from emulations import OBSERVED, digest

from actors.hosting.checkpoint import Checkpoints, Position
from actors.hosting.partition import Partition
from actors.kernel.queue import NEVER
from actors.setting import Setting

IDENTITY = {"emu": "1", "configuration": "abc"}


def checkpoints(
    folder: Path, period_s: float = 0.0, keep: int = 2, messages: list[str] | None = None, **identity: str
) -> Checkpoints:
    messages = [] if messages is None else messages
    return Checkpoints(folder, period_s, keep, {**IDENTITY, **identity}, messages.append)


def started(setting: Setting) -> Partition:
    partition = Partition(setting, OBSERVED)
    partition.start()
    return partition


def digest_with_restores(
    setting: Setting, seed: int, folder: Path | None = None, most: int = 40
) -> tuple[str, int]:
    """The digest of a run that is moved to a new partition at random points, and how often; through files if asked.

    It takes up to `most` events between two of them.
    """
    rng = np.random.default_rng(seed)
    partition, done, moves = started(setting), False, 0
    with np.errstate(over="ignore"):
        for _ in bounded():
            if done:
                break
            done = partition._step(int(NEVER), np.int64(rng.integers(1, most)))
            if rng.random() < 0.4:
                saved = partition.snapshot()
                if folder is not None:
                    disk = checkpoints(folder)
                    disk.save([saved], Position(0.0, 0))
                    found = disk.load()
                    assert found is not None
                    (saved,) = found.snapshots
                partition = started(setting)
                assert partition.restore(saved) == b""
                moves += 1
    return digest(partition.outcome()), moves


def names(folder: Path) -> list[str]:
    return sorted(p.name for p in folder.iterdir())


class Mortal:
    """Ends its own process, once at each of some jobs; `also` names what else dies: the raylet it runs under.

    With "raylet stopped" or "driver stopped", the process that drives Ray, that one is stopped, and nothing dies.
    """

    def __init__(self, folder: Path, at: list[int], also: str = "") -> None:
        self.folder, self.at, self.also = str(folder), at, also

    def place(self, job: Any, nodes: Any) -> np.ndarray:
        import os
        import signal
        import time

        mark = os.path.join(self.folder, str(job.job_id))
        time.sleep(0.02)  # so that there are checkpoints in between
        if job.job_id in self.at and not os.path.exists(mark):
            open(mark, "w").close()
            victim, _, how = self.also.partition(" ")
            if victim:
                pid = os.getppid()  # the raylet, whose parent is the driver
                if victim == "driver":
                    with open(f"/proc/{pid}/stat") as stat:
                        pid = int(stat.read().rpartition(")")[2].split()[1])
                with open(f"/proc/{pid}/cmdline") as command:
                    assert victim in command.read()
                os.kill(pid, signal.SIGSTOP if how else signal.SIGKILL)
            if how:
                time.sleep(3600)  # the run may not end before that is noticed
            os.kill(os.getpid(), signal.SIGKILL)
        return np.resize(np.argsort(nodes.tasks, kind="stable"), job.num_tasks)
