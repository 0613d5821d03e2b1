"""Run directories: claimed before a run starts, written file by file, called finished last."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa

from workloads.errors import InputError

MANIFEST = "manifest.json"
SUMMARY = "summary.json"
CONFIG = "config.toml"
CHECKPOINTS = "checkpoints"
RUNNING, FINISHED, INTERRUPTED, FAILED = "running", "finished", "interrupted", "failed"
NODES_FOR_LOAD = "nodes_for_load"
"""What a manifest calls the load that picked the number of nodes."""
_PROJECTS = ("emu-scheduler", "numpy", "numba", "pyarrow", "ray")


def claim(out: str | Path, manifest: Mapping[str, Any], config: str) -> Path:
    """Create a run directory with its configuration and a manifest that says it is running.

    Raises
    ------
    InputError
        The directory is there and not empty, or cannot be made; names ``--out``.
    """
    out = Path(out)
    try:
        if out.is_dir() and any(out.iterdir()):
            status = read_manifest(out).get("status") if (out / MANIFEST).exists() else None
            what = f"holds a run that is {status}" if status else "is not empty"
            raise InputError(f"--out: {out} {what}; choose another directory or remove this one")
        out.mkdir(parents=True, exist_ok=True)
        write_text(out / CONFIG, config)
        write_manifest(out, {**manifest, "status": RUNNING, "process": _this_process()})
    except (OSError, ValueError) as error:
        raise InputError(
            f"--out: {out} cannot be written: {getattr(error, 'strerror', None) or error}"
        ) from None
    return out


def claim_new(name: str, manifest: Mapping[str, Any], config: str, root: str | Path = "runs") -> Path:
    """Claim ``root/name``, or ``root/name-2``, … where that is taken."""
    name = safe_name(name)
    number = 1
    while True:
        out = Path(root) / (name if number == 1 else f"{name}-{number}")
        try:
            out.mkdir(parents=True)
            return claim(out, manifest, config)
        except FileExistsError:
            if not Path(root).is_dir():
                raise InputError(f"--out: {root} is not a directory; give another place with --out") from None
            number += 1
        except OSError as error:
            raise InputError(
                f"--out: {out} cannot be made: {error.strerror}; give a place with --out"
            ) from None


def check_not_running(out: Path, manifest: Mapping[str, Any], option: str) -> None:
    """Refuse a directory that a process which is alive writes; `option` is what named it.

    Raises
    ------
    InputError
        It does.
    """
    if manifest.get("status") == RUNNING and (who := _alive(manifest.get("process"))):
        raise InputError(f"{option}: {out} is being run by {who}")


def take_up(out: Path) -> None:
    """Claim a run directory whose run ended early."""
    write_manifest(out, {**read_manifest(out), "status": RUNNING, "process": _this_process()})


def _this_process() -> dict[str, Any]:
    return {"pid": os.getpid(), "host": socket.gethostname(), "since": round(time.time(), 3)}


def _alive(process: Any) -> str | None:
    """Return in words the process that claimed a directory, if it may be there still."""
    try:
        pid, host, since = int(process["pid"]), str(process["host"]), float(process["since"])
    except (KeyError, TypeError, ValueError):
        return None
    shown = f"process {pid} on {host} since {time.strftime('%Y-%m-%d %H:%M:%S', time.localtime(since))}"
    if host != socket.gethostname():
        return f'{shown}; if that is gone, put "interrupted" for the status in its {MANIFEST}'
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return None
    except OSError:  # there, and another user's
        pass
    began = _began_at(pid)
    return None if began is not None and began > since + 1 else shown  # a later process with the same id


def _began_at(pid: int) -> float | None:
    """Return when a process began, in seconds of the epoch; None where the system does not tell."""
    try:
        boot = re.search(r"^btime (\d+)", Path("/proc/stat").read_text(), re.MULTILINE)
        ticks = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])
    except (OSError, IndexError, ValueError):
        return None
    return int(boot[1]) + ticks / os.sysconf("SC_CLK_TCK") if boot else None


def safe_name(text: str) -> str:
    """Return a name as it can be part of a path."""
    return re.sub(r"[^A-Za-z0-9._=+-]+", "-", text).strip("-.") or "run"


@contextmanager
def running(out: Path) -> Iterator[Path]:
    """Within, the claimed directory is being run; what ends that early is what its manifest then says."""
    try:
        yield out
    except KeyboardInterrupt:
        mark(out, INTERRUPTED)
        # A sweep or a search is gone on with by the same command; only runs have nothing else to say.
        again = f"the same command goes on with {out}"
        if "what" not in read_manifest(out):
            again = f"emu run --resume {shlex.quote(str(out))} goes on with it"
        raise KeyboardInterrupt(again) from None
    except BaseException:
        mark(out, FAILED)
        raise


def write_manifest(out: Path, manifest: Mapping[str, Any]) -> None:
    """Write ``manifest.json`` at once: it is whole or as it was."""
    write_json(out / MANIFEST, manifest)


def is_finished(out: Path) -> bool:
    """Return whether a directory holds a finished run."""
    return (out / MANIFEST).exists() and read_manifest(out).get("status") == FINISHED


def mark(out: Path, status: str) -> None:
    """Change the status of a run directory whose run has ended."""
    manifest = {name: value for name, value in read_manifest(out).items() if name != "process"}
    write_manifest(out, {**manifest, "status": status})


def read_manifest(out: Path) -> dict[str, Any]:
    """Return the manifest of a run directory.

    Raises
    ------
    InputError
        There is none, or it is not one.
    """
    manifest = read_json(out / MANIFEST, "is not a run directory: it has no manifest.json")
    if not isinstance(manifest, dict):
        raise InputError("is not a JSON object", file=out / MANIFEST)
    return manifest


def read_json(path: Path, absent: str) -> Any:
    """Return the content of a JSON file of a run directory; `absent` says what is wrong if there is none."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(absent, file=path.parent) from None
    except NotADirectoryError:
        raise InputError("is a file; want a run directory", file=path.parent) from None
    except json.JSONDecodeError as error:
        raise InputError(f"is not JSON: {error.msg}", file=path, line=error.lineno) from None
    except (OSError, ValueError) as error:
        raise InputError(f"cannot be read: {getattr(error, 'strerror', None) or error}", file=path) from None
    return content


def write_json(path: Path, content: Any) -> None:
    """Write JSON for people and programs."""
    write_text(path, to_json(content) + "\n")


def to_json(content: Any) -> str:
    """Return JSON text; a number that JSON has no word for is an error of ours."""
    return json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False)


def write_text(path: Path, text: str) -> None:
    """Write a text file at once."""
    _replace(path, lambda beside: beside.write_text(text, encoding="utf-8"))


def write_table(path: Path, table: pa.Table) -> None:
    """Write a Parquet file whose bytes depend on nothing but the table and pyarrow's version."""
    import pyarrow.parquet as pq

    _replace(path, lambda beside: pq.write_table(table, beside, compression="zstd", row_group_size=1 << 20))


def sha256_of(path: str | Path) -> str:
    """Return the sha256 (hex) of a file."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def versions() -> dict[str, str]:
    """Return the versions of what a result can depend on."""
    import platform
    from importlib.metadata import PackageNotFoundError, version

    found = {"python": platform.python_version()}
    for project in _PROJECTS:
        try:
            found[project] = version(project)
        except PackageNotFoundError:
            continue
    return found


def _replace(path: Path, write: Callable[[Path], Any]) -> None:
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        write(beside)
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)
