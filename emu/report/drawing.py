"""Style and output of figures: equal results give equal bytes of SVG and PNG."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from emu.directories.names import figure_names
from emu.disk import write_bytes, write_text
from emu.results.tables import number
from workloads.errors import InputError, printable

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Okabe and Ito's colours, which colour-blind readers can distinguish too; line styles carry the same information.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#F0E442")
STYLES = ("-", "--", "-.", ":")
_CDF_POINTS = 512
LEAST_SPAN = 0.1
"""Of a linear axis, as a share of the times on it."""
LEAST_GAP = 0.12
"""Between two ticks with a text each, as a share of the axis."""
CHARACTERS_PER_INCH = 11.0
"""Of a legend."""
MOST_OF_LABEL = 24
"""Characters of a text at a tick."""
LEFT_QUANTILE = 0.002  # a job of a millisecond must not take half of a logarithmic axis
_STYLE: dict[Any, Any] = {
    "svg.hashsalt": "emu",
    "svg.fonttype": "none",
    "font.size": 10.0,
    "axes.grid": True,
    "grid.color": "#dddddd",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "legend.frameon": False,
}


class Shown(NamedTuple):
    """A figure, the name of its files without ending, and what it shows."""

    stem: str
    drawn: Figure
    caption: str


def figure_style() -> AbstractContextManager[None]:
    """Return a context in which figures are made and written."""
    import matplotlib as mpl

    # From matplotlib's own defaults: a matplotlibrc on this machine must not change the figures.
    look: dict[Any, Any] = {k: v for k, v in mpl.rcParamsDefault.items() if k != "backend"}
    return mpl.rc_context(look | _STYLE)


def new_figure(width: float, height: float, rows: int = 1, columns: int = 1) -> tuple[Figure, Any]:
    """Return a figure of a size in inches and its axes, one or an array; rows share the x axis."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)  # no window system is asked, whatever the user's backend is
    return figure, figure.subplots(rows, columns, sharex=rows > 1)


def line_look(index: int) -> dict[str, Any]:
    """Return colour and style of the n-th line; when colours come again, styles differ."""
    return {
        "color": COLOURS[index % len(COLOURS)],
        "linestyle": STYLES[(index + index // len(COLOURS)) % len(STYLES)],
        "linewidth": 1.6,
    }


def add_legend(axes: Any) -> None:
    """Put a legend where there is most room."""
    legend = axes.legend(loc="best", handlelength=3.0)
    for text in legend.get_texts():
        text.set_parse_math(False)  # a name is a name, whatever signs are in it


def add_legend_above(figure: Figure, axes: Any) -> None:
    """Put the legend of one of a figure's axes above all of them, where it hides no line."""
    handles, labels = axes.get_legend_handles_labels()
    if not handles:
        return
    characters = CHARACTERS_PER_INCH * float(figure.get_size_inches()[0])
    columns = max(1, min(len(labels), int(characters / (8 + max(map(len, labels))))))
    legend = figure.legend(handles, labels, loc="outside upper center", ncols=columns, handlelength=3.0)
    for text in legend.get_texts():
        text.set_parse_math(False)


def fit_times(axes: Any, low: float, high: float) -> None:
    """Fit the y axis of an axes to times from `low` to `high`.

    It is logarithmic from a decade on. Below that it is linear, and not so narrow that rounding looks like a
    difference: at the least `LEAST_SPAN` of the times themselves. Ticks are plain numbers.
    """
    from matplotlib.ticker import MaxNLocator

    if low > 0 and high >= 10 * low:
        pad = (high / low) ** 0.06
        axes.set_yscale("log")
        axes.set_ylim(low / pad, high * pad)
        mark_log(axes.yaxis, low, high)
    else:
        middle = (low + high) / 2
        half = max(0.55 * (high - low), LEAST_SPAN / 2 * abs(middle), 1e-9)
        axes.set_ylim(middle - half, middle + half)
        axes.yaxis.set_major_locator(MaxNLocator(5))
        axes.yaxis.set_major_formatter(_plain_ticks())


def mark_log(axis: Any, low: float, high: float) -> None:
    """Give a logarithmic axis that shows `low` to `high` ticks that are plain numbers, and enough of them."""
    from matplotlib.ticker import LogLocator, NullFormatter

    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if high < 300 * low else (1.0,)))
    axis.set_minor_formatter(NullFormatter())
    axis.set_major_formatter(_plain_ticks())


def _plain_ticks() -> Any:
    from matplotlib.ticker import FuncFormatter

    return FuncFormatter(lambda value, _: number(value))


