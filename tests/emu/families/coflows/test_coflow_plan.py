"""Plans of coflows: ports, loads and defaults, and what is refused in a line that names it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from coflow_cases import MB, four_coflows

from actors.schedulers.registry import find_scheduler, scheduler_names
from actors.setting import Switch
from emu.configuration.config import layer_from_arguments, layer_from_set, resolve
from emu.configuration.config_file import layer_from_file
from emu.configuration.keys import BY_NAME
from emu.configuration.plan import Plan, prepare
from emu.families.registry import keys_of
from tests.emu.configuration.key_cases import CASES
from tests.workloads.family_examples import coflows_of
from workloads.errors import InputError
from workloads.jobs import JobWorkload


def plan_of(*sets: str, **arguments: object) -> Plan:
    given = {"scheduler": "aalo", "workload": four_coflows()} | arguments
    return prepare(resolve([layer_from_arguments(given), layer_from_set(sets)]))


def test_the_ports_are_the_workloads_own() -> None:
    plan = plan_of()
    assert (plan.family.name, plan.cluster.num_nodes, plan.cluster.total_slots) == ("coflows", 4, 4)
    assert plan.work == (20, "flows")
    setting = plan.setting(0)
    assert setting.switch == Switch(125e6, False)
    assert setting.network.delay_s == 0.0
    assert plan_of(nodes=9).setting(0).cluster.num_nodes == 9
    with pytest.raises(InputError, match=r"^nodes: 3 is fewer than the 4 ports of coflows$"):
        plan_of(nodes=3)


def test_keys_of_the_switch_and_of_costs() -> None:
    plan = plan_of(
        "fabric.port_speed=8 Mbps",
        "fabric.local=free",
        "network.delay=1 ms",
        "cost.model=fixed",
        "cost.per_update=2 us",
        "cost.per_flow=3 us",
        "cost.per_coflow=4 us",
        "cost.per_schedule=5 us",
        "cost.per_message=6 us",
    )
    setting = plan.setting(0)
    assert setting.switch == Switch(1e6, True)
    assert setting.network.delay_s == 0.001
    costs = setting.costs
    assert (costs.per_update_s, costs.per_flow_s, costs.per_coflow_s) == (2e-6, 3e-6, 4e-6)
    assert (costs.per_schedule_s, costs.per_message_s, costs.per_job_s) == (5e-6, 6e-6, 0.0)


def test_a_plan_written_and_read_again_is_the_same(tmp_path: Path, workload: JobWorkload) -> None:
    from workloads.catalogue import save_workload

    save_workload(four_coflows(), tmp_path / "shuffles")
    plan = plan_of("fabric.port_speed=123456789.5", workload=str(tmp_path / "shuffles"), load="80%")
    text = plan.config_toml()
    names = re.findall(r"^\[(.*)\]$", text, re.MULTILINE)
    assert not {"dynamics", "estimates", "constraints"} & set(names)
    assert 'port_speed = "123456789.5 bps"' in text
    (tmp_path / "again.toml").write_text(text)
    again = prepare(resolve([layer_from_file(tmp_path / "again.toml")]))
    assert again.config_toml() == text
    assert again.identity(0) == plan.identity(0)
    of_jobs = prepare(
        resolve([layer_from_arguments({"scheduler": "random", "workload": workload, "nodes": 4})])
    )
    assert "fabric" not in of_jobs.config_toml()
    assert "per_update" not in of_jobs.config_toml()
    assert 'delay = "0.0005 s"' in of_jobs.config_toml()


@pytest.mark.parametrize("name", [key.name for key in keys_of("jobs")])
def test_keys_of_jobs_are_refused(name: str) -> None:
    value = CASES[name].values[-1] if name in CASES else "drop"
    with pytest.raises(InputError) as caught:
        plan_of(f"{name}={value}")
    assert str(caught.value).startswith(f"--set {name}: not for aalo: ")
    assert "\n" not in str(caught.value)
    default = BY_NAME[name].default
    if default is not None:
        plan_of(f"{name}={default}")  # what holds anyway does no harm


@pytest.mark.parametrize("name", [key.name for key in keys_of("coflows")])
def test_keys_of_coflows_are_refused_for_jobs(name: str, workload: JobWorkload) -> None:
    value = {"fabric.port_speed": "2 Gbps", "fabric.local": "free"}.get(name, "1 ms")
    families = "coflows and dags" if name in {key.name for key in keys_of("dags")} else "coflows"
    expected = f"^--set {name}: not for sparrow: it is for {families}, and sparrow schedules jobs$"
    with pytest.raises(InputError, match=expected):
        plan_of(f"{name}={value}", scheduler="sparrow", workload=workload, nodes=4)


def test_schedules_reach_all_agents_at_the_same_time() -> None:
    with pytest.raises(InputError, match=r"spread: .* schedules must reach all agents at the same time$"):
        plan_of("network.spread=1 ms")


def test_every_scheduler_of_coflows_says_so() -> None:
    assert {find_scheduler(name).family for name in scheduler_names("coflows")} == {"coflows"}
    assert not set(scheduler_names("coflows")) & set(scheduler_names("jobs"))


def test_windows_want_a_delay_only() -> None:
    assert plan_of("network.delay=1 ms", clock="windows").setting(0).network.delay_s == 0.001


def test_the_load_is_of_all_ports_bandwidth() -> None:
    shuffle = coflows_of([(0.0, 60.0, {(0, 1): 30 * MB}), (10.0, None, {(1, 0): 10 * MB})], ports=2)
    plan = plan_of("fabric.port_speed=8 Mbps", workload=shuffle)  # 1 MB/s a port: 40 MB in 10 s over 2 ports
    assert plan.load == 2.0
    assert plan.notes == (
        "offered load is 2.00: more bytes arrive than 2 ports carry; queues grow; it would keep up with "
        "--set load=66%, or with --set fabric.port_speed='24 Mbps'",
    )
    halved = plan_of("fabric.port_speed=8 Mbps", workload=shuffle, load="50%")
    assert halved.load == pytest.approx(0.5)
    assert halved.workload.coflows["arrival_s"].to_pylist() == [0.0, 40.0]
    assert halved.workload.ports.equals(shuffle.ports)  # what they do not say is not made up
    fast = coflows_of([(0.0, None, {(0, 1): 30 * MB}), (10.0, None, {(1, 0): 10 * MB})], 2, 4e6)
    assert plan_of("fabric.port_speed=8 Mbps", workload=fast).load == 0.5  # their own speed counts


def test_a_workload_without_deadlines_is_noted_for_schedulers_that_use_them() -> None:
    rows = [(0.0, None, {(0, 1): 1 * MB}), (1.0, None, {(2, 0): 1 * MB})]
    (note,) = plan_of(scheduler="dcoflow", workload=coflows_of(rows, ports=3)).notes
    assert note.endswith(
        "has no deadlines, and dcoflow would order by them; emu workload deadlines draws some"
    )
    assert plan_of(scheduler="sebf", workload=coflows_of(rows, ports=3)).notes == ()
    dated = coflows_of([(0.0, 9.0, {(0, 1): 1 * MB}), *rows[1:]], ports=3)
    assert plan_of(scheduler="dcoflow", workload=dated).notes == ()


def test_a_port_that_is_offered_too_much_is_noted() -> None:
    shuffle = coflows_of([(0.0, None, {(0, 1): 30 * MB}), (20.0, None, {(2, 0): 1 * MB})], ports=3)
    (note,) = plan_of("fabric.port_speed=8 Mbps", workload=shuffle).notes
    assert note == (
        "the ingress of port 0 is offered 1.50 times what it carries; its queue grows; it would keep up with "
        "--set load=34%, or with --set fabric.port_speed='12 Mbps'"
    )
    assert plan_of("fabric.port_speed=8 Mbps", workload=shuffle, load="34%").notes == ()
    assert plan_of("fabric.port_speed=12 Mbps", workload=shuffle).notes == ()
    own = coflows_of([(0.0, None, {(0, 1): 30 * MB}), (20.0, None, {(2, 0): 1 * MB})], 3, 1e6)
    (note,) = plan_of(workload=own).notes
    assert note.endswith("its queue grows; it would keep up with --set load=34%")
    assert plan_of(workload=own, load="34%").notes == ()


def test_the_timeline_has_about_200_rows_of_the_shortest_run() -> None:
    # The last coflow arrives at 30 s; the longest alone takes 200 MB at 125 MB/s.
    assert plan_of().period_s == pytest.approx((30 + 1.6) / 200)
    assert plan_of(timeline_period="3 s").period_s == 3.0
