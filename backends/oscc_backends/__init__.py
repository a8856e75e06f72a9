"""Backends: from the IR to artefacts."""
