"""Programs of every kind, with their values by the interpreter, for tests of what stands between passes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import sympy as sp

from codegen import Kernel, evaluate, program_from_sympy, unroll
from codegen.ir.program import Program
from codegen.ir.region import RolledProgram
from symad.compiling.candidates import seeded_program
from symad.transforms.first_order import hessian
from tests.support.rolled_programs import KNOWN, random_program, unrolled_values

X, Y, Z = sp.symbols("x y z")


def straight(name: str = "f") -> Program:
    terms = [sp.sin(X) * Y + 3 * X / Z, sp.exp(Y) / Z - X * Y, sp.sqrt(X + 1) / Z, 1 / (X * Z) + X * Y * Z]
    return program_from_sympy([X, Y, Z], terms, name=name)


def sweep() -> Program:
    weights = np.random.default_rng(3).normal(size=(2, 5, 5))
    found = seeded_program(hessian(lambda x: np.sum(np.tanh(weights[1] @ np.tanh(weights[0] @ x)))), (np.ones(5),), 10)
    assert found is not None
    return found


PROGRAMS: dict[str, Callable[[], Program | RolledProgram]] = {
    "straight": straight, "sweep": sweep, **{f"rolled {name}": lambda name=name: KNOWN[name] for name in KNOWN},
    **{f"rolled random {seed}": lambda seed=seed: random_program(seed) for seed in range(6)},
}  # fmt: skip


def reference(program: Program | RolledProgram, arrays: list[Any]) -> list[Any]:
    """The values by the interpreter, which knows no pass of codegen."""
    if isinstance(program, RolledProgram):
        return unrolled_values(program, arrays)
    flat = unroll(program)
    values = dict(enumerate(np.concatenate([np.ravel(array) for array in arrays]).tolist()))
    found = []
    for output in flat.outputs:
        whole = np.zeros(output.size)
        positions = range(output.size) if output.positions is None else output.positions
        whole[list(positions)] = evaluate(flat, list(output.rows), values)
        found.append(whole.reshape(output.shape))
    return found


def given(program: Program | RolledProgram) -> list[Any]:
    random = np.random.default_rng(0)
    return [random.uniform(0.5, 1.5, array.shape) for array in program.arguments]


def values(kernel: Kernel, arrays: list[Any]) -> list[Any]:
    found = kernel(*arrays)
    return list(found) if isinstance(found, tuple) else [found]


SCRIPT = """
import sympy as sp
from codegen import compile_program, program_from_sympy
x, y = sp.symbols("x y")
assert compile_program(program_from_sympy([x, y], [x * y + 1])).stats.fused == {fused}
"""
