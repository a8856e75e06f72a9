"""Values of one tensor: cast, or one clear fault (cases A8, A11, A13)."""

import numpy as np
import pytest
import torch

from oscc.tensor_values import is_causal_mask, value_of


def fault(value, stored=""):
    (only,) = value_of("w", value, stored).faults
    return str(only)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (torch.eye(2).to_sparse(), "is stored as sparse_coo. Save it dense"),
        (torch.eye(2).to_mkldnn(), "is stored as _mkldnn. Save it dense"),
        (torch.empty(2, device="meta"), "(2,) has no values (it is on the device"),
        (torch.ones(2, dtype=torch.int64), "holds int64, but weights are floating"),
        (torch.ones(2, dtype=torch.bool), "holds bool, but weights are floating"),
        (torch.ones(2, dtype=torch.complex64), "holds complex64, but weights are real"),
        (np.ones(2, np.complex128), "holds complex128, but weights are real"),
        (np.ones(2, np.uint32), "holds uint32, but weights are floating"),
        ("text", "`w` is a str, not a tensor. Leave it out"),
        (3, "`w` is an int, not a tensor. Leave it out"),
        ({"x": torch.ones(2)}, "`w` is a dict, not a tensor. Leave it out"),
    ],
)
def test_what_is_no_array_of_numbers_is_one_sentence(value, words):
    assert value_of("w", value).array is None
    assert words in fault(value)


@pytest.mark.filterwarnings("ignore")  # torch: these kinds are deprecated, or young
def test_quantised_and_nested_tensors():
    quantised = torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.qint8)
    assert "holds qint8" in fault(quantised)
    rows = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])
    assert "nested. Save it dense" in fault(rows)


def test_nan_and_infinite_values_are_counted_apart_with_their_first_places():
    value = torch.ones(4, 3)
    value[0, 1:] = torch.nan
    value[1:] = torch.inf
    value[3, 2] = -torch.inf
    assert fault(value).startswith(
        "tensor `w` holds 2 NaN, first at (0, 1), (0, 2); 9 infinite values, first at "
        "(1, 0), (1, 1), (1, 2). A model that has diverged"
    )
    assert fault(torch.tensor(torch.nan)).startswith(
        "tensor `w` holds 1 NaN, first at ()"
    )


def test_a_finite_value_beyond_float32_has_not_diverged():
    value = torch.tensor([1.0, 1e39, -1e300], dtype=torch.float64)
    text = fault(value)
    assert "holds 2 values too large for float32, first at (1,), (2,)" in text
    assert "diverged" not in text
    value[0] = torch.inf
    first, second = value_of("w", value).faults
    assert "1 infinite value, first at (0,)" in first.detail
    assert "too large" in second.detail
    largest = torch.tensor(3.4e38, dtype=torch.float64)
    assert value_of("w", largest).faults == ()


@pytest.mark.parametrize("dtype", [torch.float8_e4m3fn, torch.bfloat16, torch.float64])
def test_other_floating_types_are_cast(dtype):
    value = torch.tensor([[1.0, -0.5], [2.0, 0.25]], dtype=dtype).T
    found = value_of("w", value)
    assert found.array.tolist() == [[1.0, 2.0], [-0.5, 0.25]]
    assert found.array.flags.c_contiguous
    assert found.kind == str(dtype).removeprefix("torch.")


LOWER = torch.ones(5, 5).tril()


@pytest.mark.parametrize(
    "mask",
    [
        LOWER,
        LOWER.bool(),
        LOWER.to(torch.int64),
        LOWER.half()[None],
        LOWER[None, None],
        ~LOWER.bool(),
        1 - LOWER,
        torch.full((5, 5), -torch.inf).triu(1),
        torch.full((5, 5), -1e9).triu(1)[None, None],
    ],
)
def test_causal_masks_of_every_form_are_known(mask):
    """Case A11."""
    assert is_causal_mask(mask)
    found = value_of("mask", mask)
    assert found.mask
    assert found.faults == ()


@pytest.mark.parametrize(
    "other",
    [
        torch.eye(5),
        torch.ones(5, 5),
        torch.zeros(5, 5),
        LOWER.T,
        LOWER[:4],
        LOWER[:1, :1],
        LOWER.tril(-1),
        LOWER * 0.5,
        LOWER.expand(2, 5, 5),
        torch.full((5, 5), -torch.inf).triu(0),
        -(1 - LOWER),
    ],
)
def test_what_is_no_causal_mask(other):
    assert not is_causal_mask(other)


def test_square_tensors_of_every_type_are_looked_at():
    square = torch.tensor([[1.0, -0.5], [2.0, 0.25]])
    for dtype in (torch.float8_e4m3fn, torch.float8_e5m2, torch.bfloat16, torch.half):
        found = value_of("w", square.to(dtype))
        assert found.array.tolist() == square.tolist()
    for dtype in (torch.uint16, torch.int8, torch.bool):
        assert is_causal_mask(torch.ones(3, 3).tril().to(dtype))


def test_a_tensor_with_its_sign_outside_its_memory():
    numbers = torch.tensor([1 + 2j, 3 - 4j], dtype=torch.complex64)
    value = numbers.conj().imag
    assert value.is_neg()
    assert value_of("w", value).array.tolist() == [-2.0, 4.0]
    assert value_of("w", value.double()).array.tolist() == [-2.0, 4.0]


def test_a_kind_that_torch_cannot_cast_is_one_sentence():
    value = torch.zeros(2, dtype=torch.uint8).view(torch.uint4)
    assert fault(value).startswith(
        "tensor `w` (2,) holds uint4, an element type that is not read. Cast it to"
    )
