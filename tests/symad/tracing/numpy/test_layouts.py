"""The order of elements in memory decides which of ravel's, reshape's and flat's results are views, as in NumPy."""

import contextlib

import numpy as np
import pytest
import scipy.fft
import scipy.signal

import symad as sa
from codegen.ir.region import regions_of
from symad.compiling.candidates import primal_of, traced_with_loops
from symad.errors import TraceError
from symad.tracing.values.array import Array
from symad.tracing.values.traced import StoreError
from tests.support.numpy_table import rows

POINT = np.linspace(1, 2, 6)
MADE = {
    "broadcast, copied": lambda x: np.broadcast_to(x[:3], (2, 3)).copy(),
    "broadcast, np.copy": lambda x: np.copy(np.broadcast_to(x[:3], (2, 3))),
    "copied": lambda x: x.reshape(2, 3).T.copy(),
    "copied in order F": lambda x: x.reshape(2, 3).copy(order="F"),
    "copied in order K": lambda x: x.reshape(2, 3).T.copy(order="K"),
    "np.copy": lambda x: np.copy(x.reshape(2, 3).T),
    "np.array": lambda x: np.array(x.reshape(2, 3).T),
    "np.array in order C": lambda x: np.array(x.reshape(2, 3).T, order="C"),
    "np.asarray in order F": lambda x: np.asarray(x.reshape(2, 3), order="F"),
    "ascontiguousarray": lambda x: np.ascontiguousarray(x.reshape(2, 3).T),
    "asfortranarray": lambda x: np.asfortranarray(x.reshape(2, 3)),
    "astype": lambda x: x.reshape(2, 3).T.astype(float),
    "astype in order C": lambda x: x.reshape(2, 3).T.astype(float, order="C"),
    "required": lambda x: np.require(x.reshape(2, 3).T, None, "C"),
    "required in order F": lambda x: np.require(x.reshape(2, 3), requirements=["FORTRAN", "W"]),
    "required as it is": lambda x: np.require(x.reshape(2, 3).T * 1.0, float, ["F_CONTIGUOUS", "aligned"]),
    "required of a row": lambda x: np.require(np.broadcast_to(x[:3], (2, 3)), requirements="W"),
    "zeros_like": lambda x: np.zeros_like(x.reshape(2, 3).T) + x[0],
    "zeros_like in order C": lambda x: np.zeros_like(x.reshape(2, 3).T, order="C") + x[0],
    "times a number": lambda x: x.reshape(2, 3).T * 2.0,
    "sine": lambda x: np.sin(x.reshape(2, 3).T),
    "transposed twice": lambda x: x.reshape(2, 3).T + x.reshape(2, 3).T,
    "of both orders": lambda x: x.reshape(2, 3).T + x.reshape(3, 2),
    "with a row": lambda x: x.reshape(3, 2).T + x[:3],
    "with a column": lambda x: x.reshape(3, 2).T * x[:2, None],
    "three axes": lambda x: np.swapaxes(x.reshape(1, 2, 3), 0, 2) * 1.0,
    "where": lambda x: np.where(x.reshape(2, 3).T > 1.45, x.reshape(2, 3).T, 0.5),
    "clip": lambda x: x.reshape(2, 3).T.clip(1.1, 1.9),
    "cumsum": lambda x: np.cumsum(x.reshape(2, 3).T, axis=0),
    "cumsum of rows": lambda x: np.cumsum(x.reshape(2, 3), axis=1),
    "sort": lambda x: np.sort(x.reshape(2, 3).T, axis=0),
    "sum": lambda x: np.sum(x.reshape(1, 2, 3).T, axis=2),
    "select": lambda x: np.select([x.reshape(2, 3).T > 1.5], [x.reshape(2, 3).T], 0.3),
    "solve": lambda x: np.linalg.solve(2 * np.eye(3), x.reshape(2, 3).T),
    "qr": lambda x: np.linalg.qr(np.outer(x[:3], x[1:4]) + np.eye(3))[1],
    "concatenated": lambda x: np.concatenate([x.reshape(2, 3).T, x.reshape(2, 3).T]),
    "pad": lambda x: np.pad(x.reshape(2, 3).T, np.array([[1, 0], [0, 2]])),
    "einsum": lambda x: np.einsum("ij,jk", x.reshape(2, 3).T, np.arange(4.0).reshape(2, 2)),
    "fft": lambda x: np.fft.fft(x.reshape(2, 3).T, axis=0).real,
    "fft, squared": lambda x: np.square(np.fft.rfft(x.reshape(2, 3).T, axis=0)).imag,
    "fft, conjugate": lambda x: np.conj(np.fft.fft(x)).real.reshape(2, 3),
    "abs of fft": lambda x: np.abs(np.fft.fft2(x.reshape(2, 3).T)),
    "irfft": lambda x: np.fft.irfft(np.fft.rfft(x.reshape(2, 3).T, axis=0), axis=0, n=3),
    "scipy.fft": lambda x: scipy.fft.fft(x.reshape(2, 3).T, axis=0).real,
    "scipy.fft.irfft": lambda x: scipy.fft.irfft(x.reshape(2, 3).T, axis=0),
    "dct": lambda x: scipy.fft.dct(x.reshape(2, 3).T, axis=0),
    "fftconvolve": lambda x: scipy.signal.fftconvolve(x.reshape(2, 3).T, np.ones((2, 2))),
    "fancy": lambda x: x.reshape(2, 3).T[:, [1, 0]],
}


