"""Figures are composed and not drawn, which takes most of the time of a small comparison and of its page."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def compose_only(put: Callable[[Any, str, Any], None]) -> None:
    """Write figures as a digest of what is composed; `put` is setattr, or a fixture's."""
    import matplotlib.figure

    from emu.report import drawing

    def savefig(figure: Figure, out: Any, format: str, **options: Any) -> None:
        out.write(f"<svg>{composed(figure)}</svg>".encode())

    put(matplotlib.figure.Figure, "savefig", savefig)
    put(drawing, "_lay_out", lambda figure: None)


def composed(figure: Figure) -> str:
    """Return a digest of the lines and texts of a figure: two that differ in it differ when they are drawn, too."""
    digest = hashlib.sha256(repr([axes.get_legend_handles_labels()[1] for axes in figure.axes]).encode())
    for axes in figure.axes:
        digest.update(repr((axes.get_title(), axes.get_xlabel(), axes.get_ylabel())).encode())
        for line in axes.lines:
            digest.update(np.asarray(line.get_xydata(), float).tobytes())
    return digest.hexdigest()
