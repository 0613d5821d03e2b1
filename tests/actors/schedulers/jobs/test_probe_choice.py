"""Where Sparrow sends its probes: to different nodes, and to all equally often."""

from __future__ import annotations

import numpy as np
import pytest
from emulations import jobs, step_through


@pytest.mark.slow("many drawn cases")
@pytest.mark.parametrize(("tasks", "probes"), [(1, 2), (4, 8), (7, 14), (13, 26)])
def test_sparrow_probes_different_nodes_all_equally_often(tasks: int, probes: int) -> None:
    nodes, count = 10, 200
    log = step_through("sparrow", jobs(*((i, [0.1] * tasks) for i in range(count))), nodes)
    asked = np.zeros((count, nodes), int)
    for m in log.messages:
        if m.kind == "PROBE":
            asked[m.a, m.dst] += 1
    assert (asked.sum(axis=1) == probes).all()
    # As even as it can be within each job: every node floor or ceil of probes / nodes times.
    assert asked.min() == probes // nodes
    assert asked.max() == -(-probes // nodes)
    extra = probes % nodes / nodes
    error = np.sqrt(count * extra * (1 - extra))
    assert (abs(asked.sum(axis=0) - count * probes / nodes) < 5 * error).all()
