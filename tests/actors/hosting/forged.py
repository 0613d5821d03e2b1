"""Forged checkpoints, for tests and benchmarks: what an attacker who recomputes the hashes might write.

`forged(scheduler, seed, count)` gives emulations with snapshots in which a number, a type or a size is another one;
`end_of_run(setting, snapshot)` says what became of one. Run as a script, `forged.py SCHEDULER SEED COUNT`, it
prints what is tried, and what became of it, in a line for each: a process of its own, which may die.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT), str(ROOT / "tests"), str(ROOT / "tests" / "actors")]

import numpy as np  # noqa: E402
from emulations import with_dynamics  # noqa: E402

from actors.hosting.bounds import columns  # noqa: E402
from actors.hosting.outcome import Observe  # noqa: E402
from actors.hosting.partition import Partition, build_partition  # noqa: E402
from actors.hosting.snapshot import Refused, Snapshot  # noqa: E402
from actors.hosting.structures import check_snapshot  # noqa: E402
from actors.kernel.world import NEVER  # noqa: E402
from actors.schedulers.registry import built_in_schedulers, find_scheduler  # noqa: E402
from actors.setting import Costs, Setting  # noqa: E402
from tests.actors.parameter_cases import Where, setting_for  # noqa: E402
from workloads.errors import InputError  # noqa: E402

OBSERVED = Observe(timeline_period_s=0.5, tasks=True)
EXTREMES = (-1, 1 << 31, 1 << 62, -(1 << 63), (1 << 63) - 1)
FLOATS = (np.nan, np.inf, -np.inf, -1.0, 1e300)
PATIENCE_S = 5.0


def setting_of(scheduler: str, seed: int) -> Setting:
    """A small emulation in which much happens; costs and failures where the seed says."""
    found = find_scheduler(scheduler)
    jobs = found.family == "jobs"
    costs = Costs("fixed", per_message_s=0.05 if jobs else 1e-4) if seed % 2 else Costs()
    some = {"managers": 2} if found.family == "dags" and seed % 5 == 2 and found.own is None else {}
    setting = setting_for(found, Where(costs=costs), some)
    return with_dynamics(setting) if found.family != "coflows" and seed % 3 == 1 else setting


def snapshot_of(setting: Setting, seed: int) -> Snapshot:
    """The state of a run somewhere in its middle."""
    partition = Partition(setting, OBSERVED)
    partition.start()
    with np.errstate(over="ignore"):
        for _ in range(1 + seed % 7):
            if partition._step(int(NEVER), np.int64(40)):
                break
    return partition.snapshot()


def forge(snapshot: Snapshot, seed: int) -> tuple[str, Snapshot]:
    """A snapshot that differs in one place, and what was done."""
    draws = np.random.default_rng(seed)
    names = sorted(name for name, array in snapshot.items() if array.size)
    name = names[draws.integers(len(names))]
    found = dict(snapshot)
    if draws.random() < 0.1:
        return f"{name} of another shape", {**found, name: _reshaped(found[name], draws)}
    array = found[name] = np.atleast_1d(found[name].copy())
    scalar = snapshot[name].ndim == 0
    which, values = (fields := columns(name, array))[draws.integers(len(fields))]
    # What is in use lies in front, mostly.
    near = values.size if draws.random() < 0.3 else min(values.size, 32)
    place = np.unravel_index(draws.integers(near), values.shape)
    was = values[place]
    if draws.random() < 0.5 and values.dtype.kind != "b":
        value = values.reshape(-1)[draws.integers(near)]  # one that is in the array
        if values.dtype.kind in "iu":
            value += draws.integers(-1, 2).astype(values.dtype)
    elif values.dtype.kind == "f":
        value = FLOATS[draws.integers(len(FLOATS))]
    elif values.dtype.kind == "b":
        value = not was
    else:
        value = np.array(EXTREMES[draws.integers(len(EXTREMES))], np.int64).astype(values.dtype)
    with np.errstate(over="ignore"):
        values[place] = value
    if scalar:
        found[name] = array.reshape(())
    return f"{which}{[int(i) for i in place]}: {was} -> {value}", found


def _reshaped(array: np.ndarray, draws: np.random.Generator) -> np.ndarray:
    ways = (
        lambda: array.reshape(-1)[:-1],
        lambda: np.concatenate([array.reshape(-1), array.reshape(-1)]),
        lambda: array.reshape(1, *array.shape),
        lambda: array.astype(np.float32) if array.dtype.names is None else array.view(np.uint8),
        lambda: np.zeros(0, array.dtype),
    )
    made: np.ndarray = ways[draws.integers(len(ways))]()
    return made


def end_of_run(setting: Setting, snapshot: Snapshot) -> str:
    """What becomes of a run from a snapshot: "refused", "done", "error" or, if it has no end, "goes on"."""
    world, state = build_partition(setting, OBSERVED)
    try:
        check_snapshot(setting, world, state, snapshot)
    except (Refused, ValueError, TypeError, KeyError, IndexError, OverflowError):
        return "refused"  # as `check_snapshots` does
    partition = Partition(setting, OBSERVED)
    partition.start()
    begun = time.monotonic()
    try:
        partition.restore(snapshot)
        while not partition.run(0.2).done:
            if time.monotonic() - begun > PATIENCE_S:
                return "goes on"
        partition.outcome()
    except (InputError, RuntimeError, MemoryError):
        return "error"
    return "done"


def forged(scheduler: str, seed: int, count: int) -> Iterator[tuple[str, Setting, Snapshot]]:
    """So many forged snapshots of a scheduler: what was done, the emulation, and the snapshot."""
    setting = setting_of(scheduler, seed)
    whole = snapshot_of(setting, seed)
    for i in range(count):
        what, found = forge(whole, 1_000_003 * seed + i)
        yield what, setting, found


def main() -> None:
    """Print, for each forged snapshot, what is tried, and then what became of it."""
    scheduler, seed, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    for what, setting, snapshot in forged(scheduler, seed, count):
        print(json.dumps(what), end=" ", flush=True)
        begun = time.monotonic()
        print(end_of_run(setting, snapshot), f"{time.monotonic() - begun:.1f}", flush=True)


if __name__ == "__main__":
    assert built_in_schedulers()
    main()
