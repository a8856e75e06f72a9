"""Compile a checkpoint and an input to a program, and to a build folder."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from oscc.checks import require_whole
from oscc.errors import RequestError
from oscc.ir.program import Program
from oscc.lower.program import LOCK_FAMILIES
from oscc.seeds import stream
from oscc.verbs.compile_cells import lowered_locks, require_lock_mode, rounds_notes
from oscc.verbs.simulate_cells import write_cells

if TYPE_CHECKING:
    from oscc.checkpoint import LoadedCheckpoint
    from oscc.device.card import Card


@dataclass(frozen=True, slots=True)
class CompileRequest:
    """What to compile, with the defaults of the command line.

    Args:
        device: Name of a device card, or path of a user's own; None takes the one of
            the family (`default_device`).
        coupler: Kind of coupler.
        fidelity: What a netlist holds.
        update: `flow` or `probe`; None takes the one of the training.
        scheme: `auto`, or a scheme by name.
        substeps: S; None chooses it.
        periods: P; None chooses it for the accuracy.
        accuracy_mrad: Wanted rms phase error of a stage [mrad].
        layers: Layers to lower; None takes all.
        mode: `prefill` computes every token of the text; `decode` the last one alone,
            from the held bank of all tokens.
        max_tokens: Keep the first tokens of a longer text.
        deck_targets: Targets a layer that are sampled for decks.
        unknown: `error` or `other`, for characters outside the vocabulary.
        mean_field: Who forms collective modes: `host`, or `oscillators`.
        score: Who forms scores and logits: `host`, or `hardware`, as correlations of
            two banks of oscillators.
        seed: Seed of every draw.
        threads: Worker threads; no result depends on it.
        lock_coupling: K / omega0 of pair cells, for families that lock; None has it
            chosen for the accuracy.
        lock_margin: Pairs up to this far beyond their lock range, in units of it, get
            a cell; the others are unlocked by the closed form.
        lock_mode: `host`, which forms the detuning of a cell; or `native`: one
            oscillator a token and head, whose own frequencies differ.
    """

    device: str | None = None
    coupler: str = "shaped"
    fidelity: str = "pairwise"
    update: str | None = None
    scheme: str = "auto"
    substeps: int | None = None
    periods: int | None = None
    accuracy_mrad: float = 10.0
    layers: Collection[int] | None = None
    mode: str = "prefill"
    max_tokens: int | None = None
    deck_targets: int = 8
    unknown: str = "error"
    mean_field: str = "host"
    score: str = "host"
    seed: int = 0
    threads: int = 1
    lock_coupling: float | None = None
    lock_margin: float = 0.05
    lock_mode: str = "host"


def compile(
    model: LoadedCheckpoint, text: str, *, device: str = "", **settings: Any
) -> Program:
    """Program of a model on a text.

    Args:
        model: What `oscc.load` returned.
        text: Input of at least one token.
        device: Name or path of a device card.
        settings: Fields of `CompileRequest`, such as `accuracy_mrad`.

    Raises:
        RequestError: the text, the card or a setting cannot be used, or no scheme
            reaches the accuracy.

    Example:
        >>> from oscc.testing.tiny import tiny_checkpoint
        >>> program = compile(tiny_checkpoint(), "abc", scheme="plain", periods=20)
        >>> program.stages[0].targets
        12
    """
    if device:
        settings["device"] = device
    return build_program(model, text, CompileRequest(**settings))


def build_program(
    model: LoadedCheckpoint, text: str, request: CompileRequest
) -> Program:
    """Trace, lower and run the passes.

    Raises:
        RequestError: as `compile`.
    """
    from oscc import passes
    from oscc.device.card_file import card_to_mapping, load_card
    from oscc.lower.program import require_mean_field, require_scored_by

    require_supported(request)
    require_mean_field(model.config.family, request.mean_field)
    require_scored_by(model.config.family, request.score)
    require_lock_mode(model.config, request.lock_mode)
    card = load_card(request.device or default_device(model.config.family))
    tokens, device = input_tokens(model, text, request), card_to_mapping(card)
    settings: dict[str, Any] = {
        "layers": request.layers,
        "fidelity": request.fidelity,
        "accuracy_rad": 1e-3 * request.accuracy_mrad,
        "coupler": request.coupler,
        "deck_targets": request.deck_targets,
        "seed": request.seed,
        "provenance": _provenance(model, text, request),
    }
    if model.config.family in LOCK_FAMILIES:
        program = lowered_locks(model, tokens, device, request, settings)
    else:
        from oscc.lower import lower
        from oscc.trace import trace

        traced = trace(model.model, tokens, mode=request.mode)
        settings |= {"update": request.update, "mean_field": request.mean_field}
        settings |= {"score": request.score}
        program = lower(traced, device, **settings)
    return _labelled(passes.run(program, pass_options(card, request)))


def default_device(family: str) -> str:
    """Device card that a family is compiled for where none is given.

    Example:
        >>> default_device("fsn"), default_device("ssa")
        ('vo2-two-state-6k', 'vo2-two-state-5k5')
    """
    return "vo2-two-state-5k5" if family in LOCK_FAMILIES else "vo2-two-state-6k"


def _labelled(program: Program) -> Program:
    """The program, with a note where the host assists and no deck can be written.

    Of tokens that visit each other, how long all rounds take.
    """
    notes = tuple(rounds_notes(program))
    program = program.replace(notes=(*program.notes, *notes)) if notes else program
    if all(stage.scheme != "corrected" for stage in program.stages):
        return program
    note = (
        "Host-assisted: the scheme `corrected` takes its currents from the field of "
        "every target, worked out on the host. No deck holds it, so simulators cannot "
        "judge it."
    )
    return program.replace(notes=(*program.notes, note))


def pass_options(card: Card, request: CompileRequest) -> Any:
    """Options of the passes for a request."""
    from oscc.passes import PassOptions
    from oscc.verbs.trial import CircuitTrial

    return PassOptions(
        card=card,
        trial=CircuitTrial(card, request.threads),
        scheme=request.scheme,
        substeps=request.substeps,
        periods=request.periods,
    )


def require_supported(request: CompileRequest) -> None:
    """Refuse what no program can be made of.

    Raises:
        RequestError: a coupler, a fidelity or a number that cannot be used.
    """
    if request.coupler != "shaped":
        raise RequestError(
            f"Coupler `{request.coupler}` is not available yet; use `shaped`."
        )
    if request.fidelity == "passive":
        raise RequestError(
            "Fidelity `passive` is not available yet; use summed, pairwise or "
            "oscillators."
        )
    if not request.accuracy_mrad > 0:
        raise RequestError(
            f"`--accuracy-mrad` must be above zero, but is {request.accuracy_mrad:g}."
        )
    for name in ("substeps", "periods", "max_tokens"):
        value = getattr(request, name)
        if value is not None:
            require_whole(name, value)


def input_tokens(
    model: LoadedCheckpoint, text: str, request: CompileRequest, where: str = "the text"
) -> Any:
    """Symbol numbers of the text, cut to `max_tokens` if that was given.

    Raises:
        RequestError: the text is empty, too long, or has an unknown character.
    """
    if not text:
        raise RequestError("The text is empty. Give a text of one token or more.")
    return model.vocabulary.encode(
        text, unknown=request.unknown, where=where, limit=request.max_tokens
    )


def _provenance(
    model: LoadedCheckpoint, text: str, request: CompileRequest
) -> dict[str, Any]:
    from oscc.files import sha256_bytes
    from oscc.version import VERSION

    return {
        "version": VERSION,
        "checkpoint_sha256": model.digest,
        "input_sha256": sha256_bytes(text.encode()),
        "seed": request.seed,
        "passes": [],
    }


def compile_folder(
    checkpoint: Path,
    out: Path,
    text: str,
    request: CompileRequest,
    *,
    key: str | None = None,
    model_config: Mapping[str, Any] | None = None,
    force: bool = False,
    decks: bool = True,
) -> Program:
    """Compile into a build folder: program, outline, decks of a sample, manifest.

    After an error the output folder is as it was.

    Args:
        checkpoint: Checkpoint file.
        out: Build folder to make.
        text: Input.
        request: What to compile.
        key: Which mapping of a foreign checkpoint holds the weights.
        model_config: Model section of the configuration, for a foreign checkpoint.
        force: Replace an existing build of ours.
        decks: Whether to write the sample's decks.

    Raises:
        RequestError: an input cannot be used, or the folder must not be written.
        ToolError: the disk is full, or a simulator failed while it was timed.
    """
    from oscc.build import new_build, require_free
    from oscc.checkpoint import load_checkpoint
    from oscc.files import write_atomic
    from oscc.ir.codec import save
    from oscc.ir.outline import outline_yaml
    from oscc.version import VERSION

    require_free(out, force=force)
    model = load_checkpoint(checkpoint, key=key, model_config=model_config)
    program = build_program(model, text, request)
    inputs = {
        "checkpoint": program.provenance["checkpoint_sha256"],
        "text": program.provenance["input_sha256"],
    }
    with new_build(
        out, force=force, version=VERSION, seed=request.seed, inputs=inputs
    ) as folder:
        save(program, folder / "program.safetensors")
        write_atomic(folder / "program.yaml", outline_yaml(program))
        if decks:
            _write_decks(program, folder)
    return program


def _write_decks(program: Program, folder: Path) -> None:
    from oscc_backends.deck_files import write_sample
    from oscc_backends.spice import why_no_deck
    from oscc_sims.calibration import free_timings

    if program.of_cells:
        write_cells(program, folder)
        return
    if why_no_deck(program):
        return
    timings = free_timings(program)
    targets = sample_targets(program)
    write_sample(program, targets, folder, timings, written=_write_timing(program))


def _write_timing(program: Program) -> Any:
    """Free run of a written cell in gnucap, where a stage is built of real cells.

    Raises:
        ToolError: gnucap is missing or failed.
    """
    from oscc.device.card_file import card_from_mapping
    from oscc_netlists.settings import default_settings
    from oscc_sims.tile import calibrate_write

    if all(stage.fidelity != "oscillators" for stage in program.stages):
        return None
    card = card_from_mapping(dict(program.device), "the program's device card")
    return calibrate_write(card, default_settings("gnucap"))


def sample_targets(program: Program, count: int | None = None) -> dict[str, Any]:
    """Seeded sample of targets of every stage, stratified over drive and tokens.

    Where the stage has one, always one above the 95 % quantile of the drive, one of
    negative gain and one with an increment above 2 rad.

    Args:
        count: Targets a stage; the program's own number without it.

    Returns:
        Token and coordinate of each target by stage, shape (M, 2).
    """
    from oscc.ladder.sample import stratified

    wanted = program.deck_targets if count is None else count
    return {
        stage.name: stratified(
            stage, wanted, stream(program.seed, f"deck sample {stage.name}")
        )
        for stage in program.stages
    }
