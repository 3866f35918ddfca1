"""Instructions by two routes: what the encoder writes, read back and assembled by LLVM, are the same bytes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import product

import llvmlite.binding as llvm
import pytest
import sympy as sp

from codegen.encoding.disassembly import instructions, listing
from codegen.encoding.encode import encode
from codegen.encoding.x86_instructions import (
    FORMS,
    NEXT,
    R12,
    R13,
    before_displacement,
    displaced,
    in_registers,
    pointer_before_displacement,
    width_of,
)
from codegen.engine import compile_object
from codegen.errors import InvariantError
from codegen.expressions.sympy_in import program_from_sympy
from codegen.lowering.halves import split
from codegen.lowering.lower import lower
from tests.support.draws import seeded
from tests.support.encoded_fuzz import encoded_sweep, make


def assembled(texts: list[str]) -> bytes:
    """The bytes that LLVM makes of assembly."""
    llvm.initialize_native_asmparser()
    lines = "".join(f'module asm "{text}"\n' for text in [".text", *texts])
    file = llvm.ObjectFileRef.from_data(compile_object(lines).code)
    (found,) = [section.data() for section in file.sections() if section.is_text() and section.size()]
    return bytes(found)


def immediate(code: str) -> bytes:
    return b"\x90" if FORMS[code].name == "vblendvpd" else b"\x09" if FORMS[code].immediate else b""


def registers(code: str, numbers: Sequence[int]) -> list[int]:
    """Numbers of registers, as many as there are of each kind."""
    return [n % {"k": 8, "z": 32}.get(kind, 16) for n, kind in zip(numbers, FORMS[code].registers, strict=True)]


def test_every_form_on_registers() -> None:
    numbers = (0, 3, 7, 8, 15, 16, 29)
    codes = [code for code in FORMS if not (code.startswith(("load", "store", "moved")) or FORMS[code].spread)]
    made = b"".join(
        in_registers(code, *registers(code, given)) + immediate(code)
        for code in codes
        for given in product(numbers, repeat=3)
    )
    texts = [text for _, text, _ in instructions(made, 0, len(made))]
    assert len(texts) == len(codes) * len(numbers) ** 3
    assert assembled(texts) == made


def test_every_form_on_memory() -> None:
    made = b""
    codes = [code for code in FORMS if not code.startswith(("move", "blend")) and "mask" not in code]
    displacements = (0, 8, 120, 128, -128, -136, 512, 8192, 1 << 20)
    for code, base, displacement in product(codes, (*range(16), NEXT), displacements):
        for given in product((0, 9, 25), (7, 12, 22)):
            first, middle, _ = registers(code, (*given, 0))
            written = displaced(code, displacement, base)
            made += before_displacement(code, first, middle, base, len(written)) + written + immediate(code)
    texts = [text for _, text, _ in instructions(made, 0, len(made))]
    assert assembled([re.sub(r"^(\S+ (?:\$\d+, )?)\(%rip", r"\g<1>0(%rip", text) for text in texts]) == made


def test_loads_of_pointers() -> None:
    made = b""
    for first, base, displacement in product((0, 7, 14), (0, R12, R13), (0, 8, 128)):
        width = width_of(displacement, base)
        made += pointer_before_displacement(first, base, width) + displacement.to_bytes(width, "little")
    texts = [text for _, text, _ in instructions(made, 0, len(made))]
    assert assembled(texts) == made


@pytest.mark.parametrize("seed", range(40))
def test_whole_kernels(seed: int) -> None:
    program, lowered = make(seeded(seed)).program()
    made = (encoded_sweep(program, split(program, lowered)) if program.seeded else encode(program, lowered)).placed
    begin = made.entries["kernel.0"]
    read = list(instructions(made.code, begin, len(made.code)))
    assert read[-1][1] == "jmp kernel.0"
    assert read[-1][2] == begin
    texts = [re.sub(r"^(j\w+) ", r"{disp32} \1 ", text) for _, text, _ in read[:-1]]  # else LLVM takes a short jump
    assert assembled(texts) == made.code[begin : read[-2][0]]
    places = {place for _, text, place in read[:-1] if "rip" in text and place is not None}
    assert all(0 <= place < begin for place in places)
    assert {place for called in made.called.values() for place in called} <= places


def test_constants_and_functions_are_named() -> None:
    x = sp.Symbol("x")
    program = program_from_sympy([x], [sp.exp(x) * 3 + sp.tan(x)])
    made = encode(program, lower(program))
    text = listing(made.placed)
    assert re.search(r"callq \*-\d+\(%rip\)  # symad\.exp\.f64", text)
    assert "# 3.0" in text


def test_other_bytes_are_refused() -> None:
    for code in (b"\x0f\x05\x90\x90", b"\xc5\xfb\xff\xc0\x90"):
        with pytest.raises(InvariantError, match="it begins no known instruction"):
            list(instructions(code, 0, len(code)))
