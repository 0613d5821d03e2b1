"""The report of a search for a size: its answer, the numbers tried, and each target against the number of nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from clusters.machine_types import machines_text
from emu import disk
from emu.directories import run_directory as rd
from emu.directories.names import SUMMARY
from emu.report.drawing import COLOURS, SIZE, add_legend, figure_style, new_figure
from emu.report.page import figure_of, fill, sentence, table_of
from emu.report.scales import fit_places, fit_times, mark_log
from emu.results.text_tables import number
from emu.sweeps.sizing import Lacking, Probe, Size, answer_of, remarks_of
from emu.sweeps.targets import MET, NOT_MET, SPANS, Target, read_targets, verdict_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_LOOK = {
    MET: {"marker": "o", "color": COLOURS[0]},
    SPANS: {"marker": "D", "color": COLOURS[4]},
    NOT_MET: {"marker": "X", "color": COLOURS[1]},
}


def render_probe(probe: Probe, targets: Sequence[Target]) -> str:
    """Return one probe as a line."""
    if probe.lacking.jobs:
        return f"{probe.size}: {probe.verdict} ({probe.lacking})"
    cells = [f"{t}: {t.shown(*v)}" for t, v in zip(targets, probe.values, strict=True)]
    return f"{probe.size}: {probe.verdict} ({'; '.join(cells)})"


class Tried(NamedTuple):
    """The measured figure of a target on a size: its mean over the seeds, and 95 % half-width."""

    at: float  # nodes, or of mixes of machine types the price
    mean: float
    half: float
    verdict: str


def runs_of(folder: Path) -> list[Path]:
    """Return the runs on the number of nodes that a search found, or if it found none, on the most that it tried.

    There are none where some job cannot run on these.
    """
    summary = _summary(folder)
    at = folder / _folder(summary)
    runs = [at / f"seed={seed}" for seed in summary["seeds"]]
    return runs if at.exists() else []


def _folder(found: Mapping[str, Any]) -> str:
    """Return the folder of the runs of an answer, or of a size that was tried; where it is not stated, of its nodes."""
    nodes = found["nodes"] if found["nodes"] is not None else found["fails"]
    return str(found.get("runs", Size(nodes).folder))


def size_sections(folder: Path) -> list[str]:
    """Return the sections of a page about a search for a size."""
    summary = _summary(folder)
    targets = read_targets(summary["targets"])
    probes = summary["probes"]
    priced = all("price_per_hour" in probe for probe in probes)
    mixed = priced and any("machines" in probe for probe in probes)
    head = ["nodes", *["machines", "price an hour"][2 * (not mixed) :], *map(str, targets), "verdict"]
    cells = []
    for probe in probes:
        pairs = [_pair(value) for value in probe["values"]]
        shown = [t.shown(*pair) for t, pair in zip(targets, pairs, strict=True)]
        verdict = verdict_of(targets, pairs)
        if "cannot_run" in probe:
            verdict += f": {Lacking(probe['cannot_run'], probe['of_jobs'])}"
        own = (
            [machines_text(probe.get("machines", {}), True), number(probe["price_per_hour"])] if mixed else []
        )
        cells.append([f"{probe['nodes']:,}", *own, *shown, verdict])
    by_price = summary.get("is_mix", False)
    along = "price_per_hour" if by_price else "nodes"
    tried = {target: _tried(probes, i, target, along) for i, target in enumerate(targets)}
    against = "price of mixes of machine types" if by_price else "number of nodes"
    caption = f"Figures of the targets against the {against}, {len(probes)} tried; dashed: the bounds"
    answer = None if summary["nodes"] is None else summary.get(along)
    if len(summary["seeds"]) > 1:
        caption += "; bars are 95 % confidence intervals over the seeds"
    return [
        fill(
            "size.html",
            answer=sentence(answer_of(summary["nodes"], summary["note"])),
            sure=_how_sure(summary, targets),
            **table_of(head, cells, "Sizes that were tried"),
            figure=figure_of(
                targets_figure(tried, answer, "price an hour" if by_price else "nodes"), caption
            ),
        )
    ]


def _how_sure(summary: Mapping[str, Any], targets: Sequence[Target]) -> list[str]:
    """Return sentences about what the seeds, and the numbers of nodes that were tried, leave open."""
    found = [f"{sentence(words)}." for words in remarks_of(summary)]
    nodes, fails = summary["nodes"], summary["fails"]
    if len(summary["seeds"]) == 1:
        found.append(
            f"Seed {summary['seeds'][0]} alone: no figure has an interval. --seeds 5 gives intervals."
        )
    ends = (_folder(summary), *([] if fails is None else [Size(fails).folder]))
    for probe in summary["probes"]:
        if len(summary["seeds"]) > 1 and _folder(probe) in ends and "cannot_run" not in probe:
            shown = (
                f"{t.figure} is {t.shown(*_pair(v))}" for t, v in zip(targets, probe["values"], strict=True)
            )
            found.append(f"On {probe['nodes']:,} nodes {', '.join(shown)}.")
    if nodes is not None and fails is not None and nodes - fails > 1:
        found.append(f"Between {fails:,} and {nodes:,} nodes nothing was tried: the least may be fewer.")
    return found


def targets_figure(
    tried: Mapping[Target, Sequence[Tried]], answer: float | None, along: str = "nodes"
) -> Figure:
    """Return a panel for each target: what was measured against nodes or price, met or not, and the bound."""
    with figure_style():
        figure, axes = new_figure(SIZE[0], 2.9 * len(tried) + 0.6, rows=len(tried))
        found = {point.verdict for points in tried.values() for point in points} | {MET, NOT_MET}
        for place, (target, points) in zip(np.atleast_1d(axes), tried.items(), strict=True):
            _draw(place, target, points, answer, [word for word in _LOOK if word in found])
        np.atleast_1d(axes)[-1].set_xlabel(along)
        add_legend(figure, np.atleast_1d(axes)[0])
        return figure


def _draw(
    place: Any, target: Target, points: Sequence[Tried], answer: float | None, verdicts: Sequence[str]
) -> None:
    fit_places(place, [p.at for p in points], True)
    if place.get_xscale() == "log":
        mark_log(place.xaxis, points[0].at, points[-1].at)
    known = [p for p in points if np.isfinite(p.mean)]
    line = {"color": "#999999", "linewidth": 1.0, "zorder": 1, "label": "measured"}
    place.plot([p.at for p in known], [p.mean for p in known], **line)
    for word in verdicts:
        of_word = [p for p in known if p.verdict == word]
        x, y, half = ([getattr(p, name) for p in of_word] for name in ("at", "mean", "half"))
        low = [min(h, m * (1 - 1e-9)) for m, h in zip(y, half, strict=True)]  # a logarithmic axis has no zero
        bars = [low, half] if any(half) else None
        place.errorbar(
            x, y, bars, label=word, linestyle="none", markersize=6, capsize=2.5, zorder=3, **_LOOK[word]
        )
    place.axhline(target.bound, color="#000000", linestyle="--", linewidth=1.2, label="bound")
    if answer is not None:
        place.axvline(answer, color=COLOURS[2], linestyle=":", linewidth=1.4, label="answer")
    reach = [
        edge for p in known for edge in (max(p.mean - p.half, p.mean / 3), min(p.mean + p.half, p.mean * 3))
    ]
    fit_times(place, min([target.bound, *reach]), max([target.bound, *reach]))
    place.set_title(str(target), parse_math=False)
    place.set_ylabel("seconds" if target.measure.is_time else target.measure.metric, parse_math=False)


def _tried(probes: Sequence[Mapping[str, Any]], index: int, target: Target, along: str) -> list[Tried]:
    found = []
    for probe in sorted(probes, key=lambda probe: float(probe[along])):
        mean, half = _pair(probe["values"][index])
        found.append(Tried(probe[along], mean, np.nan_to_num(half), target.verdict(mean, half)))
    return found


def _pair(value: Mapping[str, float | None]) -> tuple[float, float]:
    mean, half = (np.nan if value[name] is None else float(value[name] or 0) for name in ("mean", "half_95"))
    return mean, half


def _summary(folder: Path) -> dict[str, Any]:
    rd.check_results(folder, rd.read_manifest(folder))
    summary: dict[str, Any] = disk.read_json(folder / SUMMARY, f"has no {SUMMARY}")
    return summary
