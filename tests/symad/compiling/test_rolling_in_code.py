"""Transforms in the code of a compiled function reach its loops: values, sizes, perturbation confusion, refusals."""

from __future__ import annotations

import numpy as np
import pytest

import symad as sa
import symad.tracing.values.containers as containers

RNG = np.random.default_rng(4)
DATA, LABELS = RNG.normal(size=(60, 3)), RNG.choice([-1.0, 1.0], 60)
FIRST, LAST = RNG.normal(size=(10, 6)) / 3, RNG.normal(size=10)


def valley(x):
    return sa.sum_over(lambda a, b: 100 * (b - a**2) ** 2 + (1 - a) ** 2, x[:-1], x[1:])


def found_valley(x):
    return np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def pairs(x):
    total = 0.0
    for i in range(len(x) // 3):
        for j in range(i):
            square = np.sum((x[3 * i : 3 * i + 3] - x[3 * j : 3 * j + 3]) ** 2)
            total = total + 1 / square**6 - 1 / square**3
    return total


def logistic(weights):
    return sa.sum_over(lambda row, label: np.log1p(np.exp(-label * (row @ weights))), DATA, LABELS)


def momentum(x):
    def step(state, _):
        x, velocity = state
        slope = np.stack([4 * x[0] * (x[0] ** 2 - x[1]), 2 * (x[1] - x[0] ** 2)])
        velocity = 0.9 * velocity - 0.01 * slope
        return (x + velocity, velocity), None

    (x, _), _ = sa.scan(step, (x, 0 * x), None, length=12)
    return x[0] ** 2 + np.sin(x[1])


def network(x):
    return LAST @ np.tanh(FIRST @ x)


def heat(u):
    def step(v, _):
        inner = v[1:-1] + 0.1 * (v[2:] - 2 * v[1:-1] + v[:-2]) - 0.01 * v[1:-1] ** 3
        return np.concatenate([v[:1], inner, v[-1:]]), None

    return np.sum(sa.scan(step, u, None, length=3)[0] ** 2)


GRID = np.array([[i, j, k] for i in range(3) for j in range(2) for k in range(2)], dtype=float)[:10]
FUNCTIONS = {
    "valley": (valley, RNG.uniform(0.3, 1.2, 12)),
    "valley found": (found_valley, RNG.uniform(0.3, 1.2, 24)),
    "Lennard-Jones": (pairs, (1.1 * GRID + RNG.uniform(-0.05, 0.05, GRID.shape)).ravel()),
    "logistic": (logistic, RNG.normal(size=3)),
    "momentum": (momentum, np.array([0.6, 0.9])),
    "network": (network, RNG.normal(size=6)),
    "heat": (heat, RNG.uniform(0.1, 1, 90)),
}
TRANSFORMS = {
    "jvp": lambda f: lambda x, v: sa.jvp(f, (x,), (v,)),
    "vjp": lambda f: lambda x, v: sa.vjp(f, x)[1](v[0]),
    "linearize": lambda f: lambda x, v: (lambda pair: (pair[0], pair[1](v)))(sa.linearize(f, x)),
    "hvp": lambda f: lambda x, v: sa.hvp(f, (x,), (v,)),
    "vhv": lambda f: lambda x, v: sa.partials(f, 2, along=v)(x),
    "taylor": lambda f: lambda x, v: sa.taylor(f, (x,), (v,), 3),
    "derivative along": lambda f: lambda x, v: sa.partials(f, 2, along=v)(x),
    "part": lambda f: lambda x, v: sa.grad(lambda p: f(p["a"]) * p["b"][0], wrt='p["a"]')({"a": x, "b": v}),
    "captured": lambda f: sa.grad(lambda x, v: sa.partials(lambda y: f(y) * np.sum(x * y), 2, along=v)(x)),
    "gradient of a gradient": lambda f: sa.grad(lambda x, v: np.sum(sa.grad(f)(x) ** 2 * v)),
    "gradient of hvp": lambda f: sa.grad(lambda x, v: np.sum(sa.hvp(f, (x,), (v,)) * x)),
    "jvp of hvp": lambda f: lambda x, v: sa.jvp(lambda y: sa.hvp(f, (y,), (v,)), (x,), (v,))[1],
}
MATRICES = {
    "Hessian": lambda f: lambda x, v: sa.hessian(f)(x) @ v,
    "Jacobian": lambda f: lambda x, v: sa.jacobian(sa.grad(f))(x) @ v,
    "value, gradient, Hessian": lambda f: lambda x, v: sa.value_gradient_hessian(f)(x),
    "sparse Hessian": lambda f: lambda x, v: sa.hessian(f, sparse="lower")(x),
}
SHORT = ("valley", "logistic", "momentum")
CASES = [(name, transform) for name in FUNCTIONS for transform in TRANSFORMS if name in SHORT or transform == "hvp"]
CASES += [("heat", "gradient of a gradient"), ("valley found", "vjp")]
CASES += [(name, transform) for name in SHORT for transform in MATRICES]


def arrays(value):
    return [np.ravel(leaf) for leaf in containers.flatten(value)[0]]


def agree(function, *args):
    """Compare loops with straight lines; return the kernel with the loops."""
    rolled, straight = (sa.compile(function, *args, roll=roll, cache=False) for roll in ("always", "never"))
    assert rolled.stats.strategy == "rolled"
    for found, expected in zip(arrays(rolled(*args)), arrays(straight(*args)), strict=True):
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-13 * np.max(np.abs(expected)))
    return rolled


