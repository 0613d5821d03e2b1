"""Capacity: queues with guaranteed parts of the cluster, and jobs in the order of arrival inside a queue.

1. The jobs of a tenant are a queue; those without tenant are another. Each queue is guaranteed a part of every resource
   (`guarantees`).
2. Of the queues with a task that fits on a machine and into the queue's guarantee, the one that uses the least of its
   guarantee launches it: its job that arrived first, the first stage in breadth-first order.
3. What is left goes to queues in the same order, beyond their guarantees (`leftover`): it is lent until tasks end,
   nothing is preempted.

How much a queue uses is the part of the cluster that it holds of the resource of which it holds most (YARN's
DominantResourceCalculator), relative to its guarantee.

**Deviations from the source.** The queues have no children, and no maximum besides the guarantee (`leftover` "none").
A queue that holds nothing may launch a task larger than its guarantee.
"""

import numpy as np

from actors.machines import shares
from actors.scheduler import Parameter
from actors.schedulers.dags.build import dag_scheduler
from actors.schedulers.dags.parts import LEFTOVER, LEFTOVERS, Inter, Parts, Queues
from actors.schedulers.dags.stage_orders import INTRA, ORDERS, PLAN_SHARE
from actors.setting import Setting
from workloads.errors import InputError, printable
from workloads.hints import did_you_mean

WHAT = "parameter guarantees of capacity"


def _parts(setting: Setting) -> Parts:
    p = setting.parameters
    return Parts(
        inter=Inter(shares.QUEUES, queues=queues_of(setting)),
        intra=ORDERS[p["intra_job"]](setting),
        leftover=LEFTOVERS[p["leftover"]],
    )


def queues_of(setting: Setting) -> Queues:
    """Return the queues of tenants, numbered in the order in which their first jobs arrive.

    Raises:
        InputError: the guarantees are not parts of the cluster of tenants of the workload.
    """
    tenants = setting.workload.jobs["tenant"].to_pylist()
    number = {tenant: i for i, tenant in enumerate(dict.fromkeys(tenants))}
    given = read_guarantees(setting.parameters["guarantees"])
    known = [tenant for tenant in number if tenant is not None]
    for tenant in given:
        if tenant not in number:
            has = did_you_mean(tenant, known) if known else ": jobs of the workload have no tenants"
            raise InputError(f"{WHAT}: there is no tenant {tenant!r}{has}")
    rest, others = 1.0 - sum(given.values()), len(number) - len(given)
    if others > 0 and rest < 1e-9:
        last = next(tenant for tenant in number if tenant not in given)
        raise InputError(f"{WHAT}: nothing is left for {_shown(last)}; parts must sum to less than 1")
    parts = [given[tenant] if tenant in given else rest / others for tenant in number]
    return Queues(np.array([number[tenant] for tenant in tenants], np.int64), np.array(parts))


def _shown(tenant: str | None) -> str:
    return "jobs without tenant" if tenant is None else f"tenant {printable(tenant)}"


def read_guarantees(text: str) -> dict[str, float]:
    """Return the part of each tenant that ``name=part,name=part`` names.

    Raises:
        InputError: it is not of this form, a part is not above 0, or they sum to more than 1.
    """
    given: dict[str, float] = {}
    for item in filter(None, (part.strip() for part in text.split(","))):
        name, equals, part = (piece.strip() for piece in item.rpartition("="))
        try:
            value = float(part)
        except ValueError:
            value = np.nan
        if not equals or not name or not 0.0 < value <= 1.0:
            raise InputError(
                f"{WHAT}: {item!r} is not a tenant and a part above 0 and up to 1, as in ads=0.5"
            )
        if name in given:
            raise InputError(f"{WHAT}: tenant {name!r} is given twice")
        given[name] = value
    if sum(given.values()) > 1.0 + 1e-9:
        raise InputError(f"{WHAT}: the parts sum to {sum(given.values()):g}; 1 is all of the cluster")
    return given


CAPACITY = dag_scheduler(
    _parts,
    name="capacity",
    title="queues of tenants with guaranteed parts of the cluster, first come first served inside a queue",
    paper="Apache Hadoop YARN, Capacity Scheduler; Vavilapalli et al., SoCC 2013, doi 10.1145/2523616.2523633",
    parameters=(
        Parameter(
            "guarantees",
            "",
            "text",
            "parts of the cluster that tenants are guaranteed, as in ads=0.5,search=0.3; others share the rest equally",
        ),
        INTRA,
        PLAN_SHARE,
        LEFTOVER,
    ),
)
