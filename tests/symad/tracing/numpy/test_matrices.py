"""Matrices and stacks of them on symbols, against NumPy itself."""

import numpy as np
import pytest

import symad as sa
from symad.tracing.numpy.solve import LARGEST

GENERATOR = np.random.default_rng(7)
A = GENERATOR.uniform(-1.0, 1.0, (3, 4))
B = GENERATOR.uniform(-1.0, 1.0, (4, 2))
M = GENERATOR.uniform(-1.0, 1.0, (4, 4)) + 3 * np.eye(4)
N = GENERATOR.uniform(-1.0, 1.0, (2, 3, 3)) + 2 * np.eye(3)
T = GENERATOR.uniform(-1.0, 1.0, (2, 3, 4))

MATRICES = [
    lambda a, b: a @ b,
    lambda a, b: np.matmul(a, b),
    lambda a, b: np.dot(a, b),
    lambda a, b: a.dot(b),
    lambda a, b: a @ B,
    lambda a, b: A @ b,
    lambda a, b: a.T,
    lambda a, b: a.T @ a,
    lambda a, b: a @ b[:, 0],
    lambda a, b: b[:, 0] @ b,
    lambda a, b: a[0] @ b[:, 1],
    lambda a, b: np.sum(a, axis=0),
    lambda a, b: a.sum(axis=1, keepdims=True),
    lambda a, b: a.mean(axis=(0, 1)),
    lambda a, b: np.var(a, axis=0),
    lambda a, b: np.std(a, axis=1, keepdims=True),
    lambda a, b: a.max(axis=1),
    lambda a, b: np.min(a, axis=0, keepdims=True),
    lambda a, b: np.prod(a, axis=-1),
    lambda a, b: np.cumsum(a, axis=1),
    lambda a, b: np.cumsum(a),
    lambda a, b: np.diff(a, axis=0),
    lambda a, b: np.einsum("ij,jk->ik", a, b),
    lambda a, b: np.einsum("ij,jk", a, b),
    lambda a, b: np.einsum("ij->ji", a),
    lambda a, b: np.einsum("ij->", a),
    lambda a, b: np.einsum("ii,jk->k", b[:2], a),
    lambda a, b: np.einsum("ij,ij,j->", a, a, a[0]),
    lambda a, b: np.einsum("ij,k->ik", a, b[:, 0]),
    lambda a, b: np.einsum("i...->...", a),
    lambda a, b: np.einsum("ij,jk->ki", A, b),
    lambda a, b: np.einsum("ij,ij->i", a, a),
    lambda a, b: np.einsum("i,j->ij", a[0], b[:, 0]),
    lambda a, b: np.einsum("ii->i", b[:2]),
    lambda a, b: np.einsum("ii", b[:2]),
    lambda a, b: np.einsum("...j,jk->...k", a, b),
    lambda a, b: np.einsum("ij,jk,kl->il", a, b, b.T),
    lambda a, b: np.tensordot(a, b, axes=1),
    lambda a, b: np.tensordot(a, a, axes=2),
    lambda a, b: np.tensordot(a, b, axes=([1], [0])),
    lambda a, b: np.inner(a, b.T),
    lambda a, b: np.vdot(a, a),
    lambda a, b: np.outer(a, b),
    lambda a, b: np.kron(a, b),
    lambda a, b: np.trace(b[:2]),
    lambda a, b: np.apply_along_axis(np.sum, 0, a),
    lambda a, b: np.apply_along_axis(lambda r: r[:2] * r[2], 1, a),
    lambda a, b: np.apply_along_axis(np.diag, 0, a),
    lambda a, b: a[np.triu_indices_from(a)],
    lambda a, b: np.cov(a),
    lambda a, b: np.corrcoef(a, rowvar=False),
    lambda a, b: np.cov(a[0], a[1], ddof=0),
    lambda a, b: np.linalg.solve([[0.0, 1.0], [1.0, a[0, 0]]], b[0]),
    lambda a, b: np.linalg.solve(np.stack([[0.0, 1.0], [1.0, a[0, 0]]]), b[0]),
    lambda a, b: np.linalg.norm(a),
    lambda a, b: np.linalg.norm(a, axis=0),
    lambda a, b: np.linalg.norm(a, 1),
    lambda a, b: np.linalg.norm(a, np.inf),
    lambda a, b: np.linalg.norm(a, "fro"),
    lambda a, b: np.linalg.norm(a, -1),
    lambda a, b: np.linalg.norm(a[0], 1),
    lambda a, b: np.linalg.norm(a[0], np.inf),
    lambda a, b: np.linalg.norm(a[0], 3),
    lambda a, b: np.linalg.norm(a[0], 0),
    lambda a, b: np.linalg.norm(a, ord=1, axis=1),
    lambda a, b: np.linalg.norm(a, axis=1, keepdims=True),
    lambda a, b: np.linalg.norm(a[0], -np.inf),
    lambda a, b: np.linalg.vector_norm(a),
    lambda a, b: np.linalg.multi_dot([a, b, b.T]),
    lambda a, b: np.cross(a[:, :3], a[:, 1:]),
    lambda a, b: np.cross(a[0, :3], [1.0, 2.0, 3.0]),
    lambda a, b: np.triu(a),
    lambda a, b: np.tril(a, -1),
    lambda a, b: np.diag(a),
    lambda a, b: np.diagonal(a, 1),
    lambda a, b: np.transpose(a),
    lambda a, b: a.transpose(1, 0),
    lambda a, b: np.swapaxes(a, 0, 1),
    lambda a, b: np.moveaxis(a, 0, 1),
    lambda a, b: a.reshape(-1),
    lambda a, b: a.reshape(2, 6),
    lambda a, b: a.ravel(order="F"),
    lambda a, b: a[1],
    lambda a, b: a[:, 1],
    lambda a, b: a[1, 2],
    lambda a, b: a[:, [0, 2]],
    lambda a, b: a[np.ix_([0, 2], [1, 3])],
    lambda a, b: a[np.triu_indices(3)],
    lambda a, b: a[..., -1],
    lambda a, b: a[1:, ::2],
    lambda a, b: np.flipud(a),
    lambda a, b: np.fliplr(a),
    lambda a, b: np.rot90(a),
    lambda a, b: np.roll(a, 1, axis=1),
    lambda a, b: np.repeat(a, 2, axis=0),
    lambda a, b: np.hsplit(a, 2),
    lambda a, b: np.concatenate([a, b.T[:, :4]], axis=0),
    lambda a, b: np.vstack([a, np.ones(4)]),
    lambda a, b: np.pad(a, ((1, 0), (0, 2))),
    lambda a, b: [row.sum() for row in a],
    lambda a, b: a + a[0],
    lambda a, b: a * a[:, :1],
    lambda a, b: a - a.mean(axis=0),
    lambda a, b: np.average(a, axis=0, weights=[1.0, 2.0, 3.0]),
    lambda a, b: np.take_along_axis(a, np.array([[0], [1], [2]]), axis=1),
    lambda a, b: np.apply_along_axis(lambda r: r @ r, 1, np.array(a.tolist())),
    lambda a, b: np.where(a > 0, a, 0.1 * a),
    lambda a, b: np.exp(a) / np.exp(a).sum(axis=1, keepdims=True),
    lambda a, b: np.gradient(a),
    lambda a, b: np.ptp(a, axis=0),
    lambda a, b: np.matvec(a, b[:, 0]),
    lambda a, b: np.vecdot(a, a),
    lambda a, b: np.matrix_transpose(a),
    lambda a, b: np.trapezoid(a, axis=0),
    lambda a, b: np.sum(a, axis=(0, 1), keepdims=True),
    lambda a, b: np.add.reduce(a, axis=1),
    lambda a, b: np.stack(np.meshgrid(a[0], b[:, 0])),
]
SQUARE = [
    lambda m: np.linalg.det(m),
    lambda m: np.linalg.det(m[:3, :3]),
    lambda m: np.linalg.det(m[:2, :2]),
    lambda m: np.linalg.inv(m),
    lambda m: np.linalg.solve(m, np.arange(4.0)),
    lambda m: np.linalg.solve(m, m[:, :2] ** 2),
    lambda m: np.linalg.solve(M, m[0]),
    lambda m: np.linalg.slogdet(m),
    lambda m: np.linalg.matrix_power(m, 3),
    lambda m: np.linalg.matrix_power(m, -1),
    lambda m: np.linalg.cholesky(m @ m.T),
    lambda m: np.trace(m),
    lambda m: np.linalg.inv(m) @ m[:, 0],
    lambda m: np.linalg.matrix_power(m, 0),
    lambda m: m.trace(),
    lambda m: m.diagonal(),
    lambda m: np.linalg.norm(m @ m.T - np.eye(4)),
]
STACKS = [
    lambda t, n: t @ t.swapaxes(1, 2),
    lambda t, n: np.matmul(n, t),
    lambda t, n: n @ T[0],
    lambda t, n: np.linalg.det(n),
    lambda t, n: np.linalg.inv(n),
    lambda t, n: np.einsum("bij,bkj->bik", t, t),
    lambda t, n: np.tensordot(t, t, axes=([1, 2], [1, 2])),
    lambda t, n: t.sum(axis=(0, 2)),
    lambda t, n: np.transpose(t, (2, 0, 1)),
    lambda t, n: t.mean(axis=-1).T,
    lambda t, n: np.linalg.norm(t, axis=(1, 2)),
    lambda t, n: np.dot(t, t[0].T),
    lambda t, n: np.linalg.solve(n, t),
    lambda t, n: np.linalg.norm(t, axis=2, keepdims=True),
    lambda t, n: t[:, 1:, ::2],
    lambda t, n: np.cumsum(t, axis=1),
    lambda t, n: np.max(t, axis=(0, 1)),
    lambda t, n: np.concatenate([t, t], axis=2),
    lambda t, n: np.linalg.solve(n, t[0, 0, :3]),
    lambda t, n: n.trace(axis1=1, axis2=2),
]


