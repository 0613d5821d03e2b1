"""Checkpoints: a run that is taken up again from one, anywhere, gives the same bits; what is damaged is not used."""

from __future__ import annotations

import json
import math
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from emulations import (
    OBSERVED,
    VARIANTS,
    cases,
    digest,
    mixed_workload,
    named,
    run_python,
    run_setting,
    setting_of,
)

from actors.hosting import windows
from actors.hosting.checkpoint import META, Checkpoint, Checkpoints, Position
from actors.hosting.partition import Partition, merge_shares
from actors.hosting.recovery import MOST_RESTARTS, Lost, interrupts_deferred, recover
from actors.hosting.virtual import emulate
from actors.kernel.compiled import config
from actors.kernel.queue import make_queue
from actors.kernel.world import NEVER, make_entries
from actors.schedulers.jobs import build
from actors.setting import Costs, Setting
from workloads.errors import InputError

IDENTITY = {"emu": "1", "configuration": "abc"}


def checkpoints(
    folder: Path, period_s: float = 0.0, keep: int = 2, told: list[str] | None = None, **identity: str
) -> Checkpoints:
    told = [] if told is None else told
    return Checkpoints(folder, period_s, keep, {**IDENTITY, **identity}, told.append)


def started(setting: Setting) -> Partition:
    partition = Partition(setting, OBSERVED)
    partition.start()
    return partition


def digest_with_restores(setting: Setting, seed: int, folder: Path | None = None) -> tuple[str, int]:
    """The digest of a run that is moved to a new partition at random points, and how often; through files if asked."""
    rng = np.random.default_rng(seed)
    partition, done, moves = started(setting), False, 0
    with np.errstate(over="ignore"):
        while not done:
            done = partition._step(int(NEVER), np.int64(rng.integers(1, 40)))
            if rng.random() < 0.4:
                saved = partition.snapshot()
                if folder is not None:
                    disk = checkpoints(folder)
                    disk.save([saved], Position(0.0, 0))
                    found = disk.load()
                    assert found is not None
                    (saved,) = found.snapshots
                partition = started(setting)
                assert partition.restore(saved) == b""
                moves += 1
    return digest(partition.outcome()), moves


@pytest.mark.parametrize("scheduler", sorted(VARIANTS))
def test_a_run_moved_at_random_points_gives_the_same_bits(scheduler: str, tmp_path: Path) -> None:
    total = 0
    for i, (name, setting) in enumerate(cases(10)):
        if name.split()[0] == scheduler:
            moved, moves = digest_with_restores(setting, i, tmp_path if "constant" in name else None)
            total += moves
            assert moved == digest(run_setting(setting, OBSERVED)), name
    assert total > 5


@pytest.mark.skipif(bool(config.DISABLE_JIT), reason="compares with compiled code")
def test_in_plain_python_as_compiled() -> None:
    code = """
import json, sys
sys.path.append("tests/actors")
from emulations import cases
from test_checkpoint import digest_with_restores
print(json.dumps({name: digest_with_restores(setting, 1)[0] for name, setting in cases(8) if "varies" in name}))
"""
    plain = json.loads(run_python(code, NUMBA_DISABLE_JIT="1"))
    assert plain == {n: digest(run_setting(s, OBSERVED)) for n, s in cases(8) if "varies" in n}


@pytest.mark.skipif(bool(config.DISABLE_JIT), reason="nothing is compiled")
def test_nothing_is_compiled_again_after_a_restore(monkeypatch: pytest.MonkeyPatch) -> None:
    from numba.core.dispatcher import Dispatcher

    def signatures() -> dict[str, int]:
        modules = [m for name, m in sys.modules.items() if name.startswith("actors.")]
        found = [v for module in modules for v in vars(module).values() if isinstance(v, Dispatcher)]
        return {f"{d.__module__}.{d.__name__}": len(d.signatures) for d in found}

    setting = setting_of("dist-lwl", mixed_workload(40, 2), 5, heartbeat_s=3)
    monkeypatch.setattr(build, "make_queue", lambda seq, room, **_: make_queue(seq, room, 2))
    monkeypatch.setattr(build, "make_entries", lambda: make_entries(1))
    partition = started(setting)
    small = partition.world.entries.size
    with np.errstate(over="ignore"):
        for _ in range(30):
            partition._step(int(NEVER), np.int64(20))
    assert partition.world.entries.size > small  # what has grown is replaced
    saved = partition.snapshot()
    before = signatures()
    again = started(setting)
    again.restore(saved)
    while not again.run(1.0).done:
        pass
    assert signatures() == before
    assert digest(again.outcome()) == digest(run_setting(setting, OBSERVED))


