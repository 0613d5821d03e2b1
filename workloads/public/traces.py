"""The public traces that can be fetched: their addresses, sizes and licences.

No trace is part of the project. Comments name the source of each size and checksum, and mark estimates; a size that is
not published is None.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from workloads.errors import InputError
from workloads.hints import did_you_mean


@dataclass(frozen=True)
class PublicFile:
    """One file of a public trace.

    Attributes
    ----------
    path : str
        Its place below the trace's folder, with ``/`` between parts.
    url : str
    sha256 : str | None
        As published, or of a copy that readers are tested on; else None.
    size_bytes : int | None
        Exact; None if not known.
    """

    path: str
    url: str
    sha256: str | None = None
    size_bytes: int | None = None


@dataclass(frozen=True)
class PublicTrace:
    """A public trace, or a part of one that can be used alone.

    Attributes
    ----------
    name : str
        Its name in ``emu workload fetch``.
    what : str
        One line: what was measured, on which machines, for how long.
    size_bytes : int | None
        Of all files as downloaded; approximate unless every file has its own size.
    licence : str
    format : str
        The format of `workloads.formats.FORMATS` that reads it.
    page : str
        Its description on the web.
    files : tuple of PublicFile
        Empty for a trace that a program cannot download.
    checksums : PublicFile | None
        A published list of checksums in the format of ``sha256sum``, for files without one here.
    by_hand : str
        How to get it without this program; FOLDER stands for its folder. Empty where a list of the files is enough.
    reads : "folder" or "file"
        Whether the reader takes the folder with all files, or each file is a workload.
    """

    name: str
    what: str
    size_bytes: int | None
    licence: str
    format: str
    page: str
    files: tuple[PublicFile, ...] = ()
    checksums: PublicFile | None = None
    by_hand: str = ""
    reads: Literal["folder", "file"] = "folder"

    @property
    def exact_size_bytes(self) -> int | None:
        """Sum of the files' sizes, None when one of them is not known."""
        sizes = [f.size_bytes for f in self.files]
        return sum(s for s in sizes if s is not None) if sizes and None not in sizes else None


def public_traces() -> dict[str, PublicTrace]:
    """Return the known public traces by name, in order of name."""
    return {trace.name: trace for trace in sorted(_TRACES, key=lambda trace: trace.name)}


def public_trace(name: str) -> PublicTrace:
    """Return the trace of a name.

    Raises
    ------
    InputError
        There is no trace of this name; the message has the nearest one.
    """
    known = public_traces()
    if name not in known:
        raise InputError(f"unknown public trace {name!r}{did_you_mean(name, known)}")
    return known[name]


_RAW = "https://raw.githubusercontent.com"

# One commit each, so that the file is always the same.
_COFLOW_BENCHMARK = f"{_RAW}/coflow/coflow-benchmark/90fc587167b8501ecc42d581577a7d0fc8491c7e"
_COFLOWLIB = f"{_RAW}/luuquangtrung/CoflowLib"
_SWIM = f"{_RAW}/SWIMProjectUCB/SWIM"
_DECIMA = f"{_RAW}/hongzimao/decima-sim/c010dd74ff4b7566bd0ac989c90a32cfbc630d84/spark_env/tpch"

# google/cluster-data ClusterData2011_2.md names the bucket; this is its address over HTTPS.
_GOOGLE_2011 = "https://storage.googleapis.com/clusterdata-2011-2"
_GOOGLE_2011_SHARDS = 500

# alibaba/clusterdata cluster-trace-v2018/fetchData.sh, over HTTPS.
_ALIBABA_2018 = "https://aliopentrace.oss-cn-beijing.aliyuncs.com/v2018Traces"

# alibaba/clusterdata cluster-trace-v2018/README.md, "Checksum".
_ALIBABA_2018_SHA256 = {
    "batch_instance.tar.gz": "e73e5a9326669aa079ba20048ddd759383cabe1fe3e58620aa75bd034e2450c6",
    "batch_task.tar.gz": "7c4b32361bd1ec2083647a8f52a6854a03bc125ca5c202652316c499fbf978c6",
    "machine_meta.tar.gz": "b5b1b786b22cd413a3674b8f2ebfb2f02fac991c95df537f363ef2797c8f6d55",
}

