"""Anti-unify columns of nodes: one body for many repetitions.

An entry of a template stands for one node in each repetition. Operands of entries are entries; equal columns are one
entry, so common subexpressions of a body are common in every repetition.

Loops over the same repetitions become one, where none waits for the other (`fused`): the sine and the cosine of the
same angles are computed together, and a sum over results of a loop is added up in that loop. Dependences between nodes
are exact, because each is computed once. Loops between buffers, such as derivatives, are fused by
`codegen.loops.optimise.fusion`, which does not tell the rounds of a nest apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import Literal, TypeAlias

import numpy as np

from codegen.ir.copy_rows import BodyRows
from codegen.ir.program import Rows
from codegen.limits import check
from codegen.loops.find.row_classes import NUMBER, Classes
from codegen.loops.loop import Loop, LoopResult, Nodes
from codegen.records import dataclass

Name: TypeAlias = tuple[int, int]
Role = Literal["open", "operation", "slot", "literal"]


@dataclass(eq=False, slots=True)
class TemplateEntry:
    """A column of nodes of one class, and its role in the body; "open" until its class is visited."""

    kind: int
    nodes: Nodes
    role: Role = "open"
    operands: tuple[TemplateEntry, ...] = ()


@dataclass(eq=False)
class BodyTemplate:
    """Entries of a body over `count` repetitions; `sums`, `stores` and `adds` are its results.

    A loop is refused under its names: a class and -1, or a sum and the class of its terms.
    """

    count: int
    names: tuple[Name, ...]
    sums: list[tuple[TemplateEntry, int]] = field(default_factory=list)
    stores: list[TemplateEntry] = field(default_factory=list)
    adds: list[tuple[TemplateEntry, Nodes]] = field(default_factory=list)
    entries: dict[tuple[int, int, int], list[TemplateEntry]] = field(default_factory=dict)
    highest: int = -1  # key of the last class that it reads

    def known(self, kind: int, nodes: Nodes) -> TemplateEntry | None:
        same = self.entries.get(_key(kind, nodes), [])
        return next((entry for entry in same if np.array_equal(entry.nodes, nodes)), None)

    def add(self, entry: TemplateEntry, operands: tuple[TemplateEntry, ...]) -> TemplateEntry:
        """Add an entry of another template of as many repetitions."""
        moved = TemplateEntry(entry.kind, entry.nodes, entry.role, operands)
        self.entries.setdefault(_key(entry.kind, entry.nodes), []).append(moved)
        return moved

    def find(self, classes: Classes, kind: int, nodes: Nodes) -> tuple[TemplateEntry, bool]:
        """Return the entry of a column, and whether it is new."""
        known = self.known(kind, nodes)
        if known is not None:
            return known, False
        entry = self.add(TemplateEntry(kind, nodes), ())
        if classes.heads[kind] is None:
            if classes.constant[kind] and (kind != NUMBER or is_uniform(nodes)):
                entry.role = "literal"
            else:
                self.read(classes, entry)
        return entry, True

    def read(self, classes: Classes, entry: TemplateEntry) -> None:
        entry.role = "slot"
        self.highest = max(self.highest, classes.keys[entry.kind])

    def grow(self, classes: Classes, entry: TemplateEntry) -> list[TemplateEntry]:
        """Let a column be computed from those of its operands; return the ones that are new and open."""
        entry.role = "operation"
        first = classes.start[entry.nodes]
        kinds = enumerate(classes.operands[entry.kind])
        operands = [self.find(classes, kind, classes.flat[first + place]) for place, kind in kinds]
        entry.operands = tuple(operand for operand, _ in operands)
        return [operand for operand, new in operands if new and operand.role == "open"]

    def reorder(self, order: Nodes) -> None:
        """Put the repetitions into another order."""
        entries = self.all_entries()
        self.entries = {}
        self.adds = [(entry, targets[order]) for entry, targets in self.adds]
        for entry in entries:
            entry.nodes = entry.nodes[order]
            self.entries.setdefault(_key(entry.kind, entry.nodes), []).append(entry)

    def results(self, classes: Classes) -> int:
        """Return the key of the first class of its results; a total comes later than its terms."""
        keys = [classes.keys[entry.kind] for entry in self.stores]
        keys += [classes.keys[int(classes.of[targets[0]])] for _, targets in self.adds]
        return min(keys + [classes.keys[int(classes.of[total])] for total, kind in self.names if kind >= 0])

    def all_entries(self) -> list[TemplateEntry]:
        return [entry for same in self.entries.values() for entry in same]

    def with_role(self, role: Role) -> list[TemplateEntry]:
        return [entry for entry in self.all_entries() if entry.role == role]

    @property
    def size(self) -> int:
        """Operations of one repetition; adding to a sum is one."""
        return len(self.with_role("operation")) + len(self.sums) + len(self.adds)


def _key(kind: int, nodes: Nodes) -> tuple[int, int, int]:
    return kind, int(nodes[0]), int(nodes[-1])


def is_uniform(nodes: Nodes) -> bool:
    return bool((nodes == nodes[0]).all())


def to_loop(template: BodyTemplate, rows: Rows, classes: Classes) -> Loop:
    """Return the loop of a template."""
    slots = template.with_role("slot")
    literals = template.with_role("literal")
    operations = sorted(template.with_role("operation"), key=lambda entry: classes.keys[entry.kind])
    table = BodyRows(len(slots))
    row_of = dict(zip(map(id, slots), table.slots, strict=True))
    row_of |= {id(entry): table.leaf(rows.atoms[int(entry.nodes[0])]) for entry in literals}
    for entry in operations:
        operands = tuple([row_of[id(part)] for part in entry.operands])
        row_of[id(entry)] = table.canonical(rows.heads[int(entry.nodes[0])], operands)
    results = [LoopResult(k, "sum", np.array([node])) for k, (_, node) in enumerate(template.sums)]
    results += [LoopResult(k, "each", entry.nodes) for k, entry in enumerate(template.stores, len(template.sums))]
    results += [LoopResult(k, "add", targets) for k, (_, targets) in enumerate(template.adds, len(results))]
    outputs = [entry for entry, _ in template.sums] + template.stores + [entry for entry, _ in template.adds]
    body = table.body(row_of[id(entry)] for entry in outputs)
    example = tuple(sorted(int(entry.nodes[0]) for entry in operations))
    return Loop(body, template.count, tuple(entry.nodes for entry in slots), tuple(results), example=example)


def fused(templates: Sequence[BodyTemplate], classes: Classes) -> list[BodyTemplate]:
    """Return the templates, each before its readers, with templates over the same repetitions fused."""
    hosts: list[BodyTemplate] = []
    by_column: dict[tuple[int, int, int, int], list[BodyTemplate]] = {}
    for template in templates:
        check("fusing loops")
        candidates = _candidates(template, by_column)
        host = next((host for host in candidates if _fits(host, template, classes)), None)
        if host is None:
            hosts.append(template)
            host = template
        else:
            _absorb(template, host, classes)
        slots = host.with_role("slot")
        varied = [entry for entry in slots if not classes.constant[entry.kind] and not is_uniform(entry.nodes)]
        for entry in varied + host.stores:
            known = by_column.setdefault(_signature(entry), [])
            if host not in known:
                known.append(host)
    return hosts


def _signature(entry: TemplateEntry) -> tuple[int, int, int, int]:
    return entry.kind, len(entry.nodes), int(entry.nodes[0]), int(entry.nodes[-1])


def _candidates(
    template: BodyTemplate, by_column: dict[tuple[int, int, int, int], list[BodyTemplate]]
) -> list[BodyTemplate]:
    """Return the loops that read or store a column that a loop reads, in the same order."""
    candidates = []
    for entry in template.with_role("slot"):
        for host in by_column.get(_signature(entry), []):
            if host not in candidates and host.known(entry.kind, entry.nodes) is not None:
                candidates.append(host)
    return candidates


def _fits(host: BodyTemplate, template: BodyTemplate, classes: Classes) -> bool:
    """Whether two loops can be one: all operands come before any of the results; sums are complete after all loops."""
    read = [entry for entry in template.with_role("slot") if host.known(entry.kind, entry.nodes) is None]
    highest = max([host.highest, *(classes.keys[entry.kind] for entry in read)])
    added = {int(classes.of[targets[0]]) for _, targets in (*host.adds, *template.adds)}
    return len(added) < 2 and highest < min(host.results(classes), template.results(classes))


def _absorb(template: BodyTemplate, host: BodyTemplate, classes: Classes) -> None:
    """Move a loop into another one; common entries are computed once."""
    moved: dict[TemplateEntry, TemplateEntry] = {}
    roots = [*(entry for entry, _ in (*template.sums, *template.adds)), *template.stores]
    stack = list(roots)
    while stack:
        entry = stack[-1]
        known = moved.get(entry) or host.known(entry.kind, entry.nodes)
        missing = [part for part in entry.operands if part not in moved] if known is None else []
        if missing:
            stack += missing
            continue
        stack.pop()
        moved[entry] = known or host.add(entry, tuple(moved[part] for part in entry.operands))
    host.highest = max([host.highest, *(classes.keys[entry.kind] for entry in host.with_role("slot"))])
    host.sums += [(moved[entry], node) for entry, node in template.sums]
    host.stores += [moved[entry] for entry in template.stores]
    host.adds += [(moved[entry], targets) for entry, targets in template.adds]
    host.names += template.names
