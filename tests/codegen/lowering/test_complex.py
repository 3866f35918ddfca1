"""Kernels in complex128 against NumPy, against 50 digits, and on the branch cuts."""

from __future__ import annotations

import itertools
import math
from typing import Any

import mpmath
import numpy as np
import pytest
import sympy as sp
from mpmath import mp

from codegen import ArgumentError, Kernel, compile_program, heads, program_from_sympy
from codegen.errors import LoweringError
from codegen.functions.intrinsics import INTRINSICS

Z, W = sp.symbols("z w")
EPSILON = 2.0**-52
ONE: dict[str, tuple[Any, Any, Any, float]] = {  # expression, NumPy's function, mpmath's, bound in units of 2**-52 |f|
    "sqrt": (sp.sqrt(Z), np.sqrt, mp.sqrt, 4),
    "exp": (sp.exp(Z), np.exp, mp.exp, 4),
    "log": (sp.log(Z), np.log, mp.log, 4),
    "sin": (sp.sin(Z), np.sin, mp.sin, 6),
    "cos": (sp.cos(Z), np.cos, mp.cos, 6),
    "tan": (sp.tan(Z), np.tan, mp.tan, 12),
    "sinh": (sp.sinh(Z), np.sinh, mp.sinh, 6),
    "cosh": (sp.cosh(Z), np.cosh, mp.cosh, 6),
    "tanh": (sp.tanh(Z), np.tanh, mp.tanh, 12),
    "expm1": (heads.expm1(Z), np.expm1, mp.expm1, 8),
    "log1p": (heads.log1p(Z), np.log1p, lambda z: mp.log(1 + z), 8),
    "log2": (heads.log2(Z), np.log2, lambda z: mp.log(z) / mp.log(2), 8),
    "log10": (heads.log10(Z), np.log10, lambda z: mp.log(z) / mp.log(10), 8),
    "exp2": (heads.exp2(Z), np.exp2, lambda z: mp.power(2, z), 20),
    "reciprocal": (1 / Z, lambda z: 1 / z, lambda z: 1 / z, 6),
    "cube": (Z**3, lambda z: z**3, lambda z: z**3, 6),
    "power -5/2": (Z ** sp.Rational(-5, 2), lambda z: z**-2.5, lambda z: mp.power(z, -2.5), 16),
    "power 0.3": (Z ** sp.Float(0.3), lambda z: z**0.3, lambda z: mp.power(z, mp.mpf(0.3)), 16),
    "power of 3": (sp.Integer(3) ** Z, lambda z: 3**z, lambda z: mp.power(3, z), 40),
    "power of -2": (sp.Integer(-2) ** Z, lambda z: (-2 + 0j) ** z, lambda z: mp.power(-2, z), 60),
    "cot": (sp.cot(Z), lambda z: 1 / np.tan(z), mp.cot, 16),
    "sec": (sp.sec(Z), lambda z: 1 / np.cos(z), mp.sec, 12),
    "csc": (sp.csc(Z), lambda z: 1 / np.sin(z), mp.csc, 12),
    "coth": (sp.coth(Z), lambda z: 1 / np.tanh(z), mp.coth, 16),
    "sech": (sp.sech(Z), lambda z: 1 / np.cosh(z), mp.sech, 12),
    "csch": (sp.csch(Z), lambda z: 1 / np.sinh(z), mp.csch, 12),
}
TWO: dict[str, tuple[Any, Any, float]] = {
    "add": (Z + W, lambda z, w: z + w, 1),
    "subtract": (Z - W, lambda z, w: z - w, 1),
    "multiply": (Z * W, lambda z, w: z * w, 3),
    "divide": (Z / W, lambda z, w: z / w, 6),
    "power": (Z**W, lambda z, w: z**w, 60),
}


def complex_kernel(expression: Any, **options: Any) -> Kernel:
    return compile_program(program_from_sympy([Z], [expression]), dtype="complex128", **options)


