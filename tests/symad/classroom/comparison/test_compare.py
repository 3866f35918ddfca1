"""compare: every route agrees on known answers, a planted wrong route is called wrong by name, errors are measured."""

from __future__ import annotations

import csv
import io
import math
import signal
import time
from dataclasses import replace

import mpmath
import numpy as np
import pytest
import sympy as sp
from scipy import special

import symad as sa
from symad.classroom.comparison import comparison_rows as compare_rows, reference as compare_reference, routes
from symad.classroom.comparison.compare import compare
from symad.classroom.comparison.comparison_problem import Built, problem_of
from symad.classroom.comparison.reference import reference_of
from symad.classroom.comparison.routes import carried_out
from symad.derivatives import second_order
from symad.rules.overrides import OVERRIDES

RIGHT = ("proved", "tested", "agrees")
X = sp.Symbol("x", real=True)


def sines(x):
    for _ in range(6):
        x = np.sin(x)
    return x


def rosenbrock(x):
    return np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def softplus(x):
    return np.log1p(np.exp(x))


SPEELPENNING = np.zeros((5, 5))
SPEELPENNING[0, 2] = SPEELPENNING[2, 0] = 24

# f, point, order, exact derivatives (known answers, part B)
KNOWN = {
    "sin, 5th": (np.sin, 1.1, 5, np.cos(1.1)),
    "1/(1-x), 3rd": (lambda x: 1 / (1 - x), 0.5, 3, 96.0),
    "log, 4th": (np.log, 2.0, 4, -6 / 16),
    "exp(-x^2), 6th": (lambda x: np.exp(-(x**2)), 1.0, 6, 184 / np.e),
    "Bell numbers, 5th": (lambda x: np.exp(np.exp(x) - 1), 0.0, 5, 52.0),
    "tan, 3rd": (np.tan, 0.0, 3, 2.0),
    "softplus, 2nd": (softplus, 0.0, 2, 0.25),
    "softplus, 3rd": (softplus, 0.0, 3, 0.0),
    "sines of sines": (sines, 1.0, 1, 0.13877489681259086),
    "Rosenbrock, gradient": (rosenbrock, np.array([-1.2, 1.0]), 1, [-215.6, -88.0]),
    "Rosenbrock, Hessian": (rosenbrock, np.array([-1.2, 1.0]), 2, [1330, 480, 480, 200]),
    "Rosenbrock, 3rd": (rosenbrock, np.array([-1.2, 1.0]), 3, [-2880, -400, -400, 0, -400, 0, 0, 0]),
    "norm, Hessian": (np.linalg.norm, np.array([3.0, 4.0]), 2, np.array([16, -12, -12, 9]) / 125),
    "a product with zeros": (np.prod, np.array([0.0, 2.0, 0.0, 3.0, 4.0]), 2, SPEELPENNING.ravel()),
}  # fmt: skip


@pytest.mark.parametrize("name", KNOWN)
@pytest.mark.thinned
def test_every_route_agrees_on_known_answers(name):
    f, x, order, answer = KNOWN[name]
    found = compare(f, x, order, times=False)
    right = np.ravel(answer)
    np.testing.assert_allclose(np.array(found.reference.values, dtype=float), right, rtol=1e-14, atol=1e-25)
    for row in found.rows:
        if row.verdict in ("not installed", "failed"):
            assert row.family == routes.PEER or row.route == "complex step", row
        elif row.family != routes.NUMERIC:
            assert row.verdict in RIGHT, row
            np.testing.assert_allclose(row.values, right, rtol=1e-11, atol=1e-12, err_msg=row.route)
            assert row.ulp is None or row.ulp < 1e4, row
        else:
            assert row.verdict in (*RIGHT, "inaccurate"), row
    assert found.enclosure.contains(found.reference.values)
    assert found.wrong == ()


def test_routes_of_each_kind_are_there():
    names = {name for name, _, _ in routes.routes(2, (3,))}
    assert {"AD FF", "AD FR", "AD RF", "AD RR", "AD edge", "AD dyadic", "interpolation"} <= names
    assert {"differences forward", "differences central", "Richardson", "JAX", "CasADi", "SymEngine"} <= names
    assert {"complex step", "Taylor"} <= {name for name, _, _ in routes.routes(1, ())}
    assert "AD tensor rev" in {name for name, _, _ in routes.routes(3, (2,))}
    assert len([name for name, _, _ in routes.routes(3, ()) if name.startswith("AD ")]) == 8


@pytest.fixture
def wrong_rule_of_cos(monkeypatch):
    """The derivative of the cosine without its sign; templates that were made with it do not stay."""
    second_order._second_template.cache_clear()
    monkeypatch.setitem(OVERRIDES, sp.cos, (lambda build, p, u: build.call(sp.sin, u),))
    yield
    second_order._second_template.cache_clear()


