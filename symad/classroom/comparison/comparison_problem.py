"""The subject of a comparison: a function, a point, an order, and the exact values."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import mpmath
import numpy as np
import sympy as sp

from codegen.evaluation.interpret import evaluate
from codegen.heads import Alias, negative_zero
from codegen.ir.program import Rows, reachable
from codegen.machine.calls.arguments import refuse_rules
from codegen.records import dataclass
from symad.classroom.comparison.differences import spread
from symad.classroom.drawing.boxes import tree_operations
from symad.classroom.formulas.given import given
from symad.compiling.native import compile_trace
from symad.errors import LimitError
from symad.graph.graph import Graph
from symad.graph.sympy_io import from_sympy, to_sympy
from symad.tracing.calling.user_place import refusal, user_place
from symad.tracing.trace import Trace, trace
from symad.tracing.values.node_trees import object_array

MOST_DIGITS = 9  # of a whole number that is written out


@dataclass(frozen=True)
class Sizes:
    """Exact numbers of nodes and operations; a shared one counts once (graph) or at every use (tree)."""

    graph: int
    tree: int
    operations: int
    tree_operations: int

    @property
    def swell(self) -> float:
        """The size of the tree divided by that of the graph.

        >>> Sizes(graph=10, tree=500, operations=8, tree_operations=400).swell
        50.0
        """
        return self.tree / self.graph


def sizes(rows: Rows, outputs: Sequence[int]) -> Sizes:
    """Return the sizes of the rows that the outputs need. Aliases do not count.

    >>> import symad as sa
    >>> def tower(x):
    ...     for _ in range(100):
    ...         x = np.sin(x) * x
    ...     return x
    >>> traced = sa.trace(tower, 1.0)
    >>> size = sizes(traced.graph, traced.outputs.flat)
    >>> size.graph, size.tree == 3 * 2**100 - 2
    (201, True)
    """
    tree: dict[int, int] = {}
    graph = operations = 0
    for row in reachable(rows, outputs):
        operands = rows.operands[row]
        if rows.heads[row] is Alias:
            tree[row] = tree[operands[0]]
            continue
        graph, operations = graph + 1, operations + bool(operands)
        tree[row] = 1 + sum(tree[operand] for operand in operands)
    return Sizes(graph, sum(tree[row] for row in outputs), operations, tree_operations(rows, outputs))


def sizes_of_expressions(expressions: Sequence[Any]) -> Sizes:
    """Return the sizes of SymPy expressions, with binary sums and products.

    >>> x = sp.Symbol("x")
    >>> sizes_of_expressions([sp.sin(x) ** 2 + sp.sin(x)])
    Sizes(graph=5, tree=7, operations=3, tree_operations=4)
    """
    graph = Graph(lines=False)
    return sizes(graph, from_sympy(graph, expressions, binary=True))


def whole(number: int | None) -> str:
    """Return a whole number of any size, written out or as a power of ten.

    >>> whole(12345), whole(3 * 10**400), whole(None)
    ('12345', '3.0e+400', '')
    """
    if number is None:
        return ""
    if abs(number) < 10**MOST_DIGITS:
        return str(number)
    with mpmath.workdps(20):
        return str(mpmath.nstr(mpmath.mpf(number), 2, min_fixed=0, max_fixed=0))


def derivative_name(order: int) -> str:
    """Return the name of the derivatives of an order.

    >>> derivative_name(1), derivative_name(3), derivative_name(22)
    ('First derivative', 'Third derivative', 'Derivative of order 22')
    """
    first = ("First", "Second", "Third", "Fourth", "Fifth")
    return f"{first[order - 1]} derivative" if order <= len(first) else f"Derivative of order {order}"


SHORT = 40  # nodes of a formula that is shown
LARGEST_TENSOR = 4096  # entries of all derivatives of an order


@dataclass(frozen=True)
class Built:
    """A route ready to be called; `traced` is its formula, `seconds` the time of what several routes share."""

    call: Callable[[Any], Any]
    sizes: Sizes | None = None
    operations: int | None = None
    traced: Trace | None = None
    seconds: float | None = None


@dataclass(frozen=True)
class ComparisonProblem:
    """A scalar function of one number or array, the point, and the order of the derivative."""

    function: Callable[[Any], Any]
    name: str
    x: Any
    order: int
    seconds: float
    traced: Trace

    @property
    def flat(self) -> Any:
        return np.ravel(np.asarray(self.x, dtype=float))

    @property
    def inputs(self) -> int:
        """Number of inputs."""
        return len(self.flat)

    @property
    def scalar(self) -> bool:
        """Whether the argument is a single number, not an array."""
        return np.ndim(self.x) == 0

    def shaped(self, flat: Any) -> Any:
        """Return numbers in the shape of the argument."""
        return flat[0] if self.scalar else np.reshape(flat, np.shape(self.x))

    @cached_property
    def kernel(self) -> Built:
        """The compiled function of a flat array, which several routes share."""
        start = time.perf_counter()
        kernel = compile_trace(self.traced, cache=False)
        taken = time.perf_counter() - start
        return Built(
            (lambda x: kernel(float(x[0]))) if self.scalar else lambda x: kernel(self.shaped(x)), seconds=taken
        )

    def exactly(self, x: Any) -> Any:
        """Return the value at a flat array of mpmath numbers, in mpmath's working digits."""
        graph, digits = self.traced.graph, mpmath.mp.dps
        values = dict(zip(self.traced.inputs.flat, x, strict=True))
        return evaluate(graph, self.traced.outputs.flat, values, arithmetic="reference", digits=digits)[0]

    @cached_property
    def formula(self) -> sp.Expr:
        """The function as a SymPy expression; LimitError if its tree is too large for SymPy."""
        (expression,) = to_sympy(self.traced.graph, self.traced.outputs.flat, evaluate=True)
        return expression.xreplace({negative_zero: sp.S.Zero})  # SymPy's printers do not know it

    @property
    def short_formula(self) -> sp.Expr | None:
        """The function as it was written; None if it is long."""
        graph, outputs = self.traced.graph, self.traced.outputs.flat
        return to_sympy(graph, outputs)[0] if sizes(graph, outputs).tree <= SHORT else None

    @cached_property
    def symbols(self) -> tuple[sp.Symbol, ...]:
        return tuple(self.traced.graph.atoms[node] for node in self.traced.inputs.flat)

    @cached_property
    def _differentiated(self) -> tuple[list[sp.Expr] | Exception, float]:
        start = time.perf_counter()
        try:
            return differentiated_by(sp.diff, self.formula, self.symbols, self.order), time.perf_counter() - start
        except (LimitError, RecursionError, MemoryError) as error:
            return error, time.perf_counter() - start

    def by_sympy(self) -> tuple[list[sp.Expr], float]:
        """Return the derivatives by `sympy.diff` in flat order, and the seconds of the first call."""
        result, seconds = self._differentiated
        if isinstance(result, Exception):
            raise result
        return result, seconds