def identify(function):
    return f"{function.__code__.co_firstlineno}"


@pytest.mark.parametrize("function", MATRICES, ids=identify)
def test_matrices(function, agrees_on_symbols):
    agrees_on_symbols(function, A, B)


@pytest.mark.parametrize("function", SQUARE, ids=identify)
def test_square_matrices(function, agrees_on_symbols, agrees_on_numbers):
    agrees_on_symbols(function, M, rtol=1e-9)
    agrees_on_numbers(function, M[[2, 0, 1, 3]] if "cholesky" not in function.__code__.co_names else M, rtol=1e-9)


@pytest.mark.parametrize("function", STACKS, ids=identify)
def test_stacks(function, agrees_on_symbols):
    agrees_on_symbols(function, T, N, rtol=1e-9)


RANK_3 = np.array([[1.0, 2.0, 3.0, 4.0], [2.0, 4.0, 6.0, 8.0], [0.0, 1.0, 5.0, 2.0], [3.0, 1.0, 1.0, 0.0]])
ZERO_COLUMN = np.array([[0.0, 1.0, 2.0, 3.0], [0.0, 2.0, 1.0, 5.0], [0.0, 3.0, 1.0, 1.0], [0.0, 1.0, 0.0, 2.0]])


@pytest.mark.parametrize("matrix", [RANK_3, ZERO_COLUMN], ids=["dependent rows", "no pivot at all"])
def test_the_determinant_of_a_singular_matrix_has_its_cofactors_as_derivative(matrix):
    cofactors = [
        [(-1) ** (i + j) * np.linalg.det(np.delete(np.delete(matrix, i, 0), j, 1)) for j in range(4)] for i in range(4)
    ]
    value, gradient = sa.value_and_grad(np.linalg.det)(matrix)
    assert value == pytest.approx(0.0, abs=1e-13)
    np.testing.assert_allclose(gradient, cofactors, rtol=1e-12, atol=1e-12)
    sign, logarithm = sa.jvp(np.linalg.slogdet, (ZERO_COLUMN,), (np.eye(4),))[0]
    assert (sign, logarithm) == (0.0, -np.inf)


