"""Vectors, elementwise and reduced, on symbols, against NumPy itself."""

import numpy as np
import pytest
from scipy import special

import symad as sa

GENERATOR = np.random.default_rng(7)
X = GENERATOR.uniform(0.2, 1.5, 5)
Y = GENERATOR.uniform(-2.0, 2.0, 5)
CONSTANT = GENERATOR.uniform(-1.0, 1.0, 5)
MASK = np.array([True, False, True, True, False])

ELEMENTWISE = [
    lambda x, y: x + y,
    lambda x, y: x - y,
    lambda x, y: x * y,
    lambda x, y: x / y,
    lambda x, y: x // y,
    lambda x, y: x % y,
    lambda x, y: x**y,
    lambda x, y: x**2,
    lambda x, y: 2**x,
    lambda x, y: -x,
    lambda x, y: +x,
    lambda x, y: abs(y),
    lambda x, y: x + 1,
    lambda x, y: 1 - x,
    lambda x, y: CONSTANT * x,
    lambda x, y: x - CONSTANT,
    lambda x, y: np.arange(5) * x,
    lambda x, y: np.add(x, [1, 2, 3, 4, 5]),
    lambda x, y: [1.0, 2, 3, 4, 5] / x,
    lambda x, y: x > y,
    lambda x, y: x <= 0.5,
    lambda x, y: (x > 0.5) & (y < 0),
    lambda x, y: ~(x > 0.5) | (y < 0),
    lambda x, y: (x > 0.5) ^ (y < 0),
    lambda x, y: (x > 0.5) * y,
    lambda x, y: (x > 0.5).astype(float) + y,
    lambda x, y: divmod(x, y),
    lambda x, y: np.sin(x) * np.exp(-y),
    lambda x, y: np.arctan2(y, x),
    lambda x, y: np.hypot(x, y),
    lambda x, y: np.maximum(x, y) - np.minimum(x, 0.7),
    lambda x, y: np.sqrt(x) + np.cbrt(y),
    lambda x, y: np.log1p(x) + np.expm1(y),
    lambda x, y: np.tanh(y) ** 2,
    lambda x, y: np.logaddexp(x, y),
    lambda x, y: special.erf(y) + special.expit(x),
    lambda x, y: special.xlogy(x, x),
    lambda x, y: special.jv(1, x),
    lambda x, y: special.gammaln(x) + special.gamma(x),
    lambda x, y: np.where(y > 0, x, y),
    lambda x, y: np.where(MASK, x, y),
    lambda x, y: np.where(y > 0, 1.0, 0),
    lambda x, y: np.where(MASK, x, 0),
    lambda x, y: np.clip(y, -1, 1),
    lambda x, y: np.clip(y, x * 0, x),
    lambda x, y: y.clip(0),
    lambda x, y: y.clip(max=0),
    lambda x, y: np.select([y > 1, y > 0], [x, x**2], y),
    lambda x, y: np.select([MASK, ~MASK], [x, y]),
    lambda x, y: np.piecewise(y, [y < 0, y >= 1], [lambda t: -t, lambda t: t**2, 7.0]),
    lambda x, y: np.round(y, 1),
    lambda x, y: np.rint(y) + np.floor(x) + np.ceil(x) + np.trunc(y) - np.trunc(x),
    lambda x, y: np.sign(y) + np.heaviside(y, 0.5),
    lambda x, y: np.copysign(x, y),
    lambda x, y: np.isfinite(x / (y - y)),
    lambda x, y: np.sinc(x),
    lambda x, y: np.modf(y),
    lambda x, y: np.nan_to_num(x),
    lambda x, y: np.degrees(x),
    lambda x, y: np.square(x) + np.reciprocal(x) + np.positive(y) + np.fabs(y),
    lambda x, y: np.float_power(x, y),
    lambda x, y: np.real(x) + np.imag(y) + x.real + x.conj(),
    lambda x, y: x.astype(float),
    lambda x, y: y.astype(int),
    lambda x, y: y.astype(bool),
    lambda x, y: x.round(2),
    lambda x, y: np.interp(x, [0.0, 1.0, 2.0], [1.0, 4.0, 2.0]),
    lambda x, y: np.logical_and(x, y > 0),
    lambda x, y: np.logical_not(y > 0),
    lambda x, y: np.logical_xor(y > 0, x > 1),
    lambda x, y: np.polyval([1, 2, 3], x),
    lambda x, y: np.isclose(1, 1) * x,
]
REDUCTIONS = [
    lambda x, y: np.sum(x),
    lambda x, y: x.sum(),
    lambda x, y: sum(x),
    lambda x, y: np.prod(x),
    lambda x, y: x.prod(),
    lambda x, y: np.mean(x),
    lambda x, y: x.mean(),
    lambda x, y: np.var(x),
    lambda x, y: x.std(ddof=1),
    lambda x, y: np.std(x),
    lambda x, y: np.var(x, ddof=1),
    lambda x, y: np.max(y),
    lambda x, y: y.min(),
    lambda x, y: np.amax(y) + np.amin(y),
    lambda x, y: np.ptp(y),
    lambda x, y: np.cumsum(x),
    lambda x, y: x.cumprod(),
    lambda x, y: np.sum(x, where=MASK),
    lambda x, y: np.sum(x, initial=3.0),
    lambda x, y: np.max(y, initial=0.0),
    lambda x, y: np.sum(x, keepdims=True),
    lambda x, y: np.mean(x, where=MASK),
    lambda x, y: np.average(x, weights=CONSTANT),
    lambda x, y: np.average(CONSTANT, weights=x),
    lambda x, y: np.average(x),
    lambda x, y: np.any(y > 1),
    lambda x, y: np.all(y > -3),
    lambda x, y: (y > 0).any(),
    lambda x, y: (y > 0).all(),
    lambda x, y: np.sum(y > 0),
    lambda x, y: (y > 0).mean(),
    lambda x, y: np.count_nonzero(y > 0),
    lambda x, y: np.diff(x),
    lambda x, y: np.diff(x, n=2),
    lambda x, y: np.ediff1d(x),
    lambda x, y: np.diff(x, prepend=0.0),
    lambda x, y: np.trapezoid(x),
    lambda x, y: np.trapezoid(y, x),
    lambda x, y: np.trapezoid(CONSTANT, x),
    lambda x, y: np.trapezoid(x, dx=0.1),
    lambda x, y: np.gradient(x),
    lambda x, y: np.gradient(x, 0.1),
    lambda x, y: np.nansum(x),
    lambda x, y: np.nanmax(y) + np.nanmin(y),
    lambda x, y: np.nanprod(x),
    lambda x, y: np.add.reduce(x),
    lambda x, y: np.multiply.reduce(x),
    lambda x, y: np.maximum.reduce(y),
    lambda x, y: np.add.accumulate(x),
    lambda x, y: np.maximum.accumulate(y),
    lambda x, y: np.multiply.outer(x, y),
    lambda x, y: np.subtract.outer(x, CONSTANT),
    lambda x, y: np.add.reduceat(x, [0, 2, 3]),
    lambda x, y: np.cumulative_sum(x, include_initial=True),
    lambda x, y: np.logical_or.reduce(y > 0),
    lambda x, y: np.maximum.outer(x, y),
    lambda x, y: np.logaddexp.reduce(x),
    lambda x, y: np.hypot.reduce(x),
    lambda x, y: np.convolve(x, y),
    lambda x, y: np.convolve(x, [1.0, 2.0], "same"),
    lambda x, y: np.convolve(x, [1, 2], "valid"),
    lambda x, y: np.correlate(x, y),
    lambda x, y: np.correlate(x, [1.0, 2.0], "full"),
    lambda x, y: np.vander(x, 3),
    lambda x, y: np.vander(x, 3, increasing=True),
    lambda x, y: np.linspace(x, y, 4),
]


