"""Kernels that other processes compile while this one compiles its own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from emulations import jobs, setting_of
from python_process import PATIENCE_S, ROOT

from actors.compiling import kernel_cache
from actors.hosting import ahead
from actors.hosting.ahead import compiling_ahead
from actors.hosting.runs import compiled_so_far
from actors.schedulers.registry import find_scheduler
from workloads.doing import Step
from workloads.units import format_duration

WORK = jobs((0, [1, 2]), (1, [3]))


class Started:
    """Stands for a process that compiles."""

    def __init__(self, settings: list[bytes]):
        self.settings, self.ended = settings, False

    def kill(self) -> None:
        self.ended = True

    def wait(self) -> None:
        assert self.ended


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[Started]:
    """Those that are started; of the schedulers `eagle` alone is on the disk."""
    made: list[Started] = []
    monkeypatch.setattr(ahead, "_process", lambda settings: made.append(Started(settings)) or made[-1])
    monkeypatch.setattr(ahead, "is_warm", lambda loop: "eagle" in loop.__module__)
    monkeypatch.setattr(ahead, "_pickled", lambda setting: setting.scheduler.name)
    return made


@pytest.mark.parametrize(
    ("names", "cores", "shares"),
    [
        ("sparrow hawk eagle central-lwl", 2, ["central-lwl hawk"]),
        ("sparrow hawk eagle central-lwl", 8, ["central-lwl", "hawk"]),
        ("sparrow hawk eagle central-lwl", 1, []),
        ("eagle sparrow hawk", 2, ["hawk"]),  # this process compiles sparrow
        ("eagle sparrow", 2, []),
    ],
)
def test_all_but_the_first_that_is_cold_are_compiled_from_the_last_one(
    names: str, cores: int, shares: list[str], started: list[Started], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ahead.os, "sched_getaffinity", lambda _: range(cores))
    with compiling_ahead([setting_of(name, WORK, 2) for name in names.split()]):
        assert [" ".join(map(str, each.settings)) for each in started] == shares
        assert not any(each.ended for each in started)
    assert all(each.ended for each in started)


def test_a_large_workload_and_a_scheduler_of_one_s_own_are_left_to_the_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Local:
        def place(self, job: Any, nodes: Any) -> list[int]:
            return [0] * job.num_tasks

    assert ahead._pickled(setting_of("sparrow", WORK, 2)) is not None
    assert ahead._pickled(setting_of(Local, WORK, 2)) is None
    monkeypatch.setattr(ahead, "MOST_TASKS", 2)
    assert ahead._pickled(setting_of("sparrow", WORK, 2)) is None


@pytest.mark.slow("compiles a scheduler")
@pytest.mark.compiled
def test_what_was_compiled_ahead_is_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EMU_CACHE_DIR", str(tmp_path))
    given = ahead._pickled(setting_of("random", WORK, 2))
    assert given is not None
    assert ahead._process([given, given]).wait(PATIENCE_S) == 0
    code = "from actors.schedulers.jobs.random_placement import advance\nfrom actors.kernel.compiled import is_warm"
    assert (
        subprocess.check_output([sys.executable, "-c", f"{code}\nprint(is_warm(advance))"], cwd=ROOT)
        == b"True\n"
    )


KERNEL = """
from actors.kernel.compiled import entry

@entry
def loop(x):
    return x + 1
"""
WANTS = """
import sys
sys.path.insert(0, sys.argv[1])
import kernel
import numpy as np
from actors.kernel.compiled import direct
print("ready", flush=True)
sys.stdin.readline()
assert direct(kernel.loop, np.int64(1))(np.int64(1)) == 2
print(sum(kernel.loop.stats.cache_misses.values()))
"""


@pytest.mark.compiled
def test_of_two_processes_that_want_a_loop_one_compiles_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EMU_CACHE_DIR", str(tmp_path / "cache"))
    (tmp_path / "kernel.py").write_text(KERNEL)
    both = [
        subprocess.Popen(
            [sys.executable, "-c", WANTS, str(tmp_path)],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    for process in both:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in both:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    compiled = [process.communicate(timeout=PATIENCE_S)[0].strip() for process in both]
    assert sorted(compiled) == ["0", "1"]


@pytest.mark.compiled
def test_it_is_said_how_many_functions_are_compiled_and_how_long_the_rest_takes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loops = find_scheduler("sparrow").loops
    monkeypatch.setattr(kernel_cache, "CACHE_FOLDER", tmp_path)
    now_s = 100.0
    names = [f"module.function-{each}.py311.nbi" for each in sorted(kernel_cache.fingerprints_of(loops))]
    (tmp_path / "module").mkdir()

    def compile_all(of: Sequence[str]) -> None:
        for name in of:
            (tmp_path / "module" / name).touch()

    compile_all(names[:10])  # another scheduler's, too
    rest = len(names) - 10
    text = compiled_so_far(loops, Step("compiling the kernel", since=90.0), lambda: now_s)
    assert text() == ""
    compile_all(names[10:50])  # a quarter of a second each; the rest, and the loop with them, as long
    assert text() == f"40 of {rest} functions, about {format_duration(round(rest / 4 / 0.7 - 10))} left"
    now_s = 105.0
    assert text() == f"40 of {rest} functions, about {format_duration(round(rest / 4 / 0.7 - 15))} left"
    compile_all(names)
    now_s = 160.0
    assert text() == f"{rest} of {rest} functions, about 30 s left"
    now_s = 600.0
    assert text() == f"{rest} of {rest} functions"
