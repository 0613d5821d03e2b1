"""Tables and figures of a run of coflows: their columns, and how they are computed from what an emulation gave."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from emu.columns import COSTS, ResultTable, columns_of, from_flags, make_table, null_unless, seconds
from emu.families.coflows.metrics import describe_coflows
from emu.families.coflows.plan import ports_of, switch_of
from emu.results.metrics import percentiles
from workloads.arrow import column
from workloads.coflows import NO_DEADLINE_NS, CoflowWorkload
from workloads.sums import exact_sum

if TYPE_CHECKING:
    from actors.hosting.outcome import Outcome
    from actors.setting import Switch
    from emu.configuration.plan import Plan

_OF_OUTCOME = {
    "time_s": "time_s",
    "utilisation": "utilisation",
    "waiting_flows": "queued_short",
    "running_flows": "running_short",
}
"""Columns of the timeline by their names in an outcome, which has one class of flows."""


COFLOWS = columns_of("""
    coflow_id       int    -     The coflow's id in the workload.
    arrival_s       float  s     When the coflow arrived.
    finish_s        float? s     When its last flow ended; null if the coflow did not finish.
    cct_s           float? s     Coflow completion time, finish_s - arrival_s.
    width           int    flows Flows of the coflow.
    senders         int    ports Distinct ingress ports of its flows.
    receivers       int    ports Distinct egress ports of its flows.
    size_bytes      float  B     Sum over its flows.
    weight          float  -     Its weight.
    deadline_s      float? s     When it should end, in absolute time; null for no deadline.
    admitted        flag   -     Whether the scheduler's last decision admitted it; true without admission.
    met_deadline    flag?  -     Whether it ended by its deadline; null without a deadline.
    start_s         float? s     When its first flow began to be sent; null if none did.
    ideal_s         float  s     Completion time alone on the switch: bytes over speed of the port where that is
          largest.
    slowdown        float? -     cct_s / ideal_s; null if ideal_s is 0 or the coflow did not finish.
    learned_s       float? s     From its arrival until the scheduler had learned what it orders it by: the queue in
          which it ends, or its size by its pilot flows. Null where there was nothing to learn, or it was not learned.
    learned_bytes   float? B     What the coflow had sent by then.
    estimated_bytes float? B     Its size as the scheduler estimated it, or null.
    admitted_s      float? s     When it last became admitted; null if it never did, or without admission.
    rejected_s      float? s     When it last became rejected; null if it never did.
    wasted_bytes    float? B     Bytes sent without effect: its size if it ended after its deadline; if it was dropped,
          what it had sent when that decision took effect; 0 if it met its deadline. Null without a deadline, and if it
          left for another reason.
""")

TIMELINE = columns_of("""
    time_s        float s     Virtual time of the row.
    utilisation   float -     Flows that have begun and not ended, over the number of ports; above 1 where flows share
          ports or pause.
    waiting_flows int   flows Flows that have arrived and not begun to be sent.
    running_flows int   flows Flows that have begun and not ended.
""")

FLOWS = columns_of("""
    coflow_id  int    - The flow's coflow.
    flow       int    - Position of the flow in its coflow, from 0, in workload order.
    ingress    int    - Port it enters the switch by.
    egress     int    - Port it leaves by.
    size_bytes float  B What is to be sent.
    start_s    float? s When it began to be sent; null if it did not.
    finish_s   float? s When it ended; null if it did not.
""")

FURTHER_FLOWS = columns_of("""
    ingress_bytes_per_s float B/s Speed of the port it enters the switch by.
    egress_bytes_per_s  float B/s Speed of the port it leaves by.
