"""Engines: from artefacts to observables."""
