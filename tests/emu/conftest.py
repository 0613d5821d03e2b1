"""A small workload, the command line called in this process, and a sweep that has run."""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pytest
from python_process import PATIENCE_S, ROOT
from run_commands import RUN

from emu.cli import main
from tests.composing import compose_only
from workloads.jobs import JobWorkload, make_workload

if TYPE_CHECKING:
    from emu.sweeps.sweep import SweepResult

CUTOFF_S = 10.0


class Ended(NamedTuple):
    """How a command ended."""

    code: int
    out: str
    err: str

    def line(self) -> str:
        """The one line of an error."""
        lines = self.err.splitlines()
        assert len(lines) == 1, self.err
        assert "Traceback" not in self.err
        return lines[0]


def small_workload(jobs: int = 60, seed: int = 5) -> JobWorkload:
    rng = np.random.default_rng(seed)
    counts = rng.integers(1, 6, jobs)
    means = np.where(rng.random(jobs) < 0.8, 4.0, 40.0)
    return make_workload(
        "small",
        np.cumsum(rng.exponential(3.0, jobs)),
        counts,
        np.repeat(means, counts) * rng.uniform(0.5, 1.5, counts.sum()),
        short_cutoff_s=CUTOFF_S,
        long_partition=0.75,
    )


@pytest.fixture(scope="session")
def workload() -> JobWorkload:
    return small_workload()


@pytest.fixture
def trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workload: JobWorkload) -> Path:
    """A Parquet folder, in the current folder, which is a new one."""
    from workloads.catalogue import save_workload

    monkeypatch.chdir(tmp_path)
    save_workload(workload, "small")
    return tmp_path / "small"


@pytest.fixture
def emu(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Callable[..., Ended]:
    """The command line in a new folder: arguments to exit code and what was printed."""
    monkeypatch.chdir(tmp_path)

    def call(*argv: object) -> Ended:
        capsys.readouterr()
        code = main([str(a) for a in argv])
        return Ended(code, *capsys.readouterr())

    return call


@pytest.fixture
def program(trace: Path) -> Callable[..., Ended]:
    """The command line in a process of its own, which may be killed, in the folder of the trace."""

    def call(*argv: object) -> Ended:
        done = subprocess.run(
            [sys.executable, str(ROOT / "run.py"), *map(str, argv)],
            cwd=trace.parent,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        said = [line for line in done.stderr.splitlines(keepends=True) if not line.endswith(" so far\n")]
        return Ended(done.returncode, done.stdout, "".join(said))  # a line says every 30 s what is being done

    return call


@pytest.fixture(autouse=True)
def without_lines_of_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    """What commands print does not depend on how long they take."""
    monkeypatch.setattr("emu.running.progress.LINE_S", math.inf)


@pytest.fixture(autouse=True)
def undrawn(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Figures are composed and not drawn; tests marked `drawn` look at them."""
    if request.node.get_closest_marker("drawn") is not None:
        return
    compose_only(monkeypatch.setattr)


@pytest.fixture
def done(trace: Path) -> SweepResult:
    """A finished sweep in `runs/sweep-grid`."""
    from sweep_grids import SMALL, write

    from emu.sweeps.sweep import sweep

    return sweep(write(SMALL), in_process=True)


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is executed from here on."""
    from emu.sweeps import parallel_runs

    ran: list[str] = []
    execute = parallel_runs.execute

    def counting(plan: Any, *rest: Any) -> Any:
        ran.append(f"{plan.schedulers[0].name} {plan.seed}")
        return execute(plan, *rest)

    monkeypatch.setattr(parallel_runs, "execute", counting)
    return ran


@pytest.fixture
def finished(emu: Callable[..., Ended], trace: Path) -> Path:
    assert emu(*RUN, "--out", "r").code == 0
    return Path("r")


@pytest.fixture
def compared(emu: Callable[..., Ended], trace: Path) -> Path:
    """Of two seeds, which draws no figures."""
    assert emu(*RUN, "--seeds", "2", "--out", "c").code == 0
    return Path("c")
