"""The flow's solutions against independent integrators; its gradients."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import solve_ivp

from oscc.errors import RequestError
from oscc.models.flow import drive_strength, exact_increment, one_harmonic_increment
from oscc.models.flow_kernels import FINAL, STAGES, blocks, order8_forward
from oscc.models.flow_training import flow_increment


def scipy_increment(a, b, gain):
    """One target by scipy's DOP853, kept to 1e-13."""
    orders = np.arange(1, len(a) + 1)

    def rate(_, d):
        return gain * np.sum(a * np.cos(orders * d) - b * np.sin(orders * d))

    found = solve_ivp(rate, (0, 1), [0.0], method="DOP853", rtol=1e-13, atol=1e-13)
    return found.y[0, -1]


def random_fields(harmonics, targets, largest, seed=0):
    rng = np.random.default_rng(seed)
    radius = rng.uniform(0, largest, (harmonics, targets))
    angle = rng.uniform(-np.pi, np.pi, (harmonics, targets))
    return radius * np.sin(angle), radius * np.cos(angle)


def test_closed_form_equals_rk4_with_400_steps():
    (a,), (b,) = random_fields(1, 1000, 4.0)
    gain = np.random.default_rng(1).uniform(-3, 3, 1000)
    d, h = np.zeros(1000), 1 / 400
    for _ in range(400):
        k1 = gain * (a * np.cos(d) - b * np.sin(d))
        k2 = gain * (a * np.cos(d + h / 2 * k1) - b * np.sin(d + h / 2 * k1))
        k3 = gain * (a * np.cos(d + h / 2 * k2) - b * np.sin(d + h / 2 * k2))
        k4 = gain * (a * np.cos(d + h * k3) - b * np.sin(d + h * k3))
        d = d + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    found = one_harmonic_increment(a, b, gain)
    assert np.abs(found - d).max() <= 1e-8
    assert np.abs(found).max() < np.pi


def test_closed_form_equals_scipy_at_large_drives_of_both_signs():
    (a,), (b,) = random_fields(1, 40, 2.0, seed=3)
    gain = np.random.default_rng(2).uniform(-12, 12, 40)
    found = one_harmonic_increment(a, b, gain)
    wanted = [scipy_increment(a[i : i + 1], b[i : i + 1], gain[i]) for i in range(40)]
    assert np.abs(found - wanted).max() <= 1e-9


def test_closed_form_next_to_the_repelling_phase():
    # C = -1 + 1e-9 i, gain 30: the increment is 2 atan2 of well-separated terms
    a, b, gain = np.array(1e-9), np.array(-1.0), np.array(30.0)
    wanted = 2 * np.arctan2(1e-9 * (1 - np.exp(-30)), 0.5e-18 + 2 * np.exp(-30))
    assert abs(one_harmonic_increment(a, b, gain) - wanted) <= 1e-9


def test_closed_form_of_a_vanishing_field_is_zero():
    zero = np.zeros(3)
    assert one_harmonic_increment(zero, zero, np.array([0.0, 5.0, -5.0])).tolist() == [
        0.0,
        0.0,
        0.0,
    ]


def test_small_gain_is_the_direction_with_an_error_of_first_order():
    (a,), (b,) = random_fields(1, 200, 2.0)
    errors = []
    for gain in (1e-2, 1e-3, 1e-4):
        ratio = one_harmonic_increment(a, b, np.full(200, gain)) / gain
        errors.append(np.abs(ratio - a).max())
    # second order of the flow: g a b / 2, at most g * 4 / 2 / 2
    assert errors[0] <= 1e-2 * 2
    assert errors[1] == pytest.approx(errors[0] / 10, rel=0.1)
    assert errors[2] == pytest.approx(errors[0] / 100, rel=0.1)


@pytest.mark.parametrize("harmonics", [2, 3])
def test_integrated_flow_equals_scipy(harmonics):
    a, b = random_fields(harmonics, 16, 1.0, seed=5)
    gain = np.random.default_rng(4).uniform(-12, 12, 16)
    found = exact_increment(a, b, gain)
    wanted = [scipy_increment(a[:, i], b[:, i], gain[i]) for i in range(16)]
    assert np.abs(found - wanted).max() <= 1e-9


def test_integrator_agrees_with_the_closed_form_where_one_harmonic_remains():
    (a,), (b,) = random_fields(1, 500, 1.5, seed=6)
    gain = np.random.default_rng(7).uniform(-8, 8, 500)
    zero = np.zeros_like(a)
    found = exact_increment(np.stack([a, zero]), np.stack([b, zero]), gain)
    assert np.abs(found - one_harmonic_increment(a, b, gain)).max() <= 1e-9


def test_the_order_8_method_is_of_order_8():
    # consistency of the table, then the order measured from two step sizes
    assert FINAL.sum() == pytest.approx(1, abs=1e-15)
    nodes = STAGES.sum(axis=1)
    for power in range(1, 8):
        assert FINAL @ nodes**power == pytest.approx(1 / (power + 1), abs=1e-14)
    a, b = random_fields(2, 64, 1.5, seed=8)
    wanted = exact_increment(a, b, np.ones(64))

    def error(steps):
        plan = blocks(np.full(64, steps))
        return np.abs(order8_forward(a, b, *plan) - wanted).max()

    assert np.log2(error(4) / error(8)) >= 7.5


def test_splitting_the_dwell_composes():
    a, b = random_fields(2, 50, 2.0, seed=9)
    whole = exact_increment(a, b, np.full(50, 1.0))
    first = exact_increment(a, b, np.full(50, 0.4))
    turned = []
    for n in (1, 2):
        field = (b[n - 1] + 1j * a[n - 1]) * np.exp(-1j * n * first)
        turned.append(field)
    rest = exact_increment(np.imag(turned), np.real(turned), np.full(50, 0.6))
    assert np.abs(first + rest - whole).max() <= 3e-9


