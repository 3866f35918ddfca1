"""Python's own floats: errors, comparisons and attributes are theirs, and those of NumPy's numbers are NumPy's."""

import collections.abc
import contextlib
import math

import numpy as np
import pytest

import symad as sa

ERRORS = (ValueError, ZeroDivisionError)


def inverse(y):
    return 1 / y


def in_a_caller(x):
    try:
        return inverse(x - 0.5)
    except ZeroDivisionError:
        return x**2


def of_any_kind(x):
    try:
        return 1 / (x - 0.5)
    except Exception:
        return x**2


def of_named_kinds(x):
    try:
        return 1 // (x - 0.5) * x
    except ERRORS:
        return x**2


def in_a_comprehension(x):
    try:
        return sum([1 / (x - k) for k in (0.5, 2.0)])
    except ArithmeticError:
        return x**2


def of_a_power(x):
    try:
        return (x - 0.5) ** -1
    except ZeroDivisionError:
        return x**2


def of_a_remainder(x):
    try:
        return divmod(x, x - 0.5)[1] * x
    except ZeroDivisionError:
        return x**2


def of_an_overflow(x):
    try:
        return 10.0 ** (800 * x) * x
    except OverflowError:
        return x**2


def of_a_floor(x):
    try:
        return math.floor(math.log(x / 0.5) * math.inf) * x  # NaN, or infinity
    except (ValueError, OverflowError) as error:
        return x**2 if isinstance(error, ValueError) else x**3


def of_an_attribute(x):
    try:
        return x.shape[0] * x
    except AttributeError:
        return x**2


def suppressed(x):
    result = x**2
    with contextlib.suppress(ZeroDivisionError):
        result = 1 / (x - 0.5)
    return result


HANDLERS = [
    in_a_caller, of_any_kind, of_named_kinds, in_a_comprehension, of_a_power, of_a_remainder, of_an_overflow,
    of_a_floor, of_an_attribute, suppressed,
]  # fmt: skip


@pytest.mark.parametrize("f", HANDLERS, ids=lambda f: f.__name__)
def test_handlers_are_followed_on_numbers_and_in_kernels(f):
    kernel = sa.compile(sa.value_and_grad(f), 0.7)
    for x in (0.5, 0.8, 0.25):
        value, slope = sa.value_and_grad(f)(x)
        assert value == pytest.approx(f(x), rel=1e-14)
        assert kernel(x) == pytest.approx((value, slope), rel=1e-13)


@pytest.mark.parametrize("f", [inverse, lambda x: x**-2, lambda x: 3 % x, lambda x: divmod(1.0, x)[0]])
def test_errors_that_nothing_catches_come_out(f):
    with pytest.raises(ZeroDivisionError):
        sa.grad(f)(0.0)
    with np.errstate(all="ignore"):
        assert np.isfinite(sa.compile(f, 1.0)(2.0))


def test_numbers_of_numpy_divide_as_numpy_does():
    with np.errstate(all="ignore"):
        assert sa.value_and_grad(inverse)(np.float64(0.0)) == (np.inf, -np.inf)
        assert sa.value_and_grad(lambda x: of_any_kind(x[0]))(np.array([0.5]))[0] == np.inf
        assert sa.value_and_grad(lambda x: inverse(np.sqrt(x)))(0.0)[0] == np.inf
    with pytest.raises(ZeroDivisionError):
        sa.grad(lambda x: inverse(float(x[0])))(np.array([0.0]))


def matched(x):
    match (x > 1, x > 0.5):
        case (True, _):
            return x**2
        case (False, True):
            return x**3
    return 0.0 * x


def is_large(x):
    return x > 1


def squared_if(condition, x):
    return x**2 if condition is True else x**3


def matches_a_helper(x):
    match (is_large(x), x):
        case (True, _):
            return x**2
        case _:
            return x**3


