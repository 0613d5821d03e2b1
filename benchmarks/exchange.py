"""A bare exchange between two machines: each sends the other a frame and waits for its, again and again.

    python -m benchmarks.exchange [--repeats 3] [--only compiled,python]

It takes two minutes on 2 cores, and wants Linux, root and iproute2.

The machines are those of `benchmarks.machines`. Printed are µs an exchange, of a small and of a larger frame, and
medians of repeats that are in turn: over TCP from compiled code, from Python, and by ZeroMQ (where pyzmq is installed);
by a call of one Ray actor by the other; by calls of both by a driver; and over a compiled graph from a driver to both
and back, if this version of Ray has those. The clock `windows` uses the first.
"""

from __future__ import annotations

import importlib.util
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from actors.hosting.ray_session import close, connect
from actors.kernel.compiled import waiting_entry
from actors.kernel.system_calls import READS, ready, receive, send
from benchmarks.machines import ADDRESS, HEAD, OTHER, inside, two_machines
from benchmarks.measuring import ROOT, in_turn, options, show

HERE, THERE, PORT = "10.77.0.1", "10.77.0.2", 6500
SIZES = (64, 4096)  # bytes
BY_SOCKET, BY_RAY = 20_000, 2_000  # exchanges
WARM_UP = 200
SPIN = 20  # looks at a socket before the process sleeps; more take the core from the other machine here


@waiting_entry
def exchange(
    size: int, count: int, connected: int, out: np.ndarray, into: np.ndarray, asked: np.ndarray
) -> int:
    """Exchange `size` bytes `count` times; return how many times it slept."""
    slept = 0
    for _ in range(count):
        if send(connected, out.ctypes.data, size) != size:
            return -1
        got, looks = 0, 0
        while got < size:
            more = receive(connected, into.ctypes.data + got, size - got)
            if more == 0:
                return -1
            if more > 0:
                got += more
            elif looks < SPIN:
                looks += 1
            else:
                asked[0] = connected + READS * 2**32
                ready(asked.ctypes.data, 1, 200_000_000)
                slept += 1
    return slept


