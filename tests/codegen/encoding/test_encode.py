"""The encoder: kernels with the bits of LLVM's; what it leaves to LLVM is told; its pages are never written and run."""

from __future__ import annotations

import ctypes
import gc
import itertools
import logging
import platform
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sympy as sp

import codegen.code_memory
import codegen.encoding.encode
from codegen import Input, Output, compile_program
from codegen.code_memory import MappedCode, PlacedCode
from codegen.encoding.encode import _functions, encode, why_not
from codegen.encoding.registers import Registers, Workspace
from codegen.encoding.x86_instructions import R12, R14, RAX, RBX, RSP, pointer_before_displacement
from codegen.errors import WorkbenchError
from codegen.expressions.sympy_in import program_from_sympy
from codegen.functions.libraries import vector_symbol
from codegen.heads import copysign
from codegen.lowering.passes import prepare
from codegen.machine.storage.program_cache import ObjectCode, complete, own_addresses
from codegen.options import Options, Tier
from tests.support.draws import seeded
from tests.support.encoded_fuzz import ENTRY, Operations, check, make, pointers

X, Y = sp.symbols("x y", real=True)
PROGRAM = program_from_sympy([X, Y], [sp.exp(X) * Y + sp.sqrt(X), X / Y])


def bits(found: Any) -> bytes:
    return np.asarray(found).tobytes()


@pytest.mark.parametrize("seed", range(150))
def test_random_operations(seed: int) -> None:
    assert check(make(seeded(seed))).startswith("same bits")


def many_values(count: int) -> Operations:
    """All products first, then their sum from the last to the first: as many values live at once."""
    rows: list[Any] = [("input", k) for k in range(2)]
    rows += [("mul", 0, 1)] + [("add", 2 + k, 0) for k in range(count)]
    total = len(rows) - 1
    for k in range(count - 1, 1, -1):
        rows.append(("mul", total, 1 + k))
        total = len(rows) - 1
    return Operations(rows, [1, 1], [(1, None, [total])], 3)


@pytest.mark.parametrize("count", [10, 30, 1000, 9000])
def test_more_values_than_registers(count: int) -> None:
    """The largest has a workspace on the heap."""
    case = many_values(count)
    assert check(case) == "same bits: numbers"
    made = encode(*case.program())
    assert (made.workspace > 8192) == ("malloc" in made.placed.called) == ("free" in made.placed.called)
    assert (made.workspace > 8192) == (count == 9000)


def test_code_begins_behind_as_many_constants_as_it_needs() -> None:
    """One byte reaches 16 entries from the pointer among the constants; the code begins at a line of the cache."""
    assert encode(*many_values(1).program()).placed.entries["kernel.0"] == 128
    case = Operations([("input", 0), *[("const", np.float64(k).tobytes()) for k in range(2, 22)],
                       *[("mul", 0, 1 + k) for k in range(20)]], [1, 1], [(1, None, [40])], 3)  # fmt: skip
    assert encode(*case.program()).placed.entries["kernel.0"] % 64 == 0


@pytest.mark.parametrize(("base", "wanted"), [(RBX, "43"), (RSP, "4424"), (R12, "4424"), (R14, "46")])
def test_some_bases_need_a_byte_of_their_own(base: int, wanted: str) -> None:
    assert pointer_before_displacement(RAX, base, 1)[2:].hex() == wanted


def test_no_memory_for_the_workspace(monkeypatch: pytest.MonkeyPatch) -> None:
    code = ObjectCode.encoded(encode(*many_values(9000).program()), 0.0)
    assert code.placed is not None
    nothing = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_size_t)(lambda size: None)
    address = ctypes.cast(nothing, ctypes.c_void_p).value
    assert address is not None
    mapped = MappedCode(code.placed, {"malloc": address, "free": 0})
    arrays = [np.ones(1), np.ones(1)], [np.full(1, 5.0)]
    assert ENTRY(mapped.addresses["kernel"])(*map(pointers, arrays)) == 1
    assert arrays[1][0] == 5.0


STRAIGHT = {
    "a polynomial": (X**3 * Y - 2 * X, ""),
    "three quotients": (X / Y + Y / X + X / (X + Y), "vdivpd"),
    "functions": (sp.exp(X) * sp.exp(Y) + sp.exp(X * Y), "symad.exp.v4f64"),
    "sine and cosine": (sp.sin(X) * sp.cos(X), "symad.sincos.f64"),
    "many operations": (sp.Add(*[X * k for k in range(2, 400)], evaluate=False), ""),
}


