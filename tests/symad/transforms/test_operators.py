"""Pushforwards, pullbacks and products with Hessians: what they are, and that they leave nothing behind."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

import symad as sa
from symad.tracing.calling.scope import innermost_scope
from tests.support import mixes
from tests.support.cases import CASES


def three(x):
    """A function of two variables with three results."""
    return np.stack([x[0] * x[1], np.sin(x[0]), np.exp(x[1]) * x[0] ** 2])


POINT = np.array([0.7, -0.4])
JACOBIAN = np.array([
    [POINT[1], POINT[0]],
    [np.cos(POINT[0]), 0],
    [2 * POINT[0] * np.exp(POINT[1]), POINT[0] ** 2 * np.exp(POINT[1])],
])  # fmt: skip


def test_n_pushforwards_or_m_pullbacks_make_the_jacobian():
    """Seed 001: one column for each input, or one row for each output."""
    columns = [sa.jvp(three, (POINT,), (unit,))[1] for unit in np.eye(2)]
    _, pullback = sa.vjp(three, POINT)
    rows = [pullback(unit)[0] for unit in np.eye(3)]
    for matrix in (np.stack(columns, 1), np.stack(rows), sa.jacfwd(three)(POINT), sa.jacrev(three)(POINT)):
        assert matrix == pytest.approx(JACOBIAN, rel=1e-15)


def test_a_pullback_of_ones_is_the_gradient_of_the_sum():
    """Seed 004: what is silently taken elsewhere when a function of many results is asked for a gradient."""
    _, pullback = sa.vjp(three, POINT)
    summed = pullback(np.ones(3))[0]
    assert summed == pytest.approx(JACOBIAN.sum(axis=0), rel=1e-15)
    assert summed == pytest.approx(sa.grad(lambda x: three(x).sum())(POINT), rel=1e-15)
    assert sa.compile(sa.grad(lambda x: three(x).sum()), POINT)(POINT) == pytest.approx(summed, rel=1e-15)
    with pytest.raises(sa.errors.ArgumentError, match=r"returned \(3,\) instead of one scalar.*jacobian.*vjp"):
        sa.grad(three)(POINT)


def test_a_gradient_of_a_gradient_is_a_jacobian():
    """Seed 004: the gradient has two results, so it has a Jacobian, which is the Hessian; it has no gradient."""
    f = lambda x: np.sin(x[0]) * x[1] ** 2  # noqa: E731
    with pytest.raises(sa.errors.ArgumentError, match="instead of one scalar"):
        sa.grad(sa.grad(f))(POINT)
    for outer in (sa.jacfwd, sa.jacrev):
        for inner in (sa.grad, sa.jacfwd):
            assert outer(inner(f))(POINT) == pytest.approx(sa.hessian(f)(POINT), rel=1e-15)


@pytest.mark.parametrize("outer", "FR")
@pytest.mark.parametrize("inner", "FR")
def test_a_cube_along_two_directions(outer, inner):
    """Seed 000, forward over forward: the coefficient of epsilon_1 epsilon_2 is 6 x v w."""

    def along(mode, f, direction):
        if mode == "F":
            return lambda x: sa.jvp(f, (x,), (direction,))[1]
        return lambda x: sa.vjp(f, x)[1](direction)[0]

    second = along(outer, along(inner, lambda x: x**3, 5.0), 7.0)
    assert second(2.0) == 6 * 2 * 5 * 7
    assert sa.compile(second, 1.0)(2.0) == 6 * 2 * 5 * 7


@pytest.mark.parametrize("outer", "FR")
@pytest.mark.parametrize("inner", "FR")
def test_a_derivative_that_a_closure_returns(outer, inner):
    """Seed 000: `outer(x)` returns the gradient of `inner(y) = x * y`, a function that has captured x."""

    def captured(x):
        return mixes.ONCE[inner](lambda y: x * y**2)

    found = mixes.ONCE[outer](captured)(3.0)  # d/dx of y -> 2 x y
    assert captured(3.0)(5.0) == 30.0
    assert found(5.0) == 10.0
    assert sa.compile(found, 1.0)(5.0) == 10.0


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
@pytest.mark.thinned
def test_products_with_the_hessian_by_every_mix(case):
    f, point = case.function, np.array(case.point)
    v = np.cos(np.arange(len(point)))
    products = {
        "hvp": sa.hvp(f, (point,), (v,)),
        "forward over reverse": sa.jvp(sa.grad(f), (point,), (v,))[1],
        "reverse over forward": sa.grad(lambda x: sa.jvp(f, (x,), (v,))[1])(point),
        "reverse over reverse": sa.vjp(sa.grad(f), point)[1](v)[0],
        "forward over forward": sa.jacfwd(lambda x: sa.jvp(f, (x,), (v,))[1])(point),
        "compiled": sa.compile(lambda x, v: sa.hvp(f, (x,), (v,)), point, v)(point, v),
    }
    right = sa.hessian(f, mode="edge")(point) @ v
    for name, product in products.items():
        assert product == pytest.approx(right, rel=1e-11, abs=1e-11 * max(1, np.abs(right).max())), name


@pytest.mark.parametrize("word", ["F", "R", "FRF", "RFR", "RRRR"])
def test_no_level_stays_in_memory_when_it_has_closed(word):
    """Seed 000, "memory explosion": nothing of a nested level outlives the call."""
    scopes = []

    def f(x):
        scopes.append(weakref.ref(innermost_scope()))
        return np.sin(x) * x

    mixes.nested(word, f)(0.7)
    gc.collect()
    assert scopes
    assert [scope() for scope in scopes] == [None] * len(scopes)
