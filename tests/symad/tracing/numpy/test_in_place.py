"""In-place operators of traced values on arrays that the function has made of ordinary numbers."""

import numpy as np
import pytest

import symad as sa
from symad.errors import TraceError

DATA = np.array([1.0, 2.0, 3.0])
X = np.array([0.5, -1.0, 2.0])


def subtracted(x):
    left = DATA.copy()
    left -= x**2
    return np.sum(left**3)


def all_kinds(x):
    a, b = DATA.copy(), DATA[:2].repeat(2)[:3].copy()
    a += x
    a *= x
    a /= 3.0
    b **= x
    b -= 0.31 * a
    b //= 0.5
    b += np.sin(a)
    return a @ b


def several_times(x):
    total = DATA.T.copy()
    for k in range(3):
        total += x * k
        total[k] *= 2
    return np.sum(total * x)


def then_shared(x):
    made = DATA.copy()
    made -= x
    other = made
    other *= x
    return np.sum(made)


def other_variable(x):
    made = DATA.copy()
    other = made
    made -= x
    return np.sum(other)


def in_a_list(x):
    rows = [DATA.copy(), DATA.copy()]
    for row in rows:
        row -= x
    return np.sum(rows[0] * rows[1])


def viewed(x):
    made = DATA.copy()
    view = made[1:]
    made -= x
    return np.sum(view)


def a_view(x):
    made = DATA.copy()
    row = made[:]
    row -= x
    return np.sum(made)


def in_a_closure(x):
    made = DATA.copy()

    def inner():
        return np.sum(made)

    made -= x
    return inner()


class Holder:
    def __init__(self):
        self.made = DATA.copy()


def in_an_attribute(x):
    holder = Holder()
    holder.made -= x
    return np.sum(holder.made)


def the_attributes_array(x):
    holder = Holder()
    made = holder.made
    made -= x
    return np.sum(holder.made)


def as_out(x):
    made = DATA.copy()
    np.subtract(made, x, out=made)
    return np.sum(made)


def as_out_of_a_variable(x):
    made = DATA.copy()
    made = np.subtract(made, x, out=made)
    return np.sum(made)


def an_argument(x):
    def inner(made):
        made -= x

    made = DATA.copy()
    inner(made)
    return np.sum(made)


def computed(x):
    made = DATA * 2
    part = DATA[1:] + 1.0
    other = made
    made -= x
    part *= x[:2]
    made[0] = x[1] * made[2]
    return np.sum(other**2) + np.sum(part)


@pytest.mark.parametrize("f", [
    subtracted, all_kinds, several_times, then_shared, other_variable, in_a_list, viewed, a_view, in_a_closure,
    in_an_attribute, the_attributes_array, as_out, as_out_of_a_variable, an_argument, computed,
], ids=lambda f: f.__name__)  # fmt: skip
def test_an_array_that_the_function_makes_is_changed_for_all_who_have_it(f):
    value, gradient = sa.value_and_grad(f)(X)
    assert value == pytest.approx(f(X), rel=1e-14)
    steps = 1e-6 * np.eye(3)
    np.testing.assert_allclose(gradient, [(f(X + step) - f(X - step)) / 2e-6 for step in steps], rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(sa.compile(sa.grad(f), X)(X), gradient, rtol=1e-13)
    np.testing.assert_array_equal(DATA, [1.0, 2.0, 3.0])


def a_default(x, made=DATA):
    made = made.view()
    made -= x
    return np.sum(made)


def growing(x):
    made = DATA.copy()
    made -= x[:, None]
    return np.sum(made)


@pytest.mark.parametrize("f", [a_default, growing], ids=lambda f: f.__name__)
def test_the_users_arrays_and_other_shapes_are_refused(f):
    for transform in (sa.grad, lambda f: sa.compile(sa.grad(f), X)):
        with pytest.raises((TraceError, ValueError)):
            transform(f)(X)
    np.testing.assert_array_equal(DATA, [1.0, 2.0, 3.0])