@pytest.mark.parametrize("name", STRAIGHT)
def test_every_tier_but_llvms_takes_it_for_straight_lines(name: str) -> None:
    formula, written = STRAIGHT[name]
    program = program_from_sympy([X, Y], [formula])
    tiers: tuple[Tier, ...] = ("default", "fast", "auto", "llvm")
    kernels = {tier: compile_program(program, tier=tier, cache=False) for tier in tiers}
    for tier, kernel in kernels.items():
        assert kernel.stats.generator == ("LLVM" if tier == "llvm" else "encoder")
        assert kernel.tier == ("default" if tier == "auto" else tier)
        assert kernel.wait()
    assert written in kernels["default"].assembly
    assert len({bits(kernel(0.7, 1.3)) for kernel in kernels.values()}) == 1


def test_signs_are_instructions() -> None:
    """Of one number and of several, also where both come from one register, or are read again."""
    products = [copysign(X * k, Y - k) * X for k in range(1, 10)]
    for results in ([copysign(X, Y), copysign(X, X)], products, [sp.Add(*products), *products]):
        program = program_from_sympy([X, Y], results)
        encoded, by_llvm = (compile_program(program, tier=tier, cache=False) for tier in ("fast", "llvm"))
        assert encoded.stats.generator == "encoder"
        assert "callq" not in encoded.assembly
        for point in itertools.product([0.0, -0.0, 1.5, -2.5, np.inf, -np.inf, 5e-324], repeat=2):
            assert bits(encoded(*point)) == bits(by_llvm(*point))


def test_choices_are_llvms() -> None:
    """Short code with many of them, in the end: the encoder has no masks."""
    choices = [sp.Piecewise((X * k, X < Y), (Y + k, True)) for k in range(2, 9)]
    program = program_from_sympy([X, Y], [choices])
    kernels = {tier: compile_program(program, tier=tier, cache=False) for tier in ("default", "fast", "auto")}
    assert kernels["default"].stats.generator == "LLVM"
    assert kernels["fast"].stats.generator == "encoder"
    assert kernels["auto"].wait()
    assert kernels["auto"].tier == "default"
    assert kernels["auto"].stats.generator == "LLVM"
    assert len({bits(kernel(0.7, 1.3)) for kernel in kernels.values()}) == 1


def test_what_it_tells() -> None:
    kernel = compile_program(PROGRAM, cache=False)
    assert list(kernel.stats.seconds) == ["lower", "group", "encode"]
    assert kernel.stats.code_bytes > 0
    assert "fmadd" in kernel.assembly
    assert kernel.assembly.startswith("kernel.0:")


REASONS: list[tuple[Any, str]] = [
    ({"chunk": 10}, "chunk functions were asked for"),
    ({"dtype": "float32"}, "numbers are float32"),
]


@pytest.mark.parametrize(("options", "reason"), REASONS)
def test_what_llvm_has_to_do_is_told(options: Any, reason: str, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, logger="symad.codegen"):
        kernel = compile_program(PROGRAM, tier="fast", cache=False, **options)
    assert kernel.stats.generator == f"LLVM, level 0: {reason}"
    assert f"machine code by LLVM, and not by the encoder: {reason}" in caplog.text
    assert reason in kernel.stats._repr_html_().replace("&quot;", '"')
    assert bits(kernel(0.7, 1.3)) == bits(compile_program(PROGRAM, cache=False, **options)(0.7, 1.3))


@pytest.mark.parametrize("tier", ["default", "fast"])
def test_functions_of_the_vector_library(tier: Tier) -> None:
    """With accuracy "fast", functions of several numbers are those of the C library, as in LLVM's code."""
    formulas = [sp.exp(X * k) + sp.tanh(Y * k) for k in range(1, 6)]
    program = program_from_sympy([X, Y], [[*formulas, sp.sin(X) * sp.cos(X), sp.gamma(Y)]])
    kernels = [compile_program(program, tier=each, accuracy="fast", cache=False) for each in (tier, "llvm")]
    assert [kernel.stats.generator for kernel in kernels] == ["encoder", "LLVM"]
    if vector_symbol("exp", 4):
        assert "_ZGVdN4v_exp" in kernels[0].assembly
    assert bits(kernels[0](0.7, 1.3)) == bits(kernels[1](0.7, 1.3))
    np.testing.assert_allclose(kernels[0](0.7, 1.3)[0], np.exp(0.7) + np.tanh(1.3), rtol=1e-14)


