"""lambdify in the place of sympy.lambdify: its parameters, calls of every kind, what users of SymPy reported."""

from __future__ import annotations

import inspect
import itertools
import math
import pickle
import warnings
from fractions import Fraction
from typing import Any

import mpmath as mp
import numpy as np
import pytest
import scipy.sparse
import sympy as sp
from scipy.optimize import curve_fit
from sympy.physics.mechanics import dynamicsymbols
from sympy.printing.codeprinter import PrintMethodNotImplementedError
from sympy.printing.pycode import PythonCodePrinter
from sympy.utilities.lambdify import implemented_function

from codegen import ArgumentError, Lambdified, LoweringError, UnboundSymbolError, lambdify
from codegen.errors import FallbackWarning
from tests.sympy_lambdify import REASONS, outcomes

X, Y, Z = sp.symbols("x y z")


def test_sympys_own_tests_pass_or_have_a_reason() -> None:
    found = list(outcomes())
    assert {outcome.name for outcome in found if outcome.kind in ("failed", "refused")} <= set(REASONS)
    passed = [outcome for outcome in found if outcome.kind == "passed"]
    assert len(passed) >= 125
    assert sum(outcome.native for outcome in passed) >= 25  # most call with integers, which stay integers


def test_the_parameters_are_those_of_sympy() -> None:
    theirs, ours = (list(inspect.signature(f).parameters.values()) for f in (sp.lambdify, lambdify))
    assert [p.name for p in ours[2:8]] == [p.name for p in theirs[2:]]
    assert [p.default for p in ours[2:8]] == [p.default for p in theirs[2:]]


@pytest.mark.parametrize("modules", [None, "native", "numpy", "scipy", "math", ["scipy", "numpy"]])
def test_modules_that_are_machine_code(modules: Any) -> None:
    f = lambdify([X, Y], sp.sin(X) * Y, modules)
    assert isinstance(f, Lambdified)
    assert f(0.5, 2.0) == pytest.approx(2 * math.sin(0.5), rel=1e-15)


def test_modules_that_are_python() -> None:
    with mp.workdps(40):
        assert lambdify(X, sp.sin(X), "mpmath")(mp.mpf(1)) == mp.sin(1)
    assert lambdify(X, sp.sin(X) + Y, "sympy")(Z) == sp.sin(Z) + Y
    assert lambdify(X, sp.sin(X), {"sin": lambda x: 7})(1.0) == 7
    assert lambdify(X, sp.sqrt(X), "cmath")(-1) == 1j
    with pytest.raises(ArgumentError, match=r"dtype=\.\.\. with modules='mpmath' or a printer: it is for machine code"):
        lambdify(X, X, "mpmath", dtype="float32")
    with pytest.raises(ArgumentError, match=r"roll=\.\.\. with modules='sympy'"):
        lambdify(X, X, "sympy", roll="never")


def test_what_has_no_machine_code_is_told_or_refused() -> None:
    integral = sp.Integral(sp.exp(-(X**2)), (X, 0, Y))
    with pytest.warns(
        FallbackWarning, match=r"unevaluated Integral .*SymPy's own Python code evaluates it, which is slow"
    ):
        f = lambdify(Y, integral)
    assert f(1.0) == pytest.approx(float(integral.subs(Y, 1).evalf()), rel=1e-12)
    with pytest.raises(LoweringError, match="unevaluated Integral"):
        lambdify(Y, integral, "native")
    with pytest.raises(UnboundSymbolError, match="symbol y: it is no argument"):
        lambdify(X, X * Y)
    with pytest.raises(ArgumentError, match=r"the text 'x\*\*2': no text is evaluated; write sp.sympify"):
        lambdify(X, ["x**2"])
    with pytest.raises(ArgumentError, match="a text as arguments: no text is evaluated"):
        lambdify("x", X)


