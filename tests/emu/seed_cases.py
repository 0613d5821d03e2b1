"""What tests of seeds share: a small generated workload, its plans, and the workloads of a comparison."""

from __future__ import annotations

from typing import Any

from emu.configuration.config import layer_from_arguments, layer_from_set, resolve
from emu.configuration.plan import Plan, prepare
from emu.results.comparison import Comparison

POISSON = {"workload": "poisson", "workload_options": {"jobs": 40, "nodes": 8}, "nodes": 8}
SETS = ("--set", "workload_options.jobs=40", "--set", "workload_options.nodes=8")


def plan_of(*sets: str, **arguments: Any) -> Plan:
    given = POISSON | {"scheduler": "random"} | arguments
    return prepare(resolve([layer_from_arguments(given), layer_from_set(sets)]))


def jobs_of(plan: Plan) -> str:
    return plan.workload.fingerprint()


def shas(comparison: Comparison) -> dict[str, list[str]]:
    return {
        name: [next(i["sha256"] for i in r.manifest["inputs"] if i["what"] == "workload") for r in runs]
        for name, runs in comparison.results.items()
    }
