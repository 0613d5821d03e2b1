"""Run directories: whoever dies, whoever comes at once, and whatever is changed in them."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from directory_mutations import fuzz
from emulations import PATIENCE_S
from killed import calls_of, kill_at
from sweep_grids import SMALL, write

import emu as package
from actors.hosting.checkpoint import Checkpoints
from actors.hosting.ending import Lost
from emu import disk, locks
from emu import run_directory as rd
from emu.results import read_result
from emu.sweeps import sweep
from workloads.errors import InputError

Cli = Callable[..., Any]
RUN = ("run", "--scheduler", "random", "--workload", "small", "--nodes", "20", "--in-process")
COMPARE = ("compare", "--schedulers", "random,central-fifo", *RUN[3:])
TABLES = ("jobs.parquet", "timeline.parquet")
SIZE = (
    "size",
    "--target",
    "p50 < 1h",
    "--scheduler",
    "random",
    "--workload",
    "small",
    "--in-process",
    "--low",
    "9",
)


def same_bytes(one: Path, other: Path) -> bool:
    return all((one / n).read_bytes() == (other / n).read_bytes() for n in TABLES)


def flip(path: Path, at: int = -100) -> None:
    content = bytearray(path.read_bytes())
    content[at] ^= 4
    path.write_bytes(content)


@pytest.fixture
def finished(emu: Cli, trace: Path) -> Path:
    assert emu(*RUN, "--out", "r").code == 0
    return Path("r")


@pytest.fixture
def compared(emu: Cli, trace: Path) -> Path:
    """Of two seeds, which draws no figures."""
    assert emu(*RUN, "--seeds", "2", "--out", "c").code == 0
    return Path("c")


# Kills: at every call to the file system, in a process that dies there.


def test_killed_anywhere_it_is_whole_or_goes_on(finished: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Checkpoints, "due", lambda self: not self.saved)
    names = {p.name for p in finished.iterdir()}

    def act() -> None:
        package.run("random", "small", 20, in_process=True, out="killed")

    number = calls_of(act)
    assert {p.name for p in Path("killed").iterdir()} == names
    begun = 0
    for k in sorted({*range(0, number, 3), *range(number - 12, number)}):  # all were tried, which takes 20 s
        shutil.rmtree("killed", ignore_errors=True)
        kill_at(k, act)
        there = {p.name for p in Path("killed").iterdir()} if Path("killed").exists() else set()
        if rd.MANIFEST not in there:  # nothing but a lock and what was begun: it is claimed anew
            assert all(name == locks.LOCK or name.startswith(f".{rd.MANIFEST}.") for name in there)
            act()
        else:
            begun += 1
            if read_or_none(Path("killed")) is not None:  # the manifest is the last thing that is written
                assert there - {locks.LOCK} == names
            assert same_bytes(Path(package.resume("killed").path or ""), finished)
        assert same_bytes(Path("killed"), finished)
        assert {p.name for p in Path("killed").iterdir()} == names, f"killed at call {k}"
    assert begun > number / 6


def read_or_none(folder: Path) -> package.Result | None:
    try:
        return read_result(folder)
    except InputError:
        return None


def test_what_was_done_is_not_done_again(finished: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed while checkpoints are removed: results are on the disk, and nothing is computed."""
    manifest = {**rd.read_manifest(finished), "status": "running"}
    rd.write_manifest(finished, manifest)
    (finished / rd.CHECKPOINTS / "000001").mkdir(parents=True)
    (finished / ".jobs.parquet.123").touch()
    (finished / locks.LOCK).touch()

    def computed(*_: Any) -> None:
        raise AssertionError

    monkeypatch.setattr("emu.emulation.execute", computed)
    package.resume(finished)
    assert {p.name for p in finished.iterdir()} == {rd.MANIFEST, rd.CONFIG, rd.SUMMARY, *TABLES}


