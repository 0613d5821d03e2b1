"""Figures of pages for narrow screens: panels that stand side by side, below one another."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from emu.report.drawing import Look, Shown, looking

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def shown(stem: str, make: Callable[[], Figure | None], caption: str) -> Iterator[Shown]:
    """Yield what a function draws, and the same for narrow screens where panels stand side by side; or nothing."""
    drawn = make()
    if drawn is None:
        return
    places = [spec for axes in drawn.axes if (spec := axes.get_subplotspec()) is not None]
    columns = places[0].get_gridspec().ncols if places else 1
    narrow = None
    if columns > 1:
        with looking(Look(stacks=True)):
            narrow = make()
    yield Shown(stem, drawn, caption, narrow)
