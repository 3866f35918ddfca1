"""Sparse matrices out of transforms and kernels: every format and triangle, one pattern, values written in place."""

import re
import sys

import numpy as np
import pytest
import sympy as sp
from scipy import sparse

import symad as sa
from codegen.machine.calls.kernel import Kernel
from tests.support.cases import CASES, rosenbrock

FORMATS = ("coo", "csr", "csc")
TRIANGLES = {"lower": np.tril, "upper": np.triu, "full": np.array, True: np.array}
X = np.array([-1.2, 1.0, 0.8, 1.1])


def band(x):
    """Three results of five variables; the last variable is never used."""
    return x[1:-1] * x[:-2] + np.sin(x[1:-1])


def scipy_class(format):
    return getattr(sparse, f"{format}_array")


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
@pytest.mark.thinned
def test_hessians_in_every_format_and_triangle_against_another_mode(case, format):
    x = np.array(case.point)
    dense = sa.hessian(case.function, mode="fwd-rev")(x)
    for triangle, part in TRIANGLES.items():
        transform = sa.hessian(case.function, sparse=triangle, format=format)
        kernel, direct = sa.compile(transform, x), transform(x)
        assert kernel.sparsity.format == format
        for found in (kernel.scipy(x), direct.to_scipy()):
            assert type(found) is scipy_class(format)
            assert found.toarray() == pytest.approx(part(dense), rel=1e-11, abs=1e-11 * (1 + np.abs(dense).max()))
            again = scipy_class(format)(found.toarray() + np.where(kernel.sparsity.toarray(), 100, 0))
            assert np.array_equal(kernel.sparsity.data_of(again), found.data + 100)  # SciPy's own order of storage
        assert np.array_equal(kernel(x), kernel.scipy(x).data)


@pytest.mark.parametrize("format", FORMATS)
def test_rectangular_jacobians(format):
    x = np.arange(5.0)
    dense = sa.jacfwd(band)(x)
    kernel = sa.compile(sa.jacobian(band, sparse=True, format=format), x)
    assert kernel.scipy(x).shape == dense.shape == (3, 5)
    assert kernel.scipy(x).toarray() == pytest.approx(dense, rel=1e-15)
    assert kernel.sparsity == sa.jacobian(band, sparse=True, format=format)(x).pattern
    assert set(zip(*kernel.sparsity, strict=True)) == set(zip(*sa.sparsity(band, x), strict=True))
    assert 4 not in kernel.sparsity.columns


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize(
    ("f", "x", "right"),
    [
        (lambda x: 3 * x[0] - x[2], np.ones(3), np.zeros((3, 3))),  # no entries at all
        (lambda x: x[0] ** 3, np.full(1, 2.0), [[12.0]]),
        (lambda x: x[0] * 5, np.ones(1), [[0.0]]),
        (lambda x: x[1] ** 3 + x[2], np.full(3, 2.0), np.diag([0.0, 12.0, 0.0])),  # rows and columns of zeros
        (lambda x: x[0] * x[3] + x[1] * 0.0 * x[1], np.ones(4), np.eye(4)[::-1] * [1, 0, 0, 1]),  # 0 x y is an entry
    ],
)
def test_small_and_empty_patterns(f, x, right, format):
    kernel = sa.compile(sa.hessian(f, sparse="full", format=format), x)
    found = kernel.scipy(x)
    assert np.array_equal(found.toarray(), right)
    found.data[...] = np.nan
    assert kernel.into(found, x) is found
    assert np.array_equal(found.toarray(), right)
    assert np.array_equal(sa.hessian(f, sparse="full", format=format)(x).to_scipy().toarray(), right)


@pytest.mark.parametrize("format", FORMATS)
def test_one_pattern_for_all_calls_and_values_written_in_place(format):
    kernel = sa.compile(sa.hessian(rosenbrock, sparse="full", format=format), X)
    matrix, other = kernel.scipy(X), kernel.scipy(2 * X)
    assert kernel.sparsity is kernel.sparsity
    for name in ("row", "col") if format == "coo" else ("indices", "indptr"):
        assert np.array_equal(getattr(matrix, name), getattr(other, name))
        assert not np.shares_memory(getattr(matrix, name), getattr(other, name))  # either can be sorted and pruned
    data, before = matrix.data, other.toarray()
    for point in (3 * X, X - 1):
        for written in (kernel(point, out=matrix), kernel.into(matrix, point), kernel(point.tolist(), out=matrix)):
            assert written is matrix
            assert written.data is data
            assert matrix.toarray() == pytest.approx(sa.hessian(rosenbrock, mode="rev-rev")(point), rel=1e-13)
    assert np.array_equal(other.toarray(), before)
    assert kernel.into(scipy_class(format)(other), X).toarray() == pytest.approx(sa.hessian(rosenbrock)(X), rel=1e-13)


