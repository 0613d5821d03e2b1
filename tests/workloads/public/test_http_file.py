"""One file over HTTP: whole, broken off, changed, wrong, not there."""

from __future__ import annotations

import errno
import gzip
import hashlib
import shutil
import socket
from collections import namedtuple
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.workloads.public.http_site import cut, redirect, serving, status
from workloads.errors import InputError
from workloads.public import http_file as module
from workloads.public.http_file import UnavailableError, download

CONTENT = bytes(range(256)) * 40
SHA256 = hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture(scope="module")
def server():
    with serving() as site:
        yield site


@pytest.fixture
def site(server, monkeypatch):
    monkeypatch.setattr(module, "_PAUSES_S", (0.0,) * 4)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    server.reset()
    server.files = {"/trace.gz": CONTENT}
    return server


def left_behind(folder):
    return sorted(p.name for p in folder.iterdir())


def asked(site, name="range"):
    return [headers.get(name) for _, headers in site.asked]


def begin(site, to, content=CONTENT, bytes_there=1000):
    """Leave the first bytes of a download behind, as an interrupt does."""

    def interrupt(done, total):
        if done:
            raise KeyboardInterrupt

    site.files["/trace.gz"] = content
    site.answers = [cut(bytes_there)]
    with pytest.raises(KeyboardInterrupt):
        download(f"{site.url}/trace.gz", to, progress=interrupt)
    assert module.part_of(to).read_bytes() == content[:bytes_there]
    site.asked.clear()


def test_a_whole_file_appears_under_its_name_with_nothing_beside_it(site, tmp_path):
    lines = []
    to = tmp_path / "trace.gz"
    received = download(
        f"{site.url}/trace.gz",
        to,
        sha256=SHA256,
        size_bytes=len(CONTENT),
        progress=lambda *x: lines.append(x),
    )
    assert received == len(CONTENT)
    assert to.read_bytes() == CONTENT
    assert left_behind(tmp_path) == ["trace.gz"]
    assert lines[0] == (0, len(CONTENT))
    assert lines[-1] == (len(CONTENT), len(CONTENT))
    assert asked(site, "accept-encoding") == ["identity"]


def test_a_broken_transfer_goes_on_where_it_broke(site, tmp_path):
    site.answers = [cut(700), cut(300)]
    received = download(f"{site.url}/trace.gz", tmp_path / "t", sha256=SHA256)
    assert (tmp_path / "t").read_bytes() == CONTENT
    assert received == len(CONTENT)
    assert asked(site) == [None, "bytes=700-", "bytes=1000-"]
    assert asked(site, "if-range") == [None, '"one"', '"one"']


def test_an_interrupt_keeps_what_is_there_and_the_next_call_goes_on(site, tmp_path):
    begin(site, tmp_path / "t")
    received = download(f"{site.url}/trace.gz", tmp_path / "t", sha256=SHA256)
    assert received == len(CONTENT) - 1000
    assert asked(site) == ["bytes=1000-"]
    assert left_behind(tmp_path) == ["t"]


def test_a_server_without_ranges_sends_the_whole_file(site, tmp_path):
    begin(site, tmp_path / "t")
    site.ranges = False
    assert download(f"{site.url}/trace.gz", tmp_path / "t", sha256=SHA256) == len(CONTENT)
    assert (tmp_path / "t").read_bytes() == CONTENT


def test_another_version_is_never_mixed_with_the_one_that_was_begun(site, tmp_path):
    begin(site, tmp_path / "t")
    site.files["/trace.gz"], site.etag = CONTENT[::-1], '"two"'
    download(f"{site.url}/trace.gz", tmp_path / "t")
    assert (tmp_path / "t").read_bytes() == CONTENT[::-1]


