"""Rates of flows by every rule: examples worked out by hand. A port sends a byte in a nanosecond."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest
from equal_loop import BACKFILLED, COFLOW, SERVED
from switch_runs import Coflow, by_madd, equally, fairly, greedily, run, shortest_first, switch

RULES: dict[str, Callable[[Any], Iterator[Any]]] = {
    "fair": fairly,
    "shortest first": shortest_first,
    "greedy": greedily,
    "greedy, last first": lambda fabric: greedily(fabric, lambda coflow: -coflow),
    "madd": lambda fabric: by_madd(fabric, False),
    "madd, smallest first": lambda fabric: by_madd(fabric, True),
    # Equal rates, decided where at least this has ended; flows of missed coflows are backfilled, or of all.
    "equal": lambda fabric: equally(fabric, BACKFILLED),
    "equal, served": lambda fabric: equally(fabric, SERVED),
    "equal, coflow": lambda fabric: equally(fabric, COFLOW),
    "equal, coflow, all": lambda fabric: equally(fabric, COFLOW, False),
}
EQUAL = ("equal", "equal, served", "equal, coflow")


class Example(NamedTuple):
    coflows: list[Coflow]
    ports: int
    ends: dict[str, list[int]]  # by rule, of all flows


EXAMPLES = {
    "one pair of ports": Example(
        [(0, [(0, 0, 3000.0)]), (1000, [(0, 0, 1000.0)])],
        1,
        {
            # 1000 B are sent when the second comes; both have half the port until it has its 1000 B at 3000 ns.
            "fair": [4000, 3000],
            # The second has less to send.
            **{key: [4000, 2000] for key in ("shortest first", "greedy, last first", "madd, smallest first")},
            # A queue.
            **{key: [3000, 4000] for key in ("greedy", "madd", *EQUAL)},
        },
    ),
    # At 1000 the first has 900 B left, less than the 1000 B that come.
    "what is left counts, and not the size": Example(
        [(0, [(0, 0, 1900.0)]), (1000, [(0, 0, 1000.0)])], 1, {"shortest first": [1900, 2900]}
    ),
    # 1->0 comes at 100 and stops 0->0, which has 1900 B left; port 0 (in) serves 0->1 until 1->0 ends at 600.
    "a flow that stops leaves its other port to the next": Example(
        [(0, [(0, 0, 2000.0), (0, 1, 2500.0)]), (100, [(1, 0, 500.0)])],
        2,
        {"shortest first": [2500, 4500, 600]},
    ),
    # Port 0 (in) has three flows at 1/3; the flow from port 1 has what is left of port 0 (out): 2/3.
    "what a bottleneck leaves goes to others": Example(
        [(0, [(0, 0, 1000.0), (0, 1, 1000.0), (0, 2, 1000.0)]), (0, [(1, 0, 1000.0)])],
        3,
        {"fair": [3000, 3000, 3000, 1500]},
    ),
    "two coflows of equal bottlenecks": Example(
        [(0, [(0, 0, 4000.0)]), (0, [(0, 1, 2000.0), (1, 1, 2000.0)])],
        2,
        {
            # All flows have 1/2, of 0 (in) or of 1 (out). At 4000 coflow 1 ends, and coflow 0 has 2000 B at full speed.
            "fair": [6000, 4000, 4000],
            # The first has port 0 (in), so the second has no MADD rate, but 1->1 is backfilled: 2000.
            "madd, smallest first": [4000, 6000, 2000],
        },
    ),
    # Coflow 1 is shorter and has port 1 (out) alone until 1000. Then coflow 0 has 2000 and 1000 left; 1->1 gets the
    # whole port by backfill.
    "flows of a coflow end together unless they are backfilled": Example(
        [(0, [(0, 0, 3000.0), (1, 1, 1000.0)]), (0, [(2, 1, 1000.0)])],
        3,
        {"madd, smallest first": [3000, 2000, 1000]},
    ),
    # Coflow 0 has port 0 (in) for 4000, so that coflow 1 is missed; its 1->1 gets all of its two ports, then 1->2.
    "a coflow that misses a port is backfilled": Example(
        [(0, [(0, 0, 4000.0)]), (0, [(0, 3, 500.0), (1, 1, 1000.0), (1, 2, 1000.0)])],
        4,
        {key: [4000, 4500, 1000, 2000] for key in ("madd", *EQUAL)},
    ),
    # Both flows have 1/2 of port 0 (in). 0->0 ends at 2000; deciding only when coflows end, 0->1 stays at 1/2.
    "rates rise at the decisions that the policy takes": Example(
        [(0, [(0, 0, 1000.0), (0, 1, 3000.0)])],
        2,
        {"equal, served": [2000, 4000], "equal, coflow": [2000, 6000]},
    ),
    # 1->1 is backfilled and has 1500 of its 2000 B when coflow 0 ends. Then both flows have 1/2 of port 1 (out), until
    # 1->1 ends at 2500; 0->1 has 1500 B left.
    "what a backfilled flow was sent counts when its coflow is served": Example(
        [(0, [(0, 0, 1500.0)]), (0, [(0, 1, 2000.0), (1, 1, 2000.0)])],
        2,
        {"equal, served": [1500, 4000, 2500]},
    ),
    # Port 0 (in) has two flows at 1/2, and 1->2 is as slow as they are, or has all of its ports by backfill. So has
    # 0->0 when 0->1 ends at 1000: no decision is taken there.
    "flows of served coflows are backfilled if the policy wants it": Example(
        [(0, [(0, 0, 1000.0), (0, 1, 500.0), (1, 2, 1000.0)])],
        3,
        {"equal, coflow": [2000, 1000, 2000], "equal, coflow, all": [1500, 1000, 1000]},
    ),
}


@pytest.mark.parametrize(
    ("example", "rule"), [(name, rule) for name, example in EXAMPLES.items() for rule in example.ends]
)
def test_flows_end_as_worked_out(example: str, rule: str) -> None:
    coflows, ports, ends = EXAMPLES[example]
    fabric = switch(coflows, ports)
    run(RULES[rule](fabric))
    assert fabric.flows.finish.tolist() == ends[rule]
    if example.startswith("a coflow that misses a port"):
        assert fabric.coflows.start.tolist() == [0, 0]
    if example == "one pair of ports" and rule in EQUAL:
        assert fabric.coflows.start.tolist() == [0, 3000]
