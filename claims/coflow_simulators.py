"""Coflow schedulers beside the public simulators: CoflowSim, and the one of Philae's authors with policies added to it.

How to run: `python -m claims.coflow_simulators [PEER...] [--explain] [--rules] [--keep FOLDER]`
PEER is a simulator or an algorithm: coflowsim, philae, philae+patch, D, SEBF, …
The folder with `traces/` and `reference/coflow.csv`, `reference/cct/` is `../shared` beside the repository, or where
EMU_SHARED says. Each scheduler runs at its peer's port speed, with the parameters nearest to its peer's rules. In mode
`cct` the peers begin coflows up to 10.24 s before they arrive and count from then; our arrivals are then shifted alike.
`--explain` shows what each rule of Philae's simulator does to ours; `--rules` switches the peers' rules to ours one
after another, in small simulators that have them (`coflowsim_rules`, `coflowsim_flows`, `philae_rules`).
"""

import csv
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.coflow_runs import Runs, Setting, cells, workload_of
from benchmarks.measuring import SHARED, options, show
from claims.philae import AUTHORS, NOT_CONSERVING, SOME_STARVE, STEPPED
from emu.results.metrics import Float64Array
from tests.oracles.coflowsim_flows import FlowRules, fair_cct_s, pfp_cct_s
from tests.oracles.coflowsim_rules import AT_FLOWS, DARK, FIFO, NCF, REFILL, SEBF, Rules, cct_s
from tests.oracles.peer_trace import Trace, trace_of
from tests.oracles.philae_rules import A, D, PhilaeRules, philae_cct_s

REFERENCE = SHARED / "reference" / "coflow.csv"
STATISTICS = {"mean": "avg_cct_s", "p50": "p50", "p90": "p90", "p99": "p99"}
COFLOWSIM = {"fabric_port_speed": 131_072_000 * 8}
PHILAE_SIM = {"fabric_port_speed": 134_217_000 * 8}
WORKLOAD = {"cct": "early-facebook", "cctexact": "facebook"}
PHILAE_D = Setting("philae", AUTHORS, keys=PHILAE_SIM)
PHILAE_STRICT = Setting(
    "philae",
    {**NOT_CONSERVING, "count_itself": True, "decide": "interval", "starvation": "strict"},
    keys=PHILAE_SIM,
)
PHILAE_A = Setting("philae", {**STEPPED, **NOT_CONSERVING, "policy": "A"}, keys=PHILAE_SIM)
PHILAE_C = Setting("philae", {**STEPPED, "policy": "C", "pilots": "none", "thin_limit": 0}, keys=PHILAE_SIM)
# By simulator and algorithm: our setting, and whose completion times by coflow there are.
PEERS: dict[tuple[str, str], tuple[Setting, dict[str, str]]] = {
    ("philae", "D"): (PHILAE_D, {}),
    ("philae", "A"): (PHILAE_A, {}),
    ("philae+patch", "D"): (PHILAE_D, {"cctexact": "philae+patch_D_cctexact"}),
    ("philae+patch", "A"): (PHILAE_A, {}),
    ("philae", "C"): (PHILAE_C, {}),
    ("philae+patch", "FIFO"): (Setting("fifo", {"rates": "greedy"}, keys=PHILAE_SIM), {}),
    ("philae+patch", "SEBF"): (Setting("sebf", {"rates": "greedy"}, keys=PHILAE_SIM), {}),
    ("philae+patch", "aalo"): (
        Setting("aalo", SOME_STARVE, keys=PHILAE_SIM),
        {"cctexact": "philae+patch_aalo_cctexact"},
    ),
    ("philae+patch", "aaloOracle"): (Setting("aalo-oracle", SOME_STARVE, keys=PHILAE_SIM), {}),
    ("coflowsim", "SEBF"): (Setting("sebf", keys=COFLOWSIM), {"cctexact": "coflowsim_SEBF_cctexact"}),
    ("coflowsim", "FIFO"): (Setting("fifo", keys=COFLOWSIM), {}),
    ("coflowsim", "NCF"): (Setting("ncf", keys=COFLOWSIM), {}),
    ("coflowsim", "DARK"): (
        Setting("aalo", {"starvation": "strict"}, keys=COFLOWSIM),
        {"cctexact": "coflowsim_DARK_cctexact"},
    ),
    ("coflowsim", "FAIR"): (Setting("fair", keys=COFLOWSIM), {"cct": "coflowsim_FAIR"}),
    ("coflowsim", "PFP"): (Setting("pfp", keys=COFLOWSIM), {"cct": "coflowsim_PFP"}),
}


