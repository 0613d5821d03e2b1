"""Style and output of figures: equal results give equal bytes of SVG and PNG."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from emu.directories.names import figure_names
from emu.disk import write_bytes, write_text
from emu.report.hover import name_lines
from emu.results.tables import number
from workloads.errors import InputError, printable

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Okabe and Ito's colours, which colour-blind readers can distinguish too; line styles carry the same information.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#F0E442")
STYLES = ("-", "--", "-.", ":")
SIZE = (6.4, 3.8)
"""Inches of a figure of one panel."""
NARROW = 4.6
STACKED_PANEL = 2.2
"""Inches of each panel's height where they stand below one another."""
FONT_SIZE = 9.0
"""Points of all text of a figure: headings and labels differ by their place."""
_CDF_POINTS = 512
LEAST_SPAN = 0.1
"""Of a linear axis, as a share of the times on it."""
LEAST_GAP = 0.12
"""Between two ticks with a text each, as a share of the axis."""
CHARACTERS_PER_INCH = 11.0
"""Of a legend, at `FONT_SIZE`."""
MOST_OF_LABEL = 24
"""Characters of a text at a tick."""
LEFT_QUANTILE = 0.002  # a job of a millisecond must not take half of a logarithmic axis
_STYLE: dict[Any, Any] = {
    "svg.hashsalt": "emu",
    "svg.fonttype": "none",
    **dict.fromkeys(
        (
            "axes.titlesize",
            "axes.labelsize",
            "xtick.labelsize",
            "ytick.labelsize",
            "legend.fontsize",
            "figure.titlesize",
            "figure.labelsize",
        ),
        "medium",
    ),
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
    narrow: Figure | None = None
    """The same with its panels below one another, for screens of a phone's width; None where they are so already."""


class Look(NamedTuple):
    """What a reader asks of a figure: points of its text, inches of its size; None is what the figure is drawn with.

    Where it `stacks`, panels that would stand side by side stand below one another, `NARROW` inches wide.
    """

    font_size: float = FONT_SIZE
    width: float | None = None
    height: float | None = None
    stacks: bool = False


_LOOK: ContextVar[Look] = ContextVar("look", default=Look())  # noqa: B039 a tuple does not change


@contextmanager
def looking(look: Look) -> Iterator[None]:
    """Draw the figures within as `look` says; those that are made elsewhere are as they were."""
    before = _LOOK.set(look)
    try:
        yield
    finally:
        _LOOK.reset(before)


@contextmanager
def figure_style() -> Iterator[None]:
    """Make, or write, figures within in Emu's style."""
    import matplotlib as mpl

    with mpl.rc_context():
        dict.update(mpl.rcParams, _settings(_LOOK.get().font_size))
        yield


@cache
def _settings(font_size: float) -> dict[Any, Any]:
    """Return matplotlib's settings, checked once: that takes as long as to make an axis."""
    import matplotlib as mpl

    # From matplotlib's own defaults: a matplotlibrc on this machine must not change the figures.
    plain: dict[Any, Any] = {k: v for k, v in mpl.rcParamsDefault.items() if k != "backend"}
    with mpl.rc_context(plain | _STYLE | {"font.size": font_size}):
        return {k: v for k, v in mpl.rcParams.items() if k != "backend"}


def new_figure(
    width: float = SIZE[0], height: float = SIZE[1], rows: int = 1, columns: int = 1, *, share_x: bool = True
) -> tuple[Figure, Any]:
    """Return a figure and its axes, one or an array; rows share the x axis, unless `share_x` is false.

    The size in inches is that of the look, where it has one; of a width alone the height follows.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    look = _LOOK.get()
    size = (look.width or width, look.height or height * (look.width or width) / width)
    stacks = look.stacks and columns > 1
    if stacks:
        size = (NARROW, 0.7 + STACKED_PANEL * rows * columns)
    figure = Figure(figsize=size, layout="constrained")
    vars(figure)["_repr_png_"] = partial(to_png, figure)  # notebooks show figures of pyplot alone
    FigureCanvasAgg(figure)  # no window system is asked, whatever the user's backend is
    if stacks:
        axes = figure.subplots(rows * columns, 1).reshape((rows, columns) if rows > 1 else columns)
    else:
        axes = figure.subplots(rows, columns, sharex=share_x and rows > 1)
    for place in np.ravel(axes):  # ticks are made when a figure is written, which may be without its look
        place.tick_params(labelsize=look.font_size)
    return figure, axes


def line_look(index: int) -> dict[str, Any]:
    """Return colour and style of the n-th line; when colours come again, styles differ."""
    return {
        "color": COLOURS[index % len(COLOURS)],
        "linestyle": STYLES[(index + index // len(COLOURS)) % len(STYLES)],
        "linewidth": 1.6,
    }


def add_legend(figure: Figure, axes: Any) -> None:
    """Put the legend of one of a figure's axes above all of them, where it hides no line."""
    _add_legend(figure, axes, {"loc": "outside upper center"}, float(figure.get_size_inches()[0]))


def add_own_legend(axes: Any) -> None:
    """Put the legend of one panel above it, where panels show different things."""
    figure = axes.get_figure()
    width = float(figure.get_size_inches()[0]) / axes.get_subplotspec().get_gridspec().ncols
    _add_legend(
        axes, axes, {"loc": "lower center", "bbox_to_anchor": (0.5, 1.0), "borderaxespad": 0.2}, width
    )


def _add_legend(parent: Any, axes: Any, place: dict[str, Any], width: float) -> None:
    handles, labels = axes.get_legend_handles_labels()
    if not handles:
        return
    characters = CHARACTERS_PER_INCH * width * FONT_SIZE / _LOOK.get().font_size
    columns = max(1, min(len(labels), int(characters / (8 + max(map(len, labels))))))
    legend = parent.legend(handles, labels, ncols=columns, handlelength=3.0, **place)
    for text in legend.get_texts():
        text.set_parse_math(False)  # a name is a name, whatever signs are in it


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
        axes.yaxis.set_major_formatter(plain_ticks())


def mark_log(axis: Any, low: float, high: float) -> None:
    """Give a logarithmic axis that shows `low` to `high` ticks that are plain numbers, and enough of them."""
    from matplotlib.ticker import LogLocator, NullFormatter

    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if high < 300 * low else (1.0,), numticks=9))
    axis.set_minor_formatter(NullFormatter())
    axis.set_major_formatter(plain_ticks())


