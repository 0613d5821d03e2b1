"""The child process that drives Ray: what it answers, and what happens when it, or this process, is gone."""

from __future__ import annotations

import math
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from python_process import PATIENCE_S, ROOT, run_python

from actors.hosting import child as hosting
from actors.hosting import cleanup
from actors.hosting.child import in_child, the_child
from actors.hosting.interrupts import Lost
from actors.kernel.system_calls import CAN_SHARE
from workloads.errors import UnavailableError

needs_proc = pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="what is left is looked for in /proc")


def becomes(true: Callable[[], bool]) -> bool:
    end = time.monotonic() + PATIENCE_S
    while not true() and time.monotonic() < end:
        time.sleep(0.02)
    return true()


def processes(session: int, *names: bytes) -> list[int]:
    """The processes of a session whose command has one of these in it."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            command = (place / "cmdline").read_bytes()
            if any(name in command for name in names) and os.getsid(int(place.name)) == session:
                found.append(int(place.name))
    return found


@pytest.mark.ray
def test_objects_live_there_and_what_they_raise_is_raised_here(ray_session: None) -> None:
    child = the_child()
    with in_child(socket.socket) as there:
        there.settimeout(3.0)
        assert there.gettimeout() == 3.0
        with pytest.raises(TypeError, match="argument"):
            there.settimeout("soon", "later")
        with pytest.raises(RuntimeError, match="cannot be pickled"):
            there.makefile()
    with pytest.raises(KeyError):  # it is closed and forgotten
        there.gettimeout()
    assert the_child() is child


@pytest.mark.ray
def test_calls_do_not_hinder_each_other(ray_session: None) -> None:
    child = the_child()
    event = child.call(None, "make", threading.Event)
    waits = threading.Thread(target=child.call, args=(event, "wait"))
    waits.start()
    child.call(event, "set")
    waits.join(PATIENCE_S)
    assert not waits.is_alive()


@pytest.mark.ray
def test_errors_of_the_child_name_the_address_as_the_user_gave_it(monkeypatch: pytest.MonkeyPatch) -> None:
    hosting.close()
    with socket.create_server(("127.0.0.1", 0)) as server:
        closed = f"127.0.0.1:{server.getsockname()[1]}"
    monkeypatch.setenv("RAY_ADDRESS", closed)
    with pytest.raises(UnavailableError, match=f"^RAY_ADDRESS {closed}: no Ray cluster answers there"):
        the_child()
    assert the_child("local").address is None  # the option beats the variable
    hosting.close()


def test_ctrl_c_within_a_lock_is_still_ctrl_c(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(self: threading.Condition, timeout: float) -> None:
        self.release()  # as if it had come before the lock was taken again
        raise KeyboardInterrupt

    monkeypatch.setattr(threading.Condition, "wait", interrupted)
    with pytest.raises(KeyboardInterrupt):
        hosting.Answer(1).result(5.0)


@pytest.mark.ray
@needs_proc
def test_what_does_not_answer_is_killed_and_the_next_one_is_another() -> None:
    hosting.close()
    child = the_child()
    assert (
        processes(child._process.pid, b"ray::IDLE", b"ray::Host") == []
    )  # Ray would wait for them for ever if one died meanwhile
    event = child.call(None, "make", threading.Event)
    with pytest.raises(Lost, match=r"^the process that drives Ray did not answer for 1 s \(wait\)$"):
        child.call(event, "wait", within_s=0.6)
    with pytest.raises(Lost):
        child.call(event, "set")
    folder = child._folder
    assert folder.is_dir()
    another = the_child()
    assert another is not child
    assert not folder.exists()
    event = another.call(None, "make", threading.Event)
    threading.Timer(0.2, os.kill, (another._process.pid, signal.SIGKILL)).start()
    with pytest.raises(Lost, match=r"^the process that drives Ray is gone \(killed\)$"):
        another.call(event, "wait")
    hosting.close()


def test_silence_counts_from_the_first_sign_of_life_in_steps_of_this_process() -> None:
    silence = hosting.Silence()
    assert not silence.goes_on(10 * hosting.SILENT_S)  # Ray starts, which has its own limit
    silence.end()
    assert not silence.goes_on(0.6 * hosting.SILENT_S)
    silence.end()
    assert not silence.goes_on(0.6 * hosting.SILENT_S)
    assert silence.goes_on(0.6 * hosting.SILENT_S)


WITHOUT_RAY = """
import os, threading
from actors.hosting import ray_driver, ray_session

def has_nodes():
    while os.path.exists({place!r} + ".hangs"):
        threading.Event().wait(0.05)
    return os.path.exists({place!r})

