"""Dense linear algebra written out: det, solve and inv by elimination with pivots, cholesky."""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np
import numpy.typing as npt

import symad.tracing.values.node_arrays as node_arrays
from symad.errors import LimitError, TraceError
from symad.graph.array_operands import Question
from symad.tracing.calling.handlers import is_caught
from symad.tracing.calling.recorded_errors import discarding_recorded_errors
from symad.tracing.calling.scope import Scope
from symad.tracing.calling.user_place import user_place
from symad.tracing.numpy.reduce import is_traced, together, traced
from symad.tracing.numpy.registry import implements
from symad.tracing.values.array import wrap
from symad.tracing.values.complex_points import check_real
from symad.tracing.values.constant_nodes import constant
from symad.tracing.values.known_numbers import reaches, values_of

LARGEST = 100  # rows of a matrix that is written out: n**3 / 3 operations
LOOPED = 10  # rows from which on the matrix of a function that is compiled is factorized as a whole
TRIANGULAR = 24  # rows of such a matrix that is or becomes a triangle, which has fewer operations
_LARGEST_LOOPED = 320  # rows of such a matrix whose operations are written down one by one
FACTORED = 1000  # rows of an ordinary matrix that is factorized while tracing, which takes half a second
FACTORIZED = 4  # rows from which on the matrix of a function that is called on numbers is factorized by NumPy
_LARGEST_BY_MINORS = 10  # rows of a matrix with a zero pivot whose determinant is expanded: n * 2**(n - 1) operations

_SLOGDET_RESULT = type(np.linalg.slogdet(np.eye(1)))  # NumPy's named tuple has no public name


def _det_one(a: Any) -> Any:
    """The determinant: cofactors up to 3x3, elimination beyond."""
    _check("det", a)
    if (writer := _writer_of_determinant(a)) is not None:
        return wrap(writer.determinant(a.nodes), a.scope)
    if not len(a):
        return 1.0  # the empty product, as NumPy has it
    if len(a) <= 3:
        return _by_minors(a)
    try:
        reduced, sign = _eliminated(a)
    except np.linalg.LinAlgError:
        return _by_minors(a)
    product = reduce(operator.mul, np.diagonal(reduced))
    return product if isinstance(sign, int) and sign == 1 else product * sign


def _writer_of_determinant(a: Any) -> Any:
    """Return what carries it out on the whole matrix; numbers whose determinant is 0 are expanded, or refused."""
    writer = matrix_writer(a)
    is_known = writer is not None and writer.on_numbers
    is_zero = is_known and not values_of(a.scope, a.nodes, lambda matrix: np.linalg.slogdet(matrix)[0])
    return None if is_zero else writer


def _by_minors(a: Any) -> Any:
    """Return the determinant by expansion along rows, each minor made once: no division, so no pivot."""
    n = len(a)
    if n > _LARGEST_BY_MINORS:
        raise TraceError(
            f"np.linalg.det of a singular {n} x {n} matrix",
            where=user_place(),
            why=f"elimination meets a zero pivot, and an expansion by minors is made up to {_LARGEST_BY_MINORS} rows",
        )
    minors: dict[tuple[int, ...], Any] = {(k,): a[0, k] for k in range(n)}
    for row in range(1, n):
        larger: dict[tuple[int, ...], Any] = {}
        for columns, minor in minors.items():
            for k in sorted(set(range(n)) - set(columns)):
                after = sum(column > k for column in columns)
                term, key = a[row, k] * minor, tuple(sorted((*columns, k)))
                term = -term if after % 2 else term
                larger[key] = larger[key] + term if key in larger else term
        minors = larger
    return minors[tuple(range(n))]


@implements(np.linalg.slogdet)
def slogdet(a: Any) -> Any:
    """Sign and logarithm of the determinant; beyond 3x3 as a sum of logarithms, which does not overflow."""
    a = traced(a)
    if a.ndim == 2:
        return _SLOGDET_RESULT(*_slogdet_one(a))
    parts = [np.stack(part) for part in zip(*map(_slogdet_one, _matrices(a)), strict=True)]
    return _SLOGDET_RESULT(*(np.reshape(part, a.shape[:-2]) for part in parts))


