"""A real browser for tests: Chromium without a window, driven by its DevTools protocol over two pipes."""

from __future__ import annotations

import base64
import fcntl
import itertools
import json
import os
import shutil
import signal
import time
from pathlib import Path
from typing import Any

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
NO_BROWSER = "there is no Chromium"
FLAGS = (
    "headless", "no-sandbox", "disable-gpu", "disable-quic", "no-first-run", "disable-background-networking",
    "disable-component-update", "disable-sync", "hide-scrollbars", "remote-debugging-pipe",
)  # fmt: skip
PATIENCE_S = 600.0
READS, WRITES = 3, 4  # where Chromium expects its ends of the pipes


class Browser:
    """A browser with one page.

    Parameters
    ----------
    folder : Path
        For its profile.
    """

    def __init__(self, folder: Path):
        assert CHROMIUM is not None, NO_BROWSER
        its_in, self._out = _pipe()
        self._in, its_out = _pipe()
        nothing = os.open(os.devnull, os.O_RDWR)
        streams = ((nothing, 0), (nothing, 1), (nothing, 2), (its_in, READS), (its_out, WRITES))
        self._pid = os.posix_spawn(
            CHROMIUM,
            [CHROMIUM, *(f"--{flag}" for flag in FLAGS), f"--user-data-dir={folder}"],
            os.environ,
            file_actions=[(os.POSIX_SPAWN_DUP2, ours, its) for ours, its in streams],
        )
        for end in (its_in, its_out, nothing):
            os.close(end)
        self._numbers, self._received = itertools.count(1), b""
        self._session: str | None = None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]

    def call(self, method: str, **parameters: Any) -> Any:
        """Call a method of the protocol, of the page once there is one, and return its result."""
        number = next(self._numbers)
        message = {"id": number, "method": method, "params": parameters}
        asked = message | ({"sessionId": self._session} if self._session else {})
        with open(self._out, "wb", closefd=False) as pipe:
            pipe.write(json.dumps(asked).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == number:
                assert "error" not in answer, answer["error"]
                return answer["result"]

    def _next(self) -> Any:
        while b"\0" not in self._received:
            part = os.read(self._in, 1 << 20)
            assert part, "the browser has ended"
            self._received += part
        first, _, self._received = self._received.partition(b"\0")
        return json.loads(first)

    def open(self, url: str, width: int = 1400, height: int = 900) -> None:
        """Open a page in a window of a size, and wait until it is loaded."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )
        self.call("Page.navigate", url="about:blank")
        self.call("Page.navigate", url=url)
        here = url.partition("#")[0]
        self.wait_for(f"location.href.startsWith({json.dumps(here)}) && document.readyState === 'complete'")

    def evaluate(self, script: str) -> Any:
        """Return the value of an expression on the page; of a promise what it comes to."""
        found = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def wait_for(self, script: str) -> None:
        """Wait until an expression is true."""
        deadline = time.monotonic() + PATIENCE_S
        while not self.evaluate(f"Boolean({script})"):
            assert time.monotonic() < deadline, f"it does not come to be: {script}"
            time.sleep(0.05)

    def screenshot(self, path: Path, whole: bool = False, dark: bool = False) -> None:
        """Write a picture of the window, or of the whole page."""
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        data = self.call("Page.captureScreenshot", captureBeyondViewport=whole)["data"]
        path.write_bytes(base64.b64decode(data))

    def close(self) -> None:
        """End the browser."""
        os.close(self._out)
        os.close(self._in)
        os.kill(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)


def _pipe() -> tuple[int, int]:
    """Return the ends of a pipe, which programs that are started do not inherit, with numbers above `WRITES`."""
    reads, writes = os.pipe()
    moved = fcntl.fcntl(reads, fcntl.F_DUPFD_CLOEXEC, 10), fcntl.fcntl(writes, fcntl.F_DUPFD_CLOEXEC, 10)
    os.close(reads)
    os.close(writes)
    return moved
