"""Loops written down, compiled as loops: values and derivatives are those of the function called with numbers."""

import numpy as np
import pytest
from optree import tree_leaves

import symad as sa
from symad import cond, fori_loop, scan, sum_over, vmap, while_loop

A = np.array([[0.3, -1.2, 0.5], [0.7, 0.4, -0.8], [-0.5, 0.9, 1.5], [1.1, 0.2, -0.1]])
B = np.array([0.5, -0.25, 0.75, 1.25])
X = np.array([0.4, -0.6, 1.1])
PAIRS = np.array([(i, j) for i in range(3) for j in range(i)])


def pendulum(x):
    def step(state, k):
        return (state[0] + 0.1 * state[1], state[1] - 0.1 * x[0] * np.sin(state[0])), state[0] * k

    (position, velocity), path = scan(step, (x[1], x[2]), np.arange(5))
    return position * velocity + (path**2).sum()


def layers(x):
    hidden = vmap(lambda row: np.tanh(row @ x))(A)
    return np.sin(sum_over(lambda h, b: (h - b) ** 2 * x[0], hidden, B))


def root(x):
    return (
        while_loop(lambda r: abs(r * r - x[0] - 2) > 1e-12, lambda r: (r + (x[0] + 2) / r) / 2, 1 + x[1] ** 2, 9) * x[2]
    )


# The last one: of the terms of a sum, some depend on the input and some do not.
SCALARS = {
    "sum": lambda x: np.log(sum_over(lambda row: np.exp(row @ x), A)),
    "map and sum": layers,
    "scan": pendulum,
    "fori_loop": lambda x: fori_loop(1, 3, lambda k, s: s * x[k - 1] + np.sin(x[k]) * k, x[2]),
    "pairs": lambda x: sum_over(lambda p: 1 / (1 + (x[p[0]] - x[p[1]]) ** 2), PAIRS),
    "while_loop": root,
    "cond": lambda x: scan(lambda c, b: (cond(c > b, np.cos, np.square, c * x[1]), None), x[0], B)[0] * x[2],
    "if": lambda x: sum_over(lambda b: b**2 * x[0] ** 3 if b > x[1] else np.sin(b) * x[2] ** 2, B),
    "backward": lambda x: scan(lambda c, b: (np.sin(c * x[0]) + b, c * x[1]), 1, B, reverse=True)[1] @ np.arange(4.0),
    "a map of gradients": lambda x: vmap(sa.grad(lambda u: np.sin(u) * x[0] * u))(x) @ x,
    "all pairs": lambda x: sum_over(lambda i: sum_over(lambda u: np.cos((x[i] - u) * x[0]) * i, x), range(3)),
    "a map of scans": lambda x: vmap(lambda u: scan(lambda c, b: (np.sin(c * u) + b, None), u, B)[0])(x) @ x,
    "mixed": lambda x: np.sin(sum_over(lambda u: u * u, np.array([x[0], x[1], 2.0]))),
}
TRANSFORMS = {
    "value": lambda f: f,
    "gradient": sa.grad,
    "value and gradient": sa.value_and_grad,
    "hessian": sa.hessian,
    "jacobian of the gradient": lambda f: sa.jacobian(sa.grad(f)),
}


def kernel_of(f):
    try:
        return sa.compile(f, X, roll="always", tier="fast")
    except sa.errors.ArgumentError as refused:  # matrices of short chains
        if "is not taken of loops in this form" not in str(refused):
            raise
        return sa.compile(f, X, tier="fast")


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("name", SCALARS)
@pytest.mark.thinned
def test_kernels_of_loops(name, transform):
    f = TRANSFORMS[transform](SCALARS[name])
    kernel = kernel_of(f)
    for point in (X, X[::-1] * -0.3):
        for found, expected in zip(*map(tree_leaves, (kernel(point), f(point))), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("order", range(4))
def test_derivatives_of_any_order_in_one_variable(order):
    def f(t):
        return scan(lambda c, b: (np.sin(c * t) + b, None), t, B)[0] * sum_over(lambda b: np.exp(b * t), B)

    expected = f
    for _ in range(order):
        expected = sa.derivative(expected)
    kernel = sa.compile(expected, 0.3, roll="always", tier="fast")
    assert (kernel(0.3), kernel(-0.7)) == (pytest.approx(expected(0.3)), pytest.approx(expected(-0.7)))


def test_containers_go_in_and_come_out():
    def f(p):
        states, path = scan(lambda c, b: ({"u": c["u"] * p["w"][0] + b}, c["u"]), {"u": p["b"]}, B)
        return {"last": states, "path": path, "map": vmap(lambda row: (row @ p["w"], row))(A)}

    params = {"w": X, "b": 0.5}
    found, expected = sa.compile(f, params, roll="always")(params), f(params)
    assert found["last"]["u"] == pytest.approx(expected["last"]["u"])
    for ours, theirs in ((found["path"], expected["path"]), *zip(found["map"], expected["map"], strict=True)):
        np.testing.assert_allclose(ours, theirs, rtol=1e-14)


def test_a_loop_that_stops_goes_forward_only():
    def steps(x):
        return while_loop(lambda r: abs(r * r - x) > 1e-9, lambda r: (r + x / r) / 2, x)

    assert sa.compile(steps, 1.0)(9.0) == pytest.approx(3.0, rel=1e-9)
    assert sa.compile(sa.derivative(steps), 1.0)(9.0) == sa.derivative(steps)(9.0)
    assert sa.compile(lambda x: while_loop(lambda c: c < x, lambda c: c + 1, 0), 1.0)(10**6) == 10**6
    with pytest.raises(sa.errors.ArgumentError, match=r"test_constructs_rolled\.py:\d+.*max_steps"):
        sa.compile(sa.grad(steps), 1.0)


def test_a_million_terms_are_one_loop():
    def rosenbrock(x):
        return sum_over(lambda a, b: 100 * (b - a * a) ** 2 + (1 - a) ** 2, x[:-1], x[1:])

    x = np.linspace(0.0, 1.0, 10**6)
    kernel = sa.compile(sa.value_and_grad(rosenbrock), x, tier="fast")
    value, gradient = kernel(x)
    expected = 2 * (x[:-1] - 1) - 400 * x[:-1] * (x[1:] - x[:-1] ** 2)
    assert value == pytest.approx((100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum())
    np.testing.assert_allclose(gradient[1:-1], expected[1:] + 200 * (x[1:-1] - x[:-2] ** 2), rtol=1e-9, atol=1e-9)
