"""Bodies of loops over arrays: rows over slots, and programs of them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import sympy as sp

from codegen.ir.program import Input, Output, Program
from codegen.ir.row_table import RowTable
from codegen.records import dataclass
from symad.graph.graph import Graph
from symad.tracing.control.equal_bodies import rows_of
from symad.tracing.values.array_blocks import TEMPLATES, Kind, SlotGraph, new_template
from symad.tracing.values.constant_nodes import as_number
from symad.tracing.values.node_builders import Build
from symad.tracing.values.node_rows import add_rows


def slots_on(number: int) -> tuple[Graph, list[int]]:
    """Return a graph with `number` slots."""
    graph = Graph(lines=False)
    return graph, [graph.leaf(sp.Symbol(f"slot_{k}", real=True)) for k in range(number)]


def program_of(rows: RowTable, slots: int, *results: int) -> Program:
    """Return rows, the first of which are slots, as a program of scalars."""
    inputs = tuple(Input(f"slot_{k}", ()) for k in range(slots))
    outputs = tuple(Output((), (result,)) for result in results)
    return Program(rows.heads, rows.operands, rows.atoms, inputs, outputs, "body")


@dataclass(frozen=True, eq=False)
class ElementBody:
    """An operation on one element: a body, its key, and the operands that it reads."""

    body: Program
    looks: Any
    varied: tuple[int, ...]
    is_truth: bool


@lru_cache(maxsize=TEMPLATES)
def element_body(build: Build, kinds: Sequence[Kind | sp.Basic], atoms: Sequence[Any]) -> ElementBody | None:
    """Return the body of an operation for operands of these kinds; None if it has no body.

    `atoms` tells equal constants apart in the cache (`exactly`).
    """
    template, slots, result = new_template(build, kinds)
    varied = [slot for slot in slots if slot not in template.atoms]
    if result in slots or not template.operands[result]:
        return None
    if any(template.heads[row] is sp.Pow and template.operands[row][1] in varied for row in range(len(template))):
        return None  # the derivative of a power depends on a constant exponent; that of a varying one has a logarithm
    is_truth = template.is_boolean(result)
    body = body_of_template(template, varied, as_number(template, result))
    places = tuple(k for k, slot in enumerate(slots) if slot in varied)
    return ElementBody(body, rows_of(body), places, is_truth)


def body_of_template(template: SlotGraph, slots: Sequence[int], result: int) -> Program:
    """Return the rows of a template as a program of its slots; those of truth values are numbers."""
    rows = RowTable()
    leaves_of = {slot: rows.leaf(sp.Symbol(f"slot_{k}", real=True)) for k, slot in enumerate(slots)}
    zero = rows.leaf(sp.Integer(0)) if any(map(template.is_boolean, slots)) else 0
    row_of = {
        slot: rows.row(sp.Unequality, (leaf, zero)) if template.is_boolean(slot) else leaf
        for slot, leaf in leaves_of.items()
    }
    others = [row for row in range(len(template)) if row not in row_of]
    add_rows(rows, row_of, template, others, template.atoms.__getitem__)
    return program_of(rows, len(slots), row_of[result])