def test_other_machines_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    prepared = prepare(PROGRAM, Options(tier="fast"))
    assert why_not(prepared) == ""
    told = "the encoder writes for x86-64 with AVX under Linux"
    with monkeypatch.context() as patch:
        patch.setattr(platform, "machine", lambda: "aarch64")
        assert why_not(prepared) == told
        assert compile_program(PROGRAM, tier="fast", cache=False).stats.generator == f"LLVM, level 0: {told}"
    monkeypatch.setattr(codegen.encoding.encode, "features", lambda: frozenset({"sse2"}))
    assert why_not(prepared) == told
    monkeypatch.undo()
    huge = replace(prepared, program=replace(PROGRAM, outputs=(Output((2**29,), (), ()),)))
    assert why_not(huge) == "a displacement has 32 bits"
    swept = replace(prepared, program=replace(PROGRAM, inputs=(*PROGRAM.inputs, Input("s", (2,))), seeded=True))
    assert why_not(swept) == "a sweep over 2 columns"


def test_pages_are_never_writable_and_executable() -> None:
    kernel = compile_program(PROGRAM, tier="fast", cache=False)
    found = []
    for line in Path("/proc/self/maps").read_text(encoding="utf-8").splitlines():
        first, last, rights = re.match(r"(\w+)-(\w+) (\S+)", line).groups()  # type: ignore[union-attr]
        if int(first, 16) <= kernel.address < int(last, 16):
            found.append(rights)
    assert found == ["r-xp"]


def test_pages_go_with_the_kernel() -> None:
    def mapped(address: int) -> bool:
        ranges = re.findall(r"^(\w+)-(\w+) r-xp", Path("/proc/self/maps").read_text(encoding="utf-8"), re.MULTILINE)
        return any(int(first, 16) <= address < int(last, 16) for first, last in ranges)

    kernel = compile_program(PROGRAM, tier="fast", cache=False)
    address = kernel.address
    assert mapped(address)
    del kernel
    gc.collect()
    assert not mapped(address)


def test_a_system_that_runs_no_pages_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    class Refusing:
        def mprotect(self, *given: object) -> int:
            return -1

    monkeypatch.setattr(codegen.code_memory, "_library", Refusing)
    with pytest.raises(WorkbenchError, match="the system does not let it be run"):
        MappedCode(PlacedCode(b"\xc3", {"kernel": 0}))


def test_a_cache_keeps_encoded_code(tmp_path: Path) -> None:
    made = compile_program(PROGRAM, tier="fast", cache=tmp_path)
    found = compile_program(PROGRAM, tier="fast", cache=tmp_path)
    assert not made.stats.cached
    assert found.stats.cached
    assert found.stats.generator == "encoder"
    assert found.assembly == made.assembly
    assert bits(found(0.7, 1.3)) == bits(made(0.7, 1.3))


def test_functions_of_scipy_and_complex_numbers() -> None:
    program = program_from_sympy([X], [sp.loggamma(X) + sp.erfinv(X / 10)])
    kernels = [compile_program(program, tier=tier, cache=False) for tier in ("llvm", "fast")]
    assert kernels[1].stats.generator == "encoder"
    assert bits(kernels[0](1.5)) == bits(kernels[1](1.5))
    analytic = program_from_sympy([X], [sp.exp(X) * X])
    parts = [compile_program(analytic, tier=tier, cache=False, dtype="complex128") for tier in ("llvm", "fast")]
    assert parts[1].stats.generator == "encoder"
    assert bits(parts[0](0.3 + 2j)) == bits(parts[1](0.3 + 2j))


def test_functions_of_scipy_on_lanes_get_their_addresses() -> None:
    _, symbols = _functions({0: ("scipy.psi.1.0", 4, (0,))}, True, ())
    name = "symad.alone.lanes.scipy.psi.1.0.v4f64"
    assert own_addresses({name: complete(name, symbols)})[name]


def test_the_value_that_is_needed_last_leaves_its_register() -> None:
    uses = {row: [100 - row] for row in range(17)}
    saved = []
    workspace = Workspace({})
    registers = Registers(
        [("add", 0, 0)] * 17, uses, workspace, lambda register, row: None, lambda *given: saved.append(given)
    )
    for row in range(16):
        registers.hold(registers.take(), row)
    register = registers.take((registers.of[0],))
    assert saved == [(register, 1)]
    assert set(registers.of) == {0, *range(2, 16)}
    assert workspace.places == {1: 0}


def test_results_without_operations_and_many_arrays() -> None:
    nothing = program_from_sympy([X], [[], [sp.Float(1), sp.Integer(0), sp.pi, X]])
    many = program_from_sympy([X], [X * k for k in range(300)])
    for program in (nothing, many):
        kernels = [compile_program(program, tier=tier, cache=False) for tier in ("llvm", "fast")]
        assert kernels[1].stats.generator == "encoder"
        results = [list(kernel(0.3)) for kernel in kernels]
        assert [bits(one) for one in results[0]] == [bits(one) for one in results[1]]
