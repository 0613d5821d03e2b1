"""Max-min fair rates in plain Python, without the engine: what its rates are compared with."""

from __future__ import annotations

import numpy as np


def max_min(active: list[tuple[int, int]], speed: np.ndarray) -> np.ndarray:
    """Rates of flows (source, sink) by plain water-filling."""
    rates, rest, room = np.zeros(len(active)), set(range(len(active))), speed.copy()
    while rest:
        users: dict[int, int] = {}
        for k in rest:
            for port in active[k]:
                users[port] = users.get(port, 0) + 1
        level, full = min((room[port] / n, port) for port, n in users.items())
        for k in [k for k in rest if full in active[k]]:
            rates[k] = level
            rest.remove(k)
            for port in active[k]:
                room[port] -= level
    return rates
