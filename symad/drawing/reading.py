"""What may be drawn: functions and transforms of functions, traces, SymPy expressions, formulas as text, let forms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import sympy as sp

import symad.tracing.values.containers as containers
from codegen.ir.copy_rows import copied
from codegen.ir.program import Output, Program
from symad.derivatives.node_roles import History
from symad.derivatives.roles import noting
from symad.drawing.boxes import Mark, Source
from symad.errors import ArgumentError
from symad.formulas.read import read_formula
from symad.graph.graph import Graph
from symad.graph.let import from_let
from symad.graph.sympy_io import from_sympy
from symad.tracing.calling.given import given
from symad.tracing.calling.user_place import user_place
from symad.tracing.to_program import sparse_leaves
from symad.tracing.trace import Trace, trace
from symad.tracing.values.node_trees import Tree
from symad.tracing.values.sparse_matrix import SparseMatrix

_WHAT = "a function with its arguments, a trace, a SymPy expression, a formula as text, a let form, or a kernel"


def source_of(f: Any, args: Sequence[Any]) -> Source:
    """Return the graph of what is given, with the names of its results and the roles of its nodes."""
    if isinstance(f, Trace):
        _refuse_arguments(args, "a trace")
        return Source(f.graph, tuple(f.outputs.flat), result_names(f.outputs))
    if isinstance(f, Program):
        _refuse_arguments(args, "a program")
        return _of_program(f)
    if _is_let(f):
        _refuse_arguments(args, "a let form")
        graph = Graph(lines=False)
        return _of_list(graph, from_let(graph, *f))
    if isinstance(f, str):
        f = read_formula(f)
    if isinstance(f, sp.Basic | sp.MatrixBase | list | tuple) and not isinstance(f, sp.Lambda):
        return _of_expressions(f, args)
    if not callable(f):
        raise ArgumentError(f"{type(f).__name__} as something to draw", where=user_place(), do=f"give {_WHAT}")
    with noting() as events:
        traced = trace(f, *args)
    history, outputs = History(traced.graph, events), tuple(traced.outputs.flat)
    marks: dict[int, tuple[Mark, ...]] = {
        node: tuple((role.kind, role.level) for role in history.roles(node)) for node in range(len(traced.graph))
    }
    return Source(traced.graph, outputs, result_names(traced.outputs), marks)


def result_names(outputs: Tree) -> tuple[str, ...]:
    """Return how each number of a result is called: result, [0], ["a"][1, 2], ...; of a sparse matrix by its place."""
    result = containers.unflatten(outputs.structure, list(outputs.arrays))
    names: list[str] = []
    for leaf, path in zip(sparse_leaves(result)[0], containers.paths(result), strict=True):
        if isinstance(leaf, SparseMatrix):
            places = zip(leaf.rows.tolist(), leaf.columns.tolist(), strict=True)
            names += [f"{path.removesuffix('.data')}[{row}, {column}]" for row, column in places]
        else:
            names += [path + _index(index) for index in np.ndindex(*np.shape(leaf))]
    return tuple(name or "result" for name in names)


def _index(index: tuple[int, ...]) -> str:
    return f"[{', '.join(map(str, index))}]" if index else ""


def _of_expressions(f: Any, args: Sequence[Any]) -> Source:
    if len(args) > 1:
        raise ArgumentError(
            "several arguments of an expression", where=user_place(), do="give x as one list of symbols"
        )
    if args:
        given(f, args[0])  # refuses what is not a symbol of the expression
    expressions: list[Any] = [f]
    names = ["result"]
    if isinstance(f, sp.MatrixBase | list | tuple):
        array = np.array(f.tolist() if isinstance(f, sp.MatrixBase) else f, dtype=object)
        expressions = [sp.Number(item) if isinstance(item, int | float) else item for item in array.ravel().tolist()]
        names = [_index(index) for index in np.ndindex(*array.shape)]
    if not all(isinstance(expression, sp.Basic) for expression in expressions) or not expressions:
        raise ArgumentError(f"{type(f).__name__} as something to draw", where=user_place(), do=f"give {_WHAT}")
    graph = Graph(lines=False)
    return Source(graph, tuple(from_sympy(graph, expressions)), tuple(names))


def _of_program(program: Program) -> Source:
    graph = Graph(lines=False)
    inputs = {row: graph.own_leaf(program.atoms[row]) for row in range(program.input_count)}
    nodes = copied(program, [row for output in program.outputs for row in output.rows], graph, inputs)
    names = [
        (f"result {k}" if len(program.outputs) > 1 else "result") + _index(index)
        for k, output in enumerate(program.outputs)
        for index in _places(output)
    ]
    return Source(graph, tuple(nodes), tuple(names))


def _places(output: Output) -> list[tuple[int, ...]]:
    """Return the index of each row of an output of a program."""
    places = range(len(output.rows)) if output.positions is None else output.positions
    if output.pattern is not None or output.swept:
        return [(int(place),) for place in places]
    return [tuple(map(int, np.unravel_index(place, output.shape))) for place in places]


def _of_list(graph: Graph, nodes: Sequence[int]) -> Source:
    names = ("result",) if len(nodes) == 1 else tuple(f"[{k}]" for k in range(len(nodes)))
    return Source(graph, tuple(nodes), names)


def _is_let(f: Any) -> bool:
    """Whether f is (replacements, reduced), as `sympy.cse` and `Trace.let` return it."""
    if not (isinstance(f, tuple) and len(f) == 2 and all(isinstance(part, list) for part in f)):
        return False
    return all(isinstance(part, tuple) and len(part) == 2 and isinstance(part[0], sp.Symbol) for part in f[0])


def _refuse_arguments(args: Sequence[Any], what: str) -> None:
    if args:
        raise ArgumentError(f"arguments of {what}", where=user_place(), do="leave them out: they are known")
