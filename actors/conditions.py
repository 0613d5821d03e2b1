"""The conditions of a setting, as the kernel uses them: network, costs of schedulers, estimates of durations."""

from typing import Any, TypeVar

import numpy as np

from actors.kernel.cost import FIXED, MEASURED, MOST_COST_NS, NO_COST, RECORDED, Cost, make_cost
from actors.kernel.queue import Network
from actors.kernel.sums import WHOLE
from actors.setting import Estimates, Setting
from workloads.errors import InputError
from workloads.requests import priorities

NS = 1_000_000_000
A = TypeVar("A", bound=np.ndarray)


def estimated_ns(mean_ns: np.ndarray, estimates: Estimates, seed: int) -> np.ndarray:
    """Return estimated task durations, ns, of 36 years at the most (Hawk, ATC'15, section 4.8: the random error)."""
    factor = error_factor(estimates, [seed, 0xE57], mean_ns.shape)
    return np.clip(np.rint(mean_ns * factor), 0, float(WHOLE)).astype(np.int64)


def error_factor(estimates: Estimates, seeds: list[int], shape: tuple[int, ...]) -> Any:
    """Return the factor between estimates and what they estimate: one for all, or of this shape if it is random."""
    if estimates.error == "none":
        return 1.0
    if estimates.error == "constant":
        return 1.0 + estimates.size
    draws = np.random.Generator(np.random.Philox(np.random.SeedSequence(seeds))).random(shape)
    return 1.0 + estimates.size * (2.0 * draws - 1.0)


def network_of(setting: Setting) -> Network:
    """Return the network in ns.

    Raises:
        InputError: messages between racks would take less than those within one.
    """
    network = setting.network
    delay = round(network.delay_s * NS)
    cross = delay if network.cross_rack_delay_s is None else round(network.cross_rack_delay_s * NS)
    if cross < delay:
        raise InputError(
            f"network.cross_rack_delay ({network.cross_rack_delay_s} s) is less than network.delay"
            f" ({network.delay_s} s), the delay within a rack; make it at least that"
        )
    varies = int(cross != delay or network.spread_s > 0)
    return Network(
        delay, cross, network.spread_s * NS, read_only(setting.cluster.racks()), setting.seed, varies
    )


def cost_of(setting: Setting, schedulers: int, last_arrival: int) -> Cost:
    """Return the cost model in ns.

    Raises:
        InputError: a cost is so large that a scheduler would be busy for decades.
    """
    costs = setting.costs
    per_message, per_job, per_task = (
        round(each * NS) for each in (costs.per_message_s, costs.per_job_s, costs.per_task_s)
    )
    check_prices(
        ("cost.per_message", per_message, 1),
        ("cost.per_job", per_job, 1),
        ("cost.per_task", per_task, most_tasks(setting)),
    )
    models = {"none": NO_COST, "fixed": FIXED, "recorded": RECORDED, "measured": MEASURED}
    return make_cost(
        models[costs.model],
        schedulers,
        per_message=per_message,
        per_job=per_job,
        per_task=per_task,
        recorded=costs.recorded,
        last_arrival=last_arrival,
    )


def check_prices(*prices: tuple[str, int, int]) -> None:
    """Refuse fixed costs of more than `MOST_COST_NS` at a time; of each its key, ns, and how often it may come at once.

    Raises:
        InputError: one is too large; the message names its key.
    """
    for key, price, times in prices:
        if price * times > MOST_COST_NS // len(prices):
            raise InputError(
                f"{key}: {price / 1e9:g} s, up to {times:,} at once, would keep a scheduler busy for decades; want at"
                f" most {MOST_COST_NS // len(prices) // times / 1e9:.3g} s"
            )


def most_tasks(setting: Setting) -> int:
    """Return the number of tasks of the largest job."""
    return int(np.diff(setting.workload.arrays().first_task).max())


def read_only(column: A) -> A:
    """Return the array as read-only, as arrays from the object store are: the compiler sees one type."""
    column.flags.writeable = False
    return column


def counted_priorities(setting: Setting) -> np.ndarray:
    """Return [J] the priorities of jobs; empty where they do not count, or all are equal."""
    found = priorities(setting.workload.jobs)
    return found if setting.priorities and np.ptp(found) > 0 else np.zeros(0, np.int64)
