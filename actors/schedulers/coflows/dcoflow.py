"""DCoflow (IFIP Networking 2022): an order of coflows with deadlines, and which to admit, port by port. Clairvoyant.

A coflow is rejected where it costs the most: where it takes long, and would be late. The rejected coflow need not be
the late one, so that one wide coflow does not displace many narrow coflows with later deadlines.

1. A coflow registers, with the sizes of its flows and its deadline. At a decision, coflows that have passed their
   deadlines are dropped; the others, also those rejected before, are ordered by what they have left.
2. Places are given from the last to the first (Algorithm 1). The *bottleneck* is the port that the coflows without a
   place need for longest. Of the coflows that use it and are in time there behind all others, the one with the last
   deadline gets the place. If there is none, a coflow is rejected in advance and gets the place. With
   `reject=min-negative` it is the coflow with the least sum, over its ports where it would be late, of its time there
   times (time left - load), equation (16); with `min-congested` the sum is over its ports that have at least
   `congested` of the bottleneck's load, (17); with `min-all` it is the least of these products, (15). `moore-hodgson`
   and `dynamic-programming` apply `min-negative` only to those coflows that the bottleneck, as a single machine, would
   reject so that as few coflows, or as little weight, as possible are late; the latter needs whole weights, and divides
   the sum by the weight.
3. Of the coflows rejected in advance, those that would be late in this order, by the load of their ports up to their
   place, are rejected. They are examined from the front of the order to its back, or with `examine=back` from the back.
4. In the order of the admitted coflows, each flow gets both of its ports if they are free; a running flow is stopped if
   it holds a port that an earlier flow can use. With `serve_rejected` rejected coflows follow. Flows of one coflow are
   in the order of the workload; with `flow_order=ports` running flows come first, and the others by their ports.
5. Agents are sent which coflows are admitted, rejected or dropped. A rejected coflow is considered again at each
   decision until its deadline: at each arrival; with `decide_at=ends` also at each end of a coflow; or every
   `update_period_s`.

A coflow without a deadline is always admitted. O(n N + lines) a decision about n coflows at N ports, and for each
rejection at most the lines of the coflows at one port; in practice few of them, because bounds exclude the others.

**Deviations from the paper.** The paper uses the time left at the decision; here it is the time left when the schedule
takes effect, so that a coflow whose messages take longer than its slack is rejected. The paper does not state the order
in which rejected coflows are examined: the authors' code for coflows without weights begins at the front, their code
with weights at the back (on 52 files of 40 instances 0.002 to 0.019 fewer are in time in the mean, depending on the
rule of rejection, and 0.0475 in one file: `python -m claims.dcoflow --seeds 2 --instances 40`). The
authors' on-line code has `serve_rejected=true`, and times in slots; it examines all coflows, which is the same, as
those that were not rejected in advance are in time by the estimate. The paper has neither `min-all` nor the last two
rules as variants; all are in the authors' code. The paper does not state the order of a coflow's own flows: in the
authors' code it is that of the file. By ports 0.567 in place of 0.561 are in time on CoflowLib's synthetic instances of
10; on the same 52 files the mean difference is below 0.001, and in single files it is from -0.015 to 0.0125. No bound
is known for either order. The order of the workload takes O(flows of the coflows that are served) a decision, and looks
at the next flows of two ports when a flow ends. Of equally long coflows `moore-hodgson` rejects the one with the first
deadline, as the authors' code does.

`wdcoflow` is `dcoflow` with weights: the value by which a coflow is chosen for rejection is divided by its weight.
Deviations from the paper: those of `dcoflow`.
"""

from functools import partial

from actors.fabric.dcoflow import REJECT_RULES, Rejection
from actors.fabric.fabric_world import CoflowWorld
from actors.fabric.flow_order import flow_order
from actors.scheduler import Parameter
from actors.schedulers.coflows.admitting import (
    BY_DCOFLOW,
    DECIDE_AT,
    UPDATE_PERIOD,
    State,
    admitting_scheduler,
    build_admitting,
    serve_rejected,
)
from actors.schedulers.coflows.ordered import INTERVAL
from actors.setting import Setting

PARAMETERS = (
    Parameter(
        "reject", "min-negative", "choice", "how a coflow is chosen for rejection", choices=REJECT_RULES
    ),
    Parameter(
        "congested",
        0.7,
        "share",
        "least share of the bottleneck's load with which a port counts",
        needs=("reject=min-congested",),
    ),
    Parameter(
        "examine",
        "front",
        "choice",
        "the end of the order at which the examination begins",
        choices=("front", "back"),
    ),
    serve_rejected(False),
    DECIDE_AT,
    UPDATE_PERIOD,
    flow_order("workload"),
    INTERVAL,
)


def build(setting: Setting, weighted: bool) -> tuple[CoflowWorld, State]:
    """Return the world and the coordinator's state at time 0.

    Raises:
        InputError: `reject=dynamic-programming` cannot be used with the workload's weights.
    """
    given = setting.parameters
    how = Rejection(
        rule=REJECT_RULES.index(given["reject"]),
        congested=float(given["congested"]),
        weighted=weighted or given["reject"] == "dynamic-programming",
        from_back=given["examine"] == "back",
    )
    return build_admitting(setting, BY_DCOFLOW, how)


DCOFLOW, WDCOFLOW = (
    admitting_scheduler(
        name=name,
        title=title,
        paper="Luu, Brun, El-Azouzi, De Pellegrini, Prabhu, Richier: DCoflow, IFIP Networking 2022, Algorithm 1, "
        "arXiv 2205.01229",
        parameters=PARAMETERS,
        build=partial(build, weighted=weighted),
    )
    for name, title, weighted in (
        ("dcoflow", "coflows with deadlines: rejected where they cost the most", False),
        (
            "wdcoflow",
            "coflows with deadlines and weights: rejected where they cost the most for their weight",
            True,
        ),
    )
)
