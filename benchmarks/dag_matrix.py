"""Schedulers of tasks by schedulers of shuffles: which half matters where.

    python -m benchmarks.dag_matrix [--seeds 5] [--workloads query-dags,facebook-mapreduce,swim]
        [--managers drf,srtf,tetris,carbyne] [--networks fair,sebf,aalo,philae] [--gbps 1,10,40] [--loads 0.5,1,2]
        [--figures mean,p95,makespan] [--out matrix] [--picture matrix.svg]

Managers may be schedulers of jobs, too, to which each stage is a job (of which the longest tenth by mean durations of
tasks is long), and a network may be `none`: central against distributed where shuffles contend is

    python -m benchmarks.dag_matrix --workloads query-dags --managers drf,central-lwl,hawk,eagle,sparrow
        --networks fair,none,sebf

Each combination runs with the same seeds; loads are brought about by the number of machines, and are those of work on
the scarcest resource. Printed are, of each workload, load and speed of ports, mean and half-width of the 95 % interval
over the seeds: under each manager, a network's figure over that of `fair`; and under each network, a manager's over
that of `drf`. Below 1 is better. Runs are sweeps, in the folder that is given with --out, whose runs are not run
again. The picture has mean completion times on the first workload: networks over `fair` under the first manager, and
managers over `drf` under the first network, by load and speed of ports.

The workloads: `query-dags` with 25 jobs and `facebook-mapreduce` with 700 jobs and 65,000 tasks, on machines of
Carbyne's evaluation; and two hours of SWIM's sample of Facebook's cluster of 2009 as DAGs, on machines of two slots
(left out where the trace is absent). Their draws follow the seed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np

import emu
from benchmarks.measuring import SHARED, options, show
from emu.report.drawing import figure_style, line_look, new_figure, to_svg
from emu.results.metrics import confidence_95
from emu.results.text_tables import with_error

SWIM = SHARED / "traces" / "real" / "swim" / "FB-2009_samples_24_times_1hr_0.tsv"
WORKLOADS: dict[str, dict[str, Any]] = {
    "query-dags": {"workload_options": {"jobs": 25}, "cluster": "carbyne"},
    "facebook-mapreduce": {"workload_options": {"jobs": 700, "tasks": 65_000}, "cluster": "carbyne"},
    "swim": {"workload_options": {"family": "dags"}, "workload_steps": "slice --end '2 h'", "slots": 2},
}
FIGURES = {"mean": "jobs.all.mean", "p95": "jobs.all.p95", "makespan": "jobs.makespan_s"}
"""To columns of the table of a sweep."""
SIDES = (("network", "fair"), ("manager", "drf"))
"""Of what there are several, and which of them is the base."""


class Cell(NamedTuple):
    """A run: what it is of."""

    workload: str
    load: float
    gbps: float
    manager: str
    network: str
    seed: int


Results = dict[Cell, dict[str, float]]


def run(of: dict[str, list[Any]], out: Path) -> Results:
    """Return the figures of all cells: of each workload a sweep, in its folder below `out`, where it goes on."""
    found: Results = {}
    for workload in of["workload"]:
        axes = {"scheduler": of["manager"], "network.scheduler": of["network"], "load": of["load"]}
        axes |= {"fabric.port_speed": [gbps * 1e9 for gbps in of["gbps"]], "seed": of["seed"]}
        source = str(SWIM) if workload == "swim" else workload
        grid = {"workload": source, "load_by": "nodes", "short_cutoff": "90%", **WORKLOADS[workload]}
        rows = emu.sweep({**grid, "sweep": axes}, out=out / workload, in_process=True).rows
        for row, gbps in product(rows, of["gbps"]):
            if row["port_speed"] in (None, gbps * 1e9):  # it has no effect without a network
                names = (row["scheduler"], row["network.scheduler"])
                cell = Cell(workload, row["load"], gbps, *names, row["seed"])
                found[cell] = {name: row[column] for name, column in FIGURES.items()}
    return found


def ratio(found: Results, cells: Iterable[Cell], base: dict[str, Any], figure: str) -> tuple[float, float]:
    """Return a figure of cells over that of the same cells with other schedulers: mean over seeds, half-width."""
    pairs = [(found[cell][figure], found[cell._replace(**base)][figure]) for cell in cells]
    return confidence_95([own / other for own, other in pairs])


def draw(found: Results, of: dict[str, list[Any]]) -> str:
    """Return a picture as SVG of mean completion times: networks over `fair`, managers over `drf`, a panel a load."""
    with figure_style():
        figure, grid = new_figure(7.2, 4.6, rows=2, columns=len(of["load"]))
        for (row, (side, base)), (column, load) in product(enumerate(SIDES), enumerate(of["load"])):
            axes = np.reshape(grid, (2, -1))[row, column]
            for index, name in enumerate(name for name in of[side] if name != base):
                mean, half = np.array(
                    [mean_ratio(found, of, side, name, load, gbps) for gbps in of["gbps"]]
                ).T
                x = np.arange(mean.size) + 0.08 * (index - 1)
                axes.errorbar(x, mean, half, label=name, capsize=2, **line_look(index))
            axes.axhline(1.0, color="#888888", linewidth=0.8)
            axes.set_ylim(0.7, 1.3)
            axes.set_xticks(range(len(of["gbps"])), [f"{gbps:g}" for gbps in of["gbps"]])
            axes.set_title(f"load {load:g}, {side}s over {base}", fontsize="small")
            if column == len(of["load"]) - 1:
                axes.legend(loc="upper right", fontsize="small")
        figure.supylabel("mean job completion time, ratio", fontsize="medium")
        figure.supxlabel("speed of ports (Gbps)", fontsize="medium")
        return to_svg(figure)


def mean_ratio(
    found: Results, of: dict[str, list[Any]], side: str, name: str, load: float, gbps: float
) -> tuple[float, float]:
    """Return a scheduler's mean completion time over that of its side's base, beside the first of the other side."""
    other, base = ("manager" if side == "network" else "network"), dict(SIDES)[side]
    given: dict[str, Any] = {side: name, other: of[other][0]}
    cells = [Cell(of["workload"][0], load, gbps, "", "", seed)._replace(**given) for seed in of["seed"]]
    return ratio(found, cells, {side: base}, "mean")


def tables(
    found: Results, of: dict[str, list[Any]], figures: list[str]
) -> Iterator[tuple[str, list[list[str]]]]:
    """Yield, for each figure and workload, a table of networks over `fair`, and one of managers over `drf`."""
    for figure, workload in product(figures, of["workload"]):
        for side, base in SIDES:
            other = "manager" if side == "network" else "network"
            names = [name for name in of[side] if name != base]
            if not names:
                continue
            rows = [["load", "Gbps", other, *names]]
            for load, gbps, given in product(of["load"], of["gbps"], of[other]):
                cells = {
                    name: [
                        Cell(workload, load, gbps, "", "", seed)._replace(**{side: name, other: given})
                        for seed in of["seed"]
                    ]
                    for name in names
                }
                texts = [
                    with_error(*ratio(found, cells[name], {side: base}, figure), digits=3) for name in names
                ]
                rows.append([f"{load:g}", f"{gbps:g}", given, *texts])
            yield f"{figure} on {workload}: a {side} over {base}", rows


def main() -> None:
    """Run what is asked for, and print the tables."""
    managers, networks = ("drf", "srtf", "tetris", "carbyne"), ("fair", "sebf", "aalo", "philae")
    given: dict[str, Any] = {"seeds": 5, "workloads": tuple(WORKLOADS), "figures": tuple(FIGURES)}
    given |= {"managers": managers, "networks": networks, "gbps": (1.0, 10.0, 40.0), "loads": (0.5, 1.0, 2.0)}
    asked = options(__doc__, out=Path, picture=Path, **given)
    of: dict[str, list[Any]] = {
        "workload": [w for w in asked.workloads if w != "swim" or SWIM.exists()],
        "load": asked.loads,
        "gbps": asked.gbps,
        "manager": asked.managers,
        "network": asked.networks,
        "seed": list(range(1, asked.seeds + 1)),
    }
    with nullcontext(asked.out) if asked.out else TemporaryDirectory() as out:
        found = run(of, Path(out))
    for title, rows in tables(found, of, asked.figures):
        show(title, rows)
    if asked.picture is not None:
        asked.picture.write_text(draw(found, of), encoding="utf-8")


if __name__ == "__main__":
    main()
