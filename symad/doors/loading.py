"""`load`: a kernel from a file, or a problem from a folder."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from codegen.limits import limits
from codegen.machine.stored_kernels import load_kernel
from symad.doors.compiled_problem import CompiledProblem
from symad.doors.saved_problems import is_problem, read_problem, restored

if TYPE_CHECKING:
    from codegen.machine.storage.cache import Setting


def load(
    path: str | os.PathLike[str],
    *,
    cache: Setting = None,
    max_ops: int | None = None,
    max_seconds: float | None = None,
    max_bytes: float | None = None,
) -> Any:
    """Return the kernel that `kernel.save(path)` wrote, or the problem of `problem.save(folder)`, for this machine.

    The files are data: nothing of them is run, and what is damaged, no kernel's or problem's, or written by a newer
    version is refused (ArgumentError). `cache`, `max_ops`, `max_seconds` and `max_bytes` are those of `compile`: with a
    cache machine code is there at once the second time, and limits (LimitError) keep the program of a stranger from
    compiling for hours.

    >>> import tempfile
    >>> import symad as sa
    >>> kernel = sa.compile(lambda p: {"twice": 2 * p["a"]}, {"a": 1.0})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     kernel.save(f"{folder}/twice.symad")
    ...     sa.load(f"{folder}/twice.symad")({"a": 4.0})
    {'twice': 8.0}
    """
    with limits(max_ops, max_seconds, max_bytes):
        if is_problem(path):
            return CompiledProblem(read_problem(Path(path), cache))
        return load_kernel(path, cache=cache, restore=restored)
