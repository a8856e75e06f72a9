"""Trace and forward with a replaced coupling step."""

import numpy as np
import pytest
import torch

from oscc.errors import RequestError
from oscc.models.base import build_model
from oscc.models.config import ModelConfig
from oscc.trace import effective_gain, forward_with, trace


def small(family="fsn", update="flow", **changes):
    sizes = {"k": 8, "layers": 2, "heads": 2, "hidden": 6, "context": 16}
    model = build_model(ModelConfig(family, update, **{**sizes, **changes}), seed=1)
    generator = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for p in model.parameters():
            p.add_(0.3 * torch.randn(p.shape, generator=generator))
    return model


TEXT = np.random.default_rng(0).integers(0, 98, 12)


def direction(layer):
    """sum_n Im(conj(z)^n C_n) of a trace by loops, from its own arrays alone."""
    tokens, k = layer.theta_rad.shape
    heads = len(layer.weights)
    out = np.zeros((tokens, k))
    for j in range(k):
        weights = layer.weights[j // (k // heads)]
        phase = layer.theta_rad[:, j]
        for i, n in enumerate(layer.harmonics):
            for t in range(tokens):
                for u in range(t + 1):
                    angle = n * (phase[u] - phase[t]) + layer.present_alpha_rad[i, j]
                    strength = weights[t, u] * layer.present_gamma[i, j]
                    out[t, j] += strength * np.sin(angle)
                    if u < t and layer.successor_gamma is not None:
                        angle = n * (phase[u + 1] - phase[t])
                        angle += layer.successor_alpha_rad[i, j]
                        strength = weights[t, u] * layer.successor_gamma[i, j]
                        out[t, j] += strength * np.sin(angle)
    return out


@pytest.mark.parametrize("family", ["kuramoto", "fsn"])
def test_trace_of_an_euler_model_is_the_euler_step_of_its_own_arrays(family):
    seen = trace(small(family, "euler"), TEXT)
    for layer in seen.layers:
        wanted = layer.theta_rad + layer.gain_rad * direction(layer)
        # sums of up to 48 sines in double
        assert np.abs(layer.next_rad - wanted).max() <= 1e-12


@pytest.mark.parametrize("family", ["kuramoto", "fsn"])
def test_trace_of_a_flow_model_solves_the_flow_of_its_own_arrays(family):
    from scipy.integrate import solve_ivp

    layer = trace(small(family, "flow"), TEXT).layers[1]
    t, j, heads = 11, 5, len(layer.weights)
    weights, phase = layer.weights[j // (8 // heads)][t], layer.theta_rad[:, j]

    def rate(_, phi):
        total = 0.0
        for i, n in enumerate(layer.harmonics):
            pull = np.sin(n * (phase - phi) + layer.present_alpha_rad[i, j])
            total += layer.present_gamma[i, j] * weights @ pull
            if layer.successor_gamma is not None:
                later = phase[1 : t + 1] - phi
                pull = np.sin(n * later + layer.successor_alpha_rad[i, j])
                total += layer.successor_gamma[i, j] * weights[:t] @ pull
        return layer.gain_rad[t, j] * total

    found = solve_ivp(rate, (0, 1), [phase[t]], rtol=1e-12, atol=1e-12)
    assert abs(found.y[0, -1] - layer.next_rad[t, j]) <= 1e-9


def test_shapes_and_read_only_arrays():
    seen = trace(small(), TEXT)
    assert [layer.name for layer in seen.layers] == [
        "layer.0.coupling",
        "layer.1.coupling",
    ]
    layer = seen.layers[0]
    assert layer.weights.shape == (2, 12, 12)
    assert layer.theta_rad.shape == layer.gain_rad.shape == (12, 8)
    assert layer.present_gamma.shape == layer.successor_alpha_rad.shape == (2, 8)
    assert seen.logits.shape == (12, 98)
    assert np.triu(layer.weights[0], 1).max() == 0
    with pytest.raises(ValueError, match="read-only"):
        layer.theta_rad[0, 0] = 1.0


def test_kuramoto_has_no_successor_route():
    layer = trace(small("kuramoto"), TEXT).layers[0]
    assert layer.successor_gamma is None
    assert layer.successor_alpha_rad is None
    assert layer.present_gamma.tolist() == [[1.0] * 8]
    assert layer.harmonics.tolist() == [1]


def test_logits_are_those_of_the_double_model():
    model = small("fsn", "euler")
    with torch.no_grad():
        wanted = model.double()(torch.from_numpy(TEXT)[None])[0].numpy()
    assert np.abs(trace(model, TEXT).logits - wanted).max() <= 1e-12


def test_trace_leaves_the_model_as_it_was():
    model = small()
    before = {n: v.clone() for n, v in model.state_dict().items()}
    trace(model, TEXT)
    after = model.state_dict()
    assert all(v.dtype == torch.float32 for v in after.values())
    assert all(torch.equal(before[n], after[n]) for n in before)


def test_forward_with_the_digital_step_is_the_plain_forward():
    model, batch = small(), np.stack([TEXT, TEXT[::-1]])
    plain = forward_with(model, batch)
    hooked = forward_with(model, batch, lambda index, layer: layer.next_rad)
    assert np.array_equal(plain, hooked)
    assert np.abs(plain[0] - trace(model, TEXT).logits).max() <= 1e-9


def test_what_one_layer_gets_wrong_is_what_the_next_one_sees():
    model, seen = small(), []

    def hardware(index, layer):
        seen.append((index, layer))
        return layer.next_rad + (0.1 if index == 0 else 0.0)

    changed = forward_with(model, TEXT[None], hardware)[0]
    digital = trace(model, TEXT)
    assert [index for index, _ in seen] == [0, 1]
    assert np.array_equal(seen[0][1].theta_rad, digital.layers[0].theta_rad)
    assert np.abs(seen[1][1].theta_rad - digital.layers[1].theta_rad).max() > 0.01
    assert np.abs(changed - digital.logits).max() > 1e-3


def test_a_window_is_called_once_per_layer_in_order():
    calls = []

    def note(index, layer):
        calls.append((index, layer.theta_rad[0, 0]))
        return layer.next_rad

    forward_with(small(), np.stack([TEXT, TEXT[::-1], TEXT]), note)
    assert [index for index, _ in calls] == [0, 0, 0, 1, 1, 1]
    assert calls[0][1] == calls[2][1] != calls[1][1]


@pytest.mark.parametrize(
    ("tokens", "words"),
    [
        ([], "The text is empty"),
        (list(range(17)), "the text has 17 tokens, the model's context is 16"),
        ([98], "symbol numbers of 0 to 97"),
        ([[1, 2]], "must have shape"),
    ],
)
def test_bad_inputs_are_named(tokens, words):
    with pytest.raises(RequestError, match=words):
        trace(small(), tokens)


def test_phases_of_another_shape_or_not_finite_are_refused():
    with pytest.raises(RequestError, match=r"layer\.0\.coupling.*must have shape"):
        forward_with(small(), TEXT[None], lambda i, layer: layer.next_rad[:-1])
    with pytest.raises(RequestError, match=r"layer\.0\.coupling.*no finite phase"):
        forward_with(small(), TEXT[None], lambda i, layer: layer.next_rad * np.nan)


def test_one_token():
    seen = trace(small(), TEXT[:1])
    assert seen.layers[0].weights.tolist() == [[[1.0]], [[1.0]]]


def test_operation_counts_follow_their_formulas():
    seen = trace(small(), TEXT)
    count = seen.layers[0].operations
    pairs = 12 * 13 // 2
    assert count["score"] == pairs * 16
    assert count["softmax_exponentials"] == pairs * 2
    assert count["score_gates"] == 2 * 12 * 16 * 8
    assert count["feed_forward"] == 12 * (2 * 8 * 6 + 6 + 6 * 8)
    assert seen.operations["read_out"] == 12 * 98 * 16
    # two harmonics, re and im, both routes over the pairs
    assert count["bound"] >= 2 * 2 * 2 * pairs * 8
    free = trace(small(bound="B0"), TEXT).layers[0].operations
    assert free["bound"] == 0


@pytest.mark.parametrize("update", ["flow", "euler"])
def test_a_target_at_rest_has_no_gain_and_that_changes_nothing(update):
    model = small("kuramoto", update)
    layer = trace(model, TEXT).layers[0]
    # the first token reads itself alone: sin(theta - theta) is exactly 0
    assert np.array_equal(layer.gain_rad[0], np.zeros(8))
    assert np.array_equal(layer.next_rad[0], layer.theta_rad[0])
    assert np.all(layer.gain_rad[1:] != 0)
    with torch.no_grad():
        state = (
            model.double().layers[0].state(model.embed(torch.from_numpy(TEXT)[None]))
        )
    assert state.gain[0, 0].abs().min() > 0
    assert np.array_equal(state.gain[0, 1:].numpy(), layer.gain_rad[1:])


def test_tokens_of_one_symbol_rest_where_they_are() -> None:
    """Their sources have one phase, so the direction is zero but for rounding."""
    model = build_model(ModelConfig("kuramoto", k=8, layers=1, heads=2, hidden=8))
    layer = trace(model, [5, 5, 5, 5, 7]).layers[0]
    assert not layer.gain_rad[:4].any()
    assert layer.gain_rad[4].all()
    assert layer.next_rad[:4] == pytest.approx(layer.theta_rad[:4], abs=1e-12)


@pytest.mark.parametrize("kind", [torch.float32, torch.float64])
def test_rest_is_told_in_the_precision_of_the_model(kind: torch.dtype) -> None:
    """In single precision the direction is rounded a billion times more coarsely."""
    model = build_model(ModelConfig("kuramoto", k=8, layers=1, heads=2, hidden=8))
    double = model.to(kind)
    theta = double.embed(torch.tensor([[5, 5, 5, 5, 7]]))
    gain = effective_gain(double.coupling_layers()[0].state(theta))[0]
    assert not gain[:4].any()
    assert gain[4].all()
