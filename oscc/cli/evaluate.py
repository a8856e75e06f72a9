"""`oscc evaluate`: bits per character with the hardware in the loop."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from oscc.cli import shared
from oscc.cli.options import Option, Run, setting, verb_command
from oscc.cli.output import Progress, say, table, wrote
from oscc.cli.results import emit, model_section


@verb_command(
    "evaluate",
    text="Bits per character of CHECKPOINT on held-out text, with an engine in the "
    "loop layer by layer.",
    example="oscc evaluate checkpoints/fsn-flow.safetensors --engine circuit "
    "--tokens 2000",
)
@click.argument("checkpoint", type=click.Path(path_type=Path))
@setting("--engine", "evaluate.engine", group="Input", text="phase or circuit.")
@click.option(
    "--text",
    cls=Option,
    group="Input",
    type=click.Path(path_type=Path),
    metavar="PATH",
    help="Text file or folder, used whole; else the held-out standard library.",
)
@setting("--tokens", "evaluate.tokens", group="Input", text="Fewest tokens.")
@shared.UNKNOWN
@shared.KEY
@shared.DEVICE
@shared.UPDATE
@shared.MEAN_FIELD
@shared.SCORE
@setting(
    "--accuracy-mrad",
    "evaluate.accuracy_mrad",
    group="Accuracy",
    text="Wanted rms phase error of a stage.",
)
def command(run: Run, checkpoint: Path, text: Path | None) -> None:
    """Evaluate and print the table."""
    from oscc.checkpoint import load_checkpoint
    from oscc.verbs.compile import CompileRequest
    from oscc.verbs.evaluate import EvaluateOptions, evaluate

    model = load_checkpoint(
        checkpoint, key=run.config.compile.key, model_config=model_section(run)
    )
    out = run.out or Path("build") / f"{checkpoint.stem}-evaluate"
    _require_place(out, model.digest)
    section = run.config.evaluate
    request = CompileRequest(
        device=run.config.compile.device,
        update=run.config.compile.update,
        unknown=run.config.compile.unknown,
        scheme=run.config.compile.scheme,
        substeps=run.config.compile.substeps,
        periods=run.config.compile.periods,
        mean_field=run.config.compile.mean_field,
        score=run.config.compile.score,
        accuracy_mrad=section.accuracy_mrad,
        seed=run.config.seed,
        threads=run.jobs,
        lock_coupling=run.config.compile.lock_coupling,
        lock_margin=run.config.compile.lock_margin,
        lock_mode=run.config.compile.lock_mode,
    )
    bar = run.progress()
    options = EvaluateOptions(
        tokens=section.tokens,
        request=request,
        lock_step=section.lock_step,
        progress=lambda column, done, total: bar(f"{column} {done}/{total} windows"),
    )
    with _nothing_kept(bar):
        content = evaluate(model, section.engine, text=text, options=options)
    path = _write(run, out, content)
    if not emit(run, content):
        _show(content, path)


@contextlib.contextmanager
def _nothing_kept(bar: Progress) -> Iterator[None]:
    """End the bar; say of an interruption that figures of finished windows are lost."""
    try:
        yield
        bar.close()
    except KeyboardInterrupt as error:
        raise KeyboardInterrupt(
            "nothing was written: figures are put together when every window has run. "
            "Run it again, with fewer --tokens for less time."
        ) from error


def _require_place(out: Path, checkpoint: str) -> None:
    """A build of the same checkpoint, or a folder of its own."""
    from oscc.build import BuildFolder
    from oscc.cli.results import require_place
    from oscc.errors import RequestError
    from oscc.verbs.evaluate import FORMAT

    if not (out / "manifest.json").is_file():
        require_place(out, "evaluate.json", FORMAT)
        return
    made_from = BuildFolder.open(out).program().provenance.get("checkpoint_sha256")
    if made_from != checkpoint:
        raise RequestError(
            f"`{out}` was compiled from checkpoint {str(made_from)[:8]}, this one is "
            f"{checkpoint[:8]}. Choose another -o."
        )


def _write(run: Run, out: Path, content: dict[str, Any]) -> Path:
    from oscc.build import BuildFolder
    from oscc.cli.results import write_into

    run.log.folder = out
    if not (out / "manifest.json").is_file():
        write_into(out, "evaluate.json", content)
        return out / "evaluate.json"
    folder = BuildFolder.open(out)
    with folder.locked():
        return folder.write_json("evaluate.json", content)


def _show(content: dict[str, Any], path: Path) -> None:
    from oscc.units import counted, grouped

    tokens = grouped(content["tokens"])
    change = content["bpc_phase"] - content["bpc_digital"]
    rows = [
        ("digital", f"{content['bpc_digital']:.4f}", "", tokens),
        ("phase", f"{content['bpc_phase']:.4f}", f"{change:+.4f}", tokens),
    ]
    if content["engine"] != "phase":
        rows.append(
            (
                content["engine"],
                f"{content['bpc_hardware']:.4f}",
                f"{content['delta_bpc']:+.4f}",
                tokens,
            )
        )
    unit = content.get("unit", "character")
    columns = ("engine", f"bits per {unit}", "Δ digital", "tokens")
    table(columns, rows, right=(1, 2, 3))
    error = content["delta_se"]
    spread = "one window, no error estimate" if error is None else f"± {error:.4f}"
    say(
        f"Δ of {content['engine']} {spread} (1 σ, paired over "
        f"{counted(content['windows'], 'window')}) · top-1 agreement "
        f"{100 * content['top1_agreement']:.2f} % · "
        f"KL {content['kl_nats']:.2e} nats"
    )
    _show_layers(content["layers"])
    for one in content.get("correlations", ()):
        say(f"{one['correlation']}: {one['rms_nat']:.2g} nat rms")
    if content["periods_per_stage"] is not None:
        say(f"{content['periods_per_stage']:.1f} oscillator periods a stage on average")
    say(f"wrote {wrote(path)}")


def _show_layers(layers: list[dict[str, Any]]) -> None:
    from oscc.units import counted, grouped, si_text

    for layer in layers:
        if layer["rms_rad"] is None:
            say(
                f"{layer['stage']}: {layer['rms_coherence']:.3g} rms in cos over "
                f"{grouped(layer['cells'])} cells, {layer['slips']} flipped, "
                f"{layer['undecided']} undecided"
            )
            continue
        error = si_text(layer["rms_rad"], "rad")
        say(f"{layer['stage']}: {error} rms, {counted(layer['slips'], 'slip')}")
