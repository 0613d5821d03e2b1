"""Sums over many actors, and times near the end of what can be emulated, do not wrap around."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from emulations import jobs, log_of, run_partition, run_setting, run_windows, setting_of

from actors.failures import count_dynamics, durations_ns, make_faults, straggler_factors
from actors.hosting.outcome import Observe
from actors.kernel.queue import NEVER
from actors.kernel.sums import WHOLE
from actors.schedulers.dags.carbyne import CARBYNE
from actors.schedulers.dags.stage_orders import make_job_plans
from actors.schedulers.jobs.build import estimated_ns
from actors.schedulers.jobs.least_work import NO_FIT
from actors.schedulers.jobs.yacc_d import make_view, mean_rest, note_node
from actors.setting import Costs, Dynamics, Estimates
from clusters.cluster import build_cluster
from clusters.schema import encode_texts
from tests.actors.coflow_emulations import coflows
from tests.actors.coflow_emulations import setting_of as coflow_setting
from tests.actors.dag_emulations import run as run_dags
from tests.actors.dag_settings import setting_of as dag_setting
from workloads.critical_path import critical_paths_ns, earliest_ends_ns
from workloads.dags import DagWorkload, make_dag_workload
from workloads.errors import InputError
from workloads.jobs import make_workload

NS = 1_000_000_000
DAY_S = 86_400.0
YEARS_5 = 5.5 * 365 * DAY_S


def test_the_time_that_nodes_are_down_is_summed_by_node() -> None:
    """200 nodes that are down nine days of ten for 5.5 years: 990 years, and an int64 holds 292."""
    dynamics = Dynamics(mtbf_s=DAY_S, mttr_s=9 * DAY_S)
    setting = setting_of("sparrow", jobs((0.0, [1.0])), 200, dynamics=dynamics)
    last_ns = round(YEARS_5 * NS)
    faults = make_faults(setting, 1, False)
    with np.errstate(over="ignore"):
        counters = count_dynamics(setting, faults, last_ns)
    down_share = counters["node_downtime_ns"] / (200 * last_ns)
    assert down_share == pytest.approx(0.9, abs=0.02)
    assert counters["node_failures"] == pytest.approx(200 * YEARS_5 / (10 * DAY_S), rel=0.05)


@pytest.mark.parametrize("partitions", [1, 8])
def test_lost_work_is_more_than_an_int64_of_nanoseconds(partitions: int) -> None:
    """Every node fails once, after two years of work on a task that it then starts again."""
    nodes, years_2 = 200, 2 * 365 * DAY_S
    from clusters.failures import NODE, Outages

    outages = Outages(
        np.full(nodes, NODE), np.arange(nodes), np.full(nodes, years_2), np.full(nodes, years_2 + 1.0)
    )
    tasks = [1.2 * years_2] * nodes
    dynamics = Dynamics(outages=outages)
    setting = setting_of("central-fifo", jobs((0.0, tasks)), nodes, dynamics=dynamics, cutoff_s=math.inf)
    counters = run_windows(setting, Observe(), partitions).counters
    assert counters["tasks_lost"] == nodes
    assert counters["lost_work_ns"] == pytest.approx(nodes * years_2 * NS, rel=1e-9)
    assert counters["lost_work_ns"] > 2**63
    assert "lost_work_wholes" not in counters


def test_stragglers_leave_the_tasks_of_others_as_they_are() -> None:
    """Tasks above 2**60 ns, 36 years, were cut wherever there were stragglers."""
    own = [2.0**60 / 1e9 * 1.5, 40 * 365 * DAY_S, 1.0] * 20
    workload = make_workload("long", [0.0], [len(own)], own)
    dynamics = Dynamics(straggler_share=0.3, straggler_slowdown=1.5)
    setting = setting_of("central-fifo", workload, 5, dynamics=dynamics)
    given, slow = workload.arrays().duration_ns, durations_ns(setting)
    factors = straggler_factors(dynamics, given.size, setting.seed)
    assert factors is not None
    assert 0 < (factors > 1).sum() < given.size
    assert np.array_equal(slow[factors == 1], given[factors == 1])
    assert (slow[factors > 1] > given[factors > 1]).all()
    assert slow == pytest.approx(given * factors)


def test_estimates_do_not_wrap() -> None:
    wild = estimated_ns(np.array([10**18, 7]), Estimates("constant", 1e6), 0)
    assert (wild > 0).all()


def test_the_work_of_all_nodes_is_more_than_an_int64_of_nanoseconds() -> None:
    """15,000 nodes with a week of work each."""
    slots = np.ones(15_000, np.int64)
    view = make_view(slots, slots, False, 1, NO_FIT)
    week_ns = round(7 * DAY_S * NS)
    with np.errstate(over="ignore"):
        for node in range(slots.size):
            note_node(view, node, np.int64(2 * week_ns if node % 2 else week_ns), np.int64(0), np.int64(0))
        assert int(mean_rest(view)) == 3 * week_ns // 2
        for node in range(slots.size):
            note_node(view, node, np.int64(node), np.int64(0), np.int64(1))
        assert int(mean_rest(view)) == sum(range(15_000)) // 15_000


def test_waiting_for_schedulers_is_more_than_an_int64_of_nanoseconds() -> None:
    """Thousands of messages that wait for years each."""
    workload = make_workload("many", np.zeros(3000), np.ones(3000, int), np.ones(3000))
    costs = Costs("fixed", per_message_s=1e5)
    outcome = run_setting(setting_of("central-fifo", workload, 5, costs=costs), Observe())
    server = outcome.servers[outcome.servers["served"] > 0][0]
    waited_ns = int(server["waited_wholes"]) * int(WHOLE) + int(server["waited"])
    served = int(server["served"])
    assert served >= 6000
    assert waited_ns > 2**63
    # The arrivals alone, all at the same time, wait for 0, 1, 2 … costs.
    assert waited_ns >= 3000 * 2999 // 2 * 100_000 * NS
    assert outcome.waits.sum() == served


@pytest.mark.slow("long runs, for a mean")
def test_the_time_that_a_scheduler_is_busy_ends_with_time() -> None:
    """Of 20,000 tasks that it has placed it hears later than there is time: each message costs 12 days."""
    setting = setting_of(
        "central-lwl", jobs((0.0, [1.0] * 20_000)), 100, costs=Costs("fixed", per_message_s=1e6)
    )
    outcome = run_setting(setting, Observe())
    server = outcome.servers[outcome.servers["served"] > 0][0]
    assert NEVER - 1e6 * NS < server["busy"] <= NEVER
    assert server["busy"] / server["served"] == pytest.approx(1e6 * NS, rel=1e-3)


def test_work_that_passes_a_task_is_counted_up_to_the_end_of_time() -> None:
    """40 tasks of 32 years go before one of a longer job."""
    rows = [(0.0, [10.0] * 100), (1.0, [1e9] * 2), *((2.0 + i / 10, [1e9]) for i in range(40))]
    partition = run_partition(setting_of("dist-lwl", jobs(*rows), [100], slack=1e6, heartbeat_s=1.0))
    assert partition.world.entries.bypassed.max() == NEVER


class LeastReported:
    """A probing scheduler of a user's own: tasks go to the node that says it has least work."""

    schedulers = 1

    def on_arrival(self, job: Any, cluster: Any) -> None:
        self.job, self.work_s = job, {}
        cluster.ask([0, 1])

    def on_load(self, node: Any, number: int, cluster: Any) -> None:
        self.work_s[node.node_id] = node.work_left_s
        if len(self.work_s) == cluster.num_nodes:
            cluster.place(self.job, [min(self.work_s, key=lambda node: self.work_s[node])])