ray_session.connect = lambda *_: None
ray_session.has_nodes = has_nodes
ray_driver.NODES_WATCH_S = {watch_s}
ray_driver.main()
"""


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A child that is connected to no Ray: its cluster has a node while this file exists, which is seldom looked at."""
    yield from stand_in(tmp_path / "node", 3600.0, monkeypatch)


@pytest.fixture
def watched_node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The same, which is looked at often."""
    yield from stand_in(tmp_path / "node", 0.05, monkeypatch)


def stand_in(place: Path, watch_s: float, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    hosting.close()
    monkeypatch.setattr(hosting, "DRIVER", ("-c", WITHOUT_RAY.format(place=str(place), watch_s=watch_s)))
    place.touch()
    yield place
    hosting.close()


def test_a_child_that_is_stopped_is_killed(node: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hosting, "SIGN_S", 0.05)
    monkeypatch.setattr(hosting, "SILENT_S", math.inf)
    child = the_child()
    event = child.call(None, "make", threading.Event)
    child._silence = hosting.Silence()
    assert becomes(
        lambda: child._silence._lasts_s is not None
    )  # it gives signs of life while it is not called
    os.kill(child._process.pid, signal.SIGSTOP)
    monkeypatch.setattr(hosting, "SILENT_S", 0.2)
    with pytest.raises(Lost, match=r"^the process that drives Ray gave no sign of life for 0 s$"):
        child.call(event, "wait")
    assert the_child() is not child


def test_a_child_whose_cluster_has_no_node_that_lives_is_not_used_again(node: Path) -> None:
    child = the_child()
    assert the_child() is child
    node.unlink()
    another = the_child()
    assert another is not child
    assert not child._folder.exists()


def test_a_child_whose_cluster_does_not_answer_is_not_used_again(
    node: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    child = the_child()
    node.with_suffix(".hangs").touch()
    monkeypatch.setattr(hosting, "NODES_S", 0.2)
    assert not child.has_nodes()
    assert child.is_gone()
    node.with_suffix(".hangs").unlink()
    assert the_child() is not child


def test_a_call_ends_when_no_node_lives_any_more(watched_node: Path) -> None:
    """Ray itself would wait for another node, without a limit."""
    child = the_child()
    event = child.call(None, "make", threading.Event)
    watched_node.unlink()
    with pytest.raises(
        Lost, match=r"^no node of Ray lives any more \(its raylet did not answer, or was ended\)$"
    ):
        child.call(event, "wait")


@pytest.mark.ray
@needs_proc
def test_a_server_that_dies_while_ray_starts_is_noticed() -> None:
    """Ray itself would wait for it for 30 or 60 s."""
    hosting.close()
    child = hosting.begin()
    try:
        assert becomes(lambda: bool(processes(child._process.pid, b"gcs_server")))
        os.kill(processes(child._process.pid, b"gcs_server")[0], signal.SIGKILL)
        with pytest.raises(Lost, match=r"^a process of Ray died while it started$"):
            child.connected()
    finally:
        hosting.close()


MAKES_FOLDERS = """
import sys, tempfile
from actors.hosting import cleanup
tempfile.tempdir = sys.argv[1]
for what in ("ray", "checkpoints", "events", "explain"):
    print(cleanup.temporary_folder(what), flush=True)
sys.stdin.readline()
"""


def test_what_ended_processes_have_left_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A lock shows who lives, and not by a process id: those of another container say nothing here."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    command = [sys.executable, "-c", MAKES_FOLDERS, str(tmp_path)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert process.stdout is not None
        folders = [Path(process.stdout.readline().strip()) for _ in range(4)]
        (tmp_path / "emu_results_x").touch()
        mine = cleanup.temporary_folder("checkpoints")
        assert all(path.exists() for path in (*folders, mine))
        process.kill()
    cleanup.remove_orphans()
    left = {p.name for p in tmp_path.iterdir()}
    assert left == {mine.name, "emu_results_x"}
    cleanup.remove_folder(mine)
    assert not mine.exists()


def test_a_folder_that_another_process_removes_before_it_is_locked_is_made_again(tmp_path: Path) -> None:
    made: list[Path] = []

    def make(prefix: str, dir: str) -> str:
        made.append(tmp_path / f"{prefix}{len(made)}")
        if len(made) > 1:  # the first is gone already
            made[-1].mkdir()
        return str(made[-1])

    assert cleanup.temporary_folder("events", make=make) == made[1]
    assert len(made) == 2
    cleanup.remove_folder(made[1])


@pytest.mark.parametrize("ended", ["by itself", "by Ctrl-C"])
def test_a_process_that_ends_takes_its_folders(ended: str, tmp_path: Path) -> None:
    command = [sys.executable, "-c", MAKES_FOLDERS, str(tmp_path)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment
    ) as process:  # fmt: skip
        assert process.stdout is not None
        for _ in range(4):
            assert Path(process.stdout.readline().strip()).is_dir()
        if ended == "by Ctrl-C":
            process.send_signal(signal.SIGINT)
    assert list(tmp_path.iterdir()) == []


DOOMED = """
import os, sys
from pathlib import Path
folders = ["tests/actors", "tests/actors/hosting"]
os.environ["PYTHONPATH"] = os.pathsep.join([os.environ["PYTHONPATH"], *folders])
sys.path += folders
import doomed
from actors.hosting import windows
from actors.hosting.child import close
from checkpointing import checkpoints
from emulations import OBSERVED, digest, mixed_workload, run_setting, setting_of
from workloads.errors import InputError

