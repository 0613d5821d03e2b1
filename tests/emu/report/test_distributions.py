"""Distributions: quantiles by hand, bands over seeds, tails, curves that coincide, zeros."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from emu.report.distributions import coinciding, distribution_figure, joined

ONE, TWO = np.array([1.0, 2.0, 3.0, 4.0]), np.array([10.0, 20.0, 30.0, 40.0])


def line_of(figure: Any, number: int = 0) -> Any:
    return figure.axes[0].lines[number].get_data()


def labels_of(figure: Any) -> list[str]:
    return [text.get_text() for text in figure.legends[0].get_texts()]


def test_a_curve_is_of_the_values_of_all_seeds() -> None:
    figure = distribution_figure({"s": [ONE, np.array([5.0])]}, "x", "y")
    x, y = line_of(figure)
    assert x == pytest.approx(np.array([1.0, 1.8, 2.6, 3.4, 4.2, 5.0]))
    assert y == pytest.approx(np.array([0.0, 0.2, 0.4, 0.6, 0.8, 1.0]))


def test_values_of_zero_lie_at_the_left_edge_and_count() -> None:
    x, y = line_of(distribution_figure({"s": [np.array([0.0, 0.0, 2.0, 4.0])]}, "x", "y"))
    assert x.min() == 2.0
    assert y[x <= 2.0].max() >= 0.5
    assert distribution_figure({"s": [np.zeros(3)], "t": [np.zeros(0)]}, "x", "y") is None
    assert distribution_figure({}, "x", "y") is None


def test_a_tail_is_the_share_above_each_value() -> None:
    x, y = line_of(distribution_figure({"s": [np.arange(1.0, 101.0)]}, "x", "y", tail=True))
    assert (y[0], x[0]) == (1.0, 1.0)
    assert y[-1] == pytest.approx(0.01)
    assert x[-1] == pytest.approx(99.01)
    at = np.interp(50.5, x, y)
    assert at == pytest.approx(0.5, abs=0.02)


def edges_of(figure: Any) -> Any:
    """Return the least and the greatest x of a band at the share of a half."""
    (band,) = figure.axes[0].collections
    points = band.get_paths()[0].vertices
    half = points[np.isclose(points[:, 1], 0.5), 0]
    return half.min(), half.max()


def test_bands_by_hand() -> None:
    # Medians of the seeds are 2.5 and 4.5: a mean of 3.5, and 3.5 ± 12.7062 * sqrt(2) / sqrt(2) for two seeds.
    seeds = [ONE, ONE + 2.0]
    ranged = distribution_figure({"s": seeds}, "x", "y", band="range")
    x, y = line_of(ranged)
    assert np.interp(0.5, y, x) == pytest.approx(3.5)
    assert edges_of(ranged) == pytest.approx((2.5, 4.5))
    low, high = edges_of(distribution_figure({"s": seeds}, "x", "y", band="interval"))
    assert high == pytest.approx(3.5 + 12.7062)
    assert low == 1.0  # not below the least value: a logarithmic axis has no zero


def test_one_seed_has_a_band_of_no_width() -> None:
    assert edges_of(distribution_figure({"s": [ONE]}, "x", "y", band="interval")) == pytest.approx((2.5, 2.5))


def test_curves_that_coincide_are_one_line_with_all_names() -> None:
    figure = distribution_figure({"a": [ONE], "b": [TWO], "c": [ONE * 1.001]}, "x", "y")
    assert labels_of(figure) == ["a, c (coincide)", "b"]
    apart = distribution_figure({"a": [ONE], "b": [TWO], "c": [ONE * 1.1]}, "x", "y")
    assert labels_of(apart) == ["a", "b", "c"]


def test_coinciding_is_with_the_first_of_a_group() -> None:
    curves = {"a": np.array([100.0]), "b": np.array([100.4]), "c": np.array([100.8])}
    assert coinciding(curves) == [["a", "b"], ["c"]]
    assert joined(["a"]) == "a"


def test_values_that_are_missing_are_counted() -> None:
    some = np.array([1.0, np.nan, 3.0])
    figure = distribution_figure({"a": [some, ONE], "b": [ONE]}, "x", "share of jobs")
    assert figure is not None
    assert figure.axes[0].get_ylabel() == "share of jobs (1 of 11 did not end)"
    assert np.isfinite(line_of(figure)[0]).all()
    assert distribution_figure({"a": [np.full(2, np.nan)]}, "x", "y") is None
