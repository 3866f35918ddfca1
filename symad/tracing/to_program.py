"""From a trace to a Program: aliases stripped, rows interned anew, structural zeros and patterns kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import optree
import sympy as sp

import symad.tracing.values.containers as containers
from codegen.functions.intrinsics import intrinsic, supports
from codegen.ir.copy_rows import copy_rows
from codegen.ir.program import Input, Output, Program, reachable
from codegen.ir.row_table import Table
from codegen.ir.sparsity import SparsityPattern
from codegen.ir.strictness import checked
from codegen.limits import LEAVES
from symad.errors import ArgumentError, LoweringError
from symad.graph.graph import Graph
from symad.tracing.calling.user_place import located, written_place
from symad.tracing.trace import Trace
from symad.tracing.values.container_types import NAMESPACE
from symad.tracing.values.node_trees import paths_of
from symad.tracing.values.sparse_matrix import SparseMatrix


def add_rows(
    table: Table, row_of: dict[int, int], graph: Graph, nodes: Sequence[int], atom: Callable[[int], sp.Basic]
) -> None:
    """Add nodes, in topological order, to a table, and their rows to `row_of`; `atom` answers for the leaves.

    LoweringError, with the user's line, for a head that codegen does not know.

    >>> graph, table, row_of = Graph(), Table(), dict[int, int]()
    >>> x = graph.leaf(sp.Symbol("x"))
    >>> add_rows(table, row_of, graph, [x, graph.alias(x), graph.node(sp.sin, x)], graph.atoms.__getitem__)
    >>> row_of, table.heads
    ({0: 0, 1: 0, 2: 1}, [<class 'sympy.core.symbol.Symbol'>, sin])
    """
    heads = graph.heads
    unknown = {
        head for head in set(map(heads.__getitem__, nodes)) if not supports(head) and not issubclass(head, LEAVES)
    }
    for node in nodes if unknown else ():
        if heads[node] in unknown and graph.operands[node]:
            try:
                intrinsic(heads[node])
            except LoweringError as error:
                raise located(error, graph, node) from error
    copy_rows(graph, nodes, table, row_of, lambda node: table.leaf(atom(node)))


def to_program(traced: Trace, name: str = "kernel") -> Program:
    """Return the Program of a trace: only reachable rows, inputs first, aliases stripped and rows interned anew.

    An output that is the constant 0 becomes a structural zero. ArgumentError names a free symbol that is no input.

    >>> from symad.tracing.trace import trace
    >>> len(to_program(trace(lambda x: x * x, 1.0)))
    2
    """
    graph = traced.graph
    table = Table()
    row_of = {node: table.leaf(graph.atoms[node]) for node in traced.inputs.flat}
    nodes = reachable(graph, traced.outputs.flat)
    add_rows(table, row_of, graph, nodes, lambda node: _constant(graph, node, traced))
    inputs = input_arrays(traced)
    outputs = tuple(
        _output(array.shape, [row_of[node] for node in array.ravel().tolist()], table, pattern)
        for array, pattern in zip(traced.outputs.arrays, patterns_of(traced), strict=True)
    )
    program = Program(table.heads, table.operands, table.atoms, inputs, outputs, name)
    return checked(program, "writing a trace as rows", needed=True)


def with_place(error: LoweringError, traced: Trace) -> LoweringError:
    """Return an error of a later stage with the user's line, where its text starts with the name of a head.

    >>> from symad.tracing.trace import trace
    >>> error = LoweringError("Abs of a complex number")
    >>> with_place(error, trace(lambda x: abs(x), 1.0)).where != ""
    True
    """
    head, graph = error.what.split(" ")[0], traced.graph
    nodes = (node for node in reachable(graph, traced.outputs.flat) if graph.heads[node].__name__ == head)
    node = next(nodes, None)
    return error if node is None else located(error, graph, node)


def _constant(graph: Graph, node: int, traced: Trace) -> sp.Basic:
    atom = graph.atoms[node]
    if isinstance(atom, sp.Symbol):
        raise ArgumentError(
            f"the free symbol {atom} in the traced function",
            where=written_place(graph, node),
            why=f"it is not one of the arguments ({', '.join(traced.names)}), so the kernel has no value for it",
            do="pass it as an argument or substitute a number",
        )
    return atom


def input_arrays(traced: Trace) -> tuple[Input, ...]:
    """Return the names and shapes of a trace's inputs, as paths: `params["w"]`."""
    names = paths_of(containers.unflatten(traced.inputs.structure, traced.inputs.arrays), traced.names)
    return tuple(Input(name, array.shape) for name, array in zip(names, traced.inputs.arrays, strict=True))


def _output(shape: tuple[int, ...], rows: Sequence[int], table: Table, pattern: SparsityPattern | None) -> Output:
    positions = [k for k, row in enumerate(rows) if not _is_zero(table.atoms.get(row))]
    if len(positions) == len(rows):
        return Output(shape, tuple(rows), pattern=pattern)
    return Output(shape, tuple(rows[k] for k in positions), tuple(positions), pattern)


def _is_zero(atom: sp.Basic | None) -> bool:
    """Whether a leaf is the number 0 or 0.0; -0.0 is an atom of its own."""
    return isinstance(atom, sp.Number) and atom.is_zero is True


def skeleton(traced: Trace) -> Any:
    """The result's containers with 0.0 for each array."""
    return containers.unflatten(traced.outputs.structure, [0.0] * len(traced.outputs.arrays))


def sparse_leaves(result: Any) -> tuple[list[Any], Any]:
    """Flatten a skeleton without taking apart the sparse matrices in it."""
    return optree.tree_flatten(result, lambda value: isinstance(value, SparseMatrix), namespace=NAMESPACE)


def patterns_of(traced: Trace) -> list[SparsityPattern | None]:
    """Return the pattern of each output that is the data of a sparse matrix, None for others."""
    leaves = sparse_leaves(skeleton(traced))[0]
    return [leaf.pattern if isinstance(leaf, SparseMatrix) else None for leaf in leaves]
