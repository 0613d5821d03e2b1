"""Costs of schedulers and the number of partitions, from a configuration."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from emu import disk
from emu.columns import COSTS
from emu.configuration.family_keys import has_key
from emu.configuration.keys import BY_NAME, NETWORK_PARTITIONS, WINDOWS_PARTITIONS
from emu.families.family import Family
from workloads.arrow import optional_column
from workloads.errors import InputError

if TYPE_CHECKING:
    from actors.scheduler import Scheduler
    from actors.setting import Costs
    from emu.configuration.config import Config

NS = 1_000_000_000
TAKEN = COSTS[:2]
"""The columns of recorded costs that are given again."""


def most_partitions(values: Mapping[str, Any] | Config) -> int:
    """Return the most partitions of a run with the clock `windows`; 1 with the others."""
    if values["clock"] != "windows":
        return 1
    if values["partitions"] == "auto":
        return max(WINDOWS_PARTITIONS, len(os.sched_getaffinity(0)))
    default = WINDOWS_PARTITIONS if values["network.scheduler"] == "none" else NETWORK_PARTITIONS
    return int(values["partitions"] or default)


def check_clock(
    config: Config, schedulers: tuple[Scheduler, ...], parameters: tuple[dict[str, Any], ...]
) -> None:
    """Refuse costs with the clock `live`, and with it and `windows` a scheduler that sees other actors' state."""
    from actors.scheduler import needs_global_view

    clock = config["clock"]
    if clock == "virtual":
        return
    if clock == "live" and config["cost.model"] != "none":
        raise config.error("cost.model", "is for the other clocks: with 'live' handlers take their real time")
    for scheduler, own in zip(schedulers, parameters, strict=True):
        if needs_global_view(scheduler, own):
            which = [name for name in scheduler.global_view if own.get(name)]
            what = f"with {which[0]}=true" if which else "by its nature"
            raise config.error(
                "clock",
                f"{scheduler.name} {what} sees the state of other actors at once, which {clock!r} cannot give;"
                " only 'virtual' can",
            )


def costs_of(config: Config, family: Family) -> Costs:
    """Return what messages cost schedulers of a family; raise `InputError` for `recorded` without a file of costs."""
    from actors.setting import Costs

    model = config["cost.model"]
    own = [name for name in BY_NAME if name.startswith("cost.per_") and has_key(family, name)]
    if (config["cost.file"] is None) == (model == "recorded"):
        raise config.error("cost.file", "goes with cost.model='recorded', and that with cost.file")
    recorded = None
    if model == "recorded":
        with config.errors_name("cost.file"):
            recorded = read_costs(config["cost.file"])
    return Costs(
        model, recorded=recorded, **{f"{name.removeprefix('cost.')}_s": config[name] for name in own}
    )


def read_costs(path: Any) -> npt.NDArray[Any]:
    """Return recorded costs, in the order in which they were measured.

    Raise `InputError` if the file cannot be read, has other columns, or a value is out of range; the line is the row.
    """
    from actors.kernel.cost import COST, MOST_COST_NS
    from actors.kernel.queue import MOST_ACTORS

    try:
        table = disk.read_table(Path(path), {c.name: c.type for c in TAKEN})
    except InputError as error:
        if error.field is None:
            problem = f"is not a table of recorded costs (costs.parquet of a measured run): {error.message}"
            raise InputError(problem, file=path) from None
        raise
    if not table.num_rows:
        raise InputError(
            "has no rows; want the cost of each message, as costs.parquet of a measured run", file=path
        )
    costs = np.zeros(table.num_rows, COST)
    for c, name, most in zip(TAKEN, ("scheduler", "cost"), (MOST_ACTORS, MOST_COST_NS), strict=True):
        costs[name] = _checked(table, c.name, most, path)
    total_ns = np.bincount(costs["scheduler"], costs["cost"].astype(np.float64))
    if total_ns.max() > MOST_COST_NS:
        who = int(total_ns.argmax())
        raise InputError(
            f"the costs of scheduler {who} add up to {total_ns[who] / NS:.4g} s; at most {MOST_COST_NS / NS:.4g} s,"
            " 36 years, can be emulated",
            file=path,
            field="cost_ns",
        )
    return costs


def _checked(table: pa.Table, name: str, most: int, path: Any) -> npt.NDArray[np.int64]:
    """Return a column of whole numbers from 0 to `most`."""
    values = optional_column(table, name)
    wrong = ~((values >= 0) & (values <= most))
    if wrong.any():
        row = int(wrong.argmax())
        found = table[name][row].as_py()
        raise InputError(
            f"is {'null' if found is None else found}; want a whole number from 0 to {most}",
            file=path,
            line=row + 1,
            field=name,
        )
    return values.astype(np.int64)
