"""explain: every transform, carried out line by line; what roles mean, checked by numbers."""

import numpy as np
import pytest
import sympy as sp

import symad as sa
import symad.tracing.values.containers as containers
from symad.errors import ArgumentError, TraceError, WorkbenchError

A, C = np.array([1.2, 0.7]), np.array([0.3, -0.4, 0.9])


def scalar(x):
    return np.sin(x[0]) * x[1] ** 2 + np.exp(x[0] * x[1])


def vector(x):
    return np.stack([x[0] * x[1], np.sin(x[0]), x[1] ** 3])


pytestmark = pytest.mark.filterwarnings("ignore:.*how often this is repeated:symad.errors.BoundWarning")  # newton


def newton(x):
    y = 1.0
    while abs(y * y - x) > 1e-10:
        y = (y + x / y) / 2
    return y


def descent(x):
    for _ in range(3):
        x = x - 0.1 * sa.grad(lambda z: z**4)(x)
    return x


@sa.custom_derivative(derivative=lambda primals, tangents: tangents[0] / (1 + np.exp(-primals[0])))
def softplus(x):
    return np.log1p(np.exp(x))


OUTSIDE = sa.vjp(vector, A)[1]


def cubic_root(x):
    return sa.root(lambda y, x: y**3 + y - x, 1.0, x)


TRANSFORMS = {
    **{f"hessian {mode}": (sa.hessian(scalar, mode=mode), A) for mode in ("auto", "edge", "dyadic")},
    **{f"hessian {mode}": (sa.hessian(scalar, mode=mode), A) for mode in ("fwd-rev", "rev-rev", "rev-fwd", "fwd-fwd")},
    **{f"jacobian {mode}": (sa.jacobian(vector, mode=mode), A) for mode in ("auto", "fwd", "rev", "cross-country")},
    "hvp": (lambda x, v: sa.hvp(scalar, (x,), (v,)), A, A + 1),
    "jvp": (lambda x, v: sa.jvp(vector, (x,), (v,))[1], A, A + 1),
    "vjp": (lambda x, c: sa.vjp(vector, x)[1](c)[0], A, C),
    "pullback called twice": (lambda x, c: (lambda back: back(c)[0] + back(c * c)[0])(sa.vjp(vector, x)[1]), A, C),
    "pushforward called twice": (lambda x: (lambda push: push(x) + push(A))(sa.linearize(vector, x)[1]), A),
    "pullback not called": (lambda x: sa.vjp(vector, x)[0], A),
    "pullback from outside": (lambda c: OUTSIDE(c)[0], C),
    "gradient of a Hessian": (sa.grad(lambda x: (sa.hessian(scalar)(x) ** 2).sum()), A),
    "derivative of order 4": (sa.derivative(lambda x: np.exp(x) * x, 4), 1.5),
    "function for a value": (lambda x, y: sa.grad(lambda x: lambda y: x * x * y)(x)(y), 2.0, 3.0),
    "captured and argument": (lambda a: sa.derivative(lambda x: x * sa.derivative(lambda y: x * y)(x))(a), 2.0),
    "root": (sa.grad(cubic_root), 2.0),
    "Hessian of a root": (sa.hessian(lambda x: sa.root(lambda y, x: y**3 + y - x[0] * x[1], 1.0, x)), A),
    "root twice": (sa.derivative(sa.grad(cubic_root)), 2.0),
    "fixed point": (sa.grad(lambda x: sa.fixed_point(lambda y, x: np.cos(y * x), 0.5, x)), 0.7),
    "custom": (sa.grad(sa.grad(softplus)), 0.3),
    "custom by edge pushing": (sa.hessian(lambda x: softplus(x[0]) * x[1]), A),
    "cond": (sa.grad(lambda x: sa.cond(x > 0, lambda u: u**2, lambda u: np.sin(u), x)), 1.5),
    "kinks": (sa.grad(sa.grad(lambda x: np.abs(x) * np.maximum(x, x**2))), 1.5),
    "jit outside": (sa.jit(sa.grad(lambda x: x**3)), 1.5),
    "jit inside": (sa.grad(sa.jit(lambda x: x**3)), 1.5),
    "laplacian": (sa.laplacian(scalar), A),
    "taylor": (lambda x: sa.taylor(np.sin, (x,), (1.0,), 4)[3], 1.5),
    "tensor": (sa.partials(scalar, 3), A),
    "along": (lambda x: sa.partials(scalar, 3, along=np.ones(2))(x), A),
    "along by taylor": (lambda x: sa.partials(scalar, 3, along=np.ones(2), mode="taylor")(x), A),
    "value, gradient, Hessian": (sa.value_gradient_hessian(scalar), A),
    "value and gradient": (sa.value_and_grad(scalar), A),
    "loop ended by numbers": (sa.grad(newton), 2.0),
    "steps of descent": (sa.grad(descent), 1.5),
    "constant": (sa.grad(lambda x: 3.0), 1.5),
    "identity": (sa.grad(lambda x: x), 1.5),
    "no transform": (lambda x: x * x, 1.5),
    "condition": (lambda x: np.where((x > 1) | (x < -1), 1.0, 0.0), 1.5),
    "container": (sa.grad(lambda p: p["a"] * p["b"][0] ** 2), {"a": 1.5, "b": [2.5]}),
    "stopped": (sa.grad(lambda x: x * sa.stop_gradient(x)), 1.5),
    "siblings of two ways": (
        lambda x: (sa.jacobian(vector)(x) ** 2).sum() * sa.jacobian(lambda y: np.sin(y).sum() * np.cos(y).sum())(x),
        A,
    ),
    "batch": (sa.batched_jacobian(lambda xs: np.stack([xs[:, 0] * xs[:, 1]], axis=1)), np.array([[1.5, 2.5]] * 3)),
}


