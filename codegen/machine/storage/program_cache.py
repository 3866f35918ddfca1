"""Object code before linking, and the cache entry of one program.

Our own functions are compiled once in a process and linked to every kernel that calls them. The text of a kernel has
them written out, for reading and export; compiling them with each kernel would take several times as long as a small
kernel.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import field, replace
from typing import Any

from codegen.code_memory import MachineCode, MappedCode, PlacedCode
from codegen.emission.emit import Emitted
from codegen.emission.straight import declaration, modules
from codegen.encoding.encode import Encoded
from codegen.engine import Image, Once, compile_modules, compile_object, link
from codegen.errors import LoweringError, WorkbenchError
from codegen.functions.symbols import Symbol, addresses_of
from codegen.ir.program import Program
from codegen.ir.region import RolledProgram
from codegen.machine.storage.cache import Cache, key_of
from codegen.machine.storage.portable import encode
from codegen.options import Options
from codegen.records import dataclass

OWN = "symad."
NAMED = r" %\w+"
CALLED = r"@([\w.]+)"
WRAPPERS = r"(?m)^define .*@(scipy\.[\w.]+)\("


def apart(emitted: Emitted) -> tuple[Emitted, dict[str, str]]:
    """Return a kernel's code with declarations of our functions, and text of each that it calls, complete.

    >>> exp = Symbol("symad.exp.f64", "define internal double @symad.exp.f64(double %x0) noinline nounwind {\\nret double 1.0\\n}")
    >>> code, own = apart(Emitted([], ["%y=call double @symad.exp.f64(double %x)"], {exp.name: exp}))
    >>> code.declarations
    'declare double @symad.exp.f64(double) nounwind'
    >>> own["symad.exp.f64"].splitlines()[0]
    'define double @symad.exp.f64(double %x0) noinline nounwind {'
    """  # noqa: E501
    symbols = emitted.symbols
    if not any(name.startswith(OWN) for name in symbols):
        return emitted, {}
    kept: dict[str, Symbol] = {}
    texts: dict[str, str] = {}
    waiting = [*emitted.chunks, *emitted.functions]
    while waiting:
        for name in dict.fromkeys(re.findall(CALLED, waiting.pop())):
            if name not in symbols or name in kept:
                continue
            kept[name] = symbols[name]
            if name.startswith(OWN):
                kept[name] = symbols[name]._replace(text=re.sub(NAMED, "", declaration(symbols[name].text)))
                texts[name] = complete(name, symbols)
            waiting.append(kept[name].text)
    return Emitted(emitted.chunks, emitted.functions, kept), texts


def own_addresses(texts: Mapping[str, str]) -> dict[str, int]:
    """Return the addresses of our functions, compiled where they are not yet."""
    return {name: _library(name, text).addresses[name] for name, text in texts.items()}


@Once
def _library(name: str, text: str) -> MachineCode:
    return link(own_object(name, text), (name,), addresses_of(wrappers(text)))


def wrappers(text: str) -> list[str]:
    """Return the wrappers of SciPy's loops in a text, which need addresses.

    >>> from codegen.functions.symbols import symbol
    >>> wrappers(complete("scipy.psi.1.0", {"scipy.psi.1.0": symbol("scipy.psi.1.0", 1)}))
    ['scipy.psi.1.0']
    """
    return re.findall(WRAPPERS, text)


@Once
def own_object(name: str, text: str) -> Image:
    """Return one of our functions as an object file."""
    return compile_object(text)


def complete(name: str, symbols: Mapping[str, Symbol]) -> str:
    """Return the text of a function that others can call, with all that it needs."""
    needed, waiting = {name: symbols[name].text.replace("define internal", "define", 1)}, [symbols[name].text]
    while waiting:
        for other in re.findall(CALLED, waiting.pop()):
            if other not in needed and other in symbols:
                needed[other] = symbols[other].text
                waiting.append(symbols[other].text)
    return "\n".join(needed.values())


@dataclass(frozen=True)
class ObjectCode:
    """Object files, the functions that they call, by name and ours as text, and further data for JSON.

    Code of our encoder (`codegen.encoding`) is no object file, but `placed`.
    """

    image: Image
    symbols: tuple[str, ...]
    own: dict[str, str]
    facts: dict[str, Any] = field(default_factory=dict)
    placed: PlacedCode | None = None

    @classmethod
    def of(cls, emitted: Emitted, level: int) -> ObjectCode:
        """Compile IR."""
        emitted, own = apart(emitted)
        symbols = tuple(name for name, symbol in emitted.symbols.items() if symbol.addresses)
        return cls(compile_modules(modules(emitted), level), symbols, own)

    @classmethod
    def encoded(cls, encoded: Encoded, seconds: float) -> ObjectCode:
        """Take encoded machine code, and the seconds that it took."""
        called = encoded.placed.called
        texts = {name: encoded.symbols[name].text for name in called}
        own = {name: complete(name, encoded.symbols) for name, text in texts.items() if not text.startswith("declare")}
        symbols = tuple(name for name in called if name not in own)
        return cls(Image((encoded.placed.code,), (0.0, seconds)), symbols, own, placed=encoded.placed)

    @property
    def code_bytes(self) -> int:
        """Size of the machine code alone."""
        placed = self.placed
        return self.image.code_bytes if placed is None else len(placed.code) - placed.entries["kernel.0"]

    def linked(self) -> MachineCode:
        """Bind the functions that it calls; LoweringError for one that this machine lacks."""
        addresses = addresses_of(self.symbols) | own_addresses(self.own)
        if self.placed is None:
            return link(self.image, ("kernel",), addresses)
        return MappedCode(self.placed, addresses)


class ProgramCache:
    """Where a cache keeps the object code of one program, with a label for each form; without a cache, nowhere."""

    def __init__(self, cache: Cache | None, program: Program | RolledProgram, options: Options) -> None:
        self.program, self.options = program, options
        self._cache, self._key = cache, ""
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
        image, places = Image(tuple(parts), (0.0, 0.0)), content["places"]
        placed = PlacedCode(image.code, *places) if places else None
        code = ObjectCode(image, tuple(content["symbols"]), content["own"], content["facts"], placed)
        try:
            return code, code.linked()
        except LoweringError:
            return None

    def store(self, label: str, code: ObjectCode) -> None:
        """Store object code."""
        if self._cache is not None:
            content = {
                "name": self.program.name,
                "label": label,
                "symbols": code.symbols,
                "own": code.own,
                "facts": code.facts,
                "places": None if code.placed is None else code.placed[1:3],  # entries, and what is called
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
