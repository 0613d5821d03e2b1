"""Hostile values in place of those of TOML, JSON and Parquet files; see `benchmarks.hostile_mutations`."""

from __future__ import annotations

import json
import random
import tomllib
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import tomli_w

NUMBERS = (
    "0", "-1", "-0", "1", "2", "1e9", "1e18", "1e19", "1e308", "1e400", "-1e400", "1e-400", "nan", "inf", "-inf", "NaN",
    "2147483647", "2147483648", "-2147483649", "4294967296", "4611686018427387904", "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775809", "18446744073709551616", "9" * 30, "9" * 400, "9" * 5000, "0x10", "1_000", "1,000", "1.5",
    "0.1", "5e-05", "1,5", "00:01:30", "1h", "2 days 03:00:00", "-1 days +23:59:50", "PT1H", "NaT", "9999-12-31",
    "1e25", "Infinity", "-Infinity", "1e999999", "1" + "0" * 400,
    "١٢", "½", "+1", "1e", "--1", " 1", "10000000", "1000000000", "1000000000000", "4e9", "1e-9", "true",
)  # fmt: skip
TEXTS = (
    "", " ", "\0", "\x1b[31mred\x1b[0m", "\x1b]0;title\x07", "\x9b2J", "\u202e", "\ufeff", "\ud7ff", "é", "a\rb",
    "a\nb",
    "'", '"', "\\", "$(id)", "$\\frac{", "%s%n", "../../../etc/passwd", "/dev/zero", "/dev/stdin", "x" * 300,
    "x" * 100_000, "<script>alert(1)</script>", "{", "[", "NULL", "null", "None", "-", ",", "a,b", "a=b", "@", "a@b=c",
    "nodes", "eagle", "yahoo", "1 s", "1e400 s", "-1 s", "1000000 d", "99999999999 Gbps", "101%", "-5%", "1e400%",
    "\ud800", "Unknown", "INVALID", "Partition_Limit", "1970-01-01T00:00:00Z", "0001-01-01T00:00:00Z",
    "9999-12-31T23:59:59", "49710-06:28:15", "12_[1-3%2]", "12_[0-999999999999999]", "12+1", "12.batch", "REQUEUED",
    "cpu=64", "Pod", "Job", "List",
)  # fmt: skip
VALUES: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2**31, 2**53 + 1, 2**62, 2**63 - 1, 2**63, -(2**63), 2**64, 10**30, 10**400, 10**4000,
    1e25, 0.5, -0.5, 1e18,
    1e308, float("nan"), float("inf"), -float("inf"), 5e-324, [], {}, [[]], [1, "a", None], {"a": {"b": 1}},
    "DEEP", "WIDE", *TEXTS,
)  # fmt: skip
"""What takes the place of a value in JSON and TOML; DEEP and WIDE are made when they are wanted."""


def mutate_toml(path: Path, rng: random.Random) -> str:
    """Put a hostile value in place of one of a TOML file, or under another name."""
    table = tomllib.loads(path.read_text())
    done = _change(table, rng)
    try:
        text = tomli_w.dumps(table)
    except (TypeError, ValueError, RecursionError):  # what TOML has no word for
        key = f"a{rng.randrange(10)}"
        text = path.read_text() + f"\n{key} = {rng.choice(NUMBERS)}\n"
    path.write_text(text, encoding="utf-8", errors="surrogatepass")
    return f"toml {done}"


def mutate_json(path: Path, rng: random.Random) -> str:
    """Put a hostile value in place of one of a JSON file."""
    content = json.loads(path.read_text())
    if isinstance(content, dict | list) and content:
        done = _change(content, rng)
    else:
        content, done = rng.choice(VALUES), "all"
    try:
        path.write_text(json.dumps(content))
    except (ValueError, RecursionError):
        path.write_text("9" * 5000)
    return f"json {done}"


