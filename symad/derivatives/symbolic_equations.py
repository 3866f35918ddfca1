"""Implicit functions in kernels: a bounded iteration finds the root, and the root is checked.

The iteration is a loop of values (`symad.tracing.control.written`) over ordinary nodes of F and dF/dy. If Newton's
next step at its end shows no root, the solution is NaN. Its derivatives follow from the implicit function theorem
(`symad.derivatives.implicit`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from symad.derivatives.elimination import dense, forward
from symad.derivatives.linear import linearize
from symad.errors import ArgumentError, TraceError
from symad.graph.builder import Builder
from symad.tracing.calling.attempts import call
from symad.tracing.calling.function_names import name_of
from symad.tracing.calling.scope import Scope, innermost_scope, open_scope
from symad.tracing.calling.user_place import user_place
from symad.tracing.control.paths import followed
from symad.tracing.control.written import repeated
from symad.tracing.values.array import wrap as wrap_array
from symad.tracing.values.containers import from_nodes
from symad.tracing.values.known_numbers import is_symbolic
from symad.tracing.values.node_operands import nodes_of
from symad.tracing.values.node_trees import Tree, lift_result, wrap

Function = Callable[..., Any]

UNKNOWNS = 32  # of an equation in a kernel, whose linear systems are written down
STEPS = 100
ITERATIONS = 500  # of a fixed point
FAR = 1e-3  # how far Newton's method may move another method's solution, relative to 1 + |y|
POLISHED = 2  # steps of Newton's method after another method's last one


def in_kernel() -> bool:
    """Whether values may have no numbers here: a function is traced with its loops and paths, to be compiled.

    In a trace that is shown, or becomes straight lines, the iteration would be thousands of steps.
    """
    scope = innermost_scope()
    if scope is None or scope.paths is None:
        return False
    return any(around.loops is not None for around in scope.chain())


def has_symbols(scope: Scope, nodes: Sequence[int]) -> bool:
    """Whether one of the nodes depends on a symbol."""
    return any(is_symbolic(scope, node) for node in nodes)


class SymbolicEquation:
    """f(y, *args) = 0 at traced values: F, its Jacobian and Newton's steps as nodes, with the paths of f merged."""

    def __init__(self, scope: Scope, f: Function, start: Tree, arguments: Tree) -> None:
        self.scope, self.f, self.start, self.arguments = scope, f, start, arguments
        self.held: tuple[Any, Any] | None = None
        if start.size > UNKNOWNS:
            raise TraceError(
                f"an equation for {start.size} unknowns in a kernel",
                where=user_place(),
                why=f"its linear systems are written down, for {UNKNOWNS} unknowns at most",
                do="take derivatives at numbers, or write the solver's steps as plain code",
            )

    def tree(self, f: Function, y: Sequence[int]) -> Tree:
        """Return the nodes of a function of y and the arguments."""
        return called(f, lambda scope: (wrap(scope, self.start.refill(y)), *wrap(self.scope, self.arguments)), y)

    def residual(self, y: Sequence[int]) -> list[int]:
        """Return F at y, one node for each unknown."""
        result = self.tree(self.f, y)
        check_shapes(self.f, result, self.start)
        if self.held is None:
            return result.flat
        scope = current_scope()
        unknowns, values = (wrap_array(np.array(nodes, dtype=np.int64), scope) for nodes in (y, result.flat))
        kept: list[int] = nodes_of(np.where(self.held[0], unknowns - self.held[1], values), scope).tolist()
        return kept

    def hold(self, which: Any, places: Any) -> None:
        """Have some of the unknowns equal places that are no unknowns, instead of their equations."""
        self.held = which, places

    def at(self, y: Any) -> Any:
        """Return F at a vector of all unknowns, as a vector."""
        scope = current_scope()
        return wrap_array(np.array(self.residual(nodes_of(y, scope).ravel().tolist()), dtype=np.int64), scope)

    def number_at(self, y: Any, f: Function | None = None) -> Any:
        """Return F of one unknown, or another function of all unknowns, as a number."""
        scope = current_scope()
        nodes = nodes_of(y, scope).ravel().tolist()
        (node,) = self.residual(nodes) if f is None else self.tree(f, nodes).flat
        return from_nodes(np.array(node, dtype=np.int64), scope)

    def linearized(self, y: Any) -> tuple[Any, Any]:
        """Return F and dF/dy at a vector of all unknowns."""
        scope = current_scope()
        graph, build = scope.graph, Builder(scope.graph)
        trial = [graph.alias(node) for node in nodes_of(y, scope).ravel().tolist()]
        residual = self.residual(trial)
        matrix = dense(build, forward(build, linearize(build, residual, trial)), (len(trial), len(trial)))
        return wrap_array(np.array(residual, dtype=np.int64), scope), wrap_array(matrix, scope)


