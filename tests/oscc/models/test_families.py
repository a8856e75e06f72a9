"""Every family of models.md section 9: counts, causality, periodicity, equalities."""

import math

import pytest
import torch

from oscc.errors import RequestError
from oscc.models.base import FAMILIES, build_model
from oscc.models.config import ModelConfig
from oscc.models.host import lift

PHASE_FAMILIES = ["kuramoto", "fsn", "fsn-no-phase", "fsn-mf"]
TOKENS = 12


def random_model(family, update="", **changes):
    """Small model in float64 whose parameters are all far from their start values."""
    sizes = {"k": 8, "layers": 2, "heads": 2, "hidden": 6, "modes": 6}
    options = {"context": TOKENS, "symbols": 20, **sizes, **changes}
    if update:
        options["update"] = update
    model = build_model(ModelConfig(family, **options), seed=1).double()
    generator = torch.Generator().manual_seed(2)
    with torch.no_grad():
        for p in model.parameters():
            if p.requires_grad:
                p.add_(0.3 * torch.randn(p.shape, generator=generator, dtype=p.dtype))
    return model


def largest_leak(model):
    """Largest change of a logit before position p when all from p on changes."""
    tokens = torch.arange(TOKENS)[None] % 7
    worst = 0.0
    with torch.no_grad():
        before = model(tokens)
        for p in range(1, TOKENS):
            changed = tokens.clone()
            changed[0, p:] = 7 + (changed[0, p:] * 3) % 13
            after = model(changed)
            worst = max(worst, float((after[:, :p] - before[:, :p]).abs().max()))
            assert (after[:, p] - before[:, p]).abs().max() > 1e-6
    return worst


@pytest.mark.parametrize(
    ("config", "parameters"),
    [
        (ModelConfig("fsn-no-phase"), 65_865),
        (ModelConfig("fsn-mf", heads=1, modes=24), 47_811),
        (ModelConfig("fsn-mf"), 57_033),
        (ModelConfig("ssa"), 61_378),
        (ModelConfig("ssa", arm="published"), 61_354),
        (ModelConfig("transformer"), 64_944),
    ],
)
def test_parameter_counts(config, parameters):
    count = sum(p.numel() for p in build_model(config).parameters())
    assert count == parameters


def test_parameter_formulas_hold_at_other_sizes():
    v, k, layers, heads, h, m = 30, 12, 3, 3, 20, 10
    sizes = {"symbols": v, "k": k, "layers": layers, "heads": heads, "hidden": h}

    def count(family, **more):
        model = build_model(ModelConfig(family, **sizes, **more))
        return sum(p.numel() for p in model.parameters())

    phase = 6 * k * k + 4 * k + heads
    mean_field = phase + 8 * k + 4 * m * k + 4 * k
    assert count("fsn-mf", modes=m) == 2 * v * k + 1 + layers * mean_field
    block = 4 * k * k + 3 * k * h + 2 * k
    assert count("transformer") == 2 * v * k + k + layers * block


CAUSAL = [
    *((family, u, {}) for family in PHASE_FAMILIES for u in ("flow", "euler")),
    ("fsn-mf", "flow", {"mode_response": "square"}),
    ("kuramoto", "flow", {"values": "projected"}),
    ("kuramoto", "flow", {"gates": "none", "feed_forward": "none"}),
    ("ssa", "", {}),
    ("ssa", "", {"arm": "published"}),
    ("ssa", "", {"lock_top_k": 3}),
    ("transformer", "", {"heads": 4}),
]


@pytest.mark.parametrize(("family", "update", "changes"), CAUSAL)
def test_no_logit_depends_on_a_later_symbol(family, update, changes):
    assert largest_leak(random_model(family, update, **changes)) == 0.0


def test_every_family_is_tested_for_causality():
    assert {family for family, *_ in CAUSAL} == set(FAMILIES)


def test_without_its_mask_ssa_reads_the_future():
    assert largest_leak(random_model("ssa", mask="none")) > 1e-6


@pytest.mark.parametrize("update", ["flow", "euler"])
@pytest.mark.parametrize("response", ["linear", "square"])
def test_fsn_mf_is_periodic_in_every_phase(update, response):
    model = random_model("fsn-mf", update, mode_response=response)
    generator = torch.Generator().manual_seed(4)
    theta = 18 * torch.rand(2, TOKENS, 8, generator=generator, dtype=torch.float64) - 9
    turns = torch.randint(-2, 3, theta.shape, generator=generator).double()
    with torch.no_grad():
        moved = theta + 2 * math.pi * turns
        run = [model.read_out(model.run(x)) for x in (theta, moved)]
    assert (run[0] - run[1]).abs().max() <= 1e-10


def test_fields_of_the_modes_are_those_of_explicit_complex_sums():
    model = random_model("fsn-mf", "euler", mode_response="square")
    layer = model.coupling_layers()[1]
    generator = torch.Generator().manual_seed(4)
    theta = 18 * torch.rand(1, 3, 8, generator=generator, dtype=torch.float64) - 9
    with torch.no_grad():
        state = layer.mode_state(theta)
        c, d, pin = (torch.complex(p[0], p[1]) for p in _mode_parameters(layer))
        for i, order in enumerate((1, 2)):
            for t in range(3):
                z = torch.polar(torch.ones(8, dtype=torch.float64), theta[0, t])
                field = pin[i].clone()
                for m in range(3 * i, 3 * i + 3):
                    mode = (c[m] * z**order).sum() / math.sqrt(8)
                    field += d[:, m] * mode.abs() ** 2 * mode
                turned = z.conj() ** order * field
                assert (state.a[i, 0, t] - turned.imag).abs().max() <= 1e-12
                assert (state.b[i, 0, t] - turned.real).abs().max() <= 1e-12
        direction = state.a.sum(0)
        scale = direction.tanh().norm(dim=-1) / direction.norm(dim=-1)
    # the bound holds 1e-12 beside mean squares of size one
    assert (state.gain - scale[..., None]).abs().max() <= 1e-9


