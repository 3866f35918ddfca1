"""Eigenvalues, singular values and their vectors, as operations on whole matrices.

Only LAPACK carries them out: on numbers, and in kernels that are made of loops. They have no scalar form.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import symad.tracing.values.node_arrays as node_arrays
from codegen.ir.matrix_operation import MatrixOperation
from symad.tracing.numpy.reduce import traced
from symad.tracing.numpy.registry import implements
from symad.tracing.numpy.solve import per_matrix, scaled
from symad.tracing.values.array import wrap
from symad.tracing.values.complex_points import check_real
from symad.tracing.values.traced import refuse_function

_EIGH_RESULT = type(np.linalg.eigh(np.eye(1)))  # NumPy's named tuples have no public names
_SVD_RESULT = type(np.linalg.svd(np.eye(1)))


def factors_of(name: str, operation: MatrixOperation, a: Any) -> list[Any]:
    """Return the results of an operation on a matrix, flat, as arrays; TraceError where it is written out."""
    writer = node_arrays.loops_on(a.scope.graph)
    if writer is None:
        refuse_function(
            name,
            "only LAPACK carries it out, and it has no scalar form, which is asked for here",
            "call sa.grad(f)(x), hessian(f)(x) and others on numbers, without mode= and sparse=, or sa.compile them "
            'without roll="never", dtype= and strategy=',
        )
    return [wrap(nodes, a.scope) for nodes in writer.carried_out(operation, a.nodes.T)]


@implements(np.linalg.eigh)
def eigh(a: Any, UPLO: str = "L") -> Any:  # noqa: N803 (NumPy's name)
    """The eigenvalues in ascending order, and orthonormal eigenvectors, of a symmetric matrix given by one triangle."""
    parts = _eigen("eigh", a, UPLO)
    return _EIGH_RESULT(parts[..., 0], parts[..., 1:])


@implements(np.linalg.eigvalsh)
def eigvalsh(a: Any, UPLO: str = "L") -> Any:  # noqa: N803
    """The eigenvalues of a symmetric matrix in ascending order."""
    return _eigen("eigvalsh", a, UPLO)[..., 0]


def _eigen(name: str, a: Any, triangle: str) -> Any:
    """Return the eigenvalues as a column, and beside them the eigenvectors."""
    if triangle.upper() not in ("L", "U"):
        raise ValueError("UPLO argument must be 'L' or 'U'")
    check_real(f"np.linalg.{name}")
    a = traced(a)

    def one(matrix: Any) -> Any:
        n = len(matrix)
        if n != matrix.shape[1]:
            raise np.linalg.LinAlgError("Last 2 dimensions of the array must be square")
        if not n:
            return np.zeros((0, 1))
        values, vectors = factors_of(f"np.linalg.{name}", MatrixOperation("eigen", (n,)), matrix)
        return np.concatenate([values[:, None], np.reshape(vectors, (n, n)).T], axis=1)

    return per_matrix(one, np.matrix_transpose(a) if triangle.upper() == "U" else a)


@implements(np.linalg.svd)
def svd(a: Any, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False) -> Any:
    """The singular values in descending order, and their vectors."""
    check_real("np.linalg.svd")
    a = traced(a)
    if hermitian:
        return _of_symmetric(a, compute_uv)
    if a.ndim < 2:
        raise np.linalg.LinAlgError(f"{a.ndim}-dimensional array given. Array must be at least two-dimensional")
    m, n = a.shape[-2:]
    if not compute_uv:
        return _singular("svd", a)[1]
    if full_matrices and m != n:
        refuse_function(
            f"np.linalg.svd of a {m} x {n} matrix with full_matrices=True",
            "vectors beyond those of singular values are not determined, and have no derivative",
            "use full_matrices=False",
        )
    return _SVD_RESULT(*_singular("svd", a))


def _of_symmetric(a: Any, compute_uv: bool) -> Any:
    """The singular values of a symmetric matrix: the sizes of its eigenvalues; and their vectors."""
    values, vectors = np.linalg.eigh(a)
    order = np.argsort(-np.abs(values), axis=-1, kind="stable")
    values = np.take_along_axis(values, order, -1)
    if not compute_uv:
        return np.abs(values)
    vectors = np.take_along_axis(vectors, order[..., None, :], -1)
    return _SVD_RESULT(vectors, np.abs(values), np.matrix_transpose(vectors * np.sign(values)[..., None, :]))


def _singular(name: str, a: Any) -> list[Any]:
    m, n = a.shape[-2:]
    size = min(m, n)
    stack = a.shape[:-2]
    if not size:
        return [np.zeros((*stack, m, 0)), np.zeros((*stack, 0)), np.zeros((*stack, 0, n))]
    a, scale = scaled(a)
    packed = per_matrix(
        lambda matrix: np.concatenate(factors_of(f"np.linalg.{name}", MatrixOperation("singular", (m, n)), matrix)), a
    )
    left, values, right = packed[..., : m * size], packed[..., m * size : (m + 1) * size], packed[..., (m + 1) * size :]
    return [
        np.matrix_transpose(np.reshape(left, (*stack, size, m))),
        values * scale,
        np.matrix_transpose(np.reshape(right, (*stack, n, size))),
    ]


def singular_condition(x: Any, p: Any) -> Any:
    """The largest singular value by the smallest, or the other way round (-2)."""
    if not np.size(x):
        raise np.linalg.LinAlgError("cond is not defined on empty arrays")
    values = _singular("cond", scaled(traced(x))[0])[1]
    return values[..., -1] / values[..., 0] if p == -2 else values[..., 0] / values[..., -1]
