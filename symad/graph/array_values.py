"""Compute the numbers of nodes and of array elements, by one NumPy call for each array node.

Only numbers that are needed and not yet known are computed, in the order of the trace.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field, replace
from functools import partial, reduce
from typing import Any

import numpy as np
import sympy as sp
from numpy.typing import NDArray

from codegen.evaluation.column_functions import FUNCTIONS
from codegen.evaluation.interpret import FLOATS, carry_out, evaluate
from codegen.evaluation.matrix_numbers import existing_numbers
from codegen.limits import check
from codegen.records import dataclass
from symad.graph.absent_numbers import plus, present_where, settled, shares, there, times
from symad.graph.array_operands import ArrayNode, Nodes, OperandAccess, Question, spread
from symad.graph.graph import Graph

FEW_TERMS = 16  # of which the largest is found term by term,
MANY = 4096  # where there are so many in all
Values = dict[int, Any]
# An array node, the function that computes its flat numbers, and the operands that this reads
Step = tuple[ArrayNode, Callable[[Values], NDArray[Any]], tuple[OperandAccess, ...]]
Part = tuple[list[int], Step | None, list[int]]  # nodes, then an array node, and elements of it that nodes read


def values_of_nodes(graph: Graph, nodes: Sequence[int], values: Values) -> list[Any]:
    """Return the numbers of nodes; `values` (node -> number) is filled further.

    UnboundSymbolError for a symbol without a value.

    >>> graph = Graph()
    >>> x = graph.arrays.add("given", (2,), numbers=np.array([3.0, 4.0]))
    >>> (total,) = graph.arrays.add("sum", (1,), [x.reshape(2, 1)]).tolist()
    >>> values_of_nodes(graph, [graph.node(sp.Mul, total, total)], {})
    [49.0]
    """
    if graph.arrays.nodes:
        schedule(graph, nodes, (), values).carry_out(graph, values)
    numbers = evaluate(graph, nodes, values)
    if graph.arrays.asked is not None:
        graph.arrays.asked.append((np.array(nodes, dtype=np.int64), None, np.array(numbers)))
    return numbers


def values_of_array(graph: Graph, nodes: Nodes, values: Values, question: Question | None = None) -> NDArray[Any]:
    """Return the numbers of an array of nodes, float64 or bool, in its shape; the caller owns the array.

    With a question, return its answer for these numbers, which is all that the caller uses.
    """
    numbers = _values_of_array(graph, nodes, values)
    if question is not None:
        numbers = np.array(question(numbers))
    if graph.arrays.asked is not None:
        graph.arrays.asked.append((nodes.copy(), question, numbers.copy()))
    return numbers


def _values_of_array(graph: Graph, nodes: Nodes, values: Values) -> NDArray[Any]:
    if not graph.arrays.nodes or not nodes.size:
        asked = nodes.ravel().tolist()
        known = [values.get(node) for node in asked]
        numbers = evaluate(graph, asked, values) if None in known else known
        truths = bool(numbers) and all(isinstance(value, (bool, np.bool_)) for value in numbers)
        return np.array(numbers, dtype=bool if truths else np.float64).reshape(nodes.shape)
    reading = graph.arrays.reading(nodes)
    compute(graph, [reading], values)
    return np.array(np.broadcast_to(read(graph, reading, values), nodes.shape))


def compute(graph: Graph, readings: Iterable[OperandAccess], values: Values, nodes: Iterable[int] = ()) -> None:
    """Compute the numbers of operands, which `read` gives then, and of nodes."""
    readings = list(readings)
    single = [node for reading in readings for node in reading.single_nodes]
    arrays = [array for reading in readings for array in reading.array_nodes]
    schedule(graph, [*single, *nodes], arrays, values).carry_out(graph, values)


@dataclass(frozen=True)
class Schedule:
    """A computation of numbers from known ones, in order.

    `known` are array nodes that have numbers, with the elements that single nodes read. Each part has single nodes,
    then an array node, if any, and the elements of it that single nodes read.
    """

    known: list[tuple[ArrayNode, list[int]]]
    parts: list[Part]
    constants: tuple[Values, Values] = field(default_factory=lambda: ({}, {}))  # known numbers of nodes and arrays
    last: Mapping[int, Sequence[int]] = field(default_factory=dict)  # the arrays that a part is the last to read

    def carry_out(self, graph: Graph, values: Values) -> None:
        """Compute the numbers."""
        values.update(self.constants[0])
        graph.arrays.values.update(self.constants[1])
        for array, elements in self.known:
            values.update(_numbers_at(graph, array, elements))
        with np.errstate(all="ignore"):
            for number, (nodes, step, elements) in enumerate(self.parts):
                if nodes:
                    carry_out(graph, nodes, values, FLOATS)
                if step is not None:
                    check("computing arrays", graph.heads)
                    graph.arrays.values[step[0].first] = step[1](values)
                    if elements:
                        values.update(_numbers_at(graph, step[0], elements))
                    for first in self.last.get(number, ()):
                        del graph.arrays.values[first]


def schedule(graph: Graph, nodes: Iterable[int], arrays: Iterable[ArrayNode], values: Values) -> Schedule:
    """Return the computation of array nodes, and of single nodes that depend on them, if they have no numbers."""
    single, steps, elements = _needed(graph, nodes, arrays, values)
    computed = [array for first in elements.keys() & graph.arrays.values if (array := graph.arrays.at(first))]
    known = [(array, sorted(elements.pop(array.first))) for array in computed]
    parts = list[Part]()
    before = list[int]()
    for item in sorted(single | steps.keys()):
        if item not in steps:
            before.append(item)
            continue
        asked = elements.pop(item, set()) | ({item} & single)  # a constant is itself or all of its array
        parts.append((before, steps[item], sorted(asked)))
        before = []
    assert not elements
    return Schedule(known, [*parts, (before, None, [])] if before else parts)


def _needed(
    graph: Graph, nodes: Iterable[int], arrays: Iterable[ArrayNode], values: Values
) -> tuple[set[int], dict[int, Step], dict[int, set[int]]]:
    """Return the nodes, array nodes (by their first) and elements read by nodes that are still to be computed."""
    operands, computed = graph.operands, graph.arrays.values
    single, steps, elements = set[int](), dict[int, Step](), dict[int, set[int]]()
    stack, waiting = list(nodes), list(arrays)
    while stack or waiting:
        while waiting:
            array = waiting.pop()
            if array.first not in computed and array.first not in steps:
                steps[array.first] = step = _step(graph, array)
                for reading in step[2]:
                    if reading.view is not None:
                        waiting.append(reading.view.node)
                    else:
                        waiting += reading.array_nodes
                        stack += reading.single_nodes
        while stack:
            node = stack.pop()
            if node in values or node in single:
                continue
            its = graph.arrays.at(node)
            if its is None or its.element is sp.Float:
                single.add(node)
                stack += operands[node]
            else:
                elements.setdefault(its.first, set()).add(node)
                waiting.append(its)
    return single, steps, elements


def _step(graph: Graph, array: ArrayNode) -> Step:
    """Return how an array node is computed; u + (-1) * v is a difference, u * v**-1 a quotient, rounded once.

    In a derivative, a power that the function wrote stays a factor of a product, as on single nodes.
    """
    return array, *_call(graph, array, *_function(graph, array))


def _function(graph: Graph, array: ArrayNode) -> tuple[Callable[..., Any] | None, tuple[OperandAccess, ...]]:
    """Return a function of each element, if it is one, and the operands."""
    since = graph.arrays.derivative_from
    if array.head is sp.Add or array.head is sp.Mul:
        left, right = array.operands
        for term, other in ((left, right), (right, left)):
            inner = None if other.view is None or not other.view.whole else other.view.node
            if inner is None or inner.shape != other.kept or inner.kind != "each" or inner.first < since <= array.first:
                continue
            if array.head is sp.Add and inner.head is sp.Mul:
                factors = [part for part in inner.operands if not _is_minus_one(graph, part)]
                if len(factors) == 1:
                    return np.subtract, (term, factors[0])
            if array.head is sp.Mul and inner.head is sp.Pow and _is_minus_one(graph, inner.operands[1]):
                return np.divide, (term, inner.operands[0])
    return FUNCTIONS[array.head] if array.kind == "each" else None, array.operands  # type: ignore[index]


def _call(
    graph: Graph, array: ArrayNode, function: Callable[..., Any] | None, readings: tuple[OperandAccess, ...]
) -> tuple[Callable[[Values], NDArray[Any]], tuple[OperandAccess, ...]]:
    """Return the function that computes an array node from the numbers of nodes, and its operands."""
    of_each, shape = function is not None, array.shape
    carried_out = function if function is not None else partial(_CARRIED_OUT[array.kind], array)
    operands = [_reader(graph, reading, whole=not of_each) for reading in readings]

    def call(values: Values) -> NDArray[Any]:
        numbers = np.asarray(carried_out(*[operand(values) for operand in operands]))
        if numbers.dtype != bool and numbers.dtype != np.float64:
            numbers = numbers.astype(np.float64)
        return spread(numbers, shape).ravel()

    return call, readings


def _reader(graph: Graph, reading: OperandAccess, whole: bool) -> Callable[[Values], Any]:
    """Return the function that reads an operand: as `read` does, or in its full shape."""
    computed, view, kept, shape = graph.arrays.values, reading.view, reading.kept, reading.shape
    if whole and (view is None or kept != shape):
        return lambda values: spread(np.asarray(read(graph, reading, values)), shape)
    if view is None:
        return lambda values: read(graph, reading, values)
    first, of = view.node.first, view.of
    if view.whole:
        return lambda values: computed[first].reshape(kept)
    return lambda values: of(computed[first], kept)


def _is_minus_one(graph: Graph, reading: OperandAccess) -> bool:
    return reading.only is not None and graph.atoms.get(reading.only) is sp.S.NegativeOne


def _numbers_at(graph: Graph, array: ArrayNode, nodes: Iterable[int]) -> dict[int, Any]:
    computed = graph.arrays.values[array.first]
    return {node: computed[node - array.first].item() for node in nodes}


def read(graph: Graph, reading: OperandAccess, values: Values) -> Any:
    """Return the values of an operand: an array in its shape, or a number of one node."""
    computed = graph.arrays.values
    if reading.view is not None:
        return reading.view.of(computed[reading.view.node.first], reading.kept)
    if reading.only is not None:
        return values[reading.only]
    singles = reading.singles
    numbers = None if singles is None else np.array([values[node] for node in singles.nodes])[singles.numbers]
    if numbers is not None and not reading.parts:
        result = numbers
    else:
        truths = any(computed[part.node.first].dtype == bool for part in reading.parts)
        result = np.empty(reading.size, dtype=bool if truths else np.float64)
        if singles is not None:
            result[singles.where] = numbers
        for part in reading.parts:
            where, places = part.spans or (part.where, part.places)
            result[where] = computed[part.node.first][places]
    result = result.reshape(reading.kept)
    return result if reading.ids.flags.c_contiguous else result.copy("F")


def _extremum(array: ArrayNode, terms: NDArray[Any]) -> Any:
    ufunc = _REDUCTIONS[array.head]
    if 1 < len(terms) <= FEW_TERMS and terms.size >= MANY:  # along an axis of few, NumPy goes place by place
        return reduce(ufunc, terms)
    return ufunc.reduce(terms, axis=0)


def _scattered(array: ArrayNode, terms: NDArray[Any]) -> NDArray[Any]:
    assert array.places is not None
    return np.bincount(array.places, terms, array.size)


def _matrix(array: ArrayNode, *operands: NDArray[Any]) -> NDArray[Any]:
    assert array.matrix is not None
    results = existing_numbers(array.matrix, [operand.ravel() for operand in operands])
    if array.matrix.kind == "singular" and np.isnan(results[1]).any():
        matrix = operands[0]
        if np.isnan(matrix).any() or np.isfinite(matrix).all():  # of infinite numbers NumPy's are NaN
            raise np.linalg.LinAlgError("SVD did not converge")
    return results[0] if len(results) == 1 else np.concatenate(results)


def _result(array: ArrayNode, *operands: NDArray[Any]) -> NDArray[Any]:
    assert array.matrix is not None
    start = sum(array.matrix.results[: array.number])
    return operands[-1][start : start + array.size]


_REDUCTIONS: dict[Any, np.ufunc] = {
    sp.Max: np.maximum, sp.Min: np.minimum, sp.And: np.logical_and, sp.Or: np.logical_or,
}  # fmt: skip
_CARRIED_OUT: dict[str, Callable[..., Any]] = {
    "sum": lambda array, terms: np.add.reduce(terms, axis=0),
    "extremum": _extremum,
    "running": lambda array, terms: np.add.accumulate(terms, axis=0),
    "product": lambda array, left, right: np.matmul(left, right),
    "scatter": _scattered,
    "given": lambda array: array.numbers.reshape(array.shape),
    "matrix": _matrix,
    "result": _result,
    "add": lambda array, left, right: np.add(left, right),
    "multiply": lambda array, left, right: np.multiply(left, right),
    "total": lambda array, terms: np.add.reduce(terms, axis=tuple(array.places.tolist())),
    "present": lambda array, holds, values: present_where(holds, values),
    "there": lambda array, values: np.multiply(there(values), 1.0),
    "plus": lambda array, left, right: plus(left, right),
    "times": lambda array, left, right: times(left, right),
    "settled": lambda array, values: settled(values),
    "shares": lambda array, terms, best: shares(terms, best, _REDUCTIONS[array.head]),
}


def schedule_again(graph: Graph, outputs: Sequence[Nodes], inputs: Sequence[Nodes], values: Values) -> Schedule:
    """Return the schedule that computes nodes from the inputs, which have numbers now.

    >>> import numpy as np
    >>> import sympy as sp
    >>> graph, values = Graph(), dict[int, float]()
    >>> x, c = graph.own_leaf(sp.Symbol("x")), graph.leaf(sp.Float(2.0))
    >>> y = graph.node(sp.Mul, x, graph.node(sp.Mul, c, c))
    >>> values[x] = 1.0
    >>> made = schedule_again(graph, [np.array([y])], [np.array([x])], values)
    >>> values.clear()
    >>> values[x] = 3.0
    >>> made.carry_out(graph, values)
    >>> values[y], [nodes for nodes, *_ in made.parts]
    (12.0, [[3]])
    """
    readings = [graph.arrays.reading(nodes) for nodes in outputs if nodes.size]
    arrays = [array for reading in readings for array in reading.array_nodes]
    single = [node for reading in readings for node in reading.single_nodes]
    whole = schedule(graph, single, arrays, values)
    still, moving = _split(graph, whole, {node for nodes in inputs for node in graph.arrays.roots(nodes)})
    still.carry_out(graph, values)
    kept, last_reader = {array.first for array in arrays}, dict[int, int]()
    for number, (_, step, _) in enumerate(moving.parts):
        if step is not None:
            last_reader.update(dict.fromkeys([step[0].first, *_arrays_read(step)], number))
    constants = {step[0].first for _, step, _ in still.parts if step is not None}
    last: dict[int, list[int]] = {}
    for first, number in last_reader.items():
        if first not in kept and first not in constants:
            last.setdefault(number, []).append(first)
    numbers = {node: values[node] for nodes, _, elements in still.parts for node in (*nodes, *elements)}
    of_arrays = {first: graph.arrays.values[first] for first in constants & (last_reader.keys() | kept)}
    return replace(moving, last=last, constants=(numbers, of_arrays))


def _split(graph: Graph, whole: Schedule, moving: set[int]) -> tuple[Schedule, Schedule]:
    """Return the part that depends on none of the `moving` nodes, and the rest; an array node counts by its first."""
    moving.update(node for array, elements in whole.known if array.first in moving for node in elements)
    still, rest = list[Part](), list[Part]()
    for nodes, step, elements in whole.parts:
        for node in nodes:
            if not moving.isdisjoint(graph.operands[node]):
                moving.add(node)
        if step is not None and not moving.isdisjoint(_read(step)):
            moving.update([step[0].first, *elements])
        moves = step is not None and step[0].first in moving
        rest.append(([node for node in nodes if node in moving], step if moves else None, elements if moves else []))
        still.append(
            ([node for node in nodes if node not in moving], None if moves else step, [] if moves else elements)
        )
    return Schedule([], list(filter(any, still))), Schedule(whole.known, list(filter(any, rest)))


def _arrays_read(step: Step) -> Iterable[int]:
    return [array.first for reading in step[2] for array in reading.array_nodes]


def _read(step: Step) -> Iterable[int]:
    return [*_arrays_read(step), *(node for reading in step[2] for node in reading.single_nodes)]
