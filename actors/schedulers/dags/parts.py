"""The parts that a scheduler of DAG jobs is made of. A policy's file makes a `Parts` of its parameters."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from actors.machines.matching import (
    IN_ORDER,
    LEAST_LEFT_FIRST,
    MOST_OVER_FIRST,
    NO_LEFTOVER,
    PACKING_FIRST,
    Values,
)
from actors.scheduler import Parameter

LEFTOVERS = {
    "none": NO_LEFTOVER,
    "in-order": IN_ORDER,
    "srtf": LEAST_LEFT_FIRST,
    "packing": PACKING_FIRST,
    "over-share": MOST_OVER_FIRST,
}
LEFTOVER = Parameter(
    "leftover",
    "in-order",
    "choice",
    "what is free when no task fits into its job's share goes to none; to jobs in the same order, by the work they "
    "have left, or the one first that is furthest over its share; or to the task that fits best",
    choices=tuple(LEFTOVERS),
)


SMALLEST_SHARE = (
    "the job that holds the smallest dominant share goes first, of equal ones the one that arrived first"
)
_LEFT_OVER = {
    "srtf": "the job with the least work left",
    "packing": "the task that suits a machine best",
    "over-share": "the job that is furthest over its share",
}


def with_leftovers(rule: str, of_all: str = "") -> Callable[[Mapping[str, Any]], str]:
    """Return the rule of a scheduler with the parameter `leftover`; `of_all` ends what is said of what is left over."""

    def rule_with(parameters: Mapping[str, Any]) -> str:
        to = _LEFT_OVER.get(parameters["leftover"])
        return f"{rule}; what is left over goes to {to}{of_all}" if to else rule

    return rule_with


class Queues(NamedTuple):
    """Queues of jobs; J jobs, Q queues."""

    queue: np.ndarray  # [J] of each job
    guarantee: np.ndarray  # [Q] the part of the machines that each is guaranteed


class Inter(NamedTuple):
    """The inter-job part: the share of each job or queue, and the order in which they are served; J jobs."""

    by: int  # DRF, FAIR, FIXED, LEAST_LEFT or QUEUES of `actors.machines.matching`
    order: np.ndarray | None = None  # [J] with FIXED: the least goes first; None: as they arrive
    queues: Queues | None = None  # with QUEUES


class Altruism(NamedTuple):
    """Jobs launch before the leftover part only what must start now by their plans (`actors.machines.carbyne_plan`)."""

    probability: float  # that a plan is made, else the job launches what fits into its share
    keeps_promises: bool = False  # a job ends at the latest as its plans said since its share fell last
    plans_with_events: bool = False  # with each event, and not where what a plan depends on has changed


class Parts(NamedTuple):
    """What a scheduler of DAG jobs is made of; S stages."""

    inter: Inter
    intra: np.ndarray  # [S] the order of the stages of a job, as from `actors.schedulers.dags.stage_orders`
    leftover: int = IN_ORDER  # one of `LEFTOVERS`
    packing: bool = False  # tasks of all jobs go by their values, and not by job
    values: Values = Values()  # for packing, and for leftovers that go to the task that fits best
    priority: np.ndarray | None = None  # [S] a factor of the values; None: 1
    altruism: Altruism = Altruism(0.0)
    # [S] the order of plans backward, the last goes first, where plans follow `intra` forward; None: how tasks fit
    backward: np.ndarray | None = None
    leftovers_in_order: bool = False  # with "srtf" those of one job follow `intra`, and not the size of tasks