def _ordered(algorithm: int, trace: Trace, rules: Rules) -> Float64Array:
    return cct_s(trace, algorithm, rules)


def _philae(policy: int, trace: Trace, rules: PhilaeRules) -> Float64Array:
    return philae_cct_s(trace, policy, rules)


class Beside(NamedTuple):
    """A row of the reference and ours."""

    simulator: str
    algorithm: str
    mode: str
    ours: dict[str, float]
    peer: dict[str, float]
    ratio: Float64Array  # [C] our completion times over the peer's; empty where it has none by coflow


def reference() -> dict[tuple[str, str, str], dict[str, float]]:
    """(simulator, algorithm, mode) -> the peer's figures; without deadlines."""
    with REFERENCE.open(newline="") as file:
        return {
            (row["simulator"], row["algorithm"], row["mode"]): {
                name: float(row[column]) for name, column in STATISTICS.items()
            }
            for row in csv.DictReader(file)
            if row["mode"] in WORKLOAD
        }


def peer_cct_s(name: str) -> Float64Array:
    """Completion times by coflow, in the trace's order."""
    with (SHARED / "reference" / "cct" / f"{name}.csv").open(newline="") as file:
        return np.array([float(row["cct_s"]) for row in csv.DictReader(file)])


def describe(cct_s: Float64Array) -> dict[str, float]:
    """The figures that the reference has."""
    return {"mean": float(cct_s.mean())} | {f"p{q}": float(np.percentile(cct_s, q)) for q in (50, 90, 99)}


def compare(runs: Runs, simulator: str, algorithm: str, mode: str) -> Beside:
    """A row of the reference beside ours."""
    setting, by_coflow = PEERS[simulator, algorithm]
    cct_s = runs.cct_s(setting.but(workload=WORKLOAD[mode]))
    ratio = cct_s / peer_cct_s(by_coflow[mode]) if mode in by_coflow else np.zeros(0)
    peer = reference()[simulator, algorithm, mode]
    return Beside(simulator, algorithm, mode, describe(cct_s), peer, ratio)


def row_of(found: Beside) -> list[str]:
    """A line of the table."""
    row = [f"{found.simulator} {found.algorithm}, {found.mode}"]
    for name in STATISTICS:
        row.append(
            f"{found.ours[name]:.2f} / {found.peer[name]:.2f} ({found.ours[name] / found.peer[name] - 1:+.1%})"
        )
    if not len(found.ratio):
        return [*row, "-", "-"]
    near = (np.abs(found.ratio - 1) <= 0.1).mean()
    return [*row, *cells([float(np.median(found.ratio))], 3), f"{near:.0%}"]


def explain_philae(runs: Runs) -> None:
    """Each rule of the Philae simulator that a parameter or the workload can have, and what it does to policy D."""
    base = PHILAE_D
    by_coflow = peer_cct_s("philae+patch_D_cctexact")
    given: dict[str, Setting] = {
        "our rules": Setting("philae", keys=PHILAE_SIM),
        "c_p counts the coflow itself": Setting("philae", {"count_itself": True}, keys=PHILAE_SIM),
        "no work conservation": Setting("philae", {"work_conservation": False}, keys=PHILAE_SIM),
        "decisions at intervals": Setting("philae", {"decide": "interval"}, keys=PHILAE_SIM),
        "no slots of less than an interval": Setting("philae", SOME_STARVE, keys=PHILAE_SIM),
        "these four": base,
        "and a flow keeps its ports for whole steps": base.but(workload="stepped"),
        **{
            f"these four, pilots at random ports, {seed}": base.but({"pilot_ports": "random"}, seed=seed)
            for seed in range(1, 6)
        },
        "these four, slots of 255 intervals": base.but({"slot_intervals": 255}),
        "these four, slots of 257 intervals": base.but({"slot_intervals": 257}),
        "these four, strict priority": PHILAE_STRICT,
    }
    rows = [["philae D", *STATISTICS, "median ratio", "within 10 %"]]
    for name, setting in given.items():
        cct_s = runs.cct_s(setting)
        ratio = cct_s / by_coflow
        rows.append([name, *cells(list(describe(cct_s).values())), *cells([float(np.median(ratio))], 3)])
        rows[-1].append(f"{(np.abs(ratio - 1) <= 0.1).mean():.0%}")
    rows.append(["the peer", *cells(list(describe(by_coflow).values())), "1", "100%"])
    show("What moves Philae, coflows beginning when they arrive, seconds", rows)


