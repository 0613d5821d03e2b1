"""Whether stories of DAG jobs and coflows name what held the longest wait, by the tables and events of the runs alone.

How to run: `python -m tests.oracles.explained_waits [carbyne philae aalo] [--count 10]`, or with others of DAG jobs.
It takes the slowest of each scheduler: of 80 generated queries on 12 machines, and of 80 generated coflows at 16 ports.
Each story is compared with loops over `events.parquet`, `tasks.parquet` or `flows.parquet` and the workload, which
share nothing with `emu.explaining` and the families' stories: the chain has no gap; no wait of the chain is longer; who
held most of the resource, or of the ports, in the longest wait, and how much.
"""

import json
import struct
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

import emu
from benchmarks.measuring import parser_of
from tests.oracles.explained import NEAR_S as NEAR
from tests.oracles.explained import NS, Story, chain_faults, show_stories
from workloads.catalogue import load_workload

COFLOWS = ("philae", "aalo")
MACHINES, SIZE = 12, 80
Rows = list[dict[str, Any]]


def read(path: Path, name: str) -> Rows:
    """Return a table of a run directory as rows."""
    return pq.read_table(path / f"{name}.parquet").to_pylist()


class Dags:
    """A run of DAG jobs: what each task held, by the messages of the manager."""

    def __init__(self, path: Path, workload: Any):
        self.jobs, self.tasks = read(path, "jobs"), read(path, "tasks")
        names = list(workload.resources)
        stages = workload.stages.to_pylist()
        self.needs = {(row["job_id"], row["stage"]): [row[n] or 0.0 for n in names] for row in stages}
        self.names, self.machines = names, MACHINES
        self.capacity = [20.0 if name == "cpu_cores" else 1.0 for name in names]
        self.held: list[tuple[int, int, int, int]] = []  # task, machine, from, to
        open_since: dict[int, tuple[int, int]] = {}
        for event in read(path, "events"):
            if event["kind"] == "LAUNCH":
                open_since[event["task"]] = event["receiver"], event["left_ns"]
            elif event["kind"] == "TASK_DONE":
                machine, since = open_since.pop(event["task"])
                self.held.append((event["task"], machine, since, event["time_ns"]))

    def need_of(self, task: int) -> list[float]:
        """Return what a task needs of each resource."""
        row = self.tasks[task]
        return self.needs[row["job_id"], row["stage"]]

    def faults(self, story: Story, job: int) -> Iterator[str]:
        """Yield what is wrong with the story of a job."""
        wait = story["longest_wait"]
        own = [(i, row) for i, row in enumerate(self.tasks) if row["job_id"] == job]
        at = max(own, key=lambda one: one[1]["finish_s"])
        longest, task = 0.0, at[0]
        while True:
            if at[1]["start_s"] - at[1]["runnable_s"] > longest:
                longest, task = at[1]["start_s"] - at[1]["runnable_s"], at[0]
            now_s, stage = at[1]["runnable_s"], at[1]["stage"]
            before = [(i, o) for i, o in own if abs(o["finish_s"] - now_s) < 1e-9 and o["stage"] != stage]
            if not before:
                break
            at = before[0]
        row = self.tasks[task]
        begin_s, end_s = (story["arrival_s"] + wait[name] for name in ("from_s", "to_s"))
        if f"task {row['task']} of stage {row['stage']} " not in wait["what"]:
            yield f"task {row['task']} of stage {row['stage']} waited longest, and not: {wait['what']}"
        if begin_s < row["runnable_s"] - NEAR or end_s > row["start_s"] + NEAR or wait["s"] < longest - 0.01:
            yield f"it waited from {row['runnable_s']} to {row['start_s']} s"
        if wait["cause"] == "queueing":
            yield from self._held_faults(wait, task, round(begin_s * NS), round(end_s * NS))

    def _held_faults(self, wait: Story, task: int, begin: int, end: int) -> Iterator[str]:
        needs, free = self.need_of(task), [list(self.capacity) for _ in range(self.machines)]
        lacked, fits_ns, amounts = [0.0] * len(needs), 0, [defaultdict(float) for _ in needs]
        changes: list[tuple[int, int, int, list[float], int]] = []
        for other, machine, since, until in self.held:
            first, last = max(since, begin), min(until, end)
            if last <= first:
                continue
            demand = self.need_of(other)
            changes += [(first, 1, machine, demand, other), (last, 0, machine, demand, other)]
            for r, amount in enumerate(demand):
                amounts[r][self.tasks[other]["job_id"]] += amount * (last - first) / (end - begin)
        changes.sort(key=lambda change: change[:2])
        at = begin
        for time, is_begin, machine, demand, _ in [*changes, (end, 0, 0, [0.0] * len(needs), -1)]:
            if time > at:
                lacks = [[have[r] < needs[r] - 1e-9 for r in range(len(needs))] for have in free]
                fits_ns += (time - at) * (not all(any(of) for of in lacks))
                for r in range(len(needs)):
                    lacked[r] += (time - at) * sum(of[r] for of in lacks) / (end - begin) / self.machines
                at = time
            for r, amount in enumerate(demand):
                free[machine][r] += -amount if is_begin else amount
        scarce = max(range(len(needs)), key=lambda r: lacked[r] if needs[r] > 0 else -1.0)
        facts = wait["facts"]
        if self.names[scarce] != facts["resource"] or abs(lacked[scarce] - facts["lacking"]) > 1e-6:
            yield f"{self.names[scarce]} was lacking, {lacked[scarce]:.6f}, and not {facts}"
        if abs(fits_ns / NS - facts["had_room_s"]) > 1e-5:
            yield f"machines had room for {fits_ns / NS} s, not {facts['had_room_s']} s"
        named = {int(str(one["job"]).split()[0]): one[f"{facts['resource']} held"] for one in wait["holders"]}
        if named.keys() != amounts[scarce].keys():
            yield f"{len(amounts[scarce])} jobs held it, and not {len(named)}"
        elif any(abs(named[job] - amount) > 1e-6 for job, amount in amounts[scarce].items()):
            yield "jobs held other amounts than it says"
        elif named and next(iter(named)) != max(amounts[scarce], key=lambda job: amounts[scarce][job]):
            yield "the first job that it names did not hold most"


