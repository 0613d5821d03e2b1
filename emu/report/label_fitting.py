"""Texts of a figure that has been laid out: long ones are wrapped, and tick labels that overlap are thinned."""

from __future__ import annotations

import itertools
from textwrap import fill
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LEAST_CHARACTERS = 8
"""Of a line."""
GAP = 3.0
"""Pixels between two labels, at the least."""
SLANT = 30.0
"""Degrees of labels that are words and have no room side by side."""


def fit_texts(figure: Figure) -> bool:
    """Fit titles, labels and ticks of a figure into their room, and return whether any had to change."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    renderer = FigureCanvasAgg(figure).get_renderer()
    width, height = figure.bbox.width, figure.bbox.height
    changed = False
    for axes in figure.axes:
        spec, box = axes.get_subplotspec(), axes.get_window_extent(renderer)
        if spec is None or not axes.axison:
            continue
        rows, columns = spec.get_gridspec().nrows, spec.get_gridspec().ncols
        across = min(width / columns - 2 * GAP if columns > 1 else width, *_twice(box.x0 + box.x1, 2 * width))
        upward = min(1.1 * box.height if rows > 1 else height, *_twice(box.y0 + box.y1, 2 * height))
        fitted = [
            _wrap(axes.title, axes.title.get_window_extent(renderer).width, across),
            _wrap(axes.xaxis.label, axes.xaxis.label.get_window_extent(renderer).width, across),
            _wrap(axes.yaxis.label, axes.yaxis.label.get_window_extent(renderer).height, upward),
            _thin(axes.xaxis, renderer, 0),
            _thin(axes.yaxis, renderer, 1),
        ]
        changed |= any(fitted)
    return changed


def _twice(sum_of_edges: float, most: float) -> tuple[float, float]:
    """Return the sizes up to which a text centred between two edges stays in a figure."""
    return sum_of_edges, most - sum_of_edges


def _wrap(text: Any, size: float, room: float) -> bool:
    """Break a text into lines where it is longer than its room."""
    if size <= room:
        return False
    lines = text.get_text().split("\n")
    most = max(int(max(map(len, lines)) * room / size) - 1, LEAST_CHARACTERS)
    text.set_text("\n".join(fill(line, most, break_long_words=False) for line in lines))
    return True


def _thin(axis: Any, renderer: Any, side: int) -> bool:
    """Give an axis fewer labels where they overlap; words below an axis are slanted instead."""
    from matplotlib.ticker import FixedLocator

    axis.get_tightbbox(renderer)  # makes the ticks
    low, high = sorted(axis.get_view_interval())
    places, labels = axis.get_majorticklocs(), axis.get_ticklabels()
    if len(labels) < len(places):  # hidden, as another panel has them
        return False
    shown = [
        (float(place), label.get_text(), label.get_window_extent(renderer))
        for place, label in zip(places, labels, strict=True)
        if low <= place <= high and label.get_text() and label.get_visible()
    ]
    shown.sort(key=lambda one: one[2].bounds[side])
    step = 1
    while step < len(shown) and _overlap([box for _, _, box in shown[::step]], side):
        step += 1
    if step == 1:
        return False
    if side == 0 and any(text[0].isalpha() for _, text, _ in shown):
        axis.set_tick_params(rotation=SLANT)
        for label in axis.get_ticklabels():
            label.set(ha="right", rotation_mode="anchor")
        return True
    axis.set_major_locator(FixedLocator([place for place, _, _ in shown[::step]]))
    return True


def _overlap(boxes: list[Any], side: int) -> bool:
    """Return whether any of the boxes, in order, is too near to the next."""
    pairs = itertools.pairwise(boxes)
    return any(b.min[side] < a.max[side] + (GAP if side == 0 else 0.0) for a, b in pairs)
