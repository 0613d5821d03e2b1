"""Whether stories of `emu explain` name what held the longest wait, by the tables and events of the runs alone.

How to run: `python -m tests.oracles.explained [SCHEDULER...] [--jobs 10] [--nodes 4000] [--keep FOLDER]`
It takes the slowest jobs of each scheduler, half of them by completion time and half by slowdown, on the public excerpt
of the Yahoo trace (`YH1_sub.tr` in `../shared/traces`, or where EMU_SHARED says); phoenix has constraints drawn for it.
Each story's JSON is compared with what `tasks.parquet` and `events.parquet` say, by code that shares nothing with
`emu.explaining` and the `explain.py` of the families: loops over the rows of one job or one node. `CHECKS` has the
checks of each family of schedulers: a function from the run and a story to what is wrong with it.
"""

import json
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

import emu
from benchmarks.measuring import SHARED, parser_of

TRACE = SHARED / "traces" / "YH1_sub.tr"
SCHEDULERS = ("sparrow", "hawk", "eagle", "phoenix", "yacc-d")
CONSTRAINED: dict[str, Any] = {
    "workload_steps": ["constrain --model phoenix"],
    "cluster": "phoenix",
    "infeasible": "drop",
}
KEPT: dict[str, Any] = {"output_events": "all", "output_tasks": True, "in_process": True}
ALL_ALIKE = ("sparrow", "central-fifo")
"""Schedulers for which short and long jobs are alike: all may use all nodes."""
NEAR_S = 1e-6
NS = 1e9
Story = Mapping[str, Any]
Frame = Any  # pandas has no types