def _slogdet_one(a: Any) -> tuple[Any, Any]:
    _check("slogdet", a)
    if (writer := _writer_of_determinant(a)) is not None:
        logarithm, sign = writer.signed_log_determinant(a.nodes)
        return wrap(sign, a.scope), wrap(logarithm, a.scope)
    a, scale = scaled(a) if len(a) > 1 else (a, 1)
    try:
        reduced, sign = _eliminated(a) if len(a) > 3 else (None, 1)
    except np.linalg.LinAlgError:
        reduced = None
    shift = len(a) * np.log(scale) if is_traced(scale) else 0
    if reduced is None:
        value = _det_one(a)
        return np.sign(value), np.log(np.abs(value)) + shift
    diagonal = np.diagonal(reduced)
    return np.prod(np.sign(diagonal)) * sign, np.sum(np.log(np.abs(diagonal))) + shift


def scaled(a: Any) -> tuple[Any, Any]:
    """Return a matrix over the power of two at its largest entry, and that power: a number without a derivative.

    So scaled, products neither over- nor underflow, and nothing is rounded. SymPy expressions stay as they are.
    """
    if _compiled(a) is None and known_values(a, np.size) is None:
        return a, 1
    exponent = np.floor(np.log2(np.max(np.abs(a))))
    exponent = np.where(np.isfinite(exponent), np.clip(exponent, -1000.0, 1000.0), 0.0)
    return a * 2.0**-exponent, 2.0**exponent


implements(np.linalg.det)(lambda a: per_matrix(_det_one, traced(a)))
implements(np.linalg.inv)(lambda a: per_matrix(lambda m: _solve_one(m, np.eye(len(m)), "inv"), traced(a)))


@implements(np.linalg.solve)
def solve(a: Any, b: Any) -> Any:
    """The solution of a x = b by elimination with partial pivoting (see `_eliminated`); b is a vector if it is 1-D."""
    if isinstance(a, np.ndarray) and not is_traced(a) and a.dtype.kind in "fiub":
        b = traced(b)
    else:
        a, b = together(a, b)
    if b.ndim == 1:
        return per_matrix(lambda m: _solve_one(m, b), a)
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    if not batch:
        return _solve_one(a, b)
    systems, right = np.broadcast_to(a, batch + a.shape[-2:]), np.broadcast_to(b, batch + b.shape[-2:])
    solutions = [_solve_one(m, r) for m, r in zip(_matrices(systems), _matrices(right), strict=True)]
    return np.reshape(np.stack(solutions), right.shape)


@implements(np.linalg.tensorsolve)
def tensorsolve(a: Any, b: Any, axes: Any = None) -> Any:
    """The solution x of tensordot(a, x, x.ndim) = b."""
    a, b = together(a, b)
    if axes is not None:
        a = np.moveaxis(a, axes, range(a.ndim - len(axes), a.ndim))
    shape = a.shape[b.ndim :]
    count = int(np.prod(shape, dtype=int))
    return np.reshape(solve(np.reshape(a, (-1, count)), np.ravel(b)), shape)


def _matrices(a: Any) -> Any:
    return np.reshape(a, (-1, *a.shape[-2:]))


def per_matrix(function: Callable[[Any], Any], a: Any) -> Any:
    """Return function(matrix), for every matrix of a stack."""
    if a.ndim < 2:
        raise np.linalg.LinAlgError(f"a matrix or a stack of them is needed, not an array of shape {a.shape}")
    if a.ndim == 2:
        return function(a)
    results = np.stack([function(m) for m in _matrices(a)])
    return np.reshape(results, a.shape[:-2] + results.shape[1:])


