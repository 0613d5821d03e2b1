"""Run directories that are damaged in every way a file can be: made, changed, read, and compared with what they were.

    python -m tests.emu.directories.directory_mutations --seeds 2000     # from the root of the repository

Whatever is changed, `emu report`, `--resume` and the functions of Python end in one line that names what is wrong, or
give what they gave before: never a traceback, and never other values.
"""  # fmt: skip

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import random
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from emu.cli import main
from emu.directories.names import CHECKPOINTS, CONFIG, EVENTS, SUMMARY, WORKLOAD
from emu.families.registry import families

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


def mutations(place: Path, seed: int) -> str:
    """Change one file or folder below `place`, as a seed has it, and return what was done in words."""
    rng = random.Random(seed)
    files = sorted(p for p in place.rglob("*") if p.is_file() and not p.is_symlink())
    file = rng.choice(files)
    change = rng.choice(_CHANGES if file.suffix != ".json" else _CHANGES + _JSON_CHANGES * 2)
    change(file, rng)
    return f"{change.__name__.strip('_')} {file.relative_to(place)}"


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
        if code not in (0, 1, 2) or "Traceback" in output or "(unexpected;" in output:
            return f"{command[0]} ended with {code}: {output.strip()[-500:]}"
        if code and "emu: " not in output:
            return f"{command[0]} ended with {code}, without a word"
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
            change = mutations(folder, seed)
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
        Checkpoints.due, Result.write = due, write  # type: ignore[method-assign]
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


# Changes of any file.


def _flip(file: Path, rng: random.Random) -> None:
    content = bytearray(file.read_bytes())
    for _ in range(rng.choice((1, 1, 1, 8))):
        if content:
            content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
    file.write_bytes(content)


def _truncate(file: Path, rng: random.Random) -> None:
    os.truncate(file, rng.randrange(file.stat().st_size + 1))


def _empty(file: Path, rng: random.Random) -> None:
    file.write_bytes(b"")


def _remove(file: Path, rng: random.Random) -> None:
    file.unlink()


def _repeat(file: Path, rng: random.Random) -> None:
    content = file.read_bytes()
    at, end = sorted(rng.randrange(len(content) + 1) for _ in range(2))
    file.write_bytes(content[:end] + content[at:])


def _cut(file: Path, rng: random.Random) -> None:
    content = file.read_bytes()
    at, end = sorted(rng.randrange(len(content) + 1) for _ in range(2))
    file.write_bytes(content[:at] + content[end:])


def _append(file: Path, rng: random.Random) -> None:
    with open(file, "ab") as opened:
        opened.write(rng.randbytes(rng.randrange(1, 1000)))


def _noise(file: Path, rng: random.Random) -> None:
    file.write_bytes(rng.randbytes(rng.randrange(5000)))


def _swap(file: Path, rng: random.Random) -> None:
    """With another file of its folder."""
    other = rng.choice(sorted(p for p in file.parent.iterdir() if p.is_file()))
    contents = file.read_bytes(), other.read_bytes()
    other.write_bytes(contents[0])
    file.write_bytes(contents[1])


def _pipe(file: Path, rng: random.Random) -> None:
    file.unlink()
    os.mkfifo(file)


def _folder(file: Path, rng: random.Random) -> None:
    file.unlink()
    file.mkdir()
    if rng.random() < 0.5:
        (file / "x").touch()


def _link(file: Path, rng: random.Random) -> None:
    file.unlink()
    file.symlink_to(rng.choice(("/dev/zero", "/dev/null", file.name, "/no/such/file", "..", "/etc/passwd")))


def _huge(file: Path, rng: random.Random) -> None:
    os.truncate(file, 1 << rng.randrange(26, 36))  # with holes: it takes no room


def _deep(file: Path, rng: random.Random) -> None:
    file.write_text(rng.choice(("[", '{"a":', "a = [", "[a.")) * rng.choice((2000, 100_000)))


def _digits(file: Path, rng: random.Random) -> None:
    file.write_text(rng.choice(("9", "a = 9", '{"a": 9')) + "9" * 5000)


# Changes of JSON.


def _of_value(file: Path, rng: random.Random) -> None:
    """Put something else in the place of a value."""
    content = json.loads(file.read_text())
    holders = [holder for holder in _holders(content) if holder]
    if holders:
        holder = rng.choice(holders)
        key = rng.choice(sorted(holder)) if isinstance(holder, dict) else rng.randrange(len(holder))
        other = (
            None,
            True,
            -1,
            0,
            1e308,
            2**70,
            "",
            "../..",
            [],
            {},
            [[]],
            {"a": 1},
            "finished",
            "\u001b[31m",
        )
        holder[key] = rng.choice(other)
    file.write_text(json.dumps(content))


def _of_key(file: Path, rng: random.Random) -> None:
    """Take a key away, or give it another name."""
    content = json.loads(file.read_text())
    holders = [holder for holder in _holders(content) if isinstance(holder, dict) and holder]
    if holders:
        holder = rng.choice(holders)
        value = holder.pop(rng.choice(sorted(holder)))
        if rng.random() < 0.5:
            holder["other"] = value
    file.write_text(json.dumps(content))


def _holders(content: Any) -> Iterator[Any]:
    if isinstance(content, dict | list):
        yield content
        for inner in content.values() if isinstance(content, dict) else content:
            yield from _holders(inner)


_CHANGES: tuple[Callable[[Path, random.Random], None], ...] = (
    _flip, _flip, _flip, _truncate, _truncate, _empty, _remove, _repeat, _cut, _append, _noise, _swap, _pipe, _folder,
    _link, _huge, _deep, _digits,
)  # fmt: skip
_JSON_CHANGES = (_of_value, _of_key)


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
