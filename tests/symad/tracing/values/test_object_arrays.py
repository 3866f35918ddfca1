"""Arrays made of traced scalars, in every way, are those that NumPy makes of floats: every ufunc and reduction."""

import contextlib
import math
import warnings
from functools import partial

import numpy as np
import pytest

import symad as sa
from symad.errors import TraceError

NAN, INF = math.nan, math.inf
POINTS = {
    "ordinary": [0.75, -0.5, 0.25],
    "first is nan": [NAN, -0.5, 0.25],
    "last is nan": [0.75, -0.5, NAN],
    "infinite": [INF, -0.5, -INF],
    "zeros": [-0.0, 0.0, -0.5],
    "equal": [0.5, 0.5, -0.5],
}
MAKERS = {
    "np.array": lambda x: np.array([x[0], x[1], x[2]]),
    "np.asarray of a list": lambda x: np.asarray(list(x)),
    "np.asarray": lambda x: np.asarray(x),
    "np.array of a tuple of parts": lambda x: np.array((x[0] * 1.0, *x[1:])),
    "np.stack": lambda x: np.stack([x[0], x[1], x[2]]),
    "np.r_": lambda x: np.concatenate([[x[0]], x[1:]]),
    "np.array with a number": lambda x: np.array([x[0], x[1], x[2], 0.125])[:3],
    "np.fromiter": lambda x: np.fromiter((value for value in x), float),
    "np.full": lambda x: np.full(3, 1.0) * np.array([x[0], x[1], x[2]]),
    "stores": lambda x: _stores(x),
}


def _stores(x):
    made = np.zeros(3)
    for k in range(3):
        made[k] = x[k]
    return made


UNARY = [
    "absolute", "arctan", "cbrt", "ceil", "cos", "exp", "expm1", "fabs", "floor", "isfinite", "isinf", "isnan",
    "logical_not", "negative", "positive", "rint", "sign", "signbit", "sin", "square", "tanh", "trunc",
]  # fmt: skip
BINARY = [
    "add", "arctan2", "copysign", "equal", "float_power", "floor_divide", "fmax", "fmin", "fmod", "greater",
    "greater_equal", "heaviside", "hypot", "less", "less_equal", "logaddexp", "logical_and", "logical_or",
    "logical_xor", "maximum", "minimum", "multiply", "not_equal", "power", "remainder", "subtract", "true_divide",
]  # fmt: skip
OPERATIONS = {name: getattr(np, name) for name in UNARY}
OPERATIONS |= {f"{name} with a number": partial(lambda f, a: f(a, 0.25), getattr(np, name)) for name in BINARY}
OPERATIONS |= {f"{name} backwards": partial(lambda f, a: f(a, a[::-1]), getattr(np, name)) for name in BINARY}
OPERATIONS |= {
    "max": np.max,
    "min": np.min,
    "method max": lambda a: a.max(),
    "method min": lambda a: a.min(),
    "maximum.reduce": np.maximum.reduce,
    "minimum.reduce": np.minimum.reduce,
    "fmax.reduce": np.fmax.reduce,
    "maximum.accumulate": np.maximum.accumulate,
    "nanmax": np.nanmax,
    "nansum": np.nansum,
    "clip": lambda a: np.clip(a, -0.25, 0.5),
    "method clip": lambda a: a.clip(-0.25, 0.5),
    "argmax": lambda a: a[np.argmax(a)],
    "argmin": lambda a: a[np.argmin(a)],
    "method argmax": lambda a: a[a.argmax()],
    "sort": np.sort,
    "argsort": lambda a: a[np.argsort(a)],
    "partition": lambda a: np.partition(a, 1)[1],
    "median": np.median,
    "quantile": lambda a: np.quantile(a, 0.3),
    "ptp": np.ptp,
    "any": lambda a: np.any(a) * a,
    "all": lambda a: np.all(a) * a,
    "sum": np.sum,
    "prod": np.prod,
    "mean": np.mean,
    "var": np.var,
    "cumsum": np.cumsum,
    "nonzero": lambda a: a[np.nonzero(a)[0]],
    "count_nonzero": lambda a: np.count_nonzero(a) * a,
    "where": lambda a: np.where(a > 0, a, -2 * a),
    "mask": lambda a: a[a > 0],
    "sum of a condition": lambda a: np.sum(a > -0.25) * a,
    "conditions": lambda a: np.array([v > 0 for v in a]).sum() * a,
    "nan_to_num": np.nan_to_num,
    "isclose": lambda a: np.isclose(a, 0.25) * a,
    "norm": lambda a: np.linalg.norm(a),
    "diff": np.diff,
    "dot": lambda a: a @ a,
    "interp": lambda a: np.interp(a, [-1.0, 0.0, 1.0], [1.0, 3.0, 2.0]),
}