def fit_places(axes: Any, values: Sequence[Any], numeric: bool) -> Callable[[Any], float]:
    """Fit the x axis of an axes to the values of what figures are drawn against; returns where each of them stands.

    Numbers stand on a scale, logarithmic where they are spread over it, with a tick each where there is room; all
    else side by side.
    """
    from matplotlib.ticker import FixedLocator, NullFormatter, NullLocator

    if not numeric:
        places = {value: float(i) for i, value in enumerate(values)}
        axes.set_xticks(list(places.values()), short_labels([str(v) for v in values]))
        axes.set_xlim(-0.5, len(values) - 0.5)
        return lambda value: places[value]
    low, high = float(min(values)), float(max(values))
    if 0 < 8 * low <= high:
        axes.set_xscale("log")
        axes.xaxis.set_minor_formatter(NullFormatter())
        on_scale = np.log([float(v) for v in values])
    else:
        on_scale = np.array(values, float)
    gaps = np.diff(np.sort(on_scale))
    if len(values) == 1 or gaps.min() >= LEAST_GAP * (on_scale.max() - on_scale.min()):
        axes.xaxis.set_major_locator(FixedLocator([float(v) for v in values]))
        axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(_plain_ticks())
    if low == high:  # one place stands in the middle
        axes.set_xlim(low - max(abs(low), 1.0) / 2, high + max(abs(high), 1.0) / 2)
    elif axes.get_xscale() == "log":
        axes.set_xlim(low / (high / low) ** 0.06, high * (high / low) ** 0.06)
    else:
        axes.set_xlim(low - 0.06 * (high - low), high + 0.06 * (high - low))
    return float


def short_labels(texts: Sequence[str]) -> list[str]:
    """Return texts for ticks side by side: long ones without the words that all have, and cut.

    Examples
    --------
    >>> short_labels(["draw count=10 ports=10; deadlines most=4", "draw count=20 ports=10; deadlines most=4"])
    ['count=10', 'count=20']
    >>> short_labels(["homogeneous", "phoenix"])
    ['homogeneous', 'phoenix']
    """
    if max(map(len, texts), default=0) <= MOST_OF_LABEL:
        return list(texts)
    words = [text.split() for text in texts]
    common = set.intersection(*map(set, words)) if len(words) > 1 else set()
    own = [" ".join(word for word in of_one if word not in common) for of_one in words]
    if len({*own}) < len(texts) or "" in own:
        own = list(texts)
    return [text if len(text) <= MOST_OF_LABEL else f"{text[: MOST_OF_LABEL - 1]}…" for text in own]


def share_curve(values: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Return the points of the distribution of some values: x, and the share of the values up to it."""
    share = np.linspace(0.0, 1.0, min(_CDF_POINTS, len(values) + 1))
    return np.quantile(values, share), share


def plain_label(name: str) -> str:
    """Return a name as matplotlib shows it."""
    return f" {name}" if name.startswith("_") else name  # matplotlib hides labels that start with _


def time_scale(seconds: float) -> tuple[float, str]:
    """Return the seconds of a unit in which a time reads well, and the unit."""
    for scale, unit, least in (
        (86400.0, "days", 3 * 86400.0),
        (3600.0, "h", 3 * 3600.0),
        (60.0, "min", 600.0),
    ):
        if seconds >= least:
            return scale, unit
    return 1.0, "s"


def save_figure(figure: Figure, stem: Path) -> list[str]:
    """Write ``stem.svg`` and ``stem.png`` and return the two names."""
    assert stem.name.startswith(figure_names()), stem
    svg, png = stem.with_name(stem.name + ".svg"), stem.with_name(stem.name + ".png")
    write_text(svg, to_svg(figure))
    write_bytes(png, to_png(figure))
    return [svg.name, png.name]


FORMS = (".svg", ".png", ".pdf")


def figure_paths(path: Path) -> list[Path]:
    """Return the files that a figure goes to: the path by its ending, or without one an SVG and a PNG.

    Raises
    ------
    InputError
        The path ends in something else, or its folder is not there.
    """
    if not path.parent.is_dir():
        raise InputError(f"{path.parent} is no folder")
    if not path.suffix:
        return [path.with_name(path.name + form) for form in FORMS[:2]]
    if path.suffix.lower() not in FORMS:
        raise InputError(
            f"{path.name} ends in {path.suffix}; figures are {', '.join(FORMS)}, or both of the first two"
        )
    return [path]


def write_figure(figure: Figure, path: Path) -> None:
    """Write a figure in the format of the path's ending."""
    form = path.suffix.lower()
    path.write_bytes(
        to_pdf(figure) if form == ".pdf" else to_png(figure) if form == ".png" else to_svg(figure).encode()
    )


def to_svg(figure: Figure) -> str:
    """Return a figure as an SVG element, without a date."""
    out = io.StringIO()
    with figure_style():
        figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
    text = out.getvalue()
    return printable(text[text.index("<svg") :], keep="\n\t")


def to_pdf(figure: Figure) -> bytes:
    """Return a figure as PDF, without a date."""
    out = io.BytesIO()
    with figure_style():
        figure.savefig(out, format="pdf", metadata={"CreationDate": None, "Creator": None, "Producer": None})
    return out.getvalue()


def to_png(figure: Figure) -> bytes:
    """Return a figure as PNG."""
    out = io.BytesIO()
    with figure_style():
        figure.savefig(out, format="png", dpi=150, metadata={"Software": None})
    return out.getvalue()
