"""Kernels in float32: NumPy's own results where one operation is rounded once, the heads of double rounded."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import sympy as sp

from codegen import ArgumentError, Kernel, compile_program, program_from_sympy
from codegen.errors import LoweringError
from codegen.functions.intrinsics import INTRINSICS
from codegen.ir.program import Head, Input, Output, Program
from tests.support.kernel_points import OWN_TESTS, points_of

X = sp.symbols("x0:5")
F = np.float32
FAST32: Any = {"dtype": "float32", "tier": "fast"}
BOUNDS = {
    "gamma_kernel": 100.0,
    "erfc_ratio": 40.0,
    "beta_kernel": 20.0,
    "faddeeva_imag": 100.0,
}  # ULP of float32; others 8


def kernel32(expressions: Any, **options: Any) -> Kernel:
    return compile_program(program_from_sympy([X], [expressions]), dtype="float32", **options)


def test_arithmetic_is_that_of_numpy() -> None:
    kernel = kernel32([X[0] + X[1], X[0] * X[1] - X[2], X[0] / X[1], sp.sqrt(X[4]), X[0] / 3, sp.pi * X[1]], fma=False)
    for x in np.random.default_rng(1).uniform(0.5, 2.0, (50, 5)).astype(F):
        want = [x[0] + x[1], x[0] * x[1] - x[2], x[0] / x[1], np.sqrt(x[4]), F(1 / 3) * x[0], F(np.pi) * x[1]]
        result = kernel(x)
        assert result.dtype == F
        assert result.tolist() == [float(value) for value in want]


@pytest.mark.parametrize(("head", "function"), [(sp.sin, math.sin), (sp.exp, math.exp), (sp.erf, math.erf)])
def test_functions_are_those_of_double_rounded_once(head: Any, function: Any) -> None:
    kernel = kernel32([head(x) for x in X])
    x = np.random.default_rng(2).normal(size=5).astype(F)
    assert kernel(x).tolist() == [float(F(function(float(value)))) for value in x]


@pytest.mark.parametrize("lanes", [1, 2, 4, 8, 16])
def test_batches_have_the_bits_of_single_calls(lanes: int) -> None:
    choice = sp.Piecewise((X[0] / X[1], X[0] < X[1]), (sp.exp(X[2]), True))
    kernel = kernel32([choice, sp.cos(X[3]) * X[4] + X[0], sp.sqrt(sp.Abs(X[1])), *X], lanes=lanes)
    x = np.random.default_rng(3).normal(size=(41, 5)).astype(F)
    want = np.array([kernel(point) for point in x])
    for count in (1, lanes, lanes + 1, 41):
        assert kernel.batch(x[:count]).tobytes() == want[:count].tobytes()
    out = np.zeros((8, 41), dtype=F).T
    assert kernel.batch(np.asfortranarray(x), out=out, threads=2) is out
    assert np.ascontiguousarray(out).tobytes() == want.tobytes()


def test_arguments_and_results() -> None:
    kernel = compile_program(program_from_sympy([X[:2]], [X[0] * X[1]]), dtype="float32")
    assert kernel([0.1, 3]) == float(F(0.1) * F(3))
    assert type(kernel(np.ones(2))) is float
    assert kernel.batch(np.ones((4, 2), dtype=int)).dtype == F
    out = np.zeros((), dtype=F)
    assert kernel(np.ones(2), out=out) is out
    for wrong in (np.zeros(()), np.zeros((), dtype=">f4")):
        with pytest.raises(ArgumentError, match="float32"):
            kernel(np.ones(2), out=wrong)
    with pytest.raises(ArgumentError, match="complex128: the kernel computes in float32"):
        kernel(np.ones(2, dtype=complex))
    with pytest.raises(ArgumentError, match="dtype='float16'"):
        compile_program(program_from_sympy([X], [X]), dtype="float16")  # type: ignore[typeddict-item]


def test_constants_beyond_the_range() -> None:
    assert kernel32([X[0] * sp.Float(1e300), X[0] * sp.Float(1e-300)])(np.ones(5)).tolist() == [math.inf, 0.0]


def _program(head: Head, count: int) -> Program:
    leaves = dict(enumerate(sp.symbols(f"u0:{count}")))
    operands = [()] * count + [tuple(range(count))]
    return Program([*[sp.Symbol] * count, head], operands, leaves, (Input("u", (count,)),), (Output((), (count,)),))


def _with_constants(head: Head, point: tuple[float, ...]) -> Program:
    """All operands but the last are the numbers of a point: some of them select the formula."""
    count = len(point)
    fixed = [sp.Integer(int(value)) if value == int(value) else sp.Float(value) for value in point[:-1]]
    atoms = {0: sp.Symbol("u"), **{k + 1: atom for k, atom in enumerate(fixed)}}
    operands = [()] * count + [(*range(1, count), 0)]
    return Program([sp.Symbol, *map(type, fixed), head], operands, atoms, (Input("u", ()),), (Output((), (count,)),))


@pytest.mark.parametrize("head", [head for head in INTRINSICS if head not in OWN_TESTS], ids=lambda head: head.__name__)
def test_every_head(head: Head) -> None:
    limit, tiny = float(np.finfo(F).max), float(np.finfo(F).smallest_subnormal)
    point, fixed = points_of(head)[-1], head is sp.expint
    try:
        kernel = compile_program(_with_constants(head, point) if fixed else _program(head, len(point)), **FAST32)
    except LoweringError:
        fixed, kernel = True, compile_program(_with_constants(head, point), **FAST32)
    for given in [point] if fixed else points_of(head):
        if any(limit < abs(value) < math.inf for value in given):
            continue
        rounded = [float(F(value)) for value in given]
        exact = float(INTRINSICS[head].number(*rounded))
        value = kernel(rounded[-1] if fixed else rounded)
        if math.isnan(exact) or abs(exact) > limit:
            assert str(value) == str(exact if math.isnan(exact) else math.copysign(math.inf, exact))
        else:
            unit = max(float(np.spacing(F(abs(exact)))), tiny)
            assert abs(value - exact) <= BOUNDS.get(head.__name__, 8.0) * unit


def test_text_and_background_code_are_float32_too(tmp_path: Any) -> None:
    """Both are written anew from the program, the second when the first code came from the cache."""
    program = program_from_sympy([X], [tuple(x / 3 for x in X)])
    x = np.linspace(1, 2, 5).astype(F)
    want = [float(value) for value in F(1 / 3) * x]
    compile_program(program, dtype="float32", tier="fast", cache=tmp_path)
    kernel = compile_program(program, dtype="float32", tier="auto", cache=tmp_path)
    assert kernel.stats.cached
    assert kernel(x).tolist() == want
    assert kernel.wait()
    assert kernel(x).tolist() == want
    assert "fmul float" in kernel.llvm
    assert "fmul double" not in kernel.llvm


def test_merged_constants_stay_in_range() -> None:
    small = sp.Mul(sp.Float(1e-28), X[0], evaluate=False)
    product = sp.Mul(small, sp.Mul(sp.Float(2.0**-40), X[1], evaluate=False), evaluate=False)
    nested = sp.Mul(sp.Float(2.0**-40), small, evaluate=False)
    value = kernel32([product, nested])(np.array([1e28, 1, 0, 0, 0]))
    assert value == pytest.approx([2.0**-40] * 2, rel=1e-6)
