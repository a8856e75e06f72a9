"""A layer that is not ours: oscillatory neurons in the manner of AKOrN, on hardware.

AKOrN (Miyato et al., arXiv 2410.13821) has unit vectors x_i of n parts and steps

    d_i = Omega_i x_i + Proj_x_i(c_i + sum_j J_ij x_j),    Proj_x(y) = y - (x . y) x
    x_i <- normalised (x_i + gamma d_i)

With n = 2 a vector is a phase, the projection is the sine law, and the stimulus c_i is
one more source that is pinned at its own phase (docs/howto/own-layer.md).

    python examples/akorn_layer.py

states the coupling of two steps of a small random layer, compiles them, runs the
circuit engine, prints the verdict, and exits by it.
"""

from __future__ import annotations

import argparse
import sys

import numpy as np
import torch

import oscc
from oscc.lower import block_coefficients, vector_phases

TOKENS, CHANNELS, GAMMA, STEPS = 6, 3, 0.8, 2
RUNGE_KUTTA_STEPS = 400


class KuramotoLayer(torch.nn.Module):
    """Oscillators with n = 2, coupled across tokens and channels.

    Args:
        oscillators: Number A of oscillators, tokens times channels.
        seed: Seed of the parameters.
    """

    def __init__(self, oscillators: int, seed: int = 0) -> None:
        super().__init__()
        draws = torch.Generator().manual_seed(seed)

        def normal(*shape: int) -> torch.Tensor:
            return torch.randn(*shape, generator=draws, dtype=torch.float64)

        scale = 1.0 / oscillators**0.5
        # two numbers a block, so that every block turns with its vector
        self.pairs = torch.nn.Parameter(scale * normal(oscillators, oscillators, 2))
        self.omega = torch.nn.Parameter(0.2 * normal(oscillators))

    def blocks(self) -> torch.Tensor:
        """J, shape (A, A, 2, 2): [[p, -q], [q, p]]."""
        p, q = self.pairs.unbind(-1)
        rows = [torch.stack([p, -q], -1), torch.stack([q, p], -1)]
        return torch.stack(rows, -2)

    def velocity(
        self, x: torch.Tensor, held: torch.Tensor, c: torch.Tensor
    ) -> torch.Tensor:
        """Omega x + Proj_x(c + J held), shape (A, 2)."""
        y = c + torch.einsum("abij,bj->ai", self.blocks(), held)
        tangent = y - (x * y).sum(-1, keepdim=True) * x
        turned = torch.stack([-x[:, 1], x[:, 0]], -1)
        return self.omega[:, None] * turned + tangent

    def published_step(self, x: torch.Tensor, c: torch.Tensor) -> torch.Tensor:
        """One step as published: Euler, then normalised."""
        moved = x + GAMMA * self.velocity(x, x, c)
        return moved / moved.norm(dim=-1, keepdim=True)

    def flow_step(self, x: torch.Tensor, c: torch.Tensor) -> torch.Tensor:
        """The same velocity followed for a time gamma, the senders held (classic RK4).

        It stays on the unit vectors by itself; what is normalised away is rounding.
        """
        held, h = x, GAMMA / RUNGE_KUTTA_STEPS
        for _ in range(RUNGE_KUTTA_STEPS):
            k1 = self.velocity(x, held, c)
            k2 = self.velocity(x + 0.5 * h * k1, held, c)
            k3 = self.velocity(x + 0.5 * h * k2, held, c)
            k4 = self.velocity(x + h * k3, held, c)
            x = x + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
            x = x / x.norm(dim=-1, keepdim=True)
        return x


def coupling(
    layer: KuramotoLayer, x: torch.Tensor, c: torch.Tensor, after: torch.Tensor
) -> oscc.PhaseCoupling:
    """What the layer states of one step: sources are all oscillators and all stimuli.

    Args:
        layer: The layer.
        x: Vectors before the step, shape (A, 2).
        c: Stimuli, shape (A, 2).
        after: Vectors that the layer made of them, shape (A, 2).
    """
    grid = (TOKENS, CHANNELS)
    stimulus = c.detach().numpy()
    phase = vector_phases(x.detach()).reshape(grid)
    pinned = np.arctan2(stimulus[:, 1], stimulus[:, 0]).reshape(grid)
    moved = vector_phases(after.detach()).reshape(grid) - phase
    count = phase.size
    pairs = np.zeros((count, TOKENS, 2 * CHANNELS), dtype=complex)
    pairs[:, :, :CHANNELS] = block_coefficients(layer.blocks()).reshape(count, *grid)
    own = np.arange(count)
    token, channel = np.divmod(own, CHANNELS)
    pairs[own, token, CHANNELS + channel] = np.hypot(*stimulus.T)
    return oscc.PhaseCoupling(
        theta_rad=np.concatenate([phase, pinned], axis=1),
        phi0_rad=phase,
        gain_rad=np.full(grid, GAMMA),
        detuning_rad=GAMMA * layer.omega.detach().numpy().reshape(grid),
        coefficients=pairs.reshape(1, count, -1),
        # a read-out counts turns: the increment is the short way round
        digital_rad=phase + np.angle(np.exp(1j * moved)),
    )


def unit(x: torch.Tensor) -> torch.Tensor:
    """Normalised vectors."""
    return x / x.norm(dim=-1, keepdim=True)


def steps(seed: int) -> tuple[list[oscc.PhaseCoupling], list[float]]:
    """Couplings of all steps, and how far the published step is off the flow [rad]."""
    draws = torch.Generator().manual_seed(seed)
    shape = (TOKENS * CHANNELS, 2)
    x = unit(torch.randn(shape, generator=draws, dtype=torch.float64))
    c = 0.5 * torch.randn(shape, generator=draws, dtype=torch.float64)
    layer, stated, gaps = KuramotoLayer(len(x), seed), [], []
    for _ in range(STEPS):
        after, published = layer.flow_step(x, c), layer.published_step(x, c)
        turn = vector_phases(published.detach()) - vector_phases(after.detach())
        gaps.append(float(np.abs(np.angle(np.exp(1j * turn))).max()))
        stated.append(coupling(layer, x, c, after))
        x = after
    return stated, gaps


def main(arguments: list[str] | None = None) -> int:
    """Compile, simulate, verify; the exit status is that of the verdict."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--accuracy-mrad", type=float, default=10.0)
    given = parser.parse_args(arguments)
    stated, gaps = steps(given.seed)
    program = oscc.program_from_layers(
        stated, family="akorn", accuracy_mrad=given.accuracy_mrad
    )
    verdict = oscc.verify(program, oscc.simulate(program, engine="circuit"))
    print(verdict)
    print(
        "the published step (Euler, projected, normalised) is up to "
        f"{max(gaps):.3f} rad off this flow: train with the flow"
    )
    return verdict.exit_status


if __name__ == "__main__":
    sys.exit(main())
