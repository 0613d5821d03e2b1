"""Checkpoints on disk: the state of all partitions at one moment, written completely or not at all.

    RUN_DIR/checkpoints/000007/0.npz, 1.npz, ...   a partition each, arrays by path, no pickles but a user's own object
                               meta.json           what it belongs to, how far the run was, the sha256 of each file

The driver writes them: partitions may live on machines that share no disk.
"""  # fmt: skip

import hashlib
import io
import json
import math
import os
import re
import shutil
import stat
import time
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from actors.hosting.recording import Recording, check_traces, remove_traces
from actors.hosting.snapshot import Refused as Refused
from actors.hosting.snapshot import Snapshot
from actors.kernel.compiled import SOURCE_HASH

FORMAT = 2
META = "meta.json"
MOST_META_BYTES = 1 << 24
_NUMBER = re.compile(r"\d{6,}")


@dataclass(frozen=True)
class Position:
    """The progress of a run.

    Attributes:
        until_ns: the barrier that all partitions have reached; -1 where there are none.
        windows: barriers so far.
        wall_s: wall time spent between them.
        restarts: times the run had been continued from a checkpoint.
    """

    virtual_s: float
    events: int
    until_ns: int = -1
    windows: int = 0
    wall_s: float = 0.0
    restarts: int = 0


class Checkpoint(NamedTuple):
    """A checkpoint that was read."""

    snapshots: list[Snapshot]  # by partition
    at: Position


class Checkpoints:
    """The checkpoints of one run.

    Args:
        folder: they lie in; it need not be there.
        period_s: least wall time between two; infinity for none at all.
        keep: the most that are kept, the newest ones.
        identity: what they must have been written with to be used: name to value.
        warn: called with one line that the user must see, such as that a checkpoint is damaged.
        check: raises `Refused` about snapshots that no such run can have written (`actors.hosting.structures`). A
            checkpoint of this process is not checked.
        recording: of events, which belong to a checkpoint: what partitions had written by then must be there.
    """

    def __init__(
        self,
        folder: Path,
        period_s: float,
        keep: int,
        identity: Mapping[str, str],
        warn: Callable[[str], None],
        check: Callable[[list[Snapshot]], None] | None = None,
        recording: Recording | None = None,
    ):
        self._check, self._recording = check, recording
        self._own: set[int] = set()
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
            self._write(snapshots, replace(at, restarts=self.restarts))
            self.saved += 1
        except OSError as error:
            self.warn(f"no checkpoint was written to {self.folder}: {error.strerror or error}")
        self._last = time.monotonic()

    def load(self) -> Checkpoint | None:
        """Return the newest checkpoint that can be used; None if there is none.

        A warning gives the reason for each that cannot be used, and another one says if none is left.
        """
        numbers = self._numbers()
        for number in reversed(numbers):
            try:
                found = self._read(self._path(number))
                if self._check is not None and number not in self._own:
                    self._check(found.snapshots)
                if self._recording is not None:
                    check_traces(self._recording, [saved["recorded"] for saved in found.snapshots])
                return found
            except (Refused, OSError) as why:
                self.warn(f"checkpoint {self._path(number)} is not used: {why}")
                self._refused.add(number)
        if numbers:
            self.warn(f"no checkpoint in {self.folder} can be used: the run starts from the beginning")
        if self._recording is not None:
            remove_traces(self._recording)
        return None

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
            self._own.add(number)
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
        """Read a checkpoint; its files must be undamaged and of this run.

        Raises:
            Refused: they are not.
            OSError: a file cannot be read.
        """
        meta = _read_meta(path / META)
        for name, value in self._written_with().items():
            if meta.get(name) != value:
                raise Refused(f"it was written with another {name} ({meta.get(name)}, here {value})")
        at, snapshots = _position(meta), []
        for name, (expected, size) in _files_of(meta).items():
            if not (path / name).is_file():
                raise Refused(f"it has no {name}")
            # The size is compared first: to hash a file that has grown to terabytes takes long.
            if (path / name).stat().st_size != size or _sha256(path / name) != expected:
                raise Refused(f"{name} is damaged")
            snapshots.append(read_arrays(path / name))
        return Checkpoint(snapshots, at)


