"""Raw files: two plots, ASCII, binary, complex, and headers that promise too much."""

from __future__ import annotations

import numpy as np
import pytest

from oscc.errors import ToolError
from oscc_sims.rawfile import read_plots, transient

TIME = np.array([0.0, 1e-9, 1e-9, 3e-9])
WAVE = np.array([1.0, 2.0, 2.0, -0.5])


def header(
    name: str, count: int, points: int, *, flags: str = "real", kind: str = "Binary"
) -> bytes:
    rows = "".join(
        f"\t{k}\t{('time', 'V(N)', 'x')[k]}\tvoltage\n" for k in range(count)
    )
    return (
        f"Title: * Ü\nDate: today\nPlotname: {name}\nFlags: {flags}\n"
        f"No. Variables: {count}\nNo. Points: {points}\nVariables:\n{rows}{kind}:\n"
    ).encode()


def binary(name: str, table: np.ndarray, points: int | None = None) -> bytes:
    count = len(table) if points is None else points
    return header(name, table.shape[1], count) + table.astype("<f8").tobytes()


RUN = np.column_stack([TIME, WAVE])
POINT = np.array([[0.0, 1.0]])


def test_the_transient_plot_is_chosen_by_name() -> None:
    data = binary("Operating Point", POINT) + binary("Transient Analysis", RUN)
    assert len(read_plots(data)) == 2
    plot = transient(data)
    assert plot.variables == ("time", "v(n)")
    np.testing.assert_array_equal(plot.column("v(n)"), WAVE)


def test_binary_data_may_hold_any_bytes() -> None:
    # the bytes of this number spell the end of a header
    value = np.frombuffer(b"\nBinary:")[0]
    table = np.column_stack([TIME, np.full(4, value)])
    np.testing.assert_array_equal(
        transient(binary("Transient Analysis", table)).column("v(n)"), value
    )


def test_text_files_are_read() -> None:
    body = b"".join(
        f"{k}\t{t!r}\n\t{v!r}\n\n".encode()
        for k, (t, v) in enumerate(zip(TIME.tolist(), WAVE.tolist(), strict=True))
    )
    text = header("Transient Analysis", 2, 4, kind="Values") + body
    np.testing.assert_array_equal(transient(text).values, RUN)
    both = header("Operating Point", 2, 1, kind="Values") + b"0\t0.0\n\t1.0\n\n" + text
    np.testing.assert_array_equal(transient(both).values, RUN)


def test_complex_plots_are_read_but_are_no_transient() -> None:
    table = (RUN + 1j).astype("<c16")
    data = header("AC Analysis", 2, 4, flags="complex") + table.tobytes()
    np.testing.assert_array_equal(read_plots(data)[0].values, RUN + 1j)
    with pytest.raises(ToolError, match="0 transient"):
        transient(data)


def test_equal_times_pass_and_falling_times_do_not() -> None:
    assert transient(binary("Transient Analysis", RUN)).values.shape == (4, 2)
    falling = RUN.copy()
    falling[2, 0] = 0.5e-9
    with pytest.raises(ToolError, match="falls after 1e-09"):
        transient(binary("Transient Analysis", falling))


def test_negative_times_are_kept() -> None:
    early = RUN - [1e-6, 0.0]
    assert transient(binary("Transient Analysis", early)).column("time")[0] == -1e-6


def test_a_header_of_zero_points_with_data_is_an_aborted_run() -> None:
    with pytest.raises(ToolError, match="0 points"):
        transient(binary("Transient Analysis", RUN, points=0))


@pytest.mark.parametrize("cut", [1, 8, 40])
def test_data_that_is_cut_off_is_an_aborted_run(cut: int) -> None:
    whole = binary("Transient Analysis", RUN)
    with pytest.raises(ToolError):
        transient(whole[:-cut])


@pytest.mark.parametrize("data", [b"", b"\n", b"Title: x\n", b"\x00" * 64])
def test_what_is_no_raw_file_is_refused(data: bytes) -> None:
    with pytest.raises(ToolError):
        transient(data)


def test_values_must_be_finite() -> None:
    broken = RUN.copy()
    broken[1, 1] = np.nan
    with pytest.raises(ToolError, match="finite"):
        transient(binary("Transient Analysis", broken))


def test_a_vector_that_is_missing_is_named() -> None:
    plot = transient(binary("Transient Analysis", RUN))
    with pytest.raises(ToolError, match=r"v\(m\)"):
        plot.column("v(m)")