def test_a_matrix_whose_values_are_not_contiguous_or_are_the_argument_itself_is_right():
    f = lambda x: np.sum(x**3)  # noqa: E731
    kernel = sa.compile(sa.hessian(f, sparse="full", format="csr"), np.ones(3))
    store = np.zeros(6)
    matrix = kernel.sparsity.scipy(store[::2])
    kernel.into(matrix, np.array([1.0, 2.0, 3.0]))
    assert store.tolist() == [6.0, 0.0, 12.0, 0.0, 18.0, 0.0]
    point = np.array([1.0, 2.0, 3.0])
    assert kernel.into(kernel.sparsity.scipy(point), point).data.tolist() == point.tolist() == [6.0, 12.0, 18.0]


def read_only(matrix):
    matrix.data.flags.writeable = False
    return matrix


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda m: m.tocsr(), "out: a 4x4 matrix in csr: the values are those of a 4x4 matrix in csc"),
        (lambda m: m[:, :3], "out: a 4x3 matrix in csc: the values are those of a 4x4 matrix in csc"),
        (lambda m: sparse.csc_array(np.ones((4, 4))), "out: a matrix of another pattern, with 16 entries: the values "
         "are those of 10 entries at fixed places; give a matrix that .scipy() made"),
        (lambda m: sparse.csc_array(m.toarray()[::-1]), "out: a matrix of another pattern, with 10 entries"),
        (lambda m: m.astype(np.float32), "out: dtype float32: the kernel writes float64"),
        (read_only, "out: a read-only array"),
        (lambda m: m.toarray(), "out: shape (4, 4): the result has shape (10,)"),
        (lambda m: list(m.data), "out: 10 arrays: the kernel has 1 outputs"),
        (lambda m: "matrix", "out: str: values go into an array, or a matrix in csc"),
    ],
)  # fmt: skip
def test_wrong_matrices_are_refused(spoil, message):
    kernel = sa.compile(sa.hessian(rosenbrock, sparse="full", format="csc"), X)
    with pytest.raises(sa.errors.ArgumentError, match=re.escape(message)):
        kernel(X, out=spoil(kernel.scipy(X)))


def test_a_sparse_matrix_is_no_place_for_a_dense_result():
    kernel = sa.compile(sa.hessian(rosenbrock), X)
    with pytest.raises(sa.errors.ArgumentError, match="out: csr_array: results are written into NumPy arrays"):
        kernel(X, out=sparse.csr_array(np.ones((4, 4))))


@pytest.mark.parametrize("format", ["csr", "csc"])
def test_a_format_belongs_to_a_sparse_matrix(format):
    for transform in (sa.hessian, sa.jacobian, sa.value_gradient_hessian):
        with pytest.raises(sa.errors.ArgumentError, match=f"format='{format}' of a dense matrix; ask for a sparse one"):
            transform(rosenbrock, sparse=False, format=format)
        with pytest.raises(sa.errors.ArgumentError, match="format='dia'; use one of 'coo', 'csr', 'csc'"):
            transform(rosenbrock, sparse=True, format="dia")
        with pytest.raises(sa.errors.ArgumentError, match=f"sparse='{format}'; use one of False, True"):
            transform(rosenbrock, sparse=format)


def several(x):
    return rosenbrock(x), sa.hessian(rosenbrock, sparse="lower", format="csr")(x), sa.jacobian(band, sparse=True)(x)


def in_containers(x):
    value, second, first = several(x)
    return {"first": [first, value], "second": second}


