"""Files of a training run: where they may be, whose they are, who holds the name."""

import os

import pytest

from oscc.errors import RequestError
from oscc.testing.privileges import unprivileged
from oscc.verbs.train import train
from oscc.verbs.train_files import RunFiles
from oscc.verbs.train_settings import plain_name

TINY = {"k": 4, "heads": 2, "layers": 1, "hidden": 8, "context": 8, "batch": 2}
NAME = "kuramoto-flow-k04"


@pytest.fixture
def corpus(tmp_path):
    path = tmp_path / "corpus.txt"
    path.write_text("abcabd" * 400)
    return path


@pytest.fixture
def run(corpus):
    def run(out, **changes):
        return train(
            "kuramoto", text=corpus, out=out, steps=2, overrides=TINY, **changes
        )

    return run


@pytest.fixture
def no_step(monkeypatch):
    """Fail where a run gets as far as its first step."""

    def step(self):
        raise AssertionError("a step was done")

    monkeypatch.setattr("oscc.models.training.Trainer._step", step)


@pytest.mark.usefixtures("no_step")
@pytest.mark.parametrize("force", [False, True])
@pytest.mark.parametrize(
    "ending",
    [
        *("safetensors", "metrics.json", "curve.jsonl", "curve.svg"),
        *("state.safetensors", "last-good.safetensors"),
    ],
)
@pytest.mark.parametrize("content", [b"my thesis", b"{}", b"\xff\xfe"])
def test_a_file_of_somebody_else_is_left_as_it_is(
    run, tmp_path, ending, content, force
):
    path = tmp_path / f"{NAME}.{ending}"
    path.write_bytes(content)
    with pytest.raises(RequestError, match="is not a file that oscc train wrote"):
        run(tmp_path, force=force)
    assert path.read_bytes() == content
    assert {p.name for p in tmp_path.iterdir()} == {"corpus.txt", path.name}


def test_results_are_replaced_with_force_alone(run, tmp_path):
    from oscc.verbs.train import plot_curve

    plot_curve(run(tmp_path))
    files = {p: p.read_bytes() for p in tmp_path.iterdir()}
    assert len(files) == 5
    for missing in ("", ".safetensors"):
        with pytest.raises(RequestError, match="is there already"):
            run(tmp_path)
        if missing:
            (tmp_path / f"{NAME}{missing}").unlink()
    again = run(tmp_path, force=True, seed=1)
    plot_curve(again)
    assert again.checkpoint.read_bytes() != files[again.checkpoint]


@pytest.mark.usefixtures("no_step")
def test_a_folder_that_cannot_be_written_is_found_before_the_first_step(run, tmp_path):
    (tmp_path / "file").write_text("x")
    for out in ("file", "file/below/it"):
        with pytest.raises(RequestError, match=r"file` is a file, not a folder"):
            run(tmp_path / out)
    with pytest.raises(RequestError, match="cannot be"):
        run(tmp_path / ("x" * 300))
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o555)
    tmp_path.chmod(0o755)
    for parent in tmp_path.parents[:2]:
        parent.chmod(0o755)
    with unprivileged(), pytest.raises(RequestError, match="is not writable by you"):
        RunFiles(closed, NAME).require_free(force=False)
    assert {p.name for p in tmp_path.iterdir()} == {"file", "closed", "corpus.txt"}


@pytest.mark.usefixtures("no_step")
@pytest.mark.parametrize(
    "name",
    ["../evil", "a/b", "..", ".hidden", "-x", " ", "a\nb", "a\0b", "a\\b", "x" * 201],
)
def test_a_name_is_that_of_files_in_the_folder(run, tmp_path, name):
    with pytest.raises(RequestError, match="--name must"):
        run(tmp_path / "out", name=name)
    assert not (tmp_path / "out").exists()


def test_names_that_are_plain_are_taken(run, tmp_path):
    assert run(tmp_path, name="v1.2 über").checkpoint.name == "v1.2 über.safetensors"
    for name in ("x.state", "x.last-good"):
        with pytest.raises(RequestError, match="must not end with"):
            plain_name(name)


def test_two_runs_of_one_name_at_a_time_are_refused(run, tmp_path):
    out, seen = tmp_path / "out", []

    def second(progress):
        # a process of its own would hold the lock as this open file does
        with pytest.raises(RequestError, match=f"is training `{NAME}` in `"):
            run(out, force=True)
        seen.append(run(out, name="other").checkpoint.name)

    run(out, progress=second)
    assert seen == ["other.safetensors"]
    assert not [p.name for p in out.iterdir() if p.name.endswith("lock")]
    run(out, force=True)


def test_a_lock_that_was_removed_meanwhile_is_not_taken(tmp_path, monkeypatch):
    from oscc import locks

    path, calls = tmp_path / "lock", []

    def flock(file, how):
        calls.append(file)
        if len(calls) == 1:  # its holder removes it, another makes it again
            path.unlink()
            path.touch()

    monkeypatch.setattr(locks.fcntl, "flock", flock)
    with locks.held(path, "busy"):
        assert len(calls) == 2
        assert os.fstat(calls[1].fileno()).st_ino == path.stat().st_ino


@pytest.mark.usefixtures("no_step")
def test_what_the_family_cannot_do_is_refused_before_a_folder_is_made(corpus, tmp_path):
    out = tmp_path / "out"
    for family, more, words in (
        ("ssa", {"phase_noise_rad": 0.1}, "this family has none"),
        ("ssa", {"mask": "none"}, "reads the symbol"),
        ("kuramoto", {"mask": "none"}, "`mask` has no meaning for family kuramoto"),
        ("kuramoto", {"modes": 6}, "it belongs to fsn-mf. Leave it out"),
        ("kuramoto", {"arm": "published"}, "it belongs to ssa"),
        ("fsn-mf", {"feed_forward": "none"}, "it belongs to kuramoto, fsn, fsn-no-ph"),
    ):
        sizes = {k: v for k, v in TINY.items() if (family, k) != ("fsn-mf", "hidden")}
        with pytest.raises(RequestError, match=words):
            train(family, text=corpus, out=out, steps=2, overrides={**sizes, **more})
    with pytest.raises(RequestError, match="`hidden` has no meaning for family fsn-mf"):
        train("fsn-mf", text=corpus, out=out, steps=2, overrides=TINY)
    assert not out.exists()
