"""The figure that runs of all families have: their timeline."""

from __future__ import annotations

from typing import TYPE_CHECKING

from emu.columns import numbers
from emu.families.registry import find_family
from emu.report.drawing import COLOURS, add_legend, figure_style, line_look, new_figure, time_scale
from emu.results.result import Result

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def timeline_figure(result: Result) -> Figure | None:
    """Return utilisation and, below it, what waits or runs over virtual time; None if there is nothing."""
    data = {name: numbers(result.timeline, name) for name in result.timeline.column_names}
    if len(data["time_s"]) == 0:
        return None
    share, what, columns = find_family(result.family).timeline_labels
    scale, unit = time_scale(float(data["time_s"][-1]))
    time = data["time_s"] / scale
    with figure_style():
        figure, (upper, lower) = new_figure(6.4, 4.4, rows=2)
        upper.fill_between(time, data["utilisation"], color=COLOURS[0], alpha=0.25, linewidth=0)
        upper.plot(time, data["utilisation"], color=COLOURS[0], linewidth=1.2)
        upper.set_ylim(0.0, 1.05 * max(1.0, float(data["utilisation"].max())))
        upper.set_ylabel(share)
        for number, (label, column) in enumerate(columns.items()):
            lower.plot(time, data[column], label=label, drawstyle="steps-post", **line_look(number))
        lower.set_ylim(bottom=0.0)
        lower.set_ylabel(what)
        lower.set_xlabel(f"virtual time ({unit})")
        add_legend(lower)
        return figure
