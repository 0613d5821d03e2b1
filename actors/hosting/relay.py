"""The connections of the first partition of a machine with those of other machines.

Over one of two it exchanges frames in compiled code (`actors.kernel.relay`); over the other it sends signs of life,
also while it computes. A machine that closes them, or gives no sign for SILENT_S, is lost.
"""

import hashlib
import hmac
import socket
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

import numpy as np

from actors.hosting.interrupts import Lost
from actors.kernel import relay
from actors.kernel.compiled import direct

CONNECT_S = 20.0  # for the connections of all machines to stand
GREET_S = 2.0  # for who connects to say who it is
SILENT_S = 1.5  # without a sign of life; a busy machine gives one in 0.2 to 0.5 s
FRAMES, SIGNS = 0, 1  # what a connection is for


class Address(NamedTuple):
    """Where the first partition of a machine listens."""

    host: str
    port: int


class Relay:
    """The side of one machine.

    Args:
        host: the address of this machine at which the others reach it.
    """

    def __init__(self, host: str):
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._server = socket.create_server((host, 0), family=family, backlog=1024)
        self.address = Address(host, self._server.getsockname()[1])
        self._peers: dict[tuple[int, int], socket.socket] = {}  # by machine and use
        self._heard: dict[int, float] = {}  # when each machine gave its last sign of life
        self._signs = np.zeros(1, np.int64)  # 1 to end the thread, and the sockets for signs
        self._beat = direct(relay.beat, self._signs, np.int64(0))  # compiled before others wait for signs
        self._beats: threading.Thread | None = None

    def connect(
        self,
        machines: Sequence[Sequence[int]],
        here: Sequence[int],
        addresses: Sequence[Address],
        token: bytes,
        frame_size: int,
    ) -> relay.Links:
        """Connect to all other machines, and return the links to them; only who knows the token is let in.

        Args:
            machines: the partitions of each, in order.
            here: those of this machine, one of them.
            addresses: of their relays.
            token: secret of the run.
            frame_size: words of a frame.

        Raises:
            OSError: it cannot connect to one of them within CONNECT_S.
        """
        end, me = time.monotonic() + CONNECT_S, machines.index(here)
        for other in range(me):
            for use in (FRAMES, SIGNS):
                self._peers[other, use] = _greeted(addresses[other], token, me, use, end)
        expected = {(other, use) for other in range(me + 1, len(machines)) for use in (FRAMES, SIGNS)}
        while expected - self._peers.keys():
            self._server.settimeout(_left(end))
            self._admit(self._server.accept()[0], token, expected)
        self._server.close()
        self._first = {other: machine[0] for other, machine in enumerate(machines) if other != me}
        for (_, use), peer in self._peers.items():
            peer.setblocking(False)
            if use == FRAMES:
                peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._heard = dict.fromkeys(self._first, time.monotonic())
        self._begin_to_beat()
        sockets = [self._peers[other, FRAMES].fileno() for other in self._first]
        self._links = relay.make_links(sockets, machines, me, frame_size)
        return self._links

    def _admit(self, peer: socket.socket, token: bytes, expected: set[tuple[int, int]]) -> None:
        """Keep a connection if the peer knows the token and is expected; else close it."""
        with suppress(OSError):
            peer.settimeout(GREET_S)
            hello = _received(peer, len(token) + 2 * relay.WORD)
            other, use = np.frombuffer(hello[len(token) :], np.int64).tolist()
            if (
                hmac.compare_digest(hello[: len(token)], token)
                and (other, use) in expected - self._peers.keys()
            ):
                peer.sendall(_answer(token))
                self._peers[other, use] = peer
                return
        peer.close()

    def _begin_to_beat(self) -> None:
        sockets = [peer.fileno() for (_, use), peer in self._peers.items() if use == SIGNS]
        self._signs = np.array([0, *sockets], np.int64)
        arguments = self._signs, np.int64(self._signs.ctypes.data)
        self._beats = threading.Thread(target=self._beat, args=arguments, daemon=True)
        self._beats.start()

    def check(self) -> None:
        """Raise `Lost` if a machine has closed its connections, or has given no sign of life for SILENT_S."""
        for j, (other, first) in enumerate(self._first.items()):
            gone = self._links.machines[j, relay.IS_CLOSED] == 1
            if gone or not self._hears(other):
                raise Lost(f"the machine of partition {first} has closed its connection")
            if time.monotonic() - self._heard[other] > SILENT_S:
                raise Lost(f"the machine of partition {first} has given no sign of life for {SILENT_S:g} s")

    def _hears(self, other: int) -> bool:
        """Take the signs of life of a machine; return whether it is still connected."""
        peer = self._peers[other, SIGNS]
        with suppress(BlockingIOError):
            try:
                while signs := peer.recv(1 << 16):
                    self._heard[other] = time.monotonic()
                return bool(signs)
            except ConnectionError:
                return False
        return True

    def close(self) -> None:
        """Close all connections, at once for the other machines."""
        self._server.close()
        self._signs[0] = 1
        for peer in self._peers.values():
            with suppress(OSError):
                peer.shutdown(socket.SHUT_RDWR)
        if self._beats is not None:
            self._beats.join()  # its descriptors must not be given to others meanwhile
        for peer in self._peers.values():
            peer.close()


def _greeted(address: Address, token: bytes, me: int, use: int, end: float) -> socket.socket:
    """Return a connection to another relay, which has shown that it knows the token."""
    peer = socket.create_connection(address, _left(end))
    try:
        peer.sendall(token + np.array([me, use], np.int64).tobytes())
        answer = _answer(token)
        if not hmac.compare_digest(_received(peer, len(answer)), answer):
            raise ConnectionError(f"what listens at {address.host}:{address.port} is not of this run")
    except BaseException:
        peer.close()
        raise
    return peer


def _received(peer: socket.socket, size: int) -> bytes:
    """Return so many bytes."""
    received = b""
    while len(received) < size:
        more = peer.recv(size - len(received))
        if not more:
            raise ConnectionError("the connection was closed")
        received += more
    return received


def _answer(token: bytes) -> bytes:
    """Return what shows that a relay knows the token."""
    return hashlib.sha256(b"relay" + token).digest()


def _left(end: float) -> float:
    """Return the seconds until `end`, a little at least."""
    return max(end - time.monotonic(), 0.001)
