"""SymPy in: what an expression may hold, what may be an argument, and what is refused by name."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import sympy as sp
from sympy.physics.mechanics import dynamicsymbols
from sympy.physics.units import meter

import codegen
import symad as sa
from symad.compiling.native import compile_trace
from symad.tracing.values.containers import flatten, unflatten

x, y, n = sp.symbols("x y n", real=True)
i, j = sp.symbols("i j", integer=True)
t = sp.Symbol("t")
Q, U = dynamicsymbols("q u")
A = sp.MatrixSymbol("A", 2, 2)
VECTOR = sp.IndexedBase("a", shape=(3,))
FREE = sp.IndexedBase("b")
z = sp.Symbol("z")
ROOT = sp.CRootOf(z**5 - z - 1, 0)

FORMS = [
    sp.Sum(sp.sin(i * x) / i, (i, 1, 7)),
    sp.Sum(x**i / sp.factorial(i), (i, 0, 10)),
    sp.Sum(x * i * j, (j, 1, i), (i, 1, 3)),
    sp.Sum(sp.Sum(x ** (i * j), (j, 0, i)), (i, 0, 3)),
    sp.Sum(sp.Sum(i * x, (i, 1, 3)) + i, (i, 1, 2)),
    sp.Sum((i - 1) * x ** (i - 2), (i, 1, 3)),
    sp.Sum(sp.legendre(i, x), (i, 0, 3)),
    sp.Sum(sp.Piecewise((x, sp.Eq(i, 2)), (y, True)), (i, 1, 3)),
    sp.Sum(x * y, (i, 1, 4)),
    sp.Sum(x + i, (i, 5, 1)),
    sp.Sum(x + i, (i, 5, 4)),
    sp.Product(x + i, (i, 1, 3)),
    sp.Product(x + i, (i, 5, 1)),
    sp.Product(x + i, (i, 5, 4)),
    sp.Sum(x**i, (i, sp.Rational(1, 2), sp.Rational(5, 2))),
    sp.Sum(sp.exp(-((x - i) ** 2)), (i, -2, 2)) * sp.Product(1 + y**i, (i, 1, 3)),
    sp.UnevaluatedExpr(x) + sp.UnevaluatedExpr(x * y),
    sp.Piecewise((x**2, x > 1), (sp.Max(x, y, 0), sp.And(x > 0, y < 2)), (sp.Min(x, y), True)),
    sp.Abs(x) * sp.sign(y) + sp.Heaviside(x - 1) * y + sp.Max(x * y, 0) - sp.Min(x, y, 1),
    sp.Piecewise((x, sp.Contains(x, sp.Interval(0, 1))), (y, True)),
    ROOT * x + sp.AlgebraicNumber(sp.sqrt(2)) * y,
    sp.Float("0.1", 40) * x + sp.Rational(1, 3) + sp.EulerGamma * y + sp.GoldenRatio,
    sp.Trace(sp.Matrix([[x, 1], [2, y]])) + sp.Determinant(sp.Matrix([[x, 1], [2, y]])),
    sp.Matrix([[x, y], [1, 2]]).det() + sp.Array([x, y])[1],
]
POINT = {x: sp.Rational(7, 10), y: sp.Rational(13, 10)}


@pytest.mark.parametrize("expression", FORMS, ids=str)
def test_forms_have_sympys_values_and_derivatives(expression):
    formula = sa.from_sympy([x, y], expression)
    wanted = [float(e.doit().evalf(30, subs=POINT)) for e in (expression, *(expression.doit().diff(v) for v in (x, y)))]
    point = [float(value) for value in POINT.values()]
    kernel = sa.compile(lambda p, q: (formula(p, q), *sa.grad(formula, (0, 1))(p, q)), *point)
    np.testing.assert_allclose(kernel(*point), wanted, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose([formula(*point), *sa.grad(formula, (0, 1))(*point)], wanted, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("expression", FORMS[:7] + FORMS[11:12] + FORMS[15:19], ids=str)
def test_forms_in_a_traced_function(expression):
    """SymPy substitutes traced values, and writes the sums out with them."""
    wanted = [float(e.doit().evalf(30, subs=POINT)) for e in (expression, expression.doit().diff(x))]
    value, slope = sa.value_and_grad(lambda s: sp.Add(expression.subs({x: s, y: 1.3}), 0))(0.7)
    np.testing.assert_allclose([value, slope], wanted, rtol=1e-12)


def test_conditions_and_truth_values():
    expressions = [sp.ITE(x > 0, y > 0, y < 0), sp.Xor(x > 0, y > 0), sp.Implies(x > 0, y > 0), sp.Nand(x > 0, y > 0)]
    formula = sa.from_sympy([x, y], expressions)
    for point in ((1.0, -1.0), (-1.0, -1.0), (1.0, 1.0)):
        assert formula(*point) == [bool(e.subs({x: point[0], y: point[1]})) for e in expressions]


def test_a_long_sum_costs_linear_time_in_the_graph():
    formula = sa.from_sympy([x], sp.Sum(x * i, (i, 1, 2000)))
    assert formula.count_ops() < 4 * 2000
    assert formula(1.0) == 2000 * 2001 / 2


ARGUMENTS = [
    ([x, y], x * sp.sin(y), (2.0, 3.0), 2 * np.sin(3)),
    (x, x**2, (3.0,), 9.0),
    ([VECTOR], sp.Sum(VECTOR[i] ** 2, (i, 0, 2)), (np.array([1.0, 2.0, 3.0]),), 14.0),
    ([VECTOR, n], sp.Sum(n * VECTOR[i + 1] / VECTOR[i], (i, 0, 1)), (np.array([1.0, 2.0, 3.0]), 2.0), 7.0),
    ([VECTOR], sp.Sum(VECTOR[sp.Idx("k", 3)], sp.Idx("k", 3)), (np.array([1.0, 2.0, 3.0]),), 6.0),
    ([FREE[0], FREE[n]], FREE[0] - FREE[n], (1.0, 3.0), -2.0),
    ([A], A[0, 1] - sp.Trace(A), (np.array([[1.0, 2.0], [3.0, 4.0]]),), -3.0),
    ([A], A * A.T, (np.array([[1.0, 2.0], [3.0, 4.0]]),), [[5, 11], [11, 25]]),
    ([A], sp.Determinant(A) * sp.Identity(2) + A.inv(), (np.array([[1.0, 2.0], [3.0, 4.0]]),), [[-4, 1], [1.5, -2.5]]),
    ([sp.Matrix([x, y])], sp.Matrix([x * y, x]), (np.array([[2.0], [3.0]]),), [[6.0], [2.0]]),
    ([sp.ImmutableMatrix([[x, y]])], sp.Array([x * y, x]), (np.array([[2.0, 3.0]]),), [6.0, 2.0]),
    ([sp.Array([x, y]), n], sp.Array([[x, n], [y, 1]]), (np.array([2.0, 3.0]), 4.0), [[2, 4], [3, 1]]),
    ([np.array([x, y], dtype=object)], x - y, (np.array([2.0, 3.0]),), -1.0),
    ([Q, Q.diff(t), Q.diff(t, 2), t], Q.diff(t, 2) * Q + Q.diff() * t, (2.0, 3.0, 5.0, 7.0), 31.0),
    ([{"q": Q, "u": [U, Q.diff()]}], Q * U - Q.diff(), ({"q": 2.0, "u": [3.0, 4.0]},), 2.0),
    ([sp.Function("f")(x, y), x], sp.Function("f")(x, y) ** 2 * x, (2.0, 3.0), 12.0),
]


@pytest.mark.parametrize(("args", "expression", "values", "wanted"), ARGUMENTS, ids=lambda value: str(value)[:40])
def test_arguments(args, expression, values, wanted):
    formula = sa.from_sympy(args, expression)
    np.testing.assert_allclose(formula(*values), wanted, rtol=1e-14)
    np.testing.assert_allclose(sa.compile(formula, *values)(*values), wanted, rtol=1e-14)
    np.testing.assert_allclose(compile_trace(formula)(*values), wanted, rtol=1e-14)
    slope = sa.jvp(formula, values, values)[1]
    step = 1e-6
    near = [formula(*_scaled(values, 1 + sign * step)) for sign in (1, -1)]
    np.testing.assert_allclose(slope, (np.array(near[0]) - near[1]) / (2 * step), rtol=1e-7, atol=1e-7)


def _scaled(values: Any, factor: float) -> Any:
    leaves, structure = flatten(values)
    return unflatten(structure, [leaf * factor for leaf in leaves])


def test_objects_come_back_as_they_are():
    """x(t), its derivative, x[0] and A[0, 1] are leaves: no dummies, and assumptions stay."""
    positive = sp.Symbol("p", positive=True)
    args = [Q, Q.diff(t), VECTOR[0], A[0, 1], positive]
    expression = Q * Q.diff(t) + VECTOR[0] * A[0, 1] + sp.Float("0.1", 40) * positive
    formula = sa.from_sympy(args, expression)
    (found,) = formula.let()[1]
    assert sp.simplify(found - expression) == 0
    assert formula.expr().free_symbols == expression.free_symbols
    assert {atom for atom in formula.expr().atoms(sp.Symbol) if atom.is_positive} == {positive}
    assert next(iter(formula.expr().atoms(sp.Float)))._prec == sp.Float("0.1", 40)._prec


def test_a_formula_takes_expressions_and_traced_values():
    formula = sa.from_sympy([x, y], x * sp.sin(y))
    assert formula(Q, 2) == Q * sp.sin(2)
    assert sa.derivative(lambda s: formula(s, s))(t) == t * sp.cos(t) + sp.sin(t)
    assert sa.grad(lambda s: formula(s, 1.0) * formula(1.0, s))(2.0) == pytest.approx(
        np.sin(1) * (np.sin(2) + 2 * np.cos(2)), rel=1e-14
    )
    free = sa.from_sympy([x], x * y)
    assert free(3) == 3 * y


def test_arguments_of_a_formula_have_names():
    formula = sa.from_sympy([Q, Q.diff(t), VECTOR], Q * Q.diff(t) * VECTOR[1])
    values = (2.0, 3.0, np.array([1.0, 5.0, 7.0]))
    assert sa.grad(formula, wrt="q_t")(*values) == 15.0
    np.testing.assert_array_equal(sa.grad(formula, wrt="a")(*values), [0.0, 6.0, 0.0])
    with pytest.raises(sa.errors.ArgumentError, match=r"near paths are .*Derivative_q_t_t"):
        sa.grad(formula, wrt="Derivative")(*values)


def test_lambdas_are_functions():
    f = sp.Lambda((x, y), x**2 * sp.sin(y))
    assert sa.grad(f, (0, 1))(2.0, 1.0) == pytest.approx((4 * np.sin(1), 4 * np.cos(1)), rel=1e-15)
    assert sa.grad(f, wrt="y")(2.0, 1.0) == pytest.approx(4 * np.cos(1), rel=1e-15)
    assert sa.compile(f, 0.0, 0.0)(2.0, 1.0) == pytest.approx(4 * np.sin(1), rel=1e-15)
    assert sa.trace(f, 0.0, 0.0).expr() == x**2 * sp.sin(y)
    assert sa.grad(sp.Lambda(((x, y), n), x**2 * y * n))((2.0, 1.0), 3.0) == (12.0, 12.0)
    assert sa.hessian(sp.Lambda(x, sp.exp(x)))(0.0) == 1.0
    assert sa.grad(sp.sin)(0.0) == 1.0


def test_symbolic_constants_pass_through():
    """Inside a differentiated function, what is no number stays what it is: symbols in, symbols out."""
    f = sp.Function("f")
    for constant in (f(t), f(t).diff(t), FREE[0], Q.diff(t, 2)):
        assert sa.derivative(lambda s, c=constant: c * s**2)(x) == 2 * x * constant
        assert sa.derivative(lambda s: sp.sin(s) * s)(constant) == sp.sin(constant) + constant * sp.cos(constant)


EXPRESSIONS_REFUSED = [
    (sp.Sum(x + i, (i, 1, n)), r"Sum\(.*the bound n is symbolic.*substitute a number"),
    (sp.Sum(x**i, (i, 1, sp.oo)), r"the bound oo is infinite.*doit\(\)"),
    (sp.Sum(x**i, (i, 1, 10**7)), "more than 100000 terms"),
    (sp.Sum(x**i, (i, 1, sp.Rational(5, 2))), "no whole number apart"),
    (x + sp.Integral(sp.sin(i * x), (i, 0, 1)), r"unevaluated Integral.*write expression\.doit\(\)"),
    (sp.Derivative(sp.sin(x), x), r"unevaluated Derivative.*doit\(\)"),
    (sp.Subs(sp.sin(i), i, x), r"unevaluated Subs.*doit\(\)"),
    (sp.Limit(sp.sin(i) / i, i, 0) * x, r"unevaluated Limit.*doit\(\)"),
    (x + sp.O(x**3), r"unevaluated Order.*removeO\(\)"),
    (x * sp.I, "the complex number I"),
    (sp.Add(x, sp.zoo, evaluate=False), "the complex number zoo"),
    (x * sp.CRootOf(z**5 - z - 1, 1), "the complex number CRootOf"),
    (x * meter, "Quantity meter.*no real number"),
    (sp.Lambda(x, x), "a Lambda is a function"),
    (A[0, 0] * x, r"A\[0, 0\].*no input.*pass the matrix A in"),
    (A * x, "matrix expression.*not written out"),
    (sp.Trace(A), r"A\[0, 0\].*no input"),
    (sp.Interval(0, 1), "SymPy object of type Interval"),
    (VECTOR[0] * x, r"a\[0\] in the expression.*none of the arguments \(x, y\)"),
    (Q * x, r"q\(t\) in the expression.*add it to the arguments"),
    (Q.diff(t, 2) * x, r"Derivative\(q\(t\), \(t, 2\)\) in the expression.*add it"),
    (sp.Derivative(Q**2, t), r"Derivative\(q\(t\)\*\*2, t\).*write expression\.doit\(\)"),
]


@pytest.mark.parametrize(("expression", "text"), EXPRESSIONS_REFUSED, ids=str)
def test_refused_expressions(expression, text):
    with pytest.raises((sa.errors.TraceError, sa.errors.ArgumentError), match=text) as caught:
        sa.from_sympy([x, y], expression)
    assert str(caught.value).startswith(__file__)


@pytest.mark.parametrize(("expression", "text"), EXPRESSIONS_REFUSED[:15], ids=str)
def test_the_same_inside_a_function_names_the_line(expression, text):
    with pytest.raises(sa.errors.TraceError) as caught:
        sa.grad(lambda s: s + np.multiply(expression, s))(1.0)
    assert str(caught.value).startswith(__file__)


ARGUMENTS_REFUSED = [
    [x + 1],
    [x, x],
    [2.0],
    [FREE],
    [sp.Function("f")],
    [sp.MatrixSymbol("B", n, 2)],
    [sp.Matrix([x, x])],
    [Q**2],
    [sp.Derivative(x**2, x)],
    ["x y"],
    [sp.pi],
]


@pytest.mark.parametrize("args", ARGUMENTS_REFUSED, ids=str)
def test_refused_arguments(args):
    with pytest.raises(sa.errors.ArgumentError, match="distinct SymPy symbols"):
        sa.from_sympy(args, x)


def test_a_formula_checks_what_it_gets():
    formula = sa.from_sympy([sp.Array([x, y]), n], x * n)
    with pytest.raises(sa.errors.ArgumentError, match=r"argument_0 of shape \(3,\)"):
        formula(np.ones(3), 1.0)
    with pytest.raises(sa.errors.ArgumentError, match="structure"):
        formula(np.ones(2))
    with pytest.raises(sa.errors.ArgumentError, match="structure"):
        formula(np.ones(2), 1.0, 2.0)


def test_lambdify_takes_the_same_arguments():
    f = codegen.lambdify([Q, [Q.diff(t), U]], [Q * Q.diff(t), U])
    assert f(2.0, [3.0, 4.0]) == [6.0, 4.0]
    assert codegen.lambdify(Q, Q**2)(3.0) == 9.0
    product, total = codegen.lambdify([A, VECTOR], [A * A, sp.Sum(VECTOR[i], (i, 0, 2))])(
        2 * np.eye(2), [1.0, 2.0, 3.0]
    )
    np.testing.assert_array_equal(product, 4 * np.eye(2))
    assert total == 6.0
    assert codegen.lambdify(VECTOR, VECTOR[1])([1.0, 2.0, 3.0]) == 2.0
    with pytest.raises(codegen.UnboundSymbolError, match=r"u\(t\): it is no argument"):
        codegen.lambdify([Q], Q * U)
    with pytest.raises(codegen.UnboundSymbolError, match=r"a\[3\]"):
        codegen.lambdify([VECTOR], VECTOR[3])
    with pytest.raises(codegen.LoweringError, match="unevaluated Integral"):
        codegen.lambdify([x], sp.Integral(x * i, (i, 0, 1)), "native")


def test_a_column_matrix_is_a_vector_where_a_function_is_called_with_it():
    column = sp.Matrix([x, y])
    assert sa.grad(lambda v: v[0] ** 2 * v[1])(column).tolist() == [2 * x * y, x**2]
    assert sa.hessian(lambda v: v[0] ** 2 * v[1])(column).tolist() == [[2 * y, 2 * x], [2 * x, 0]]
    assert sa.compile(lambda m: m * 2, sp.ImmutableMatrix([1, 2]))(np.ones(2)).shape == (2,)
    assert sa.trace(lambda v: v @ v, column).expr() == x * x + y * y
    assert sa.grad(lambda m: m[0, 0] * m[0, 1])(column.T).tolist() == [[y, x]]


def test_a_symbol_given_as_argument_keeps_its_name():
    x, y = sp.symbols("x y")
    traced = sa.trace(lambda a: a[0] * a[1], np.array([x, y], dtype=object))
    assert traced.expr() == x * y
    assert [str(traced.graph.atoms[node]) for node in traced.inputs.flat] == ["x", "y"]
    with pytest.raises(sa.errors.ArgumentError, match="the symbol y in the traced function"):
        sa.trace(lambda a: a * y, y)


def test_a_lambdified_function_is_differentiated():
    f = codegen.lambdify([x, [i, Q]], sp.sin(x) * i + Q**2)
    g = sa.grad(f, argnums=(0, 1))
    assert g(0.5, [2.0, 3.0]) == (pytest.approx(2 * np.cos(0.5)), [pytest.approx(np.sin(0.5)), 6.0])
    assert sa.compile(sa.derivative(codegen.lambdify(x, x**3)), 2.0)(2.0) == 12.0
    at = np.array([0.5, 2.0])
    for form in ([x, i], (x, i), sp.Matrix([x, i])):  # a list of symbols is given an array, and differentiated in it
        f = codegen.lambdify([form], sp.sin(x) * i**2)
        assert sa.grad(f)(at).ravel() == pytest.approx([4 * np.cos(0.5), 4 * np.sin(0.5)])
        assert sa.compile(sa.hessian(lambda v, f=f: f(v)), at)(at)[1] == pytest.approx(
            [4 * np.cos(0.5), 2 * np.sin(0.5)]
        )
    with pytest.raises(
        sa.errors.ArgumentError, match=r"expression x\*\*2 .*; make a function of it: sa.from_sympy\(\[x\], expression"
    ):
        sa.grad(x**2)


@pytest.mark.parametrize("parameters", [((1, 2), (3,)), ((2,), (3,)), ((), (3,))])
def test_hypergeometric_functions(parameters):
    x = sp.Symbol("x")
    expression = sp.hyper(*parameters, x / 4)
    found = sa.value_and_grad(sa.from_sympy([x], expression))(1.3)
    wanted = [float(sp.N(part.subs(x, 1.3))) for part in (expression, expression.diff(x))]
    assert found == pytest.approx(wanted, rel=1e-14)


def test_hypergeometric_functions_of_lists_are_refused_by_name():
    x = sp.Symbol("x")
    with pytest.raises(sa.WorkbenchError, match="hyper with 2 and 2 parameters"):
        sa.grad(sa.from_sympy([x], sp.hyper((x, 2), (3, 5), x)))(0.3)
