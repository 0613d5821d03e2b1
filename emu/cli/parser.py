"""The commands of the program: what each is about, which function does it, its options, its examples."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from typing import Any, NamedTuple, NoReturn

from emu.configuration.key import Key
from emu.configuration.keys import BY_NAME, KEYS
from workloads.errors import InputError
from workloads.hints import did_you_mean

_ABOUT = """\
Emu emulates datacenter schedulers at cluster scale: which scheduler, at which size, for which workload?

Without a command it compares sparrow, hawk, eagle and central-lwl on the bundled workload `yahoo` over
15,000 nodes, prints a table and writes a report.
"""
EXAMPLES = """\
  emu                                                   the comparison above
  emu run --scheduler eagle --workload yahoo --nodes 15000
  emu compare --schedulers sparrow,hawk,eagle --workload trace.tr --nodes 15000 --seeds 5
  emu schedulers eagle                                  what eagle does, its parameters, its paper
"""
_METAVARS = {
    "workload": "NAME|PATH",
    "cluster": "PRESET|PATH",
    "seed": "S",
    "address": "RAY",
    "duration": "TIME",
    "cutoff": "TIME|SHARE",
    "share": "SHARE",
}
"""Of options that are keys, by the key or its kind."""
WIDTHS = {"column": 3.33, "page": 7.0}
"""Inches of a column, and of the page, of a paper in two columns."""


class Kind(NamedTuple):
    """A kind of figure: its content, and the options that it takes."""

    about: str
    options: tuple[str, ...]


KINDS = {
    "cdf": Kind("distribution of a metric", ("schedulers", "metric", "of", "band")),
    "ccdf": Kind("its tail", ("schedulers", "metric", "of", "band")),
    "bars": Kind("statistics side by side", ("schedulers", "metric", "of", "statistics")),
    "timeline": Kind("utilisation and queues over time", ("schedulers",)),
    "sweep": Kind("statistics against what differs", ("schedulers", "metric", "of", "statistics", "along")),
    "ratio": Kind(
        "those over a baseline's", ("schedulers", "metric", "of", "statistics", "along", "baseline")
    ),
    "gantt": Kind("tasks of nodes, or of one job", ("nodes", "job")),
}
"""Of ``emu plot``; besides, each figure of a page by its name."""


class Parser(argparse.ArgumentParser):
    """An argument parser whose errors are `InputError`s."""

    def error(self, message: str) -> NoReturn:
        """Raise argparse's error, with the nearest command where one is unknown."""
        message = re.sub(r"^argument (\S+): ", lambda m: f"{m[1].split('/')[0]}: ", message)
        if match := re.search(r"invalid choice: '(.*?)' \(choose from (.*)\)", message):
            known = [name.strip(" '") for name in match[2].split(",")]
            message = f"unknown command {match[1]!r}{did_you_mean(match[1], known)}"
        elif message.endswith("required: ACTION"):
            message = f"{self.prog} does nothing alone; `{self.prog} --help` lists its commands"
        raise InputError(message)


Add = Callable[[Parser], Any]
"""Adds an option, or several, to a parser."""


class Command(NamedTuple):
    """A command."""

    about: str  # its line in the list of commands
    home: str  # the function that does it, as ``module:function`` in this package
    options: tuple[Add, ...]
    examples: str = ""  # with which its help ends


def build_parser(command: str | None = None) -> Parser:
    """Return the parser of all commands, or one in which only `command` has its options, which take time to make."""
    parser = Parser(prog="emu", allow_abbrev=False, **_texts(_ABOUT, EXAMPLES))
    parser.add_argument("--version", action="store_true", help="print the version and end")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", parser_class=Parser)
    for name, one in COMMANDS.items():
        texts = _texts(f"{one.about.capitalize()}.", one.examples)
        made: Parser = commands.add_parser(name, help=one.about, allow_abbrev=False, **texts)
        if command in (None, name):
            for add in (_options(_COMMON), *one.options):
                add(made)
    return parser


