"""Matrices and stacks of them on symbols, against NumPy itself."""

import numpy as np
import pytest

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
