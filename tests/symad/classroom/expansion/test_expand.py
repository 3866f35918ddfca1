"""expand: every coefficient by two other routes, every line of every level, and what the page says."""

from __future__ import annotations

import itertools
import math
import random

import numpy as np
import pytest
import sympy as sp

import symad as sa
from codegen.distribution_heads import betainccinv, betaincinv, stdtrit
from codegen.special_heads import hyperu
from symad.classroom.expansion import epsilon
from symad.classroom.expansion.expand import expand
from symad.derivatives.level import Epsilon
from symad.errors import LimitError
from tests.support.cases import HEAD_POINTS, REFUSED as REFUSED_OPERANDS

x, y, u, v, w = sp.symbols("x y u v w")
f, g = sp.Function("f"), sp.Function("g")
e1, e2, e3 = map(Epsilon.of_level, (1, 2, 3))


def same(left: sp.Expr, right: sp.Expr) -> bool:
    return sp.simplify(sp.expand(sp.sympify(left) - right)) == 0


# what the seeds and the list of known answers say


def test_a_cube_on_two_levels():
    found = expand(x**3, x, [v, w])
    assert found.coefficients == {(): x**3, (1,): 3 * v * x**2, (2,): 3 * w * x**2, (1, 2): 6 * v * w * x}
    assert found.expanded == x**3 + 3 * v * x**2 * e1 + 3 * w * x**2 * e2 + 6 * v * w * x * e1 * e2
    assert str(found.nested) == "(x**3 + 3*v*x**2*epsilon_1) + (3*w*x**2 + 6*v*w*x*epsilon_1)*epsilon_2"


@pytest.mark.parametrize("key", [(1, 2), (2, 1), frozenset({1, 2}), e1 * e2])
def test_a_direction_of_a_pair_of_levels(key):
    found = expand(x**3, x, {(1,): v, 2: w, key: u})
    assert same(found.coefficient(1, 2), 6 * x * v * w + 3 * x**2 * u)


def test_a_direction_of_three_levels():
    found = expand(lambda z: g(z), x, {1: v, (2, 3): u, (1, 2, 3): w}).coefficient(1, 2, 3)
    assert same(found, v * u * g(x).diff(x, 2) + w * g(x).diff(x))


def test_sines():
    for n, value in enumerate(expand(sp.sin, x, 1, order=8).taylor()):
        assert same(value * math.factorial(n), sp.sin(x + n * sp.pi / 2))


BY_ORDER = {
    "1/(1 - x)": (1 / (1 - x), lambda n: sp.factorial(n) / (1 - x) ** (n + 1)),
    "log x": (sp.log(x), lambda n: (-1) ** (n - 1) * sp.factorial(n - 1) / x**n if n else sp.log(x)),
    "exp(-x^2)": (sp.exp(-(x**2)), lambda n: (-1) ** n * sp.hermite(n, x) * sp.exp(-(x**2))),
}


@pytest.mark.parametrize("name", BY_ORDER)
def test_derivatives_of_every_order(name):
    formula, known = BY_ORDER[name]
    found = expand(formula, x, 1, order=6)
    for n in range(7):
        assert same(found.coefficient(*range(1, n + 1)), known(n))