def check_shapes(f: Function, result: Tree, unknown: Tree) -> None:
    """Raise ArgumentError unless an equation has as many results as unknowns, in their structure."""
    if not result.is_like(unknown):
        raise ArgumentError(
            f"{name_of(f)} or its solver returned shapes {result.shapes}",
            where=user_place(),
            why=f"the unknown has shapes {unknown.shapes}",
            do="return one equation for each unknown, in the structure of initial",
        )


def called(f: Function, arguments: Callable[[Scope], Sequence[Any]], parameters: Sequence[int] = ()) -> Tree:
    """Return the nodes of f's result, with its paths merged; derivatives in it keep nodes that depend on parameters."""
    with open_scope() as scope:
        scope.parameters = parameters
        return followed(
            scope, f, lambda: call(f, lambda: arguments(scope)), lambda result: lift_result(scope, result, name_of(f))
        )


def newton_on_symbols(equation: SymbolicEquation) -> tuple[Any, Any]:
    """Return a root by Newton's method, halving steps that do not reduce |F|, and the condition True.

    It is `symad.derivatives.solvers.newton`, with its bounds.
    """

    def step(carry: Any) -> tuple[Any, Any]:
        y, length = carry
        value, jacobian = equation.linearized(y)
        full = np.linalg.solve(jacobian, value)
        trial = y - length * full
        before, after = np.linalg.norm(value), np.linalg.norm(equation.at(trial))
        moved = np.max(np.abs(trial - y) / (1 + np.abs(trial)))
        is_better = after < before
        ended = (moved <= 1e-15) | (before == 0) | ((moved < 1e-10) & np.logical_not(is_better))
        hopeless = np.logical_not(np.isfinite(np.sum(full)))
        following = np.where(is_better, np.minimum(1.0, 2 * length), length / 2)
        return (np.where(after <= before, trial, y), following), ended | hopeless

    y, _ = repeated(step, (vector(equation), 1.0), STEPS, equation.f)
    return y, True


def iterated_on_symbols(equation: SymbolicEquation) -> tuple[Any, Any]:
    """Return a root by repeating y - F(y), moved by Newton's method, and whether that is the same one."""

    def step(y: Any) -> tuple[Any, Any]:
        change = equation.at(y)
        moved = np.max(np.abs(change) / (1 + np.abs(y)))
        return y - change, (moved <= 1e-14) | np.isnan(moved)

    return polished(equation, repeated(step, vector(equation), ITERATIONS, equation.f))


def vector(equation: SymbolicEquation) -> Any:
    """Return where the solver of an equation begins."""
    return wrap_array(equation.start.nodes.copy(), current_scope())


def polished(equation: SymbolicEquation, y: Any, far: float = FAR) -> tuple[Any, Any]:
    """Return a root that another method found, moved by Newton's method, and whether that is the same one."""
    better = y
    for _ in range(POLISHED):
        value, jacobian = equation.linearized(better)
        better = better - np.linalg.solve(jacobian, value)
    return better, np.all(np.abs(better - y) <= far * (1 + np.abs(y)))


def checked(equation: SymbolicEquation, y: Any, holds: Any, tolerance: float) -> tuple[list[int], int]:
    """Return the nodes of a solution, and a factor of its derivatives, which is 1.

    Both are NaN where Newton's next step would still move the solution, and where `holds` fails.
    """
    value, jacobian = equation.linearized(y)
    moved = np.abs(np.linalg.solve(jacobian, value)) / (1 + np.abs(y))
    accepted = np.all(moved <= tolerance) & holds
    scope = equation.scope
    return nodes_of(np.where(accepted, y, np.nan), scope).ravel().tolist(), factor_of(scope, accepted)


def factor_of(scope: Scope, accepted: Any) -> int:
    """Return the node of 1 where something holds, and NaN where it does not, which has no derivative."""
    value = int(nodes_of(np.where(accepted, 1.0, np.nan), scope))
    return value if value in scope.graph.atoms else scope.graph.stopped(value)


def current_scope() -> Scope:
    """Return the innermost scope, where there is one."""
    scope = innermost_scope()
    assert scope is not None
    return scope
