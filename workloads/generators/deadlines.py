"""Deadlines and weights of coflows, drawn as the papers on deadlines draw them.

A coflow's deadline is its arrival and a factor times the time that it takes alone (`workloads.isolation`); the factor
is uniform in a range: 1 to 2 in DCoflow [1]_, 1 to 1 + x in Varys [2]_. Weights are of two values, as in the weighted
instances of CoflowLib [3]_: 2 with probability 0.3, else 1, whatever else a coflow is.

References
----------
.. [1] Q.-T. Luu, O. Brun, R. El-Azouzi, F. De Pellegrini, B. J. Prabhu, C. Richier. DCoflow: Deadline-Aware Scheduling
   Algorithm for Coflows in Datacenter Networks. IFIP Networking 2022. arXiv:2205.01229.
.. [2] M. Chowdhury, Y. Zhong, I. Stoica. Efficient Coflow Scheduling with Varys. SIGCOMM 2014.
   doi:10.1145/2619239.2626315
.. [3] github.com/luuquangtrung/CoflowLib.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from workloads.coflows import MAX_BYTES
from workloads.errors import InputError
from workloads.generators.draws import check_positive, check_share
from workloads.jobs import MAX_TIME_S, Float64Array

_NS = 1e9


@dataclass(frozen=True)
class Deadlines:
    """How deadlines are drawn.

    Attributes
    ----------
    least, most : float
        The factor on the time that a coflow takes alone is uniform between them. Below 1 no scheduler can meet it.
    share : float
        So many of the coflows have a deadline, each by chance.

    Raises
    ------
    InputError
        An attribute is out of its range; the field is the attribute's name behind `prefix`.
    """

    least: float = 1.0
    most: float = 2.0
    share: float = 1.0
    prefix: str = ""

    def __post_init__(self) -> None:
        for name in ("least", "most"):
            check_positive(self.prefix + name, getattr(self, name))
        if self.most < self.least:
            raise InputError(
                f"{self.most!r} is below {self.prefix}least, {self.least!r}", field=f"{self.prefix}most"
            )
        check_share(f"{self.prefix}share", self.share)

    def draw(
        self, rng: np.random.Generator, arrival_s: Float64Array, isolated_s: Float64Array
    ) -> Float64Array:
        """Return absolute deadlines (s), NaN for a coflow without one: shape (C,).

        The time to a deadline is rounded up to the nanosecond: a coflow that is alone meets one of factor 1.

        Raises
        ------
        InputError
            A deadline would be later than all times.
        """
        has, place = rng.random((2, len(arrival_s)))
        factor = self.least + place * (self.most - self.least)
        with np.errstate(over="ignore"):
            deadline_s = arrival_s + np.ceil(isolated_s * factor * _NS) / _NS
        deadline_s[has >= self.share] = np.nan
        if not (latest_s := float(np.fmax.reduce(deadline_s, initial=0.0))) <= MAX_TIME_S:
            raise InputError(
                f"makes a deadline at {latest_s:.2g} s; the most is {MAX_TIME_S:.0e} s",
                field=f"{self.prefix}most",
            )
        return deadline_s


def draw_weights(
    rng: np.random.Generator, count: int, heavy_share: float, heavy_weight: float
) -> Float64Array:
    """Return weights: `heavy_weight` with the probability `heavy_share`, else 1.

    Raises
    ------
    InputError
        An option is out of its range.
    """
    check_share("heavy_share", heavy_share)
    check_positive("heavy_weight", heavy_weight)
    if heavy_weight > MAX_BYTES:
        raise InputError(f"{heavy_weight!r} is more than {MAX_BYTES:.0e}", field="heavy_weight")
    return np.where(rng.random(count) < heavy_share, float(heavy_weight), 1.0)
