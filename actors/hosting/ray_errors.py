"""Errors that Ray reports: a lost process, after which a run continues, or a machine that cannot take part."""

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from actors.hosting.interrupts import Lost
from workloads.errors import InputError


@contextmanager
def losses() -> Iterator[None]:
    """Turn the errors by which Ray reports a lost actor or node, or its own end, into `Lost`."""
    try:
        yield
    except Exception as error:
        if "ray" not in sys.modules:
            raise
        from ray.exceptions import GetTimeoutError, RayActorError, RayError, RayTaskError

        if not isinstance(error, RayError) or isinstance(error, RayTaskError | GetTimeoutError):
            raise
        if (wrong := unfit(str(error))) is not None:
            raise InputError(wrong) from None
        what = "the actor of a partition" if isinstance(error, RayActorError) else "a part of Ray"
        raise Lost(f"{what} is gone ({type(error).__name__})") from None


def unfit(text: str) -> str | None:
    """Return the error about a machine whose workers cannot run what they are sent; None for other errors."""
    if not any(words in text for words in ("ModuleNotFoundError", "failed to import", "Version mismatch")):
        return None
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    says = [line for line in lines if re.match(r"(\w+\.)*\w*Error: |Version mismatch", line)]
    where = re.search(r"ip=([\w.:]+)", text)
    here = ".".join(map(str, sys.version_info[:3]))
    return (
        f"a worker of the Ray cluster{f' at {where[1]}' if where else ''} cannot run what it is sent"
        f" ({(says or lines)[-1][:200]}); each of its machines needs this version of Emu, Python {here} as here, and"
        " what your scheduler imports (docs/sweeps.md)"
    )
