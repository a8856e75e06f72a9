"""safetensors files: the traps of the format's own writer, and damaged files."""

import json
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
import safetensors.numpy
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from oscc import tensors
from oscc.errors import RequestError

KINDS = {"F64": "<f8", "F32": "<f4", "I64": "<i8", "BOOL": "|b1", "U8": "|u1"}


def parsed(data: bytes) -> dict[str, npt.NDArray[np.generic]]:
    """Arrays by the description of the format, independent of its library."""
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8 : 8 + size])
    body = data[8 + size :]
    return {
        name: np.frombuffer(body[slice(*entry["data_offsets"])], KINDS[entry["dtype"]])
        .reshape(entry["shape"])
        .copy()
        for name, entry in header.items()
        if name != "__metadata__"
    }


def layouts(array: npt.NDArray[np.generic]) -> dict[str, npt.NDArray[np.generic]]:
    """The same values in every layout that numpy has."""
    padded = np.zeros([2 * n for n in array.shape], array.dtype)
    every_other = padded[(..., *(slice(None, None, 2) for _ in array.shape))]
    every_other[...] = array
    backwards = array[::-1].copy()[::-1] if array.ndim else array
    return {
        "c": np.array(array, order="C"),
        "fortran": np.array(array, order="F"),
        "transposed": np.array(array.T, order="C").T,
        "strided": every_other,
        "backwards": backwards,
        "swapped bytes": array.astype(array.dtype.newbyteorder()),
    }


shapes = hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4)
kinds = st.sampled_from([np.float64, np.float32, np.int64, np.bool_, np.uint8])


@given(hnp.arrays(kinds, shapes))
def test_no_layout_is_scrambled(array: npt.NDArray[np.generic]) -> None:
    wanted = np.array(array, order="C")
    for name, layout in layouts(array).items():
        found = parsed(tensors.encode({"x": layout}, {}))["x"]
        assert found.shape == array.shape, name
        assert found.tobytes() == wanted.tobytes(), name


def test_the_library_itself_still_scrambles_so_the_care_is_needed() -> None:
    fortran = np.asfortranarray(np.arange(6.0).reshape(2, 3))
    found = safetensors.numpy.load(safetensors.numpy.save({"x": fortran}))["x"]
    assert not np.array_equal(found, fortran), "safetensors mends it: simplify encode"


def test_scalars_keep_their_shape() -> None:
    found, _ = tensors.decode(tensors.encode({"x": np.array(2.5)}, {}), where="x")
    assert found["x"].shape == ()
    assert float(found["x"]) == 2.5


@given(hnp.arrays(np.complex128, shapes))
def test_complex_arrays_are_kept_to_the_bit(array: npt.NDArray[np.complex128]) -> None:
    data = tensors.encode({"x": array}, {})
    assert set(parsed(data)) == {"x.re", "x.im"}
    found, _ = tensors.decode(data, where="x")
    assert found["x"].dtype == np.complex128
    assert found["x"].real.tobytes() == np.array(array.real, order="C").tobytes()
    assert found["x"].imag.tobytes() == np.array(array.imag, order="C").tobytes()


_SAVE = """
import sys
import numpy as np
from oscc import tensors
from oscc.files import sha256_bytes
keys = ["format", "family", "update", "config", "vocabulary"]
arrays = {f"t{n}": np.full((2, n), n / 3) for n in range(5)}
order = sorted(keys, key=lambda k: hash(k))
print(sha256_bytes(tensors.encode(arrays, {k: k.upper() + "é" for k in order})))
"""


def test_equal_content_is_equal_bytes_in_every_process() -> None:
    found = {
        subprocess.run(
            [sys.executable, "-c", _SAVE],
            capture_output=True,
            text=True,
            check=True,
            env={"PYTHONHASHSEED": str(seed)},
        ).stdout
        for seed in range(4)
    }
    assert len(found) == 1


def test_many_saves_with_three_keys_are_one_file() -> None:
    metadata = {"c": "1", "a": "2", "b": "é"}
    data = {tensors.encode({"x": np.ones(3)}, metadata) for _ in range(50)}
    assert len(data) == 1


def test_the_header_is_aligned_and_the_library_reads_the_file() -> None:
    for extra in range(9):
        data = tensors.encode({"x": np.arange(3.0)}, {"k": "v" * extra, "é": "ü"})
        assert struct.unpack("<Q", data[:8])[0] % 8 == 0
        assert safetensors.numpy.load(data)["x"].tolist() == [0.0, 1.0, 2.0]
        assert tensors.decode(data, where="x")[1] == {"k": "v" * extra, "é": "ü"}


def test_names_that_would_clash_are_refused() -> None:
    arrays = {"x": np.zeros(2, complex), "x.re": np.zeros(2)}
    with pytest.raises(RequestError, match=r"`x\.re`"):
        tensors.encode(arrays, {})
    parts = {"y.re": np.zeros(2), "y.im": np.zeros(2)}
    with pytest.raises(RequestError, match=r"`y`"):
        tensors.encode(parts, {})
    lone = {"y.re": np.zeros(2)}
    assert set(tensors.decode(tensors.encode(lone, {}), where="x")[0]) == set(lone)


