"""Clocks: from the configuration to the host of an emulation, and their part of a summary."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from actors.environment import Pace
from emu.columns import COSTS, from_flags, make_table
from emu.configuration.costs import NS, most_partitions
from emu.results.server_figures import server_figures
from emu.terminal import print_line

if TYPE_CHECKING:
    from actors.hosting.checkpoint import Checkpoints
    from actors.hosting.outcome import Observe, Outcome
    from actors.setting import Setting
    from emu.configuration.config import Config


def emulate_setting(
    setting: Setting,
    observe: Observe,
    values: Mapping[str, Any] | Config,
    progress: Callable[[int, int, float], None] | None = None,
    tell: Callable[[str], None] | None = None,
    checkpoints: Checkpoints | None = None,
) -> Outcome:
    """Emulate with the clock, and on the host, that the keys in `values` name."""
    hosted = {"in_process": values["in_process"], "address": values["address"]}
    shown: dict[str, Any] = {"progress": progress, "tell": tell}
    if values["clock"] == "live":
        from actors.hosting.live import emulate_live

        pace = Pace(values["dilation"], values["live.tick"], values["live.lateness_bound"])
        partitions = None if values["partitions"] == "auto" else values["partitions"]
        return emulate_live(setting, observe, pace, partitions=partitions, **hosted, **shown)
    if values["clock"] == "virtual":
        from actors.hosting.virtual import emulate

        return emulate(setting, observe, checkpoints=checkpoints, **hosted, **shown)
    quantum_s = values["quantum"]
    partitions = _partitions_of(setting, values, tell)
    if values["in_process"]:
        from actors.hosting.windows import emulate_here

        return emulate_here(setting, observe, partitions, quantum_s, progress, tell, checkpoints)
    from actors.hosting.ray_windows import emulate_windows

    return emulate_windows(
        setting,
        observe,
        partitions=partitions,
        quantum_s=quantum_s,
        transport=values["windows.transport"],
        address=values["address"],
        announce=None if tell is None else _announce,
        checkpoints=checkpoints,
        **shown,
    )


def _partitions_of(
    setting: Setting, values: Mapping[str, Any] | Config, tell: Callable[[str], None] | None
) -> int:
    """Return the number of partitions of a run with the clock `windows`; with `auto` also tell why."""
    if values["partitions"] != "auto":
        return most_partitions(values)
    from actors.hosting.choosing import choose_partitions
    from actors.hosting.windows import window_ns

    window = window_ns(setting, values["quantum"])
    partitions, reason = choose_partitions(setting, window, 1 if values["in_process"] else None)
    if tell is not None:
        _announce(reason)
    return partitions


def _announce(text: str) -> None:
    """Print a plan where a person or a log sees it, but not among the results."""
    print_line(text, keep="\n")


def describe_clock(
    outcome: Outcome,
    quantum_s: float | None,
    arrivals_ns: npt.NDArray[np.int64],
    *,
    has_coordinator: bool = False,
) -> dict[str, Any]:
    """Return a summary's entries on a live run, barriers and schedulers' costs; `arrivals_ns` are in order.

    `has_coordinator`: it is a run of DAG jobs over a network that has one.
    """
    described: dict[str, Any] = {} if outcome.live is None else {"live": outcome.live}
    if outcome.windows:
        late, late_ns, most_ns = outcome.delayed
        described["windows"] = {
            "partitions": outcome.partitions,
            "windows": outcome.windows,
            "exact": quantum_s is None,
            "delayed_messages": late,
            "delayed_mean_s": late_ns / late / NS if late else 0.0,
            "delayed_max_s": most_ns / NS,
        }
        if quantum_s is not None:
            described["windows"]["quantum_s"] = quantum_s
    span = int(arrivals_ns[0]), int(arrivals_ns[-1])
    return described | _describe_schedulers(outcome, *span, has_coordinator)


def _describe_schedulers(
    outcome: Outcome, first_ns: int, last_ns: int, has_coordinator: bool
) -> dict[str, Any]:
    """Return the ``schedulers`` part of a summary, of those that handled any message.

    The last of the servers is the listener, which is not a scheduler; before it comes the coordinator of the network of
    DAG jobs, of which the family tells.
    """
    schedulers = outcome.servers[: -2 if has_coordinator else -1]
    served = schedulers[schedulers["served"] > 0] if schedulers.size else schedulers
    if not served.size:
        return {}
    figures = server_figures(served, outcome.waits, first_ns, last_ns, int(outcome.finish_ns.max()))
    return {"schedulers": {"count": int(served.size), **figures}}


def costs_table(costs: np.ndarray) -> pa.Table:
    """Return the table of measured costs."""
    from actors.hosting.recorded import RECORDED

    kinds, which = np.unique(costs["kind"], return_inverse=True)
    names = pa.array(
        [RECORDED[number].name if number in RECORDED else f"{number:#05x}" for number in kinds.tolist()],
        pa.string(),
    )
    return make_table(
        COSTS,
        {
            "scheduler": costs["scheduler"].copy(),
            "cost_ns": costs["cost"].copy(),
            "message": names.take(pa.array(which)),
            "decides": from_flags(costs["decides"] == 1),
        },
    )
