"""Style and output of figures: equal results give equal bytes of SVG and PNG."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from emu.directories.overwriting import figure_names
from emu.disk import write_bytes, write_text
from emu.report.fonts import missing_glyphs_noted_once, use_fonts
from emu.report.hover import name_lines
from emu.report.label_fitting import fit_texts
from workloads.errors import InputError, printable

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Okabe and Ito's colours, which colour-blind readers can distinguish too; line styles carry the same information.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#F0E442")
STYLES = ("-", "--", "-.", ":")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
"""Markers of lines in figures for papers, which may be printed without colours."""
MARK_EVERY = 0.16
"""Distance between two markers of a line, as a share of the diagonal of its axes."""
SIZE = (6.4, 3.8)
"""Inches of a figure with one panel."""
NARROW = 4.6
STACKED_PANEL = 2.2
"""Inches of the height of each panel where panels are stacked."""
FONT_SIZE = 9.0
"""Points of all text of a figure."""
_IMAGE_DPI = 300
"""Of images in vector files."""
COLUMN_FONT_SIZE = 7.5
"""Points of the text of figures narrower than `NARROW`."""
LEAST_PANEL = 1.6
"""Inches: panels that would be narrower are stacked."""
LEAST_ROW = 1.1
"""Least inches of the height of a row of panels."""
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
    """A figure, the name of its files without extension, and its caption."""

    stem: str
    drawn: Figure
    caption: str
    narrow: Figure | None = None
    """The figure with stacked panels, for narrow screens; None where it has one column."""


class Look(NamedTuple):
    """Options of figures: points of text and inches of size, None for the default of the figure.

    With `stacks`, panels are stacked, `NARROW` inches wide; with `marks`, lines have markers.
    """

    font_size: float | None = None
    width: float | None = None
    height: float | None = None
    stacks: bool = False
    marks: bool = False

    @property
    def points(self) -> float:
        """The size of text, by default smaller in narrow figures."""
        return self.font_size or (COLUMN_FONT_SIZE if self.width and self.width < NARROW else FONT_SIZE)


_LOOK: ContextVar[Look] = ContextVar("look", default=Look())  # noqa: B039 a tuple does not change
_ORDER: ContextVar[tuple[str, ...]] = ContextVar("order", default=())


@contextmanager
def looking(look: Look, order: Sequence[str] = ()) -> Iterator[None]:
    """Draw figures within the context with a look; a scheduler's line style is by its place in `order`."""
    before = _LOOK.set(look), _ORDER.set(tuple(order))
    try:
        yield
    finally:
        _LOOK.reset(before[0])
        _ORDER.reset(before[1])


@contextmanager
def figure_style() -> Iterator[None]:
    """Make, or write, figures within the context in Emu's style."""
    import matplotlib as mpl

    # From matplotlib's own defaults: a matplotlibrc on this machine must not change the figures.
    plain: dict[Any, Any] = {k: v for k, v in mpl.rcParamsDefault.items() if k != "backend"}
    style = plain | _STYLE | {"font.size": _LOOK.get().points}
    with mpl.rc_context(style), missing_glyphs_noted_once():
        yield


def shown(stem: str, caption: str, make: Callable[..., Figure | None], *arguments: Any) -> Iterator[Shown]:
    """Yield the figure that a function draws from arguments, with its form for narrow screens; nothing of None."""
    if (drawn := make(*arguments)) is None:
        return
    grids = [spec.get_gridspec() for axes in drawn.axes if (spec := axes.get_subplotspec()) is not None]
    narrow = None
    if grids and grids[0].ncols > 1:
        with looking(Look(stacks=True)):
            narrow = make(*arguments)
    yield Shown(stem, drawn, caption, narrow)


