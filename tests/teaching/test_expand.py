"""expand: every coefficient by two other routes, every line of every level, and what the page says."""

from __future__ import annotations

import itertools
import math
import random

import numpy as np
import pytest
import sympy as sp
from cases import HEAD_POINTS
from cases import REFUSED as REFUSED_OPERANDS

import symad as sa
from codegen.special_heads import hyperu
from symad.derivatives.level import Epsilon
from symad.errors import ArgumentError, LimitError, RuleError, TraceError
from symad.teaching import epsilon
from symad.teaching.expand import expand

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


@pytest.mark.parametrize("seed", range(12))
def test_random_formulas_against_sympy_and_nested_jvp(seed):
    formula, count = random_formula(seed), 2 + (seed % 3 == 0)
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
        symbolic = expand(formula, list(moving) if len(moving) > 1 else next(iter(moving)), exact)
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
        lambda p: sum(D1[i] * D2[j] * sa.mixed_derivative(h, (i, j))(p) for i in range(3) for j in range(3))
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


# lines

WALKED = {
    "a product": (lambda z: z * np.exp(z) / (1 + z * z), x, [v, w]),
    "functions": (lambda z: np.arcsin(z) + np.tanh(z) ** 3 * np.sqrt(1 + z), x, [v, w]),
    "two arguments": (lambda p: np.arctan2(p[0], p[1]) * np.hypot(p[0], p[1]), [x, y], [[v, w], [1, u]]),
    "compositions": (lambda z: np.log(np.cosh(z)) + np.log(1 + np.exp(z)), x, [v, w]),
    "a power": (lambda z: z**z, sp.Symbol("x", positive=True), [v, w]),
    "a moved direction": (lambda z: np.sin(z) * z, x, {1: v, 2: w, (1, 2): u}),
    "a special function": (lambda z: sp.besselj(2, z) * sp.erf(z), x, [v, w]),
    "undefined": (lambda z: f(z * g(z)), x, [v, w]),
}


@pytest.mark.parametrize("case", WALKED)
def test_every_line_is_right(case):
    """The eps-part that a line shows in names is, with the names filled in, the derivative of the line's value."""
    function, point, directions = WALKED[case]
    found = expand(function, point, directions)
    symbols = [point] if isinstance(point, sp.Symbol) else point
    for level in (1, 2):
        steps = [step for step in found.steps if step.level == level]
        names = {step.name: step.value for step in found.steps}
        names |= {step.part_name: step.part_value for step in steps}
        moved = dict(zip(symbols, found.directions[(level,)], strict=True))
        if (1, 2) in found.directions and level == 2:
            moved |= {v: u}
        short = [step for step in steps if step.value is not None and step.part_value is not None]
        assert len(short) > len(steps) / 3
        names = {name: value for name, value in names.items() if value is not None}
        for step in short:
            if not any(str(symbol).startswith(("u_", "du_")) for symbol in step.line.subs(names).free_symbols):
                assert numerically_same(step.line.subs(names), step.value)
            if not any(str(symbol).startswith(("u_", "du_")) for symbol in step.part.subs(names).free_symbols):
                assert numerically_same(step.part.subs(names), step.part_value)
            derivative = sum(direction * sp.diff(step.value, symbol) for symbol, direction in moved.items())
            assert numerically_same(derivative, step.part_value)


def numerically_same(left: sp.Expr, right: sp.Expr) -> bool:
    left, right = sp.sympify(left), sp.sympify(right)
    if left.has(f, g):
        a, b = sp.symbols("a b")
        functions = {f: sp.Lambda(a, sp.sin(a)), g: sp.Lambda(b, b**2)}
        left, right = left.subs(functions).doit(), sp.sympify(right).subs(functions).doit()
    point = {symbol: 0.31 + 0.07 * k for k, symbol in enumerate(sorted((left - right).free_symbols, key=str))}
    return abs(float((left - right).evalf(30, subs=point))) < 1e-20 if point else left == right


def test_rules_are_named():
    steps = expand(lambda z: (z**3 + 2 * np.sin(z)) / np.exp(z), x, [v]).steps
    rules = {str(step.line): step.rule.name for step in steps}
    assert rules == {
        "x**3": "power rule", "sin(x)": "chain rule", "2*u_2": "constant factor", "u_1 + u_3": "sum rule",
        "exp(x)": "chain rule", "1/u_5": "reciprocal rule", "u_4*u_6": "product rule",
    }  # fmt: skip
    assert steps[1].rule.partials == ((sp.Derivative(sp.Function("sin")(x), x), sp.cos(x)),)