@pytest.mark.parametrize("etag", [None, 'W/"one"'])
def test_without_an_etag_the_download_starts_again(site, tmp_path, etag):
    site.etag = etag
    begin(site, tmp_path / "t")
    download(f"{site.url}/trace.gz", tmp_path / "t", sha256=SHA256)
    assert asked(site) == [None]
    assert (tmp_path / "t").read_bytes() == CONTENT


def test_the_date_names_the_version_where_there_is_no_etag(site, tmp_path):
    def dated(request, content):
        site.etag = "Sat, 01 Jan 2022 00:00:00 GMT"
        request.head(200, Last_Modified=site.etag, Content_Length=len(content))
        request.wfile.write(content[:500])

    site.answers = [dated]
    download(f"{site.url}/trace.gz", tmp_path / "t", sha256=SHA256)
    assert asked(site, "if-range") == [None, "Sat, 01 Jan 2022 00:00:00 GMT"]
    assert asked(site) == [None, "bytes=500-"]


def test_a_part_that_is_whole_is_taken_without_a_byte_more(site, tmp_path):
    begin(site, tmp_path / "t")
    module.part_of(tmp_path / "t").write_bytes(CONTENT)
    assert download(f"{site.url}/trace.gz", tmp_path / "t", sha256=SHA256) == 0
    assert (tmp_path / "t").read_bytes() == CONTENT
    assert left_behind(tmp_path) == ["t"]


def test_a_part_longer_than_the_file_is_thrown_away(site, tmp_path):
    begin(site, tmp_path / "t")
    module.part_of(tmp_path / "t").write_bytes(CONTENT + b"more")
    assert download(f"{site.url}/trace.gz", tmp_path / "t", sha256=SHA256) == len(CONTENT)
    assert asked(site) == [f"bytes={len(CONTENT) + 4}-", None]


def test_a_server_that_ignores_if_range_cannot_mix_versions(site, tmp_path):
    begin(site, tmp_path / "t")

    def ignorant(request, content):
        request.head(
            206,
            Content_Range=f"bytes 1000-{len(content) - 1}/{len(content)}",
            Content_Length=len(content) - 1000,
            ETag='"two"',
        )
        request.wfile.write(content[1000:])

    site.files["/trace.gz"], site.etag, site.answers = CONTENT[::-1], '"two"', [ignorant]
    download(f"{site.url}/trace.gz", tmp_path / "t")
    assert (tmp_path / "t").read_bytes() == CONTENT[::-1]


def test_a_range_that_was_not_asked_for_is_not_taken(site, tmp_path):
    begin(site, tmp_path / "t")

    def shifted(request, content):
        request.head(206, Content_Range=f"bytes 900-{len(content) - 1}/{len(content)}", Content_Length=9340)
        request.wfile.write(content[900:])

    site.answers = [shifted]
    download(f"{site.url}/trace.gz", tmp_path / "t", sha256=SHA256)
    assert (tmp_path / "t").read_bytes() == CONTENT


def test_a_wrong_checksum_removes_the_file_and_says_both(site, tmp_path):
    with pytest.raises(InputError, match=f"want sha256 {'0' * 64}, got {SHA256}"):
        download(f"{site.url}/trace.gz", tmp_path / "t", sha256="0" * 64)
    assert left_behind(tmp_path) == []


def test_a_wrong_size_is_refused_before_the_body(site, tmp_path):
    lines = []
    with pytest.raises(InputError, match="want 5 bytes, the server sends 10240"):
        download(f"{site.url}/trace.gz", tmp_path / "t", size_bytes=5, progress=lambda *x: lines.append(x))
    assert lines == []
    assert left_behind(tmp_path) == []


def unmeasured(length):
    def answer(request, content):
        request.head(200, ETag='"one"')
        request.wfile.write(content[:length])

    return answer


def test_a_server_may_keep_the_length_to_itself(site, tmp_path):
    lines = []
    site.answers = [unmeasured(None)]
    download(f"{site.url}/trace.gz", tmp_path / "t", progress=lambda *x: lines.append(x))
    assert (tmp_path / "t").read_bytes() == CONTENT
    assert lines[-1] == (len(CONTENT), 0)


