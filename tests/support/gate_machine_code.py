"""The machine code of the call gate for x86-64, as LLVM makes it: `python -m tests.support.gate_machine_code` keeps it.

It is written for every processor of that kind, with all addresses in full (LLVM's large code model), so that it can be
copied to any place and the addresses put in.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import NamedTuple

import llvmlite
import llvmlite.binding as llvm

from codegen.lanes import FLOAT64
from codegen.machine.calls import gate_code
from codegen.machine.calls.gate_routines import EXPORTED, IDENTITY, MOST_ARRAYS, MOST_DIMENSIONS, gate_text

TRIPLE = "x86_64-unknown-linux-gnu"
ADDRESS = 1  # R_X86_64_64: a whole address, the only kind of relocation that there may be
WIDTH = 116  # digits of a line


class MachineCode(NamedTuple):
    """What `gate_code.py` has."""

    code: bytes
    called: dict[str, tuple[int, ...]]
    inside: dict[int, int]
    entries: dict[str, int]


class Symbol(NamedTuple):
    """Of an object file."""

    name: str
    section: int
    value: int


def made() -> MachineCode:
    """Compile the gate anew."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    module = llvm.parse_assembly(gate_text(FLOAT64))
    module.verify()
    machine = llvm.Target.from_triple(TRIPLE).create_target_machine(
        cpu="x86-64", features="", opt=2, reloc="static", codemodel="large"
    )
    return taken_apart(machine.emit_object(module))


def taken_apart(image: bytes) -> MachineCode:
    """Return the code of an object file, its constants behind it, and where addresses belong."""
    sections = _sections(image)
    names = [name for name, _ in sections]
    data = dict(sections)
    places = {names.index(".ltext"): 0, names.index(".rodata.cst8"): -len(data[".ltext"]) % 16 + len(data[".ltext"])}
    code = data[".ltext"] + bytes(-len(data[".ltext"]) % 16) + data[".rodata.cst8"]
    symbols = _symbols(data[".symtab"], data[".strtab"])
    called: dict[str, tuple[int, ...]] = {}
    inside: dict[int, int] = {}
    for place, kind, addend in struct.iter_unpack("<QQq", data[".rela.ltext"]):
        symbol = symbols[kind >> 32]
        assert kind & 0xFFFFFFFF == ADDRESS, (symbol, kind)
        if symbol.section:
            inside[place] = places[symbol.section] + symbol.value + addend
        else:
            assert not addend
            called[symbol.name] = (*called.get(symbol.name, ()), place)
    entries = {symbol.name: symbol.value for symbol in symbols if symbol.name in EXPORTED}
    return MachineCode(code, called, inside, {name: entries[name] for name in EXPORTED})


def _sections(image: bytes) -> list[tuple[str, bytes]]:
    """Names and bytes of the sections of an ELF file."""
    (start,) = struct.unpack_from("<Q", image, 40)
    size, count, of_names = struct.unpack_from("<HHH", image, 58)
    heads = [struct.unpack_from("<IIQQQQ", image, start + size * k) for k in range(count)]
    bodies = [image[head[4] : head[4] + head[5]] for head in heads]
    return [(_text(bodies[of_names], head[0]), body) for head, body in zip(heads, bodies, strict=True)]


def _symbols(table: bytes, names: bytes) -> list[Symbol]:
    return [Symbol(_text(names, name), section, value) for name, _, _, section, value, _ in
            struct.iter_unpack("<IBBHQQ", table)]  # fmt: skip


def _text(names: bytes, start: int) -> str:
    return names[start : names.index(b"\0", start)].decode()


def module_of(found: MachineCode) -> str:
    """Return the text of `gate_code.py`."""
    digits = found.code.hex()
    lines = "\n".join(f'    "{digits[k : k + WIDTH]}"' for k in range(0, len(digits), WIDTH))
    return f'''"""The call gate for x86-64 under Linux, written by `python -m tests.support.gate_machine_code`.

A test makes it anew by the same version of LLVM, and compares the bytes.
"""

LLVM = {".".join(map(str, llvm.llvm_version_info))!r}
IDENTITY = {IDENTITY!r}
MOST_ARRAYS, MOST_DIMENSIONS = {MOST_ARRAYS}, {MOST_DIMENSIONS}  # that it takes
ENTRIES = {found.entries!r}
CALLED = {{  # places of the addresses of what is not in here
{"".join(f"    {name!r}: {places!r},{chr(10)}" for name, places in sorted(found.called.items()))}}}
INSIDE = {{  # places of addresses in the code itself, and how far these are from its beginning
{"".join(f"    {place}: {target},{chr(10)}" for place, target in found.inside.items())}}}
CODE = (
{lines}
)
'''


if __name__ == "__main__":
    Path(gate_code.__file__).write_text(module_of(made()), encoding="utf-8")
    print(f"{gate_code.__file__}: written by llvmlite {llvmlite.__version__}")
