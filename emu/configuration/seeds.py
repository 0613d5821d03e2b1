"""Seeds: the seed of each random draw, and which draws the runs of several seeds vary.

A run draws its workload (a generator's, the blocks of a resampled trace), the workload's constraints, and what its
scheduler, its network and its failures do. All follow `seed` except for draws with a separate seed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from emu.configuration.config import Config
from emu.configuration.keys import WORKLOAD_OPTIONS
from emu.families.registry import family_of_summary
from workloads.hints import in_words
from workloads.units import format_duration

WORKLOAD, CONSTRAINTS, SCHEDULER = "workload", "constraints", "scheduler"
MOST = 2**63
SEEDS_VERSION = 2
"""Version of the meaning of seeds, in manifests of many runs: in 1 they varied only the draws of schedulers."""
Summary = Mapping[str, Any]


def seeds_of(config: Config) -> Sequence[int]:
    """Return the seeds to run."""
    seeds = config["seeds"]
    return seeds if isinstance(seeds, tuple) else range(config["seed"], config["seed"] + seeds)


def with_first_seed(config: Config) -> Config:
    """Return a configuration whose seed is the first of the seeds that it lists, if it lists any."""
    seeds = config["seeds"]
    if not isinstance(seeds, tuple):
        return config
    if "seed" in config.places and config["seed"] != seeds[0]:
        raise config.error(
            "seed", f"is {config['seed']}, and the first that seeds lists is {seeds[0]}; leave it out"
        )
    return config.but(seed=seeds[0])


def scheduler_seed(config: Config) -> int:
    """Return the seed of what is drawn while an emulation runs."""
    own = config["scheduler_seed"]
    return int(config["seed"] if own is None else own)


def workload_seed(config: Config) -> int:
    """Return the seed of what is drawn of the workload; raise `InputError` if it is given twice with two values."""
    own, option = config["workload_seed"], config.workload_options.get("seed")
    if option is None:
        return int(config["seed"] if own is None else own)
    try:
        seed = int(option.value)
    except (TypeError, ValueError):
        raise option.place.error(f"{option.value!r} is not a whole number") from None
    if own not in (None, seed):
        raise config.error(
            "workload_seed", f"is {own}, and {WORKLOAD_OPTIONS}.seed is {seed}; give one of the two"
        )
    return seed


def steps_seed(config: Config, workload: str) -> int:
    """Return the seed of what the steps of a workload draw: the workload's; of an instance one made with its name.

    So the draws of the instances of an archive are independent, and one that is run alone has the same draws.
    """
    seed = workload_seed(config)
    if config.workload_options.get("instance") is None:
        return seed
    digest = hashlib.sha256(f"{seed} {workload}".encode()).digest()
    return int.from_bytes(digest[:8], "big")


def constraints_seed(config: Config) -> int:
    """Return the seed of the constraints that are drawn."""
    own = config["constraints.seed"]
    return workload_seed(config) if own is None else int(own)


def drawn(config: Config, of_workload: bool) -> dict[str, int]:
    """Return what a run draws, and with which seed; `of_workload` is whether its workload is drawn."""
    found = {WORKLOAD: workload_seed(config)} if of_workload else {}
    if config["constraints.model"] not in (None, "none"):
        found[CONSTRAINTS] = constraints_seed(config)
    return {**found, SCHEDULER: scheduler_seed(config)}


def check_seeds(config: Config, of_workload: bool) -> tuple[str, ...]:
    """Return notes on seeds that have no effect; raise `InputError` if all seeds would be the same run."""
    seeds = seeds_of(config)
    if max(seeds) >= MOST:
        raise config.error("seeds", f"seed {max(seeds)} is too large; the most is {MOST - 1}")
    ends = [drawn(config.but(seed=seed), of_workload) for seed in (seeds[0], seeds[-1])]
    if len(seeds) > 1 and ends[0] == ends[1]:
        fixed = " and ".join(name for name in ("workload_seed", "scheduler_seed") if config[name] is not None)
        raise config.error("seeds", f"all {len(seeds)} runs would be the same, with {fixed} given")
    if config["workload_seed"] is not None and not set(drawn(config, of_workload)) & {WORKLOAD, CONSTRAINTS}:
        return (
            "workload_seed has no effect, as nothing of the workload is drawn; resample.block resamples a trace",
        )
    return ()


def varied(summaries: Sequence[Summary]) -> list[str]:
    """Return what several runs vary: the instance, and of workload, constraints, scheduler those with several seeds."""
    of_runs = [s.get("drawn", {SCHEDULER: s["seed"]}) for s in summaries]
    own = ["instance"] if len(instances_of(summaries)) > 1 else []
    return own + [
        name
        for name in (WORKLOAD, CONSTRAINTS, SCHEDULER)
        if len({of_run.get(name) for of_run in of_runs}) > 1
    ]


def instances_of(summaries: Sequence[Summary]) -> list[str]:
    """Return the instances in summaries of a batch, each once; an empty list for other workloads."""
    return list(dict.fromkeys(s["instance"] for s in summaries if "instance" in s))


def seeds_text(seeds: Sequence[int], what: Sequence[str], block_s: float | None = None) -> str:
    """Return a text on seeds: their numbers, which draws they vary, and that figures are means.

    Examples
    --------
    >>> seeds_text([1, 2, 3], ["workload", "scheduler"])
    'seeds 1 to 3 (workload and scheduler), means ± 95 %'
    >>> seeds_text([1, 2, 5], ["scheduler"])
    "seeds 1, 2, 5 (scheduler's draws; the workload is the same), means ± 95 %"
    >>> seeds_text([1, 2], ["workload", "scheduler"], 3600.0)
    'seeds 1 to 2 (trace resampled in blocks of 1 h, and scheduler), means ± 95 %'
    >>> seeds_text([7], [])
    'seed 7'
    """
    if len(seeds) == 1:
        return f"seed {seeds[0]}"
    run_on = list(seeds) == list(range(seeds[0], seeds[0] + len(seeds)))
    shown = f"{seeds[0]} to {seeds[-1]}" if run_on else ", ".join(map(str, seeds))
    return f"seeds {shown} ({varied_text(what, block_s)}), means ± 95 %"


def replicas_text(summary: Summary) -> str:
    """Return the instances, or seeds, that a summary is of, what seeds vary, and that figures are means.

    Examples
    --------
    >>> replicas_text({"seed": 1, "instances": ["in001", "in002"]})
    '2 instances, seed 1, means ± 95 %'
    >>> replicas_text({"seed": 1, "seeds": [1, 2], "varied": ["scheduler"]})
    "seeds 1 to 2 (scheduler's draws; the workload is the same), means ± 95 %"
    """
    seeds, what = list(dict.fromkeys(summary.get("seeds", [summary["seed"]]))), summary.get("varied", [])
    if "instances" not in summary:
        return seeds_text(seeds, what, summary.get("resample_block_s"))
    instances = f"{len(set(summary['instances'])):,} instances"
    if len(seeds) == 1:
        return f"{instances}, seed {seeds[0]}, means ± 95 %"
    return f"{instances}, {seeds_text(seeds, [w for w in what if w != 'instance'])}"


def varied_text(what: Sequence[str], block_s: float | None = None) -> str:
    """Return in words what the seeds of several runs vary."""
    if list(what) == [SCHEDULER]:
        return "scheduler's draws; the workload is the same"
    if WORKLOAD in what and block_s is not None:
        rest = [name for name in what if name != WORKLOAD]
        resampled = f"trace resampled in blocks of {format_duration(block_s)}"
        return f"{resampled}, and {in_words(rest)}" if rest else resampled
    alone = " alone" if len(what) == 1 else ""
    return f"{in_words(what)}{alone}" if what else "nothing varied"


def head_of(summaries: Sequence[Summary], own: Sequence[str] = ()) -> str:
    """Return the head of a table about runs of one scheduler: workload, size, seeds, and what the seeds vary."""
    size = size_text([s["nodes"] for s in summaries], f"{family_of_summary(summaries[0]).node}s")
    of_all = {**summaries[0], **replicas_part(summaries)}
    return ", ".join([f"{of_all['workload']} on {size}", *own, replicas_text(of_all)])


def summary_head(summary: Summary) -> str:
    """Return the head of a text about a summary: scheduler, workload, size, seeds or instances."""
    size = size_text(summary.get("nodes_by_seed", [summary["nodes"]]), f"{family_of_summary(summary).node}s")
    return f"{summary['scheduler']} on {summary['workload']}, {size}, {replicas_text(summary)}"


def replicas_part(summaries: Sequence[Summary]) -> dict[str, Any]:
    """Return the entries of a summary that identify its runs: seeds, or instances and the batch's name."""
    seeds, what = {"seeds": [s["seed"] for s in summaries]}, {"varied": varied(summaries)}
    if len(instances_of(summaries)) < 2:
        return seeds | what
    batch = {"workload": summaries[0]["batch"], "instances": [s["instance"] for s in summaries]}
    return batch | (seeds if len(set(seeds["seeds"])) > 1 else {}) | what


