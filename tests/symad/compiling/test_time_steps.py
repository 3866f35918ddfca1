"""Time steps of arrays in a Python loop: the code does not grow with their number, and its numbers are right."""

from functools import cache

import numpy as np
import pytest

import symad as sa
from codegen.ir.region import Nest, regions_of

ROWS, STATE, INPUTS = 16, 32, 24
RNG = np.random.default_rng(3)
DATA = RNG.normal(size=(64, ROWS, INPUTS))
SHAPES = (INPUTS + STATE + 1, STATE), (STATE, 20)
SIZE = sum(rows * columns for rows, columns in SHAPES)
GRID = 66


def recurrent(steps):
    def loss(p):
        first, last = p[: SHAPES[0][0] * STATE].reshape(SHAPES[0]), p[SHAPES[0][0] * STATE :].reshape(SHAPES[1])
        h, total = np.zeros((ROWS, STATE)), 0.0
        for t in range(steps):
            h = np.tanh(np.hstack([DATA[t], h, np.ones((ROWS, 1))]) @ first)
            total = total + np.sum(np.maximum(h @ last, 0.1) ** 2)
        return total

    return loss, 0.1 * RNG.normal(size=SIZE)


def fluid(steps):
    """A Python loop in a Python loop, and a path that leaves what it began with."""

    def loss(x):
        u = x.reshape(GRID, GRID)
        for _ in range(steps):
            force, p = np.roll(u, 1, 0) - np.roll(u, -1, 0), 0 * u
            for _ in range(4):
                p = (force + np.roll(p, 1, 0) + np.roll(p, -1, 1)) / 3.0
            u = np.where(u > 0.3, u - 0.1 * np.sin(p) * u, u + p * 0.01)
        return np.sum(u**3)

    return loss, RNG.normal(size=GRID**2)


def systems(steps):
    """Matrix operations: solutions and determinants."""

    def loss(x):
        u, total = x.reshape(24, 24), 0.0
        eye = 30 * np.eye(24)
        for t in range(steps):
            u = np.linalg.solve(eye + u @ u.T, u + DATA[t, 0])
            total = total + np.linalg.slogdet(eye + u)[1] + np.sum(u * u)
        return total

    return loss, RNG.normal(size=576)


def optimizer(steps):
    """Rounds of gradient descent with momentum, whose derivative is taken in the code of the function."""
    points = RNG.normal(size=(300, 20))

    def inner(w, scale):
        return np.sum(np.log1p(np.exp(scale * (points @ w)))) / 300

    def loss(x):
        w, v = x[:20], 0 * x[:20]
        for _ in range(steps):
            v = 0.9 * v - 0.1 * sa.grad(inner)(w, x[20:])
            w = w + v
        return np.sum(w**2)

    return loss, np.concatenate([RNG.normal(size=20), np.ones(300)])


PROGRAMS = {"recurrent": recurrent, "fluid": fluid, "systems": systems}


@cache
def compiled(name, steps):
    """A program of so many steps, and the kernel of its value and gradient."""
    f, x = PROGRAMS[name](steps)
    return f, x, sa.compile(sa.value_and_grad(f), x)


def regions(kernel):
    return len(list(regions_of(kernel.program.steps)))


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.wide_rows("fluid")
def test_the_code_does_not_grow_with_the_number_of_steps(name):
    counts = []
    for steps in (12, 20):
        kernel = compiled(name, steps)[2]
        assert any(isinstance(step, Nest) for step in kernel.program.steps)
        assert any("repeat in rounds" in line for line in kernel.stats.plan.carried_out)
        counts.append(regions(kernel))
    assert counts[0] == counts[1]


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.wide_rows("fluid")
def test_values_and_derivatives_are_those_of_numbers_and_of_differences(name):
    f, x, kernel = compiled(name, 12)
    value, gradient = kernel(x)
    other, wanted = sa.value_and_grad(f)(x)
    np.testing.assert_allclose(value, f(x), rtol=1e-13)
    np.testing.assert_allclose(value, other, rtol=1e-13)
    np.testing.assert_allclose(gradient, wanted, rtol=1e-9, atol=1e-11 * np.abs(wanted).max())
    d = RNG.normal(size=x.size)
    d /= np.linalg.norm(d)
    difference = (f(x + 1e-6 * d) - f(x - 1e-6 * d)) / 2e-6
    np.testing.assert_allclose(gradient @ d, difference, rtol=1e-5, atol=1e-5 * np.abs(wanted).max())
    pushed = sa.compile(lambda x, v: sa.jvp(f, (x,), (v,)), x, d)(x, d)
    np.testing.assert_allclose(pushed[1], gradient @ d, rtol=1e-9)


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.wide_rows("fluid")
def test_second_derivatives_along_a_direction(name):
    f, x, kernel = compiled(name, 12)
    d = RNG.normal(size=x.size)
    found = sa.compile(lambda x, v: sa.hvp(f, (x,), (v,)), x, d)(x, d)
    wanted = (kernel(x + 1e-6 * d)[1] - kernel(x - 1e-6 * d)[1]) / 2e-6
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5 * np.abs(wanted).max())


@pytest.mark.parametrize("name", ["recurrent", "systems"])
@pytest.mark.parametrize("checkpoints", ["sqrt", "none"])
@pytest.mark.thinned
def test_checkpoints_cut_the_steps_into_segments(name, checkpoints):
    f, x, plain = compiled(name, 35)
    wanted = plain(x)[1]
    kernel = sa.compile(sa.grad(f), x, checkpoints=checkpoints)
    np.testing.assert_allclose(kernel(x), wanted, rtol=1e-11, atol=1e-13 * np.abs(wanted).max())


def test_what_does_not_repeat_is_compiled_as_it_is():
    def f(x):
        u = x.reshape(GRID, GRID)
        for t in range(40):
            u = np.sin(u) * 1.01 if t * t % 7 in (1, 2) else np.roll(u, t, 0) + np.cos(u)
        return np.sum(u)

    x = RNG.normal(size=GRID**2)
    kernel = sa.compile(sa.value_and_grad(f), x)
    assert not any(isinstance(step, Nest) for step in kernel.program.steps)
    np.testing.assert_allclose(kernel(x)[1], sa.grad(f)(x), rtol=1e-10, atol=1e-12)


def test_a_derivative_in_the_code_of_each_step():
    f, x = optimizer(24)
    kernel = sa.compile(sa.grad(f), x)
    d = RNG.normal(size=x.size)
    difference = (f(x + 1e-6 * d) - f(x - 1e-6 * d)) / 2e-6
    np.testing.assert_allclose(kernel(x) @ d, difference, rtol=1e-6)