TESTS = {
    "is True, of a helper": lambda x: x**2 if is_large(x) is True else x**3,
    "is True, in a helper": lambda x: squared_if(x > 1, x),
    "match, of a helper": matches_a_helper,
    "match": matched,
    "is True": lambda x: x**2 if (x > 1) is True else x**3,
    "is False": lambda x: x**2 if (x == 1) is False else x**3,
    "isfinite": lambda x: x**2 if math.isfinite(x) is True else x**3,
    "bool": lambda x: x**2 if isinstance(x > 1, bool) else x**3,
    "type": lambda x: x**2 if type(x) is float else x**3,
    "NumPy's": lambda x: x**2 if isinstance(x, np.generic) else x**3,
    "hasattr": lambda x: np.sum(np.asarray(x) ** 2) if hasattr(x, "__iter__") else x**3,
    "getattr": lambda x: x**2 if getattr(x, "__array_function__", None) is None else x**3,
    "index": lambda x: [1.0, 2.0, 3.0][x] if hasattr(x, "__index__") else x**3,
    "Iterable": lambda x: x**2 if isinstance(x, collections.abc.Iterable) else x**3,
    "asarray": lambda x: np.asarray(x).item() ** 3 if isinstance(np.asarray(x), np.ndarray) else x**2,
    "shape": lambda x: x**2 if hasattr(x, "shape") else x**3,
}


@pytest.mark.parametrize("name", TESTS)
def test_questions_about_a_number_have_pythons_answers(name):
    f = TESTS[name]
    kernel = sa.compile(f, 0.7)
    for x in (0.25, 0.7, 2.0):
        assert sa.value_and_grad(f)(x)[0] == pytest.approx(f(x), rel=1e-15)
        assert kernel(x) == pytest.approx(f(x), rel=1e-15)
    x = np.float64(2.0)
    assert sa.value_and_grad(f)(x)[0] == pytest.approx(f(x), rel=1e-15)


COUNTS = {
    "sum of two": lambda x: (x > 0.5) + (x > 1) + 0.0,
    "with a constant": lambda x: (True + (x > 1)) * x,
    "difference": lambda x: ((x > 0.5) - (x > 1)) * x,
    "product": lambda x: ((x > 0.5) * (x > 1) + (x > 1)) * x,
    "negative": lambda x: -(x > 1) * x,
    "zero": lambda x: math.copysign(1.0, -((x > 5) - (x > 6))),
    "sign": lambda x: +(x > 0.5) + abs(-(x > 1)) + 0.5,
    "place": lambda x: [x, 2 * x, 3 * x][(x > 0.5) + (x > 1)],
    "count": lambda x: sum([x] * ((x > 0.5) + (x > 1))),
    "quotient": lambda x: x / ((x > 0.5) + (x > 1) + True),
    "compared": lambda x: ((x > 1) == False) + (x > 0.5) + 0.0,  # noqa: E712
    "whole numbers": lambda x: (int(x) > 0) + (int(2 * x) > 0) + 0.0,
    "elements of a list": lambda x: (lambda v: (v[0] > 0.5) + (v[1] > 1))((x * np.ones(2)).tolist()) + 0.0,
    "item": lambda x: (lambda v: (v[0].item() > 0.5) + (v[1].item() > 1))(x * np.ones(2)) + 0.0,
}


@pytest.mark.parametrize("name", COUNTS)
def test_comparisons_are_counted_as_ints(name: str) -> None:
    f = COUNTS[name]
    kernel = sa.compile(f, 0.7)
    for x in (0.25, 0.7, 2.0):
        assert sa.value_and_grad(f)(x)[0] == kernel(x) == f(x)


def test_comparisons_of_elements_are_counted_as_numpy_does() -> None:
    def f(x):
        return ((x[0] > 1) + (x[1] > 1)) * x[0]

    x = np.array([2.0, 3.0])
    assert f(x) == sa.value_and_grad(f)(x)[0] == sa.compile(f, x)(x) == 2.0


def test_the_complement_of_a_comparison_is_an_int() -> None:
    """Python's ~True is -2, which is true; of an element of an array it is False."""
    assert sa.compile(lambda x: ~(x > 1) * x, 0.7)(2.0) == -4.0
    assert sa.compile(lambda x: ~(x > 1) * x, 0.7)(0.5) == -0.5
    x = np.array([0.5, 2.0])
    f = lambda x: np.where(~(x > 1), x, -x)  # noqa: E731
    assert sa.compile(f, x)(x).tolist() == f(x).tolist()


