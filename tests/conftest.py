"""What all tests share: how many processes run them, how hypothesis searches, and one Ray session."""

from __future__ import annotations

import atexit
import gc
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from tests.forking import Forks

TESTS = Path(__file__).parent
# Tests of Ray and of killed processes wait for much of their time, in which another process computes.
CPUS, PROCESSES = 2, 3
# They take long: begun last, they would keep one of us idle. The first two compile what the others need, one of us the
# schedulers of jobs and one those of coflows: what both began at once would be compiled twice. Those of DAGs are
# compiled next, before many files need them. Of the others every second one waits most of the time (for Ray to start,
# to fail, to end), so that it runs beside one that computes.
FIRST = (
    "actors/schedulers/jobs/test_determinism.py",
    "actors/schedulers/coflows/test_coflow_invariants.py",
    "actors/hosting/test_child.py",
    "actors/machines/test_dag_schedulers.py",
    "test_fidelity.py",
    "actors/hosting/test_recovery.py",
    "actors/compiling/test_bounds_checks.py",
    "emu/running/test_resume.py",
    "test_coflow_rules.py",
    "emu/sweeps/test_sweep_ray.py",
    "test_pages.py",
    "emu/running/test_ray.py",
    "test_packaging.py",
    "actors/hosting/test_live.py",
)

# Or Ray puts a function of its own in the place of `print`, for all tests that come after.
os.environ["RAY_TQDM_PATCH_PRINT"] = "0"

# A shell without job control starts what it puts into the background with Ctrl-C ignored, and so would be all processes
# that tests interrupt.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGHUP) == signal.SIG_IGN:  # as under nohup, where Emu ignores it, too
    signal.signal(signal.SIGHUP, signal.SIG_DFL)

# Tests start some 200 processes. Where Python is not to write bytecode beside the sources, each of them would compile
# all of these again, for half a second: they share a folder that goes when the tests end.
if sys.dont_write_bytecode and "PYTEST_XDIST_WORKER" not in os.environ:
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ["PYTHONPYCACHEPREFIX"] = tempfile.mkdtemp(prefix="emu-bytecode-")
    atexit.register(shutil.rmtree, os.environ["PYTHONPYCACHEPREFIX"], ignore_errors=True)

# numba makes millions of objects while it compiles, which Python would look through again and again: garbage is left
# where it is, until a process has held so much memory that new garbage is collected.
gc.set_threshold(200_000, 20, 100)
gc.disable()
COLLECTED_FROM_MB = 1536.0

# No test judges by the clock: the first example of a property may compile a kernel. People's runs look for new
# examples, and keep those that fail in .hypothesis; CI tries the same ones each time, so that it fails by a change and
# not by chance, and half as many where a test does not set their number.
settings.register_profile("search", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True, max_examples=50)
settings.load_profile("ci" if os.environ.get("CI") else "search")


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """The whole suite runs in three processes where there are two CPUs; some of its files, a debugger and `-s` in one.

    A file stays in one process: its fixtures are made once, and its tests may build on each other.
    """
    # What one of these starts must not start others.
    if not config.pluginmanager.hasplugin("xdist") or "PYTEST_XDIST_WORKER" in os.environ:
        return
    option = config.option
    talks = option.usepdb or option.trace or option.capture == "no"
    if option.numprocesses is None and is_whole(config) and cpus() >= CPUS and not talks:
        option.numprocesses = PROCESSES
    if option.numprocesses and option.dist == "no":
        option.dist, option.loadscopereorder = "loadfile", False


def is_whole(config: pytest.Config) -> bool:
    """Whether all tests are asked for, not some files."""
    here = config.invocation_params.dir
    return all((here / name).resolve() in (TESTS, TESTS.parent) for name in config.option.file_or_dir)


def cpus() -> int:
    """How many CPUs this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Each process begins with other folders: what one has compiled to bytecode, the others then read from the disk."""
    report = yield
    if collector.path == TESTS and report.result:
        number = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
        folders = ("actors", "emu", "workloads")
        begin = folders[number % len(folders)]
        report.result.sort(key=lambda node: (node.path.name < begin, node.path))
    return report


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What takes longest goes first, all else by file: all processes have the same order."""
    order = {TESTS / name: i for i, name in enumerate(FIRST)}
    items.sort(key=lambda item: (order.get(item.path, len(order)), item.path))


def pytest_collection_finish() -> None:
    """What is there now, modules and tests, stays: no collection need look through it."""
    gc.freeze()


def pytest_runtest_teardown() -> None:
    """A process of much memory collects garbage from here on: what it made, and not what lies there already."""
    from actors.hosting.outcome import peak_rss_mb

    if not gc.isenabled() and peak_rss_mb() > COLLECTED_FROM_MB:
        gc.freeze()
        gc.enable()


@pytest.fixture(scope="session")
def ray_session() -> Iterator[None]:
    """Ray on this machine, in one child for all tests that want it."""
    from actors.hosting.child import close, the_child

    the_child()
    yield
    close()


@pytest.fixture(scope="session")
def forks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Forks]:
    """A warm process that forks: for commands in processes of their own, hosted without Ray."""
    made = Forks(tmp_path_factory.mktemp("forks"))
    yield made
    made.close()