def number(expression, values):
    found = expression.xreplace(values).doit()
    return found if found in (sp.true, sp.false) else sp.N(found)


def inputs(explanation, args):
    flat = [value for leaf in containers.flatten(args)[0] for value in np.ravel(leaf)]
    return dict(zip(explanation.book.inputs.values(), map(sp.Float, flat), strict=True))


def evaluated(explanation, values):
    """Carry out the program of the result; return the values of its variables."""
    values = dict(values)
    for line in explanation.lines:
        values[line.symbol] = number(line.expression, values)
    return values


def numbers(result):
    leaves, _ = containers.flatten(result)
    return np.concatenate([np.ravel(leaf.data if hasattr(leaf, "pattern") else leaf) for leaf in leaves])


@pytest.mark.parametrize("name", TRANSFORMS)
def test_the_lines_compute_what_the_transform_computes(name):
    f, *args = TRANSFORMS[name]
    explanation = sa.explain(f, *args)
    values = evaluated(explanation, inputs(explanation, args))
    found = [float(number(explanation.book.symbol(node), values)) for node in explanation.outputs]
    np.testing.assert_allclose(found, numbers(f(*args)), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("name", TRANSFORMS)
@pytest.mark.thinned
def test_all_forms_can_be_shown(name):
    f, *args = TRANSFORMS[name]
    explanation = sa.explain(f, *args)
    text = explanation.text(100)
    assert max(map(len, text.splitlines())) <= 100
    assert all(line.name in text for line in explanation.lines[:20])
    assert "<script" not in explanation.html()
    assert "tabular" in explanation.latex() or not explanation.lines


@pytest.mark.parametrize("name", TRANSFORMS)
def test_a_residual_is_what_a_row_multiplies_by(name):
    """Each variable that is kept stands in a row of its level, as a factor or as a condition; all others do not."""
    f, *args = TRANSFORMS[name]
    explanation = sa.explain(f, *args)
    for level in explanation.levels:
        rows = [line for stage in explanation.stages if stage.level is level for line in stage.lines]
        rows = [line for line in rows if line.name.endswith(("_dot", "_bar"))]
        used = set().union(*(row.expression.free_symbols for row in rows))
        kept = {line.symbol for line in explanation.kept(level)}
        if rows and level.linears:
            carried = {symbol for symbol in used if symbol.name.endswith(("_dot", "_bar"))}
            seeds = {symbol for row in rows for symbol in row.expression.free_symbols if getattr(row, "seeds", ())}
            assert kept <= used
            assert used - carried - seeds <= kept
            assert not kept & {line.symbol for line in explanation.not_kept(level)}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_roles_belong_to_levels_that_were_opened(name):
    f, *args = TRANSFORMS[name]
    explanation = sa.explain(f, *args)
    depths = {level.depth for level in explanation.levels}
    carried = {(level.depth, kind) for level in explanation.levels for way in level.ways for kind in way.kinds}
    for line in explanation.lines:
        for role in line.roles:
            assert role.level in depths or name == "pullback from outside"
            if role.kind in ("tangent", "cotangent") and role.level:
                assert (role.level, role.kind) in carried


def test_a_variable_has_all_its_roles():
    explanation = sa.explain(sa.grad(lambda x: np.sin(x) * x), 1.5)
    assert [[str(role) for role in line.roles] for line in explanation.lines] == [
        ["parameter 1", "residual 1", "cotangent 1"], ["primal 1", "residual 1"],
        ["residual 1"], ["cotangent 1"], ["cotangent 1"],
    ]  # fmt: skip


@pytest.mark.parametrize("name", TRANSFORMS)
def test_a_level_is_named_after_what_the_user_called(name):
    f, *args = TRANSFORMS[name]
    assert all(level.transform in sa.__all__ for level in sa.explain(f, *args).levels)


def test_headings_name_the_level_and_what_the_user_called():
    text = str(sa.explain(*TRANSFORMS["root twice"]))
    for level, name in ((4, "root"), (2, "grad"), (1, "derivative")):
        assert f". level {level}, {name}: " in text
    assert "1. level 1, laplacian: " in str(sa.explain(sa.laplacian(scalar, power=2), A))


DIRECTIONS = ("v", "w", "u")


def pushed(depth):
    """Return f'(x) v, f''(x) v w, ... as a function of x and the directions, the outermost level's first."""

    def f(x, *directions):
        g = lambda z: np.exp(z) * np.sin(z) + z**3  # noqa: E731
        for direction in reversed(directions):
            g = lambda z, g=g, direction=direction: sa.jvp(g, (z,), (direction,))[1]  # noqa: E731
        return g(x)

    return f


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_a_tangent_vanishes_with_the_direction_of_its_level(depth):
    directions = [0.7, -0.4, 1.9][:depth]
    explanation = sa.explain(pushed(depth), 1.3, *directions)
    values = evaluated(explanation, inputs(explanation, (1.3, *directions)))
    for level in range(1, depth + 1):
        marked = [line for line in explanation.lines if any(str(role) == f"tangent {level}" for role in line.roles)]
        zero = [0.0 if k == level else direction for k, direction in enumerate(directions, start=1)]
        at_zero = evaluated(explanation, inputs(explanation, (1.3, *zero)))
        assert marked
        assert all(at_zero[line.symbol] == 0 for line in marked)
        primal = [line for line in explanation.lines if all(role.kind in ("primal", "residual") for role in line.roles)]
        assert any(at_zero[line.symbol] != 0 for line in primal)
        assert all(values[line.symbol] != 0 for line in marked)


@pytest.mark.parametrize("guarded", [False, True])
def test_a_cotangent_vanishes_with_what_is_pulled_back(guarded):
    def f(x):
        chosen = np.where(x > 1, x**2 * np.sin(x), x) if guarded else x**2 * np.sin(x)
        return chosen * np.exp(x)

    def twice(x, c, d):
        inner = lambda z: sa.vjp(f, z)[1](c)[0]  # noqa: E731
        return sa.vjp(inner, x)[1](d)[0]

    explanation = sa.explain(twice, 1.3, 0.5, 0.6)
    for level, zero in ((1, (1.3, 0.5, 0.0)), (2, (1.3, 0.0, 0.6))):
        values = evaluated(explanation, inputs(explanation, zero))
        marked = [line for line in explanation.lines if any(str(role) == f"cotangent {level}" for role in line.roles)]
        assert marked
        assert all(values[line.symbol] == 0 for line in marked)


def test_entries_of_a_hessian_are_named_by_their_places():
    explanation = sa.explain(sa.hessian(scalar, mode="edge"), A)
    (stage,) = [stage for stage in explanation.stages if stage.kind == "eliminated"]
    values = evaluated(explanation, inputs(explanation, (A,)))
    found = {line.name: float(number(line.expression, values)) for line in stage.lines if line.name.startswith("H_")}
    hessian = sa.hessian(scalar)(A)
    assert found == pytest.approx({f"H_{i}_{j}": hessian[i, j] for i, j in ((0, 0), (1, 0), (1, 1))})


def refused(x):
    return np.sort(np.array([x, 2 * x]))[0] + np.linalg.eig(np.eye(2) * x)[0][0]


@pytest.mark.parametrize("f", [refused, lambda x: x.undefined, lambda x: None, lambda x: x + np.ones(3)])
def test_an_error_is_that_of_the_transform(f):
    with pytest.raises(Exception) as expected:  # noqa: PT011
        sa.grad(f)(1.5)
    with pytest.raises(expected.type) as found:
        sa.explain(sa.grad(f), 1.5)
    if isinstance(expected.value, WorkbenchError):
        assert (found.value.what, found.value.why) == (expected.value.what, expected.value.why)


@pytest.mark.parametrize("f", [3, lambda x, y: x])
def test_what_cannot_be_called_is_refused(f):
    with pytest.raises(ArgumentError):
        sa.explain(f, 1.0)


def test_the_other_path_of_a_function_may_fail():
    def f(x):
        if x < 0:
            raise TypeError("negative")  # a mistake; any other error is NaN on this path
        return x**3

    explanation = sa.explain(sa.grad(f), 2.0)
    assert explanation.at_numbers
    assert explanation.lines[0].formula == "x"
    with pytest.raises(TypeError, match="negative"):
        sa.explain(sa.grad(f), -2.0)


def test_what_needs_numbers_says_so():
    explanation = sa.explain(sa.grad(cubic_root), 2.0)
    assert explanation.at_numbers
    assert "for the numbers that were given" in str(explanation)
    assert not sa.explain(sa.grad(scalar), A).at_numbers
    with pytest.raises(TraceError):
        sa.trace(sa.grad(cubic_root), 2.0)
