import gzip
import io
import os
import re
import tarfile
import zipfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workloads import limits
from workloads.errors import InputError
from workloads.limits import Limits, limited
from workloads.readers.report import Report
from workloads.readers.scanning import piped
from workloads.readers.source import open_members, open_text, read_lines, shown

TEXT = b"one\ntwo\nthree"


def members(path) -> dict[str, bytes]:
    return {name: stream.read() for name, stream in open_members(path)}


def tar_of(path, *headers: tarfile.TarInfo, mode: str = "w:gz", data: bytes = TEXT):
    with tarfile.open(path, mode) as archive:
        for header in headers:
            header.size = len(data) if header.isreg() else 0
            archive.addfile(header, io.BytesIO(data))
    return path


def refused(path, read=members) -> str:
    with pytest.raises(InputError) as caught:
        read(path)
    text = str(caught.value)
    assert text.startswith(f"{path}: ")
    assert text.isprintable()
    return text.removeprefix(f"{path}: ")


def lines_of(path):
    return list(read_lines(path))


@given(st.binary(max_size=300))
def test_plain_and_gzip_give_the_same_bytes(tmp_path_factory, data):
    if re.match(rb"\s*[\x1fPBO\xfd(7\xff\xfev<]", data):  # as something begins that is packed, or no table
        data = b"-" + data
    folder = tmp_path_factory.mktemp("source")
    (folder / "plain").write_bytes(data)
    (folder / "packed").write_bytes(gzip.compress(data[:100]) + gzip.compress(data[100:]))
    for name in ("plain", "packed"):
        with open_text(folder / name) as stream:
            assert stream.read() == data
        assert b"".join(line for _, line in read_lines(folder / name)) == data


