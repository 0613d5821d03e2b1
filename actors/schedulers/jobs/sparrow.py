"""Sparrow: batch sampling with late binding (Ousterhout, Wendell, Zaharia, Stoica; SOSP 2013).

Stateless schedulers probe randomly chosen nodes, twice as many as the job has tasks. A probe waits its turn in
the node's queue; then the node asks for a task, and gets one as long as the job has one left.

1. A job of m tasks arrives at one of the schedulers: probe `probe_ratio` · m nodes, all different.
2. A node whose slot falls idle takes the probe at the head of its queue and requests a task.
3. The scheduler answers with the job's next task, or with none; the node goes on with its queue.

A task costs 8 events with the default ratio: two probes, two requests, two answers, its end, its report.

**Deviations from the paper.** The paper leaves open what happens when a job has more probes than there are nodes:
here every node is probed in turn, and the rest at random. The authors of Eagle simulate Sparrow with draws with
replacement: `replacement=true`.

References: doi 10.1145/2517349.2522716
"""

from typing import NamedTuple

from actors.kernel.compiled import compiled, inlined
from actors.kernel.queue import ARRIVAL, DONE, REQUEST, RUNNING, take
from actors.nodes.worker import node_event
from actors.schedulers.jobs.build import build_world, fifo_rules
from actors.schedulers.jobs.late_binding import next_arrival, on_done, on_request
from actors.schedulers.jobs.probing import Probing, make_probing, most_probes, probes_of, send_probes
from actors.schedulers.policy import Parameter, Scheduler


class State(NamedTuple):
    """Sparrow's parameters and scratch space."""

    probing: Probing


@inlined
def on_arrival(w, p, t, me, job):
    """Step 1: probe."""
    tasks = next_arrival(w, me, job)
    send_probes(w, t, me, p.probing, job, tasks, probes_of(p.probing, tasks), 0)


@compiled
def advance(w, p, until, most):
    """Handle events before `until`, at most `most` of them; says why it stopped."""
    message = w.queue.now
    for _ in range(most):
        why = take(w.queue, w.entries, until)
        if why != RUNNING:
            return why
        t, kind, me, job = message.time[0], message.kind[0], message.dst[0], message.a[0]
        if me < w.nodes.size:
            node_event(w, me)
        elif kind == REQUEST:
            on_request(w, t, me, job, message.b[0])
        elif kind == DONE:
            on_done(w, job, message.c[0], message.d[0])
        elif kind == ARRIVAL:
            on_arrival(w, p, t, me, job)
    return RUNNING


def build(setting):
    """The world and the scheduler's state at time 0."""
    p = setting.parameters
    world = build_world(
        setting,
        fifo_rules(),
        most_sends=lambda tasks: most_probes(p["probe_ratio"], 1, tasks),
        schedulers=p["schedulers"],
    )
    return world, State(make_probing(p["probe_ratio"], 1, p["replacement"], setting.cluster.num_nodes))


PROBE_RATIO = Parameter("probe_ratio", 2.0, "float", "probes per task", low=1.0, high=100.0)
REPLACEMENT = Parameter(
    "replacement", False, "bool", "draw nodes with replacement, as the authors of Eagle simulate it"
)
SCHEDULERS = Parameter(
    "schedulers", 10, "int", "probe schedulers that share the jobs in turn", low=1, high=10_000
)

SPARROW = Scheduler(
    name="sparrow",
    title="batch sampling with late binding",
    paper="Ousterhout et al., SOSP 2013, doi 10.1145/2517349.2522716",
    parameters=(PROBE_RATIO, REPLACEMENT, SCHEDULERS),
    build=build,
    advance=advance,
)