@pytest.mark.usefixtures("wrong_rule_of_cos")
def test_a_wrong_rule_is_called_wrong_and_the_right_routes_are_not():
    found = compare(lambda x: np.exp(np.cos(x)), 0.7, 2, times=False)
    assert set(found.wrong) == {"AD FF", "AD FR", "AD RF", "AD RR", "AD edge", "AD dyadic", "Taylor"}
    assert {found[name].verdict for name in ("sympy.diff, lambdify", "differences central")} <= set(RIGHT)
    assert "wrong: AD FF, AD FR" in found.text(200)
    assert "0 of 4 random points" in found["AD RR"].reason
    assert found.enclosure.contains(found.reference.values), "balls are put around a formula that is right"


def test_a_wrong_rule_of_the_user_is_called_wrong():
    @sa.custom_derivative(derivative=lambda primals, tangents: 1.001 * np.cos(primals[0]) * tangents[0])
    def sine(x):
        return np.sin(x)

    found = compare(lambda x: sine(x) * x, 0.5, times=False)
    assert found.wrong == ("AD F", "AD R", "Taylor")


def planted(monkeypatch, **changes):
    """Add a row to the table of routes: the Hessian by edge pushing, changed."""
    edge = routes.Route(
        "planted", routes.AD, lambda problem, _: routes._hessian(problem, "edge"), variants=lambda _: ("",)
    )
    monkeypatch.setattr(routes, "ROUTES", (*routes.ROUTES, replace(edge, **changes)))


def test_a_wrong_entry_in_a_right_hessian_is_found(monkeypatch):
    """The contraction with different directions sees entries that are not symmetric, too."""

    def build(problem, _):
        def skew(x):
            return sa.hessian(problem.function)(x) + np.array([[0.0, 1e-9], [-1e-9, 0.0]]) * x[0]

        return routes._compiled(problem, skew)

    planted(monkeypatch, build=build)
    found = compare(lambda x: np.exp(x[0] * x[1]), np.array([0.3, 0.5]), 2, only=["AD", "planted"], times=False)
    assert found.wrong == ("planted",)


def test_wrong_values_without_a_formula_are_called_inaccurate(monkeypatch):
    def build(problem, _):
        right = routes._hessian(problem, "edge")
        return Built(lambda x: np.asarray(right.call(x)) * (1 + 1e-5))

    planted(monkeypatch, build=build)
    found = compare(lambda x: np.exp(x[0] * x[1]), np.array([0.3, 0.5]), 2, only=["planted", "sympy"], times=False)
    assert found["planted"].verdict == "inaccurate"
    assert found["planted"].reason == "5 digits at the best of 4 random points"
    assert found
    assert found.wrong == ()


@pytest.mark.parametrize("at", [30.0, 36.0, 40.0])
def test_a_route_that_cancels_is_inaccurate_whoever_made_it(at):
    found = compare("log(1 + exp(x))", {"x": at}, 2, times=False, only=["sympy.diff", "AD FF", "JAX", "CasADi"])
    assert found.wrong == ()
    assert {row.verdict for row in found.rows if row.ulp is not None and row.ulp > 1e11} == {"inaccurate"}


def test_a_route_that_is_slow_or_raises_is_a_row(monkeypatch):
    def slow(problem, _):
        signal.raise_signal(signal.SIGALRM)  # what comes when the time is over

    planted(monkeypatch, build=slow)
    found = compare(np.exp, 0.3, 2, only=["planted", "AD FF"], max_seconds=600.0, times=False)
    assert found["planted"].verdict == "failed"
    assert "600 s" in found["planted"].reason
    assert found["AD FF"].verdict == "tested"


def test_a_route_of_another_shape_is_a_row(monkeypatch):
    planted(monkeypatch, build=lambda problem, _: Built(lambda x: np.zeros(3)))
    assert "3 values" in compare(np.exp, 0.3, 1, only=["planted"])["planted"].reason


def test_sympy_that_swells_is_a_row_with_the_reason():
    def tower(x):
        for _ in range(40):
            x = np.sin(x) * x
        return x

    found = compare(tower, 1.6, 1, only=["sympy", "AD", "Taylor"], times=False)
    assert found["sympy.diff, lambdify"].verdict == "failed"
    assert "as a tree" in found["sympy.diff, lambdify"].reason
    assert found["AD R"].verdict == "tested"
    assert found["AD R"].sizes.tree > 10**12 > 10**3 > found["AD R"].sizes.graph


