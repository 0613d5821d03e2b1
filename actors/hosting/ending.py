"""How a run ends early: something that it needs is lost, or the user wants an end."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

PATIENCE_S = 5.0  # after Ctrl-C, for a last checkpoint
ENDING = (signal.SIGTERM, signal.SIGHUP)  # what ends a program: `kill`, a terminal that closes


class Lost(RuntimeError):
    """A process that a run needs is gone: an actor, its node, or Ray as a whole."""


@contextmanager
def interrupts_deferred() -> Iterator[Callable[[], bool]]:
    """Within, Ctrl-C does not break in upon what is under way; yields what says whether it was pressed.

    Pressed again, or when PATIENCE_S have passed, it raises KeyboardInterrupt wherever the program is. So do other
    signals that the program takes for Ctrl-C (`ends_as_ctrl_c`).
    """
    ours = [s for s in (signal.SIGINT, *ENDING) if signal.getsignal(s) is signal.default_int_handler]
    if not ours or threading.current_thread() is not threading.main_thread():
        yield lambda: False  # somebody else's to handle
        return
    pressed = False
    again = threading.Timer(PATIENCE_S, signal.pthread_kill, (threading.main_thread().ident, ours[0]))
    again.daemon = True

    def note(*_: Any) -> None:
        nonlocal pressed
        if pressed:
            raise KeyboardInterrupt
        pressed = True
        again.start()

    for number in ours:
        signal.signal(number, note)
    try:
        yield lambda: pressed
    finally:
        again.cancel()
        for number in ours:
            signal.signal(number, signal.default_int_handler)


@contextmanager
def ends_as_ctrl_c() -> Iterator[None]:
    """Within, the signals that ask a program to end do what Ctrl-C does, unless they are ignored or handled already."""
    in_main = threading.current_thread() is threading.main_thread()
    ours = [s for s in ENDING if in_main and signal.getsignal(s) is signal.SIG_DFL]
    for number in ours:
        signal.signal(number, signal.default_int_handler)
    try:
        yield
    finally:
        for number in ours:
            signal.signal(number, signal.SIG_DFL)