def test_functions_of_the_users_own() -> None:
    f = implemented_function("f", lambda x: x + 100)
    with pytest.warns(FallbackWarning, match="f is a Python function"):
        assert lambdify(X, f(X) + 1)(2.0) == 103.0
    with pytest.raises(UnboundSymbolError, match=r"f\(x\)"):
        lambdify(X, f(X), use_imps=False)
    with pytest.raises(UnboundSymbolError, match=r"f\(x\)"):
        lambdify(X, f(X), "native")


def test_keywords_symbols_and_complex_numbers() -> None:
    f = lambdify([X, Y], X / Y)
    assert f(y=2.0, x=3.0) == f(3.0, y=2.0) == 1.5
    with pytest.raises(ArgumentError):
        f(3.0, z=1.0)
    assert f(Z, 2) == Z / 2
    assert f(sp.pi, 2) == sp.pi / 2
    assert f(sp.Rational(1, 3), 2) == sp.Rational(1, 6)
    assert f(sp.Float("0.1", 30), 2) == sp.Float("0.05", 30)
    assert f(np.array([1.0, 2.0]), sp.pi).tolist() == [1 / math.pi, 2 / math.pi]
    assert lambdify(X, X + 1, "math")(sp.pi) == math.pi + 1
    assert f(1j, 2) == 0.5j
    assert f(np.array([1j, 2.0]), 2).tolist() == [0.5j, 1.0]
    with pytest.raises(TypeError, match="expressions as arguments: the function computes with numbers"):
        lambdify(X, X + 1, "math")(Z)
    assert lambdify([X, Y], [X, sp.cos(Y)])(Z, 1 + 0 * Z) == [Z, sp.cos(1)]
    with pytest.warns(FallbackWarning, match="Abs"):
        assert lambdify(X, sp.Abs(X))(3 + 4j) == 5.0
    with pytest.raises(LoweringError, match="Abs"):
        lambdify(X, sp.Abs(X), "native")(3 + 4j)


def test_relations_are_truth_values() -> None:
    f = lambdify([X, Y], [X > Y, sp.And(X > 0, Y > 0), X])
    assert f(2.0, 1.0) == [True, True, 2.0]
    assert [type(part) for part in f(2.0, 1.0)] == [bool, bool, float]
    assert lambdify(X, X >= 1)(np.array([0.0, 1.0])).tolist() == [False, True]
    assert lambdify(X, X >= 1)(np.array([0.0, 1.0])).dtype == bool
    assert lambdify([], sp.true)() is True


def test_sparse_matrices() -> None:
    matrix = sp.SparseMatrix(3, 4, {(0, 1): X, (2, 3): X * Y})
    found = lambdify([X, Y], matrix)(2.0, 3.0)
    assert isinstance(found, scipy.sparse.coo_matrix)
    assert (found.nnz, found.shape, found.toarray()[2, 3]) == (2, (3, 4), 6.0)
    assert lambdify([X, Y], matrix, "numpy")(2.0, 3.0).tolist() == found.toarray().tolist()
    assert [type(part) for part in lambdify([X, Y], [X, matrix])(2.0, 3.0)] == [float, scipy.sparse.coo_matrix]
    with pytest.raises(ArgumentError, match="a sparse matrix at many points"):
        lambdify([X, Y], matrix)(np.ones(3), 3.0)


def test_ragged_arguments_functions_and_arrays() -> None:
    w = sp.Symbol("w")
    f = lambdify((X, (Y, [[w], Z])), [X, Y, w, Z])
    assert f(1, (2, [[3], 4])) == [1.0, 2.0, 3.0, 4.0]
    with pytest.raises(TypeError, match="it is a list of 2"):
        f(1, 2)
    q, u = dynamicsymbols("q u")
    assert lambdify([q, q.diff(), u], q.diff() + q * u)(1.0, 2.0, 3.0) == 5.0
    assert lambdify([sp.sin(X), Y], 2 * sp.sin(X) + Y)(3.0, 1.0) == 7.0
    column, whole = sp.MatrixSymbol("c", 3, 1), sp.MatrixSymbol("A", 3, 3)
    assert lambdify([whole, column], whole * column)(np.eye(3), [1, 2, 3]).tolist() == [[1.0], [2.0], [3.0]]
    a, i, n = sp.IndexedBase("a"), sp.Symbol("i", integer=True), sp.Symbol("n", integer=True)
    with pytest.warns(FallbackWarning, match="its size is not known"):
        assert lambdify([a, n], sp.Sum(a[i] ** 2, (i, 0, n - 1)))([1, 2, 3], 3) == 14
    known = sp.IndexedBase("a", shape=(3,))
    assert lambdify(known, sp.Sum(known[i] ** 2, (i, 0, 2)))([1.0, 2.0, 3.0]) == 14.0


