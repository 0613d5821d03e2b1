"""The JSON schema of the TOML files of machine types, for editors."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from clusters.description import ORDERS
from clusters.schema import ATTRIBUTES, MAX_NODES, RACK_SIZE, Attribute
from workloads.constraints import OWN

_TEXT = {"type": "string", "minLength": 1}
_VERSION = {"type": "string", "pattern": r"^\s*[0-9]{1,3}(\.[0-9]{1,6}){0,2}\s*$"}
_SHARE = {"type": ["number", "string"], "minimum": 0, "maximum": 1}


def cluster_json_schema() -> dict[str, Any]:
    """Return the schema of a description of a cluster (`clusters.description`), without dialect and title."""
    machine: dict[str, Any] = {
        "count": {
            **_whole(0, MAX_NODES),
            "description": "Nodes of this type; all entries have one, or all a share.",
        },
        "share": {
            **_SHARE,
            "description": "Share of the nodes, such as 0.25 or '25%'; the shares add up to 1.",
        },
    }
    for attribute in ATTRIBUTES.values():
        if attribute.name != "rack":
            for name in dict.fromkeys((attribute.name, attribute.column)):
                machine[name] = {**_of_attribute(attribute), "description": attribute.about}
    entry = {
        "type": "object",
        "properties": machine,
        "patternProperties": {
            f"^{OWN}[^\\s=!<>]": {"type": ["string", "number"], "description": "an attribute of your own"}
        },
        "additionalProperties": False,
        "oneOf": [{"required": ["count"]}, {"required": ["share"]}],
    }
    return {
        "type": "object",
        "required": ["machines"],
        "properties": {
            "description": {"type": "string", "description": "For lists of clusters."},
            "rack_size": {
                **_whole(1, MAX_NODES),
                "description": f"Nodes a rack; {RACK_SIZE} where not given.",
            },
            "order": {"enum": list(ORDERS), "description": "The order of machine types over the nodes."},
            "machines": {"type": "array", "minItems": 1, "items": entry},
        },
        "additionalProperties": False,
    }


def _whole(least: int, most: int) -> dict[str, Any]:
    return {"type": "integer", "minimum": least, "maximum": most}


def _of_attribute(attribute: Attribute) -> dict[str, Any]:
    """Return the schema of an attribute's values; texts with a unit are checked when the file is read."""
    if attribute.kind == "tags":
        return {"anyOf": [{"type": "string"}, {"type": "array", "items": _TEXT}]}
    if attribute.kind != "number":
        return _VERSION if attribute.kind == "version" else _TEXT
    if attribute.unit == "1" and attribute.type == pa.int64():
        return _whole(int(attribute.least), int(attribute.most))
    return {"type": ["number", "string"], "minimum": attribute.least}