def test_what_is_known_by_two_names_stays_one() -> None:
    setting = setting_of("dist-lwl", mixed_workload(20, 2), 5, heartbeat_s=3)
    saved = started(setting).snapshot()
    partition = started(setting)
    partition.restore(saved)
    world, state = partition.world, partition.state
    assert np.shares_memory(world.queue.seq, world.nodes)
    assert state.short.ledger.work is state.long.ledger.work


def test_a_snapshot_of_another_setting_is_refused() -> None:
    workload = mixed_workload(20, 2)
    saved = started(setting_of("sparrow", workload, 5)).snapshot()
    with pytest.raises(ValueError, match=r"has other arrays|has shape|is .* here"):
        started(setting_of("hawk", workload, 5)).restore(saved)
    with pytest.raises(ValueError, match=r"world\.network\.seed is 1 here and 0 there"):
        started(setting_of("sparrow", workload, 5, seed=1)).restore(saved)


@pytest.mark.parametrize("scheduler", ["sparrow", "eagle", "own"])
@pytest.mark.parametrize("partitions", [2, 3])
def test_several_partitions_go_on_from_a_barrier(scheduler: str, partitions: int) -> None:
    setting = setting_of(named(scheduler), mixed_workload(30, 4), 6, network=0.01)
    rhythm = windows.rhythm_of(setting, None)

    def joined() -> tuple[list[Partition], list[bytes]]:
        hosts = [started(setting) for _ in range(partitions)]
        grouping = windows.divide(setting, hosts[0].cast(), partitions)
        return hosts, [host.join(grouping, k) for k, host in enumerate(hosts)]

    class Stop(Exception):
        pass

    hosts, frames = joined()
    done = 0

    def barrier(told: bytes) -> list[bytes]:
        nonlocal done
        if done == 25:
            raise Stop
        done += 1
        return [host.window(told) for host in hosts]

    while True:
        try:
            windows.drive(barrier, frames, rhythm)
            break
        except Stop:
            saved = [host.snapshot() for host in hosts]
            hosts, _ = joined()
            frames = [host.restore(s) for host, s in zip(hosts, saved, strict=True)]
            done = 0
    outcome = merge_shares(setting, [host.share() for host in hosts])
    whole = run_setting(setting, OBSERVED)
    assert np.array_equal(outcome.finish_ns, whole.finish_ns)
    assert np.array_equal(outcome.start_ns, whole.start_ns)
    assert outcome.counters == whole.counters


def test_measured_costs_survive_a_move() -> None:
    import dataclasses

    setting = setting_of(named("own"), mixed_workload(20, 1), 4)
    setting = dataclasses.replace(setting, costs=Costs("measured"))
    partition, done = started(setting), False
    with np.errstate(over="ignore"):
        while not done:
            done = partition._step(int(NEVER), np.int64(7))
            saved = partition.snapshot()
            partition = started(setting)
            partition.restore(saved)
    outcome = partition.outcome()
    assert (outcome.finish_ns > 0).all()
    # A handler whose clock was another process's would have been charged hours.
    assert outcome.costs["cost"].max() < 60e9
    assert outcome.costs.size == outcome.servers["served"].sum()


# On disk.


def save(folder: Path, count: int, keep: int = 2, **identity: str) -> Checkpoints:
    disk = checkpoints(folder, keep=keep, **identity)
    for i in range(1, count + 1):
        disk.save([{"a": np.arange(i)}, {"b": np.ones(3)}], Position(float(i), 10 * i, i, i))
    return disk


def names(folder: Path) -> list[str]:
    return sorted(p.name for p in folder.iterdir())


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
    told: list[str] = []
    disk = checkpoints(tmp_path, told=told)
    found = disk.load()
    assert found is not None
    assert found.at.virtual_s == 1.0
    assert told == [f"checkpoint {tmp_path / '000002'} is not used: {why}"]
    disk.save(found.snapshots, found.at)  # the damaged one does not count among those that are kept
    assert names(tmp_path) == ["000001", "000003"]


def test_when_none_is_left_the_run_starts_anew(tmp_path: Path) -> None:
    save(tmp_path, 2)
    for number in ("000001", "000002"):
        flip(tmp_path / number / "0.npz")
    told: list[str] = []
    assert checkpoints(tmp_path, told=told).load() is None
    assert told[-1] == f"no checkpoint in {tmp_path} can be used: the run starts anew"


