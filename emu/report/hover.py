"""What page.js needs of a figure to show values under the pointer and to zoom: its axes, and the lines on them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_SCALES = ("linear", "log")
_POINTS = 72.0
"""Of an inch: the unit of an SVG."""


def name_lines(figure: Figure) -> None:
    """Give axes and lines of a figure the ids under which page.js finds them; before the figure becomes SVG."""
    for number, axes in enumerate(figure.axes):
        axes.set_gid(f"axes-{number}")
        for place, line in enumerate(axes.lines):
            line.set_gid(f"line-{number}-{place}")


def describe_axes(figure: Figure) -> list[dict[str, Any]]:
    """Return what page.js needs of the axes that have lines; after the figure became SVG, which lays it out.

    Returns
    -------
    list of dict
        ``id``; ``box``, its edges in the SVG, left, top, right, bottom; ``x`` and ``y``, from, to and whether
        logarithmic; ``name`` of the x axis; ``font``, points of its text; ``lines``, pairs of id and label, the label
        empty where a legend would have none; ``zooms``, whether it consists of lines alone.
    """
    width, height = (float(size) * _POINTS for size in figure.get_size_inches())
    found = []
    for number, axes in enumerate(figure.axes):
        scales = [axes.get_xscale(), axes.get_yscale()]
        drawn = [
            (f"line-{number}-{place}", _label(line.get_label()))
            for place, line in enumerate(axes.lines)
            if line.get_linestyle() != "None" and np.size(line.get_xdata()) > 1
        ]
        if not drawn or any(scale not in _SCALES for scale in scales):
            continue
        edges = axes.get_position()
        box = (edges.x0 * width, (1 - edges.y1) * height, edges.x1 * width, (1 - edges.y0) * height)
        found.append(
            {
                "id": f"axes-{number}",
                "box": [round(float(edge), 3) for edge in box],
                "x": [*map(float, axes.get_xlim()), scales[0] == "log"],
                "y": [*map(float, axes.get_ylim()), scales[1] == "log"],
                "name": axes.get_xlabel() or figure.axes[-1].get_xlabel(),
                "font": axes.xaxis.label.get_fontsize(),
                "lines": drawn,
                "zooms": not axes.collections and not axes.patches and not axes.texts,
            }
        )
    return found


def _label(text: object) -> str:
    """Return the label of a line as a legend has it."""
    return "" if str(text).startswith("_") else str(text).strip()
