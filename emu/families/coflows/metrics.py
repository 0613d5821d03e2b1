"""Figures of a run of coflows: completion times, by width and size too, deadlines, and learning."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from emu.families.coflows.deadlines import describe_deadlines
from emu.results.metrics import BoolArray, Float64Array, after_warmup, describe_metrics, percentiles, spread
from workloads.arrow import optional_column
from workloads.info.coflows import SMALL_BYTES, THIN_FLOWS

BINS = {
    "bin-1": f"width up to {THIN_FLOWS}, up to {SMALL_BYTES / 1e6:g} MB",
    "bin-2": f"width above {THIN_FLOWS}, up to {SMALL_BYTES / 1e6:g} MB",
    "bin-3": f"width up to {THIN_FLOWS}, above {SMALL_BYTES / 1e6:g} MB",
    "bin-4": f"width above {THIN_FLOWS}, above {SMALL_BYTES / 1e6:g} MB",
}
"""Coflows by width and size, as in table 4 of Philae's paper."""
GROUPS = ("all", *BINS)
LATE_SHARE = 0.2
"""Share of a completion time above which learning is called late, as in figure 1 of Philae's paper."""

SHUFFLE_SHARES = ((0.61, 0.0, 0.25), (0.13, 0.25, 0.50), (0.14, 0.50, 0.75), (0.12, 0.75, 1.0))
"""Share of the jobs, and the range of the share of their time that they shuffle, as in Aalo's and Philae's papers."""


def describe_coflows(coflows: pa.Table, warmup_s: float = 0.0) -> dict[str, Any]:
    """Return the ``coflows`` part of a summary.

    Coflows that arrive within the warm-up are left out of everything except the makespan.

    Returns
    -------
    dict
        `describe_values` of completion times of coflows that finished, and in ``wait`` and ``slowdown`` of the time
        until the first flow began and of slowdowns; ``makespan_s`` from first arrival to last completion;
        ``unfinished``, if any; those of `describe_deadlines`; ``bins``, the same by `BINS`; ``learning`` and
        ``estimates``, where the scheduler learned anything.
    """
    arrival_s, finish_s = (optional_column(coflows, name) for name in ("arrival_s", "finish_s"))
    values = values_of(coflows)
    cct_s = values[""]

    def describe(mask: BoolArray) -> dict[str, Any]:
        return describe_metrics({metric: of_all[mask] for metric, of_all in values.items()})

    counts = after_warmup(arrival_s, warmup_s)
    finished = np.isfinite(cct_s)
    summary = describe(counts)
    if finished.any():
        summary["makespan_s"] = float(np.nanmax(finish_s) - arrival_s[0])
    if not finished.all():
        summary["unfinished"] = int(np.count_nonzero(~finished))
    summary |= describe_deadlines(coflows, counts)
    bins = {name: in_group(coflows, name) & counts for name in BINS}
    summary["bins"] = {name: describe(own) for name, own in bins.items() if own.any()}
    return summary | describe_learning(coflows, counts)


def values_of(coflows: pa.Table) -> dict[str, Float64Array]:
    """Return the metrics of each coflow by their names in a summary; that of completion times is empty."""
    return {
        "": optional_column(coflows, "cct_s"),
        "wait": optional_column(coflows, "start_s") - optional_column(coflows, "arrival_s"),
        "slowdown": optional_column(coflows, "slowdown"),
    }


def describe_learning(coflows: pa.Table, counts: BoolArray) -> dict[str, Any]:
    """Return the cost and accuracy of learning, of the coflows that count; nothing where nothing was learned.

    Returns
    -------
    dict
        ``learning``, of the coflows that were not known at their arrival: ``count``; mean, p50 and p90 of the time it
        took (``latency``, s), of that over the completion time (``cct_share``), of the bytes sent by then (``bytes``)
        and of those over the size (``bytes_share``); ``late``, the share with a cct_share above `LATE_SHARE`.
        ``estimates``: ``count``, and mean, standard deviation, p50, p90 and p99 of the relative error of estimated
        sizes, |estimate - size| / size.
    """
    described: dict[str, Any] = {}
    learned = counts & was_learned(coflows)
    if learned.any():
        columns = {name: optional_column(coflows, name)[learned] for name in ("learned_s", "learned_bytes")}
        share = learning_share(coflows)[learned]
        size = optional_column(coflows, "size_bytes")[learned]
        described["learning"] = {
            "count": int(learned.sum()),
            "latency": spread(columns["learned_s"]),
            "cct_share": spread(share),
            "bytes": spread(columns["learned_bytes"]),
            "bytes_share": spread(columns["learned_bytes"] / size),
            "late": float((share > LATE_SHARE).mean()),
        }
    error = estimate_error(coflows)[counts]
    error = error[np.isfinite(error)]
    if len(error):
        described["estimates"] = {
            "count": len(error),
            "mean": float(error.mean()),
            "std": float(error.std()),
            **percentiles(error, (50, 90, 99)),
        }
    return described


def was_learned(coflows: pa.Table) -> BoolArray:
    """Return which coflows took time and were not known at their arrival."""
    with np.errstate(invalid="ignore"):
        return (optional_column(coflows, "learned_s") > 0) & (optional_column(coflows, "cct_s") > 0)


def learning_share(coflows: pa.Table) -> Float64Array:
    """Return the share of each completion time that learning took; NaN where nothing was learned."""
    with np.errstate(invalid="ignore", divide="ignore"):
        share: Float64Array = optional_column(coflows, "learned_s") / optional_column(coflows, "cct_s")
    return share


def estimate_error(coflows: pa.Table) -> Float64Array:
    """Return the relative error of each estimated size; NaN without an estimate."""
    size = optional_column(coflows, "size_bytes")
    error: Float64Array = np.abs(optional_column(coflows, "estimated_bytes") - size) / size
    return error


def in_group(coflows: pa.Table, group: str) -> BoolArray:
    """Return which coflows belong to one of `GROUPS`."""
    wide = optional_column(coflows, "width") > THIN_FLOWS
    large = optional_column(coflows, "size_bytes") > SMALL_BYTES
    masks = {
        "all": np.ones(len(wide), bool),
        "bin-1": ~wide & ~large,
        "bin-2": wide & ~large,
        "bin-3": ~wide & large,
        "bin-4": wide & large,
    }
    return masks[group]


def part_of(summary: Mapping[str, Any], group: str) -> Mapping[str, Any]:
    """Return the figures of a group in the ``coflows`` part of a summary; an empty mapping if it has none."""
    if group == "all":
        return summary
    found: Mapping[str, Any] = summary.get("bins", {}).get(group, {})
    return found


def shuffle_shares(count: int, seed: int = 0) -> Float64Array:
    """Return the share of its time that each of `count` jobs shuffles, drawn evenly within `SHUFFLE_SHARES`."""
    random = np.random.default_rng(seed)
    weight, low, high = np.array(SHUFFLE_SHARES).T
    which = random.choice(len(weight), count, p=weight)
    # Above low: a share of 0 would mean no shuffle.
    drawn: Float64Array = high[which] - (high - low)[which] * random.random(count)
    return drawn


def job_times(base_cct_s: Float64Array, cct_s: Float64Array, share: Float64Array) -> Float64Array:
    """Return completion times of jobs that compute, and shuffle by one coflow each, under the scheduler of `cct_s`.

    A job computes for ``base_cct_s * (1 - share) / share`` under each scheduler, where `base_cct_s` are completion
    times of coflows under the scheduler to which the shares (`shuffle_shares`) refer.
    """
    return base_cct_s * (1 - share) / share + cct_s
