"""Sessions of the clock `windows` that meet with an accident, once each; imported by processes that tests start."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Sequence
from pathlib import Path

from actors.hosting import ray_windows
from actors.hosting.partition import Progress
from actors.hosting.ray_windows import WindowSession

ray_windows.STALL_S = 1.0


def first_time(what: str) -> bool:
    mark = Path(os.environ["FOLDER"]) / what
    if mark.exists():
        return False
    mark.touch()
    return True


class Unlucky(WindowSession):
    """An actor dies before the graph is built; in the next attempt the graph is never done; then a barrier is lost."""

    def compile_graph(self) -> None:
        import ray

        if first_time("without an actor"):
            ray.kill(self._actors[0])
        elif first_time("without a graph"):
            time.sleep(3600)
        super().compile_graph()

    def _by_graph(self, message: bytes) -> Sequence[bytes]:
        if first_time("without an answer"):
            self._watch.waits = True
            time.sleep(3600)
        return super()._by_graph(message)


class Struck(WindowSession):
    """The process of a partition is killed while another waits for it; in the next attempt it is stopped."""

    def run(self, most_s: float) -> Progress:
        import ray

        for what, how in (("killed", signal.SIGKILL), ("stopped", signal.SIGSTOP)):
            if first_time(what):
                os.kill(ray.get(self._actors[0].__ray_call__.remote(lambda _: os.getpid())), how)
                break
        return super().run(most_s)


class WithoutChannels(WindowSession):
    """Where no memory is shared and no graph can be compiled."""

    def share_memory(self) -> bool:
        return False

    def compile_graph(self) -> None:
        from ray.dag import DAGNode

        def none_here(*_: object, **__: object) -> None:
            raise RuntimeError("no channels")

        DAGNode.experimental_compile = none_here
        super().compile_graph()