@pytest.mark.parametrize(
    ("scheduler", "parameters"),
    [
        ("central-lwl", {}),
        ("hawk", {}),
        ("dist-lwl", {"heartbeat_s": 4.0, "jitter_s": 0.0}),
        ("dist-lwl", {"heartbeat_s": 4.0, "jitter_s": 0.0, "global_view": True}),
        ("yacc-d", {"heartbeat_s": 4.0}),
        ("yacc-d", {"heartbeat_s": 4.0, "bound": "wait", "queue_wait_s": 1e6}),
        (LeastReported, {}),
    ],
)
def test_work_that_no_integer_holds_is_spread_evenly(scheduler: Any, parameters: dict[str, Any]) -> None:
    """Half of 36 tasks of 32 years are 570 years of work at a node with 100 slots; an int64 of ns holds 292."""
    log = log_of(scheduler, jobs(*((10 * i, [1e9]) for i in range(36))), [100, 100], **parameters)
    nodes = [node for _, node, _, _ in log.tasks]
    assert abs(nodes.count(0) - nodes.count(1)) <= 2


def test_work_ahead_of_which_nothing_is_given_back_does_not_wrap() -> None:
    """At most 12 days for each of 12,000 slots, 380 years, may be ahead of a task; there is an hour."""
    rows = [(0.0, [3600.0] * 12_000), *((1.0 + i, [60.0]) for i in range(20))]
    setting = setting_of("yacc-d", jobs(*rows), [12_000], rebalance_s=1e6)
    assert "given_back" not in run_setting(setting, Observe()).counters


def test_a_bound_of_work_for_all_slots_has_an_end() -> None:
    given = {"bound": "wait", "queue_wait_s": 1e6}
    assert run_setting(setting_of("yacc-d", jobs((0.0, [1.0])), [4_000], **given)).counters["placements"] == 1
    with pytest.raises(InputError, match=r"^parameter queue_wait_s of yacc-d: .* want at most 4\.61e\+05 s"):
        run_setting(setting_of("yacc-d", jobs((0.0, [1.0])), [10_000], **given))