def whole() -> bytes:
    arrays = {"a": np.arange(6.0).reshape(2, 3), "b": np.array(True)}
    arrays["c"] = np.ones(2, complex)
    return tensors.encode(arrays, {"format": "x/1", "more": "text"})


def test_every_truncation_is_refused() -> None:
    data = whole()
    for length in range(len(data)):
        with pytest.raises(RequestError, match=r"`cut\.st` is not a"):
            tensors.decode(data[:length], where="cut.st")


@given(st.integers(0, 399), st.integers(0, 255))
def test_a_damaged_byte_is_refused_or_read(place: int, value: int) -> None:
    data = bytearray(whole())
    data[place % len(data)] = value
    try:
        found, _ = tensors.decode(bytes(data), where="x")
    except RequestError:
        found = {}
    assert all(isinstance(array, np.ndarray) for array in found.values())


@pytest.mark.parametrize(
    "header",
    [
        b"[]",
        b"null",
        b'{"__metadata__": 3}',
        b'{"__metadata__": ["a"]}',
        b'{"x": 3}',
        b'{"x": {"dtype": "F64", "shape": [9], "data_offsets": [0, 8]}}',
        b'{"x": {"dtype": "F64", "shape": [1000000000000], "data_offsets": [0, 8]}}',
        b'{"x": {"dtype": "F64", "shape": [1], "data_offsets": [0, 8000000000]}}',
        b'{"x": {"dtype": "F64", "shape": [-1], "data_offsets": [0, 8]}}',
        b'{"x": {"dtype": "Q99", "shape": [1], "data_offsets": [0, 8]}}',
        b"[" * 100_000,
        b'{"x": 1e999}',
    ],
)
def test_a_hostile_header_is_refused(header: bytes) -> None:
    data = struct.pack("<Q", len(header)) + header + bytes(8)
    with pytest.raises(RequestError):
        tensors.decode(data, where="x")


def typed(kind: str, shape: list[int], body: bytes) -> bytes:
    """A file of one tensor `x`, written by the description of the format."""
    entry = {"dtype": kind, "shape": shape, "data_offsets": [0, len(body)]}
    header = json.dumps({"x": entry}).encode()
    return struct.pack("<Q", len(header)) + header + body


@pytest.mark.parametrize(
    ("kind", "body", "values"),
    [
        ("I16", struct.pack("<2h", -3, 300), [-3, 300]),
        ("I8", struct.pack("<2b", -3, 3), [-3, 3]),
        ("U16", struct.pack("<2H", 65535, 1), [65535, 1]),
        ("U32", struct.pack("<2I", 2**32 - 1, 1), [2**32 - 1, 1]),
        ("U64", struct.pack("<2Q", 2**64 - 1, 1), [2**64 - 1, 1]),
        ("F16", struct.pack("<2e", 0.5, -2), [0.5, -2.0]),
        ("BF16", bytes([0x80, 0x3F, 0x20, 0xC0]), [1.0, -2.5]),
        ("C64", struct.pack("<4f", 1, 2, 3, -4), [1 + 2j, 3 - 4j]),
    ],
)
def test_every_element_type_that_numpy_has_is_read(
    kind: str, body: bytes, values: list[float]
) -> None:
    assert tensors.decode(typed(kind, [2], body), where="x")[0]["x"].tolist() == values


@pytest.mark.parametrize("kind", ["F8_E4M3", "F8_E5M2"])
def test_an_element_type_that_is_not_read_is_named_with_its_tensor(kind: str) -> None:
    data = typed(kind, [2, 1], bytes(2))
    with pytest.raises(RequestError) as caught:
        tensors.decode(data, where="c.safetensors")
    assert f"tensor `x` (2, 1) holds {kind}, an element type that is not" in str(
        caught.value
    )
    assert tensors.decode_known(data, where="x")[2] == {"x": (kind, (2, 1))}


def test_a_header_that_claims_too_much_is_refused_at_once() -> None:
    with pytest.raises(RequestError, match="cut off"):
        tensors.decode(struct.pack("<Q", 2**63) + b"{}", where="x")


def test_files(tmp_path: Path) -> None:
    path = tmp_path / "sub" / "x.safetensors"
    tensors.save(path, {"x": np.ones((2, 2)).T}, {"k": "v"})
    arrays, metadata = tensors.load(path)
    assert arrays["x"].tolist() == [[1.0, 1.0], [1.0, 1.0]]
    assert metadata == {"k": "v"}
    with pytest.raises(RequestError, match="does not exist"):
        tensors.load(tmp_path / "none")
    with pytest.raises(RequestError, match="cannot be read"):
        tensors.load(tmp_path)
    (tmp_path / "picture.pt").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(100))
    with pytest.raises(RequestError, match="is not a"):
        tensors.load(tmp_path / "picture.pt")
    (tmp_path / "empty").write_bytes(b"")
    with pytest.raises(RequestError, match="0 bytes"):
        tensors.load(tmp_path / "empty")