def ravel(array, value):
    array.ravel()[1] = value


def ravel_kept(array, value):
    array.ravel("K")[1] = value


def reshape(array, value):
    array.reshape(-1)[1] = value


def reshape_columns(array, value):
    array.reshape(-1, order="F")[1] = value


def flat(array, value):
    array.flat[1] = value
    array.flat[::4] *= value


@pytest.mark.parametrize("store", [ravel, ravel_kept, reshape, reshape_columns, flat])
@pytest.mark.parametrize("made", MADE)
@pytest.mark.thinned
def test_a_store_is_seen_where_numpy_has_a_view(made, store):
    def f(x):
        array = MADE[made](x)
        store(array, 3 * x[-1])
        return np.sum(array * array * np.cos(np.arange(array.size)).reshape(array.shape))

    value, slope = sa.value_and_grad(f)(POINT)
    assert value == pytest.approx(f(POINT.copy()), rel=1e-12)
    step = 1e-6 * np.eye(6)
    differences = [(f(POINT + h) - f(POINT - h)) / 2e-6 for h in step]
    np.testing.assert_allclose(slope, differences, rtol=1e-6, atol=1e-6)
    assert sa.compile(f, POINT)(POINT) == pytest.approx(value, rel=1e-12)


def test_what_is_required_of_an_array_and_cannot_be_is_refused():
    for requirements, error, words in ((["C", "F"], ValueError, "Cannot specify both"), (["O"], TraceError, "'O'")):
        with pytest.raises(error, match=words):
            sa.grad(lambda x, wanted=requirements: np.sum(np.require(x, requirements=wanted)))(POINT)


def test_a_store_into_a_part_of_complex_numbers_is_seen_in_them():
    def f(x):
        found = np.fft.fft(x)
        other = found.conj()
        found.real[0] = 5.0
        found[1:3].imag[0] *= x[0]
        other.real[1] = 0.0
        whole = np.real(found * np.conj(found)) + other.imag**2
        return np.sum(whole * np.arange(1.0, 7.0))

    value, slope = sa.value_and_grad(f)(POINT)
    assert value == pytest.approx(f(POINT.copy()), rel=1e-13)
    assert sa.compile(f, POINT)(POINT) == pytest.approx(value, rel=1e-13)
    differences = [(f(POINT + h) - f(POINT - h)) / 2e-6 for h in 1e-6 * np.eye(6)]
    np.testing.assert_allclose(slope, differences, rtol=1e-6, atol=1e-6)


def test_what_is_read_from_flat_is_what_is_there_now():
    def f(x):
        array = x.reshape(2, 3).T * 1.0
        flat = array.flat
        array[0, 1] = 5.0
        flat[0] = flat[1] * x[0]
        array[2] = 0.0
        return np.sum(array * array) + flat[-1]

    value, slope = sa.value_and_grad(f)(POINT)
    assert value == pytest.approx(f(POINT.copy()), rel=1e-13)
    assert slope[0] == pytest.approx(2 * 25 * POINT[0])


ORDERS = {
    "rows": np.ascontiguousarray,
    "columns": np.asfortranarray,
    "first axes swapped": lambda array: np.swapaxes(np.ascontiguousarray(np.swapaxes(array, 0, 1)), 0, 1),
}


def in_order(value, order):
    if isinstance(value, Array):
        return Array(ORDERS[order](value.nodes), value.scope) if value.ndim > 1 else value
    return ORDERS[order](value) if np.ndim(value) > 1 else value