def test_late_messages_are_more_than_an_int64_of_nanoseconds_together() -> None:
    """Four messages of each of 60 jobs are late by up to 100 days."""
    workload = make_workload("daily", np.arange(60) * DAY_S, [20] * 60, np.full(1200, DAY_S / 2))
    outcome = run_windows(setting_of("sparrow", workload, 24), Observe(), 3, quantum_s=100 * DAY_S)
    late, late_ns, most_ns = outcome.delayed
    assert late * most_ns >= late_ns > 2**63


@pytest.mark.parametrize(
    ("costs", "key"),
    [
        (Costs("fixed", per_message_s=1e10), "cost.per_message"),
        (Costs("fixed", per_job_s=1e10), "cost.per_job"),
        (Costs("fixed", per_task_s=1e8), "cost.per_task"),
    ],
)
def test_costs_that_keep_a_scheduler_busy_for_ever_are_refused(costs: Costs, key: str) -> None:
    with pytest.raises(InputError, match=rf"^{key}: .* want at most"):
        run_setting(setting_of("central-fifo", jobs((0.0, [1.0] * 50)), 5, costs=costs), Observe())


def test_so_are_those_of_a_coordinator() -> None:
    setting = coflow_setting(
        "fifo", coflows((0.0, [(0, 1, 1.0)]), ports=2), costs=Costs("fixed", per_flow_s=1e10)
    )
    with pytest.raises(InputError, match=r"^cost\.per_flow: "):
        run_setting(setting, Observe())


def test_a_server_that_has_work_beyond_the_end_of_time_is_an_error() -> None:
    costs = Costs("fixed", per_message_s=3e8)
    workload = make_workload("many", np.zeros(200), np.ones(200, int), np.ones(200))
    with pytest.raises(InputError, match="virtual time has reached"):
        run_setting(setting_of("central-fifo", workload, build_cluster("c", [1] * 4), costs=costs), Observe())


def wide_job() -> DagWorkload:
    """Two stages of 1,500 tasks that take 46 days each, one after the other: 12 billion seconds; and 100 small jobs."""
    stages, tasks = [2, *[1] * 100], [1500, 1500, *[1] * 100]
    durations = np.append(np.full(3000, 4e6), np.full(100, 1e6))
    return make_dag_workload(
        "wide", np.zeros(101), stages, tasks, durations, [(0, 0, 1)], cpu_cores=np.ones(len(tasks))
    )


def test_a_plan_in_a_small_share_is_longer_than_an_int64_of_nanoseconds() -> None:
    """In Carbyne's share of one core the large job takes 380 years: it takes no more than that share all the same."""
    cluster = build_cluster("cores", [64], cpu_cores=[64.0])
    alone = run_dags(CARBYNE, wide_job(), cluster, completion="kept", leftover="none").tasks
    assert alone is not None
    assert (alone["start_ns"][:3000] < 2e6 * 1e9).sum() == 1  # until the other jobs have ended
    outcome = run_dags(CARBYNE, wide_job(), cluster)
    assert outcome.tasks is not None
    start, finish = outcome.tasks["start_ns"], outcome.tasks["finish_ns"]
    assert start[1500:3000].min() >= finish[:1500].max()
    bound_ns = 1e9 * (3000 * 4e6 + 100 * 1e6) / 64
    assert bound_ns <= outcome.finish_ns.max() <= 1.03 * bound_ns


@pytest.mark.slow("a plan of many tasks")
def test_so_is_one_that_dagps_makes() -> None:
    cluster = build_cluster("cores", [64], cpu_cores=[64.0])
    setting = dag_setting("dagps", wide_job(), cluster, plan_share=0.01)
    start, _, _, end = make_job_plans(setting)
    assert 0 <= start[0] < end[0] <= start[1] < end[1]
    assert (start[2:] == 0).all()
    assert end[1] / end[2] == pytest.approx(3000 * 4, rel=1e-6)


def test_critical_paths_longer_than_any_run_do_not_wrap() -> None:
    chain = make_dag_workload(
        "chain", [0.0], [4], [1] * 4, np.full(4, 4e9), [(0, 0, 1), (0, 1, 2), (0, 2, 3)]
    )
    assert (np.diff(earliest_ends_ns(chain)) >= 0).all()
    assert critical_paths_ns(chain)[0] > 2**62


def test_amounts_that_cannot_be_counted_in_billionths_are_refused() -> None:
    own = {"attr:bytes": encode_texts([str(64 << 30)] * 2)}
    stages = make_dag_workload("bytes", [0.0], [1], [1], [1.0], [], demands={"attr:bytes": [float(1 << 30)]})
    with pytest.raises(InputError, match=r"attr:bytes together, more than 1e\+09.*larger unit"):
        run_dags(CARBYNE, stages, build_cluster("two", [1, 1], **own))