def by_compiled(peer: socket.socket, size: int, count: int) -> None:
    """Exchange from compiled code."""
    out, into, asked = (np.zeros(words, np.int64) for words in (size // 8, size // 8, 1))
    done = exchange(*map(np.int64, (size, count, peer.fileno())), out, into, asked)
    assert done >= 0


def by_python(peer: socket.socket, size: int, count: int) -> None:
    """Exchange with the socket module."""
    frame, into = bytes(size), memoryview(bytearray(size))
    for _ in range(count):
        peer.sendall(frame)
        got = 0
        while got < size:
            got += peer.recv_into(into[got:])


def connected(role: str) -> socket.socket:
    """Return the connection of this machine to the other."""
    if role == "head":
        with socket.create_server((HERE, PORT)) as server:
            peer = server.accept()[0]
    else:
        while True:
            try:
                peer = socket.create_connection((HERE, PORT))
                break
            except ConnectionRefusedError:
                time.sleep(0.05)
    peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return peer


def by_zmq(role: str, size: int, count: int) -> float:
    """Exchange with ZeroMQ; return the seconds."""
    import zmq

    with zmq.Context() as context, context.socket(zmq.PAIR) as peer:
        peer.bind(f"tcp://{HERE}:{PORT}") if role == "head" else peer.connect(f"tcp://{HERE}:{PORT}")
        frame = bytes(size)
        for i in range(WARM_UP + count):
            if i == WARM_UP:
                begin = time.perf_counter()
            peer.send(frame)
            peer.recv()
        return time.perf_counter() - begin


def by_socket(means: str, role: str, size: int, count: int) -> float:
    """Exchange over a connection; return the seconds."""
    how = by_compiled if means == "compiled" else by_python
    with connected(role) as peer:
        how(peer, size, WARM_UP)
        begin = time.perf_counter()
        how(peer, size, count)
        return time.perf_counter() - begin


def timed(exchange: Callable[[], Any]) -> float:
    """Return the seconds of BY_RAY exchanges."""
    for _ in range(WARM_UP):
        exchange()
    begin = time.perf_counter()
    for _ in range(BY_RAY):
        exchange()
    return time.perf_counter() - begin


class Party:
    """A Ray actor that answers a frame with another."""

    def window(self, frame: bytes) -> bytes:
        """Answer."""
        return frame

    def call(self, other: Any, size: int) -> float:
        """Exchange with another actor by calls; return the seconds."""
        import ray

        return timed(lambda: ray.get(other.window.remote(bytes(size))))


def by_ray(means: str, size: int) -> float:
    """Exchange between two Ray actors, one on each machine; return the seconds."""
    connect(ADDRESS)  # before Ray is imported, as it agrees on a token
    import ray

    try:
        nodes = {node["NodeManagerAddress"]: node["NodeID"] for node in ray.nodes() if node["Alive"]}
        at = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy
        kind: Any = ray.remote(num_cpus=0)(Party)
        both = [kind.options(scheduling_strategy=at(nodes[ip], soft=False)).remote() for ip in (HERE, THERE)]
        if means == "one calls the other":
            took_s: float = ray.get(both[0].call.remote(both[1], size))
            return took_s
        frame = bytes(2 * size)  # a driver sends the frames of both
        if means == "calls":
            return timed(lambda: ray.get([actor.window.remote(frame) for actor in both]))
        from ray.dag import InputNode, MultiOutputNode

        with InputNode() as message:
            outputs = MultiOutputNode([actor.window.bind(message) for actor in both])
        graph = outputs.experimental_compile()
        took_s = timed(lambda: ray.get(graph.execute(frame)))
        graph.teardown()
        return took_s
    finally:
        close()


ONE = "import sys; from benchmarks.exchange import one; print(one(*sys.argv[1:]))"


def on_both(means: str, size: int) -> float:
    """Return the µs an exchange between processes of both machines takes."""
    command = [sys.executable, "-c", ONE, means, str(size)]
    both = [
        subprocess.Popen(inside(name, [*command, role]), stdout=subprocess.PIPE, text=True, cwd=ROOT)
        for name, role in ((HEAD, "head"), (OTHER, "other"))
    ]
    said = [process.communicate(timeout=120)[0] for process in both]
    return 1e6 * float(said[0]) / BY_SOCKET


def on_ray(means: str, size: int) -> float:
    """Return the µs an exchange between two Ray actors takes."""
    whole = inside(HEAD, [sys.executable, "-c", ONE, means, str(size)])
    done = subprocess.run(whole, capture_output=True, text=True, cwd=ROOT, timeout=300, check=False)
    if done.returncode:
        print(f"{means}: {done.stderr.strip().rpartition(chr(10))[2]}", file=sys.stderr)
        return float("nan")
    return 1e6 * float(done.stdout) / BY_RAY


MEANS: dict[str, Callable[[str, int], float]] = {
    "compiled": on_both,
    "python": on_both,
    "zmq": on_both,
    "one calls the other": on_ray,
    "calls": on_ray,
    "graph": on_ray,
}


def one(means: str, size: str, role: str = "") -> float:
    """Be one of both machines, or the driver of Ray; return the seconds."""
    if MEANS[means] is on_ray:
        return by_ray(means, int(size))
    if means == "zmq":
        return by_zmq(role, int(size), BY_SOCKET)
    return by_socket(means, role, int(size), BY_SOCKET)


def main() -> None:
    """Run the benchmark."""
    asked = options(__doc__, repeats=3, only=tuple(MEANS))
    chosen = [means for means in asked.only if means != "zmq" or importlib.util.find_spec("zmq")]
    with two_machines():
        measures = {(means, size): partial(MEANS[means], means, size) for means in chosen for size in SIZES}
        found = in_turn(asked.repeats, measures)
        rows = [
            [means, *(f"{statistics.median(found[means, size]):.1f}" for size in SIZES)] for means in chosen
        ]
        show("between two machines", [["µs an exchange", *(f"{size} bytes" for size in SIZES)], *rows])


if __name__ == "__main__":
    main()
