"""Every family that can be lowered keeps the contract."""

from __future__ import annotations

import pytest

from oscc.lower import LOWERINGS
from oscc.testing.contracts import check_family


@pytest.mark.parametrize("family", LOWERINGS)
@pytest.mark.parametrize("update", ["flow", "euler"])
def test_family_keeps_the_contract(family: str, update: str) -> None:
    check_family(family, update)
