"""Figures of schedulers as servers: how busy they were, and what messages waited for them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from workloads.sums import exact_sum

NS = 1_000_000_000


def server_figures(
    servers: npt.NDArray[Any], waits: npt.NDArray[np.int64], first_ns: int, last_ns: int, end_ns: int
) -> dict[str, float]:
    """Return figures of servers that handled any message, under the names of the ``schedulers`` part of a summary.

    Parameters
    ----------
    servers : ndarray of SERVER
        Those of `actors.kernel.cost`, all of which have handled messages.
    waits : ndarray of int64
        The histogram of their messages by how long they waited.
    first_ns, last_ns, end_ns : int
        The first arrival, the last one, and the last finish.

    Returns
    -------
    dict
        Utilisation is busy time over the time from the first arrival to the last finish, or to the last arrival.
    """
    from actors.hosting.outcome import busy_arriving_ns
    from actors.kernel.histogram import quantiles
    from actors.kernel.sums import WHOLE

    span_ns, messages = max(end_ns - first_ns, 1), int(servers["served"].sum())
    waited_ns = exact_sum(servers["waited"]) + int(WHOLE) * int(servers["waited_wholes"].sum())
    waited_s = float(waited_ns) / NS
    described = {
        "messages": messages,
        "busiest": float(servers["busy"].max() / span_ns),
        "utilisation": float(servers["busy"].mean() / span_ns),
        "cost_mean_s": float(exact_sum(servers["busy"])) / messages / NS,
        "wait_mean_s": waited_s / messages,
        "wait_max_s": float(servers["longest"].max() / NS),
        "backlog_mean": waited_s / (span_ns / NS) / servers.size,
        "backlog_max": int(servers["most"].max()),
    }
    if waits.any():
        p50_ns, p99_ns = quantiles(waits, (0.5, 0.99))
        longest = described["wait_max_s"]  # quantiles are right to 6 %, and must not be above it
        described |= {"wait_p50_s": min(p50_ns / NS, longest), "wait_p99_s": min(p99_ns / NS, longest)}
    if last_ns > first_ns:
        busy_ns = busy_arriving_ns(servers, last_ns)
        described["busiest_while_arriving"] = min(float(busy_ns.max() / (last_ns - first_ns)), 1.0)
    return described