class Run:
    """The files of a run directory, as frames."""

    def __init__(self, path: Path):
        self.path = path
        self.manifest = json.loads((path / "manifest.json").read_text())
        summary = json.loads((path / "summary.json").read_text())
        self.nodes, self.name = summary["nodes"], summary["scheduler"]
        read = {file.stem: pq.read_table(file).to_pandas() for file in path.glob("*.parquet")}
        self.jobs, self.tasks, self.events = (read.get(name) for name in ("jobs", "tasks", "events"))
        self.tables = read

    def slowest(self, count: int) -> list[int]:
        """Return the ids of the slowest jobs: half by completion time, the others by slowdown."""
        ended = self.jobs[self.jobs.jct_s.notna()]
        by_time = ended.nlargest(count // 2, "jct_s").job_id.tolist()
        others = ended[~ended.job_id.isin(by_time)]
        return [*by_time, *others.nlargest(count - len(by_time), "slowdown").job_id.tolist()]


def chain_faults(story: Story) -> Iterator[str]:
    """Yield what is wrong with a chain, which leads from the arrival to the end, and has no longer wait."""
    chain, wait = story["chain"], story["longest_wait"]
    ends = [0.0, *(link["to_s"] for link in chain)]
    if any(abs(link["from_s"] - end) > NEAR_S for link, end in zip(chain, ends, strict=False)):
        yield "there are gaps between its links"
    if abs(ends[-1] - story["time_s"]) > NEAR_S:
        yield f"it ends after {ends[-1]} s, not {story['time_s']} s"
    longest = max((link["s"] for link in chain if link["cause"] not in ("work", "transmission")), default=0.0)
    if longest > 0 and (wait is None or wait["s"] < longest - NEAR_S):
        yield f"it waited {longest} s at once, which is longer than the longest wait of the story"


def cause_faults(story: Story) -> Iterator[str]:
    """Yield which causes are not the sums of their links."""
    for cause, took_ns in story["causes_ns"].items():
        summed = sum(link["s"] for link in story["chain"] if link["cause"] == cause)
        if abs(summed - took_ns / NS) > NEAR_S:
            yield f"the links of {cause} take {summed} s, not {took_ns / NS} s"


def job_faults(run: Run, story: Story) -> Iterator[str]:
    """Yield what is wrong with the story of a job."""
    yield from chain_faults(story)
    yield from cause_faults(story)
    job = int(story["title"].split(",")[0].removeprefix("job "))
    row = run.jobs.index[run.jobs.job_id == job][0]
    events = run.events[run.events.job == row]
    own = run.tasks[run.tasks.job_id == job]
    for link in (link for link in story["chain"] if link["cause"] == "work"):
        start_s, end_s = (story["arrival_s"] + link[name] for name in ("from_s", "to_s"))
        ran = own[(abs(own.start_s - start_s) < NEAR_S) & (abs(own.finish_s - end_s) < NEAR_S)]
        if not any(link["what"] == f"task {one.task} ran on node {one.node:.0f}" for one in ran.itertuples()):
            yield f"no task ran as it says: {link['what']}"
    wait = story["longest_wait"]
    if wait is not None and wait["cause"] == "queueing":
        begin, end = (round((story["arrival_s"] + wait[name]) * NS) for name in ("from_s", "to_s"))
        if "node" in wait["facts"]:
            yield from _node_faults(run, events, job, wait, begin, end)
        else:
            yield from _scheduler_faults(run, wait, begin, end)


def _node_faults(run: Run, events: Frame, job: int, wait: Story, begin: int, end: int) -> Iterator[str]:
    """Yield what is wrong with a wait in the queue of a node, from `begin` to `end`."""
    node, facts = wait["facts"]["node"], wait["facts"]
    if f"queue of node {node}" not in wait["what"]:
        yield f"its words do not name node {node}"
    came = events[(events.receiver == node) & events.kind.isin(["PROBE", "PLACED", "OFFERED", "MOVE"])]
    ended = events[(events.kind == "DONE") & (events.sender == node)]
    if not (near(came.time_ns, begin).any() or near(ended.d, begin).any()):
        yield f"nothing of the job joined the queue of node {node} at {begin} ns, nor did a task of it end there"
    started = events[(events.kind == "START") & (events.receiver == node)].time_ns
    left = events[
        (events.sender == node) & events.kind.isin(["REQUEST", "PROBE", "REJECTED", "RETURNED"])
    ].left_ns
    moved = events[(events.kind == "MOVE") & (events.b == node)].time_ns
    if not any(near(times, end).any() for times in (started, left, moved)):
        yield f"nothing of the job left the queue of node {node} at {end} ns"
    held = {}
    for one in run.tasks[run.tasks.node == node].itertuples():
        spent = min(one.finish_s, end / NS) - max(one.start_s, begin / NS)
        if spent > NEAR_S:
            held[one.job_id, one.task] = spent
    named = {(one["job"], one["task"]): one["s"] for one in wait["holders"] if one["s"] > NEAR_S}
    if held.keys() != named.keys():
        yield f"it names {len(named)} tasks; {len(held)} ran there"
    elif any(abs(held[key] - named[key]) > NEAR_S for key in held):
        yield "the tasks that it names did not run there for so long"
    if held and wait["holders"] and max(held.values()) > wait["holders"][0]["s"] + NEAR_S:
        yield "the first one that it names did not hold the slot longest"
    if sum(held.values()) < 0.98 * wait["s"]:
        yield f"the tasks held the slot for {sum(held.values())} s of {wait['s']} s"
    yield from _turn_faults(run, wait, node, begin)
    if facts["expected_s"] is not None:
        chosen = events[(events.kind == "CHOICE") & (events.c == node)]
        if not near(chosen.d, round(facts["expected_s"] * NS)).any():
            yield f"its scheduler did not note that it expected {facts['expected_s']} s"
    yield from _free_faults(run, job, facts, begin - round(wait["from_s"] * NS))


def _turn_faults(run: Run, wait: Story, node: int, begin: int) -> Iterator[str]:
    """Yield which tasks that ran there did not come when the story says."""
    for one in wait["holders"]:
        row = run.jobs.index[run.jobs.job_id == one["job"]][0]
        mine = run.events[(run.events.job == row) & (run.events.receiver == node)]
        first = run.jobs.num_tasks[:row].sum()
        placed = mine[mine.kind.isin(["PLACED", "OFFERED"]) & (mine.task == first + one["task"])]
        came = placed if len(placed) else mine[mine.kind.isin(["PROBE", "MOVE"])]
        before = came.time_ns.max() <= begin if len(placed) else (came.time_ns <= begin).any()
        if one["turn"] in ("came before", "came later") and (one["turn"] == "came before") != before:
            yield f"task {one['task']} of job {one['job']} is said to be one that {one['turn']}"


def _free_faults(run: Run, job: int, facts: Story, arrival: int) -> Iterator[str]:
    """Yield whether other nodes were free than the story says; not of nodes that differ, nor with constraints.

    The nodes that a long job may use are the last ones.
    """
    config, row = run.manifest["config"], run.jobs[run.jobs.job_id == job].iloc[0]
    if config["cluster"] != "homogeneous" or facts["usable_slots"] != facts["usable_nodes"]:
        return
    share = config["long_partition"] if row.job_class == "long" and run.name not in ALL_ALIKE else 1.0
    if facts["usable_nodes"] != run.nodes and abs(facts["usable_nodes"] - share * run.nodes) > 1:
        yield f"it could use {share:.0%} of the nodes, not {facts['usable_nodes']}"
    delay_s = float(config["network"]["delay"].removesuffix(" s"))
    at_s = arrival / NS + facts["chosen_s"]
    here = run.tasks[(run.tasks.start_s <= at_s + 4 * delay_s) & (run.tasks.finish_s > at_s)]
    free = facts["usable_nodes"] - here.node[here.node >= run.nodes - facts["usable_nodes"]].nunique()
    if free != facts["free_nodes"]:
        yield f"{free} nodes had a free slot at {at_s} s, not {facts['free_nodes']}"


def _scheduler_faults(run: Run, wait: Story, begin: int, end: int) -> Iterator[str]:
    """Yield what is wrong with a wait at a scheduler, for any node."""
    if wait["facts"].get("usable_nodes") != run.nodes:
        return
    spent = np.minimum(run.tasks.finish_s, end / NS) - np.maximum(run.tasks.start_s, begin / NS)
    held = spent.clip(lower=0).groupby(run.tasks.job_id).sum()
    for one in wait["holders"]:
        if abs(held[one["job"]] - one["s"]) > NEAR_S * run.nodes:
            yield f"job {one['job']} held slots for {held[one['job']]} s, not {one['s']} s"
    if wait["holders"] and held.max() > wait["holders"][0]["s"] + NEAR_S * run.nodes:
        yield "the first job that it names did not hold most"


def near(times: Frame, at: int) -> Frame:
    """Return which times are that one; those of a story went through seconds in floating point."""
    return abs(times - at) <= NEAR_S * NS


CHECKS: dict[str, Callable[[Run, Story], Iterator[str]]] = {"jobs": job_faults}
"""By family of schedulers."""


def check(path: Path, count: int) -> Iterator[tuple[Story, list[str]]]:
    """Yield the story of each of the slowest of a run, and what is wrong with it."""
    run, result = Run(path), emu.read_result(path)
    for job in run.slowest(count):
        story = json.loads(json.dumps(emu.explain(result, job).as_dict()))
        yield story, list(CHECKS["jobs"](run, story))


def show_stories(name: str, stories: Iterator[tuple[Story, list[str]]]) -> int:
    """Print a row for each story of a scheduler, and what is wrong with it; return how much is."""
    print(name)
    wrong = 0
    for story, faults in stories:
        wrong += len(faults)
        wait = story["longest_wait"]
        first = wait["holders"][0] if wait and wait["holders"] else {}
        held = ", ".join(f"{key} {value}" for key, value in list(first.items())[:2])
        longest = f"{wait['s']:10.1f} s: {wait['what']}; {held}" if wait else "no wait"
        print(f"  {story['title'].split(',')[0]:10s} {story['time_s']:10.1f} s; {longest}")
        for fault in faults:
            print(f"    wrong: {fault}")
    return wrong


def main() -> int:
    """Print a row for each story, and what is wrong with it; 1 if anything is."""
    parser = parser_of(__doc__)
    parser.add_argument("schedulers", nargs="*", default=SCHEDULERS)
    parser.add_argument("--jobs", type=int, default=10, help="of each scheduler")
    parser.add_argument("--nodes", type=int, default=4000)
    parser.add_argument(
        "--keep", type=Path, help="a folder for the runs; those that are there are not run again"
    )
    options = parser.parse_args()
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        for name in options.schedulers:
            path = (options.keep or Path(folder)) / name
            if not (path / "manifest.json").exists():
                more = CONSTRAINED if name.startswith("phoenix") else {}
                emu.run(name, TRACE, options.nodes, out=path, **KEPT, **more)
            wrong += show_stories(name, check(path, options.jobs))
    print(f"{wrong} faults")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
