"""Load an ELF object file without a linker: one block of machine code and its relocations.

LLVM writes our code for any place in memory (its large model): all addresses are 64 bits, and of whole symbols. So code
that was compiled once is run by a process without LLVM: it is copied, and addresses are written into it. Distances in
the block, of code that may stand anywhere (position independent), are written at once. What has anything else is
refused, and goes to LLVM's linker: other relocations, data that code writes to, functions that objects define twice.

Source: System V Application Binary Interface, AMD64 Architecture Processor Supplement, sections 4.3 and 4.4.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import NamedTuple

from codegen.code_memory import PlacedCode

MAGIC, MACHINE, RELOCATABLE = b"\x7fELF\x02\x01", 62, 1
_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_ADDED = struct.Struct("<QQq")  # a relocation: where, what, and how far behind it
PROGRAM, SYMBOLS, RELOCATIONS, EMPTY, OTHER_RELOCATIONS = 1, 2, 4, 8, 9  # kinds of sections
WRITE, ALLOCATE, THREADS = 1, 2, 1 << 10  # flags of sections
ABSOLUTE_64, DISTANCES = 1, (2, 4)  # R_X86_64_64; R_X86_64_PC32, R_X86_64_PLT32
UNDEFINED, FIRST_RESERVED = 0, 0xFF00
LOCAL = 0
UNWINDING = (".eh_frame",)  # for debuggers


class UnknownObjectError(ValueError):
    """An object file that needs a linker."""


class _Section(NamedTuple):
    name: int
    kind: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    info: int
    alignment: int
    entry: int


class _Symbol(NamedTuple):
    name: str
    binding: int
    section: int
    value: int


def placed(parts: Sequence[bytes], first: PlacedCode | None = None) -> PlacedCode:
    """Return object files as one block, behind code that is one; UnknownObjectError where that needs a linker.

    >>> from codegen.engine import compile_object, identity
    >>> made = compile_object("define i32 @one() { ret i32 1 }")
    >>> "x86_64" not in identity()["triple"] or placed(made.parts).entries
    {'one': 0}
    """
    block = _SectionBlock()
    if first is not None:
        block.begin(first)
    for part in parts:
        try:
            block.add(_Object(part))
        except (struct.error, IndexError, UnicodeDecodeError) as error:
            raise UnknownObjectError(f"an object file that is damaged: {error}") from error
    return block.linked()


class _Object:
    """An object file, taken apart."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        if data[: len(MAGIC)] != MAGIC:
            raise UnknownObjectError("no object file of 64 bits")
        header = _HEADER.unpack_from(data)
        kind, machine, start, size, count = header[1], header[2], header[6], header[11], header[12]
        if kind != RELOCATABLE or machine != MACHINE or size != _SECTION.size:
            raise UnknownObjectError("an object file for another machine")
        self.sections = [_Section(*_SECTION.unpack_from(data, start + k * size)) for k in range(count)]
        self.names = self.sections[header[13]]
        tables = [section for section in self.sections if section.kind == SYMBOLS]
        self.symbols = list(self._symbols(tables[0])) if tables else []

    def _symbols(self, table: _Section) -> list[_Symbol]:
        names, symbols = self.sections[table.link], []
        for place in range(table.offset, table.offset + table.size, _SYMBOL.size):
            name, info, _, section, value, _ = _SYMBOL.unpack_from(self.data, place)
            symbols.append(_Symbol(self.text(names, name), info >> 4, section, value))
        return symbols

    def text(self, table: _Section, start: int) -> str:
        """Return a name in a table."""
        begin = table.offset + start
        return self.data[begin : self.data.index(b"\0", begin)].decode("ascii")

    def wanted(self, section: _Section) -> bool:
        """Whether a section is in memory when code runs."""
        return bool(section.flags & ALLOCATE) and self.text(self.names, section.name) not in UNWINDING


class _SectionBlock:
    """Sections behind one another; relocations wait until all names are known."""

    def __init__(self) -> None:
        self.code = bytearray()
        self.entries: dict[str, int] = {}
        self.waiting: list[tuple[int, str | int, int]] = []  # where, a name or a place, how far behind

    def begin(self, first: PlacedCode) -> None:
        """Take code that is a block already."""
        self.code += first.code
        self.entries |= first.entries
        self.waiting += [(place, name, 0) for name, places in first.called.items() for place in places]
        self.waiting += [(place, target, 0) for place, target in first.inside.items()]

    def add(self, part: _Object) -> None:
        """Take the sections of an object file, and note its functions and relocations."""
        places: dict[int, int] = {}
        for number, section in enumerate(part.sections):
            if part.wanted(section) and section.size:
                places[number] = self._place(part, section)
        for symbol in part.symbols:
            if symbol.binding != LOCAL and symbol.section in places:
                if symbol.name in self.entries:
                    raise UnknownObjectError(f"two functions {symbol.name}")
                self.entries[symbol.name] = places[symbol.section] + symbol.value
        for section in part.sections:
            if section.kind == OTHER_RELOCATIONS and section.info in places:
                raise UnknownObjectError("relocations without addends")
            if section.kind == RELOCATIONS and section.info in places:
                self._wait(part, section, places)

    def _place(self, part: _Object, section: _Section) -> int:
        if section.kind != PROGRAM or section.flags & (WRITE | THREADS):
            raise UnknownObjectError("a section of data that changes")
        self.code += bytes(-len(self.code) % max(section.alignment, 1))
        start = len(self.code)
        self.code += part.data[section.offset : section.offset + section.size]
        return start

    def _wait(self, part: _Object, section: _Section, places: dict[int, int]) -> None:
        start = places[section.info]
        for place in range(section.offset, section.offset + section.size, _ADDED.size):
            where, what, behind = _ADDED.unpack_from(part.data, place)
            symbol = part.symbols[what >> 32]
            if what & 0xFFFFFFFF in DISTANCES and symbol.section in places:
                distance = places[symbol.section] + symbol.value + behind - start - where
                self.code[start + where : start + where + 4] = distance.to_bytes(4, "little", signed=True)
            elif what & 0xFFFFFFFF != ABSOLUTE_64 or symbol.section >= FIRST_RESERVED:
                raise UnknownObjectError(f"a relocation of kind {what & 0xFFFFFFFF}")
            elif symbol.section == UNDEFINED:
                self.waiting.append((start + where, symbol.name, behind))
            elif symbol.section in places:
                self.waiting.append((start + where, places[symbol.section] + symbol.value, behind))
            else:
                raise UnknownObjectError("the address of a section that is not in memory")

    def linked(self) -> PlacedCode:
        """Return the block; names that nobody defines are those of functions elsewhere."""
        called: dict[str, list[int]] = {}
        inside: dict[int, int] = {}
        for place, target, behind in self.waiting:
            known = self.entries.get(target) if isinstance(target, str) else target
            if known is not None:
                inside[place] = known + behind
            elif behind:
                raise UnknownObjectError(f"a place behind {target}")
            else:
                called.setdefault(str(target), []).append(place)
        return PlacedCode(
            bytes(self.code), self.entries, {name: tuple(places) for name, places in called.items()}, inside
        )
