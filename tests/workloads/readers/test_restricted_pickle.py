import contextlib
import gzip
import io
import os
import pickle
import random
import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workloads.errors import InputError
from workloads.readers.restricted_pickle import loads, read_npy

scalars = st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False) | st.text()
arrays = st.builds(
    lambda shape, kind, order: np.asarray(np.arange(np.prod(shape, dtype=int)).reshape(shape), kind, order),
    st.lists(st.integers(1, 3), max_size=3).map(tuple),
    st.sampled_from(["f8", ">f4", "i8", "u2", "?"]),
    st.sampled_from("CF"),
)
data = st.recursive(
    scalars | st.binary() | arrays | st.integers(0, 9).map(np.int64),
    lambda inner: (
        st.lists(inner, max_size=6)
        | st.lists(inner, max_size=5).map(tuple)
        | st.dictionaries(st.text() | st.integers(), inner, max_size=6)
    ),
    max_leaves=12,
)


def same(a, b) -> bool:
    if isinstance(a, np.ndarray):
        return isinstance(b, np.ndarray) and a.dtype == b.dtype and np.array_equal(a, b)
    if isinstance(a, list | tuple):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return isinstance(b, dict) and [*a] == [*b] and all(same(a[k], b[k]) for k in a)
    return type(a) is type(b) and a == b


@given(data, st.sampled_from([2, 3, 4]))
def test_data_come_back_as_they_were(value, protocol):
    assert same(value, loads(pickle.dumps(value, protocol=protocol)))


@settings(max_examples=20)
@given(data)
def test_files_that_numpy_saves_are_read(tmp_path_factory, value):
    path = tmp_path_factory.mktemp("npy") / "x.npy"
    boxed = np.empty((), object)
    boxed[()] = {"value": value}
    np.save(path, boxed, allow_pickle=True)
    assert same(read_npy(path), {"value": value})
    packed = path.with_suffix(".gz")
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert same(read_npy(packed), {"value": value})


@pytest.mark.parametrize("kind", ["f8", ">i4", "?", "u1"])
def test_plain_arrays_are_read(tmp_path, kind):
    array = np.asarray(np.arange(6).reshape(2, 3), kind)
    for name, saved in (("c", array), ("f", np.asfortranarray(array))):
        np.save(tmp_path / f"{name}.npy", saved)
        assert same(read_npy(tmp_path / f"{name}.npy"), array)
    np.save(tmp_path / "o.npy", np.array([{1: 2}, [3]], object), allow_pickle=True)
    assert read_npy(tmp_path / "o.npy").tolist() == [{1: 2}, [3]]


def test_shared_values_stay_shared():
    shared = [1]
    first, second = loads(pickle.dumps([shared, shared]))
    assert first is second


class Runs:
    """What an attacker pickles: reading it with Python's unpickler calls `function`."""

    def __init__(self, function, *arguments):
        self.made = function, arguments

    def __reduce__(self):
        return self.made


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("call", [os.mkdir, os.system, eval, exec, getattr, print])
def test_nothing_that_a_file_names_is_run(tmp_path, protocol, call):
    target = tmp_path / "made"
    text = str(target) if call is os.mkdir else f"__import__('os').mkdir({str(target)!r})"
    harmful = pickle.dumps({"a": Runs(call, text)}, protocol=protocol)
    with pytest.raises(InputError, match="which is not admitted") as caught:
        loads(harmful)
    if protocol > 1:
        assert f".{call.__name__}'" in str(caught.value)
    assert not target.exists()


def array_of(body: bytes, size: int, code: bytes = b"O8") -> bytes:
    """An array in a pickle, of what `body` pushes."""
    dtype = b"cnumpy\ndtype\nU\x02" + code + b"\x85R(K\x03U\x01|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK?tb"
    shape = b"J" + struct.pack("<i", size) + b"\x85"
    return b"cnumpy.core.multiarray\n_reconstruct\n)R(K\x01" + shape + dtype + b"\x89" + body + b"tb"


