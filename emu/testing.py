"""Checks for your own scheduler: the invariants of every scheduler, tested on small, difficult workloads.

    from emu.testing import check_constraints, check_scheduler
    check_scheduler(MyScheduler)
    check_constraints(emu.run("phoenix", …, output_tasks=True))
"""  # fmt: skip

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from actors.schedulers.registry import find_scheduler
from emu.families.coflows.testing import check_coflow_result
from emu.families.drawn_cases import arguments
from emu.families.jobs.constraint_check import check_constraints
from emu.families.jobs.testing import check_resources, check_result
from emu.families.registry import find_family
from emu.families.result_checks import hold
from emu.results.result import Result
from emu.running.runs import run

CASES = 8
"""That `check_scheduler` draws."""

__all__ = ["check_coflow_result", "check_constraints", "check_resources", "check_result", "check_scheduler"]


def check_scheduler(
    scheduler: Any, parameters: Mapping[str, Any] | None = None, *, in_process: bool = True
) -> None:
    """Check that a scheduler runs every task once, within slots, not too early, and the same way twice.

    It runs small, difficult cases that are drawn from what the scheduler declares: jobs that come at once or one by
    one, with resources, priorities, evictions, failures, stragglers, costs and delays that vary, and values of its
    parameters within their bounds. They are the same cases each time; an error says what its case has.

    Where tasks need resources, that no node ever holds more than it has (`check_resources`), unless the scheduler
    counts slots. Of a constraint-aware scheduler also that tasks run where their jobs' constraints let them
    (`check_constraints`). Of a scheduler of coflows: that every flow is sent once, not too early, and never more than
    ports can carry. Of a scheduler of DAG jobs: that tasks wait for what they depend on, and that no machine holds more
    than it has.

    Parameters
    ----------
    scheduler : str, class or object
        As `emu.run` takes it.
    parameters : mapping, optional
        Of the scheduler; others are drawn, or have their defaults in a class of your own.
    in_process : bool
        False also checks that the scheduler can be hosted by Ray.

    Raises
    ------
    AssertionError
        What does not hold, and in which case.
    InputError
        The scheduler returned something that is not a placement, an order, rates or launches.
    """
    found, given = find_scheduler(scheduler), dict(parameters or {})

    def run_twice(case: str, workload: Any, **settings: Any) -> Result:
        settings |= {"in_process": in_process, "output_tasks": True, "seed": 7}
        first, again = (run(scheduler, workload, **settings) for _ in range(2))
        hold(first.heads.equals(again.heads), case, "the same seed gave two different results")
        return first

    family = find_family(found.family)
    for seed in range(CASES):
        case = family.draw_case(found, seed, given)
        if case is None:  # of a family without cases
            return
        with arguments(case) as settings:
            family.check_case(found, case, run_twice(case.name, case.workload, **settings))
