"""Choose, from the outputs down, which operations become loop bodies and which stay straight lines.

Each class is visited once, after all classes that may ask for its members. Outputs and straight lines ask for single
nodes, templates ask for columns. Many single nodes of one class become a loop, and so do many terms of a sum. A column
is computed inside its template, unless few nodes stand for many: those are computed once, and read.
"""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence, Set
from dataclasses import field
from typing import TypeAlias

import numpy as np
import sympy as sp

from codegen.limits import check
from codegen.loops.find.anti_unification import BodyTemplate, Name, TemplateEntry, is_uniform
from codegen.loops.find.row_classes import Classes
from codegen.loops.find.sum_terms import MEMBERS, WIDE, Group, companions, flattened, terms_in, terms_of_sums
from codegen.loops.loop import Nodes
from codegen.records import dataclass

OPERATIONS = 64  # operations in all repetitions of a loop, at least
GATHER = 8.0  # cost of reading a result of a loop, in pairs of + and *
MANY = 64  # terms

Sums: TypeAlias = dict[int, tuple[int, ...]]


@dataclass(eq=False)
class _Demand:
    """The nodes and columns of a class that are asked for."""

    nodes: list[int] = field(default_factory=list)
    columns: list[tuple[BodyTemplate, TemplateEntry]] = field(default_factory=list)


def cover(classes: Classes, targets: Nodes, first: int, refused: Set[Name]) -> tuple[list[BodyTemplate], Sums]:
    """Return the templates of loops, each before its readers, and the sums; refused loops stay straight lines."""
    covering = _Cover(classes, first, refused)
    covering.run(targets)
    return covering.templates[::-1], covering.sums


