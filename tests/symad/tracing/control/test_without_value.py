"""Where a function raises an error that depends on numbers: NaN, with all derivatives, or the user's handler."""

import functools

import numpy as np
import pytest

import symad as sa

POINTS = [np.array(x) for x in ([0.1, 0.5, 0.7], [0.1, 0.5, -1.0], [1.0, 1.0, -1.0], [0.3, -0.2, 2.0])]


def second_of_a_mask(x):
    v = x[x > x[0]]
    return np.sum(v) + v[1]


def reduced(x):
    return functools.reduce(lambda a, b: np.sin(a) + b, x[x > x[0]]) * x[1]


def handed_over(x):
    return (lambda a, *rest: a * sum(rest) + x[2])(*x[x > x[0]])


def counted_places(x):
    found = np.bincount(np.digitize(x, [-0.3, 0.3])) * x[0]
    return np.sum(found - x) * x[1]


def stored_behind(x):
    found = np.bincount(np.digitize(x, [0.0, 0.4])) * x[0]
    found[2] = x[1]
    return np.sum(found * found) * x[2]


def largest_of_none(x):
    return np.max(x[x > x[0]]) * x[1]


def place_of_a_number(x):
    return np.sin(x)[np.floor(5 * x[1]).astype(int)] * x[0]


RAISING = [second_of_a_mask, reduced, handed_over, counted_places, stored_behind, largest_of_none, place_of_a_number]


def numbers_of(f, x):
    """NumPy's value, and derivatives on numbers; all NaN where the function raises."""
    try:
        return f(x), sa.grad(f)(x), sa.hessian(f)(x)
    except (IndexError, TypeError, ValueError):
        n = len(x)
        return np.nan, np.full(n, np.nan), np.full((n, n), np.nan)


@pytest.mark.parametrize("roll", ["auto", "never"])
@pytest.mark.parametrize("f", RAISING[:-1], ids=lambda f: f.__name__)
def test_value_and_derivatives_are_nan_where_the_function_raises(f, roll):
    kernels = [sa.compile(made, POINTS[0], roll=roll) for made in (f, sa.grad(f), sa.hessian(f))]
    either = sa.compile(sa.value_and_grad(f), POINTS[0], roll=roll)
    forward = sa.compile(sa.jacfwd(f), POINTS[0], roll=roll)
    for x in POINTS:
        right = numbers_of(f, x)
        found = [kernel(x) for kernel in kernels]
        for one, other in zip([*found, *either(x), forward(x)], [*right, *right[:2], right[1]], strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-14)


def with_handler(f, errors):
    def caught(x):
        try:
            found = f(x)
        except errors:
            found = -7.0 * x[1] ** 3
        return found + x[2]

    return caught


@pytest.mark.parametrize("errors", [Exception, (IndexError, ValueError, TypeError)], ids=["any", "named"])
@pytest.mark.parametrize("f", RAISING, ids=lambda f: f.__name__)
def test_handlers_catch_what_numbers_raise(f, errors):
    caught = with_handler(f, errors)
    kernels = [sa.compile(made, POINTS[0]) for made in (caught, sa.grad(caught), sa.hessian(caught))]
    for x in [*POINTS, np.array([0.2, 0.7, 0.1])]:
        for found, right in zip([kernel(x) for kernel in kernels], numbers_of(caught, x), strict=True):
            np.testing.assert_allclose(found, right, rtol=1e-12, atol=1e-14)


def test_handlers_for_other_errors_catch_nothing():
    kernel = sa.compile(sa.grad(with_handler(second_of_a_mask, ZeroDivisionError)), POINTS[0])
    np.testing.assert_allclose(
        kernel(POINTS[0]), sa.grad(second_of_a_mask)(POINTS[0]) + np.array([0, 0, 1]), rtol=1e-12
    )
    assert np.isnan(kernel(POINTS[1])).all()


