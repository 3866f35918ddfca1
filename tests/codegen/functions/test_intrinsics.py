"""Every row of the table: native code, the float function and the high-precision function agree."""

from __future__ import annotations

import math
import sys
from typing import Any

import pytest
import sympy as sp
from mpmath import mp

import codegen.distribution_heads as d
import codegen.heads as heads
import codegen.special_heads as s
from codegen import Input, Kernel, LoweringError, Output, Program, compile_program, supports
from codegen.functions.intrinsics import ELEMENTARY, INTRINSICS, intrinsic
from codegen.functions.libraries import scipy_ufunc
from codegen.functions.symbols import symbol
from tests.support.kernel_points import EDGES, OWN_TESTS, SPECIAL_POINTS, TAILS, TRUTHS, points_of, ulp_error

CONSTANT_FIRST = {
    **dict.fromkeys((sp.polygamma, sp.besselj, sp.bessely, sp.hermite, sp.jn, sp.yn, sp.expint), 1),
    **dict.fromkeys((s.spherical_jn, s.spherical_yn, s.spherical_in, s.spherical_kn), 1),
    **dict.fromkeys((s.faddeeva_real, s.faddeeva_imag, s.erfc_ratio, s.polygamma_difference, s.hermitenorm), 1),
    d.gamma_moment: 1,
    d.beta_moment: 2,
    heads.elliptic_moment: 2,
}  # operands that have to be constants


def kernel_of(head: Any, point: tuple[float, ...], fixed: int = 0) -> Kernel:
    """Kernel of one row; the first `fixed` operands are constants taken from the point."""
    count = len(point) - fixed
    heads: list[Any] = [sp.Symbol] * count
    atoms: dict[int, sp.Basic] = {k: sp.Symbol(f"x{k}") for k in range(count)}
    operands: list[tuple[int, ...]] = [()] * count
    for value in point[:fixed]:
        atoms[len(heads)] = sp.Integer(int(value)) if value == int(value) else sp.Float(value)
        heads.append(type(atoms[len(heads)]))
        operands.append(())
    numbers = [*range(count, count + fixed), *range(count)]
    heads.append(head)
    operands.append(tuple(numbers))
    return compile_program(
        Program(
            heads, operands, atoms, tuple(Input(f"x{k}", ()) for k in range(count)), (Output((), (len(heads) - 1,)),)
        )
    )


@pytest.mark.parametrize("head", [head for head in INTRINSICS if head not in OWN_TESTS], ids=lambda head: head.__name__)
def test_native_number_and_reference_agree(head: Any) -> None:
    row = intrinsic(head)
    fixed = CONSTANT_FIRST.get(head, 0)
    kernel = None if fixed else kernel_of(head, points_of(head)[0])
    for point in points_of(head):
        operands = [value != 0 for value in point] if head in TRUTHS else list(point)
        used = kernel or kernel_of(head, point, fixed)
        native = used(*point[fixed:])
        number = row.number(*operands)
        with mp.workdps(60):
            exact = row.reference(*[value if isinstance(value, bool) else mp.mpf(value) for value in operands])
            exact = mp.mpf(exact)
        assert ulp_error(native, exact) <= row.ulp, ("native", point, native, float(exact))
        assert ulp_error(float(number), exact) <= 5 * max(row.ulp, 1.0), ("number", point, number, float(exact))


@pytest.mark.parametrize(
    "row", [row for row in ELEMENTARY if len(points_of(row.head)[0]) == 1 and row.head not in TRUTHS],
    ids=lambda row: row.head.__name__,
)  # fmt: skip
def test_edges_and_tails_have_one_convention(row: Any) -> None:
    kernel = kernel_of(row.head, (1.0,))
    for value in EDGES + (TAILS if row.head not in SPECIAL_POINTS else []):
        native, number = kernel(value), row.number(value)
        assert (math.isnan(native) and math.isnan(number)) or native == pytest.approx(number, rel=1e-14, abs=0), value
        if native == 0:
            assert math.copysign(1, native) == math.copysign(1, number), value


