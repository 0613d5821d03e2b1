"""Coordinators in Python for tests of DAG jobs over a network: orders and rates, that know sizes and that do not."""

from __future__ import annotations

from typing import Any

import numpy as np


class FirstComes:
    """Coflows in the order in which they were registered, which their numbers say; it remembers what it has seen."""

    def __init__(self) -> None:
        self.known: dict[int, tuple[float, int]] = {}

    def order(self, coflows: Any, now_s: float) -> Any:
        for number, arrival_s, width in zip(coflows.coflow, coflows.arrival_s, coflows.width, strict=True):
            assert self.known.setdefault(int(number), (arrival_s, width)) == (arrival_s, width)
        return np.argsort(coflows.coflow, kind="stable")


class Smallest:
    """The smallest coflow first."""

    clairvoyant = True

    def order(self, coflows: Any, now_s: float) -> Any:
        return np.argsort(coflows.size_bytes, kind="stable")


class LeastLeft:
    """Flows one after another, the one with the least left first, at what their ports have left; asked now and then."""

    clairvoyant = True
    interval_s = "50 ms"

    def rates(self, coflows: Any, flows: Any, now_s: float) -> Any:
        out, into = flows.ingress_bytes_per_s.copy(), flows.egress_bytes_per_s.copy()
        found = np.zeros(flows.ingress.size)
        width = np.bincount(flows.coflow, minlength=coflows.coflow.size)
        assert (width == coflows.flows_left).all()
        for flow in np.argsort(flows.left_bytes, kind="stable"):
            found[flow] = min(out[flows.ingress[flow]], into[flows.egress[flow]])
            out[flows.ingress[flow]] -= found[flow]
            into[flows.egress[flow]] -= found[flow]
        return found