def _texts(about: str, examples: str) -> dict[str, Any]:
    return {
        "description": about,
        "epilog": f"examples:\n{examples}" if examples else None,
        "formatter_class": argparse.RawDescriptionHelpFormatter,
    }


def _options(table: str, hidden: bool = False, **defaults: Any) -> Add:
    """Return what adds options and arguments, one a line: its name, and after two spaces its help.

    An option without a value is a flag; a value in brackets may be left out, and one with ``...`` is given several
    times. Behind a name stands ``=`` and what it is called in code, where that differs; of an argument, which goes by
    its value, always. A line that begins with eight spaces or more goes on with the help. `defaults` are by name in
    code; the help of `hidden` options is not shown.
    """

    def add(parser: Parser) -> None:
        for line in filter(None, re.sub(r"\n {8,}", " ", table).splitlines()):
            words, _, about = line.strip().partition("  ")
            help_text = argparse.SUPPRESS if hidden else about.strip().replace("%", "%%") or None
            name, _, value = words.partition(" ")
            name, _, dest = name.partition("=")
            if name.startswith("-"):
                form = _form_of(value, dest)
                parser.add_argument(name, help=help_text, **form)
            else:
                nargs = "+" if name.endswith("...") else "?" if name.startswith("[") else None
                parser.add_argument(dest, metavar=name.strip("[]."), nargs=nargs, help=help_text)
        parser.set_defaults(**defaults)

    return add


def _form_of(value: str, dest: str) -> dict[str, Any]:
    """Return how argparse takes an option with such a value."""
    form: dict[str, Any] = {"dest": dest} if dest else {}
    if not value:
        return form | {"action": "store_true"}
    if value.endswith("..."):
        form |= {"action": "append", "default": []}
    elif value.startswith("["):
        form |= {"nargs": "?", "const": ""}
    return form | {"metavar": value.strip("[].")}


def _key(key: Key) -> Add:
    """Return what adds the option of a key."""
    default = "" if key.default is None or key.kind == "flag" else f" ({key.default})"
    default = f" ({key.otherwise})" if key.otherwise else default
    text = f"{key.meaning[0].lower()}{key.meaning[1:].rstrip('.')}{default}"
    form: dict[str, Any] = {"action": "store_const", "const": True}
    if key.kind != "flag":
        form = {"metavar": "|".join(key.choices) or _METAVARS.get(key.name) or _METAVARS.get(key.kind, "N")}
    help_text = text.replace("`", "").replace("%", "%%")
    return lambda parser: parser.add_argument(str(key.option), dest=key.name, help=help_text, **form)


def _keys(scheduler: str) -> Add:
    """Return what adds the options that are keys; that of the scheduler is given, as a line of `_options`."""
    of_keys = [_options(scheduler) if key.name == "scheduler" else _key(key) for key in KEYS if key.option]
    return lambda parser: [add(parser) for add in of_keys]


def _actions(of_command: Callable[[], dict[str, tuple[str, Add]]]) -> Add:
    """Return what adds actions to a command: name to the line in its list, and what adds the options."""

    def add(parser: Parser) -> None:
        actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True, parser_class=Parser)
        for name, (about, add_options) in of_command().items():
            description = f"{about.capitalize()}."
            made: Parser = actions.add_parser(name, allow_abbrev=False, help=about, description=description)
            _options(_COMMON, hidden=True)(made)
            add_options(made)

    return add


