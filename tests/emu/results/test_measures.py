"""Facts of summaries: where they stand, and how they are shown."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import pytest

from emu.results.comparison_tables import FactTable, Given, mean_of
from emu.results.measures import PAGE, TERMINAL, Fact, at_path, facts_of, text_of

SUMMARY = {
    "jobs": {"makespan_s": 90.0, "used": {"cores": 0.5, "memory": 0.25}, "p99.9": 7.0, "none": None},
    "unfinished": 2,
}
FACTS = (
    Fact("makespan", "jobs.makespan_s", "duration"),
    Fact("mean use of {}", "jobs.used.*", ".1%"),
    Fact("", "unfinished", lambda count: f"{count} did not finish", TERMINAL),
    Fact("unfinished", "unfinished", ",", PAGE),
    Fact("half", lambda summary: summary["unfinished"] / 2),
    Fact("absent", "jobs.long.mean"),
    Fact("nothing to say", "jobs", lambda jobs: ""),
)


def test_a_place_shows_the_facts_that_a_summary_has() -> None:
    both = {"makespan": "90 s", "mean use of cores": "50.0%", "mean use of memory": "25.0%"}
    assert facts_of(FACTS, SUMMARY, PAGE) == both | {"unfinished": "2", "half": "1"}
    assert facts_of(FACTS, SUMMARY, TERMINAL) == both | {"": "2 did not finish", "half": "1"}
    assert facts_of(FACTS[:2], {}, PAGE) == {}


def test_a_path_is_of_keys() -> None:
    assert at_path(SUMMARY, ("jobs", "p99.9")) == 7.0  # a key with a dot
    assert at_path(SUMMARY, "jobs.none") is at_path(SUMMARY, "jobs.makespan_s.mean") is None


@pytest.mark.parametrize(
    ("form", "text"),
    [
        ("number", "0.0400±0.0010"),
        ("3 digits", "0.0400±0.0010"),
        ("share", "4.00±0.10%"),
        ("ratio", "1/25.0±0.6×"),  # noqa: RUF001
        ("count", "0.04"),
        (".1%", "4.0%"),
    ],
)
def test_forms(form: str, text: str) -> None:
    assert text_of(form, 0.04, 0.001) == text


def runs(*values: float | None) -> list[Any]:
    return [SimpleNamespace(summary={"of": {"a": v} if v is not None else {}}) for v in values]


def test_a_table_has_means_over_the_seeds() -> None:
    results = {"one": runs(1.0, 3.0), "two": runs(2.0, None), "three": [SimpleNamespace(summary={})]}
    table = FactTable("T", "c", (Fact("a", "of.a"), Given("b", {"one": (0.5, math.nan)})), needs="of")
    found = table.means(results)
    assert list(found) == ["one", "two"]  # the third lacks what is needed
    assert found["one"]["a"][0] == 2.0
    assert math.isnan(found["two"]["a"][0])  # a seed has no value
    assert found["two"]["b"] is not found["one"]["b"]
    assert table._replace(of_some=True).means(results)["two"]["a"][0] == 2.0
    (shown,) = table.tables(results)
    assert (shown.head, [row[0] for row in shown.rows]) == (["scheduler", "a", "b"], ["one", "two"])
    (shown,) = table._replace(optional=("b",)).tables({"two": results["two"]})
    assert shown.head == ["scheduler", "a"]  # no scheduler has b
    assert table.tables({"three": results["three"]}) == []


def test_a_mean_of_no_value_is_none() -> None:
    assert all(math.isnan(of) for of in mean_of([None, None], of_some=True))
