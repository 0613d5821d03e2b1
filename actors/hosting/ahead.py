"""Kernels of several schedulers compiled side by side: while this process compiles one, others compile the rest.

What they compile is on the disk when the run that needs it begins. A loop that two processes want at once, one of them
compiles (`actors.compiling.kernel_cache.compiled_once`); inner functions that two loops share may be compiled twice.
"""

import os
import pickle
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from actors.hosting.child import ROOT, with_path
from actors.hosting.outcome import Observe
from actors.hosting.partition import Partition
from actors.kernel.compiled import is_warm
from actors.setting import Setting

MOST_TASKS = 5_000_000
"""Of a workload that these processes hold as well: beyond it, memory counts more than seconds."""
_COMPILE = "from actors.hosting import ahead; ahead.compile_given()"


@contextmanager
def compiling_ahead(settings: Sequence[Setting]) -> Iterator[None]:
    """Within, loops of settings that run one after the other are compiled by up to a process for each other core.

    The first is left to the caller. The processes begin with the last ones, which the caller needs last, and end with
    the context.
    """
    cold = [setting for setting in settings if not all(map(is_warm, setting.scheduler.loops))]
    later = [each for setting in cold[:0:-1] if (each := _pickled(setting)) is not None]
    helpers = min(len(os.sched_getaffinity(0)) - 1, len(later))
    processes = [_process(later[i::helpers]) for i in range(helpers)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def _pickled(setting: Setting) -> bytes | None:
    """Return a setting for another process; None where it is large, or has a scheduler that a user wrote here."""
    if setting.num_tasks > MOST_TASKS:
        return None
    try:
        return pickle.dumps(setting)
    except Exception:  # whatever a user's object makes pickle do
        return None


def _process(settings: Sequence[bytes]) -> "subprocess.Popen[bytes]":
    """Start a process that compiles the loops of these settings, in order."""
    with tempfile.TemporaryFile() as given:  # a pipe would make this process wait until the other reads
        given.writelines(settings)
        given.seek(0)
        return subprocess.Popen(
            [sys.executable, "-c", _COMPILE],
            stdin=given,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": with_path(ROOT)},
        )


def compile_given() -> None:
    """Compile the loops of the settings that standard input has, as far as no other process has done so."""
    settings = []
    while True:
        try:
            settings.append(pickle.load(sys.stdin.buffer))
        except EOFError:
            break
    for setting in settings:
        if not all(map(is_warm, setting.scheduler.loops)):
            Partition(setting, Observe()).start()
