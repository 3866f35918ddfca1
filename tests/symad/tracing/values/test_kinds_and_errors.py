"""What traced numbers say they are, whole numbers by their bits, and errors of numbers that the user's code catches."""

from __future__ import annotations

import math
from decimal import Decimal

import numpy as np
import pytest

import symad as sa
from symad.errors import BoundWarning, TraceError
from tests.support.compiled import same_as_called

VECTORS = [np.array([0.3, -0.7, 1.2, 0.9]), np.array([-0.4, 0.8, -1.3, 0.2]), np.array([1.7, 0.1, -0.2, -2.1])]
NUMBERS = [0.7, -1.3, 2.4, 0.15, 3.6]


def by_type(x):
    return np.sum(x**2) if type(x) is np.ndarray else x[0] ** 3


def by_the_type_of_an_element(x):
    return x[0] ** 2 if type(x[0]) in (float, np.float64) else x[0] ** 3


def by_the_name_of_a_type(x):
    return helper(x) * x[1]


def helper(x):
    return x[0] ** 2 if type(x).__name__ == "ndarray" else x[0] ** 3


def bits(x):
    k = (x * 11.3).astype(int)
    return np.sum(((k & 5) + (k | 2) - (k ^ 3) + (k >> 1) + (np.abs(k) << 2) - ~k) * x**2)


def bits_of_a_number(x):
    k = int(x[0] * 9)
    return ((k & 6) + (3 | k) + (k << 2) + (k >> 1)) * x[1] ** 2


def by_a_decimal_number(x):
    near = x[0] == Decimal("0.3") or Decimal("Infinity") < x[0]
    return x[0] ** 2 if Decimal("0.29") > x[0] or near else x[1] ** 3 + float(Decimal("1.5")) * x[0]


def by_decimal_numbers_beside(x):
    """0.3 and 1.7 are no floats: the nearest ones are less and less, that of 0.8 is more."""
    found = 1.0
    for k, text in enumerate(("0.3", "1.7", "0.8")):
        for answer in (x[k % 2] < Decimal(text), x[0] <= Decimal(text), x[1] > Decimal(text), x[0] >= Decimal(text)):
            found = found * 1.1 + (2.0 if answer else 3.0) * x[k]
    return found


def divisors(x):
    return np.sum(np.gcd(np.abs(x * 11.3).astype(int), 6) * np.lcm((x * 7.1).astype(int), 4) * x)


@pytest.mark.parametrize(
    "f",
    [
        by_type, by_the_type_of_an_element, by_the_name_of_a_type, bits, bits_of_a_number, by_a_decimal_number,
        divisors,
    ],
    ids=lambda f: f.__name__,
)  # fmt: skip
def test_kinds(f):
    same_as_called(f, VECTORS)


def test_decimal_numbers_are_compared_exactly():
    """At the floats next to them, on either side."""
    near = [float(text) for text in ("0.3", "1.7", "0.8")]
    kernel = sa.compile(by_decimal_numbers_beside, np.array(near))
    for x in (np.array(near), np.nextafter(near, 9), np.nextafter(near, -9), np.array([1.7, 0.8, 0.3])):
        wanted = pytest.approx(by_decimal_numbers_beside(x), rel=1e-14)
        assert kernel(x) == wanted
        assert sa.value_and_grad(by_decimal_numbers_beside)(x)[0] == wanted


def test_floats_have_no_bits():
    for f in (lambda x: (x & 1) * x, lambda x: (x << 1) * x, lambda x: np.gcd(x, 2) * x):
        with pytest.raises(TraceError, match="integers only"):
            sa.grad(f)(2.5)


def caught_logarithm(x):
    try:
        return math.log(x) * x
    except ValueError:
        return x**2


def caught_root(x):
    try:
        y = math.sqrt(x - 0.5)
    except ValueError:
        y = 0.25 * x
    return y + x**2


def caught_overflow(x):
    try:
        return 1 / math.exp(300 * x)
    except OverflowError:
        return x**2


def caught_division(x):
    try:
        return x / round(x * 0.3)
    except ZeroDivisionError:
        return x**2


def caught_reciprocal(x):
    try:
        return 1.0 / max(x, 0.0)
    except ArithmeticError:
        return x**3


def caught_around_a_call(x):
    def inner(u):
        return math.acosh(u) + u

    try:
        return inner(x)
    except ValueError:
        return 2 * x


@pytest.mark.parametrize(
    "f", [caught_logarithm, caught_root, caught_overflow, caught_division, caught_reciprocal, caught_around_a_call],
    ids=lambda f: f.__name__,
)  # fmt: skip
def test_errors_that_are_caught_are_paths(f):
    same_as_called(f, [x for x in NUMBERS if f is not caught_overflow or x > -1])


def test_what_nothing_catches_is_no_path():
    with np.errstate(all="ignore"):
        assert sa.trace(lambda x: math.log(x) + math.sqrt(x), 1.0).paths == 1
        kernel = sa.compile(lambda x: math.log(x), 1.0)
    assert np.isnan(kernel(-1.0))


class Interpolator:
    def __init__(self):
        self.table = np.array([0.0, 1.0, 8.0, 27.0])

    def __call__(self, x):
        k = min(int(abs(x)), 2)
        return self.table[k] + (abs(x) - k) * (self.table[k + 1] - self.table[k])


def test_a_table_that_an_object_has():
    interpolator = Interpolator()
    same_as_called(lambda x: interpolator(x) * x, [0.7, -1.3, 2.4, 0.15, 2.9])
    assert type(interpolator.table) is np.ndarray


def test_a_place_outside_of_a_table_has_no_value():
    table = np.array([1.0, 2.0, 3.0])
    kernel = sa.compile(lambda x: table[int(x)] * x, 0.5)
    assert [kernel(0.5), kernel(2.5), kernel(-1.0)] == [0.5, 7.5, -3.0]
    assert np.isnan(kernel(3.5))
    assert np.isnan(sa.compile(lambda x: [1.0, 2.0][int(x)] * x, 0.5)(2.5))
    assert np.isnan(sa.compile(lambda x: {0: 1.0, 1: 2.0}[int(x)] * x, 0.5)(2.5))
    assert np.isnan(sa.compile(lambda x: table[int(x)] * x, 0.5)(np.nan))


def test_slices_end_behind_their_container():
    values = [1.0, 2.0, 4.0]
    kernel = sa.compile(lambda x: sum(values[: min(max(int(x), 0), 5)]) * x, 0.5)
    assert [kernel(0.5), kernel(2.5), kernel(4.5)] == [0.0, 7.5, 31.5]


def test_text_of_a_count_without_bounds_is_followed_for_so_many():
    with pytest.warns(BoundWarning, match="it is followed for 64 steps"):
        kernel = sa.compile(lambda x: {"0": 1.0}.get(str(int(abs(x))), 3.0) * x, 0.5)
    assert [kernel(0.5), kernel(-7.0)] == [0.5, -21.0]
    assert np.isnan(kernel(70.0))
