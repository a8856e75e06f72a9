"""Tensors of a file put into those of a model (cases A10, A11, A14, A18)."""

import numpy as np
import pytest

from oscc.fitting import fit
from oscc.misfits import near_pairs
from oscc.models.base import build_model
from oscc.models.config import ModelConfig
from oscc.tensor_values import value_of
from oscc.weights import Weights

CONFIG = ModelConfig("fsn", symbols=9, k=8, layers=2, heads=2, hidden=6, context=6)
QUERIED = CONFIG.with_changes(query_offset=True)


def weights_of(config, **changes):
    state = build_model(config, seed=3).state_dict()
    arrays = {name: value.numpy().copy() for name, value in state.items()}
    arrays |= {name.replace("__", "."): value for name, value in changes.items()}
    found = {
        name: value_of(name, np.asarray(a, np.float32)) for name, a in arrays.items()
    }
    return Weights(
        {name: one.array for name, one in found.items() if not one.mask},
        {},
        masks={name: one.array for name, one in found.items() if one.mask},
    )


def fitted(config=CONFIG, **changes):
    return fit(config, weights_of(config, **changes))


def details(found):
    return [fault.detail for fault in (*found.faults, *found.misfits)]


# Offsets: the number of the head of each of 8 coordinates is written out by hand.
HEAD_OF = [0, 0, 0, 0, 1, 1, 1, 1]


@pytest.mark.parametrize("name", ["alpha", "score.offset", "score.drift"])
@pytest.mark.parametrize("shape", [(), (1,), (2,)])
def test_an_offset_for_all_and_one_for_each_head(name, shape):
    """Case A14: (), (1,) and (H,) are accepted by the rule, and noted."""
    stored = np.arange(1, 1 + int(np.prod(shape)), dtype=np.float32).reshape(shape)
    found = fitted(QUERIED, **{f"layers__1__{name.replace('.', '__')}": stored})
    assert details(found) == []
    (note,) = found.notes
    assert f"offset `layers.1.{name}` {shape} stands for" in note
    array = found.arrays[f"layers.1.{name}"]
    assert array.shape == found.wanted[f"layers.1.{name}"]
    wanted = [stored[h] for h in HEAD_OF] if shape == (2,) else [1.0] * 8
    assert (array == np.float32(wanted)).all()


def test_an_offset_by_pairs_of_tokens_is_refused():
    """Case A14: also where there are as many tokens as heads."""
    for shape in ((2, 6, 6), (2, 2, 2), (1, 6, 6), (6, 6)):
        (detail,) = details(fitted(layers__0__alpha=np.ones(shape)))
        assert detail == (
            f"offset `layers.0.alpha` {shape} depends on the pair of tokens, which has "
            "no place in the model"
        )


def test_a_vector_of_as_many_numbers_as_heads_and_tokens_belongs_to_heads():
    config = CONFIG.with_changes(context=2)
    found = fitted(config, layers__0__score__drift=np.float32([3, 5]))
    assert found.arrays["layers.0.score.drift"].tolist() == [3] * 4 + [5] * 4


def test_the_own_shape_of_an_offset_is_taken_first():
    """With H = k a vector is by coordinate anyway; alpha can look like (H, T, T)."""
    config = CONFIG.with_changes(k=2, heads=2, context=2)
    own = np.arange(8.0).reshape(2, 2, 2)
    found = fitted(config, layers__0__alpha=own, layers__0__score__drift=[3, 5])
    assert details(found) == []
    assert found.notes == ()
    assert found.arrays["layers.0.alpha"].tolist() == own.tolist()


def test_an_offset_of_another_shape_is_refused_with_the_rule():
    (fault,) = fitted(layers__0__score__drift=np.ones(5)).faults
    assert fault.detail == "tensor `layers.0.score.drift` (5,): shape should be (8,)"
    assert (
        fault.mend == "Store it as (8,), as () for all, or as (2,), one for each head."
    )