class Coflows:
    """A run of coflows whose coordinator sets the rate of each flow."""

    def __init__(self, path: Path):
        self.coflows, self.flows = read(path, "coflows"), read(path, "flows")
        self.sent: dict[int, list[tuple[int, int, float]]] = defaultdict(list)
        since: dict[int, tuple[int, float]] = {}
        for event in read(path, "events"):
            if event["kind"] == "SET_RATE":
                self._close(since, event["task"], event["time_ns"])
                (rate,) = struct.unpack("d", struct.pack("q", event["b"]))
                since[event["task"]] = event["time_ns"], rate
        for flow in list(since):
            self._close(since, flow, 1 << 62)

    def _close(self, since: dict[int, tuple[int, float]], flow: int, at: int) -> None:
        """Note that a flow was sent at a rate until another one was set, or it ended."""
        begin, rate = since.get(flow, (0, 0.0))
        end = min(at, round(self.flows[flow]["finish_s"] * NS))
        if rate > 0.0 and end > begin:
            self.sent[flow].append((begin, end, rate))

    def faults(self, story: Story, coflow: int) -> Iterator[str]:
        """Yield what is wrong with the story of a coflow."""
        wait, own = story["longest_wait"], [i for i, f in enumerate(self.flows) if f["coflow_id"] == coflow]
        last = max(own, key=lambda i: self.flows[i]["finish_s"])
        flow = self.flows[last]
        if wait is None or wait["cause"] != "contention":
            return
        if (
            wait["what"]
            != f"flow {flow['flow']} waited for ingress port {flow['ingress']} and egress port {flow['egress']}"
        ):
            yield f"flow {flow['flow']} ended last, and not: {wait['what']}"
        begin, end = (round((story["arrival_s"] + wait[name]) * NS) for name in ("from_s", "to_s"))
        if any(max(a, begin) < min(b, end) - 2 for a, b, _ in self.sent[last]):
            yield "the flow was sent in its longest wait"
        moved: dict[tuple[int, str], float] = defaultdict(float)
        lasted: dict[tuple[int, str], float] = defaultdict(float)
        for other, spans in self.sent.items():
            for side in ("ingress", "egress"):
                if self.flows[other][side] != flow[side] or other == last:
                    continue
                key = self.flows[other]["coflow_id"], f"{side} {flow[side]}"
                for a, b, rate in spans:
                    spent = max(min(b, end) - max(a, begin), 0)
                    if spent > 2 and key[0] == coflow:
                        yield f"flow {self.flows[other]['flow']} of the coflow itself used the port"
                    moved[key] += rate * spent
                    lasted[key] += spent / NS
        named = {(one["coflow"], f"{one['side']} {one['port']}"): one for one in wait["holders"]}
        used = {key for key, s in lasted.items() if s > NEAR}
        if used - named.keys() or any(lasted[key] <= 0 for key in named):
            yield f"{sorted(used)} used its ports, and not {sorted(named)}"
        for key, one in named.items():
            if (
                abs(one["bytes"] - moved[key]) > 1e-6 * one["bytes"] + 10
                or abs(one["s"] - lasted[key]) > NEAR
            ):
                yield f"{key} sent {moved[key]} bytes in {lasted[key]} s"
        if named and lasted[next(iter(named))] < max(lasted.values()) - NEAR:
            yield "the first that it names did not use them longest"


def check(name: str, path: Path, count: int, size: int = SIZE) -> Iterator[tuple[Story, list[str]]]:
    """Run a scheduler into a folder; yield the story of each of the slowest, and what is wrong with it."""
    given: dict[str, Any] = {"output_events": "all", "output_tasks": True, "in_process": True, "out": path}
    run: Dags | Coflows
    if name in COFLOWS:
        result = emu.run(name, "synthetic-coflows", workload_options={"coflows": size, "ports": 16}, **given)
        run, ids, times = Coflows(path), "coflow_id", "cct_s"
        heads = run.coflows
    else:
        workload = load_workload("query-dags", options={"jobs": size})
        result = emu.run(name, workload, MACHINES, **given)
        run, ids, times = Dags(path, workload), "job_id", "jct_s"
        heads = run.jobs
    slowest = sorted((row for row in heads if row[times] is not None), key=lambda row: -row[times])[:count]
    for row in slowest:
        story = json.loads(json.dumps(emu.explain(result, row[ids]).as_dict()))
        yield story, [*chain_faults(story), *run.faults(story, row[ids])]


def main() -> int:
    """Print a row for each story, and what is wrong with it; 1 if anything is."""
    parser = parser_of(__doc__)
    parser.add_argument("schedulers", nargs="*", default=("carbyne", "philae", "aalo"))
    parser.add_argument("--count", type=int, default=10, help="of each scheduler")
    options = parser.parse_args()
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        for name in options.schedulers:
            wrong += show_stories(name, check(name, Path(folder) / name, options.count))
    print(f"{wrong} faults")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
