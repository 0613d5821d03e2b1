"""Description of a cluster: the distribution of its attributes over the nodes, as text and as figures."""

from __future__ import annotations

import math
import textwrap
from collections import Counter
from collections.abc import Iterable
from typing import Any

import numpy as np

from clusters.capacity import capacity
from clusters.cluster import Cluster
from clusters.schema import Attribute, is_own
from workloads.resources import resource_named

_MOST_VALUES = 24
_MOST_OWN_LINES = 3
_MOST_CAPACITIES = 8
_WIDEST = 40
_WIDTH = 110


def cluster_figures(cluster: Cluster) -> dict[str, Any]:
    """Return the figures of a cluster as plain Python values, which can be written as JSON.

    Returns
    -------
    dict
        ``name``; ``nodes``, ``slots`` and ``racks``, their numbers; ``rack_nodes``, the nodes of the smallest
        and the largest rack; ``capacities``, of ``cpu_cores``, ``memory_gib`` and the user's own attributes that are
        numbers, each with its ``unit``, the ``total`` of all nodes and the ``least`` and ``most`` of one;
        ``machine_types``, each with its ``type``, ``nodes`` and the least and most
        ``slots``, ``cpu_cores``, ``memory_bytes`` and ``port_bps``; ``attributes``, for each of
        `Cluster.attributes` but the rack its ``unit``, how many ``distinct`` values there are and the
        ``values``, each with ``text``, ``nodes`` and ``share`` (0..1).

        Numbers are in order, texts by their nodes; of more than 24 values the 24 with most nodes are given. The values
        of ``tags`` are single tags.
    """
    rack_nodes = np.unique(cluster.racks(), return_counts=True)[1]
    return {
        "name": cluster.name,
        "nodes": cluster.num_nodes,
        "slots": cluster.total_slots,
        "racks": len(rack_nodes),
        "rack_nodes": [int(rack_nodes.min()), int(rack_nodes.max())],
        "capacities": _capacities(cluster),
        "machine_types": _machine_types(cluster),
        "attributes": {
            name: _distribution(cluster, attribute)
            for name, attribute in cluster.attributes.items()
            if name != "rack"
        },
    }


def describe_cluster(cluster: Cluster) -> str:
    """Return the figures of a cluster as text for a terminal, at most 120 columns wide."""
    figures = cluster_figures(cluster)
    wide = max(20, *(min(len(m["type"]) + 2, _WIDEST) for m in figures["machine_types"]))
    total = f"{figures['nodes']:,} nodes, {figures['slots']:,} slots, {figures['racks']:,} racks"
    heads = f"{'nodes':>12}{'slots':>8}{'cores':>10}{'memory GiB':>12}{'port Gbps':>11}"
    lines = [f"{cluster.name}: {total}", *_capacity_lines(figures), f"  {'machine type':<{wide}}{heads}"]
    for machine in figures["machine_types"]:
        slots, cores, memory, port = (
            _range(*(x / scale for x in machine[column]))
            for column, scale in (
                ("slots", 1),
                ("cpu_cores", 1),
                ("memory_bytes", 1024**3),
                ("port_bps", 1e9),
            )
        )
        name = _short(machine["type"], wide - 2)
        lines.append(f"  {name:<{wide}}{machine['nodes']:>12,}{slots:>8}{cores:>10}{memory:>12}{port:>11}")
    return "\n".join([*lines, "", *_attribute_lines(figures)]) + "\n"


def _machine_types(cluster: Cluster) -> list[dict[str, Any]]:
    """Return the machine types of the nodes, with the ranges of their main attributes."""
    codes, found = cluster.attribute("type"), []
    columns = {name: cluster.attribute(name) for name in ("slots", "cpu_cores", "memory_bytes", "port_bps")}
    for code, name in enumerate(cluster.attribute_names("type")):
        rows = codes == code
        if rows.any():
            ranges = {
                c: [values[rows].min().item(), values[rows].max().item()] for c, values in columns.items()
            }
            found.append({"type": name, "nodes": int(rows.sum()), **ranges})
    return found


def _capacities(cluster: Cluster) -> dict[str, dict[str, Any]]:
    """Return what nodes have of cores, memory and the user's own attributes that are numbers."""
    own = [
        name for name in cluster.attributes if is_own(name) and _are_numbers(cluster.attribute_names(name))
    ]
    found = {}
    for name in ("cpu_cores", "memory_gib", *own):
        of_nodes = capacity(cluster, name)
        found[name] = {
            "unit": resource_named(name).unit,
            "total": float(of_nodes.sum()),
            "least": float(of_nodes.min()),
            "most": float(of_nodes.max()),
        }
    return found