def test_ulp_by_an_independent_computation():
    """The error of each route from SymPy's own evaluation in 60 digits, and the spacing of floats by NumPy."""
    x = 0.37
    found = compare(sp.exp(sp.sin(3 * X)) / (1 + X**2), {X: x}, 2, times=False)
    exact = sp.diff(sp.exp(sp.sin(3 * X)) / (1 + X**2), X, 2).subs(X, sp.Rational(x)).evalf(60)
    for row in found.rows:
        if row.values:
            gap = abs(sp.Rational(row.values[0]) - exact) / sp.Rational(float(np.spacing(abs(float(exact)))))
            assert row.ulp == pytest.approx(float(gap), rel=1e-9), row.route
            assert row.ulp <= row.ulp_bound <= row.ulp * (1 + 1e-9) + 1e-9, row.route
            assert row.absolute == pytest.approx(float(abs(row.values[0] - exact)), rel=1e-6, abs=1e-16), row.route


def test_digits_that_cancel_are_called_inaccurate_and_not_wrong():
    found = compare(lambda x: (1 - np.cos(x)) / x**2, 1e-4, 2, times=False)
    row = found["AD FR"]
    assert row.verdict == "inaccurate"
    assert row.ulp > 1e15
    assert row.digits < 1
    assert "proved by algebra" in row.reason
    assert found.wrong == ()


@pytest.mark.parametrize(
    ("f", "x", "why"),
    [
        (lambda x: abs(x), 0.0, "kink"),
        (lambda x: np.maximum(x, x**2), 1.0, "kink"),
        (lambda x: np.sqrt(x), 0.0, "edge"),
        (lambda x: np.log(x), -2.0, "outside"),
        (lambda x: 1 / x, 0.0, "outside"),
        (lambda x: np.linalg.norm(x), np.zeros(2), "kink"),
    ],
)
def test_points_without_a_derivative(f, x, why):
    found = compare(f, x, times=False)
    assert why in found.reference.refusal
    assert found.reference.refusal in found.text(300)
    assert {row.verdict for row in found.rows} <= {"no derivative", "failed", "not installed"}
    assert all(row.ulp is None for row in found.rows)


def test_a_kink_of_a_higher_derivative_only():
    smooth = lambda x: abs(x) * x**2  # noqa: E731
    assert not compare(smooth, 0.0, 2, only=["AD"], times=False).reference.refusal
    assert "kink" in compare(smooth, 0.0, 3, only=["AD"], times=False).reference.refusal


def test_overflow_is_no_number_and_says_so():
    found = compare(lambda x: np.log(1 + np.exp(x) ** 2), 500.0, only=["sympy.diff, lambdify", "AD"], times=False)
    row = found["sympy.diff, lambdify"]
    assert row.verdict == "no number"
    assert "nan" in row.reason
    assert row.ulp is None


def test_underflow_is_not_called_wrong():
    found = compare(lambda x: np.exp(x) * 1e-320, 0.5, only=["complex", "AD"], times=False)
    assert found["complex step"].verdict == "inaccurate"
    assert found["AD F"].verdict == "tested"


def test_high_orders():
    found = compare(lambda x: np.exp(2 * x), 0.8, 13, only=["AD", "Taylor"], times=False)
    assert [row.route for row in found.rows] == ["AD F^13", "AD R^13", "AD (FR)^6 F", "AD (RF)^6 R", "Taylor"]
    assert {row.verdict for row in found.rows} == {"tested"}
    assert float(found.reference.values[0]) == pytest.approx(2**13 * math.exp(1.6), rel=1e-15)


@pytest.mark.parametrize(
    "f", [lambda x: x**x, lambda x: np.sqrt(x) / (2 + np.arctan(x) ** 3), lambda x: np.hypot(x, 2)]
)
def test_operations_are_carried_out_on_the_numbers_of_another_library(f):
    """NumPy stands in for the other library, which may not be installed."""
    problem = problem_of(f, 0.7, 1, 1.0)
    assert carried_out(problem, [0.7], np) == pytest.approx(f(0.7), rel=1e-15)
    with pytest.raises(sa.errors.LoweringError, match="erf in numpy"):
        carried_out(problem_of(special.erf, 0.7, 1, 1.0), [0.7], np)


def test_other_libraries_are_rows_that_say_so_where_they_are_not_installed(monkeypatch):
    for row in compare(lambda x: np.exp(np.sin(x)), 0.3, 2, only=["JAX", "CasADi", "SymEngine"], times=False).rows:
        assert row.verdict in ("agrees", "not installed"), row
    monkeypatch.setitem(__import__("sys").modules, "casadi", None)
    row = compare(np.exp, 0.3, only=["CasADi"]).rows[0]
    assert (row.verdict, row.reason) == ("not installed", "casadi is not installed")


def test_differences_are_exact_references_to_50_digits():
    exact = reference_of(problem_of(lambda x: np.exp(np.sin(3 * x)), 0.37, 4, 10.0)).values[0]
    formula = sp.diff(sp.exp(sp.sin(3 * X)), X, 4).subs(X, sp.Rational(0.37)).evalf(70)
    with mpmath.workdps(60):
        assert abs(exact - mpmath.mpf(str(formula))) < mpmath.mpf(10) ** -48