def standing(result, arguments):
    """How each array of a result stands in memory: its axes by their strides, whose view it is, whether it has gaps."""
    found = []
    for part in result if isinstance(result, tuple | list) else (result,):
        array = part.nodes if isinstance(part, Array) else part
        if isinstance(array, np.ndarray) and array.size > 1:
            long = [axis for axis, size in enumerate(array.shape) if size > 1]
            axes = tuple(sorted(long, key=lambda axis: -abs(array.strides[axis]))) if len(long) > 1 else ()
            views = [np.shares_memory(array, getattr(one, "nodes", one)) for one in arguments if np.ndim(one)]
            found.append((axes, views, any(views) or array.flags.c_contiguous or array.flags.f_contiguous))
    return found


def calls():
    """Return the calls of NumPy that give arrays of real numbers."""
    for row in rows():
        whole = "isreal" in row.text or "iscomplex" in row.text or "isin(" in row.text or "returned=" in row.text
        if row.expected in ("symbols", "numbers") and not whole and row.text != "a[np.argmax(x) % 2]":
            yield row


def noting(function, order, found):
    """Return a function that notes how the results of another one stand, of arguments in an order."""

    def noted(*values):
        values = [in_order(value, order) for value in values]
        found[:] = standing(function(*values), values)
        return values[0]

    return noted


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.wide_rows("columns", "first axes swapped", "rows")
def test_results_stand_in_memory_as_numpys(order):
    wrong = []
    for row in calls():
        arguments, function = [in_order(value, order) for value in row.values], row.function
        if order != "rows" and not any(np.ndim(value) > 1 for value in arguments):
            continue
        try:
            with np.errstate(all="ignore"):
                right = standing(function(*arguments), arguments)
        except ValueError:  # NumPy has no view there
            continue
        found = []
        zeros = tuple(0.0 * value for value in row.values)
        sa.jvp(noting(function, order, found), tuple(row.values), zeros)
        if found != right:
            wrong.append((row.text, right, found))
        if row.expected == "symbols":
            found.clear()
            try:
                sa.trace(noting(function, order, found), *row.values)
            except TraceError as error:
                assert "only LAPACK carries it out" in str(error)  # noqa: PT017  (any other is a failure)
                continue
            if found != right:
                wrong.append((row.text, "without values", right, found))
    assert not wrong, "\n".join(map(str, wrong))


@pytest.mark.parametrize("index", [lambda x: np.argmax(x[:2]), lambda x: (1, np.argmax(x[:3]), slice(None)), 1])
def test_what_an_unknown_index_picks_is_read_only_where_it_is_a_view(index):
    def stored(x):
        array = np.stack([x, x * x]).reshape(2, 3, 2)
        row = array[index(x) if callable(index) else index]
        row[0] = 5.0
        return np.sum(array * array)

    def read(x):
        array = np.stack([x, x * x]).reshape(2, 3, 2)
        row = array[index(x) if callable(index) else index].copy()
        row[0] = 5.0 * x[0]
        return np.sum(row * row) + np.sum(array)

    x = np.array([1.0, 2.0, 3.0, 0.5, 0.25, 4.0])
    assert sa.value_and_grad(stored)(x)[0] == stored(x)
    assert sa.compile(read, x)(x) == pytest.approx(read(x), rel=1e-14)
    if callable(index):
        with pytest.raises(StoreError, match=r"index whose value is not known picks.*a\[i\].copy\(\)"):
            sa.compile(stored, x)
    else:
        assert sa.compile(stored, x)(x) == stored(x)


def attention(x):
    """Shares of 4 texts x 4 heads, 32 x 32 places: NumPy has those of the heads side by side."""
    q, k, v = (np.tanh(x * number).reshape(4, 32, 4, 16) for number in (1.0, 2.0, 3.0))
    scores = np.where(np.tri(32, dtype=bool), np.einsum("bthd,bshd->bhts", q, k) / 4.0, -1e9)
    shares = np.exp(scores - np.max(scores, axis=-1, keepdims=True))
    shares = shares / np.sum(shares, axis=-1, keepdims=True)
    return np.sum(np.einsum("bhts,bshd->bthd", shares, v) ** 2)


