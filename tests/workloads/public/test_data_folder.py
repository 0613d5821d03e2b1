"""Public traces: the table, and having one in the data folder."""

from __future__ import annotations

import errno
import hashlib
import os
import re
import shutil
import socket
import threading
from collections import namedtuple
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from python_process import run_python

from tests.workloads.public.http_site import cut, right, serving, status
from workloads.errors import InputError
from workloads.public import data_folder, http_file
from workloads.public.traces import PublicFile, PublicTrace, public_trace, public_traces

SHARED = Path(os.environ.get("EMU_SHARED") or Path(__file__).parents[3].parent / "shared")
CONTENT = {"one.txt": b"one " * 300, "part/two.gz": b"two " * 500, "part/three.gz": b"three" * 70}


@pytest.fixture
def site(monkeypatch):
    monkeypatch.setattr(http_file, "_PAUSES_S", (0.0,) * 4)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with serving() as site:
        site.files = {f"/{path}": content for path, content in CONTENT.items()}
        yield site


def sha256(content):
    return hashlib.sha256(content).hexdigest()


def public_file(url, path, **known):
    return PublicFile(path, f"{url}/{path}", **known)


def trace_of(*files, **more):
    given = {"size_bytes": None, "licence": "CC BY 4.0", "format": "tr", "page": "https://example.org/traces"}
    return PublicTrace(name="small", what="a small trace", files=files, **(given | more))


def one(url, **known):
    return trace_of(public_file(url, "one.txt", **known))


def exactly(path):
    return {"sha256": sha256(CONTENT[path]), "size_bytes": len(CONTENT[path])}


def test_the_table_is_well_formed():
    traces = public_traces()
    assert list(traces) == sorted(traces)
    for name, trace in traces.items():
        assert name == trace.name
        assert re.fullmatch(r"[a-z0-9-]+", name)
        assert trace.what
        assert trace.licence
        assert trace.page.startswith("https://")
        assert trace.files or "FOLDER" in trace.by_hand
        paths = [f.path for f in trace.files]
        assert len(set(paths)) == len(paths)
        for file in trace.files:
            assert urlsplit(file.url).scheme == "https"
            assert not Path(file.path).is_absolute()
            assert ".." not in Path(file.path).parts
            assert file.sha256 is None or re.fullmatch(r"[0-9a-f]{64}", file.sha256)
        exact = trace.exact_size_bytes
        assert exact is None or exact == trace.size_bytes
    assert len(traces["google-2011"].files) == 3 * 500 + 2
    assert len(traces["decima-tpch"].files) == 7 * 22 * 2
    assert len(traces["coflowlib"].files) == 21


@pytest.mark.reference
def test_checksums_and_sizes_are_of_the_files_themselves():
    checked = 0
    for trace in ("coflow-benchmark", "coflowlib"):
        for file in public_trace(trace).files:
            found = list((SHARED / "traces").rglob(file.path))
            if found:
                assert file.sha256 == sha256(found[0].read_bytes()), file.path
                assert file.size_bytes == found[0].stat().st_size
                checked += 1
    if not checked:
        pytest.skip(f"{SHARED / 'traces'} is not there")
    assert checked == 7


def test_an_unknown_name_leads_to_the_nearest():
    with pytest.raises(InputError, match="did you mean 'google-2011'"):
        data_folder.fetch("gogle-2011")