def _solve_one(a: Any, b: Any, name: str = "solve") -> Any:
    n = len(a)
    _check(name, a)
    if len(b) != n:
        raise ValueError(f"np.linalg.solve: a matrix of shape {a.shape} and a right-hand side of shape {b.shape}")
    writer = matrix_writer(a, b)
    if not is_traced(a) and not np.linalg.slogdet(a)[0]:  # as NumPy finds it: elimination rounds in another order
        raise np.linalg.LinAlgError("Singular matrix")
    if not is_traced(a) and (writer is None or (n <= FACTORED and not writer.on_numbers)):
        return _solve_ordinary(a, b)
    if writer is not None:
        a, b = together(a, b)
        solution = wrap(writer.solution(a.nodes, b.nodes.reshape(n, -1)).reshape(b.shape), a.scope)
        return _raising_where_caught(solution, a, "Singular matrix")
    if not n:
        return b
    known_values(a, np.linalg.inv)  # which raises an error where it meets a pivot of zero, as NumPy's solve does
    rows, _ = _eliminated(np.concatenate([a, np.reshape(b, (n, -1))], axis=1))
    if _pivot(rows[n - 1 :, n - 1])[1]:
        raise np.linalg.LinAlgError("Singular matrix")
    if _compiled(rows) is not None:
        for k in range(n):  # a kernel has NaN where NumPy raises an error, and NaN are its derivatives
            rows[k, k] = np.where(rows[k, k] == 0, np.nan * rows[k, k], rows[k, k])
    return _raising_where_caught(np.reshape(back_substituted(rows), np.shape(b)), a, "Singular matrix")


def _raising_where_caught(result: Any, given: Any, message: str) -> Any:
    """Return a result, or raise NumPy's error on a path of its own if a handler of the user's is around.

    The result is NaN where NumPy raises an error.
    """
    followed = is_traced(result) and result.scope.deciding() is not None and is_caught()
    if followed and np.any(np.isnan(result)) & np.all(np.isfinite(given)):
        raise np.linalg.LinAlgError(message)
    return result


def matrix_writer(a: Any, *others: Any, least: int | None = None) -> Any:
    """Return what carries out operations on a whole matrix; None where it is small, or written out.

    On numbers it is NumPy that does so; `least` has the rows from which on those of loops are carried out.
    """
    scopes = [array.scope for array in (a, *others) if is_traced(array)]
    writer = node_arrays.loops_on(scopes[0].graph) if scopes else None
    if writer is None:
        return None
    smallest = FACTORIZED if writer.on_numbers else LOOPED if least is None else least
    return writer if len(a) >= smallest else None


def _solve_ordinary(a: Any, b: Any) -> Any:
    """Return the solution for an ordinary matrix: only what is done to the traced right-hand side is written out."""
    factors, order = _factorized(a)
    if len(a) >= TRIANGULAR and np.count_nonzero(factors) >= TRIANGULAR**2:
        right = b[order].reshape(len(a), -1)
        lower, upper = np.tril(factors, -1) + np.eye(len(a)), np.triu(factors)
        forward = substituted(*together(lower, right), turned=False)
        return substituted(*together(upper.T, forward), turned=True).reshape(b.shape)
    b = b[order]
    for k in range(len(a)):
        below = k + 1 + np.flatnonzero(factors[k + 1 :, k])
        b[below] = b[below] - np.multiply.outer(factors[below, k], b[k])
    for k in reversed(range(len(a))):
        b[k] = b[k] / factors[k, k]
        above = np.flatnonzero(factors[:k, k])
        b[above] = b[above] - np.multiply.outer(factors[above, k], b[k])
    return b


