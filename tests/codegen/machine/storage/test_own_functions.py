"""Functions of ours are compiled once in a process, and kernels, also those of the cache, are linked to them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import sympy as sp

from codegen import compile_program, program_from_sympy
from codegen.emission.emit import Form
from codegen.lanes import Lanes
from codegen.machine.kernel_text import planned
from codegen.machine.storage.program_cache import _library, apart
from codegen.options import Options

X, Y = sp.symbols("x y")
FORMULA = sp.exp(X) * sp.sin(Y) + X**Y


@pytest.mark.parametrize("lanes", [Lanes(), Lanes(8), Lanes(16, "float")])
def test_definitions_become_declarations(lanes: Lanes) -> None:
    emitted = planned(program_from_sympy([X, Y], [FORMULA]), Options()).emit(Form(lanes=lanes))
    code, own = apart(emitted)
    assert "define internal" in emitted.declarations
    assert "@symad.two_over_pi" not in code.text
    assert "define internal" not in code.declarations
    assert {name.split(".")[1] for name in own} == {"exp", "sin", "pow"}


def test_functions_are_compiled_once() -> None:
    first = compile_program(program_from_sympy([X, Y], [FORMULA]))
    known = len(_library.made)
    second = compile_program(program_from_sympy([X, Y], [FORMULA * 2]))
    assert len(_library.made) == known
    assert second(0.3, 0.4) == 2 * first(0.3, 0.4)


def test_machine_code_has_no_functions_in_it() -> None:
    """A kernel that calls three functions is not much larger than one that calls none."""
    small, large = (compile_program(program_from_sympy([X, Y], [f])).stats.code_bytes for f in (X * Y + X, FORMULA))
    assert large < small + 200


def test_kernels_of_the_cache_are_linked_too(tmp_path: Path) -> None:
    program = program_from_sympy([X, Y], [FORMULA, sp.tanh(X)])
    made = compile_program(program, cache=tmp_path)
    kept = compile_program(program, cache=tmp_path)
    assert kept.stats.cached
    assert kept(0.3, 0.4) == made(0.3, 0.4)
    points = np.random.default_rng(0).uniform(0.1, 2.0, (2, 1000))
    assert all(np.array_equal(a, b) for a, b in zip(kept.batch(*points), made.batch(*points), strict=True))
