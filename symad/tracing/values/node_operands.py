"""Convert operands (numbers, arrays, lists, SymPy expressions, traced values) to node ids.

Traced arrays are recognised by their `nodes`, because this module lies below their class.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import sympy as sp
from sympy.logic.boolalg import Boolean

from codegen.expressions.sympy_forms import Form, array_of, is_input_head, read_form
from codegen.expressions.sympy_in import entries, walk
from codegen.machine.calls.arguments import has_rules, way_out
from symad.errors import LoweringError, TraceError, WorkbenchError
from symad.graph.graph import Graph
from symad.tracing.calling.scope import Scope, innermost_scope, join
from symad.tracing.calling.user_place import user_place
from symad.tracing.values.constant_nodes import as_number, is_boolean
from symad.tracing.values.layouts import in_order_of
from symad.tracing.values.node_arrays import Nodes, constants
from symad.tracing.values.scalar import Scalar
from symad.tracing.values.sympy_symbols import TracedSymbol, traced_symbols
from symad.tracing.values.traced import Traced
from symad.tracing.values.whole_numbers import are_noted, note_integers


class ExpressionError(TraceError):
    """A SymPy expression has no value as a real number: an unevaluated integral, a unit, a complex number."""


class SymbolMetArraysError(TraceError):
    """A SymPy symbol met array nodes of a computation on numbers. The function is traced again without them."""


def symbol_met_arrays(symbol: str) -> SymbolMetArraysError:
    """Return the error for a symbol in a computation on arrays of numbers."""
    return SymbolMetArraysError(
        f"{symbol} met an array of numbers",
        where=user_place(),
        why="the function was linearized on numbers",
        do="linearize it at SymPy expressions, or give numbers here",
    )


def scope_of(*values: Any, default: Scope | None = None) -> Scope:
    """Return the deepest scope among the traced values in `values` (also inside lists and object arrays)."""
    deepest = default
    for scope in _scopes_in(values):
        if deepest is not scope:
            deepest = scope if deepest is None else join(deepest, scope)
    deepest = innermost_scope() if deepest is None else deepest
    if deepest is None:
        raise TraceError("no traced value was found", where=user_place(), why="no trace is running", do="")
    deepest.check_open()
    return deepest


def holds_traced(values: Any) -> bool:
    """Whether there is a traced value among `values` (also inside lists and object arrays)."""
    return next(_scopes_in(values), None) is not None


def nodes_of(value: Any, scope: Scope) -> Nodes:
    """Return the nodes of a value: shape () for a scalar, the array's shape for arrays and nested lists.

    Plain numbers become constant leaves, SymPy expressions are added to the graph. TraceError for anything else.
    """
    if isinstance(value, Scalar):
        return np.array(value.node, dtype=np.int64)
    if isinstance(value, Traced):
        nodes: Nodes = value.nodes  # type: ignore[attr-defined]
        return nodes
    if isinstance(value, sp.Basic | sp.MatrixBase | sp.NDimArray):
        return _sympy_nodes(value, scope)
    if (held := held_in(value)) is not None:
        return nodes_of(held, scope)
    if has_own_rules(value):
        raise _refusal(f"a {type(value).__name__}", "its own rules for * or for masks would be lost")
    if isinstance(value, Fraction) or type(value) is int:  # NumPy has no integers beyond 64 bits
        return np.array(scope.graph.number(value), dtype=np.int64)
    return _array_nodes(value, scope)


def held_in(value: Any) -> Traced | None:
    """Return the traced array inside a labelled object, None for all other objects."""
    parts = _parts_of(value)
    if not any(isinstance(part, Traced) for part in parts):
        return None
    whole: Any = np.stack(parts, axis=1) if getattr(value, "_typ", "") == "dataframe" else parts[0]
    return whole  # type: ignore[no-any-return]


def _parts_of(value: Any) -> list[Any]:
    """Return the array in a labelled object, or the columns of a DataFrame; none for all other objects."""
    if not has_labels(value):
        return []
    if getattr(value, "_typ", "") == "dataframe":
        return [column._values for _, column in value.items()]
    return [getattr(value, "_values" if hasattr(type(value), "__pandas_priority__") else "data", None)]


def has_labels(value: Any) -> bool:
    """Whether a value is a Series or DataFrame of pandas, or a DataArray of xarray: NumPy's functions drop labels."""
    kind = type(value)
    of_xarray = str(kind.__module__).startswith("xarray.") and hasattr(kind, "data")
    return of_xarray or hasattr(kind, "__pandas_priority__")


def has_own_rules(value: Any) -> bool:
    """Whether a value is an array with rules of its own for * or for masks (NumPy imports masked arrays when asked).

    >>> has_own_rules(np.ones(2)), has_own_rules(np.ma.array([1.0]))
    (False, True)
    """
    derived = isinstance(value, np.ndarray) and type(value) is not np.ndarray
    return derived and isinstance(value, np.matrix | np.ma.MaskedArray)