LINEAR = {
    "solve": lambda x: np.linalg.solve(np.array([[1.0, x], [1.0, 2.0]]), np.ones(2))[0],
    "inv": lambda x: np.linalg.inv(np.array([[1.0, x], [1.0, 2.0]]))[0, 0],
    "cholesky": lambda x: np.linalg.cholesky(np.array([[1.0, x], [x, 4.0]]))[1, 1],
}


@pytest.mark.parametrize("name", LINEAR)
def test_matrices_without_a_result_are_handled(name):
    def f(x):
        try:
            return LINEAR[name](x)
        except np.linalg.LinAlgError:
            return -(x**2)

    kernel = sa.compile(sa.value_and_grad(f), 0.7)
    for x in (0.7, 2.0):
        assert kernel(x) == pytest.approx(sa.value_and_grad(f)(x), rel=1e-14)
    assert kernel(2.0) == (-4.0, -4.0)


SUMS = {
    "terms that cancel": lambda x: math.fsum([x, 1e16, x * x, -1e16]),
    "tenths": lambda x: math.fsum([x * 0 + 0.1] * 10),
    "an infinity": lambda x: math.fsum([x, math.inf]),
}


@pytest.mark.parametrize("name", SUMS)
def test_fsum_loses_no_digits(name: str) -> None:
    f = SUMS[name]
    kernel, slope = sa.compile(f, 0.7), sa.compile(sa.grad(f), 0.7)
    for x in (0.3, 0.7, 2.5):
        assert sa.value_and_grad(f)(x) == (f(x), slope(x))
        assert kernel(x) == f(x)
        if name == "terms that cancel":
            assert slope(x) == 1 + 2 * x


def _to_round(digits: int) -> list[float]:
    """Return numbers at and beside the middle between two decimal numbers, of many sizes, and others."""
    random = np.random.default_rng(digits + 30)
    middles = (random.integers(-(10**6), 10**6, 60) + 0.5) * 10.0**-digits
    others = random.uniform(-1, 1, 60) * 10.0 ** random.integers(-8, 20, 60)
    binary = random.integers(-(10**5), 10**5, 60) / 2.0 ** random.integers(0, 20, 60)
    beside = np.nextafter(middles, np.where(random.random(60) < 0.5, np.inf, -np.inf))
    return [*np.concatenate([middles, others, binary, beside]).tolist(), -0.0, math.inf, -math.inf, math.nan, 1e300]


@pytest.mark.parametrize("digits", [-3, -1, 0, 1, 2, 3, 10, 22])
def test_a_float_is_rounded_to_decimals_as_python_does(digits: int) -> None:
    def rounded(x: float) -> float:
        return round(x, digits)

    kernel = sa.compile(rounded, 1.5)
    numbers = _to_round(digits)
    for x in numbers:
        np.testing.assert_array_equal(kernel(x), round(x, digits), strict=False)
        assert np.signbit(kernel(x)) == np.signbit(round(x, digits)) or math.isnan(x)
    for x in numbers[::40]:
        value, slope = sa.value_and_grad(rounded)(x)
        np.testing.assert_array_equal(value, round(x, digits))
        assert slope == 0.0 or math.isnan(x)


def test_an_element_of_an_array_is_rounded_to_decimals_as_numpy_does() -> None:
    for x in (2.675, 1.005, -0.125):
        assert sa.compile(lambda v: round(v[0], 2), np.ones(1))(np.array([x])) == round(np.array([x])[0], 2)


def in_place(x, n):
    values = [x, x]
    other = values
    values *= n
    return sum(other)


@pytest.mark.parametrize("function", [in_place, lambda x, n: sum([x, x] * n), lambda x, n: len((x, 1.0) * n) * x])
def test_a_sequence_times_a_float_is_refused_in_kernels(function):
    """Python repeats the sequence for an int, and raises a TypeError for a float: a kernel cannot tell which it is."""
    assert sa.value_and_grad(function)(1.5, 3)[0] == function(1.5, 3)
    for example in (3, 3.0):
        with pytest.raises(sa.errors.TraceError, match="times a traced float"):
            sa.compile(function, 1.5, example)
