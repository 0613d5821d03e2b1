"""Hosts that do not answer are not wrong input: exit code 1, one line; and where Ray is looked for."""

from __future__ import annotations

import os
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from python_process import PATIENCE_S

from actors.hosting import ray_session, ray_token
from actors.hosting.interrupts import Lost
from workloads.errors import InputError, UnavailableError
from workloads.public import http_file

Cli = Callable[..., Any]


@pytest.fixture
def closed_port() -> int:
    """A port of this machine on which no process listens."""
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        return server.getsockname()[1]


SETTINGS = bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])  # the first frame of a server that speaks HTTP/2
HTTP_1 = b"HTTP/1.1 400 Bad Request\r\n\r\n"


def listener(answer: bytes, is_silent: bool = False) -> Iterator[int]:
    """A port on which a process listens that answers so, and then ends its answer, or says nothing more."""
    with closing(socket.create_server(("127.0.0.1", 0))) as server:

        def serve() -> None:
            with suppress(OSError):
                while True:
                    connection, _ = server.accept()
                    connection.sendall(answer)
                    if not is_silent:
                        connection.shutdown(socket.SHUT_WR)
                    kept.append(connection)

        kept: list[socket.socket] = []
        threading.Thread(target=serve, daemon=True).start()
        yield server.getsockname()[1]


@pytest.fixture
def open_port() -> Iterator[int]:
    """One where Ray could be."""
    yield from listener(SETTINGS)


@pytest.mark.parametrize("answer", [b"", HTTP_1])
def test_a_port_at_which_something_else_than_ray_listens_is_an_error(
    answer: bytes, joined: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ray_token, "TIMEOUT_S", 0.2)
    for port in listener(answer, is_silent=True):
        with pytest.raises(
            UnavailableError, match=rf"^--address 127.0.0.1:{port}: .*the server there is not Ray"
        ):
            ray_session.connect(f"127.0.0.1:{port}")
    assert joined == []