def test_several_results_have_a_pattern_each():
    kernel = sa.compile(several, X)
    none, lower, slopes = kernel.sparsity
    assert none is None
    assert (lower.format, lower.shape, slopes.format, slopes.shape) == ("csr", (4, 4), "coo", (2, 4))
    value, packed, first = kernel(X)
    assert type(value) is float
    _, second, matrix = kernel.scipy(X)
    assert np.array_equal(second.data, packed)
    assert second.toarray() == pytest.approx(np.tril(sa.hessian(rosenbrock)(X)), rel=1e-13)
    assert np.array_equal(matrix.toarray()[tuple(slopes)], first)
    assert matrix.toarray() == pytest.approx(sa.jacrev(band)(X), rel=1e-13)
    out = (np.zeros(()), second, np.zeros(slopes.nnz))
    second.data[:] = 0
    assert kernel.into(out, X) is out
    assert (float(out[0]), out[1].data.tolist(), out[2].tolist()) == (value, packed.tolist(), first.tolist())
    with pytest.raises(
        sa.errors.ArgumentError, match=re.escape("out[1]: a 2x4 matrix in coo: the values are those of a 4x4")
    ):
        kernel.into((np.zeros(()), matrix, np.zeros(slopes.nnz)), X)


def test_results_in_containers():
    kernel = sa.compile(in_containers, X)
    plain, made = kernel(X), kernel.scipy(X)
    value, packed, first = sa.compile(several, X)(X)
    assert plain["second"].tolist() == packed.tolist() == made["second"].data.tolist()
    assert plain["first"][0].tolist() == first.tolist() == made["first"][0].data.tolist()
    assert plain["first"][1] == made["first"][1] == value
    assert [pattern and pattern.format for pattern in kernel.sparsity] == ["coo", None, "csr"]
    assert sa.compile(lambda x: (x, x), X).sparsity is None
    assert sa.compile(rosenbrock, X).sparsity is None


def test_a_sparse_matrix_as_argument():
    matrix = sa.hessian(rosenbrock, sparse=True, format="csc")(X)
    kernel = sa.compile(lambda matrix, x: matrix.toarray() @ x, matrix, X)
    assert kernel(matrix, X) == pytest.approx(matrix.toarray() @ X, rel=1e-14)
    slope = sa.grad(lambda matrix: (matrix.data**3).sum())(matrix)
    assert slope.pattern is matrix.pattern
    assert slope.data == pytest.approx(3 * matrix.data**2)
    with pytest.raises(sa.errors.ArgumentError, match=r"csr.*the kernel takes .*csc"):
        kernel(sa.hessian(rosenbrock, sparse=True, format="csr")(X), X)


def test_a_jitted_function_returns_what_the_function_returns():
    found, right = sa.jit(in_containers)(X), in_containers(X)
    for one, other in ((found["second"], right["second"]), (found["first"][0], right["first"][0])):
        assert type(one) is sa.results.SparseMatrix
        assert one.pattern == other.pattern
        assert one.data == pytest.approx(other.data, rel=1e-13)
    assert sa.jit(sa.hessian(rosenbrock, sparse=True))(X).toarray() == pytest.approx(
        sa.hessian(rosenbrock)(X), rel=1e-13
    )


def test_packed_calls_do_not_leave_the_gate(monkeypatch):
    """Neither a fresh result, nor one into an array; a matrix makes one detour for the check of its pattern."""
    kernels = sa.compile(sa.hessian(rosenbrock, sparse=True, format="csc"), X), sa.compile(several, X)
    matrix, right = kernels[0].scipy(X), [np.copy(part) for part in kernels[1](X)]
    detours, slow = [], Kernel._call_slow
    monkeypatch.setattr(Kernel, "_call_slow", lambda self, *args, **kw: detours.append(1) or slow(self, *args, **kw))
    if type(kernels[0]) is Kernel:
        return  # no native calls on this interpreter
    kernels[0](X), kernels[0](X, out=matrix.data), kernels[0].scipy(X)
    assert all(map(np.array_equal, kernels[1](X), right))
    assert detours == []
    kernels[0](X, out=matrix)
    assert detours == [1]


@pytest.mark.parametrize("format", FORMATS)
def test_matrices_of_float32(format):
    kernel = sa.compile(sa.hessian(rosenbrock, sparse="full", format=format), X, dtype="float32")
    matrix = kernel.scipy(X.astype(np.float32))
    assert matrix.dtype == kernel(X.astype(np.float32)).dtype == np.float32
    assert matrix.toarray() == pytest.approx(sa.hessian(rosenbrock)(X), rel=1e-6)
    assert kernel.into(matrix, np.float32(2) * X.astype(np.float32)) is matrix
    assert matrix.toarray() == pytest.approx(sa.hessian(rosenbrock)(2 * X), rel=1e-5)
    with pytest.raises(sa.errors.ArgumentError, match="out: dtype float64: the kernel writes float32"):
        kernel.into(matrix.astype(float), X)


