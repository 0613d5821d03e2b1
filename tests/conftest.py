"""What all tests share: the two rings, how many processes run them, how hypothesis searches, and one Ray session.

`pytest` runs the quick ring, with kernels as plain Python (`NUMBA_DISABLE_JIT`): a small case ends before its kernels
were compiled. `pytest --all` runs everything, with compiled kernels. A test of the full ring alone has one of the
markers in `FULL`, which say why. Whoever names a file or a test gets all of it that needs no compiler.
"""

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
    "actors/test_many_cases.py",
    "actors/hosting/test_child.py",
    "actors/test_parameters.py",
    "actors/test_conformance.py",
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


FULL = {
    "compiled": "is about compiled kernels, or has too many tasks for plain Python",
    "ray": "starts Ray",
    "browser": "opens pages in Chromium",
    "slow": "takes long, for the reason that it gives",
}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--all", action="store_true", help="the full ring: all tests, with compiled kernels")


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """The whole suite runs in three processes where there are two CPUs; some of its files, a debugger and `-s` in one.

    A file stays in one process: its fixtures are made once, and its tests may build on each other.
    """
    if not config.option.all:  # before anything imports numba, and for all processes that this one starts
        os.environ.setdefault("NUMBA_DISABLE_JIT", "1")
    # What one of these starts must not start others.
    if not config.pluginmanager.hasplugin("xdist") or "PYTEST_XDIST_WORKER" in os.environ:
        return
    option = config.option
    talks = option.usepdb or option.trace or option.capture == "no"
    if option.numprocesses is None and is_whole(config) and cpus() >= CPUS and not talks:
        option.numprocesses = PROCESSES
    if option.numprocesses and option.dist == "no":
        option.dist, option.loadscopereorder = "loadfile", False


def asked(config: pytest.Config) -> list[Path]:
    """The files and folders that are named, also those with a test."""
    here = config.invocation_params.dir
    return [(here / name.partition("::")[0]).resolve() for name in config.option.file_or_dir]


def is_whole(config: pytest.Config) -> bool:
    """Whether all tests are asked for, not some files."""
    return all(path in (TESTS, TESTS.parent) for path in asked(config))


def cpus() -> int:
    """How many CPUs this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """The quick ring leaves out tests of the full one; of all tests what takes longest goes first."""
    for item in items:
        for marker in item.iter_markers("slow"):
            assert marker.args, f"{item.nodeid}: slow, for which reason?"
    files = {path for path in asked(config) if path.is_file()}
    if not config.option.all:
        left_out = [
            item for item in items if item.path not in files and any(map(item.get_closest_marker, FULL))
        ]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in set(left_out)]
    if is_whole(config):
        order = {TESTS / name: i for i, name in enumerate(FIRST)}  # the same in all processes
        items.sort(key=lambda item: (order.get(item.path, len(order)), item.path))


def pytest_report_header(config: pytest.Config) -> str:
    return (
        "ring: full, kernels compiled"
        if config.option.all
        else "ring: quick, kernels as plain Python (--all: full)"
    )


def pytest_runtest_setup(item: pytest.Item) -> None:
    if os.environ.get("NUMBA_DISABLE_JIT") == "1" and any(map(item.get_closest_marker, ("compiled", "ray"))):
        pytest.skip("needs compiled kernels: --all")


@pytest.fixture(scope="session")
def ray_session() -> Iterator[None]:
    """Ray on this machine, in one child for all tests that want it."""
    from actors.hosting.child import close, the_child

    the_child()
    yield
    close()
