"""Demands of tasks, drawn by stage: what reads input needs the disk, what follows a shuffle the network.

No public trace has demands of all six resources. The medians below are our own, made so that no resource is always
the scarcest: a task of median demands takes a twentieth of a machine of 20 cores, as in the evaluation of Carbyne
(OSDI 2016, section 5.1: "20 cores, 128 GB of memory, 128 GB SSD, a 10 Gbps NIC"; 2,000 tasks run in parallel on 100
machines). How far stages differ is of the order that Tetris measured (SIGCOMM 2014, section 2.2: demands of tasks
differ by an order of magnitude and more, and those of different resources hardly go together): demands of a stage
are independent and log-normal.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from workloads.generators.draws import check_share
from workloads.jobs import Float64Array

# Medians: of stages that read input, of others, and what is added where nothing follows (the job's output).
_SHARES = {
    "memory": (0.04, 0.06, 0.0),
    "disk_in": (0.06, 0.01, 0.0),
    "disk_out": (0.02, 0.02, 0.04),
    "network_in": (0.005, 0.05, 0.0),
    "network_out": (0.04, 0.03, -0.02),
}
_SIGMA = 0.8  # of the logarithm of shares at diversity 1; of cores half
_LEAST, _MOST = 0.001, 0.5
_LEAST_CORES, _MOST_CORES, _STEPS = 0.25, 8.0, 4


def draw_demands(
    rng: np.random.Generator,
    source: npt.NDArray[np.bool_],
    sink: npt.NDArray[np.bool_],
    diversity: float = 1.0,
) -> dict[str, Float64Array]:
    """Return what each task of S stages needs of all six resources, by name: arrays of shape (S,).

    Cores are quarters from 0.25 to 8 with median 1; the others are shares of a machine from 0.001 to 0.5.

    Parameters
    ----------
    source, sink : ndarray of bool, shape (S,)
        Whether the stage has no parents, and whether it has no children.
    diversity : float
        How far demands differ, from 0 (stages of one kind have the medians) to 1.

    Raises
    ------
    InputError
        The diversity is not in 0..1.
    """
    check_share("diversity", diversity)
    spread = np.exp(diversity * _SIGMA * rng.standard_normal((len(_SHARES), len(source))))
    cores = np.exp(diversity * _SIGMA / 2 * rng.standard_normal(len(source)))
    quarters = np.clip(np.rint(cores * _STEPS), _LEAST_CORES * _STEPS, _MOST_CORES * _STEPS) / _STEPS
    medians = {
        name: np.where(source, first, later) + np.where(sink, last, 0.0)
        for name, (first, later, last) in _SHARES.items()
    }
    shares = {
        name: np.round(np.clip(median * of, _LEAST, _MOST), 6)
        for (name, median), of in zip(medians.items(), spread, strict=True)
    }
    return {"cpu_cores": quarters, **shares}
