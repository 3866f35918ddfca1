"""Keep: kernels in files, and their object code on the shelf of a disk cache."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from codegen.cache import Cache, key_of
from codegen.compiled import Built, Pack, Stats, Unpack
from codegen.engine import Image
from codegen.errors import ArgumentError, WorkbenchError
from codegen.options import Options, Tier
from codegen.portable import Portable, decode, encode
from codegen.program import Program
from codegen.sealed import refused, write_atomically

Restore = Callable[[Any, Program], tuple[Pack | None, Unpack | None]]


class Shelf:
    """Where a cache keeps the object code of one program, an entry for each tier; without a cache, nowhere."""

    def __init__(self, cache: Cache | None, program: Program, options: Options) -> None:
        self.program, self.options, self._cache = program, options, cache
        self._portable = b""
        if cache is not None:
            try:
                self._portable = encode(program, replace(options, tier="default"))
            except WorkbenchError:  # a program that files cannot hold is compiled each time, or refused there
                self._cache = None

    def load(self, tier: Tier) -> Built | None:
        """Return what was stored, None where that is nothing."""
        found = None if self._cache is None else self._cache.load(key_of(self._portable, tier))
        if found is None:
            return None
        content, parts = found
        stats = replace(Stats(**content["stats"]), seconds={}, cached=True)
        return Built(Image(tuple(parts), (0.0, 0.0)), tuple(content["symbols"]), stats, content["release"])

    def store(self, tier: Tier, built: Built) -> None:
        """Store object code."""
        if self._cache is not None:
            content = {"stats": asdict(built.stats), "symbols": built.symbols, "release": built.release}
            self._cache.store(key_of(self._portable, tier), {"name": self.program.name, **content}, built.image.parts)


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
    except OSError as error:
        raise ArgumentError(
            f"cannot write {os.fspath(path)!r}", why=str(error.strerror), do="choose another path"
        ) from error


def read_kernel(path: str | os.PathLike[str], restore: Restore | None) -> tuple[Portable, Pack | None, Unpack | None]:
    """Return what a kernel's file holds; ArgumentError for a file that is none, or holds containers unknown here."""
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise ArgumentError(f"cannot read {os.fspath(path)!r}", why=str(error.strerror), do="check the path") from error
    found = decode(data, os.fspath(path))
    if found.containers is None:
        return found, None, None
    if restore is None:
        raise ArgumentError(
            "a kernel that takes or returns containers", where=os.fspath(path), do="load it with symad.load"
        )
    try:
        return found, *restore(found.containers, found.program)
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise refused(os.fspath(path), f"its containers are none ({error})") from error
