"""Machine code of functions that comes with symad: the bytes that LLVM makes, the numbers of code that is made here."""

from __future__ import annotations

import binascii
import ctypes
import platform

import numpy as np
import pytest
import sympy as sp

from codegen import compile_program, program_from_sympy
from codegen.engine import compile_text
from codegen.machine.storage import function_code
from codegen.machine.storage.own_functions import WANTED, ready
from codegen.processor import features, is_x86_64_linux
from tests.support import kept_machine_code

TEXTS = kept_machine_code.texts()
BOTH = "symad.sincos.f64"
runs_here = pytest.mark.skipif(
    not is_x86_64_linux() or not features().issuperset(WANTED), reason="x86-64 with multiply-adds under Linux"
)
SPECIAL = [0.0, -0.0, 1.0, -1.0, 5e-324, 2.3e-308, 1.7e308, -1e22, np.inf, -np.inf, np.nan, 709.9, -745.2, 0.5, 3.0]
X = sp.Symbol("x")


def test_llvm_makes_the_same_bytes() -> None:
    made = kept_machine_code.functions()
    kept = {name: (key, binascii.a2b_base64(code)) for name, (key, code) in function_code.FUNCTIONS.items()}
    asked = "python -m tests.support.kept_machine_code"
    assert {name: key for name, (key, _) in made.items()} == {name: key for name, (key, _) in kept.items()}, asked
    assert kept_machine_code.version() != function_code.LLVM or made == kept, asked


def points() -> np.ndarray:
    """Return numbers of all sizes, and special ones."""
    random = np.random.default_rng(0)
    sizes = random.choice([-1.0, 1.0], 2000) * np.exp2(random.uniform(-1074, 1023, 2000))
    return np.concatenate([SPECIAL, sizes, random.uniform(-40, 40, 4000), random.uniform(-1, 1, 2000)])


@runs_here
@pytest.mark.parametrize("name", [name for name in TEXTS if name != BOTH])
def test_numbers_are_those_of_code_that_is_made_here(name: str) -> None:
    text = TEXTS[name]
    operands = text.partition(")")[0].count("double %")
    kind = ctypes.CFUNCTYPE(ctypes.c_double, *[ctypes.c_double] * operands)
    kept, here = ready(name, text), compile_text(text, (name,), {})
    assert kept is not None
    first, second = kind(kept.addresses[name]), kind(here.addresses[name])
    arguments = [points()] if operands == 1 else [points(), np.random.default_rng(1).permutation(points())]
    found = np.array([(first(*each), second(*each)) for each in zip(*arguments, strict=True)])
    assert found[:, 0].tobytes() == found[:, 1].tobytes()


@runs_here
def test_sine_and_cosine_at_once() -> None:
    program = program_from_sympy([X], [sp.sin(X), sp.cos(X)])
    encoded, here = compile_program(program), compile_program(program, tier="llvm")
    assert encoded.stats.generator != here.stats.generator
    for point in points():
        assert np.array(encoded(point)).tobytes() == np.array(here(point)).tobytes()


def test_other_functions_and_machines_have_none(monkeypatch: pytest.MonkeyPatch) -> None:
    name, text = next(iter(TEXTS.items()))
    assert ready(name, text + "\n") is None
    assert ready("symad.exp.v4f64", text) is None
    monkeypatch.setattr(platform, "machine", lambda: "riscv64")
    assert ready(name, text) is None