def plane(count: int = 300, spread: float = 3.0, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    return rng.normal(scale=spread, size=count) + 1j * rng.normal(scale=spread, size=count)


@pytest.mark.parametrize("name", ONE)
def test_functions_against_numpy_and_50_digits(name: str) -> None:
    expression, numpy_function, exact, bound = ONE[name]
    points = np.concatenate([plane(), plane(50, 1e-3, 1), plane(50, 0.2, 2) + 1])
    result = complex_kernel(expression).batch(points)
    np.testing.assert_allclose(result, numpy_function(points), rtol=1e-12)
    with mp.workdps(50):
        for z, value in zip(points[::5], result[::5], strict=True):
            want = exact(mpmath.mpmathify(complex(z)))
            assert abs(mpmath.mpmathify(complex(value)) - want) <= bound * EPSILON * abs(want)


@pytest.mark.parametrize("name", TWO)
def test_operations_against_numpy(name: str) -> None:
    expression, numpy_function, bound = TWO[name]
    kernel = compile_program(program_from_sympy([Z, W], [expression]), dtype="complex128")
    z, w = plane(), plane(seed=1)
    want = numpy_function(z, w)
    assert (abs(kernel.batch(z, w) - want) <= bound * EPSILON * abs(want)).all()


@pytest.mark.parametrize("name", ["sqrt", "log", "power 0.3", "power -5/2", "log2", "log1p"])
def test_both_sides_of_the_cut_and_real_numbers(name: str) -> None:
    expression, numpy_function, _, _ = ONE[name]
    kernel = complex_kernel(expression)
    for x, y in itertools.product((-4.0, -2.0, -0.3, 0.5, 7.0), (0.0, -0.0)):
        z = complex(x, y)
        want = complex(numpy_function(np.complex128(z)))
        assert kernel(z) == pytest.approx(want, rel=1e-14)  # the sign of the imaginary part among the rest


@pytest.mark.parametrize("expression", [sp.sqrt(1 - Z), sp.sqrt(1 - Z**2), sp.log(Z - 6), sp.log(Z + 1), sp.sqrt(-Z)])
def test_sums_that_land_on_a_cut(expression: Any) -> None:
    function = sp.lambdify(Z, expression, "numpy")
    kernel = complex_kernel(expression)
    for z in (5 + 0j, complex(5, -0.0), -5 + 0j, complex(-5, -0.0)):
        assert kernel(z) == pytest.approx(complex(function(np.complex128(z))), rel=1e-14)


def test_products_that_cancel_land_on_the_cut() -> None:
    """A fused multiply-add would leave the rounding error of one product, of either sign."""
    kernel = compile_program(program_from_sympy([Z, W], [sp.sqrt(Z * W)]), dtype="complex128")
    for z in plane(40):
        w = complex(-z.real, z.imag)
        assert kernel(z, w) == pytest.approx(complex(np.sqrt(np.complex128(z) * np.complex128(w))), rel=1e-14)


def test_accuracy_fast_keeps_the_side_of_a_cut() -> None:
    for expression in (sp.sqrt(Z * Z - Z * 3), (Z**2 + 2 * Z) ** sp.Float(0.3)):
        strict, fast = complex_kernel(expression), complex_kernel(expression, accuracy="fast")
        for z in (0.5 + 0j, complex(0.5, -0.0), complex(-0.5, -0.0), -0.5 + 0j):
            assert fast(z) == pytest.approx(strict(z), rel=1e-13)


@pytest.mark.parametrize("name", ["sqrt", "exp", "log"])
def test_extreme_numbers(name: str) -> None:
    expression, numpy_function, _, _ = ONE[name]
    kernel = complex_kernel(expression)
    sizes = (0.0, 1.0, 30.0, 710.0, 1e200, 1.5e308, math.inf)
    for x, y in itertools.product([*sizes, *(-size for size in sizes)], repeat=2):
        if name == "exp" and math.isinf(x) and math.isinf(y):
            continue  # nan here, a part of it in NumPy
        with np.errstate(all="ignore"):
            want = complex(numpy_function(np.complex128(complex(x, y))))
        value = kernel(complex(x, y))
        for part, exact in ((value.real, want.real), (value.imag, want.imag)):
            assert part == pytest.approx(exact, rel=1e-13, nan_ok=True)
            assert math.isnan(part) or math.copysign(1.0, part) == math.copysign(1.0, exact)


def test_quotients_of_extreme_numbers() -> None:
    kernel = compile_program(program_from_sympy([Z, W], [Z / W]), dtype="complex128")
    assert kernel(1e300 + 1e300j, 1e300 - 1e300j) == 1j
    assert kernel(1e-300j, 1e-300 + 0j) == 1j
    assert kernel(3 + 4j, 0) == complex(math.inf, math.inf)
    assert str(kernel(0, 0)) == "(nan+nanj)"


def test_powers_at_zero() -> None:
    kernel = compile_program(program_from_sympy([Z, W], [Z**W]), dtype="complex128")
    assert (kernel(0, 2.5), kernel(0, 0), kernel(2 + 1j, 0)) == (0, 1, 1)
    assert (kernel(0, 1 + 2j), kernel(0, 0.5 - 1j)) == (0, 0)
    assert complex_kernel(sp.Pow(0, Z, evaluate=False))(2 + 1j) == 0
    assert complex_kernel(Z ** sp.Float(0.3))(0) == 0


def test_logarithm_near_one_keeps_all_digits() -> None:
    kernel = complex_kernel(sp.log(Z))
    with mp.workdps(50):
        for z in (1 + 1e-10j, complex(1 + 1e-9, 1e-12), complex(0.6, 0.8), complex(1, 1e-5)):
            want = mp.log(mpmath.mpmathify(z))
            value = kernel(z)
            assert value.imag == pytest.approx(float(want.imag), rel=1e-15)
            assert abs(value.real - float(want.real)) <= 1e-16 + 1e-15 * abs(float(want.real))


def test_constants_may_leave_the_real_line() -> None:
    minus_two = sp.Symbol("c")
    program = program_from_sympy([Z, minus_two], [Z * sp.sqrt(minus_two), sp.log(minus_two) + Z])
    kernel = compile_program(program, dtype="complex128")
    assert kernel(1, -2)[0] == pytest.approx(1j * math.sqrt(2))
    root = sp.Pow(sp.Integer(-2), sp.Rational(1, 3), evaluate=False)
    assert complex_kernel(sp.Mul(Z, root, evaluate=False))(1) == pytest.approx((-2 + 0j) ** (1 / 3), rel=1e-14)


@pytest.mark.parametrize("lanes", [1, 2, 4, 8, 16])
def test_batches_have_the_bits_of_single_calls(lanes: int) -> None:
    expressions = [sp.exp(Z) / W, sp.sqrt(Z * W) + sp.tanh(W) - 1, Z, sp.Integer(0), Z**W]
    program = program_from_sympy([(Z, W)], [expressions, Z * W])
    kernel = compile_program(program, dtype="complex128", lanes=lanes)
    points = plane(74).reshape(37, 2)
    found = [kernel(point) for point in points]
    want = [np.array([result[k] for result in found]).tobytes() for k in range(2)]

    def bits(results: Any) -> list[bytes]:
        return [np.ascontiguousarray(result).tobytes() for result in results]

    for count in (1, lanes, lanes + 1, 37):
        parts = kernel.batch(points[:count])
        assert [part.tobytes() for part in parts] == [text[: len(text) * count // 37] for text in want]
    spaced = np.zeros((74, 6), dtype=complex)[::2, ::3]
    spaced[...] = points
    for given in (np.asfortranarray(points), spaced, points[::-1][::-1], points.astype(">c16")):
        assert bits(kernel.batch(given)) == want
    out = (np.zeros((5, 37), dtype=complex).T, np.zeros(74, dtype=complex)[::2])
    assert bits(kernel.batch(points, out=out, threads=2)) == want
    assert kernel.batch(np.array([1.0, 2.0]))[0].shape == (5,)


def test_arguments_and_results() -> None:
    kernel = complex_kernel(Z * 2)
    assert repr(kernel) == "<Kernel kernel(z) -> complex: 2 operations in complex128>"
    assert kernel(1.5) == 3
    assert type(kernel(1.5)) is complex
    out = np.zeros((), dtype=complex)
    assert kernel(1j, out=out) is out
    assert out == 2j
    with pytest.raises(ArgumentError, match="complex128"):
        kernel(1j, out=np.zeros(()))
    with pytest.raises(ArgumentError, match="dtype"):
        kernel("a")
    real = compile_program(program_from_sympy([Z], [Z * 2]))
    with pytest.raises(ArgumentError, match="complex128: the kernel computes in float64"):
        real(1j)


REFUSED = [
    sp.Abs, sp.sign, sp.Max, sp.Min, sp.re, sp.conjugate, sp.floor, sp.atan2, sp.erf, sp.gamma, sp.besselj, sp.Lt,
    sp.Ge, sp.Piecewise, sp.Heaviside, heads.expit, heads.softplus, heads.hypot, heads.copysign,
]  # fmt: skip


@pytest.mark.parametrize("head", REFUSED, ids=lambda head: head.__name__)
def test_what_is_not_analytic_is_refused_by_name(head: Any) -> None:
    assert head in INTRINSICS
    expressions = {
        sp.Piecewise: sp.Piecewise((Z, Z > 0), (W, True)), sp.Lt: sp.Lt(Z, W), sp.Ge: sp.Ge(Z, W), sp.Max: sp.Max(Z, W),
        sp.Min: sp.Min(Z, W), sp.atan2: sp.atan2(Z, W), sp.besselj: sp.besselj(Z, W), heads.hypot: heads.hypot(Z, W),
        heads.copysign: heads.copysign(Z, W),
    }  # fmt: skip
    program = program_from_sympy(
        [Z, W], [expressions.get(head, head(Z, evaluate=False) if head not in expressions else 0)]
    )
    with pytest.raises(LoweringError, match="of a complex number"):
        compile_program(program, dtype="complex128")


@pytest.mark.parametrize("truth", [sp.true, sp.false])
def test_truth_values_are_no_complex_numbers(truth: Any) -> None:
    with pytest.raises(LoweringError, match="a truth value is no complex number"):
        compile_program(program_from_sympy([Z], [truth]), dtype="complex128")