def _read_meta(path: Path) -> dict[str, Any]:
    """Read the description of a checkpoint.

    Raises:
        Refused: it is not there, or damaged.
    """
    try:
        state = path.stat()
        if not stat.S_ISREG(state.st_mode) or state.st_size > MOST_META_BYTES:
            raise Refused(f"{META} is damaged")
        meta = json.loads(path.read_text(encoding="utf-8"))
        if meta.pop("sha256") != _sha256_of_meta(meta):
            raise Refused(f"{META} is damaged")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise Refused(f"{META} is damaged") from None
    except FileNotFoundError:
        raise Refused(f"it has no {META}") from None
    return dict(meta)


def _position(meta: Mapping[str, Any]) -> Position:
    """Return the progress of the run; refuse numbers that cannot be."""
    at, most = meta.get("at"), 1 << 63
    names = {field.name: field.type for field in fields(Position)}
    if not isinstance(at, dict) or set(at) != set(names):
        raise Refused(f"{META} does not say how far the run was")
    for name, value in at.items():
        kinds = (int, float) if names[name] is float else (int,)
        if isinstance(value, bool) or not isinstance(value, kinds) or not -1 <= value < most:
            raise Refused(f"{META} has no possible {name}: {str(value)[:40]}")
    return Position(**at)


def _files_of(meta: Mapping[str, Any]) -> dict[str, tuple[str, int]]:
    """Return the files of the partitions, in order, with their sha256 and sizes in bytes."""
    files, sizes, count = meta.get("files"), meta.get("bytes"), meta.get("partitions")
    if not isinstance(count, int) or not isinstance(files, dict) or not 0 < len(files) == count:
        raise Refused(f"{META} has no file for each partition")
    if not isinstance(sizes, dict) or set(sizes) != set(files):
        raise Refused(f"{META} has no size for each file")
    names = [f"{k}.npz" for k in range(count)]
    if set(files) != set(names):
        raise Refused(f"{META} names other files than {names[0]} to {names[-1]}")
    return {name: (files[name], sizes[name]) for name in names}


def read_arrays(path: Path) -> Snapshot:
    """Read the arrays of a file of `numpy.savez`, not compressed, so that they take as much memory as the file.

    Raises:
        Refused: it is no such file, or what its headers say cannot be.
    """
    found: Snapshot = {}
    try:
        with zipfile.ZipFile(path) as archive:
            room = path.stat().st_size
            for member in archive.infolist():
                name = member.filename.removesuffix(".npy")
                stored = (
                    member.compress_type == zipfile.ZIP_STORED and member.file_size == member.compress_size
                )
                room -= member.file_size
                if name == member.filename or name in found or not stored or room < 0:
                    raise Refused(f"{path.name} has a member that is packed, twice there or no array")
                found[name] = _read_array(archive.read(member))
    except (zipfile.BadZipFile, ValueError, ArithmeticError, EOFError, RuntimeError) as error:
        raise Refused(f"{path.name} is no file of arrays: {error}") from None
    return found


def _read_array(content: bytes) -> np.ndarray:
    """Read one array; its header must give as many bytes as there are, before memory is allocated.

    Raises:
        ValueError: it is none.
    """
    file = io.BytesIO(content)
    if np.lib.format.read_magic(file) != (1, 0):
        raise ValueError("an array's header is of another version")
    shape, fortran, dtype = np.lib.format.read_array_header_1_0(file)
    if dtype.hasobject:
        raise ValueError(f"an array of type {dtype}")
    if math.prod(shape) * dtype.itemsize != len(content) - file.tell() or min(shape, default=0) < 0:
        raise ValueError(f"an array of shape {shape} in {len(content)} bytes")
    return (
        np.frombuffer(content, dtype, offset=file.tell()).reshape(shape, order="F" if fortran else "C").copy()
    )


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
