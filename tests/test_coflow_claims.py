"""Every setting that the claims about coflows run is one that Emu takes; what comes out is not looked at.

The trace is replaced by a few coflows, and one run stands for all.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import emu
from benchmarks.coflow_runs import Runs, Setting
from claims import coflow_simulators, philae
from emu.configuration.plan import configure, prepare
from emu.results.result import Result
from tests.workloads.family_examples import coflows_of

SMALL = coflows_of([(0.01 * k, None, {(0, p): 1e5 * (k + p + 1) for p in range(12)}) for k in range(4)], 12)


class Checked(Runs):
    """Runs that are resolved, and not run."""

    def __init__(self) -> None:
        super().__init__()
        self.settings: list[Setting] = []

    def __call__(self, setting: Setting) -> Result:
        keys = {"fabric_port_speed": "1 Gbps", **setting.keys}
        given = {"scheduler": setting.scheduler, "workload": SMALL, "parameters": dict(setting.parameters)}
        prepare(configure({**given, **keys}))
        self.settings.append(setting)
        if not self._found:
            self._found["any"] = emu.run("philae", SMALL, in_process=True)
        return self._found["any"]


def causes(runs: Runs) -> None:
    for name, (other, _) in philae.CLAIMS.items():
        for rule in philae.rules_for(name):
            philae.figures(runs, rule, other)


def peers(runs: Runs) -> None:
    for setting, _ in coflow_simulators.PEERS.values():
        runs(setting)
    coflow_simulators.explain_philae(runs)


def the_testbed(runs: Runs) -> None:
    for price in philae.PRICES:
        philae.predict(runs, price, 50, [150, 900])
    philae.measured(runs, [150, 900])


PARTS: tuple[Callable[[Runs], None], ...] = (
    *(philae.against, philae.policies, philae.traces, philae.pilots, philae.sensitivity),
    causes,
    peers,
    the_testbed,
)


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.__name__)
def test_emu_takes_the_settings_of_benchmarks(
    part: Callable[[Runs], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    def small(name: str) -> Any:
        return SMALL

    def one_second(name: str) -> Any:
        return np.ones(SMALL.num_coflows)

    monkeypatch.setattr(philae, "workload_of", small)
    monkeypatch.setattr(coflow_simulators, "peer_cct_s", one_second)
    runs = Checked()
    part(runs)
    assert len({repr(setting) for setting in runs.settings}) >= 4
