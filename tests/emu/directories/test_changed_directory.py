"""Run directories that were changed: the change is detected and reported, and the run is computed again."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from directory_mutations import fuzz
from run_commands import RUN, SIZE, TABLES
from sweep_grids import SMALL, write

import emu as package
from emu import disk
from emu.directories import run_directory as rd
from emu.directories.names import CONFIG, SUMMARY
from emu.results.result import read_result
from emu.sweeps.sweep import sweep
from workloads.errors import InputError

Cli = Callable[..., Any]


def flip(path: Path, at: int = -100) -> None:
    content = bytearray(path.read_bytes())
    content[at] ^= 4
    path.write_bytes(content)


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
    for change in (
        {"sha": "0"}, {"results": []}, {"runs": ["../x"]}, {"inputs": [1]}, {"status": 1}, {"config": 3},
    ):  # fmt: skip
        (finished / rd.MANIFEST).write_text(json.dumps({**manifest, **change}))
        for command in ("report", "explain", "plot"):
            assert "r/manifest.json: field " in emu(command, "r").line()
    for changed in ({"output": None}, {"output": {"events": 3}}, {"cost": []}):
        (finished / rd.MANIFEST).write_text(json.dumps({**manifest, "config": manifest["config"] | changed}))
        assert "r/manifest.json: field config." in emu("explain", "r").line()
    for content in ("[]", "3", "null", '"text"', "true"):
        (finished / rd.MANIFEST).write_text(content)
        for command in (
            ("report", "r"),
            ("explain", "r"),
            ("plot", "r"),
            ("timeline", "r"),
            ("run", "--resume", "r"),
        ):
            assert emu(*command).line() == "emu: r/manifest.json: is not a JSON object"


@pytest.mark.parametrize(
    ("how", "says"),
    [
        ("lacks", "field job: is not there"),
        ("doubles", "field job: is there 2 times"),
        ("retypes", "field job: is of type string; want int64"),
        ("nulls", "field time_ns: is null in some rows"),
    ],
)
def test_events_of_another_form_are_refused(how: str, says: str, emu: Cli, trace: Path) -> None:
    """Also where the manifest has the hash of the file as it is."""
    assert emu(*RUN, "--set", "output.events=all", "--set", "output.tasks=true", "--out", "r").code == 0
    path = Path("r/events.parquet")
    table = pq.read_table(path)
    at = table.column_names.index("job")
    changed = {
        "lacks": table.drop_columns(["job"]),
        "doubles": table.append_column("job", table["job"]),
        "retypes": table.set_column(at, "job", pa.array(["x"] * len(table))),
        "nulls": table.set_column(0, "time_ns", pa.nulls(len(table), pa.int64())),
    }[how]
    pq.write_table(changed, path)
    manifest = rd.read_manifest(Path("r"))
    rd.write_manifest(Path("r"), manifest | rd.results_of(Path("r"), manifest["results"]))
    for command in (("explain", "r"), ("explain", "r", "3"), ("timeline", "r")):
        ended = emu(*command)
        assert (ended.code, ended.line()) == (2, f"emu: r/events.parquet: {says}")


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
    flip(compared / SUMMARY)
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
    text = (finished / CONFIG).read_text()
    for change, expected in (
        (
            text.replace('delay = "0.0005 s"', 'delay = "0.005 s"'),
            "network.delay is '0.005 s' there, and was '0.0005 s'",
        ),
        (text[: len(text) // 2], "put it back as it was"),
        ("[" * 5000, "r/config.toml is not as it was written: "),
        (text.replace("nodes = 20\n", ""), "nodes is not given there, and was 20"),
    ):
        (finished / CONFIG).write_text(change)
        line = emu("run", "--resume", "r").line()
        assert line.startswith("emu: --resume: r/config.toml is not as ")
        assert expected in line
    (finished / CONFIG).write_text(f"# a comment\n{text}")
    before = (finished / "jobs.parquet").read_bytes()
    assert emu("run", "--resume", "r").code == 0
    assert (finished / CONFIG).read_text() == text
    (finished / CONFIG).unlink()
    rd.write_manifest(
        finished,
        {k: v for k, v in rd.read_manifest(finished).items() if k != "results"} | {"status": "interrupted"},
    )
    assert emu("run", "--resume", "r").code == 0  # the manifest has it too
    assert ((finished / CONFIG).read_text(), (finished / "jobs.parquet").read_bytes()) == (text, before)


@pytest.mark.parametrize("name", ["manifest.json", "summary.json", "config.toml", "jobs.parquet"])
@pytest.mark.parametrize("what", ["pipe", "folder", "device"])
def test_what_is_no_plain_file_is_an_error(what: str, name: str, finished: Path, emu: Cli) -> None:
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


def test_a_table_whose_texts_unpack_to_gigabytes_is_refused(finished: Path) -> None:
    """A text that is there once in a file, and in each row of the table that is made of it."""
    jobs = pq.read_table(finished / "jobs.parquet").take([0] * 1_000_000)
    wide = pa.array(["x" * 20_000]).dictionary_encode().take(pa.array([0] * 1_000_000))
    jobs = jobs.set_column(jobs.column_names.index("tenant"), "tenant", wide)
    pq.write_table(jobs, finished / "jobs.parquet", compression="zstd")
    manifest = rd.read_manifest(finished)
    manifest["results"]["jobs.parquet"] = disk.sha256_of(finished / "jobs.parquet")
    manifest["bytes"]["jobs.parquet"] = (finished / "jobs.parquet").stat().st_size
    rd.write_manifest(finished, manifest)
    with pytest.raises(InputError, match=r"jobs\.parquet: would take 18\.6 GiB of memory"):
        read_result(finished)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("config.toml", "has 8,796,0"),
        ("jobs.parquet", "is not a Parquet file"),
        ("cdf-all.svg", "has 8,796,093,022,208 bytes; Emu writes at most 1,073,741,824"),
    ],
)
def test_a_file_without_an_end_is_not_hashed(
    name: str, expected: str, finished: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sparse, with a manifest that fits: its sha256 would take minutes."""
    manifest = rd.read_manifest(finished)
    manifest["bytes"][name] = 8 << 40
    manifest["results"].setdefault(name, "0" * 64)
    rd.write_manifest(finished, manifest)
    (finished / name).touch()
    os.truncate(finished / name, 8 << 40)

    def hashed(path: Path) -> str:
        assert path.stat().st_size < 1 << 40
        return disk.sha256_of(path)

    monkeypatch.setattr("emu.directories.manifest.sha256_of", hashed)
    with pytest.raises(InputError, match=rf"r: {name} {expected}"):
        read_result(finished)


def test_directories_changed_in_every_way(tmp_path: Path, trace: Path) -> None:
    """A few of the changes that `python -m tests.emu.directories.directory_mutations` tries by the thousand."""
    (tmp_path / "m").mkdir()
    assert list(fuzz(tmp_path / "m", trace, range(10))) == []


@pytest.mark.slow("a fuzzer tried on itself")
def test_changes_are_noticed_only_because_files_are_compared(
    tmp_path: Path, trace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The fuzzer itself: without the comparison with the manifest it finds other values."""
    (tmp_path / "m").mkdir()
    monkeypatch.setattr(rd, "damaged", lambda *_: None)
    faults = list(fuzz(tmp_path / "m", trace, range(0, 50, 5), ("finished",)))
    assert any(fault.fault.startswith("other values") for fault in faults)
