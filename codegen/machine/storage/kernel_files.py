"""Save kernels to files."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from codegen.errors import ArgumentError
from codegen.ir.program import Declared
from codegen.machine.calls.compiled import Pack, Unpack
from codegen.machine.storage.portable import MALFORMED, Portable, decode
from codegen.sealed import refused, write_atomically

Restore = Callable[[Any, Declared], tuple[Pack | None, Unpack | None]]
UNREADABLE = (OSError, ValueError, TypeError)  # the last two for paths that are none: "", a zero byte, a number


def containers_of(pack: Pack | None, unpack: Unpack | None) -> dict[str, Any] | None:
    """Return how a kernel's containers are written into a file; ArgumentError for those that are no plain data."""
    if pack is None and unpack is None:
        return None
    return {name: _described(name, way) for name, way in (("arguments", pack), ("result", unpack))}


def _described(name: str, way: Any) -> Any:
    if way is None:
        return None
    if not hasattr(way, "portable"):
        raise ArgumentError(
            f"{name} that a function of its own takes apart",
            why="a file holds data and no code",
            do="pickle the kernel",
        )
    return way.portable(name)


def write_kernel(path: str | os.PathLike[str], data: bytes) -> None:
    """Write a kernel's file; ArgumentError when it cannot be written."""
    try:
        write_atomically(Path(path), data)
    except UNREADABLE as error:
        raise ArgumentError(f"cannot write {str(path)!r}", why=_reason(error), do="choose another path") from error


def read_program(data: bytes, where: str, restore: Restore | None) -> tuple[Portable, Pack | None, Unpack | None]:
    """Return the content of a kernel's file; ArgumentError for another file, or containers unknown here."""
    portable = decode(data, where)
    if portable.containers is None:
        return portable, None, None
    if restore is None:
        raise ArgumentError("a kernel that takes or returns containers", where=where, do="load it with symad.load")
    try:
        return portable, *restore(portable.containers, portable.program)
    except MALFORMED as error:
        raise refused(where, f"its containers are none ({error})") from error


def _reason(error: Exception) -> str:
    return error.strerror if isinstance(error, OSError) and error.strerror else str(error)
