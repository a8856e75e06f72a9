"""Scripts of benchmarks and of the documentation as modules, for tests of them."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType


def load_script(path: Path) -> ModuleType:
    """The module of a script, run once as an import would; its folder is not searched.

    Args:
        path: Path of the script.

    Example:
        >>> load_script(Path(__file__)).__name__
        'scripts'
    """
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None, path
    assert spec.loader is not None, path
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
