"""Templates: one body for many repetitions, built from columns of nodes.

An entry of a template stands for one node in each repetition. Operands of entries are entries; equal columns are one
entry, so what a body shares is shared in every repetition, and nothing is guessed from one of them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import sympy as sp

from codegen.program import Head, Input, Output, Program, Rows
from symad.structure.classes import NUMBER, Classes
from symad.structure.loop import Loop, LoopResult, Nodes

Role = Literal["open", "operation", "slot", "literal"]


@dataclass(eq=False, slots=True)
class Entry:
    """A column of nodes of one class, and what the body makes of it; "open" until its class is looked at."""

    kind: int
    nodes: Nodes
    role: Role = "open"
    operands: tuple[Entry, ...] = ()


@dataclass(eq=False)
class Template:
    """Entries of a body over `count` repetitions; `sums` and `stores` are its results."""

    count: int
    sums: list[tuple[Entry, int]] = field(default_factory=list)
    stores: list[Entry] = field(default_factory=list)
    entries: dict[tuple[int, int, int], list[Entry]] = field(default_factory=dict)
    highest: int = -1  # key of the last class that it reads

    def find(self, classes: Classes, kind: int, nodes: Nodes) -> tuple[Entry, bool]:
        """Return the entry of a column, and whether it is new."""
        same = self.entries.setdefault((kind, int(nodes[0]), int(nodes[-1])), [])
        for entry in same:
            if np.array_equal(entry.nodes, nodes):
                return entry, False
        entry = Entry(kind, nodes)
        same.append(entry)
        if classes.heads[kind] is None:
            if classes.constant[kind] and (kind != NUMBER or is_uniform(nodes)):
                entry.role = "literal"
            else:
                self.read(classes, entry)
        return entry, True

    def read(self, classes: Classes, entry: Entry) -> None:
        """Let a column be read."""
        entry.role = "slot"
        self.highest = max(self.highest, classes.keys[entry.kind])

    def grow(self, classes: Classes, entry: Entry) -> list[Entry]:
        """Let a column be computed from those of its operands; return the ones that are new and open."""
        entry.role = "operation"
        first = classes.start[entry.nodes]
        found = [
            self.find(classes, kind, classes.flat[first + place])
            for place, kind in enumerate(classes.operands[entry.kind])
        ]
        entry.operands = tuple(operand for operand, _ in found)
        return [operand for operand, new in found if new and operand.role == "open"]

    def foreign(self, classes: Classes) -> int:
        """Number of columns that are read where other loops, or straight lines, have left them."""
        slots = self.with_role("slot")
        return sum(1 for entry in slots if classes.heads[entry.kind] is not None and not is_uniform(entry.nodes))

    def all_entries(self) -> list[Entry]:
        """All entries, in the order in which they were found."""
        return [entry for same in self.entries.values() for entry in same]

    def with_role(self, role: Role) -> list[Entry]:
        """The entries that have a role."""
        return [entry for entry in self.all_entries() if entry.role == role]

    @property
    def size(self) -> int:
        """Operations of one repetition; adding to a sum is one."""
        return len(self.with_role("operation")) + len(self.sums)


def is_uniform(nodes: Nodes) -> bool:
    """Whether all nodes of a column are one."""
    return bool((nodes == nodes[0]).all())


def to_loop(template: Template, rows: Rows, classes: Classes, order: Nodes) -> Loop:
    """Return the loop of a template, its repetitions in the order given."""
    slots = template.with_role("slot")
    literals = template.with_role("literal")
    operations = sorted(template.with_role("operation"), key=lambda entry: classes.keys[entry.kind])
    row_of = {id(entry): row for row, entry in enumerate([*slots, *literals, *operations])}
    heads: list[Head] = [sp.Symbol] * len(slots)
    atoms: dict[int, sp.Basic] = {row: sp.Symbol(f"z{row}", real=True) for row in range(len(slots))}
    for entry in literals:
        atoms[len(heads)] = rows.atoms[int(entry.nodes[0])]
        heads.append(rows.heads[int(entry.nodes[0])])
    heads += [rows.heads[int(entry.nodes[0])] for entry in operations]
    leaves: list[tuple[int, ...]] = [()] * (len(slots) + len(literals))
    operands = leaves + [tuple([row_of[id(part)] for part in entry.operands]) for entry in operations]
    results = [LoopResult(k, "sum", np.array([node])) for k, (_, node) in enumerate(template.sums)]
    results += [
        LoopResult(k, "each", entry.nodes[order]) for k, entry in enumerate(template.stores, len(template.sums))
    ]
    outputs = [entry for entry, _ in template.sums] + template.stores
    body = Program(
        heads, operands, atoms, tuple(Input(f"z{row}", ()) for row in range(len(slots))),
        tuple(Output((), (row_of[id(entry)],)) for entry in outputs), "body",
    )  # fmt: skip
    example = tuple(sorted(int(entry.nodes[order[0]]) for entry in operations))
    return Loop(body, template.count, tuple(entry.nodes[order] for entry in slots), tuple(results), example=example)