def new_figure(
    width: float = SIZE[0], height: float = SIZE[1], rows: int = 1, columns: int = 1, *, share_x: bool = True
) -> tuple[Figure, Any]:
    """Return a figure and its axes, one or an array; rows share the x axis, unless `share_x` is false.

    The size in inches is that of the look, if it has one; the height follows from a width alone.
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
    """Label the panels of a grid with equal axes: y at the left edge, x where the ticks have numbers."""
    for place in np.ravel(places):
        spec = place.get_subplotspec()
        if spec.is_first_col():
            place.set_ylabel(y, parse_math=False)
        if spec.is_last_row() or len(place.get_shared_x_axes().get_siblings(place)) == 1:
            place.set_xlabel(x, parse_math=False)


def line_look(index: int) -> dict[str, Any]:
    """Return colour, style and marker of the n-th line; lines with equal colours have different styles."""
    look = {
        "color": COLOURS[index % len(COLOURS)],
        "linestyle": STYLES[(index + index // len(COLOURS)) % len(STYLES)],
        "linewidth": 1.6,
    }
    if _LOOK.get().marks:
        # Lines that coincide show all their markers.
        first = MARK_EVERY * (index % len(MARKERS)) / len(MARKERS)
        look |= {"marker": MARKERS[index % len(MARKERS)], "markersize": 4.0, "markevery": (first, MARK_EVERY)}
    return look


def place_of(name: str, names: Iterable[str]) -> int:
    """Return the place of a scheduler among all of the runs, or those that are drawn, for `line_look`."""
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
        use_fonts(legend.get_texts())
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


def plain_label(name: str) -> str:
    """Return a name as figures show it: printable as in tables, and not hidden."""
    name = printable(name)
    return f" {name}" if name.startswith("_") else name  # matplotlib hides labels that start with _


def time_scale(seconds: float) -> tuple[float, str]:
    """Return the seconds of a unit that suits a time, and the unit."""
    for scale, unit, least in ((86400.0, "days", 3.0), (3600.0, "h", 3.0), (60.0, "min", 10.0)):
        if seconds >= least * scale:
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
    """Return the files of a figure: the path, or without an extension an SVG and a PNG.

    Raises
    ------
    InputError
        The extension is unknown, or the folder does not exist.
    """
    if not path.parent.is_dir():
        raise InputError(f"{path.parent} is not a folder")
    if not path.suffix:
        return [path.with_name(path.name + form) for form in FORMS[:2]]
    if path.suffix.lower() not in FORMS:
        raise InputError(
            f"{path.name} ends in {path.suffix}; figures are {', '.join(FORMS)}, or both of the first two"
        )
    return [path]


def write_figure(figure: Figure, path: Path) -> None:
    """Write a figure in the format of the path's ending."""
    write = {".pdf": to_pdf, ".png": to_png}.get(path.suffix.lower())
    path.write_bytes(to_svg(figure).encode() if write is None else write(figure))


_svg_of: WeakKeyDictionary[Figure, str] = WeakKeyDictionary()


def to_svg(figure: Figure) -> str:
    """Return a figure as an SVG element, without a date; drawn once for a file and a page."""
    if figure not in _svg_of:
        name_lines(figure)
        undated = dict.fromkeys(("Date", "Creator"))
        text = _to_bytes(figure, format="svg", dpi=_IMAGE_DPI, metadata=undated).decode()
        _svg_of[figure] = printable(text[text.index("<svg") :], keep="\n\t")
    return _svg_of[figure]


def to_pdf(figure: Figure) -> bytes:
    """Return a figure as PDF, without a date."""
    undated = dict.fromkeys(("CreationDate", "Creator", "Producer"))
    return _to_bytes(figure, format="pdf", dpi=_IMAGE_DPI, metadata=undated)


def to_png(figure: Figure) -> bytes:
    """Return a figure as PNG."""
    return _to_bytes(figure, format="png", dpi=150, metadata={"Software": None})


def _to_bytes(figure: Figure, **options: Any) -> bytes:
    out = io.BytesIO()
    from matplotlib.text import Text

    with figure_style():
        texts = [text for text in figure.findobj(Text) if isinstance(text, Text)]
        for text in texts:
            text.set_text(printable(text.get_text(), keep="\n"))
        use_fonts(texts)
        _lay_out(figure)
        figure.savefig(out, **options)
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
