"""``emu new scheduler``: files to start a scheduler of one's own from."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

from emu.starting.new_scheduler import KINDS, object_of, write_scheduler
from emu.terminal import put
from workloads.errors import InputError


def write_new(options: Namespace) -> int:
    """Write the two files, and print what to do with them."""
    if options.what != "scheduler":
        raise InputError(f"nothing new can be made of {options.what!r}; want: emu new scheduler NAME")
    if not Path(options.out).is_dir():
        raise InputError(f"--out: {options.out} is no folder")
    module, test = write_scheduler(options.name, options.kind, options.out)
    named = f"{module}:{object_of(options.name, options.kind)}"
    put(
        f"{module}: {KINDS[options.kind].about}\n{test}: its test\n\n"
        f"pytest {test}\nemu run --scheduler {named} {KINDS[options.kind].run} --in-process"
    )
    return 0
