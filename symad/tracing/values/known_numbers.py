"""The numbers behind traced values, computed when Python control flow asks for them.

If a function is called with numbers, every node has a value, and `if`, `while`, argmax and boolean masks follow it.
A node that depends on a free symbol has no value, and the question is refused.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Set
from functools import partial
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import sympy as sp

from codegen.errors import UnboundSymbolError
from codegen.ir.program import reachable
from symad.errors import EscapedValueError, TraceError
from symad.graph.array_operands import Question
from symad.graph.array_values import values_of_array, values_of_nodes
from symad.graph.graph import Graph
from symad.graph.sympy_io import to_let
from symad.tracing.calling.recorded_errors import discarding_recorded_errors, innermost_watch
from symad.tracing.calling.scope import Scope
from symad.tracing.calling.user_place import calls_back, scipy_calls, user_place
from symad.tracing.numpy.registry import SOLVERS, STAND_INS
from symad.tracing.values.constant_nodes import constant
from symad.tracing.values.traced import refuse_number

Nodes = npt.NDArray[np.int64]
T = TypeVar("T")

_TRUTH = "the truth of a traced condition (if, while, and, or, not, in, min, max)"
_LONGEST_TEXT = 60  # nodes; a longer expression is named by its size


def value_of(scope: Scope, node: int, asked: str = "the value of a traced expression") -> float | bool:
    """Return the number or truth value of a node; TraceError (with the user's line) when it depends on a symbol.

    >>> from symad.tracing.calling.scope import open_scope
    >>> with open_scope() as scope:
    ...     value_of(scope, scope.graph.node(sp.sin, scope.graph.alias(scope.graph.number(0.0))))
    0.0
    """
    return _evaluated(scope, [node], asked, lambda: number_of(scope, node))


def number_of(scope: Scope, node: int) -> float | bool:
    """Return the number or truth value of a node; UnboundSymbolError when it depends on a symbol."""
    scope.check_open()
    known = constant(scope.graph, node)
    if known is not None:
        return known if isinstance(known, bool) else float(known)
    if not STAND_INS.keys().isdisjoint(scipy_calls()):  # the body of a function with a stand-in
        refuse_number("a number")
    if SOLVERS and _solver_calls():
        refuse_number("a number", "let the stand-in of the solver call it")
    value: float | bool = values_of_nodes(scope.graph, [node], scope.values)[0]
    return value


def _solver_calls() -> bool:
    """Whether a solver of SciPy without a stand-in has called the code that asks."""
    if "scipy.optimize" not in sys.modules and "scipy.integrate" not in sys.modules:
        return False
    watch = innermost_watch()
    return watch is not None and not watch.has_stand_ins and calls_back(SOLVERS)


def values_of(scope: Scope, nodes: Nodes, question: Question | None = None) -> npt.NDArray[Any]:
    """Return the values of nodes, float64 or bool, in their shape; or the answer to a question about them."""
    scope.check_open()
    answer = partial(values_of_array, scope.graph, nodes, scope.values, question)
    return _evaluated(scope, scope.graph.arrays.roots(nodes), "the value of a traced array", answer)


def _evaluated(scope: Scope, roots: Iterable[int], asked: str, evaluate: Callable[[], T]) -> T:
    """Return what `evaluate` does; SymbolicValueError for a symbol, looked for first where all paths are followed."""
    try:
        if scope.deciding() is not None and any(is_symbolic(scope, node) for node in roots):
            raise UnboundSymbolError("a symbol")
        return evaluate()
    except UnboundSymbolError as error:
        raise symbolic_error(scope.graph, max(roots), asked) from error


def reaches(graph: Graph, nodes: Nodes, outside: Set[int], known: dict[int, bool]) -> bool:
    """Return whether a node depends on parameters of outer levels or on free symbols; `known` keeps the answers.

    All elements of an array node have the same dependences, so its first one represents them.
    """
    return any(_depends(graph, node, outside, known) for node in graph.arrays.roots(nodes))


def _depends(graph: Graph, root: int, outside: Set[int], known: dict[int, bool]) -> bool:
    """Return whether a node depends on such a node. The search ends at the first one."""
    path: list[int] = []  # visited nodes; the unvisited operands of the k-th are in left[k + 1]
    left = [iter([root])]
    while left:
        for node in left[-1]:
            answer = known.get(node)
            if answer or node in outside or isinstance(graph.atoms.get(node), sp.Symbol):
                known.update(dict.fromkeys([*path, node], True))
                return True
            if answer is None:
                path.append(node)
                left.append(iter(graph.arrays.operands_of(node)))
                break
        else:
            left.pop()
            known.update(dict.fromkeys(path[-1:], False))
            del path[-1:]
    return False


def is_symbolic(scope: Scope, node: int) -> bool:
    """Whether a node with an askable value depends on a symbol; cached, because conditions share operands."""
    scope.check_open()
    in_stand_in = not STAND_INS.keys().isdisjoint(scipy_calls())
    return not in_stand_in and _depends(scope.graph, node, frozenset(), scope.symbolic)


def truth_of(scope: Scope, node: int) -> bool:
    """Return the truth value that Python's `if` follows; that of the current path if all paths are explored.

    TraceError when the condition is symbolic otherwise.
    """
    paths = scope.deciding()
    if paths is not None and is_symbolic(scope, node):
        return bool(paths.decide(node))
    if (known := known_truth(scope, node)) is not None:
        return known
    if paths is None:
        raise symbolic_error(scope.graph, node, _TRUTH)  # its text looks for the symbols in the graph
    return bool(paths.decide(node))


def known_truth(scope: Scope, node: int) -> bool | None:
    """Return the truth value of a node, None for one that depends on a symbol.

    Only for conditions: a kept trace is valid for other arguments while the answers are the same.
    """
    try:
        with discarding_recorded_errors():
            return bool(number_of(scope, node))
    except UnboundSymbolError:
        return None


def shown_value(scope: Scope, node: int) -> float | bool | str:
    """Return the text or number to print for a node: its value, or its let form if it is symbolic. Never fails."""
    try:
        with discarding_recorded_errors():
            return value_of(scope, node)
    except EscapedValueError:
        return "of a closed level"
    except Exception:  # symbolic, or a head without numbers: printing has to work all the same
        return _let_text(scope.graph, node)


def _let_text(graph: Graph, node: int) -> str:
    count = len(reachable(graph, [node]))
    if count > _LONGEST_TEXT:
        return f"expression of {count} nodes"
    replacements, (expression,) = to_let(graph, [node])
    where = ", ".join(f"{name} = {value}" for name, value in replacements)
    return f"{expression} where {where}" if where else str(expression)


class SymbolicValueError(TraceError):
    """A question that only a number can answer was asked of a symbolic value."""


def symbolic_error(graph: Graph, node: int, asked: str) -> SymbolicValueError:
    """Return the error for a question that only a number can answer."""
    names = [str(graph.atoms[leaf]) for leaf in _symbols(graph, node, 4)]
    shown = ", ".join([*names[:3], *["..." for _ in names[3:]]])
    return SymbolicValueError(
        f"{asked} was asked for",
        where=user_place(),
        why=f"it depends on a symbolic value ({shown})",
        do="use np.where(condition, a, b), or call the function on numbers (compile follows both branches of an if)",
    )


def _symbols(graph: Graph, node: int, most: int) -> list[int]:
    """Return some of the symbols that a node depends on, in the order of the graph."""
    symbols, seen, left = list[int](), {node}, [node]
    while left and len(symbols) < most:
        part = left.pop()
        if isinstance(graph.atoms.get(part), sp.Symbol):
            symbols.append(part)
        following = [operand for operand in graph.arrays.operands_of(part) if operand not in seen]
        seen.update(following)
        left += following
    return sorted(symbols)
