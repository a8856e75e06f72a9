"""Vocabulary, corpora, windows."""

import hashlib
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oscc.corpus import (
    ASCII,
    Vocabulary,
    read_text,
    standard_library,
    text_corpus,
    windows,
)
from oscc.errors import RequestError


def test_symbols_are_numbered_as_written():
    # 0 other, 1 tab, 2 newline, 3..97 ASCII 32..126
    assert ASCII.size == 98
    assert ASCII.encode("\t\n ~").tolist() == [1, 2, 3, 97]
    assert ASCII.encode("é\u4e2d\U0001f600x", unknown="other").tolist() == [0, 0, 0, 91]


@given(st.text(alphabet=ASCII.characters))
def test_decode_undoes_encode(text):
    assert ASCII.decode(ASCII.encode(text)) == text


def test_an_unknown_character_is_named_with_code_position_and_line():
    with pytest.raises(RequestError) as caught:
        ASCII.encode("ab\ncd\nefé", where="notes.txt")
    assert str(caught.value).startswith(
        "character 'é' (U+00E9) at position 9, line 3 of notes.txt is not in the "
        "checkpoint's 97 characters."
    )


def test_other_is_offered_only_where_there_is_a_symbol_for_it():
    with pytest.raises(RequestError, match=r"or --unknown other\.$"):
        ASCII.encode("é")
    with pytest.raises(RequestError, match=r"lists them\)\.$"):
        Vocabulary("ab", other=False).encode("c")


def test_other_needs_a_symbol_for_it():
    with pytest.raises(RequestError, match="no symbol for other"):
        Vocabulary("ab", other=False).encode("c", unknown="other")
    with pytest.raises(RequestError, match="Did you mean `other`"):
        ASCII.encode("c", unknown="othr")


def test_vocabularies_survive_json_and_refuse_doubles():
    assert Vocabulary.from_json(ASCII.to_json()) == ASCII
    with pytest.raises(RequestError, match="twice"):
        Vocabulary("aba")
    with pytest.raises(RequestError, match="JSON mapping"):
        Vocabulary.from_json("[1]")


def write_library(root):
    files = {
        "alpha.py": "x = 1\n" * 60,
        "pkg/beta.py": "y = 2\r\n" * 60,
        "short.py": "z\n",
        "test/skipped.py": "a = 1\n" * 60,
        "encodings/skipped.py": "a = 1\n" * 60,
        "site-packages/skipped.py": "a = 1\n" * 60,
        "data.txt": "no source\n" * 60,
    }
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())


def test_library_corpus_takes_sources_only_with_a_content_digest(tmp_path):
    write_library(tmp_path)
    corpus = standard_library(tmp_path)
    digest = hashlib.sha256(b"alpha.py\0" + b"x = 1\n" * 60)
    digest.update(b"pkg/beta.py\0" + b"y = 2\n" * 60)
    assert corpus.files == 2
    assert corpus.digest == digest.hexdigest()
    assert len(corpus.train) + len(corpus.held_out) == 720


def test_a_file_is_held_out_by_the_hash_of_its_path(tmp_path):
    names = [f"m{i}.py" for i in range(64)]
    for name in names:
        (tmp_path / name).write_text("x = 1\n" * 50)
    first = [hashlib.sha256(name.encode()).digest()[0] for name in names]
    corpus = standard_library(tmp_path)
    assert len(corpus.held_out) == 300 * sum(byte < 20 for byte in first) > 0


def test_the_interpreters_own_library_is_large_and_almost_ascii():
    corpus = standard_library()
    assert corpus.files > 400
    assert len(corpus.train) > 5e6
    assert 0.02 < len(corpus.held_out) / len(corpus.train) < 0.15
    assert (corpus.train == 0).mean() < 1e-3


def test_a_single_text_holds_out_its_tail(tmp_path):
    path = tmp_path / "book.txt"
    path.write_text("abcde" * 200)
    corpus = text_corpus(path)
    assert (len(corpus.train), len(corpus.held_out)) == (940, 60)
    assert (
        ASCII.decode(np.concatenate([corpus.train, corpus.held_out])) == "abcde" * 200
    )


def test_a_folder_skips_what_is_not_text(tmp_path):
    for i in range(40):
        (tmp_path / f"{i}.txt").write_text("hello\n" * 60)
    (tmp_path / "picture.png").write_bytes(b"\x89PNG" + bytes(range(256)) * 2)
    corpus = text_corpus(tmp_path)
    assert corpus.files == 40
    assert min(len(corpus.train), len(corpus.held_out)) > 0