@pytest.mark.parametrize(("x", "order"), [(0.4, 3), (np.array([0.4, 0.7]), 2), (np.array([0.4, 0.7]), 1)])
def test_exact_values_come_from_a_formula_where_differences_take_too_long(monkeypatch, x, order):
    def endless(problem, x):
        while True:
            time.sleep(0.001)

    f = lambda x: np.sum(np.exp(np.sin(x * x)))  # noqa: E731
    problem = problem_of(f, x, order, 0.05)
    by_values = reference_of(problem_of(f, x, order, 60.0))
    monkeypatch.setattr(compare_reference, "_differences", endless)
    by_formula = reference_of(problem)
    assert "values of f" in by_values.source
    assert "formula" in by_formula.source
    for a, b in zip(by_formula.values, by_values.values, strict=True):
        assert abs(a - b) <= abs(b) * mpmath.mpf(10) ** -40


def test_expressions_and_vectors_of_symbols():
    assert compare("x sin(x)", {"x": 0.5}, only=["AD"], times=False)["AD F"].ulp < 2
    x, y = sp.symbols("x y")
    found = compare(x**2 * sp.sin(y), {x: 2.0, y: 0.5}, 2, times=False)
    np.testing.assert_allclose(found["AD edge"].values, [2 * np.sin(0.5), *[4 * np.cos(0.5)] * 2, -4 * np.sin(0.5)])
    assert found["sympy.diff, lambdify"].verdict == "tested"
    matrix = compare(np.linalg.det, np.array([[2.0, 1.0], [1.0, 3.0]]), times=False)
    assert matrix["AD R"].values == (3.0, -1.0, -1.0, 2.0)


@pytest.mark.parametrize(
    ("f", "x", "order", "message"),
    [
        (np.sin, 1.0, 0, "order=0"),
        (np.sin, 1.0, 1.5, "order=1.5"),
        (sp.sin(X), X, 1, "without numbers"),
        (np.sin, [1.0, 2.0], 1, "2 results"),
        (lambda x: x["a"], {"a": 1.0}, 1, "without numbers"),
        (np.sum, np.ones(100), 2, "10000 entries"),
        (np.sin, 1j, 1, "without numbers"),
    ],
)
def test_what_cannot_be_compared_is_refused(f, x, order, message):
    with pytest.raises(sa.WorkbenchError, match=message):
        compare(f, x, order)


def test_forms(tmp_path):
    found = compare(lambda x: np.exp(x) * np.sin(x), 0.5, 1, only=["sympy.diff, lambdify", "AD", "diff"], plots=True)
    assert "exactly 2.237328" in found.text(160)
    assert r"\toprule" in found.latex()
    assert "<table>" in found.html()
    assert "<svg" in found.html()
    lines = found.markdown().splitlines()
    assert lines[0].startswith("| route | verdict | value | ULP |")
    assert len(lines) == 2 + len(found.rows)
    records = list(csv.DictReader(io.StringIO(found.csv())))
    assert [record["route"] for record in records] == [row.route for row in found.rows]
    assert float(records[1]["ulp"]) == found.rows[1].ulp
    frame = found.dataframe()
    assert list(frame["tree"][:2]) == [row.sizes.tree for row in found.rows[:2]]
    for suffix in (".md", ".csv", ".html", ".tex", ".txt"):
        assert found.save(tmp_path / f"page{suffix}").stat().st_size > 100
    bare = compare(lambda x: np.exp(x), 0.5, only=["AD"], times=False)
    assert "build" not in bare.markdown()
    assert bare.rows[0].call_seconds is None


def test_rows_are_found_by_name():
    found = compare(np.exp, 0.5, only=["AD"], times=False)
    assert found["AD F"].route == "AD F"
    with pytest.raises(KeyError):
        found["AD G"]


def test_numbers_of_a_row_that_are_not_finite():
    row = compare_rows.errors_of([float("nan")], compare_rows.Reference((mpmath.mpf(1),)))
    assert (row.ulp, row.digits) == (float("inf"), 0.0)


def test_the_formula_is_in_the_symbols_of_the_user():
    x, y = sp.symbols("x y")
    found = compare(x * y**2, {x: 2.0, y: 3.0}, 1, only=["AD R"], times=False)
    assert "f = x·y²" in found.text(100)
    assert found.rows[0].values == (9.0, 12.0)


def test_routes_are_chosen_by_how_their_names_begin():
    assert [row.route for row in compare(np.sin, 0.5, 1, only="AD", times=False).rows] == ["AD F", "AD R"]
    with pytest.raises(sa.errors.ArgumentError, match="no route begins so; there are sympy"):
        compare(np.sin, 0.5, only=["jacobi"])