@pytest.mark.parametrize(("name", "transform"), CASES)
@pytest.mark.thinned
def test_transforms_in_the_code_have_the_values_of_straight_lines(name, transform):
    f, x = FUNCTIONS[name]
    agree((TRANSFORMS | MATRICES)[transform](f), x, np.linspace(-1, 1, x.size) + 0.3)


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("f", [valley, heat], ids=["valley", "heat"])
@pytest.mark.thinned
def test_bodies_do_not_grow(f, transform):
    found = [
        sa.compile(TRANSFORMS[transform](f), np.ones(n), np.ones(n), roll="always", cache=False).program.operations
        for n in (100, 200)
    ]
    assert found[0] == found[1] < 400


def test_an_optimiser_with_a_gradient_in_its_steps_is_a_nest():
    def trained(weights, rate):
        weights, _ = sa.scan(lambda w, _: (w - rate * sa.grad(logistic)(w), None), weights, None, length=6)
        return logistic(weights)

    kernel = agree(sa.grad(trained, argnums=(0, 1)), np.array([0.1, 0.2, 0.3]), 0.02)
    assert kernel.program.operations < 100
    agree(lambda w, rate: sa.hvp(lambda w: trained(w, rate), (w,), (w,)), np.array([0.1, 0.2, 0.3]), 0.02)


def test_a_pullback_may_be_called_in_another_transform():
    def f(x):
        pullback = sa.vjp(valley, x)[1]
        return sa.grad(lambda s: np.sum(pullback(s * s)[0] * x))(3.0 * x[0])

    agree(f, np.linspace(0.5, 1.5, 10))


def test_a_map_may_be_called_in_the_body_of_a_loop():
    def f(x):
        pushforward = sa.linearize(valley, x)[1]
        return sa.scan(lambda c, row: (c * 0.5 + pushforward(row) ** 2, None), 0.0, np.outer(np.arange(3.0), x))[0]

    agree(f, np.linspace(0.5, 1.5, 10))


def ends(x):
    return sa.sum_over(lambda u: u * u, np.stack([x] * 9)) / 9


def times(x, y):
    return sa.sum_over(lambda k: k * x * y, np.arange(9.0)) / 36


def plus(x, y):
    return sa.sum_over(lambda k: k * (x + y), np.arange(9.0)) / 36


D = sa.derivative
CONFUSION = {  # KNOWN_ANSWERS, section A: what is right, and what a shared perturbation would give
    "A1": (lambda x: x * D(lambda y: plus(x, y))(1.0), 1.0, 1.0),
    "A2": (lambda x: x * D(lambda y: times(x, y))(2.0), 1.0, 2.0),
    "A3": (lambda x: x * D(lambda y: times(x, y))(1.0), 4.0, 8.0),
    "A3b": (lambda x: x * D(lambda y: times(x, y))(x), 1.5, 3.0),
    "A3c": (lambda x: x * D(lambda y: times(x, y) * y)(x), 1.5, 13.5),
    "A6": (lambda x: D(lambda y: times(x, 1.0))(x), 1.0, 0.0),
    "A10": (lambda x: D(lambda y: times(y, x - y))(x), 1.0, -1.0),
    "A12": (lambda x: x * D(ends)(x), 1.0, 4.0),
}


@pytest.mark.parametrize("around", ["function", "sum", "scan"])
@pytest.mark.parametrize("case", CONFUSION)
@pytest.mark.thinned
def test_perturbations_stay_apart(case, around):
    f, at, right = CONFUSION[case]
    bodies = {
        "function": f,
        "sum": lambda x: sa.sum_over(lambda k: k * f(x), np.arange(5.0)) / 10,
        "scan": lambda x: sa.scan(lambda total, k: (total + k * f(x), None), 0.0, np.arange(5.0))[0] / 10,
    }
    assert sa.derivative(bodies[around])(at) == pytest.approx(right, abs=1e-14)
    for outer in (sa.derivative, sa.grad, lambda g: lambda x: sa.jvp(g, (x,), (1.0,))[1]):
        roll = "auto" if around == "function" else "always"  # where all is a constant, there is no loop
        assert sa.compile(outer(bodies[around]), at, roll=roll, cache=False)(at) == pytest.approx(right, abs=1e-13)


