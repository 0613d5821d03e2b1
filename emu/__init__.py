"""Emu: a cluster-scale emulator for datacenter schedulers.

    import emu
    result = emu.run("eagle", "yahoo", 15_000)
    result.jobs.to_pandas()

`run` emulates one scheduler, `compare` several, `sweep` a grid, and `size` finds how many nodes meet a
target; `variant` is a scheduler with settings of its own; `InputError` is what wrong input raises. Everything
is imported on first use.
"""  # fmt: skip

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from actors.schedulers.user.coflows import Coflows
    from actors.schedulers.user.dags import Machines, Stages
    from actors.schedulers.user.jobs_central import Job, Nodes
    from actors.schedulers.user.jobs_cluster import Cluster, NodeView
    from actors.schedulers.variants import variant
    from emu.explaining.explain import causes, explain
    from emu.results.comparison import Comparison
    from emu.results.result import Result, read_result
    from emu.running.comparing import compare
    from emu.running.resuming import resume
    from emu.running.run import run
    from emu.sweeps.sizing import SizeResult, size
    from emu.sweeps.sweep import SweepResult, sweep
    from workloads.errors import InputError
    from workloads.readers.job_table import workload_from

_HOMES = {
    "Cluster": "actors.schedulers.user.jobs_cluster",
    "Coflows": "actors.schedulers.user.coflows",
    "Comparison": "emu.results.comparison",
    "InputError": "workloads.errors",
    "Job": "actors.schedulers.user.jobs_central",
    "Machines": "actors.schedulers.user.dags",
    "NodeView": "actors.schedulers.user.jobs_cluster",
    "Nodes": "actors.schedulers.user.jobs_central",
    "Result": "emu.results.result",
    "SizeResult": "emu.sweeps.sizing",
    "Stages": "actors.schedulers.user.dags",
    "SweepResult": "emu.sweeps.sweep",
    "causes": "emu.explaining.explain",
    "compare": "emu.running.comparing",
    "explain": "emu.explaining.explain",
    "read_result": "emu.results.result",
    "resume": "emu.running.resuming",
    "run": "emu.running.run",
    "size": "emu.sweeps.sizing",
    "sweep": "emu.sweeps.sweep",
    "variant": "actors.schedulers.variants",
    "workload_from": "workloads.readers.job_table",
}
__all__ = [
    "Cluster",
    "Coflows",
    "Comparison",
    "InputError",
    "Job",
    "Machines",
    "NodeView",
    "Nodes",
    "Result",
    "SizeResult",
    "Stages",
    "SweepResult",
    "causes",
    "compare",
    "explain",
    "read_result",
    "resume",
    "run",
    "size",
    "sweep",
    "variant",
    "workload_from",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from emu.directories.manifest import emu_version

        return emu_version()
    if name not in _HOMES:
        raise AttributeError(f"module 'emu' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
