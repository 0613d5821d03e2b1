"""What DCoflow's open choices change: the share of deadlines met, over generated files of many shapes and seeds.

    python -m claims.dcoflow [--seeds 5] [--instances 100] [--archives INSTANCES.zip,...]

A *file* is so many instances of one shape, drawn from one seed. For each choice it prints, over all files, by how much
the mean share of a file differs from that with the default: the mean, the least and the most. What it prints is what
these files show, and no bound: another file may differ by more.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from actors.hosting.partition import Observe
from actors.hosting.runs import emulate
from actors.setting import Switch
from benchmarks.measuring import options, setting_of, show
from clusters.cluster import build_cluster
from workloads.coflows import CoflowWorkload
from workloads.generators.deadline_coflows import deadline_coflows
from workloads.readers.coflowlib import read_coflowlib

CHOICES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    f"{name}={value}, reject={rule}": ({"reject": rule}, {name: value})
    for name, value in (("flow_order", "ports"), ("examine", "back"))
    for rule in ("min-negative", "min-all", "moore-hodgson")
}
"""By name: the parameters that both have, and those of the choice."""
SHAPES = [
    {"ports": ports, "coflows": coflows, "single_share": single, "deadline_most": most}
    for ports, coflows, single, most in itertools.product((4, 10, 30), (10, 40), (0.2, 0.6), (2.0, 4.0))
]


def met_share(work: CoflowWorkload, parameters: dict[str, Any], speed: float) -> float:
    """The share of coflows that meet their deadlines."""
    ports = build_cluster("ports", [1] * work.num_ports)
    setting = setting_of("dcoflow", work, ports, parameters, switch=Switch(speed, False), seed=0)
    outcome = emulate(setting, Observe(), in_process=True)
    return float(((outcome.finish_ns >= 0) & (outcome.finish_ns <= work.arrays().deadline_ns)).mean())


def differences(instances: Iterable[tuple[CoflowWorkload, float]]) -> dict[str, float]:
    """Of a file, by how much the mean share differs by each choice."""
    found: dict[str, list[float]] = {name: [] for name in CHOICES}
    for work, speed in instances:
        shares: dict[str, float] = {}
        for name, (both, own) in CHOICES.items():
            for given in (both, both | own):
                if str(given) not in shares:
                    shares[str(given)] = met_share(work, given, speed)
            found[name].append(shares[str(both | own)] - shares[str(both)])
    return {name: float(np.mean(each)) for name, each in found.items()}


def instances_of(shape: dict[str, Any], seed: int, count: int) -> Iterator[tuple[CoflowWorkload, float]]:
    """The instances of a file; a workload's port speed is 1 Gbit/s."""
    for k in range(count):
        yield deadline_coflows(**shape, seed=1000 * seed + k), 1.25e8


def main() -> int:
    """Print a row for each choice."""
    asked = options(__doc__, seeds=5, instances=100, archives=())
    files = [
        (f"{shape}, seed {seed}", instances_of(shape, seed, asked.instances))
        for shape in SHAPES
        for seed in range(asked.seeds)
    ]
    files += [
        (path.stem, ((read_coflowlib(path, instance=k + 1), 1.0) for k in range(asked.instances)))
        for path in map(Path, asked.archives)
    ]
    found = {name: differences(some) for name, some in tqdm(files, disable=None, leave=False)}
    rows = [["", "mean", "least", "most", "where it is farthest from 0"]]
    for choice in CHOICES:
        each = np.array([one[choice] for one in found.values()])
        far = list(found)[int(np.abs(each).argmax())]
        rows.append([choice, *(f"{value:+.4f}" for value in (each.mean(), each.min(), each.max())), far])
    show(f"{len(files)} files of {asked.instances} instances", rows)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