@pytest.mark.parametrize("what", ["emu", "configuration", "sources", "format"])
def test_those_of_another_version_or_configuration_are_refused(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from actors.hosting import checkpoint

    save(tmp_path, 1)
    told: list[str] = []
    if what == "sources":
        monkeypatch.setattr(checkpoint, "SOURCE_HASH", "another")
    if what == "format":
        monkeypatch.setattr(checkpoint, "FORMAT", 99)
    other = {what: "another"} if what in IDENTITY else {}
    assert checkpoints(tmp_path, told=told, **other).load() is None
    assert f"is not used: it was written with another {what} (" in told[0]


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
    told: list[str] = []
    with monkeypatch.context() as patch:
        patch.setattr(np, "savez", full)
        checkpoints(tmp_path, told=told).save([{}], Position(2.0, 2))
    assert told == [f"no checkpoint was written to {tmp_path}: No space left on device"]
    assert names(tmp_path) == ["000001"]


def test_they_are_due_by_wall_time(tmp_path: Path) -> None:
    assert checkpoints(tmp_path).due()
    assert not checkpoints(tmp_path, 3600).due()
    never = checkpoints(tmp_path, math.inf)
    assert not never.due()
    assert not never.wanted()


# A user's own scheduler.

OWN = """
import numpy as np

class Memory:
    def __init__(self):
        self.seen = 0

class Careful:
    def __init__(self):
        self.memory, self.rng, self.key = Memory(), np.random.default_rng(3), order

    def place(self, job, nodes):
        self.memory.seen += 1
        return self.rng.integers(0, len(nodes.slots), job.num_tasks)

def order(node):
    return node
"""


@pytest.mark.parametrize("known", [True, False], ids=["by its module", "by the wire"])
def test_an_own_scheduler_remembers(known: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "careful.py").write_text(OWN)
    setting = setting_of(f"{tmp_path / 'careful.py'}:Careful", mixed_workload(20, 1), 4)
    whole = digest(run_setting(setting, OBSERVED))
    if not known:  # as in a Ray worker, which has the class and no module
        monkeypatch.delitem(sys.modules, "own_careful")
    assert digest_with_restores(setting, 5)[0] == whole


def test_one_that_cannot_be_pickled_is_said_at_the_first_checkpoint(tmp_path: Path) -> None:
    class Stubborn:
        def __init__(self) -> None:
            self.lock = sys._getframe()

        def place(self, job: Any, nodes: Any) -> list[int]:
            return [0] * job.num_tasks

    setting = setting_of(Stubborn, mixed_workload(20, 1), 4)
    partition = started(setting)
    with pytest.raises(
        InputError, match=r"scheduler Stubborn cannot be pickled .* --set checkpoint.period=never"
    ):
        partition.snapshot()


# Recovery.


def test_a_run_is_taken_up_until_it_no_longer_comes_forward(tmp_path: Path) -> None:
    told: list[str] = []
    disk = checkpoints(tmp_path / "c", told=told)
    starts: list[float | None] = []
    outcome = run_setting(setting_of("random", mixed_workload(5, 1), 4), OBSERVED)

    def attempt(start: Checkpoint | None) -> Any:
        starts.append(None if start is None else start.at.virtual_s)
        if len(starts) == 1 or len(starts) == 4:
            disk.save([{}], Position(float(len(starts)), 1))
        if len(starts) < 6:
            raise Lost("the actor is gone")
        return outcome

    recovered = recover(attempt, disk, lambda: None)
    assert recovered.restarts == 5
    assert starts == [None, 1.0, 1.0, 1.0, 4.0, 4.0]
    assert told[0] == "the actor is gone; the run goes on from virtual time 1 s"
    starts.clear()
    with pytest.raises(
        Lost, match=f"the actor is gone; {MOST_RESTARTS + 1} times without a checkpoint in between"
    ):
        recover(lambda start: (_ for _ in ()).throw(Lost("the actor is gone")), disk, lambda: None)


def test_restarts_are_counted_over_processes(tmp_path: Path) -> None:
    setting = setting_of("random", mixed_workload(5, 1), 4)
    partition = started(setting)
    disk = checkpoints(tmp_path)
    disk.restarts = 2
    disk.save([partition.snapshot()], Position(0.0, 0))
    outcome = emulate(setting, OBSERVED, in_process=True, checkpoints=checkpoints(tmp_path, math.inf))
    assert outcome.restarts == 3
    assert digest(outcome) == digest(run_setting(setting, OBSERVED))


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("actors.hosting.recovery.PAUSE_S", 0.0)


def test_ctrl_c_is_noted_once_and_breaks_in_the_second_time() -> None:
    with interrupts_deferred() as interrupted:
        assert not interrupted()
        signal.raise_signal(signal.SIGINT)
        assert interrupted()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_ctrl_c_breaks_in_when_nothing_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("actors.hosting.recovery.PATIENCE_S", 0.05)
    with interrupts_deferred():
        signal.raise_signal(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            time.sleep(60)


class Interrupting:
    """Presses Ctrl-C while it places a job: the checkpoint must not hold half of that."""

    def __init__(self, at: int) -> None:
        self.at = at

    def place(self, job: Any, nodes: Any) -> np.ndarray:
        if job.job_id == self.at:
            signal.raise_signal(signal.SIGINT)
        return np.resize(np.argsort(nodes.tasks, kind="stable"), job.num_tasks)


def test_ctrl_c_leaves_a_checkpoint_from_which_the_run_goes_on(tmp_path: Path) -> None:
    workload = mixed_workload(20, 1)
    setting = setting_of(Interrupting(7), workload, 4)
    with pytest.raises(KeyboardInterrupt):
        emulate(setting, OBSERVED, in_process=True, checkpoints=checkpoints(tmp_path, 3600.0))
    assert names(tmp_path) == ["000001"]
    whole = digest(run_setting(setting_of(named("own"), workload, 4), OBSERVED))
    again = emulate(setting, OBSERVED, in_process=True, checkpoints=checkpoints(tmp_path, 3600.0))
    assert digest(again) == whole


# On Ray. What dies are processes of the emulation itself: they end themselves.


class Mortal:
    """Ends its own process, once at each of some jobs; `also` names what else dies: the raylet it runs under."""

    def __init__(self, folder: Path, at: list[int], also: str = "") -> None:
        self.folder, self.at, self.also = str(folder), at, also

    def place(self, job: Any, nodes: Any) -> np.ndarray:
        import os
        import signal
        import time

        mark = os.path.join(self.folder, str(job.job_id))
        time.sleep(0.02)  # so that there are checkpoints in between
        if job.job_id in self.at and not os.path.exists(mark):
            open(mark, "w").close()
            if self.also == "raylet":
                with open(f"/proc/{os.getppid()}/cmdline") as command:
                    assert "raylet" in command.read()
                os.kill(os.getppid(), signal.SIGKILL)
            os.kill(os.getpid(), signal.SIGKILL)
        return np.resize(np.argsort(nodes.tasks, kind="stable"), job.num_tasks)


@pytest.mark.ray
def test_an_actor_that_is_killed(ray_session: None, tmp_path: Path) -> None:
    workload = mixed_workload(60, 1)
    setting = setting_of(Mortal(tmp_path, [5, 30, 55]), workload, 4)
    told: list[str] = []
    outcome = emulate(
        setting, OBSERVED, in_process=False, checkpoints=checkpoints(tmp_path / "c", 0.1, told=told)
    )
    assert digest(outcome) == digest(run_setting(setting_of(named("own"), workload, 4), OBSERVED))
    assert outcome.restarts == 3
    assert len(told) == 3
    assert all(line.startswith("the actor of a partition is gone (ActorDiedError)") for line in told)
    assert "goes on from virtual time" in told[2]


RAYLET = """
import os, sys
from pathlib import Path
sys.path.append("tests/actors")
from test_checkpoint import Mortal, checkpoints
from emulations import OBSERVED, digest, mixed_workload, named, run_setting, setting_of
from actors.hosting.ray_session import close
from actors.hosting.virtual import emulate

folder, address, told = Path(os.environ["FOLDER"]), None, []
if os.environ["WHERE"] == "cluster":
    from ray.cluster_utils import Cluster
    quick = {"initial_delay_ms": 0, "period_ms": 500, "failure_threshold": 4}
    system = {f"health_check_{name}": value for name, value in quick.items()}
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "_system_config": system})
    for _ in range(2):
        cluster.add_node(num_cpus=1)
    cluster.wait_for_nodes()
    address = cluster.address
workload = mixed_workload(40, 1)
mortal = setting_of(Mortal(folder, [20], "raylet"), workload, 4)
disk = checkpoints(folder / "c", 0.1, told=told)
outcome = emulate(mortal, OBSERVED, in_process=False, address=address, checkpoints=disk)
whole = run_setting(setting_of(named("own"), workload, 4), OBSERVED)
print(outcome.restarts >= 1, digest(outcome) == digest(whole), told)
close()
if address is not None:
    import ray
    ray.shutdown()
    cluster.shutdown()
"""


@pytest.mark.ray
@pytest.mark.skipif(not os.path.exists("/proc"), reason="the scheduler asks /proc what it runs under")
@pytest.mark.parametrize("where", ["cluster", "one's own"])
def test_a_raylet_that_is_killed(where: str, tmp_path: Path) -> None:
    said = run_python(RAYLET, FOLDER=str(tmp_path), WHERE=where).splitlines()[-1]
    assert said.startswith("True True"), said
