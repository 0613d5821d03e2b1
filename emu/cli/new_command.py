"""``emu new scheduler``: files to start a scheduler of one's own from."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

from emu.starting.copies import COMPILED, run_of, write_copy
from emu.starting.new_scheduler import KINDS, object_of, write_scheduler
from emu.terminal import put
from workloads.errors import InputError


def write_new(options: Namespace) -> int:
    """Write the two files, and print what to do with them."""
    if options.what != "scheduler":
        raise InputError(f"unknown kind of file {options.what!r}; want: emu new scheduler NAME")
    if not Path(options.out).is_dir():
        raise InputError(f"--out: {options.out} is not a folder")
    if options.source is not None:
        if options.kind is not None:
            raise InputError("--kind: not with --from, whose copy is of the same kind; leave one of them out")
        module, test = write_copy(options.name, options.source, options.out)
        named = f"{module}:{object_of(options.name, COMPILED)}"
        about, run = f"a copy of {options.source}, which is yours to change", run_of(options.source)
        command = f"emu compare --schedulers {options.source},{named}"
    else:
        kind = options.kind or COMPILED
        module, test = write_scheduler(options.name, kind, options.out)
        about, run = KINDS[kind].about, KINDS[kind].run
        command = f"emu run --scheduler {module}:{object_of(options.name, kind)}"
    put(f"{module}: {about}\n{test}: its test\n\npytest {test}\n{command} {run} --in-process")
    return 0
