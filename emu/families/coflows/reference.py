"""The part of docs/reference/results.md on runs of coflows."""

from __future__ import annotations

from emu.families.coflows.metrics import BINS, LATE_SHARE

HEAD = """\
# Runs of coflows

A run of coflows has `coflows.parquet` in place of `jobs.parquet`, `flows.parquet` in place of `tasks.parquet`, and
another `timeline.parquet`. The part `coflows` of its `summary.json` is in place of `jobs`.
"""
SUMMARY = """\
## summary.json of coflows

| key | meaning |
|---|---|
| `scheduler`, `policy`, `workload`, `seed`, `drawn`, `clock`; `nodes` | what was run; the number of ports |
| `coflows.count`, `.mean`, `.p50`, `.p90`, `.p95`, `.p99`, `.p99.9`, `.max` | of cct_s in seconds, of the coflows \
that finished; percentiles are linear |
| `coflows.wait`, `coflows.slowdown` | the same of the time until the first flow began, and of slowdown |
| `coflows.makespan_s` | from the first arrival to the last completion |
| `coflows.unfinished` | coflows that did not finish, where there are any |
| `coflows.acceptance_rate`, `coflows.weighted_acceptance_rate` | share of the coflows with a deadline, and of their \
weight, that ended by it; absent where none has one |
| `coflows.admission` | of the coflows with a deadline, where the scheduler has admission: `admitted`, the share that \
its last decision admitted; `admitted_after`, of those `mean`, `p50` and `p90` of the time from the arrival to the \
last admission, and `rejected_after`, of the others to the last rejection |
| `coflows.prediction_error` | share of the coflows with a deadline that the scheduler admitted, by its last decision, \
and that did not end by it; absent where it has no admission |
| `coflows.wasted` | of the coflows with a deadline: `late_bytes`, sent by those that ended after it; \
`dropped_bytes`, sent by those that were dropped; `share`, both over all bytes that these coflows sent. For a dropped \
coflow it is what the coordinator knows: bytes sent until its decision takes effect, without the cost of its messages |
| `coflows.normalised_cct` | `mean`, `p50` and `p90` of slowdown, of the coflows that ended by their deadlines |
| `coflows.bins` | the same by width and size: {bins}; a bin without coflows is absent |
| `coflows.learning` | of the coflows that the scheduler had to learn, those with learned_s above 0: `count`; `mean`, \
`p50` and `p90` of learned_s (`latency`), of learned_s / cct_s (`cct_share`), of learned_bytes (`bytes`) and of \
learned_bytes / size_bytes (`bytes_share`); `late`, the share of them whose cct_share is above {late:g}. Absent where \
nothing was learned |
| `coflows.estimates` | `count`, `mean`, `std`, `p50`, `p90` and `p99` of the relative error of estimated sizes, \
\\|estimated_bytes - size_bytes\\| / size_bytes; absent where none was estimated |
| `coordinator` | where the coordinator works in intervals: how many there were from the first arrival on \
(`intervals`), the shares of them in which it had more to do than time (`missed`) and in which it sent no schedule \
(`without_rates`), and the mean numbers per interval of agents that reported (`agents_heard`), of `updates` \
received, of `decisions`, of `refills` (bandwidth of ended flows goes to the next in the existing order), \
and of agents that were sent rates (`schedules`), and where messages have a cost its work (`work_s`) |
| `programs` | where the coordinator solves programs: how many it has `solved`, how many of them the time limit ended \
(`limited`), and the `worst_gap` that was left, (bound - value) / bound |
| `decisions` | with `cost.model=measured`: `count`, `mean`, `p50`, `p90`, `p99` and `max` in seconds of what one \
decision of the coordinator takes, the CPU time of its handler |
| `schedulers` | as of jobs, where messages cost something: of the coordinator |
| `offered_load`, `bottlenecks` | as of jobs; the load is bytes over the span of the arrivals times what all ports \
carry in one direction |
| `engine` | as of jobs; `flows`, and the same as `tasks` |
| `counters` | what the scheduler's mechanisms did |

Coflows that arrive within `warmup` of the first are left out of everything in `coflows` but the makespan.

## Comparisons of coflows

A comparison has what [one of jobs](#comparisons) has, by bin in place of class, and the speed-up of the first scheduler
over each other (`speedup`): `average` is the other's mean completion time over that of the first, `P50` and `P90` are
percentiles of the same ratio coflow by coflow. With several seeds they are taken seed by seed, and their mean and
interval are shown; over an archive of instances, those in which some scheduler finished none of a group are left out of
its rows (`left_out`, by group). Without a network delay coflows are equal within 0.1 %. For learning there are also
medians of time and bytes over those under the first scheduler that learns, of coflows that both had to learn.

Where coflows have deadlines and there are several runs, of seeds or of instances, `gains.all` has for `acceptance_rate`
and `weighted_acceptance_rate` what each scheduler gains over the first, run by run: `p1`, `p10`, `p50`, `p90` and `p99`
of (rate - rate of the first) / rate of the first, as in DCoflow's paper (section IV-A), and the `count` of runs in
which the first met any deadline; in others there is no gain. With the first scheduler `cds-lp` these are gains against
the optimum.

Jobs that also compute gain less than their coflows. Each coflow is taken as the shuffle of a job of its own. The share
of the job's time that it shuffles is drawn with the seed of the run: below 25 % for 61 % of the jobs, 25 to 50 % for
13 %, 50 to 75 % for 14 % and more for the rest, evenly within each range. It is the share of the job's time under the
*first* scheduler: a job whose coflow takes c there computes for c (1 - share) / share, and as long under all others.
(With the share under the slower scheduler, no job could become faster than 1 / (1 - share) times.)
""".replace("{bins}", "; ".join(f"`{name}`: {about}" for name, about in BINS.items())).replace(
    "{late:g}", f"{LATE_SHARE:g}"
)