_COMMON = """
--quiet    print results and errors, no notes and no progress
--verbose  print also what each run took to load, compile and compute, and where kernels are kept
--debug    show the traceback of an unexpected error
"""
_SET = "--set KEY=VALUE...  set a configuration key or a scheduler's parameter; can be given several times\n"
_OVERWRITE = "--overwrite  replace what an earlier command left in DIR\n"
_JSON = "--json  print the summary alone, as JSON\n"
_VIEW = """
--columns A,B,…  figures to show: mean, p50, p90, p95, p99, p99.9, max of completion times, and wait.p99,
                 slowdown.mean, bounded_slowdown.p99 and so on (mean,p50,p90,p99)
--reasons        show also decision latency, waits, and how busy schedulers and nodes were
"""
_PARALLEL = """
--parallel N  runs at once (Ray's CPUs)
--retries N   tries more when a worker process dies (2)
"""
_NO_CODE = """
--no-code  refuse a file that names a scheduler by FILE.py:CLASS or MODULE:CLASS, which is code and is run
"""
_RUN = f"""
{_SET}
--config FILE.toml  configuration file; options and --set beat it
--out DIR           run directory; by default a new one below runs/
{_OVERWRITE}
--resume DIR        go on with a run that ended early; show a finished one
{_JSON}
"""
_ONE = "--scheduler NAME  a name, package.module:Class or file.py:Class (required)"
_SEVERAL = "--schedulers A,B,…  the first is the one that others are compared with"
_SIZE = """
--target TEXT...   [class.]statistic < bound, such as 'short.p99 < 60s' or 'all.slowdown.p99 < 3'; in place of a class
                   a priority or a tenant, as 'priority:9.wait.p99 < 60s' and 'tenant:ads.mean < 1h'; all that are
                   given must hold
--low N            the fewest nodes to try
--high N           the most nodes to try
--tolerance SHARE  how close the answer is to a number that fails (1%); 0: neighbours
--mix [N]          search the cheapest mix of the cluster's machine types, and measure at most N mixes (100)
--curve [SHARES]   measure sizes around the answer besides, as shares of it (50%,80%,90%,110%,120%,200%)
--waits            state at the answer what the jobs of each target waited for, in shares by reason
--price TEXT       prices of an hour of a node, such as 'fast=0.35, plain=0.1', in place of the cluster's own
"""
_SWEEP = """
FILE.toml=file
--out DIR  the sweep's directory (runs/sweep-FILE)
--dry-run  check every run and list them; run nothing
"""
_EXPLAIN = """
RUN_DIR=folder
[JOB]=job         its job_id, or coflow_id; without it all are summed up
--beside RUN_DIR  another run of the same workload, to compare with
--details         print the whole chain, and each task or flow, too
--json            print the explanation, with its details, as JSON
"""
_TIMELINE = """
RUN_DIR=folder
--out FILE     by default NAME-trace.json, NAME that of the run directory
--nodes A-B,C  only these nodes, or ports
--jobs A-B,C   only these jobs, or coflows
"""
_PLOT = f"""
RUN_DIR...=folders
--kind=kind KIND  {"; ".join(f"{name}: {kind.about}" for name, kind in KINDS.items())}; or the name of a figure of
                  their page (cdf)
--out FILE        ends in .pdf, .svg or .png; without an ending both of the last two (the kind)
--metric NAME     completion, wait, slowdown or bounded_slowdown (completion)
--of GROUP,…      all, short, long, bin-1 and so on; one for cdf and ccdf (all)
--schedulers A,B,…          those that are drawn, in this order (all)
--statistics A,B,…          mean, p50, p90, p95, p99, p99.9, max
--band none|range|interval  over seeds: least to greatest, or 95 % confidence (none)
--along KEY       the key or parameter of the x axis of a sweep (nodes, or load)
--baseline NAME   the scheduler that ratios are to (the first)
--nodes A-B,C     of a Gantt chart (those that ran most)
--job ID          of a Gantt chart, in place of nodes
--width column|page|INCHES  of the figure; column is 3.33, page 7 inches
--height INCHES   of the figure (in proportion to the width)
--font-size POINTS          of all text (9; below 4.6 inches of width 7.5)
"""
_NEW = """
scheduler=what
NAME=name         in small letters, as my-policy
--kind KIND       central, probing, coflows or dags: a class in plain Python; compiled: as the built-in ones (compiled)
--from=source SCHEDULER  a built-in scheduler: a copy of its module under the new name, in place of a kind
--out DIR         the folder of the two files (this one)
"""
_SAME_JSON = "--json  print the same as JSON\n"
_CLUSTER_INFO = f"""
{_SAME_JSON}
PRESET|PATH=cluster
--nodes N            number of nodes
--set KEY=VALUE...   slots=N or cluster_seed=N
"""
_SOURCE = """
--from=format FORMAT  format of the path, where it is not to be recognised (`emu workload list`)
--set NAME=VALUE...   option of the generator or the format
"""
_TARGET = """
TO=to
--overwrite  replace a workload that is there
"""
_INFO = f"""
NAME|PATH=workload
--nodes N...           give the offered load for N nodes
--cluster PRESET|PATH  show what tasks hold of it, and which nodes satisfy constraints
{_SOURCE}
--plot FILE            draw it, as .svg, .png or .pdf; FILE.svg and FILE.png
--json                 print the figures as JSON
"""
_CONVERT = f"""
FROM=workload
{_SOURCE}
{_TARGET}
--to=to_format FORMAT  format of TO (by its ending)
"""
_SYNTH = f"""
NAME=workload
--seed S             seed of the generator (0)
--set NAME=VALUE...  option of the generator
{_TARGET}
"""
_FETCH = """
[NAME]=name
--folder DIR    where traces are kept (EMU_DATA_DIR, or the cache)
--mirror URL    download from a folder of traces served there
--timeout TIME  how long a server may be silent
"""
_MADE = f"""
--set NAME=VALUE...  max_tasks=N or max_bytes=SIZE, in place of the limits on what is read and made
{_TARGET}
"""