@pytest.mark.parametrize(
    ("answer", "has", "mode"),
    [
        (b"@\x0bgrpc-status\x010", True, "disabled"),
        (b"@\x0bgrpc-status\x010", False, "disabled"),
        (b"\x00\x0bgrpc-status\x0216\x00\x0cgrpc-message", True, "token"),
        (b"\x00\x0bgrpc-status\x0216", False, "refused"),
        (b"\x00\x0bgrpc-status", True, "token"),
        (b"", True, "token"),
        (b"", False, None),
    ],
)
def test_a_token_is_offered_where_it_is_asked_for(
    answer: bytes, has: bool, mode: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And where that is not known: in the first three as clusters of Ray have answered."""
    monkeypatch.setattr(ray_token, "TIMEOUT_S", PATIENCE_S)
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH", "RAY_USE_TLS"):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    monkeypatch.delitem(sys.modules, "ray", raising=False)
    if has:
        (tmp_path / ".ray").mkdir()
        (tmp_path / ".ray" / "auth_token").touch()
    for port in listener(SETTINGS + answer):
        if mode == "refused":
            with pytest.raises(
                UnavailableError, match=r"the cluster there asks for a token, and this machine"
            ):
                ray_session.connect(f"127.0.0.1:{port}")
        else:
            ray_token.agree_on_token(f"127.0.0.1:{port}")
            assert os.environ.get("RAY_AUTH_MODE") == mode


@pytest.fixture
def joined(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What `ray.init` is called with from here on."""
    calls: list[dict[str, Any]] = []

    def init(address: str, **options: Any) -> None:
        calls.append({"address": address, **options})

    monkeypatch.setitem(sys.modules, "ray", SimpleNamespace(init=init, is_initialized=lambda: False))
    for name in ("_started", "_joined"):
        monkeypatch.setattr(ray_session, name, False)
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.setenv("PYTHONPATH", os.environ.get("PYTHONPATH", ""))  # which it changes
    return calls


def test_ray_address_is_used_and_the_option_beats_it(
    joined: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch, open_port: int
) -> None:
    here = f"127.0.0.1:{open_port}"
    for environment, given, want in (
        (None, None, "local"),
        ("", None, "local"),
        ("local", None, "local"),
        (here, None, here),
        ("auto", None, "auto"),
        ("127.0.0.1:1", here, here),
        (here, "auto", "auto"),
    ):
        monkeypatch.delenv("RAY_ADDRESS", raising=False)
        if environment is not None:
            monkeypatch.setenv("RAY_ADDRESS", environment)
        ray_session.connect(given)
        assert joined.pop()["address"] == want
        assert ray_session.address_of(given) == (None if want == "local" else want)


def test_an_address_that_does_not_answer_is_named_with_where_it_was_given(
    joined: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch, closed_port: int
) -> None:
    monkeypatch.setenv("RAY_ADDRESS", f"127.0.0.1:{closed_port}")
    with pytest.raises(
        UnavailableError, match=f"^RAY_ADDRESS 127.0.0.1:{closed_port}: no Ray cluster answers there"
    ):
        ray_session.connect()
    monkeypatch.setenv("RAY_ADDRESS", "nowhere")
    with pytest.raises(
        InputError, match=r"^RAY_ADDRESS nowhere: an address is HOST:PORT, ray://HOST:PORT or auto"
    ):
        ray_session.connect()
    assert joined == []


def test_an_address_that_is_none_is_wrong_input_and_one_that_is_silent_is_not(
    emu: Cli, trace: Path, monkeypatch: pytest.MonkeyPatch, closed_port: int
) -> None:
    import ray

    monkeypatch.setattr(ray, "is_initialized", lambda: False)  # whatever tests before this one have started
    run = ("run", "--scheduler", "random", "--workload", "small", "--nodes", 100)
    wrong = emu(*run, "--address", "nowhere")
    assert (wrong.code, "--address nowhere: an address is HOST:PORT" in wrong.line()) == (2, True)
    for more in ((), ("--clock", "windows"), ("--clock", "live")):
        silent = emu(*run, *more, "--address", f"127.0.0.1:{closed_port}")
        assert silent.code == 1
        assert f"--address 127.0.0.1:{closed_port}: no Ray cluster answers there" in silent.line()
    Path("grid.toml").write_text(
        'workload = "small"\nnodes = 100\nscheduler = "random"\n[sweep]\nseed = [1, 2]\n'
    )
    silent = emu("sweep", "grid.toml", "--address", f"127.0.0.1:{closed_port}")
    assert (silent.code, "no Ray cluster answers there" in silent.line()) == (1, True)


def test_a_trace_that_cannot_be_had_is_not_wrong_input(
    emu: Cli, monkeypatch: pytest.MonkeyPatch, closed_port: int
) -> None:
    monkeypatch.setattr(http_file, "_PAUSES_S", (0.0,) * 4)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    mirror = f"http://127.0.0.1:{closed_port}"
    ended = emu("workload", "fetch", "coflow-benchmark", "--folder", "data", "--mirror", mirror)
    assert ended.code == 1
    assert "127.0.0.1 cannot be reached (Connection refused); by hand: get this file" in ended.line()
    wrong = emu("workload", "fetch", "coflow-benchmark", "--folder", "data", "--mirror", "ftp://x")
    assert wrong.code == 2


def test_a_process_of_ray_that_dies_while_it_starts_is_a_loss(
    joined: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """And so there is another try; what Ray then raises is of many kinds."""

    def init(*_: object, **__: object) -> None:
        raise RuntimeError("Timed out waiting for file\ngcs_server_port")

    monkeypatch.setattr(sys.modules["ray"], "init", init)
    with pytest.raises(
        Lost, match=r"^Ray cannot be started here: RuntimeError: Timed out waiting for file gcs_server"
    ):
        ray_session.connect()
