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

if TYPE_CHECKING:  # `as` says to type checkers that a name is public here
    from actors.schedulers.user.coflows import Coflows as Coflows
    from actors.schedulers.user.dags import Machines as Machines
    from actors.schedulers.user.dags import Stages as Stages
    from actors.schedulers.user.jobs_central import Job as Job
    from actors.schedulers.user.jobs_central import Nodes as Nodes
    from actors.schedulers.user.jobs_probing import Cluster as Cluster
    from actors.schedulers.user.jobs_probing import NodeView as NodeView
    from actors.schedulers.variants import variant as variant
    from emu.explaining.explain import causes as causes
    from emu.explaining.explain import explain as explain
    from emu.results.comparison import Comparison as Comparison
    from emu.results.result import Result as Result
    from emu.results.result import read_result as read_result
    from emu.running.runs import compare as compare
    from emu.running.runs import resume as resume
    from emu.running.runs import run as run
    from emu.sweeps.sizing import SizeResult as SizeResult
    from emu.sweeps.sizing import size as size
    from emu.sweeps.sweep import SweepResult as SweepResult
    from emu.sweeps.sweep import sweep as sweep
    from workloads.errors import InputError as InputError
    from workloads.readers.job_table import workload_from as workload_from

_NAMES = {
    "actors.schedulers.user.coflows": "Coflows",
    "actors.schedulers.user.dags": "Machines Stages",
    "actors.schedulers.user.jobs_central": "Job Nodes",
    "actors.schedulers.user.jobs_probing": "Cluster NodeView",
    "actors.schedulers.variants": "variant",
    "emu.explaining.explain": "causes explain",
    "emu.results.comparison": "Comparison",
    "emu.results.result": "Result read_result",
    "emu.running.runs": "compare resume run",
    "emu.sweeps.sizing": "SizeResult size",
    "emu.sweeps.sweep": "SweepResult sweep",
    "workloads.errors": "InputError",
    "workloads.readers.job_table": "workload_from",
}
_HOMES = {name: module for module, names in _NAMES.items() for name in names.split()}
__all__ = sorted(_HOMES)


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