def _are_numbers(texts: Iterable[str]) -> bool:
    """Return whether texts are finite numbers, or empty for nodes that lack it, and not all empty."""
    try:
        numbers = [float(text) for text in texts if text]
    except ValueError:
        return False
    return bool(numbers) and all(map(math.isfinite, numbers))


def _capacity_lines(figures: dict[str, Any]) -> list[str]:
    """Return a paragraph of what all nodes have together."""
    units = {"cpu_cores": "cores", "memory_gib": "GiB of memory"}
    amounts = [
        f"{amount(of['total'])} {units.get(name) or 'of ' + _short(name, _WIDEST)}"
        for name, of in figures["capacities"].items()
    ]
    if len(amounts) > _MOST_CAPACITIES:
        amounts[_MOST_CAPACITIES:] = [f"{len(amounts) - _MOST_CAPACITIES:,} other attributes in numbers"]
    text = f"all nodes together: {', '.join(amounts)}"
    return textwrap.wrap(text, _WIDTH, initial_indent="  ", subsequent_indent="    ")


def _distribution(cluster: Cluster, attribute: Attribute) -> dict[str, Any]:
    """Return the number of nodes of each value of an attribute."""
    values, counts = np.unique(cluster.attribute(attribute.name), return_counts=True)
    found: list[tuple[Any, int]] = list(zip(values.tolist(), counts.tolist(), strict=True))
    if attribute.kind in ("text", "tags", "own"):
        nodes_of: Counter[str] = Counter()
        names = cluster.attribute_names(attribute.name)
        for code, nodes in found:
            for name in names[code].split() if attribute.kind == "tags" else [names[code]]:
                nodes_of[name] += nodes
        found = sorted(nodes_of.items(), key=lambda item: (-item[1], item[0]))
    shown = sorted(found, key=lambda item: -item[1])[:_MOST_VALUES] if len(found) > _MOST_VALUES else found
    if attribute.kind in ("number", "version"):
        shown = sorted(shown)
    return {
        "unit": attribute.unit,
        "distinct": len(found),
        "values": [
            {"value": v, "text": attribute.show(v), "nodes": n, "share": n / cluster.num_nodes}
            for v, n in shown
        ],
    }


def _attribute_lines(figures: dict[str, Any]) -> list[str]:
    """Return a table of the attributes in which nodes differ, and a paragraph of the others."""
    same, lines = [], []
    for name, attribute in figures["attributes"].items():
        values = attribute["values"]
        if values and values[0]["share"] == 1 and attribute["distinct"] == 1:
            same.append(f"{name} {_short(values[0]['text'], _WIDEST)}")
            continue
        if name == "type":  # the machine types have their own table
            continue
        if is_own(name):  # a trace has dozens of attributes
            values = values[:_MOST_OWN_LINES]
        for i, row in enumerate(values):
            shown = _short(row["text"], _WIDEST - 2)
            share = f"{100 * row['share']:.2f} %"
            lines.append(
                f"  {'' if i else _short(name, 19):<20}{shown:<{_WIDEST}}{row['nodes']:>12,}{share:>11}"
            )
        if attribute["distinct"] > len(values):
            lines.append(f"  {'':<20}and {attribute['distinct'] - len(values):,} other values")
    if lines:
        lines = [f"  {'attribute':<20}{'value':<{_WIDEST}}{'nodes':>12}{'share':>11}", *lines, ""]
    low, high = figures["rack_nodes"]
    same.append(f"nodes a rack {low:,}" if low == high else f"nodes a rack {low:,}-{high:,}")
    text = "on all nodes: " + ", ".join(same)
    return lines + textwrap.wrap(text, _WIDTH, initial_indent="  ", subsequent_indent="    ")


def amount(value: float) -> str:
    """Return an amount of a resource: whole from 10,000 on, below with four digits.

    Examples
    --------
    >>> amount(375216.09), amount(37.25)
    ('375,216', '37.25')
    """
    return f"{value:,.0f}" if value >= 1e4 else f"{value:,.4g}"


def _range(low: float, high: float) -> str:
    return f"{low:.4g}" if f"{low:.4g}" == f"{high:.4g}" else f"{low:.4g}-{high:.4g}"


def _short(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
