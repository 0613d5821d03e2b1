"""``emu plot``: figures of runs, for papers."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from emu import plots
from emu.cli.option_values import read_names, read_numbers
from emu.cli.results_parser import KINDS, PLOT_OPTIONS, WIDTHS
from emu.results.metrics import STATISTICS
from emu.sweeps.report_input import read_runs
from emu.terminal import put
from workloads.errors import InputError
from workloads.values import read_value

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def plot_runs(options: Namespace) -> int:
    """Draw runs, write the figure and print where it is."""
    kind = options.kind
    taken = KINDS[kind].options if kind in KINDS else ("schedulers",)
    for name in PLOT_OPTIONS:
        if getattr(options, name) is not None and name not in taken:
            raise InputError(f"--{name}: {kind} has none; it takes {', '.join(f'--{of}' for of in taken)}")
    out = kind if options.out is None else options.out
    given = read_runs(options.folders)
    figure = _DRAWN[kind](given, options) if kind in _DRAWN else plots.named(given, kind, **_shared(options))
    put("\n".join(str(path) for path in plots.save(figure, out)))
    return 0


def _look(options: Namespace) -> plots.Look:
    """Return the look that the options ask for."""
    width = WIDTHS.get(options.width, options.width)
    given = {"font_size": options.font_size, "width": width, "height": options.height}
    read = {
        name: read_value("number", value, f"--{name.replace('_', '-')}", low=1)
        for name, value in given.items()
        if value is not None
    }
    return plots.Look(**read)


def _shared(options: Namespace) -> dict[str, Any]:
    return {"schedulers": read_names(options.schedulers), "look": _look(options)}


def _metric(options: Namespace) -> str:
    return "" if options.metric in (None, "completion") else str(options.metric)


def _distribution(options: Namespace) -> dict[str, Any]:
    return {
        "metric": _metric(options),
        "group": options.of or "all",
        "band": options.band or "none",
        **_shared(options),
    }


def _figures(options: Namespace, statistics: Sequence[str] | None) -> dict[str, Any]:
    return {
        "metric": _metric(options),
        "groups": read_names(options.of),
        "statistics": read_names(options.statistics) or statistics,
        **_shared(options),
    }


def _sweep(given: list[Any], options: Namespace) -> Figure:
    return plots.sweep(given, along=options.along or "", **_figures(options, None))


def _ratio(given: list[Any], options: Namespace) -> Figure:
    figures = _figures(options, ("p50", "p90"))
    return plots.ratio(given, along=options.along or "", baseline=options.baseline or "", **figures)


def _gantt(given: Any, options: Namespace) -> Figure:
    nodes = read_numbers("--nodes", options.nodes)
    job = None if options.job is None else read_value("integer", options.job, "--job", low=0)
    return plots.gantt(given, nodes=nodes, job=job, look=_look(options))


_DRAWN: dict[str, Callable[[list[Any], Namespace], Figure]] = {
    "cdf": lambda given, options: plots.cdf(given, **_distribution(options)),
    "ccdf": lambda given, options: plots.ccdf(given, **_distribution(options)),
    "bars": lambda given, options: plots.bars(given, **_figures(options, STATISTICS)),
    "timeline": lambda given, options: plots.timeline(given, **_shared(options)),
    "sweep": _sweep,
    "ratio": _ratio,
    "gantt": _gantt,
}
