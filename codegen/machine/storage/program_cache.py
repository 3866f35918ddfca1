"""Object code before linking, and the cache entry of one program."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import asdict, field, replace
from typing import Any

from codegen.code_memory import MachineCode, MappedCode
from codegen.emission.emit import Emitted
from codegen.emission.straight import modules
from codegen.encoding.encode import Encoded
from codegen.engine import Image, compile_modules, link
from codegen.errors import LoweringError, WorkbenchError
from codegen.functions.symbols import addresses_of
from codegen.ir.program import Program
from codegen.ir.region import RolledProgram
from codegen.machine.storage.cache import Cache, key_of
from codegen.machine.storage.own_functions import apart, complete, own_addresses
from codegen.machine.storage.portable import encode
from codegen.options import Options
from codegen.records import dataclass


@dataclass(frozen=True)
class Places:
    """Where code without an object file begins, is entered, and has the addresses of functions."""

    begin: int
    entry: int
    called: dict[str, int]

    @property
    def entries(self) -> dict[str, int]:
        """Where functions begin: the kernel, and the operations that it goes on to."""
        return {"kernel": self.entry, "kernel.0": self.begin}


@dataclass(frozen=True)
class ObjectCode:
    """Object files, the functions that they call, by name and ours as text, and further data for JSON.

    Code of our encoder (`codegen.encoding`) is no object file, but machine code with its `places`.
    """

    image: Image
    symbols: tuple[str, ...]
    own: dict[str, str]
    facts: dict[str, Any] = field(default_factory=dict)
    places: Places | None = None

    @classmethod
    def of(cls, emitted: Emitted, level: int) -> ObjectCode:
        """Compile IR."""
        emitted, own = apart(emitted)
        symbols = tuple(name for name, symbol in emitted.symbols.items() if symbol.addresses)
        return cls(compile_modules(modules(emitted), level), symbols, own)

    @classmethod
    def encoded(cls, encoded: Encoded, seconds: float) -> ObjectCode:
        """Take encoded machine code, and the seconds that it took."""
        texts = {name: encoded.symbols[name].text for name in encoded.called}
        own = {name: complete(name, encoded.symbols) for name, text in texts.items() if not text.startswith("declare")}
        symbols = tuple(name for name in encoded.called if name not in own)
        image = Image((encoded.code,), (0.0, seconds))
        return cls(image, symbols, own, places=Places(encoded.begin, encoded.entry, encoded.called))

    @property
    def code_bytes(self) -> int:
        """Size of the machine code alone."""
        return self.image.code_bytes if self.places is None else len(self.image.code) - self.places.begin

    def linked(self) -> MachineCode:
        """Bind the functions that it calls; LoweringError for one that this machine lacks."""
        addresses = addresses_of(self.symbols) | own_addresses(self.own)
        if self.places is None:
            return link(self.image, ("kernel",), addresses)
        return MappedCode(self.image.code, self.places.called, addresses, self.places.entries)


class ProgramCache:
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

    def load(self, label: str) -> tuple[ObjectCode, MachineCode] | None:
        """Return the stored code, linked; None without any, and where it calls a function that this machine lacks."""
        entry = None if self._cache is None else self._cache.load(self._entry(label))
        if entry is None:
            return None
        content, parts = entry
        places = None if content["places"] is None else Places(**content["places"])
        image = Image(tuple(parts), (0.0, 0.0))
        code = ObjectCode(image, tuple(content["symbols"]), content["own"], content["facts"], places)
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
                "places": None if code.places is None else asdict(code.places),
            }
            self._cache.store(self._entry(label), content, code.image.parts)

    def library(self, label: str, make: Callable[[], ObjectCode]) -> MachineCode:
        """Return the machine code of a label, made and stored where it is not there."""
        stored = self.load(label)
        if stored is not None:
            return stored[1]
        code = make()
        self.store(label, code)
        return code.linked()

    def _entry(self, label: str) -> str:
        return hashlib.sha256(f"{self._key} {label}".encode()).hexdigest()
