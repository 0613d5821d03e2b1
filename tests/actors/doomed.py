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


class WithoutAnActor(WindowSession):
    """An actor dies just before the graph is built, and in the next attempt while it is."""

    def compile_graph(self) -> None:
        import threading

        import ray

        if first_time("before"):
            ray.kill(self._actors[0])
        elif first_time("during"):
            threading.Timer(0.05, ray.kill, self._actors[:1]).start()
        super().compile_graph()


class WithoutAnAnswer(WindowSession):
    """A barrier that nobody is told of."""

    def _by_graph(self, told: bytes) -> Sequence[bytes]:
        if self.windows.at.windows == 0 and self._memory_mb and first_time("stalled"):
            self._watch.waits = True
            time.sleep(3600)
        return super()._by_graph(told)


class WithoutAGraph(WindowSession):
    """Its graph is never done."""

    def compile_graph(self) -> None:
        if first_time("built"):
            time.sleep(3600)
        super().compile_graph()


class WithoutChannels(WindowSession):
    """Where no compiled graph is to be had."""

    def compile_graph(self) -> None:
        from ray.dag import DAGNode

        def none_here(*_: object, **__: object) -> None:
            raise RuntimeError("no channels")

        DAGNode.experimental_compile = none_here
        super().compile_graph()
