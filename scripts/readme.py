"""Paste the figures of build/demo into README.md, and draw its picture."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DEMO = ROOT / "build" / "demo"
SHOWN = ("fsn-flow", "kuramoto-flow")
MARKED = re.compile(
    r"(<!-- demo: begin \(written by `make readme`\) -->\n).*?(<!-- demo: end -->)",
    flags=re.DOTALL,
)


def text_of(verb: str) -> str:
    """What a verb prints about the demo, without the line of the file it wrote."""
    command = [sys.executable, "-m", "oscc", verb, "build/demo"]
    if verb == "verify":
        command += ["--levels", ",".join(_levels()), "--tile"]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=False
    )
    if done.returncode not in (0, 1, 4):
        sys.exit(done.stderr or done.returncode)
    lines = [line for line in done.stdout.splitlines() if line[:6] != "wrote "]
    return "\n".join(f"    {line}" for line in lines)


def _levels() -> list[str]:
    verdict = json.loads((DEMO / "verify.json").read_text(encoding="utf-8"))
    return [
        f"spice:{level['engine']}" if level["level"] == "spice" else level["level"]
        for level in verdict["levels"]
    ]


def draw_picture() -> None:
    """Waveform of a target of the demo beside the phase that the model asked for."""
    from oscc.build import BuildFolder
    from oscc.device import card_from_mapping
    from oscc.files import write_atomic
    from oscc.pages.pictures import waveform_picture
    from oscc.pages.scene import make_scene

    program = BuildFolder.open(DEMO).program()
    card = card_from_mapping(program.device, "the demo's card")
    text = waveform_picture(make_scene(program.stages[0], card), card, alone=True)
    plain = text.replace("<svg ", '<svg style="background: white" ', 1)
    write_atomic(ROOT / "docs" / "waveform.svg", plain)


def _by_layer(layers: list[dict[str, float]]) -> str:
    rms = " and ".join(f"{1e3 * layer['rms_rad']:.2g}" for layer in layers)
    slips = sum(layer["slips"] for layer in layers)
    return f"layers {rms} mrad rms, {slips:.0f} slips"


def evaluated() -> str:
    """Two lines of the committed evaluation, `benchmarks/results/evaluate.json`."""
    path = ROOT / "benchmarks" / "results" / "evaluate.json"
    found = json.loads(path.read_text(encoding="utf-8"))["results"]
    return "\n".join(
        f"    {name}: {seen['bpc_digital']:.4f} bits per character digital, "
        f"{seen['bpc_hardware']:.4f} with the circuit in the loop "
        f"({seen['delta_bpc']:+.4f} ± {seen['delta_se']:.4f}; "
        f"{seen['tokens']} tokens, {seen['periods_per_stage']:.0f} periods a stage; "
        f"{_by_layer(seen['layers'])})"
        for name, seen in ((name, found[name]) for name in SHOWN)
    )


def main() -> None:
    """Replace what stands between the marks."""
    if not (DEMO / "energy.json").is_file():
        sys.exit("There is no demo yet: make demo")
    draw_picture()
    figures = "\n\n".join([text_of("verify"), text_of("energy"), evaluated()])
    path = ROOT / "README.md"
    page, count = MARKED.subn(
        lambda found: f"{found[1]}\n{figures}\n\n{found[2]}",
        path.read_text(encoding="utf-8"),
    )
    if count != 1:
        sys.exit("README.md must hold the two marks of the demo once")
    path.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