def _cluster_actions() -> dict[str, tuple[str, Add]]:
    info = ("describe a cluster", _options(_CLUSTER_INFO))
    return {"list": ("list the presets", _options(_SAME_JSON)), "info": info}


def _workload_actions() -> dict[str, tuple[str, Add]]:
    """Return the actions of ``emu workload``: those that the program knows, and each transformation of workloads."""
    from workloads.transform import TRANSFORMATIONS

    convert = "read a trace and write it in another format, by default a Parquet folder"
    actions = {
        "list": ("list generators and formats", _options(_SAME_JSON)),
        "info": ("describe a workload in numbers", _options(_INFO)),
        "convert": (convert, _options(_CONVERT)),
        "synth": ("generate a workload and write it", _options(_SYNTH)),
        "fetch": ("download a public trace; without a name, list them", _options(_FETCH, timeout="30 s")),
    }
    for name, step in TRANSFORMATIONS.items():
        lines = [f"FROM{'...' * step.many_in}=workload", _MADE]
        for option in step.options:
            default = f" ({option.default})" if option.default else ""
            lines.append(f"{option.flag}=step_{option.name} {option.kind.upper()}  {option.help}{default}")
        actions[name] = (step.help, _options("\n".join(lines)))
    return actions


COMMANDS = {
    "run": Command(
        "emulate one scheduler",
        "commands:run",
        (
            _keys(_ONE),
            _options(_RUN + _VIEW),
        ),
        examples="""\
  emu run --scheduler eagle --workload yahoo --nodes 15000
  emu run --scheduler sparrow --set probe_ratio=3 --workload trace.tr.gz --nodes 4000 --seeds 5
  emu run --scheduler mine.py:LeastLoaded --workload yahoo --nodes 15000 --in-process
  emu run --config experiment.toml --set network.delay='1 ms' --json
""",
    ),
    "compare": Command(
        "emulate several schedulers on the same workload and compare them",
        "commands:compare",
        (
            _keys(_SEVERAL),
            _options(_RUN + _VIEW),
        ),
        examples="""\
  emu compare --schedulers sparrow,hawk,eagle --workload yahoo --nodes 15000
  emu compare --schedulers hawk,eagle --workload t.tr --nodes 15000 --set probe_ratio=3 --set eagle.slack=4
  emu compare --schedulers philae,aalo --workload FB2010-1Hr-150-0.txt
  emu compare --schedulers hawk,eagle --workload yahoo --nodes 15000 --columns mean,p99.9,wait.p99 --reasons
""",
    ),
    "sweep": Command(
        "run a grid of emulations in parallel; started again it does what is missing",
        "commands:sweep",
        (
            _options(_SWEEP),
            *(_key(BY_NAME[name]) for name in ("in_process", "address")),
            _options(_OVERWRITE + _SET + _VIEW + _JSON + _PARALLEL + _NO_CODE),
        ),
        examples="""\
  emu sweep grid.toml --dry-run
  emu sweep grid.toml --parallel 8
  emu sweep grid.toml --set workload_options.jobs=1000 --in-process --out runs/small
""",
    ),
    "size": Command(
        "find the fewest nodes that meet a target",
        "commands:size",
        (
            _options(_SIZE),
            _keys(_ONE),
            _options(_RUN + _PARALLEL),
        ),
        examples="""\
  emu size --target 'short.p99 < 300s' --scheduler eagle --workload yahoo
  emu size --target 'p50 <= 60s' --target 'long.p90 < 2h' --scheduler hawk --workload t.tr --seeds 3 --tolerance 2%
  emu size --target 'priority:9.wait.p99 < 60s' --scheduler central-lwl --workload t --cluster google-2011 --without 5%
  emu size --target 'wait.p99 < 60s' --scheduler easy --workload t.swf --cluster c.toml --mix --price 'fast=3, plain=1'
""",
    ),
    "validate": Command(
        "check a configuration file and print it fully resolved",
        "commands:validate",
        (_options("FILE.toml=file" + _NO_CODE + _SET),),
        examples="""\
  emu validate experiment.toml
""",
    ),
    "workload": Command(
        "list, describe, convert, make, transform and fetch workloads",
        "workload_commands:run_action",
        (_actions(_workload_actions),),
        examples="""\
  emu workload list
  emu workload info yahoo --nodes 10000 --nodes 15000
  emu workload synth yahoo small --set jobs=1000 --seed 7
  emu workload convert trace.tr.gz trace
  emu workload convert google-2011 google --from google-2011 --set unfinished=ran
  emu workload scale google google-80 --load 80% --nodes 15000
  emu workload fetch coflow-benchmark
""",
    ),
    "cluster": Command(
        "list and describe clusters",
        "listing_commands:cluster",
        (_actions(_cluster_actions),),
        examples="""\
  emu cluster list
  emu cluster info homogeneous --nodes 15000
""",
    ),
    "schedulers": Command(
        "list schedulers, or describe one",
        "listing_commands:schedulers",
        (_options(f"[NAME]=name\n{_SAME_JSON}"),),
        examples="""\
  emu schedulers
  emu schedulers eagle
""",
    ),
    "explain": Command(
        "explain why a job of a run, or all of them, took as long as they did",
        "reading_commands:explain_run",
        (_options(_EXPLAIN),),
    ),
    "timeline": Command(
        "write a run as a timeline for Perfetto or Chrome's trace viewer",
        "reading_commands:write_run",
        (_options(_TIMELINE),),
    ),
    "plot": Command(
        "draw runs: a figure for a paper",
        "reading_commands:plot_runs",
        (_options(_PLOT, kind="cdf"),),
        examples="""\
  emu plot runs/both --kind cdf --of short --width column --out short.pdf
  emu plot runs/hawk-yahoo-15000-1 runs/eagle-yahoo-15000-1 --kind bars --metric wait --statistics p50,p99
  emu plot runs/sweep-grid --kind sweep --along load --statistics p99 --of short
""",
    ),
    "report": Command(
        "write one self-contained HTML page about runs",
        "reading_commands:report",
        (_options("RUN_DIR...=folders\n--out FILE  by default report.html in the run directory"),),
        examples="""\
  emu report runs/eagle-yahoo-15000-1
  emu report runs/one runs/two --out both.html
""",
    ),
    "new": Command(
        "write a scheduler of one's own to start from, and its test",
        "listing_commands:write_new",
        (_options(_NEW, out="."),),
        examples="""\
  emu new scheduler my-policy --kind probing
  emu new scheduler my-policy --out policies
""",
    ),
    "completion": Command(
        "print a script that completes commands and options in a shell",
        "completion:print_script",
        (_options("bash|zsh|fish=shell"),),
    ),
    "schema": Command(
        "print the JSON schema of a TOML file, for editors",
        "completion:print_schema",
        (_options("config|sweep|cluster=file"),),
    ),
}
"""By name, in the order of the help of the program."""
