"""Orders of coflows with deadlines, and what they achieve: a program of its own, to check schedulers with.

    python -m tests.oracles.deadline_rules [--by-ports] INSTANCES.zip ...

It shares no code with the emulator: it reads CoflowLib's archives, makes the order of DCoflow [1]_ with each of its
rejection rules, of CS-MHA [2]_ and of Sincronia [3]_, and serves flows in that order, each at the full rate of its
ports or not at all. All coflows are there at time 0. It prints the mean share of coflows that meet their deadlines.
Flows of one coflow have the order of the file; no algorithm says which. With `--by-ports` they have that of their
ports.

Where [1]_ leaves something open, this follows the authors' code: a rejected coflow keeps its place in the order until
the end; then the rejected ones are looked at from the front of the order to its back, and one that would be late there
is dropped. Looked at from the back, fewer are kept (synthetic, 40 coflows: 0.2325 in place of 0.2445 by `min_all`).

References
----------
.. [1] Luu et al.: DCoflow, IFIP Networking 2022, Algorithm 1.
.. [2] Luo, Yu and Li: Decentralized deadline-aware coflow scheduling, ICC 2016.
.. [3] Agarwal et al.: Sincronia, SIGCOMM 2018, Algorithm 1.
"""

from __future__ import annotations

import sys
import zipfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from tqdm import tqdm

RULES = ("min_all", "min_negative", "min_congested", "moore_hodgson")
CONGESTED = 0.7  # of the bottleneck's load: a port that `min_congested` counts
ROUNDING = 1e-9


class Instance(NamedTuple):
    """Coflows that are there at time 0: C coflows, F flows, L ports, of which flow f uses `ports[f]`."""

    weight: np.ndarray  # [C]
    deadline: np.ndarray  # [C]
    coflow: np.ndarray  # [F] of each flow
    volume: np.ndarray  # [F]
    ports: np.ndarray  # [F, 2] ingress and egress port, all numbered together
    capacity: np.ndarray  # [L]

    def times(self) -> np.ndarray:
        """[L, C] how long a coflow takes a port."""
        volume = np.zeros((self.capacity.size, self.deadline.size))
        for side in (0, 1):
            np.add.at(volume, (self.ports[:, side], self.coflow), self.volume)
        return volume / self.capacity[:, None]


def read_instance(text: str) -> Instance:
    """One instance of CoflowLib: the type, and what `workloads.readers.coflowlib` says of the format."""
    rows = iter([line.split() for line in text.splitlines() if line.strip()])
    next(rows)
    heads, flows = [], []
    for coflow in range(int(next(rows)[0])):
        head = next(rows)
        heads.append((float(head[1]), float(head[3])))
        for _ in range(int(head[4])):
            _, volume, _, source, sink = next(rows)
            flows.append((coflow, float(volume), int(source) - 1, int(sink) - 1))
    capacity = np.array([float(next(rows)[1]) for _ in range(int(next(rows)[0]))])
    weight, deadline = np.array(heads).T
    coflow, volume, source, sink = np.array(flows).T
    return Instance(
        weight, deadline, coflow.astype(int), volume, np.stack([source, sink], 1).astype(int), capacity
    )


def read_instances(archive: Path) -> list[Instance]:
    """All instances of an archive."""
    with zipfile.ZipFile(archive) as members:
        names = sorted(name for name in members.namelist() if not name.endswith("/"))
        return [read_instance(members.read(name).decode()) for name in names]


def moore_hodgson(times: np.ndarray, deadline: np.ndarray, among: Sequence[int]) -> list[int]:
    """The jobs that one machine rejects so that as many as possible are in time (Moore 1968)."""
    kept: list[int] = []
    rejected = []
    end = 0.0
    for job in sorted(among, key=lambda j: deadline[j]):
        kept.append(job)
        end += times[job]
        if end > deadline[job] + ROUNDING:
            longest = max(kept, key=lambda j: times[j])
            kept.remove(longest)
            rejected.append(longest)
            end -= times[longest]
    return rejected


def dcoflow(instance: Instance, rule: str = "min_all") -> list[int]:
    """DCoflow's order of the coflows that it admits; `rule` is one of `RULES`."""
    times, deadline = instance.times(), instance.deadline
    left, order, rejected = list(range(deadline.size)), [], set()
    while left:
        load = times[:, left].sum(axis=1)
        bottleneck = int(load.argmax())
        there = [k for k in left if times[bottleneck, k] > 0]
        in_time = [k for k in there if deadline[k] >= load[bottleneck] - ROUNDING]
        if in_time:
            last = max(in_time, key=lambda k: deadline[k])
        else:
            candidates = there
            if rule == "moore_hodgson":
                candidates = moore_hodgson(times[bottleneck], deadline, there)
            last = min(candidates, key=partial(impact, rule, times, deadline, load))
            rejected.add(last)
        left.remove(last)
        order.insert(0, last)
    for k in [k for k in order if k in rejected]:
        ahead = order[: order.index(k) + 1]
        if times[:, ahead].sum(axis=1)[times[:, k] > 0].max() > deadline[k] + ROUNDING:
            order.remove(k)
    return order


