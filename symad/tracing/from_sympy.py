"""from_sympy: the graph of SymPy expressions in given symbols."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sympy as sp

from symad.errors import ArgumentError
from symad.tracing.scope import open_scope
from symad.tracing.trace import Trace
from symad.tracing.trees import lift, lift_result


def from_sympy(args: Sequence[sp.Symbol], expression: Any) -> Trace:
    """Return the trace of a SymPy expression (or a container or Matrix of them) in the given symbols.

    >>> x, y = sp.symbols("x y")
    >>> from_sympy([x, y], x * sp.sin(y)).let()
    ([], [x*sin(y)])
    """
    with open_scope(apart=True) as scope:
        inputs = lift(scope, tuple(args), [str(symbol) for symbol in args])
        known = [isinstance(scope.graph.atoms.get(node), sp.Symbol) for node in inputs.flat]
        if not all(known) or len(set(inputs.flat)) < len(known):
            raise ArgumentError(f"{args} as arguments", why="they have to be distinct SymPy symbols")
        return Trace(
            scope.graph, [str(symbol) for symbol in args], inputs, lift_result(scope, expression, "expression")
        )