def size_text(sizes: Sequence[int], unit: str) -> str:
    """Return numbers of nodes, or ports, which differ by seed where the workload's load picks them."""
    least, most = min(sizes), max(sizes)
    return f"{least:,} {unit}" if least == most else f"{least:,} to {most:,} {unit}"


def summary_alike(summary: Summary) -> str:
    """Return the line about several runs with the same results; empty otherwise."""
    unit = "instance" if "instances" in summary else "seed"
    return f"{alike_text([summary['scheduler']], unit)}\n" if summary.get("alike") else ""


def are_alike(summaries: Sequence[Summary]) -> bool:
    """Return whether several runs have the same figures."""
    heads = family_of_summary(summaries[0]).heads
    return len(summaries) > 1 and all(s[heads] == summaries[0][heads] for s in summaries)


def alike_note(by_scheduler: Mapping[str, Sequence[Summary]]) -> str:
    """Return the line about schedulers whose runs have the same results with every seed; empty if there are none."""
    alike = [name for name, summaries in by_scheduler.items() if are_alike(summaries)]
    unit = "instance" if any(len(instances_of(own)) > 1 for own in by_scheduler.values()) else "seed"
    return f"\n{alike_text(alike, unit)}\n" if alike else ""


def alike_text(names: Sequence[str], unit: str) -> str:
    """Return the line about schedulers whose runs have the same results with every `unit`, seed or instance."""
    why = "as nothing that was drawn made a difference; no interval" if unit == "seed" else "no interval"
    return f"{in_words(names)}: the same with every {unit}, {why}"
