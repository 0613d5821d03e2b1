"""Checkpoints on disk: what all partitions held at one moment, written so that it is whole or not there.

    RUN_DIR/checkpoints/000007/0.npz, 1.npz, ...   a partition each, arrays by path, no pickles but a user's own object
                               meta.json           what it belongs to, how far the run was, the sha256 of each file

The driver writes them: partitions may live on machines that share no disk.
"""  # fmt: skip

import hashlib
import json
import os
import re
import shutil
import stat
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from actors.hosting.snapshot import Snapshot
from actors.kernel.compiled import SOURCE_HASH

FORMAT = 1
META = "meta.json"
MOST_META_BYTES = 1 << 24
_NUMBER = re.compile(r"\d{6,}")


@dataclass(frozen=True)
class Position:
    """How far a run is.

    Attributes:
        until_ns: the barrier that all partitions have come to; -1 where there are none.
        windows: barriers so far.
        wall_s: wall time spent between them.
        restarts: times the run had been taken up again.
    """

    virtual_s: float
    events: int
    until_ns: int = -1
    windows: int = 0
    wall_s: float = 0.0
    restarts: int = 0


class Checkpoint(NamedTuple):
    """One that was read."""

    snapshots: list[Snapshot]  # by partition
    at: Position


class Refused(Exception):
    """A checkpoint that cannot be used, and why."""


class Checkpoints:
    """The checkpoints of one run.

    Args:
        folder: they lie in; it need not be there.
        period_s: least wall time between two; infinity for none at all.
        keep: the most that are kept, the newest ones.
        identity: what they must have been written with to be used: name to value.
        warn: is told in one line what the user must know, such as that a checkpoint is damaged.
    """

    def __init__(
        self,
        folder: Path,
        period_s: float,
        keep: int,
        identity: Mapping[str, str],
        warn: Callable[[str], None],
    ):
        self.folder, self.period_s, self.keep, self.warn = folder, period_s, keep, warn
        self.restarts = 0
        self.saved = 0
        self._identity = identity
        self._refused: set[int] = set()
        self._last = time.monotonic()

    def wanted(self) -> bool:
        """Whether there are to be any."""
        return self.period_s != float("inf")

    def due(self) -> bool:
        """Whether the period has passed since the last one."""
        return time.monotonic() - self._last >= self.period_s

    def save(self, snapshots: Sequence[Snapshot], at: Position) -> None:
        """Write a checkpoint, and remove those beyond `keep`.

        If the disk does not take it the user is told, and the run goes on without.
        """
        try:
            self._write(snapshots, replace(at, restarts=self.restarts))
            self.saved += 1
        except OSError as error:
            self.warn(f"no checkpoint was written to {self.folder}: {error.strerror or error}")
        self._last = time.monotonic()

    def load(self) -> Checkpoint | None:
        """The newest checkpoint that can be used; None if there is none.

        Each that cannot be used is said with the reason, and that the run starts anew if none is left.
        """
        numbers = self._numbers()
        for number in reversed(numbers):
            try:
                return self._read(self._path(number))
            except (Refused, OSError) as why:
                self.warn(f"checkpoint {self._path(number)} is not used: {why}")
                self._refused.add(number)
        if numbers:
            self.warn(f"no checkpoint in {self.folder} can be used: the run starts anew")
        return None

    def _path(self, number: int) -> Path:
        return self.folder / f"{number:06d}"

    def _numbers(self) -> list[int]:
        """Of the checkpoints there are, the newest last."""
        names = os.listdir(self.folder) if self.folder.is_dir() else []
        return sorted(int(name) for name in names if _NUMBER.fullmatch(name))

    def _write(self, snapshots: Sequence[Snapshot], at: Position) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        for begun in self.folder.glob(".*"):  # by a process that was killed
            shutil.rmtree(begun, ignore_errors=True)
        numbers = self._numbers()
        number = max(numbers, default=0) + 1
        beside = self.folder / f".{number:06d}"
        beside.mkdir()
        try:
            files, sizes = {}, {}
            for k, snapshot in enumerate(snapshots):
                with open(beside / f"{k}.npz", "wb") as file:
                    # NumPy's stub takes any keyword for its own `allow_pickle`.
                    np.savez(file, **snapshot)  # type: ignore[arg-type]
                    _flush(file)
                files[f"{k}.npz"] = _sha256(beside / f"{k}.npz")
                sizes[f"{k}.npz"] = (beside / f"{k}.npz").stat().st_size
            parts = {"partitions": len(snapshots), "files": files, "bytes": sizes}
            meta = {**self._written_with(), **parts, "at": asdict(at)}
            with open(beside / META, "w", encoding="utf-8") as file:
                json.dump({**meta, "sha256": _sha256_of_meta(meta)}, file, indent=2)
                _flush(file)
            beside.rename(self._path(number))
            _flush_folder(self.folder)
        except BaseException:
            shutil.rmtree(beside, ignore_errors=True)
            raise
        good = [n for n in [*numbers, number] if n not in self._refused]
        for old in {*numbers} - {*good[-self.keep :]}:
            shutil.rmtree(self._path(old), ignore_errors=True)

    def _written_with(self) -> dict[str, Any]:
        return {"format": FORMAT, "sources": SOURCE_HASH, **self._identity}

    def _read(self, path: Path) -> Checkpoint:
        """A checkpoint whose files are whole and of this very run.

        Raises:
            Refused: they are not.
            OSError: a file cannot be read.
        """
        try:
            state = (path / META).stat()
            if not stat.S_ISREG(state.st_mode) or state.st_size > MOST_META_BYTES:
                raise Refused(f"{META} is damaged")
            meta = json.loads((path / META).read_text(encoding="utf-8"))
            ours, files = self._written_with(), meta["files"]
            if meta.pop("sha256") != _sha256_of_meta(meta):
                raise Refused(f"{META} is damaged")
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise Refused(f"{META} is damaged") from None
        except FileNotFoundError:
            raise Refused(f"it has no {META}") from None
        for name, value in ours.items():
            if meta.get(name) != value:
                raise Refused(f"it was written with another {name} ({meta.get(name)}, here {value})")
        snapshots = []
        for name, expected in files.items():
            if not (path / name).is_file():
                raise Refused(f"it has no {name}")
            size = (path / name).stat().st_size  # of a file that has grown to terabytes it tells sooner
            if size != meta.get("bytes", {}).get(name, size) or _sha256(path / name) != expected:
                raise Refused(f"{name} is damaged")
            with np.load(path / name, allow_pickle=False) as arrays:
                snapshots.append(dict(arrays))
        return Checkpoint(snapshots, Position(**meta["at"]))


def _sha256(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _sha256_of_meta(meta: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(meta, sort_keys=True).encode()).hexdigest()


def _flush(file: Any) -> None:
    """To the disk itself: a name must not be there before its content."""
    file.flush()
    os.fsync(file.fileno())


def _flush_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
