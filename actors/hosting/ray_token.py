"""The token by which processes of a Ray cluster know each other: sent where it is asked for, and only there."""

import os
import secrets
import sys
from pathlib import Path

from actors.hosting.handshake import asks_for_token

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
