"""Why a task of a DAG job had its input no earlier: the port that its fetch waited for, and who used it meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from emu.explaining.event_record import IntArray
from emu.explaining.explained_plan import plan_of
from emu.explaining.explanation import NS, Link, Wait, counted
from emu.explaining.spans import covered_ns, whole
from emu.families.dags.fetches import Fetches, Flows, Ran, evenly, fetches_of, flows_of, sent_of
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
    from actors.inputs import origins_of, parts_of

    plan = plan_of(result)
    if plan is None:
        return Wait(link, (), ["The inputs of the run have changed: which bytes tasks fetch is not known."])
    arrays, table, task = plan.workload.arrays(), result.tasks, link.task
    node, start_ns, fetched_ns, finish_ns = (
        whole(optional_column(table, name), scale)
        for name, scale in (("node", 1.0), ("start_s", NS), ("fetched_s", NS), ("finish_s", NS))
    )
    sent_ns = sent_of(table)
    sent_from_ns = np.where(sent_ns >= 0, sent_ns, start_ns)
    fetches = fetches_of(stage_of_task(plan.workload), node, sent_from_ns, fetched_ns)
    own = int(fetches.of_task[task])
    begin_ns, end_ns = arrival_ns + link.begin_ns, arrival_ns + link.end_ns
    meanwhile = np.flatnonzero((fetches.begin_ns < end_ns) & (fetches.end_ns > begin_ns))
    setting = plan.setting(0)
    part = parts_of(np.diff(arrays.stage_first_task), setting.switch.skew, setting.seed)
    is_pipelined = setting.switch.registration == "pipelined"
    ran = Ran(node, part, origins_of(setting, node), finish_ns if is_pipelined else None)
    flows, span = flows_of(fetches, meanwhile, arrays, ran), (begin_ns, end_ns)
    # Of a fetch that began before all parents had ended, what they sent before that may have come before it, too.
    is_late = flows.begin_ns >= begin_ns
    is_known = bool((is_late & (flows.fetch == own)).any())
    counts = (flows.fetch != own) | is_late | (not is_known)
    port = _busiest(fetches, Flows(*(of[counts] for of in flows)), own, span)
    holders = _holders(plan, fetches, port, own, span)
    facts = _facts(fetches, flows, port, own) | {
        "early_s": (begin_ns - int(fetches.begin_ns[own])) / NS,
        "stages": len({(row["job"], row["stage"]) for row in holders if row["whose"] != OWN}),
        "jobs": len({row["job"] for row in holders if row["whose"] != OWN}),
        "bytes_per_s": (per_s := setting.switch.port_bytes_per_s),
        "busy_share": float(port.bytes.sum() / per_s / link.s),
        "own_share": float(port.bytes[port.fetch == own].sum() / per_s / link.s) if is_known else 0.0,
        "is_known": is_known,
        "is_pushed": bool(sent_ns[task] >= 0),
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


def _facts(fetches: Fetches, flows: Flows, port: Port, own: int) -> dict[str, Any]:
    """Return the numbers of a fetch, of its port, and of the others that used this port."""
    mine, is_own = flows.fetch == own, port.fetch == own
    wave = (fetches.stage == fetches.stage[own]) & (fetches.begin_ns == fetches.begin_ns[own])
    return {
        "node": int(fetches.node[own]),
        "tasks": int(fetches.tasks[own]),
        "machines": int(np.unique(flows.source[mine]).size),
        "bytes": float(flows.size_bytes[mine].sum()),
        "port": port.name,
        "port_bytes": float(port.whole_bytes[is_own].sum()),
        "others_bytes": float(port.whole_bytes[~is_own].sum()),
        "fetches": int((~is_own).sum()),
        "other_machines": int(wave.sum()) - 1,
    }


def _busiest(fetches: Fetches, flows: Flows, own: int, span: tuple[int, int]) -> Port:
    """Return the port of a fetch over which most went in a span of time, its own first of equal ones."""
    within = evenly(fetches, flows, *span)
    receives = fetches.node[flows.fetch] == fetches.node[own]
    ports = [(f"the port by which node {fetches.node[own]} receives", receives)]
    for source in np.unique(flows.source[flows.fetch == own]).tolist():
        ports.append((f"the port by which node {source} sends", flows.source == source))
    name, over = max(ports, key=lambda port: float(within[port[1]].sum()))
    fetch, of = np.unique(flows.fetch[over], return_inverse=True)
    in_all, meanwhile = np.zeros(fetch.size), np.zeros(fetch.size)
    np.add.at(in_all, of, flows.size_bytes[over])
    np.add.at(meanwhile, of, within[over])
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
