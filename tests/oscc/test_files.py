"""Files: the old one or the whole new one, strict JSON, content hashes."""

import hashlib
import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oscc.errors import RequestError, ToolError
from oscc.files import dump_json, read_json, sha256_bytes, sha256_file, write_atomic


def test_writes_text_and_bytes_and_makes_folders(tmp_path: Path) -> None:
    write_atomic(tmp_path / "a" / "b.txt", "é")
    write_atomic(tmp_path / "a" / "b.bin", b"\x00\xff")
    assert (tmp_path / "a" / "b.txt").read_bytes() == "é".encode()
    assert (tmp_path / "a" / "b.bin").read_bytes() == b"\x00\xff"
    assert sorted(p.name for p in (tmp_path / "a").iterdir()) == ["b.bin", "b.txt"]
    assert (tmp_path / "a" / "b.txt").stat().st_mode & 0o777 == 0o644


_FULL = """
import resource, signal, sys
from pathlib import Path
from oscc.errors import ToolError
from oscc.files import write_atomic
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
try:
    write_atomic(Path(sys.argv[1]), b"n" * 100_000)
except ToolError as error:
    print(error)
"""


def test_a_write_that_cannot_end_leaves_the_old_file(tmp_path: Path) -> None:
    target = tmp_path / "result"
    target.write_bytes(b"old")
    done = subprocess.run(
        [sys.executable, "-c", _FULL, str(target)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "could not be written: File too large" in done.stdout
    assert "is unchanged" in done.stdout
    assert target.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["result"]


_WRITER = """
import itertools, sys
from pathlib import Path
from oscc.files import write_atomic
print("ready", flush=True)
for k in itertools.count():
    write_atomic(Path(sys.argv[1]), b"ab"[k % 2 : k % 2 + 1] * 3_000_000)
"""


def test_a_killed_writer_leaves_a_whole_file(tmp_path: Path) -> None:
    target = tmp_path / "result"
    target.write_bytes(b"o" * 3_000_000)
    for pause in (0.0, 0.013, 0.04):
        with subprocess.Popen(
            [sys.executable, "-c", _WRITER, str(target)], stdout=subprocess.PIPE
        ) as child:
            assert child.stdout is not None
            child.stdout.readline()
            time.sleep(pause)
            child.send_signal(signal.SIGKILL)
        content = target.read_bytes()
        assert len(content) == 3_000_000
        assert len(set(content)) == 1


def test_a_folder_that_is_a_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(ToolError, match="could not be written"):
        write_atomic(tmp_path / "file" / "below", "x")
    assert (tmp_path / "file").read_text() == "x"


def test_hashes_are_sha256(tmp_path: Path) -> None:
    # the test vector of FIPS 180
    wanted = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert sha256_bytes(b"abc") == wanted
    (tmp_path / "x").write_bytes(b"abc" * 1000)
    assert sha256_file(tmp_path / "x") == hashlib.sha256(b"abc" * 1000).hexdigest()


@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats(allow_nan=False)
        | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_json_is_strict_and_keeps_doubles(content: object) -> None:
    def refuse(word: str) -> None:
        raise AssertionError(word)

    try:
        text = dump_json(content)
    except (ValueError, UnicodeEncodeError):
        assert "inf" in repr(content)
        return
    assert json.loads(text, parse_constant=refuse) == content
    assert text.endswith("\n")


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
def test_json_never_holds_what_is_no_number(bad: float) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        dump_json({"x": [1.0, bad]})


def test_json_keys_are_sorted() -> None:
    assert dump_json({"b": 1, "a": {"d": 1, "c": 2}}).index('"a"') < dump_json(
        {"b": 1, "a": {"d": 1, "c": 2}}
    ).index('"b"')


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "does not exist"),
        (b"{", "is not readable JSON"),
        (b"\xff\xfe", "is not readable JSON"),
        (b"[]", "has format None"),
        (b'{"format": "oscc.x/2"}', "has format 'oscc.x/2', but this version reads"),
    ],
)
def test_reading_says_what_is_wrong(
    tmp_path: Path, content: bytes | None, words: str
) -> None:
    path = tmp_path / "x.json"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(RequestError, match=words):
        read_json(path, "oscc.x/1")
    with pytest.raises(RequestError):
        read_json(tmp_path, "oscc.x/1")


def test_reading_gives_the_content(tmp_path: Path) -> None:
    write_atomic(tmp_path / "x.json", dump_json({"format": "oscc.x/1", "y": 0.1}))
    assert read_json(tmp_path / "x.json", "oscc.x/1")["y"] == 0.1