def test_results_are_on_the_disk_before_the_manifest_says_so(
    finished: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flushed: list[str] = []
    write_manifest, flush = rd.write_manifest, disk.flush

    def flushing(path: Path) -> None:
        flushed.append(path.name)
        flush(path)

    def writing(out: Path, manifest: dict[str, Any]) -> None:
        if manifest["status"] == "finished":
            flushed.append("said")
        write_manifest(out, manifest)

    monkeypatch.setattr(rd, "flush", flushing)
    monkeypatch.setattr(rd, "write_manifest", writing)
    read_result(finished).save("again")
    assert {*TABLES, rd.SUMMARY, rd.CONFIG, "again"} <= {*flushed[: flushed.index("said")]}


def test_a_sweep_that_was_killed_leaves_nothing(emu: Cli, trace: Path) -> None:
    source = write(SMALL.replace('"random", "central-fifo"', '"random"').replace("[1, 2]", "[1]"))
    sweep(source, in_process=True, out="whole")
    names = sorted(p.relative_to("whole").as_posix() for p in Path("whole").rglob("*"))

    def act() -> None:
        sweep(source, in_process=True, out="s")

    number = calls_of(act)
    for k in range(2, number, 9):
        shutil.rmtree("s", ignore_errors=True)
        kill_at(k, act)
        act()
        assert sorted(p.relative_to("s").as_posix() for p in Path("s").rglob("*")) == names, k
        assert same_bytes(Path("s/scheduler=random/seed=1"), Path("whole/scheduler=random/seed=1"))


# Claims.


def test_of_several_at_once_all_but_one_are_refused(finished: Path) -> None:
    rd.write_manifest(finished, {**rd.read_manifest(finished), "status": "interrupted"})
    program = """
import os, sys, time
from pathlib import Path
from emu import run_directory as rd
from workloads.errors import InputError
sys.stdin.read()
try:
    with rd.taken_up(Path("r")) as manifest:
        rd.begin(Path("r"), manifest)
        while not Path("others-ended").exists():
            time.sleep(0.02)
        print("had it", os.getpid())
except InputError as error:
    print(error)
"""
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    children = [
        subprocess.Popen(
            [sys.executable, "-c", program],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment,
        )
        for _ in range(4)
    ]  # fmt: skip
    for child in children:
        assert child.stdin is not None
        child.stdin.close()  # all are let loose
    end = time.monotonic() + PATIENCE_S
    while sum(child.poll() is None for child in children) > 1 and time.monotonic() < end:
        time.sleep(0.02)
    Path("others-ended").touch()
    told = [child.stdout.read().strip() for child in children if child.stdout is not None]
    for child in children:
        child.wait()
    (holder,) = [text.removeprefix("had it ") for text in told if text.startswith("had it ")]
    assert sum(text.startswith(f"--resume: r is being run by process {holder} on ") for text in told) == 3


def test_a_lock_ends_with_its_process(finished: Path) -> None:
    def hold() -> None:
        rd.hold(finished, "--out")
        os.kill(os.getpid(), signal.SIGKILL)

    child = os.fork()
    if not child:
        hold()
    os.waitpid(child, 0)
    assert (finished / locks.LOCK).exists()
    assert not locks.is_held(finished)
    assert locks.acquire(finished) is locks.Found.LEFT
    assert locks.is_held(finished)
    assert locks.acquire(finished) is locks.Found.HELD
    locks.release(finished)
    assert not (finished / locks.LOCK).exists()


def test_a_child_does_not_keep_the_lock(finished: Path) -> None:
    locks.acquire(finished)
    child = os.fork()
    if not child:
        signal.pause()
    locks.release(finished, remove=False)
    try:
        assert locks.acquire(finished) is locks.Found.LEFT
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        locks.release(finished)


@pytest.mark.parametrize("command", [RUN, COMPARE], ids=["run", "compare"])
def test_a_directory_that_is_being_run_is_told_so(command: tuple[str, ...], finished: Path, emu: Cli) -> None:
    with rd.taken_up(finished) as manifest:
        rd.begin(finished, manifest)
        for more in ((), ("--overwrite",)):
            line = emu(*command, "--out", "r", *more).line()
            assert line.startswith(f"emu: --out: r is being run by process {os.getpid()} on ")
            assert "remove" not in line
        assert f"r: is being run by process {os.getpid()} on " in emu("report", "r").line()
    assert (
        "r holds a run that was killed; emu run --resume r goes on with it" in emu(*RUN, "--out", "r").line()
    )


@pytest.mark.parametrize(
    ("status", "told"), [("interrupted", "was interrupted"), ("failed", "failed"), ("running", "was killed")]
)
def test_what_ended_early_is_told_with_what_goes_on(status: str, told: str, finished: Path, emu: Cli) -> None:
    rd.write_manifest(finished, {**rd.read_manifest(finished), "status": status})
    for command in ((*RUN, "--out", "r"), ("report", "r")):
        assert f"holds a run that {told}; emu run --resume r goes on with it" in emu(*command).line()


# Overwriting.


@pytest.mark.parametrize("command", [RUN, COMPARE], ids=["run", "compare"])
def test_a_run_is_overwritten_if_asked(command: tuple[str, ...], finished: Path, emu: Cli) -> None:
    line = emu(*command, "--out", "r").line()
    assert line.endswith("r holds a run that is finished; choose another directory, or give --overwrite")
    before = (finished / "jobs.parquet").read_bytes()
    assert emu(*command, "--nodes", "30", "--out", "r", "--overwrite").code == 0
    assert (finished / "jobs.parquet").exists() == (command is RUN)
    assert command is COMPARE or (finished / "jobs.parquet").read_bytes() != before
    assert emu(*RUN, "--out", "r", "--overwrite").code == 0
    assert {p.name for p in finished.iterdir()} == {rd.MANIFEST, rd.CONFIG, rd.SUMMARY, *TABLES}
    assert "--overwrite: not with --resume" in emu("run", "--resume", "r", "--overwrite").line()


def test_sweeps_and_searches_are_overwritten_if_asked(emu: Cli, trace: Path) -> None:
    assert emu("sweep", write(SMALL), "--in-process", "--out", "s").code == 0
    write(SMALL.replace("[1, 2]", "[3]"))
    assert emu("sweep", "grid.toml", "--in-process", "--out", "s").line().endswith("or give --overwrite")
    assert emu("sweep", "grid.toml", "--in-process", "--out", "s", "--overwrite").code == 0
    assert [p.name for p in sorted(Path("s").rglob("seed=*"))] == ["seed=3", "seed=3"]
    assert "holds a sweep, not a size" in emu(*SIZE, "--out", "s").line()
    assert emu(*SIZE, "--out", "s", "--overwrite").code == 0
    assert {p.name for p in Path("s").iterdir() if "=" not in p.name} == {rd.MANIFEST, rd.CONFIG, rd.SUMMARY}


@pytest.mark.parametrize(
    "mine", ["notes.txt", "checkpoints/mine", "seed=1/thesis.tex", "report.html", "my.svg", "workload/x.csv"]
)
def test_what_emu_did_not_write_is_not_removed(mine: str, finished: Path, emu: Cli) -> None:
    (finished / mine).parent.mkdir(exist_ok=True)
    (finished / mine).write_text("mine")
    before = {p: p.is_file() and p.read_bytes() for p in finished.rglob("*")}
    line = emu(*RUN, "--out", "r", "--overwrite").line()
    assert line.startswith("emu: --overwrite: Emu did not write r/")
    assert {p: p.is_file() and p.read_bytes() for p in finished.rglob("*")} == before


def test_what_is_no_run_is_not_overwritten(emu: Cli, trace: Path) -> None:
    Path("app").mkdir()
    Path("app/manifest.json").write_text('{"name": "app"}')
    assert "--overwrite: app holds no run of Emu" in emu(*RUN, "--out", "app", "--overwrite").line()
    Path("mine").mkdir()
    Path("mine/config.toml").write_text("")
    assert "--overwrite: mine holds no run of Emu" in emu(*RUN, "--out", "mine", "--overwrite").line()
    assert sorted(p.as_posix() for p in Path().glob("*/*")) == [
        "app/manifest.json", "mine/config.toml", *sorted(p.as_posix() for p in Path("small").iterdir())
    ]  # fmt: skip
    assert emu(*RUN, "--out", "new", "--overwrite").code == 0


def test_a_run_within_that_is_being_run_is_not_overwritten(compared: Path, emu: Cli) -> None:
    with rd.taken_up(compared / "seed=2"):
        line = emu(*RUN, "--out", "c", "--overwrite").line()
    assert line == "emu: --overwrite: c/seed=2 is being run by another process"
    assert read_result(compared / "seed=1")


# What is changed.


@pytest.mark.parametrize("name", ["jobs.parquet", "timeline.parquet", "summary.json", "config.toml"])
def test_a_flipped_bit_is_an_error(name: str, finished: Path, emu: Cli) -> None:
    flip(finished / name)
    for command in (("report", "r"), ("run", "--resume", "r")):
        line = emu(*command).line()
        assert line.startswith(f"emu: r: {name} is not as it was written (its sha256 is in manifest.json); ")
    with pytest.raises(InputError, match=name):
        package.resume(finished)
    if name != "config.toml":
        command = line.partition("restore it, or emu ")[2].removesuffix(" runs it again").split()
        assert emu(*command).code == 0
        assert read_result(finished)


def test_a_manifest_is_checked_by_itself(finished: Path, emu: Cli) -> None:
    text = (finished / rd.MANIFEST).read_text()
    (finished / rd.MANIFEST).write_text(text.replace('"nodes": 20', '"nodes": 21'))
    assert emu("report", "r").line() == "emu: r/manifest.json: is damaged: sha256 is not that of its content"
    # Those of earlier versions have no seal, and are read.
    manifest = json.loads(text)
    del manifest["sha256"]
    (finished / rd.MANIFEST).write_text(json.dumps(manifest))
    assert read_result(finished).summary["nodes"] == 20
    for change in ({"shaXXX": "0"}, {"results": []}, {"runs": ["../x"]}, {"inputs": [1]}, {"status": 1}):
        (finished / rd.MANIFEST).write_text(json.dumps({**manifest, **change}))
        assert "r/manifest.json: field " in emu("report", "r").line()


def test_runs_of_a_comparison_that_are_damaged_are_computed_again(compared: Path, emu: Cli) -> None:
    whole = {p: p.read_bytes() for p in compared.rglob("*.parquet")}
    flip(compared / "seed=2" / "jobs.parquet")
    line = emu("report", "c").line()
    assert "c/seed=2: jobs.parquet is not as it was written" in line
    kept = (compared / "seed=1" / "jobs.parquet").stat().st_mtime_ns
    ended = emu("run", "--resume", "c")
    assert ended.code == 0
    assert "emu: note: c/seed=2 is computed again: jobs.parquet is not as it was written\n" in ended.err
    assert {p: p.read_bytes() for p in compared.rglob("*.parquet")} == whole
    assert (compared / "seed=1" / "jobs.parquet").stat().st_mtime_ns == kept
    flip(compared / rd.SUMMARY)
    assert emu("report", "c").line().endswith("restore it, or emu run --resume c makes it again")
    assert package.resume(compared).summaries
    assert emu("run", "--resume", "c").err == ""


@pytest.mark.parametrize("name", [*TABLES, "summary.json", "manifest.json"])
@pytest.mark.parametrize("how", [flip, lambda path: os.truncate(path, 50)], ids=["flipped", "truncated"])
def test_runs_of_a_sweep_that_are_damaged_are_computed_again(
    how: Callable[[Path], None], name: str, emu: Cli, trace: Path, counted: list[str]
) -> None:
    source = write(SMALL.replace('"random", "central-fifo"', '"random"'))
    first = sweep(source, in_process=True, out="s")
    how(Path("s/scheduler=random/seed=2") / name)
    counted.clear()
    ended = emu("sweep", source, "--in-process", "--out", "s", "--json")
    assert ended.code == 0
    assert counted == ["random 2"]
    assert ended.line().startswith("emu: note: s/scheduler=random/seed=2 is computed again: ")
    assert json.loads(ended.out) == first.summary


def test_a_search_computes_damaged_runs_again(emu: Cli, trace: Path, counted: list[str]) -> None:
    assert emu(*SIZE, "--out", "s").code == 0
    os.truncate("s/nodes=9/seed=1/summary.json", 50)
    counted.clear()
    ended = emu(*SIZE, "--out", "s")
    assert (ended.code, counted) == (0, ["random 1"])
    assert "s/nodes=9/seed=1 is computed again: summary.json is not as it was written" in ended.err


def test_an_edited_configuration_is_refused(finished: Path, emu: Cli) -> None:
    rd.write_manifest(
        finished,
        {k: v for k, v in rd.read_manifest(finished).items() if k != "results"} | {"status": "interrupted"},
    )
    text = (finished / rd.CONFIG).read_text()
    for change, told in (
        (
            text.replace('delay = "0.0005 s"', 'delay = "0.005 s"'),
            "network.delay is '0.005 s' there, and was '0.0005 s'",
        ),
        (text[: len(text) // 2], "put it back as it was"),
        ("[" * 5000, "r/config.toml is not as it was written: "),
        (text.replace("nodes = 20\n", ""), "nodes is not given there, and was 20"),
    ):
        (finished / rd.CONFIG).write_text(change)
        line = emu("run", "--resume", "r").line()
        assert line.startswith("emu: --resume: r/config.toml is not as ")
        assert told in line
    (finished / rd.CONFIG).write_text(f"# a comment\n{text}")
    before = (finished / "jobs.parquet").read_bytes()
    assert emu("run", "--resume", "r").code == 0
    assert (finished / rd.CONFIG).read_text() == text
    (finished / rd.CONFIG).unlink()
    rd.write_manifest(
        finished,
        {k: v for k, v in rd.read_manifest(finished).items() if k != "results"} | {"status": "interrupted"},
    )
    assert emu("run", "--resume", "r").code == 0  # the manifest has it too
    assert ((finished / rd.CONFIG).read_text(), (finished / "jobs.parquet").read_bytes()) == (text, before)


@pytest.mark.parametrize("name", ["manifest.json", "summary.json", "config.toml", "jobs.parquet"])
@pytest.mark.parametrize("what", ["pipe", "folder", "device"])
def test_what_is_no_plain_file_is_told(what: str, name: str, finished: Path, emu: Cli) -> None:
    (finished / name).unlink()
    if what == "pipe":
        os.mkfifo(finished / name)
    elif what == "folder":
        (finished / name).mkdir()
    else:
        (finished / name).symlink_to("/dev/zero")
    assert name in emu("report", "r").line()
    assert name in emu("run", "--resume", "r").line()
    assert emu(*RUN, "--out", "r").code == 2


def test_a_manifest_that_would_take_the_memory_is_not_read(finished: Path, emu: Cli) -> None:
    with open(finished / rd.MANIFEST, "wb") as file:
        file.truncate(1 << 40)
    assert "has 1,099,511,627,776 bytes" in emu("report", "r").line()
    (finished / rd.MANIFEST).write_text("[" * 100_000)
    assert "is nested too deeply" in emu("report", "r").line()
    (finished / rd.MANIFEST).write_text('{"a": ' + "9" * 5000 + "}")
    assert "cannot be read" in emu("report", "r").line()


def test_a_table_that_unpacks_to_gigabytes_is_refused(finished: Path) -> None:
    """With a manifest that fits: what is read of someone else's directory is bounded all the same."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    zeros = pa.array([0.0]).take(pa.array([0] * 1_000_000))
    with pq.ParquetWriter(
        finished / "jobs.parquet", pa.schema([("jct_s", pa.float64())]), compression="zstd"
    ) as file:
        for _ in range(40):
            file.write_table(pa.table({"jct_s": zeros}))
    manifest = rd.read_manifest(finished)
    manifest["results"]["jobs.parquet"] = disk.sha256_of(finished / "jobs.parquet")
    manifest["bytes"]["jobs.parquet"] = (finished / "jobs.parquet").stat().st_size
    rd.write_manifest(finished, manifest)
    with pytest.raises(
        InputError, match=r"jobs\.parquet: would take 0\.3 GiB of memory; no run writes such a file"
    ):
        read_result(finished)


def test_directories_changed_in_every_way(tmp_path: Path, trace: Path) -> None:
    """A few of the changes that `python -m tests.emu.directory_mutations` tries by the thousand."""
    (tmp_path / "m").mkdir()
    assert list(fuzz(tmp_path / "m", trace, range(10))) == []


def test_changes_are_noticed_only_because_files_are_compared(
    tmp_path: Path, trace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The fuzzer itself: without the comparison with the manifest it finds other values."""
    (tmp_path / "m").mkdir()
    monkeypatch.setattr(rd, "damaged", lambda *_: None)
    faults = list(fuzz(tmp_path / "m", trace, range(0, 50, 5), ("finished",)))
    assert any(fault.fault.startswith("other values") for fault in faults)


@pytest.mark.parametrize(
    ("clock", "advice"),
    [("windows", "goes on with it"), ("live", "begins it anew, as the clock live cannot go on")],
)
@pytest.mark.parametrize("ends", [Lost, KeyboardInterrupt])
def test_what_ends_early_names_what_can_be_done(
    clock: str, advice: str, ends: type[BaseException], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    manifest = {"config": {"clock": clock}}
    with pytest.raises(ends) as told, rd.claimed("r", manifest, ""):
        raise ends("the cluster is gone")
    assert str(told.value).endswith(f"emu run --resume r {advice}")
    assert rd.read_manifest(Path("r"))["status"] == ("failed" if ends is Lost else "interrupted")