@pytest.mark.parametrize("format", FORMATS)
def test_a_batch_of_packed_values(format):
    points = np.random.default_rng(1).normal(size=(7, 4))
    kernel = sa.compile(sa.hessian(rosenbrock, sparse="upper", format=format), X)
    values = kernel.batch(points)
    for point, packed in zip(points, values, strict=True):
        assert np.array_equal(kernel.sparsity.scipy(packed).toarray(), kernel.scipy(point).toarray())


@pytest.mark.parametrize("format", FORMATS)
def test_branches_with_different_patterns_have_their_union(format):
    def f(x):
        chosen = (lambda u: u[0] * u[2]) if x[0] > 0 else (lambda u: u[1] ** 3)
        return sa.hessian(chosen, sparse="full", format=format)(x)

    kernel = sa.compile(f, np.ones(3))
    assert kernel.sparsity.format == format
    assert kernel.sparsity.nnz == 3
    for point in (np.array([1.0, 2.0, 3.0]), np.array([-1.0, 2.0, 3.0])):
        assert np.array_equal(kernel.scipy(point).toarray(), f(point).toarray())


@pytest.mark.parametrize("format", FORMATS)
def test_sparse_matrices_inside_of_derivatives(format):
    """The third derivative, by a Jacobian of the values and of the dense matrix, against nested modes."""
    inner = sa.hessian(rosenbrock, sparse="full", format=format)
    right = sa.jacfwd(sa.hessian(rosenbrock, mode="rev-fwd"))(X)
    assert sa.jacfwd(lambda x: inner(x).toarray())(X) == pytest.approx(right, rel=1e-13)
    data, pattern = sa.jacrev(lambda x: inner(x).data)(X), inner(X).pattern
    assert data == pytest.approx(right[tuple(pattern)], rel=1e-13)
    kernel = sa.compile(sa.jacobian(lambda x: inner(x).data, sparse=True, format=format), X)
    assert kernel.scipy(X).toarray() == pytest.approx(data, rel=1e-13)
    with pytest.raises(sa.errors.ArgumentError, match=r"to_scipy\(\) of traced or symbolic values"):
        sa.grad(lambda x: inner(x).to_scipy().sum())(X)


@pytest.mark.parametrize("format", FORMATS)
def test_sympy_in_sympy_out(format):
    symbols = sp.symbols("a b c")
    formula = symbols[0] ** 2 * symbols[1] + sp.sin(symbols[2])
    found = sa.hessian(lambda x: x[0] ** 2 * x[1] + np.sin(x[2]), sparse="full", format=format)(np.array(symbols))
    assert sp.Matrix(found.toarray()) == sp.hessian(formula, symbols)
    assert found.nnz == 4
    with pytest.raises(sa.errors.ArgumentError, match="SciPy holds numbers"):
        found.to_scipy()


def test_without_scipy_there_are_values_and_patterns(monkeypatch):
    kernel = sa.compile(sa.hessian(rosenbrock, sparse=True, format="csr"), X)
    for name in [name for name in sys.modules if name.partition(".")[0] == "scipy"]:
        monkeypatch.setitem(sys.modules, name, None)
    rows, columns = kernel.sparsity
    dense = np.zeros((4, 4))
    dense[rows, columns] = kernel(X)
    assert dense == pytest.approx(sa.hessian(rosenbrock)(X), rel=1e-13)
    with pytest.raises(sa.errors.ArgumentError, match=r"pip install 'symad\[special\]'"):
        kernel.scipy(X)
    with pytest.raises(sa.errors.ArgumentError, match=r"pip install 'symad\[special\]'"):
        sa.hessian(rosenbrock, sparse=True)(X).to_scipy()


def tridiagonal(x):
    """The Hessian of the chained Rosenbrock function by hand."""
    diagonal = np.zeros_like(x)
    diagonal[:-1] = 1200 * x[:-1] ** 2 - 400 * x[1:] + 2
    diagonal[1:] += 200
    return sparse.diags_array([-400 * x[:-1], diagonal, -400 * x[:-1]], offsets=[-1, 0, 1]).tocsc()


def test_ten_thousand_variables():
    x = np.linspace(-1.2, 1.2, 10_000)
    kernel = sa.compile(sa.hessian(rosenbrock, sparse="full", format="csc"), x, tier="fast")
    assert kernel.sparsity.nnz == 3 * x.size - 2
    for point in (x, x[::-1]):
        difference = abs(kernel.scipy(point) - tridiagonal(point))
        assert difference.max() <= 1e-12 * abs(tridiagonal(point)).max()
