"""How long a task is expected to wait at a node: an M/G/1 queue, by the Pollaczek-Khinchin formula.

E[W] = λ E[S²] / (2 (1 - ρ)) with ρ = λ E[S], where λ and the moments of S are the node's own: means over about the last
`window` tasks that it ran, older ones fading out. λ is the rate at which tasks leave: under late binding a node does
not know which of its probes will bring a task, and a sticky one brings several; and as many tasks leave a queue as
come to it, unless it grows without end. There ρ comes to 1, and a cap keeps the formula finite. A node with several
slots is taken for one server as many times as fast.
"""

import numpy as np

from actors.kernel.compiled import inlined

# Of one node, times in ns.
SERVED = np.dtype(
    [
        ("seen", "i8"),  # tasks that ended
        ("ended", "i8"),  # when the last one did
        ("gap", "f8"),  # mean time between two ends
        ("service", "f8"),  # mean service time
        ("square", "f8"),  # its mean square
    ]
)


@inlined
def note_service(rows, node, t, service, window):
    """A task ends at `t` that took a server `service` ns."""
    seen = rows.seen[node] + 1
    share = 1.0 / min(seen, window)
    rows.service[node] += (service - rows.service[node]) * share
    rows.square[node] += (service * service - rows.square[node]) * share
    if seen > 1:
        rows.gap[node] += (t - rows.ended[node] - rows.gap[node]) / min(seen - 1, window)
    rows.seen[node], rows.ended[node] = seen, t


@inlined
def forget_service(rows, node):
    """The node knows nothing of its past any more."""
    rows.seen[node] = 0
    rows.gap[node], rows.service[node], rows.square[node] = 0.0, 0.0, 0.0


@inlined
def expected_wait(rows, node, rho_cap):
    """E[W], ns; 0 before there are two tasks to tell a rate from."""
    if rows.seen[node] < 2:
        return 0.0
    gap = max(rows.gap[node], 1.0)
    rho = min(rows.service[node] / gap, rho_cap)
    return rows.square[node] / (2.0 * gap * (1.0 - rho))
