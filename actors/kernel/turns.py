"""Two loops over one queue, which take turns: one of schedulers and nodes, and one of the network that nodes share.

Each handles its own events, and hands one of the other to that: so any scheduler goes with any network, and each is
compiled once.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from actors.kernel.compiled import direct, inlined
from actors.kernel.cost import HasCost, hand_over, take, take_handed
from actors.kernel.queue import HANDED, RUNNING

MOST_TURNS = 20_000  # after which the host gets its turn: tenths of a second


@inlined
def take_of_network(w: HasCost, until: int) -> int:
    """Take the first event before `until`, as `take` does for schedulers; HANDED: it is one of theirs."""
    if w.queue.now.handed[0] == 1:
        take_handed(w)
        return RUNNING
    why = take(w, until)
    if why == HANDED:
        take_handed(w)
        return RUNNING
    if why == RUNNING:
        hand_over(w, np.int64(0))
        return HANDED
    return why


class Turns:
    """Both loops, as one; its state is a pair of theirs, and both have the same world.

    Attributes:
        loops: that of schedulers and nodes, and that of the network.
    """

    def __init__(self, schedulers: Callable[..., int], network: Callable[..., int]):
        self.loops = (schedulers, network)

    def __call__(self, world: Any, state: Any, until: int, most: int) -> int:
        """Handle events before `until`, at most `most` of them between two turns; return the stop reason."""
        return take_turns(self.loops, world, state, until, most)

    def direct(self, world: Any, state: Any, until: int, most: int) -> Callable[..., int]:
        """Compile both, or load them; return them as one, as `actors.kernel.compiled.direct` does."""
        loops = tuple(
            direct(loop, world, own, until, most) for loop, own in zip(self.loops, state, strict=True)
        )
        return lambda *given: take_turns(loops, *given)


def take_turns(loops: tuple[Callable[..., int], ...], world: Any, state: Any, until: int, most: int) -> int:
    """Call the loop whose turn it is, and then the other, until one of them stops for another reason."""
    turn = int(world.queue.now.turn[0])
    for _ in range(MOST_TURNS):
        why = loops[turn](world, state[turn], until, most)
        if why != HANDED:
            return why
        turn = 1 - turn
    return int(RUNNING)
