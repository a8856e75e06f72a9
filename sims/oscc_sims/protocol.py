"""What an engine of whole stages must offer; the contract tests hold it to it."""

from __future__ import annotations

from typing import Protocol, TypeVar

from oscc.observables import Observables

Artefact = TypeVar("Artefact", contravariant=True)


class Engine(Protocol[Artefact]):
    """Turns an artefact into the observables of all its targets.

    `oscc.testing.contracts.check_engine` tests what is asked of it.
    """

    name: str

    def available(self) -> tuple[bool, str]:
        """Whether it can run, with its version or the reason why not.

        Cheap and without side effects.
        """

    def run(self, artefact: Artefact) -> Observables:
        """Observables of every target, `STAGE.phase` of shape (T, K) unwrapped.

        Raises:
            ToolError: something outside the package is missing or failed.
            UndecidedError: no number can be offered.
        """
