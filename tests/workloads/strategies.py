"""Random valid workloads for property tests."""

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from workloads.jobs import MAX_TIME_S, JobWorkload, make_workload

times = st.floats(0, MAX_TIME_S)
labels = st.none() | st.text(max_size=5)


@st.composite
def workloads(draw, labelled: bool = False) -> JobWorkload:
    jobs = draw(
        st.lists(st.tuples(times, times, st.lists(times, min_size=1, max_size=5)), min_size=1, max_size=8)
    )
    extra = {}
    if labelled:
        size = len(jobs)
        for name in ("constraint", "tenant"):
            extra[name] = pa.array(draw(st.lists(labels, min_size=size, max_size=size)), pa.string())
        extra["job_id"] = draw(
            st.lists(st.integers(-(2**63), 2**63 - 1), min_size=size, max_size=size, unique=True)
        )
        extra["short_cutoff_s"] = draw(st.none() | times)
        extra["long_partition"] = draw(st.none() | st.floats(0, 1))
        extra["metadata"] = draw(st.dictionaries(st.text(max_size=5), st.text(max_size=5), max_size=3))
    return make_workload(
        "random",
        [submit for submit, _, _ in jobs],
        [len(durations) for _, _, durations in jobs],
        np.concatenate([durations for _, _, durations in jobs]),
        [mean for _, mean, _ in jobs],
        **extra,
    )
