"""Vector functions of the C library: probed, as accurate as their row says, and right at special arguments."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import sympy as sp
from mpmath import mp

import codegen.functions.libraries
import codegen.heads as heads
from codegen import compile_program, program_from_sympy
from codegen.functions.intrinsics import INTRINSICS
from codegen.functions.libraries import FUNCTIONS, vector_symbol
from codegen.functions.symbols import symbol
from tests.support.kernel_points import ulp_error

x, y = sp.symbols("x y")
UNARY: dict[str, tuple[Any, list[float]]] = {
    "exp": (sp.exp, [-700.0, -1e-9, 0.3, 1.0, 36.7, 709.0]),
    "exp2": (heads.exp2, [-1000.0, -0.5, 0.3, 1000.0]),
    "expm1": (heads.expm1, [-50.0, -1e-9, 1e-9, 0.3, 700.0]),
    "log": (sp.log, [1e-300, 0.5, 0.99999, 1.00001, 7.0, 1e300]),
    "log2": (heads.log2, [1e-300, 0.99999, 7.0, 1e300]),
    "log10": (heads.log10, [1e-300, 0.99999, 7.0, 1e300]),
    "log1p": (heads.log1p, [-0.999, -1e-9, 1e-9, 7.0, 1e300]),
    "llvm.sin.f64": (sp.sin, [1e-9, 3.1415926, 100.0, 1e6, 1e22]),
    "llvm.cos.f64": (sp.cos, [1e-9, 1.5707963, 100.0, 1e6, 1e22]),
    "tan": (sp.tan, [1e-9, 1.5707963, 100.0, 1e6]),
    "asin": (sp.asin, [1e-9, 0.5, 0.999999]),
    "acos": (sp.acos, [-0.999999, 0.5, 0.999999]),
    "atan": (sp.atan, [1e-9, 0.5, 1e9]),
    "sinh": (sp.sinh, [1e-9, 0.5, 20.0, 709.0]),
    "cosh": (sp.cosh, [1e-9, 0.5, 20.0, 709.0]),
    "asinh": (sp.asinh, [1e-9, 0.5, 1e9]),
    "acosh": (sp.acosh, [1.0001, 2.0, 1e9]),
    "atanh": (sp.atanh, [1e-9, 0.5, 0.999]),
    "cbrt": (heads.cbrt, [1e-300, 0.3, 8.0, 1e300]),
    "erf": (sp.erf, [1e-9, 0.5, 3.0]),
    "erfc": (sp.erfc, [-3.0, 0.5, 5.0, 25.0]),
}
SPECIAL = [0.0, -0.0, math.inf, -math.inf, math.nan, 5e-324, -5e-324, 1.0, -1.0, 2.0, 1e308, -1e308, 746.0, -746.0]


def of(head: Any, **options: Any) -> Any:
    return compile_program(program_from_sympy([x], [head(x)]), **options)


@pytest.mark.parametrize("name", UNARY)
@pytest.mark.parametrize("lanes", [2, 4, 8])
def test_values(name: str, lanes: Any) -> None:
    head, arguments = UNARY[name]
    row = INTRINSICS[head]
    kernel = of(head, accuracy="fast", lanes=lanes)
    for sign in (1.0, -1.0) if row.parity else (1.0,):
        values = kernel.batch(sign * np.array(arguments))
        with mp.workdps(60):
            exact = [row.reference(mp.mpf(sign * argument)) for argument in arguments]
        for argument, value, wanted in zip(arguments, values.tolist(), exact, strict=True):
            assert ulp_error(value, wanted) <= FUNCTIONS[name].ulp, argument


@pytest.mark.parametrize("name", UNARY)
@pytest.mark.parametrize("lanes", [2, 4, 8])
def test_special_arguments_have_one_convention(name: str, lanes: Any) -> None:
    """Zeros with their sign, infinities, nan, subnormal numbers, overflow: as the scalar function has them."""
    head, _ = UNARY[name]
    fast = of(head, accuracy="fast", lanes=lanes).batch(np.array(SPECIAL))
    strict = of(head).batch(np.array(SPECIAL))
    np.testing.assert_allclose(fast, strict, rtol=1e-14, atol=1e-322)
    zero = strict == 0
    np.testing.assert_array_equal(np.signbit(fast[zero]), np.signbit(strict[zero]))


@pytest.mark.parametrize("lanes", [2, 4, 8])
@pytest.mark.parametrize("head", [sp.Pow, sp.atan2, heads.hypot])
def test_functions_of_two(head: Any, lanes: Any) -> None:
    first, second = np.meshgrid([*SPECIAL, 0.3, 7.0], [*SPECIAL, 0.3, 7.0])
    program = program_from_sympy([x, y], [head(x, y)])
    fast = compile_program(program, accuracy="fast", lanes=lanes).batch(first.ravel(), second.ravel())
    strict = compile_program(program).batch(first.ravel(), second.ravel())
    np.testing.assert_allclose(fast, strict, rtol=1e-14, atol=1e-322)


def test_strict_calls_the_scalar_functions() -> None:
    arguments = [x + k for k in range(8)]
    program = program_from_sympy([x], [sp.exp(argument) for argument in arguments])
    assert "_ZGV" not in compile_program(program).llvm
    assert [*compile_program(program)(0.25)] == [math.exp(0.25 + k) for k in range(8)]


def test_where_there_is_no_library(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each lane calls the scalar function then."""
    monkeypatch.setattr(codegen.functions.libraries, "LIBRARY", "libmvec-that-does-not-exist.so")
    codegen.functions.libraries._has.cache_clear()
    vector_symbol.cache_clear()
    try:
        assert vector_symbol("exp", 2) is None
        program = program_from_sympy([x], [sp.exp(x + k) for k in range(8)])
        assert [*compile_program(program, accuracy="fast")(0.25)] == [math.exp(0.25 + k) for k in range(8)]
    finally:
        codegen.functions.libraries._has.cache_clear()
        vector_symbol.cache_clear()


def test_every_function_is_a_scalar_one_too() -> None:
    for name, function in FUNCTIONS.items():
        assert symbol(name, function.operands).name == name