def problem_of(f: Any, x: Any, order: int, seconds: float) -> ComparisonProblem:
    """Return the problem of `compare`; ArgumentError if it is invalid."""
    if isinstance(order, bool) or not isinstance(order, int) or order < 1:
        raise refusal(f"order={order!r}", do="give a whole number of 1 or more")
    problem = given(f, x)
    point = as_floats(problem.argument)
    entries = np.size(point) ** order
    if entries > LARGEST_TENSOR:
        raise LimitError(
            f"{np.size(point)} inputs and order {order}: {entries} entries", where=user_place(),
            why=f"the limit of a comparison is {LARGEST_TENSOR}", do="take fewer inputs, or a lower order",
        )  # fmt: skip
    traced = trace(problem.function, _named(point, problem.symbols))
    if len(traced.outputs.flat) != 1:
        what, why = f"a function with {len(traced.outputs.flat)} results", "routes are compared on a scalar function"
        raise refusal(what, why, "choose one result: lambda x: f(x)[0]")
    return ComparisonProblem(problem.function, problem.name, point, order, seconds, traced)


def _named(point: Any, symbols: Sequence[sp.Basic]) -> Any:
    """Return real symbols with the user's names in place of the numbers."""
    names = [sp.Symbol(str(symbol), real=True) for symbol in symbols]
    if len(set(names)) < len(names):
        return point
    return object_array(names, np.shape(point)) if np.ndim(point) else names[0]


def as_floats(x: Any) -> Any:
    """Return the point as a float or an array of floats, else ArgumentError."""
    refuse_rules(x, "the point")
    try:
        array = np.asarray(x)
        if array.dtype.kind not in "iuf":
            raise TypeError(f"it is {x!r}")
    except (TypeError, ValueError) as error:
        do = "give a number, an array of numbers, or with an expression {symbol: value}"
        raise refusal("a point without numbers", str(error)[:200], do) from error
    return float(array) if array.ndim == 0 else array.astype(float)


def differentiated_by(diff: Callable[[Any, Any], Any], formula: Any, symbols: Sequence[Any], order: int) -> list[Any]:
    """Return all derivatives of an order in flat order, each computed once.

    >>> x, y = sp.symbols("x y")
    >>> differentiated_by(sp.diff, x**2 * y, (x, y), 2)
    [2*y, 2*x, 2*x, 0]
    """
    derivatives: dict[tuple[int, ...], Any] = {(0,) * len(symbols): formula}
    for _ in range(order):
        higher = {}
        for times, expression in derivatives.items():
            last = max((k for k, count in enumerate(times) if count), default=0)
            for k in range(last, len(symbols)):
                higher[*times[:k], times[k] + 1, *times[k + 1 :]] = diff(expression, symbols[k])
        derivatives = higher
    return list(spread(derivatives, len(symbols), order))