def _factorized(a: npt.NDArray[np.float64]) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.intp]]:
    """Return the factors of a matrix in one, the lower one without its diagonal of 1, and the order of its rows."""
    a, order = a.astype(np.float64), np.arange(len(a))
    for k in range(len(a)):
        place = k + int(np.argmax(np.abs(a[k:, k])))
        if a[place, k] == 0:
            raise np.linalg.LinAlgError("Singular matrix")
        a[[k, place]], order[[k, place]] = a[[place, k]], order[[place, k]]
        below = k + 1 + np.flatnonzero(a[k + 1 :, k])
        a[below, k] = a[below, k] / a[k, k]
        a[below, k + 1 :] -= np.multiply.outer(a[below, k], a[k, k + 1 :])
    return a, order


def back_substituted(rows: Any) -> Any:
    """Return the solution of an upper triangular system, given with its right-hand sides behind it."""
    n = len(rows)
    solution: list[Any] = [None] * n
    for i in reversed(range(n)):
        rest = rows[i, n:]
        for j in range(i + 1, n):
            rest = rest - rows[i, j] * solution[j]
        solution[i] = rest / rows[i, i]
    return np.stack(solution)


def substituted(a: Any, right: Any, *, turned: bool, least: int | None = None) -> Any:
    """Return the solutions of systems of the lower triangle of a matrix, or of its transposed one."""
    n, known = len(a), known_values(np.diagonal(a), np.flatnonzero)
    if known is not None and len(known) < n:
        place = next(k for k in range(n) if k not in known)
        raise np.linalg.LinAlgError(f"singular matrix: resolution failed at diagonal {place}")
    if known is None and a.scope.deciding() is not None and is_caught() and np.any(np.diagonal(a) == 0):
        raise np.linalg.LinAlgError("singular matrix: resolution failed")
    if (writer := matrix_writer(a, right, least=TRIANGULAR if least is None else least)) is not None:
        return wrap(writer.triangular(a.nodes, right.nodes, turned), a.scope)
    check_size("solve_triangular", a)
    lower = np.tril(a)
    if turned:
        return back_substituted(np.concatenate([lower.T, right], axis=1))
    return back_substituted(np.concatenate([lower[::-1, ::-1], right[::-1]], axis=1))[::-1] if n else right


def _check(name: str, a: Any) -> None:
    """Raise LinAlgError unless a matrix is square, and LimitError when it is too large to be written out."""
    if a.shape[0] != a.shape[1]:
        raise np.linalg.LinAlgError(f"a square matrix is needed, not one of shape {a.shape}")
    if matrix_writer(a) is None:
        check_size(name, a)


def check_size(name: str, a: Any) -> None:
    """Raise LimitError for a matrix that is too large to be written out."""
    writer = matrix_writer(a)
    largest = LARGEST if writer is None or writer.on_numbers else _LARGEST_LOOPED
    if is_traced(a) and max(a.shape) > largest:
        raise LimitError(
            f"np.linalg.{name} of a traced {a.shape[0]} x {a.shape[1]} matrix",
            where=user_place(),
            why=f"it is written out in scalar operations, about n**3 / 3 of them; the limit is n = {largest}",
            do="use the structure of the matrix (blocks, bands), or write the derivative of the solution by hand",
        )


def _eliminated(rows: Any) -> tuple[Any, Any]:
    """Return the rows of a linear system in upper triangular form, and the sign of the row swaps.

    Pivots follow the values. In a trace that is to be compiled the kernel chooses them, by selects that about double
    its operations. For SymPy expressions the diagonal is used. LinAlgError for a pivot (but the last) of value zero.

    Sums of products are subtracted, as in LAPACK's unblocked LU: an exactly singular matrix then has a pivot of exactly
    0 more often than where each product is subtracted by itself.
    """
    n = len(rows)
    rows, sign = rows.copy(), 1
    for k in range(n):
        _subtract_products(rows[k:, k], rows[k:, :k], rows[:k, k])
        if k < n - 1:
            place, singular = _pivot(rows[k:, k])
            if singular:
                raise np.linalg.LinAlgError("Singular matrix")
            if place:
                rows[[k, k + place]] = rows[[k + place, k]]
                sign = -sign
            if _compiled(rows) is not None:
                sign = _choose_pivot(rows, k, sign)
        _subtract_products(rows[k, k + 1 :], rows[k, :k], rows[:k, k + 1 :].T)
        rows[k + 1 :, k] = rows[k + 1 :, k] / rows[k, k]
    return rows, sign


