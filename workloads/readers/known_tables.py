"""Tables of public traces, known by their content: those that are read, and similar ones that are not.

A table is known by the names of its columns where a file has them (a header, keys of JSON, columns of Parquet), and
otherwise by the number and form of the fields of its rows. The error names similar formats, so that no trace is read
as another one: Alibaba's traces of 2017 and 2018 both have a ``batch_task.csv``, with different columns.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from workloads.readers.samples import Sample
from workloads.readers.source import shown

GOOGLE_2011, GOOGLE_2019, ALIBABA_2017, ALIBABA_2018 = (
    "google-2011", "google-2019", "alibaba-2017", "alibaba-2018",
)  # fmt: skip
_WHOLE, _MAYBE = r"-?\d+", r"(-?\d+)?"
_NUMBER = r"(-?\d+(\.\d*)?([eE][-+]?\d+)?)?"
_ANY, _NAME, _STATUS = r".*", r"(?=.*[A-Za-z]).+", "[A-Z][a-z]+"
_HASH = r"[0-9a-f]{16,64}"


@dataclass(frozen=True)
class KnownTable:
    """A table of a public trace.

    Attributes
    ----------
    trace, table : str
        Their names.
    format : str
        The format of `workloads.formats.FORMATS` that reads it; empty if none does.
    named : tuple of str
        Columns by which it is known where columns have names, as `workloads.readers.samples.plain_name` writes them.
    fields : tuple of str
        Regular expressions for the fields of a row of CSV, where columns have no names.
    as_table : str
        How ``job-table`` reads it, where no format does.
    """

    trace: str
    table: str
    format: str = ""
    named: tuple[str, ...] = ()
    fields: tuple[str, ...] = ()
    as_table: str = ""

    def __str__(self) -> str:
        return f"{self.table} of {self.trace}"

    def fits(self, sample: Sample) -> bool:
        """Return whether a file with this beginning may hold the table."""
        if self.named and {*self.named} <= {*sample.names}:
            return True
        if not self.fields or sample.form != "csv":
            return False
        fitting = [row for row in sample.rows if len(row) == len(self.fields) and self._fits_row(row)]
        return 2 * len(fitting) > len(sample.rows)

    def _fits_row(self, row: tuple[str, ...]) -> bool:
        return self._row.fullmatch("\n".join(row)) is not None

    @cached_property
    def _row(self) -> re.Pattern[str]:
        return re.compile("\n".join(f"(?:{field})" for field in self.fields))


_EVENT = ("time", "type", "collection_id")
_A17, _A18 = "Alibaba's cluster trace of 2017", "Alibaba's cluster trace of 2018"
_G11, _G19 = "Google's cluster trace of 2011", "Google's cluster trace of 2019"
_PAI = "Alibaba's GPU cluster trace of 2020 (PAI)"
_AZURE = "Azure's public dataset"

# A file is compared with them in this order: of two with similar columns the more special one comes first.
KNOWN_TABLES = (
    KnownTable("Google's cluster trace of 2019, joined with usage", "the sample borg_traces_data", "",
               ("instance_events_type", "collections_events_type")),
    KnownTable(_PAI, "pai_task_table", "", ("job_name", "inst_num", "plan_gpu"),
               (_HASH, _ANY, _NUMBER, _STATUS, _NUMBER, _NUMBER, _NUMBER, _NUMBER, _NUMBER, _ANY)),
    KnownTable(_PAI, "pai_instance_table", "", ("job_name", "worker_name"),
               (_HASH, _ANY, _ANY, _ANY, _ANY, _STATUS, _NUMBER, _NUMBER, _ANY)),
    KnownTable(_PAI, "pai_job_table", "", ("job_name", "inst_id", "user"),
               (_HASH, _HASH, _HASH, _STATUS, _NUMBER, _NUMBER)),

    KnownTable(_G11, "task_events", GOOGLE_2011, ("job_id", "task_index", "scheduling_class", "cpu_request"), (
        _WHOLE, _MAYBE, _WHOLE, _WHOLE, _MAYBE, "[0-8]", _ANY, "[0-3]?", r"\d{0,2}", _NUMBER, _NUMBER, _NUMBER, "[01]?",
    )),
    KnownTable(_G11, "job_events", GOOGLE_2011, ("job_id", "scheduling_class", "logical_job_name"), (
        _WHOLE, _MAYBE, _WHOLE, "[0-8]", _ANY, "[0-3]?", _ANY, _ANY,
    )),
    KnownTable(_G11, "machine_events", GOOGLE_2011, ("time", "machine_id", "cpus", "memory"), (
        _WHOLE, _WHOLE, "[0-2]", f"({_NAME})?", _NUMBER, _NUMBER,
    )),
    KnownTable(_G11, "task_constraints", GOOGLE_2011, ("job_id", "task_index", "attribute_name"), (
        _WHOLE, _WHOLE, _WHOLE, "[0-3]", _NAME, _ANY,
    )),
    KnownTable(_G11, "machine_attributes", GOOGLE_2011, ("machine_id", "attribute_name"), (
        _WHOLE, _WHOLE, _NAME, _ANY, "[01]",
    )),
    KnownTable(_G11, "task_usage", "", ("job_id", "task_index", "cpu_rate"), (*[_WHOLE] * 5, *[_NUMBER] * 15)),
    KnownTable(_G11, "task_usage", "", (), (*[_WHOLE] * 5, *[_NUMBER] * 14)),

    KnownTable(_G19, "instance_events", GOOGLE_2019, (*_EVENT, "instance_index")),
    KnownTable(_G19, "instance_usage", "", ("collection_id", "instance_index", "start_time", "end_time")),
    KnownTable(_G19, "collection_events", GOOGLE_2019, _EVENT),
    KnownTable(_G19, "machine_events", GOOGLE_2019, ("time", "machine_id", "type", "platform_id")),
    KnownTable(_G19, "machine_attributes", GOOGLE_2019, ("time", "machine_id", "name", "value")),

    KnownTable(_A18, "batch_instance", ALIBABA_2018, ("task_name", "job_name", "seq_no", "total_seq_no"), (
        _ANY, _ANY, _ANY, r"\w*", _STATUS, _NUMBER, _NUMBER, "(m_.*)?", *[_NUMBER] * 6,
    )),
    KnownTable(_A18, "batch_task", ALIBABA_2018, ("task_name", "job_name", "start_time", "end_time"), (
        _ANY, _NUMBER, _ANY, r"\w*", _STATUS, _NUMBER, _NUMBER, _NUMBER, _NUMBER,
    )),
    KnownTable(_A18, "machine_meta", ALIBABA_2018, ("machine_id", "cpu_num", "mem_size"), (
        "m_.*", _NUMBER, _ANY, _ANY, _NUMBER, _NUMBER, "[A-Z]*",
    )),
    KnownTable(_A18, "machine_usage", "", ("machine_id", "cpu_util_percent"), ("m_.*", *[_NUMBER] * 8)),
    KnownTable(_A18, "container_meta", "", ("container_id", "app_du"),
               ("c_.*", "m_.*", _NUMBER, _ANY, r"\w*", _NUMBER, _NUMBER, _NUMBER)),
    KnownTable(_A18, "container_usage", "", ("container_id", "cpu_util_percent"), ("c_.*", "m_.*", *[_NUMBER] * 9)),

    KnownTable(_A17, "batch_task", ALIBABA_2017, ("create_timestamp", "modify_timestamp"),
               (_WHOLE, _MAYBE, _MAYBE, _MAYBE, _MAYBE, _STATUS, _NUMBER, _NUMBER)),
    KnownTable(_A17, "batch_instance", ALIBABA_2017, ("start_timestamp", "end_timestamp", "seq_no"),
               (_MAYBE, _MAYBE, _MAYBE, _MAYBE, _MAYBE, _STATUS, _MAYBE, _MAYBE, *[_NUMBER] * 4)),
    KnownTable(_A17, "server_event", ALIBABA_2017, ("event_type", "event_detail"), (
        _WHOLE, _WHOLE, "add|softerror|harderror", _ANY, *[_NUMBER] * 3)),
    KnownTable(_A17, "container_event", "", (),
               (_WHOLE, "Create|Remove", _WHOLE, _WHOLE, _NUMBER, _NUMBER, _NUMBER, r"[\d|]*")),
    KnownTable("Alibaba's GPU cluster trace of 2023", "openb_pod_list", "", ("cpu_milli", "num_gpu")),
    KnownTable("Alibaba's trace of microservices", "MSCallGraph", "", ("rpcid", "um", "dm")),

    KnownTable(_AZURE, "vmtable", "", ("vmid", "subscriptionid"),
               (_ANY, _ANY, _ANY, *[_NUMBER] * 5, "Delay-insensitive|Interactive|Unknown", _ANY, _ANY)),
    KnownTable(_AZURE, "vm_cpu_readings", "", ("timestamp", "vmid"), (_WHOLE, r".{40,}", *[_NUMBER] * 3)),
    KnownTable(_AZURE, "invocations of functions (2019)", "", ("hashowner", "hashapp")),
    KnownTable(_AZURE, "invocations of functions (2021)", "", ("app", "func", "end_timestamp")),
    KnownTable(_AZURE, "requests to language models", "", ("contexttokens", "generatedtokens")),
    KnownTable("the Helios trace", "cluster_log", "", ("job_id", "gpu_num", "node_num", "submit_time"),
               as_table="--set arrival=submit_time --set duration=duration --set user=user"),
    KnownTable("an OpenDC workload", "tasks", "", ("id", "submission_time", "duration", "cpu_count"),
               as_table="--set arrival=submission_time --set duration=duration --set unit=ms --set tasks=cpu_count"),
    KnownTable("an OpenDC workload", "fragments", "", ("id", "duration", "cpu_usage")),
    KnownTable("Google's cluster trace of 2009", "the table", "", ("parentid", "taskid", "jobtype")),
)  # fmt: skip


MAIN_TABLES = {
    GOOGLE_2011: "task_events", GOOGLE_2019: "instance_events", ALIBABA_2018: "batch_task", ALIBABA_2017: "batch_task",
}  # fmt: skip
"""By format, the table without which there is no workload."""
CLUSTER_TABLES = {"machine_events", "machine_meta", "server_event"}
"""Tables from which a cluster is made."""


def identify(sample: Sample) -> KnownTable | None:
    """Return the known table to which the first rows of a file belong, or None."""
    return next((known for known in KNOWN_TABLES if known.fits(sample)), None)


# Files of formats that are not read, known by keys of JSON, the root of XML or the first lines of a text.
#
# Errors name such a format, and which form of it is read.

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
