"""A branch not taken never contributes a NaN, also where the choice is made outside of the loop."""

from __future__ import annotations

import math

import numpy as np
import pytest

import symad as sa

POINTS = [np.linspace(0, 1, 60), np.linspace(-1, 1, 60), np.linspace(0.1, 1, 60), np.full(60, 0.5)]


def inside(x):
    return np.sum(np.where(x > 0, np.log(x) * np.sqrt(x), x**2))


def sum_in_a_branch(x):
    return sa.cond(x[0] > 0, lambda u: sa.sum_over(lambda v: np.sqrt(v) + np.log(v), u), lambda u: 0.0 * u[0], x)


def sum_that_is_not_chosen(x):
    return np.where(x[0] > 0, np.sum(np.sqrt(x) * np.sin(x)), x[1])


def sum_below_a_maximum(x):
    return np.maximum(np.sum(np.sqrt(np.abs(x)) * np.sin(x)), 1e9 * x[1] + 1e3)


def map_that_is_not_chosen(x):
    root = np.sqrt(x)
    return np.sum(np.where(x > 0, root * np.roll(root, 1) + np.roll(root, 2) * np.sin(root), 0.0))


def distance_in_a_condition(x):
    """hypot has no derivative at (0, 0); the straight lines around the loop leave it beside a number that has one."""
    distance, scale = np.hypot(x[0] - x[1], x[0] - x[1]), x[2] * x[3]
    return sa.sum_over(lambda u: (u > distance) * (u * scale), x)


@pytest.mark.parametrize("transform", [sa.grad, sa.hessian], ids=["gradient", "Hessian"])
@pytest.mark.parametrize(
    "f",
    [inside, sum_in_a_branch, sum_that_is_not_chosen, sum_below_a_maximum, map_that_is_not_chosen,
     distance_in_a_condition],
)  # fmt: skip
@pytest.mark.thinned
def test_loops_and_straight_lines_agree_where_a_branch_is_not_taken(f, transform):
    rolled, straight = (sa.compile(transform(f), POINTS[0], roll=roll) for roll in ("always", "never"))
    for number, x in enumerate(POINTS):
        np.testing.assert_allclose(rolled(x), straight(x), rtol=1e-9, atol=1e-12, err_msg=f"point {number}")


def test_a_chain_that_discards_its_own_roots():
    def f(x):
        def step(carry, u):
            return np.where(carry > 1, np.sqrt(carry - 1) * u + x, carry * 1.5), None

        return sa.scan(step, x, np.linspace(0.5, 1, 40))[0]

    rolled, straight = (sa.compile(sa.derivative(f), 0.3, roll=roll) for roll in ("always", "never"))
    reverse = sa.compile(sa.grad(f), 0.3, roll="always")
    np.testing.assert_allclose([rolled(0.3), reverse(0.3)], straight(0.3), rtol=1e-12)


@pytest.mark.parametrize("transforms", [(a, b) for a in (sa.grad, sa.derivative) for b in (sa.grad, sa.derivative)])
def test_a_root_that_all_repetitions_read_and_no_path_takes(transforms):
    def f(x):
        return sa.sum_over(lambda weight: weight * (math.sqrt(x) if x > 0 else 0.0), np.ones(9))

    outer, inner = transforms
    assert sa.compile(outer(inner(f)), 1.0, roll="always")(-3.0) == 0


@pytest.mark.parametrize("roll", ["always", "never"])
def test_the_square_of_an_absolute_value_is_smooth(roll):
    """Over all pairs the factors would come from two repetitions of another loop."""
    size = 40
    pairs = sa.compile(sa.hessian(lambda x: np.sum(np.outer(np.abs(x), np.abs(x)))), np.ones(size), roll=roll)
    assert np.array_equal(pairs(np.zeros(size)), 2 * np.eye(size))
    squares = sa.compile(sa.hessian(lambda x: np.sum(np.abs(x) * np.abs(x))), np.ones(size), roll=roll)
    assert np.array_equal(squares(np.zeros(size)), 2 * np.eye(size))


def roots_of_what_exceeds(x):
    total = 0.0
    for i in range(12):
        for j in range(i):
            total = total + np.where(x[i] > x[j], np.sqrt(x[i] - x[j]), 0.0)
    return total


@pytest.mark.parametrize(
    "f",
    [
        lambda x: np.sqrt(roots_of_what_exceeds(x)) * np.sum(x),
        lambda x: np.sqrt(roots_of_what_exceeds(x[::-1])) * x[0] ** 2 + x[1] ** 2,
    ],
)
@pytest.mark.parametrize("sparse", [False, "lower"])
def test_the_root_of_a_sum_of_which_no_branch_is_taken(f, sparse):
    """The second derivative of the root is infinite there, and the slopes of the sum are those of no branch."""
    loops, straight = (
        sa.compile(sa.hessian(f, sparse=sparse), np.zeros(12), roll=roll) for roll in ("always", "never")
    )
    assert np.isfinite(straight(np.zeros(12))).all()
    for x in (np.zeros(12), np.linspace(0.1, 1, 12) ** 2):
        np.testing.assert_allclose(loops(x), straight(x), rtol=1e-9, atol=1e-12)