def identify(function):
    return f"{function.__code__.co_firstlineno}"


@pytest.mark.parametrize("function", ELEMENTWISE + REDUCTIONS, ids=identify)
def test_vectors(function, agrees_on_symbols):
    agrees_on_symbols(function, X, Y)


def test_sums_are_chains_from_the_left(vector):
    total = vector.sum()
    assert total.node == (vector[0] + vector[1] + vector[2]).node
    assert (vector @ vector).node == (vector[0] * vector[0] + vector[1] * vector[1] + vector[2] * vector[2]).node


def test_dtype_and_sizes(vector):
    assert vector.dtype == np.float64
    assert (vector > 0).dtype == bool
    assert np.zeros(3, dtype=vector.dtype).dtype == np.float64
    assert np.finfo(vector.dtype).eps > 0
    assert np.result_type(vector, np.float32) == np.float64
    assert (vector.nbytes, vector.itemsize, len(vector)) == (24, 8, 3)
    assert not np.iscomplexobj(vector)
    assert np.isrealobj(vector)


# The memory of an array, which a traced one does not have.
MEMORY = {"base", "byteswap", "ctypes", "data", "dump", "dumps", "getfield", "resize", "setfield"}
MEMORY |= {"to_device", "tobytes", "tofile"}
REMOVED = {"itemset", "newbyteorder", "ptp", "tostring"}  # which older NumPys keep, some only to refuse them


