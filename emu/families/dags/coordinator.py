"""What the coordinator of the network of a run of DAG jobs had to do, and how long its messages waited for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from emu.families.coflows.results import coordinator_figures, decision_figures
from emu.results.server_figures import server_figures
from emu.results.text_tables import percent
from workloads.units import format_duration

if TYPE_CHECKING:
    from actors.hosting.outcome import Outcome
    from workloads.dags import DagWorkload


def describe_coordinator(workload: DagWorkload, outcome: Outcome) -> dict[str, dict[str, float]]:
    """Return the ``coordinator`` and ``decisions`` parts of a summary; nothing without a coordinator.

    They are those of a run of coflows. Where messages cost something, ``coordinator`` has besides what the
    ``schedulers`` part has of those, for one server.
    """
    if outcome.series is None or not outcome.series.counts.size:
        return {}
    from actors.fabric.counters import COUNTERS

    server = outcome.servers[-2:-1]  # before the listener
    server = server[server["served"] > 0] if server.size else server
    counters = dict(zip(COUNTERS.names, outcome.series.counts.tolist(), strict=True))
    figures = coordinator_figures(counters, int(server["busy"][0]) if server.size else 0)
    if server.size:
        submit_ns = workload.arrays().submit_ns
        span = int(submit_ns[0]), int(submit_ns[-1]), int(outcome.finish_ns.max())
        found = server_figures(server, outcome.series.waits, *span)
        del found["busiest"]  # it is alone
        if "busiest_while_arriving" in found:
            found["busy_while_arriving"] = found.pop("busiest_while_arriving")
        figures["coordinator"] = figures.get("coordinator", {}) | found
    return figures | decision_figures(outcome)


def coordinator_facts(summary: Mapping[str, Any]) -> dict[str, str]:
    """Return the facts of the ``coordinator`` part of a summary of DAG jobs, as name to text; none without costs."""
    found = summary.get("coordinator", {})
    if "utilisation" not in found:
        return {}
    facts = {
        "coordinator": f"busy {percent(found['utilisation'])}, messages waited {format_duration(found['wait_mean_s'])} "
        f"for it in the mean, at most {format_duration(found['wait_max_s'])}"
    }
    if "missed" in found:
        facts["intervals missed"] = percent(found["missed"])
    return facts
