"""Constants of which some are 0, in loops and arrays: a finite number times one is a structural zero, as in scalars."""

import numpy as np
import pytest

import symad as sa

SIZE = 60
WEIGHTS = np.where(np.arange(SIZE) % 3 == 0, 0.0, np.linspace(0.5, 2, SIZE))
MATRIX = WEIGHTS.reshape(6, 10)


def root_of_a_product(x):
    total = 0.0
    for k in range(SIZE):
        total = total + np.sqrt(np.abs(WEIGHTS[k] * x[k])) * x[(k + 1) % SIZE]
    return total


def distance_from_0(x):
    total = 0.0
    for k in range(SIZE):
        total = total + np.hypot(WEIGHTS[k] * x[k], WEIGHTS[k] * x[k] ** 2)
    return total


def root_behind_an_array(x):
    scaled, total = WEIGHTS * np.sin(x), 0.0
    for k in range(SIZE):
        total = total + np.sqrt(np.abs(scaled[k]))
    return total


def power_of_a_constant(x):
    total = 0.0
    for k in range(SIZE):
        total = total + WEIGHTS[k] ** (1 + WEIGHTS[k] * x[k])
    return total


@pytest.mark.parametrize("f", [root_of_a_product, distance_from_0, root_behind_an_array, power_of_a_constant])
def test_gradients_in_loops_are_those_on_numbers(f):
    x = np.linspace(0.3, 1.7, SIZE)
    kernel = sa.compile(sa.grad(f), x, roll="always")
    expected = sa.grad(f)(x)
    assert np.isfinite(expected).all()
    np.testing.assert_allclose(kernel(x), expected, rtol=1e-13)


@pytest.mark.parametrize("f", [root_of_a_product, distance_from_0])
def test_tangents_in_one_body_are_those_on_numbers(f):
    x, direction = np.linspace(0.3, 1.7, SIZE), np.linspace(-1, 1, SIZE)
    kernel = sa.compile(lambda x, v: sa.jvp(f, (x,), (v,))[1], x, direction, roll="always")
    np.testing.assert_allclose(kernel(x, direction), sa.jvp(f, (x,), (direction,))[1], rtol=1e-13)


def test_0_times_an_infinite_slope_is_nan_where_the_number_is_no_constant():
    def f(x):
        total = 0.0
        for k in range(SIZE):
            total = total + np.sqrt(x[k] * x[(k + 1) % SIZE])
        return total

    x = np.linspace(0.3, 1.7, SIZE)
    x[4] = 0.0
    kernel = sa.compile(sa.grad(f), x, roll="always")
    np.testing.assert_array_equal(np.isfinite(kernel(x)), np.isfinite(sa.grad(f)(x)))


@pytest.mark.parametrize("size", [3, 6, 20, 60, 3000])
@pytest.mark.parametrize("inner", [np.sin, np.square, lambda x: x])
def test_on_numbers_it_does_not_matter_whether_arrays_are_scalars(size, inner):
    weights = np.where(np.arange(size) % 3 == 0, 0.0, 1.5)
    x, ones = np.linspace(0.3, 1.7, size), np.ones(size)

    def f(x):
        return np.sum(np.sqrt(np.abs(weights * inner(x))))

    def by_scalars(x):
        return sum(np.sqrt(np.abs(weights[k] * inner(x[k]))) for k in range(size))

    gradient = sa.grad(by_scalars)(x)
    assert np.isfinite(gradient).all()
    np.testing.assert_allclose(sa.grad(f)(x), gradient, rtol=1e-14)
    np.testing.assert_allclose(sa.compile(sa.grad(f), x)(x), gradient, rtol=1e-14)
    assert sa.jvp(f, (x,), (ones,))[1] == pytest.approx(gradient.sum())


@pytest.mark.parametrize("size", [3, 50, 3000])
@pytest.mark.parametrize("outer", [np.std, lambda u: np.sqrt(np.sum(u)), lambda u: np.sqrt(np.max(u))])
def test_a_whole_array_times_the_number_0_has_slope_0(outer, size):
    """Arrays of 50 had NaN on numbers, where 3 numbers and kernels had 0."""
    x = np.linspace(0.3, 1.7, size)
    for gradient in (sa.grad(lambda x: outer(0.0 * x)), sa.compile(sa.grad(lambda x: outer(0.0 * x)), x)):
        np.testing.assert_array_equal(gradient(x), np.zeros(size))


def test_0_times_an_array_that_may_be_infinite_is_no_zero():
    weights = np.where(np.arange(20) % 3 == 0, 0.0, 1.5)
    x = np.linspace(0.0, 1.0, 20)
    assert np.isnan(sa.grad(lambda x: np.sum(weights * np.sqrt(x)))(x)[0])
    assert np.isnan(sa.grad(lambda x: np.sum(np.sin(weights * np.log(x))))(x)[0])