def test_sparse_derivatives_have_their_pattern_where_there_is_no_value():
    def f(x):
        if np.any(x > 5):
            raise ValueError("too large")
        return np.sum(np.sin(x[1:]) * x[:-1])

    x = np.cos(np.arange(300.0))
    kernel = sa.compile(sa.hessian(f, sparse="lower"), x, roll="always")
    assert kernel.scipy(x).nnz == 2 * 299
    np.testing.assert_allclose(kernel.scipy(x).toarray(), np.tril(sa.hessian(f)(x)), rtol=1e-12, atol=1e-14)
    x[7] = 6.0
    assert np.isnan(kernel.scipy(x).data).all()


def test_a_power_that_nothing_raises():
    def f(x):
        return np.sum((1 + x**2) ** np.logaddexp.reduce(x[x > 2.0]))

    kernel = sa.compile(f, POINTS[0])
    for x in (POINTS[0], 3 * POINTS[3]):
        np.testing.assert_allclose(kernel(x), f(x), rtol=1e-12)


NESTED = [
    lambda x: np.sum(sa.grad(second_of_a_mask)(x) ** 2 * x),
    lambda x: sa.jvp(reduced, (x,), (np.cos(x),))[1],
    lambda x: np.sum(sa.hvp(second_of_a_mask, (x,), (x,)) + np.sin(x)),
    lambda x: np.sum(sa.hessian(largest_of_none)(x) * np.outer(x, x)) + x[0] ** 3,
    lambda x: sa.fori_loop(0, 40, lambda k, total: total + np.sin(total) * x[x > x[0]][0], x[1]),
]


@pytest.mark.parametrize("f", NESTED, ids=["grad", "jvp", "hvp", "hessian", "body"])
def test_what_has_no_value_inside_has_none_outside(f):
    """A derivative in the code of a function, and a body that is repeated."""
    kernels = [sa.compile(made, POINTS[0]) for made in (f, sa.grad(f), sa.hessian(f))]
    for x in POINTS:
        for kernel, right in zip(kernels, numbers_of(f, x), strict=True):
            np.testing.assert_allclose(kernel(x), right, rtol=1e-11, atol=1e-13)


def test_a_place_of_nan_in_the_users_own_array_is_no_place():
    def f(x):
        table = np.arange(3) * 0.3
        return np.sum(x) + table[int(3 * abs(x[0])) % len(table)] * x[1]

    kernels = [sa.compile(made, POINTS[0]) for made in (f, sa.grad(f))]
    for x in POINTS:
        for kernel, right in zip(kernels, numbers_of(f, x), strict=False):
            np.testing.assert_allclose(kernel(x), right, rtol=1e-12)
    for kernel in kernels:
        assert np.isnan(kernel(np.array([np.nan, 1.0, 2.0]))).all()


def test_an_error_on_every_path_is_told():
    def f(x):
        return (lambda a, b: a * b)(*[x[0]] * (3 + len(x[x > 0])))

    with pytest.raises(
        sa.errors.ArgumentError, match=r"value.py:\d+: f raises an error on every path: the first is TypeError: "
    ):
        sa.compile(f, POINTS[0])


@pytest.mark.filterwarnings("ignore:Arrays of 2-dimensional vectors:DeprecationWarning")
def test_an_array_of_indices_for_a_number_is_a_path_without_a_value():
    """Two picked elements have a number as cross product; the store into it stopped `compile` for all lengths."""

    def f(x):
        picked = x[x > x[-1]]
        product = np.cross(picked[:3], np.ones(len(picked[:3])))
        product = product.copy()
        product[np.argsort(product, kind="stable")] = product * x[0]
        return np.sum(product**2)

    x = np.array([3.0, 2.0, 4.0, 1.0])
    kernel = sa.compile(sa.grad(f), x)
    np.testing.assert_allclose(kernel(x), sa.grad(f)(x), rtol=1e-12)
    assert np.isnan(kernel(np.array([0.3, 0.2, 0.4, 1.0]))).all()
