"""Values that are given without an effect are refused by name, or reported in a note."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from key_cases import CASES, COFLOWS, DAGS, JOBS, planner, small_coflows

from actors.schedulers.registry import built_in_schedulers
from emu.configuration.config import layer_from_set, resolve
from emu.configuration.config_file import layer_from_file
from emu.configuration.ineffective_values import ineffective
from emu.configuration.keys import BY_NAME
from emu.configuration.plan import Plan, configure, prepare
from emu.configuration.replicas import Replica
from emu.families.coflows.keys import KEYS as COFLOW_KEYS
from emu.families.dags.keys import KEYS as DAG_KEYS
from emu.families.jobs.keys import KEYS as JOB_KEYS
from emu.sweeps.sweep import prepare_sweep
from workloads.errors import InputError

OF_ONE = ((COFLOW_KEYS, COFLOWS), ([key for key in DAG_KEYS if key not in JOB_KEYS], DAGS))
"""The keys that one family alone has, and a base of a run of it."""
NEEDING = [name for name, key in BY_NAME.items() if key.needs]


@pytest.fixture(scope="module")
def planned(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Plan]:
    return planner(tmp_path_factory.mktemp("keys"))


def test_needs_are_of_keys_that_are_there() -> None:
    for needing in NEEDING:
        for key, _, values in (need.partition("=") for need in BY_NAME[needing].needs):
            assert (
                not values
                or BY_NAME[key].kind == "flag"
                or set(values.split("|")) <= set(BY_NAME[key].choices)
            )


@pytest.mark.parametrize("name", NEEDING)
def test_keys_that_go_with_others_are_refused_alone(name: str, planned: Callable[..., Plan]) -> None:
    base = next((base for keys, base in OF_ONE if BY_NAME[name] in keys), JOBS)
    value = {"address": "ray://there:1", "load_by": "nodes"}.get(name) or next(
        (c.values[-1] for c in (CASES.get(name),) if c),
        {"quantum": "1 s", "windows.transport": "calls"}.get(name, "7"),
    )
    alone = {"in_process": "true"} if name == "address" else {}
    alone |= {"clock": "live"} if name == "checkpoint.period" else {}
    alone |= {"checkpoint.period": "never"} if name == "checkpoint.keep" else {}
    with pytest.raises(InputError, match=rf"^--set {name}: goes with .*, and [^\n]*$"):
        planned({**base, **alone, name: value})


@pytest.mark.parametrize("name", ["network.delay", "cost.model", "cost.per_update", "cost.per_message"])
@pytest.mark.parametrize("scheduler", ["fair", "pfp"])
def test_what_a_coordinator_costs_is_refused_without_one(
    name: str, scheduler: str, planned: Callable[..., Plan]
) -> None:
    sets = {"scheduler": scheduler, name: "fixed" if name == "cost.model" else "1 ms"}
    sets |= {"cost.model": "fixed"} if name.startswith("cost.") else {}
    with pytest.raises(
        InputError, match=rf"^--set [\w.]+: has no effect on {scheduler}: it has no coordinator$"
    ):
        planned(sets, small_coflows())
    both = planned({**sets, "scheduler": f"{scheduler},philae"}, small_coflows())
    assert f"{scheduler} ignores" in both.notes[-1]
    assert name in both.notes[-1]


def test_keys_that_a_scheduler_ignores_are_noted(planned: Callable[..., Plan]) -> None:
    sets = {"nodes": "9", "long_partition": "50%", "estimates.error": "random", "estimates.size": "0.5"}
    assert planned({**sets, "scheduler": "sparrow"}).notes[-2:] == (
        "sparrow ignores long_partition: it treats all jobs alike",
        "sparrow ignores estimates.error and estimates.size: it uses no estimates",
    )
    assert not any("ignores" in note for note in planned({**sets, "scheduler": "sparrow,hawk"}).notes)


def test_parameters_mean_something_to_one_scheduler_at_least(planned: Callable[..., Plan]) -> None:
    work = small_coflows()
    expected = "^--set pilot_number: parameter pilot_number of philae goes with pilots=number, and pilots is senders$"
    with pytest.raises(InputError, match=expected):
        planned({"scheduler": "philae", "pilot_number": "9"}, work)
    planned({"scheduler": "philae", "pilot_number": "5"}, work)  # what holds anyway does no harm
    planned({"scheduler": "philae,aalo", "share": "3", "aalo.starvation": "strict"}, work)
    with pytest.raises(
        InputError, match=r"^--set aalo\.share: .* goes with starvation=slots, and starvation is strict$"
    ):
        planned({"scheduler": "philae,aalo", "aalo.share": "3", "aalo.starvation": "strict"}, work)
    (note,) = planned(
        {**JOBS, "steal_attempts": "0", "steal_limit": "5"}
    ).notes  # who gives a number as 0 means it
    expected = (
        "--set steal_limit: parameter steal_limit of hawk goes with steal_attempts, and steal_attempts is 0"
    )
    assert note == f"{expected}; it changes nothing"
    (note,) = planned({**JOBS, "estimates.error": "random", "estimates.size": "0"}).notes
    assert note.startswith("--set estimates.error: goes with estimates.size, and estimates.size is 0.0; ")


def test_in_a_sweep_a_value_may_mean_nothing_at_some_points(tmp_path: Path) -> None:
    grid = {"workload": "synthetic-coflows", "workload_options": {"coflows": 3, "ports": 3}}
    axes = {
        "scheduler": ["philae", "fair"],
        "network.delay": ["1 ms", "2 ms"],
        "cost.model": ["none", "fixed"],
    }
    ready = prepare_sweep({**grid, "cost": {"per_message": "1 ms"}, "sweep": axes}, tmp_path / "a")
    assert [run.folder.relative_to(tmp_path / "a").as_posix() for run in ready.runs] == [
        *(
            f"scheduler=philae/delay={delay}/model={model}/seed=1"
            for delay in ("0.001", "0.002")
            for model in ("none", "fixed")
        ),
        "scheduler=fair/seed=1",  # which has no coordinator
    ]
    assert any(ineffective(r.plan.config, r.plan.schedulers, r.plan.parameters) for r in ready.runs)
    with pytest.raises(InputError, match=r"cost\.per_message: goes with cost\.model=fixed"):
        prepare_sweep(
            {**grid, "cost": {"per_message": "1 ms"}, "sweep": {"scheduler": ["philae"]}}, tmp_path / "b"
        )


def test_options_of_generators_go_with_others_too(planned: Callable[..., Plan], tmp_path: Path) -> None:
    yahoo = {**JOBS, "workload_options.jobs": "20", "workload_options.burst_ratio": "9"}
    expected = r"^--set workload_options\.burst_ratio: goes with arrivals=bursty, and arrivals is poisson$"
    with pytest.raises(InputError, match=expected):
        planned(yahoo, "yahoo")
    planned({**yahoo, "workload_options.arrivals": "bursty"}, "yahoo")
    grid = {
        "scheduler": "random",
        "workload": "yahoo",
        "nodes": 20,
        "workload_options": {"jobs": 5, "burst_ratio": 9},
    }
    assert (
        len(
            prepare_sweep(
                {**grid, "sweep": {"workload_options.arrivals": ["poisson", "bursty"]}}, tmp_path
            ).runs
        )
        == 2
    )
    with pytest.raises(InputError, match="burst_ratio: goes with arrivals=bursty"):
        prepare_sweep({**grid, "sweep": {"seed": [1, 2]}}, tmp_path / "none")


def test_a_price_wants_soft_constraints(tmp_path: Path) -> None:
    from emu.cli import main

    assert main(["workload", "synth", "poisson", str(tmp_path / "p"), "--set", "jobs=20"]) == 0
    assert (
        main(
            [
                "workload",
                "constrain",
                str(tmp_path / "p"),
                str(tmp_path / "c"),
                "--jobs",
                "all",
                "--price",
                "3",
            ]
        )
        == 2
    )
    assert main(["workload", "synth", "poisson", str(tmp_path / "q"), "--set", "cv=2"]) == 2


SMALL = {"workload": "poisson", "nodes": "10", "workload_options.jobs": "20", "short_cutoff": "10 s"}
SMALL_COFLOWS = {
    "workload": "synthetic-coflows",
    "workload_options.coflows": "3",
    "workload_options.ports": "3",
}
SMALL_DAGS = {"workload": "query-dags", "nodes": "10", "workload_options.jobs": "2"}


def written(plan: Plan, index: int | None, folder: Path) -> Path:
    """The `config.toml` of a run."""
    (folder / "config.toml").write_text(plan.config_toml(index))
    return folder / "config.toml"


def prepared(sets: dict[str, str]) -> Plan:
    return prepare(resolve([layer_from_set([f"{name}={value}" for name, value in sets.items()])]))


TOGETHER = [
    {**SMALL_COFLOWS, "scheduler": "fair,philae", "network.delay": "1 ms"},
    {**SMALL_COFLOWS, "scheduler": "pfp,aalo", "cost.model": "fixed", "cost.per_update": "1 ms"},
    {**SMALL_COFLOWS, "scheduler": "philae,aalo", "share": "3", "aalo.starvation": "strict"},
    {**SMALL, "scheduler": "eagle,eagle@shortest_first=false", "slack": "3"},
    {**SMALL, "scheduler": "hawk,hawk-c", "steal_limit": "4", "hawk.steal_attempts": "0"},
    {**SMALL, "scheduler": "sparrow,hawk", "long_partition": "50%"},
    {**SMALL_DAGS, "scheduler": "drf,tetris", "network.scheduler": "sebf", "network.shuffle": "push"},
]


@pytest.mark.parametrize("sets", TOGETHER, ids=lambda sets: sets["scheduler"])
def test_what_means_nothing_to_one_of_several_does_not_keep_its_run_from_running_again(
    sets: dict[str, str], tmp_path: Path
) -> None:
    plan = prepared(sets)
    for index in (None, 0, 1):
        text = plan.config_toml(index)
        again = prepare(configure({}, written(plan, index, tmp_path)))
        assert again.config_toml() == text
        for i, scheduler in enumerate(again.schedulers):
            assert scheduler.name == plan.schedulers[i if index is None else index].name


@pytest.mark.parametrize("scheduler", built_in_schedulers(), ids=lambda s: s.name)
def test_the_configuration_of_every_run_runs_again(scheduler: Any, tmp_path: Path) -> None:
    base = SMALL_COFLOWS if scheduler.family == "coflows" else SMALL
    needs_message_time = {"network.delay": "1 ms"} if scheduler.family == "coflows" else {}
    clocks = [{}] if "always" in scheduler.global_view else [{}, {"clock": "windows", **needs_message_time}]
    clocks += [] if "always" in scheduler.global_view else [{"clock": "live"}]
    for clock in clocks:
        plan = prepared({**base, "scheduler": scheduler.name, **clock})
        again = prepare(configure({}, written(plan, 0, tmp_path)))
        assert again.config_toml(0) == plan.config_toml(0)
        assert again.identity(0) == plan.identity(0)


def test_the_points_of_a_sweep_run_again(tmp_path: Path) -> None:
    grid = {"scheduler": "philae", "cost": {"per_message": "1 ms"}, "workload": "synthetic-coflows"}
    options = {"coflows": 3, "ports": 3, "burst_ratio": 9}
    axes = {"cost.model": ["none", "fixed"], "workload_options.arrivals": ["poisson", "bursty"]}
    ready = prepare_sweep({**grid, "workload_options": options, "sweep": axes}, tmp_path / "s")
    for run in ready.runs:
        again = prepare(configure({}, written(run.plan, 0, tmp_path)))
        assert again.config_toml(0) == run.plan.config_toml(0)


def test_the_configuration_of_several_seeds_has_nothing_of_one_seed_alone(tmp_path: Path) -> None:
    """Each seed has a workload of its own, and with it a cut-off and a period of the timeline."""
    plan = prepared({**SMALL, "scheduler": "eagle", "short_cutoff": "50%", "seeds": "2"})
    again = prepare(configure({}, written(plan, None, tmp_path)))
    cutoffs = set()
    for seed in 1, 2:
        one, other = plan.of_replica(Replica(seed)), again.of_replica(Replica(seed))
        assert (one.own["short_cutoff_s"], one.period_s) == (other.own["short_cutoff_s"], other.period_s)
        cutoffs.add(one.own["short_cutoff_s"])
    assert len(cutoffs) == 2


FILE = """scheduler = "eagle"
workload = "poisson"
nodes = 10
short_cutoff = "10 s"
clock = "windows"
partitions = 2
workload_options.jobs = 20
workload_options.service = "pareto"
workload_options.alpha = 1.8
cost = { model = "fixed", per_message = "1 ms" }
parameters.slack = 2
parameters.eagle.probe_ratio = 3
"""


@pytest.mark.parametrize(
    ("over", "expected"),
    [
        ("clock=virtual", r"line 6: field partitions: goes with clock=windows or live, and clock is virtual"),
        (
            "cost.model=none",
            r"line \d+: field cost.per_message: goes with cost.model=fixed, and cost.model is none",
        ),
        (
            "shortest_first=false",
            r"line \d+: field parameters.slack: parameter slack of eagle goes with shortest_first, .*",
        ),
        (
            "workload_options.service=exponential",
            r"line \d+: field workload_options.alpha: goes with service=pareto, .*",
        ),
        ("scheduler=phoenix", r"parameters.eagle: eagle is not in this run; they change nothing"),
    ],
)
def test_keys_of_a_file_that_an_option_leaves_without_effect_are_noted(
    over: str, expected: str, tmp_path: Path
) -> None:
    file = tmp_path / "base.toml"
    file.write_text(FILE)
    assert not prepare(configure({}, file)).notes[1:]
    plan = prepare(resolve([layer_from_file(file), layer_from_set([over])]))
    (note,) = [note for note in plan.notes if "change" in note]
    assert re.fullmatch(rf".*base\.toml: {expected}(; it changes nothing)?", note)
    again = prepare(configure({}, written(plan, 0, tmp_path)))
    assert not [note for note in again.notes if "change" in note]
    # In the same file, or over the file, it is refused.
    name = over.partition("=")[0]
    if name != "scheduler":
        with pytest.raises(InputError, match="goes with"):
            prepare(resolve([layer_from_file(file), layer_from_set([over, *SAME_PLACE[name]])]))


SAME_PLACE = {
    "clock": ["partitions=3"],
    "cost.model": ["cost.per_message=2 ms"],
    "shortest_first": ["slack=3"],
    "workload_options.service": ["workload_options.alpha=1.7"],
}


def test_settings_of_a_variant_mean_something_together(tmp_path: Path) -> None:
    expected = (
        "^--set scheduler: parameter slack of .* goes with shortest_first, and shortest_first is false$"
    )
    with pytest.raises(InputError, match=expected):
        prepared({**SMALL, "scheduler": "eagle@shortest_first=false@slack=3"})
    file = tmp_path / "base.toml"
    file.write_text(
        'scheduler = "mine"\nworkload = "synthetic-coflows"\n[variants.mine]\nscheduler = "philae"\n'
        'policy = "A"\ncount_itself = true\n'
    )
    with pytest.raises(
        InputError,
        match=r"line 6: field variants\.mine\.count_itself: .* goes with policy=D, and policy is A$",
    ):
        prepare(configure({}, file))
