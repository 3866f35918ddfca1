"""What a body gets, pieces of arrays along an axis and carries, and what it returns: structure, sums and stacks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import sympy as sp

import symad.tracing.values.containers as containers
from codegen.expressions.sympy_in import entries
from codegen.machine.calls.arguments import has_rules, refuse_rules
from codegen.records import dataclass
from symad.tracing.calling.function_names import name_of
from symad.tracing.calling.scope import open_scope
from symad.tracing.calling.user_place import refusal
from symad.tracing.control.paths import MAX_PATHS, Paths
from symad.tracing.values.array import Array, wrap
from symad.tracing.values.constant_nodes import as_number, is_boolean
from symad.tracing.values.node_arrays import elementwise, has_truths, homogeneous
from symad.tracing.values.node_operands import has_own_rules, holds_traced, nodes_of, scope_of
from symad.tracing.values.node_trees import Tree, lift, lift_result, object_array, paths_of
from symad.tracing.values.scalar import Scalar
from symad.tracing.values.traced import Traced


class FlatContainer(Tree):
    """A container of numbers as leaves and a structure."""

    arrays: list[Any]

    def __str__(self) -> str:
        form = str(self.structure).removeprefix("PyTreeSpec(").removesuffix(")").removesuffix(", NoneIsLeaf")
        return f"{form.split(', namespace=')[0]} of shapes {', '.join(map(str, self.shapes)) or 'none'}"

    @property
    def whole(self) -> Any:
        """The container, with NumPy's scalars as Python's."""
        return self.filled([leaf.item() if isinstance(leaf, np.generic) else leaf for leaf in self.arrays])


def flat_result(f: Callable[..., Any], value: Any, *, may_be_none: bool = False) -> FlatContainer:
    """Flatten the result of a body; ArgumentError for None and for a leaf that is no real number."""
    if value is None and not may_be_none:
        raise refusal(
            f"{name_of(f)} returned None",
            why="a body has to return the result of its repetition",
            do="return it; a function without a return statement returns None",
        )
    leaves, structure = containers.flatten(value)
    for leaf in leaves:
        if not is_real(leaf):
            raise refusal(
                f"{name_of(f)} returned a value of type {type(leaf).__name__}",
                why="it is no real number or array of them",
                do="return numbers, arrays, or containers of them",
            )
    return FlatContainer(structure, leaves)


def is_real(leaf: Any) -> bool:
    """Whether a leaf is a real number, an expression, a traced value, or an array of them."""
    if isinstance(leaf, Traced | sp.Expr | sp.logic.boolalg.Boolean | Fraction | sp.MatrixBase | sp.NDimArray):
        return True
    if has_rules(type(leaf)) or has_own_rules(leaf) or not isinstance(leaf, np.ndarray | np.generic | int | float):
        return False
    return np.asarray(leaf).dtype.kind in "biufO"


def is_truth(leaf: Any) -> bool:
    """Whether a leaf is a truth value, or an array of them."""
    if isinstance(leaf, Scalar):
        return is_boolean(leaf.scope.graph, leaf.node)
    if isinstance(leaf, Array):
        return has_truths(leaf.scope.graph, leaf.nodes)
    if isinstance(leaf, sp.Basic):
        return isinstance(leaf, sp.logic.boolalg.Boolean) and not isinstance(leaf, sp.Symbol)
    return isinstance(leaf, bool | np.bool_) or (isinstance(leaf, np.ndarray) and leaf.dtype == bool)


def refuse_other_form(f: Callable[..., Any], result: FlatContainer, first: FlatContainer, k: int) -> None:
    """Raise ArgumentError where a repetition returned another structure or shape than the first one."""
    if not result.is_like(first):
        raise refusal(
            f"{name_of(f)} returned {result} in repetition {k}",
            why=f"in repetition 0 it returned {first}",
            do="return the same structure and shapes in every repetition",
        )


def added(first: FlatContainer, second: FlatContainer) -> FlatContainer:
    """Return the sums, leaf by leaf."""
    pairs = zip(first.arrays, second.arrays, strict=True)
    return FlatContainer(first.structure, [left + countable(right) for left, right in pairs])


def countable(leaf: Any) -> Any:
    """Return a leaf that can be added: truth values as 0 and 1, which NumPy would join by `or`."""
    if not is_truth(leaf):
        return leaf
    if isinstance(leaf, Traced):
        nodes = nodes_of(leaf, leaf.scope)
        return wrap(elementwise(leaf.scope.graph, as_number, nodes), leaf.scope)
    return sp.Piecewise((1, leaf), (0, True)) if isinstance(leaf, sp.Basic) else leaf + 0


def stacked(values: Sequence[Any], axis: int = 0) -> Any:
    """Return values of one shape (at least one) in an array with a new axis: plain, of SymPy objects, or traced."""
    if holds_traced(values):
        scope = scope_of(*values)
        return wrap(np.stack(homogeneous(scope.graph, [nodes_of(value, scope) for value in values]), axis), scope)
    if any(isinstance(value, sp.Basic | Fraction) for value in values):
        return object_array(values, (len(values),))
    return np.stack([np.asarray(value) for value in values], axis)


# ---- carries: one repetition hands them to the next; their structure, shapes and type stay the same


def carry_of(value: Any, source: str) -> FlatContainer:
    """Return a carry with integers as floats; ArgumentError for truth values and values that are no real numbers.

    >>> carry_of((1, np.arange(2)), "init").arrays
    [1.0, array([0., 1.])]
    """
    leaves, structure = containers.flatten(value)
    for leaf in leaves:
        if not is_real(leaf) or is_truth(leaf):
            raise refusal(
                f"{source} holds a {'truth value' if is_real(leaf) else f'value of type {type(leaf).__name__}'}",
                why="a carry holds real numbers, of one type in all repetitions",
                do="carry 1.0 and 0.0, and compare with > 0.5" if is_real(leaf) else "carry real numbers and arrays",
            )
    return FlatContainer(structure, [_promoted(leaf) for leaf in leaves])


def next_carry(f: Callable[..., Any], value: Any, before: FlatContainer) -> FlatContainer:
    """Return the carry that a body returned; ArgumentError where its structure, shape or type is another one."""
    carry = carry_of(value, f"the carry that {name_of(f)} returned")
    if not carry.is_like(before):
        raise refusal(
            f"{name_of(f)} was given the carry {before} and returned {carry}",
            why="what a repetition returns is what the next one gets",
            do="return a carry of the structure and shapes of init",
        )
    return carry


def _promoted(leaf: Any) -> Any:
    if isinstance(leaf, int | np.integer):
        return float(leaf)
    return leaf.astype(float) if type(leaf) is np.ndarray and leaf.dtype.kind in "iu" else leaf


@dataclass(frozen=True)
class Operands:
    """The arguments of a body: `leaves` have the repetitions as their first axis if `mapped`."""

    structure: Any
    leaves: tuple[Any, ...]
    mapped: tuple[bool, ...]
    count: int

    def row(self, k: int) -> Any:
        """Return the arguments of repetition k; arrays are copies, so that a body cannot write into its operands."""
        pairs = zip(self.leaves, self.mapped, strict=True)
        return containers.unflatten(self.structure, [_piece(leaf, k) if mapped else leaf for leaf, mapped in pairs])


def operands_of(arrays: Any, names: Sequence[str], axes: Sequence[int | None], count: int | None = None) -> Operands:
    """Return the operands with the axis of each leaf in front; ArgumentError for missing axes and different lengths.

    `count` is needed where no leaf is mapped.

    >>> operands_of((np.zeros((2, 3)), 1.0), ["x", "y"], [1, None]).row(0)
    (array([0., 0.]), 1.0)
    """
    leaves, structure = containers.flatten(arrays)
    moved = [
        leaf if axis is None else _axis_first(leaf, name, axis)
        for leaf, name, axis in zip(leaves, names, axes, strict=True)
    ]
    lengths = {name: leaf.shape[0] for name, leaf, axis in zip(names, moved, axes, strict=True) if axis is not None}
    if len(set(lengths.values()) | ({count} - {None})) > 1:
        raise refusal(
            "arrays of different lengths: " + ", ".join(f"{name} has {length}" for name, length in lengths.items()),
            why="repetition k takes piece k of each" + ("" if count is None else f", and there are to be {count}"),
        )
    repetitions = next(iter(lengths.values()), count)
    if repetitions is None:
        raise refusal("nothing to repeat over", do="pass at least one array")
    return Operands(structure, tuple(moved), tuple(axis is not None for axis in axes), repetitions)


def whole_number(value: Any, name: str) -> int:
    """Return a count as an int; ArgumentError for anything else, such as one that depends on a traced value."""
    if isinstance(value, int | np.integer | sp.Integer) and not isinstance(value, bool | Traced):
        return int(value)
    traced = isinstance(value, Traced)
    raise refusal(
        f"{name} is {'a traced value' if traced else f'{value!r}, of type {type(value).__name__}'}",
        why="how often a body is repeated is a whole number that is known while the function is traced",
        do="use while_loop with max_steps where it depends on a value" if traced else "pass an int",
    )


def _axis_first(leaf: Any, name: str, axis: int) -> Any:
    """Return a leaf as an array, plain or traced, with an axis moved to the front."""
    array = _as_array(leaf, name)
    if not -array.ndim <= axis < array.ndim:
        raise refusal(
            f"axis {axis} of {name}, which has shape {array.shape}",
            why="a scalar cannot be taken apart" if array.ndim == 0 else "there is no such axis",
            do="make an array of a list: np.array([...]), or np.stack of traced values" if array.ndim == 0 else "",
        )
    if isinstance(array, Array):
        return Array(np.moveaxis(array.nodes, axis, 0), array.scope)
    return np.moveaxis(array, axis, 0)


def _as_array(leaf: Any, name: str) -> Any:
    if isinstance(leaf, Traced):
        return leaf
    if isinstance(leaf, sp.MatrixBase | sp.NDimArray):
        return object_array(entries(leaf), tuple(leaf.shape))
    refuse_rules(leaf, name)
    array = object_array([leaf], ()) if isinstance(leaf, sp.Basic) else np.asarray(leaf)
    if array.dtype.kind not in "biufO" or has_own_rules(leaf):
        raise refusal(
            f"{name} is of type {type(leaf).__name__} ({array.dtype})",
            why="it is no array of real numbers",
            do="pass arrays of real numbers or expressions",
        )
    return array


def _piece(array: Any, k: int) -> Any:
    if isinstance(array, Array):
        return wrap(array.nodes[k].copy(), array.scope)
    piece = array[k]
    if isinstance(piece, np.ndarray):
        return piece.copy()
    return int(piece) if isinstance(piece, np.integer) else piece  # which is an index, and exact


def result_shapes(f: Callable[..., Any], operands: Operands, *before: Any, may_be_none: bool = False) -> Tree:
    """Return the tree of the result of `f(*before, *row)`; its nodes belong to a closed scope."""
    with open_scope() as scope:
        graph = scope.graph

        def symbols(shape: tuple[int, ...]) -> Any:
            nodes = [graph.own_leaf(sp.Dummy(real=True)) for _ in range(int(np.prod(shape, dtype=int)))]
            return wrap(np.array(nodes, dtype=np.int64).reshape(shape), scope)

        pairs = zip(operands.leaves, operands.mapped, strict=True)
        leaves = [symbols(leaf.shape[1:]) if mapped else leaf for leaf, mapped in pairs]
        row = containers.unflatten(operands.structure, leaves)
        scope.paths = paths = Paths(scope, MAX_PATHS, name_of(f))
        return paths.explore(
            lambda: f(*before, *row),
            lambda value: (
                lift(scope, value, paths_of((value,), ["result"]))
                if may_be_none
                else lift_result(scope, value, name_of(f))
            ),
        )
