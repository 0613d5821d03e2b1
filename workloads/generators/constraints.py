"""Models of how often jobs ask for what: which constraints there are, and how they are drawn.

``phoenix``
    The demand of Phoenix (ICDCS 2017) as its authors' simulator draws it: x and y are uniform in 1..100, and
    the first rule of `_PHOENIX_RULES` that holds gives the job's one constraint. Two in ten jobs meet no rule;
    the released simulator loses these, here they have no constraint.
``sharma``
    After Sharma et al. (SoCC 2011, their clusters of tasks in Google's cells), with the numbers of the Megha
    project's simulator: a job is of one of ten statistical clusters, and has each of 21 constraints by itself
    with the cluster's frequency. There each task draws; here a job does, so that its tasks have one set.
frequencies
    Anything else: constraints, or several with ``and`` between, and their shares of the jobs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from workloads.constraints import ConstraintSet, parse_constraint_set, set_text
from workloads.errors import InputError
from workloads.generators.draws import check_share
from workloads.hints import did_you_mean
from workloads.jobs import Float64Array, Int64Array
from workloads.units import parse_share

MAX_ITEMS = 62
"""The items of a job are coded in the bits of an int64."""


class Model(NamedTuple):
    """The distribution of what a job gets: some of K items, each a set of one or more constraints.

    Attributes
    ----------
    name : str
        As it is asked for; frequencies as text.
    items : tuple of constraint sets, length K
    weights : ndarray of float64, shape (C,)
        How often a job is of each of C statistical clusters; they add up to 1.
    shares : ndarray of float64, shape (C, K)
        How often a job of a cluster has an item.
    combined : bool
        Whether a job may have several items, each drawn by itself, or one at most.
    jobs : str
        Which jobs the model is of: ``short`` or ``all``.
    """

    name: str
    items: tuple[ConstraintSet, ...]
    weights: Float64Array
    shares: Float64Array
    combined: bool
    jobs: str


def find_model(model: str | Mapping[str, Any]) -> Model:
    """Return a model by its name, or of frequencies: ``"cores >= 16: 10%, isa = x86: 0.3"`` or a mapping.

    Raises
    ------
    InputError
        Neither a name nor frequencies, or a wrong constraint or share.
    """
    if isinstance(model, str) and model in MODELS:
        return MODELS[model]
    if isinstance(model, str) and ":" not in model:
        raise InputError(
            f"unknown model {model!r}{did_you_mean(model, MODELS)}; or give frequencies such as "
            "'cores >= 16: 10%, isa = x86: 30%'",
            field="model",
        )
    given = dict(_split(model)) if isinstance(model, str) else dict(model)
    if not 1 <= len(given) <= MAX_ITEMS:
        raise InputError(f"{len(given)} constraints; a model has 1 to {MAX_ITEMS}", field="model")
    items = tuple(parse_constraint_set(text, "model") for text in given)
    shares = [_share(value, text) for text, value in given.items()]
    if len(set(items)) < len(items):
        raise InputError("a constraint is given twice", field="model")
    name = ", ".join(f"{set_text(item)}: {share!r}" for item, share in zip(items, shares, strict=True))
    return Model(name, items, np.ones(1), np.array([shares]), False, "all")


def expected(model: Model, combined: bool) -> Float64Array:
    """Return the share of jobs that should have each item: shape (K,). See `draw`."""
    if combined or not model.combined:
        return model.weights @ model.shares
    return model.weights @ np.array([_kept(shares) for shares in model.shares])


def draw(model: Model, combined: bool, count: int, rng: np.random.Generator) -> Int64Array:
    """Draw what `count` jobs have: shape (count,), bit k of each is set where it has item k.

    With `combined` each item is drawn by itself. Without it a job has one at most: of a model of single items
    by their shares, of a model of combined ones (`Model.combined`) one of those drawn, each as likely.

    Raises
    ------
    InputError
        Shares of single items add up to more than 1.
    """
    if not combined and not model.combined:
        return _draw_one(model.shares[0], count, rng)
    cluster = np.minimum(np.searchsorted(np.cumsum(model.weights), rng.random(count)), len(model.weights) - 1)
    bits = np.zeros(count, np.int64)
    winner = np.full(count, 2.0)  # the item with the least random number stays: each is as likely
    for item in range(len(model.items)):
        has = rng.random(count) < model.shares[cluster, item]
        if combined:
            bits[has] |= 1 << item
            continue
        ticket = rng.random(count)
        has &= ticket < winner
        bits[has], winner[has] = 1 << item, ticket[has]
    return bits


def sets_of_bits(items: Sequence[ConstraintSet], bits: Int64Array) -> tuple[list[ConstraintSet], Int64Array]:
    """Return the distinct sets that jobs have, and the set of each job; the bits are as `draw` gives them."""
    codes, of_job = np.unique(bits, return_inverse=True)
    sets = []
    for code in codes.tolist():
        drawn = (c for item, constraints in enumerate(items) if code >> item & 1 for c in constraints)
        sets.append(tuple({c[:3]: c for c in drawn}.values()))
    return sets, of_job.astype(np.int64)


def _draw_one(shares: Float64Array, count: int, rng: np.random.Generator) -> Int64Array:
    if shares.sum() > 1 + 1e-9:
        raise InputError(
            f"the shares add up to {shares.sum():.6g}, but a job has one constraint at most; give shares of up "
            "to 1 in all, or let them be combined",
            field="model",
        )
    item = np.searchsorted(np.cumsum(shares), rng.random(count), side="right")
    return np.where(item < len(shares), np.left_shift(1, np.minimum(item, len(shares) - 1)), 0)


def _kept(shares: Float64Array) -> Float64Array:
    """Return how often each of independent items is the one that stays of those drawn.

    Item k stays with probability p_k E[1 / (1 + others)], the integral of the others' generating function.
    """
    kept = np.empty(len(shares))
    for item, share in enumerate(shares):
        others = np.ones(1)
        for p in np.delete(shares, item):
            others = np.convolve(others, [1 - p, p])
        kept[item] = share * float((others / np.arange(1, len(others) + 1)).sum())
    return kept


def _split(text: str) -> list[tuple[str, str]]:
    pairs: list[tuple[str, str]] = []
    for part in text.split(","):
        constraint, colon, share = part.rpartition(":")
        if not colon:
            raise InputError(f"{part.strip()!r} is not 'constraint: share'", field="model")
        if constraint.strip() in dict(pairs):
            raise InputError(f"{constraint.strip()} is given twice", field="model")
        pairs.append((constraint.strip(), share.strip()))
    return pairs


def _share(value: Any, text: str) -> float:
    if isinstance(value, str):
        return parse_share(value, f"model: {text}")
    check_share(text, value)
    return float(value)


_PHOENIX_RULES = (
    ("isa = x86", 99, 29),
    ("cores >= 16", 59, 39),
    ("max_disks >= 12", 59, 49),
    ("min_disks >= 4", 69, 59),
    ("cpus >= 2", 79, 74),
    ("kernel >= 3.10", 79, 79),
    ("clock >= 3 GHz", 59, 87),
    ("port >= 10 Gbps", 49, 99),
)
"""Constraint, and the most that x and y may be; the first rule that holds counts. (The values, of which the
simulator has none, are those of the cluster ``phoenix``.)"""


def _phoenix() -> Model:
    x, y = np.meshgrid(np.arange(1, 101), np.arange(1, 101))
    rules = [(x <= most_x) & (y <= most_y) for _, most_x, most_y in _PHOENIX_RULES]
    rule = np.argmax([*rules, np.ones_like(rules[0])], axis=0)
    shares = np.bincount(rule.ravel(), minlength=len(rules) + 1)[None, :-1] / x.size
    items = tuple(parse_constraint_set(text) for text, _, _ in _PHOENIX_RULES)
    return Model("phoenix", items, np.ones(1), shares, False, "short")


_SHARMA_PERCENT = (8, 7, 7, 10, 23, 20, 30, 1, 3, 1, 4, 3, 2, 1, 4, 2, 9, 8, 11, 25, 29)
"""The percentage of the tasks of cluster 1 with each constraint; the other clusters are scaled from it."""
_SHARMA_SCALES = (1, 0.94, 0.98, 0.72, 1.21, 0.82, 1.09, 0.59, 0.71, 0.896)
_SHARMA_WEIGHTS = (
    (0.0396, 0.1204, 0.1304, 0.1168),
    (0.1405, 0.0797, 0.1608, 0.1205),
    (0.0591, 0.1102, 0.1507, 0.1338),
    (0.1203, 0.1204, 0.0493, 0.0966),
    (0.0899, 0.0998, 0.1608, 0.1168),
    (0.1100, 0.0998, 0.1205, 0.1102),
    (0.0899, 0.0593, 0.0289, 0.0493),
    (0.1405, 0.1303, 0.0493, 0.1039),
    (0.1203, 0.0901, 0.1205, 0.0998),
    (0.0899, 0.0900, 0.0289, 0.0524),
)
"""The share of each of the ten clusters in each of the four types of task, which are equally likely."""


def _sharma() -> Model:
    weights = np.array(_SHARMA_WEIGHTS)
    shares = [[round(p * scale, 1) / 100 for p in _SHARMA_PERCENT] for scale in _SHARMA_SCALES]
    items = tuple(parse_constraint_set(f"tags = a{n}") for n in range(1, len(_SHARMA_PERCENT) + 1))
    return Model("sharma", items, (weights / weights.sum(axis=0)).mean(axis=1), np.array(shares), True, "all")


MODELS = {model.name: model for model in (_phoenix(), _sharma())}
"""The models by name."""
