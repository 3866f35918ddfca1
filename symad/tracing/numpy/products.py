"""dot, tensordot, einsum, kron, cross, norms. Sums are added from left to right."""

from __future__ import annotations

import math
import string
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple

import symad.tracing.values.node_arrays as node_arrays
import symad.tracing.values.node_builders as op
from symad.graph.graph import Graph
from symad.tracing.numpy.reduce import delivered, together, traced
from symad.tracing.numpy.registry import implements
from symad.tracing.numpy.spectra import singular_condition, singular_norm
from symad.tracing.values.array import wrap
from symad.tracing.values.complex_points import check_real
from symad.tracing.values.node_arrays import Nodes, elementwise
from symad.tracing.values.node_operands import nodes_of, scope_of

_LETTERS = string.ascii_letters

Lettered = tuple[str, Nodes]  # an array, and a letter for each of its axes


@implements(np.dot)
def dot(a: Any, b: Any, out: Any = None) -> Any:
    """The dot product: last axis of a with the second-to-last of b."""
    a, b = together(a, b)  # elements meet by their places, whatever labels they have
    if np.ndim(a) == 0 or np.ndim(b) == 0:
        return delivered(np.multiply(a, b), out)
    return delivered(np.matmul(a, b) if np.ndim(b) < 3 else np.tensordot(a, b, axes=(-1, -2)), out)


@implements(np.linalg.matmul)
def matmul(x1: Any, x2: Any, /) -> Any:
    """The matrix product x1 @ x2."""
    return np.matmul(x1, x2)


@implements(np.linalg.vecdot)
def vecdot(x1: Any, x2: Any, /, *, axis: int = -1) -> Any:
    """The dot product of vectors along an axis."""
    return np.vecdot(x1, x2, axis=axis)  # type: ignore[call-overload]


@implements(np.inner)
def inner(a: Any, b: Any, /) -> Any:
    """Sum of products over the last axes."""
    a, b = together(a, b)
    return np.multiply(a, b) if np.ndim(a) == 0 or np.ndim(b) == 0 else np.tensordot(a, b, axes=(-1, -1))


@implements(np.vdot)
def vdot(a: Any, b: Any, /) -> Any:
    """The dot product of the flattened arrays."""
    check_real("np.vdot", "use np.dot, which takes no conjugates")
    return np.matmul(np.ravel(a), np.ravel(b))


@implements(np.outer)
def outer(a: Any, b: Any, out: Any = None) -> Any:
    """Every element of a with every element of b."""
    return delivered(np.multiply.outer(np.ravel(traced(a)), np.ravel(b)), out)


@implements(np.linalg.outer)
def linalg_outer(x1: Any, x2: Any, /) -> Any:
    """Every element of the vector x1 with every element of the vector x2."""
    if np.ndim(x1) != 1 or np.ndim(x2) != 1:
        raise ValueError("np.linalg.outer takes two vectors")
    return outer(x1, x2)


@implements(np.kron)
def kron(a: Any, b: Any) -> Any:
    """The Kronecker product."""
    rank = max(np.ndim(a), np.ndim(b))
    left, right = (np.reshape(m, (1,) * (rank - np.ndim(m)) + np.shape(m)) for m in together(a, b))
    product = np.multiply.outer(left, right)
    order = [axis for k in range(rank) for axis in (k, k + rank)]
    sizes = [p * q for p, q in zip(left.shape, right.shape, strict=True)]
    return np.reshape(np.transpose(product, order), tuple(sizes))


@implements(np.tensordot, np.linalg.tensordot)
def tensordot(a: Any, b: Any, /, axes: Any = 2) -> Any:
    """Sum of products over the given axes."""
    a, b = together(a, b)
    over_a, over_b = (range(a.ndim - axes, a.ndim), range(axes)) if np.ndim(axes) == 0 else axes
    left = normalize_axis_tuple(np.atleast_1d(over_a).astype(int).tolist(), a.ndim)
    right = normalize_axis_tuple(np.atleast_1d(over_b).astype(int).tolist(), b.ndim)
    summed = [a.shape[k] for k in left]
    if summed != [b.shape[k] for k in right]:
        raise ValueError(f"np.tensordot: shapes {a.shape} and {b.shape} differ along the axes {left} and {right}")
    kept_a = [k for k in range(a.ndim) if k not in left]
    kept_b = [k for k in range(b.ndim) if k not in right]
    sizes_a, sizes_b = [a.shape[k] for k in kept_a], [b.shape[k] for k in kept_b]
    rows = np.reshape(np.transpose(a, (*kept_a, *left)), (math.prod(sizes_a), math.prod(summed)))
    columns = np.reshape(np.transpose(b, (*right, *kept_b)), (math.prod(summed), math.prod(sizes_b)))
    return np.reshape(rows @ columns, (*sizes_a, *sizes_b))


