"""Run directories that are changed in every way that `tests.mutations` knows: made, changed, read, and compared.

    python -m tests.emu.directories.directory_mutations --seeds 2000     # from the root of the repository

Whatever is changed, `emu report`, `--resume` and the functions of Python end in one line that names what is wrong, or
give what they gave before: never a traceback, and never other values.
"""  # fmt: skip

from __future__ import annotations

import argparse
import contextlib
import io
import json
import random
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from emu.cli import main
from emu.directories.names import CHECKPOINTS, CONFIG, EVENTS, SUMMARY, WORKLOAD
from emu.families.registry import families
from tests.mutations import broken_promise, change_folder

KINDS = ("finished", "interrupted", "seeds", "sweep", "size", "events", "recorded")
"""The last one is ``interrupted`` with its events so far, the one before it what that comes to."""
RECORDED = ("--set", "output.events=all")
_WHOLE = {"interrupted": "finished", "recorded": "events"}
MOST_S = 300.0  # what takes longer does not end
_SWEEP = 'workload = "{}"\nnodes = 20\n[sweep]\nscheduler = ["random"]\nseed = [1, 2]\n'


class Fault(NamedTuple):
    """What went wrong with a directory, and how it had been changed."""

    seed: int
    kind: str
    change: str
    fault: str


def make(place: Path, workload: Path, kinds: tuple[str, ...] = KINDS) -> dict[str, Path]:
    """Make a small directory of each kind, and a finished one, of a workload of jobs; returns them by kind."""
    run = ("run", "--scheduler", "random", "--workload", workload, "--nodes", "20", "--in-process", "--out")
    (place / "grid.toml").write_text(_SWEEP.format(workload))
    commands = {
        "finished": (*run, place / "finished"),
        "events": (*run, place / "events", *RECORDED),
        "seeds": (*run, place / "seeds", "--seeds", "2"),
        "sweep": ("sweep", place / "grid.toml", "--in-process", "--out", place / "sweep"),
        "size": _size(workload, place / "size"),
    }
    for name, command in commands.items():
        if name not in kinds and name not in {_WHOLE.get(kind) for kind in kinds}:
            continue
        code, output = _call(*command)
        assert code == 0, f"{name}: {output}"
    if "interrupted" in kinds:
        _interrupted(place / "interrupted", workload)
    if "recorded" in kinds:
        _interrupted(place / "recorded", workload, *RECORDED)
    return {kind: place / kind for kind in KINDS}


def attempt(kind: str, folder: Path, whole: Path, workload: Path) -> str | None:
    """Read, report and go on with a directory of a kind; return what was wrong in that, None if nothing was.

    Parameters
    ----------
    kind : str
        One of `KINDS`.
    folder : Path
        That was changed.
    whole : Path
        As it was; of ``interrupted`` and ``recorded`` what it comes to.
    workload : Path
    """
    commands: list[tuple[Any, ...]] = [("report", folder, "--out", folder.with_suffix(".html"))]
    if kind == "sweep":
        commands.append(("sweep", whole.with_name("grid.toml"), "--in-process", "--out", folder))
    elif kind == "size":
        commands.append(_size(workload, folder))
    else:
        commands += [("explain", folder)] if kind == "events" else []
        commands.append(("run", "--resume", folder, "--in-process"))
    for command in commands:
        start = time.monotonic()
        code, output = _call(*command)
        if time.monotonic() - start > MOST_S:
            return f"{command[0]} took {time.monotonic() - start:.1f} s"
        if (fault := broken_promise(code, "", output)) is not None:
            return f"{command[0]} {fault}"
    if code == 0 and (other := _other(folder, whole)) is not None:
        return f"other values: {other}"
    return None


def fuzz(place: Path, workload: Path, seeds: range, kinds: tuple[str, ...] = KINDS) -> Iterator[Fault]:
    """Yield what goes wrong with directories that are changed as seeds have it; nothing, if all is well."""
    masters = make(place, workload, kinds)
    for seed in seeds:
        kind = kinds[seed % len(kinds)]
        folder = place / "changed"
        shutil.copytree(masters[kind], folder, symlinks=True)
        try:
            change = change_folder(folder, random.Random(seed), place=True)
            whole = masters[_WHOLE.get(kind, kind)]
            if (fault := attempt(kind, folder, whole, workload)) is not None:
                yield Fault(seed, kind, change, fault)
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def _size(workload: Path, out: Path) -> tuple[Any, ...]:
    target = ("--target", "p50 < 1h", "--low", "9")
    return ("size", "--scheduler", "random", "--workload", workload, *target, "--in-process", "--out", out)


def _interrupted(out: Path, workload: Path, *more: str) -> None:
    """Make a run that was interrupted after its last checkpoint: results are not there yet."""
    from actors.hosting.checkpoint import Checkpoints
    from emu.results.result import Result

    due, write = Checkpoints.due, Result.write

    def interrupt(*_: Any) -> Path:
        raise KeyboardInterrupt

    Checkpoints.due, Result.write = lambda self: not self.saved, interrupt  # type: ignore[method-assign, assignment]
    try:
        run = ("run", "--scheduler", "random", "--workload", workload, "--nodes", "20", "--in-process")
        code, output = _call(*run, *more, "--out", out)
    finally:
        Checkpoints.due, Result.write = due, write
    assert code == 130, output
    assert (out / CHECKPOINTS).is_dir()


def _call(*argv: Any) -> tuple[int, str]:
    """Return exit code and what was printed on standard error."""
    found = io.StringIO()
    with contextlib.redirect_stderr(found), contextlib.redirect_stdout(io.StringIO()):
        code = main([str(word) for word in argv])
    return code, found.getvalue()


def _other(folder: Path, whole: Path) -> str | None:
    """Return the first table that is not as it was; a finished directory may lack one that is optional."""
    for file in sorted(whole.rglob("*.parquet")):
        path = file.relative_to(whole)
        known = path.name == EVENTS or any(path.stem in family.tables for family in families())
        if not known or path.parts[0] == WORKLOAD:
            continue
        if not (folder / path).exists() or (folder / path).read_bytes() != file.read_bytes():
            return str(path)
    for name in (SUMMARY, CONFIG):
        texts = [json_of(of / name) if name == SUMMARY else (of / name).read_text() for of in (folder, whole)]
        if texts[0] != texts[1]:
            return name
    return None


def json_of(file: Path) -> Any:
    """Return a summary without what differs each time: wall times, memory, how often a run was taken up again."""
    summary = json.loads(file.read_text())
    if isinstance(summary, dict):
        summary.pop("engine", None)
        summary.get("confidence_95", {}).pop("engine", None)
    return summary


def _main() -> None:
    from workloads.catalogue import load_workload, save_workload

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=200, help="how many changes are tried")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="emu-mutations-") as name:
        workload = Path(name) / "workload"
        save_workload(load_workload("yahoo", options={"jobs": 60, "nodes": 20}), workload)
        faults = list(fuzz(Path(name), workload, range(options.first, options.first + options.seeds)))
    for fault in faults:
        print(f"seed {fault.seed}, {fault.kind}: {fault.change}: {fault.fault}")
    print(f"{options.seeds:,} changes, {len(faults):,} faults")


if __name__ == "__main__":
    _main()
