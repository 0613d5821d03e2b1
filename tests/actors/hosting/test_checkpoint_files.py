"""Checkpoints on disk: the newest are kept, and what is damaged or of another version is not used."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from checkpointing import IDENTITY, checkpoints, names

from actors.hosting.checkpoint import META, Checkpoints, Position


def save(folder: Path, count: int, keep: int = 2, **identity: str) -> Checkpoints:
    disk = checkpoints(folder, keep=keep, **identity)
    for i in range(1, count + 1):
        disk.save([{"a": np.arange(i)}, {"b": np.ones(3)}], Position(float(i), 10 * i, i, i))
    return disk


@pytest.mark.parametrize("keep", [1, 2, 5])
def test_the_newest_are_kept(keep: int, tmp_path: Path) -> None:
    found = save(tmp_path / "c", 4, keep).load()
    assert names(tmp_path / "c") == [f"{i:06d}" for i in (1, 2, 3, 4)][-keep:]
    assert names(tmp_path / "c" / "000004") == ["0.npz", "1.npz", META]
    assert found is not None
    assert found.at == Position(4.0, 40, 4, 4)
    assert np.array_equal(found.snapshots[0]["a"], np.arange(4))
    assert np.array_equal(found.snapshots[1]["b"], np.ones(3))


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def change_meta(path: Path) -> None:
    path.write_text(path.read_text().replace('"windows": 2', '"windows": 7'))


DAMAGE: dict[str, tuple[Callable[[Path], Any], str]] = {
    "bit": (lambda c: flip(c / "1.npz"), "1.npz is damaged"),
    "short": (lambda c: (c / "0.npz").write_bytes(b""), "0.npz is damaged"),
    "missing": (lambda c: (c / "0.npz").unlink(), "it has no 0.npz"),
    "meta missing": (lambda c: (c / META).unlink(), "it has no meta.json"),
    "meta no json": (lambda c: (c / META).write_text("{"), "meta.json is damaged"),
    "meta a list": (lambda c: (c / META).write_text("[]"), "meta.json is damaged"),
    "meta changed": (lambda c: change_meta(c / META), "meta.json is damaged"),
}


@pytest.mark.parametrize("how", DAMAGE)
def test_a_damaged_one_is_refused_and_the_one_before_used(how: str, tmp_path: Path) -> None:
    save(tmp_path, 2)
    damage, why = DAMAGE[how]
    damage(tmp_path / "000002")
    messages: list[str] = []
    disk = checkpoints(tmp_path, messages=messages)
    found = disk.load()
    assert found is not None
    assert found.at.virtual_s == 1.0
    assert messages == [f"checkpoint {tmp_path / '000002'} is not used: {why}"]
    disk.save(found.snapshots, found.at)  # the damaged one does not count among those that are kept
    assert names(tmp_path) == ["000001", "000003"]


def test_when_none_is_left_the_run_starts_from_the_beginning(tmp_path: Path) -> None:
    save(tmp_path, 2)
    for number in ("000001", "000002"):
        flip(tmp_path / number / "0.npz")
    messages: list[str] = []
    assert checkpoints(tmp_path, messages=messages).load() is None
    assert messages[-1] == f"no checkpoint in {tmp_path} can be used: the run starts from the beginning"


@pytest.mark.parametrize("what", ["emu", "configuration", "sources", "format"])
def test_those_of_another_version_or_configuration_are_refused(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from actors.hosting import checkpoint

    save(tmp_path, 1)
    messages: list[str] = []
    if what == "sources":
        monkeypatch.setattr(checkpoint, "SOURCE_HASH", "another")
    if what == "format":
        monkeypatch.setattr(checkpoint, "FORMAT", 99)
    other = {what: "another"} if what in IDENTITY else {}
    assert checkpoints(tmp_path, messages=messages, **other).load() is None
    assert f"is not used: it was written with another {what} (" in messages[0]


def test_what_a_killed_writer_left_is_removed(tmp_path: Path) -> None:
    (tmp_path / ".000001").mkdir()
    (tmp_path / ".000001" / "0.npz").write_bytes(b"half")
    assert checkpoints(tmp_path).load() is None
    save(tmp_path, 1)
    assert names(tmp_path) == ["000001"]


def test_a_full_disk_is_said_and_the_run_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    save(tmp_path, 1)
    messages: list[str] = []
    with monkeypatch.context() as patch:
        patch.setattr(np, "savez", full)
        checkpoints(tmp_path, messages=messages).save([{}], Position(2.0, 2))
    assert messages == [f"no checkpoint was written to {tmp_path}: No space left on device"]
    assert names(tmp_path) == ["000001"]


def test_they_are_due_by_wall_time(tmp_path: Path) -> None:
    assert checkpoints(tmp_path).due()
    assert not checkpoints(tmp_path, 3600).due()
    never = checkpoints(tmp_path, math.inf)
    assert not never.due()
    assert not never.wanted()
