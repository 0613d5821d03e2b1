"""The reference pages, made from the registries: ``python -m emu.cli.reference docs/reference`` writes them."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from emu.cli.settings_module import SETTINGS, meaning_of, settings_module
from emu.columns import Column
from emu.configuration.config_file import as_toml
from emu.configuration.family_keys import has_key
from emu.configuration.key_types import KINDS, Key
from emu.configuration.keys import KEYS
from emu.families.family import Family
from emu.families.jobs.metrics import MOST_KINDS, OTHER_KINDS
from emu.families.registry import families
from emu.results.bottlenecks import INTERVALS_MISSED, NODES_BUSY, SATURATED
from emu.results.paired_comparison import BEST_WITHIN, DELAYS

_MADE = "<!-- Made by `python -m emu.cli.reference docs/reference`; a test fails when it is stale. Do not edit. -->"

_CONFIGURATION = """\
# Configuration

A run is described by the keys below. They can be given in a TOML file (`--config FILE.toml`), with
`--set KEY=VALUE`, and those with an option of their own by that option. Options beat `--set`, `--set` beats
the file, the file beats the defaults. In Python they are keyword arguments of `emu.run` and `emu.compare`,
with `_` for the dot. `emu validate FILE.toml` prints the fully resolved configuration, or reports what is wrong
with it.

A key or parameter without an effect is refused by name: one without the key that it needs (`cost.per_job` where
`cost.model` is not `fixed`), or one that no scheduler of the run uses. The run continues, with a note, where the value
is in a file and an option leaves it without effect (`--config windows.toml --clock virtual`), where a number
given as 0 turns it off, and where only some of several schedulers use it. A sweep accepts it at some points
if it has an effect at others. The `config.toml` of a run has defaults in the place of such values.

```toml
scheduler = ["hawk", "eagle"]
workload = "yahoo"
nodes = 15000
short_cutoff = "90.58s"

[network]
delay = "0.5 ms"

[parameters]            # of every scheduler that has it
probe_ratio = 2

[parameters.eagle]      # of one
slack = 5
```

Durations take `ns`, `us`, `ms`, `s`, `min`, `h`, `d`, and are seconds without a unit; shares are `98%` or
`0.98`. A run has schedulers of one family, for jobs or for coflows, and some keys are only for one: given to the other,
they are an error. So are keys, parameters and options of generators that would change nothing, because what they go
with is not there; in a sweep, if they change nothing at any of its points. Relative paths in a file are looked for
beside the file first, then from the current folder.

