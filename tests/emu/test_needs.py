"""What is given and would change nothing is refused by name, or told."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from key_cases import CASES, COFLOWS, JOBS, planner, small_coflows

from emu.keys import BY_NAME
from emu.needs import NEEDS, meaningless
from emu.plan import Plan
from emu.sweeps import prepare_sweep
from workloads.errors import InputError


@pytest.fixture(scope="module")
def planned(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Plan]:
    return planner(tmp_path_factory.mktemp("keys"))


def test_needs_are_of_keys_that_are_there() -> None:
    for name, needs in NEEDS.items():
        assert name in BY_NAME
        for key, _, values in (need.partition("=") for need in needs):
            assert (
                not values
                or BY_NAME[key].kind == "flag"
                or set(values.split("|")) <= set(BY_NAME[key].choices)
            )


@pytest.mark.parametrize("name", NEEDS)
def test_keys_that_go_with_others_are_refused_alone(name: str, planned: Callable[..., Plan]) -> None:
    base = COFLOWS if BY_NAME[name].family == "coflows" else JOBS
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
        InputError, match=rf"^--set [\w.]+: means nothing to {scheduler}: it has no coordinator$"
    ):
        planned(sets, small_coflows())
    both = planned({**sets, "scheduler": f"{scheduler},philae"}, small_coflows())
    assert f"{scheduler} ignores" in both.notes[-1]
    assert name in both.notes[-1]


def test_what_nobody_looks_at_is_told(planned: Callable[..., Plan]) -> None:
    sets = {"nodes": "9", "long_partition": "50%", "estimates.error": "random", "estimates.size": "0.5"}
    assert planned({**sets, "scheduler": "sparrow"}).notes[-2:] == (
        "sparrow ignores long_partition: it treats all jobs alike",
        "sparrow ignores estimates.error and estimates.size: it goes by no estimate",
    )
    assert not any("ignores" in note for note in planned({**sets, "scheduler": "sparrow,hawk"}).notes)


def test_parameters_mean_something_to_one_scheduler_at_least(planned: Callable[..., Plan]) -> None:
    work = small_coflows()
    told = "^--set pilot_number: parameter pilot_number of philae goes with pilots=number, and pilots is senders$"
    with pytest.raises(InputError, match=told):
        planned({"scheduler": "philae", "pilot_number": "9"}, work)
    planned({"scheduler": "philae", "pilot_number": "5"}, work)  # what holds anyway does no harm
    planned({"scheduler": "philae,aalo", "share": "3", "aalo.starvation": "strict"}, work)
    with pytest.raises(
        InputError, match=r"^--set aalo\.share: .* goes with starvation=slots, and starvation is strict$"
    ):
        planned({"scheduler": "philae,aalo", "aalo.share": "3", "aalo.starvation": "strict"}, work)
    planned({**JOBS, "steal_attempts": "0", "steal_limit": "5"})  # who gives a number as 0 means it


def test_in_a_sweep_a_value_may_mean_nothing_at_some_points(tmp_path: Path) -> None:
    grid = {"workload": "synthetic-coflows", "workload_options": {"coflows": 3, "ports": 3}}
    axes = {
        "scheduler": ["philae", "fair"],
        "network.delay": ["1 ms", "2 ms"],
        "cost.model": ["none", "fixed"],
    }
    ready = prepare_sweep({**grid, "cost": {"per_message": "1 ms"}, "sweep": axes}, tmp_path / "a")
    assert len(ready.runs) == 8
    assert any(meaningless(r.plan.config, r.plan.schedulers, r.plan.parameters) for r in ready.runs)
    with pytest.raises(InputError, match=r"cost\.per_message: goes with cost\.model=fixed"):
        prepare_sweep(
            {**grid, "cost": {"per_message": "1 ms"}, "sweep": {"scheduler": ["philae"]}}, tmp_path / "b"
        )


def test_options_of_generators_go_with_others_too(planned: Callable[..., Plan], tmp_path: Path) -> None:
    yahoo = {**JOBS, "workload_options.jobs": "20", "workload_options.burst_ratio": "9"}
    told = r"^--set workload_options\.burst_ratio: goes with arrivals=bursty, and arrivals is poisson$"
    with pytest.raises(InputError, match=told):
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