# Of copies the readers are tested on (sha256, bytes); CoflowLib itself publishes no checksums.
_COFLOWLIB_KNOWN = {
    "off_facebook_m10_c10.zip": ("4063ce50f80a20ff81e1e0e06b12fa4e008ee212cf75d58fce85486e2a3d638a", 48242),
    "off_facebook_m10_c40.zip": ("1af6fb25506363351122888036e8a82569cf6a149184c4ae6095c226035709bd", 188605),
    "off_synthetic_m10_c10.zip": ("1d92ecfd7d482a31a73745ea487a6169c54b1e172c10d133a4636835134452fe", 67471),
    "off_synthetic_m10_c40.zip": ("659d8858bd6fdefcd49547d00c1051dfe3bb8fc25ea1e066ef592d3fd54f1016", 181430),
    "on_synthetic_nobatch_m10_c2000_l10.zip": (
        "b83ef0bad80b968ba7ee9f05b8bfadfc0b5f364188ceda5d32256f586207e198",
        3033772,
    ),
    "w_off_synthetic_m10_c40.zip": (
        "e596e1c56f558d6e999a4e91357cdaf1aba3cebd646d77688d8a5984a8f6a199",
        183035,
    ),
}


def _coflowlib_files() -> tuple[PublicFile, ...]:
    """Every archive of CoflowLib with 10 machines: 8 offline, 8 of them weighted, 5 online."""
    noweight = f"{_COFLOWLIB}/801b2fef2f9d221263f56b4c1e47f223a86383b2/offline_instances/noweight"
    weight = f"{_COFLOWLIB}/ea38211b20b1b2a43cda8b995610576ad700e9fb/offline_instances/weight"
    online = f"{_COFLOWLIB}/ad158edf4429f057fa59bf2c5e1877196253754d/online_instances/nobatch"
    offline = [f"off_{kind}_m10_c{c}.zip" for kind in ("facebook", "synthetic") for c in (10, 20, 40, 60)]
    places = [(noweight, name) for name in offline]
    places += [(weight, f"w_{name}") for name in offline]
    places += [(online, f"on_synthetic_nobatch_m10_c2000_l{rate}.zip") for rate in (2, 4, 6, 8, 10)]
    return tuple(
        PublicFile(name, f"{base}/{name}", *_COFLOWLIB_KNOWN.get(name, (None, None))) for base, name in places
    )


def _google_2011_files(shards: int) -> tuple[PublicFile, ...]:
    """The first shards of the event tables, and the machine tables, which have one shard each."""
    paths = [f"{table}/part-00000-of-00001.csv.gz" for table in ("machine_events", "machine_attributes")]
    paths += [
        f"{table}/part-{shard:05d}-of-{_GOOGLE_2011_SHARDS:05d}.csv.gz"
        for table in ("job_events", "task_constraints", "task_events")
        for shard in range(shards)
    ]
    return tuple(PublicFile(path, f"{_GOOGLE_2011}/{path}") for path in paths)


def _decima_files() -> tuple[PublicFile, ...]:
    """Stage graph and task durations of 22 queries at seven scale factors."""
    paths = [
        f"{scale}/{kind}_{query}.npy"
        for scale in ("2g", "5g", "10g", "20g", "50g", "80g", "100g")
        for kind in ("adj_mat", "task_duration")
        for query in range(1, 23)
    ]
    return tuple(PublicFile(path, f"{_DECIMA}/{path}") for path in paths)


def _alibaba_2018_files(*tables: str) -> tuple[PublicFile, ...]:
    names = [f"{table}.tar.gz" for table in tables]
    return tuple(PublicFile(name, f"{_ALIBABA_2018}/{name}", _ALIBABA_2018_SHA256[name]) for name in names)


_GOOGLE_2011_PAGE = "https://github.com/google/cluster-data/blob/master/ClusterData2011_2.md"
_GOOGLE_2011_SUMS = PublicFile("SHA256SUM", f"{_GOOGLE_2011}/SHA256SUM")
_ALIBABA_PAGE = "https://github.com/alibaba/clusterdata/tree/master/cluster-trace-v2018"
_ALIBABA_LICENCE = "no formal licence; free for research and study, says its README"
_SWIM_PAGE = "https://github.com/SWIMProjectUCB/SWIM/wiki/Workloads-repository"
_SWIM_LICENCE = "New BSD (workloadSuite/LICENSE)"
_NOTHING_STATED = "none stated"