def test_a_known_size_shows_that_a_transfer_without_length_broke(site, tmp_path):
    site.answers = [unmeasured(400)]
    download(f"{site.url}/trace.gz", tmp_path / "t", size_bytes=len(CONTENT))
    assert asked(site) == [None, "bytes=400-"]
    assert (tmp_path / "t").read_bytes() == CONTENT


def test_what_is_sent_beyond_the_known_size_is_refused(site, tmp_path):
    site.answers = [unmeasured(None)]
    with pytest.raises(InputError, match="sends more than 100 bytes"):
        download(f"{site.url}/trace.gz", tmp_path / "t", size_bytes=100)
    assert left_behind(tmp_path) == []


@pytest.mark.parametrize("known", [{"size_bytes": 1 << 20}, {"most_bytes": 1 << 20}])
def test_a_server_that_never_ends_is_left_before_the_disk_is_full(site, tmp_path, known):
    sent = []

    def endless(request, content):
        request.head(200)
        with suppress(OSError):  # the client goes
            for _ in range(400):
                request.wfile.write(bytes(1 << 18))
                sent.append(1 << 18)

    site.answers = [endless]
    with pytest.raises(InputError, match="sends more than 1,048,576 bytes, the most this file can have"):
        download(f"{site.url}/trace.gz", tmp_path / "t", **known)
    assert left_behind(tmp_path) == []
    assert sum(sent) < 80 << 20


def test_a_length_that_no_such_file_has_is_refused_before_the_body(site, tmp_path):
    with pytest.raises(InputError, match="sends more than 5,000 bytes"):
        download(f"{site.url}/trace.gz", tmp_path / "t", most_bytes=5000)
    assert left_behind(tmp_path) == []


def test_a_server_that_is_busy_is_asked_again(site, tmp_path):
    site.answers = [status(503), status(429)]
    download(f"{site.url}/trace.gz", tmp_path / "t", sha256=SHA256)
    assert len(site.asked) == 3


def test_pauses_grow_while_nothing_gets_on(site, tmp_path, monkeypatch):
    paused = []
    monkeypatch.setattr(module, "_PAUSES_S", (1.0, 2.0, 4.0, 8.0))
    monkeypatch.setattr(module.time, "sleep", paused.append)
    site.answers = [status(503)] * 9
    with pytest.raises(UnavailableError, match="answered 503"):
        download(f"{site.url}/trace.gz", tmp_path / "t")
    assert paused == [1.0, 2.0, 4.0, 8.0]
    assert len(site.asked) == 5


def test_a_server_that_always_breaks_at_the_same_place_is_given_up(site, tmp_path):
    site.ranges = False
    site.answers = [cut(100)] * 20
    with pytest.raises(UnavailableError, match="broke off"):
        download(f"{site.url}/trace.gz", tmp_path / "t")
    assert len(site.asked) == 6


@pytest.mark.parametrize("code", [401, 403, 404, 410])
def test_a_file_that_is_not_there_is_asked_for_once(site, tmp_path, code):
    site.answers = [status(code)] * 2
    with pytest.raises(UnavailableError, match=f"trace.gz: the server answered {code}"):
        download(f"{site.url}/trace.gz", tmp_path / "t")
    assert len(site.asked) == 1
    assert left_behind(tmp_path) == []


def test_no_connection_is_said_at_once_with_the_host(tmp_path, monkeypatch):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setattr(module.time, "sleep", lambda seconds: pytest.fail("waited without a network"))
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))  # bound and not listening: connections are refused
        with pytest.raises(UnavailableError, match=r"127\.0\.0\.1 cannot be reached \(Connection refused\)"):
            download(f"http://127.0.0.1:{unused.getsockname()[1]}/t.gz", tmp_path / "t")


