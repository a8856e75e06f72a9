"""Build folder: where the files of a compiled program are, and its manifest."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import oscc.observables
from oscc.errors import RequestError, ToolError
from oscc.files import dump_json, read_json, require_writable, sha256_file, write_atomic
from oscc.ir.codec import load as load_program
from oscc.ir.program import Program
from oscc.locks import held
from oscc.observables import Observables

FORMAT = "oscc.manifest/1"
NETLIST_FORMAT = "oscc.netlist/1"
_LOCK = ".oscc.lock"
_UNLISTED = ("manifest.json", "log.jsonl", _LOCK)
# What only compile writes: its hashes stay those of the compile.
_OF_COMPILE = ("program.safetensors", "program.yaml")


@dataclass(frozen=True, slots=True)
class BuildFolder:
    """A folder that `oscc compile` made; other verbs add to it."""

    path: Path

    @classmethod
    def open(cls, path: Path) -> BuildFolder:
        """An existing build folder.

        Raises:
            RequestError: it does not exist, or is not one of ours.
        """
        if not path.exists():
            raise RequestError(f"`{path}` does not exist. Make it with oscc compile.")
        if not path.is_dir() or not (path / "manifest.json").is_file():
            raise RequestError(
                f"`{path}` is not a build folder: it has no manifest.json."
            )
        read_json(path / "manifest.json", FORMAT)
        return cls(path)

    def program(self) -> Program:
        """The program of the folder, checked against its digest and the manifest.

        Raises:
            RequestError: missing, damaged, of a newer version, or of another compile
                than the rest of the folder.
        """
        path = self.path / "program.safetensors"
        program = load_program(path)
        manifest = read_json(self.path / "manifest.json", FORMAT)
        listed = str(manifest.get("outputs", {}).get(path.name, "nothing"))
        found = sha256_file(path)
        if found != listed:
            raise RequestError(
                f"`{path}` has hash {found[:8]}, but manifest.json lists {listed[:8]}: "
                "it is from another compile than the rest of the folder. "
                "Compile again."
            )
        return program

    def observables_path(self, engine: str) -> Path:
        """Where the observables of an engine are."""
        return self.path / "sim" / engine / "observables.safetensors"

    def observables(self, engine: str, program: Program) -> Observables | None:
        """Observables of an engine, None if it has not run.

        Raises:
            RequestError: they were made from another program, or by another engine.
        """
        path = self.observables_path(engine)
        if not path.is_file():
            return None
        seen = oscc.observables.load(path)
        if seen.engine != engine:
            raise RequestError(
                f"`{path}` holds what {seen.engine or 'no engine'} saw. "
                f"Run: oscc simulate {self.path} --engine {engine}"
            )
        if seen.program != program.digest():
            raise RequestError(
                f"sim/{engine} was made from program {seen.program[:8]}, the folder "
                f"now holds {program.digest()[:8]}. "
                f"Run: oscc simulate {self.path} --engine {engine}"
            )
        return seen

    def engines(self) -> tuple[str, ...]:
        """Engines that have observables in the folder."""
        found = self.path.glob("sim/*/observables.safetensors")
        return tuple(sorted(p.parent.name for p in found))

    def ideal_elements(self) -> dict[str, int] | None:
        """Ideal elements of the sample's decks by letter, None where there are none."""
        path = self.path / "netlist" / "index.json"
        if not path.is_file():
            return None
        found = read_json(path, NETLIST_FORMAT).get("ideal_elements", {})
        return {str(letter): int(count) for letter, count in found.items()}

    def write_json(self, name: str, content: Any) -> Path:
        """Write one of the folder's JSON files and list it in the manifest."""
        path = self.path / name
        write_atomic(path, dump_json(content))
        self.refresh_manifest()
        return path

    def refresh_manifest(self) -> None:
        """List every file of the folder again, with its hash.

        What compile alone writes keeps its hash, so that a change behind our back is
        still seen.
        """
        manifest = read_json(self.path / "manifest.json", FORMAT)
        before = manifest.get("outputs", {})
        kept = {name: before[name] for name in _OF_COMPILE if name in before}
        manifest["outputs"] = outputs(self.path) | kept
        write_atomic(self.path / "manifest.json", dump_json(manifest))

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the folder, so that two runs never mix their files.

        Raises:
            RequestError: another run holds it, or it cannot be written.
        """
        busy = (
            f"Another oscc run is writing to `{self.path}`. Wait for it, "
            "or choose another folder."
        )
        with held(self.path / _LOCK, busy):
            yield


def outputs(folder: Path) -> dict[str, str]:
    """SHA-256 of every file of a folder that repeats exactly, by relative path.

    Left out are the manifest itself and what holds times: run.json, log.jsonl, decks
    of a run.
    """
    found = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        parts = name.split("/")
        if not path.is_file() or name in _UNLISTED or parts[-1] == "run.json":
            continue
        if parts[0] == "sim" and len(parts) > 3 and parts[2] in ("decks", "failed"):
            continue
        if parts[-1].startswith("."):
            continue
        found[name] = sha256_file(path)
    return found


@contextlib.contextmanager
def new_build(
    out: Path, *, force: bool, version: str, seed: int, inputs: Mapping[str, str]
) -> Iterator[Path]:
    """Folder to fill beside the target; it takes the target's name once complete.

    After an error the target is as it was.

    Args:
        out: The wanted folder.
        force: Replace an existing build of ours.
        version: Version of the package.
        seed: Seed of the program.
        inputs: SHA-256 of every input by name.

    Raises:
        RequestError: the target exists, is a file, or cannot be written.
        ToolError: the disk is full.
    """
    require_free(out, force=force)
    above = [parent for parent in out.absolute().parents if not parent.exists()]
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        staging = Path(tempfile.mkdtemp(prefix=f".{out.name}.", dir=out.parent))
    except OSError as error:
        raise RequestError(_unwritable(out, error)) from error
    try:
        yield staging
        manifest = {
            "format": FORMAT,
            "version": version,
            "seed": seed,
            "inputs": dict(inputs),
            "outputs": outputs(staging),
        }
        write_atomic(staging / "manifest.json", dump_json(manifest))
        (staging / _LOCK).touch()
        staging.chmod(0o755)
        give_name(staging, out, force=force)
    except OSError as error:
        raise ToolError(
            f"`{out}` could not be written: {error.strerror or error}."
        ) from error
    finally:
        shutil.rmtree(staging, ignore_errors=True)
        for parent in above:  # those that were made in vain
            with contextlib.suppress(OSError):
                parent.rmdir()


def give_name(staging: Path, out: Path, *, force: bool) -> None:
    """Give the complete folder the target's name, unless a run got there first.

    Raises:
        RequestError: the name is taken by what must not be replaced.
        OSError: the disk refuses; what stood there stands there still.
    """
    require_free(out, force=force)
    if not out.exists():
        staging.rename(out)
        return
    if not any(out.iterdir()):
        out.rmdir()
        staging.rename(out)
        return
    with BuildFolder(out).locked():
        old = Path(tempfile.mkdtemp(prefix=f".{out.name}.old.", dir=out.parent))
        out.rename(old / "build")
        try:
            staging.rename(out)
        except OSError:
            (old / "build").rename(out)
            raise
    shutil.rmtree(old, ignore_errors=True)


def require_free(out: Path, *, force: bool) -> None:
    """Refuse an output folder that cannot or must not be written.

    Raises:
        RequestError: it is a file, is not writable, or holds something.
    """
    require_writable(out)
    if not out.is_dir() or not any(out.iterdir()):
        return
    ours = (out / "manifest.json").is_file()
    if not ours:
        raise RequestError(
            f"`{out}` holds files that are not a build of oscc; it is left as it is. "
            "Choose another -o."
        )
    if not force:
        raise RequestError(
            f"`{out}` already holds a build. Give --force to replace it, or another -o."
        )
    read_json(out / "manifest.json", FORMAT)


def _unwritable(out: Path, error: OSError) -> str:
    return f"`{out}` cannot be made: {error.strerror or error}. Choose another -o."