_TRACES = (
    PublicTrace(
        name="alibaba-2018",
        what="8 days of about 4,000 machines at Alibaba: batch jobs as DAGs, with every instance of a task",
        size_bytes=20 * 2**30 + 125 * 2**20,  # its README: 20G and 125M, by ls
        licence=_ALIBABA_LICENCE,
        format="alibaba-2018",
        page=_ALIBABA_PAGE,
        files=_alibaba_2018_files("machine_meta", "batch_task", "batch_instance"),
    ),
    PublicTrace(
        name="alibaba-2018-tasks",
        what="alibaba-2018 without its instances: every instance of a task lasts as long as the task",
        size_bytes=125 * 2**20,
        licence=_ALIBABA_LICENCE,
        format="alibaba-2018",
        page=_ALIBABA_PAGE,
        files=_alibaba_2018_files("machine_meta", "batch_task"),
    ),
    PublicTrace(
        name="coflow-benchmark",
        what="an hour of a 3,000-machine Facebook cluster of 2010: 526 coflows on 150 ports",
        size_bytes=137746,
        licence=_NOTHING_STATED,
        format="coflow-benchmark",
        page="https://github.com/coflow/coflow-benchmark",
        files=(
            PublicFile(
                "FB2010-1Hr-150-0.txt",
                f"{_COFLOW_BENCHMARK}/FB2010-1Hr-150-0.txt",
                "cdd0d94d26c6ab10ce3634cf6a0f836859578e914de6b6faa980a245237dbc6e",
                137746,
            ),
        ),
    ),
    PublicTrace(
        name="coflowlib",
        what="CoflowLib: coflows with deadlines on 10 machines; archives of 100 offline or 40 online instances",
        size_bytes=18_000_000,  # estimated from the six archives whose size is known
        licence="MIT",
        format="coflowlib",
        page="https://github.com/luuquangtrung/CoflowLib",
        files=_coflowlib_files(),
        reads="file",
    ),
    PublicTrace(
        name="decima-tpch",
        what="stage graphs and task durations of the 22 TPC-H queries on Spark, at seven sizes, from Decima",
        size_bytes=4_000_000,  # estimated: 0.5 to 0.7 MB for each of the sizes 2g, 10g and 50g
        licence=_NOTHING_STATED,
        format="tpch",
        page="https://github.com/hongzimao/decima-sim/tree/master/spark_env/tpch",
        files=_decima_files(),
    ),
    PublicTrace(
        name="google-2011",
        what="29 days of 12,500 machines at Google: jobs, tasks, constraints, machines; no usage (41 GB with it)",
        size_bytes=None,  # only the total with the usage tables is published: 41 GB
        licence="CC BY 4.0",
        format="google-2011",
        page=_GOOGLE_2011_PAGE,
        files=_google_2011_files(_GOOGLE_2011_SHARDS),
        checksums=_GOOGLE_2011_SUMS,
        by_hand="gsutil -m cp -r gs://clusterdata-2011-2/{job_events,task_events,task_constraints,"
        "machine_events,machine_attributes} FOLDER",
    ),
    PublicTrace(
        name="google-2011-sample",
        what="google-2011 to try things out: the first 20 of the 500 shards of each table of events",
        size_bytes=None,
        licence="CC BY 4.0",
        format="google-2011",
        page=_GOOGLE_2011_PAGE,
        files=_google_2011_files(20),
        checksums=_GOOGLE_2011_SUMS,
    ),
    PublicTrace(
        name="google-2019",
        what="a month of eight Borg cells at Google, in BigQuery",
        size_bytes=None,
        licence="CC BY 4.0",
        format="google-2019",
        page="https://github.com/google/cluster-data/blob/master/ClusterData2019.md",
        by_hand="export the tables collection_events and instance_events of a cell from BigQuery "
        "(google.com:google-cluster-data.clusterdata_2019_a to _h) as Parquet or JSON lines into FOLDER",
    ),
    PublicTrace(
        name="hawk-eagle",
        what="the jobs on which Hawk and Eagle were measured: Yahoo, Cloudera, Facebook and Google 2011",
        size_bytes=None,
        licence=_NOTHING_STATED,
        format="tr",
        page="https://github.com/epfl-labos/eagle",
        by_hand="its authors share the .tr files through Dropbox, linked from that page; "
        "put those you want into FOLDER, or make such a workload with 'emu workload synth'",
        reads="file",
    ),
    PublicTrace(
        name="swim-fb-2009",
        what="a day of a 600-machine Facebook cluster of 2009: jobs with bytes read, shuffled and written",
        size_bytes=198743,  # of the stored text
        licence=_SWIM_LICENCE,
        format="swim",
        page=_SWIM_PAGE,
        files=(
            PublicFile(
                "FB-2009_samples_24_times_1hr_0.tsv",
                f"{_SWIM}/87d76d4720d6518ccecf29b374a870878c741bc6"
                "/workloadSuite/FB-2009_samples_24_times_1hr_0.tsv",
            ),
        ),
    ),
    PublicTrace(
        name="swim-fb-2010",
        what="a day of a 3,000-machine Facebook cluster of 2010: jobs with bytes read, shuffled and written",
        size_bytes=898688,  # of the stored text
        licence=_SWIM_LICENCE,
        format="swim",
        page=_SWIM_PAGE,
        files=(
            PublicFile(
                "FB-2010_samples_24_times_1hr_0.tsv",
                f"{_SWIM}/290681f7a299f07eca8fb120fc2d42cc3fef9db1"
                "/workloadSuite/FB-2010_samples_24_times_1hr_0.tsv",
            ),
        ),
    ),
)