def _array_nodes(value: Any, scope: Scope) -> Nodes:
    if has_rules(type(value)) and not has_labels(value):
        raise _refusal(f"a {type(value).__name__}", "its units or its own rules would be lost", way_out(type(value)))
    try:
        array = np.asarray(value)
    except WorkbenchError:  # of our own values
        raise
    except (ValueError, TypeError, RuntimeError) as error:
        if isinstance(value, list | tuple):
            raise _refusal("a ragged nested list", "its rows differ in length") from error
        why = str(error).partition("\n")[0]
        raise _refusal(f"a {type(value).__name__}", why, way_out(type(value))) from error
    if array.dtype.kind in "biuf":
        return in_order_of(constants(scope.graph, array), array)
    if array.dtype.kind == "c":
        raise _refusal("a complex number", "only real functions are differentiated")
    if array.dtype != object:
        text = f"the text {value!r:.20}" if isinstance(value, str) else f"a value of type {type(value).__name__}"
        raise _refusal(text, "it is no number")
    if array.ndim == 0:
        item = array.item()
        if isinstance(value, np.ndarray) and item is not value:
            return nodes_of(item, scope)
        name = getattr(value, "__name__", "") if callable(value) and not isinstance(value, type) else ""
        if name:
            raise _refusal(f"the function {name}", "it was not called", f"write {name}(...) for its value")
        raise _refusal(f"a value of type {type(value).__name__}", "it is no number")
    nodes = [int(nodes_of(item, scope)) for item in array.ravel().tolist()]
    if len({is_boolean(scope.graph, node) for node in nodes}) > 1:  # NumPy makes numbers of mixed elements
        nodes = [as_number(scope.graph, node) for node in nodes]
    return in_order_of(np.array(nodes, dtype=np.int64).reshape(array.shape), array)


def _sympy_nodes(value: Any, scope: Scope) -> Nodes:
    """Add a SymPy expression, condition, matrix or array to the graph."""
    graph = scope.graph
    try:
        shape, flat = _shaped(value, graph)
        nodes = walk(
            flat,
            partial(_leaf, scope),
            lambda head, operands: graph.node(head, *operands),
            binary=True,
            read=partial(_read, graph),
        )
    except LoweringError as error:
        what = f"{error.what} met a traced value"
        raise ExpressionError(what, where=user_place(), why=error.why, do=error.do) from error
    return np.array(nodes, dtype=np.int64).reshape(shape)


def _shaped(value: Any, graph: Graph) -> tuple[tuple[int, ...], list[sp.Basic]]:
    """Return shape and entries of a SymPy object. A matrix expression needs its entries as inputs."""
    if isinstance(value, sp.MatrixBase | sp.NDimArray):
        return tuple(value.shape), entries(value)
    if isinstance(value, sp.MatrixExpr | sp.IndexedBase):
        written = array_of(value)
        if written is not None and all(graph.has(array[0, 0]) for array in value.atoms(sp.MatrixSymbol)):
            return written
        raise _refusal(f"the matrix expression {value}", "its entries are not written out", "use .as_explicit()")
    if isinstance(value, sp.Poly):
        return (), [value.as_expr()]
    if isinstance(value, sp.Expr | Boolean | sp.Lambda):
        return (), [value]
    raise _refusal(f"a SymPy object of type {type(value).__name__}", "it is no number")


def _read(graph: Graph, expression: sp.Basic) -> Form | None:
    """Return how to read an object: as an input of the graph, in a form of its own, or (None) unchanged."""
    if is_input_head(type(expression)) and graph.has(expression):
        return None, ()
    return None if isinstance(expression, TracedSymbol) else read_form(expression)


def _leaf(scope: Scope, atom: sp.Basic) -> int:
    if isinstance(atom, sp.Symbol) and not isinstance(atom, TracedSymbol):
        scope.graph.arrays.closed = True
    if scope.graph.arrays.closed and scope.graph.arrays.nodes:
        raise symbol_met_arrays(f"the symbol {atom}")
    return atom.node_in(scope) if isinstance(atom, TracedSymbol) else scope.graph.leaf(atom)


def _refusal(what: str, why: str, do: str = "use numbers or NumPy arrays of them") -> TraceError:
    return TraceError(f"{what} met a traced value", where=user_place(), why=why, do=do)


def _scopes_in(values: Any) -> Iterator[Scope]:
    """Yield the scopes of traced values, also of those inside SymPy expressions."""
    for value in values:
        if isinstance(value, Traced):
            yield value.scope
        elif isinstance(value, list | tuple):
            yield from _scopes_in(value)
        elif parts := _parts_of(value):
            yield from (part.scope for part in parts if isinstance(part, Traced))
        elif isinstance(value, np.ndarray) and value.dtype == object:
            yield from _scopes_in(value.ravel().tolist())
        elif isinstance(value, sp.MatrixBase | sp.NDimArray):
            yield from _scopes_in(entries(value))
        elif isinstance(value, sp.Basic):
            yield from (symbol.scope for symbol in traced_symbols(value))


def as_integers(value: Any) -> Any:
    """Note traced whole numbers that are never -0.0, such as places and counts, as ints; return them."""
    if isinstance(value, Traced):
        note_integers(value.scope.graph, nodes_of(value, value.scope))
    return value


def are_integers(value: Any) -> bool:
    """Whether a value is an int, an array of ints, or a traced one noted as such."""
    if isinstance(value, Traced):
        graph = value.scope.graph
        return bool(graph.integers) and are_noted(graph, nodes_of(value, value.scope))
    return isinstance(value, int | np.integer) or (isinstance(value, np.ndarray) and value.dtype.kind in "biu")
