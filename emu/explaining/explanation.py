"""An explanation of one job: its story, the causes of its completion time, details; as text, HTML and plain values."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from itertools import chain
from textwrap import wrap
from typing import Any, NamedTuple

from emu.results.text_tables import align, number, percent

NS = 1e9
WIDTH = 116
"""Characters of the lines into which sentences are broken."""
LONGEST_LINKS = 4
"""Links of a long chain that are shown; those between two of them are added up."""
MOST_HOLDERS = 5
"""Holders of what a job waited for that are shown; the rest are added up."""
SCREEN = 40
"""Lines of a terminal, to which an explanation is shortened: by fewer holders, and then by fewer links."""
FEWER = ((MOST_HOLDERS, LONGEST_LINKS), (4, 4), (3, 4), (3, 3), (2, 3), (2, 2))
"""Holders and links that are shown, until the explanation fits."""

IDENTIFIERS = ("job", "task", "coflow", "flow", "node", "port", "ingress", "egress", "stage")
"""Columns whose whole numbers are names and not counts: their digits are not grouped."""

Row = Mapping[str, Any]


class Link(NamedTuple):
    """A part of the time from the arrival to the end; each begins where the one before it ends.

    Attributes
    ----------
    begin_ns, end_ns : int
        Since the arrival.
    cause : str
        One of the family's causes.
    what : str
        What happened, such as ``its probe waited in the queue of node 59``.
    actor, task : int
        Who did it, of a message the receiver, and the task that it is about, from 0 over all in workload order; -1
        where there is none, or it plays no part.
    kind : str
        The kind of the event at its end, or what else tells apart links of one cause.
    """

    begin_ns: int
    end_ns: int
    cause: str
    what: str
    actor: int = -1
    kind: str = ""
    task: int = -1

    @property
    def s(self) -> float:
        """Its length in seconds."""
        return (self.end_ns - self.begin_ns) / NS

    def row(self) -> dict[str, Any]:
        """Return it as a row, in seconds since the arrival."""
        times = {"from_s": self.begin_ns / NS, "to_s": self.end_ns / NS, "s": self.s}
        return {**times, "cause": self.cause, "what": self.what}


@dataclass(frozen=True)
class Wait:
    """The longest wait of a job, and its reasons.

    Attributes
    ----------
    link : Link
    holders : sequence of mapping
        Who held what the job waited for, the longest holder first: a mapping for each, from column to value. Column
        ``s`` has for how long, within the wait.
    reasons : sequence of str
        Sentences: what the scheduler believed when it chose, what else it could have chosen.
    facts : mapping
        The numbers in the reasons, by name, for programs.
    within_s : float
        Where the wait is the time that a low rate added: how long the flow was sent, during which others held its
        ports; else 0.
    """

    link: Link
    holders: Sequence[Row] = ()
    reasons: Sequence[str] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)
    within_s: float = 0.0


@dataclass(frozen=True, repr=False)
class Explanation:
    """Why a job, or coflow, took as long as it did.

    Attributes
    ----------
    title : str
        The job, or coflow, and its run.
    time_ns : int
        Its completion time; -1 if it did not end.
    causes : mapping of str to int
        Nanoseconds of its completion time by cause, which add up to it.
    meanings : mapping of str to str
        What each cause means.
    sentences : sequence of str
        What happened to it until it ended.
    tables : mapping of str to sequence of mapping
        Details by title, shown on request: a mapping for each row, from column to value. Times are in seconds since the
        arrival.
    chain : sequence of Link
        From the arrival to the end; the links add up to the completion time.
    longest : Wait or None
        None where it did not wait.
    arrival_ns : int
        When it arrived, in the time of the run.
    """

    title: str
    time_ns: int
    causes: Mapping[str, int]
    meanings: Mapping[str, str]
    sentences: Sequence[str]
    tables: Mapping[str, Sequence[Row]] = field(default_factory=dict)
    chain: Sequence[Link] = ()
    longest: Wait | None = None
    arrival_ns: int = 0

    def __repr__(self) -> str:
        took = f"{number(self.time_ns / NS)} s" if self.time_ns >= 0 else "it did not end"
        return f"<Explanation: {self.title}; {took}>"

    def __str__(self) -> str:
        return self.render()

    def _cause_rows(self) -> list[tuple[str, float, float, str]]:
        """Return of each cause its name, seconds, share of the completion time, and meaning."""
        took = max(self.time_ns, 1)
        return [(name, ns / NS, ns / took, self.meanings[name]) for name, ns in self.causes.items()]

    def story(self) -> list[str]:
        """Return the sentences, and those about the longest wait."""
        wait, head = self.longest, self.wait_head()
        if wait is None:
            return list(self.sentences)
        held = []
        if wait.holders:
            first = wait.holders[0]
            names = list(first)[: list(first).index("s")] if "s" in first else list(first)
            most = ", ".join(f"{name} {_text(first[name], name)}" for name in names)
            lasted = f" ({number(first['s'])} s)" if "s" in first else ""
            held = [f"{self.held_head()}, the most first: {most}{lasted}."]
        return [*self.sentences, head, *held, *wait.reasons]

    def holders(self, most: int | None = MOST_HOLDERS) -> list[dict[str, str]]:
        """Return the holders of what it waited for, as text by column: the first ones, and the sum of the rest."""
        rows = () if self.longest is None else _first(self.longest.holders, most)
        return [{name: _text(value, name) for name, value in row.items()} for row in rows]

    def wait_head(self) -> str:
        """Return the length of the longest wait, and what it was for; empty where it did not wait."""
        if self.longest is None:
            return ""
        link = self.longest.link
        share = percent((link.end_ns - link.begin_ns) / max(self.time_ns, 1))
        since = f"{number(link.begin_ns / NS)} s after " if link.begin_ns else ""
        return f"The longest wait: {number(link.s)} s ({share}) from {since}its arrival: {link.what}."

    def held_head(self) -> str:
        """Return what `holders` are, without a full stop; empty where there are none."""
        if self.longest is None or not self.longest.holders:
            return ""
        during = f" in the {number(self.longest.within_s)} s of that sending" if self.longest.within_s else ""
        return f"Who held what it waited for{during}"

    def render(self, *, details: bool = False) -> str:
        """Return the explanation as text for a terminal: about a screen, or with `details` all of it."""
        if details:
            tables = (_table_lines(title, table) for title, table in self.tables.items())
            return "\n".join([*self._lines(None, None), *chain.from_iterable(tables)]) + "\n"
        shown = (self._lines(*most) for most in FEWER)
        lines = next((lines for lines in shown if len(lines) <= SCREEN), None) or self._lines(*FEWER[-1])
        return "\n".join(lines) + "\n"

    def _lines(self, holders: int | None, links: int | None) -> list[str]:
        """Return the explanation without its tables, with a number of holders and of links; None: all."""
        rows = [["where its time went", "s", "share", ""]]
        rows += [
            [f"  {cause}", number(s), percent(share), meaning]
            for cause, s, share, meaning in self._cause_rows()
            if s or links is None
        ]
        causes = ["", *align(rows, right_until=3)] if len(rows) > 1 else []  # what did not end has no time
        rows = [["since its arrival (s)", "for (s)", "cause", ""]]
        for link in self._links(links):
            mark = "  <- the longest wait" if self.longest is not None and link == self.longest.link else ""
            rows.append([f"  {number(link.begin_ns / NS)}", number(link.s), link.cause, link.what + mark])
        steps = ["", *align(rows, right_until=2)] if len(rows) > 1 else []
        return [self.title, "", *_broken(self.sentences), *causes, *steps, *self._wait_lines(holders)]

    def _links(self, most: int | None) -> list[Link]:
        """Return the links of the chain that are shown, of a long one the longest ones, and always the longest wait."""
        links = [link for link in self.chain if link.end_ns > link.begin_ns]
        always = None if self.longest is None else self.longest.link
        return links if most is None else _shortened(links, always, most)

    def _wait_lines(self, most: int | None) -> list[str]:
        if self.longest is None:
            return []
        head = f"{self.wait_head()} {self.held_head()}:" if self.longest.holders else self.wait_head()
        holders = _table_lines("", _first(self.longest.holders, most))[1:]
        return ["", *_broken([head]), *holders, *_broken(self.longest.reasons)]

    def brief(self) -> str:
        """Return the sentences and the longest wait as text."""
        lines = [self.title, "", *_broken(self.sentences), *self._wait_lines(MOST_HOLDERS // 2)]
        return "\n".join(lines) + "\n"

    def as_dict(self) -> dict[str, Any]:
        """Return the explanation as plain values, for JSON."""
        wait, longest = self.longest, None
        if wait is not None:
            (facts,) = _plain([wait.facts])
            held = {"holders": _plain(wait.holders), "reasons": list(wait.reasons), "facts": facts}
            longest = wait.link.row() | held
        return {
            "title": self.title,
            "arrival_s": self.arrival_ns / NS,
            "time_s": self.time_ns / NS if self.time_ns >= 0 else None,
            "causes_ns": dict(self.causes),
            "sentences": list(self.sentences),
            "chain": [link.row() for link in self.chain],
            "longest_wait": longest,
            "tables": {title: _plain(table) for title, table in self.tables.items()},
        }

    def _repr_html_(self) -> str:
        """Return the explanation as HTML, for notebooks: what `render` shows."""
        causes = [
            {"cause": cause, "s": number(s), "share": percent(share), "": meaning}
            for cause, s, share, meaning in self._cause_rows()
        ]
        steps = [
            {"from (s)": link.begin_ns / NS, "for (s)": link.s, "cause": link.cause, "": link.what}
            for link in self._links(LONGEST_LINKS)
        ]
        parts = [f"<h4>{escape(self.title)}</h4>", *(f"<p>{escape(text)}</p>" for text in self.sentences)]
        for title, table in (("Where its time went", causes), ("From its arrival to its end", steps)):
            parts += [f"<p><b>{title}</b></p>{_html(table)}"] if table else []
        if self.longest is not None:
            parts.append(f"<p><b>{escape(self.wait_head())}</b></p>")
            parts.append(_html(held) if (held := self.holders()) else "")
            parts += [f"<p>{escape(text)}</p>" for text in self.longest.reasons]
        return "\n".join(parts)


def counted(n: int, what: str) -> str:
    """Return a number of things, such as ``1 task`` or ``2,000 tasks``."""
    return f"{n:,} {what}{'' if n == 1 else 's'}"


def longest_wait(chain: Sequence[Link]) -> Link | None:
    """Return the longest link of a chain that is a wait; None if nothing waited."""
    waits = [link for link in chain if link.cause not in ("work", "transmission") and link.s]
    return max(waits, key=lambda link: link.end_ns - link.begin_ns, default=None)


def _shortened(links: Sequence[Link], always: Link | None, most: int) -> list[Link]:
    """Return the longest links of a chain, and one link for those between two of them; `always` is kept."""
    if len(links) <= 2 * most + 1:  # the shortened chain may have as many
        return list(links)
    longest = sorted(
        range(len(links)), key=lambda i: (links[i] != always, links[i].begin_ns - links[i].end_ns)
    )
    kept = sorted(longest[:most])
    shown: list[Link] = []
    after = 0
    for i in [*kept, len(links)]:
        between = links[after:i]
        shown += [_sum_of(between)] if len(between) > 1 else between
        shown += links[i : i + 1]
        after = i + 1
    return shown


def _sum_of(links: Sequence[Link]) -> Link:
    sums: dict[str, float] = {}
    for link in links:
        sums[link.cause] = sums.get(link.cause, 0.0) + link.s
    parts = ", ".join(f"{cause} {number(s)} s" for cause, s in sorted(sums.items(), key=lambda one: -one[1]))
    return Link(links[0].begin_ns, links[-1].end_ns, "", f"{counted(len(links), 'step')}: {parts}")


def _first(table: Sequence[Row], most: int | None) -> list[Row]:
    """Return the first rows of a table, and one row for the rest with their sum of bytes, or else of seconds."""
    if most is None or len(table) <= most + 1:
        return list(table)
    rest, names = table[most:], list(table[0])
    summed = [name for name in ("bytes", "s") if name in names][:1]  # ports are used by several at once
    sums: dict[str, Any] = {name: math.fsum(row[name] for row in rest) for name in summed}
    return [*table[:most], {name: sums.get(name, "") for name in names} | {names[0]: f"{len(rest):,} more"}]


def _broken(sentences: Sequence[str]) -> list[str]:
    return [
        line
        for text in sentences
        for line in wrap(text, WIDTH, initial_indent="  ", subsequent_indent="    ")
    ]


def _table_lines(title: str, table: Sequence[Row]) -> list[str]:
    if not table:
        return []
    head = [title or f"    {next(iter(table[0]))}", *list(table[0])[1:]]
    begin = "  " if title else "    "
    rows = []
    for row in table:
        first, *rest = (_text(value, name) for name, value in row.items())
        rows.append([begin + first, *rest])
    return ["", *align([head, *rows])]


def _plain(table: Sequence[Row]) -> list[dict[str, Any]]:
    """Return rows of plain values, None for what is not finite."""

    def plain(cell: Any) -> Any:
        value = cell.item() if hasattr(cell, "item") else cell
        return None if isinstance(value, float) and not math.isfinite(value) else value

    return [{name: plain(cell) for name, cell in row.items()} for row in table]


def _text(value: Any, name: str) -> str:
    """Return a cell as text; `name` is its column's."""
    if value is None:
        return "-"
    if isinstance(value, int) and name not in IDENTIFIERS:
        return f"{value:,}"
    return number(value) if isinstance(value, float) else str(value)


def _html(table: Sequence[Row]) -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name in table[0])
    rows = ("".join(f"<td>{escape(_text(value, name))}</td>" for name, value in row.items()) for row in table)
    return f"<table><tr>{head}</tr>{''.join(f'<tr>{row}</tr>' for row in rows)}</table>"


def render_beside(first: Explanation, second: Explanation, *, details: bool = False) -> str:
    """Return two explanations of the same job: the causes in one table, then each explanation."""
    both = (first, second)
    times = {
        f"  {name}": tuple(one.causes.get(name, 0) for one in both)
        for name in {**first.causes, **second.causes}
    }
    shown = {name: ns for name, ns in times.items() if any(ns) or details}
    if all(one.time_ns >= 0 for one in both):
        shown["  completion time"] = (first.time_ns, second.time_ns)
    rows = [["where its time went", "1 (s)", "2 (s)", "difference (s)"]]
    for name, (left, right) in shown.items():
        rows.append([name, *map(number, (left / NS, right / NS, right / NS - left / NS))])
    lives = (
        f"{i}: {one.render(details=True) if details else one.brief()}" for i, one in enumerate(both, start=1)
    )
    return "\n".join([*align(rows), "", *lives])
