"""Nests: loops in the body of a chain have the values and derivatives of straight lines, in code that does not grow."""

from functools import cache

import numpy as np
import pytest

import symad as sa
from codegen import compile_program
from codegen.ir.region import Nest, regions_of
from symad.derivatives.loops.columns_of_regions import hessian_by_columns
from symad.derivatives.loops.pullback import gradient, pullback
from symad.derivatives.loops.pushforward import pushforward

POINTS, STEPS = 104, 5
RNG = np.random.default_rng(5)
START, FORCE = RNG.normal(size=POINTS), RNG.normal(size=(STEPS, POINTS))
WEIGHTS, STATE, INPUTS = RNG.normal(size=(20, 20)) / 5, RNG.normal(size=20), RNG.normal(size=(STEPS, 20))


def mapped_step(u, _):
    new = sa.vmap(lambda a, b, c: b + 0.1 * (a - 2 * b + c) - 0.01 * b**3)(u[:-2], u[1:-1], u[2:])
    return np.concatenate([u[:1], new, u[-1:]]), None


def sliced_step(u, _):
    new = u[1:-1] + 0.1 * (u[2:] - 2 * u[1:-1] + u[:-2]) - 0.01 * u[1:-1] ** 3
    return np.concatenate([u[:1], new, u[-1:]]), None


def heat_of_map(u):
    return sa.scan(mapped_step, u, None, length=STEPS)[0]


def heat_of_slices(u):
    return sa.scan(sliced_step, u, None, length=STEPS)[0]


def forced(u, force):
    """Captured and scanned arrays, and what is kept of every step."""

    def step(before, f):
        after = sa.vmap(lambda a, b, c, d: a + 0.1 * np.sin(b - a) + 0.05 * c * d)(before, np.roll(before, 1), f, u)
        return after, after[::2] * 2

    return sa.scan(step, u, force)


def backward(u, force):
    """The last piece first."""
    return sa.scan(lambda a, f: (np.tanh(a + f * u), np.sin(a) * f), u, force, reverse=True)


def network(weights, state):
    """A recurrent network on inputs that are numbers."""
    return sa.scan(lambda h, x: (np.tanh(weights @ h + x), None), state, INPUTS)[0]


def with_sum(u):
    """A mean field."""

    def step(before, _):
        mean = sa.sum_over(lambda a: np.sin(a) * a / POINTS, before)
        after = sa.vmap(lambda a: a - 0.1 * (a - mean) ** 2)(before)
        return after, mean

    return sa.scan(step, u, None, length=STEPS)


def chain_in_chain(u):
    """A sweep over the points in each step: what is left of it is there at the right."""

    def inner(left, a):
        now = 0.5 * left + 0.3 * np.cos(a) + 0.1 * a
        return now, now

    def body(k, before):
        last, sweep = sa.scan(inner, before[0], before)
        return sweep + 0.01 * last * k

    return sa.fori_loop(0, STEPS, body, u)


def bounded_while(u):
    """It ends after some steps."""

    def body(state):
        k, a = state
        return k + 1, sa.vmap(lambda p, q: p - 0.1 * np.sin(p * q))(a, np.roll(a, 1))

    return sa.while_loop(lambda state: state[0] < 4.5, body, (0.0, u), max_steps=STEPS)[1]


def nest_in_nest(u):
    """Steps of steps."""

    def outer(a, _):
        b, _ = sa.scan(lambda c, _: (c + 0.1 * np.sin(np.roll(c, 1)) * u - 0.01 * c**2 * u, None), a, None, length=3)
        return sa.vmap(lambda p, q: p * 0.9 + 0.1 * q)(b, a), b[:4]

    return sa.scan(outer, u, None, length=3)


SINGLE = [heat_of_map, heat_of_slices, with_sum, chain_in_chain, bounded_while, nest_in_nest]
CASES = [*((f, (START,)) for f in SINGLE), (forced, (START, FORCE)), (backward, (START, FORCE)),
         (network, (WEIGHTS, STATE))]  # fmt: skip