@pytest.mark.parametrize("cse", [False, True, sp.cse, lambda e: sp.cse(e, symbols=sp.numbered_symbols(cls=sp.Dummy))])
def test_common_parts_however_they_are_found(cse: Any) -> None:
    expressions = [sp.sin(X * Y) + X * Y, [sp.Matrix([[X * Y, sp.sin(X * Y)]]), X > Y]]
    found, want = lambdify([X, Y], expressions, cse=cse)(0.5, 3.0), lambdify([X, Y], expressions)(0.5, 3.0)
    assert found[0] == pytest.approx(want[0], rel=1e-15)
    assert found[1][0] == pytest.approx(want[1][0], rel=1e-15)
    assert found[1][1] is False


def test_the_pair_that_cse_gives_is_taken() -> None:
    expressions = [sp.sin(X * Y) + X * Y, sp.cos(X * Y) ** 2]
    assert lambdify([X, Y], sp.cse(expressions))(0.5, 3.0) == pytest.approx(lambdify([X, Y], expressions)(0.5, 3.0))
    matrix = sp.Matrix(2, 1, expressions)
    assert lambdify([X, Y], sp.cse(matrix))(0.5, 3.0) == pytest.approx(lambdify([X, Y], matrix)(0.5, 3.0))
    a, b = sp.symbols("a b")
    assert lambdify([a, b], ([(a, b)], [a]))(1.0, 2.0) == ([(1.0, 2.0)], [1.0])  # arguments: pairs as a result


def test_what_it_says_of_itself() -> None:
    f = lambdify([X, Y], X**2 + Y)
    assert repr(f) == "<Lambdified f(x, y) = x**2 + y>"
    assert (f.__doc__ or "").splitlines()[2] == "func(x, y)"
    assert (f.__doc__ or "").endswith("Expression:\n\nx**2 + y")
    assert "REDACTED" in (lambdify([X, Y], X**2 + Y, docstring_limit=3).__doc__ or "")
    long = lambdify([X], sum(X**k for k in range(60)), docstring_limit=None)
    assert repr(long).endswith("...>")


