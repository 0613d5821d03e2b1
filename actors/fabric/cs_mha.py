"""CS-MHA's order of coflows with deadlines, and which of them it admits (S. Luo, H. Yu and L. Li, ICC 2016).

Each port for itself rejects as few coflows as Moore-Hodgson does; a coflow is admitted if no port rejects it. Admitted
ones come first, by deadline; then the others, by the largest share of their time left that they need of a port.
O(lines log n).
"""

import numpy as np

from actors.fabric.deadline_order import DeadlineOrder, collect_lines, list_by_deadline, most_needed
from actors.fabric.late_jobs import reject_fewest
from actors.fabric.ports import Fabric
from actors.fabric.priority_queues import sort_groups
from actors.kernel.compiled import compiled


@compiled
def cs_mha(fabric: Fabric, s: DeadlineOrder, count: int) -> int:
    """Put the first `count` of `s.groups` into CS-MHA's order, admitted ones first; return how many are admitted."""
    list_by_deadline(fabric, s, count)
    for port in range(s.load.size):
        reject_fewest(fabric, s, collect_lines(fabric, s, port))
    admitted: int = 0
    for i in range(count):
        coflow = s.groups[i]
        if s.late[coflow]:
            s.keys[i] = most_needed(fabric, s, coflow) / max(s.time_left[coflow], 1.0)
        else:
            s.keys[i] = np.float64(i - count)  # before all others, in order of deadlines
            admitted += 1
    sort_groups(s, count)
    return admitted