MANY = 1 << 20
TEXT = b"X" + struct.pack("<i", MANY) + b"x" * MANY + b"q\x00"
ENCODED = b"c_codecs\nencode\nh\x00\x85R"
BOMBS = {
    "long text": (b"X\xff\xff\xff\xff" + b"x" * 9, "expected 4294967295 bytes"),
    "long bytes": (b"\x8e" + struct.pack("<Q", 2**62), "expected 4611686018427387904 bytes"),
    "long buffer": (b"\x96" + struct.pack("<Q", 2**40), "bytearray8"),
    "a key so deep that hashing it would crash": (b"})" + b"\x85" * 300_000 + b"Ns", "tuples in one another"),
    "many arrays of one list": (
        b"](](" + b"N" * MANY + b"eq\x00" + array_of(b"h\x00", MANY) * 100 + b"e",
        "an array without its numbers or items",
    ),
    "one text as many bytes": (b"](" + TEXT + ENCODED * 99 + b"e", "texts too often"),
    "one text as many arrays": (
        b"](" + TEXT + array_of(b"h\x00", MANY, b"u1") * 99 + b"e",
        "texts too often",
    ),
    "bytes as many arrays": (
        b"](" + TEXT + ENCODED + b"q\x01" + array_of(b"h\x01", MANY, b"u1") * 99 + b"e",
        "texts too often",
    ),
    "a large array": (array_of(b"]", MANY), "an array without its numbers or items"),
    "objects at addresses": (array_of(b"U\x08AAAAAAAA", 1), "an array without its items"),
}


@pytest.mark.parametrize("label", BOMBS)
def test_small_files_that_would_fill_the_memory_or_crash_are_refused(label):
    body, why = BOMBS[label]
    with pytest.raises(InputError, match=why):
        loads(b"\x80\x02" + body + b".")


def test_an_array_of_a_list_is_read():
    assert loads(b"\x80\x02" + array_of(b"](K\x01K\x02e", 2) + b".").tolist() == [1, 2]


def test_a_number_of_a_kept_value_makes_no_table():
    with pytest.raises(InputError, match="value 4294967295 after 0"):  # the unpickler would ask for 64 GB
        loads(b"\x80\x02K\x07r\xff\xff\xff\xff.")


def npy_bytes(value) -> bytes:
    out = io.BytesIO()
    boxed = np.empty((), object)
    boxed[()] = value
    np.save(out, boxed, allow_pickle=True)
    return out.getvalue()


def test_100_broken_files_are_refused_in_one_line_that_names_the_file(tmp_path):
    """Truncated, extended, headed otherwise; and whatever flipped bytes do, it is a value or an InputError."""
    rng = random.Random(0)
    whole = npy_bytes({"a": [*range(20)], "b": np.arange(5.0)})
    plain = io.BytesIO()
    np.save(plain, np.arange(12.0).reshape(3, 4))
    path = tmp_path / "x.npy"
    broken = [data[: rng.randrange(len(data))] for data in (whole, plain.getvalue()) for _ in range(40)]
    broken += [data + rng.randbytes(n) for data in (whole, plain.getvalue()) for n in range(1, 6)]
    broken += [b"", b"PK\x03\x04", b"\x93NUMPY", b"\x93NUMPY\x03\x00" + whole[8:], b"\x93NUMPX" + whole[6:]]
    broken += [whole.replace(b"'|O'", b"'<i8'"), plain.getvalue().replace(b"(3, 4)", b"(4, 4)")]
    broken += [plain.getvalue().replace(b"(3, 4)", b"(3,-4)"), plain.getvalue().replace(b"'<f8'", b"'<U2'")]
    broken += [whole.replace(b"shape", b"shade"), gzip.compress(whole)[:-9], b"{" * 5000]
    assert len(broken) >= 100
    for data in broken:
        path.write_bytes(data)
        with pytest.raises(InputError) as caught:
            read_npy(path)
        assert str(caught.value).startswith(f"{path}: ")
        assert str(caught.value).isprintable()
    for _ in range(300):
        damaged = bytearray(whole)
        for _ in range(rng.randint(1, 3)):
            damaged[rng.randrange(len(whole))] = rng.randrange(256)
        path.write_bytes(damaged)
        with contextlib.suppress(InputError):
            read_npy(path)
