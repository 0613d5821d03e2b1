"""Each kind of figure in the widths of papers: no text overlaps another or is cut off, and matplotlib warns of nothing.

With EMU_SHEET=FOLDER the pictures, and a sheet of all, are kept there, to be looked at.
"""

from __future__ import annotations

import itertools
import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import emu
from emu import plots
from emu.cli.parser import KINDS, WIDTHS
from emu.report.drawing import MARKERS, to_png
from emu.results.result import Result
from tests.actors.dag_settings import mixed_dags

pytestmark = pytest.mark.drawn

QUICK: dict[str, Any] = {"in_process": True, "output_tasks": True}
JOBS = ["sparrow", "hawk", "eagle", "phoenix", "random", "yacc-d", "dist-lwl", "central-lwl"]
"""As many as there are colours."""
LEAST_POINTS = 6.5
TOUCH = 1.0
"""Pixels by which boxes may overlap: they are larger than the letters."""


def of_jobs(out: Path) -> dict[str, Any]:
    """Return figures of jobs."""
    both = emu.compare(JOBS[:6], "yahoo", 60, workload_options={"jobs": 40}, seeds=2, **QUICK, out=out)
    few = ["hawk", "eagle"]
    drawn: dict[str, Any] = {
        "cdf": lambda look: plots.cdf(both, group="short", look=look),
        "cdf-band": lambda look: plots.cdf(both, schedulers=few, band="interval", look=look),
        "ccdf": lambda look: plots.ccdf(both, "slowdown", schedulers=few, look=look),
        "bars": lambda look: plots.bars(both, look=look),
        "bars-few": lambda look: plots.bars(both, "wait", schedulers=few, look=look),
        "timeline": lambda look: plots.timeline(both, look=look),
        "timeline-one": lambda look: plots.timeline(both, schedulers=["hawk"], look=look),
        "gantt": lambda look: plots.gantt(both.results["hawk"][0], look=look),
        "gantt-all": lambda look: plots.gantt(both.results["hawk"][0], nodes=range(60), look=look),
        "gantt-job": lambda look: plots.gantt(both.results["hawk"][0], job=3, look=look),
    }
    return drawn


def of_grid(out: Path) -> dict[str, Any]:
    """Return figures of a sweep."""
    grid: list[Result] = [
        emu.run(name, "yahoo", nodes, seed=seed, workload_options={"jobs": 30}, in_process=True)
        for nodes in (100, 110, 120, 150, 200)
        for name in ("sparrow", "hawk", "eagle")
        for seed in (1, 2)
    ]
    return {
        "sweep": lambda look: plots.sweep(grid, look=look),
        "sweep-one": lambda look: plots.sweep(grid, groups=["short"], statistics=["p99"], look=look),
        "ratio": lambda look: plots.ratio(grid, groups=["short", "long"], look=look),
    }


def of_dags(out: Path) -> dict[str, Any]:
    """Return figures of DAG jobs."""
    both = emu.compare(["carbyne", "drf", "tetris"], mixed_dags(), 2, **QUICK, out=out)
    names = ("improvement", "fairness", "resources-drf", "running", "gantt-job-drf", "gantt-drf")
    return {f"dags-{name}": lambda look, name=name: plots.named(both, name, look=look) for name in names}


