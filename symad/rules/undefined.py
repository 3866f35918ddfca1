"""The chain rule for undefined functions, whose derivatives are written f', f'', f^(1,0).

Where numbers are wanted, an undefined function is refused (see `symad.rules.partials`): nothing is known about it. A
derivation on paper needs no more than its name. `formal` gives such a function as a head that SymPy can differentiate
any number of times; `doit()` writes one of its derivatives in SymPy's own form.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import sympy as sp
from sympy.core.function import AppliedUndef

from codegen.heads import Alias
from codegen.ir.program import Head, reachable
from symad.graph.graph import Graph

HEADS = 4096  # bound of the cache of heads


class Formal(sp.Function):  # type: ignore[misc]
    """A partial derivative of an undefined function, of order 0 upwards in each argument."""

    function: Any
    orders: tuple[int, ...]

    def fdiff(self, argindex: int = 1) -> sp.Expr:
        """Return the partial derivative in one argument."""
        orders = tuple(order + (k == argindex - 1) for k, order in enumerate(self.orders))
        return formal(self.function, orders)(*self.args)

    def doit(self, **hints: Any) -> sp.Expr:
        """Return the same as SymPy writes it, with Derivative and Subs."""
        arguments = [argument.doit(**hints) for argument in self.args]
        plain = [part.is_Symbol and sum(part in other.free_symbols for other in arguments) == 1 for part in arguments]
        inner = [
            argument if simple or not order else sp.Dummy(f"xi_{k + 1}")
            for k, (argument, simple, order) in enumerate(zip(arguments, plain, self.orders, strict=True))
        ]
        function_there = self.function(*inner)
        wanted = [(symbol, order) for symbol, order in zip(inner, self.orders, strict=True) if order]
        if not wanted:
            return function_there
        derivative = sp.Derivative(function_there, *wanted)
        places = [(new, old) for new, old in zip(inner, arguments, strict=True) if new is not old]
        return sp.Subs(derivative, [new for new, _ in places], [old for _, old in places]) if places else derivative


@lru_cache(maxsize=HEADS)
def formal(function: Any, orders: tuple[int, ...]) -> Head:
    """Return the head of a derivative of an undefined function, of the given order in each argument.

    >>> f, x, y = sp.Function("f"), sp.Symbol("x"), sp.Symbol("y")
    >>> formal(f, (1,))(x**2).diff(x), formal(f, (1, 0))(x, y).doit()
    (2*x*f''(x**2), Derivative(f(x, y), x))
    """
    marks = _marks(orders)
    name = function.__name__ + (f"^{marks}" if marks.startswith("(") else marks)
    head: Head = type(name, (Formal,), {"function": function, "orders": orders, "nargs": len(orders)})
    return head


def _marks(orders: tuple[int, ...]) -> str:
    if not any(orders):
        return ""
    if len(orders) == 1 and orders[0] < 4:
        return "'" * orders[0]
    return f"({','.join(map(str, orders))})"


def with_formal_heads(graph: Graph, nodes: Sequence[int]) -> list[int]:
    """Return nodes of equal meaning in which every undefined function can be differentiated.

    >>> graph = Graph()
    >>> (node,) = with_formal_heads(graph, [graph.node(sp.Function("f"), graph.leaf(sp.Symbol("x")))])
    >>> graph.heads[node].function
    f
    """
    renewed_nodes: dict[int, int] = {}
    for node in reachable(graph, nodes):
        head, operands = graph.heads[node], graph.operands[node]
        renewed = tuple(renewed_nodes.get(operand, operand) for operand in operands)
        if operands and issubclass(head, AppliedUndef):
            renewed_nodes[node] = graph.node(_formal_head(head, len(operands)), *renewed)
        elif renewed != operands and head is Alias:
            if node not in graph.rules:
                renewed_nodes[node] = graph.alias(*renewed)
        elif renewed != operands:
            renewed_nodes[node] = graph.node(head, *renewed)
    return [renewed_nodes.get(node, node) for node in nodes]


def _formal_head(function: Any, count: int) -> Head:
    return formal(function, (0,) * count)
