"""A session with Ray, which is started once for many runs.

Only what this process started is ever stopped: `close` ends a Ray instance that `connect` started on this machine,
and leaves an existing cluster as it was.
"""

import logging
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from actors.hosting.child import ROOT, SERVERS, address_of, with_path
from actors.hosting.interrupts import Lost
from actors.hosting.ray_token import agree_on_token
from workloads.errors import InputError, UnavailableError
from workloads.limits import free_bytes as free_bytes_here

OBJECT_STORE_BYTES = 512 << 20

# Ray would print long messages about processes that die; recovery prints one line. Read when Ray is imported.
os.environ.setdefault(
    "RAY_DEDUP_LOGS_SKIP_REGEX", "A worker died or was killed|Raylet is terminated|has been marked dead"
)
os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
_SYSTEM = {
    # Else Ray starts a worker for each core, of which a run may want one, and waits for all of them before it lets its
    # driver in: for ever, if one dies meanwhile.
    "prestart_worker_first_driver": False,
    # How long Ray waits for a worker that dies before it has registered.
    "worker_register_timeout_seconds": 30,
}
_QUIET: dict[str, Any] = {"logging_level": logging.ERROR, "log_to_driver": False}

_started = _starting = False
_joined = False  # connected by this module to a cluster that others started


class NoNode(OSError):
    """A Ray cluster answers, and no node of it takes a driver: its raylets have ended, or are stopped."""


def connect(
    address: str | None = None, folder: str | None = None, environment: dict[str, Any] | None = None
) -> None:
    """Start Ray on this machine, or join the cluster at `address_of(address)`; nothing if this process is connected.

    Args:
        folder: for Ray's files, if it is started; None: Ray's own folder.
        environment: the runtime environment of tasks and actors in a cluster.

    Raises:
        Lost: it cannot be started.
        UnavailableError: nothing answers there.
        InputError: the address is malformed.
    """
    named = "RAY_ADDRESS" if address is None else "--address"
    address = address_of(address)
    hint = "`ray start --head` prints the address of the one it starts"
    try:
        agree_on_token(address)
        if address is None:
            _start(folder)
        else:
            _join(address, environment)
    except ValueError as error:
        raise InputError(f"{named} {address}: {error}; {hint}") from None
    except PermissionError as error:
        raise UnavailableError(f"{named} {address}: {error}") from None
    except NoNode as error:
        raise UnavailableError(f"{named} {address}: {error}") from None
    except OSError as error:
        raise UnavailableError(f"{named} {address}: no Ray cluster answers there ({error}); {hint}") from None


def _start(folder: str | None) -> None:
    """Start Ray on this machine; nothing if this process is connected."""
    global _started, _starting
    import ray

    if ray.is_initialized():
        return
    # Workers inherit this, and find these packages also when they are not installed but run from a checkout.
    os.environ["PYTHONPATH"] = with_path(ROOT)
    _starting = True
    # "local": without an address Ray would join a cluster that someone has started here.
    try:
        ray.init(
            "local",
            include_dashboard=False,
            object_store_memory=OBJECT_STORE_BYTES,
            configure_logging=True,
            _temp_dir=folder,
            _system_config=_SYSTEM,
            **_QUIET,
        )
    except Exception as error:  # of many kinds, by which of its processes died meanwhile
        text = " ".join(str(error).split())[:200]
        raise Lost(f"Ray cannot be started here: {type(error).__name__}: {text}") from None
    finally:
        _starting = False
    _started = True


def _join(address: str, environment: dict[str, Any] | None) -> None:
    """Join a cluster; nothing if this process is connected."""
    global _joined
    import ray

    if ray.is_initialized():
        return
    try:
        ray.init(address=address, runtime_env=environment, **_QUIET)
    except ConnectionError as error:
        if address == "auto":  # else the server there has answered (`agree_on_token`)
            raise
        raise NoNode(f"no node of the Ray cluster there lives, or can be reached ({error})") from None
    except RuntimeError as error:
        if (wrong := unfit(str(error))) is None:
            raise
        raise InputError(wrong) from None
    _joined = True


def close() -> None:
    """End the Ray instance that this process started, or leave the cluster that it joined, with all actors here."""
    global _started, _joined
    if not (_started or _joined):
        return
    import ray

    ray.shutdown()
    _started, _joined = False, False


def is_dead() -> bool:
    """Return whether the Ray instance that this process started, or is starting, has lost a process that it needs.

    Ray has no public function for this, and calls to a lost process would wait for minutes.
    """
    if not (_started or _starting):
        return False
    from ray._private import worker

    node = worker._global_node
    if node is None:
        return not _starting
    return any(name in SERVERS for name, _ in node.dead_processes())


def has_nodes() -> bool:
    """Return whether a node of the cluster lives that this process is connected to, as the cluster knows it."""
    import ray

    return any(node["Alive"] for node in ray.nodes())


def has_joined() -> bool:
    """Return whether this process is connected to a cluster that others started."""
    return _joined


def worker_environment() -> dict[str, Any] | None:
    """Return the runtime environment in which workers find these packages; None if this process started Ray.

    On a cluster that others started it must be given, and takes the start of a new process.
    """
    return None if _started else {"env_vars": {"PYTHONPATH": with_path(ROOT)}}


def free_bytes() -> int:
    """Return the memory that Ray can give, at most what this machine has free if Ray was started here."""
    import ray

    free = int(ray.available_resources().get("memory", 0))
    on_machine = free_bytes_here() if _started else None
    return free if on_machine is None else min(free, on_machine)


def get(reference: Any, timeout_s: float | None = None) -> Any:
    """Return the result of a call, or of each call of a list; raise an error of a partition as it was raised there."""
    import ray
    from ray.exceptions import RayTaskError

    try:
        return ray.get(reference, timeout=timeout_s)
    except RayTaskError as error:
        if "failed to import on the worker" in str(error.cause) and (wrong := unfit(str(error))) is not None:
            raise InputError(wrong) from None
        raise error.cause from None


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