@pytest.mark.parametrize(
    ("content", "words"),
    [(b"", "is empty"), (b"\xff\xfe\x00", "not UTF-8 text"), (None, "does not exist")],
)
def test_bad_text_files_are_named(tmp_path, content, words):
    path = tmp_path / "text.txt"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(RequestError, match=words):
        read_text(path)


def test_windows_do_not_overlap_and_carry_the_next_symbol():
    symbols = np.arange(101, dtype=np.uint8)
    cut = windows(symbols, 10, 1000)
    assert cut.shape == (10, 11)
    assert cut[:, :-1].ravel().tolist() == list(range(100))
    some = windows(symbols, 10, 30)
    assert some[:, 0].tolist() == [0, 30, 60]
    with pytest.raises(RequestError, match="one window needs 11"):
        windows(symbols[:10], 10, 10)


def test_a_file_of_the_size_of_enwik8_is_split_by_bytes(tmp_path, monkeypatch):
    from oscc import corpus

    assert corpus._BYTE_SPLIT == (90_000_000, 5_000_000, 5_000_000)
    monkeypatch.setattr(corpus, "_BYTE_SPLIT", (900, 50, 50))
    content = bytes(i * 7 % 256 for i in range(1000))
    (tmp_path / "small8").write_bytes(content)
    found = corpus.text_corpus(tmp_path / "small8")
    assert found.train.tobytes() == content[:900]
    assert found.held_out.tobytes() == content[900:950]
    assert found.test.tobytes() == content[950:]
    assert found.vocabulary is corpus.BYTES
    assert found.vocabulary.decode([65, 10]) == "A\n"
    (tmp_path / "other").write_bytes(b"a" * 999)
    assert corpus.text_corpus(tmp_path / "other").vocabulary.size == 98


def cyrillic(share, count=2000):
    """Text of which a share of the characters is Cyrillic."""
    return "".join("ж" if i % 100 < 100 * share else "a" for i in range(count))


@pytest.mark.parametrize(
    ("share", "name"),
    [(0.0, "ascii"), (0.05, "ascii"), (0.06, "bytes"), (1.0, "bytes")],
)
def test_text_that_is_hardly_ascii_is_read_as_bytes(tmp_path, share, name):
    text = cyrillic(share)
    path = tmp_path / "text.txt"
    path.write_bytes(text.replace("aa", "a\ra").encode())
    corpus = text_corpus(path)
    assert corpus.vocabulary.name == name
    assert corpus.not_ascii == pytest.approx(share)
    whole = np.concatenate([corpus.train, corpus.held_out])
    if name == "bytes":
        assert whole.tobytes() == path.read_bytes()
        assert corpus.other_share == 0
        assert corpus.digest == hashlib.sha256(path.read_bytes()).hexdigest()
    else:
        plain = path.read_bytes().replace(b"\r", b"")
        assert corpus.digest == hashlib.sha256(plain).hexdigest()
        assert corpus.other_share == (whole == 0).mean()
    folder = tmp_path / "folder"
    folder.mkdir()
    for i in range(30):
        (folder / f"{i}.txt").write_text(text)
    assert text_corpus(folder).vocabulary.name == name


