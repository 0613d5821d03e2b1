"""What tasks of DAG jobs fetched over the network, and why a task had its input no earlier.

It is computed again from the table of tasks and the bytes on edges: the port that a fetch waited for, and who used it
meanwhile. Tasks of a stage that are launched on one machine at one instant fetch together, until all of them have their
input (`actors.transfers.fetches`); or where shuffles are pushed those to which input is sent there from one instant on.
The table has both times. It does not have when each flow of a fetch ended, so that bytes within a part of that time are
counted as if every fetch had sent evenly: what a task of a parent sends from its end on, where the fetch began before
that (`network.registration=pipelined`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from emu.explaining.event_record import NONE, IntArray
from emu.explaining.explained_run import plan_of
from emu.explaining.explanation import NS, Link, Wait, counted
from emu.explaining.spans import covered_ns, overlap_ns, whole
from emu.families.dags.results import stage_of_task
from emu.results.metrics import Float64Array
from emu.results.result import Result
from emu.results.text_tables import number, percent
from workloads.arrow import column, optional_column
from workloads.units import format_quantity

if TYPE_CHECKING:
    from emu.configuration.plan import Plan

OWN = "this fetch"
FULL = 0.95
"""Share of a fetch above which its own bytes alone explain how long it took."""
MOST_NAMED = 3
"""Stages that a sentence names."""
BUSY = 0.5
"""Share of a fetch below which the use of its busiest port does not explain how long it took."""


class Flows(NamedTuple):
    """What crosses the network: ndarrays, shape (n,), a row for each fetch, edge, machine that sends, and begin.

    Attributes
    ----------
    fetch, source, size_bytes : of which fetch it is, the machine that sends, and how much
    begin_ns : when it became known
    """

    fetch: IntArray
    source: IntArray
    size_bytes: Float64Array
    begin_ns: IntArray


def sent_of(table: pa.Table) -> IntArray:
    """Return when the input of each task began to be sent to its machine before it was launched, ns; -1: it was not."""
    if "sent_s" not in table.column_names:
        return np.full(table.num_rows, NONE)
    return whole(optional_column(table, "sent_s"), NS)


class Fetches:
    """The fetches of a run that has ended, so that none is under way, in order of stage, machine and time.

    What took no time is no fetch.

    Attributes
    ----------
    stage, node : ndarray of int64, shape (F,)
        The stage from 0 over all in workload order, and the machine that receives.
    begin_ns, end_ns : ndarray of int64, shape (F,)
        From when their input was sent, at the launch unless it was pushed, and when they had all of it.
    tasks : ndarray of int64, shape (F,)
        How many they are.
    of_task : ndarray of int64, shape (T,)
        The fetch of each task; -1 of those that needed no input.
    """

    def __init__(self, plan: Plan, table: pa.Table):
        from actors.inputs import origins_of, parts_of

        setting, self._arrays = plan.setting(0), plan.workload.arrays()
        self._node = whole(optional_column(table, "node"))
        start_ns, fetched_ns, finish_ns = (
            whole(optional_column(table, name), NS) for name in ("start_s", "fetched_s", "finish_s")
        )
        # What it needs of a shuffle, in means of the tasks of its stage; from where it reads its part of a job's input.
        self._part = parts_of(np.diff(self._arrays.stage_first_task), setting.switch.skew, setting.seed)
        self._origin = origins_of(setting, self._node)
        # From when what a task sends is there, where fetches may begin before that.
        is_pipelined = setting.switch.registration == "pipelined"
        self._there_ns = finish_ns if is_pipelined else np.zeros_like(finish_ns)
        sent_ns = sent_of(table)
        begin_ns = np.where(sent_ns >= 0, sent_ns, start_ns)
        self.of_task, tasks = np.full(begin_ns.size, NONE), np.flatnonzero(fetched_ns > begin_ns)
        keys, first, of, self.tasks = np.unique(
            np.stack([stage_of_task(plan.workload), self._node, begin_ns])[:, tasks],
            axis=1,
            return_index=True,
            return_inverse=True,
            return_counts=True,
        )
        self.of_task[tasks] = of.ravel()
        self.stage, self.node, self.begin_ns = keys
        self.end_ns = fetched_ns[tasks[first]]

    def flows(self, which: IntArray) -> Flows:
        """Return what crosses the network for some fetches, rows in rising order."""
        a, none = self._arrays, np.zeros(0, np.int64)
        found = [Flows(none, none, np.zeros(0), none)]
        stages, begins = np.unique(self.stage[which], return_index=True)
        for stage, rows in zip(stages.tolist(), np.split(which, begins[1:]), strict=True):
            own = slice(*a.stage_first_task[stage : stage + 2])
            for e in range(int(a.first_parent[stage]), int(a.first_parent[stage + 1])):
                theirs = slice(*a.stage_first_task[a.parent[e] : a.parent[e] + 2])
                if a.parent_bytes[e] > 0 and a.parent_one_to_one[e]:  # task i of the parent sends to task i
                    found.append(self._apart(rows, own, self._node[theirs], a.parent_bytes[e]))
                elif a.parent_bytes[e] > 0:
                    found += self._shuffle(rows, own, theirs, a.parent_bytes[e])
            found.append(self._apart(rows, own, self._origin[own], a.input_bytes[stage]))
        flows = Flows(*map(np.concatenate, zip(*found, strict=True)))
        crosses = flows.source != self.node[flows.fetch]
        return Flows(*(of[crosses] for of in flows))

    def _shuffle(self, rows: IntArray, own: slice, theirs: slice, size_bytes: float) -> Iterator[Flows]:
        """Yield the flows of each fetch over an all-to-all edge: each task of the parent sends to each its part."""
        pairs = (own.stop - own.start) * (theirs.stop - theirs.start)
        parts = np.bincount(self.of_task[own] + 1, self._part[own], minlength=self.tasks.size + 1)[1:]
        for row in rows.tolist():
            known_ns = np.maximum(self.begin_ns[row], self._there_ns[theirs])
            sent, count = np.unique(np.stack([self._node[theirs], known_ns]), axis=1, return_counts=True)
            yield Flows(np.full(count.size, row), sent[0], size_bytes / pairs * count * parts[row], sent[1])

    def _apart(self, rows: IntArray, tasks: slice, sources: IntArray, size_bytes: float) -> Flows:
        """Return the flows where each task of a stage has as much, from a machine of its own."""
        of = self.of_task[tasks]
        pairs = np.stack([of, sources])[:, np.isin(of, rows) & (sources >= 0)]
        (fetch, sender), count = np.unique(pairs, axis=1, return_counts=True)
        each: Float64Array = np.full(count.size, size_bytes / of.size)
        return Flows(fetch, sender, each * count, self.begin_ns[fetch])

    def evenly(self, flows: Flows, begin_ns: int, end_ns: int) -> Float64Array:
        """Return the bytes of each flow within a span of time, if it was sent evenly until its fetch ended."""
        begins, ends = flows.begin_ns, self.end_ns[flows.fetch]
        within: Float64Array = overlap_ns(begins, ends, begin_ns, end_ns) / np.maximum(ends - begins, 1)
        return flows.size_bytes * within


class Port(NamedTuple):
    """The port that a fetch waited for, and the fetches that used it meanwhile.

    Attributes
    ----------
    name : what it is called
    fetch : shape (n,), rows of fetches, each once
    whole_bytes, bytes : shape (n,), what each moves over the port in all, and while the fetch lasted, by `evenly`
    """

    name: str
    fetch: IntArray
    whole_bytes: Float64Array
    bytes: Float64Array


def fetch_of(result: Result, link: Link, arrival_ns: int) -> Wait:
    """Explain a time in which a task fetched its input.

    Parameters
    ----------
    link : Link
        That time, a part of the job's chain.
    arrival_ns : int
        Of the job.
    """
    plan = plan_of(result)
    if plan is None:
        return Wait(link, (), ["The inputs of the run have changed: which bytes tasks fetch is not known."])
    fetches = Fetches(plan, result.tasks)
    own, per_s = int(fetches.of_task[link.task]), plan.setting(0).switch.port_bytes_per_s
    begin_ns, end_ns = arrival_ns + link.begin_ns, arrival_ns + link.end_ns
    flows = fetches.flows(np.flatnonzero((fetches.begin_ns < end_ns) & (fetches.end_ns > begin_ns)))
    # Of a fetch that began before all parents had ended, what they sent before that may have come before it, too.
    is_late = flows.begin_ns >= begin_ns
    mine = flows.fetch == own
    is_known = bool((is_late & mine).any())
    counts = ~mine | is_late | (not is_known)
    port = _busiest(fetches, Flows(*(of[counts] for of in flows)), own, (begin_ns, end_ns))
    holders = _holders(plan, fetches, port, own, (begin_ns, end_ns))
    others = [(row["job"], row["stage"]) for row in holders if row["whose"] != OWN]
    is_own = port.fetch == own
    wave = (fetches.stage == fetches.stage[own]) & (fetches.begin_ns == fetches.begin_ns[own])
    facts = {
        "node": int(fetches.node[own]),
        "tasks": int(fetches.tasks[own]),
        "machines": int(np.unique(flows.source[mine]).size),
        "bytes": float(flows.size_bytes[mine].sum()),
        "port": port.name,
        "port_bytes": float(port.whole_bytes[is_own].sum()),
        "others_bytes": float(port.whole_bytes[~is_own].sum()),
        "fetches": int((~is_own).sum()),
        "other_machines": int(wave.sum()) - 1,
        "early_s": (begin_ns - int(fetches.begin_ns[own])) / NS,
        "stages": len(set(others)),
        "jobs": len({job for job, _ in others}),
        "bytes_per_s": per_s,
        "busy_share": float(port.bytes.sum() / per_s / link.s),
        "own_share": float(port.bytes[is_own].sum() / per_s / link.s) if is_known else 0.0,
        "is_known": is_known,
        "is_pushed": bool(sent_of(result.tasks)[link.task] >= 0),
    }
    return Wait(link, holders, list(_reasons(plan, facts)), facts)


def most_users(wait: Wait) -> Iterator[str]:
    """Yield a sentence on the stages whose fetches used the port of a fetch most, if there are any."""
    others = [row for row in wait.holders if row["whose"] != OWN]
    first = [
        f"stage {row['stage']} of {'this job' if row['whose'] == 'this job' else 'job {}'.format(row['job'])} "
        f"({format_quantity(row['bytes'], 'B')} in {number(row['s'])} s)"
        for row in others[:MOST_NAMED]
    ]
    if first:
        more = f", and {counted(len(others) - len(first), 'more stage')}" if others[MOST_NAMED:] else ""
        yield f"Meanwhile the port was used most for {', '.join(first)}{more}."


def _busiest(fetches: Fetches, flows: Flows, own: int, span: tuple[int, int]) -> Port:
    """Return the port of a fetch over which most went in a span of time, its own first of equal ones."""
    within = fetches.evenly(flows, *span)
    receives = fetches.node[flows.fetch] == fetches.node[own]
    ports = [(f"the port by which node {fetches.node[own]} receives", receives)]
    for source in np.unique(flows.source[flows.fetch == own]).tolist():
        ports.append((f"the port by which node {source} sends", flows.source == source))
    name, over = max(ports, key=lambda port: float(within[port[1]].sum()))
    fetch, of = np.unique(flows.fetch[over], return_inverse=True)
    in_all, meanwhile = (np.bincount(of, some[over]).astype(float) for some in (flows.size_bytes, within))
    return Port(name, fetch, in_all, meanwhile)


def _holders(
    plan: Plan, fetches: Fetches, port: Port, own: int, span: tuple[int, int]
) -> list[dict[str, Any]]:
    """Return a row for each stage whose fetches used a port meanwhile, that with most bytes first."""
    ids, first = column(plan.workload.jobs, "job_id"), plan.workload.arrays().first_stage
    stages, is_own, rows = fetches.stage[port.fetch], port.fetch == own, []
    job = np.searchsorted(first, stages, side="right") - 1
    own_job = int(job[is_own][0])
    begin_ns, end_ns = span
    for of in [is_own, *(~is_own & (stages == stage) for stage in np.unique(stages[~is_own]))]:
        fetch, of_job, stage = port.fetch[of], int(job[of][0]), int(stages[of][0])
        begins = np.maximum(fetches.begin_ns[fetch], begin_ns)
        whose = OWN if is_own[of][0] else "this job" if of_job == own_job else "another"
        rows.append(
            {
                "job": int(ids[of_job]),
                "stage": stage - int(first[of_job]),
                "whose": whose,
                "fetches": fetch.size,
                "bytes in all": float(port.whole_bytes[of].sum()),
                "bytes": float(port.bytes[of].sum()),
                "s": covered_ns(begins, np.minimum(fetches.end_ns[fetch], end_ns)) / NS,
            }
        )
    return sorted(rows, key=lambda row: -row["bytes"])


def _reasons(plan: Plan, facts: dict[str, Any]) -> Iterator[str]:
    """Yield what was fetched, the port that had most to do and for whom, and what is not known."""
    per_s = facts["bytes_per_s"]

    def size(name: str) -> str:
        return f"{format_quantity(facts[name], 'B')} ({number(facts[name] / per_s)} s at that speed)"

    together = (
        f"With {counted(facts['tasks'] - 1, 'other task')} of its stage it" if facts["tasks"] > 1 else "It"
    )
    yield (
        f"{together} fetched {format_quantity(facts['bytes'], 'B')} from {counted(facts['machines'], 'machine')}: "
        f"{number(facts['bytes'] / per_s)} s at {format_quantity(per_s * 8, 'bps')}, if node {facts['node']} received "
        "nothing else."
    )
    if facts["early_s"] > 0:
        counted_bytes = (
            "with what was sent to it from then on" if facts["is_known"] else "with all that was sent to it"
        )
        yield (
            f"It began {number(facts['early_s'])} s before the last of its parents had ended, and fetched as they "
            f"ended. The time from that end on is explained, {counted_bytes}."
        )
    others = "no other fetch used it meanwhile"
    if facts["fetches"]:
        fetches = "other fetch" if facts["fetches"] == 1 else "other fetches"
        others = (
            f"{facts['fetches']:,} {fetches}, of {counted(facts['stages'], 'stage')} of "
            f"{counted(facts['jobs'], 'job')}, used it meanwhile and moved {size('others_bytes')} over it, from their "
            "beginnings to their ends"
        )
    yield f"Of the ports on the way {facts['port']} had most to do: {size('port_bytes')} are of this fetch; {others}."
    if facts["own_share"] > FULL:
        yield f"This fetch alone filled the port for {percent(facts['own_share'])} of the time."
        return
    yield (
        "When the parts of a fetch came is not recorded: the port is chosen, and bytes of a part of its time are "
        f"counted, as if every fetch had come evenly{' from the ends of parents on' * (facts['early_s'] > 0)}."
    )
    if facts["busy_share"] < BUSY:
        share = percent(facts["busy_share"])
        yield f"So counted the port was in use for {share} of that time: what else it waited for is not recorded."
    from actors.scheduler import resolve_parameters

    network = plan.setting(0).switch.scheduler
    coordinator = plan.schedulers[0].coordinator
    if coordinator is None:
        return
    if plan.costs.model != "none":
        yield f"What its coordinator does takes time (cost.model={plan.costs.model}): flows wait for their rates."
    if facts["other_machines"]:
        machines = counted(facts["other_machines"], "other machine")
        began = "were sent their input to" if facts["is_pushed"] else "were launched on"
        yield (
            f"Tasks of its stage {began} {machines} at the same instant: {network} orders the flows to all of them as "
            "one coflow for each edge."
        )
    if rule := coordinator.rule_with(resolve_parameters(coordinator, {})):
        yield f"The rule of {network}: {rule}."
