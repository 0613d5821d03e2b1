"""Plans: names resolved, parameters handed to those who have them, errors with their place."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from actors.schedulers.registry import find_scheduler
from emu.configuration.config import layer_from_arguments, layer_from_options, layer_from_set, resolve
from emu.configuration.config_file import layer_from_file
from emu.configuration.plan import Plan, prepare, scheduler_parameters
from emu.configuration.replicas import Replica
from workloads.errors import InputError
from workloads.jobs import JobWorkload, make_workload


def plan_of(workload: object, *sets: str, **arguments: object) -> Plan:
    given = {"scheduler": "sparrow", "workload": workload, "nodes": 8} | arguments
    return prepare(resolve([layer_from_arguments(given), layer_from_set(sets)]))


def test_parameters_go_to_all_that_have_them_or_to_one() -> None:
    schedulers = tuple(map(find_scheduler, ("hawk", "eagle", "central-fifo")))
    config = resolve([layer_from_set(["probe_ratio=3", "eagle.probe_ratio=4"])])
    hawk, eagle, _ = scheduler_parameters(config, schedulers)
    assert (hawk["probe_ratio"], eagle["probe_ratio"]) == (3, 4)
    assert [p.name for p in schedulers[0].parameters] == list(hawk)


@pytest.mark.parametrize("option", ["estimates=requested-time", "gangs=no"])
def test_an_option_of_the_workload_that_is_given_as_a_key_is_pointed_to(tmp_path: Path, option: str) -> None:
    log = tmp_path / "log.swf"
    log.write_text("1 10 5 100 4 -1 -1 4 300 -1 1 7 1 -1 1 -1 -1 -1\n")
    name, _, value = option.partition("=")
    with pytest.raises(InputError) as caught:
        plan_of(log, option)
    assert str(caught.value) == (
        f"--set {name}: {name!r} is neither a key nor a parameter of sparrow, but an option of log.swf: "
        f"give --set workload_options.{name}=…"
    )
    assert plan_of(log, f"workload_options.{option}").options != plan_of(log).options
    with pytest.raises(InputError, match=f"given by workload_options={{'{name}': …}}"):
        plan_of(log, **{name: value})


def test_wrong_parameters_in_a_file_name_its_line(tmp_path: Path) -> None:
    path = tmp_path / "e.toml"
    path.write_text("[parameters.eagle]\nprobe_ratoi = 3\n")
    with pytest.raises(InputError) as caught:
        scheduler_parameters(resolve([layer_from_file(path)]), (find_scheduler("eagle"),))
    assert (caught.value.file, caught.value.line, caught.value.field) == (
        str(path),
        2,
        "parameters.eagle.probe_ratoi",
    )


def classes_of(plan: Plan) -> tuple[float, float]:
    setting = plan.setting(0)
    return setting.short_cutoff_s, setting.long_partition


def test_classes_are_the_workloads_own_unless_given(workload: JobWorkload) -> None:
    assert classes_of(plan_of(workload)) == (10.0, 0.75)
    given = plan_of(workload, short_cutoff="5 s", long_partition="50%")
    assert classes_of(given) == (5.0, 0.5)
    plain = make_workload("plain", [0.0, 1.0], [1, 1], [1.0, 1.0])
    assert classes_of(plan_of(plain)) == (math.inf, 1.0)
    assert "short_cutoff" not in plan_of(plain).config_toml()


def test_overload_is_said(workload: JobWorkload) -> None:
    assert plan_of(workload, nodes=1000).notes == ()
    (note,) = plan_of(workload, nodes=2).notes
    assert note.startswith("offered load is ")
    (note,) = plan_of("yahoo", nodes=50, workload_options={"jobs": 50}).notes
    assert "--set workload_options.nodes=50" in note


def test_the_timeline_has_about_200_rows_of_the_shortest_run(workload: JobWorkload) -> None:
    span_s = workload.jobs["submit_s"][-1].as_py() - workload.jobs["submit_s"][0].as_py()
    longest_s = max(workload.tasks["duration_s"].to_pylist())
    assert plan_of(workload, nodes=1000).period_s == pytest.approx((span_s + longest_s) / 200)
    assert plan_of(workload, timeline_period="3 s").period_s == 3.0


def test_a_wrong_name_in_a_file_names_its_line(tmp_path: Path) -> None:
    path = tmp_path / "e.toml"
    path.write_text('nodes = 5\nworkload = "yahoo"\nscheduler = "eagel"\n')
    with pytest.raises(InputError) as caught:
        prepare(resolve([layer_from_file(path)]))
    assert (caught.value.file, caught.value.line, caught.value.field) == (str(path), 3, "scheduler")
    path.write_text('nodes = 99999999999\nworkload = "yahoo"\nscheduler = "eagle"\n')
    with pytest.raises(InputError) as caught:
        prepare(resolve([layer_from_file(path)]))
    assert (caught.value.line, caught.value.field) == (1, "nodes")


def test_settings_carry_the_configuration(workload: JobWorkload) -> None:
    sets = (
        "network.delay=1 ms",
        "network.spread=2 ms",
        "network.cross_rack_delay=3 ms",
        "estimates.error=constant",
        "estimates.size=0.5",
    )
    plan = plan_of(workload, *sets, seed=7, seeds=3)
    setting = plan.of_replica(Replica(8)).setting(0)
    assert (setting.network.delay_s, setting.network.spread_s, setting.network.cross_rack_delay_s) == (
        0.001,
        0.002,
        0.003,
    )
    assert (setting.estimates.error, setting.estimates.size, setting.seed) == ("constant", 0.5, 8)
    assert plan.replicas == (Replica(7), Replica(8), Replica(9))
    assert setting.cluster.num_nodes == 8


def test_the_configuration_names_files_by_absolute_path(trace: Path) -> None:
    plan = plan_of("./small")
    assert layer_like(plan)["workload"] == str(trace)
    assert [i["what"] for i in plan.inputs] == ["workload", "workload file", "workload file"]
    assert layer_like(plan_of("yahoo", workload_options={"jobs": 5}))["workload"] == "yahoo"


def layer_like(plan: Plan) -> dict[str, object]:
    import tomllib

    return tomllib.loads(plan.config_toml())


def test_options_that_are_not_given_are_not_in_the_layer() -> None:
    assert layer_from_options({"nodes": None}) == {}
