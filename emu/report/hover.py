"""The axes and lines of a figure, from which page.js shows values under the pointer and zooms."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

_SCALES = ("linear", "log")
GOES_ON = "goes-on"
"""The id of a line whose first and last values hold before and after it, as in a distribution."""
_POINTS = 72.0
"""Of an inch: the unit of an SVG."""


def name_lines(figure: Figure) -> None:
    """Give axes and lines of a figure the ids by which page.js finds them; before it is converted to SVG."""
    for number, axes in enumerate(figure.axes):
        axes.set_gid(f"axes-{number}")
        for place, line in enumerate(axes.lines):
            goes_on = str(line.get_gid()).startswith(GOES_ON)
            line.set_gid(f"{GOES_ON if goes_on else 'line'}-{number}-{place}")


def describe_axes(figure: Figure) -> list[dict[str, Any]]:
    """Return what page.js needs of the axes that have lines, after the conversion to SVG, which lays the figure out.

    Returns
    -------
    list of dict
        ``id``; ``box``, its left, top, right and bottom edge in the SVG; ``x`` and ``y``, the limits and whether
        logarithmic; ``name`` of the x axis, ``title`` of the panel; ``font``, points of its text; ``lines``, id, label
        (empty if not in a legend) and whether it goes on (`GOES_ON`); ``zooms``, whether it has only lines without
        markers; ``points``, label and places in the SVG of markers without a line.
    """
    width, height = (float(size) * _POINTS for size in figure.get_size_inches())
    found = []
    for number, axes in enumerate(figure.axes):
        scales = [axes.get_xscale(), axes.get_yscale()]
        drawn = [
            (str(line.get_gid()), _label_of(line, axes), str(line.get_gid()).startswith(GOES_ON))
            for line in axes.lines
            if line.get_linestyle() != "None" and np.size(line.get_xdata()) > 1
        ]
        if not (drawn or _points(axes, height)) or any(scale not in _SCALES for scale in scales):
            continue
        edges = axes.get_position()
        box = (edges.x0 * width, (1 - edges.y1) * height, edges.x1 * width, (1 - edges.y0) * height)
        found.append(
            {
                "id": f"axes-{number}",
                "box": [round(float(edge), 3) for edge in box],
                "x": [*map(float, axes.get_xlim()), scales[0] == "log"],
                "y": [*map(float, axes.get_ylim()), scales[1] == "log"],
                "title": axes.get_title() or " ".join(axes.get_ylabel().split()),
                "name": axes.get_xlabel() or figure.axes[-1].get_xlabel(),
                "font": axes.xaxis.label.get_fontsize(),
                "lines": drawn,
                "points": _points(axes, height),
                "zooms": not (
                    axes.collections or axes.patches or axes.texts or any(map(_is_marked, axes.lines))
                ),
            }
        )
    return found


def _points(axes: Any, height: float) -> list[Any]:
    """Return the label, and the places in the SVG, of each series that has only markers."""
    scale = _POINTS / axes.get_figure().dpi
    found = []
    for line in axes.lines:
        label = _label_of(line, axes)
        places = axes.transData.transform(line.get_xydata()) * scale
        known = np.isfinite(places).all(axis=1)
        if label and line.get_linestyle() == "None" and _is_marked(line) and known.any():
            found.append(
                [label, [[round(float(x), 2), round(height - float(y), 2)] for x, y in places[known]]]
            )
    return found


def _is_marked(line: Line2D) -> bool:
    return line.get_marker() not in ("None", "none", None, "", " ")


def _label_of(line: Line2D, axes: Any) -> str:
    """Return the label of a line in a legend; with error bars it is the label of their container."""
    held = [of for of in axes.containers if any(part is line for part in of.get_children())]
    text = str((held[0] if held and line is held[0][0] else line).get_label())
    return "" if text.startswith("_") else text.strip()
