"""Machines that exchange frames over TCP: the same bits as one partition, whatever stops them on the way."""

from __future__ import annotations

import os
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from emulations import OBSERVED, digest, run_setting, run_windows
from members import BOUND_S, CASES, Group, small

from actors.hosting import partition, relay
from actors.hosting.checkpoint import Position
from actors.hosting.interrupts import Lost
from actors.hosting.member import Member
from actors.hosting.relay import Address, Relay
from actors.kernel.sharing import CAN_SHARE
from actors.setting import Setting

pytestmark = pytest.mark.skipif(not CAN_SHARE, reason="plain Python, or a processor without such waiting")

Machines = Sequence[Sequence[int]]
MIXES: list[Machines] = [[[0], [1]], [[0, 2], [1]], [[0], [1], [2]], [[0, 3, 4], [1, 5], [2]]]


@contextmanager
def on_machines(setting: Setting, machines: Machines) -> Iterator[Group]:
    """A group that leaves no connection and no thread."""
    before = threading.active_count(), len(os.listdir("/proc/self/fd"))
    group = Group(setting, OBSERVED, sum(map(len, machines)), machines)
    try:
        yield group
    finally:
        group.close()
    assert threading.active_count() == before[0]
    members = len(group.members)
    assert len(os.listdir("/proc/self/fd")) <= before[1] + members  # their memories are freed with them


@pytest.mark.parametrize("case", CASES)
def test_results_are_those_of_one_partition(case: str) -> None:
    setting = CASES[case]()
    whole = digest(run_setting(setting, OBSERVED))
    for machines in MIXES:
        windows = run_windows(setting, OBSERVED, sum(map(len, machines))).windows
        with on_machines(setting, machines) as group:
            outcome = group.to_the_end(3600.0)
        assert digest(outcome) == whole, machines
        assert outcome.windows == windows


@pytest.mark.parametrize("machines", MIXES[1:3])
def test_all_pause_at_the_same_window(machines: Machines) -> None:
    setting = small("eagle")
    with on_machines(setting, machines) as group:
        group.meet(0.0, 7)  # windows without events
        outcome = group.to_the_end(0.0)  # each call handles one window, which all return
    assert digest(outcome) == digest(run_setting(setting, OBSERVED))
    assert outcome.windows == run_windows(setting, OBSERVED, 3).windows


@pytest.mark.parametrize("messages", [8, 11])
def test_frames_that_are_too_small_change_nothing(messages: int, monkeypatch: pytest.MonkeyPatch) -> None:
    setting = small("eagle")
    for module in (partition, sys.modules[Member.__module__]):
        monkeypatch.setattr(module, "FRAME_MESSAGES", messages)
    with on_machines(setting, MIXES[-1]) as group:
        assert digest(group.to_the_end(3600.0)) == digest(run_setting(setting, OBSERVED))


def test_a_message_that_is_larger_than_what_a_socket_takes_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both sides send before they receive: neither may wait for the other to take all."""
    connected = relay.Relay.connect

    def with_small_buffers(self: Relay, *arguments: Any) -> np.ndarray:
        links = connected(self, *arguments)
        for peer in self._peers.values():
            for which in (socket.SO_SNDBUF, socket.SO_RCVBUF):
                peer.setsockopt(socket.SOL_SOCKET, which, 1)
        return links

    monkeypatch.setattr(relay.Relay, "connect", with_small_buffers)
    setting = small("eagle")
    with on_machines(setting, MIXES[0]) as group:
        assert digest(group.to_the_end(3600.0)) == digest(run_setting(setting, OBSERVED))


def test_a_run_goes_on_from_a_checkpoint_on_other_machines() -> None:
    setting = small("eagle")
    with on_machines(setting, [[0, 2], [1]]) as group:
        for _ in range(25):
            (met, *_) = group.meet(0.0)
        saved = [member.snapshot() for member in group.members]
    at = Position(0.0, met.events, met.until_ns, met.windows)
    with on_machines(setting, [[0], [1, 2]]) as again:
        outcome = again.continued(saved, at)
    assert digest(outcome) == digest(run_setting(setting, OBSERVED))
    assert outcome.windows == run_windows(setting, OBSERVED, 3).windows


def fails(*_: object) -> int:
    raise ValueError("of a user's scheduler")


def test_a_partition_that_fails_ends_the_wait_on_all_machines(monkeypatch: pytest.MonkeyPatch) -> None:
    with on_machines(small("own"), [[0], [1, 2]]) as group:
        for member in group.members:  # which of them is the first to decide depends on the jobs
            monkeypatch.setattr(member, "_ask", fails)
        with ThreadPoolExecutor(3) as threads:
            calls = [threads.submit(member.meet, 3600.0) for member in group.members]
            begin = time.monotonic()
            errors = [call.exception(BOUND_S) for call in calls]
        assert {type(error) for error in errors} == {Lost, ValueError}
        assert time.monotonic() - begin < 10.0
        reasons = {str(error) for error in errors if isinstance(error, Lost)}
        assert any("has closed its connection" in reason for reason in reasons), reasons


def stops_beating(there: Relay) -> None:
    there._signs[0] = 1


@pytest.mark.parametrize(
    ("how", "what"),
    [(Relay.close, "closed its connection"), (stops_beating, "given no sign of life for 1.5 s")],
)
def test_a_machine_that_is_gone_or_silent_is_noticed(how: Callable[[Relay], None], what: str) -> None:
    with on_machines(small("eagle"), [[0], [1]]) as group:
        here, there = group.members
        assert there._relay is not None
        how(there._relay)
        begin = time.monotonic()
        with pytest.raises(Lost, match=f"^the machine of partition 1 has {what}$"):
            here.meet(3600.0)
        assert time.monotonic() - begin < 3.0


def test_a_machine_that_computes_for_long_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(relay, "SILENT_S", 0.5)
    setting = small("eagle")
    with on_machines(setting, [[0], [1]]) as group:
        late = group.members[1]
        meet = late.meet

        def meets_late(*arguments: float) -> object:
            time.sleep(2.0)
            monkeypatch.setattr(late, "meet", meet)
            return meet(*arguments)

        monkeypatch.setattr(late, "meet", meets_late)
        assert digest(group.to_the_end(3600.0)) == digest(run_setting(setting, OBSERVED))


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
    assert all(of[relay.relay.OTHERS] == 1 for of in links)
    for each in relays:
        each.close()
    for stranger in strangers:
        stranger.close()


def test_what_does_not_know_the_secret_is_not_spoken_to(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(relay, "CONNECT_S", 1.0)
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
    with pytest.raises(TimeoutError):  # no machine comes
        Relay("127.0.0.1").connect([[0], [1]], [0], [address, address], b"secret", 100)
    here.close()
