"""An explanation of one job: sentences, the causes of its completion time, tables; as text and as HTML."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any

from emu.results.tables import align, number, percent

NS = 1e9


@dataclass(frozen=True)
class Explanation:
    """Why a job, or coflow, took as long as it did.

    Attributes
    ----------
    title : str
        Which one, of which run.
    time_ns : int
        Its completion time; -1 if it did not end.
    causes : mapping of str to int
        Nanoseconds of its completion time by cause, which add up to it.
    meanings : mapping of str to str
        What each cause means.
    sentences : sequence of str
        Its life.
    tables : mapping of str to sequence of mapping
        Further tables by title: a mapping for each row, from column to value. Times are in seconds.
    """

    title: str
    time_ns: int
    causes: Mapping[str, int]
    meanings: Mapping[str, str]
    sentences: Sequence[str]
    tables: Mapping[str, Sequence[Mapping[str, Any]]] = field(default_factory=dict)

    def cause_rows(self) -> list[dict[str, Any]]:
        """Return the causes as rows: cause, seconds, share of the completion time, meaning."""
        return [
            {"cause": name, "s": ns / NS, "share": ns / max(self.time_ns, 1), "is": self.meanings[name]}
            for name, ns in self.causes.items()
        ]

    def render(self) -> str:
        """Return the explanation as text for a terminal."""
        lines = [self.title, ""]
        lines += [f"  {sentence}" for sentence in self.sentences]
        rows = [["where its time went", "s", "share"]]
        meanings = [""]
        for row in self.cause_rows():
            rows.append([f"  {row['cause']}", number(row["s"]), percent(row["share"])])
            meanings.append(row["is"])
        lines += ["", *(f"{line}  {is_}".rstrip() for line, is_ in zip(align(rows), meanings, strict=True))]
        for title, table in self.tables.items():
            if table:
                rows = [[title, *list(table[0])[1:]]]
                rows += [
                    [f"  {_text(first)}", *map(_text, rest)]
                    for first, *rest in (row.values() for row in table)
                ]
                lines += ["", *align(rows)]
        return "\n".join(lines) + "\n"

    def as_dict(self) -> dict[str, Any]:
        """Return the explanation as plain values, for JSON."""
        return {
            "title": self.title,
            "time_s": self.time_ns / NS if self.time_ns >= 0 else None,
            "causes_ns": dict(self.causes),
            "sentences": list(self.sentences),
            "tables": {title: [dict(row) for row in table] for title, table in self.tables.items()},
        }

    def _repr_html_(self) -> str:
        """Return the explanation as HTML, for notebooks."""
        parts = [
            f"<h4>{escape(self.title)}</h4>",
            *(f"<p>{escape(sentence)}</p>" for sentence in self.sentences),
        ]
        causes = [
            {"cause": row["cause"], "s": number(row["s"]), "share": percent(row["share"]), "": row["is"]}
            for row in self.cause_rows()
        ]
        for title, table in {"Where its time went": causes, **self.tables}.items():
            if table:
                parts.append(f"<p><b>{escape(title)}</b></p>{_html(table)}")
        return "\n".join(parts)


def counted(n: int, what: str) -> str:
    """Return a number of things, such as ``1 task`` or ``2,000 tasks``."""
    return f"{n:,} {what}{'' if n == 1 else 's'}"


def _text(value: Any) -> str:
    if value is None:
        return "-"
    return number(value) if isinstance(value, float) else str(value)


def _html(table: Sequence[Mapping[str, Any]]) -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name in table[0])
    rows = ("".join(f"<td>{escape(_text(value))}</td>" for value in row.values()) for row in table)
    return f"<table><tr>{head}</tr>{''.join(f'<tr>{row}</tr>' for row in rows)}</table>"


def render_beside(first: Explanation, second: Explanation) -> str:
    """Return two explanations of the same job side by side: the causes in one table, then each life."""
    rows = [["where its time went", "s", "s", "difference (s)"]]
    for name in dict.fromkeys((*first.causes, *second.causes)):
        left, right = first.causes.get(name, 0) / NS, second.causes.get(name, 0) / NS
        rows.append([f"  {name}", number(left), number(right), number(right - left)])
    total = (first.time_ns / NS, second.time_ns / NS)
    rows.append(["  completion time", number(total[0]), number(total[1]), number(total[1] - total[0])])
    head = [f"1: {first.title}", f"2: {second.title}", ""]
    return "\n".join([*head, *align(rows), "", "1: " + first.render(), "2: " + second.render()])
