"""Derivatives given by the user: `custom_derivative`, opaque functions, `stop_gradient`.

A custom rule is a traced function, linear in its tangents. It is traced when its derivative is first asked for, into
the graph of the level that asks, so it can be differentiated again: every order follows, in every mode. Sources: JAX's
`custom_jvp` for the interface; Radul et al., "You Only Linearize Once" (2022): one linear rule serves both modes.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from functools import partial, wraps
from typing import Any, overload

import numpy as np

import symad.tracing.values.containers as containers
from codegen.errors import UnboundSymbolError
from symad.derivatives.linear import gradients, linearize, settle
from symad.derivatives.signatures import P, R
from symad.errors import ArgumentError, RuleError
from symad.graph.array_values import values_of_nodes
from symad.graph.builder import Builder
from symad.graph.graph import Graph
from symad.tracing.calling.attempts import call
from symad.tracing.calling.function_names import argument_names, check_function, name_of, positional
from symad.tracing.calling.scope import Scope, open_scope
from symad.tracing.calling.user_place import user_place
from symad.tracing.control.paths import followed
from symad.tracing.values.known_numbers import values_of
from symad.tracing.values.node_operands import holds_traced, scope_of
from symad.tracing.values.node_trees import Tree, lift, lift_arguments, lift_result, wrap
from symad.tracing.values.traced import Traced

Function = Callable[..., Any]


@overload
def custom_derivative(
    function: Callable[P, R], derivative: Function | None = None, *, opaque: bool = False
) -> Callable[P, R]: ...


@overload
def custom_derivative(
    function: None = None, derivative: Function | None = None, *, opaque: bool = False
) -> Callable[[Callable[P, R]], Callable[P, R]]: ...


def custom_derivative(
    function: Function | None = None, derivative: Function | None = None, *, opaque: bool = False
) -> Function:
    """Return a function whose derivative is what `derivative(primals, tangents)` says; usable as a decorator.

    `derivative` gets the tuples of arguments and of their tangents and returns the tangent of the result, linear in the
    tangents. It is traced like any other function and may call the function itself. `opaque=True` is for functions
    that cannot be traced (a C library, a lookup): they get plain numbers, and `derivative` may be opaque as well.
    RuleError when a derivative is asked of a function without one; ArgumentError for a rule that is not linear, or
    whose result has another structure or shape, and for a traced value that the function captures.

    >>> import symad as sa
    >>> @custom_derivative(derivative=lambda primals, tangents: softplus_slope(primals[0]) * tangents[0])
    ... def softplus(x):
    ...     return np.log1p(np.exp(x))
    >>> softplus_slope = lambda x: 1 / (1 + np.exp(-x))
    >>> sa.grad(softplus)(0.0), sa.derivative(sa.derivative(softplus))(0.0)
    (0.5, 0.25)
    """
    if function is None:
        return lambda f: custom_derivative(f, derivative, opaque=opaque)
    check_function(plain := function)

    @wraps(plain)
    def apply(*args: Any, **keywords: Any) -> Any:
        args = positional(plain, args, keywords) if keywords else args
        leaves, _ = containers.flatten(args)
        if not holds_traced(leaves):
            return plain(*args)
        scope = scope_of(*leaves)
        arguments = lift_arguments(scope, args, argument_names(plain, len(args)))
        primals = plain_values(scope, arguments) if opaque else wrap(scope, arguments)
        result = lift_result(scope, plain(*primals), name_of(plain))
        refuse_captured(scope, result.flat, arguments.flat, name_of(plain))
        return wrap(scope, _CustomRule(scope.graph, arguments, result, derivative, name_of(plain)).ruled())

    return apply


def stop_gradient(x: R) -> R:
    """Return x (a number, array or container of them) with a derivative of zero.

    >>> import symad as sa
    >>> sa.grad(lambda x: x * stop_gradient(x))(3.0)
    3.0
    """
    leaves, structure = containers.flatten(x)
    stopped = [_stopped(leaf) if isinstance(leaf, Traced) else leaf for leaf in leaves]
    result: R = containers.unflatten(structure, stopped)
    return result


def _stopped(leaf: Traced) -> Any:
    tree = lift(leaf.scope, leaf, [""])
    return wrap(leaf.scope, tree.refill(list(map(leaf.scope.graph.stopped, tree.flat))))


def plain_values(scope: Scope, tree: Tree) -> Any:
    """Return the numbers of a tree in the user's containers; TraceError where they are symbolic."""
    arrays = [values_of(scope, array) for array in tree.arrays]
    return containers.unflatten(tree.structure, [array if array.ndim else array.item() for array in arrays])