def test_a_kernel_has_elements_in_the_order_in_which_they_were_made():
    """What BLAS gives is neither read nor stored in long steps, and copied only where it takes no other order."""
    x = np.random.default_rng(1).normal(size=8192)
    program = primal_of(traced_with_loops(attention, (x,)), "attention", False).program
    regions = [region for region, _ in regions_of(program.steps)]
    products = [region for region in regions if region.matrix is not None]
    copied = [region.count for region in regions if region.origin == "copies"]
    assert len(products) == 2
    assert sorted(copied) == [31 * 32 * 8, *[8192] * 3, 33 * 32 * 8]  # what is masked, queries, keys, values, scores
    maps = [region for region in regions if region.count == 16384 and region.results[0].kind == "store"]
    assert len(maps) == 4
    for region in maps:
        steps = [np.diff(use.table.places()) for use in (*region.gathers, *region.results)]
        assert all(np.mean(each > 1) < 1 / 16 for each in steps)
    value, slope = sa.compile(sa.value_and_grad(attention), x)(x)
    assert value == pytest.approx(attention(x), rel=1e-12)
    np.testing.assert_allclose(slope, sa.grad(attention)(x), rtol=1e-10, atol=1e-12)


def test_a_transposed_copy_is_read_by_blas_where_it_was():
    def f(x):
        return np.sum(np.tanh(np.ascontiguousarray(x.reshape(40, 40).T) @ np.tanh(x).reshape(40, 40).T.copy()))

    x = np.random.default_rng(1).normal(size=1600) * 0.1
    program = primal_of(traced_with_loops(f, (x,)), "f", False).program
    assert not [region for region, _ in regions_of(program.steps) if region.origin == "copies"]
    np.testing.assert_allclose(sa.compile(sa.grad(f), x)(x), sa.grad(f)(x), rtol=1e-12, atol=1e-14)


def orders(result):
    """Whether the matrices of a result lie in memory by rows, and by columns."""
    parts = result if isinstance(result, tuple | list) else [result]
    matrices = [part for part in parts if isinstance(part, np.ndarray) and part.ndim > 1 and min(part.shape) > 1]
    return [(part.flags.c_contiguous, part.flags.f_contiguous) for part in matrices]


OTHER_ORDERS = ("np.einsum", "np.nanpercentile")  # of paths that NumPy chooses, and of percentiles along an axis
IN_TABLE = [row for row in rows() if row.expected == "symbols" and not row.text.startswith(OTHER_ORDERS)]


@pytest.mark.parametrize("part", range(8))
def test_results_lie_in_memory_as_numpys(part):
    """Of all calls in the table, on numbers."""
    met = 0
    for row in IN_TABLE[part::8]:
        values = [np.array(value) if isinstance(value, np.ndarray) else value for value in row.values]
        with np.errstate(all="ignore"):
            expected, found = orders(row.function(*values)), []

        def f(*args, row=row, found=found):
            result = row.function(*args)
            found.append(orders(result))
            return sum(np.sum(np.real(part)) for part in (result if isinstance(result, tuple | list) else (result,)))

        if expected:
            with (
                contextlib.suppress(sa.WorkbenchError),
                np.errstate(all="ignore"),
            ):  # of results that are refused when they are summed
                sa.value_and_grad(f)(*row.values)
            met += 1
            assert not found or found[-1] == expected, row.text
    assert met > 10


@pytest.mark.parametrize("size", [3, 4, 12, 40])
@pytest.mark.parametrize(
    "function",
    [
        np.linalg.inv,
        np.linalg.cholesky,
        np.linalg.pinv,
        lambda a: np.linalg.solve(a, a[0] + a),
        lambda a: np.linalg.qr(a)[0],
        lambda a: np.linalg.eigh(a)[1],
        lambda a: np.linalg.svd(a)[2],
    ],
)
@pytest.mark.parametrize("turned", [False, True])
def test_a_store_through_ravel_of_a_result_of_linear_algebra(function, size, turned):
    weights = np.cos(np.arange(size * size)).reshape(size, size)

    def f(x):
        result = function(np.diag(x) + 0.1 * np.outer(x, x))
        scaled = result.T * x[0] if turned else result
        scaled.ravel()[1] = x[1]
        scaled.reshape(-1)[2:4] *= 2.0
        return np.sum(scaled * weights)

    x = np.linspace(1.0, 2.0, size)
    assert sa.value_and_grad(f)(x)[0] == pytest.approx(f(x), rel=1e-10)
    assert sa.compile(f, x)(x) == pytest.approx(f(x), rel=1e-10)
