"""lambdify with derivatives: values and matrices beside SymPy's own differentiation, one kernel for all of them."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
import sympy as sp

import codegen
import symad as sa
from symad.errors import ArgumentError

X, Y, Z = sp.symbols("x y z")
A = sp.symbols("a:4")
CHAIN = sp.exp(sum(sp.sin(a * b) for a, b in itertools.pairwise(A)))
POINT = np.array([0.3, 0.7, -0.4, 1.1])


def digits(expression: Any, values: dict[Any, float]) -> Any:
    return np.array(sp.Matrix(expression).evalf(30, subs=values), dtype=float)


VALUES = dict(zip(A, POINT.tolist(), strict=True))


@pytest.mark.parametrize("sparse", [False, True])
def test_value_gradient_and_hessian_of_one_expression(sparse: bool) -> None:
    f = sa.lambdify([A], CHAIN, jacobian=True, hessian=True, sparse=sparse)
    value, slope, bend = f(POINT)
    if sparse:
        assert (slope.nnz, bend.nnz) == (4, 16)
        slope, bend = slope.toarray(), bend.toarray()
    assert type(value) is float
    assert value == pytest.approx(float(CHAIN.evalf(30, subs=VALUES)), rel=1e-14)
    np.testing.assert_allclose(slope, digits([[CHAIN.diff(a) for a in A]], VALUES), rtol=1e-13)
    np.testing.assert_allclose(bend, digits(sp.hessian(CHAIN, A), VALUES), rtol=1e-12, atol=1e-14)


def test_a_sparse_jacobian_has_the_pattern_of_the_expressions() -> None:
    rows = [a * b for a, b in itertools.pairwise(A)]
    value, slope = sa.lambdify(A, rows, jacobian=True, sparse=True)(*POINT)
    assert value == pytest.approx([a * b for a, b in itertools.pairwise(POINT)])
    assert sorted(zip(slope.row.tolist(), slope.col.tolist(), strict=True)) == [
        (0, 0), (0, 1), (1, 1), (1, 2), (2, 2), (2, 3),
    ]  # fmt: skip
    np.testing.assert_array_equal(slope.toarray(), sa.lambdify(A, rows, jacobian=True)(*POINT)[1])


def test_structures_matrices_and_nested_arguments() -> None:
    t = sp.Symbol("t")
    q = sp.Function("q")(t)
    v = sp.MatrixSymbol("v", 2, 1)
    given = [X, (q, q.diff(t)), v]
    wanted = [X * q, sp.Matrix([[q.diff(t) ** 2, X]]), (sp.sin(q), v.T * v)]
    value, slope = sa.lambdify(given, wanted, jacobian=True)(2.0, [0.5, 3.0], np.array([[1.0], [4.0]]))
    assert value[0] == 1.0
    np.testing.assert_array_equal(value[1], [[9.0, 2.0]])
    assert value[2][0] == pytest.approx(math.sin(0.5))
    np.testing.assert_array_equal(value[2][1], [[17.0]])
    expected = [[0.5, 2, 0, 0, 0], [0, math.cos(0.5), 0, 0, 0], [0, 0, 6, 0, 0], [1, 0, 0, 0, 0], [0, 0, 0, 2, 8]]
    np.testing.assert_allclose(slope, expected, rtol=1e-15)


def test_many_points_keywords_and_one_kernel() -> None:
    f = sa.lambdify([X, Y], sp.exp(X * Y) * Y, jacobian=True, hessian=True)
    points = np.linspace(0.0, 1.0, 7)
    value, slope, bend = f(points, y=2.0)
    assert (value.shape, slope.shape, bend.shape) == ((7,), (1, 2, 7), (2, 2, 7))
    np.testing.assert_allclose(slope[0, 0], 4.0 * np.exp(2.0 * points), rtol=1e-14)
    assert f.kernel.stats.operations_after < 15  # one exponential, shared by all
    assert repr(f) == "<Lambdified f(x, y) = y*exp(x*y), jacobian and hessian>"


def test_a_pair_of_cse_is_differentiated_as_it_is() -> None:
    """SymPy would write each derivative out; the tower of squares has 2**30 terms if it is expanded."""
    names = sp.symbols("t:30")
    replacements = [(names[0], X * Y), *((b, a * a + a) for a, b in itertools.pairwise(names))]
    value, slope, bend = sa.lambdify([X, Y], (replacements, [sp.atan(names[-1])]), jacobian=True, hessian=True)(
        0.1, 0.2
    )
    steps = sa.fori_loop
    direct = lambda v: np.arctan(steps(0, 29, lambda _, u: u * u + u, v[0] * v[1]))  # noqa: E731
    point = np.array([0.1, 0.2])
    assert value == pytest.approx(direct(point), rel=1e-12)
    np.testing.assert_allclose(slope[0], sa.grad(direct)(point), rtol=1e-10)
    np.testing.assert_allclose(bend, sa.hessian(direct)(point), rtol=1e-8)


def test_symengine() -> None:
    se = pytest.importorskip("symengine")
    x, y = se.symbols("x y")
    expression = se.sin(x * y) + x**3
    value, slope = sa.lambdify([x, y], expression, jacobian=True)(0.5, 2.0)
    assert value == pytest.approx(math.sin(1.0) + 0.125)
    np.testing.assert_allclose(slope, [[2 * math.cos(1.0) + 0.75, 0.5 * math.cos(1.0)]], rtol=1e-14)
    matrix = se.DenseMatrix([[x, y], [x * y, 1]])
    assert codegen.lambdify([x, (y,)], [matrix, x + y])(2.0, [3.0])[0].tolist() == [[2, 3], [6, 1]]
    replacements, reduced = se.cse([(x + y) ** 2, se.sin(x + y)])
    assert codegen.lambdify([x, y], (replacements, reduced))(1.0, 2.0) == pytest.approx([9.0, math.sin(3.0)])


def test_without_derivatives_it_is_codegens() -> None:
    assert sa.lambdify([X, Y], [X + Y], cse=True)(1.0, 2.0) == [3.0]
    assert str(sa.lambdify(X, sp.sin(X), "mpmath")(1)) == "0.841470984807897"


@pytest.mark.parametrize(
    ("wanted", "options", "message"),
    [
        ([X, Y], {"hessian": True}, "the Hessian of 2 expressions; weight them with symbols"),
        (X, {"sparse": True}, "sparse=True without derivatives"),
        (X, {"jacobian": True, "modules": "mpmath"}, "modules='mpmath' with derivatives"),
        (X, {"jacobian": True, "printer": sp.printing.pycode}, "printer"),
    ],
)
def test_what_is_refused(wanted: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        sa.lambdify([X, Y], wanted, **options)


def test_codegen_names_the_way() -> None:
    with pytest.raises(ArgumentError, match=r"jacobian= of codegen\.lambdify: it knows no derivatives; use symad"):
        codegen.lambdify([X], X, jacobian=True)  # type: ignore[call-overload]