def test_lines_are_numbered_and_bytes_reported(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes(gzip.compress(TEXT))
    report, calls = Report(), []
    assert list(read_lines(path, report, lambda *call: calls.append(call))) == [
        (1, b"one\n"), (2, b"two\n"), (3, b"three"),
    ]  # fmt: skip
    assert report.lines() == ["read 13 bytes of a.txt"]
    size = path.stat().st_size
    assert calls[-1] == ("a.txt", size, size)


def test_what_was_not_read_to_its_end_is_not_reported(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes(TEXT)
    report = Report()
    with open_text(path, report) as stream:
        assert stream.readline() == b"one\n"
    assert report.lines() == []


def test_zeros_behind_gzip_are_passed_over_unless_they_have_no_end(tmp_path):
    """Sparse: 8 GiB that take no room on the disk; Python would read them one by one, which takes half an hour."""
    path = tmp_path / "t.tr.gz"
    path.write_bytes(gzip.compress(b"1 2\n") + bytes(1000) + gzip.compress(b"3 4\n"))
    assert [line for _, line in read_lines(path)] == [b"1 2\n", b"3 4\n"]
    os.truncate(path, 8 << 30)
    with pytest.raises(InputError, match=r"line 3: .*more than 64 KiB of zeros follow it"):
        list(read_lines(path))


def test_a_truncated_or_corrupt_gzip_names_the_line(tmp_path):
    path = tmp_path / "a.gz"
    packed = gzip.compress(os.urandom(50_000).hex().encode() + b"\n")
    path.write_bytes(gzip.compress(TEXT + b"\n") + packed[:-100])
    assert refused(path, lines_of) == "line 4: the gzip stream ends too early; the file is truncated"
    damaged = bytearray(packed)
    damaged[len(packed) // 2] ^= 0xFF
    path.write_bytes(damaged)
    assert "the gzip stream is corrupt" in refused(path, lines_of)
    path.write_bytes(gzip.compress(TEXT) + b"garbage")
    assert "the gzip stream is corrupt" in refused(path, lines_of)


def test_what_is_no_file_is_named(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    assert refused(tmp_path, lines_of) == "is a folder"
    assert refused(tmp_path / "pipe", lines_of) == "is not a file"
    assert "cannot be read: No such file or directory" in refused(tmp_path / "nowhere", lines_of)
    assert "did you mean 'pipe'?" in refused(tmp_path / "pipes", lines_of)
    assert "cannot be read: " in refused(tmp_path / ("x" * 300), lines_of)
    with pytest.raises(InputError, match="cannot be read"):
        lines_of(tmp_path / "a\0b")


def test_other_packings_and_archives_are_no_text(tmp_path):
    path = tmp_path / "a"
    for magic, name in ((b"BZh91AY&SY", "bzip2"), (b"\xfd7zXZ\0", "xz"), (b"\x28\xb5\x2f\xfd", "zstd")):
        path.write_bytes(magic + b"rest")
        assert (
            refused(path, lines_of) == f"line 1: this is packed with {name}; unpack it, or pack it with gzip"
        )
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a", TEXT)
    assert refused(path, lines_of) == "line 1: this is a zip archive; want a text file, plain or gzip"


def test_a_line_that_fills_the_memory_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(limits, "LINE_BYTES", 1 << 20)
    path = tmp_path / "a"
    path.write_bytes(b"short\n" + b"x" * (1 << 20) + b"\n")
    assert refused(path, lines_of).startswith("line 2: is longer than 1 MiB; is this a text file?")


def test_members_of_folders_archives_and_single_files_are_the_same(tmp_path):
    folder = tmp_path / "folder"
    (folder / "sub").mkdir(parents=True)
    (folder / "sub" / "b.csv").write_bytes(gzip.compress(b"2"))
    (folder / "a.csv").write_bytes(TEXT)
    want = {"a.csv": TEXT, "sub/b.csv": b"2"}
    assert members(folder) == want
    with tarfile.open(tmp_path / "t", "w:gz") as archive:
        archive.add(folder, ".")
    with tarfile.open(tmp_path / "plain.tar", "w") as archive:
        archive.add(folder, ".")
    with zipfile.ZipFile(tmp_path / "z", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.mkdir("sub")
        for name in want:
            archive.write(folder / name, name)
    for name in ("t", "plain.tar", "z"):
        assert {n.removeprefix("./"): data for n, data in members(tmp_path / name).items()} == want
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(TEXT))
    assert members(tmp_path / "a.csv.gz") == {"a.csv": TEXT}
    assert members(folder / "a.csv") == {"a.csv": TEXT}


def test_members_that_are_not_read_are_skipped(tmp_path):
    with tarfile.open(tmp_path / "t.tar.gz", "w:gz") as archive:
        for name in "abc":
            header = tarfile.TarInfo(name)
            header.size = 100_000
            archive.addfile(header, io.BytesIO(name.encode() * 100_000))
    assert [(name, stream.read(2)) for name, stream in open_members(tmp_path / "t.tar.gz") if name != "b"] == [
        ("a", b"aa"), ("c", b"cc"),
    ]  # fmt: skip


def test_names_that_lead_out_of_an_archive_are_only_labels(tmp_path):
    names = ["../../out.csv", "/etc/out.csv", "a/../../b"]
    with zipfile.ZipFile(tmp_path / "z", "w") as archive:
        for name in names:
            archive.writestr(name, TEXT)
    inside = tmp_path / "inside"
    inside.mkdir()
    tar_of(inside / "t", *map(tarfile.TarInfo, names))
    for path in (tmp_path / "z", inside / "t"):
        assert [name.lstrip("/") for name in members(path)] == [name.lstrip("/") for name in names]
    assert sorted(p.name for p in tmp_path.rglob("*")) == ["inside", "t", "z"]


@pytest.mark.parametrize(
    ("kind", "what"),
    [
        (tarfile.SYMTYPE, "a link; links in archives are not followed"),
        (tarfile.LNKTYPE, "a link; links in archives are not followed"),
        (tarfile.CHRTYPE, "neither a file nor a folder"),
        (tarfile.FIFOTYPE, "neither a file nor a folder"),
    ],
)
def test_links_and_devices_in_a_tar_are_refused(tmp_path, kind, what):
    header = tarfile.TarInfo("evil\x1b[31m")
    header.type, header.linkname = kind, "/etc/passwd"
    path = tar_of(tmp_path / "t", tarfile.TarInfo("good"), header)
    assert refused(path) == f"member 'evil\\x1b[31m' is {what}"


def test_a_link_or_a_locked_member_in_a_zip_is_refused(tmp_path):
    path = tmp_path / "z"
    link = zipfile.ZipInfo("link")
    link.external_attr = 0o120777 << 16
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(link, "/etc/passwd")
    assert refused(path) == "member 'link' is a link; links in archives are not followed"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("locked", TEXT)
    data = bytearray(path.read_bytes())
    for magic, at in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        data[data.index(magic) + at] |= 1
    path.write_bytes(data)
    assert refused(path) == "member 'locked' is encrypted"


@pytest.mark.parametrize("damage", [lambda d: d[: len(d) // 2], lambda d: d[: len(d) // 2] + b"\0\xff" * 9])
def test_broken_archives_are_refused(tmp_path, damage):
    content = os.urandom(20_000)
    tar_of(tmp_path / "a.tar", *map(tarfile.TarInfo, "abc"), mode="w", data=content)
    tar_of(tmp_path / "a.tgz", *map(tarfile.TarInfo, "abc"), data=content)
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for name in "abc":
            archive.writestr(name, content)
    for path in tmp_path.iterdir():
        path.write_bytes(damage(path.read_bytes()))
        assert refused(path).startswith(("the ", "member ", "cannot be read: "))


def test_a_flipped_bit_in_a_zip_member_is_noticed(tmp_path):
    path = tmp_path / "z"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a", b"1234567")
    path.write_bytes(path.read_bytes().replace(b"1234567", b"1234577"))
    assert refused(path).startswith("member 'a': ")


def test_a_tar_that_ends_inside_a_header_is_not_taken_as_whole(tmp_path):
    path = tar_of(tmp_path / "t.tar", *map(tarfile.TarInfo, "ab"), mode="w")
    whole = path.read_bytes()
    path.write_bytes(whole[: 1024 + 300])
    assert refused(path).startswith("the tar archive is corrupt")
    path.write_bytes(whole[:1024] + b"\x01" * 512 + whole[1536:])
    assert refused(path).startswith("the tar archive is corrupt")


def test_a_tar_header_that_fills_the_memory_is_refused(tmp_path):
    header = tarfile.TarInfo("pax")
    header.type, header.size = tarfile.XHDTYPE, 2 << 20
    (tmp_path / "t.tar").write_bytes(header.tobuf() + bytes(2 << 20))
    assert refused(tmp_path / "t.tar") == "the tar archive is corrupt (a header is longer than 1 MiB)"


class TestBombs:
    """Archives that unpack to far more than they hold, in small: the limits are set down."""

    @pytest.fixture(autouse=True)
    def _limits(self, monkeypatch):
        monkeypatch.setattr(limits, "FREE_BYTES", 1 << 20)

    zeros = bytes(4 << 20)

    def bomb(self, path) -> None:
        assert "unpacks to more than" in refused(path)

    def test_gzip(self, tmp_path):
        (tmp_path / "a").write_bytes(gzip.compress(self.zeros))
        self.bomb(tmp_path / "a")
        with pytest.raises(InputError, match=r"line 1: unpacks to more than \d+ MiB"):
            lines_of(tmp_path / "a")

    def test_tar(self, tmp_path):
        self.bomb(tar_of(tmp_path / "a", tarfile.TarInfo("a"), data=self.zeros))

    def test_tar_of_members_that_are_skipped(self, tmp_path):
        path = tar_of(tmp_path / "a", tarfile.TarInfo("a"), tarfile.TarInfo("b"), data=self.zeros)
        with pytest.raises(InputError, match="unpacks to more than"):
            list(open_members(path))

    def test_zip_of_one(self, tmp_path):
        with zipfile.ZipFile(tmp_path / "a", "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("a", self.zeros)
        self.bomb(tmp_path / "a")

    def test_zip_of_many_small_ones(self, tmp_path):
        with zipfile.ZipFile(tmp_path / "a", "w", zipfile.ZIP_DEFLATED) as archive:
            for i in range(40):
                archive.writestr(str(i), self.zeros[: 1 << 19])
        self.bomb(tmp_path / "a")

    def test_gzip_in_a_zip(self, tmp_path):
        with zipfile.ZipFile(tmp_path / "a", "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("a.gz", gzip.compress(self.zeros))
        self.bomb(tmp_path / "a")

    def test_a_limit_that_is_given_takes_the_place_of_the_others(self, tmp_path):
        (tmp_path / "a").write_bytes(gzip.compress(self.zeros))
        with limited(Limits(max_bytes=4 << 20)):
            assert len(members(tmp_path / "a")["a"]) == 4 << 20
        (tmp_path / "a").write_bytes(gzip.compress(os.urandom(2 << 20)))
        with limited(Limits(max_bytes=1 << 20)):
            self.bomb(tmp_path / "a")

    def test_zeros_in_a_small_file_are_harmless(self, tmp_path):
        (tmp_path / "a").write_bytes(gzip.compress(self.zeros[: 1 << 20]))
        assert len(members(tmp_path / "a")["a"]) == 1 << 20


def test_a_sparse_member_is_refused(tmp_path):
    header = tarfile.TarInfo("holes")
    header.type = tarfile.GNUTYPE_SPARSE
    (tmp_path / "t.tar").write_bytes(header.tobuf(tarfile.GNU_FORMAT) + bytes(1024))
    assert "holes" in refused(tmp_path / "t.tar")


def test_an_archive_in_an_archive_is_given_as_it_is(tmp_path):
    inner = io.BytesIO()
    with zipfile.ZipFile(inner, "w") as archive:
        archive.writestr("a", TEXT)
    with zipfile.ZipFile(tmp_path / "z", "w") as archive:
        archive.writestr("inner.zip", inner.getvalue())
        archive.writestr("b.csv.gz", gzip.compress(TEXT))
    assert members(tmp_path / "z") == {"inner.zip": inner.getvalue(), "b.csv.gz": TEXT}


def test_a_stream_gets_a_path():
    data = os.urandom(300_000)
    with piped(io.BytesIO(data)) as path, open(path, "rb") as pipe:
        assert pipe.read() == data


def test_a_path_that_is_not_read_to_its_end_does_not_block():
    stream = io.BytesIO(b"0\n" * (5 << 20))
    with piped(stream) as path:
        pipe = open(path, "rb")  # noqa: SIM115  (left open on purpose)
        assert pipe.read(10) == b"0\n" * 5
    with piped(stream):
        pass  # not even opened
    pipe.close()
    assert stream.tell() < 10 << 20


def test_errors_of_a_stream_with_a_path_are_raised_whatever_its_reader_says(tmp_path):
    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress(os.urandom(300_000))[:-1000])

    def read(then_raise: bool) -> None:
        with open_text(path) as stream, piped(stream) as name, open(name, "rb") as pipe:
            assert len(pipe.read()) < 300_000
            if then_raise:
                raise ValueError("too short")

    for then_raise in (False, True):
        with pytest.raises(InputError, match="the gzip stream ends too early"):
            read(then_raise)


def test_what_is_shown_can_be_printed_and_is_short():
    assert (shown(b"abc"), shown("abc")) == ("'abc'", "'abc'")
    for text in (b"\x1b[31m\xff", "é\n", "x" * 1000):
        assert shown(text).isprintable()
        assert len(shown(text)) <= 40
