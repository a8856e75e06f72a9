"""The program of one new token: cut from the window, counted for itself."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from torch.utils.flop_counter import FlopCounterMode

from oscc.arrays import FloatArray
from oscc.device import card_to_mapping, load_card
from oscc.errors import RequestError
from oscc.ir import Stage
from oscc.ir.interpret import interpret, interpret_cells
from oscc.ir.views import coupled_pairs, pairs, to_networkx
from oscc.lock_trace import trace_locks
from oscc.lower import LOWERINGS, last_token, lower
from oscc.lower.ssa import lower_locks
from oscc.models.base import LayerState, build_model
from oscc.models.config import ModelConfig
from oscc.models.decoding import Decoder
from oscc.testing.flat import cells_stage, modes_stage
from oscc.testing.strategies import dynamic_stages
from oscc.testing.tiny import tiny_model, tiny_program, tiny_stage
from oscc.trace import exact_step, trace
from oscc_backends import circuit, phase
from oscc_sims.phase import solve

CARD = card_to_mapping(load_card("vo2-two-state-6k"))
COUNTS = [1, 2, 5, 12]


@given(dynamic_stages(largest_gain=12.0))
def test_the_last_row_of_every_backend_and_the_interpreter(stage: Stage) -> None:
    one, width = last_token(stage), stage.grid[1]
    assert one.begins == stage.grid[0] - 1
    assert (one.theta_rad == stage.theta_rad).all()
    np.testing.assert_allclose(interpret(one), interpret(stage)[-1:], atol=1e-7)
    for backend in (phase, circuit):
        np.testing.assert_allclose(
            backend.drive(one), backend.drive(stage)[-width:], rtol=0, atol=1e-14
        )
    whole = solve(phase.problem(stage)).reshape(stage.grid)
    found = solve(phase.problem(one)).reshape(one.grid)
    np.testing.assert_allclose(found, whole[-1:], rtol=0, atol=1e-9)


def test_tokens_keep_their_numbers() -> None:
    stage = tiny_stage(tokens=5, coordinates=2)
    one = last_token(stage)
    assert one.target_index.tolist() == [[4, 0], [4, 1]]
    assert one.rows_of([(4, 1), (4, 0)]).tolist() == [1, 0]
    for backend in (phase, circuit):
        assert backend.problem(one).index.tolist() == [[4, 0], [4, 1]]
        assert backend.problem(one).grid == (1, 2)
    graph = to_networkx(one)
    assert {node[1] for node in graph if node[0] == "target"} == {4}
    assert {node[1] for node in graph if node[0] == "source"} == set(range(5))
    whole = to_networkx(stage)
    kept = [e for e in whole.edges(data=True) if e[1][1] == 4]
    assert sorted(map(str, kept)) == sorted(map(str, graph.edges(data=True)))


@pytest.mark.parametrize("place", [(3, 0), (5, 0), (4, 2), (4, -1)])
def test_a_target_of_another_token_is_refused(place: tuple[int, int]) -> None:
    one = last_token(tiny_stage(tokens=5, coordinates=2))
    with pytest.raises(RequestError) as caught:
        one.rows_of([place])
    assert str(caught.value) == (
        f"stage layer.0.coupling has no target {place[0]}/{place[1]}: it has tokens 4 "
        "to 4 of 2 coordinates."
    )


def test_the_last_token_of_modes_has_its_own_modes_alone() -> None:
    stage = modes_stage(3, tokens=3, coordinates=4, modes=2)
    one = last_token(stage)
    assert (one.grid, one.begins, one.theta_rad.size) == ((1, 4), 2, 2)
    assert one.target_index.tolist() == [[2, j] for j in range(4)]
    np.testing.assert_allclose(interpret(one), interpret(stage)[-4:], atol=1e-10)
    assert coupled_pairs(one) == coupled_pairs(stage) // 3


def test_the_last_token_of_pair_cells_has_its_own_cells_alone() -> None:
    stage = cells_stage((0.1, 0.6, 1.2))
    assert stage.begins == 0
    one = last_token(stage)
    assert one.index is not None
    assert one.index.tolist() == [[0, 2, 0]]
    assert one.begins == 2
    np.testing.assert_allclose(interpret(one), interpret(stage)[-1:], atol=1e-10)


@pytest.mark.parametrize("make", [tiny_stage, modes_stage, cells_stage])
def test_the_outline_and_the_file_say_which_token(make: Any) -> None:
    from oscc.ir.codec import decode, encode
    from oscc.ir.outline import outline

    one = last_token(make())
    program = tiny_program(one)
    told = outline(program)["stages"][0]["targets"]
    assert told["first_token"] == one.begins > 0
    assert decode(encode(program)).stages[0].begins == one.begins
    whole = outline(tiny_program(make()))["stages"][0]["targets"]
    assert "first_token" not in whole


def test_the_last_token_of_one_token_is_the_stage() -> None:
    stage = last_token(tiny_stage(tokens=1))
    assert (stage.begins, stage.grid) == (0, (1, 4))


@pytest.mark.parametrize("family", LOWERINGS)
@pytest.mark.parametrize("update", ["flow", "euler"])
def test_a_decoder_with_cached_keys_is_the_digital_layer(
    family: str, update: str
) -> None:
    """Token by token through caches; the program through the window of all tokens."""
    model = tiny_model(family, update, seed=4, gain_rad=6.0, layers=2).double()
    tokens, seen = [5, 9, 9, 40, 3, 71], {}

    def keep(number: int, state: LayerState) -> torch.Tensor:
        seen[number] = exact_step(model.config, state)[0]
        return torch.from_numpy(seen[number][None])

    decoder = Decoder(model, keep)
    for token in tokens:
        decoder.step(torch.tensor([token]))
    program = lower(trace(model, tokens, mode="decode"), CARD)
    for number, stage in enumerate(program.stages):
        found = (stage.on_grid(a) for a in (stage.digital_rad, interpret(stage)))
        for phases, least in zip(found, (1e-9, 1e-6), strict=True):
            np.testing.assert_allclose(phases, seen[number], rtol=0, atol=least)
        routes = () if stage.flat else stage.factored
        successors = [c for c in routes if c.route == "successor"]
        for route in successors:
            assert not route.weights[:, :, 0].any()


@pytest.mark.parametrize("family", LOWERINGS)
def test_decode_and_prefill_are_the_same_numbers(family: str) -> None:
    model = tiny_model(family, seed=6, layers=2)
    whole = lower(trace(model, range(7)), CARD)
    one = lower(trace(model, range(7), mode="decode"), CARD)
    assert (whole.computed_tokens, one.computed_tokens) == (7, 1)
    for prefill, decode in zip(whole.stages, one.stages, strict=True):
        for name in ("digital_rad", "gain_rad"):
            one_row, rows = (s.on_grid(getattr(s, name)) for s in (decode, prefill))
            assert (one_row == rows[-1:]).all()
        held = prefill.theta_rad[-decode.theta_rad.size :]  # its own modes, if listed
        assert (decode.theta_rad == (held if decode.flat else prefill.theta_rad)).all()
        terms = [_terms(prefill, 6), _terms(decode, 6)]
        assert np.array_equal(*terms)


def _terms(stage: Stage, token: int) -> FloatArray:
    """Source, harmonic, strength and frustration of all that one token receives.

    Sources of a list are counted from the token's first.
    """
    first = 0
    if stage.source_index is not None:
        first = int(np.argmax(stage.source_index[:, 0] == token))
    rows = []
    for chunk in pairs(stage):
        mine = stage.target_index[chunk.target, 0] == token
        source = chunk.source - first
        columns = (source, chunk.harmonic, chunk.strength, chunk.frustration_rad)
        rows.append(np.stack([c[mine] for c in columns], axis=1))
    return np.concatenate(rows)


@pytest.mark.parametrize("family", LOWERINGS)
def test_the_steps_of_a_text_cost_the_host_what_the_window_costs(family: str) -> None:
    """Cached keys: every product of the window is formed in exactly one step."""
    model = tiny_model(family, layers=2)
    whole = _counts(model, range(9), "prefill")
    steps = [_counts(model, range(n), "decode") for n in range(1, 10)]
    assert whole == {name: sum(step[name] for step in steps) for name in whole}


def _counts(model: Any, tokens: Any, mode: str) -> dict[tuple[str, int], int]:
    program = lower(trace(model, list(tokens), mode=mode), CARD)
    out: Counter[tuple[str, int]] = Counter()
    for operation in program.host_operations:
        out[operation.name, operation.layer] += operation.count
    return dict(out)


@pytest.mark.parametrize("tokens", COUNTS)
@pytest.mark.parametrize("family", LOWERINGS)
def test_products_of_the_host_are_those_that_torch_counts(
    family: str, tokens: int
) -> None:
    """One step of the decoder: two floating operations a multiply-accumulate."""
    model = tiny_model(family, "euler", layers=2)
    decoder = Decoder(model)
    for token in range(tokens - 1):
        decoder.step(torch.tensor([token]))
    with FlopCounterMode(display=False) as counter:
        decoder.step(torch.tensor([tokens - 1]))
    found = _counts(model, range(tokens), "decode")
    names = ("score_gates", "value_gate", "score", "feed_forward")
    listed = sum(found[name, layer] for name in names for layer in range(2))
    routes, orders = (1, 1) if family == "kuramoto" else (2, model.config.harmonics)
    fields = 2 * 2 * orders * routes * tokens * model.config.k
    # element by element: torch counts matrices alone
    gates, k = 2 * model.config.hidden, model.config.k
    if family == "fsn-mf":
        # two layers: second powers of phasors by element, then sums and fields of modes
        gates = 2 * 4 * k
        listed += found["modes", 0] + found["modes", 1]
        fields += 2 * 4 * k * model.config.modes
    total = listed - gates + found["read_out", -1] + fields
    assert counter.get_total_flops() == 2 * total


def test_a_first_token_is_the_same_program_in_both_modes() -> None:
    model = tiny_model()
    programs = [lower(trace(model, [3], mode=m), CARD) for m in ("prefill", "decode")]
    assert programs[0] == programs[1]


def test_the_note_names_the_token_and_what_is_taken_for_granted() -> None:
    program = lower(trace(tiny_model(), [1, 2, 3], mode="decode"), CARD)
    assert program.notes == (
        "Decode: this program computes token 2 alone, the newest; the sources are the "
        "bank of tokens 0 to 2, whose phases are the digital layers' own, and the host "
        "is counted with cached keys.",
    )


def test_an_unknown_mode_is_refused() -> None:
    with pytest.raises(RequestError, match="`mode` must be one of decode, prefill"):
        trace(tiny_model(), [1], mode="decoding")


# Pair cells: a new token has cells of its own pairs alone.


def ssa_model(**changes: Any) -> Any:
    sizes = {"k": 8, "layers": 2, "heads": 2, "hidden": 6, "context": 32}
    return build_model(ModelConfig("ssa", **{**sizes, **changes}), 1)


LOCK_TOKENS = np.arange(24) * 7 % 19 + 3


def test_a_new_token_of_ssa_has_the_cells_of_its_own_row() -> None:
    model = ssa_model()
    whole = lower_locks(trace_locks(model, LOCK_TOKENS), CARD)
    one = lower_locks(trace_locks(model, LOCK_TOKENS, mode="decode"), CARD)
    assert (whole.computed_tokens, one.computed_tokens) == (24, 1)
    assert "computes token 23 alone" in one.notes[-1]
    for prefill, stage in zip(whole.stages, one.stages, strict=True):
        assert prefill.index is not None
        assert stage.index is not None
        row = np.flatnonzero(prefill.index[:, 1] == 23)
        assert stage.index.tolist() == prefill.index[row].tolist()
        for name in ("gain_rad", "detuning_rad", "digital_coherence"):
            assert (getattr(stage, name) == getattr(prefill, name)[row]).all()
        found, wanted = interpret_cells(stage), interpret_cells(prefill)
        np.testing.assert_allclose(found, wanted[row], rtol=0, atol=1e-9)
        counted = [n for n in one.notes if n.startswith(stage.name)]
        assert f"{len(row)} of {2 * 23} pairs" in counted[0]


def test_the_steps_of_ssa_cost_the_host_what_the_window_costs() -> None:
    """Every distance, factor and value of the window belongs to exactly one step."""
    model = ssa_model(layers=1)
    parts = [trace_locks(model, LOCK_TOKENS[:n], mode="decode") for n in range(1, 25)]
    whole = trace_locks(model, LOCK_TOKENS)
    for name, count in whole.layers[0].operations.items():
        assert count == sum(one.layers[0].operations[name] for one in parts)
    for name, count in whole.operations.items():
        assert count == sum(one.operations[name] for one in parts)


def test_what_has_no_step_of_its_own_is_refused() -> None:
    with pytest.raises(RequestError, match="needs a causal mask"):
        trace_locks(ssa_model(mask="none"), LOCK_TOKENS, mode="decode")
    with pytest.raises(RequestError, match="must be one of decode, prefill"):
        trace_locks(ssa_model(), LOCK_TOKENS, mode="generate")
    with pytest.raises(RequestError, match="no target is of token 7"):
        last_token(cells_stage(), 7)
    # the published constants lock equal symbols alone at a wide head
    model = ssa_model(arm="published", k=64, heads=1)
    far = trace_locks(model, [3, 3, 9], mode="decode")
    ratio = np.array(far.layers[0].ratio)
    ratio[:, 2, :2] = np.inf
    lone = replace(far, layers=tuple(replace(x, ratio=ratio) for x in far.layers))
    with pytest.raises(RequestError, match="No pair of token 2 and another one can"):
        lower_locks(lone, CARD)
