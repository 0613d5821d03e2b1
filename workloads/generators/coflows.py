"""Coflows drawn from the measured quantiles of the Facebook coflow benchmark, for any number of ports.

The idea is that of the generator of Sincronia [1]_: how many senders, how many receivers (the incast), how much
data and how skewed are distributions, and a coflow is a draw from them. Drawn one by one from the whole trace they
would lose what makes a coflow wide: of its 526 coflows [2]_ 140 are shuffles of several senders and receivers, and
have 99.4 % of the flows. So there are four shapes (`SHAPES`), each with its own quantiles:

1. Coflows get a shape; counts are the trace's, scaled by largest remainder.
2. Senders, receivers, mean flow and skew of the coflows of a shape follow its quantiles level by level: no chance is
   in how many there are of a kind. Which goes with which is drawn, by ranks of normal variables that are correlated
   as measured: shuffles with more receivers have longer flows and more skew.
3. For another mean width the numbers of senders and of receivers are raised to a power, the same for all.
4. Senders and receivers are drawn from the ports, uniformly, no port twice on a side; a port may be on both.
5. All senders send to all receivers. Flows to the same receiver are equal, as in the trace. The logarithm of a
   receiver's flow lies between those of the coflow's shortest and longest as measured; one receiver has the shortest
   and one the longest. Flows are whole bytes.
6. Arrivals have the mean gap at which the drawn bytes load the ports as asked.

The trace's mean flow is a whole megabyte at least: more than half its coflows have flows of just that.

References
----------
.. [1] S. Agarwal, S. Rajakrishnan, A. Narayan, R. Agarwal, D. Shmoys, A. Vahdat. Sincronia: Near-Optimal Network
   Design for Coflows. SIGCOMM 2018. doi:10.1145/3230543.3230569
.. [2] github.com/coflow/coflow-benchmark, FB2010-1Hr-150-0.txt.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from workloads.coflows import MAX_PORTS, CoflowWorkload, make_coflow_workload
from workloads.defaults import DEFAULT_SEED
from workloads.errors import InputError
from workloads.generators.arrivals import Arrivals
from workloads.generators.draws import check_positive, check_whole, generator, offered_load
from workloads.groups import apportion, first_rows, rows_of_groups
from workloads.jobs import Float64Array, Int64Array
from workloads.limits import check_tasks

MAX_COFLOWS = 10_000_000
"""More flows than this are refused: they are held in memory."""
MAX_SKEW = 10.0
MEGABYTE = 1 << 20
LEVELS = np.array([0, 5, 10, 25, 35, 50, 60, 75, 90, 95, 99, 100]) / 100
"""The levels of the quantiles over coflows."""

_ONE = (1.0,) * len(LEVELS)
_DIGITS = 9

Weights = tuple[tuple[float, ...], ...]


class Shape(NamedTuple):
    """Coflows of one shape, as measured.

    Attributes
    ----------
    name : str
    coflows : int
        Of the trace's 526.
    senders, receivers, flow_mb, skew : tuple of float
        Quantiles over coflows at `LEVELS`: ports on each side, mean flow (2**20 bytes), longest over shortest flow.
    weights : tuple of tuples
        A row for each of the four, in this order: how its normal variable is made of independent ones. The correlation
        of two is the product of their rows.
    """

    name: str
    coflows: int
    senders: tuple[float, ...]
    receivers: tuple[float, ...]
    flow_mb: tuple[float, ...]
    skew: tuple[float, ...]
    weights: Weights = ((1, 0, 0, 0), (0, 1, 0, 0), (0, 0, 1, 0), (0, 0, 0, 1))


SHAPES = (
    Shape("one-to-one", 123, _ONE, _ONE, (1, 1, 1, 1, 1, 1, 1, 1, 2, 7, 547.8, 638), _ONE),
    Shape(
        "incast",
        211,
        senders=(2, 2, 2, 3, 3, 7, 7, 14, 27, 28, 68.7, 137),
        receivers=_ONE,
        flow_mb=(1, 1, 1, 1, 1, 1, 1, 2, 46, 61, 136.5, 295),
        skew=_ONE,
        weights=((1, 0, 0, 0), (0, 1, 0, 0), (-0.75, 0, 0.66, 0), (0, 0, 0, 1)),
    ),
    Shape(
        "outcast",
        52,
        senders=_ONE,
        receivers=(11, 18.55, 21.2, 30.75, 33, 36, 38, 44.25, 51.9, 54.45, 58.94, 62),
        flow_mb=(1, 1.13, 1.2, 1.25, 1.3, 1.38, 1.52, 4.12, 7.97, 19.51, 56.75, 86.58),
        skew=(1, 2, 2, 3, 3, 3, 3, 4, 5, 24.31, 1397, 2179),
        weights=((1, 0, 0, 0), (0, 1, 0, 0), (0, -0.1, 0.995, 0), (0, 0.4, 0.45, 0.8)),
    ),
    Shape(
        "shuffle",
        140,
        senders=(2, 3, 4, 8.75, 15, 32, 57.4, 122, 146, 147, 147, 147),
        receivers=(2, 2, 2, 9, 15, 54.5, 70.8, 117, 135.1, 141, 143.6, 145),
        flow_mb=(1, 1, 1, 1, 1.03, 4, 11.93, 25.81, 57.98, 79.31, 274.3, 501.1),
        skew=(1, 1, 1, 1, 1, 2, 2.62, 5.88, 9.63, 14.43, 106.1, 494.4),
        weights=((1, 0, 0, 0), (0.55, 0.835, 0, 0), (0.08, 0.4, 0.91, 0), (0.18, 0.72, 0.45, 0.5)),
    ),
)
"""What was measured on the trace; `weights` so that the drawn ranks correlate as those of the trace."""

# Where the logarithm of a receiver's flow lies from the coflow's shortest, 0, to its longest, 1: means over the trace's
# coflows of 10 receivers and more.
_PLACE_LEVELS = (0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0)
_PLACES = (0.0, 0.02, 0.05, 0.13, 0.28, 0.53, 1.0)


class _Coflows(NamedTuple):
    """The values drawn for each coflow: shape (C,)."""

    senders: Int64Array
    receivers: Int64Array
    mean_flow_bytes: Float64Array
    skew: Float64Array


def synthetic_coflows(
    *,
    coflows: int = 526,
    seed: int = DEFAULT_SEED,
    ports: int = 150,
    load: float = 0.55,
    port_speed_bps: float = 1e9,
    mean_width: float | None = None,
    mean_size_bytes: float | None = None,
    skew: float = 1.0,
    arrivals: str = Arrivals.process,
    burst_ratio: float = Arrivals.burst_ratio,
    burst_jobs: float = Arrivals.burst_jobs,
    period_s: float = Arrivals.period_s,
    amplitude: float = Arrivals.amplitude,
) -> CoflowWorkload:
    """Return coflows like those of the Facebook trace: widths, sizes, skew, at an offered load.

    Without options it is of the trace's size: 526 coflows, 150 ports, and the load that the trace offers to ports of
    1 Gbps.

    Parameters
    ----------
    coflows, seed
        Number of coflows and seed.
    ports : int
        Ports of the switch. A coflow has no more senders, and no more receivers, than there are.
    load : float
        Offered load: bytes over the span of the arrivals times what all ports carry in one direction.
    port_speed_bps : float
        Speed of a port (bit/s) that the load is meant for. The workload does not prescribe it.
    mean_width : float, optional
        Mean number of flows of a coflow, 1 or more; by default as measured, about 1,300 on 150 ports and more.
    mean_size_bytes : float, optional
        Mean bytes of a coflow: all flows are scaled alike. By default flows are as long as measured.
    skew : float
        The power that the longest over the shortest flow of each coflow is raised to: 1 as measured, 0 for equal
        flows, 2 for its square.
    arrivals : str
        ``poisson``, ``bursty`` or ``diurnal``, with `burst_ratio` and `burst_jobs` (coflows here), or `period_s` and
        `amplitude`, as in `workloads.generators.arrivals`.

    Raises
    ------
    InputError
        A parameter is out of its range, or no coflows of that mean width fit on the ports.

    Examples
    --------
    >>> made = synthetic_coflows(coflows=100, ports=20, mean_width=6.0)
    >>> made.num_flows, made.num_ports
    (602, 20)
    """
    check_whole("coflows", coflows, 1, MAX_COFLOWS)
    check_whole("ports", ports, 1, MAX_PORTS)
    for name, value in (("load", load), ("port_speed_bps", port_speed_bps)):
        check_positive(name, value)
    for name, optional in (("mean_width", mean_width), ("mean_size_bytes", mean_size_bytes)):
        if optional is not None:
            check_positive(name, optional)
    if isinstance(skew, bool) or not 0 <= skew <= MAX_SKEW:
        raise InputError(f"{skew!r} is not a power from 0 to {MAX_SKEW:g}", field="skew")
    process = Arrivals(arrivals, burst_ratio, burst_jobs, period_s, amplitude)

    rng = generator(seed)
    drawn = _of_width(_draw(rng, coflows), ports, mean_width)
    receiver_bytes = _flow_bytes(rng, drawn, skew)
    of_receiver = np.repeat(np.arange(coflows), drawn.receivers)
    senders_of_receiver = drawn.senders[of_receiver]
    if mean_size_bytes is not None:
        receiver_bytes *= mean_size_bytes * coflows / float((receiver_bytes * senders_of_receiver).sum())
    receiver_bytes = np.maximum(np.rint(receiver_bytes), 1.0)
    total_bytes = float((receiver_bytes * senders_of_receiver).sum())
    bytes_per_s = ports * port_speed_bps / 8
    arrival_s = np.round(process.times(rng, coflows, total_bytes / coflows / (load * bytes_per_s)), _DIGITS)
    senders, receivers = (_ports(rng, counts, ports) for counts in (drawn.senders, drawn.receivers))
    return make_coflow_workload(
        "synthetic-coflows",
        arrival_s,
        drawn.senders * drawn.receivers,
        senders[rows_of_groups(drawn.senders, of_receiver)],
        np.repeat(receivers, senders_of_receiver),
        np.repeat(receiver_bytes, senders_of_receiver),
        ports,
        metadata={
            "origin": "generator synthetic-coflows",
            "source": "quantiles measured on the Facebook coflow benchmark",
            "parameters": f"coflows={coflows} seed={seed} ports={ports} load={load:g} "
            f"port_speed_bps={port_speed_bps:g} mean_width={_shown(mean_width)} "
            f"mean_size_bytes={_shown(mean_size_bytes)} skew={skew:g} arrivals={process}",
            "offered_load": f"{offered_load(total_bytes / bytes_per_s, float(arrival_s[-1]), 1)} "
            f"on {ports} ports of {port_speed_bps / 1e9:g} Gbps",
        },
    )


def _draw(rng: np.random.Generator, coflows: int) -> _Coflows:
    """Return coflows of all shapes, mixed, as wide and long as measured (steps 1 and 2)."""
    counts = apportion(coflows, [shape.coflows for shape in SHAPES])
    parts = [_draw_shape(rng, shape, int(count)) for shape, count in zip(SHAPES, counts, strict=True)]
    order = rng.permutation(coflows)
    senders, receivers, flow_mb, skew = (np.concatenate(column)[order] for column in zip(*parts, strict=True))
    return _Coflows(_whole(senders), _whole(receivers), flow_mb * MEGABYTE, skew)


def _draw_shape(rng: np.random.Generator, shape: Shape, count: int) -> list[Float64Array]:
    """Return senders, receivers, mean flow and skew of `count` coflows of a shape."""
    independent = [rng.standard_normal(count) for _ in shape.weights]
    made = []
    for quantiles, row in zip(shape[2:6], shape.weights, strict=True):
        normal = sum(weight * part for weight, part in zip(row, independent, strict=True))
        level = (np.argsort(np.argsort(normal)) + 0.5) / max(count, 1)
        made.append(np.exp(np.interp(level, LEVELS, np.log(quantiles))))
    return made


def _of_width(drawn: _Coflows, ports: int, mean_width: float | None) -> _Coflows:
    """Return the coflows with as many senders and receivers as give the mean width (step 3), and fit on the ports."""

    def to_the(power: float) -> tuple[Int64Array, Int64Array, float]:
        sides = [np.minimum(_whole(side.astype(float) ** power), ports) for side in drawn[:2]]
        return sides[0], sides[1], float((sides[0] * sides[1]).mean())

    power, most = 1.0, math.log2(MAX_PORTS)  # 2 becomes as many ports as there can be
    if mean_width is not None:
        reached = to_the(most)[2]
        if not 1 <= mean_width <= reached:
            raise InputError(
                f"{mean_width!r} is not a mean width that {len(drawn.skew):,} coflows on {ports:,} ports can have: "
                f"1 to {reached:,.6g}",
                field="mean_width",
            )
        least = 0.0
        for _ in range(50):
            power = (least + most) / 2
            least, most = (power, most) if to_the(power)[2] < mean_width else (least, power)
        power = most
    senders, receivers, width = to_the(power)
    check_tasks(width * len(senders), "flows", field="coflows" if mean_width is None else "mean_width")
    return drawn._replace(senders=senders, receivers=receivers)


def _flow_bytes(rng: np.random.Generator, drawn: _Coflows, power: float) -> Float64Array:
    """Return the bytes of a flow to each receiver, coflow after coflow (step 5)."""
    first = first_rows(drawn.receivers)
    place = np.interp(rng.random(int(first[-1])), _PLACE_LEVELS, _PLACES)
    several = drawn.receivers > 1
    place[first[:-1]] = 0.0
    place[first[:-1][several] + 1] = 1.0
    ratio = np.exp(place * np.repeat(power * np.log(drawn.skew), drawn.receivers))
    mean = np.add.reduceat(ratio, first[:-1]) / drawn.receivers
    return ratio * np.repeat(drawn.mean_flow_bytes / mean, drawn.receivers)


def _ports(rng: np.random.Generator, counts: Int64Array, ports: int) -> Int64Array:
    """Return distinct ports for each coflow, coflow after coflow (step 4)."""
    return np.concatenate([rng.choice(ports, count, replace=False) for count in counts.tolist()])


def _whole(values: Float64Array) -> Int64Array:
    return np.rint(np.minimum(values, 1e9)).astype(np.int64)


def _shown(value: float | None) -> str:
    return "measured" if value is None else f"{value:g}"