def test_a_large_singular_determinant_is_refused():
    with pytest.raises(sa.errors.TraceError, match=r"np.linalg.det of a singular 11 x 11 matrix"):
        sa.grad(np.linalg.det)(np.zeros((11, 11)))


def test_the_logarithm_of_a_determinant_does_not_overflow(agrees_on_symbols):
    agrees_on_symbols(np.linalg.slogdet, 1e100 * M)


@pytest.mark.parametrize("function", [lambda m: np.linalg.solve(m, m[0]), np.linalg.inv, np.linalg.cholesky])
def test_numpys_own_errors_for_singular_matrices(function):
    with pytest.raises(np.linalg.LinAlgError):
        sa.jvp(function, (ZERO_COLUMN,), (M,))


def test_a_matrix_without_rows_to_choose_from_is_singular_too():
    with pytest.raises(np.linalg.LinAlgError, match="Singular"):
        sa.jvp(lambda x: np.linalg.solve(np.diag(x), x), (np.array([1.0, 0.0]),), (np.ones(2),))


@pytest.mark.parametrize("function", [np.linalg.qr, np.linalg.pinv, lambda p: np.linalg.lstsq(p, p[:, 0])[0]])
def test_least_squares_needs_full_rank(function):
    with pytest.raises(
        sa.errors.TraceError, match=r"np.linalg.\w+ of a matrix without full rank was called with a traced"
    ):
        sa.jvp(function, (RANK_3,), (M,))


