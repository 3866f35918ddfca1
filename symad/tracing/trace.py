"""trace: a function's graph on symbols, as it was written."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import sympy as sp

import symad.tracing.containers as containers
from codegen.program import reachable
from codegen.sympy_forms import can_be_input
from symad.display.document import Document, Paragraph, Table
from symad.display.shown import Shown
from symad.errors import ArgumentError
from symad.graph.let import Let, to_let
from symad.graph.table import Graph
from symad.tracing.names import argument_names, check_call, name_of
from symad.tracing.paths import MAX_PATHS, Paths
from symad.tracing.place import user_frame
from symad.tracing.scope import open_scope
from symad.tracing.shadows import call
from symad.tracing.trees import Tree, expressions, lift, lift_result, paths_of, wrap

SHOWN_OPERATIONS = 2000  # of a trace that is shown line by line


class Trace(Shown):
    """The graph of a function: `inputs` (symbols) and `outputs` are trees of nodes of `graph`.

    Its forms for people (`text`, `latex`, `html`, `save`) are its let form, a line for each value used more than once.

    >>> trace(lambda x, y: x * y + x, 1.0, 2.0)
    <Trace: 2 inputs, 1 output, 2 operations>
    """

    def __init__(self, graph: Graph, names: Sequence[str], inputs: Tree, outputs: Tree) -> None:
        self.graph, self.names, self.inputs, self.outputs = graph, tuple(names), inputs, outputs

    def let(self, symbols: Iterable[sp.Symbol] | None = None) -> Let:
        """Return `(replacements, reduced)` as `sympy.cse` does, in linear time; one entry for each scalar output.

        >>> import numpy as np
        >>> trace(lambda x: np.sin(x) * np.sin(x), 1.0).let()
        ([(x0, sin(x))], [x0*x0])
        """
        return to_let(self.graph, self.outputs.flat, symbols)

    def expr(self) -> Any:
        """Return the result with SymPy expressions as leaves (arrays: object arrays); LimitError when too large.

        >>> trace(lambda x: 2 * x + x, 1.0).expr()
        3*x
        """
        found = [expressions(self.graph, array) for array in self.outputs.arrays]
        return containers.unflatten(self.outputs.structure, found)

    def count_ops(self) -> int:
        """Return the number of operations of the graph (shared ones once; leaves and aliases not)."""
        return self.graph.count_operations(self.outputs.flat)

    def document(self) -> Document:
        """Return the let form as a table, or the size of a trace that has more lines than are read.

        >>> print(trace(lambda x: (x + 1) * (x + 1), 1.0).text())
        <Trace: 1 input, 1 output, 2 operations>
        <BLANKLINE>
         name     is
        ────────────────
         x0       x + 1
         result   x0*x0
        """
        head = Paragraph(repr(self))
        if self.count_ops() > SHOWN_OPERATIONS:
            return (head, Paragraph(f"More than {SHOWN_OPERATIONS} operations are not shown line by line."))
        replacements, reduced = self.let()
        results = (f"result {k}" if len(reduced) > 1 else "result" for k in range(len(reduced)))
        return (head, Table(("name", "is"), (*replacements, *zip(results, reduced, strict=True))))

    def __repr__(self) -> str:
        inputs, outputs, operations = len(self.inputs.flat), len(self.outputs.flat), self.count_ops()
        parts = (f"{inputs} input{'s'[: inputs != 1]}", f"{outputs} output{'s'[: outputs != 1]}")
        return f"<Trace: {', '.join(parts)}, {operations} operation{'s'[: operations != 1]}>"

    def __str__(self) -> str:
        return repr(self)

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(repr(self))


def trace(f: Callable[..., Any], *args: Any, max_paths: int = MAX_PATHS) -> Trace:
    """Trace a function on symbols of the structure and shapes of example arguments.

    The arguments' values are not used: of a condition on a traced value, both branches are traced (`paths.Paths`), and
    LimitError is raised when there are more than `max_paths` paths. ArgumentError for arguments or results that are
    not containers of real numbers. Inside a differentiated function too, the trace
    stands alone: a traced value captured from around it raises TraceError.

    >>> trace(lambda x: x @ x, [0.0, 0.0]).expr()
    Traceback (most recent call last):
    ...
    TypeError: unsupported operand type(s) for @: 'list' and 'list'
    >>> trace(lambda x: x @ x, np.zeros(2)).expr()
    x_0**2 + x_1**2
    >>> trace(lambda x: x**2 if x > 0 else -x, 1.0).expr()
    Piecewise((x**2, x > 0), (-x, True))
    """
    check_call(f, args)
    names = argument_names(f, len(args))
    with open_scope(apart=True) as scope:
        shapes = lift(scope, args, paths_of(args, names), differentiable=True)
        symbols = _distinct(symbols_of(args, names))
        inputs = shapes.refill([scope.graph.own_leaf(symbol) for symbol in symbols])
        scope.parameters = frozenset(inputs.flat)
        scope.graph.place_all(0, user_frame)
        paths = Paths(scope.graph, max_paths, name_of(f))
        scope.decide = paths.decide
        outputs = paths.explore(
            lambda: call(f, lambda: wrap(scope, inputs)), lambda result: lift_result(scope, result, name_of(f))
        )
        traced = Trace(scope.graph, names, inputs, outputs)
        _refuse_namesakes(scope.graph, inputs, outputs)
        return traced


def symbols_of(args: Sequence[Any], names: Sequence[str]) -> list[sp.Basic]:
    """Return how the numbers of arguments are written: those that are symbols as themselves, others by their place.

    >>> symbols_of((1.0, [sp.Symbol("t"), np.zeros(2)]), ["x", "y"])
    [x, t, y_1_0, y_1_1]
    """
    leaves, _ = containers.flatten(tuple(args))
    found: list[sp.Basic] = []
    for leaf, path in zip(leaves, paths_of(args, names), strict=True):
        shape = np.shape(leaf)
        items = np.ravel(leaf).tolist() if shape else [leaf]
        named = input_symbols(path, shape)
        found += [item if can_be_input(item) else name for item, name in zip(items, named, strict=True)]
    return found


def input_symbols(path: str, shape: tuple[int, ...]) -> list[sp.Symbol]:
    """Return one real symbol for each scalar of an input array: x, or x_0, x_1, ..., or x_0_0, ...

    >>> input_symbols('params["w"]', (2,))
    [params_w_0, params_w_1]
    """
    stem = re.sub(r"\W+", "_", path).strip("_") or "argument"
    return [sp.Symbol("_".join([stem, *map(str, index)]), real=True) for index in np.ndindex(*shape)]


def _distinct(symbols: Iterable[Any]) -> list[Any]:
    """Return the symbols with the later of two equal ones renamed: `p["a_0"]` and `p["a"][0]` spell the same name."""
    found: dict[sp.Symbol, None] = {}
    for symbol in symbols:
        while symbol in found:
            symbol = sp.Symbol(symbol.name + "_", real=True)
        found[symbol] = None
    return list(found)


def _refuse_namesakes(graph: Graph, inputs: Tree, outputs: Tree) -> None:
    """Raise ArgumentError for a symbol in the traced function that would be taken for one of its inputs."""
    names = {graph.atoms[node] for node in inputs.flat}
    if not any(graph.has(name) for name in names):
        return
    for node in set(reachable(graph, outputs.flat)) - set(inputs.flat):
        if graph.atoms.get(node) in names:
            raise ArgumentError(
                f"the symbol {graph.atoms[node]} in the traced function",
                why="an argument has the same name, and in expressions the two could not be told apart",
                do="rename the symbol or the argument, or pass the symbol in",
            )


__all__ = ["Trace", "input_symbols", "symbols_of", "trace"]