def deep(count: int) -> Any:
    """Return an expression of that depth, made without SymPy looking through it."""
    expression: Any = X
    for _ in range(count // 2):
        expression = sp.sin(sp.Add(expression, X, evaluate=False), evaluate=False)
    return expression


def test_ten_thousand_operations_in_each_other() -> None:
    """sympy/sympy#24673: a RecursionError there."""
    f = lambdify(X, deep(10**4))
    value = 0.3
    for _ in range(5_000):
        value = math.sin(value + 0.3)
    assert f(0.3) == pytest.approx(value, rel=1e-12)
    assert "REDACTED" in (f.__doc__ or "")
    assert pickle.loads(pickle.dumps(f))(0.3) == f(0.3)  # sympy/sympy#12023: there is nothing to pickle


def test_common_parts_beside_derivatives() -> None:
    """sympy/sympy#27006: cse takes apart what is an argument."""
    t = sp.Symbol("t")
    x = sp.Function("x")(t)
    for cse in (False, True):
        f = lambdify([x, x.diff(t)], x.diff(t) ** 2 + sp.sin(x.diff(t) ** 2) + x, cse=cse)
        assert f(1.0, 2.0) == pytest.approx(5.0 + math.sin(4.0), rel=1e-15)


def test_a_function_its_gradient_and_hessian_share_parts() -> None:
    """sympy/sympy#29583: one list of all, of which equal parts are computed once."""
    x = sp.symbols("x:5")
    f = sp.exp(sum(sp.sin(a * b) for a, b in itertools.pairwise(x)))
    everything = [f, sp.Matrix([f]).jacobian(x), sp.hessian(f, x)]
    together = lambdify([x], everything)
    apart = [lambdify([x], part) for part in everything]
    point = np.linspace(0.1, 0.9, 5)
    for found, single in zip(together(point), apart, strict=True):
        np.testing.assert_allclose(found, single(point), rtol=1e-13)
    operations = together.kernel.stats.operations_after
    assert operations < 1.3 * max(single.kernel.stats.operations_after for single in apart)


def test_a_pickled_function_has_its_expressions_where_they_are_not_too_deep() -> None:
    assert pickle.loads(pickle.dumps(lambdify([X, Y], [X + Y, X > Y])))(1.0, y=2.0) == [3.0, False]
    again = pickle.loads(pickle.dumps(lambdify([X, Y], [X + Y])))
    assert again(1j, 2.0) == [2 + 1j]
    assert again(Z, 1) == [Z + 1]
    with pytest.raises(TypeError, match="and not of a pickle"):
        pickle.loads(pickle.dumps(lambdify(X, deep(10**4))))(Z)


def test_nothing_is_told_where_all_is_machine_code() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        lambdify([X, Y], [sp.Piecewise((X, X > Y), (Y, True)), sp.Matrix([[X]]), sp.Max(X, Y)], "numpy")(1.0, 2.0)


def test_what_is_written_later_changes_nothing() -> None:
    matrix = sp.Matrix([[X]])
    f = lambdify(iter([X, Y]), [matrix, Y])
    matrix[0, 0] = 7
    assert f(Z, 1) == [sp.Matrix([[Z]]), 1]
    assert f(2.0, 1.0)[0] == 2.0
    assert lambdify(X, X + 1, "native", PythonCodePrinter)(1) == 2


def test_arrays_of_jax_come_back_as_such() -> None:
    jax = pytest.importorskip("jax")
    f = lambdify([X, Y], [sp.sin(X), sp.Matrix([[X, Y]])])
    number, matrix = f(jax.numpy.array([0.5, 1.0]), 2.0)
    assert isinstance(number, jax.Array)
    np.testing.assert_allclose(number, np.sin([0.5, 1.0]), rtol=1e-6)
    np.testing.assert_array_equal(matrix[0, 1], [2.0, 2.0])


def test_relations_and_promotion_of_arrays_of_jax() -> None:
    jax = pytest.importorskip("jax")
    single, f = jax.numpy.array([0.5, 1.0], dtype=np.float32), lambdify([X, Y], [X > Y, X * Y])
    truths, product = f(single, 0.7)
    assert (truths.dtype, truths.tolist(), product.dtype) == (bool, [False, True], np.float32)
    with jax.enable_x64(True):
        assert f(single, np.array([0.7, 0.1]))[1].dtype == float


def test_a_dataset_of_xarray_is_computed_by_xarray() -> None:
    xr = pytest.importorskip("xarray")
    data = xr.Dataset({"a": ("i", [1.0, 2.0])})
    xr.testing.assert_identical(lambdify([X, Y], X * Y)(data, 2.0), data * 2.0)


def test_what_cannot_be_an_argument_and_a_derivative_without_a_value() -> None:
    t = sp.Symbol("t")
    f = sp.Function("f")(t)
    with pytest.raises(SyntaxError, match="an argument is a symbol"):
        lambdify(f * t, f * t + 5)
    with pytest.raises(PrintMethodNotImplementedError, match="it is no argument of the function"):
        lambdify([t], f.diff(t))


def test_indexed_sums_with_symbolic_bounds() -> None:
    """sympy/sympy#28087: sums over an IndexedBase, whose bounds are arguments too."""
    i, j, n = sp.symbols("i j n", integer=True)
    a = sp.IndexedBase("a", shape=(5,))
    values = np.array([1.0, 2.0, 4.0, 8.0, 16.0])
    assert lambdify([a], sp.Sum(a[i] ** 2, (i, 0, 4)))(values) == 341.0
    assert lambdify([a], sp.Sum(a[i] * a[j], (j, i, 4), (i, 0, 4)))(values) == sum(
        values[p] * values[q] for p in range(5) for q in range(p, 5)
    )
    with pytest.warns(FallbackWarning):
        f = lambdify([a, n], sp.Sum(a[i], (i, 0, n)))
    assert f(values, 2) == 7.0


def test_numba_compiles_a_function_that_takes_the_kernel() -> None:
    """sympy/sympy#18432: numba cannot cache what lambdify generates; it caches what takes a kernel as an argument:
    see tests/codegen/machine/calls/test_numba_types.py."""
    numba = pytest.importorskip("numba")
    f = lambdify([X, Y], sp.exp(X) * Y)

    @numba.njit
    def total(kernel: Any, points: Any) -> float:
        found = 0.0
        for point in points:
            found += kernel(point, point)
        return found

    points = np.linspace(0.0, 1.0, 50)
    assert total(f.kernel, points) == pytest.approx(np.sum(np.exp(points) * points), rel=1e-14)


VALUES: dict[str, tuple[Any, Any]] = {
    "integers": (2, 3),
    "an integer beyond doubles": (2**60, 1),
    "arrays of integers": (np.array([2**60, 3]), np.array([1, 2])),
    "float32": (np.float32([1, 2]), np.float32(0.1)),
    "a float beside float32": (0.5, np.float32([1, 2])),
    "truth values": (np.array([True, False]), 1),
    "fractions": (Fraction(1, 3), Fraction(1, 7)),
    "masked": (np.ma.masked_array([1.0, 2.0], [True, False]), np.ones(2)),
    "sparse": (scipy.sparse.eye(2, format="csr"), scipy.sparse.eye(2, format="csr")),
    "doubles": (np.linspace(0, 1, 3), 2.0),
    "a number of NumPy's": (np.float64(0.5), 2.0),
    "a double beside an integer": (0.5, 2),
}


@pytest.mark.parametrize("name", VALUES)
def test_numbers_have_the_types_of_sympys_function(name: str) -> None:
    expression = X * Y + X
    found, wanted = (make([X, Y], expression)(*VALUES[name]) for make in (lambdify, sp.lambdify))
    assert type(found) is type(wanted)
    assert getattr(found, "dtype", None) == getattr(wanted, "dtype", None)
    plain = [value.toarray() if scipy.sparse.issparse(value) else value for value in (found, wanted)]
    np.testing.assert_array_equal(*plain)


def test_labels_and_lazy_arrays_are_computed_by_their_libraries() -> None:
    pd, xr = pytest.importorskip("pandas"), pytest.importorskip("xarray")
    da = pytest.importorskip("dask.array")
    f, theirs = (make([X, Y], sp.sin(X) * Y) for make in (lambdify, sp.lambdify))
    series = pd.Series([1.0, 2.0], index=["a", "b"]), pd.Series([10.0, 20.0], index=["b", "a"])
    pd.testing.assert_series_equal(f(*series), theirs(*series))
    arrays = xr.DataArray([1.0, 2.0], dims="i"), xr.DataArray([10.0, 20.0], dims="j")
    xr.testing.assert_identical(f(*arrays), theirs(*arrays))
    assert isinstance(f(da.ones(4, chunks=2), 1.0), da.Array)


def test_signatures_are_those_of_sympy() -> None:
    t, a, b = sp.symbols("t a b")
    f = lambdify([t, a, b], a * sp.exp(-b * t))
    assert inspect.signature(f) == inspect.signature(sp.lambdify([t, a, b], a))
    times = np.linspace(0, 3, 30)
    np.testing.assert_allclose(curve_fit(f, times, 2 * np.exp(-0.7 * times))[0], [2.0, 0.7], rtol=1e-6)
    assert list(inspect.signature(f.kernel).parameters) == ["t", "a", "b"]


def test_pydys_system_integrates_with_a_generator_of_kernels() -> None:
    generators = pytest.importorskip(
        "pydy.codegen.ode_function_generators", reason="pydy is no part of the environment"
    )
    from pydy.models import n_link_pendulum_on_cart  # noqa: PLC0415 - optional

    class KernelGenerator(generators.LambdifyODEFunctionGenerator):  # type: ignore[misc,name-defined]
        def _lambdify(self, outputs: Any) -> Any:
            return lambdify(self.inputs, outputs)

    ends = []
    for generator in ("lambdify", KernelGenerator):
        system = n_link_pendulum_on_cart(1, cart_force=True)
        system.constants = dict.fromkeys(system.constants_symbols, 1.0)
        system.specifieds = {symbol: lambda x, t: 0.5 for symbol in system.specifieds_symbols}
        system.initial_conditions = dict.fromkeys((*system.coordinates, *system.speeds), 0.1)
        system.times = np.linspace(0.0, 1.0, 5)
        system.generate_ode_function(generator=generator)
        ends.append(system.integrate()[-1])
    np.testing.assert_allclose(ends[1], ends[0], rtol=1e-6)


FEW: dict[str, Any] = {
    "a product": X * Y, "a sum": X + Y, "a difference": X - Y, "a quotient": X / Y, "a square and a sum": X**2 + Y,
    "a product of sums": (X + Y) * Y,
    "a root": sp.sqrt(X) + Y, "an inverse": 1 / X + Y, "with an integer": 2 * X * Y, "a list": [X * Y, X + Y],
}  # fmt: skip


@pytest.mark.parametrize("name", FEW)
def test_a_few_operations_of_numpys_have_the_bits_of_the_kernel(name: str) -> None:
    rng = np.random.default_rng(0)
    f, (a, b) = lambdify([X, Y], FEW[name]), np.exp(rng.normal(size=(2, 1000), scale=20.0))
    kernel = f.kernel.batch(a, b)
    found = np.stack(f(a, b), axis=-1) if name == "a list" else f(a, b)
    np.testing.assert_array_equal(found, kernel)
    again = pickle.loads(pickle.dumps(f))(a, b)
    np.testing.assert_array_equal(again, f(a, b))
    assert np.shape(f(a, 2.0)) == (2, 1000) if name == "a list" else (1000,)
    assert f(a[:3, None], b[:4]) is not None  # other shapes are the kernel's


@pytest.mark.parametrize("expression", [X * Y, X**2 + Y, sp.Matrix([X, Y])], ids=str)
@pytest.mark.parametrize(
    "values",
    [(np.float64(0.5), 2), (np.float64(0.5), 0.25), (2, 3), (np.int64(2), 3), (np.float32(0.5), np.float32(2)),
     (np.array([0.5, 2.0]), np.float64(3)), (3, np.array([0.5, 2.0])), (np.array([0.5]), 2**60), (True, 2)],
    ids=repr,
)  # fmt: skip
def test_every_call_gives_the_types_of_the_first(expression: Any, values: tuple[Any, ...]) -> None:
    """Later calls take shorter ways."""
    ours, theirs = lambdify([X, Y], expression), sp.lambdify([X, Y], expression)
    results = [ours(*values) for _ in range(3)]
    for result in results:
        assert type(result) is type(results[0])
        np.testing.assert_array_equal(result, results[0])
        assert getattr(result, "dtype", None) == getattr(results[0], "dtype", None)
    if not isinstance(expression, sp.MatrixBase):
        assert type(results[0]) is type(theirs(*values))
        np.testing.assert_array_equal(results[0], theirs(*values))


def test_a_wrong_number_of_integers_is_told_at_every_call() -> None:
    f = lambdify([X, Y], X + Y)
    assert f(1, 2) == 3
    for _ in range(2):
        with pytest.raises(ArgumentError):
            f(1)
