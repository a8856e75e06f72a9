"""gnucap's output: letters behind numbers, lines it skipped, tables cut short."""

from __future__ import annotations

import numpy as np
import pytest

from oscc.errors import ToolError
from oscc_sims.gnucap_output import faults, read_table

# lines as gnucap 0.36 printed them
PRINTED = """Gnucap : The Gnu Circuit Analysis Package
main version: master 2017.10.03
* oscc free reference
#Time              v(n)               i(vsup)
 0.                0.                 0.
 2.55259773903p    2.0010122479      -1.5K
 4.55259773903n   -98.5m              0.25u
 1.5u              3.                -2.
"""


def test_letters_are_powers_of_ten() -> None:
    plot = read_table(PRINTED, ("v(n)", "i(vsup)"))
    wanted = [
        [2.55259773903e-12, 2.0010122479, -1.5e3],
        [4.55259773903e-9, -98.5e-3, 0.25e-6],
        [1.5e-6, 3.0, -2.0],
    ]
    np.testing.assert_allclose(plot.values, wanted, rtol=1e-15)


def test_the_zeros_at_the_start_are_dropped() -> None:
    assert read_table(PRINTED, ("v(n)", "i(vsup)")).column("time")[0] > 0


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("", "no table"),
        (PRINTED.replace("2.0010122479", "??"), "no number"),
        (PRINTED.replace("-1.5K", "-1.5Q"), "no number"),
        (PRINTED[:-8], "cut off"),
        (PRINTED.replace("v(n)", "v(m)"), "was asked for"),
        (PRINTED.replace("i(vsup)", "??"), "was asked for"),
        (PRINTED.partition(" 0. ")[0], "cut off"),
    ],
)
def test_what_is_no_whole_table_is_refused(text: str, match: str) -> None:
    with pytest.raises(ToolError, match=match):
        read_table(text, ("v(n)", "i(vsup)"))


def test_skipped_lines_are_faults_with_the_line() -> None:
    said = "b1 0 n v=1\n^ ? what's this?\nfine\n"
    assert faults(said) == ("b1 0 n v=1 ^ ? what's this?",)


def test_a_clean_log_has_no_faults() -> None:
    assert faults(PRINTED.partition("#Time")[0]) == ()
