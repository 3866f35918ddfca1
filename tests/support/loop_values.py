"""Values of loops between nodes, with NumPy, one loop at a time: what detection is compared with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import sympy as sp

from codegen.evaluation.constant_folding import leaf_constant, to_float
from codegen.evaluation.interpret import FLOATS
from codegen.ir.program import Program, Rows
from codegen.loops.find.find import Found
from codegen.loops.loop import Loop, is_nodes

_FUNCTIONS: dict[Any, Callable[..., Any]] = {
    sp.Add: lambda *parts: sum(parts[1:], parts[0]),
    sp.Mul: lambda *parts: np.prod(np.broadcast_arrays(*parts), axis=0),
    sp.sin: np.sin, sp.cos: np.cos, sp.exp: np.exp, sp.log: np.log, sp.tanh: np.tanh, sp.Pow: np.power,
}  # fmt: skip


def _leaf(atom: sp.Basic) -> Any:
    value = leaf_constant(atom)
    return value if isinstance(value, bool) else to_float(value)


def row_value(rows: Rows, row: int, values: dict[int, Any], parts: tuple[int, ...]) -> Any:
    """Return the value of a row, from numbers or from arrays of numbers."""
    if not parts:
        return _leaf(rows.atoms[row])
    head, given = rows.heads[row], [values[part] for part in parts]
    if head is sp.Pow:
        given = [np.asarray(part, dtype=float) for part in given]
    function = _FUNCTIONS.get(head)
    return function(*given) if function else np.vectorize(FLOATS.functions[head])(*given)


def flat_values(rows: Rows, point: np.ndarray) -> list[Any]:
    """Return the values of all rows; the first ones are the inputs."""
    values: dict[int, Any] = dict(enumerate(point))
    with np.errstate(all="ignore"):
        for row in range(len(point), len(rows.heads)):
            values[row] = row_value(rows, row, values, rows.operands[row])
    return [values[row] for row in range(len(values))]


def body_values(body: Program, slots: list[np.ndarray]) -> list[Any]:
    """Return the outputs of a body for all repetitions at once."""
    values: dict[int, Any] = dict(enumerate(slots))
    for row in range(len(slots), len(body)):
        values[row] = row_value(body, row, values, body.operands[row])
    return [values[output.rows[0]] for output in body.outputs]


def run(loop: Loop, values: dict[int, Any]) -> None:
    """Write down the values of the nodes that a loop computes; no loop computes a node twice."""
    slots = [np.array([values[node] for node in reads.tolist()]) for reads in loop.reads if is_nodes(reads)]
    outputs = body_values(loop.body, slots)
    for result in loop.results:
        found = np.broadcast_to(np.asarray(outputs[result.output]), (loop.count,))
        if result.kind == "add":
            for node, value in zip(result.nodes.tolist(), found, strict=True):
                values[node] = values.get(node, 0.0) + value
            continue
        assert len(set(result.nodes.tolist())) == len(result.nodes)
        assert not set(result.nodes.tolist()) & values.keys()
        if result.kind == "each":
            values.update(zip(result.nodes.tolist(), found, strict=True))
        else:
            values[int(result.nodes[0])] = np.sum(found)


def rolled_values(
    rows: Rows, found: Found, wanted: list[int], given: dict[int, Any]
) -> tuple[dict[int, Any], list[int]]:
    """Return values of nodes, and which were computed in straight lines; fails where loops wait for each other."""
    owners: dict[int, list[Loop]] = {}
    for loop in found.loops:
        for node in {node for result in loop.results for node in result.nodes.tolist()}:
            owners.setdefault(node, []).append(loop)
    values, straight = dict(given), []
    stack: list[Any] = list(wanted)
    opened: set[int] = set()
    finished: set[int] = set()
    with np.errstate(all="ignore"):
        while stack:
            item = stack[-1]
            if isinstance(item, Loop):
                missing = [
                    node for reads in item.reads for node in set(reads.tolist())
                    if node not in values or any(id(loop) not in finished for loop in owners.get(node, []))
                ]  # fmt: skip
                if missing:
                    assert id(item) not in opened, "loops that wait for each other"
                    opened.add(id(item))
                    stack += missing
                else:
                    stack.pop()
                    if id(item) not in finished:
                        run(item, values)
                        finished.add(id(item))
                continue
            waiting: list[Any] = [loop for loop in owners.get(item, []) if id(loop) not in finished]
            if not waiting and item not in values:
                parts = found.sums.get(item) or rows.operands[item]
                waiting = [
                    part for part in parts
                    if part not in values or any(id(loop) not in finished for loop in owners.get(part, []))
                ]  # fmt: skip
                if not waiting:
                    values[item] = (
                        sum(values[part] for part in parts) if item in found.sums
                        else row_value(rows, item, values, parts)
                    )  # fmt: skip
                    straight += [item] if parts else []
            if waiting:
                stack += waiting
            else:
                stack.pop()
    return values, straight