def refuse_captured(scope: Scope, results: Sequence[int], arguments: Sequence[int], name: str) -> None:
    """Raise ArgumentError when results depend on an open level otherwise than through the arguments."""
    parameters = open_parameters(scope)
    if not parameters.isdisjoint(dependencies(scope.graph, results, parameters | set(arguments)) - set(arguments)):
        raise ArgumentError(
            f"{name} uses a traced value that is none of its arguments",
            where=user_place(),
            why="its rule says nothing about that value, whose derivative would be lost",
            do="pass the value as an argument",
        )


def open_parameters(scope: Scope) -> set[int]:
    """Return the parameters of all open levels."""
    return {node for around in scope.chain() for node in around.parameters}


def differentiated_in(scope: Scope, arguments: Tree) -> set[int]:
    """Return what may be differentiated in: the parameters of open levels, and arguments that are no numbers."""
    return open_parameters(scope) | {node for node in arguments.flat if node not in scope.graph.atoms}


def dependencies(graph: Graph, results: Sequence[int], ends: set[int], *, elements: bool = False) -> set[int]:
    """Return those of the nodes `ends` that the results depend on; nodes behind an end are not visited.

    An array node stands for itself by its first node, with `elements` by the elements that are met.
    """
    reached: set[int] = set()
    seen, stack, arrays = set(results), list(set(results)), graph.arrays
    while stack:
        node = stack.pop()
        array = arrays.at(node)
        if node in ends or (array is not None and elements and array.kind != "given"):
            reached.add(node)
        elif array is not None and array.first in ends:
            reached.add(array.first)
        else:
            operands = graph.operands[node] if array is None else arrays.operands_of(array.first)
            fresh = [operand for operand in operands if operand not in seen]
            seen.update(fresh)
            stack += fresh
    return reached


class _CustomRule:
    """The partial derivatives of one application, made when the first one is asked for."""

    def __init__(self, graph: Graph, arguments: Tree, result: Tree, derivative: Function | None, name: str) -> None:
        self._graph, self._arguments, self._result = graph, arguments, result
        self._operands = [node for node in arguments.flat if node not in graph.atoms]
        self._derivative, self._name, self._place = derivative, name, user_place()
        self._partials: list[dict[int, int]] | None = None

    def ruled(self) -> Tree:
        """Return the result with this rule in place of its derivative."""
        nodes = [
            self._graph.ruled(value, self._operands, partial(self.partial, number))
            for number, value in enumerate(self._result.flat)
        ]
        return self._result.refill(nodes)

    def partial(self, number: int, position: int) -> int | None:
        """Return the partial derivative of result `number` in an operand."""
        if self._partials is None:
            self._partials = self._derivatives()
        return self._partials[number].get(self._operands[position])

    def _derivatives(self) -> list[dict[int, int]]:
        if self._derivative is None:
            raise RuleError(
                f"{self._name} has no derivative",
                where=self._place,
                why="it was declared with custom_derivative and without a rule",
                do="give derivative=...",
            )
        build, graph = Builder(self._graph), self._graph
        with open_scope(graph=graph) as scope:
            tangents = self._arguments.refill([graph.alias(build.zero) for _ in self._arguments.flat])
            scope.parameters = tangents.nodes  # a jvp inside the rule keeps nodes that depend on them
            derivative = self._derivative
            results = followed(
                scope, derivative,
                lambda: call(derivative, lambda: (wrap(scope, self._arguments), wrap(scope, tangents))),
                lambda value: lift_result(scope, value, f"derivative of {self._name}"),
            )  # fmt: skip
            self._check(scope, results, tangents.flat)
            terms = gradients(build, linearize(build, results.flat, tangents.flat))
        flat = self._arguments.flat
        return [{flat[k]: settle(build, term) for k, term in terms.get(node, {}).items()} for node in results.flat]

    def _check(self, scope: Scope, results: Tree, tangents: Sequence[int]) -> None:
        if not results.is_like(self._result):
            raise ArgumentError(
                f"the derivative of {self._name} has shapes {results.shapes}",
                why=f"its result has shapes {self._result.shapes}",
            )
        build = Builder(self._graph)
        linear = linearize(build, results.flat, tangents)
        coefficients = [
            node for _, row in linear.rows for edge in row for node in (edge[0], edge[2]) if node is not None
        ]
        constant = 0.0
        with contextlib.suppress(UnboundSymbolError):
            constant = np.abs(values_of_nodes(self._graph, results.flat, scope.values)).max(initial=0.0)
        if dependencies(self._graph, coefficients, set(tangents)) or constant > 0:
            raise ArgumentError(
                f"the derivative of {self._name} is not linear in its tangents",
                where=self._place,
                why="a derivative is a linear map: twice the tangent gives twice the result, and zero gives zero",
                do="return a sum of partial derivatives, each times its tangent",
            )
