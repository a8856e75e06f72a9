"""Decorator of the compiled kernels, typed for the checker.

A kernel and all that it calls stand in one file: the disk cache of numba looks at the
age of the kernel's own file alone. No reassociation is allowed, so that results do not
depend on how many lanes the machine takes at once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

Kernel = TypeVar("Kernel", bound=Callable[..., Any])


def compiled(kernel: Kernel) -> Kernel:
    """Compile on first use, keep on disk, run without the interpreter lock.

    The error model of numpy leaves out the check for a division by zero, which would
    stop the loops from being vectorised (2.5 to 3.2 times slower).

    For functions in a file; numba keeps what it compiled beside that file.
    """
    jit = numba.njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
    return cast(Kernel, jit(kernel))


def inlined(kernel: Kernel) -> Kernel:
    """As `compiled`, for small functions that a kernel calls in its inner loop."""
    jit = numba.njit(
        inline="always", nogil=True, error_model="numpy", fastmath={"contract"}
    )
    return cast(Kernel, jit(kernel))
