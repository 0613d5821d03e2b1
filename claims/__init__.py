"""What papers claim, beside what Emu measures: an entry a paper, each of which one command runs.

| paper | command |
|---|---|
| Eagle, Hawk, Sparrow, beside the simulator of Eagle's authors | `python -m claims.eagle` |
| Phoenix | `emu sweep examples/phoenix.toml`, `python -m claims.phoenix runs/sweep-phoenix` |
| Carbyne | `python -m claims.carbyne` |
| DAGPS (Graphene), jobs alone | `python -m claims.dagps` |
| Philae: speed-ups, what moves them, late schedules, jobs | `python -m claims.philae` |
| Varys, Aalo, FIFO, Philae, beside public simulators | `python -m claims.coflow_simulators` |
| DCoflow, what its open choices change | `python -m claims.dcoflow` |

docs/results.md has the figures and the verdicts.
"""  # fmt: skip
