"""The token by which processes of a Ray cluster know each other: sent where it is asked for, and only there.

Whether a process sends one is fixed when it imports Ray: a cluster that wants a token refuses a process that sends
none, and with a cluster that wants none the actors of a process that sends one never start. And Ray itself would try
for minutes to reach an address where nothing listens. So one request of HTTP/2, which Ray's servers speak, is sent
first.
"""

import os
import secrets
import socket
import sys
import time
from contextlib import suppress
from pathlib import Path

TIMEOUT_S = 5.0
_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_DATA, _HEADERS, _SETTINGS = 0, 1, 4  # kinds of frames
_END_STREAM, _END_HEADERS = 1, 4
_REQUEST = {
    ":method": "POST",
    ":scheme": "http",
    ":path": "/ray.rpc.NodeInfoGcsService/GetClusterId",
    ":authority": "emu",
    "content-type": "application/grpc",
    "te": "trailers",
}
_STATUS, _UNAUTHENTICATED = b"grpc-status", b"16"
_TOKENS = {"RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"}


def agree_on_token(address: str | None) -> None:
    """Let Ray send this machine's token where the cluster asks for one, and only there.

    Ray reads that once, when it is imported: set later it would reach only the processes that Ray starts, and those
    would refuse this one. `ray start --head` asks for a token as soon as its machine has one, and any `ray.init` makes
    one.

    Raises:
        OSError: nothing answers there, or something that is not Ray.
        PermissionError: the cluster asks for a token and this machine has none.
        ValueError: the address is malformed.
    """
    asks = None if address is None else asks_for_token(address)
    if "ray" in sys.modules or "RAY_AUTH_MODE" in os.environ:
        return
    has = bool(_TOKENS & os.environ.keys()) or (Path.home() / ".ray" / "auth_token").is_file()
    if asks and not has:
        raise PermissionError(
            "the cluster there asks for a token, and this machine has none: copy ~/.ray/auth_token of its head here"
            " (docs/sweeps.md)"
        )
    if address is None and not has and not _can_keep_token():
        os.environ["RAY_AUTH_TOKEN"], has = secrets.token_hex(16), True  # of this session alone
    if asks or (asks is None and has):
        os.environ["RAY_AUTH_MODE"] = "token"
    elif asks is False:
        os.environ["RAY_AUTH_MODE"] = "disabled"


def _can_keep_token() -> bool:
    """Return whether Ray can write the token that it makes into the home folder."""
    try:
        folder = Path.home() / ".ray"
        folder.mkdir(exist_ok=True)
    except OSError:
        return False
    return os.access(folder, os.W_OK)


def asks_for_token(address: str) -> bool | None:
    """Return whether the Ray cluster at an address asks for a token; None if unknown, as with TLS, `auto`, `ray://`.

    Raise OSError if nothing answers there, or something that is not Ray; ValueError if the address is not HOST:PORT.
    """
    if address == "auto":
        return None
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not host or not port.isdigit():
        raise ValueError("an address is HOST:PORT, ray://HOST:PORT or auto")
    with socket.create_connection((host.strip("[]"), int(port)), timeout=TIMEOUT_S) as connection:
        if os.environ.get("RAY_USE_TLS", "0") not in ("", "0"):
            return None
        answer = _answer(connection)
    if answer[3:4] != bytes([_SETTINGS]):
        raise OSError("the server there is not Ray")
    status = _status(answer)
    return None if status is None or address.startswith("ray://") else status == _UNAUTHENTICATED


def _answer(connection: socket.socket) -> bytes:
    """Return the answer to the request, up to its status or until the connection is silent."""
    headers = b"".join(b"\0" + _text(name) + _text(value) for name, value in _REQUEST.items())
    asked = _frame(_HEADERS, _END_HEADERS, 1, headers) + _frame(_DATA, _END_STREAM, 1, bytes(5))
    answer, end = b"", time.monotonic() + TIMEOUT_S
    with suppress(TimeoutError):
        connection.sendall(_PREFACE + _frame(_SETTINGS, 0, 0, b"") + asked)
        while (more := connection.recv(4096)) and (left_s := end - time.monotonic()) > 0:
            answer += more
            if _status(answer) is not None or answer[3:4] not in (b"", bytes([_SETTINGS])):
                break
            connection.settimeout(left_s)
    return answer


def _status(answer: bytes) -> bytes | None:
    """Return the status of the call in an answer: it stands there in plain text, behind its name and its length."""
    text = answer.partition(_STATUS)[2]
    return text[1 : 1 + text[0]] if text and len(text) > text[0] else None


def _frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    """Return a frame of HTTP/2 (RFC 9113, 4.1)."""
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload


def _text(text: str) -> bytes:
    """Return a short string, not compressed (RFC 7541, 5.2)."""
    return bytes([len(text)]) + text.encode()
