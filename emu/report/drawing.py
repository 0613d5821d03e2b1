"""Style and output of figures: equal results give equal bytes of SVG and PNG."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache, partial
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from emu.directories.overwriting import figure_names
from emu.disk import write_bytes, write_text
from emu.report.hover import name_lines
from emu.report.label_fitting import fit_texts
from workloads.errors import InputError, printable

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Okabe and Ito's colours, which colour-blind readers can distinguish too; line styles carry the same information.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#F0E442")
STYLES = ("-", "--", "-.", ":")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
"""Of lines of figures for papers, which are printed without colours, too."""
MARK_EVERY = 0.16
"""The way between two markers of a line, as a share of the diagonal of its axes."""
SIZE = (6.4, 3.8)
"""Inches of a figure of one panel."""
NARROW = 4.6
STACKED_PANEL = 2.2
"""Inches of each panel's height where they stand below one another."""
FONT_SIZE = 9.0
"""Points of all text of a figure: headings and labels differ by their place."""
_CDF_POINTS = 512
_IMAGE_DPI = 300
"""Of what is an image in a file of shapes."""
COLUMN_FONT_SIZE = 7.5
"""The same of figures that are narrower than `NARROW`."""
LEAST_PANEL = 1.6
"""Inches: panels that would be narrower stand below one another."""
LEAST_ROW = 1.1
"""Inches of a row of panels that has less by the proportions of its figure."""
CHARACTERS_PER_INCH = 11.0
"""Of a legend, at `FONT_SIZE`."""
LEFT_QUANTILE = 0.002  # a job of a millisecond must not take half of a logarithmic axis
_STYLE: dict[Any, Any] = {
    "svg.hashsalt": "emu",
    "svg.fonttype": "none",
    "pdf.fonttype": 42,  # TrueType: publishers refuse fonts of Type 3, matplotlib's own choice
    "ps.fonttype": 42,
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

    Where it `stacks`, panels that would stand side by side stand below one another, `NARROW` inches wide. Where it
    `marks`, lines have markers, too.
    """

    font_size: float | None = None
    width: float | None = None
    height: float | None = None
    stacks: bool = False
    marks: bool = False

    @property
    def points(self) -> float:
        """The size of text: of narrow figures it is smaller by default."""
        return self.font_size or (COLUMN_FONT_SIZE if self.width and self.width < NARROW else FONT_SIZE)


_LOOK: ContextVar[Look] = ContextVar("look", default=Look())  # noqa: B039 a tuple does not change
_ORDER: ContextVar[tuple[str, ...]] = ContextVar("order", default=())


@contextmanager
def looking(look: Look, order: Sequence[str] = ()) -> Iterator[None]:
    """Draw the figures within as `look` says; those that are made elsewhere are as they were.

    A scheduler has the look of its place in `order`, whichever others are drawn beside it.
    """
    before = _LOOK.set(look), _ORDER.set(tuple(order))
    try:
        yield
    finally:
        _LOOK.reset(before[0])
        _ORDER.reset(before[1])


@contextmanager
def figure_style() -> Iterator[None]:
    """Make, or write, figures within in Emu's style."""
    import matplotlib as mpl

    with mpl.rc_context():
        dict.update(mpl.rcParams, _settings(_LOOK.get().points))
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
    wide = look.width or (NARROW if look.stacks and columns > 1 else width)
    across = columns  # panels side by side
    if look.stacks or look.width:
        parts = columns if look.stacks else -(-columns // max(1, int(wide / LEAST_PANEL)))
        across = -(-columns // parts)
    wraps = across < columns
    down = rows * -(-columns // across)
    if wraps:
        own = 0.7 + min(STACKED_PANEL, 0.75 * wide / across + 0.35) * down
    else:
        own = max(height * wide / width, min(height, 0.8 + LEAST_ROW * rows)) if look.width else height
    figure = Figure(figsize=(wide, look.height or own), layout="constrained")
    vars(figure)["_repr_png_"] = partial(to_png, figure)  # notebooks show figures of pyplot alone
    FigureCanvasAgg(figure)  # no window system is asked, whatever the user's backend is
    axes = figure.subplots(down, across, sharex=share_x and rows > 1 and not wraps)
    if wraps:
        axes = _unwrapped(np.reshape(axes, (rows, -1)), columns)
        axes = axes if rows > 1 else axes[0]
    for place in np.ravel(axes):  # ticks are made when a figure is written, which may be without its look
        place.tick_params(labelsize=look.points)
    return figure, axes


def _unwrapped(grid: Any, columns: int) -> Any:
    """Return the first `columns` axes of each row; the others are removed."""
    for place in np.ravel(grid[:, columns:]):
        place.remove()
    return grid[:, :columns]


def label_panels(places: Any, x: str, y: str) -> None:
    """Label the panels of a grid whose axes are of equal things: y at the left edge, x where the ticks have numbers."""
    for place in np.ravel(places):
        spec = place.get_subplotspec()
        if spec.is_first_col():
            place.set_ylabel(y, parse_math=False)
        if spec.is_last_row() or len(place.get_shared_x_axes().get_siblings(place)) == 1:
            place.set_xlabel(x, parse_math=False)


def line_look(index: int) -> dict[str, Any]:
    """Return colour and style of the n-th line, and its marker; when colours come again, styles differ."""
    look = {
        "color": COLOURS[index % len(COLOURS)],
        "linestyle": STYLES[(index + index // len(COLOURS)) % len(STYLES)],
        "linewidth": 1.6,
    }
    if _LOOK.get().marks:
        first = (
            MARK_EVERY * (index % len(MARKERS)) / len(MARKERS)
        )  # lines that coincide show all their markers
        look |= {"marker": MARKERS[index % len(MARKERS)], "markersize": 4.0, "markevery": (first, MARK_EVERY)}
    return look


def place_of(name: str, names: Iterable[str]) -> int:
    """Return the place of a scheduler, by which it has its look: among all of the runs, or those that are drawn."""
    names, order = list(names), _ORDER.get()
    return order.index(name) if set(names) <= set(order) else names.index(name)


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
    look, labels = _LOOK.get(), list(labels)
    characters = CHARACTERS_PER_INCH * width * FONT_SIZE / look.points
    estimate = max(1, min(len(labels), int(characters / (8 + max(map(len, labels))))))
    columns = len(labels) if look.width else estimate
    while True:
        legend = parent.legend(handles, labels, ncols=columns, handlelength=3.0, **place)
        for text in legend.get_texts():
            text.set_parse_math(False)  # a name is a name, whatever signs are in it
        share = legend.get_window_extent().width / (width * legend.get_figure().dpi)
        if share <= 1.0 or columns == 1:
            break
        legend.remove()
        columns = -(-len(labels) // -(-len(labels) // (columns - 1)))  # rows of nearly equal length
    if share > 1.0:
        most = int(max(map(len, labels)) / share) - 8
        for text in legend.get_texts():
            text.set_text(fill(text.get_text(), max(most, 8)))
    figure = legend.get_figure()
    if look.width and not look.height:  # the panels keep their height
        rows = sum(1 + text.get_text().count("\n") for text in legend.get_texts()) / columns
        figure.set_figheight(figure.get_figheight() + max(rows - 1, 0) * 1.4 * look.points / 72)


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
            figure.savefig(out, format="svg", dpi=_IMAGE_DPI, metadata={"Date": None, "Creator": None})
        text = out.getvalue()
        _svg_of[figure] = printable(text[text.index("<svg") :], keep="\n\t")
    return _svg_of[figure]


def to_pdf(figure: Figure) -> bytes:
    """Return a figure as PDF, without a date."""
    out = io.BytesIO()
    with figure_style():
        _lay_out(figure)
        figure.savefig(
            out,
            format="pdf",
            dpi=_IMAGE_DPI,
            metadata={"CreationDate": None, "Creator": None, "Producer": None},
        )
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
    if fit_texts(figure):
        FigureCanvasSVG(figure)
        engine.execute(figure)
    figure.dpi = dpi
    figure.set_layout_engine(None)
    FigureCanvasAgg(figure)
