"""Implicit functions: root and fixed_point, differentiated by the implicit function theorem at every order.

A solver finds y with F(y, p) = 0 on plain numbers; how it does so is nobody's business. The solution enters the graph
as a number with a rule: dy/dp = -(dF/dy)^-1 dF/dp, where the derivatives of F are those of its graph at the solution.
The rule is made of ordinary nodes, which depend on y and p again, so its own derivative follows: no order is special.
Up to IN_GRAPH unknowns the linear system is solved in the graph; beyond, its solution is an implicit function too.

Sources: Griewank and Walther, "Evaluating Derivatives" (2008), chapter 15; Blondel et al., "Efficient and Modular
Implicit Differentiation" (2022).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

import symad.tracing.containers as containers
from codegen.interpret import evaluate
from symad.derivatives.custom import dependencies, plain_values, with_parents
from symad.derivatives.level import deliver, open_level
from symad.derivatives.linear import gradients, linearize, settle
from symad.errors import ArgumentError, ConvergenceError, TraceError
from symad.graph.builder import Builder
from symad.graph.table import Graph
from symad.tracing.array import wrap as wrap_array
from symad.tracing.names import argument_names, name_of
from symad.tracing.operands import nodes_of
from symad.tracing.place import user_place
from symad.tracing.scope import Scope, open_scope
from symad.tracing.shadows import call
from symad.tracing.traced import Traced
from symad.tracing.trees import Nodes, Tree, lift, lift_result, paths_of, wrap
from symad.tracing.values import SymbolicValueError

Function = Callable[..., Any]
Vector = NDArray[np.float64]
Solver = Callable[[Function, Any], Any]

IN_GRAPH = 32  # unknowns
TOLERANCE = 1e-8  # how far Newton's next step may still move an accepted solution, relative to 1 + |y|
NEWTON_STEPS = 100
FIXED_POINT_STEPS = 100_000


def root(f: Function, initial: Any, *args: Any, solver: Solver | None = None, tolerance: float = TOLERANCE) -> Any:
    """Return y with `f(y, *args) = 0`, in the structure of `initial`; its derivatives of every order are exact.

    `solver(residual, initial)` gets a function of y alone, on plain numbers, and returns y (Newton's method with step
    halving when None; bisection or `scipy.optimize.brentq` do as well). y is differentiated in `args` and in traced
    values that f captures. ConvergenceError when y is no root: when Newton's next step would move it by more than
    `tolerance` relative to 1 + |y|, or dF/dy is singular there. TraceError when compiled: a solver needs numbers.

    >>> import symad as sa
    >>> cubic_root = lambda x: root(lambda y, x: y**3 + y - x, 1.0, x)
    >>> float(cubic_root(2.0)), sa.derivative(cubic_root)(2.0)
    (1.0, 0.25)
    """
    chosen = solver or newton
    return solve(f, initial, args, lambda equation, start: chosen(equation.residual, start), tolerance)


def fixed_point(
    g: Function, initial: Any, *args: Any, solver: Solver | None = None, tolerance: float = TOLERANCE
) -> Any:
    """Return y with `y = g(y, *args)`, in the structure of `initial`; its derivatives of every order are exact.

    Without a solver, g is iterated until y no longer changes (ConvergenceError after 100,000 steps). Errors, and what
    is differentiated, as for `root`, whose residual is y - g(y).

    >>> fixed_point(lambda y: np.cos(y), 0.5)
    0.7390851332151607
    """

    def residual(y: Any, *args: Any) -> Any:
        image, structure = containers.flatten(g(y, *args))
        leaves, _ = containers.flatten(y)
        return containers.unflatten(structure, [leaf - part for leaf, part in zip(leaves, image, strict=True)])

    return root(residual, initial, *args, solver=solver or _iterate, tolerance=tolerance)


def solve(
    f: Function, initial: Any, args: tuple[Any, ...], solver: Callable[[Equation, Any], Any], tolerance: float
) -> Any:
    """Return the root that `solver(equation, initial)` finds; see `root`."""
    with open_scope() as scope:
        start = lift(scope, initial, containers.paths(initial, "initial"))
        arguments = lift(scope, args, paths_of(args, argument_names(f, len(args) + 1)[1:]))
        try:
            equation, plain = Equation(scope, f, start, arguments), plain_values(scope, start)
        except SymbolicValueError as error:
            raise TraceError(
                f"the solution of {name_of(f)} = 0 was asked for at symbolic values",
                where=user_place(),
                why="a solver needs numbers, and a kernel or a SymPy expression has none",
                do="take derivatives at numbers; to compile, write the solver's steps as plain code",
            ) from error
        return deliver(scope, equation.solution(solver(equation, plain), tolerance))


class Equation:
    """One implicit equation f(y, *args) = 0: its function, the structure of y, the arguments and their numbers."""

    def __init__(self, scope: Scope, f: Function, start: Tree, arguments: Tree) -> None:
        self.scope, self.f, self.start, self.arguments = scope, f, start, arguments
        self.plain = plain_values(scope, arguments)

    def residual(self, y: Any) -> Any:
        """Return f(y): plain numbers for plain numbers, traced values for a solver that differentiates f."""
        return self.at_numbers(self.f, y)

    def at_numbers(self, f: Function, y: Any) -> Any:
        """Return another function of y and the arguments in the same way."""
        result = call(f, lambda: (y, *self.plain))
        if _holds_traced(y) or not _holds_traced(result):
            return result
        with open_scope() as scope:  # f captures traced values: here only their numbers count
            return plain_values(scope, lift_result(scope, result, name_of(f)))

    def solution(self, found: Any, tolerance: float) -> Tree:
        """Return the nodes of y: numbers with the rule of the implicit function theorem."""
        graph = self.scope.graph
        values = lift(self.scope, found, containers.paths(found, "the solver's result"))
        self._check(values)
        numbers = [graph.number(float(value)) for value in evaluate(graph, values.flat, self.scope.values)]
        trial = self.start.refill([graph.alias(number) for number in numbers])
        residual = self._traced(trial)
        self._accept(trial.flat, residual.flat, tolerance)
        nodes = _implicit(
            graph,
            numbers,
            self._operands(residual.flat, trial.flat),
            lambda nodes: self._traced(self.start.refill(nodes)).flat,
        )
        return self.start.refill(nodes)

    def _traced(self, y: Tree) -> Tree:
        self.scope.parameters = frozenset(y.flat)  # derivatives inside f keep what depends on y
        made = call(self.f, lambda: (wrap(self.scope, y), *wrap(self.scope, self.arguments)))
        result = lift_result(self.scope, made, name_of(self.f))
        self._check(result)
        return result

    def _operands(self, residual: Sequence[int], trial: Sequence[int]) -> list[int]:
        """The arguments, and the parameters of open levels that the residual reaches otherwise: captured values."""
        parameters = {node for around in with_parents(self.scope) for node in around.parameters}
        arguments = {node for node in self.arguments.flat if node not in self.scope.graph.atoms}
        reached = dependencies(self.scope.graph, residual, parameters | arguments | set(trial))
        return sorted(reached - set(trial))

    def _check(self, result: Tree) -> None:
        shapes = [[array.shape for array in tree.arrays] for tree in (result, self.start)]
        if result.structure != self.start.structure or shapes[0] != shapes[1]:
            raise ArgumentError(
                f"{name_of(self.f)} or its solver returned shapes {shapes[0]}",
                where=user_place(),
                why=f"the unknown has shapes {shapes[1]}",
                do="return one equation for each unknown, in the structure of initial",
            )

    def _accept(self, y: Sequence[int], residual: Sequence[int], tolerance: float) -> None:
        """Raise ConvergenceError unless the solution is a root: the residual in units of y is small."""
        graph, values = self.scope.graph, self.scope.values
        jacobian = _numbers(self.scope, _jacobian(Builder(graph), residual, y))
        defect = np.array(evaluate(graph, list(residual), values), dtype=float)
        try:
            step = np.linalg.solve(jacobian, defect)
        except np.linalg.LinAlgError:
            step = np.full(len(y), np.inf)
        moved = np.max(np.abs(step) / (1 + np.abs(evaluate(graph, list(y), values))), initial=0.0)
        if not moved <= tolerance:
            raise ConvergenceError(
                f"the solver of {name_of(self.f)} returned no root",
                where=user_place(),
                why=f"the residual there is {np.max(np.abs(defect)):.3g}, and Newton's next step would move y by"
                f" {moved:.3g} relative to 1 + |y| (inf: dF/dy is singular there)",
                do="start nearer, give another solver, or raise tolerance if that is good enough",
            )


def _implicit(
    graph: Graph, numbers: Sequence[int], operands: Sequence[int], residual_of: Callable[[list[int]], list[int]]
) -> list[int]:
    """Return nodes y with the values `numbers` that solve residual_of(y) = 0 for all values of the operands."""
    rule = _ImplicitRule(graph, operands)
    nodes = [
        graph.ruled(number, operands, lambda k, row=row: rule.partial(row, k))  # type: ignore[misc]
        for row, number in enumerate(numbers)
    ]
    rule.equation = nodes, residual_of(nodes)
    return nodes


class _ImplicitRule:
    """dy/dp = -(dF/dy)^-1 dF/dp as nodes, made when the first derivative is asked for."""

    equation: tuple[list[int], list[int]]  # y and F

    def __init__(self, graph: Graph, operands: Sequence[int]) -> None:
        self._graph, self._operands = graph, operands
        self._solved: Nodes | None = None

    def partial(self, row: int, position: int) -> int | None:
        """Return the derivative of component `row` of y in an operand."""
        if self._solved is None:
            self._solved = self._made()
        return int(self._solved[row, position])

    def _made(self) -> Nodes:
        graph, build = self._graph, Builder(self._graph)
        y, residual = self.equation
        matrix = _jacobian(build, residual, [*y, *self._operands])
        left, right = matrix[:, : len(y)], matrix[:, len(y) :]
        with open_scope(graph=graph) as scope:
            if len(y) <= IN_GRAPH:
                return nodes_of(np.linalg.solve(wrap_array(left, scope), -wrap_array(right, scope)), scope)
            numbers = np.linalg.solve(_numbers(scope, left), -_numbers(scope, right))
        operands, columns = [*y, *self._operands], []
        for constants, solution in zip(right.T, numbers.T, strict=True):
            leaves = [graph.number(float(value)) for value in solution]
            columns.append(_implicit(graph, leaves, operands, partial(_row_sums, build, left, constants)))
        return np.array(columns, dtype=np.int64).T


def _row_sums(build: Builder, left: Nodes, right: Nodes, z: list[int]) -> list[int]:
    """Return left @ z + right."""
    sums = []
    for row, constant in zip(left.tolist(), right.tolist(), strict=True):
        total = constant
        for coefficient, unknown in zip(row, z, strict=True):
            if coefficient != build.zero:
                total = build.add(total, build.mul(coefficient, unknown))
        sums.append(total)
    return sums


def _jacobian(build: Builder, outputs: Sequence[int], inputs: Sequence[int]) -> Nodes:
    """Return the nodes of a Jacobian, the number 0 for its structural zeros."""
    terms = gradients(build, linearize(build, outputs, inputs))
    matrix = np.full((len(outputs), len(inputs)), build.zero, dtype=np.int64)
    for row, node in enumerate(outputs):
        for column, term in terms.get(node, {}).items():
            matrix[row, column] = settle(build, term)
    return matrix


def _numbers(scope: Scope, nodes: Nodes) -> Vector:
    found = evaluate(scope.graph, nodes.ravel().tolist(), scope.values)
    return np.array(found, dtype=np.float64).reshape(nodes.shape)


def _holds_traced(value: Any) -> bool:
    return any(isinstance(leaf, Traced) for leaf in containers.flatten(value)[0])


def newton(residual: Function, initial: Any) -> Any:
    """Return a root of a function of plain numbers by Newton's method, halving steps that do not reduce |F|.

    ConvergenceError after 100 steps without convergence.

    >>> newton(lambda y: y * y - 2, 1.0)
    1.4142135623730951
    """
    leaves, structure = containers.flatten(initial)
    shapes = [np.shape(leaf) for leaf in leaves]
    y = joined(leaves)
    value, jacobian = linearized(residual, split(y, shapes, structure))
    for _ in range(NEWTON_STEPS):
        step = newton_step(jacobian, value)
        size, length = np.linalg.norm(value), 1.0
        while True:
            trial = y - length * step
            trial_value, trial_jacobian = linearized(residual, split(trial, shapes, structure))
            if np.linalg.norm(trial_value) < size or length < 1e-6 or size == 0:
                break
            length /= 2
        moved = np.max(np.abs(trial - y) / (1 + np.abs(trial)), initial=0.0)
        if np.linalg.norm(trial_value) <= size:
            y, value, jacobian = trial, trial_value, trial_jacobian
        if moved <= 1e-15 or np.linalg.norm(value) == 0 or (moved < 1e-10 and length < 1e-6):
            return split(y, shapes, structure)
    raise ConvergenceError(
        "Newton's method does not converge",
        where=user_place(),
        why=f"after {NEWTON_STEPS} steps the residual is {np.max(np.abs(value)):.3g}",
        do="start nearer to the root, or give another solver",
    )


def newton_step(jacobian: Vector, value: Vector) -> Vector:
    """Return the solution of a linear system, the shortest one of a singular system."""
    try:
        return np.asarray(np.linalg.solve(jacobian, value), dtype=np.float64)
    except np.linalg.LinAlgError:
        return np.asarray(np.linalg.lstsq(jacobian, value, rcond=None)[0], dtype=np.float64)


def linearized(residual: Function, y: Any) -> tuple[Vector, Vector]:
    """Return F and dF/dy as arrays of numbers."""
    with open_level((y,), ["y"]) as level:
        result = level.call(residual).flat
        jacobian = _jacobian(level.build, result, level.parameters.flat)
        return _numbers(level.scope, np.array(result, dtype=np.int64)), _numbers(level.scope, jacobian)


def _iterate(residual: Function, initial: Any) -> Any:
    """Return a fixed point by iterating y - residual(y)."""
    leaves, structure = containers.flatten(initial)
    shapes = [np.shape(leaf) for leaf in leaves]
    y, moved = joined(leaves), np.inf
    for _ in range(FIXED_POINT_STEPS):
        change = joined(containers.flatten(residual(split(y, shapes, structure)))[0])
        y = y - change
        if not np.isfinite(y).all():
            break
        moved, before = np.max(np.abs(change) / (1 + np.abs(y))), moved
        if moved <= 1e-16 or 1e-12 > moved >= before:  # the last digits may keep changing
            return split(y, shapes, structure)
    raise ConvergenceError(
        "the fixed-point iteration does not converge",
        where=user_place(),
        why=f"after {FIXED_POINT_STEPS} steps y still changes by {np.max(np.abs(change)):.3g}",
        do="start nearer, or give a solver (symad.derivatives.implicit.newton)",
    )


def joined(leaves: Sequence[Any]) -> Vector:
    """Return leaves as one vector."""
    return np.concatenate([np.ravel(np.asarray(leaf, dtype=float)) for leaf in leaves])


def split(y: Vector, shapes: Sequence[tuple[int, ...]], structure: Any) -> Any:
    """Return a vector as a container of leaves with these shapes."""
    leaves, start = [], 0
    for shape in shapes:
        size = int(np.prod(shape))
        leaves.append(y[start : start + size].reshape(shape) if shape else float(y[start]))
        start += size
    return containers.unflatten(structure, leaves)
