"""`root` and `fixed_point`: implicit functions, differentiated by the implicit function theorem at every order.

A solver finds y with F(y, p) = 0 on plain numbers, by any method. The solution enters the graph as a number with a
rule: dy/dp = -(dF/dy)^-1 dF/dp, with the derivatives of F at the solution. The rule consists of ordinary nodes that
depend on y and p again, so every order follows. Up to IN_GRAPH unknowns the linear system is solved in the graph;
beyond, its solution is an implicit function too, and no dense matrix is formed.

Sources: Griewank and Walther, "Evaluating Derivatives" (2008), chapter 15; Blondel et al., "Efficient and Modular
Implicit Differentiation" (2022).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

import symad.tracing.values.containers as containers
from codegen.errors import UnboundSymbolError
from symad.derivatives.custom import dependencies, differentiated_in, plain_values
from symad.derivatives.elimination import Entries, dense, forward
from symad.derivatives.level import deliver
from symad.derivatives.linear import linearize
from symad.derivatives.solvers import Matrix, fixed_point_iteration, newton
from symad.derivatives.symbolic_equations import (
    SymbolicEquation,
    called,
    check_shapes,
    checked,
    has_symbols,
    in_kernel,
    iterated_on_symbols,
    newton_on_symbols,
)
from symad.errors import ArgumentError, ConvergenceError, LimitError, TraceError
from symad.graph.array_values import values_of_nodes
from symad.graph.builder import Builder
from symad.graph.graph import Graph
from symad.tracing.calling.attempts import call
from symad.tracing.calling.function_names import argument_names, check_function, name_of
from symad.tracing.calling.scope import Scope, open_scope
from symad.tracing.calling.user_place import user_place
from symad.tracing.values.array import wrap as wrap_array
from symad.tracing.values.containers import from_nodes
from symad.tracing.values.known_numbers import SymbolicValueError
from symad.tracing.values.node_operands import holds_traced, nodes_of
from symad.tracing.values.node_trees import Nodes, Tree, lift, lift_arguments, lift_result, wrap

Function = Callable[..., Any]
Solver = Callable[[Function, Any], Any]

IN_GRAPH = 32  # unknowns
MOST_ENTRIES = 500_000  # of the derivative of all unknowns in all operands, each a node of some 2 kB
TOLERANCE = 1e-8  # how far Newton's next step may still move an accepted solution, relative to 1 + |y|


def root(f: Function, initial: Any, *args: Any, solver: Solver | None = None, tolerance: float = TOLERANCE) -> Any:
    """Return y with `f(y, *args) = 0`, in the structure of `initial`; its derivatives of every order are exact.

    `solver(residual, initial)` gets a function of y alone, on plain numbers, and returns y (Newton's method with step
    halving when None; bisection or `scipy.optimize.brentq` do as well). y is differentiated in `args` and in traced
    values that f captures. ConvergenceError when y is no root: when Newton's next step would move it by more than
    `tolerance` relative to 1 + |y|, or dF/dy is singular there. In a kernel it is Newton's method, 100 steps at most,
    and NaN where that ends at no root; TraceError for another solver, which needs numbers.
    Source: Griewank and Walther, "Evaluating Derivatives" (2008), chapter 15.

    >>> import symad as sa
    >>> cubic_root = lambda x: root(lambda y, x: y**3 + y - x, 1.0, x)
    >>> float(cubic_root(2.0)), sa.derivative(cubic_root)(2.0)
    (1.0, 0.25)
    """
    chosen = checked_solver(f, args, solver or newton)
    on_symbols = newton_on_symbols if solver is None else None
    return solve(f, initial, args, lambda equation, start: chosen(equation.residual, start), tolerance, on_symbols)


def fixed_point(
    g: Function, initial: Any, *args: Any, solver: Solver | None = None, tolerance: float = TOLERANCE
) -> Any:
    """Return y with `y = g(y, *args)`, in the structure of `initial`; its derivatives of every order are exact.

    Without a solver, g is iterated until y no longer changes (ConvergenceError after 100,000 steps; in a kernel NaN,
    after 500). Errors, and what is differentiated, as for `root`, whose residual is y - g(y).

    >>> fixed_point(lambda y: np.cos(y), 0.5)
    0.7390851332151607
    """

    def residual(y: Any, *args: Any) -> Any:
        image, structure = containers.flatten(g(y, *args))
        leaves, _ = containers.flatten(y)
        return containers.unflatten(structure, [leaf - part for leaf, part in zip(leaves, image, strict=True)])

    chosen = checked_solver(g, args, solver or fixed_point_iteration)
    on_symbols = iterated_on_symbols if solver is None else None
    return solve(
        residual, initial, args, lambda equation, start: chosen(equation.residual, start), tolerance, on_symbols
    )


def checked_solver(f: Function, args: tuple[Any, ...], solver: Solver) -> Solver:
    """Return a solver; ArgumentError for one that is no function of two arguments, and for a function f of others."""
    check_function(f, ["y", *argument_names(f, len(args) + 1)[1:]])
    check_function(solver, ("function", "initial"))
    return solver


def solve(
    f: Function,
    initial: Any,
    args: tuple[Any, ...],
    solver: Callable[[Equation, Any], Any],
    tolerance: float,
    on_symbols: Callable[[SymbolicEquation], tuple[Any, Any]] | None = None,
) -> Any:
    """Return the root that `solver(equation, initial)` finds; see `root`.

    In a kernel: the vector that `on_symbols(equation)` returns, NaN where the condition it returns fails.
    """
    with open_scope() as scope:
        start = lift(scope, initial, containers.paths(initial, "initial"))
        if not start.arrays:
            raise ArgumentError(
                f"initial of type {type(initial).__name__}", where=user_place(), why="it has no numbers"
            )
        arguments = lift_arguments(scope, args, argument_names(f, len(args) + 1)[1:])
        if on_symbols is not None and _is_symbolic(scope, f, start, arguments):
            return deliver(
                scope, _symbolic_solution(SymbolicEquation(scope, f, start, arguments), on_symbols, tolerance)
            )
        try:
            equation, plain = Equation(scope, f, start, arguments), plain_values(scope, start)
            solution = equation.solution(solver(equation, plain), tolerance)
        except (SymbolicValueError, UnboundSymbolError) as error:
            raise TraceError(
                f"the solution of {name_of(f)} = 0 was asked for at symbolic values",
                where=user_place(),
                why="a solver needs numbers, and a kernel or a SymPy expression has none",
                do="take derivatives at numbers; to compile, write the solver's steps as plain code",
            ) from error
        return deliver(scope, solution)


def is_symbolic_call(f: Function, start: Any, args: Sequence[Any], *others: Any) -> bool:
    """Whether f(start, *args), or another argument of a solver, depends on values without numbers, in a kernel."""
    if not in_kernel():
        return False
    with open_scope() as scope:
        known = [value for value in others if value is not None]
        begin, arguments, more = (lift(scope, v, containers.paths(v, "")) for v in (start, tuple(args), known))
        return has_symbols(scope, more.flat) or _is_symbolic(scope, f, begin, arguments)


def _is_symbolic(scope: Scope, f: Function, start: Tree, arguments: Tree) -> bool:
    """Whether an equation in a kernel depends on values that have no numbers."""
    if not in_kernel() or has_symbols(scope, [*start.flat, *arguments.flat]):
        return in_kernel()
    result = called(f, lambda inner: (wrap(inner, start), *wrap(scope, arguments)))
    return has_symbols(scope, result.flat)


def _symbolic_solution(
    equation: SymbolicEquation, find: Callable[[SymbolicEquation], tuple[Any, Any]], tolerance: float
) -> Tree:
    """Return the nodes of the root that a bounded iteration finds, with the rule of the implicit function theorem."""
    graph, start = equation.scope.graph, equation.start
    y, holds = find(equation)
    values, factor = checked(equation, y, holds, tolerance)
    trial = [graph.alias(value) for value in values]
    operands = _operands(equation.scope, equation.arguments, equation.residual(trial), trial)
    return start.refill(_implicit(graph, values, operands, equation.residual, factor))


def _operands(scope: Scope, arguments: Tree, residual: Sequence[int], trial: Sequence[int]) -> list[int]:
    """Return the arguments, and the parameters of open levels that the residual captures."""
    ends = differentiated_in(scope, arguments) | set(trial)
    reached = dependencies(scope.graph, residual, ends, elements=True)
    return sorted(reached - set(trial))


class Equation:
    """One implicit equation f(y, *args) = 0: its function, the structure of y, the arguments and their numbers."""

    scope: Scope
    f: Function
    start: Tree
    arguments: Tree

    def __init__(self, scope: Scope, f: Function, start: Tree, arguments: Tree) -> None:
        self.scope, self.f, self.start, self.arguments = scope, f, start, arguments
        self.plain: Any = plain_values(scope, arguments)

    def residual(self, y: Any) -> Any:
        """Return f(y): plain numbers for plain numbers, traced values for a solver that differentiates f."""
        return self.at_numbers(self.f, y)

    def at_numbers(self, f: Function, y: Any) -> Any:
        """Return another function of y and the arguments in the same way."""
        result = call(f, lambda: (y, *self.plain), alone=True)  # not through the solver
        if holds_traced(containers.flatten(y)[0]) or not holds_traced(containers.flatten(result)[0]):
            return result
        with open_scope() as scope:  # f captures traced values: here only their numbers count
            return plain_values(scope, lift_result(scope, result, name_of(f)))

    def solution(self, root: Any, tolerance: float) -> Tree:
        """Return the nodes of y: numbers with the rule of the implicit function theorem."""
        graph = self.scope.graph
        values = lift(self.scope, root, containers.paths(root, "the solver's result"))
        check_shapes(self.f, values, self.start)
        numbers = [graph.number(float(value)) for value in values_of_nodes(graph, values.flat, self.scope.values)]
        trial = self.start.refill([graph.alias(number) for number in numbers])
        residual = self._traced(trial)
        self._accept(trial.flat, residual.flat, tolerance)
        nodes = _implicit(
            graph,
            numbers,
            _operands(self.scope, self.arguments, residual.flat, trial.flat),
            lambda nodes: self._traced(self.start.refill(nodes)).flat,
        )
        return self.start.refill(nodes)

    def _traced(self, y: Tree) -> Tree:
        self.scope.parameters = y.nodes  # derivatives inside f keep nodes that depend on y
        value = call(self.f, lambda: (wrap(self.scope, y), *wrap(self.scope, self.arguments)))
        result = lift_result(self.scope, value, name_of(self.f))
        check_shapes(self.f, result, self.start)
        return result

    def _accept(self, y: Sequence[int], residual: Sequence[int], tolerance: float) -> None:
        """Raise ConvergenceError unless the solution is a root: the residual in units of y is small."""
        graph, values = self.scope.graph, self.scope.values
        build = Builder(graph)
        jacobian = Matrix.of(self.scope, forward(build, linearize(build, residual, y)), (len(y), len(y)))
        defect = np.array(values_of_nodes(graph, list(residual), values), dtype=float)
        try:
            step = jacobian.solve(defect)
        except np.linalg.LinAlgError:
            step = np.full(len(y), np.inf)
        if not np.isfinite(jacobian.values).all() and np.any(defect != 0):
            step = np.full(len(y), np.inf)  # an infinite slope makes any residual a step of 0
        moved = np.max(np.abs(step) / (1 + np.abs(values_of_nodes(graph, list(y), values))), initial=0.0)
        if not moved <= tolerance:
            raise ConvergenceError(
                f"the solver of {name_of(self.f)} returned no root",
                where=user_place(),
                why=f"the residual there is {np.max(np.abs(defect)):.3g}, and Newton's next step would move y by"
                f" {moved:.3g} relative to 1 + |y| (inf: dF/dy is singular or infinite there)",
                do="start nearer, give another solver, or raise tolerance if that is good enough",
            )


def _implicit(
    graph: Graph,
    numbers: Sequence[int],
    operands: Sequence[int],
    residual_of: Callable[[list[int]], list[int]],
    factor: int | None = None,
) -> list[int]:
    """Return nodes y with the values `numbers` that solve residual_of(y) = 0 for all values of the operands.

    `factor` multiplies their derivatives.
    """
    rule = _ImplicitRule(graph, operands, factor)
    nodes = [graph.ruled(number, operands, partial(rule.partial, row)) for row, number in enumerate(numbers)]
    rule.equation = nodes, residual_of(nodes)
    return nodes


class _ImplicitRule:
    """dy/dp = -(dF/dy)^-1 dF/dp as nodes, made when the first derivative is asked for."""

    equation: tuple[list[int], list[int]]  # y and F

    def __init__(self, graph: Graph, operands: Sequence[int], factor: int | None) -> None:
        self._graph, self._operands, self._factor = graph, operands, factor
        self._solved: Nodes | None = None

    def partial(self, row: int, position: int) -> int | None:
        """Return the derivative of component `row` of y in an operand."""
        if self._solved is None:
            self._solved = self._derivatives()
        node = int(self._solved[row, position])
        return None if node == self._graph.number(0) else node

    def _derivatives(self) -> Nodes:
        graph, build = self._graph, Builder(self._graph)
        y, residual = self.equation
        size = len(y)
        if size > IN_GRAPH and size * len(self._operands) > MOST_ENTRIES:
            raise LimitError(
                f"the derivative of {size} unknowns in {len(self._operands)} numbers, {MOST_ENTRIES} entries at most",
                where=user_place(),
                why="each is a number of the graph, which would take gigabytes",
                do="differentiate in fewer parameters, or in a few directions: sa.jvp of a function of their multiples",
            )
        entries = forward(build, linearize(build, residual, [*y, *self._operands]))
        left = {place: node for place, node in entries.items() if place[1] < size}
        right = {(row, column - size): node for (row, column), node in entries.items() if column >= size}
        constants = dense(build, right, (size, len(self._operands)))
        with open_scope(graph=graph) as scope:
            if size <= IN_GRAPH:
                matrix = wrap_array(dense(build, left, (size, size)), scope)
                derivatives = np.linalg.solve(matrix, -wrap_array(constants, scope))
                if self._factor is not None:
                    derivatives = derivatives * from_nodes(np.array(self._factor, dtype=np.int64), scope)
                solved = nodes_of(derivatives, scope)
                return np.where(_pattern(left, right, solved.shape), solved, build.zero)
            numbers = Matrix.of(scope, left, (size, size)).solve(-Matrix.of(scope, right, constants.shape).dense())
        rows: list[dict[int, int]] = [{} for _ in y]
        for (row, column), node in left.items():
            rows[row][column] = node
        operands, columns = [*y, *self._operands], []
        for column_of_right, solution in zip(constants.T.tolist(), numbers.T.tolist(), strict=True):
            leaves = [graph.number(value) for value in solution]
            columns.append(_implicit(graph, leaves, operands, partial(_row_sums, build, rows, column_of_right)))
        return np.array(columns, dtype=np.int64).reshape(len(columns), size).T


def _pattern(left: Entries, right: Entries, shape: tuple[int, ...]) -> NDArray[np.bool_]:
    """Return where left^-1 right may be non-zero: the inverse is a polynomial in left, so paths of left lead there."""
    steps, nonzero = np.eye(shape[0], dtype=bool), np.zeros(shape, dtype=bool)
    for place in left:
        steps[place] = True
    for place in right:
        nonzero[place] = True
    for _ in range(shape[0].bit_length()):
        steps = steps @ steps  # paths of twice the length
    pattern: NDArray[np.bool_] = steps @ nonzero
    return pattern


def _row_sums(build: Builder, rows: Sequence[dict[int, int]], constants: Sequence[int], z: list[int]) -> list[int]:
    """Return the nodes of rows @ z + constants."""
    sums = []
    for row, constant in zip(rows, constants, strict=True):
        total = constant
        for unknown, coefficient in row.items():
            total = build.add(total, build.mul(coefficient, z[unknown]))
        sums.append(total)
    return sums
