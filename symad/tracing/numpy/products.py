"""dot, tensordot, einsum, kron, cross, norms. Sums are added from left to right."""

from __future__ import annotations

import math
import string
from collections.abc import Sequence
from typing import Any

import numpy as np

import symad.tracing.values.node_arrays as node_arrays
import symad.tracing.values.node_builders as op
from symad.graph.graph import Graph
from symad.tracing.numpy.own_source import own_source
from symad.tracing.numpy.reduce import delivered, together, traced
from symad.tracing.numpy.registry import implements
from symad.tracing.numpy.spectra import singular_condition
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


@implements(np.inner)
def inner(a: Any, b: Any, /) -> Any:
    """Sum of products over the last axes."""
    a, b = together(a, b)
    return np.multiply(a, b) if np.ndim(a) == 0 or np.ndim(b) == 0 else np.tensordot(a, b, axes=(-1, -1))[()]


@implements(np.vdot)
def vdot(a: Any, b: Any, /) -> Any:
    """The dot product of the flattened arrays."""
    check_real("np.vdot", "use np.dot, which takes no conjugates")
    return np.matmul(np.ravel(a), np.ravel(b))


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
    return np.moveaxis(np.stack(np.broadcast_arrays(*parts), axis=-1), -1, axisc)


_NORM = own_source(np.linalg.norm)
_ANALYTIC = "use np.sqrt(np.sum(x * x)), which is analytic"


@implements(np.linalg.norm)
def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    """A norm of vectors or matrices; a general one of vectors as a sum of powers."""
    check_real("np.linalg.norm", _ANALYTIC)
    is_general = isinstance(ord, int | float) and ord not in (0, 1, 2) and np.isfinite(ord)
    x = traced(x)
    if is_general and (x.ndim == 1 or (np.ndim(axis) == 0 and axis is not None)):
        return np.sum(np.abs(x) ** ord, axis=axis, keepdims=keepdims) ** (1.0 / ord)
    return _NORM(x, ord, axis, keepdims)


@implements(np.linalg.cond)
def cond(x: Any, p: Any = None) -> Any:
    """The condition number: norm(x) norm(inv(x)), in the 2-norm of singular values."""
    if p in (None, 2, -2):
        return singular_condition(x, p)
    return norm(x, p, (-2, -1)) * norm(np.linalg.inv(x), p, (-2, -1))
