"""Read-only arrays: a copy that no owner can change behind our back."""

import numpy as np
import pytest

from oscc.arrays import frozen


def test_later_changes_of_the_owner_are_not_seen() -> None:
    owner = np.arange(6.0).reshape(2, 3)
    kept = frozen(owner)
    owner[:] = -1.0
    assert kept.tolist() == [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]
    with pytest.raises(ValueError, match="read-only"):
        kept[0, 0] = 1.0


def test_a_frozen_array_is_not_shared_either() -> None:
    first = frozen([1.0])
    assert not np.shares_memory(first, frozen(first))


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
def test_negative_zero_becomes_zero(dtype: type) -> None:
    kept = frozen(np.array([-0.0, 1.0]), dtype)
    assert kept.tobytes() == np.array([0.0, 1.0], dtype).tobytes()


def test_order_and_type_do_not_depend_on_the_input() -> None:
    plain = np.arange(6).reshape(2, 3)
    for layout in (plain, np.asfortranarray(plain), plain.astype("i2"), plain[:, ::1]):
        kept = frozen(layout)
        assert kept.flags.c_contiguous
        assert kept.dtype == np.float64
        assert kept.tobytes() == frozen(plain).tobytes()
    assert frozen(3.0).shape == ()
