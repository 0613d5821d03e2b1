"""The Standard Workload Format as programs write it beside its definition, and jobs that wait for others."""

import zipfile
from pathlib import Path

import pytest

from workloads.catalogue import load_workload
from workloads.errors import InputError


def line(
    number: int, submit_s: int, run_s: int, processors: int, preceding: int = -1, think_s: int = -1
) -> str:
    return f"{number} {submit_s} 0 {run_s} {processors} -1 -1 {processors} {run_s} -1 1 1 1 1 1 1 {preceding} {think_s}"


def test_an_archive_has_one_log(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "log.zip", "w") as archive:
        archive.writestr("README", "About this log.")
        archive.writestr("one.swf", line(1, 5, 10, 2))
    assert load_workload(tmp_path / "log.zip", format="swf").num_tasks == 2
    with zipfile.ZipFile(tmp_path / "log.zip", "a") as archive:
        archive.writestr("two.swf", line(1, 5, 10, 2))
    with pytest.raises(InputError, match=r"holds 2 files: 'one.swf', 'two.swf'; want one log"):
        load_workload(tmp_path / "log.zip", format="swf")
