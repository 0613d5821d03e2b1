"""The expected waiting time of a task at a node: an M/G/1 queue, by the Pollaczek-Khinchin formula.

E[W] = λ E[S²] / (2 (1 - ρ)) with ρ = λ E[S]. That is ρ E[R] / (1 - ρ), where E[R] = E[S²] / (2 E[S]) is what a running
task has left on the mean: a task finds the server busy with probability ρ (Poisson arrivals see time averages), waits
E[R] / (1 - ρ) then, and not at all otherwise. A node knows which case it is in. So it expects no wait while a slot
is idle and E[W | busy] = E[R] / (1 - ρ) while none is; over time that is P-K's mean. Several slots count as one server
as many times as fast; with exponential tasks E[W | busy] is then that of M/M/c.

λ and the moments of S are the node's own: means over about the last `window` tasks that it ran, older ones fading out.
λ is the rate at which tasks leave: under late binding a node does not know which of its probes will bring a task, and a
sticky one brings several; and as many tasks leave a queue as come to it, unless it grows without end. There ρ comes to
1, and a cap keeps the formula finite. From one task to the next passes the time for which the server works and the time
for which it is idle, so that 1 / λ = E[S] + E[I]. The idle time before a task counts from its start on: a node that has
had nothing to do for an hour knows that when the next task comes, and not when that ends. The time for which a slot is
held for a scheduler's answer counts as neither. An attempt that is evicted leaves as a task that ends does.
"""

import numpy as np

from actors.kernel.compiled import inlined
from actors.kernel.records import Records

# Of one node, times in ns of one server.
SERVED = np.dtype(
    [
        ("seen", "i8"),  # attempts that ended
        ("since", "i8"),  # up to when idle time is counted
        ("unused", "f8"),  # idle time since the last end
        ("idle", "f8"),  # mean idle time between two ends
        ("service", "f8"),  # mean service time
        ("square", "f8"),  # its mean square
    ]
)


@inlined
def note_idle(rows: Records, node: int, t: int, share: float) -> None:
    """Note that this share of the node's slots was idle up to `t`."""
    if share > 0.0:
        rows.unused[node] += share * (t - rows.since[node])
    rows.since[node] = t


@inlined
def note_service(rows: Records, node: int, service: float, window: int) -> None:
    """Note the end of an attempt that took a server `service` ns."""
    seen = rows.seen[node] + 1
    share = 1.0 / min(seen, window)
    rows.idle[node] += (rows.unused[node] - rows.idle[node]) * share
    rows.service[node] += (service - rows.service[node]) * share
    rows.square[node] += (service * service - rows.square[node]) * share
    rows.seen[node], rows.unused[node] = seen, 0.0


@inlined
def reset_service(rows: Records, node: int, t: int) -> None:
    """Discard what the node has measured before `t`."""
    rows.seen[node], rows.since[node], rows.unused[node] = 0, t, 0.0
    rows.idle[node], rows.service[node], rows.square[node] = 0.0, 0.0, 0.0


@inlined
def expected_wait(rows: Records, node: int, idle_slots: int, window: int, rho_cap: float) -> float:
    """Return E[W] of a task that arrives now, ns; 0 while a slot is idle, and before the first task has ended."""
    if idle_slots > 0 or rows.service[node] <= 0.0:
        return 0.0
    # The idle time since the last end belongs to the next end, and is weighted like it.
    idle = rows.idle[node] + (rows.unused[node] - rows.idle[node]) / min(rows.seen[node] + 1, window)
    rho = min(rows.service[node] / (rows.service[node] + idle), rho_cap)
    return rows.square[node] / (2.0 * rows.service[node] * (1.0 - rho))