def _change(container: Any, rng: random.Random) -> str:
    """Change, remove or rename something deep in a container; return what."""
    at: Any = container
    name: list[str] = []
    while True:
        keys = [*at] if isinstance(at, dict) else [*range(len(at))]
        key = rng.choice(keys)
        name.append(str(key))
        inner = at[key]
        if not isinstance(inner, dict | list) or not inner or rng.random() < 0.15:
            break
        at = inner
    value = rng.choice(VALUES)
    value = [[]] if value == "DEEP" else [1] * 100_000 if value == "WIDE" else value
    how = rng.random()
    if how < 0.08:
        del at[key]
    elif how < 0.15 and isinstance(at, dict):
        at[rng.choice([*TEXTS, str(key) + "s"])] = at.pop(key)
    elif how < 0.5 and not isinstance(inner, dict | list):
        at[key] = (
            type(inner)(rng.choice((2**40, -1, 0, 10**12, 3)))
            if isinstance(inner, int | float)
            else rng.choice((*TEXTS, *NUMBERS))
        )
    else:
        at[key] = value
    return ".".join(name)[:60]


def mutate_table(path: Path, rng: random.Random) -> str:
    """Change cells, columns, types or rows of a Parquet file."""
    table = pq.read_table(path)
    about = table.schema.metadata
    names = table.column_names
    name = rng.choice(names)
    at = names.index(name)
    how = rng.choice(
        ("cell", "cell", "cell", "nested", "cast", "drop", "rename", "twice", "rows", "null", "wide", "many", "about")
    )  # fmt: skip
    if how == "cell":
        table = _other_cell(table, name, rng)
    elif how == "cast":
        kind = rng.choice(
            (pa.string(), pa.float32(), pa.int8(), pa.uint64(), pa.bool_(), pa.list_(pa.int64()))
        )
        made = [[1]] * len(table) if pa.types.is_list(kind) else [None] * len(table)
        table = table.set_column(at, name, pa.array(made, kind))
    elif how == "nested":
        made = rng.choice(([[1], [2, 3]], [{"a": 1}, {"a": None}], [None, b"\xff\xfe"], [2**64 - 1, 2**63]))
        table = table.set_column(at, name, pa.array([made[i % 2] for i in range(len(table))]))
    elif how == "drop":
        table = table.drop_columns([name])
    elif how == "rename":
        table = table.rename_columns([rng.choice(TEXTS) if n == name else n for n in names])
    elif how == "twice":
        table = table.append_column(name, table[name])
    elif how == "rows":
        table = table.slice(rng.randrange(len(table) + 1), rng.choice((0, 1, 10))) if len(table) else table
    elif how == "null":
        table = table.set_column(at, name, pa.nulls(len(table), table[name].type))
    elif how == "wide":
        text = pa.DictionaryArray.from_arrays(pa.array([0] * len(table), pa.int32()), ["x" * 200_000])
        table = table.set_column(at, name, text)
    elif how == "many" and len(table):
        table = table.take(pa.array([0] * rng.choice((100_000, 6_000_000)), pa.int32()))
    if how == "about":
        about = {
            b"metadata": rng.choice((b"{", b"[" * 100_000, b"9" * 5000, b'{"a": 1}', b"null")),
            b"schema_version": b"1",
        }
    table = table.replace_schema_metadata(about)
    pq.write_table(
        table, path, compression=rng.choice(("zstd", "snappy", "none", "gzip")), store_schema=how != "wide"
    )
    return f"table {how} {name}"


def _other_cell(table: pa.Table, name: str, rng: random.Random) -> pa.Table:
    values = table[name].to_pylist()
    if not values:
        return table
    kind = table[name].type
    row = rng.randrange(len(values))
    choices: tuple[Any, ...] = TEXTS
    if pa.types.is_integer(kind):
        choices = (0, -1, 1, 2**31, 2**40, 2**62, 2**63 - 1, -(2**63), 10_000_000)
    elif pa.types.is_floating(kind):
        choices = (0.0, -1.0, -0.0, 1e18, 1e308, float("nan"), float("inf"), -float("inf"), 5e-324, 4e9)
    values[row] = rng.choice((None, *choices))
    try:
        made = pa.array(values, kind)
    except (pa.ArrowException, OverflowError, TypeError):
        return table
    return table.set_column(table.column_names.index(name), name, made)
