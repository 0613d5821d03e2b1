"""The JSON schemas of the TOML files that Emu reads, for editors: from the registry of keys and nodes' attributes.

An editor with such a schema completes keys, shows their meaning, and marks errors. Values that are text with a grammar
of their own, such as durations, are checked only by Emu.
"""

from __future__ import annotations

from typing import Any

from emu.configuration.key_types import KINDS, Key
from emu.configuration.keys import KEYS, TABLES
from workloads.errors import InputError

DIALECT = "https://json-schema.org/draft/2020-12/schema"
FILES = ("config", "sweep", "cluster")
_TEXT = {"type": "string"}
_TEXTS = {"type": "array", "items": _TEXT, "minItems": 1}
_OF_KIND: dict[str, Any] = {
    "text": _TEXT,
    "path": _TEXT,
    "workload": _TEXT,
    "machines": _TEXT,
    "integer": {"type": ["integer", "string"]},
    "seeds": {
        "anyOf": [
            {"type": ["integer", "string"], "minimum": 1},
            {"type": "array", "items": {"type": "integer"}},
        ]
    },
    "number": {"type": ["number", "string"]},
    "flag": {"type": ["boolean", "string"]},
    "names": {"anyOf": [_TEXT, _TEXTS]},
    "steps": {"anyOf": [_TEXT, _TEXTS]},
    "events": {"type": ["boolean", "string"]},
    "choice": _TEXT,
    "table": {"type": "object"},
}
"""Of kinds that are not a number or a text, such as durations."""


def json_schema(file: str) -> dict[str, Any]:
    """Return the schema of a kind of file: ``config``, ``sweep``, or ``cluster``, a description of machine types."""
    if file not in FILES:
        raise InputError(f"there is no schema of {file!r}; want one of {', '.join(FILES)}")
    if file == "cluster":
        from clusters.description import cluster_json_schema

        return {"$schema": DIALECT, "title": "Emu, a cluster", **cluster_json_schema()}
    properties = _properties(swept=False)
    if file == "sweep":
        about = "Keys with a list of values: a run for each combination."
        properties["sweep"] = {"type": "object", "description": about, "properties": _properties(swept=True)}
    return {
        "$schema": DIALECT,
        "title": f"Emu, {'a sweep' if file == 'sweep' else 'configuration'}",
        "type": "object",
        "properties": properties,
        "additionalProperties": False,
    }


def _properties(swept: bool) -> dict[str, Any]:
    """Return the keys as nested properties; those of a sweep may have several values each."""
    found: dict[str, Any] = {}
    for key in KEYS:
        path = key.name.removesuffix(".*").split(".")
        place = found
        for table in path[:-1]:
            inner = {"type": "object", "properties": {}, "additionalProperties": False}
            place = place.setdefault(table, inner)["properties"]
        place[path[-1]] = _of_key(key, swept)
    return found


def _of_key(key: Key, swept: bool) -> dict[str, Any]:
    if key.name.removesuffix(".*") in TABLES:
        return {"type": "object", "description": key.meaning}
    schema: dict[str, Any] = dict(_OF_KIND.get(key.kind, {"type": ["number", "string"]}))
    if key.choices:
        schema["enum"] = list(key.choices)
    if key.low is not None and "type" in schema:
        schema["minimum"] = key.low
    if swept:
        schema = {"anyOf": [schema, {"type": "array", "items": schema, "minItems": 1}]}
    return {**schema, "description": f"{key.meaning} ({KINDS[key.kind].wants.split(':')[0]})"}
