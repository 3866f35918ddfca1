"""A traced number is what an element of an array is: functions, methods and indices of np.float64 work on it."""

import math

import numpy as np
import pytest

import symad as sa
import symad.tracing.numpy.protocols
from symad.errors import TraceError

REDUCTIONS = [
    np.sum, np.prod, np.max, np.min, np.any, np.all, np.ptp, np.nansum, np.nanprod, np.nanmax, np.nanmin, np.nanmean,
    np.nanvar, np.nanstd, np.count_nonzero, np.cumsum, np.cumprod, np.nancumsum, np.nancumprod, np.add.reduce,
    np.maximum.reduce, np.mean, np.var, np.std, np.median, np.average,
]  # fmt: skip
INDICES = [(), ..., None, (..., None), (None, ...), (None, None), True, False, (True, None), (...,)]
METHODS = [
    lambda x: x.reshape(1), lambda x: x.reshape(1, 1), lambda x: x.reshape(()), lambda x: x.reshape(-1),
    lambda x: x.ravel(), lambda x: x.flatten(), lambda x: x.squeeze(), lambda x: x.item() + x.item(0),
    lambda x: x.astype(float), lambda x: x.copy(), lambda x: x.T, lambda x: x.sum(axis=0), lambda x: x.max(axis=-1),
    lambda x: x.sum(0, keepdims=True), lambda x: x.cumsum(), lambda x: x.std(), lambda x: x.compress([True]),
    lambda x: x.repeat(2), lambda x: x.take([0, 0]), lambda x: x.flat[0], lambda x: x.clip(0, 1), lambda x: x.round(1),
    lambda x: x * x.nbytes * x.itemsize * x.size + x.ndim, lambda x: np.asanyarray(x * 1.0)[()],
    lambda x: np.apply_over_axes(np.sum, x, 0), lambda x: np.array(x)[None],
]  # fmt: skip


def raised(function, *arguments, **keywords):
    """Return the type of error that a call raises, None if none."""
    try:
        function(*arguments, **keywords)
    except Exception as error:
        return type(error)
    return None


@pytest.mark.parametrize("keywords", [{"axis": 0}, {"axis": -1}, {"axis": 1}, {"axis": ()}, {"axis": (0,)},
                                      {"axis": 0, "keepdims": True}], ids=str)  # fmt: skip
@pytest.mark.parametrize("function", REDUCTIONS, ids=lambda f: f.__qualname__)
def test_reductions_along_an_axis_that_numbers_lack(function, keywords, agrees_on_numbers, number):
    error = raised(function, np.float64(1.3), **keywords)
    if error is None:
        agrees_on_numbers(lambda x: function(x, **keywords), np.float64(1.3))
    else:
        assert issubclass(raised(function, number, **keywords), error)


@pytest.mark.parametrize("key", INDICES, ids=str)
def test_indices_of_numbers(key, agrees_on_numbers, agrees_on_symbols):
    agrees_on_numbers(lambda x: (x * 2)[key], np.float64(1.3))
    agrees_on_symbols(lambda x: (x * 2)[key], np.float64(1.3))


@pytest.mark.parametrize("method", METHODS)
def test_methods_of_numbers(method, agrees_on_symbols):
    agrees_on_symbols(method, np.float64(1.3))
    x = np.float64(1.3)
    assert sa.derivative(lambda x: np.sum(method(x)))(x) == sa.compile(sa.derivative(lambda x: np.sum(method(x))), x)(x)


@pytest.mark.parametrize("key", [0, -1, slice(None), "a", [0], (slice(None), None)], ids=str)
@pytest.mark.parametrize("expected", [TypeError, IndexError])  # of floats; of NumPy's numbers
def test_numbers_have_no_elements(key, expected):
    """Code that asks whether there are elements catches either error, and takes the branch for numbers."""

    def f(x):
        try:
            return x[key]
        except expected:
            return x * 3.0

    assert sa.derivative(f)(1.5) == sa.compile(sa.derivative(f), 1.5)(1.5) == 3.0
    with pytest.raises(TraceError, match=r"index .* of a traced number: a number has no axis"):
        sa.derivative(lambda x: x[key])(1.5)


@pytest.mark.parametrize("asked", [iter, list, len, tuple, reversed, lambda x: 1.0 in x, lambda x: [*x]])
def test_numbers_are_no_sequences(asked, number):
    with pytest.raises(TypeError):
        asked(number)
    assert not np.iterable(number)


@pytest.mark.parametrize(("value", "expected"), [(2.0, True), (2.5, False), (math.inf, False), (math.nan, False)])
def test_whole_numbers_are_told(value, expected):
    def f(x):
        return x * 5.0 if x.is_integer() else x * 7.0

    assert float(value).is_integer() == expected
    assert sa.derivative(f)(value) == (5.0 if expected else 7.0)
    assert sa.compile(sa.derivative(f), 1.0)(value) == (5.0 if expected else 7.0)


@pytest.mark.parametrize("condition", [[True, False, True], np.array([False, True, True])])
def test_compress_of_arrays_is_numpys(condition, agrees_on_numbers):
    agrees_on_numbers(lambda x: x.compress(condition), np.array([1.5, 2.5, 3.5]))


def test_no_other_axis_is_taken_for_one_that_is_missing():
    with pytest.raises(np.exceptions.AxisError):
        sa.grad(lambda x: np.sum(np.apply_along_axis(np.prod, 2, x)))(np.ones((2, 2)))


@pytest.mark.parametrize("deviation", [
    lambda x: np.std([x]), lambda x: np.std(x), lambda x: np.std([x**2], axis=0)[()],
    lambda x: np.sum(np.std(np.array([[x, 2 * x]]), axis=0, keepdims=True)),
])  # fmt: skip
def test_the_deviation_of_one_number_is_zero_everywhere(deviation):
    value, slope = sa.value_and_grad(deviation)(1.5)
    assert (value, slope) == sa.compile(sa.value_and_grad(deviation), 1.5)(1.5) == (0.0, 0.0)
    assert math.isnan(sa.value_and_grad(deviation)(math.inf)[0])


RANGES = [
    lambda x: np.arange(x * 3), lambda x: np.arange(np.ceil(x) + 1), lambda x: np.arange(0, x, 0.25) * x,
    lambda x: np.arange(0, 3, x), lambda x: np.arange(x, 4), lambda x: np.arange(x, 4, step=x / 3),
    lambda x: np.arange(start=x, stop=4, dtype=float), lambda x: np.arange(4, x, -x), lambda x: np.arange(x, 0),
    lambda x: np.arange(x, 8, 1.6, dtype=int) + 0.0, lambda x: np.arange(2) * x,
]  # fmt: skip


@pytest.mark.parametrize("made", RANGES)
def test_ranges_with_traced_bounds(made):
    """The length follows the value; the elements have derivatives."""

    def f(x):
        return np.sum(made(x) * np.cos(np.arange(len(made(x)))))

    value, slope = sa.value_and_grad(f)(1.3)
    assert value == pytest.approx(f(1.3), rel=1e-14, abs=1e-15)
    assert slope == pytest.approx((f(1.3 + 1e-6) - f(1.3 - 1e-6)) / 2e-6, rel=1e-8, abs=1e-9)


def test_each_length_of_a_range_is_a_path_for_symbols():
    def f(x):
        return np.sum(np.arange(np.clip(np.ceil(x), 0, 6) + 1)) * x

    kernel = sa.compile(sa.grad(f), 1.5)
    assert [kernel(x) for x in (-1.5, 0.5, 1.5, 5.5, 8.5)] == [0.0, 1.0, 3.0, 21.0, 21.0]
