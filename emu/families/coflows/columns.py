"""The columns of the tables of runs of coflows."""

from __future__ import annotations

import pyarrow as pa

from emu.columns import COSTS, Column, ResultTable

COFLOWS = (
    Column("coflow_id", pa.int64(), "", "The coflow's id in the workload."),
    Column("arrival_s", pa.float64(), "s", "When the coflow arrived."),
    Column(
        "finish_s", pa.float64(), "s", "When its last flow ended; null if the coflow did not finish.", True
    ),
    Column("cct_s", pa.float64(), "s", "Coflow completion time, finish_s - arrival_s.", True),
    Column("width", pa.int64(), "flows", "Flows of the coflow."),
    Column("senders", pa.int64(), "ports", "Distinct ingress ports of its flows."),
    Column("receivers", pa.int64(), "ports", "Distinct egress ports of its flows."),
    Column("size_bytes", pa.float64(), "B", "Sum over its flows."),
    Column("weight", pa.float64(), "", "Its weight."),
    Column(
        "deadline_s", pa.float64(), "s", "When it should end, in absolute time; null for no deadline.", True
    ),
    Column(
        "admitted",
        pa.bool_(),
        "",
        "Whether the scheduler's last decision admitted it; true without admission.",
    ),
    Column(
        "met_deadline", pa.bool_(), "", "Whether it ended by its deadline; null without a deadline.", True
    ),
    Column("start_s", pa.float64(), "s", "When its first flow began to be sent; null if none did.", True),
    Column(
        "ideal_s",
        pa.float64(),
        "s",
        "Completion time alone on the switch: bytes over speed of the port where that is largest.",
    ),
    Column(
        "slowdown",
        pa.float64(),
        "",
        "cct_s / ideal_s; null if ideal_s is 0 or the coflow did not finish.",
        True,
    ),
    Column(
        "learned_s",
        pa.float64(),
        "s",
        "From its arrival until the scheduler had learned what it orders it by: the queue in which it ends, or its "
        "size by its pilot flows. Null where there was nothing to learn, or it was not learned.",
        True,
    ),
    Column("learned_bytes", pa.float64(), "B", "What the coflow had sent by then.", True),
    Column("estimated_bytes", pa.float64(), "B", "Its size as the scheduler estimated it, or null.", True),
    Column(
        "admitted_s",
        pa.float64(),
        "s",
        "When it last became admitted; null if it never did, or without admission.",
        True,
    ),
    Column("rejected_s", pa.float64(), "s", "When it last became rejected; null if it never did.", True),
    Column(
        "wasted_bytes",
        pa.float64(),
        "B",
        "Bytes sent without effect: its size if it ended after its deadline; if it was dropped, what it had sent when "
        "that decision took effect; 0 if it met its deadline. Null without a deadline, and if it left for another "
        "reason.",
        True,
    ),
)

TIMELINE = (
    Column("time_s", pa.float64(), "s", "Virtual time of the row."),
    Column(
        "utilisation",
        pa.float64(),
        "",
        "Flows that have begun and not ended, over the number of ports; above 1 where flows share ports or pause.",
    ),
    Column("waiting_flows", pa.int64(), "flows", "Flows that have arrived and not begun to be sent."),
    Column("running_flows", pa.int64(), "flows", "Flows that have begun and not ended."),
)

FLOWS = (
    Column("coflow_id", pa.int64(), "", "The flow's coflow."),
    Column("flow", pa.int64(), "", "Position of the flow in its coflow, from 0, in workload order."),
    Column("ingress", pa.int64(), "", "Port it enters the switch by."),
    Column("egress", pa.int64(), "", "Port it leaves by."),
    Column("size_bytes", pa.float64(), "B", "What is to be sent."),
    Column("start_s", pa.float64(), "s", "When it began to be sent; null if it did not.", True),
    Column("finish_s", pa.float64(), "s", "When it ended; null if it did not.", True),
)

FURTHER_FLOWS = (
    Column("ingress_bytes_per_s", pa.float64(), "B/s", "Speed of the port it enters the switch by."),
    Column("egress_bytes_per_s", pa.float64(), "B/s", "Speed of the port it leaves by."),
)
"""Further columns of ``flows.parquet``, where the workload states port speeds; else all have `fabric.port_speed`."""

TABLES = {
    "coflows": ResultTable(COFLOWS, "One row per coflow of the workload, in workload order."),
    "timeline": ResultTable(TIMELINE, "One row per `timeline.period` of virtual time."),
    "flows": ResultTable(
        FLOWS, "With `output.tasks`: one row per flow, in workload order.", FURTHER_FLOWS, is_optional=True
    ),
    "costs": ResultTable(COSTS, is_optional=True),
}