class _Cover:
    """One pass from the outputs down."""

    def __init__(self, classes: Classes, first: int, refused: Set[Name]) -> None:
        self.classes, self.next, self.refused = classes, first, refused
        self.pending: dict[int, dict[int, _Demand]] = {}
        self.heap: list[int] = []
        self.templates: list[BodyTemplate] = []
        self.sums: Sums = {}
        self.plain: set[int] = set()  # sums known to have no terms alike
        self.narrow: set[int] = set()  # sums known not to be wide
        self.all_terms: tuple[Nodes, Nodes]  # of sums that are set apart, among others
        self.scratch = np.zeros(len(classes.of), dtype=np.int64)

    def run(self, targets: Nodes) -> None:
        self.ask(targets.tolist())
        if self.classes.set_apart:
            self.all_terms = terms_of_sums(self.classes)
        for kind in self.classes.set_apart:
            self.demand(kind)
        while self.heap:
            check("looking for sums")
            level = self.pending.pop(-heapq.heappop(self.heap))
            groups: list[Group] = []
            for kind in sorted(level):
                if kind in self.classes.set_apart:
                    self.scatter(self.classes.set_apart[kind])
                else:
                    groups += self.settle(kind, level[kind])
            self.reduce(groups)

    def scatter(self, sums: Nodes) -> None:
        """Let loops over the terms of a class add them to their sums; the few of other classes are gathered."""
        totals, terms = self.all_terms
        chosen = np.isin(totals, sums)
        totals, terms = totals[chosen], terms[chosen]
        order = np.lexsort((terms, self.classes.lead[terms], self.classes.of[terms]))
        kinds = self.classes.of[terms[order]]
        rest = []
        for part in np.split(order, np.nonzero(np.diff(kinds))[0] + 1):
            kind = int(self.classes.of[terms[part[0]]])
            if len(part) < MEMBERS or (self.classes.operations[kind] + 1) * len(part) < OPERATIONS:
                rest.append(part)
            else:
                self.add_to(kind, terms[part], totals[part])
        if rest:
            few = np.concatenate(rest)
            self.ask(terms[few].tolist())
            kind = max(self.classes.of[terms[few]].tolist(), key=self.classes.keys.__getitem__)
            self.add_to(kind, terms[few], totals[few], outside=True)

    def add_to(self, kind: int, terms: Nodes, totals: Nodes, *, outside: bool = False) -> None:
        template = BodyTemplate(len(terms), ())
        entry, new = template.find(self.classes, kind, terms)
        if outside:
            template.read(self.classes, entry)
        elif new and entry.role == "open":
            self.demand(kind).columns.append((template, entry))
        template.adds.append((entry, totals))
        self.templates.append(template)

    def demand(self, kind: int) -> _Demand:
        key = self.classes.keys[kind]
        level = self.pending.get(key)
        if level is None:
            level = self.pending[key] = {}
            heapq.heappush(self.heap, -key)
        return level.setdefault(kind, _Demand())

    def ask(self, nodes: Iterable[int]) -> None:
        of, heads = self.classes.of, self.classes.heads
        for node in nodes:
            kind = int(of[node])
            if heads[kind] is not None:
                self.demand(kind).nodes.append(node)

    def settle(self, kind: int, demand: _Demand) -> list[Group]:
        """Decide on a class; return the groups of terms of its members that are straight sums."""
        nodes = self.cut(kind, sorted(set(demand.nodes)), demand.columns)
        if self.is_map(kind, nodes):
            template = BodyTemplate(len(nodes), ((kind, -1),))
            entry, _ = template.find(self.classes, kind, self.ordered(np.array(nodes)))
            template.stores.append(entry)
            self.templates.append(template)
            self.grow(template, entry)
            return []
        if self.classes.heads[kind] is sp.Add:
            return [group for node in nodes for group in self.add_up(node)]
        for node in nodes:
            self.ask(self.classes.parts(node))
        return []

    def is_map(self, kind: int, nodes: Sequence[int]) -> bool:
        """Whether single nodes of a class become a loop."""
        if len(nodes) < MEMBERS or (kind, -1) in self.refused or self.wide(kind, nodes[0], len(nodes)):
            return False
        return self.classes.operations[kind] * len(nodes) >= OPERATIONS

    def wide(self, kind: int, node: int, count: int) -> bool:
        """Whether loops over the terms of sums are shorter than a loop over the sums: few sums with many terms."""
        classes = self.classes
        if classes.heads[kind] is not sp.Add or classes.operations[kind] < WIDE * count or node in self.narrow:
            return False
        terms, inner = flattened(classes, node, deep=True)
        kinds = Counter(kind for kind in classes.of[terms].tolist() if not classes.constant[kind])
        if max(kinds.values(), default=0) >= max(MANY, WIDE * count):
            return True
        self.narrow.update(inner)
        return False

    def ordered(self, nodes: Nodes) -> Nodes:
        """Sort nodes by the leaf that they read first."""
        return nodes[np.lexsort((nodes, self.classes.lead[nodes]))]

    def grow(self, template: BodyTemplate, entry: TemplateEntry) -> None:
        for operand in template.grow(self.classes, entry):
            self.demand(operand.kind).columns.append((template, operand))

    def cut(self, kind: int, nodes: list[int], columns: Sequence[tuple[BodyTemplate, TemplateEntry]]) -> list[int]:
        """Let columns be read or computed in their templates; return all nodes to compute one by one."""
        inner = []
        for template, entry in columns:
            if self.outside(kind) and is_uniform(entry.nodes):
                template.read(self.classes, entry)
                nodes.append(int(entry.nodes[0]))
            else:
                inner.append((template, entry))
        entries = [entry for _, entry in inner]
        count = sum(len(entry.nodes) for entry in entries)
        if inner and (self.wide(kind, int(entries[0].nodes[0]), count) or self.shared(kind, nodes, entries)):
            for template, entry in inner:
                template.read(self.classes, entry)
            every = np.concatenate([np.array(nodes, dtype=np.int64), *(entry.nodes for _, entry in inner)])
            unique: list[int] = np.unique(every).tolist()
            return unique
        for template, entry in inner:
            check("looking for sums")
            self.grow(template, entry)
        return sorted(set(nodes))

    def outside(self, kind: int) -> bool:
        """Whether a node may be computed outside of the loops that read it: neither a constant nor a multiple."""
        if self.classes.constant[kind]:
            return False
        operands = self.classes.operands[kind]
        return not (self.classes.heads[kind] is sp.Mul and any(self.classes.constant[part] for part in operands))

    def shared(self, kind: int, nodes: Sequence[int], entries: Sequence[TemplateEntry]) -> bool:
        """Whether computing each different node of columns once, and reading it, is less work."""
        weight = self.classes.weights[kind]
        total = sum(len(entry.nodes) for entry in entries)
        everything = total + len(nodes)
        if not self.outside(kind) or everything * weight < GATHER * total:
            return False
        every = np.concatenate([np.array(nodes, dtype=np.int64), *(entry.nodes for entry in entries)])
        numbers = np.arange(len(every))  # different nodes are counted without sorting them
        self.scratch[every] = numbers
        different = int(np.count_nonzero(self.scratch[every] == numbers))
        return 2 * different <= everything and (everything - different) * weight >= GATHER * total

    def add_up(self, total: int) -> list[Group]:
        """Split a sum: ask for the terms that are few of their class, and return the groups of the others."""
        if total in self.plain:
            self.ask(self.classes.parts(total))
            return []
        terms, inner = terms_in(self.classes, total)
        by_class = defaultdict(list)
        for term in sorted(terms):
            by_class[int(self.classes.of[term])].append(term)
        groups, rest = [], []
        check("looking for sums")
        for kind, members in by_class.items():
            if self.is_group(total, kind, len(members)):
                groups.append(Group(total, kind, self.ordered(np.array(members))))
            else:
                rest += [member for member in members if member not in self.classes.zeros]
        if groups:
            self.sums[total] = tuple(rest)
            self.ask(rest)
        else:
            self.plain.update(inner)
            self.narrow.update(inner)
            self.ask(self.classes.parts(total))
        return groups

    def is_group(self, total: int, kind: int, count: int) -> bool:
        if count < MEMBERS or self.classes.constant[kind] or (total, kind) in self.refused:
            return False
        return (self.classes.operations[kind] + 1) * count >= OPERATIONS

    def reduce(self, groups: Sequence[Group]) -> None:
        """Make templates of groups of terms; groups with equal operands, term by term, share one."""
        alone = {total for total, number in Counter(group.total for group in groups).items() if number == 1}
        alone = {total for total in alone if not self.sums[total]}
        for together in companions(self.classes, groups):
            check("looking for sums")
            template = BodyTemplate(len(together[0].terms), tuple((group.total, group.kind) for group in together))
            self.templates.append(template)
            for group in together:
                entry, new = template.find(self.classes, group.kind, group.terms)
                if group.total in alone:
                    template.sums.append((entry, group.total))
                    del self.sums[group.total]
                else:
                    template.sums.append((entry, self.next))
                    self.sums[group.total] = (*self.sums[group.total], self.next)
                    self.next += 1
                if new and entry.role == "open":
                    self.demand(entry.kind).columns.append((template, entry))