def _subtract_products(target: Any, left: Any, right: Any) -> None:
    """Subtract the sum of products left * right from an array in place: the sum first, as LAPACK does."""
    if left.shape[-1]:
        products = [left[..., k] * right[..., k] for k in range(left.shape[-1])]
        target[...] = target - reduce(operator.add, products)


def _compiled(rows: Any) -> Scope | None:
    """Return the scope of a trace of its own, whose inputs are symbols that will have numbers; else None."""
    *_, root = rows.scope.chain()
    return root if any(node in root.graph.atoms for node in root.parameters) else None


def _choose_pivot(rows: Any, k: int, sign: Any) -> Any:
    """Move the row with the largest entry in column k to row k, by selects; return the sign of all swaps."""
    for i in range(k + 1, len(rows)):
        if constant(rows.scope.graph, rows[i, k].node) == 0:
            continue
        larger = np.abs(rows[i, k]) > np.abs(rows[k, k])
        upper, lower = rows[k].copy(), rows[i].copy()
        rows[k], rows[i] = np.where(larger, lower, upper), np.where(larger, upper, lower)
        sign = np.where(larger, -sign, sign)
    return sign


def _pivot(column: Any) -> tuple[int, bool]:
    """Return the place of the entry of largest value, and whether it is zero.

    For symbolic values it is the first entry that is no constant zero.
    """
    known = known_values(column, _largest)
    if known is not None:
        return int(known[0]), bool(known[1])
    constants = [constant(column.scope.graph, node) for node in column.nodes.tolist()]
    return next((k for k, value in enumerate(constants) if value != 0), 0), False


def _largest(column: Any) -> list[int]:
    """Return the place of the number of largest value, and whether it is zero."""
    place = int(np.argmax(np.abs(column)))
    return [place, int(column[place] == 0)]


def known_values(array: Any, question: Question | None = None) -> Any:
    """Return the values of a traced array as floats, or the answer to a question; None when they are symbolic."""
    root = _compiled(array)
    if root is not None and reaches(root.graph, array.nodes, root.parameters, root.reaching):
        return None  # known without computing what the others are
    try:
        with discarding_recorded_errors():
            return values_of(array.scope, array.nodes, question).astype(float)
    except TraceError:
        return None


@implements(np.linalg.cholesky)
def cholesky(a: Any, /, *, upper: bool = False) -> Any:
    """The triangular factor of a positive definite matrix, of which one triangle is read."""
    check_real("np.linalg.cholesky")
    a = np.matrix_transpose(traced(a)) if upper else traced(a)
    lower = _raising_where_caught(per_matrix(_cholesky_one, a), a, "Matrix is not positive definite")
    return np.matrix_transpose(lower) if upper else lower


def _cholesky_one(a: Any) -> Any:
    _check("cholesky", a)
    if (writer := matrix_writer(a, least=TRIANGULAR)) is not None:
        return wrap(writer.cholesky(a.nodes), a.scope)
    lower = np.zeros_like(a)
    for i in range(len(a)):
        for j in range(i + 1):
            rest = a[i, j]
            for k in range(j):
                rest = rest - lower[i, k] * lower[j, k]
            lower[i, j] = rest / lower[j, j] if j < i else rest
        if known_values(lower[i, i : i + 1], lambda pivot: pivot[0] <= 0):  # NaN comes out, as in NumPy and in kernels
            raise np.linalg.LinAlgError("Matrix is not positive definite")
        lower[i, i] = np.sqrt(lower[i, i])
    last = lower[-1:, -1:]
    if last.size and known_values(last, np.size) is None:  # NaN everywhere, where NumPy raises an error
        lower = lower + np.tril(np.broadcast_to(0.0 / last, lower.shape))
    return lower
