"""Record which transform made a function, and transforms in the code of a function, for `compile`.

A function here returns the result of a transform, or None where the transform has to be traced operation by operation.
A record is stored with the function object itself: `functools.wraps` would copy it to other functions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import factorial
from typing import Any, Literal

import symad.tracing.values.containers as containers
from codegen.ir.sparsity import Format
from codegen.records import dataclass
from symad.derivatives.selection import FIRST, Argnums, Selection
from symad.tracing.calling.function_names import argument_names
from symad.tracing.calling.scope import innermost_scope
from symad.tracing.control.derivative_blocks import Inner, Taken, inner_function
from symad.tracing.values.node_trees import Tree
from symad.tracing.values.sparse_matrix import SparseMatrix, Triangle

Function = Callable[..., Any]

HIGHEST = 3  # order of derivatives that are pushed forward one after the other


def gradient(chosen: Selection) -> tuple[Any, Any] | None:
    """Return the value of a scalar function and its gradients, a tuple."""
    inner = inner_function(chosen.function, chosen.arguments, chosen.names)
    taken = inner and _taken(inner, "gradient")
    if not inner or not taken:
        return None
    return _refilled(inner.result, taken.arrays[:1]), _refilled(inner.parameters, taken.arrays[1:])


def pushforward(f: Function, primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Any, Any] | None:
    """Return the value of a function and its derivative along tangents."""
    image = along(f, primals, tangents, 1)
    return (image[0], image[1]) if image else None


def along(
    f: Function, primals: tuple[Any, ...], tangents: tuple[Any, ...], order: int, names: tuple[str, ...] | None = None
) -> list[Any] | None:
    """Return the derivatives of orders 0, 1, ... of a function along tangents."""
    if not 1 <= order <= HIGHEST or not _alike(primals, tangents):
        return None
    inner = inner_function(f, primals, names or argument_names(f, len(primals)), tangents)
    seeds = tuple(containers.flatten(tangents)[0]) * order
    taken = inner and _taken(inner, "directional derivatives", seeds, order=order)
    if not inner or not taken:
        return None
    width = len(inner.result.arrays)
    return [_refilled(inner.result, taken.arrays[k * width : (k + 1) * width]) for k in range(order + 1)]


def coefficients(
    f: Function, primals: tuple[Any, ...], tangents: tuple[Any, ...], order: int
) -> tuple[Any, ...] | None:
    """Return the Taylor coefficients of a function along tangents."""
    derivatives = along(f, primals, tangents, order)
    if derivatives is None:
        return None
    return tuple(_times(1 / factorial(k), value) if k > 1 else value for k, value in enumerate(derivatives))


def _times(factor: float, value: Any) -> Any:
    leaves, structure = containers.flatten(value)
    return containers.unflatten(structure, [factor * leaf for leaf in leaves])


def matrix(chosen: Selection, kind: str, sparse: bool | Triangle, format: Format) -> Any:
    """Return the Jacobian or Hessian of one array in one array."""
    if chosen.several or not containers.is_leaf(chosen.arguments[0]):
        return None
    inner = inner_function(chosen.function, chosen.arguments, chosen.names)
    if inner is None:
        return None
    if not containers.is_leaf(containers.unflatten(inner.result.structure, inner.result.arrays)):
        inner.put_back()
        return None
    taken = _taken(inner, kind, sparse=sparse, format=format)
    if taken is None:
        return None
    (data,), (pattern,) = taken.arrays, taken.patterns
    return data if pattern is None else SparseMatrix(data, pattern)


@dataclass(frozen=True)
class InnerMap:
    """The pushforward or pullback of a function at traced values; called in another scope, it is made there anew."""

    inner: Inner
    kind: str
    anew: Callable[[], Function]

    def __call__(self, *values: Any) -> Any:
        """Return the image of tangents (one argument for each primal) or of one cotangent."""
        self.inner.scope.check_open()
        image = self._image(values) if innermost_scope() is self.inner.scope else None
        return self.anew()(*values) if image is None else image

    def _image(self, values: tuple[Any, ...]) -> Any:
        source, target = self.inner.parameters, self.inner.result
        seed: Any = values
        if self.kind == "pullback":
            source, target, seed = target, source, values[0] if len(values) == 1 else None
        if not _fits(source, seed):
            return None
        taken = self.inner.derivative(self.kind, tuple(containers.flatten(seed)[0]))
        return taken and _refilled(target, taken.arrays[-len(target.arrays) :])


def linear_map(
    f: Function, primals: tuple[Any, ...], kind: str, anew: Callable[[], Function]
) -> tuple[Any, InnerMap] | None:
    """Return the value of a function, and its pushforward or pullback; `anew` makes that operation by operation."""
    inner = inner_function(f, primals, argument_names(f, len(primals)))
    taken = inner and _taken(inner, "value")
    if not inner or not taken:
        return None
    return _refilled(inner.result, taken.arrays), InnerMap(inner, kind, anew)


def _taken(inner: Inner, kind: str, seeds: tuple[Any, ...] = (), **options: Any) -> Taken | None:
    taken = inner.derivative(kind, seeds, **options)
    if taken is None:
        inner.put_back()
    return taken


def _fits(tree: Tree, values: Any) -> bool:
    leaves, structure = containers.flatten(values)
    return bool(structure == tree.structure) and list(map(containers.shape_of, leaves)) == tree.shapes


def _alike(values: Any, others: Any) -> bool:
    (leaves, structure), (those, other) = containers.flatten(values), containers.flatten(others)
    return bool(structure == other) and list(map(containers.shape_of, leaves)) == list(map(containers.shape_of, those))


def _refilled(tree: Tree, arrays: Sequence[Any]) -> Any:
    return containers.unflatten(tree.structure, arrays)


@dataclass(frozen=True)
class MatrixColumns:
    """How one column of a matrix is computed: `pushforward(args, seed)`, the seed shaped as argument `argument`."""

    pushforward: Callable[[tuple[Any, ...], Any], Any]
    argument: int


@dataclass(frozen=True)
class TransformRecord:
    """A transform of `function` in arguments `argnums`: the layout of its matrix, and the pushforward of its columns.

    Only a dense matrix in one argument has columns.
    """

    transform: Literal["value and gradient", "gradient", "derivative", "Jacobian", "Hessian"]
    function: Function
    argnums: Argnums = FIRST
    sparse: bool | Triangle = False
    format: Format = "coo"
    columns: MatrixColumns | None = None


def noted(function: Function, recipe: TransformRecord) -> Function:
    """Return a function with its recipe noted on it, and the function that it was made of."""
    function.__recipe__, function.__wrapped__ = recipe, recipe.function  # type: ignore[attr-defined]
    return function


def transform_of(function: Function) -> TransformRecord | None:
    """Return how a transform made this very function, None for any other function, also one that wraps it.

    >>> from functools import wraps
    >>> f = noted(lambda x: x, TransformRecord("gradient", abs))
    >>> transform_of(f).transform, transform_of(wraps(f)(lambda x: 2 * x))
    ('gradient', None)
    """
    recipe: TransformRecord | None = getattr(function, "__recipe__", None)
    is_its_own = recipe is not None and getattr(function, "__wrapped__", None) is recipe.function
    return recipe if is_its_own else None
