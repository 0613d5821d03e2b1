"""Schedulers with a central queue, start by start against a program that shares no code with them."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from emulations import NS, Estimates, Network, outages, run_setting, setting_of
from hypothesis import given, settings
from hypothesis import strategies as st
from jobs_simulator import names_of, simulate, tenants_of
from resource_check import check_run, judge

from actors.environment import Preemption
from actors.hosting.outcome import Outcome
from actors.kernel.compiled import config
from actors.setting import Dynamics, Setting
from clusters.cluster import build_cluster
from clusters.schema import encode_texts
from emu.families.jobs.results import tasks_table
from workloads.jobs import make_workload
from workloads.readers.swf import read_swf
from workloads.requests import Requests
from workloads.transform.primitives import take

GANG_SCHEDULERS = ("central-fcfs-gang", "easy", "conservative")
SCHEDULERS = (*GANG_SCHEDULERS, "central-fifo")
SWF = Path(os.environ.get("EMU_SHARED") or Path(__file__).parents[5] / "shared") / "traces" / "real" / "swf"
ESTIMATES = (Estimates(), Estimates("constant", 0.5), Estimates("constant", -0.4), Estimates("random", 0.8))
PREEMPTION = st.none() | st.builds(
    Preemption,
    keeps=st.booleans(),
    cost_s=st.sampled_from([0.0, 0.5, 3.0]),
    most=st.sampled_from([1, 3, 1000]),
    below=st.sampled_from([None, 2]),
    oldest_first=st.booleans(),
)


@st.composite
def failures(draw: st.DrawFn, nodes: int, delay_s: float, horizon_s: int) -> Dynamics:
    """Outages of nodes, none of them for good; at times at which much happens only if messages take time."""
    if draw(st.booleans()):
        return Dynamics()
    rng = np.random.default_rng(draw(st.integers(0, 100_000)))
    rows = []
    for node in range(nodes):
        times = rng.integers(0, 2 * horizon_s, 2 * rng.integers(0, 4)) / 2
        if delay_s == 0:
            times = times + rng.integers(1, NS, times.size) / NS
        times = np.unique(times)
        rows += [(f"node {node}", *of) for of in times[: times.size // 2 * 2].reshape(-1, 2).tolist()]
    if not rows:
        return Dynamics()
    return Dynamics(outages=outages(*rows), detection_s=draw(st.sampled_from([0.0, 0.5, 3.0])))


def sizes(rng: np.random.Generator, amounts: np.ndarray, capacity: np.ndarray, stated: float) -> Any:
    """Return how many tasks each job has, and on how many nodes they lie if that is stated, so that they all fit."""
    count, nodes = len(amounts), len(capacity)
    widths, on = np.ones(count, np.int64), np.zeros(count)
    for job in range(count):
        held = amounts[job] > 0
        fit = (capacity[:, held] // amounts[job][held]).min(axis=1) if held.any() else np.full(nodes, 4)
        if not fit.any():
            amounts[job], fit = 0, np.full(nodes, 4)
        widths[job] = rng.integers(1, fit.sum() + 1)
        if rng.random() < stated:
            nodes_of_job = rng.integers(1, np.count_nonzero(fit) + 1)
            least = np.sort(fit)[-nodes_of_job]
            on[job], widths[job] = nodes_of_job, rng.integers(nodes_of_job, nodes_of_job * least + 1)
    return widths, on


@st.composite
def queued(draw: st.DrawFn, scheduler: str) -> Setting:
    """Gangs and other jobs on slots, or cores and GPUs, of nodes that differ, in whole seconds: much is at once."""
    rng = np.random.default_rng(draw(st.integers(0, 100_000)))
    nodes, count = draw(st.integers(1, 6)), draw(st.integers(1, 25))
    capacity = np.stack([rng.integers(2, 9, nodes), rng.integers(0, 4, nodes)], axis=1)
    amounts = np.stack([rng.integers(0, 5, count), rng.choice([0, 0, 1, 2], count)], axis=1)
    widths, on = sizes(rng, amounts, capacity, draw(st.sampled_from([0.0, 0.5])))
    # Some are no gangs, whose tasks need not fit at once; which of these is which is not compared.
    single = (rng.random(count) < 0.4) & draw(st.booleans())
    widths[single] *= rng.integers(1, 4, single.sum())
    durations = np.repeat(rng.integers(0, 20, count), widths)
    if draw(st.booleans()):
        durations = rng.integers(0, 20, widths.sum())
    same = np.repeat(rng.integers(1, 20, count), widths)
    fractions = draw(st.sampled_from([1.0, 0.3]))
    workload = make_workload(
        "queued",
        np.cumsum(rng.integers(0, draw(st.sampled_from([2, 6, 20])), count)),
        widths,
        np.where(np.repeat(single, widths), same, durations),
        tenant=(tenant := rng.choice(np.array(["ads", "web", None], object), count).tolist()),
        requests=Requests(
            {"cpu_cores": amounts[:, 0] * fractions, "attr:gpus": amounts[:, 1]},
            gang_nodes=np.where(single, np.nan, on),
            priority=rng.integers(0, draw(st.sampled_from([1, 3])), count),
        ),
    )
    gpus = encode_texts([str(n) for n in capacity[:, 1]])
    slots = np.maximum(capacity[:, 0], 4)
    cluster = build_cluster("nodes", slots, cpu_cores=capacity[:, 0], **{"attr:gpus": gpus})
    delay_s, preemption = draw(st.sampled_from([0.0, 0.5, 1.0])), draw(PREEMPTION)
    fails = failures(nodes, delay_s, int(workload.arrays().submit_ns[-1] / NS) + 40)
    # Of tenants of gangs that evict: an example by hand, golden/jobs/tenants.txt.
    by_share = scheduler != "conservative" and preemption is None
    setting = setting_of(
        scheduler,
        workload,
        cluster,
        cutoff_s=np.inf,
        network=Network(delay_s),
        estimates=draw(st.sampled_from(ESTIMATES)),
        dynamics=Dynamics() if scheduler == "central-fifo" else draw(fails),
        seed=5,
        **(draw(shares(tenant, amounts, widths, capacity)) if by_share else {}),
    )
    setting = replace(setting, resources=draw(st.sampled_from([workload.resources, ()])))
    return replace(setting, priorities=preemption is not None or draw(st.booleans()), preemption=preemption)


@st.composite
def shares(
    draw: st.DrawFn, tenant: list[str | None], amounts: Any, widths: Any, capacity: Any
) -> dict[str, str]:
    """Draw an order of tenants, their weights or guarantees, and a ceiling below which each job fits."""
    known = sorted({name for name in tenant if name})
    order = draw(st.sampled_from(["arrival", "fair", "capacity"]))
    if order == "arrival" or not known:
        return {}
    name, parts = {"fair": ("weights", [0.5, 2.0]), "capacity": ("guarantees", [0.1, 0.4])}[order]
    given = {"order": order, name: ",".join(f"{who}={draw(st.sampled_from(parts))}" for who in known)}
    mine = [who == known[0] for who in tenant]
    of_all = np.append(amounts, np.ones((len(amounts), 1), int), axis=1) * widths[:, None]
    total = np.append(capacity, np.maximum(capacity[:, :1], 4), axis=1).sum(axis=0)
    least = (of_all[mine] / np.maximum(total, 1)).max()
    if least < 0.99 and draw(st.booleans()):
        given["ceilings"] = f"{known[0]}={max(1.001 * least, 0.5):.6f}"
    return given


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_starts_nodes_and_evictions_are_those_of_an_independent_program(scheduler: str) -> None:
    @settings(max_examples=20 if config.DISABLE_JIT else 100, deadline=None)
    @given(queued(scheduler))
    def check(setting: Setting) -> None:
        outcome = run_setting(setting)
        same_as_simulated(setting, outcome)
        lasting, at_once = setting.preemption is None, None if scheduler == "central-fifo" else 0.0
        table = tasks_table(setting.workload, outcome.tasks)
        more = {"resources": setting.resources, "lasting": lasting, "gangs_within_s": at_once}
        check_run(table, setting.workload, setting.cluster, **more)

    check()


def same_as_simulated(setting: Setting, outcome: Outcome) -> None:
    """Compare the first starts of jobs, when and where tasks ran last, evictions, and what was lost."""
    found, first = simulate(setting), setting.workload.arrays().first_task[1:-1]
    assert outcome.tasks is not None
    for name, wanted in (("start_ns", found.starts), ("node", found.nodes)):
        ran = [of.tolist() for of in np.split(outcome.tasks[name], first)]
        if setting.scheduler.name != "central-fifo":
            ran, wanted = [sorted(of) for of in ran], [sorted(of) for of in wanted]
        assert ran == wanted, name
    if outcome.evicted is not None:
        assert outcome.evicted[0].tolist() == [sum(times) for times in found.times]
    if found.first is not None:
        assert outcome.start_ns.tolist() == found.first
        assert outcome.evicted is None or outcome.evicted[1].tolist() == found.lost_us
        assert [outcome.counters.get(name, 0) for name in found.counts._fields] == [*found.counts]


@settings(max_examples=40 if not config.DISABLE_JIT else 15)
@given(queued("central-fifo"))
def test_with_failures_all_run_and_ceilings_hold(setting: Setting) -> None:
    setting = replace(setting, dynamics=Dynamics(mtbf_s=60.0, mttr_s=5.0, detection_s=2.0))
    outcome, tenants, names = run_setting(setting), tenants_of(setting), names_of(setting)
    table, lasting = tasks_table(setting.workload, outcome.tasks), setting.preemption is None
    check_run(table, setting.workload, setting.cluster, resources=setting.resources, lasting=lasting)
    judged = judge(table, setting.workload, setting.cluster, setting.resources)
    who = [names.index(name) if len(names) > 1 else 0 for name in setting.workload.jobs["tenant"].to_pylist()]
    total = [sum(of) for of in zip(*judged.capacity, strict=True)]
    for one in judged.tasks:
        together = [
            t for t in judged.tasks if t.start_s <= one.start_s < t.finish_s and who[t.job] == who[one.job]
        ]
        held = [
            sum(of)
            for of in zip(
                *(t.demand for t in [*together, one._replace(demand=(0,) * len(total))]), strict=True
            )
        ]
        assert all(h <= tenants.ceiling[who[one.job]] * c + 1 for h, c in zip(held, total, strict=True))


@pytest.mark.slow("whole logs")
@pytest.mark.reference
@pytest.mark.skipif(not SWF.is_dir(), reason="the real files are not here")
@pytest.mark.compiled
@pytest.mark.parametrize("scheduler", GANG_SCHEDULERS)
@pytest.mark.parametrize("estimates", [Estimates(), Estimates("random", 0.9)], ids=["exact", "random"])
@pytest.mark.parametrize(
    ("log", "processors", "num_jobs", "speed_up"),
    [("NASA-iPSC-1993-3.1-cln.swf.zip", 128, 800, 1.7), ("LCG.swf.gz", 160, 500, 1.0)],
    ids=["nasa", "lcg"],
)
def test_starts_on_real_logs_are_those_of_an_independent_program(
    scheduler: str, estimates: Estimates, log: str, processors: int, num_jobs: int, speed_up: float
) -> None:
    """Arrivals come `speed_up` times as fast as in the log, so that jobs wait. All processors are of one node."""
    found = take(read_swf(SWF / log), np.arange(num_jobs))
    arrays = found.arrays()
    submit_s = np.rint(arrays.submit_ns / NS / speed_up)
    workload = make_workload(log, submit_s, np.diff(arrays.first_task), arrays.duration_ns / NS)
    cluster = build_cluster("one", [processors])
    setting = setting_of(scheduler, workload, cluster, network=0.0, estimates=estimates, gangs="all")
    outcome = run_setting(setting)
    assert outcome.start_ns.tolist() == simulate(setting).first
    assert (outcome.start_ns > workload.arrays().submit_ns).mean() > 0.05