def test_dual_of_a_line():
    (step,) = expand(np.sin, x, [v]).steps
    assert str(step.dual) == "u_1 + v*cos(x)*epsilon_1"


def test_lines_avoid_the_names_of_the_user():
    assert {str(step.name)[0] for step in expand(u**2 * sp.sin(u), u, [v]).steps} == {"z"}


# values


def test_numbers_give_numbers_and_symbols_expressions():
    assert isinstance(expand(x**2, {x: 3.0}, [1.0]).coefficient(1), float)
    assert expand(x**2, {x: 3}, [1]).coefficient(1) == 6.0
    assert expand(x**2, {x: 3.0}, [v]).coefficients == {(): 9.0, (1,): 6.0 * v}
    assert expand(x**2, x, [1, 1]).coefficient(1, 2) == sp.Integer(2)
    assert expand(x**2 * y, x, [v]).coefficient(1) == 2 * v * x * y


def test_vectors_and_containers():
    found = expand(lambda z: {"a": np.array([z * z, np.sin(z)]), "b": z}, 0.5, [2.0, 1.0])
    assert found.coefficient(1)["a"].tolist() == [2.0, 2 * math.cos(0.5)]
    assert found.coefficient(1, 2)["b"] == 0.0
    assert found.coefficient(1, 2)["a"].tolist() == [4.0, -2 * math.sin(0.5)]
    assert expand(lambda p: p["a"] * p["b"], {"a": x, "b": y}, [{"a": v, "b": w}]).coefficient(1) == v * y + w * x
    matrix = expand(sp.Matrix([[x * y, x]]), [x, y], [[v, w]])
    assert matrix.expanded.shape == (1, 2)
    assert matrix.expanded[0, 0] == x * y + (v * y + w * x) * e1


@pytest.mark.parametrize("direction", [[v, w], (v, w), np.array([v, w]), sp.Matrix([v, w]).T.tolist()[0], ["v", "w"]])
def test_forms_of_a_direction(direction):
    assert same(expand(x * y, [x, y], [direction]).coefficient(1), v * y + w * x)


def test_formulas_in_strings():
    assert expand("x^3", "x", ["v", "w"]).coefficient(1, 2) == 6 * v * w * x
    with pytest.raises(ArgumentError, match="name 'q'"):
        expand("x + q", "x", ["v"])


def test_conventions_are_told():
    assert "sign(0) = 0" in str(expand(abs, 0.0, [1.0], detail="result"))
    assert "one half" in str(expand(lambda z: np.maximum(z, 2.0), 2.0, [1.0], detail="result"))
    assert "except where x = 0" in str(expand(x**x, x, [v], detail="result"))
    assert expand(x**x, x, [v]).coefficient(1).has(sp.Piecewise) is False
    assert not expand(abs, 1.0, [1.0]).notes


def test_a_choice_of_the_user_stays():
    found = expand(lambda z: np.where(z > 0, z**2, -z), x, [v, w])
    assert found.coefficient(1, 2).subs(x, 3) == 2 * v * w
    assert found.coefficient(1, 2).subs(x, -3) == 0
    assert expand(sp.Piecewise((0, sp.Eq(x, 1)), (x**2, True)), x, [v]).coefficient(1).subs(x, 1) == 0


def test_the_path_that_python_takes_is_told():
    found = expand(lambda z: z**2 if z > 1 else z, 2.0, [v])
    assert found.coefficient(1) == 4.0 * v
    assert "x > 1" in str(expand(lambda x: x**2 if x > 1 else x, 2.0, [v])) or "z > 1" in str(found)


@pytest.mark.parametrize(
    ("function", "point", "named"),
    [(np.log, -1.0, "log"), (np.sqrt, 0.0, "no finite derivative"), (lambda z: 1 / z, 0.0, "1/z")],
)
def test_what_is_not_finite_is_named(function, point, named):
    assert named in " ".join(map(str, expand(function, point, [1.0]).notes))


# bounds


def lennard_jones(p):
    i, j = np.triu_indices(13, 1)
    r = ((p.reshape(13, 3)[i] - p.reshape(13, 3)[j]) ** 2).sum(axis=1)
    return (r**-6 - r**-3).sum()


def test_a_large_function_is_folded():
    rng = np.random.default_rng(0)
    point, a, b = rng.uniform(-3, 3, 39), rng.normal(size=39), rng.normal(size=39)
    found = expand(lennard_jones, point, [a, b])
    assert found.coefficient(1, 2) == pytest.approx(a @ sa.hessian(lennard_jones)(point) @ b, rel=1e-9)
    shown = str(found)
    assert "more lines of the same kinds" in shown
    assert len(shown.splitlines()) < 90


