"""What a user's own code raises, as one line that names its place."""

import sysconfig
import traceback
from pathlib import Path
from types import TracebackType
from typing import Any

from workloads.errors import InputError

_ROOT = Path(__file__).resolve().parents[3]
_OURS = tuple(f"{_ROOT / package}/" for package in ("actors", "clusters", "emu", "workloads"))
_INSTALLED = tuple(f"{sysconfig.get_path(name)}/" for name in ("purelib", "platlib"))
_LIBRARIES = (*_INSTALLED, *(f"{sysconfig.get_path(name)}/" for name in ("stdlib", "platstdlib")))


def raised(what: str, error: BaseException, about: str = "") -> InputError:
    """Return the error for what a user's code has raised, with the last line of the user's code on its way.

    Ctrl-C is the user's too, and is raised again.

    Args:
        what: the beginning of the line, before the error.
        about: what the call was for; it ends the line.
    """
    if isinstance(error, KeyboardInterrupt):
        raise error
    place = _place(error.__traceback__)
    if isinstance(error, InputError) and error.file is None:  # what it asked of a function of ours was wrong
        return InputError(f"{error.message}{about}", **place)
    text = " ".join(f"{type(error).__name__}: {error}".split()).removesuffix(":")
    if isinstance(error, SystemExit):
        text += ", which would end the program; return, or raise an exception that says what is wrong,"
    return InputError(f"{what}{text}{about}", **place)


def _place(trace: TracebackType | None) -> dict[str, Any]:
    """Return file and line: the innermost that is neither of these packages nor of a library.

    A scheduler may be in a package that is installed among the libraries: then the first line of one.
    """
    frames = [f for f in traceback.extract_tb(trace) if not f.filename.startswith(("<", *_OURS))]
    users = [frame for frame in frames if not frame.filename.startswith(_LIBRARIES)]
    users = users or [frame for frame in frames if frame.filename.startswith(_INSTALLED)][:1]
    return {"file": users[-1].filename, "line": users[-1].lineno} if users else {}


def defined_at(kind: type, method: str) -> dict[str, Any]:
    """Return file and line of a method of a user's class, or of its first method if it lacks that one."""
    codes = [code for value in vars(kind).values() if (code := getattr(value, "__code__", None))]
    own = getattr(getattr(kind, method, None), "__code__", None)
    if own is None and not codes:
        return {}
    code = own or min(codes, key=lambda code: code.co_firstlineno)
    return {"file": code.co_filename, "line": code.co_firstlineno}