def of_coflows(out: Path) -> dict[str, Any]:
    """Return figures of coflows, some with deadlines."""
    names = ["philae", "aalo", "sebf"]
    both = emu.compare(names, "synthetic-coflows", workload_options={"coflows": 60}, **QUICK, out=out)
    late = emu.compare(["dcoflow", "cs-mha", "edf"], "deadline-coflows", in_process=True, seeds=2)
    named = ("speedup", "speedup-bins", "learning", "estimates-philae")
    return {
        "coflow-bars": lambda look: plots.bars(both, look=look),
        "coflow-gantt": lambda look: plots.gantt(both.results["aalo"][0], look=look),
        "coflow-cdf": lambda look: plots.cdf(both, look=look),
        **{f"coflow-{name}": lambda look, name=name: plots.named(both, name, look=look) for name in named},
        **{
            f"late-{name}": lambda look, name=name: plots.named(late, name, look=look)
            for name in ("deadlines", "gains")
        },
    }


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Return where pictures go; in the end a sheet of all is drawn there."""
    place = Path(os.environ.get("EMU_SHEET") or tmp_path_factory.mktemp("sheet"))
    place.mkdir(parents=True, exist_ok=True)
    yield place
    draw_sheet(place)


@pytest.mark.slow("draws every figure there is")
@pytest.mark.parametrize("make", [of_jobs, of_grid, of_dags, of_coflows])
def test_figures_are_fit_to_print(make: Any, folder: Path, tmp_path: Path) -> None:
    drawn = make(tmp_path / "runs")
    wrong = []
    for name, draw in drawn.items():
        for of, width in WIDTHS.items():
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                figure = draw(plots.Look(width=width))
                (folder / f"{name}-{of}.png").write_bytes(to_png(figure))
            wrong += [f"{name}, {of}: {fault}" for fault in faults(figure)]
    assert not wrong, "\n".join(wrong)


def test_all_kinds_are_on_the_sheet() -> None:
    text = Path(__file__).read_text(encoding="utf-8")
    assert [kind for kind in KINDS if f"plots.{kind}(" not in text] == []


def test_schedulers_have_one_look_in_all_figures_and_differ_without_colours() -> None:
    both = emu.compare(JOBS, "yahoo", 30, workload_options={"jobs": 12}, in_process=True)
    lines = plots.timeline(both).axes[0].lines  # curves that coincide are one line
    assert len({(line.get_linestyle(), line.get_marker()) for line in lines}) == len(lines) > 4
    markers = [line.get_marker() for line in lines]
    assert markers == [marker for marker in MARKERS if marker in markers]
    hatches = [
        of.patches[0].get_hatch() for of in plots.bars(both).axes[0].containers if hasattr(of, "patches")
    ]
    assert len(set(hatches)) == len(hatches) == len(JOBS)
    (alone,) = plots.timeline(both, schedulers=["eagle"]).axes[0].lines
    assert [alone.get_color(), alone.get_linestyle()] == [lines[2].get_color(), lines[2].get_linestyle()]
    bars = plots.bars(both, schedulers=["eagle"]).axes[0].patches
    assert bars[0].get_hatch() == hatches[2]


def faults(figure: Any) -> list[str]:
    """Return what is wrong with the texts of a figure that was drawn."""
    figure.draw_without_rendering()  # places are of the dots of this drawing, and the picture had others
    renderer = figure.canvas.get_renderer()
    texts = [text for text in texts_of(figure) if text.get_text().strip() and text.get_visible()]
    boxes = [(text.get_text(), text.get_window_extent(renderer)) for text in texts]
    found = [
        f"{text.get_text()!r} has {text.get_fontsize()} pt"
        for text in texts
        if text.get_fontsize() < LEAST_POINTS
    ]
    for text, box in boxes:
        if (
            box.x0 < -TOUCH
            or box.y0 < -TOUCH
            or box.x1 > figure.bbox.x1 + TOUCH
            or box.y1 > figure.bbox.y1 + TOUCH
        ):
            found.append(f"{text!r} is cut off")
    for (text, a), (other, b) in itertools.combinations(boxes, 2):
        across, upward = min(a.x1, b.x1) - max(a.x0, b.x0), min(a.y1, b.y1) - max(a.y0, b.y0)
        if across > TOUCH and upward > TOUCH and not is_slanted(text, other, texts):
            found.append(f"{text!r} overlaps {other!r}")
    for axes in figure.axes:
        box = axes.get_window_extent(renderer)
        if min(box.width, box.height) < 0.5 * figure.dpi:
            found.append(f"a panel has {box.width / figure.dpi:.2f} x {box.height / figure.dpi:.2f} inches")
    return found


def texts_of(figure: Any) -> Iterator[Any]:
    """Yield the texts that a figure shows."""
    for axes in figure.axes:
        yield from (axes.title, axes.xaxis.label, axes.yaxis.label, *axes.texts)
        for axis in (axes.xaxis, axes.yaxis):
            low, high = sorted(axis.get_view_interval())
            for place, tick in zip(axis.get_majorticklocs(), axis.get_major_ticks(), strict=False):
                if low <= place <= high and tick.label1.get_visible():
                    yield tick.label1
        if axes.get_legend() is not None:
            yield from axes.get_legend().get_texts()
    for legend in figure.legends:
        yield from legend.get_texts()


def is_slanted(text: str, other: str, texts: list[Any]) -> bool:
    """Return whether two texts are slanted: their boxes overlap, and they do not."""
    slanted = {one.get_text() for one in texts if one.get_rotation() % 90}
    return text in slanted and other in slanted


def draw_sheet(folder: Path) -> None:
    """Draw all pictures of a folder on one sheet."""
    from matplotlib.figure import Figure
    from matplotlib.image import imread

    paths = sorted(path for path in folder.glob("*.png") if path.name != "sheet.png")
    rows = -(-len(paths) // 6)
    figure = Figure(figsize=(30, 4.5 * rows), layout="constrained")
    for place, path in zip(figure.subplots(rows, 6, squeeze=False).ravel(), paths, strict=False):
        place.imshow(imread(path))
        place.set_title(path.stem)
    for place in figure.axes:
        place.axis("off")
    figure.savefig(folder / "sheet.png", dpi=60)
