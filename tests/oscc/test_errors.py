"""Each error stands for one exit status."""

import pytest

from oscc.errors import OsccError, RequestError, ToolError, UndecidedError


@pytest.mark.parametrize(
    ("kind", "status"),
    [(OsccError, 70), (RequestError, 2), (ToolError, 3), (UndecidedError, 4)],
)
def test_exit_status(kind: type[OsccError], status: int) -> None:
    assert kind.exit_status == status
    with pytest.raises(OsccError, match="what and where"):
        raise kind("what and where")
