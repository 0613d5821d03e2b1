"""What the benchmarks of coflow schedulers share: the trace and what is derived from it, runs, ratios, tables.

Runs of one setting are done once; `Runs(folder)` keeps them in a folder, and a benchmark that is begun again goes on.
"""

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import emu
from benchmarks.measuring import SHARED
from emu.results.metrics import Float64Array
from workloads.arrow import column, optional_column
from workloads.catalogue import load_workload
from workloads.coflows import CoflowWorkload
from workloads.transform import keep_coflows, replicate, skew
from workloads.transform.primitives import set_column, with_tables

TRACE = SHARED / "traces" / "FB2010-1Hr-150-0.txt"
EPOCH_S = 10.24
"""The public simulators let coflows in at multiples of this, all that arrive before the next one."""


class Setting(NamedTuple):
    """What one run is: a scheduler with parameters, on a workload, with keys of the configuration."""

    scheduler: str
    parameters: Mapping[str, Any] = {}
    workload: str = "facebook"
    keys: Mapping[str, Any] = {}

    def but(self, parameters: Mapping[str, Any] = {}, workload: str = "", **keys: Any) -> "Setting":
        """The same with other things."""
        return Setting(
            self.scheduler,
            {**self.parameters, **parameters},
            workload or self.workload,
            {**self.keys, **keys},
        )


class Runs:
    """Results of settings, each emulated once; with a folder they are kept there."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder
        self._found: dict[str, emu.Result] = {}

    def __call__(self, setting: Setting) -> emu.Result:
        """The result of a setting."""
        name = _name(setting)
        if name not in self._found:
            out = self._folder / name if self._folder else None
            self._found[name] = emu.read_result(out) if out and out.exists() else _emulate(setting, out)
        return self._found[name]

    def cct_s(self, setting: Setting) -> Float64Array:
        """Completion times, in the workload's order."""
        return optional_column(self(setting).coflows, "cct_s")


def _emulate(setting: Setting, out: Path | None) -> emu.Result:
    result = emu.run(
        setting.scheduler,
        workload_of(setting.workload),
        parameters=dict(setting.parameters),
        in_process=True,
        **{"fabric_port_speed": "1 Gbps", **setting.keys},
    )
    if out:
        half = result.save(out.with_name(f"{out.name}.{os.getpid()}"))
        try:
            half.rename(out)
        except OSError:  # another process was faster
            shutil.rmtree(half)
    return result


def _name(setting: Setting) -> str:
    text = json.dumps(setting, sort_keys=True)
    return f"{setting.scheduler}-{setting.workload}-{hashlib.sha256(text.encode()).hexdigest()[:12]}"


@cache
def workload_of(name: str) -> CoflowWorkload:
    """The trace, or what is derived from it: `facebook`, `wide`, `skew-K`, `mantri-SEED`, `mantriflows-SEED`,
    `ports-900`, `equal-flows`, `stepped`.

    With `early-` before it, coflows arrive as the public simulators let them in: at the epoch's begin.
    """
    if name.startswith("early-"):
        return begun_early(workload_of(name.removeprefix("early-")))
    kind, _, number = name.partition("-")
    if kind == "facebook":
        workload = load_workload(str(TRACE))
        assert isinstance(workload, CoflowWorkload)
        return workload
    trace = workload_of("facebook")
    made: dict[str, Callable[[], CoflowWorkload]] = {
        "wide": lambda: keep_coflows(trace, wider_than=7),
        "skew": lambda: keep_coflows(trace, skew_above=float(number)),
        "mantri": lambda: skew(trace, seed=int(number)),
        "mantriflows": lambda: skew(trace, of="flows", seed=int(number)),
        "ports": lambda: replicate(trace, int(number) // trace.num_ports),
        "equal": lambda: with_equal_flows(trace),
        "stepped": lambda: with_whole_steps(trace),
    }
    return made[kind]()


def begun_early(workload: CoflowWorkload, epoch_s: float = EPOCH_S) -> CoflowWorkload:
    """The coflows arriving when an epoch begins, not within it or at its end; times count from then."""
    arrival_s = column(workload.coflows, "arrival_s")
    begun_s = np.maximum(np.ceil(arrival_s / epoch_s) - 1, 0) * epoch_s
    return with_tables(workload, coflows=set_column(workload.coflows, "arrival_s", begun_s))


def with_equal_flows(workload: CoflowWorkload) -> CoflowWorkload:
    """The coflows with all flows of one as long as their mean: an estimate from any flow is exact."""
    arrays = workload.arrays()
    width = np.diff(arrays.first_flow)
    mean = np.add.reduceat(arrays.size_bytes, arrays.first_flow[:-1]) / width
    return with_tables(workload, flows=set_column(workload.flows, "size_bytes", np.repeat(mean, width)))


def with_whole_steps(workload: CoflowWorkload, bytes_a_step: float = 134_217.0 * 8) -> CoflowWorkload:
    """The coflows with flows of whole steps: in the Philae simulator a flow keeps its ports to the end of a step."""
    arrays = workload.arrays()
    sizes = np.ceil(arrays.size_bytes / bytes_a_step) * bytes_a_step
    return with_tables(
        workload,
        flows=set_column(workload.flows, "size_bytes", sizes),
        coflows=set_column(workload.coflows, "size_bytes", np.add.reduceat(sizes, arrays.first_flow[:-1])),
    )


def quantised(cct_s: Float64Array, step_s: float = 0.008) -> Float64Array:
    """Completion times as a simulator in steps has them: up to the end of the step."""
    return np.ceil(cct_s / step_s - 1e-9) * step_s


def speedup(first_s: Float64Array, other_s: Float64Array) -> tuple[float, float, float]:
    """The other's mean over the first's; median and 90th percentile of the ratios coflow by coflow."""
    p50, p90 = np.percentile(other_s / first_s, [50, 90])
    return float(other_s.mean() / first_s.mean()), float(p50), float(p90)


def cells(values: Sequence[float | None], digits: int = 2) -> list[str]:
    """Figures as text, a dash where there is none."""
    return ["-" if v is None or np.isnan(v) else f"{v:,.{digits}f}" for v in values]
