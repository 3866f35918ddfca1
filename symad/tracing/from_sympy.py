"""`from_sympy` and `from_program`: SymPy expressions, or a kernel's program, as a trace and a function."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import sympy as sp

import symad.tracing.values.containers as containers
from codegen import Kernel, unroll
from codegen.expressions.sympy_forms import can_be_input, is_input_head
from codegen.expressions.sympy_in import flattened
from codegen.ir.copy_rows import copied
from codegen.ir.program import Output, Program, reachable
from codegen.ir.region import RolledProgram
from codegen.loops.loop import Nodes
from symad.errors import ArgumentError, LoweringError
from symad.graph.graph import Graph
from symad.graph.sympy_io import to_sympy
from symad.tracing.calling.function_names import positional
from symad.tracing.calling.scope import Scope, innermost_scope, open_scope
from symad.tracing.calling.user_place import user_place
from symad.tracing.trace import Trace
from symad.tracing.values.known_numbers import values_of
from symad.tracing.values.node_trees import Tree, expressions, input_symbols, lift, lift_result, paths_of, wrap


class TracedFormula(Trace):
    """The trace of SymPy expressions, which is also a function: of numbers, expressions or traced values.

    >>> t, mass = sp.symbols("t m")
    >>> x = sp.Function("x")(t)
    >>> energy = from_sympy([x.diff(t), mass], mass * x.diff(t) ** 2 / 2)
    >>> energy(3.0, 2.0), energy(x.diff(t), 2)
    (9.0, Derivative(x(t), t)**2)
    """

    __name__ = "formula"

    @property
    def __signature__(self) -> inspect.Signature:
        """The names of the arguments, for messages and `wrt=`: x(t) is x_t."""
        names = [re.sub(r"\W+", "_", name).strip("_") for name in self.names]
        valid = len(set(names)) == len(names) and all(name.isidentifier() for name in names)
        names = names if valid else [f"argument_{k}" for k in range(len(names))]
        return inspect.Signature([inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in names])

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        """Return the result at the arguments, which have the structure and shapes of the inputs."""
        if keywords:
            arguments = positional(self, arguments, keywords)
        scope = innermost_scope()
        if scope is not None:
            return wrap(scope, self._at(scope, arguments))
        with open_scope() as scope:
            result = self._at(scope, arguments)
            symbolic = any(
                isinstance(scope.graph.atoms.get(node), sp.Symbol) for node in reachable(scope.graph, result.flat)
            )
            values = [_values(scope, array, symbolic=symbolic) for array in result.arrays]
        return containers.unflatten(result.structure, values)

    def _at(self, scope: Scope, arguments: tuple[Any, ...]) -> Tree:
        """Return the nodes of the result in the graph of `scope`: the rows are copied, the inputs replaced."""
        names = [*self.names, *(f"argument_{k}" for k in range(len(self.names), len(arguments)))]
        paths = paths_of(arguments, names[: len(arguments)])
        given = lift(scope, arguments, paths)
        if given.structure != self.inputs.structure:
            raise ArgumentError(f"arguments of structure {given.structure}", why=f"it takes {self.inputs.structure}")
        for array, wanted, path in zip(given.arrays, self.inputs.arrays, paths, strict=True):
            if array.shape != wanted.shape:
                raise ArgumentError(
                    f"argument {path} of shape {array.shape}", why=f"it has shape {wanted.shape}",
                    do="use sa.vmap or sa.lambdify for many points",
                )  # fmt: skip
        nodes = dict(zip(self.inputs.flat, given.flat, strict=True))
        return self.outputs.refill(copied(self.graph, self.outputs.flat, scope.graph, nodes))


def from_sympy(args: Sequence[Any], expression: Any) -> TracedFormula:
    """Return SymPy expressions (one, or a container, Matrix or Array of them) as a trace and function of `args`.

    An argument is a symbol, `x[0]`, a function of time `x(t)` or its derivative, which count as independent; a Matrix
    or Array of them, an IndexedBase or MatrixSymbol (arrays of their shape); or a container of all these. ArgumentError
    for any other argument, and for a function of time in the expression that is none. Sums and products with numeric
    bounds are written out.

    >>> x, y = sp.symbols("x y")
    >>> from_sympy([x, y], x * sp.sin(y)).let()
    ([], [x*sin(y)])
    >>> a, i = sp.IndexedBase("a", shape=(3,)), sp.Symbol("i")
    >>> from_sympy([a], sp.Sum(a[i] ** 2, (i, 0, 2)))(np.array([1.0, 2.0, 3.0]))
    14.0
    """
    formula = formula_of(args, expression)
    _check_bound(formula)
    return formula


def formula_of(args: Sequence[Any], expression: Any) -> TracedFormula:
    """Return the same where functions that nothing is known about may stay: f(x) for an argument x.

    >>> x = sp.Symbol("x")
    >>> formula_of([x], sp.Function("f")(x) + x)(2 * x)
    2*x + f(2*x)
    """
    several = isinstance(args, sp.Tuple) if isinstance(args, sp.Basic) else isinstance(args, Iterable)
    args = tuple(args) if several else (args,)
    names = [_name(arg, k) for k, arg in enumerate(args)]
    with open_scope(apart=True) as scope:
        inputs = _inputs(scope.graph, args, names)
        return TracedFormula(scope.graph, names, inputs, lift_result(scope, expression, "expression"))


def _name(arg: Any, position: int) -> str:
    named = can_be_input(arg) or isinstance(arg, sp.IndexedBase | sp.MatrixSymbol)
    return str(arg) if named else f"argument_{position}"


def _inputs(graph: Graph, args: tuple[Any, ...], names: Sequence[str]) -> Tree:
    leaves, structure = containers.flatten(args)
    arrays = []
    for leaf, path in zip(leaves, paths_of(args, names), strict=True):
        if isinstance(leaf, np.ndarray):
            leaf = leaf.tolist()
        try:
            shape, atoms = flattened(leaf, path)
        except (LoweringError, sp.SympifyError) as error:
            raise _no_inputs(args) from error
        if not all(can_be_input(atom) for atom in atoms):
            raise _no_inputs(args)
        arrays.append(np.array([graph.leaf(atom) for atom in atoms], dtype=np.int64).reshape(shape))
    inputs = Tree(structure, arrays)
    if len(set(inputs.flat)) < len(inputs.flat):
        raise _no_inputs(args)
    return inputs


def _no_inputs(args: tuple[Any, ...]) -> ArgumentError:
    return ArgumentError(
        f"{args} as arguments",
        where=user_place(),
        why="they have to be distinct SymPy symbols, or x[0], x(t) and its derivatives, or arrays of these",
        do="give an IndexedBase its shape, and a function its argument: x(t)",
    )


def _check_bound(formula: TracedFormula) -> None:
    """Raise ArgumentError for a function of time or an indexed symbol that is no input: it could not have a value."""
    graph = formula.graph
    for node in reversed(reachable(graph, formula.outputs.flat)):
        if graph.operands[node] and is_input_head(graph.heads[node]):
            (unbound,) = to_sympy(graph, [node])
            raise ArgumentError(
                f"{unbound} in the expression",
                where=user_place(),
                why=f"it is none of the arguments ({', '.join(formula.names)})",
                do="add it to the arguments" if can_be_input(unbound) else "write expression.doit()",
            )


def _values(scope: Scope, nodes: Any, *, symbolic: bool) -> Any:
    if symbolic:
        return expressions(scope.graph, nodes)
    values = values_of(scope, nodes)
    return values if values.ndim else values.item()


def from_program(program: Kernel | Program | RolledProgram) -> TracedFormula:
    """Return a program, or that of a kernel, as a trace and function of its input arrays; loops are written out.

    `.let()` is its let form, as of `sympy.cse`, and `.expr()` its SymPy expressions. Several outputs are a tuple; that
    of a sparse matrix is its packed data. A program keeps no `stop_gradient` and no `custom_derivative`. LimitError for
    more than five million operations (see `codegen.unroll`), ArgumentError for what is no program and no kernel.

    >>> import symad as sa
    >>> total = sa.compile(lambda x: sa.sum_over(lambda a: a**2, x), np.zeros(3), roll="always")
    >>> from_program(total).expr().doit()  # in the order of SymPy
    x_0**2 + x_1**2 + x_2**2
    >>> from_program(total)(np.array([1.0, 2.0, 3.0]))
    14.0
    """
    if isinstance(program, Kernel):
        program = program.program
    if not isinstance(program, Program | RolledProgram):
        raise ArgumentError(
            f"{type(program).__name__} as a program", where=user_place(), do="give a kernel or its program"
        )
    flat = unroll(program)
    names = [array.name for array in flat.inputs]
    with open_scope(apart=True) as scope:
        graph = scope.graph
        arrays = [
            np.array([graph.own_leaf(symbol) for symbol in input_symbols(array.name, array.shape)]).reshape(array.shape)
            for array in flat.inputs
        ]
        inputs = Tree(containers.flatten(tuple([0.0] * len(arrays)))[1], arrays)
        return TracedFormula(graph, names, inputs, _outputs(graph, flat, inputs.flat))


def _outputs(graph: Graph, program: Program, inputs: list[int]) -> Tree:
    """Return the outputs of a program whose rows are copied into a graph."""
    nodes = dict(enumerate(inputs))
    copied(program, [row for output in program.outputs for row in output.rows], graph, nodes)
    arrays = [_filled(graph, output, [nodes[row] for row in output.rows]) for output in program.outputs]
    result: Any = 0.0 if len(arrays) == 1 else tuple([0.0] * len(arrays))
    return Tree(containers.flatten(result)[1], arrays)


def _filled(graph: Graph, output: Output, nodes: list[int]) -> Nodes:
    """Return the array of an output, with 0 in the places of its structural zeros."""
    array = np.full(output.size, graph.number(0), dtype=np.int64)
    array[slice(None) if output.positions is None else list(output.positions)] = nodes
    return array.reshape(output.shape)
