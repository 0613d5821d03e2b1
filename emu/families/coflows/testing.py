"""Invariants of every scheduler of coflows, checked on small workloads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from emu.results.result import Result
from workloads.arrow import column
from workloads.coflows import CoflowWorkload, make_coflow_workload

if TYPE_CHECKING:
    import pandas as pd

    from actors.scheduler import Scheduler

from emu.families.result_checks import SLACK_S, head, hold


def check_coflows(scheduler: Scheduler, run_twice: Callable[..., Result]) -> None:
    """Check a scheduler of coflows; `run_twice` emulates a case twice, with the arguments of `emu.run`."""
    for case, workload in _coflow_cases():
        check_coflow_result(run_twice(case, workload), workload, case)


def check_coflow_result(result: Result, workload: CoflowWorkload, case: str = "the run") -> None:
    """Check a result with flows against its workload, whose ports have speeds; raises as `check_scheduler`."""
    assert result.flows is not None, "the result has no flows; run with output_tasks=True"
    assert result.coflows is not None
    flows, coflows = result.flows.to_pandas(), result.coflows.to_pandas()
    count = f"{workload.num_flows} flows arrived, {len(flows)} are reported"
    hold(len(flows) == workload.num_flows, case, count)
    never = flows.index[flows.start_s.isna() | flows.finish_s.isna()]
    hold(len(never) == 0, case, f"{len(never)} flows never ended, the first of coflow {head(flows, never)}")
    arrival_s = coflows.set_index("coflow_id").arrival_s.loc[flows.coflow_id].to_numpy()
    early = flows.index[flows.start_s < arrival_s - SLACK_S]
    hold(len(early) == 0, case, f"a flow of coflow {head(flows, early)} started before the coflow arrived")
    for side in ("ingress", "egress"):
        speeds = column(workload.ports, f"{side}_bytes_per_s")
        for port, sent in flows.groupby(side):
            most = _most_bytes_over(sent, speeds[port])
            hold(
                most <= speeds[port] * SLACK_S, case, f"{side} port {port} carried {most:.0f} bytes too many"
            )
    last_s = flows.groupby("coflow_id").finish_s.max().loc[coflows.coflow_id].to_numpy()
    ended = bool((np.abs(last_s - coflows.finish_s) < SLACK_S).all())
    hold(ended, case, "a coflow did not finish with its last flow")


def _coflow_cases() -> Iterator[tuple[str, CoflowWorkload]]:
    """Yield name and workload of small cases, for ports of 1 to 4 MB/s."""
    rng = np.random.default_rng(20)

    def case(
        arrival_s: Any, width: Any, ingress: Any, egress: Any, size: Any, ports: int = 5
    ) -> CoflowWorkload:
        speed = 1e6 * (1 + np.arange(ports) % 4)
        return make_coflow_workload(
            "case", arrival_s, width, ingress, egress, size, ports,
            ingress_bytes_per_s=speed, egress_bytes_per_s=speed[::-1],
        )  # fmt: skip

    yield "one coflow of one flow", case([0.0], [1], [0], [1], [3e6])
    yield "a port that sends to itself", case([0.0, 1.0], [1, 2], [2, 2, 1], [2, 2, 2], [3e6, 1e6, 1e6])
    yield "two flows between the same ports", case([0.0], [3], [0, 0, 1], [3, 3, 3], [1e6, 2e6, 4e6])
    pairs = rng.permutation(64)
    yield (
        "all coflows at once, wide and thin",
        case(np.zeros(16), [1, 7] * 8, pairs // 8, pairs % 8, rng.lognormal(13, 1, 64), 8),
    )
    width = rng.integers(1, 20, 30)
    pairs = np.concatenate([rng.choice(64, k, replace=False) for k in width])
    size = rng.lognormal(13, 1.5, width.sum()) + 1
    yield (
        "coflows that come and go",
        case(np.cumsum(rng.exponential(2.0, 30)), width, pairs // 8, pairs % 8, size, 8),
    )


def _most_bytes_over(flows: pd.DataFrame, bytes_per_s: float) -> float:
    """Return the most bytes by which flows of a port exceed its capacity between the start and the end of any two.

    A flow that starts and ends between two times has been sent between them, whatever its rates were.
    """
    most = 0.0
    by_end = flows.sort_values("finish_s")
    for begin_s in flows.start_s.unique():
        within = by_end[by_end.start_s >= begin_s]
        room = (within.finish_s - begin_s) * bytes_per_s
        most = max(most, float((within.size_bytes.cumsum() - room).max()))
    return most
