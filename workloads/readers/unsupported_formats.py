"""Files of formats that are not read, known by keys of JSON, the root of XML or the first lines of a text.

Errors name such a format, and which form of it is read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from workloads.readers.samples import Sample
from workloads.readers.source import shown

_TABLE = "written as a table, --from job-table reads it"
_BATSIM = f"a workload of Batsim; {_TABLE} (subtime, res, and the delay of the profile)"
_WFFORMAT = "recorded instances of WfCommons (WfFormat) are read"
_JSON = {
    "subtime res profile": _BATSIM,
    "nb_res profiles": _BATSIM,
    "meta errors jobs": "what sacct --json prints; what sacct --parsable2 prints is read",
    "workflow name schemaVersion": "an instance of WfCommons, of a version that is not read; 1.4 to 1.6 are",
    "pegasus jobs": f"a workflow of Pegasus; {_WFFORMAT}",
    "cwlVersion": "a workflow in the Common Workflow Language, which states no durations",
    "Event Timestamp": "an event log of Spark",
    "task_id func_or_class_name": f"Ray's list of tasks; {_TABLE} (arrival, start and end)",
    "scheduler nodes engine": "the summary of a run",
    "configuration versions": "the manifest of a run",
}
"""Keys of JSON, and the format that has all of them."""
_XML = {
    "adag": f"a workflow of Pegasus (DAX); {_WFFORMAT}",
    "platform": "a platform of SimGrid",
    "Data": "what qstat -x of PBS prints",
    "job_info": "what qstat -xml of Grid Engine prints",
}
"""Roots of XML, without their name space, and the format that has them."""
_TEXTS = {
    r"\d\d/\d\d/\d{4} \d\d:\d\d:\d\d;[A-Z];": f"an accounting log of PBS or Torque; {_TABLE} (qtime, start and end)",
    r'"JOB_[A-Z]+" "': f"the accounting log of LSF (lsb.acct); {_TABLE} (submit, start and end)",
    r"\d{3} \(\d+\.\d+\.\d+\) [-/\d]+ \d\d:\d\d:\d\d ": "an event log of HTCondor",
    r"(?:[^:\n]*:){28,}[^:\n]*\n": f"the accounting of Grid Engine; {_TABLE} (submission, start and end)",
    r"(?:strict\s+)?(?:di)?graph\b[^{]*\{": "a graph of Graphviz (DOT)",
    r"\s*JobID +\w+ .*\n-+ +-": "what sacct prints for people; what sacct --parsable2 prints is read",
    r"(?:---\s*\n)?(?:#.*\n)*apiVersion:": "YAML of Kubernetes; what kubectl get pods -o json prints is read",
    r"(?:---\s*\n)?(?:#.*\n)*(?:x-)?pegasus:": f"a workflow of Pegasus; {_WFFORMAT}",
    r"(?:---\s*\n)(?:#.*\n)*[\w-]+:": "YAML, of which no form is read",
}
"""Beginnings of texts, and the format that has them."""
# Groups are atomic: otherwise a text of thirty comments without a root would take hours.
_ROOT = re.compile(
    r"\s*+(?:(?><\?xml.*?\?>)\s*+|(?><!--.*?-->)\s*+|<!DOCTYPE[^>]*+>\s*+)*+<([A-Za-z_][\w.:-]*)", re.DOTALL
)
_TOKEN = re.compile(r'"((?:[^"\\]++|\\.)*+)(?:"(\s*+:)?|\\?\Z)|[{}\[\]]', re.DOTALL)
"""A text, perhaps cut short, with the colon of a key; or the sign that begins or ends an object or list."""
_KIND = re.compile(r'"kind"\s*:\s*"(\w{1,40})"')


class Key(NamedTuple):
    """A key of JSON, and the number of objects and lists around it."""

    depth: int
    name: str


def keys_of(text: str) -> Iterator[Key]:
    """Yield the keys of JSON, which may be cut short, in order.

    Examples
    --------
    >>> [*keys_of('{"jobs": [{"id": 1, "res')]
    [Key(depth=1, name='jobs'), Key(depth=3, name='id')]
    """
    depth = 0
    for found in _TOKEN.finditer(text):
        if found[1] is not None:
            if found[2]:
                yield Key(depth, found[1])
        else:
            depth += 1 if found[0] in "{[" else -1


def unsupported_format(sample: Sample) -> str:
    """Return the format of a file that is not read, in words; "" for an unknown one."""
    text = sample.text
    if sample.form == "json":
        return _foreign_json(text)
    if root := _ROOT.match(text):
        name = root[1].rpartition(":")[2]
        return f"XML: {_XML[name]}" if name in _XML else f"XML with the root {shown(name)}"
    return next((what for begins, what in _TEXTS.items() if re.match(begins, text)), "")


def _foreign_json(text: str) -> str:
    keys = [*keys_of(text)]
    names = {key.name for key in keys}
    if {"apiVersion", "kind"} <= {key.name for key in keys if key.depth <= 3}:
        kind = _KIND.search(text)
        what = f"Kubernetes' {kind[1]}" if kind else "of Kubernetes"
        return f"JSON: {what}; what kubectl get pods, or jobs, -o json prints is read"
    if known := next((what for some, what in _JSON.items() if names.issuperset(some.split())), ""):
        return f"JSON: {known}"
    top = min((key.depth for key in keys), default=0)
    first = [*dict.fromkeys(key.name[:40] for key in keys if key.depth == top)][:8]
    return f"JSON with {', '.join(first)}" if first else "JSON with no objects"
