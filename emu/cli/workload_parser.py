"""The options of `emu workload`; what its actions do is in `emu.cli.workload_commands`."""

from __future__ import annotations

import argparse
from collections.abc import Callable

Action = Callable[[str, str], argparse.ArgumentParser]
"""Makes the parser of an action from its name and its help."""


def add_actions(action: Action) -> None:
    """Add the actions that the program knows without loading what does them; see `add_transformations`."""
    action("list", "list generators and formats").add_argument(
        "--json", action="store_true", help="print the same as JSON"
    )
    info = action("info", "describe a workload in numbers")
    info.add_argument("workload", metavar="NAME|PATH")
    info.add_argument(
        "--nodes", metavar="N", action="append", default=[], help="give the offered load for N nodes"
    )
    info.add_argument(
        "--cluster",
        metavar="PRESET|PATH",
        help="show what tasks hold of it, and which nodes satisfy constraints",
    )
    _add_source(info)
    info.add_argument("--plot", metavar="FILE", help="draw it, as .svg, .png or .pdf; FILE.svg and FILE.png")
    info.add_argument("--json", action="store_true", help="print the figures as JSON")
    convert = action("convert", "read a trace and write it in another format, by default a Parquet folder")
    convert.add_argument("workload", metavar="FROM")
    _add_source(convert)
    _add_target(convert)
    convert.add_argument("--to", dest="to_format", metavar="FORMAT", help="format of TO (by its ending)")
    synth = action("synth", "generate a workload and write it")
    synth.add_argument("workload", metavar="NAME")
    synth.add_argument("--seed", metavar="S", help="seed of the generator (0)")
    _add_options(synth, "option of the generator")
    _add_target(synth)
    fetch = action("fetch", "download a public trace; without a name, list them")
    fetch.add_argument("name", metavar="NAME", nargs="?")
    fetch.add_argument("--folder", metavar="DIR", help="where traces are kept (EMU_DATA_DIR, or the cache)")
    fetch.add_argument("--mirror", metavar="URL", help="download from a folder of traces served there")
    fetch.add_argument("--timeout", metavar="TIME", default="30 s", help="how long a server may be silent")


def add_transformations(action: Action) -> None:
    """Add the actions that make workloads of workloads."""
    from workloads.transform import TRANSFORMATIONS

    for name, step in TRANSFORMATIONS.items():
        parser = action(name, step.help)
        parser.add_argument("workload", metavar="FROM", nargs="+" if step.many_in else None)
        _add_options(parser, "max_tasks=N or max_bytes=SIZE, in place of the limits on what is read and made")
        _add_target(parser)
        for option in step.options:
            default = f" ({option.default})" if option.default else ""
            parser.add_argument(
                option.flag,
                dest=f"step_{option.name}",
                metavar=option.kind.upper(),
                help=(option.help + default).replace("%", "%%"),
            )


def _add_source(parser: argparse.ArgumentParser) -> None:
    text = "format of the path, where it is not to be recognised (`emu workload list`)"
    parser.add_argument("--from", dest="format", metavar="FORMAT", help=text)
    _add_options(parser, "option of the generator or the format")


def _add_options(parser: argparse.ArgumentParser, text: str) -> None:
    parser.add_argument("--set", metavar="NAME=VALUE", action="append", default=[], help=text)


def _add_target(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("to", metavar="TO")
    parser.add_argument("--overwrite", action="store_true", help="replace a workload that is there")