@pytest.mark.parametrize(
    ("config", "words"),
    [
        (CONFIG.with_changes(family="fsn-no-phase", offsets="zero"), "fsn-no-phase"),
        (CONFIG.with_changes(offsets="zero"), "`offsets: zero` those of family fsn"),
        (
            CONFIG.with_changes(family="fsn-mf", offsets="zero", modes=4),
            "`offsets: zero` those of family fsn-mf",
        ),
    ],
)
def test_offsets_that_are_frozen_at_zero_are_zero(config, words):
    alpha = np.zeros((2, 2, 8))
    assert details(fitted(config, layers__1__alpha=alpha)) == []
    alpha[1, 0, 3:5] = 0.7, -0.2
    (fault,) = fitted(config, layers__1__alpha=alpha).faults
    assert fault.detail.startswith(
        "tensor `layers.1.alpha` holds 0.7 at (1, 0, 3) and 1 more that are not zero"
    )
    assert words in fault.detail
    assert "fsn" in fault.mend or "offsets: learned" in fault.mend
    (fault,) = fitted(config, layers__1__alpha=0.5).faults
    assert "holds 0.5 at (), but" in fault.detail


@pytest.mark.parametrize("tokens", [4, 64])
def test_a_stored_causal_mask_is_left_to_the_model(tokens):
    """Case A11: shorter and longer than the context."""
    mask = np.tril(np.ones((1, 1, tokens, tokens)))
    found = fitted(layers__0__attn__mask=mask)
    assert details(found) == []
    assert "layers.0.attn.mask" not in found.arrays
    assert found.notes == (
        f"causal mask `layers.0.attn.mask` {mask.shape} ignored: the model makes its "
        "own for every length",
    )


def test_a_causal_mask_contradicts_a_model_without_one():
    config = ModelConfig(
        "ssa", symbols=9, k=8, layers=1, heads=2, hidden=6, mask="none"
    )
    (detail,) = details(fitted(config, mask=np.tril(np.ones((4, 4)))))
    assert "is a causal mask, but the model has `mask: none`" in detail


def test_a_weight_that_looks_like_a_mask_is_a_weight():
    config = ModelConfig(
        "kuramoto", symbols=9, k=2, layers=1, heads=1, hidden=4, values="projected"
    )
    mask = np.tril(np.ones((4, 4)))
    found = fitted(config, layers__0__projection=mask)
    assert details(found) == []
    assert found.arrays["layers.0.projection"].tolist() == mask.tolist()


def unit(*shape):
    rng = np.random.default_rng(1)
    values = rng.standard_normal(shape)
    return values / np.linalg.norm(values, axis=-1, keepdims=True)


def test_oscillators_of_four_parts_are_refused():
    """Case A18."""
    found = fitted(
        embedding=unit(9, 2, 4),
        oscillators=unit(3, 6, 4).astype(np.float16),
        layers__0__J__weight=np.ones((8, 8, 4, 4)),
        layers__0__omega=np.random.default_rng(2).standard_normal((8, 2)),
        layers__0__filter=np.ones((8, 8, 3, 3)),
    )
    assert sorted(details(found)) == [
        "tensor `embedding` (9, 2, 4) holds unit vectors of n = 4 parts, but a phase "
        "needs n = 2",
        "tensor `layers.0.J.weight` (8, 8, 4, 4) couples oscillators of n = 4 parts, "
        "but a phase needs n = 2",
        "tensor `layers.0.filter` (8, 8, 3, 3): unknown",
        "tensor `layers.0.omega` (8, 2): unknown",
        "tensor `oscillators` (3, 6, 4) holds unit vectors of n = 4 parts, but a phase "
        "needs n = 2",
    ]


def test_phases_as_vectors_are_to_be_saved_as_angles():
    (fault,) = fitted(embedding=unit(9, 8, 2)).faults
    assert (
        "holds unit vectors of n = 2 parts, but the model reads angles" in fault.detail
    )
    assert "atan2" in fault.mend


