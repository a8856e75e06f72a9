"""Logs: levels on standard error as asked, every detail in a file.

A run logs to the cache folder. Once the request was accepted and a folder of results
is there, the lines are added to its log.jsonl, which no manifest lists.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import time
from collections.abc import Iterator
from pathlib import Path

from oscc.config import environment

_LEVELS = {-1: logging.ERROR, 0: logging.WARNING, 1: logging.INFO}
_KEPT_LOGS = 50


class _Lines(logging.Handler):
    """One JSON object a line: seconds since 1970, level, logger, message."""

    def __init__(self, path: Path) -> None:
        super().__init__(logging.DEBUG)
        self.path = path

    def emit(self, record: logging.LogRecord) -> None:
        line = {
            "time_s": round(record.created, 6),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        with contextlib.suppress(OSError), self.path.open("a", encoding="utf-8") as out:
            out.write(json.dumps(line, sort_keys=True, ensure_ascii=False) + "\n")


class RunLog:
    """Log of one run of a verb; `folder` is set once the results have a folder."""

    def __init__(self, verb: str, verbosity: int) -> None:
        self.verb = verb
        self.verbosity = verbosity
        self.folder: Path | None = None

    @contextlib.contextmanager
    def open(self) -> Iterator[RunLog]:
        """Attach handlers to the package's loggers for the length of a run."""
        loggers = [logging.getLogger(n) for n in _PACKAGES]
        handlers = [self._terminal()]
        path = _fresh_path(self.verb)
        if path is not None:
            handlers.append(_Lines(path))
        for logger in loggers:
            logger.setLevel(logging.DEBUG)
            for handler in handlers:
                logger.addHandler(handler)
        accepted = True
        try:
            logging.getLogger("oscc.cli").debug("oscc %s started", self.verb)
            yield self
        except BaseException as error:
            from oscc.cli.exits import status_of

            accepted = status_of(error) != 2
            logging.getLogger("oscc.cli").debug("ended: %r", error)
            raise
        finally:
            for logger in loggers:
                for handler in handlers:
                    logger.removeHandler(handler)
            if accepted and path is not None:
                self._keep(path)

    def _terminal(self) -> logging.Handler:
        handler = logging.StreamHandler()
        handler.setLevel(_LEVELS.get(min(self.verbosity, 2), logging.DEBUG))
        handler.setFormatter(
            logging.Formatter(
                "%(asctime)s %(name)s: %(message)s"
                if self.verbosity > 1
                else "%(message)s"
            )
        )
        return handler

    def _keep(self, path: Path) -> None:
        if self.folder is None or not self.folder.is_dir() or not path.is_file():
            return
        with (
            contextlib.suppress(OSError),
            (self.folder / "log.jsonl").open("a", encoding="utf-8") as out,
        ):
            out.write(path.read_text(encoding="utf-8"))
            path.unlink()


_PACKAGES = ("oscc", "oscc_netlists", "oscc_backends", "oscc_sims")


def crash_file(name: str, text: str) -> Path | None:
    """Write a traceback to the cache folder; None where that is not possible."""
    path = _fresh_path(f"{name.replace(' ', '-')}-crash")
    if path is None:
        return None
    try:
        path.write_text(text, encoding="utf-8")
    except OSError:
        return None
    return path


def _fresh_path(stem: str) -> Path | None:
    folder = environment().cache / "logs"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _tidy(folder)
    except OSError:
        return None
    stamp = time.strftime("%Y%m%d-%H%M%S")
    return folder / f"{stem}-{stamp}-{os.getpid()}.jsonl"


def _tidy(folder: Path) -> None:
    logs = sorted(folder.glob("*.jsonl"), key=lambda path: path.stat().st_mtime)
    for old in logs[:-_KEPT_LOGS]:
        old.unlink(missing_ok=True)
