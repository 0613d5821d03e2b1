"""Capacity: queues with guaranteed parts of the cluster, and jobs in the order of arrival inside a queue.

1. The jobs of a tenant are a queue; those without tenant are another. Each queue is guaranteed a part of every resource
   (`guarantees`).
2. Of the queues with a task that fits on a machine and into the queue's guarantee, the one that uses the least of its
   guarantee launches it: its job that arrived first, the first stage in breadth-first order.
3. What is left goes to queues in the same order, beyond their guarantees (`leftover`): it is lent until tasks end, and
   no queue takes it back before that. With `leftover` "srtf" it goes to the job of all queues with the least work left,
   with "packing" to the task that suits a machine best, with "over-share" to the queue that is furthest over its
   guarantee.

How much a queue uses is the part of the cluster that it holds of the resource of which it holds most (YARN's
DominantResourceCalculator), relative to its guarantee.

Priorities of jobs order the jobs of a queue, before their arrival, and not the queues: a guarantee holds whatever the
priorities of others. With preemption a task evicts tasks of lower priority of its own queue alone. What "srtf" and
"packing" hand out beyond guarantees goes by no priority.

**Deviations from the source.** The queues have no children, and no maximum besides the guarantee (`leftover` "none").
A queue that holds nothing may launch a task larger than its guarantee.
"""

from actors.machines import matching
from actors.schedulers.dags.build import dag_scheduler
from actors.schedulers.dags.parts import LEFTOVER, LEFTOVERS, Inter, Parts, Queues, with_leftovers
from actors.schedulers.dags.stage_orders import INTRA, ORDERS, PLAN_SHARE
from actors.setting import Setting
from actors.tenants import GUARANTEES, guaranteed, queues_by_tenant

# Where the steps stand:
# 1. `queues_of`; `queues_by_tenant` and `guaranteed` of actors/tenants.py
# 2. `choose`, `is_own` and `update_rank` of actors/machines/matching.py
# 3. `fill`, `place_of` and `over_share` of actors/machines/matching.py

WHAT = "parameter guarantees of capacity"


def _parts(setting: Setting) -> Parts:
    parameters = setting.parameters
    return Parts(
        inter=Inter(matching.QUEUES, queues=queues_of(setting)),
        intra=ORDERS[parameters["intra_job"]](setting),
        leftover=LEFTOVERS[parameters["leftover"]],
    )


def queues_of(setting: Setting) -> Queues:
    """Return the queues of tenants, numbered in the order in which their first jobs arrive.

    Raises:
        InputError: the guarantees are not parts of the cluster of tenants of the workload.
    """
    queue, tenants = queues_by_tenant(setting.workload)
    return Queues(queue, guaranteed(setting.parameters["guarantees"], tenants, WHAT))


CAPACITY = dag_scheduler(
    _parts,
    name="capacity",
    title="queues of tenants with guaranteed parts of the cluster, first come first served inside a queue",
    paper="Apache Hadoop YARN, Capacity Scheduler; Vavilapalli et al., SoCC 2013, doi 10.1145/2523616.2523633",
    parameters=(
        GUARANTEES,
        INTRA,
        PLAN_SHARE,
        LEFTOVER,
    ),
    rule=with_leftovers(
        "the queue that uses the least of its guarantee goes first, and of it the first job of the highest priority",
        of_all=", whatever its queue and priority",
    ),
    priorities="inside a queue alone, and not with what leftover=srtf or packing hands out",
)