@pytest.fixture(autouse=True)
def _quiet():
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore", RuntimeWarning)
        yield


def made_by(maker, operation):
    """A function of x that makes an array of its elements and computes with it; a weighted sum of all it gets."""

    def f(x):
        found = np.ravel(operation(maker(x))) * 1.0
        return sum(found[k] * (k + 1.0) for k in range(len(found)))

    return f


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.thinned
def test_every_array_is_that_of_floats(name, point):
    """The value is NumPy's; the gradient that of the argument itself, which is a traced array from the beginning."""
    x = np.array(POINTS[point])
    direct = made_by(lambda x: x, OPERATIONS[name])
    expected = float(direct(x))
    _, gradient = sa.value_and_grad(direct)(x)
    for way, maker in MAKERS.items():
        value, slopes = sa.value_and_grad(made_by(maker, OPERATIONS[name]))(x)
        np.testing.assert_allclose(value, expected, rtol=1e-14, err_msg=way)
        if way != "np.full":  # which multiplies
            np.testing.assert_allclose(slopes, gradient, rtol=1e-14, err_msg=way)


@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.thinned
def test_kernels_are_those_of_floats_too(name):
    """Or refused, where the order of the elements is asked for, and nothing else."""
    f = made_by(MAKERS["np.array"], OPERATIONS[name])
    start = np.array(POINTS["ordinary"])
    try:
        kernel = sa.compile(sa.value_and_grad(f), start)
    except TraceError:
        for refused in (f, made_by(lambda x: x, OPERATIONS[name])):
            with pytest.raises(TraceError, match="value of a traced"):
                sa.compile(refused, start)
        return
    for point in POINTS.values():
        value, _ = kernel(np.array(point))
        np.testing.assert_allclose(value, float(f(np.array(point))), rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("name", OPERATIONS)
def test_arrays_that_are_asked_to_hold_objects(name, point):
    """They give what arrays of floats give, or what NumPy gives for objects; or are refused."""
    x, operation = np.array(POINTS[point]), OPERATIONS[name]
    f = made_by(lambda x: np.array([x[0], x[1], x[2]], dtype=object), operation)
    try:
        value = sa.value_and_grad(f)(x)[0]
    except TraceError:
        return
    except (ValueError, OverflowError) as error:  # math.floor(nan), which NumPy asks of objects
        with pytest.raises(type(error)):
            f(x)
        return
    expected = [float(made_by(lambda x: x, operation)(x))]
    with contextlib.suppress(TypeError, AttributeError, ValueError, ArithmeticError):  # of NumPy, for objects
        expected.append(float(f(x)))
    assert any(value == pytest.approx(known, rel=1e-14, nan_ok=True) for known in expected)


@pytest.mark.parametrize("name", ["max", "sort", "sign", "argmax", "sum", "any", "median", "maximum backwards"])
@pytest.mark.parametrize("point", POINTS)
def test_an_array_out_of_reach_is_right_or_refused(name, point):
    """`np.array` as a default argument has no stand-in."""
    x, operation = np.array(POINTS[point]), OPERATIONS[name]

    def f(x, array=np.array):
        return np.ravel(operation(array([x[0], x[1], x[2]])))[0] * 1.0

    try:
        value = sa.value_and_grad(f)(x)[0]
    except TraceError:
        return
    np.testing.assert_allclose(value, float(f(x)), rtol=1e-14)


def test_comparisons_of_python_are_followed():
    """max, min and sorted know no NaN; they are Python's and no array's."""
    for point in ([NAN, 1.0], [1.0, NAN], [2.0, 1.0]):
        x = np.array(point)
        for f in (lambda x: max(x[0], x[1]), lambda x: min(x), lambda x: sorted(x)[0], lambda x: any(list(x)) * x[1]):
            np.testing.assert_equal(sa.value_and_grad(f)(x)[0], float(f(x)))
            np.testing.assert_equal(sa.compile(f, x)(x), float(f(x)))


def test_compiled_code_of_scipy_never_gets_objects():
    """It took their addresses for numbers, in code that every call makes anew: 14.2, 18.5, 8.6... instead of 2.59."""
    ndimage = pytest.importorskip("scipy.ndimage")
    text = "def call(m, r):\n    return ndimage.distance_transform_edt(m > 0) * r\n"

    def made_anew(x):
        scope = {"ndimage": ndimage}
        exec(text, scope)
        return np.sum(scope["call"](x[:16].reshape(4, 4), x[16]))

    x = np.append(np.where(np.arange(16) % 3, -1.0, 1.0), 0.5)
    for transform in (sa.value_and_grad, sa.trace, sa.compile):
        with pytest.raises(TraceError, match=r"each call makes anew|counts or labels"):
            transform(made_anew)(x) if transform is sa.value_and_grad else transform(made_anew, x)