SHIFT: dict[str, Any] = {"epoch": 8.0}
EXACT: dict[str, Any] = {"step": 0.0, "epoch": 0.0}
ORDERED: list[tuple[str, dict[str, Any]]] = [
    ("coflows begin at most 8 ms early", SHIFT),
    ("what rounding leaves is nothing", {"rounding": False}),
    ("no shares for who finds a port full", {"share": False}),
    ("backfill in order, not by random deadlines", {"deadlines": False}),
    ("order by what is left, recomputed each time", {"static": False}),
    ("what a flow had goes to waiting ones", {"rates": REFILL}),
    ("no steps", EXACT),
]
# By simulator and algorithm: how it is simulated, the peer's rules, and what is switched to ours, one after another.
CHAINS: dict[
    tuple[str, str], tuple[Callable[[Trace, Any], Float64Array], Any, list[tuple[str, dict[str, Any]]]]
] = {
    **{
        ("coflowsim", name): (partial(_ordered, key), Rules(), ORDERED)
        for name, key in {"SEBF": SEBF, "FIFO": FIFO, "NCF": NCF}.items()
    },
    ("coflowsim", "DARK"): (
        partial(_ordered, DARK),
        Rules(rounding=False),
        [
            ("coflows begin at most 8 ms early", SHIFT),
            ("rates recomputed when a flow ends", {"rates": AT_FLOWS}),
            ("coflows sink when they pass a limit", {"sinks_late": False}),
        ],
    ),
    ("coflowsim", "FAIR"): (
        fair_cct_s,
        FlowRules(),
        [("coflows begin at most 8 ms early", SHIFT), ("max-min", {"halves": False})],
    ),
    ("coflowsim", "PFP"): (
        pfp_cct_s,
        FlowRules(),
        [
            ("coflows begin at most 8 ms early", SHIFT),
            ("order by what is left", {"once": False}),
            ("the least of all first, not by racks", {"racks": False}),
            ("no steps", EXACT),
        ],
    ),
    **{
        ("philae+patch", name): (
            partial(_philae, key),
            PhilaeRules(),
            [
                ("coflows begin at most 8 ms early", SHIFT),
                ("counts of pilots do not leak", {"leak": False}),
                ("thin coflows have no pilots", {"thin": False}),
                ("of equally busy ports the first", {"reversed_ties": False}),
                ("the sender's next receiver", {"diagonal": False}),
                ("the estimate stays", {"first_send": False}),
            ],
        )
        for name, key in {"D": D, "A": A}.items()
    },
}


def explain_rules(runs: Runs, names: list[str]) -> None:
    """The peers' rules switched to ours, one after another."""
    trace = trace_of(workload_of("facebook"))
    for (simulator, algorithm), (simulate, rules, switches) in CHAINS.items():
        if names and simulator not in names and algorithm not in names:
            continue
        rows = [["rule, and those before it", *STATISTICS]]
        for name, changed in [("the peer's", {}), *switches]:
            rules = rules._replace(**changed)
            rows.append([name, *cells(list(describe(simulate(trace, rules)).values()))])
        setting = PEERS[simulator, algorithm][0]
        rows.append(["ours", *cells(list(describe(runs.cct_s(setting)).values()))])
        show(f"{simulator} {algorithm}, seconds", rows)


def main() -> None:
    """Run the benchmark."""
    asked = options(__doc__, "peers", peers=(), explain=False, rules=False, keep=Path)
    if not REFERENCE.exists():
        sys.exit(f"no reference results in {SHARED}; name the folder with EMU_SHARED")
    runs = Runs(asked.keep)
    if asked.rules:
        explain_rules(runs, asked.peers)
        return
    if asked.explain:
        explain_philae(runs)
        return
    rows = [["simulator", *STATISTICS, "median ratio", "within 10 %"]]
    names = asked.peers
    wanted = [key for key in reference() if not names or key[0] in names or key[1] in names]
    rows += [row_of(compare(runs, *key)) for key in wanted if key[:2] in PEERS]
    show("Seconds, ours / the peer's; the ratio coflow by coflow", rows)


if __name__ == "__main__":
    main()