def plain_ticks() -> Any:
    """Return the format of ticks that are plain numbers."""
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
    axes.xaxis.set_major_formatter(plain_ticks())
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


_svg_of: WeakKeyDictionary[Figure, str] = WeakKeyDictionary()


def to_svg(figure: Figure) -> str:
    """Return a figure as an SVG element, without a date; a file and a page have the same one."""
    if figure not in _svg_of:
        out = io.StringIO()
        name_lines(figure)
        with figure_style():
            _lay_out(figure)
            figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
        text = out.getvalue()
        _svg_of[figure] = printable(text[text.index("<svg") :], keep="\n\t")
    return _svg_of[figure]


def to_pdf(figure: Figure) -> bytes:
    """Return a figure as PDF, without a date."""
    out = io.BytesIO()
    with figure_style():
        _lay_out(figure)
        figure.savefig(out, format="pdf", metadata={"CreationDate": None, "Creator": None, "Producer": None})
    return out.getvalue()


def to_png(figure: Figure) -> bytes:
    """Return a figure as PNG."""
    out = io.BytesIO()
    with figure_style():
        _lay_out(figure)
        figure.savefig(out, format="png", dpi=150, metadata={"Software": None})
    return out.getvalue()


def _lay_out(figure: Figure) -> None:
    """Lay out a figure for good: all its formats have the same layout.

    matplotlib lays a figure out at each `savefig`, and draws it whole for that, a second time.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    engine = figure.get_layout_engine()
    if engine is None:
        return
    dpi = figure.dpi
    FigureCanvasSVG(figure)  # text is measured without the hints of pixels
    figure.dpi = 72
    engine.execute(figure)
    figure.dpi = dpi
    figure.set_layout_engine(None)
    FigureCanvasAgg(figure)