def test_a_vocabulary_that_is_asked_for_is_taken(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text("abж" * 200)
    assert text_corpus(path, "ascii").other_share == pytest.approx(1 / 3)
    assert text_corpus(path, "bytes").vocabulary.name == "bytes"
    own = text_corpus(path, Vocabulary("жab", other=False))
    assert own.train[:3].tolist() == [1, 2, 0]
    assert own.vocabulary.name == "given"
    with pytest.raises(RequestError) as caught:
        text_corpus(path, Vocabulary("ab", other=False))
    assert "'ж' (U+0436) at position 3, line 1 of text.txt is not in" in str(
        caught.value
    )
    assert "the 2 characters of `model.vocabulary`. Add it" in str(caught.value)
    with pytest.raises(RequestError, match="must be one of ascii, auto, bytes"):
        text_corpus(path, "latin")


def test_bytes_need_no_text_and_that_is_said(tmp_path):
    path = tmp_path / "latin.txt"
    path.write_bytes(b"caf\xe9\r\n" * 100)
    with pytest.raises(RequestError, match=r"or give --set train\.vocabulary=bytes"):
        text_corpus(path)
    corpus = text_corpus(path, "bytes")
    assert (
        np.concatenate([corpus.train, corpus.held_out]).tobytes() == path.read_bytes()
    )


def test_the_library_is_ascii_unless_bytes_are_asked_for(tmp_path):
    write_library(tmp_path)
    assert standard_library(tmp_path).vocabulary == ASCII
    (tmp_path / "greek.py").write_text("αβγ" * 2000)
    assert standard_library(tmp_path).vocabulary == ASCII
    found = standard_library(tmp_path, "bytes")
    assert found.vocabulary.name == "bytes"
    assert len(found.train) + len(found.held_out) == 360 + 420 + 12_000


def test_what_a_folder_leaves_out_is_counted(tmp_path):
    for i in range(40):
        (tmp_path / f"{i}.txt").write_text("hello\n" * 60)
    for i in range(3):
        (tmp_path / f"short{i}.txt").write_text("x")
    for i in range(2):
        (tmp_path / f"latin{i}.txt").write_bytes(b"caf\xe9" * 100)
    corpus = text_corpus(tmp_path)
    assert (corpus.files, corpus.too_short, corpus.not_text) == (40, 3, 2)


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ([], "it has no files. Give a folder of text files."),
        ([b"x" * 200] * 9, "9 files are shorter. Join short files into a longer one."),
        ([b"\xff" * 400] * 2, "2 files are not UTF-8 text. Save them as UTF-8."),
        ([b"\xff", b"x"], "1 files are not UTF-8 text; 1 files are shorter. Join"),
    ],
)
def test_a_folder_without_text_says_why_and_what_to_do(tmp_path, files, words):
    folder = tmp_path / "texts"
    folder.mkdir()
    for i, content in enumerate(files):
        (folder / f"{i}.txt").write_bytes(content)
    with pytest.raises(RequestError) as caught:
        text_corpus(folder)
    assert f"No text of 256 bytes or more in `texts`: {words}" in str(caught.value)


def test_the_words_of_a_configuration_become_vocabularies():
    from oscc.corpus import BYTES
    from oscc.vocabulary import vocabulary_of

    assert vocabulary_of("ab") == Vocabulary("ab", other=False)
    assert vocabulary_of({"characters": "ab", "other": True}) == Vocabulary("ab")
    assert vocabulary_of({"unit": "byte"}) == BYTES
    for whole in (BYTES, ASCII):
        assert vocabulary_of(json.loads(whole.to_json())) == whole
    for wrong in (
        {},
        [1],
        {"other": True},
        {"characters": 3},
        {"characters": "a", "o": 1},
    ):
        with pytest.raises(RequestError, match=r"`model\.vocabulary` must be the"):
            vocabulary_of(wrong)


def test_bytes_take_any_text_as_its_utf8(tmp_path):
    from oscc.corpus import BYTES, read_symbols

    assert BYTES.encode("aé€").tolist() == [0x61, 0xC3, 0xA9, 0xE2, 0x82, 0xAC]
    assert BYTES.decode([0x61, 0xC3, 0xA9, 0xFF]) == "aé\ufffd"
    assert BYTES.encode("é€", limit=3).tolist() == [0xC3, 0xA9, 0xE2]
    again = Vocabulary.from_json(BYTES.to_json())
    assert again == BYTES
    assert again != Vocabulary(BYTES.characters, other=False)
    (tmp_path / "latin").write_bytes(b"\xe9\r\n")
    symbols, content = read_symbols(tmp_path / "latin", BYTES)
    assert (symbols.tolist(), content) == ([0xE9, 13, 10], b"\xe9\r\n")
    with pytest.raises(RequestError, match="not UTF-8"):
        read_symbols(tmp_path / "latin", ASCII)


def test_bytes_say_how_much_is_not_ascii(tmp_path):
    text = "é" * 25 + "a\n" * 35 + "\r" + "€" * 4
    (tmp_path / "t").write_bytes(text.encode() * 40)
    found = text_corpus(tmp_path / "t", "bytes")
    assert found.not_ascii == pytest.approx(30 / 100)


def test_what_is_cut_off_is_not_looked_at():
    assert ASCII.encode("ab\u4e00", limit=2).tolist() == ASCII.encode("ab").tolist()


@pytest.mark.parametrize(
    ("characters", "other", "unit"),
    [("ab", False, "byte"), (None, True, "byte"), (None, False, "word")],
)
def test_bytes_are_the_256_in_order(characters, other, unit):
    from oscc.corpus import BYTES

    with pytest.raises(RequestError):
        Vocabulary(characters or BYTES.characters, other, unit)
