"""What `benchmarks.crash` looks at when a run has ended: its files, and what is left on the machine."""

from __future__ import annotations

import fcntl
import json
import os
import re
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.crash_processes import processes

# The only parts of a run directory that may differ: when it was run, how long that took, and how often it was taken up.
WALL = {"wall_s", "load_s", "compile_s", "tasks_per_s", "peak_rss_mb", "restarts"}
LATER = {
    "process",
    "record",
    "results",
    "bytes",
    "at",
    "address",
    "sha256",
}  # of a manifest: hashes of what has wall times in it
BUT = {"comparison.csv": ",engine,", "config.toml": "address ="}  # lines of wall times; where it ran
SKIPPED = {"results.csv", "results.parquet", "report.html"}  # of a sweep: rows with wall times


def differences(run: Path, whole: Path, said: str) -> str:
    """In what a finished directory differs from that of an undisturbed run; empty: in nothing."""
    ours, theirs = (sorted(p.relative_to(f) for p in f.rglob("*") if p.is_file()) for f in (run, whole))
    if ours != theirs:
        return f"OTHER FILES: {sorted(map(str, set(ours) ^ set(theirs)))}"
    for name in ours:
        if name.name in SKIPPED:
            continue
        if name.suffix == ".json":
            same = _plain(run / name) == _plain(whole / name)
        elif name.name in BUT:
            same = _but(run / name, BUT[name.name]) == _but(whole / name, BUT[name.name])
        else:
            same = (run / name).read_bytes() == (whole / name).read_bytes()
        if not same:
            return f"DIFFERENT: {name}"
    restarts = any('"restarts"' in (run / name).read_text() for name in ours if name.name == "summary.json")
    return "SILENT: taken up again without a word" if restarts and "note:" not in said else ""


def _but(path: Path, what: str) -> list[str]:
    """The lines of a file without those that have a word in them."""
    return [line for line in path.read_text().splitlines() if what not in line]


def _plain(path: Path) -> Any:
    """A summary or manifest without what may differ."""

    def without(value: Any) -> Any:
        if isinstance(value, dict):
            return {k: without(v) for k, v in value.items() if k not in WALL and k not in LATER}
        return [without(v) for v in value] if isinstance(value, list) else value

    return without(json.loads(path.read_text()))


def leftovers(sessions: set[int], run: Path, grace_s: float) -> str:
    """What a program that has ended left behind, after some seconds of grace; empty: nothing."""
    end = time.monotonic() + grace_s
    while found := _left(sessions, run):
        if time.monotonic() > end:
            return f"LEFT BEHIND: {found}"
        time.sleep(0.1)
    return ""


def _left(sessions: set[int], run: Path) -> str:
    if living := [p for p in processes() if p.session in sessions]:
        return f"process {living[0].command[:80]}"
    raylets = {p.pid for p in processes() if "/raylet/raylet " in p.command}
    for name in os.listdir("/dev/shm"):
        match = re.fullmatch(r"sem\.(?:hdr|obj)(\d+)-\d+", name)
        if match and int(match[1]) not in raylets:
            return f"semaphore {name}"
    for place in {"/tmp", tempfile.gettempdir()}:
        for name in os.listdir(place):
            if re.fullmatch(r"emu_(?:ray|checkpoints|events|explain)_.*", name) and not _is_held(
                f"{place}/{name}"
            ):
                return f"folder {place}/{name}"
    hidden = [p for p in run.rglob(".*") if p.name != ".lock"]
    return f"file {hidden[0]}" if hidden else ""


def _is_held(folder: str) -> bool:
    """Whether a process holds the lock of a temporary folder; one that is gone by now is held by its remover."""
    try:
        handle = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return True
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(handle)
    return False
