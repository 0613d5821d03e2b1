"""Coordinators written by a user: the coflow that has sent least goes first; and equal shares of each port.

Covers: the contract of a user's scheduler of coflows, in its two forms, and how to name it on the command line.

Scenario: one coordinator decides for all ports of a switch when a coflow comes or ends. It knows what the agents of the
ports have reported, and not how large coflows are.

How to run: ``emu run --scheduler examples/smallest_coflow.py:LeastSent --workload synthetic-coflows``.
"""

import numpy as np


class LeastSent:
    """The coflow that has sent least goes first; each of its flows has both of its ports alone."""

    interval_s = "8 ms"

    def order(self, coflows, now_s):
        """Return the places 0, 1, ... of K coflows, the first to be served first.

        ``coflows`` has, for K coflows, coflow (place in the workload), arrival_s, weight, width, flows_left and
        bytes_sent; size_bytes is None unless the class says ``clairvoyant = True``.
        """
        return np.argsort(coflows.bytes_sent, kind="stable")


class EqualShares:
    """At each port all flows have the same share; what one side of a flow cannot use is lost."""

    def rates(self, coflows, flows, now_s):
        """Return bytes per second for each of M flows.

        ``flows`` has, for M flows, coflow (place in ``coflows``), ingress and egress; the speeds of all ports; and
        left_bytes, None unless the class says ``clairvoyant = True``.
        """
        share = [
            speed[port] / np.bincount(port, minlength=speed.size)[port]
            for port, speed in (
                (flows.ingress, flows.ingress_bytes_per_s),
                (flows.egress, flows.egress_bytes_per_s),
            )
        ]
        return np.minimum(*share)