def test_every_attribute_of_an_array_is_one_of_a_traced_array(vector):
    matrix = np.stack([vector, vector])
    public = {name for name in dir(np.ndarray) if not name.startswith("_")}
    assert {name for name in public if not hasattr(matrix, name)} - REMOVED == MEMORY
    with pytest.raises(AttributeError, match="a traced array has no attribute 'tobytes'"):
        vector.tobytes()


def kept_from_stores(x):
    made = x * 2
    made.flags.writeable = False
    copy = made.copy()
    copy[0] = 7.0
    if x[0, 0] > 1:
        x[0, 1] = 3.0
    x.setflags(write=False)
    return (made * copy).sum() + x.sum()


FORMS = (
    lambda x: x, lambda x: x.T, lambda x: x[:, ::2], lambda x: x[0], lambda x: x.reshape(-1), lambda x: x * 1,
    lambda x: np.broadcast_to(x, (4, 2, 3)), lambda x: np.sin(x.T), lambda x: x.T.copy(), lambda x: x.T @ x,
)  # fmt: skip
FLAGS = ("c_contiguous", "f_contiguous", "contiguous", "forc", "fnc", "carray", "behaved", "aligned", "writeable")
KEYS = ("C", "F", "W", "A", "C_CONTIGUOUS", "WRITEABLE")


@pytest.mark.parametrize("way", [lambda f: lambda x: sa.value_and_grad(f)(x)[0], sa.jit])
def test_flags_are_those_of_numpy(way):
    def f(x):
        flags = [form(x).flags for form in FORMS]
        told = [
            *(getattr(part, name) for part in flags for name in FLAGS),
            *(part[key] for part in flags for key in KEYS),
        ]
        return sum((k + 1.0) * flag for k, flag in enumerate(told)) * x.sum()

    x = np.arange(6.0).reshape(2, 3) + 1
    assert way(f)(x) == f(x)
    assert way(kept_from_stores)(x) == kept_from_stores(x.copy())
    with pytest.raises(ValueError, match="read-only"):
        way(lambda x: x.setflags(write=False) or x.__setitem__(0, 1.0) or x.sum())(x)
    for key in ("O", "OWNDATA"):
        with pytest.raises(sa.errors.TraceError, match=r"flags\.owndata of a traced array"):
            way(lambda x, key=key: x.flags[key] * x.sum())(x)


def test_too_few_elements_for_a_variance(vector):
    """As NumPy has it, without its warning: the divisor is never negative."""
    variances = [
        np.var(vector, ddof=3),
        np.nanvar(vector, where=[True, False, False], ddof=1),
        np.nanmedian(vector * np.nan),
    ]
    assert [str(value) for value in variances] == ["~inf", "~nan", "~nan"]


SINGLE = [
    "sum",
    "prod",
    "mean",
    "var",
    "std",
    "max",
    "min",
    "ptp",
    "any",
    "all",
    "nansum",
    "nanmean",
    "nanstd",
    "nanmax",
]