def test_a_formula_that_could_not_be_written_out_is_refused():
    def tower(z):
        for _ in range(30):
            z = sp.sin(z) * z
        return z

    with pytest.raises(LimitError, match=r"coefficient .* operations"):
        expand(tower, x, [v])
    assert math.isfinite(expand(tower, 0.5, [1.0, 1.0]).coefficient(1, 2))


def test_too_many_levels_are_refused_by_their_number():
    with pytest.raises(ArgumentError, match=r"2\*\*12 = 4096"):
        expand(x**2, x, [v] * 12)
    with pytest.raises(ArgumentError, match="levels"):
        expand(x**2, x, v, order=50)


REFUSED = {
    "shape": (x * y, [x, y], [[v]], {}, "direction of eps_1 of shape"),
    "scalar for a vector": (x * y, [x, y], [v, w], {}, r"shape \(2,\)"),
    "no direction": (x**2, x, [], {}, "no direction"),
    "level 0": (x**2, x, {0: v}, {}, "counted from 1"),
    "a square": (x**2, x, {(1, 1): v}, {}, "square of an epsilon is 0"),
    "order": (x**2, x, v, {"order": 0}, "order=0"),
    "detail": (x**2, x, [v], {"detail": "much"}, "detail='much'"),
    "its own symbol": (x * sp.Symbol("epsilon_1"), x, [v], {}, "epsilon_1 in the function"),
    "no function": (3.0, x, [v], {}, "f of type float"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused_by_name(case):
    function, point, directions, keywords, message = REFUSED[case]
    with pytest.raises(ArgumentError, match=message):
        expand(function, point, directions, **keywords)


def test_other_refusals():
    with pytest.raises(ArgumentError, match="coefficient of levels"):
        expand(x**2, x, [v]).coefficient(2)
    with pytest.raises(ArgumentError, match="different directions"):
        expand(x**2, x, [v, w]).taylor()
    with pytest.raises(TraceError, match="expand inside"):
        sa.grad(lambda z: expand(lambda q: q, z, [1.0]).coefficient(1))(1.0)
    with pytest.raises(RuleError, match="besselj has no derivative"):
        expand(lambda z: sp.besselj(z, 1), x, [v])


# the page

PAGES = {
    "cube": lambda **k: expand(x**3, x, [v, w], **k),
    "taylor": lambda **k: expand(lambda z: sp.exp(z * sp.sin(z)), x, v, order=3, **k),
    "undefined": lambda **k: expand(lambda z: f(g(z)), x, 1, order=4, **k),
    "numbers": lambda **k: expand(lambda z: np.sin(z) / z, 2.0, [1.0, 0.5], **k),
    "vector": lambda **k: expand(lambda p: p @ p, np.array([1.0, 2.0]), [[v, 0], [w, 1]], **k),
    "outputs": lambda **k: expand(lambda z: np.array([z**k for k in range(6)]), x, [v], **k),
    "constant": lambda **k: expand(lambda z: 3.0, x, [v], **k),
    "itself": lambda **k: expand(lambda z: z, x, [v, w], **k),
}


@pytest.mark.parametrize("detail", ["result", "levels", "steps", "all"])
@pytest.mark.parametrize("page", PAGES)
def test_pages_have_all_forms(page, detail):
    found = PAGES[page](detail=detail)
    text, latex, html = found.text(100), found.latex(), found.html()
    assert max(map(len, text.splitlines())) <= 100
    assert "Coefficients" in text
    assert ("Level 1" in text) == (detail != "result")
    assert latex.count(r"\[") == latex.count(r"\]")
    assert "<math" in html
    assert "nan" not in text


def test_the_page_of_the_cube():
    text = PAGES["cube"]().text(100)
    for part in (
        "f(x) = x**3", "power rule", "constant factor", "f''(x)[v, w]", "6*v*w*x",
        "(x**3 + 3*v*x**2*eps_1) + (3*w*x**2 + 6*v*w*x*eps_1)*eps_2",
        "x**3 + 3*v*x**2*eps_1 + 3*w*x**2*eps_2 + 6*v*w*x*eps_1*eps_2",
    ):  # fmt: skip
        assert part in text
    assert text.count("eps_1**2 = 0") == 1


def test_the_page_of_a_moved_direction_names_both_terms():
    assert "f''(x)[v, w] + f'(x)[u]" in str(expand(x**3, x, {1: v, 2: w, (1, 2): u}))


def test_the_page_of_taylor():
    text = PAGES["taylor"](detail="result").text(100)
    assert "t**4 = 0" in text
    assert "f''(x)[v, v]/2*t**2" in text
