"""What moves Philae's speed-ups: each rule that the paper leaves open, or that its simulator has otherwise, in turn.

How to run: `python -m claims.philae_causes [CLAIM...] [--keep FOLDER]`; a claim is a scheduler, or `mantri`
Every line changes one thing from the settings of `claims.philae`, in Philae, in the other scheduler or in both.
"""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.coflow_runs import EPOCH_S, Runs, Setting, cells, quantised, speedup, workload_of
from benchmarks.measuring import run_sections, show
from claims.philae import AALO, AGAINST, PHILAE, Paper
from workloads.arrow import column

NOT_CONSERVING = {"work_conservation": False}
SOME_STARVE = {"least_intervals": 0}
"""Slots as Philae's authors simulate them: queues whose slot comes to less than an interval have none."""
STEPPED = {**SOME_STARVE, "decide": "interval"}
AUTHORS = {**NOT_CONSERVING, **STEPPED, "count_itself": True}
"""Philae's parameters nearest to what its authors simulate, under policy D; `STEPPED` are those of every policy."""
PEER_PORT = {"fabric_port_speed": 134_217_000 * 8}
QUEUED = ("aalo", "aalo-oracle")


class Rule(NamedTuple):
    """What differs from the settings of the claim."""

    name: str
    philae: Mapping[str, Any] = {}
    other: Mapping[str, Any] = {}
    workload: str = "facebook"
    keys: Mapping[str, Any] = {}
    step_s: float = 0.0  # completion times are rounded up to multiples of it
    only_wide: bool = False  # thin coflows are not counted
    from_arrival: bool = False  # coflows that begin early are timed from their arrival in the trace


def both(name: str, given: Mapping[str, Any]) -> Rule:
    """A rule of both schedulers."""
    return Rule(name, given, given)


PHILAE_RULES = [
    Rule("philae: count_itself", {"count_itself": True}),
    Rule("philae: no work conservation", NOT_CONSERVING),
    Rule("philae: decides at intervals", {"decide": "interval"}),
    Rule("philae: decides at every end of a flow too", {"decide": "flow-ends"}),
    Rule("philae: as its authors simulate", AUTHORS),
    Rule("philae: policy A", {"policy": "A"}),
    Rule("philae: size_correction", {"size_correction": True}),
    Rule("philae: strict priority", {"starvation": "strict"}),
    Rule("only wide coflows counted", only_wide=True),
]
COMMON_RULES = [
    Rule("CCT rounded up to 8 ms", step_s=0.008),
    Rule("coflows begin up to 10.24 s early", workload="early-facebook"),
    Rule("the same, and timed from their arrival", workload="early-facebook", from_arrival=True),
    Rule("ports of 134,217 bytes/ms", keys=PEER_PORT),
    Rule("ports of 500 Mbps", keys={"fabric_port_speed": "500 Mbps"}),
    Rule("ports of 250 Mbps", keys={"fabric_port_speed": "250 Mbps"}),
]
OF_MESSAGES = Rule("messages take 0.5 ms", keys={"network_delay": "0.5 ms"})
QUEUE_RULES = [
    both("both: strict priority", {"starvation": "strict"}),
    Rule("other: strict priority", other={"starvation": "strict"}),
    both("both: no slots of less than an interval", SOME_STARVE),
    both("both: slots of 16 intervals", {"slot_intervals": 16}),
    both("both: slots of 2560 intervals", {"slot_intervals": 2560}),
    both("both: slots half as long a queue", {"share": 2}),
    both("both: first limit 10^7 bytes", {"first_limit_bytes": 10_000_000}),
    Rule("other: intervals of 1 ms", other={"interval_s": 0.001}),
    Rule("other: intervals of 100 ms", other={"interval_s": 0.1, "slot_intervals": 20}),
    Rule("other: intervals of 1 s", other={"interval_s": 1.0, "slot_intervals": 2}),
]
RULES_OF: dict[str, list[Rule]] = {
    "sebf": [Rule("other: greedy rates", other={"rates": "greedy"})],
    "fifo": [
        Rule("other: greedy rates", other={"rates": "greedy"}),
        Rule("philae: policy C", {"policy": "C"}),
    ],
}


MANTRI_RULES = [
    Rule("as the paper", workload="mantri-0"),
    Rule("philae: pilots at 30 % of the senders", {"pilot_share": 0.3}, workload="mantri-0"),
    Rule("philae: 1 % of the flows", {"pilots": "flows", "pilot_share": 0.01}, workload="mantri-0"),
    Rule("philae: pilots at random ports", {"pilot_ports": "random"}, workload="mantri-0"),
    Rule("philae: policy A", {"policy": "A"}, workload="mantri-0"),
    Rule("both: strict priority", {"starvation": "strict"}, {"starvation": "strict"}, "mantri-0"),
    Rule("another draw of the skew", workload="mantri-1"),
    Rule("another draw of the skew", workload="mantri-2"),
    Rule("flows vary, not senders, 0", workload="mantriflows-0"),
    Rule("flows vary, not senders, 1", workload="mantriflows-1"),
    Rule("flows vary, not senders, 2", workload="mantriflows-2"),
]
CLAIMS: dict[str, tuple[Setting, Paper]] = {
    **{name: AGAINST[name] for name in ("aalo", "aalo-oracle", "sebf", "fifo", "fair")},
    "mantri": (AALO, (1.36, 1.75, 12.0)),
}


def rules_for(other: str) -> list[Rule]:
    """What is tried on a claim."""
    if other == "mantri":
        return MANTRI_RULES
    own = QUEUE_RULES if other in QUEUED else RULES_OF.get(other, [])
    coordinated = [] if other == "fair" else [OF_MESSAGES]
    return [Rule("as the paper"), *PHILAE_RULES, *own, *COMMON_RULES, *coordinated]


def figures(runs: Runs, rule: Rule, other: Setting) -> tuple[float, float, float]:
    """Philae's speed-up over another scheduler under a rule."""
    pair = (PHILAE.but(rule.philae), other.but(rule.other))
    first_s, other_s = (runs.cct_s(s.but(workload=rule.workload, **rule.keys)) for s in pair)
    if rule.step_s:
        first_s, other_s = quantised(first_s, rule.step_s), quantised(other_s, rule.step_s)
    if rule.from_arrival:
        begun_s, arrival_s = (
            column(workload_of(w).coflows, "arrival_s") for w in (rule.workload, "facebook")
        )
        assert (arrival_s - begun_s).max() <= EPOCH_S + 1e-9
        ended = (first_s > arrival_s - begun_s) & (other_s > arrival_s - begun_s)
        first_s, other_s = ((s - (arrival_s - begun_s))[ended] for s in (first_s, other_s))
    if rule.only_wide:
        wide = column(workload_of(rule.workload).coflows, "width") > 7
        first_s, other_s = first_s[wide], other_s[wide]
    return speedup(first_s, other_s)


def claim(name: str, runs: Runs) -> None:
    """Print what moves a speed-up."""
    setting, paper = CLAIMS[name]
    rows = [["rule", "average", "P50", "P90"], ["(the paper)", *cells(paper)]]
    rows += [[rule.name, *cells(figures(runs, rule, setting))] for rule in rules_for(name)]
    show(f"{name}: what moves Philae's speed-up over {setting.scheduler}", rows)


def main() -> None:
    """Run the benchmark."""
    sections = {name: partial(claim, name) for name in CLAIMS}
    run_sections(__doc__, sections, arguments=lambda asked: (Runs(asked.keep),), keep=Path)


if __name__ == "__main__":
    main()