def _mode_parameters(layer):
    return layer.mode_in, layer.mode_out, layer.pin


def test_start_of_the_modes():
    layer = build_model(ModelConfig("fsn-mf", k=64, modes=64)).coupling_layers()[0]
    assert layer.mode_in.std().item() == pytest.approx(1.0, rel=0.05)
    assert layer.mode_out.std().item() == pytest.approx(0.5 / 8, rel=0.05)
    assert layer.pin.abs().max() == 0
    assert not hasattr(layer, "feed_forward")


def test_no_phase_is_fsn_without_offsets_and_keeps_them_at_zero():
    sizes = {"k": 8, "layers": 2, "heads": 2, "hidden": 6, "context": TOKENS}
    plain = build_model(ModelConfig("fsn", "euler", **sizes), seed=3)
    frozen = build_model(ModelConfig("fsn-no-phase", "euler", **sizes), seed=3)
    tokens = torch.arange(TOKENS)[None]
    assert torch.equal(plain(tokens), frozen(tokens))
    frozen(tokens).sum().backward()
    for layer in frozen.coupling_layers():
        assert layer.alpha.grad is None
        assert layer.alpha.abs().max() == 0
        assert layer.gamma.grad.abs().max() > 0


def test_ablations_start_as_the_model_they_ablate_and_lose_its_parts():
    sizes = {"k": 8, "layers": 2, "heads": 2, "hidden": 6, "context": TOKENS}
    tokens = torch.arange(TOKENS)[None]

    def built(**changes):
        return build_model(ModelConfig("kuramoto", "euler", **sizes, **changes), seed=3)

    def count(model):
        return sum(p.numel() for p in model.parameters())

    plain, projected = built(), built(values="projected")
    # the projection starts as the identity; a product with 1 and 0 adds rounding only
    assert (plain(tokens) - projected(tokens)).abs().max() <= 1e-5
    assert count(projected) == count(plain) + 2 * 16 * 16
    assert count(built(feed_forward="none")) == count(plain) - 2 * 3 * 8 * 6
    assert count(built(gates="none")) == count(plain) - 2 * 2 * (8 * 16 + 8)
    layer = projected.coupling_layers()[0]
    theta = torch.rand(1, TOKENS, 8)
    with torch.no_grad():
        layer.projection.mul_(2.0)
        weights = layer.score(theta, lift(theta))
        doubled = layer.fields(weights, theta)[0]
        usual = plain.coupling_layers()[0].fields(weights, theta)[0]
    assert (doubled - 2 * usual).abs().max() <= 1e-5


def test_kuramoto_without_feed_forward_is_periodic():
    model = random_model("kuramoto", "flow", feed_forward="none")
    theta = 6 * torch.rand(1, TOKENS, 8, dtype=torch.float64)
    with torch.no_grad():
        run = [model.read_out(model.run(x)) for x in (theta, theta - 2 * math.pi)]
    assert (run[0] - run[1]).abs().max() <= 1e-10


def test_transformer_attention_depends_on_distance_alone():
    from oscc.models.transformer import rotated

    q, k = torch.rand(2, 1, 1, 6, dtype=torch.float64)
    query, key = (rotated(x.expand(1, 9, 6), 10000.0) for x in (q, k))
    scores = (query @ key.transpose(-1, -2))[0]
    for distance in range(9):
        band = scores.diagonal(-distance)
        assert (band - band[0]).abs().max() <= 1e-12
    assert scores[8, 0] != scores[0, 0]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"family": "ssa", "update": "flow"}, "`update` must be none for family ssa"),
        ({"family": "fsn", "update": "none"}, "`update` must be flow or euler"),
        (
            {"family": "fsn-no-phase", "offsets": "learned"},
            "is 'learned'; it belongs to fsn, fsn-mf",
        ),
        (
            {"family": "fsn", "values": "projected"},
            "`values` has no meaning for family fsn, but is 'projected'; it",
        ),
        ({"family": "fsn-mf", "modes": 5}, "`modes` must be even"),
        ({"family": "transformer", "heads": 16}, "even for rotary positions"),
        ({"family": "ssa", "lock_top_k": -1}, "must be 0"),
        ({"family": "ssa", "dropout": 1.0}, "below 1"),
        (
            {"family": "fsn", "dropout": 0.1},
            "for family fsn, but is 0.1; it belongs to ssa",
        ),
        ({"family": "kuramoto", "mask": "none"}, "`mask` has no meaning for family"),
    ],
)
def test_choices_a_family_does_not_have_are_named(change, words):
    with pytest.raises(RequestError, match=words):
        ModelConfig.from_mapping(change)


def test_configurations_of_before_are_written_as_before():
    text = ModelConfig("fsn", "flow").to_json()
    for name in (
        "values",
        "modes",
        "mode_response",
        "arm",
        "mask",
        "lock_top_k",
        "dropout",
    ):
        assert f'"{name}"' not in text
    for config in (
        ModelConfig("fsn-mf", modes=10, mode_response="square"),
        ModelConfig("ssa", arm="published", mask="none", lock_top_k=4),
        ModelConfig("kuramoto", values="projected"),
    ):
        assert ModelConfig.from_json(config.to_json()) == config
