"""from_program: what a kernel computes as a trace and function again, with its let form and its expressions."""

from __future__ import annotations

from typing import Any

import numpy as np

import symad.tracing.values.containers as containers
from codegen import Kernel, unroll
from codegen.ir.copy_rows import copied
from codegen.ir.program import Output, Program
from codegen.ir.region import RolledProgram
from codegen.loops.loop import Nodes
from symad.errors import ArgumentError
from symad.graph.graph import Graph
from symad.tracing.calling.scope import open_scope
from symad.tracing.calling.user_place import user_place
from symad.tracing.from_sympy import Formula
from symad.tracing.values.inputs import input_symbols
from symad.tracing.values.node_trees import Tree


def from_program(program: Kernel | Program | RolledProgram) -> Formula:
    """Return a program, or that of a kernel, as a trace and function of its input arrays; loops are written out.

    `.let()` is its let form, as of `sympy.cse`, and `.expr()` its SymPy expressions. Several outputs are a tuple; that
    of a sparse matrix is its packed data. LimitError for more than five million operations (see `codegen.unroll`).

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
        return Formula(graph, names, inputs, _outputs(graph, flat, inputs.flat))


def _outputs(graph: Graph, program: Program, inputs: list[int]) -> Tree:
    """Return the outputs of a program whose rows are copied into a graph."""
    made = dict(enumerate(inputs))
    copied(program, [row for output in program.outputs for row in output.rows], graph, made)
    arrays = [_filled(graph, output, [made[row] for row in output.rows]) for output in program.outputs]
    result: Any = 0.0 if len(arrays) == 1 else tuple([0.0] * len(arrays))
    return Tree(containers.flatten(result)[1], arrays)


def _filled(graph: Graph, output: Output, nodes: list[int]) -> Nodes:
    """Return the array of an output, with 0 in the places of its structural zeros."""
    array = np.full(output.size, graph.number(0), dtype=np.int64)
    array[slice(None) if output.positions is None else list(output.positions)] = nodes
    return array.reshape(output.shape)
