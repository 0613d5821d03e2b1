"""How many flows of a coflow are sent ahead, so that their sizes tell the size of the coflow (Philae, section 4.2)."""

from typing import Any, NamedTuple

import numpy as np

from actors.kernel.compiled import entry, inlined


class Sampling(NamedTuple):
    """How many pilots a coflow has: a share of its senders or of its flows, at least one, or a number."""

    thin_limit: int  # flows up to which a coflow has no pilots
    of_senders: float  # share
    of_flows: float  # share; one of the two is 0.0, and both are where `number` counts
    number: int


def sampling_of(parameters: dict[str, Any]) -> Sampling:
    """Return the sampling of a scheduler with these parameters; there are no pilots if it does not sample."""
    by, share = parameters.get("pilots", "none"), parameters.get("pilot_share", 0.0)
    return Sampling(
        thin_limit=parameters.get("thin_limit", 0),
        of_senders=share if by == "senders" else 0.0,
        of_flows=share if by == "flows" else 0.0,
        number={"number": parameters.get("pilot_number", 0), "none": 0}.get(by, 1),
    )


@inlined
def count_pilots(sampling: Sampling, flows: int, senders: int) -> int:
    """Return how many pilots a coflow has: 0 if it is thin, and at most all of its flows."""
    if flows <= sampling.thin_limit:
        return np.int64(0)
    shared = np.int64(sampling.of_senders * senders + sampling.of_flows * flows + 1e-9)
    return min(max(shared, sampling.number), flows)


@entry
def fill_pilots(sampling: Sampling, flows: np.ndarray, senders: np.ndarray, pilots: np.ndarray) -> None:
    """Set [C] `pilots` to how many each coflow has."""
    for i in range(pilots.size):
        pilots[i] = count_pilots(sampling, flows[i], senders[i])