`emu schema config` and `emu schema sweep` print JSON schemas of these files, and `emu schema cluster` one of the files
of [machine types](../clusters.md#machine-types): an editor with one completes keys and marks mistakes. With Taplo or
Even Better TOML, write `emu schema config > emu.schema.json` and begin the file with
`#:schema ./emu.schema.json`.
"""

_RESULTS = """\
# Results

A run directory holds `config.toml` (all that is needed to run it again: every key, parameter and option of a
generator as it held, so that no later default changes a rerun), `manifest.json` (resolved configuration, versions,
sha256 of inputs, of results with their `bytes`, and of its own content; a status: `running`, `finished`,
`interrupted` or `failed`, then with the `error`; and the record), `summary.json`, and the tables below as Parquet
files. Units and meanings are in the files' schema metadata too. While a process runs it, there is a `.lock`, and
what else it needs ([run directories](../run-directories.md)).

The `record` of the manifest is for citing a run: the `date` on which it was begun (UTC), the `host`, the words of
the `command` (in Python there is none), and where Emu runs from a git checkout its `source`: the `commit`, and
`modified`, whether the source differs from it. It decides nothing: runs are the same whatever their records say.

`emu compare` lays runs out as `scheduler=NAME/seed=S/`, `emu run --seeds N` as `seed=S/`, and those of an archive of
[instances](../workloads.md#archives-of-instances) as `instance=NAME/` in place of the seed; above them lie a
`summary.json` and a [`comparison.csv`](#comparisoncsv) of all.

Equal emulations give equal bytes of `jobs.parquet`, or `coflows.parquet`, whatever hosted them. The tables of a run of
coflows [come after those of jobs](#runs-of-coflows).
"""

_SUMMARY = """\
## summary.json

| key | meaning |
|---|---|
| `scheduler`, `workload`, `nodes`, `seed`, `clock` | what was run |
| `policy` | the scheduler's name without the settings of a variant |
| `drawn` | what was drawn, `workload`, `constraints` and `scheduler`, and with which seed; a workload from a \
file is not drawn |
| `resample_block_s` | length of the blocks of a trace that was resampled |
| `jobs.all`, `jobs.short`, `jobs.long` | `count`, `mean`, `p50`, `p90`, `p95`, `p99`, `p99.9` and `max` of jct_s in \
seconds, of the jobs that finished; percentiles are linear; a class without jobs is absent |
| `jobs.<class>.wait`, `.slowdown`, `.bounded_slowdown` | the same of wait_s, the queueing delay, of the jobs that \
started; of slowdown; and of [bounded slowdown](#bounded-slowdown) |
| `jobs.makespan_s` | from the first arrival to the last completion |
| `jobs.jain_index` | (sum x)^2 / (n sum x^2) of the slowdowns x: 1 when all jobs are slowed down alike |
| `jobs.bounded_jain_index`, `jobs.slowdown_threshold_s` | the same of bounded slowdowns, and their threshold |
| `jobs.unfinished` | jobs that did not finish, where there are any |
| `jobs.constrained`, `jobs.unconstrained` | where jobs have constraints: `all`, `short` and `long` of those that \
have some and of those that have none, as above |
| `jobs.by_constraint` | where jobs have constraints, by kind, that with most jobs first: `all` and `short`, as of \
`jobs.constrained`, and `slowdown_vs_unconstrained`, the relative slowdown: total jct_s over total ideal_s of the \
kind's short jobs, over the same of the unconstrained short jobs of the run; kinds \
beyond the first {kinds} together are `{others}` |
| `offered_load` | task-seconds over the span of the arrivals times all slots; absent where all arrive at once |
| `utilisation` | share of the slots that run a task, of the rows of the timeline: `mean`, `while_arriving` (the mean \
of those up to the last arrival) and `max` |
| `decision_latency.all`, `.short`, `.long` | `count`, `mean`, `p50`, `p90`, `p95`, `p99`, `p99.9`, `max` in seconds \
over tasks: from submission to start, less the time in which all slots of the task's node ran tasks; there if tasks \
were recorded, as they are with `output.tasks`, with the clock `live`, and where messages cost schedulers something |
| `sustained_tasks_per_s` | tasks started a second between a tenth and nine tenths of them, there when the latency is |
| `schedulers` | where messages cost something: `count` of schedulers that handled any, and `messages`. Busy share \
of all (`utilisation`) and of the `busiest`, from the first arrival to the last finish; `busiest_while_arriving`, of \
the busiest from the first arrival to the last. `cost_mean_s` of a message. What messages waited for their scheduler: \
`wait_mean_s`, `wait_p50_s`, `wait_p99_s` (right to 6 %), `wait_max_s`. Messages that waited for one scheduler: \
`backlog_mean` over time and schedulers, `backlog_max` |
| `bottlenecks` | sentences that name what held the run up, where something did: a scheduler that was busy for {busy} \
or more of the time in which work arrived, nodes that were for {nodes}, a coordinator that missed {missed} of \
its scheduling intervals, or the verdict of a live run that did not keep up |
| `windows` | of the clock `windows`: `partitions`, `windows` (barriers), `exact`, `quantum_s`, and with a quantum how \
many messages were delayed (`delayed_messages`) and by how much (`delayed_mean_s`, `delayed_max_s`) |
| `live` | of the clock `live`: [what it measured](../live.md#what-is-measured) |
| `engine.wall_s` | wall time of the engine alone, from first to last event |
| `engine.load_s`, `engine.compile_s` | wall time to load the workload, and to compile |
| `engine.events`, `engine.tasks`, `engine.tasks_per_s` | what the engine did, and tasks over `wall_s` |
| `engine.peak_rss_mb` | largest resident memory of the process that emulated |
| `counters` | what the scheduler's mechanisms did |

Jobs that arrive within `warmup` of the first are left out of everything in `jobs` but the makespan.

With several seeds, figures are means over the seeds, `seed` is the first, `seeds` holds all, `varied` says which of
what is drawn they vary ([seeds](../sweeps.md#seeds)), and `confidence_95.jobs` has `[low, high]` for each mean:
Student's t with n - 1 degrees of freedom. Where every seed gave the same, `alike` is true and there are no intervals;
`nodes_by_seed` is there where a load picks another number of nodes for each. Of an archive of instances means and
intervals are over the instances, which `instances` names, and `workload` is the archive's name; the summary of the run
of one has its `instance`, and the archive's name as `batch`. A part that only some instances have, such as coflows of a
bin, is the mean of those.

## Bounded slowdown

A job of 5 ms that takes 5 s is slowed down a thousand times, without practical effect; yet it dominates the mean of
slowdowns and Jain's index. Bounded slowdown is max(1, jct_s / max(ideal_s, threshold)): jobs below the threshold
(`slowdown_threshold`, by default 10 s) count as that long (Feitelson, Rudolph, Schwiegelshohn, Sevcik and Wong, Theory
and Practice in Parallel Job Scheduling, JSSPP 1997).

## What constraints cost

Jobs with one kind of constraint and jobs with none are different jobs, so `slowdown_vs_unconstrained` is no exact
answer: it takes the jobs' lengths out, and leaves their mix and chance. Totals are compared, and not means of
slowdowns, since those hang on the shortest jobs. The exact twin of a constrained job is the same job where constraints
are ignored, and a comparison has both:

```bash
emu workload constrain yahoo constrained
emu compare --schedulers eagle,eagle-c --workload constrained --cluster phoenix --nodes 15000
```

Its ratios, by class, for jobs with and without constraints, and by kind of constraint, are of the same jobs. The page
it writes has the queueing delay too, as distribution and over time, and how often each mechanism fired.
"""


_COMPARISONS = """\
## Comparisons

`emu compare --json` prints a list of summaries, one per scheduler, and a comparison's `summary.json` has them too.
Each says besides what the scheduler is against the first:

| key | meaning |
|---|---|
| `baseline` | the first scheduler |
| `ratios.<class>` | each figure over the first scheduler's, laid out as in `jobs.<class>` |
| `better`, `equal`, `worse` | by class: the share of the jobs whose completion time is so against the first |
| `improved` | by class: the share that finished earlier, by however little |
| `path`, `paths` | the run directory; of several seeds the folder of all, and each. In `summary.json` they are \
below its own folder, on standard output from the current one |

Ratios and shares are `{"mean": …, "half_95": …}`: taken seed by seed, their mean and the half-width of its 95 %
interval, null for none.

**Equal** are completion times that differ by no more than `tolerance.absolute`, or than `tolerance.relative` of the
longer one. The first is {delays} network delays unless it is given, so 10 ms for the usual 0.5 ms: as many messages
one after the other as a scheduler here sends at the most for a task (Hawk's ten attempts to steal). Differences below
it are differences of message counts. The second is 0.1 %. A job that finished under one of the two alone is better,
or worse, by that; those that finished under neither are left out.

**Bold** in a report is the best figure, and what is as good. With several seeds that is what differs from it by no
more than chance: the 95 % intervals of the differences, seed by seed, and of the logarithms of the ratios (paired
t-tests, without a correction for several schedulers) both reach what is called equal. (Workloads of other seeds can
take many times as long, and then a few differences are most of all.) With one seed, or where no seed makes a
difference, it is what is within {best} of it. Where all are as good, none is bold.

**Digits** are those that the interval allows: it is rounded to one or two digits as the Particle Data Group does it,
and the figure to the same place. Ratios below a tenth are shown as one over their inverse, 1/21.4 for 0.0467, unless
their error is above a quarter of them.

## comparison.csv

All figures of a comparison or a sweep, a row each: `scheduler`, `baseline`, `group` (`all`, `short`, `long`,
`constrained short`, …; empty for what is of the whole run), `metric` (`jct_s`, `wait_s`, `slowdown`,
`bounded_slowdown`, `decision_latency_s`, `share`, `schedulers`, `utilisation`, `engine`, `counters`, …; of coflows
`cct_s` and `speedup`), `statistic` (`mean`, `p50`, …, `max`; `better`, `equal`, `worse`; what the summary calls it),
`value`, `half_95`, `ratio` to the first scheduler, `ratio_half_95`, and `seeds`, their number. In a sweep the axes
stand before them. Wall times, speed and memory of the engine are in `summary.json` alone:
the same run has the same file.

```python
import pandas as pd

table = pd.read_csv("three/comparison.csv")
table[table.metric == "wait_s"].pivot_table("value", ["group", "scheduler"], "statistic")
```

In Python a `Comparison` has `records()`, `to_csv()` and `to_pandas()`, a `Result` the same of its own summary.
"""


def configuration_page() -> str:
    """Return ``docs/reference/configuration.md``."""
    head = ["key", "option", "value", "default", "for", "meaning"]
    rows = [[f"`{k.name}`", _option(k), _kind(k), _default(k), _families(k), meaning_of(k)] for k in KEYS]
    return f"{_MADE}\n\n{_CONFIGURATION}\n{_table(head, rows)}"


def results_page() -> str:
    """Return ``docs/reference/results.md``."""
    first, *others = families()
    parts = [f"{_MADE}\n\n{_RESULTS}", *_tables(first, first)]
    values = {
        "kinds": str(MOST_KINDS),
        "others": OTHER_KINDS,
        "busy": f"{SATURATED:.0%}",
        "nodes": f"{NODES_BUSY:.0%}",
        "missed": f"{INTERVALS_MISSED:.0%}",
        "delays": str(DELAYS),
        "best": f"{BEST_WITHIN:.0%}",
    }
    parts += [_filled(_SUMMARY, values), _filled(_COMPARISONS, values)]
    for family in others:
        head, end = family.reference
        parts += [head, *_tables(family, first), end]
    return "\n".join([*parts, _counters()])


def _counters() -> str:
    """Return the section on counters."""
    found: dict[tuple[str, str], list[str]] = {}
    for family in families():
        for name, about in family.counters().items():
            if name != "lost_work_wholes":  # which results have in lost_work_ns
                found.setdefault((name, about), []).append(family.name)
    rows = [[f"`{name}`", ", ".join(of), about] for (name, about), of in found.items()]
    text = "`counters` of a summary: what a scheduler's mechanisms did; those that are zero are left out."
    return f"## Counters\n\n{text}\n\n{_table(['counter', 'family', 'meaning'], rows)}"


def _tables(family: Family, first: Family) -> Iterator[str]:
    """Yield what runs of a family write, but for what is as with the first one."""
    for name, table in family.tables.items():
        if family is not first and name in first.tables and first.tables[name].columns is table.columns:
            continue
        of_which = f" of {family.name}" * (family is not first and name in first.tables)
        yield f"## {name}.parquet{of_which}\n\n{table.about}\n\n{_columns(table.columns)}"
        if table.further:
            yield f"Of some runs also:\n\n{_columns(table.further)}"


def _filled(text: str, values: Mapping[str, str]) -> str:
    """Return a text with values for the names in braces; other braces stay."""
    for name, value in values.items():
        text = text.replace(f"{{{name}}}", value)
    return text


def events_page() -> str:
    """Return ``docs/reference/events.md``."""
    from actors.hosting.recorded import RECORDED
    from actors.kernel.message_kinds import FIELDS
    from actors.kernel.trace import NOTES
    from emu.results.events import COLUMNS

    def row(kind: Any) -> list[str]:
        numbers = (re.sub(":float|:or_none", "", kind.columns.get(name, "")) for name in "abcd")
        return [f"`{kind.name}`", kind.family.replace(" ", ", ") or "all", kind.about, *numbers]

    rows = [row(kind) for _, kind in sorted(RECORDED.items())]
    first_note = len(rows) - len(NOTES)
    fields = {name for kind in RECORDED.values() for name in kind.fields}
    head = ["kind", "family", "from whom, to whom", "a", "b", "c", "d"]
    return "\n".join(
        [
            f"# Events\n\n{_MADE}\n",
            "`events.parquet` is written with [`output.events`](configuration.md); [explain.md](../explain.md) shows "
            "its use. It has a row for each message when it arrives, and for what happens within an actor.\n",
            _columns(COLUMNS),
            "The kinds of messages, and the fields that their numbers hold. Where the first number, `a`, is a job, a "
            "task or a flow, the columns `job` and `task` have it. Where two fields share a number, the first has its "
            "lower 32 bits, or as many as are said after the colon.\n",
            _table(head, rows[:first_note]),
            "What happens within an actor, without a message:\n",
            _table([head[0], head[1], "meaning", *head[3:]], rows[first_note:]),
            "The fields; times in ns:\n",
            _table(["field", "meaning"], [[f"`{name}`", FIELDS[name]] for name in sorted(fields)]),
        ]
    )


PAGES = {"configuration.md": configuration_page, "results.md": results_page, "events.md": events_page}


def main(folder: str) -> None:
    """Write all pages into a folder, and the module of arguments."""
    Path(folder).mkdir(parents=True, exist_ok=True)
    for name, page in PAGES.items():
        Path(folder, name).write_text(page(), encoding="utf-8")
    SETTINGS.write_text(settings_module(), encoding="utf-8")


def _families(key: Key) -> str:
    """Return the families that have a key, if not all have it."""
    having = [family.name for family in families() if has_key(family, key.name)]
    return "" if len(having) == len(families()) else ", ".join(having)


def _option(key: Key) -> str:
    if key.name == "scheduler":
        return "`--scheduler`, `--schedulers`"
    return f"`{key.option}`" if key.option else ""


def _kind(key: Key) -> str:
    if key.choices:
        return ", ".join(f"`{c}`" for c in key.choices)
    words = "".join(f', or `"{word}"`' for word in key.words)
    least = f", {key.low:g} or more" if key.low is not None else ""
    return f"{KINDS[key.kind].wants}{least}{words}"


def _default(key: Key) -> str:
    if key.otherwise:
        return key.otherwise
    if key.default is None:
        return ""
    shown = _value(key, key.default)
    others = [(f.name, f.defaults[key.name]) for f in families() if key.name in f.defaults]
    return "; ".join([shown, *(f"for {name} {_value(key, value)}" for name, value in others)])


def _value(key: Key, default: Any) -> str:
    value = as_toml(key.name, default)
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def _columns(columns: tuple[Column, ...]) -> str:
    kinds = [getattr(c.type, "value_type", c.type) for c in columns]  # of a dictionary of texts
    rows = [
        [f"`{c.name}`", str(kind), c.unit, "yes" if c.nullable else "", c.meaning]
        for c, kind in zip(columns, kinds, strict=True)
    ]
    return _table(["column", "type", "unit", "may be null", "meaning"], rows)


def _table(head: list[str], rows: Iterable[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |\n" for row in lines)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "docs/reference")