@pytest.mark.parametrize("function", [np.linalg.cholesky, np.linalg.inv, np.linalg.det, lambda m: np.linalg.qr(m)[1]])
@pytest.mark.parametrize("odd", [np.nan, np.inf])
def test_what_is_not_finite_comes_out_as_nan_as_in_numpy_and_in_kernels(function, odd):
    def f(x):
        return np.sum(function(2 * np.eye(3) + np.outer(np.sin(x), np.sin(x))))

    x = np.array([1.0, odd, 2.0])
    with np.errstate(all="ignore"):
        assert np.isnan(f(x))
        value, gradient = sa.value_and_grad(f)(x)
    assert np.isnan([value, *gradient]).all()
    assert np.isnan(sa.compile(f, np.ones(3))(x))


def test_the_signs_of_qr_are_lapacks(agrees_on_symbols, agrees_on_numbers):
    for agrees in (agrees_on_symbols, agrees_on_numbers):
        agrees(np.linalg.qr, np.triu(M))
        agrees(np.linalg.qr, -np.triu(M)[:, :2])
        agrees(np.linalg.qr, np.triu(M) + 1e-200 * np.tril(M, -1))  # whose squares are 0


@pytest.mark.parametrize("name", ["det", "slogdet", "inv", "cholesky", "qr", "pinv"])
def test_the_size_of_what_is_written_out_is_limited(name):
    large = np.eye(LARGEST + 1)
    with pytest.raises(
        sa.errors.LimitError, match=rf"np.linalg.{name} of a traced 101 x 101 matrix.*the limit is n = 100"
    ):
        sa.trace(getattr(np.linalg, name), large)


LAST = {
    "det": lambda d: d,
    "slogdet": lambda found: found[1],
    "inv": lambda m: m[-1, -1],
    "cholesky": lambda m: m[-1, -1],
}


@pytest.mark.parametrize("name", LAST)
def test_numbers_have_no_such_limit(name):
    large, direction = np.eye(LARGEST + 1) * 1.1, np.eye(LARGEST + 1)
    _, tangent = sa.jvp(lambda a: LAST[name](getattr(np.linalg, name)(a)), (large,), (direction,))
    slope = {"det": 101 * 1.1**100, "slogdet": 101 / 1.1, "inv": -1 / 1.1**2, "cholesky": 0.5 / np.sqrt(1.1)}[name]
    assert tangent == pytest.approx(slope, rel=1e-12)


def test_tensordot_checks_shapes():
    with pytest.raises(ValueError, match="shape-mismatch for sum"):
        sa.jvp(lambda x: np.tensordot(x, x.T, axes=2), (A,), (A,))


def test_an_empty_sum_of_products_is_zero(agrees_on_symbols):
    agrees_on_symbols(lambda a: np.einsum("ij,jk->ik", a[:, :0], a[:0]), A)
    agrees_on_symbols(lambda a: np.tensordot(a[:, :0], a[:0], 1), A)


def test_a_chain_of_products_is_multiplied_in_the_cheapest_order(agrees_on_symbols):
    vector = np.array([0.5, -1.0, 2.0, 0.25])
    agrees_on_symbols(lambda m: np.linalg.multi_dot([m, m, m, vector]), M)
    agrees_on_symbols(lambda m: np.linalg.multi_dot([vector, m, m, vector]), M)
    multiplied = sa.trace(lambda m: np.linalg.multi_dot([m, m, m, vector]), M)
    assert multiplied.count_ops() == sa.trace(lambda m: m @ (m @ (m @ vector)), M).count_ops()


