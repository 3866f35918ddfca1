"""Object code before it is linked, and the shelf where a disk cache keeps that of one program."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from codegen.emission.emit import Emitted
from codegen.emission.straight import modules
from codegen.engine import Image, Library, compile_modules, link
from codegen.errors import LoweringError, WorkbenchError
from codegen.functions.symbols import addresses_of
from codegen.ir.program import Program
from codegen.ir.region import RolledProgram
from codegen.machine.storage.cache import Cache, key_of
from codegen.machine.storage.own_functions import apart, own_addresses
from codegen.machine.storage.portable import encode
from codegen.options import Options


@dataclass(frozen=True)
class ObjectCode:
    """Object files, the functions that they call, by name and ours as text, and what else is kept (data for JSON)."""

    image: Image
    symbols: tuple[str, ...]
    own: dict[str, str]
    facts: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, emitted: Emitted, level: int) -> ObjectCode:
        """Compile IR."""
        emitted, own = apart(emitted)
        symbols = tuple(name for name, found in emitted.symbols.items() if found.addresses)
        return cls(compile_modules(modules(emitted), level), symbols, own)

    def linked(self) -> Library:
        """Bind the functions that it calls; LoweringError for one that this machine lacks."""
        return link(self.image, ("kernel",), addresses_of(self.symbols) | own_addresses(self.own))


class Shelf:
    """Where a cache keeps the object code of one program, with a label for each form; without a cache, nowhere."""

    __slots__ = ("_cache", "_key", "_name")

    def __init__(self, cache: Cache | None, program: Program | RolledProgram, options: Options) -> None:
        self._cache, self._name, self._key = cache, program.name, ""
        if cache is not None:
            try:
                threads = options.threads if isinstance(program, RolledProgram) else 1  # others have the same code
                self._key = key_of(
                    encode(program, replace(options, tier="default", threads=threads))
                )  # tier: the label
            except WorkbenchError:  # a program that files cannot hold is compiled each time, or refused there
                self._cache = None

    def load(self, label: str) -> tuple[ObjectCode, Library] | None:
        """Return what was stored, linked; None for nothing, and where it calls a function that this machine lacks."""
        found = None if self._cache is None else self._cache.load(self._entry(label))
        if found is None:
            return None
        content, parts = found
        code = ObjectCode(Image(tuple(parts), (0.0, 0.0)), tuple(content["symbols"]), content["own"], content["facts"])
        try:
            return code, code.linked()
        except LoweringError:
            return None

    def store(self, label: str, code: ObjectCode) -> None:
        """Store object code."""
        if self._cache is not None:
            content = {
                "name": self._name,
                "label": label,
                "symbols": code.symbols,
                "own": code.own,
                "facts": code.facts,
            }
            self._cache.store(self._entry(label), content, code.image.parts)

    def library(self, label: str, make: Callable[[], ObjectCode]) -> Library:
        """Return the machine code of a label, made and stored where it is not there."""
        found = self.load(label)
        if found is not None:
            return found[1]
        code = make()
        self.store(label, code)
        return code.linked()

    def _entry(self, label: str) -> str:
        return hashlib.sha256(f"{self._key} {label}".encode()).hexdigest()
