"""Clocks and what schedulers cost, from configuration to what hosts an emulation."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from emu.columns import COSTS, make_table, numbers
from emu.keys import BY_NAME
from workloads.errors import InputError

if TYPE_CHECKING:
    from actors.hosting.checkpoint import Checkpoints
    from actors.hosting.outcome import Observe, Outcome
    from actors.scheduler import Scheduler
    from actors.setting import Costs, Setting
    from emu.config import Config

NS = 1_000_000_000
WINDOWS_PARTITIONS = 4  # where none are asked for


def emulate_setting(
    setting: Setting,
    observe: Observe,
    values: Mapping[str, Any] | Config,
    progress: Callable[[int, int, float], None] | None = None,
    tell: Callable[[str], None] | None = None,
    checkpoints: Checkpoints | None = None,
) -> Outcome:
    """Emulate with the clock that the keys in `values` say, hosted where they say."""
    address = values["address"]
    if values["clock"] == "windows":
        return _emulate_windows(setting, observe, values, progress, tell, checkpoints)
    if values["clock"] == "live":
        from actors.hosting.live import emulate_live

        return emulate_live(
            setting,
            observe,
            partitions=values["partitions"],
            dilation=values["dilation"],
            tick_s=values["live.tick"],
            lateness_bound_s=values["live.lateness_bound"],
            in_process=values["in_process"],
            address=address,
            progress=progress,
            tell=tell,
        )
    from actors.hosting.virtual import emulate

    return emulate(
        setting,
        observe,
        in_process=values["in_process"],
        address=address,
        progress=progress,
        tell=tell,
        checkpoints=checkpoints,
    )


def partitions_of(values: Mapping[str, Any] | Config) -> int:
    """Return how many partitions a run has whose clock waits for nobody."""
    return int(values["partitions"] or WINDOWS_PARTITIONS) if values["clock"] == "windows" else 1


def _emulate_windows(
    setting: Setting,
    observe: Observe,
    values: Mapping[str, Any] | Config,
    progress: Callable[[int, int, float], None] | None,
    tell: Callable[[str], None] | None,
    checkpoints: Checkpoints | None,
) -> Outcome:
    partitions = partitions_of(values)
    if values["in_process"]:
        from actors.hosting.windows import emulate_here

        return emulate_here(setting, observe, partitions, values["quantum"], progress, checkpoints)
    from actors.hosting.ray_windows import emulate_windows

    return emulate_windows(
        setting,
        observe,
        partitions=partitions,
        quantum_s=values["quantum"],
        transport=values["windows.transport"],
        address=values["address"],
        progress=progress,
        tell=tell,
        announce=None if tell is None else _announce,
        checkpoints=checkpoints,
    )


def _announce(text: str) -> None:
    """Print a plan where a person or a log sees it, but not among the results."""
    print(f"emu: {text}", file=sys.stderr, flush=True)


def check_clock(
    config: Config, schedulers: tuple[Scheduler, ...], parameters: tuple[dict[str, Any], ...]
) -> None:
    """Refuse what a clock cannot do.

    Raises
    ------
    InputError
        Costs with the clock `live`, or a scheduler that sees other actors' state.
    """
    from actors.scheduler import needs_global_view

    clock = config["clock"]
    if clock == "virtual":
        return
    if clock == "live" and config["cost.model"] != "none":
        raise config.error("cost.model", "is of the other clocks: with 'live' a message costs what it costs")
    for scheduler, own in zip(schedulers, parameters, strict=True):
        if needs_global_view(scheduler, own):
            which = [name for name in scheduler.global_view if own.get(name)]
            what = f"with {which[0]}=true" if which else "by its nature"
            raise config.error(
                "clock",
                f"{scheduler.name} {what} sees the state of other actors at once, which {clock!r} cannot give;"
                " only 'virtual' can",
            )


def costs_of(config: Config, family: str) -> Costs:
    """Return what messages cost schedulers of a family.

    Raises
    ------
    InputError
        Recorded costs are wanted and none are given, or the file has none.
    """
    from actors.setting import Costs

    model = config["cost.model"]
    own = [name for name in BY_NAME if name.startswith("cost.per_") and BY_NAME[name].family in ("", family)]
    if (config["cost.file"] is None) == (model == "recorded"):
        raise config.error("cost.file", "goes with cost.model='recorded', and that with cost.file")
    recorded = None
    if model == "recorded":
        with config.blame("cost.file"):
            recorded = read_costs(config["cost.file"])
    return Costs(
        model, recorded=recorded, **{f"{name.removeprefix('cost.')}_s": config[name] for name in own}
    )


def describe_clock(
    outcome: Outcome, quantum_s: float | None, arrivals_ns: npt.NDArray[np.int64]
) -> dict[str, Any]:
    """Return what a summary says of barriers and of schedulers' costs, where there were any.

    Parameters
    ----------
    outcome : Outcome
    quantum_s : float, optional
    arrivals_ns : (J,) int64
        When jobs, or coflows, arrive, in order.
    """
    described: dict[str, Any] = {} if outcome.live is None else {"live": outcome.live}
    if outcome.windows:
        late, late_ns, most_ns = (int(x) for x in outcome.delayed)
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
    return described | _describe_schedulers(outcome, int(arrivals_ns[0]), int(arrivals_ns[-1]))


def _describe_schedulers(outcome: Outcome, first_ns: int, last_ns: int) -> dict[str, Any]:
    """Return the ``schedulers`` part of a summary, of those that handled any message.

    Utilisation is busy time over the time from the first arrival to the last finish, or to the last arrival; waits are
    those of messages for their scheduler. The listener, the last of the servers, stands for all schedulers of a
    partition, and is none of them.
    """
    from actors.hosting.outcome import busy_arriving_ns
    from actors.kernel.histogram import quantiles

    schedulers = outcome.servers[:-1]
    served = schedulers[schedulers["served"] > 0] if schedulers.size else schedulers
    if not served.size:
        return {}
    span_ns, messages = max(int(outcome.finish_ns.max()) - first_ns, 1), int(served["served"].sum())
    waited_s = float(served["waited"].sum() / NS)
    described = {
        "count": int(served.size),
        "messages": messages,
        "busiest": float(served["busy"].max() / span_ns),
        "utilisation": float(served["busy"].mean() / span_ns),
        "cost_mean_s": float(served["busy"].sum() / messages / NS),
        "wait_mean_s": waited_s / messages,
        "wait_max_s": float(served["longest"].max() / NS),
        "backlog_mean": waited_s / (span_ns / NS) / served.size,
        "backlog_max": int(served["most"].max()),
    }
    if outcome.waits.any():
        p50_ns, p99_ns = quantiles(outcome.waits, (0.5, 0.99))
        longest = described["wait_max_s"]  # quantiles are right to 6 %, and must not be above it
        described |= {"wait_p50_s": min(p50_ns / NS, longest), "wait_p99_s": min(p99_ns / NS, longest)}
    if last_ns > first_ns:
        busy_ns = busy_arriving_ns(served, last_ns)
        described["busiest_while_arriving"] = min(float(busy_ns.max() / (last_ns - first_ns)), 1.0)
    return {"schedulers": described}


def costs_table(costs: np.ndarray) -> pa.Table:
    """Return the table of measured costs."""
    return make_table(COSTS, {"scheduler": costs["scheduler"].copy(), "cost_ns": costs["cost"].copy()})


def read_costs(path: Any) -> npt.NDArray[Any]:
    """Return recorded costs, in the order in which they were measured.

    Raises
    ------
    InputError
        The file cannot be read or has other columns, or a value is out of range: it names row, as line, and column.
    """
    import pyarrow.parquet as pq

    from actors.kernel.cost import COST, MOST_COST_NS
    from actors.kernel.queue import MOST_ACTORS

    try:
        table = pq.read_table(path, columns=[c.name for c in COSTS])
        missing = [c.name for c in COSTS if c.name not in table.column_names]
        if missing:
            raise KeyError(f"it has no column {missing[0]}")
    except (OSError, ValueError, KeyError, pa.ArrowException) as error:
        raise InputError(
            f"is not a table of recorded costs (costs.parquet of a measured run): {error}", file=path
        ) from None
    if not table.num_rows:
        raise InputError(
            "has no rows; want the cost of each message, as costs.parquet of a measured run", file=path
        )
    costs = np.zeros(table.num_rows, COST)
    for c, name, most in zip(COSTS, COST.names or (), (MOST_ACTORS, MOST_COST_NS), strict=True):
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
    kind = table.schema.field(name).type
    if kind != pa.int64():
        raise InputError(f"is of type {kind}; want whole numbers, int64", file=path, field=name)
    values = numbers(table, name)
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
