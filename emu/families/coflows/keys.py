"""The keys that runs of coflows have."""

from __future__ import annotations

from actors.environment import Costs, Switch
from emu.configuration.key import Key

_FIXED = ("cost.model=fixed",)

KEYS = (
    Key(
        "fabric.port_speed",
        "bandwidth",
        Switch.port_bytes_per_s * 8,
        "Speed of the ports, in each direction, of which the workload does not say it; of DAG jobs of the ports of all "
        "machines, with `network.scheduler=fair`.",
    ),
    Key(
        "fabric.local",
        "choice",
        "free" if Switch.local_is_free else "network",
        "Flows from a port to itself: `network`, they take bandwidth like any other; `free`, they take none and end "
        "at once.",
        choices=("network", "free"),
    ),
    Key(
        "fabric.updates",
        "path",
        None,
        "Updates of coflows under way, tasks that restart or move and coflows that leave: CSV with time_s, coflow_id, "
        "update, side, port, to.",
        otherwise="no coflow changes",
    ),
    Key(
        "cost.per_update",
        "duration",
        Costs.per_update_s,
        "Fixed cost of a report of an agent, or an update, that the coordinator receives, on top of that of a message. "
        "Of DAG jobs this and the other costs of a coordinator are for one that `network.scheduler` names.",
        needs=_FIXED,
    ),
    Key(
        "cost.per_flow",
        "duration",
        Costs.per_flow_s,
        "Fixed cost of each flow scheduled in a decision of the coordinator.",
        needs=_FIXED,
    ),
    Key(
        "cost.per_coflow",
        "duration",
        Costs.per_coflow_s,
        "Fixed cost of each coflow scheduled in a decision of the coordinator.",
        needs=_FIXED,
    ),
    Key(
        "cost.per_schedule",
        "duration",
        Costs.per_schedule_s,
        "Fixed cost of each schedule that the coordinator sends to an agent.",
        needs=_FIXED,
    ),
)