@pytest.mark.filterwarnings("ignore:Degrees of freedom", "ignore:Mean of empty slice")
@pytest.mark.parametrize("seed", range(60))
def test_random_reductions(seed, agrees_on_symbols):
    generator = np.random.default_rng(seed)
    shape = tuple(generator.integers(1, 4, generator.integers(0, 4)).tolist())
    rank = len(shape)
    axes = [None, *range(-rank, rank)] + [tuple(generator.permutation(rank)[:2].tolist())] * (rank > 1)
    for name in SINGLE:
        keywords = {"axis": axes[generator.integers(len(axes))], "keepdims": bool(generator.integers(2))}
        if name in ("sum", "prod", "max", "min", "nansum", "nanmax") and generator.integers(2):
            keywords["initial"] = 0.5
        if name in ("sum", "prod", "mean", "var", "std", "any", "nanmean", "nanstd") and generator.integers(2):
            keywords["where"] = generator.random(shape) < 0.7
        if name in ("var", "std") and generator.integers(2):
            keywords["ddof"] = 1
        function = getattr(np, name)
        agrees_on_symbols(
            lambda x, function=function, keywords=keywords: function(x, **keywords), generator.uniform(-2.0, 2.0, shape)
        )


@pytest.mark.parametrize("ends", [(-0.0, 1.0), (-0.0, -1.0), (0.0, np.inf), (-0.0, 0.0)])
@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
def test_linspace_has_the_signs_of_zero_and_the_nans_of_numpy(ends):
    x = np.array(ends)
    for count in (1, 3):
        expected = np.linspace(*ends, count)
        found = sa.compile(lambda x, count=count: np.linspace(x[0], x[1], count), x)(x)
        np.testing.assert_array_equal(found, expected)
        np.testing.assert_array_equal(np.signbit(found), np.signbit(expected))


@pytest.mark.parametrize("points", [[0.5], [0.0, 0.4, 0.4, 1.0], np.linspace(0, 1, 60)])
@pytest.mark.parametrize("ends", [{}, {"left": -1.0, "right": 2.0}])
def test_interpolation_at_known_places(points, ends):
    """Their pieces are found now: nothing is written for each piece and place."""
    places = np.array([-1.0, 0.0, 0.2, 0.4, 0.41, 0.999, 1.0, 1.5, np.nan, np.inf, -np.inf])
    values = np.sin(np.arange(len(points)) + 1.0)

    def f(v):
        return np.interp(places, points, v, **ends)

    with np.errstate(all="ignore"):
        assert sa.trace(f, values).count_ops() <= 3 * (len(points) + len(places))
        np.testing.assert_allclose(sa.compile(f, values)(values), f(values), rtol=1e-14)
        jacobian = sa.jacobian(f)(values)
    columns = [(f(values + 1e-6 * unit) - f(values)) / 1e-6 for unit in np.eye(len(points))]
    known = np.isfinite(places)
    np.testing.assert_allclose(jacobian[known], np.transpose(columns)[known], atol=1e-8)


def test_a_name_as_an_index_is_the_error_of_numpy():
    def f(params):
        try:
            a, b = params["a"].value, params["b"].value
        except Exception:
            a, b = params
        return a**2 * b

    with pytest.raises(IndexError) as plain:
        np.ones(2)["a"]
    with pytest.raises(IndexError) as traced:
        sa.grad(lambda x: x["a"])(np.ones(2))
    assert str(traced.value) == str(plain.value)
    assert sa.grad(f)(np.array([2.0, 3.0])).tolist() == [12.0, 4.0]
    assert sa.compile(sa.grad(f), np.ones(2))(np.array([2.0, 3.0])).tolist() == [12.0, 4.0]
    assert sa.grad(f)([2.0, 3.0]) == [12.0, 4.0]  # a list has an error of its own
    assert (
        np.take(np.ones(2), 0, mode="raise") == sa.value_and_grad(lambda x: np.take(x, 0, mode="raise"))(np.ones(2))[0]
    )
