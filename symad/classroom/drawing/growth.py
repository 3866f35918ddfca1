"""Growth plots: the operations of the k-th derivative, by each way of writing it.

A product of n factors or a sum of n terms counts as n - 1 operations. Trees are counted exactly without unfolding them.
SymPy's own differentiation works on trees; it stops at a limit of size or time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import zip_longest
from typing import Any, TypeAlias

import numpy as np
import sympy as sp

from codegen.ir.program import reachable
from codegen.records import dataclass
from symad.classroom.drawing.boxes import count_label, tree_operations
from symad.classroom.drawing.chart import line_chart
from symad.classroom.drawing.svg import shortened
from symad.classroom.formulas.given import Given, given
from symad.display.document import Document, Paragraph, Picture, Table
from symad.display.shown import Shown
from symad.errors import LimitError
from symad.graph.graph import Graph, SharedCopy
from symad.graph.sympy_io import from_let, from_sympy, to_sympy
from symad.limits import time_limit
from symad.tracing.calling.tracebacks import public_api
from symad.tracing.calling.user_place import refusal
from symad.tracing.trace import trace
from symad.transforms.first_order import derivative
from symad.transforms.higher_order import taylor

TREE_LIMIT = 5_000  # operations of an expression that SymPy differentiates once more
CSE_LIMIT = 4_000  # operations of an expression that sympy.cse looks through
GRAPH_LIMIT = 200_000  # operations of a graph that is differentiated once more
SECONDS = 10.0  # for one order by SymPy

Counts: TypeAlias = dict[str, list[int]]
_SYMPY_TREE, _SYMPY_CSE = "sympy.diff tree", "sympy.diff cse"
_TREE, _GRAPH, _TAYLOR = "AD tree", "AD graph", "Taylor graph"


@dataclass(frozen=True)
class Growth(Shown):
    """Operations of the derivatives of order 0, 1, 2, ... by each way, and the reason why a way stopped early."""

    name: str
    counts: Counts
    stopped: dict[str, str]

    @property
    def title(self) -> str:
        return f"Growth of the derivatives of {self.name}"

    def table(self) -> Table:
        columns = [map(str, range(max(map(len, self.counts.values()))))]
        columns += [map(count_label, row) for row in self.counts.values()]
        rows = zip_longest(*columns, fillvalue="–")
        return Table(("order", *self.counts), tuple(rows), "r" * (1 + len(self.counts)))

    def chart(self, *, ground: bool = False) -> Picture:
        """Return the chart of operations over the order, with a ground if it stands alone."""
        series = {way: list(enumerate(row)) for way, row in self.counts.items() if row}
        return line_chart(series, "order of the derivative", "operations", log_y=True, title=self.title, ground=ground)

    def document(self) -> Document:
        """Return the chart, the table, and why ways stopped."""
        notes = (Paragraph(f"{way}: {reason}.") for way, reason in self.stopped.items())
        return (self.chart(), self.table(), *notes)

    def more_forms(self) -> dict[str, Callable[[], str]]:
        return {".svg": lambda: self.chart(ground=True).svg + "\n"}

    def _repr_svg_(self) -> str:
        return self.chart().svg


@public_api
def growth(f: Any, x: Any, orders: int = 8) -> Growth:
    """Return the operations of the derivatives of f at the number x, up to an order, in five ways.

    f is a function and x a number, or an expression (or formula as text) and x its symbol. The ways are: the result of
    `sympy.diff`, as a tree and after `sympy.cse`; nested forward mode, unfolded as a tree and as a graph with equal
    operations shared; and all Taylor coefficients up to that order in one graph.
    ArgumentError for an x of several numbers, and for orders that are not from 1 to 100.

    >>> grown = growth(lambda x: np.exp(x * np.sin(x)), 1.0, orders=3)
    >>> grown.counts["AD graph"], grown.counts["sympy.diff tree"]
    ([3, 7, 14, 25], [3, 8, 16, 28])
    """
    if type(orders) is not int or not 1 <= orders <= 100:
        raise refusal(f"orders={orders!r}", do="give an integer from 1 to 100")
    problem = given(f, x)
    if np.ndim(problem.argument) != 0 or len(problem.symbols) != 1:
        do = "give a function of one number, such as t -> f(x + t v)"
        raise refusal(f"an x of {len(problem.symbols)} numbers for growth", "orders are counted along one line", do)
    counts: Counts = {way: [] for way in (_SYMPY_TREE, _SYMPY_CSE, _TREE, _GRAPH, _TAYLOR)}
    stopped: dict[str, str] = {}
    _symbolic(problem, orders, counts, stopped)
    f_of_x = problem.function
    nested = _until_limit((_TREE, _GRAPH), lambda order: _sizes(derivative(f_of_x, order)), orders, stopped)
    for tree, graph in nested:
        counts[_TREE].append(tree)
        counts[_GRAPH].append(graph)
    series = _until_limit((_TAYLOR,), lambda k: _sizes(lambda x: taylor(f_of_x, (x,), (1,), k)), orders, stopped)
    counts[_TAYLOR] += [graph for _, graph in series]
    name = shortened(str(f), 40) if isinstance(f, str | sp.Symbol) else problem.name
    return Growth(name, counts, stopped)


def _until_limit(
    ways: Sequence[str], sizes_at: Callable[[int], tuple[int, int]], orders: int, stopped: dict[str, str]
) -> Iterator[tuple[int, int]]:
    """Yield the sizes of each order until the graphs are too large."""
    for order in range(orders + 1):
        sizes = sizes_at(order)
        yield sizes
        if sizes[1] > GRAPH_LIMIT and order < orders:
            stopped.update(dict.fromkeys(ways, f"stopped at order {order}, of {count_label(sizes[1])} operations"))
            return


def _sizes(f: Callable[..., Any]) -> tuple[int, int]:
    """Return the operations of a function as a tree and as a graph in which levels share equal operations."""
    traced = trace(f, 1.0)
    shared = SharedCopy(traced.graph, {})
    outputs = [shared.there[node] for node in traced.outputs.flat]
    return tree_operations(shared.plain, outputs), shared.plain.count_operations(outputs)


def _symbolic(problem: Given, orders: int, counts: Counts, stopped: dict[str, str]) -> None:
    """Let SymPy differentiate and eliminate common subexpressions, until it meets a limit."""
    traced = trace(problem.function, 1.0)
    (symbol,) = (traced.graph.atoms[node] for node in traced.inputs.flat)
    way, order = _SYMPY_TREE, 0
    try:
        (original,) = to_sympy(traced.graph, traced.outputs.flat, evaluate=True)
        for order in range(orders + 1):
            way = _SYMPY_TREE
            with time_limit(SECONDS, f"order {order}"):
                expression = sp.diff(original, symbol, order)
            graph = Graph(lines=False)
            counts[_SYMPY_TREE].append(tree_operations(graph, from_sympy(graph, [expression], binary=True)))
            if _SYMPY_CSE not in stopped:
                way = _SYMPY_CSE
                _after_cse(expression, order, counts, stopped)
            if counts[_SYMPY_TREE][-1] > TREE_LIMIT and order < orders:
                size = count_label(counts[_SYMPY_TREE][-1])
                stopped[_SYMPY_TREE] = f"stopped at order {order}, of {size} operations"
                return
    except (LimitError, RecursionError) as error:
        why = error.what if isinstance(error, LimitError) else "SymPy's recursion became too deep"
        stopped[way] = f"stopped before order {order}: {why}"


def _after_cse(expression: sp.Expr, order: int, counts: Counts, stopped: dict[str, str]) -> None:
    if counts[_SYMPY_TREE][-1] > CSE_LIMIT:
        stopped[_SYMPY_CSE] = f"stopped before order {order}, of {count_label(counts[_SYMPY_TREE][-1])} operations"
        return
    with time_limit(SECONDS, f"order {order}"):
        let = sp.cse([expression])
    graph = Graph(lines=False)
    order_of = reachable(graph, from_let(graph, *let))
    sizes = (max(1, len(graph.operands[node]) - 1) for node in order_of if graph.operands[node])
    counts[_SYMPY_CSE].append(sum(sizes))