def test_lanes_do_not_depend_on_their_block():
    a, b = random_fields(2, 200, 3.0, seed=10)
    gain = np.random.default_rng(3).uniform(-5, 5, 200)
    whole = exact_increment(a, b, gain)
    for i in (0, 77, 199):
        alone = exact_increment(a[:, i : i + 1], b[:, i : i + 1], gain[i : i + 1])
        assert alone[0] == whole[i]


def test_training_lanes_do_not_depend_on_their_batch():
    a, b = (torch.from_numpy(x) for x in random_fields(2, 500, 3.0, seed=10))
    gain = torch.from_numpy(np.random.default_rng(3).uniform(-9, 9, 500))
    whole = flow_increment(a, b, gain)
    for i in (0, 77, 300, 499):
        one = slice(i, i + 1)
        assert flow_increment(a[:, one], b[:, one], gain[one]) == whole[i]


def test_a_target_that_diverged_leaves_its_neighbours_alone():
    a, b = (torch.from_numpy(x) for x in random_fields(2, 100, 1.0, seed=12))
    a.requires_grad_()
    gain = torch.ones(100, dtype=a.dtype)
    gain[40] = 1e4
    out = flow_increment(a, b, gain)
    out.sum().backward()
    lost = torch.arange(100) == 40
    assert torch.equal(out.isnan(), lost)
    assert torch.equal(a.grad.isnan().any(0), lost)


@given(st.lists(st.integers(1, 5000), min_size=1, max_size=300))
def test_blocks_hold_every_lane_once_with_steps_enough(counts):
    counts = np.array(counts)
    order, starts, steps = blocks(counts)
    assert sorted(order.tolist()) == list(range(len(counts)))
    assert starts[0] == 0
    assert starts[-1] == len(counts)
    sizes = np.diff(starts)
    assert sizes.min() >= 1
    assert sizes.max() <= 64
    given_steps = np.repeat(steps, sizes)
    assert np.all(given_steps >= counts[order])
    assert np.all(given_steps < 1.25 * counts[order] + 1)


def test_fields_that_are_not_finite_are_refused():
    bad = np.array([[np.nan]])
    with pytest.raises(RequestError, match="holds 1 NaN"):
        exact_increment(bad, bad * 0, np.ones(1))


@pytest.mark.parametrize("harmonics", [1, 2, 3])
def test_training_flow_is_close_to_the_exact_one(harmonics):
    a, b = random_fields(harmonics, 300, 1.0, seed=11)
    gain = np.random.default_rng(5).uniform(-6, 6, 300)
    coarse = flow_increment(*(torch.from_numpy(x) for x in (a, b, gain))).numpy()
    gap = np.abs(coarse - exact_increment(a, b, gain))
    # RK4 with a drive of at most 1 per sub-step: 1/120 per sub-step at the very worst
    drive = drive_strength(a, b, gain)
    assert np.all(gap <= np.maximum(8, np.ceil(drive)) / 120)
    assert np.sqrt(np.mean(gap**2)) <= 1e-3 if harmonics > 1 else gap.max() <= 1e-12


@pytest.mark.parametrize("harmonics", [1, 2, 3])
def test_gradients_of_the_training_flow(harmonics):
    a, b = (torch.from_numpy(x) for x in random_fields(harmonics, 5, 2.0, seed=12))
    gain = torch.linspace(-4, 4, 5, dtype=torch.float64)
    for x in (a, b, gain):
        x.requires_grad_()
    assert torch.autograd.gradcheck(flow_increment, (a, b, gain))


def test_gradient_of_the_closed_form_is_finite_without_a_field():
    a, b = (torch.zeros(1, 3, dtype=torch.float64, requires_grad=True) for _ in "ab")
    gain = torch.tensor([0.0, 2.0, -2.0], dtype=torch.float64, requires_grad=True)
    flow_increment(a, b, gain).sum().backward()
    assert a.grad.tolist() == [[0.0, 2.0, -2.0]]
    assert torch.isfinite(gain.grad).all()


def test_a_diverged_drive_gives_nan_and_no_endless_loop():
    a = torch.full((2, 1), torch.inf, requires_grad=True)
    out = flow_increment(a, a, torch.ones(1))
    out.sum().backward()
    assert torch.isnan(out).all()
    assert torch.isnan(a.grad).all()


@pytest.mark.parametrize("harmonics", [2, 3])
def test_training_flow_keeps_its_accuracy_and_gradients_up_to_drive_30(harmonics):
    # fixed coarse steps blow up there: gradient norms of 1e13 were seen
    a, b = random_fields(harmonics, 400, 1.0, seed=13)
    scale = 30 / drive_strength(a, b, np.ones(400))
    gain = torch.from_numpy(scale * np.where(np.arange(400) % 2, 1.0, -1.0))
    gain.requires_grad_()
    fields = [torch.from_numpy(x).requires_grad_() for x in (a, b)]
    out = flow_increment(*fields, gain)
    out.sum().backward()
    exact = exact_increment(a, b, gain.detach().numpy())
    # thirty sub-steps of a drive of one each: at worst 1/120 a sub-step
    assert np.abs(out.detach().numpy() - exact).max() <= 30 / 120
    step = 1e-5
    moved = [
        exact_increment(a, b, gain.detach().numpy() * (1 + sign * step))
        for sign in (1, -1)
    ]
    slope = (moved[0] - moved[1]) / (2 * step) / gain.detach().numpy()
    error = np.abs(gain.grad.numpy() - slope)
    assert np.median(error) <= 1e-3
    for leaf in (*fields, gain):
        assert leaf.grad.abs().max() <= 1e3
