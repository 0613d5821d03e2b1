"""Early ends of a run: a process that it needs is lost, or the user interrupts it."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

LAST_CHECKPOINT_S = 5.0  # the time after Ctrl-C for a last checkpoint
ENDING = (signal.SIGTERM, signal.SIGHUP)  # what ends a program: `kill`, a terminal that closes


class Lost(RuntimeError):
    """A process that a run needs is gone: an actor, its node, or Ray as a whole."""


def interrupt(note: str | None) -> KeyboardInterrupt:
    """Return what ends a run that the user interrupts, with a note for the user where there is one."""
    error = KeyboardInterrupt()
    if note is not None:
        error.add_note(note)
    return error


@contextmanager
def interrupts_deferred() -> Iterator[Callable[[], bool]]:
    """Defer Ctrl-C within a block; yield a function that returns whether it was pressed.

    If it is pressed again, or after LAST_CHECKPOINT_S, KeyboardInterrupt is raised at once. Other signals that the
    program treats as Ctrl-C (`ends_as_ctrl_c`) have the same effect.
    """
    ours = [s for s in (signal.SIGINT, *ENDING) if signal.getsignal(s) is signal.default_int_handler]
    if not ours or threading.current_thread() is not threading.main_thread():
        yield lambda: False  # other code handles it
        return
    pressed = False
    again = threading.Timer(LAST_CHECKPOINT_S, signal.pthread_kill, (threading.main_thread().ident, ours[0]))
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
    """Let the signals that end a program have the effect of Ctrl-C, unless they are ignored or handled already."""
    in_main = threading.current_thread() is threading.main_thread()
    ours = [s for s in ENDING if in_main and signal.getsignal(s) is signal.SIG_DFL]
    for number in ours:
        signal.signal(number, signal.default_int_handler)
    try:
        yield
    finally:
        for number in ours:
            signal.signal(number, signal.SIG_DFL)