NUMBERS = {
    "Bell": (lambda z: np.exp(np.exp(z) - 1), [1, 1, 2, 5, 15, 52, 203, 877, 4140, 21147, 115975]),
    "tan": (np.tan, [0, 1, 0, 2, 0, 16, 0, 272, 0, 7936]),
    "softplus": (lambda z: np.logaddexp(0, z), [np.log(2), 1 / 2, 1 / 4, 0, -1 / 8, 0, 1 / 4, 0, -17 / 16]),
    "exp sin": (lambda z: np.exp(np.sin(z)), [1, 1, 1, 0, -3, -8, -3, 56]),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_of_every_order(name):
    function, known = NUMBERS[name]
    taylor = expand(function, 0.0, 1.0, order=len(known) - 1).taylor()
    found = [value * math.factorial(k) for k, value in enumerate(taylor)]
    assert all(isinstance(value, float) for value in taylor)
    assert np.allclose(found, known, rtol=1e-12, atol=1e-12)


# undefined functions


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_the_formula_of_faa_di_bruno(order):
    found = expand(lambda z: f(g(z)), x, 1, order=order).coefficient(*range(1, order + 1))
    inner = [g(x).diff(x, k) for k in range(1, order + 1)]
    z = sp.Symbol("z")
    outer = [sp.Subs(f(z).diff(z, k), z, g(x)) for k in range(order + 1)]
    known = sum(outer[k] * sp.bell(order, k, inner[: order - k + 1]) for k in range(1, order + 1))
    assert sp.expand(found - known) == 0


def test_the_chain_rule_of_two_arguments():
    found = expand(f(x, y), [x, y], [[v, 0], [0, w]])
    assert found.coefficients == {
        (): f(x, y),
        (1,): v * f(x, y).diff(x),
        (2,): w * f(x, y).diff(y),
        (1, 2): v * w * f(x, y).diff(x, y),
    }


def test_undefined_functions_become_true_ones():
    """The general formula holds for every function: also where an argument occurs twice, or is compound."""
    found = expand(lambda z: f(z, z) * g(z**2), x, [v, w]).coefficient(1, 2)
    a, b = sp.symbols("a b")
    inserted = found.subs({f: sp.Lambda((a, b), sp.sin(a) * b**3), g: sp.Lambda(a, sp.exp(a))}).doit()
    assert same(inserted, v * w * (sp.sin(x) * x**3 * sp.exp(x**2)).diff(x, 2))


def test_an_undefined_function_at_a_number():
    found = expand(lambda z: f(z * z), 3.0, [v]).coefficient(1)
    z = sp.Symbol("z")
    assert sp.expand(found - 6 * v * sp.Subs(f(z).diff(z), z, 9.0)) == 0


def test_an_undefined_function_as_it_is():
    assert expand(f, x, [v]).coefficients == {(): f(x), (1,): v * f(x).diff(x)}


# every coefficient by two other routes

UNARY = [
    sp.sin, sp.cos, sp.exp, sp.tanh, sp.atan, sp.erf, sp.asinh, sp.sinh,
    lambda a: sp.log(1 + a**2), lambda a: sp.sqrt(2 + a**2), lambda a: 1 / (2 + sp.sin(a)), lambda a: a**3,
    lambda a: sp.besselj(1, a), lambda a: sp.gamma(2 + sp.cos(a)), lambda a: sp.loggamma(3 + sp.sin(a)),
    lambda a: sp.Si(a), lambda a: sp.LambertW(1 + a**2), lambda a: (1 + a**2) ** sp.Rational(2, 3),
]  # fmt: skip
BINARY = [
    lambda a, b: a + b, lambda a, b: a * b, lambda a, b: a - 2 * b, lambda a, b: a / (2 + sp.cos(b)),
    lambda a, b: sp.atan2(a, 2 + b**2), lambda a, b: (1 + a**2) ** sp.sin(b),
]  # fmt: skip


def random_formula(seed: int) -> sp.Expr:
    choose = random.Random(seed)
    parts = [x, y]
    for _ in range(choose.randint(2, 4)):
        if choose.random() < 0.6:
            parts.append(choose.choice(UNARY)(choose.choice(parts)))
        else:
            parts.append(choose.choice(BINARY)(choose.choice(parts), parts[-1]))
    return parts[-1] + parts[-2] * x


def along(formula: sp.Expr, directions: list[tuple[float, float]]) -> sp.Expr:
    for a, b in directions:
        formula = a * formula.diff(x) + b * formula.diff(y)
    return formula


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.thinned
def test_random_formulas_against_sympy_and_nested_jvp(seed):
    formula, count = random_formula(seed), 2 + (seed == 6)
    directions = [(0.5, -1.0), (0.25, 2.0), (1.0, 0.75)][:count]
    numeric = expand(formula, {x: 0.375, y: -0.625}, [np.array(d) for d in directions])
    symbolic = expand(formula, [x, y], [[sp.Rational(a), sp.Rational(b)] for a, b in directions])
    formula_as_function = sa.from_sympy([x, y], formula)
    for levels in numeric.coefficients:
        chosen = [directions[k - 1] for k in levels]
        exact = along(formula, [(sp.Rational(a), sp.Rational(b)) for a, b in chosen])
        wanted = float(exact.evalf(40, subs={x: sp.Rational(3, 8), y: sp.Rational(-5, 8)}))
        scale = abs(wanted) + 1e-3
        assert abs(numeric.coefficient(*levels) - wanted) < 1e-11 * scale
        written = symbolic.coefficient(*levels).evalf(30, subs={x: sp.Rational(3, 8), y: sp.Rational(-5, 8)})
        assert abs(float(written) - wanted) < 1e-11 * scale
        pushed = formula_as_function
        for direction in chosen:
            pushed = lambda *point, inner=pushed, direction=direction: sa.jvp(inner, point, direction)[1]  # noqa: E731
        assert abs(pushed(0.375, -0.625) - wanted) < 1e-11 * scale


EVALUATED = sorted((head for head in HEAD_POINTS if head is not hyperu), key=lambda head: head.__name__)  # by SymPy


@pytest.mark.parametrize("head", EVALUATED, ids=lambda head: head.__name__)
@pytest.mark.thinned
@pytest.mark.wide_rows("beta_moment")  # which SymPy takes 25 s to evaluate
def test_the_expression_of_every_head_has_the_value_of_the_graph(head):
    """What is shown is what is computed: the rules' own heads are read by SymPy as they are meant."""
    for point in HEAD_POINTS[head]:
        symbols = [sp.Symbol(f"x{k}", real=True) for k in range(len(point))]
        still = REFUSED_OPERANDS.get(head, ())
        formula = head(*(sp.Integer(int(point[k])) if k in still else symbols[k] for k in range(len(point))))
        moving = {symbols[k]: point[k] for k in range(len(point)) if k not in still and formula.has(symbols[k])}
        if not moving:
            continue
        directions = [[1.0] * len(moving)] * 2 if len(moving) > 1 else [1.0, 1.0]
        numeric = expand(formula, moving, directions)
        exact = [[1] * len(moving)] * 2 if len(moving) > 1 else [1, 1]
        try:
            symbolic = expand(formula, list(moving) if len(moving) > 1 else next(iter(moving)), exact)
        except LimitError:  # of an inverse that moves with a shape: it repeats what the graph shares
            assert head in (betaincinv, betainccinv, stdtrit)
            continue
        own = sp.N(symbolic.coefficient().doit().subs(moving), 20)
        if not own.is_real or float(own) != pytest.approx(numeric.coefficient()):
            continue  # SymPy's function is another branch there
        for levels in ((1,), (1, 2)):
            written = sp.N(sp.sympify(symbolic.coefficient(*levels)).doit().subs(moving), 20)
            if written is not sp.nan or 0.0 not in point:  # 0/0 in a quotient like cos(x)/x - sin(x)/x**2
                assert float(written) == pytest.approx(numeric.coefficient(*levels), rel=1e-7, abs=1e-7)


MIXES = {
    "forward, forward": lambda h: lambda p: sa.jvp(lambda q: sa.jvp(h, (q,), (D1,))[1], (p,), (D2,))[1],
    "forward, reverse": lambda h: lambda p: sa.jvp(sa.grad(h), (p,), (D2,))[1] @ D1,
    "reverse, forward": lambda h: lambda p: sa.grad(lambda q: sa.jvp(h, (q,), (D1,))[1])(p) @ D2,
    "reverse, reverse": lambda h: lambda p: D1 @ sa.hessian(h, mode="rev-rev")(p) @ D2,
    "edge pushing": lambda h: lambda p: D1 @ sa.hessian(h, mode="edge")(p) @ D2,
    "mixed derivatives": lambda h: (
        lambda p: sum(D1[i] * D2[j] * sa.partials(h, (i, j))(p) for i in range(3) for j in range(3))
    ),
}
D1, D2 = np.array([1.0, -2.0, 0.5]), np.array([0.25, 1.0, -1.0])


@pytest.mark.parametrize("mix", MIXES)
def test_the_mixed_term_is_what_every_mix_of_modes_gives(mix):
    def model(p):
        return np.exp(p[0] * np.sin(p[1])) / np.linalg.norm(p) + np.prod(p)

    point = np.array([0.5, 1.5, -0.75])
    found = expand(model, point, [D1, D2]).coefficient(1, 2)
    assert found == pytest.approx(MIXES[mix](model)(point), rel=1e-12)


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_the_order_of_levels_does_not_matter(order):
    directions = [v, w, u]
    straight = expand(lambda z: sp.exp(z * sp.sin(z)), x, directions)
    turned = expand(lambda z: sp.exp(z * sp.sin(z)), x, [directions[k] for k in order])
    for levels in epsilon.subsets(3):
        assert same(turned.coefficient(*levels), straight.coefficient(*(order[k - 1] + 1 for k in levels)))


def test_taylor_is_what_the_taylor_transform_gives():
    found = expand(lambda z: sp.exp(z * sp.sin(z)), x, v, order=4).taylor()
    known = sa.taylor(lambda z: sp.exp(z * sp.sin(z)), (x,), (v,), 4)
    assert all(same(a, b) for a, b in zip(found, known, strict=True))
