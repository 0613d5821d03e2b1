"""Sessions of the clock `windows` that meet with an accident, once each; imported by processes that tests start."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path

from actors.hosting import ray_windows
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


class WithoutChannels(WindowSession):
    """Where no graph can be compiled."""

    def compile_graph(self) -> None:
        from ray.dag import DAGNode

        def none_here(*_: object, **__: object) -> None:
            raise RuntimeError("no channels")

        DAGNode.experimental_compile = none_here
        super().compile_graph()