@implements(np.einsum)
def einsum(*operands: Any, **keywords: Any) -> Any:
    """Einstein summation, from the left: each product is summed as soon as a letter is used up."""
    node_arrays.require_float("np.einsum", keywords.get("dtype"))
    subscripts, values = (operands[0], operands[1:]) if isinstance(operands[0], str) else _lettered(*operands)
    scope = scope_of(*values)
    arrays = [nodes_of(value, scope) for value in values]
    terms, output = _letters(subscripts, [array.ndim for array in arrays])
    letters = "".join(dict.fromkeys(terms[0]))
    product = _spread(terms[0], letters, arrays[0])
    for k in range(1, len(terms)):
        needed = output + "".join(terms[k + 1 :])
        others = "".join(dict.fromkeys(terms[k]))
        right = others, _spread(terms[k], others, arrays[k])
        letters, product = _summed(scope.graph, *_multiplied(scope.graph, (letters, product), right, needed), needed)
    letters, product = _summed(scope.graph, letters, product, output)
    product = np.transpose(product, [letters.index(letter) for letter in output])
    return delivered(wrap(product, scope), keywords.get("out"))


def _lettered(*operands: Any) -> tuple[str, list[Any]]:
    """Return the letters and the arrays of the form einsum(a, [0, 1], b, [1, 2], [0, 2])."""

    def term(axes: Any) -> str:
        return "".join("..." if axis is ... else _LETTERS[int(axis)] for axis in axes)

    pairs, output = operands[: len(operands) // 2 * 2], operands[len(operands) // 2 * 2 :]
    letters = ",".join(map(term, pairs[1::2]))
    return letters + "".join("->" + term(axes) for axes in output), list(pairs[::2])


def _summed(graph: Graph, letters: str, product: Nodes, needed: str) -> tuple[str, Nodes]:
    """Sum over the letters that nothing needs any more; return the letters that are left, and the array."""
    axes = tuple(k for k, letter in enumerate(letters) if letter not in needed)
    kept = "".join(letter for letter in letters if letter in needed)
    start = None if product.size else graph.number(0)
    return kept, node_arrays.reduce(graph, op.add, product, axes, initial=start) if axes else product


def _multiplied(graph: Graph, left: Lettered, right: Lettered, needed: str) -> Lettered:
    """Return the product of two arrays, summed over what both have and nothing needs any more: stacks of matrices."""
    (letters, a), (others, b) = left, right
    both = [letter for letter in letters if letter in others]
    stack, inner = ("".join(letter for letter in both if (letter in needed) == kept) for kept in (True, False))
    if not inner or any(a.shape[letters.index(letter)] != b.shape[others.index(letter)] for letter in inner):
        union = letters + "".join(sorted(set(others) - set(letters)))
        return union, elementwise(graph, op.multiply, _spread(letters, union, a), _spread(others, union, b))
    rows, columns = ("".join(letter for letter in side if letter not in both) for side in (letters, others))
    a, b = _spread(letters, stack + rows + inner, a), _spread(others, stack + inner + columns, b)
    first, second, third = len(stack), len(stack + rows), len(stack + inner)
    product = node_arrays.matmul(
        graph,
        a.reshape(*a.shape[:first], math.prod(a.shape[first:second]), math.prod(a.shape[second:])),
        b.reshape(*b.shape[:first], math.prod(b.shape[first:third]), math.prod(b.shape[third:])),
    )
    shape = *product.shape[:first], *a.shape[first:second], *b.shape[third:]
    return stack + rows + columns, product.reshape(shape)


def _letters(subscripts: str, ranks: Sequence[int]) -> tuple[list[str], str]:
    """Return the letters of each operand and of the output; an ellipsis becomes capital Greek letters."""
    left, arrow, output = subscripts.replace(" ", "").partition("->")
    terms = left.split(",")
    bare = [term.replace("...", "") for term in (*terms, output)]
    if len(terms) != len(ranks) or not set(bare[-1]) <= set(left) or len(set(bare[-1])) < len(bare[-1]):
        raise ValueError(f"np.einsum: {subscripts!r} does not fit {len(ranks)} operands, or its output its inputs")
    for term, letters, rank in zip(terms, bare, ranks, strict=False):
        if rank < len(letters) or (rank > len(letters) and term == letters):
            raise ValueError(f"np.einsum: the operand of {rank} axes does not fit {term!r}")
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
    """The vector product of vectors of three components, or two: of two planar ones only the third component."""
    if axis is not None:
        axisa = axisb = axisc = axis
    u, v = together(a, b)
    u, v = np.moveaxis(u, axisa, 0), np.moveaxis(v, axisb, 0)
    if not {len(u), len(v)} <= {2, 3}:
        raise ValueError("incompatible dimensions for cross product (dimension must be 2 or 3)")
    third = u[0] * v[1] - u[1] * v[0]
    if len(u) == len(v) == 2:
        return third
    if len(u) == 2:
        parts = [u[1] * v[2], -(u[0] * v[2]), third]
    elif len(v) == 2:
        parts = [-(u[2] * v[1]), u[2] * v[0], third]
    else:
        parts = [u[1] * v[2] - u[2] * v[1], u[2] * v[0] - u[0] * v[2], third]
    return np.moveaxis(np.stack(np.broadcast_arrays(*parts)), 0, axisc)


@implements(np.linalg.cross)
def linalg_cross(x1: Any, x2: Any, /, *, axis: int = -1) -> Any:
    """The vector product of three-dimensional vectors along an axis."""
    if {np.shape(x1)[axis], np.shape(x2)[axis]} != {3}:
        raise ValueError("Both input arrays must be (arrays of) 3-dimensional vectors")
    return cross(x1, x2, axis=axis)


@implements(np.linalg.multi_dot)
def multi_dot(arrays: Any, *, out: Any = None) -> Any:
    """The product of several matrices, in the order that takes the fewest multiplications."""
    if len(arrays) < 2:
        raise ValueError("np.linalg.multi_dot takes two or more matrices")
    sizes = [np.shape(arrays[0])[0] if np.ndim(arrays[0]) > 1 else 1]
    sizes += [np.shape(array)[-1] if np.ndim(array) > 1 or array is arrays[0] else 1 for array in arrays]
    # best[i, j]: the multiplications of the product of arrays i to j, and after which of them it is split
    best: dict[tuple[int, int], tuple[int, int]] = {(k, k): (0, k) for k in range(len(arrays))}
    for length in range(1, len(arrays)):
        for i in range(len(arrays) - length):
            j = i + length
            costs = {k: best[i, k][0] + best[k + 1, j][0] + sizes[i] * sizes[k + 1] * sizes[j + 1] for k in range(i, j)}
            best[i, j] = min((cost, k) for k, cost in costs.items())

    def product(i: int, j: int) -> Any:
        split = best[i, j][1]
        return arrays[i] if i == j else np.dot(product(i, split), product(split + 1, j))

    return delivered(product(0, len(arrays) - 1), out)


_ANALYTIC = "use np.sqrt(np.sum(x * x)), which is analytic"


@implements(np.linalg.norm)
def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    """A vector norm (2, 1, inf, -inf, 0, p), the Frobenius norm, or a matrix norm by row or column sums."""
    check_real("np.linalg.norm", _ANALYTIC)
    x = traced(x)
    if axis is None and ord is None:
        value = _vector_norm(np.ravel(x), 2, 0, False)
        return np.reshape(value, (1,) * x.ndim) if keepdims else value
    axes = normalize_axis_tuple(range(x.ndim) if axis is None else axis, x.ndim)
    if len(axes) == 1:
        return _vector_norm(x, 2 if ord is None else ord, axes[0], keepdims)
    if len(axes) != 2:
        raise ValueError("Improper number of dimensions to norm.")
    return _matrix_norm(x, "fro" if ord is None else ord, axes, keepdims)


@implements(np.linalg.vector_norm)
def vector_norm(x: Any, /, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Any:
    """A vector norm over the given axes, or over all elements."""
    check_real("np.linalg.vector_norm", _ANALYTIC)
    x = traced(x)
    axes = normalize_axis_tuple(range(x.ndim) if axis is None else axis, x.ndim)
    kept = [k for k in range(x.ndim) if k not in axes]
    rows = np.reshape(np.transpose(x, [*kept, *axes]), [*(x.shape[k] for k in kept), -1])
    norms = _vector_norm(rows, ord, -1, False)
    return np.reshape(norms, [1 if k in axes else x.shape[k] for k in range(x.ndim)]) if keepdims else norms


@implements(np.linalg.matrix_norm)
def matrix_norm(x: Any, /, *, keepdims: bool = False, ord: Any = "fro") -> Any:
    """The norm of the matrices in the last two axes."""
    return norm(x, ord, (-2, -1), keepdims)


def _vector_norm(x: Any, ord: Any, axis: int, keepdims: bool) -> Any:
    if isinstance(ord, str):
        raise ValueError(f"Invalid norm order {ord!r} for vectors")
    if ord == 2:
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
    if ord in ("fro", "f"):
        return np.sqrt(np.sum(x * x, axis=axes, keepdims=keepdims))
    if ord in (2, -2, "nuc"):
        return singular_norm(x, ord, axes, keepdims)
    if ord not in (1, -1, np.inf, -np.inf):
        raise ValueError("Invalid norm order for matrices.")
    across, along = (0, 1) if abs(ord) == 1 else (1, 0)
    sums = np.sum(np.abs(x), axis=axes[across], keepdims=True)
    pick = np.max if ord > 0 else np.min
    norms = pick(sums, axis=axes[along], keepdims=True)
    return norms if keepdims else np.squeeze(norms, axis=axes)


@implements(np.linalg.cond)
def cond(x: Any, p: Any = None) -> Any:
    """The condition number: norm(x) norm(inv(x)), in the 2-norm of singular values."""
    if p in (None, 2, -2):
        return singular_condition(x, p)
    return norm(x, p, (-2, -1)) * norm(np.linalg.inv(x), p, (-2, -1))
