"""A tiny build that the tests of the command line copy, and how they call it."""

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from oscc.cli.main import main

ROOT = Path(__file__).parents[3]
TINY = ROOT / "checkpoints" / "kuramoto-flow-k08.safetensors"
# 8 coordinates, 3 tokens: a whole build in a fraction of a second
COMPILE = ["--text", "abc", "--scheme", "plain", "--periods", "20"]


@dataclass(frozen=True)
class Outcome:
    """Exit status, standard output, standard error."""

    status: int
    out: str
    err: str


Call = Callable[..., Outcome]


@pytest.fixture(autouse=True, scope="session")
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Logs of the tests stay out of the user's cache."""
    folder = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OSCC_CACHE", str(folder))
        yield folder


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Call:
    """Run the command line in this process."""

    def run(*arguments: object) -> Outcome:
        capsys.readouterr()
        status = main([str(argument) for argument in arguments])
        seen = capsys.readouterr()
        return Outcome(status, seen.out, seen.err)

    return run


@pytest.fixture(scope="session")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A build folder that no test may change."""
    folder = tmp_path_factory.mktemp("compiled") / "tiny"
    assert main(["compile", str(TINY), *COMPILE, "-q", "-o", str(folder)]) == 0
    return folder


@pytest.fixture
def build(compiled: Path, tmp_path: Path) -> Path:
    """A build folder of the test's own."""
    return Path(shutil.copytree(compiled, tmp_path / "tiny"))


@pytest.fixture
def tiny() -> Path:
    """A tiny checkpoint."""
    return TINY