def test_an_ordinary_matrix_costs_no_elimination():
    """Only the right-hand side is traced: 2 n**2 operations or so, and nothing for the zeros of a band."""
    n = 120
    matrix = np.diag(np.full(n, 3.0)) + np.diag(np.ones(n - 1), 1) + np.diag(np.ones(n - 1), -1)
    right = np.random.default_rng(1).normal(size=n)
    solution, tangent = sa.jvp(lambda b: np.linalg.solve(matrix, b), (right,), (right,))
    np.testing.assert_allclose(solution, np.linalg.solve(matrix, right), rtol=1e-12)
    np.testing.assert_allclose(tangent, solution, rtol=1e-14)
    assert sa.trace(lambda b: np.linalg.solve(matrix, b), right).count_ops() < 10 * n
    with pytest.raises(np.linalg.LinAlgError, match="Singular"):
        sa.jvp(lambda b: np.linalg.solve(ZERO_COLUMN, b), (right[:4],), (right[:4],))


@pytest.mark.filterwarnings("ignore:Arrays of 2-dimensional vectors:DeprecationWarning")
@pytest.mark.parametrize("sizes", [(2, 2), (2, 3), (3, 2), (3, 3)])
def test_vector_products_of_planar_vectors_are_those_of_numpy(sizes):
    def f(x):
        u, v = x[: 4 * sizes[0]].reshape(4, -1), x[-4 * sizes[1] :].reshape(4, -1)
        return np.cross(u, v, axisc=0), np.cross(u[0], v)

    x = GENERATOR.normal(size=20)
    found, expected = sa.compile(f, x, fma=False)(x), f(x)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_array_equal(a, b)


def test_vector_products_of_other_vectors_are_refused_as_by_numpy():
    for f in (lambda x: np.cross(x, x), lambda x: np.linalg.cross(x[:2], x[:2])):
        with pytest.raises(ValueError, match="dimension"):
            f(np.ones(4))
        with pytest.raises(ValueError, match="dimension"):
            sa.trace(f, np.ones(4))


SCALED = {  # a function of a matrix, and the degree in which it is homogeneous
    "slogdet": (lambda a: np.linalg.slogdet(a)[1], 0), "svdvals": (lambda a: np.sum(np.linalg.svdvals(a)), 1),
    "left vectors": (lambda a: np.sum(np.abs(np.linalg.svd(a)[0][:, 0])), 0), "cond": (np.linalg.cond, 0),
    "R": (lambda a: np.linalg.qr(a)[1][0, 1], 1), "Q": (lambda a: np.linalg.qr(a)[0][0, 1], 0),
    "pinv": (lambda a: np.sum(np.linalg.pinv(a[:, :2])), -1),
    "lstsq": (lambda a: np.sum(np.linalg.lstsq(a[:, :2], np.arange(4.0), rcond=None)[0]), -1),
}  # fmt: skip


@pytest.mark.parametrize("name", SCALED)
def test_factors_of_matrices_of_any_scale(name):
    f, degree = SCALED[name]
    a = np.array([[4.0, 1, 0.3, 0.2], [0.7, 3, 1, 0.1], [0.2, -1, 2, 0.4], [0.5, 0.3, 0.2, 1.5]])
    gradient, kernel = sa.grad(f)(a), sa.compile(sa.grad(f), a)
    for power in (-480, 480):  # of two: about 1e-145 and 1e145
        scale = 2.0**power
        np.testing.assert_allclose(sa.grad(f)(a * scale) * scale ** (1 - degree), gradient, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(kernel(a * scale) * scale ** (1 - degree), gradient, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("f", [np.linalg.inv, lambda a: np.linalg.solve(a, np.ones(3))])
def test_a_singular_matrix_of_numbers_is_refused_where_numpy_refuses_it(f):
    a = np.array([[1.0, 2, 3], [4, 5, 6], [7, 8, 9]])
    with pytest.raises(np.linalg.LinAlgError):
        f(a)
    with pytest.raises(np.linalg.LinAlgError):
        sa.grad(lambda a: np.sum(f(a)))(a)
