"""What a scheduler of jobs keeps besides: its monitor's table over time."""

from typing import NamedTuple

import numpy as np


class Pressure(NamedTuple):
    """How contended each resource was, whenever the monitor looked; K times, R resources.

    A resource is an attribute of nodes that jobs have constraints on.
    """

    time_ns: np.ndarray  # [K] int64
    names: list[str]  # [R]
    demand: np.ndarray  # [K, R] int64, entries in queues that ask for it
    supply: np.ndarray  # [K, R] float64, nodes that have it; NaN where no job asks for it
    crv: np.ndarray  # [K, R] float64, demand over supply; 0 where no job asks for it
