"""Explanations state the rule of any scheduler: one of another package, compiled or not, as well as a built-in one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import emu

MINE = '''
from dataclasses import replace

from actors.schedulers.coflows.fifo import FIFO
from actors.schedulers.dags.drf import DRF

COMPILED = replace(FIFO, name="mine", rule=lambda given: f"what waits {given['interval_s']} s goes first")
DAGS = replace(DRF, name="my-dags", rule="jobs with even numbers go first", priorities="nowhere")


class Shortest:
    """The coflow that has sent least first."""

    def order(self, coflows, now_s):
        return coflows.bytes_sent.argsort()


class Silent:
    def order(self, coflows, now_s):
        return coflows.bytes_sent.argsort()

'''
COFLOWS: dict[str, Any] = {
    "workload_options": {"coflows": 12, "ports": 4},
    "output_events": "all",
    "output_tasks": True,
}


def stories(scheduler: str, workload: str, **given: Any) -> str:
    """Return the explanations of all coflows, or jobs."""
    run = emu.run(scheduler, workload, in_process=True, **given)
    table, name = ("coflows", "coflow_id") if workload == "synthetic-coflows" else ("jobs", "job_id")
    return " ".join(
        " ".join(str(emu.explain(run, row)).split()) for row in run.tables[table][name].to_pylist()
    )


def test_rules_of_schedulers_that_are_not_built_in_are_stated(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(MINE)
    assert "The rule: what waits 0.008 s goes first." in stories(
        f"{file}:COMPILED", "synthetic-coflows", **COFLOWS
    )
    assert "The rule: The coflow that has sent least first." in stories(
        f"{file}:Shortest", "synthetic-coflows", **COFLOWS
    )
    assert "The rule" not in stories(f"{file}:Silent", "synthetic-coflows", **COFLOWS)
    dags: dict[str, Any] = {
        "workload_options": {"jobs": 12},
        "nodes": 3,
        "output_events": "all",
        "output_tasks": True,
    }
    assert "Its rule: jobs with even numbers go first." in stories(f"{file}:DAGS", "query-dags", **dags)
    by_stage = stories("sparrow", "query-dags", network_scheduler="fair", fabric_port_speed=1e10, **dags)
    assert "Meanwhile nodes started" in by_stage
    assert "Its rule" not in by_stage  # nodes serve their queues


def test_the_rule_of_a_variant_is_that_of_its_values() -> None:
    slots, strict = (
        stories(f"aalo@starvation={how}", "synthetic-coflows", **COFLOWS) for how in ("slots", "strict")
    )
    assert "queues take turns (starvation=slots)" in slots
    assert "The rule: coflows that have sent less are in higher queues" in strict
    assert "take turns" not in strict


QUEUE = """
from dataclasses import replace

from actors.schedulers.jobs.central_fifo import CENTRAL_FIFO, build


def build_mine(setting):
    return build(replace(setting, parameters={"order": "arrival", "weights": "", "guarantees": "", "ceilings": ""}))


MINE = replace(CENTRAL_FIFO, name="mine", parameters=(), build=build_mine, rule="jobs go as they came")
"""
JOBS: dict[str, Any] = {"workload_options": {"jobs": 30, "nodes": 8}, "nodes": 8, "output_events": "all"}


def test_a_scheduler_of_jobs_states_its_rule_where_jobs_wait_for_it(tmp_path: Path) -> None:
    """It has none of the parameters of central queues, by which explanations of those go."""
    file = tmp_path / "mine.py"
    file.write_text(QUEUE)
    said = stories(f"{file}:MINE", "yahoo", output_tasks=True, **JOBS)
    assert "Its rule: jobs go as they came." in said
    assert "stood before it (the first: job" in said


def test_tasks_that_a_scheduler_hands_over_to_another_are_followed_there() -> None:
    run = emu.run("examples/pigeon.py:Pigeon", "yahoo", in_process=True, output_tasks=True, **JOBS)
    for job in run.tables["jobs"]["job_id"].to_pylist():
        links = emu.explain(run, job).chain
        assert "handed tasks over to scheduler" in links[0].what
        assert {link.cause for link in links} <= {"network", "queueing", "work"}
        assert not any("not recorded" in link.what for link in links)
