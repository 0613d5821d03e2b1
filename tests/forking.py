"""Commands in forks of one warm process: a process of its own spends seconds on imports and on loading kernels.

    forks.run("run", "--scheduler", "hawk", cwd=folder)    # or a shell runs: python -S -E ask.py run --scheduler hawk …

`python -m tests.forking SOCKET` is the process that forks: it runs a small emulation first, so that modules and
compiled kernels are there. Each request brings its arguments, folder, environment and standard streams; the answer is
the exit code. Arguments that begin with ``-c`` or ``-`` are a program, as those of ``python``.
"""

from __future__ import annotations

import array
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
CLIENT = """\
import array, json, os, socket, sys
s = socket.socket(socket.AF_UNIX)
s.connect({path!r})
asked = json.dumps({{"argv": sys.argv[1:], "cwd": os.getcwd(), "env": dict(os.environ)}}).encode()
s.sendmsg([len(asked).to_bytes(8, "big")], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [0, 1, 2]))])
s.sendall(asked)
sys.exit(int(s.recv(16) or b"1"))
"""


class Forks:
    """A warm process, and the command by which shells reach it."""

    def __init__(self, folder: Path):
        self.client = folder / "ask.py"
        self._path = path = str(folder / "socket")
        self.client.write_text(CLIENT.format(path=path))
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "utf-8"}
        self._server = subprocess.Popen(
            [sys.executable, "-m", "tests.forking", path], env=environment, cwd=ROOT
        )
        while not os.path.exists(path):
            assert self._server.poll() is None, "the process that forks has ended"
            time.sleep(0.05)

    def run(self, *argv: object, cwd: Path, patience_s: float = 900.0) -> subprocess.CompletedProcess[str]:
        """Run a command in a fork, as `subprocess.run` would run it in a process of its own."""
        asked = json.dumps(
            {"argv": [str(a) for a in argv], "cwd": str(cwd), "env": dict(os.environ)}
        ).encode()
        with (
            tempfile.TemporaryFile("w+", encoding="utf-8") as out,
            tempfile.TemporaryFile("w+", encoding="utf-8") as err,
            open(os.devnull) as nothing,
            socket.socket(socket.AF_UNIX) as server,
        ):
            server.settimeout(patience_s)
            server.connect(self._path)
            streams = array.array("i", [stream.fileno() for stream in (nothing, out, err)])
            server.sendmsg([len(asked).to_bytes(8, "big")], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, streams)])
            server.sendall(asked)
            code = int(server.recv(16))
            printed = []
            for stream in (out, err):
                stream.seek(0)
                printed.append(stream.read())
        return subprocess.CompletedProcess([*map(str, argv)], code, *printed)

    def close(self) -> None:
        """End the process."""
        self._server.terminate()
        self._server.wait()


def serve(path: str) -> None:
    """Fork for each request until the process is ended."""
    _warm_up()
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path + ".new")
    listener.listen()
    os.rename(path + ".new", path)  # a client may come from here on
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        client, _ = listener.accept()
        if os.fork() == 0:
            listener.close()
            _answer(client)
        client.close()


def _answer(client: socket.socket) -> None:
    """Run what a client asks for in a child of this process, and send it the exit code."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    head, ancillary, _, _ = client.recvmsg(8, socket.CMSG_SPACE(3 * array.array("i").itemsize))
    streams = array.array("i", ancillary[0][2])
    asked = b""
    while len(asked) < int.from_bytes(head, "big"):
        asked += client.recv(1 << 16)
    child = os.fork()
    if child == 0:
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
        os._exit(_run(json.loads(asked)))
    _, status = os.waitpid(child, 0)
    client.sendall(str(os.waitstatus_to_exitcode(status)).encode())
    os._exit(0)


def _run(asked: dict[str, Any]) -> int:
    """Return the exit code of the command, or program, of a request."""
    import traceback

    from emu.cli import main
    from tests.composing import compose_only

    os.chdir(asked["cwd"])
    os.environ.clear()
    os.environ.update(asked["env"])
    sys.stdin, sys.stdout, sys.stderr = (open(n, mode, encoding="utf-8") for n, mode in enumerate("rww"))  # noqa: SIM115
    argv = asked["argv"]
    sys.argv = {"-c": argv[:1] + argv[2:], "-": argv}.get(argv[0], ["emu", *argv])
    if argv[0] != "plot":  # whose pictures pages show; tests of reports look at the others
        compose_only(setattr)
    code = 1
    try:
        if argv[0] in ("-c", "-"):
            sys.path.insert(0, "")
            text = argv[1] if argv[0] == "-c" else sys.stdin.read()
            exec(compile(text, "<block>", "exec"), {"__name__": "__main__"})
            code = 0
        else:
            code = main(argv)
    except SystemExit as end:
        code = int(end.code or 0)
    except BaseException:
        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    return code


def _warm_up() -> None:
    """Import what commands use, load the kernels of the schedulers that pages run most, and draw a figure."""
    import pandas as pd  # noqa: F401

    import emu
    import emu.explaining.explain
    import emu.plots
    from emu.cli import commands  # noqa: F401
    from emu.report import report  # noqa: F401
    from emu.report.drawing import new_figure, to_png, to_svg

    small: dict[str, Any] = {"workload_options": {"jobs": 10}, "in_process": True}
    emu.compare(["sparrow", "hawk", "eagle", "central-lwl"], "yahoo", 60, **small)
    figure, _ = new_figure()
    to_svg(figure)
    to_png(figure)


if __name__ == "__main__":
    serve(sys.argv[1])
