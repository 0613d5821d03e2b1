"""Machines that exchange frames over TCP: the same bits as one partition, whatever stops them on the way."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from emulations import OBSERVED, digest, run_setting
from members import BOUND_S, SEVERAL, be_patient, group_on, small

from actors.hosting import relay
from actors.hosting.interrupts import Lost
from actors.hosting.relay import Address, Relay
from actors.kernel.relay import Links
from actors.kernel.system_calls import CAN_SHARE

pytestmark = [
    pytest.mark.compiled,
    pytest.mark.skipif(not CAN_SHARE, reason="plain Python, or a processor without such waiting"),
]


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    be_patient(monkeypatch)


def test_a_message_that_is_larger_than_what_a_socket_takes_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both sides send before they receive: neither may wait for the other to take all."""
    connected = relay.Relay.connect

    def with_small_buffers(self: Relay, *arguments: Any) -> Links:
        links = connected(self, *arguments)
        for peer in self._peers.values():
            for which in (socket.SO_SNDBUF, socket.SO_RCVBUF):
                peer.setsockopt(socket.SOL_SOCKET, which, 1)
        return links

    monkeypatch.setattr(relay.Relay, "connect", with_small_buffers)
    setting = small("eagle")
    with group_on(SEVERAL[0], setting) as group:
        assert digest(group.to_the_end(3600.0)) == digest(run_setting(setting, OBSERVED))


def stops_beating(there: Relay) -> None:
    there._signs[0] = 1


@pytest.mark.parametrize(
    ("how", "what"),
    [(Relay.close, "closed its connection"), (stops_beating, "given no sign of life for 0.3 s")],
)
def test_a_machine_that_is_gone_or_silent_is_noticed(
    how: Callable[[Relay], None], what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with group_on(SEVERAL[0], small("eagle")) as group:
        here, there = group.members
        assert there._relay is not None
        how(there._relay)
        if how is stops_beating:
            monkeypatch.setattr(relay, "SILENT_S", 0.3)
        with pytest.raises(Lost, match=f"^the machine of partition 1 has {what}$"):
            here.meet(3600.0)


def test_a_machine_that_computes_for_long_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """It gives signs of life meanwhile; the clock by which they are judged is the test's."""
    clock = SimpleNamespace(s=1000.0)
    with group_on(SEVERAL[0], small("eagle")) as group:
        here, there = (member._relay for member in group.members)
        assert here is not None
        assert there is not None
        monkeypatch.setattr(relay, "SILENT_S", 1.5)
        monkeypatch.setattr(relay, "time", SimpleNamespace(monotonic=lambda: clock.s))
        for clock.s in (1000.0, 2000.0, 3000.0):  # a sign comes, however long it takes
            while here._heard[1] != clock.s:
                assert here._hears(1)
                time.sleep(0.01)
            here.check()
        stops_beating(there)
        assert there._beats is not None
        there._beats.join()
        here._hears(1)
        clock.s = here._heard[1] + 1.5
        here.check()
        clock.s += 0.1
        with pytest.raises(Lost, match=r"^the machine of partition 1 has given no sign of life for 1\.5 s$"):
            here.check()


def test_only_who_knows_the_secret_is_let_in() -> None:
    machines, token = [[0], [1]], b"secret"
    relays = [Relay("127.0.0.1") for _ in machines]
    addresses = [each.address for each in relays]
    strangers = [socket.create_connection(addresses[0]) for _ in range(3)]
    hello = np.array([1, relay.FRAMES], np.int64).tobytes()
    strangers[0].sendall(b"guess!" + hello)
    strangers[1].sendall(token + np.array([7, 0], np.int64).tobytes())  # no machine of this run
    strangers[2].close()
    with ThreadPoolExecutor(2) as threads:
        calls = [
            threads.submit(each.connect, machines, here, addresses, token, 100)
            for each, here in zip(relays, machines, strict=True)
        ]
        links = [call.result(BOUND_S) for call in calls]
    assert [stranger.recv(1) for stranger in strangers[:2]] == [b"", b""]
    assert all(of.machines.shape[0] == 1 for of in links)
    for each in relays:
        each.close()
    for stranger in strangers:
        stranger.close()


def test_what_does_not_know_the_secret_is_not_spoken_to(monkeypatch: pytest.MonkeyPatch) -> None:
    here = Relay("127.0.0.1")
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = Address("127.0.0.1", server.getsockname()[1])

        def answer() -> None:
            peer = server.accept()[0]
            with peer:
                peer.sendall(bytes(32))
                peer.recv(100)

        thread = threading.Thread(target=answer)
        thread.start()
        with pytest.raises(ConnectionError, match="is not of this run"):
            here.connect([[0], [1]], [1], [address, here.address], b"secret", 100)
        thread.join()
    monkeypatch.setattr(relay, "CONNECT_S", 0.05)
    with pytest.raises(TimeoutError):  # no machine comes
        Relay("127.0.0.1").connect([[0], [1]], [0], [address, address], b"secret", 100)
    here.close()
