"""Sorting and computed places: on numbers, compiled and written out, of every order of derivative and every mode."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest

import symad as sa

GRID, TABLE = np.linspace(-1, 1, 7), np.cos(np.arange(8.0))
RANDOM = np.random.default_rng(3)

FUNCTIONS = {
    "sort": lambda x: np.sum(np.sin(np.sort(x * x)) * np.arange(1.0, len(x) + 1) * np.exp(x)),
    "argsort": lambda x: np.sum(np.cos(x)[np.argsort(x, kind="stable")[::-1]] ** 3 * np.arange(float(len(x))) * x),
    "ranks": lambda x: np.sum(np.argsort(np.argsort(x, kind="stable")) * x**2),
    "median": lambda x: np.median(x) ** 2 * x[0],
    "quantiles": lambda x: np.sum(np.quantile(x, [0.25, 0.6]) ** 3) + np.percentile(np.sin(x), 30) ** 2,
    "partition": lambda x: np.sum(np.partition(x, 3)[:3] ** 3),
    "searchsorted": lambda x: np.sum(x**2 * np.searchsorted(GRID, x, side="right")),
    "searched in": lambda x: np.sum(x * np.searchsorted(np.sort(x), GRID).sum() * x[::-1]),
    "table": lambda x: np.sum(x**2 * np.take(TABLE, np.searchsorted(GRID, x))),
    "digitize": lambda x: np.sum(x**2 * np.digitize(x, GRID[::-1], right=True)),
    "axes": lambda x: np.sum(np.sort(np.reshape(x, (2, -1)), axis=0) ** 3 * TABLE[: len(x) // 2]),
    "rows": lambda x: np.sum(np.outer(x, x)[np.argsort(x, kind="stable")][:, 0] * np.arange(float(len(x)))),
    "columns": lambda x: np.sum(np.outer(x, x)[1, np.argsort(x, kind="stable")] * np.arange(float(len(x)))),
    "lexsort": lambda x: np.sum(x[np.lexsort((x, np.round(x)))] ** 2 * np.arange(float(len(x)))),
    "element": lambda x: x[np.argsort(x, kind="stable")[2]] ** 3 * x[0],
}


def close(found, wanted):
    np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-11)


def points(n):
    """Any numbers, and those among which are equal ones."""
    return [RANDOM.normal(size=n), np.round(2 * RANDOM.normal(size=n)) / 2]


def compare(function, size, **options):
    """One kernel at all points, with numbers."""
    given = points(size)
    kernel = sa.compile(function, given[0], **options)
    for x in given:
        close(kernel(x), function(x))


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.thinned
def test_kernels_have_the_derivatives_at_points(name):
    f = FUNCTIONS[name]

    def third(x):
        return sa.grad(lambda y: sa.hvp(f, (y,), (np.cos(x),)) @ np.sin(np.arange(len(x))))(x)

    for made in (f, sa.grad(f), sa.hessian(f), third):
        compare(made, 8)


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.thinned
def test_what_is_written_out_agrees(name):
    f = FUNCTIONS[name]
    for made in (f, sa.grad(f), sa.hessian(f)):
        compare(made, 8, roll="never")


@pytest.mark.parametrize("mode", ["fwd-fwd", "fwd-rev", "rev-fwd", "rev-rev"])
@pytest.mark.parametrize("name", ["sort", "quantiles", "table"])
@pytest.mark.thinned
def test_all_modes_agree(name, mode):
    f = FUNCTIONS[name]
    compare(sa.hessian(f, mode=mode), 8)
    for x in points(8):
        close(sa.hessian(f, mode=mode)(x), sa.hessian(f)(x))


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.thinned
def test_larger_arrays(name):
    f = FUNCTIONS[name]
    for made in (f, sa.grad(f)):
        compare(made, 14 if name == "axes" else 300)


def test_known_answers():
    """A sorted array has the permutation as its Jacobian, and a median the mean of unit vectors."""
    x = RANDOM.normal(size=40)
    order = np.argsort(x)
    jacobian = sa.compile(sa.jacobian(np.sort), x)
    assert np.array_equal(jacobian(x), np.eye(40)[order])
    assert np.array_equal(sa.jacobian(np.sort)(x), np.eye(40)[order])
    slope = np.zeros(40)
    slope[order[19:21]] = 0.5
    assert np.array_equal(sa.compile(sa.grad(np.median), x)(x), slope)


def test_a_large_gradient():
    """Each element has the weight of its rank, to the last digit."""
    n = 100_000
    x, weights = RANDOM.normal(size=n), np.sin(np.arange(float(n)))
    kernel = sa.compile(sa.grad(lambda x: np.sort(x) @ weights), x)
    wanted = np.empty(n)
    wanted[np.argsort(x)] = weights
    assert np.array_equal(kernel(x), wanted)


@pytest.mark.parametrize("n", [1, 2, 7, 48, 49, 200])
def test_ties_zeros_and_nan_stand_as_numpy_has_them(n):
    """Equal keys, 0.0 and -0.0 among them, keep their order; NaN comes last, and a median of it is NaN."""
    choices = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.5, 5e-324])
    kernels = [sa.compile(f, np.zeros(n)) for f in (np.sort, lambda x: x[np.argsort(x)] * 1, np.median, np.argsort)]
    for _ in range(10):
        x = RANDOM.choice(choices, n)
        order = np.argsort(x, kind="stable")
        with np.errstate(invalid="ignore"):
            wanted = x[order], x[order], np.median(x), order
        for kernel, found in zip(kernels, wanted, strict=True):
            assert np.array_equal(kernel(x), found, equal_nan=True)
        assert np.array_equal(np.signbit(kernels[0](x)), np.signbit(x[order]))


@pytest.mark.parametrize(
    "f",
    [
        lambda x: np.median(np.log(x)),
        lambda x: np.sqrt(np.sort(x)[1]) + np.sqrt(np.sort(x)[2]),
        lambda x: np.sum(np.sqrt(np.sort(x))[1:]),
        lambda x: np.sqrt(x)[np.argsort(x)[3]],
    ],
)
def test_what_is_left_out_meets_no_infinite_derivative(f):
    """Of an element that goes into nothing the derivative is 0, also where that of what is done to it is infinite."""
    x = np.array([2.0, 0.0, 7.0, 1.0, 5.0])
    with np.errstate(divide="ignore"):
        for made in (sa.grad(f), sa.hessian(f)):
            wanted = made(x)
            assert np.isfinite(wanted).all()
            close(sa.compile(made, x)(x), wanted)


def test_inside_of_bodies_and_of_many_points():
    x = RANDOM.normal(size=(4, 9))

    def f(x):
        return np.sum(np.sort(np.sin(x)) ** 2 * np.arange(9.0))

    def step(carry, _):
        carry = np.sort(carry * np.arange(1.0, 10.0)) * 0.1
        return carry, np.median(carry)

    def scanned(x):
        last, medians = sa.scan(step, x, np.arange(5.0))
        return medians @ medians + last[0]

    wanted = np.array([sa.grad(f)(row) for row in x])
    close(sa.compile(sa.grad(f), x[0]).batch(x), wanted)
    close(sa.compile(sa.grad(lambda rows: np.sum(sa.vmap(f)(rows))), x)(x), wanted)
    close(sa.compile(sa.grad(lambda rows: sa.sum_over(f, rows)), x)(x), wanted)
    close(sa.compile(sa.grad(scanned), x[0])(x[0]), sa.grad(scanned)(x[0]))


def test_files_and_exports(tmp_path):
    x = RANDOM.normal(size=60)
    kernel = sa.compile(sa.grad(FUNCTIONS["sort"]), x)
    kernel.save(tmp_path / "sorted.symad")
    assert np.array_equal(sa.load(tmp_path / "sorted.symad")(x), kernel(x))
    made = kernel.export(tmp_path, name="sorted_gradient")
    if "library" not in made.files:
        pytest.skip("no C compiler")
    found, function = np.empty(60), ctypes.CDLL(str(made.files["library"])).sorted_gradient
    pointers = [array.ctypes.data_as(ctypes.c_void_p) for array in (x, found)]
    function(*pointers)
    close(found, kernel(x))


def test_places_beyond_the_end_give_nan():
    """A kernel raises no IndexError: what is asked for there has no number."""
    x = np.array([3.0, 1.0, 2.0])
    assert np.array_equal(sa.compile(lambda x: x[np.argsort(x) + 1], x)(x), [2.0, np.nan, 1.0], equal_nan=True)
    assert np.array_equal(sa.compile(lambda x: x[np.argsort(x) - 3], x)(x), np.sort(x))
    assert np.array_equal(sa.compile(lambda x: x[np.argsort(x) - 4], x)(x), [3.0, 1.0, np.nan], equal_nan=True)


def test_quantiles_without_nan():
    x = RANDOM.normal(size=(3, 8))
    x[0, 2] = x[2, :5] = x[2, 6] = np.nan
    for f in (
        lambda x: np.nanmedian(x, axis=1),
        lambda x: np.nanquantile(x, [0.1, 0.7], axis=1),
        lambda x: np.nanpercentile(x, 35),
    ):
        close(sa.compile(f, x)(x), f(x))
        close(sa.compile(sa.jacobian(f), x)(x), sa.jacobian(f)(x))
    with pytest.raises(sa.errors.TraceError, match=r"np.nanquantile with method='lower'"):
        sa.compile(lambda x: np.nanquantile(x, 0.5, method="lower"), x)


@pytest.mark.parametrize("n", [20, 300])
def test_single_precision(n):
    x = RANDOM.normal(size=n).astype(np.float32)
    for name in ("argsort", "median", "table", "searchsorted"):
        wanted = sa.grad(FUNCTIONS[name])(x.astype(float))
        kernel = sa.compile(sa.grad(FUNCTIONS[name]), x, dtype="float32")
        np.testing.assert_allclose(kernel(x), wanted, rtol=1e-4, atol=1e-4 * np.abs(wanted).max())
    x[RANDOM.integers(0, n, 6)] = [np.nan, 0.0, -0.0, np.inf, -np.inf, np.nan]
    assert np.array_equal(sa.compile(np.sort, x, dtype="float32")(x), np.sort(x), equal_nan=True)


def test_refusals():
    x = RANDOM.normal(size=100)
    with pytest.raises(sa.errors.TraceError, match=r"np.argsort was called .* brings 10000 pairs of elements together"):
        sa.compile(np.sort, x, roll="never")
    with pytest.raises(sa.errors.TraceError, match=r"np.take .*: its indices are not whole numbers"):
        sa.compile(lambda x: np.take(x, x), x)
    with pytest.raises(sa.errors.TraceError):
        sa.compile(lambda x: x[x], x)
    with pytest.raises(sa.errors.TraceError):
        sa.compile(lambda x: np.outer(x, x)[:, np.argsort(x), np.argsort(x)], x)


OF_ONE = {
    "argsort": lambda x: np.argsort(x),
    "argsort along": lambda x: np.argsort(x, axis=0),
    "argsort of all": lambda x: np.argsort(x, axis=None),
    "argmax": lambda x: np.argmax(x, axis=-1),
    "argmin": lambda x: np.argmin(x, axis=0),
    "argpartition": lambda x: np.argpartition(x, 0),
    "lexsort": lambda x: np.lexsort((x, x * 2)),
    "take": lambda x: np.take(x, np.argsort(np.stack([x])), axis=0),
}


@pytest.mark.parametrize("name", OF_ONE)
def test_an_element_of_no_axis_is_ordered_as_one_of_an_array(name):
    """NumPy takes it for an array of one element where axis is 0 or -1; `statsmodels.stats.multitest` relies on it."""
    f, wanted = OF_ONE[name], np.asarray(OF_ONE[name](np.float64(2.5)))
    for found in (sa.compile(f, 2.5)(2.5), sa.vjp(f, 2.5)[0]):
        assert np.shape(found) == wanted.shape
        np.testing.assert_array_equal(found, wanted)
    with pytest.raises(np.exceptions.AxisError):
        sa.compile(lambda x: np.argsort(x, axis=1), 2.5)


@pytest.mark.filterwarnings("ignore:Mean of empty slice", "ignore:invalid value", "ignore:All-NaN")
@pytest.mark.parametrize("f", [
    np.median, np.nanmedian, lambda v: np.nanquantile(v, [0.2, 0.3]), lambda v: np.median(v.reshape(0, 3), axis=0),
    lambda v: np.median(v.reshape(3, 0), axis=1, keepdims=True),
])  # fmt: skip
def test_a_median_of_nothing_is_nan_as_in_numpy(f):
    expected = np.sum(f(np.zeros(0)))
    assert np.isnan(expected)
    assert np.isnan(sa.value_and_grad(lambda x: np.sum(f(x[x > 9])) + x[0])(np.ones(2))[0])
    assert np.isnan(sa.compile(lambda x: np.sum(f(x[:0])) + x[0], np.ones(2))(np.ones(2)))


@pytest.mark.parametrize("f", [np.median, np.nanmedian, lambda x: np.quantile(x, 0.5), lambda x: np.percentile(x, 0)])
def test_a_quantile_of_negative_zeros_is_zero_as_numpys(f):
    x = np.array([-0.0, 0.5, -0.0])
    assert np.copysign(1.0, f(x)) == 1.0
    assert sa.value_and_grad(lambda x: np.copysign(1.0, f(x)) + x[0])(x)[0] == 1.0
    assert sa.compile(lambda x: np.copysign(1.0, f(x)), np.ones(3))(x) == 1.0


@pytest.mark.filterwarnings("ignore:Mean of empty slice", "ignore:invalid value")  # of NumPy
@pytest.mark.parametrize(("shape", "axis"), [((0, 0), 0), ((3, 0), 0), ((0, 3), 1), ((2, 0, 3), 0)])
def test_medians_along_axes_of_arrays_without_elements(shape, axis):
    found = sa.jvp(lambda x: np.median(x[0] * np.zeros(shape), axis=axis), (np.ones(2),), (np.ones(2),))
    assert found[0].shape == found[1].shape == np.median(np.zeros(shape), axis=axis).shape


def test_argsort_of_numbers_has_numpys_order_of_equal_elements() -> None:
    """NumPy's default order is not stable: its own vector code sorts few elements in networks."""
    weights, generator = 10.0 ** np.arange(6), np.random.default_rng(0)
    for kind in (None, "stable", "quicksort"):
        for _ in range(30):
            x = generator.integers(0, 3, 6) / 2

            def f(v: Any, kind: Any = kind) -> Any:
                return v @ weights[np.argsort(v, kind=kind)]

            assert sa.value_and_grad(f)(x)[0] == f(x)