def test_tails_keep_relative_accuracy() -> None:
    for head in (sp.sech, sp.csch, heads_of("expit"), heads_of("log_expit"), heads_of("softplus")):
        kernel = kernel_of(head, (1.0,))
        for value in (-700.0, -40.0, 40.0, 700.0):
            with mp.workdps(60):
                exact = intrinsic(head).reference(mp.mpf(value))
            assert ulp_error(kernel(value), exact) <= 4, (head, value)


def heads_of(name: str) -> Any:
    return next(head for head in INTRINSICS if head.__name__ == name)


def test_piecewise_ite_and_not() -> None:
    x = sp.Symbol("x")
    flat = Program(
        [sp.Symbol, sp.Integer, sp.Lt, sp.Not, sp.Integer, sp.Piecewise],
        [(), (), (0, 1), (2,), (), (0, 2, 4, 3)],
        {0: x, 1: sp.Integer(1), 4: sp.Integer(7)},
        (Input("x", ()),),
        (Output((), (5,)), Output((), (3,))),
    )
    kernel = compile_program(flat)
    assert kernel(0.5) == (0.5, 0.0)
    assert kernel(2.0) == (7.0, 1.0)
    assert kernel(math.nan) == (7.0, 1.0)  # nan < 1 is false


def test_piecewise_without_a_true_branch_is_nan() -> None:
    x = sp.Symbol("x")
    program = Program(
        [sp.Symbol, sp.Integer, sp.Lt, sp.Piecewise], [(), (), (0, 1), (0, 2)], {0: x, 1: sp.Integer(1)},
        (Input("x", ()),), (Output((), (3,)),),
    )  # fmt: skip
    kernel = compile_program(program)
    assert kernel(0.25) == 0.25
    assert math.isnan(kernel(3.0))


def test_sinc_sign_and_heaviside_at_zero() -> None:
    assert kernel_of(sp.sinc, (1.0,))(0.0) == 1.0
    assert [kernel_of(sp.sign, (1.0,))(value) for value in (-2.0, 0.0, -0.0, 3.0)] == [-1.0, 0.0, 0.0, 1.0]
    assert kernel_of(sp.Heaviside, (1.0,))(0.0) == 0.5


def test_mod_has_python_sign() -> None:
    kernel = kernel_of(sp.Mod, (1.0, 2.0))
    for u in (-7.5, -4.0, -0.0, 0.0, 4.0, 7.5):
        for v in (-2.0, 2.0, 3.25):
            assert kernel(u, v) == u % v
            assert math.copysign(1, kernel(u, v)) == math.copysign(1, u % v)


def test_lambert_lower_branch() -> None:
    minus_one = Program(
        [sp.Symbol, sp.Integer, sp.LambertW], [(), (), (0, 1)], {0: sp.Symbol("x"), 1: sp.Integer(-1)},
        (Input("x", ()),), (Output((), (2,)),),
    )  # fmt: skip
    kernel = compile_program(minus_one)
    for value in (-0.3678, -0.36, -0.2, -0.1, -1e-5, -1e-300):
        with mp.workdps(40):
            exact = mp.lambertw(mp.mpf(value), -1).real
        assert ulp_error(kernel(value), exact) <= 16, value
    assert math.isnan(kernel(0.5))


def test_unknown_head_and_complex_values_are_refused() -> None:
    unknown = sp.Function("mystery")
    assert not supports(unknown)
    with pytest.raises(LoweringError, match=r"mystery.*rewrite"):
        kernel_of(unknown, (1.0,))
    with pytest.raises(LoweringError, match="complex"):
        kernel_of(sp.im, (1.0,))


def test_missing_scipy_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    scipy_ufunc.cache_clear()
    symbol.cache_clear()
    monkeypatch.setitem(sys.modules, "scipy.special", None)
    with pytest.raises(LoweringError, match=r"pip install symad\[special\]"):
        kernel_of(sp.digamma, (1.0,))
    with pytest.raises(LoweringError, match=r"pip install symad\[special\]"):
        intrinsic(sp.digamma).number(1.0)
    assert kernel_of(sp.besselj, (0.0, 1.0), 1)(1.0) == pytest.approx(0.7651976865579666)  # libm's j0 needs no SciPy