def test_redirects_are_followed(site, tmp_path):
    site.answers = [redirect("/trace.gz")]
    download(f"{site.url}/old", tmp_path / "t", sha256=SHA256)
    assert [path for path, _ in site.asked] == ["/old", "/trace.gz"]


@pytest.mark.parametrize("to", ["file:///etc/passwd", "ftp://127.0.0.1/trace", "gopher://127.0.0.1/1"])
def test_a_redirect_to_anything_but_http_is_refused(site, tmp_path, to):
    site.answers = [redirect(to)]
    with pytest.raises(UnavailableError, match="not http or https"):
        download(f"{site.url}/old", tmp_path / "t")
    assert left_behind(tmp_path) == []


def test_a_circle_of_redirects_ends(site, tmp_path):
    site.answers = [redirect("/old")] * 30
    with pytest.raises(UnavailableError, match="redirects"):
        download(f"{site.url}/old", tmp_path / "t")


def test_a_web_page_is_no_trace(site, tmp_path):
    def page(request, content):
        request.head(200, Content_Type="text/html; charset=utf-8", Content_Length=len(content))
        request.wfile.write(content)

    site.answers = [page]
    with pytest.raises(UnavailableError, match="web page"):
        download(f"{site.url}/trace.gz", tmp_path / "t")
    assert left_behind(tmp_path) == []


def test_the_bytes_are_stored_as_they_are_sent(site, tmp_path):
    """A server may call a .gz file an encoding of what is in it; the file is what was asked for."""
    packed = gzip.compress(CONTENT)

    def labelled(request, content):
        request.head(200, Content_Encoding="gzip", Content_Length=len(packed))
        request.wfile.write(packed)

    site.answers = [labelled]
    download(f"{site.url}/trace.gz", tmp_path / "t", size_bytes=len(packed))
    assert (tmp_path / "t").read_bytes() == packed


def test_no_room_is_seen_before_the_body(site, tmp_path, monkeypatch):
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: usage(100, 0, 100))
    with pytest.raises(InputError, match="no room: 10240 bytes are to come, and 100 are free"):
        download(f"{site.url}/trace.gz", tmp_path / "t")
    assert left_behind(tmp_path) == []


def test_a_disk_that_fills_up_keeps_what_is_there(site, tmp_path, monkeypatch):
    def full(handle):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(module.os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        download(f"{site.url}/trace.gz", tmp_path / "t")
    monkeypatch.undo()
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    site.asked.clear()
    assert download(f"{site.url}/trace.gz", tmp_path / "t", sha256=SHA256) == 0
    assert asked(site) == ["bytes=10240-"]


@settings(max_examples=20)
@given(
    cuts=st.lists(st.integers(0, len(CONTENT)), max_size=4),
    etags=st.lists(st.sampled_from(['"one"', '"two"', 'W/"weak"', None]), min_size=5, max_size=5),
    ranges=st.lists(st.booleans(), min_size=5, max_size=5),
)
def test_whatever_breaks_the_file_is_of_one_version(server, tmp_path_factory, cuts, etags, ranges):
    """Every request may break anywhere, and meet another version and another server than the one before."""
    versions = {'"one"': CONTENT, '"two"': CONTENT[::-1]}
    folder = tmp_path_factory.mktemp("download")
    server.reset()

    def step(at):
        def answer(request, _):
            server.etag, server.ranges = etags[at], ranges[at]
            content = versions.get(server.etag, bytes([at]) * len(CONTENT))
            given_last[:] = [content]
            cut(cuts[at] if at < len(cuts) else len(CONTENT))(request, content)

        return answer

    given_last: list[bytes] = []
    server.answers = [step(at) for at in range(5)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_PAUSES_S", (0.0,) * 4)
        patch.setenv("NO_PROXY", "127.0.0.1")
        download(f"{server.url}/trace.gz", folder / "t")
    assert (folder / "t").read_bytes() == given_last[0]
    assert left_behind(folder) == ["t"]
