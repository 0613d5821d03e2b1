"""Checkpoints on disk: the state of all partitions at one moment, written completely or not at all.

    RUN_DIR/checkpoints/000007/0.npz, 1.npz, ...   a partition each, arrays by path; only a user's object is a pickle
                               meta.json           the identity and progress of the run, the sha256 of each file

The driver writes them: partitions may live on machines that share no disk.
"""  # fmt: skip

import hashlib
import json
import os
import re
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from actors.hosting.recording import Recording, check_traces, remove_traces
from actors.hosting.snapshot import Refused as Refused
from actors.hosting.snapshot import Snapshot
from workloads.doing import doing

FORMAT = 3
META = "meta.json"


def _source_hash() -> str:
    """Return a hash of every source file of this package: another state may mean something else."""
    digest = hashlib.sha256()
    root = Path(__file__).resolve().parents[1]
    for path in sorted(root.rglob("*.py")):
        digest.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


SOURCE_HASH = _source_hash()  # of the sources that this process runs, whatever happens to them later
_NUMBER = re.compile(r"\d{6,}")


@dataclass(frozen=True)
class Position:
    """The progress of a run."""

    virtual_s: float
    events: int
    until_ns: int = -1  # the barrier that all partitions have reached; -1 without barriers
    windows: int = 0  # barriers so far
    wall_s: float = 0.0  # spent between them
    restarts: int = 0  # times the run has been continued from a checkpoint


class Checkpoint(NamedTuple):
    """A checkpoint that was read."""

    number: int
    snapshots: list[Snapshot]  # by partition
    at: Position


class Checkpoints:
    """The checkpoints of one run.

    Args:
        folder: of the checkpoints; it is made if necessary.
        period_s: least wall time between two; infinity: no checkpoints.
        keep: how many are kept, the newest ones.
        identity: name to value of what a checkpoint must have been written with to be used.
        warn: called with one line that the user must see, such as that a checkpoint is damaged.
        recording: of events; those that partitions had written at a checkpoint must be in their files.
    """

    def __init__(
        self,
        folder: Path,
        period_s: float,
        keep: int,
        identity: Mapping[str, str],
        warn: Callable[[str], None],
        recording: Recording | None = None,
    ):
        self._recording = recording
        self.folder, self.period_s, self.keep, self.warn = folder, period_s, keep, warn
        self.restarts = 0
        self.saved = 0
        self._identity = identity
        self._refused: set[int] = set()
        self._last = time.monotonic()

    def wanted(self) -> bool:
        """Return whether checkpoints are to be written."""
        return self.period_s != float("inf")

    def due(self) -> bool:
        """Return whether the period has passed since the last checkpoint."""
        return time.monotonic() - self._last >= self.period_s

    def save(self, snapshots: Sequence[Snapshot], at: Position) -> None:
        """Write a checkpoint, and remove those beyond `keep`.

        If it cannot be written the user is warned, and the run continues.
        """
        try:
            with doing("writing a checkpoint"):
                self._write(snapshots, replace(at, restarts=self.restarts))
            self.saved += 1
        except OSError as error:
            self.warn(f"no checkpoint was written to {self.folder}: {error.strerror or error}")
        self._last = time.monotonic()

    def load(self) -> Checkpoint | None:
        """Return the newest checkpoint that can be used, or None; warn of each that cannot be used."""
        numbers = self._numbers()
        for number in reversed(numbers):
            if number in self._refused:
                continue
            try:
                with doing("reading the checkpoint"):
                    found = self._read(number)
                if self._recording is not None:
                    check_traces(self._recording, [saved["recorded"] for saved in found.snapshots])
                return found
            except (Refused, OSError) as why:
                self.refuse(number, why)
        if numbers:
            self.warn(f"no checkpoint in {self.folder} can be used: the run starts from the beginning")
        if self._recording is not None:
            remove_traces(self._recording)
        return None

    def refuse(self, number: int, why: Exception) -> None:
        """Do not use a checkpoint, and warn of the reason."""
        self.warn(f"checkpoint {self._path(number)} is not used: {why}")
        self._refused.add(number)

    def _path(self, number: int) -> Path:
        return self.folder / f"{number:06d}"

    def _numbers(self) -> list[int]:
        """Return the numbers of the checkpoints that exist, the newest last."""
        names = os.listdir(self.folder) if self.folder.is_dir() else []
        return sorted(int(name) for name in names if _NUMBER.fullmatch(name))

    def _write(self, snapshots: Sequence[Snapshot], at: Position) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        for begun in self.folder.glob(".*"):  # by a process that was killed
            shutil.rmtree(begun, ignore_errors=True)
        numbers = self._numbers()
        number = max(numbers, default=0) + 1
        unfinished = self.folder / f".{number:06d}"
        unfinished.mkdir()
        try:
            files = {}
            for k, snapshot in enumerate(snapshots):
                with open(unfinished / f"{k}.npz", "wb") as file:
                    # NumPy's stub takes any keyword for its own `allow_pickle`.
                    np.savez(file, **snapshot)  # type: ignore[arg-type]
                    _flush(file)
                files[f"{k}.npz"] = _sha256(unfinished / f"{k}.npz")
            meta = {**self._written_with(), "files": files, "at": asdict(at)}
            with open(unfinished / META, "w", encoding="utf-8") as file:
                json.dump({**meta, "sha256": _sha256_of_meta(meta)}, file, indent=2)
                _flush(file)
            unfinished.rename(self._path(number))
            _flush_folder(self.folder)
        except BaseException:
            shutil.rmtree(unfinished, ignore_errors=True)
            raise
        good = [n for n in [*numbers, number] if n not in self._refused]
        for old in {*numbers} - {*good[-self.keep :]}:
            shutil.rmtree(self._path(old), ignore_errors=True)

    def _written_with(self) -> dict[str, Any]:
        return {"format": FORMAT, "sources": SOURCE_HASH, **self._identity}

    def _read(self, number: int) -> Checkpoint:
        """Read a checkpoint; raise `Refused` if its files are damaged or of another run, OSError if unreadable."""
        path = self._path(number)
        meta = _read_meta(path / META)
        for name, value in self._written_with().items():
            if meta.get(name) != value:
                raise Refused(f"it was written with another {name} ({meta.get(name)}, here {value})")
        snapshots = []
        for name, expected in meta["files"].items():
            if not (path / name).is_file():
                raise Refused(f"it has no {name}")
            if _sha256(path / name) != expected:
                raise Refused(f"{name} is damaged")
            with np.load(path / name) as arrays:
                snapshots.append(dict(arrays))
        return Checkpoint(number, snapshots, Position(**meta["at"]))


def _read_meta(path: Path) -> dict[str, Any]:
    """Read the description of a checkpoint; raise `Refused` if it is missing or damaged."""
    try:
        meta = json.loads(path.read_text(encoding="utf-8"))
        if meta.pop("sha256") != _sha256_of_meta(meta):
            raise Refused(f"{META} is damaged")
    except FileNotFoundError:
        raise Refused(f"it has no {META}") from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise Refused(f"{META} is damaged") from None
    return dict(meta)


def _sha256(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _sha256_of_meta(meta: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(meta, sort_keys=True).encode()).hexdigest()


def _flush(file: Any) -> None:
    """Flush a file to the disk: a name must not be there before its content."""
    file.flush()
    os.fsync(file.fileno())


def _flush_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