def total(f):
    def scalar(*args):
        parts = f(*args)
        arrays = [part for part in (parts if isinstance(parts, tuple) else (parts,)) if part is not None]
        return sum(np.sum(np.sin(array) * array) for array in arrays)

    scalar.__name__ = f.__name__
    return scalar


@cache
def straight_gradient(f):
    return sa.grad(total(f))(*dict(CASES)[f])


def nests(kernel):
    return [step for step in kernel.program.steps if isinstance(step, Nest)]


def close(found, expected):
    if isinstance(expected, tuple):
        assert len(found) == len(expected)
        for a, b in zip(found, expected, strict=True):
            close(a, b)
    elif expected is not None:
        np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-11)


@pytest.mark.parametrize(("f", "args"), CASES, ids=lambda case: getattr(case, "__name__", ""))
@pytest.mark.thinned
def test_values_are_those_of_python(f, args):
    kernel = sa.compile(f, *args, roll="always")
    assert nests(kernel)
    close(kernel(*args), f(*args))


@pytest.mark.parametrize("checkpoints", ["all", "sqrt", "none"])
@pytest.mark.parametrize(("f", "args"), CASES, ids=lambda case: getattr(case, "__name__", ""))
@pytest.mark.thinned
def test_gradients_are_those_of_straight_lines(f, args, checkpoints):
    gradient = sa.grad(total(f))
    kernel = sa.compile(gradient, *args, roll="always", checkpoints=checkpoints)
    assert nests(kernel)
    close(kernel(*args), straight_gradient(f))


@pytest.mark.parametrize(("f", "args"), CASES, ids=lambda case: getattr(case, "__name__", ""))
@pytest.mark.thinned
def test_the_code_does_not_grow_with_the_steps(f, args):
    """Bodies are written once, whatever is around them."""
    kernel = sa.compile(total(f), *args, roll="always")
    assert all(len(region.body.heads) < 200 for region, _ in regions_of(kernel.program.steps))


@pytest.mark.parametrize("f", SINGLE, ids=lambda f: f.__name__)
@pytest.mark.thinned
def test_second_derivatives_along_a_direction(f):
    """Forward over reverse, reverse over reverse, and the difference of gradients."""
    program = sa.compile(total(f), START, roll="always").program
    first = gradient(program, [0])
    along, step = np.cos(np.arange(POINTS)), 1e-5
    slope = compile_program(first)
    expected = (slope(START + step * along) - slope(START - step * along)) / (2 * step)
    forward = compile_program(pushforward(first, [0]))(START, along)[1]
    np.testing.assert_allclose(forward, expected, rtol=1e-6, atol=1e-7)
    for checkpoints in ("all", "sqrt", "none"):
        backward = compile_program(pullback(first, [0], checkpoints=checkpoints))(START, along)[1]
        np.testing.assert_allclose(backward, forward, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("f", [heat_of_map, with_sum, chain_in_chain], ids=lambda f: f.__name__)
@pytest.mark.wide_rows("chain_in_chain")
def test_dense_hessians_by_columns(f):
    program = sa.compile(total(f), START, roll="always").program
    matrix = compile_program(hessian_by_columns(program, 0))(START)
    along = np.cos(np.arange(POINTS))
    forward = compile_program(pushforward(gradient(program, [0]), [0]))(START, along)[1]
    np.testing.assert_allclose(matrix @ along, forward, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(matrix, matrix.T, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("f", SINGLE, ids=lambda f: f.__name__)
@pytest.mark.thinned
def test_derivatives_along_a_line(f):
    """Pushforwards of nests, once and twice."""

    def line(s):
        return total(f)(START + s * np.sin(np.arange(POINTS)))

    for derivative in (sa.derivative(line), sa.derivative(sa.derivative(line))):
        kernel = sa.compile(derivative, 0.3, roll="always")
        assert nests(kernel)
        close(kernel(0.3), derivative(0.3))