def test_the_data_folder_is_the_users(monkeypatch, tmp_path):
    monkeypatch.delenv("EMU_DATA_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert data_folder.data_folder() == tmp_path / "cache" / "emu" / "data"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert data_folder.data_folder() == Path.home() / ".cache" / "emu" / "data"
    monkeypatch.setenv("EMU_DATA_DIR", str(tmp_path / "data"))
    assert data_folder.data_folder() == tmp_path / "data"


def test_size_and_licence_are_printed_before_the_first_request(site, tmp_path, monkeypatch):
    monkeypatch.setenv("EMU_DATA_DIR", str(tmp_path))
    lines = []
    asked_by_then = []

    def tell(line):
        lines.append(line)
        asked_by_then.append(len(site.asked))

    path = data_folder.fetch(one(site.url, **exactly("one.txt")), tell=tell)
    assert path == tmp_path / "small" / "one.txt"
    assert path.read_bytes() == CONTENT["one.txt"]
    assert lines == [
        "small: a small trace",
        "size: 1.2 kB; licence: CC BY 4.0",
        "source: https://example.org/traces",
        "downloaded 1 file: 1.2 kB",
        f"it is in {path}",
        f"next: emu workload convert {path} small --from tr",
    ]
    assert asked_by_then[:3] == [0, 0, 0]


def test_what_is_there_and_right_is_not_downloaded(site, tmp_path):
    trace = one(site.url, **exactly("one.txt"))
    data_folder.fetch(trace, folder=tmp_path, tell=lambda line: None)
    site.asked.clear()
    lines = []
    assert data_folder.fetch(trace, folder=tmp_path, tell=lines.append) == tmp_path / "small" / "one.txt"
    assert "right: not downloaded again" in lines
    assert site.asked == []


def test_several_files_share_a_folder_and_one_progress(site, tmp_path):
    files = [public_file(site.url, path, **exactly(path)) for path in CONTENT]
    in_all = sum(map(len, CONTENT.values()))
    shown = []
    trace = trace_of(*files, size_bytes=in_all)
    place = data_folder.fetch(
        trace, folder=tmp_path, progress=lambda *x: shown.append(x), tell=lambda line: None, mirror=None
    )
    assert place == tmp_path / "small"
    assert {p: (place / p).read_bytes() for p in CONTENT} == CONTENT
    assert shown[0][0] == "small, file 1 of 3"
    assert shown[-1] == ("small, file 3 of 3", in_all, in_all)
    done = [s[1] for s in shown]
    assert done == sorted(done)
    (place / "one.txt").unlink()
    site.asked.clear()
    data_folder.fetch(trace, folder=tmp_path, tell=lambda line: None)
    assert [path for path, _ in site.asked] == ["/one.txt"]


def test_a_published_list_of_checksums_is_used(site, tmp_path):
    files = [public_file(site.url, path) for path in CONTENT]
    lines = [f"{sha256(c)} {'*./' if '/' in p else ' '}{p}" for p, c in CONTENT.items()]
    site.files["/SHA256SUM"] = "\n".join(lines).encode()
    trace = trace_of(*files, checksums=public_file(site.url, "SHA256SUM"))
    notes = []
    data_folder.fetch(trace, folder=tmp_path, tell=notes.append)
    assert not any("no published checksum" in line for line in notes)
    (tmp_path / "small" / "part" / "two.gz").unlink()
    site.files["/part/two.gz"] = b"not two"
    with pytest.raises(
        InputError, match=f"two.gz: wrong checksum: want sha256 {sha256(CONTENT['part/two.gz'])}"
    ):
        data_folder.fetch(trace, folder=tmp_path, tell=notes.append)


def test_a_list_of_checksums_that_is_gone_is_said_and_not_needed(site, tmp_path):
    trace = trace_of(
        *(public_file(site.url, path) for path in CONTENT), checksums=public_file(site.url, "SHA256SUM")
    )
    lines = []
    data_folder.fetch(trace, folder=tmp_path, tell=lines.append)
    assert (
        f"its published checksums are not available: {site.url}/SHA256SUM: the server answered 404 Not Found"
        in lines
    )
    assert "no published checksum for 3 files; only the size was checked, where known" in lines


@pytest.fixture
def nowhere(monkeypatch):
    """An address that refuses connections, as a machine without a network has them."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{unused.getsockname()[1]}"


def test_without_a_network_one_line_says_where_to_place_it(nowhere, tmp_path):
    with pytest.raises(InputError) as caught:
        data_folder.fetch(one(nowhere), folder=tmp_path, tell=lambda line: None)
    line = str(caught.value)
    assert line.startswith(f"{nowhere}/one.txt: 127.0.0.1 cannot be reached (Connection refused); by hand: ")
    assert line.endswith(f"and place it as {tmp_path}/small/one.txt")
    assert "\n" not in line


def test_without_a_network_several_files_are_placed_below_a_folder(nowhere, tmp_path):
    trace = trace_of(*(public_file(nowhere, path) for path in CONTENT))
    with pytest.raises(
        InputError, match=f"get its 3 files .* place them below {tmp_path}/small, this one as one.txt$"
    ):
        data_folder.fetch(trace, folder=tmp_path, tell=lambda line: None)


def test_a_dead_link_says_how_to_place_it_by_hand(site, tmp_path):
    site.files.clear()
    with pytest.raises(
        InputError, match=r"answered 404 Not Found; by hand: get this file \(see https://example"
    ):
        data_folder.fetch(one(site.url), folder=tmp_path, tell=lambda line: None)


@pytest.mark.parametrize("known", [{}, exactly("one.txt")])
def test_a_file_placed_by_hand_is_taken_without_a_network(nowhere, tmp_path, known):
    (tmp_path / "small").mkdir()
    (tmp_path / "small" / "one.txt").write_bytes(CONTENT["one.txt"])
    lines = []
    assert (
        data_folder.fetch(one(nowhere, **known), folder=tmp_path, tell=lines.append)
        == tmp_path / "small" / "one.txt"
    )
    assert any(line.startswith("right" if known else "right as far as is known") for line in lines)


@pytest.mark.parametrize(
    ("known", "said"),
    [("sha256", "want sha256 [0-9a-f]{64}, it has"), ("size_bytes", "want 1200 bytes, it has 5")],
)
def test_a_wrong_file_placed_by_hand_is_refused_and_stays(nowhere, tmp_path, known, said):
    (tmp_path / "small").mkdir()
    mine = tmp_path / "small" / "one.txt"
    mine.write_bytes(b"wrong")
    with pytest.raises(InputError, match=f"^{mine}: is not the published file: {said}"):
        data_folder.fetch(
            one(nowhere, **{known: exactly("one.txt")[known]}), folder=tmp_path, tell=lambda line: None
        )
    assert mine.read_bytes() == b"wrong"


def test_a_trace_no_program_can_download_is_placed_by_hand(tmp_path):
    with pytest.raises(InputError, match=f"put those you want into {tmp_path}/hawk-eagle.*epfl-labos/eagle"):
        data_folder.fetch("hawk-eagle", folder=tmp_path, tell=lambda line: None)
    (tmp_path / "hawk-eagle" / "YH.tr").write_text("0 1 1 1\n")
    lines = []
    assert data_folder.fetch("hawk-eagle", folder=tmp_path, tell=lines.append) == tmp_path / "hawk-eagle"
    assert lines[-1] == f"next: emu workload convert {tmp_path}/hawk-eagle/YH.tr hawk-eagle --from tr"
    assert "1 file there, placed by hand; nothing to check by" in lines


def test_an_interrupt_says_that_what_is_there_stays(site, tmp_path):
    def interrupt(what, done, total):
        if done:
            raise KeyboardInterrupt

    lines = []
    trace = one(site.url, **exactly("one.txt"))
    site.answers = [cut(500)]
    with pytest.raises(KeyboardInterrupt):
        data_folder.fetch(trace, folder=tmp_path, progress=interrupt, tell=lines.append)
    assert lines[-1].startswith("interrupted; what was downloaded stays")
    site.asked.clear()
    data_folder.fetch(trace, folder=tmp_path, tell=lines.append)
    assert [headers["range"] for _, headers in site.asked] == ["bytes=500-"]
    assert "downloaded 1 file: 700 B" in lines


def test_room_for_all_is_seen_before_anything_is_downloaded(site, tmp_path, monkeypatch):
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: usage(3000, 0, 3000))
    trace = trace_of(*(public_file(site.url, p, **exactly(p)) for p in CONTENT), size_bytes=3550)
    with pytest.raises(InputError, match="no room: 3550 bytes are to come, and 3000 are free"):
        data_folder.fetch(trace, folder=tmp_path, tell=lambda line: None)
    assert site.asked == []
    (tmp_path / "small" / "one.txt").write_bytes(CONTENT["one.txt"])
    data_folder.fetch(trace, folder=tmp_path, tell=lambda line: None)


def test_what_was_begun_needs_no_room_again(site, tmp_path, monkeypatch):
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: usage(3000, 2300, 700))
    (tmp_path / "small").mkdir()
    part = http_file.part_of(tmp_path / "small" / "one.txt")
    part.write_bytes(CONTENT["one.txt"][:500])
    part.with_name(f"{part.name}.version").write_text(site.etag)
    lines = []
    data_folder.fetch(one(site.url, **exactly("one.txt")), folder=tmp_path, tell=lines.append)
    assert "downloaded 1 file: 700 B" in lines


def test_a_folder_that_others_keep_is_read_and_not_written(nowhere, tmp_path, monkeypatch):
    opened = Path.open

    def kept(path, mode="r", *args, **kwargs):
        if "r" not in mode:
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return opened(path, mode, *args, **kwargs)

    (tmp_path / "small").mkdir()
    (tmp_path / "small" / "one.txt").write_bytes(CONTENT["one.txt"])
    monkeypatch.setattr(Path, "open", kept)
    trace = one(nowhere, **exactly("one.txt"))
    assert data_folder.fetch(trace, folder=tmp_path, tell=lambda line: None) == tmp_path / "small" / "one.txt"


def test_a_full_disk_is_one_line(site, tmp_path, monkeypatch):
    def full(handle):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(http_file.os, "fsync", full)
    with pytest.raises(InputError, match=r"No space left on device; what was downloaded stays.*EMU_DATA_DIR"):
        data_folder.fetch(one(site.url), folder=tmp_path, tell=lambda line: None)


def test_a_folder_that_cannot_be_made_is_one_line(tmp_path):
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(InputError, match=r"file.*: Not a directory; EMU_DATA_DIR names another folder"):
        data_folder.fetch("coflow-benchmark", folder=tmp_path / "file", tell=lambda line: None)


def test_two_that_fetch_the_same_download_it_once(site, tmp_path):
    trace = one(site.url, **exactly("one.txt"))
    first_asks, second_waits = threading.Event(), threading.Event()
    first, second = [], []

    def slow(request, content):
        first_asks.set()
        assert second_waits.wait(60)
        right(request, content)

    def tell_second(line):
        second.append(line)
        if "waiting" in line:
            second_waits.set()

    site.answers = [slow]
    thread = threading.Thread(
        target=data_folder.fetch, args=(trace,), kwargs={"folder": tmp_path, "tell": first.append}
    )
    thread.start()
    assert first_asks.wait(60)  # it holds the lock by then
    data_folder.fetch(trace, folder=tmp_path, tell=tell_second)
    thread.join(60)
    assert len(site.asked) == 1
    assert "another process is fetching it; waiting for that one to end" in second
    assert "right: not downloaded again" in second
    assert "downloaded 1 file: 1.2 kB" in first


def test_a_data_folder_that_is_served_is_a_mirror(site, tmp_path):
    trace = trace_of(*(public_file("https://example.invalid", path, **exactly(path)) for path in CONTENT))
    site.files = {f"/data/small/{path}": content for path, content in CONTENT.items()}
    data_folder.fetch(trace, folder=tmp_path, tell=lambda line: None, mirror=f"{site.url}/data/")
    assert (tmp_path / "small" / "part" / "two.gz").read_bytes() == CONTENT["part/two.gz"]
    with pytest.raises(InputError, match="begins with http:// or https://"):
        data_folder.fetch(trace, folder=tmp_path, tell=lambda line: None, mirror="file:///etc")


def test_a_busy_server_then_a_broken_transfer_is_still_one_fetch(site, tmp_path):
    site.answers = [status(503), cut(100)]
    lines = []
    data_folder.fetch(one(site.url, **exactly("one.txt")), folder=tmp_path, tell=lines.append)
    assert "downloaded 1 file: 1.2 kB" in lines


def test_what_downloads_is_imported_only_then():
    code = (
        "import sys, workloads.public.data_folder; "
        "print(sorted({'requests', 'urllib3', 'pyarrow', 'duckdb'} & set(sys.modules)))"
    )
    assert run_python(code).strip() == "[]"