def test_a_condition_on_what_is_differentiated_is_followed():
    def f(x):
        return valley(x) if x[0] > 0.5 else np.sum(x * x) * valley(2 * x)

    def product(x):
        return sa.hvp(f, (x,), (x,))

    kernel = agree(product, np.linspace(0.6, 1.2, 10))
    below = np.linspace(0.4, 1.2, 10)
    np.testing.assert_allclose(kernel(below), product(below), rtol=1e-12)


def test_what_a_function_changes_is_changed_once():
    seen = []

    def f(x):
        seen.append(len(x))
        return np.sum(x * x)  # too little for loops: called again, to be differentiated in the graph

    sa.compile(lambda x: sa.grad(f)(x), np.ones(3), roll="auto", cache=False)
    assert seen.count(3) >= 1

    def g(x, seen):
        seen.append(0)
        return np.sum(x * x) * len(seen)

    def once(x):
        seen = []
        return sa.grad(lambda y: g(y, seen))(x)

    assert sa.compile(once, np.ones(2), cache=False)(np.ones(2)).tolist() == [2.0, 2.0]


def test_what_cannot_be_rolled_is_carried_out_and_said():
    @sa.custom_derivative(derivative=lambda primals, tangents: 3 * primals[0] ** 2 * tangents[0])
    def cube(x):
        return x**3

    def f(x):
        return cube(x[0]) * valley(x)

    def both_gradients(x):
        return sa.grad(f)(x) + sa.grad(valley)(x)

    x = np.linspace(0.5, 1.5, 10)
    found = sa.plan(both_gradients, x)
    assert "the gradient of f is not taken of loops: a custom or implicit" in " ".join(found.text().split())
    agree(both_gradients, x)


RESULTS = {
    "captured": lambda x, v: sa.jvp(lambda y: (valley(y) * v[0], v, y, x), (x,), (v,)),
    "twice": lambda x, v: sa.jvp(lambda y: (y, y, valley(y)), (x,), (v,)),
    "containers": lambda x, v: sa.grad(lambda p: valley(p["a"]) * np.sum(p["b"][0]))({"a": x, "b": [v]}),
    "several arguments": lambda x, v: sa.grad(lambda a, b: valley(a) * valley(b), argnums=(1, 0))(x, v),
    "a list": lambda x, v: sa.jacobian(lambda y: [valley(y) * y])(x),
    "equal captured": lambda x, v: sa.grad(lambda y: np.sum(sa.grad(lambda z: valley(z) * np.sum(y * z))(y) * v))(x),
    "other captured": lambda x, v: sa.grad(lambda y: np.sum(sa.grad(lambda z: valley(z) * np.sum(y * z))(x) * v))(x),
    "truths": lambda x, v: sa.grad(lambda y: np.sum(np.where(v > 0, y**3, 0)) * valley(y))(x),
    "cotangents": lambda x, v: sa.vjp(lambda a, b: (valley(a), a * b), x, v)[1]((2.0, x)),
    "places": lambda x, v: sa.scan(
        lambda total, k: (total + sa.grad(lambda y: valley(y) * x[k])(x)[k], None), 0.0, np.arange(12)
    )[0],
}


@pytest.mark.parametrize("form", RESULTS)
@pytest.mark.thinned
def test_forms_of_arguments_and_results(form):
    agree(RESULTS[form], FUNCTIONS["valley"][1], np.linspace(-1, 1, 12) + 0.3)


def test_what_a_loop_around_reads_at_its_index_is_captured():
    """`x[k]` is a slot of the body around, and no free symbol of the function that is differentiated in it."""

    def f(x):
        return sa.scan(lambda u, k: (u + sa.grad(lambda y: valley(y) * x[k])(x) @ x, None), 0.0, np.arange(12))[0]

    x = FUNCTIONS["valley"][1]
    assert "not taken of loops" not in sa.plan(f, x).text()
    np.testing.assert_allclose(sa.compile(sa.grad(f), x)(x), sa.grad(f)(x), rtol=1e-10)


def test_the_report_shows_the_loops_that_are_differentiated():
    found = sa.plan(lambda x, v: sa.hvp(valley, (x,), (v,)), np.ones(100), np.ones(100))
    (line,) = found.lines
    assert "gradient of valley: 99 copies of" in line
    assert found.chosen == "rolled"
    assert "Directional derivatives of gradient_of_valley" in found.text()