def test_a_matrix_of_the_model_whose_rows_have_length_one_is_no_oscillator():
    assert details(fitted(embedding=unit(9, 8))) == []
    (detail,) = details(fitted(embedding=unit(9, 4)))
    assert detail == "tensor `embedding` (9, 4): shape should be (9, 8)"


@pytest.mark.parametrize(
    ("found", "wanted", "near"),
    [
        ("layers.0.score.wieght", "layers.0.score.query.weight", True),
        ("layers.0.gama", "layers.0.gamma", True),
        ("model.embedding", "embedding", True),
        ("layers.0.query.weight", "layers.0.score.query.weight", True),
        ("layers.0.omega", "layers.0.score.key.bias", False),
        ("layers.0.c_proj.weight", "layers.0.score.key.weight", False),
        ("layers.0.J.weight", "layers.0.value.weight", False),
        ("layers.0.score.query.weight", "layers.0.score.key.weight", False),
        ("layers.0.gamma", "layers.1.gamma", False),
        ("temperature", "beta", False),
    ],
)
def test_only_a_name_that_is_really_near_is_offered(found, wanted, near):
    pairs = near_pairs({wanted: (4, 4)}, {found: (4, 4)})
    assert pairs == ({found: wanted} if near else {})


def test_another_shape_must_be_nearer():
    assert near_pairs({"a.bias": (8,)}, {"a.bais": (5,)}) == {"a.bais": "a.bias"}
    assert near_pairs({"a.bias": (8,)}, {"a.base.bias": (5,)}) == {}
    assert near_pairs({"a.query.weight": (8, 2)}, {"a.wieght": (5, 5)}) == {}


def test_the_nearest_pairs_go_together():
    shapes = dict.fromkeys(("layers.0.value.bias", "layers.0.value.weight"), (4,))
    found = dict.fromkeys(("layers.0.value.wieght", "layers.0.value.bais"), (4,))
    assert near_pairs(shapes, found) == {
        "layers.0.value.wieght": "layers.0.value.weight",
        "layers.0.value.bais": "layers.0.value.bias",
    }


def test_a_missing_tensor_names_the_only_one_of_its_shape():
    arrays = weights_of(CONFIG).arrays
    renamed = {n.replace("beta", "temperature"): a for n, a in arrays.items()}
    first, second = fit(CONFIG, Weights(renamed, {})).misfits
    assert first.detail == "tensor `temperature` (): unknown"
    assert second.detail == (
        "tensor `beta` (): missing; `temperature`, which is unknown, alone has its "
        "shape"
    )
    assert second.mend == "Rename `temperature` if it is the same."


@pytest.mark.parametrize(
    ("size", "value", "words"),
    [
        ("layers", 10**6, "the file holds 29 tensors, of 2 layers"),
        ("k", 400_000, "all tensors of the file hold 1397 numbers"),
        ("hidden", 10**15, "all tensors of the file hold 1397 numbers"),
        ("harmonics", 10**30, "all tensors of the file hold 1397 numbers"),
    ],
)
def test_sizes_beyond_the_file_are_told_before_anything_is_built(size, value, words):
    weights = weights_of(CONFIG)
    # 9 8 + 9 8 + 1, and 2 layers of 2 32 + 8 + 2 + 3 136 + 3 48
    assert (len(weights.arrays), sum(a.size for a in weights.arrays.values())) == (
        29,
        1397,
    )
    found = fit(CONFIG.with_changes(**{size: value}), weights)
    (fault,) = found.faults
    assert (
        f"the model has {size}" in fault.detail or f"has {value} layers" in fault.detail
    )
    assert words in fault.detail
    assert (found.wanted, found.arrays) == ({}, {})


def test_another_number_of_layers_is_said():
    found = fit(CONFIG.with_changes(layers=3), weights_of(CONFIG))
    assert [fault.detail for fault in found.faults] == [
        "the model has 3 layers, but the file holds tensors of 2"
    ]
    assert {fault.tensor.split(".")[1] for fault in found.misfits} == {"2"}