def impact(rule: str, times: np.ndarray, deadline: np.ndarray, load: np.ndarray, k: int) -> float:
    """How late a coflow is that comes last, times its time at each port ([1]_, (15)-(17)); the least is rejected."""
    late = times[:, k] * (deadline[k] - load)
    used = times[:, k] > 0
    if rule == "min_all":
        return float(late[used].min())
    if rule == "min_congested":
        return float(late[used & (load >= CONGESTED * load.max())].sum())
    return float(np.minimum(late[used], 0).sum())


def cs_mha(instance: Instance) -> list[int]:
    """CS-MHA's order: what every port admits, by deadline; then the others, by how much of their time they need."""
    times, deadline = instance.times(), instance.deadline
    coflows = range(deadline.size)
    rejected = {k for row in times for k in moore_hodgson(row, deadline, [k for k in coflows if row[k] > 0])}
    admitted = sorted((k for k in coflows if k not in rejected), key=lambda k: deadline[k])
    return admitted + sorted(rejected, key=lambda k: (times[:, k] / deadline[k]).max())


def sincronia(instance: Instance) -> list[int]:
    """Sincronia's order: at the most loaded port the coflow with the least weight for its time is last."""
    times, weight = instance.times(), instance.weight.copy()
    left, order = list(range(weight.size)), []
    while left:
        bottleneck = times[int(times[:, left].sum(axis=1).argmax())]
        last = min((k for k in left if bottleneck[k] > 0), key=lambda k: weight[k] / bottleneck[k])
        weight -= weight[last] / bottleneck[last] * bottleneck
        left.remove(last)
        order.insert(0, last)
    return order


def finish_times(instance: Instance, order: Sequence[int], by_ports: bool = False) -> np.ndarray:
    """[C] when coflows end that are served in an order; infinite for those that are not in it."""
    place = {k: i for i, k in enumerate(order)}
    waiting = [f for f in range(instance.volume.size) if instance.coflow[f] in place]
    waiting.sort(key=lambda f: (place[instance.coflow[f]], *(instance.ports[f] if by_ports else ())))
    left, finish, now = instance.volume.copy(), np.full(instance.deadline.size, np.inf), 0.0
    finish[order] = 0.0
    while waiting:
        busy, running = set(), []
        for f in waiting:
            source, sink = instance.ports[f].tolist()
            if source not in busy and sink not in busy:
                busy |= {source, sink}
                running.append(f)
        rate = instance.capacity[instance.ports[running]].min(axis=1)
        step = (left[running] / rate).min()
        now += step
        left[running] -= step * rate
        ended = {f for f in running if left[f] <= ROUNDING}
        for f in ended:
            finish[instance.coflow[f]] = now
        waiting = [f for f in waiting if f not in ended]
    return finish


def acceptance(instance: Instance, order: Sequence[int], by_ports: bool = False) -> float:
    """The share of the coflows that meet their deadlines if they are served in an order."""
    return float(np.mean(finish_times(instance, order, by_ports) <= instance.deadline + ROUNDING))


ORDERS = {
    **{f"dcoflow {rule}": partial(dcoflow, rule=rule) for rule in RULES},
    "cs-mha": cs_mha,
    "sincronia": sincronia,
}


def main() -> int:
    """Print a row for each order and a column for each archive."""
    by_ports = "--by-ports" in sys.argv
    archives = [Path(name) for name in sys.argv[1:] if name != "--by-ports"]
    if not archives:
        print(
            "tests.oracles.deadline_rules: want at least one archive of CoflowLib instances", file=sys.stderr
        )
        return 2
    instances = [read_instances(archive) for archive in archives]
    print(f"{'':24}" + "".join(f"{archive.stem:>26}" for archive in archives))
    for name, order_of in tqdm(ORDERS.items(), disable=None, leave=False):
        means = [np.mean([acceptance(one, order_of(one), by_ports) for one in some]) for some in instances]
        print(f"{name:24}" + "".join(f"{mean:26.4f}" for mean in means))
    return 0


if __name__ == "__main__":
    sys.exit(main())
