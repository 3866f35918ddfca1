"""Traced scalars inside SymPy expressions: `sympy.sin(x)` gets a symbol for the node of x.

The symbol becomes the node again when the expression meets a traced value or is returned. It does not keep its graph
alive (SymPy's caches hold up to a thousand expressions per function), and is refused after its scope is closed.
SymPy's operators get no symbol: the traced value answers them, so that `sympy.pi * x` is traced like `np.pi * x`.
"""

from __future__ import annotations

import sys
import weakref
from typing import Any, NoReturn

import sympy as sp
from sympy.core import decorators, numbers

from codegen.expressions.sympy_forms import rebuild
from codegen.heads import Alias
from symad.errors import TraceError
from symad.tracing.calling.scope import Scope, escaped_value, join
from symad.tracing.calling.user_place import user_place
from symad.tracing.values.constant_nodes import constant, is_boolean

_SYMPIFY = sp.sympify.__code__.co_filename
_OPERATORS, _NUMBERS = decorators.__file__, numbers.__file__
_COMPARISONS = frozenset({"__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__"})


class TracedSymbol(sp.Dummy):  # type: ignore[misc]
    """A symbol for a node of an open scope; real, unless the node is a truth value."""

    __slots__ = ("_scope", "node")
    _scope: weakref.ref[Scope]
    node: int

    @property
    def scope(self) -> Scope:
        """The scope of the node; EscapedValueError if it is gone."""
        scope = self._scope()
        if scope is None:
            raise escaped_value()
        return scope

    def __copy__(self, memo: object = None) -> TracedSymbol:
        return self

    __deepcopy__ = __copy__

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TraceError("a traced value cannot be pickled", where=user_place(), why="it belongs to a running trace")

    def node_in(self, scope: Scope) -> int:
        """Return the node, which is usable in `scope`: EscapedValueError or TraceError when it is not."""
        join(self.scope, scope)
        return self.node


def expression_of(scope: Scope, node: int) -> sp.Basic:
    """Return the expression of a node for SymPy functions: a symbol, the same one each time, so that x - x is 0.

    A node that depends on symbols of the user is expanded down to them, because SymPy's `diff`, `subs` or `integrate`
    may refer to those; inputs and parameters of levels stay symbols.

    >>> from symad.tracing.calling.scope import open_scope
    >>> with open_scope() as scope:
    ...     x = scope.graph.alias(scope.graph.number(0.5))
    ...     product = scope.graph.node(sp.Mul, scope.graph.leaf(sp.Symbol("a")), x)
    ...     expression_of(scope, x) - expression_of(scope, x), expression_of(scope, product).diff("a")
    (0, _traced_1)
    """
    scope.check_open()
    graph, known = scope.graph, scope.symbols
    stack = [node]
    while stack:
        top = stack[-1]
        operands = () if graph.heads[top] is Alias else graph.operands[top]
        missing = [operand for operand in operands if operand not in known]
        if missing:
            stack += missing
        else:
            stack.pop()
            if top not in known:
                known[top] = _written_out(scope, top, operands)
    return _expression(scope, node)


def _written_out(scope: Scope, node: int, operands: tuple[int, ...]) -> sp.Basic | None:
    """Return the expression of a node that depends on symbols of the user, None for all other nodes."""
    graph, known = scope.graph, scope.symbols
    if not operands:
        atom = graph.atoms.get(node)
        users = isinstance(atom, sp.Symbol) and graph.has(atom) and graph.leaf(atom) == node  # an input is a leaf apart
        return atom if users else None
    if all(known[operand] is None or isinstance(known[operand], TracedSymbol) for operand in operands):
        return None
    return rebuild(graph.heads[node], [_expression(scope, operand) for operand in operands], evaluate=True)


def _expression(scope: Scope, node: int) -> sp.Basic:
    graph, known = scope.graph, scope.symbols[node]
    if known is None:
        if constant(graph, node) is not None:
            return graph.atoms[node]
        assumptions = {} if is_boolean(graph, node) else {"real": True}
        known = TracedSymbol(f"traced_{node}", **assumptions)
        known._scope, known.node = weakref.ref(scope), node
        scope.symbols[node] = known
    return known


def symbols_in(expression: Any) -> list[sp.Symbol]:
    """Return the symbols of an expression, or of nested lists of them. Each object is visited once."""
    seen: set[int] = set()
    stack: list[Any] = [expression]
    symbols: dict[sp.Symbol, None] = {}
    while stack:
        part = stack.pop()
        if id(part) not in seen:
            seen.add(id(part))
            if isinstance(part, sp.Symbol):
                symbols[part] = None
            stack += list(part.args if isinstance(part, sp.Basic) else part)
    return list(symbols)


def traced_symbols(expression: sp.Basic) -> list[TracedSymbol]:
    """Return the traced symbols of an expression."""
    return [symbol for symbol in symbols_in(expression) if isinstance(symbol, TracedSymbol)]


def operator_asks() -> bool:
    """Whether an operator of SymPy calls `_sympy_`. After a refusal it lets the other operand answer."""
    frame = sys._getframe(2)
    while frame.f_code.co_filename == _SYMPIFY and frame.f_back is not None:
        frame = frame.f_back
    code = frame.f_code
    return code.co_filename == _OPERATORS or (code.co_filename == _NUMBERS and code.co_name in _COMPARISONS)


def equality_asks() -> bool:
    """Whether `expression == traced` calls `_sympy_`."""
    return sys._getframe(2).f_code.co_name == "_do_eq_sympify"


class Equal:
    """The right side of `expression == traced`: the traced value answers, as for every other operator."""

    __slots__ = ("traced",)
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, traced: Any) -> None:
        self.traced: Any = traced

    def __eq__(self, other: object) -> Any:
        return self.traced == other