""")
"""Further columns of ``flows.parquet``, where the workload states port speeds; else all have `fabric.port_speed`."""


def coflow_results(plan: Plan, outcome: Outcome) -> tuple[dict[str, pa.Table | None], dict[str, Any]]:
    """Return the tables, and the figures of the summary, of a run of coflows."""
    config, workload, switch = plan.config, plan.workload, switch_of(plan.config)
    flows = outcome.tasks if config["output.tasks"] else None
    tables = {
        "coflows": coflows_table(workload, outcome, switch),
        "timeline": timeline_table(outcome.timeline),
        "flows": flows_table(workload, flows, switch) if flows else None,
    }
    busy_ns = exact_sum(outcome.servers["busy"]) if outcome.servers.size else 0
    figures = {
        "coflows": describe_coflows(tables["coflows"], config["warmup"]),
        **coordinator_figures(outcome.counters, busy_ns),
        **program_figures(outcome),
        **decision_figures(outcome),
    }
    return tables, figures


def coflows_table(workload: CoflowWorkload, outcome: Outcome, switch: Switch) -> pa.Table:
    """Return the table of coflows; times are exact to the nanosecond before they are turned into seconds."""
    arrays = workload.arrays()
    coflows = workload.coflows
    finished = outcome.finish_ns >= 0
    cct_s = (outcome.finish_ns - arrays.arrival_ns) / 1e9
    ideal_s = ports_of(workload, switch).isolated_s
    sized = finished & (ideal_s > 0)
    due = arrays.deadline_ns != NO_DEADLINE_NS
    same = ("coflow_id", "arrival_s", "width", "senders", "receivers", "size_bytes", "weight")
    return make_table(
        COFLOWS,
        {
            **{name: column(coflows, name) for name in same},
            "finish_s": seconds(outcome.finish_ns),
            "cct_s": seconds(outcome.finish_ns, arrays.arrival_ns),
            "deadline_s": coflows["deadline_s"].combine_chunks(),
            "met_deadline": from_flags(due & finished & (outcome.finish_ns <= arrays.deadline_ns), due),
            "start_s": seconds(outcome.start_ns),
            "ideal_s": ideal_s,
            "slowdown": null_unless(sized, cct_s / np.where(sized, ideal_s, 1.0)),
            **_learning(outcome, arrays.arrival_ns),
            **_admission(outcome, len(finished)),
            "wasted_bytes": _wasted(outcome, column(coflows, "size_bytes"), arrays.deadline_ns),
        },
    )


def timeline_table(timeline: Mapping[str, npt.NDArray[Any]]) -> pa.Table:
    """Return the table of a timeline."""
    return make_table(
        TIMELINE,
        {c.name: np.asarray(timeline[_OF_OUTCOME[c.name]], c.type.to_pandas_dtype()) for c in TIMELINE},
    )


def flows_table(
    workload: CoflowWorkload, flows: Mapping[str, npt.NDArray[np.int64]], switch: Switch
) -> pa.Table:
    """Return the table of flows."""
    arrays = workload.arrays()
    first = arrays.first_flow
    same = ("coflow_id", "ingress", "egress", "size_bytes")
    stated = {name: getattr(arrays, name) for name in ("ingress_bytes_per_s", "egress_bytes_per_s")}
    has_speeds = any(np.isfinite(speed).any() for speed in stated.values())
    return make_table(
        FLOWS + FURTHER_FLOWS * has_speeds,
        {
            **{name: column(workload.flows, name) for name in same},
            "flow": np.arange(workload.num_flows) - np.repeat(first[:-1], np.diff(first)),
            "start_s": seconds(flows["start_ns"]),
            "finish_s": seconds(flows["finish_ns"]),
            **{
                name: np.where(np.isnan(speed), switch.port_bytes_per_s, speed)[
                    getattr(arrays, name.split("_")[0])
                ]
                for name, speed in stated.items()
            },
        },
    )


def coordinator_figures(counters: Mapping[str, int], busy_ns: int = 0) -> dict[str, dict[str, float]]:
    """Return the ``coordinator`` part of a summary, by the counters of a run; nothing without intervals.

    ``busy_ns`` is what all its messages cost the coordinator.
    """
    intervals = counters.get("intervals", 0)
    if not intervals:
        return {}
    same = ("agents_heard", "updates", "decisions", "refills", "schedules")
    of_counter = {"missed": "intervals_missed", "without_rates": "intervals_without_rates"}
    of_counter |= dict(zip(same, same, strict=True))
    figures = {name: counters.get(counter, 0) / intervals for name, counter in of_counter.items()}
    work = {"work_s": busy_ns / 1e9 / intervals} if busy_ns else {}
    return {"coordinator": {"intervals": intervals, **figures, **work}}


def program_figures(outcome: Outcome) -> dict[str, dict[str, float]]:
    """Return the ``programs`` part of a summary: programs solved for decisions; nothing where none was solved."""
    from actors.schedulers.coflows.learned_and_admitted import Admitted

    if not isinstance(outcome.series, Admitted) or not outcome.series.solved[0]:
        return {}
    solved, limited, worst_gap = outcome.series.solved.tolist()
    return {"programs": {"solved": int(solved), "limited": int(limited), "worst_gap": worst_gap}}


def decision_figures(outcome: Outcome) -> dict[str, dict[str, float]]:
    """Return the ``decisions`` part of a summary: the cost of a decision; nothing where costs are not measured."""
    cost_s = outcome.costs["cost"][outcome.costs["decides"] == 1] / 1e9
    if not cost_s.size:
        return {}
    at = percentiles(cost_s, (50, 90, 99))
    return {
        "decisions": {"count": cost_s.size, "mean": float(cost_s.mean()), **at, "max": float(cost_s.max())}
    }


def _learning(outcome: Outcome, arrival_ns: npt.NDArray[np.int64]) -> dict[str, pa.Array]:
    """Return the columns of what the scheduler learned; null where it learns nothing."""
    from actors.schedulers.coflows.learned_and_admitted import Learned

    count, found = len(arrival_ns), outcome.series
    if not isinstance(found, Learned):
        nothing = null_unless(np.zeros(count, bool), np.zeros(count))
        return dict.fromkeys(("learned_s", "learned_bytes", "estimated_bytes"), nothing)
    known, estimated = found.learned_ns >= 0, found.estimated_bytes
    return {
        "learned_s": seconds(found.learned_ns, arrival_ns),
        "learned_bytes": null_unless(known, found.learned_bytes),
        "estimated_bytes": null_unless(~np.isnan(estimated), estimated),
    }


def _admission(outcome: Outcome, count: int) -> dict[str, pa.Array]:
    """Return the columns of admission; a scheduler without admission has admitted everything."""
    from actors.schedulers.coflows.learned_and_admitted import Admitted

    found = outcome.series
    if not isinstance(found, Admitted):
        never = np.full(count, -1)
        found = Admitted(np.ones(count, bool), never, never, np.zeros(3), np.zeros(count))
    return {
        "admitted": from_flags(found.admitted),
        "admitted_s": seconds(found.admitted_ns),
        "rejected_s": seconds(found.rejected_ns),
    }


def _wasted(
    outcome: Outcome, size_bytes: npt.NDArray[np.float64], deadline_ns: npt.NDArray[np.int64]
) -> pa.Array:
    """Return the bytes sent by coflows that did not meet their deadlines; null where they are not known."""
    from actors.schedulers.coflows.learned_and_admitted import Admitted

    finished, found = outcome.finish_ns >= 0, outcome.series
    due, met = deadline_ns != NO_DEADLINE_NS, finished & (outcome.finish_ns <= deadline_ns)
    sent = found.sent_bytes if isinstance(found, Admitted) else np.full(len(finished), np.nan)
    wasted = np.where(met, 0.0, np.where(finished, size_bytes, sent))
    return null_unless(due & ~np.isnan(wasted), wasted)


TABLES = {
    "coflows": ResultTable(COFLOWS, "One row per coflow of the workload, in workload order."),
    "timeline": ResultTable(TIMELINE, "One row per `timeline.period` of virtual time."),
    "flows": ResultTable(
        FLOWS, "With `output.tasks`: one row per flow, in workload order.", FURTHER_FLOWS, is_optional=True
    ),
    "costs": ResultTable(COSTS, is_optional=True),
}
