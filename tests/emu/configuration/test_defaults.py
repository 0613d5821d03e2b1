"""A default that a user sees in two places is the same in both: a key, an option or its help, and a function."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest

from actors.environment import Pace
from actors.hosting.windows import emulate_windows
from clusters.cluster import load_cluster
from emu.cli.parser import build_parser
from emu.configuration.keys import BY_NAME
from emu.families.jobs.metrics import bounded_slowdown, describe_jobs
from emu.results.paired_comparison import Tolerance
from emu.sweeps.sizing import size
from emu.sweeps.sweep import sweep
from emu.sweeps.targets import find_fewest
from workloads.catalogue import load_workload
from workloads.generators.arrivals import Arrivals
from workloads.generators.synthetic import Service, poisson, synthetic
from workloads.public.data_folder import fetch
from workloads.transform.constrain import constrain
from workloads.transform.registry import TRANSFORMATIONS, Option, Transformation
from workloads.units import parse_duration

OF_KEYS: list[tuple[str, Callable[..., Any], str]] = [
    ("cluster", load_cluster, "name_or_path"),
    ("cluster_seed", load_cluster, "seed"),
    ("constraints.price", constrain, "price"),
    ("seed", load_workload, "seed"),
    ("seed", constrain, "seed"),
    ("slowdown_threshold", describe_jobs, "threshold_s"),
    ("slowdown_threshold", bounded_slowdown, "threshold_s"),
    ("warmup", describe_jobs, "warmup_s"),
    ("tolerance.relative", Tolerance, "relative"),
    ("windows.transport", emulate_windows, "transport"),
    ("dilation", Pace, "dilation"),
    ("live.tick", Pace, "tick_s"),
    ("live.lateness_bound", Pace, "lateness_bound_s"),
]
OF_OPTIONS = [
    pytest.param(step, option, id=f"{name} {option.name}")
    for name, step in TRANSFORMATIONS.items()
    for option in step.options
    if inspect.signature(step.function).parameters[option.name].default not in (None, inspect.Parameter.empty)
]


def default_of(function: Callable[..., Any], name: str) -> Any:
    return inspect.signature(function).parameters[name].default


@pytest.mark.parametrize(("key", "function", "name"), OF_KEYS)
def test_of_a_key_and_of_a_function(key: str, function: Callable[..., Any], name: str) -> None:
    assert default_of(function, name) == BY_NAME[key].default


@pytest.mark.parametrize(("step", "option"), OF_OPTIONS)
def test_of_a_transformation_and_of_its_option(step: Transformation, option: Option) -> None:
    """The option's is text for the help."""
    assert option.parse(option.default) == default_of(step.function, option.name)


def test_of_generators() -> None:
    assert default_of(synthetic, "arrivals") == Arrivals().process
    assert default_of(synthetic, "service") == Service().name
    for name in inspect.signature(poisson).parameters:
        assert default_of(poisson, name) == default_of(synthetic, name), name


def test_of_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    """It starts without what these functions import, so that their defaults stand there as text."""
    parser = build_parser()
    assert parse_duration(parser.parse_args(["workload", "fetch"]).timeout, "") == default_of(
        fetch, "timeout_s"
    )
    with pytest.raises(SystemExit):
        parser.parse_args(["size", "--help"])
    shown = " ".join(capsys.readouterr().out.split())
    for function in (size, sweep):
        assert f"when a worker process dies ({default_of(function, 'retries')})" in shown
    for function in (size, find_fewest):
        assert f"a number that fails ({default_of(function, 'tolerance'):.0%})" in shown
