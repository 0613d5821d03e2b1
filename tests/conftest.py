"""What all tests share: how many processes run them, how hypothesis searches, and one Ray session."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

TESTS = Path(__file__).parent
# Tests of Ray and of killed processes wait for much of their time, in which another process computes.
CPUS, PROCESSES = 2, 3
# They take long: begun last, they would keep one of us idle. Every second one waits most of the time (for Ray to start,
# to fail, to end), so that it runs beside one that computes.
FIRST = (
    "actors/test_conformance.py",
    "actors/hosting/test_child.py",
    "test_fidelity.py",
    "actors/hosting/test_recovery.py",
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

# No test judges by the clock: the first example of a property may compile a kernel. Properties are tried on the same
# examples each time, so that tests fail by a change and not by chance; `--hypothesis-profile=search` looks for others.
settings.register_profile("same", deadline=None, derandomize=True, print_blob=True, max_examples=50)
settings.register_profile("search", deadline=None, print_blob=True, max_examples=200)
settings.load_profile("same")


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


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """What takes longest goes first, all else by file: all processes have the same order.

    Slow tests are for who asks for them: `-m slow`.
    """
    if "slow" not in config.option.markexpr:
        slow = [item for item in items if item.get_closest_marker("slow")]
        config.hook.pytest_deselected(items=slow)
        items[:] = [item for item in items if not item.get_closest_marker("slow")]
    order = {TESTS / name: i for i, name in enumerate(FIRST)}
    items.sort(key=lambda item: (order.get(item.path, len(order)), item.path))


@pytest.fixture(scope="session")
def ray_session() -> Iterator[None]:
    """Ray on this machine, in one child for all tests that want it."""
    from actors.hosting.child import close, the_child

    the_child()
    yield
    close()
