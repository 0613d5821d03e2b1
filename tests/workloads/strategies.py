"""Random valid workloads for property tests."""

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from workloads.coflows import CoflowWorkload, make_coflow_workload
from workloads.dags import DagWorkload, make_dag_workload
from workloads.jobs import MAX_TIME_S, JobWorkload, make_workload
from workloads.stages import EDGE_KINDS

times = st.floats(0, MAX_TIME_S)
labels = st.none() | st.text(max_size=5)
ids = st.integers(-(2**63), 2**63 - 1)
sizes = st.floats(1e-3, 1e15)


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
        extra["job_id"] = draw(st.lists(ids, min_size=size, max_size=size, unique=True))
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


@st.composite
def dags(draw) -> DagWorkload:
    """DAGs of up to five stages whose order is not that of precedence, with demands, kinds of edges and bytes."""
    jobs, edges = [], []
    for job in range(draw(st.integers(1, 5))):
        stages = draw(st.lists(st.lists(times, min_size=1, max_size=4), min_size=1, max_size=5))
        order = draw(st.permutations(range(len(stages))))
        pairs = [(a, b) for i, a in enumerate(order) for b in order[i + 1 :]]
        chosen = draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
        edges += [(job, parent, child) for parent, child in chosen]
        jobs.append(stages)
    of_all = [stage for stages in jobs for stage in stages]
    each, some = len(of_all), len(jobs)
    demand = st.none() | st.floats(0, 1)
    columns = st.lists(demand, min_size=each, max_size=each)
    resources = draw(st.lists(st.sampled_from(["disk_in", "network_out", "attr:gpu", "attr:a"]), unique=True))
    moved = st.none() | st.just(0.0) | sizes
    first = np.cumsum([0, *map(len, jobs)])
    alike = [len(of_all[first[j] + a]) == len(of_all[first[j] + b]) for j, a, b in edges]
    return make_dag_workload(
        "random",
        draw(st.lists(times, min_size=some, max_size=some)),
        [len(stages) for stages in jobs],
        [len(stage) for stage in of_all],
        np.concatenate(of_all),
        edges,
        stage_name=draw(st.lists(labels, min_size=each, max_size=each)),
        cpu_cores=np.array(draw(st.lists(demand, min_size=each, max_size=each)), float),
        memory=np.array(draw(st.lists(demand, min_size=each, max_size=each)), float),
        demands={name: np.array(draw(columns), float) for name in resources},
        edge_kind=[draw(st.sampled_from([*EDGE_KINDS, None])) if same else None for same in alike],
        edge_bytes=np.array(draw(st.lists(moved, min_size=len(edges), max_size=len(edges))), float),
        input_bytes=np.array(draw(st.lists(moved, min_size=each, max_size=each)), float),
        job_id=draw(st.lists(ids, min_size=some, max_size=some, unique=True)),
        tenant=pa.array(draw(st.lists(labels, min_size=some, max_size=some)), pa.string()),
        metadata=draw(st.dictionaries(st.text(max_size=5), st.text(max_size=5), max_size=3)),
    )


@st.composite
def coflows(draw, complete: bool = False) -> CoflowWorkload:
    """Coflows of any shape, flows between the same ports and from a port to itself included.

    Complete ones have what CoflowLib's format needs: a deadline each, the speed of every port, ids from 0 on.
    """
    optional = st.nothing() if complete else st.none()
    ports = draw(st.integers(1, 5))
    port = st.integers(0, ports - 1)
    flows = st.lists(st.tuples(port, port, sizes), min_size=1, max_size=5)
    made = draw(st.lists(flows, min_size=1, max_size=5))
    count = len(made)
    arrival = draw(st.lists(st.floats(0, 1e9), min_size=count, max_size=count))
    slack = draw(st.lists(optional | st.floats(0, 1e9), min_size=count, max_size=count))
    speeds = st.lists(optional | sizes, min_size=ports, max_size=ports)
    of_coflows = st.integers(0, 2**63 - 1) if complete else ids
    return make_coflow_workload(
        "random",
        arrival,
        [len(flows) for flows in made],
        [flow[0] for flows in made for flow in flows],
        [flow[1] for flows in made for flow in flows],
        [flow[2] for flows in made for flow in flows],
        ports,
        coflow_id=draw(st.lists(of_coflows, min_size=count, max_size=count, unique=True)),
        weight=draw(st.lists(sizes, min_size=count, max_size=count)),
        deadline_s=[np.nan if s is None else a + s for a, s in zip(arrival, slack, strict=True)],
        ingress_bytes_per_s=np.array(draw(speeds), float),
        egress_bytes_per_s=np.array(draw(speeds), float),
        metadata=draw(st.dictionaries(st.text(max_size=5), st.text(max_size=5), max_size=3)),
    )
