"""Linear algebra on traced values: products as chains, norms, and small dense det, inv and solve by elimination."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import symad.tracing.node_arrays as node_arrays
import symad.tracing.operations as op
from symad.errors import TraceError
from symad.graph.table import Graph
from symad.tracing.array import wrap
from symad.tracing.constants import constant
from symad.tracing.functions_reduce import traced
from symad.tracing.node_arrays import Nodes, elementwise
from symad.tracing.operands import nodes_of, scope_of
from symad.tracing.place import user_place
from symad.tracing.registry import implements
from symad.tracing.traced import refuse_function
from symad.tracing.values import values_of

_SLOGDET_RESULT = type(np.linalg.slogdet(np.eye(1)))  # NumPy's named tuple has no public name


@implements(np.dot)
def dot(a: Any, b: Any, out: Any = None) -> Any:
    """The dot product: last axis of a with the second-to-last of b."""
    if np.ndim(a) == 0 or np.ndim(b) == 0:
        return np.multiply(a, b)
    return np.matmul(a, b) if np.ndim(b) < 3 else np.tensordot(a, b, axes=(-1, -2))


@implements(np.inner)
def inner(a: Any, b: Any) -> Any:
    """Sum of products over the last axes."""
    return np.multiply(a, b) if np.ndim(a) == 0 or np.ndim(b) == 0 else np.tensordot(a, b, axes=(-1, -1))


@implements(np.vdot)
def vdot(a: Any, b: Any) -> Any:
    """The dot product of the flattened arrays."""
    return np.matmul(np.ravel(a), np.ravel(b))


@implements(np.outer)
def outer(a: Any, b: Any, out: Any = None) -> Any:
    """Every element of a with every element of b."""
    return np.multiply.outer(np.ravel(traced(a)), np.ravel(b))


@implements(np.linalg.outer)
def linalg_outer(x1: Any, x2: Any, /) -> Any:
    """Every element of x1 with every element of x2."""
    return outer(x1, x2)


@implements(np.kron)
def kron(a: Any, b: Any) -> Any:
    """The Kronecker product."""
    rank = max(np.ndim(a), np.ndim(b))
    left, right = (np.reshape(traced(m), (1,) * (rank - np.ndim(m)) + np.shape(m)) for m in _together(a, b))
    made = np.multiply.outer(left, right)
    order = [axis for k in range(rank) for axis in (k, k + rank)]
    sizes = [p * q for p, q in zip(left.shape, right.shape, strict=True)]
    return np.reshape(np.transpose(made, order), sizes)


def _together(*values: Any) -> list[Any]:
    scope = scope_of(*values)
    return [wrap(nodes_of(value, scope), scope) for value in values]


@implements(np.tensordot)
def tensordot(a: Any, b: Any, axes: Any = 2) -> Any:
    """Sum of products over the given axes."""
    rank_a, rank_b = np.ndim(a), np.ndim(b)
    over_a, over_b = (range(rank_a - axes, rank_a), range(axes)) if isinstance(axes, int) else axes
    left = [k % rank_a for k in np.atleast_1d(over_a).tolist()]
    right = [k % rank_b for k in np.atleast_1d(over_b).tolist()]
    left, right = [int(k) for k in left], [int(k) for k in right]
    kept_a = [k for k in range(rank_a) if k not in left]
    kept_b = [k for k in range(rank_b) if k not in right]
    a, b = _together(a, b)
    count = int(np.prod([a.shape[k] for k in left], dtype=int))
    rows = np.reshape(np.transpose(a, kept_a + left), (-1, count))
    columns = np.reshape(np.transpose(b, right + kept_b), (count, -1))
    return np.reshape(rows @ columns, [a.shape[k] for k in kept_a] + [b.shape[k] for k in kept_b])


@implements(np.einsum)
def einsum(subscripts: Any, *operands: Any, **keywords: Any) -> Any:
    """Einstein summation (letters form), from the left: each product is summed as soon as a letter is used up."""
    if not isinstance(subscripts, str):
        refuse_function("np.einsum with lists of axes", "only the letters form is traced", "write 'ij,jk->ik'")
    scope = scope_of(*operands)
    arrays = [nodes_of(value, scope) for value in operands]
    terms, output = _letters(subscripts, [array.ndim for array in arrays])
    letters = "".join(dict.fromkeys(terms[0]))
    made = _spread(terms[0], letters, arrays[0])
    for k in range(1, len(terms)):
        union = letters + "".join(sorted(set(terms[k]) - set(letters)))
        parts = (_spread(letters, union, made), _spread(terms[k], union, arrays[k]))
        made = elementwise(scope.graph, op.multiply, *parts)
        needed = output + "".join(terms[k + 1 :])
        letters, made = _summed(scope.graph, union, made, needed)
    letters, made = _summed(scope.graph, letters, made, output)
    return wrap(np.transpose(made, [letters.index(letter) for letter in output]), scope)


def _summed(graph: Graph, letters: str, made: Nodes, needed: str) -> tuple[str, Nodes]:
    """Sum over the letters that nothing needs any more; return the letters that are left, and the array."""
    axes = tuple(k for k, letter in enumerate(letters) if letter not in needed)
    kept = "".join(letter for letter in letters if letter in needed)
    return kept, node_arrays.reduce(graph, op.add, made, axes) if axes else made


def _letters(subscripts: str, ranks: Sequence[int]) -> tuple[list[str], str]:
    """Return the letters of each operand and of the output; an ellipsis becomes capital Greek letters."""
    left, arrow, output = subscripts.replace(" ", "").partition("->")
    terms = left.split(",")
    spare = "ΑΒΓΔΕΖΗΘ"
    widths = [
        rank - len(term.replace("...", "")) if "..." in term else 0 for term, rank in zip(terms, ranks, strict=True)
    ]
    terms = [
        term.replace("...", spare[: max(widths)][max(widths) - w :]) for term, w in zip(terms, widths, strict=True)
    ]
    if arrow:
        return terms, output.replace("...", spare[: max(widths)])
    every = "".join(terms)
    kept = sorted(letter for letter in set(every) if every.count(letter) == 1 and letter not in spare)
    return terms, spare[: max(widths)] + "".join(kept)


def _spread(term: str, letters: str, array: Nodes) -> Nodes:
    """Return the array with one axis per letter (length 1 where it has none); repeated letters take the diagonal."""
    for letter in sorted(set(term)):
        while term.count(letter) > 1:
            first = term.index(letter)
            second = term.index(letter, first + 1)
            array = np.diagonal(array, axis1=first, axis2=second)
            term = term[:first] + term[first + 1 : second] + term[second + 1 :] + letter
    order = [term.index(letter) for letter in letters if letter in term]
    sizes = [array.shape[term.index(letter)] if letter in term else 1 for letter in letters]
    return np.transpose(array, order).reshape(sizes)


@implements(np.cross)
def cross(a: Any, b: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None) -> Any:
    """The vector product of three-dimensional vectors."""
    if axis is not None:
        axisa = axisb = axisc = axis
    u, v = _together(a, b)
    u, v = np.moveaxis(u, axisa, 0), np.moveaxis(v, axisb, 0)
    if len(u) != 3 or len(v) != 3:
        raise ValueError("np.cross of traced values takes vectors of 3 components")
    parts = [u[j] * v[k] - u[k] * v[j] for j, k in ((1, 2), (2, 0), (0, 1))]
    return np.moveaxis(np.stack(np.broadcast_arrays(*parts)), 0, axisc)


@implements(np.linalg.norm)
def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    """A vector norm (2, 1, inf, -inf, 0, p), the Frobenius norm, or a matrix norm by row or column sums."""
    x = traced(x)
    if axis is None and (ord is None or x.ndim == 1):
        made = _vector_norm(np.ravel(x), ord, 0, False)
        return np.reshape(made, (1,) * x.ndim) if keepdims else made
    axes = node_arrays.normalized_axes(axis, x.ndim)
    if len(axes) == 1:
        return _vector_norm(x, ord, axes[0], keepdims)
    return _matrix_norm(x, ord, axes if axis is None else tuple(axis), keepdims)


@implements(np.linalg.vector_norm)
def vector_norm(x: Any, /, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Any:
    """A vector norm over the given axis, or over all elements."""
    return norm(np.ravel(x) if axis is None else x, ord, axis, keepdims)


def _vector_norm(x: Any, ord: Any, axis: int, keepdims: bool) -> Any:
    if ord is None or ord == 2:
        return np.sqrt(np.sum(x * x, axis=axis, keepdims=keepdims))
    if ord == np.inf:
        return np.max(np.abs(x), axis=axis, keepdims=keepdims)
    if ord == -np.inf:
        return np.min(np.abs(x), axis=axis, keepdims=keepdims)
    if ord == 0:
        return np.sum(x != 0, axis=axis, keepdims=keepdims)
    if ord == 1:
        return np.sum(np.abs(x), axis=axis, keepdims=keepdims)
    return np.sum(np.abs(x) ** ord, axis=axis, keepdims=keepdims) ** (1.0 / ord)


def _matrix_norm(x: Any, ord: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
    if ord in (None, "fro"):
        return np.sqrt(np.sum(x * x, axis=axes, keepdims=keepdims))
    if ord not in (1, -1, np.inf, -np.inf):
        refuse_function(f"np.linalg.norm with ord={ord!r}", "it needs singular values", "use the Frobenius norm")
    across, along = (0, 1) if abs(ord) == 1 else (1, 0)
    sums = np.sum(np.abs(x), axis=axes[across], keepdims=True)
    pick = np.max if ord > 0 else np.min
    made = pick(sums, axis=axes[along], keepdims=True)
    return made if keepdims else np.squeeze(made, axis=axes)


@implements(np.linalg.det)
def det(a: Any) -> Any:
    """The determinant: cofactors up to 3x3, elimination with partial pivoting beyond."""
    return _per_matrix(_det_one, traced(a))


def _det_one(a: Any) -> Any:
    n = a.shape[0]
    _check_square(a)
    if n <= 3:
        return _cofactor_det([[a[i, j] for j in range(n)] for i in range(n)])
    reduced, sign = _eliminated(a)
    product = reduced[0, 0]
    for k in range(1, n):
        product = product * reduced[k, k]
    return product if isinstance(sign, int) and sign == 1 else product * sign


def _cofactor_det(m: list[list[Any]]) -> Any:
    if len(m) == 1:
        return m[0][0]
    if len(m) == 2:
        return m[0][0] * m[1][1] - m[0][1] * m[1][0]
    first = m[0][0] * (m[1][1] * m[2][2] - m[1][2] * m[2][1])
    second = m[0][1] * (m[1][0] * m[2][2] - m[1][2] * m[2][0])
    return first - second + m[0][2] * (m[1][0] * m[2][1] - m[1][1] * m[2][0])


@implements(np.linalg.slogdet)
def slogdet(a: Any) -> Any:
    """Sign and logarithm of the determinant, by way of the determinant."""
    value = det(a)
    return _SLOGDET_RESULT(np.sign(value), np.log(np.abs(value)))


@implements(np.linalg.inv)
def inv(a: Any) -> Any:
    """The inverse, column by column as solve(a, identity)."""
    a = traced(a)
    return _per_matrix(lambda m: _solve_one(m, np.eye(m.shape[0])), a)


@implements(np.linalg.solve)
def solve(a: Any, b: Any) -> Any:
    """The solution of a x = b by elimination with partial pivoting (see `_eliminated`)."""
    a, b = _together(a, b)
    if a.ndim == 2:
        return _solve_one(a, b)
    vectors = b.ndim == 1
    stacked = np.broadcast_to(
        b[..., None] if vectors else b, a.shape[:-2] + b.shape[-1 if vectors else -2 :] + (1,) * vectors
    )
    made = np.stack([_solve_one(m, r) for m, r in zip(_matrices(a), _matrices(stacked), strict=True)])
    made = np.reshape(made, stacked.shape)
    return made[..., 0] if vectors else made


def _matrices(a: Any) -> Any:
    return np.reshape(a, (-1, *a.shape[-2:]))


def _per_matrix(function: Any, a: Any) -> Any:
    if a.ndim == 2:
        return function(a)
    made = np.stack([function(m) for m in _matrices(a)])
    return np.reshape(made, a.shape[:-2] + made.shape[1:])


def _solve_one(a: Any, b: Any) -> Any:
    n = a.shape[0]
    _check_square(a)
    rows, _ = _eliminated(np.concatenate([a, np.reshape(b, (n, -1))], axis=1))
    found: list[Any] = [None] * n
    for i in reversed(range(n)):
        rest = rows[i, n:]
        for j in range(i + 1, n):
            rest = rest - rows[i, j] * found[j]
        found[i] = rest / rows[i, i]
    return np.reshape(np.stack(found), np.shape(b))


def _check_square(a: Any) -> None:
    if a.shape[0] != a.shape[1]:
        raise np.linalg.LinAlgError(f"a square matrix is needed, not one of shape {a.shape}")


def _eliminated(rows: Any) -> tuple[Any, Any]:
    """Return the rows of a linear system in upper triangular form, and the sign of the row swaps.

    Pivots follow the values. In a trace that is to be compiled the kernel chooses them, by selects that about double
    its operations. For SymPy expressions the diagonal is used.
    """
    n = len(rows)
    rows, sign = rows.copy(), 1
    for k in range(n - 1):
        pivot = k + _pivot(rows[k:, k])
        if pivot != k:
            rows[[k, pivot]] = rows[[pivot, k]]
            sign = -sign
        if _is_compiled(rows):
            sign = _choose_pivot(rows, k, sign)
        for i in range(k + 1, n):
            factor = rows[i, k] / rows[k, k]
            rows[i, k + 1 :] = rows[i, k + 1 :] - factor * rows[k, k + 1 :]
    return rows, sign


def _is_compiled(rows: Any) -> bool:
    """Whether an array belongs to a trace of its own, whose inputs are symbols that will have numbers."""
    scope = rows.scope
    while scope.parent is not None:
        scope = scope.parent
    return any(node in scope.graph.atoms for node in scope.parameters)


def _choose_pivot(rows: Any, k: int, sign: Any) -> Any:
    """Move the row with the largest entry in column k to row k, by selects; return the sign of all swaps."""
    for i in range(k + 1, len(rows)):
        if constant(rows.scope.graph, rows[i, k].node) == 0:
            continue
        larger = np.abs(rows[i, k]) > np.abs(rows[k, k])
        upper, lower = rows[k, k:].copy(), rows[i, k:].copy()
        rows[k, k:], rows[i, k:] = np.where(larger, lower, upper), np.where(larger, upper, lower)
        sign = np.where(larger, -sign, sign)
    return sign


def _pivot(column: Any) -> int:
    """Position of the entry of largest value; of the first that is no constant zero when values are symbolic."""
    try:
        return int(np.argmax(np.abs(values_of(column.scope, column.nodes).astype(float))))
    except TraceError:
        known = [constant(column.scope.graph, node) for node in column.nodes.tolist()]
        return next(k for k, value in enumerate(known) if value != 0)


@implements(np.linalg.matrix_power)
def matrix_power(a: Any, n: int) -> Any:
    """The n-th power of a matrix by repeated squaring."""
    if n < 0:
        a, n = inv(a), -n
    if n == 0:
        return np.broadcast_to(np.eye(a.shape[-1]), a.shape) + np.zeros_like(a)
    result = None
    while n:
        if n & 1:
            result = a if result is None else result @ a
        a, n = a @ a if n > 1 else a, n >> 1
    return result


@implements(np.linalg.multi_dot)
def multi_dot(arrays: Any, *, out: Any = None) -> Any:
    """The product of several matrices, from the left."""
    made = arrays[0]
    for matrix in arrays[1:]:
        made = np.dot(made, matrix)
    return made


@implements(np.linalg.cholesky)
def cholesky(a: Any, /, *, upper: bool = False) -> Any:
    """The lower triangular factor of a positive definite matrix."""
    a = traced(a)
    if a.ndim != 2:
        raise TraceError("np.linalg.cholesky of a stack", where=user_place(), why="one matrix at a time", do="loop")
    n = a.shape[0]
    lower = np.zeros_like(a)
    for i in range(n):
        for j in range(i + 1):
            rest = a[i, j]
            for k in range(j):
                rest = rest - lower[i, k] * lower[j, k]
            lower[i, j] = np.sqrt(rest) if i == j else rest / lower[j, j]
    return lower.T if upper else lower
