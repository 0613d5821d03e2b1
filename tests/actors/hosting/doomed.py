"""Sessions of the clock `windows` that meet with an accident, once each; imported by processes that tests start."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from actors.hosting.partition import Progress
from actors.hosting.windows import WindowSession


def first_time(what: str) -> bool:
    mark = Path(os.environ["FOLDER"]) / what
    if mark.exists():
        return False
    mark.touch()
    return True


class Unlucky(WindowSession):
    """An actor dies before the first barrier."""

    def plan(self) -> str:
        import ray

        if first_time("without an actor"):
            ray.kill(self.group.partitions[0])
        return super().plan()


class Struck(WindowSession):
    """The process of a partition is killed while another waits for it; in the next attempt it is stopped."""

    def run(self, most_s: float) -> Progress:
        import ray

        for what, how in (("killed", signal.SIGKILL), ("stopped", signal.SIGSTOP)):
            if first_time(what):
                os.kill(ray.get(self.group.partitions[0].__ray_call__.remote(lambda _: os.getpid())), how)
                break
        return super().run(most_s)


class Apart(WindowSession):
    """On machines of which one does not have the address by which the cluster knows it."""

    def _machines(self) -> dict[tuple[str, str], list[int]]:
        return {("here", "127.0.0.1"): [0], ("there", "192.0.2.1"): [1]}