windows.WindowSession = getattr(doomed, os.environ["KIND"])
setting, messages = setting_of("sparrow", mixed_workload(6, 1), 4), []
disk = checkpoints(Path(os.environ["FOLDER"]) / "c", 3600.0, messages=messages)
outcome = windows.emulate_windows(
    setting, OBSERVED, partitions=2, transport=os.environ["TRANSPORT"], checkpoints=disk,
    announce=lambda plan: print(plan.splitlines()[-1]),
)
print(digest(outcome) == digest(run_setting(setting, OBSERVED)), outcome.restarts, messages)
try:
    windows.emulate_windows(setting, OBSERVED, partitions=2, transport="memory")
except InputError as error:
    print(error)
close()
"""


def run_doomed(folder: Path, kind: str, transport: str) -> str:
    return run_python(DOOMED, FOLDER=str(folder), KIND=kind, TRANSPORT=transport)


@pytest.mark.ray
@pytest.mark.skipif(not CAN_SHARE, reason="plain Python, or a processor without such waiting")
def test_a_partition_that_others_wait_for_is_killed_or_stopped(tmp_path: Path) -> None:
    lines = run_doomed(tmp_path, "Struck", "memory").splitlines()
    said = next(line for line in lines if line.startswith(("True", "False")))
    assert said.startswith("True 2 "), said
    assert re.search(r"the process of partition 0 \(\d+\) was stopped", said), said


@pytest.mark.ray
@pytest.mark.parametrize("transport", ["memory", "calls"])
def test_a_partition_that_dies_before_the_first_barrier(transport: str, tmp_path: Path) -> None:
    lines = run_doomed(tmp_path, "Unlucky", transport).splitlines()
    said = next(line for line in lines if line.startswith(("True", "False")))
    assert said.startswith("True 1 "), said
    assert said.count("the actor of a partition is gone (ActorDiedError)") == 1, said


@pytest.mark.ray
@pytest.mark.skipif(not CAN_SHARE, reason="plain Python, or a processor without such waiting")
def test_between_machines_that_do_not_reach_each_other_barriers_are_calls(tmp_path: Path) -> None:
    plan, result, error = run_doomed(tmp_path, "Apart", "auto").splitlines()
    why = "memory cannot be shared: 2 machines have no connections: "
    assert f"calls ({why}" in plan
    assert result == "True 0 []"
    assert error.startswith(f"windows.transport: {why}")


ENDLESS = """
import os, signal, sys
sys.path.append("tests")
from actors.hosting import child as hosting
from actors.hosting.child import the_child
from actors.hosting.groups import OnRay
from actors.hosting.windows import WindowSession, window_ns
from emulations import OBSERVED, mixed_workload, setting_of

child, setting = the_child(), setting_of("sparrow", mixed_workload(6, 1), 4)
place = child.call(None, "make", WindowSession, OnRay, setting, OBSERVED, 2, window_ns(setting, None))
child.call(place, "start")
child.call(place, "share_memory", must=True)
print(child._process.pid, child._folder, flush=True)
child.call(place, "plan")
sys.stdin.readline()
if sys.argv[1] == "ending":
    hosting.end_session = lambda session: os.kill(os.getpid(), signal.SIGKILL)
    hosting.close()
sys.stdin.read()
"""


@pytest.mark.ray
@needs_proc
@pytest.mark.parametrize("killed", ["working", "ending"])
def test_nothing_is_left_when_this_process_is_killed(killed: str) -> None:
    """Also when it has killed the child, and no more."""
    process = subprocess.Popen(
        [sys.executable, "-c", ENDLESS, killed],
        cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdin is not None
    assert process.stdout is not None
    leader, folder = process.stdout.readline().split()

    def members() -> list[int]:
        return [pid for pid in cleanup._pids() if cleanup._state(pid)[3:4] == [leader]]

    before = members()
    assert len(before) > 4
    if killed == "working":
        process.kill()
    else:
        process.stdin.write("\n")
        process.stdin.flush()
    assert process.wait() == -signal.SIGKILL
    assert becomes(lambda: all(cleanup.is_gone(pid) for pid in before))
    assert becomes(lambda: not Path(folder).exists())
