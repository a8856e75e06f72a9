"""One function a verb: the Python API, and the only place that sees every package."""
