"""Set-up: the locked packages, by uv where it can be had, else by pip.

uv does not read pip's configuration, so what pip was told (indexes, folders of wheels,
constraints, trusted hosts, certificates) is handed over to it.
"""

from __future__ import annotations

import ast
import os
import re
import sys
import time
from pathlib import Path

from setup_run import ROOT, SetupError, last_line, run, say

UV_PIN = "uv==0.13.9"
CPU_INDEX = "https://download.pytorch.org/whl/cpu"
CUDA = re.compile(r"\b(?:nvidia-[a-z]|triton\b|cuda-)")
TORCH = re.compile(r"\btorch[=-]=?([0-9][0-9.]*(?:\+\w+)?)")


class _Failed(Exception):
    """An installer did not do it; the message is the last line of what it said."""


def install(venv: Path, kind: str) -> None:
    """Bring the packages of requirements/KIND.txt and this project, editable.

    Raises:
        SetupError: no index answered, or only a CUDA build of torch can be had.
    """
    file = f"requirements/{kind}.txt"
    say(f"installing the {len(_pins(file))} locked packages of {file}")
    try:
        _install_by(_uv_command(venv), file)
    except _Failed as uv_fault:
        say("uv did not do; trying pip, which takes about ten times as long")
        try:
            _install_by(_pip_command(venv), file)
        except _Failed as pip_fault:
            raise SetupError(
                f"the packages could not be installed (uv: {uv_fault}; "
                f"pip: {pip_fault}). The log is build/setup.log.\n"
                "Mend the network, or: make demo PIP_FIND_LINKS=/folder/with/wheels"
            ) from pip_fault


def check_only(venv: Path, kind: str) -> None:
    """Whether every locked package is there, without installing any.

    Raises:
        SetupError: one is missing or has another version.
    """
    code = (
        "import sys, importlib.metadata as m\n"
        "for pin in sys.stdin.read().split():\n"
        "    name, _, version = pin.partition('==')\n"
        "    try: found = m.version(name)\n"
        "    except m.PackageNotFoundError: found = 'missing'\n"
        "    if found.partition('+')[0] != version: print(name, found)\n"
    )
    pins = "\n".join(_pins(f"requirements/{kind}.txt"))
    script = f"import io, sys; sys.stdin = io.StringIO({pins!r})\n{code}"
    status, output = run([str(venv / "bin" / "python"), "-c", script])
    if status or output.strip():
        wrong = last_line(output) if status else ", ".join(output.splitlines()[:5])
        raise SetupError(
            f"OSCC_NO_INSTALL is set, and .venv does not hold the locked packages "
            f"({wrong})."
        )


def _pins(file: str) -> list[str]:
    lines = (ROOT / file).read_text(encoding="utf-8").splitlines()
    return [line for line in map(str.strip, lines) if line and line[0] not in "#-"]


def _pip_command(venv: Path) -> list[str]:
    python = str(venv / "bin" / "python")
    quiet = ["--disable-pip-version-check", "--progress-bar", "off"]
    return [python, "-m", "pip", "install", *quiet]


def _uv_command(venv: Path) -> list[str]:
    _must([*_pip_command(venv), UV_PIN])
    python = str(venv / "bin" / "python")
    arguments = ["pip", "install", "--python", python, "--compile-bytecode"]
    return [str(venv / "bin" / "uv"), *arguments, *uv_arguments(python)]


def uv_arguments(python: str) -> list[str]:
    """What pip was told, in the words of uv.

    pip takes the best version over all its indexes, so uv is asked for the same.
    """
    settings = _pip_settings(python)
    out = ["--index-strategy", "unsafe-best-match"]
    if settings.get("index-url"):
        out += ["--default-index", settings["index-url"]]
    for name, option in (
        ("extra-index-url", "--index"),
        ("find-links", "--find-links"),
        ("trusted-host", "--allow-insecure-host"),
        ("constraint", "--constraint"),
    ):
        for value in settings.get(name, "").split():
            out += [option, value]
    if settings.get("no-index", "").lower() in ("1", "true", "yes", "on"):
        out += ["--no-index"]
    certificate = settings.get("cert")
    if certificate and not os.environ.get("SSL_CERT_FILE"):
        os.environ["SSL_CERT_FILE"] = certificate
    return out


def _pip_settings(python: str) -> dict[str, str]:
    """What pip was told; environment over `install` section over `global`."""
    output = run([python, "-m", "pip", "config", "list"])[1]
    ranked: dict[str, tuple[int, str]] = {}
    for line in output.splitlines():
        key, separator, value = line.partition("=")
        section, _, name = key.strip().rpartition(".")
        rank = {"global": 0, "install": 1, ":env:": 2}.get(section, -1)
        if separator and rank >= ranked.get(name, (0, ""))[0]:
            ranked[name] = (rank, str(ast.literal_eval(value)))
    return {name: value for name, (_, value) in ranked.items()}


def _must(command: list[str], changes: dict[str, str] | None = None) -> str:
    status, output = run(command, changes=changes)
    if status:
        raise _Failed(last_line(output))
    return output


def _install_by(installer: list[str], file: str) -> None:
    extra = _torch_arguments(installer, file)
    _must([*installer, *extra, "-r", file])
    _must([*installer, "--no-deps", "--no-build-isolation", "-e", "."])


def _torch_arguments(installer: list[str], file: str) -> list[str]:
    """Extra arguments that make torch come as the CPU build.

    Raises:
        SetupError: only the CUDA build can be had and nobody agreed to it.
    """
    once = {"UV_HTTP_RETRIES": "1", "PIP_RETRIES": "1"}
    trial = [*installer, "--dry-run", "-r", file]
    output = _must(trial, once)
    extra: list[str] = []
    if CUDA.search(output):
        option = "--index" if installer[0].endswith("uv") else "--extra-index-url"
        status, second = run([*trial, option, CPU_INDEX], changes=once)
        if status or CUDA.search(second):
            _agree_to_cuda(output)
        else:
            extra, output = [option, CPU_INDEX], second
    found = TORCH.search(output)
    if found and not CUDA.search(output):
        say(f"torch comes as {found[1]}, a build without CUDA")
    return extra


def _agree_to_cuda(output: str) -> None:
    found = TORCH.search(output)
    say(
        f"torch {found[1] if found else ''} is to come as a CUDA build (several GB)."
        " Press Ctrl-C, or set PIP_FIND_LINKS to a folder with a CPU wheel."
    )
    if os.environ.get("OSCC_ALLOW_CUDA") == "1":
        return
    if os.environ.get("CI") or not sys.stdin.isatty():
        raise SetupError(
            "nobody is here to agree to the CUDA build. OSCC_ALLOW_CUDA=1 takes it."
        )
    time.sleep(10)
