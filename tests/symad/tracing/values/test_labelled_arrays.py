"""Series and DataFrames of pandas, arrays of xarray, models of pydantic: as data, as arguments, and made inside."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

import symad as sa
from symad.tracing.calling.stand_ins import replacements
from tests.support.labels_fuzz import outcome

LABELS = list("abcd")
DATA = pd.Series([1.0, 2.0, 3.0, 4.0], index=LABELS)
TABLE = pd.DataFrame(np.arange(12.0).reshape(4, 3) ** 1.2, index=LABELS, columns=["u", "v", "w"])
P = pd.Series([0.7, 1.3, 0.4, 2.1], index=LABELS)


def stores(p):
    q = p.copy()
    q["a"] = q["b"] ** 2
    return (q * p).sum()


SERIES: dict[str, Callable[[Any], Any]] = {
    "elements": lambda p: p["a"] ** 2 * p["b"] + p.c,
    "the sum": lambda p: (p**2).sum(),
    "the mean": lambda p: (p**2 * DATA).mean(),
    "deviations": lambda p: p.std() + p.var() + p.sem(),
    "extremes": lambda p: p.max() * p.min(),
    "the product": lambda p: p.prod(),
    "the median": lambda p: p.median(),
    "ufuncs": lambda p: np.exp(p).sum() + np.sum(np.sin(p) * DATA) + np.maximum(p, DATA / 3).sum(),
    "residuals of data": lambda p: ((DATA - p["a"] * DATA**2) ** 2).mean(),
    "from the right": lambda p: (p["a"] * DATA + 2 * p - DATA / p).sum(),
    "loc and iloc": lambda p: p.loc["b":"c"].sum() * p.iloc[0],
    "products of matrices": lambda p: ((TABLE.T @ p) ** 2).sum() + p.dot(DATA) + (p @ TABLE).sum(),
    "its numbers": lambda p: np.sum(p.values**2) + np.sum(p.to_numpy() ** 3) + np.sum(np.asarray(p) ** 4),
    "running sums, shifts, bounds": lambda p: (
        (p.cumsum() ** 2 + p.cumprod() * p.cummax() + p.cummin()).sum()
        + (p * p.shift(1)).sum()
        + p.clip(0.5, 1.5).sum()
    ),
    "differences": lambda p: (p.diff() ** 2).sum() + (p.diff(-2) ** 3).sum(),
    "where": lambda p: p.where(p > 0.5, 0.1 * p).sum() + np.where(p > 1, p**2, p).sum(),
    "functions of elements": lambda p: p.apply(lambda v: v**2).sum() + p.map(np.sin).sum(),
    "items": lambda p: sum(v**2 for _, v in p.items()) + sum(v**3 for v in p.to_dict().values()),
    "other labels": lambda p: (p * pd.Series([1.0, 2.0, 3.0, 4.0], index=list("dcba"))).sum(),
    "labels that it lacks": lambda p: (p.reindex(list("dxb")) ** 2).sum(),
    "columns": lambda p: TABLE.mul(p, axis=0).sum().sum() + (TABLE.assign(z=p)["z"] ** 2).sum(),
    "joined": lambda p: (pd.concat([p, DATA]) ** 2).sum(),
    "stores": stores,
    "labels and places of extremes": lambda p: p[p.idxmax()] ** 2 * p[p.idxmin()] + p.iloc[p.argmax()] * p.argmin(),
    "quantiles": lambda p: p.quantile(0.3),
    "statistics": lambda p: p.corr(DATA) + np.mean(p) + np.std(p),
    "functions of NumPy": lambda p: np.linalg.norm(p) + np.polyval(p, 0.5) + np.interp(1.5, DATA, p),
}


def differences(f: Callable[[Any], Any], p: pd.Series) -> np.ndarray:
    steps = 1e-6 * np.eye(len(p))
    return np.array([(float(f(p + step)) - float(f(p - step))) / 2e-6 for step in steps])


@pytest.mark.parametrize("name", SERIES)
@pytest.mark.thinned
@pytest.mark.wide_rows("statistics")
def test_a_series_has_a_series_of_derivatives(name: str) -> None:
    function = SERIES[name]
    gradient = sa.grad(function)(P)
    compiled = sa.compile(sa.grad(function), P)(P)
    assert isinstance(gradient, pd.Series)
    assert list(gradient.index) == list(compiled.index) == LABELS
    np.testing.assert_allclose(gradient, differences(function, P), rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(compiled, gradient, rtol=1e-12, atol=1e-12)
    assert np.isclose(sa.compile(function, P)(P), float(function(P)), rtol=1e-13)


@pytest.mark.parametrize(
    "name", ["elements", "the mean", "residuals of data", "products of matrices", "ufuncs", "stores"]
)
@pytest.mark.thinned
def test_second_derivatives_are_arrays(name: str) -> None:
    function = SERIES[name]
    hessian = sa.hessian(function)(P)
    assert type(hessian) is np.ndarray
    slopes = [(sa.grad(function)(P + step) - sa.grad(function)(P - step)) / 2e-6 for step in 1e-6 * np.eye(4)]
    np.testing.assert_allclose(hessian, slopes, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(sa.compile(sa.hessian(function), P)(P), hessian, rtol=1e-12, atol=1e-12)


@pytest.mark.wide
def test_a_large_series_is_a_few_operations() -> None:
    numbers = np.random.default_rng(0).normal(size=50_000)
    data = pd.Series(numbers)

    def loss(p):
        return ((data - np.exp(p) * 0.1) ** 2).mean()

    gradient = sa.grad(loss)(data)
    expected = -2 * (numbers - 0.1 * np.exp(numbers)) * 0.1 * np.exp(numbers) / numbers.size
    np.testing.assert_allclose(gradient, expected, rtol=1e-11)


def test_a_kernel_takes_series_of_its_labels_whatever_their_names() -> None:
    kernel = sa.compile(sa.grad(SERIES["the sum"]), P)
    again = pickle.loads(pickle.dumps(kernel))
    for row in (P.rename("first"), P * 2):
        np.testing.assert_array_equal(kernel(row), 2 * row)
        np.testing.assert_array_equal(again(row), 2 * row)
    with pytest.raises(sa.errors.ArgumentError, match="Index of 4"):
        kernel(P.rename(index={"a": "z"}))


def test_jit_has_a_kernel_for_each_index() -> None:
    gradient = sa.jit(sa.grad(SERIES["the sum"]))
    for series in (P, P.iloc[:2], P.rename(index={"a": "z"})):
        made = gradient(series)
        assert list(made.index) == list(series.index)
        np.testing.assert_array_equal(made, 2 * series)


@pytest.mark.parametrize("transform", [lambda f, _: f, lambda f, x: sa.compile(f, x)])
def test_a_frame_has_a_frame_of_derivatives(transform: Callable[..., Any]) -> None:
    frame = pd.DataFrame({"a": [0.7, 1.3], "t": ["x", "y"], "b": [0.4, 2.0]}, index=["i", "j"])

    def weighted(table):
        return (table["a"] ** 2 * table["b"]).sum() * table.loc["j", "b"]

    made = transform(sa.grad(weighted), frame)(frame)
    assert list(made.columns) == ["a", "t", "b"]
    assert list(made["t"]) == ["x", "y"]
    a, b = frame["a"].to_numpy(), frame["b"].to_numpy()
    total = (a**2 * b).sum()
    np.testing.assert_allclose(made["a"], 2 * a * b * b[1], rtol=1e-14)
    np.testing.assert_allclose(made["b"], a**2 * b[1] + [0, total], rtol=1e-14)


OTHERS = pd.Series([10.0, np.nan, 30.0, 1.0], index=list("dcbe"))
TIMED = pd.Series([1.0, np.nan, 0.5, 2.0, 3.0], index=pd.date_range("2026-01-01", periods=5))


def changed_in_place(p):
    data, other = DATA.copy(), DATA * p
    same = other
    data *= 2
    data += p
    other /= data
    return same * data


CLOSURES: dict[str, Callable[[Any], Any]] = {
    "alignment": lambda p: np.sum((p * DATA) * OTHERS) + (DATA * p + OTHERS).mean(),
    "NumPy's functions": lambda p: (
        np.sum(np.exp(-p * DATA) * OTHERS) + np.std(p * OTHERS) + np.multiply(p, OTHERS).sum()
    ),
    "extremes by NumPy's functions": lambda p: np.max(p * OTHERS) * np.min(OTHERS * p) + np.max(p * TABLE),
    "elements by their places": lambda p: np.dot(p * DATA, OTHERS) + np.inner(OTHERS, p * DATA) + np.dot(p, DATA).sum(),
    "filled": lambda p: (p * OTHERS).fillna(p).sum() + (DATA.where(DATA > 2, p) * DATA.mask(DATA > 3, p * DATA)).sum(),
    "joined texts": lambda p: (TABLE.assign(t="a").merge(TABLE, left_index=True, right_index=True)["u_x"] * p).sum(),
    "methods of operators": lambda p: (DATA.mul(p) + DATA.rdiv(p).rpow(2.0) - OTHERS.rsub(p)).sum(),
    "in place": lambda p: changed_in_place(p).sum(),
    "windows": lambda p: (
        (p * OTHERS + p**2).rolling(2, min_periods=1).mean().sum() + (p * DATA).expanding(2).std().sum()
    ),
    "windows of time": lambda p: (
        (np.exp(p * TIMED)).rolling("2D", center=True).max().sum() * TIMED.rolling(3).var().sum()
    ),
    "groups": lambda p: (
        (p * OTHERS).groupby(["x", "y", "x", "y"]).mean().prod()
        + (DATA - p).groupby([1, 2, 1, 1]).transform("max").sum()
    ),
    "groups of frames": lambda p: (
        TABLE.assign(g=list("xyyx"), z=p**2 * TABLE["u"])
        .groupby("g")[["z", "w"]]
        .agg({"z": "sum", "w": "var"})["z"]
        .std()
    ),
    "resampled": lambda p: ((p * TIMED).resample("2D").sum(min_count=2) ** 2).sum(),
    "functions of rows": lambda p: (
        (p * TABLE).apply(lambda row: row["u"] * row["w"], axis=1).sum() + (TABLE**p).apply(np.mean).sum()
    ),
    "steps on data alone": lambda p: (
        DATA.rank() * p + OTHERS.isin([30.0]) * p**2 + DATA.groupby([0, 0, 1, 1]).cumsum()
    ).sum(),
    "weights that fall": lambda p: (
        (p * OTHERS).ewm(span=3).mean().sum() + (p * DATA).ewm(alpha=0.3, adjust=False).std().sum()
    ),
    "sums with weights that fall": lambda p: (DATA**p).ewm(com=1, ignore_na=True).sum().sum(),
    "covariances with weights that fall": lambda p: (p * OTHERS).ewm(span=2).cov(p * DATA).sum(),
    "weights that fall with time": lambda p: (p * TIMED).ewm(halflife="2D", times=TIMED.index).mean().sum(),
    "running numbers of groups": lambda p: (
        (p * OTHERS).groupby(list("xyxy")).cumsum().sum() * (DATA**p).groupby([1, 2, 1, 1]).cummax().sum()
        + ((p * DATA).groupby([0, 0, 1, 1]).cumprod() * DATA.pow(p).groupby([0, 1, 1, 0]).rank()).sum()
        + (p * OTHERS).groupby(list("xyxy")).first().sum()
        + (p * OTHERS).groupby(list("xyxy")).last().prod()
        + (DATA - p).groupby(list("xxyy")).sem().sum()
    ),
    "functions of groups and windows": lambda p: (
        (p * DATA).groupby(list("xxyy")).apply(lambda group: group - group.mean() ** 2).prod()
        + (p * DATA).rolling(2).apply(lambda window: window.max() ** 2).sum()
        + (p * DATA).rolling(2).apply(np.prod, raw=True).mean()
    ),
    "places in an order": lambda p: ((p * OTHERS).rank() * p + (TABLE - p).rank(axis=1, pct=True)["u"] * p).sum(),
    "names of the function": lambda p: TABLE.eval("u * @p + w").sum() + p * TABLE.eval("z = v * @p")["z"].mean(),
    "columns of one number": lambda p: (
        TABLE.assign(z=p**2).select_dtypes("number").sum().sum()
        + pd.DataFrame({"a": DATA, "b": p}).sum(numeric_only=True)["b"]
    ),
    "running sums of frames": lambda p: ((p * TABLE).cumsum() * TABLE.mul(p).cumprod(axis=1)).sum().sum(),
    "lists of reductions": lambda p: (p * DATA).agg(["sum", "mean"]).prod(),
    "frames": lambda p: np.sum(((TABLE - p) * TABLE[["w", "u"]]).mean()) + np.mean(p * TABLE["u"] - TABLE["v"][::-1]),
}


@pytest.mark.parametrize("name", CLOSURES)
def test_a_traced_number_keeps_the_labels_of_what_it_meets(name: str) -> None:
    assert outcome(CLOSURES[name]) == "right"


def test_a_number_that_fills_a_column_is_a_column_of_the_result() -> None:
    def filled(p):
        frame = TABLE[["u"]].copy()
        frame["z"] = p
        return frame

    pd.testing.assert_frame_equal(sa.compile(filled, 0.7)(0.7), filled(0.7))


def test_a_kernel_says_which_labels_it_takes() -> None:
    kernel = sa.compile(lambda s: np.sum(s * DATA), DATA)
    with pytest.raises(
        sa.errors.ArgumentError, match=r"Index of 4: d, c, b, a.*the kernel takes .*Index of 4: a, b, c, d"
    ):
        kernel(DATA[::-1])
    long = pd.Series(np.ones(20), index=[f"r{k}" for k in range(20)])
    with pytest.raises(sa.errors.ArgumentError, match=r"r0, r1, r2, r3, r4, \.\.\., r19.*; the labels differ"):
        sa.compile(lambda s: s.sum(), long)(long.rename({"r10": "r30"}))


def test_a_kernel_refuses_labels_that_it_was_not_compiled_for() -> None:
    kernel = sa.compile(lambda a, b: np.sum(a * b), np.ones(4), np.ones(4))
    for call in (kernel, kernel.batch, lambda a, b: kernel(list(a), [b])):
        with pytest.raises(
            sa.errors.ArgumentError, match=r"a value of type Series: .*give its numbers, s.to_numpy\(\)"
        ):
            call(DATA, OTHERS)


def test_series_and_frames_are_made_inside() -> None:
    def made(x):
        frame = pd.DataFrame({"a": x, "b": x**2})
        return (frame.sum(axis=1) ** 2).sum() * pd.Series(x, index=LABELS)["c"]

    x = P.to_numpy()
    expected = differences(lambda q: made(q.to_numpy()), P)
    np.testing.assert_allclose(sa.grad(made)(x), expected, rtol=1e-6)
    np.testing.assert_allclose(sa.compile(sa.grad(made), x)(x), sa.grad(made)(x), rtol=1e-13)


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (
            lambda p: p.groupby([0, 0, 1, 1]).ohlc().iloc[0, 0],
            "pandas' ohlc of groups was called with a traced value: its code is compiled",
        ),
        (lambda p: p.groupby([0, 0, 1, 1]).quantile(0.4).sum(), "pandas got a traced value where its compiled code"),
        (lambda p: p.shift(1, fill_value=p["a"]).sum(), "pandas got a traced value where its compiled code"),
        (lambda p: p.nlargest(2).sum(), "pandas got a traced value where its compiled code takes plain"),
        (lambda p: p[p > 0.5].sum(), "the value of a traced array was asked for"),
        (lambda p: p.map({0.7: 1.0}).sum(), "pandas' map was called with a traced value: it looks values up"),
    ],
)
def test_what_pandas_computes_in_compiled_code_is_refused_at_the_users_line(function: Any, words: str) -> None:
    with pytest.raises(sa.errors.TraceError, match=rf"test_labelled_arrays.py:\d+: {words}"):
        sa.compile(function, P)


@pytest.mark.parametrize("series", [pd.Series(["a", "b"]), pd.Series([True, False])])
def test_a_series_of_no_floats_is_refused(series: pd.Series) -> None:
    with pytest.raises(sa.errors.ArgumentError, match="argument p is an array of"):
        sa.grad(lambda p: p.sum())(series)


def test_arrays_of_xarray() -> None:
    xr = pytest.importorskip("xarray", reason="xarray is no part of the tests' environment")
    array = xr.DataArray(np.arange(6.0).reshape(2, 3) + 1, dims=("t", "x"), coords={"t": [1, 2]}, name="u")

    def energy(u):
        return (u.sum("x") ** 2 * u.t).sum() + np.exp(u.sel(t=1)).mean()

    gradient = sa.grad(energy)(array)
    expected = 2 * (array.sum("x") * array.t) + xr.zeros_like(array)
    expected[0] += np.exp(array[0]) / 3
    xr.testing.assert_allclose(gradient, expected)
    xr.testing.assert_allclose(sa.compile(sa.grad(energy), array)(array), expected)


XARRAY: dict[str, Callable[[Any, Any], Any]] = {
    "dimensions": lambda xr, p: np.sum((p * xr.DataArray([1.0, 2.0], dims="i")) * xr.DataArray([10.0, 20.0], dims="j")),
    "transposed": lambda xr, p: np.sum(
        np.exp(p * xr.DataArray([[1.0, 2.0], [3.0, 4.0]], dims=("i", "j")))
        * xr.DataArray([[10.0, 20.0], [30.0, 40.0]], dims=("j", "i"))
    ),
    "coordinates": lambda xr, p: (
        xr.DataArray([1.0, 2.0], dims="i", coords={"i": [0, 1]}) * p
        - xr.DataArray([3.0, 5.0], dims="i", coords={"i": [1, 2]})
    ).sum(),
    "NaN": lambda xr, p: (p * xr.DataArray([1.0, np.nan, 3.0], dims="x")).mean(),
    "a number": lambda xr, p: p * xr.DataArray(2.0) + p**2,
    "filled": lambda xr, p: (xr.full_like(xr.DataArray([1.0, 2.0], dims="i"), p) ** 2).sum(),
}


@pytest.mark.parametrize("name", XARRAY)
def test_a_traced_number_keeps_the_dimensions_of_what_it_meets(name: str) -> None:
    xr = pytest.importorskip("xarray", reason="xarray is no part of the tests' environment")
    assert outcome(lambda p: XARRAY[name](xr, p)) == "right"


def test_the_label_of_an_extreme_in_xarray_is_followed_on_numbers_and_refused_in_kernels() -> None:
    xr = pytest.importorskip("xarray", reason="xarray is no part of the tests' environment")
    array = xr.DataArray([1.5, 2.5, 0.5], dims="k", coords={"k": [10, 20, 30]})
    for extreme in (lambda p: p.idxmax() * p.sum(), lambda p: p.idxmin("k") * p.sum()):
        np.testing.assert_allclose(sa.value_and_grad(extreme)(array)[0], extreme(array))
        with pytest.raises(sa.errors.TraceError, match="xarray got a traced value"):
            sa.compile(extreme, array)
    with pytest.raises(sa.errors.TraceError):
        sa.grad(lambda p: p.sel(k=p.idxmax()).sum())(array)


def test_models_of_pydantic_are_arguments_and_refused_where_they_are_made() -> None:
    pydantic = pytest.importorskip("pydantic", reason="pydantic is no part of the tests' environment")

    class Model(pydantic.BaseModel):
        a: float
        b: float
        name: str = "m"

    def product(p):
        return p.a**2 * p.b

    model = Model(a=0.7, b=1.3)
    for made in (sa.grad(product)(model), sa.compile(sa.grad(product), model)(model)):
        assert type(made) is Model
        assert (made.a, made.b, made.name) == pytest.approx((2 * 0.7 * 1.3, 0.49, "m"))
    assert sa.grad(lambda x: product(Model.model_construct(a=x, b=2.0)))(3.0) == 12.0
    with pytest.raises(sa.errors.TraceError, match=r"pydantic got a traced value .*Model.model_construct"):
        sa.grad(lambda x: product(Model(a=x, b=2.0)))(3.0)


def test_classes_of_attrs() -> None:
    attrs = pytest.importorskip("attrs", reason="attrs is no part of the tests' environment")

    @attrs.frozen
    class Point:
        x: float
        y: float

    def product(p):
        moved = attrs.evolve(p, x=2 * p.x)
        return moved.x**2 * moved.y

    for made in (sa.grad(product)(Point(3.0, 0.5)), sa.compile(sa.grad(product), Point(1.0, 1.0))(Point(3.0, 0.5))):
        assert made == Point(12.0, 36.0)


def test_a_module_that_another_thread_is_importing_is_looked_at_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its functions are not all there: a table of stand-ins made then must not be used when it is complete."""
    module = sys.modules["pandas.core.algorithms"]
    rank = module.rank
    with monkeypatch.context() as patch:
        patch.setattr(module.__spec__, "_initializing", True, raising=False)
        patch.delattr(module, "rank")
        assert id(rank) not in replacements()
    assert id(rank) in replacements()
