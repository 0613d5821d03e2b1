"""The keys that runs of coflows have."""

from __future__ import annotations

from emu.configuration.kinds import Key

KEYS = (
    Key(
        "fabric.port_speed",
        "bandwidth",
        1e9,
        "Speed of the ports, in each direction, of which the workload does not say it.",
    ),
    Key(
        "fabric.local",
        "choice",
        "network",
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
        0.0,
        "Fixed cost of an update that the coordinator receives, on top of that of a message.",
    ),
    Key("cost.per_flow", "duration", 0.0, "Fixed cost of each flow scheduled in a decision."),
    Key(
        "cost.per_coflow",
        "duration",
        0.0,
        "Fixed cost of each coflow scheduled in a decision.",
    ),
    Key("cost.per_schedule", "duration", 0.0, "Fixed cost of each schedule sent to an agent."),
)
