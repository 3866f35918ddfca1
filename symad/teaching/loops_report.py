"""What repeats in a function: each loop with its body, what it reads, and what becomes of its results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any

import numpy as np
import sympy as sp

from codegen.ir.copy_rows import copied
from codegen.ir.program import Program
from codegen.loops.loop import Block as InnerBlock, Loop, Reads, is_nodes
from codegen.records import dataclass
from symad.compiling.plan import CompilationPlan, line_of
from symad.compiling.planning import plan
from symad.display.document import Block, Document, Heading, Paragraph, Table
from symad.display.notation import counted
from symad.display.shown import Shown
from symad.graph.graph import Graph
from symad.graph.sympy_io import to_let
from symad.tracing.calling.tracebacks import public_api
from symad.tracing.calling.user_place import written_place

SHOWN_LOOPS = 12
SHOWN_LINES = 40  # of a body, or of what it reads
BECOMES = {
    "each": "kept for every repetition", "sum": "summed", "last": "the last one is kept", "add": "added to sums",
}  # fmt: skip
ENDS = 3  # how many places are written before the dots


@dataclass(frozen=True, eq=False)
class LoopReport(Shown):
    """The loops of a function: how many repetitions of what, and whether `compile` keeps them.

    All of it is what the plan says: `loops` are those of the traced function, before any derivative is taken
    (`codegen.loops.loop.Loop`); `kept` says whether `compile(f, *args)` makes loops of them, and `reason` why, or why
    not. `carried_out` has a sentence for each loop that was written down and is carried out repetition by repetition.
    """

    plan: CompilationPlan

    @property
    def name(self) -> str:
        """The function's name."""
        return self.plan.name

    @property
    def operations(self) -> int:
        """Operations traced."""
        return self.plan.traced

    @property
    def loops(self) -> Sequence[Loop]:
        """The loops."""
        return self.plan.loops

    @property
    def kept(self) -> bool:
        """Whether they are compiled as loops."""
        return self.plan.chosen == "rolled"

    @property
    def reason(self) -> str:
        """Why, or why not; the plan has the prices."""
        looped = next((each for each in self.plan.candidates if each.way == "rolled"), None)
        if looped is None:
            return f"compiled in straight lines: {self.plan.refused.get('rolled', 'loops were not asked for')}"
        how = self.plan.choice + ("" if self.kept else ", which costs less for so little")
        return f"{how}: {looped.executed} operations a call, {looped.written} of them written in bodies"

    @property
    def carried_out(self) -> Sequence[str]:
        """What is carried out repetition by repetition, and why."""
        return self.plan.carried_out

    @property
    def title(self) -> str:
        """A line above the page."""
        return f"Loops of {self.name}"

    @property
    def lines(self) -> list[str]:
        """One line for each loop: how many copies of which lines."""
        return self.plan.lines

    def document(self) -> Document:
        """Return what was found, and the first loops with their bodies."""
        found = f"{counted(len(self.loops), 'loop')} found" if self.loops else "nothing repeats"
        traced = counted(self.operations, "operation")
        head = f"{traced} traced; {found}. {self.reason[0].upper()}{self.reason[1:]}."
        blocks: list[Block] = [Heading(self.title, 1), Paragraph(head)]
        blocks += [Paragraph(f"{line[0].upper()}{line[1:]}.") for line in self.carried_out]
        for number, loop in enumerate(self.loops[:SHOWN_LOOPS]):
            blocks += [Heading(f"Loop {number}"), Paragraph(f"{line_of(loop)}."), *self.tables(loop)]
        if len(self.loops) > SHOWN_LOOPS:
            blocks.append(Paragraph(f"{len(self.loops) - SHOWN_LOOPS} more loops are not shown."))
        return tuple(blocks)

    def tables(self, loop: Loop) -> list[Block]:
        """What the slots of a loop read, and its body line by line; nothing of a derivative taken in the code."""
        if isinstance(loop, InnerBlock):
            return []
        slots = [(sp.Symbol(f"s{k}"), self.places(reads)) for k, reads in enumerate(loop.reads)]
        for k, carry in enumerate(loop.carries, len(loop.reads)):
            back = "one repetition" if len(carry.initial) == 1 else f"{len(carry.initial)} repetitions"
            slots.append(
                (sp.Symbol(f"s{k}"), f"out{carry.output} of {back} before; at first {self.places(carry.initial)}")
            )
        return [
            Table(("slot", "reads"), tuple(shortened(slots))),
            Table(("name", "is"), tuple(body_lines(loop.body))),
            Table(("output", "becomes"), tuple(uses(loop))),
        ]

    def places(self, reads: Reads) -> str:
        """Return the first and the last of what a slot reads: x_0, x_3, x_6, ..., x_27."""
        if len(np.unique(reads)) == 1:
            return self.name_of(reads, 0) + (" always" if len(reads) > 1 else "")
        names = [self.name_of(reads, k) for k in range(min(ENDS, len(reads)))]
        return ", ".join([*names, *(["..."] if len(reads) > ENDS + 1 else []), self.name_of(reads, len(reads) - 1)])

    def name_of(self, reads: Reads, k: int) -> str:
        """Return an input's name, a number, or which loop or line computed it."""
        primal = self.plan.primal
        if not is_nodes(reads) or primal is None:
            return f"{float(reads[k]):.6g}"
        row, rows = int(reads[k]), primal.rows
        for number, loop in enumerate(self.loops):
            for use in loop.results:
                found = np.flatnonzero(use.nodes == row)
                if found.size:
                    return f"out{use.output}{f'[{found[0]}]' if use.nodes.size > 1 else ''} of loop {number}"
        node = rows.node_of(row)
        if node is None:
            return "a sum"
        graph = primal.traced.graph
        if rows.operands[row]:
            return f"a value of {written_place(graph, node).rpartition('/')[2]}".removesuffix(" of ")
        atom = graph.atoms[node]
        return f"{float(atom):.6g}" if isinstance(atom, sp.Float) else str(atom)


@public_api
def loops(f: Callable[..., Any], *args: Any) -> LoopReport:
    """Return what repeats in a function: loops that were found in its trace, or written down (`sum_over`, `scan`, ...).

    The arguments give structure and shapes, as for `compile`. Transforms around f are looked through: the loops are
    those of the function itself, whose bodies are differentiated. Whether they are kept says the plan (`plan`).

    >>> def energy(x):
    ...     return sum((x[i] - x[j]) ** 4 for i in range(20) for j in range(i))
    >>> found = loops(energy, np.zeros(20))
    >>> [(loop.count, loop.results[0].kind) for loop in found.loops], found.kept
    ([(190, 'sum')], True)
    """
    return LoopReport(plan(f, *args))


def uses(loop: Loop) -> list[tuple[Any, Any]]:
    """Return what becomes of the outputs of a body; many neighbours with the same use in one line."""
    lines: list[tuple[Any, Any]] = []
    for kind, group in groupby(loop.results, key=lambda use: use.kind):
        names = [sp.Symbol(f"out{use.output}") for use in group]
        many = len(names) > ENDS
        lines += [(f"{names[0]} to {names[-1]}", BECOMES[kind])] if many else [(name, BECOMES[kind]) for name in names]
    return lines


def shortened(lines: list[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    """Return the first lines of a table, and how many more there are."""
    hidden = len(lines) - SHOWN_LINES
    return lines if hidden <= 0 else [*lines[:SHOWN_LINES], ("...", f"{hidden} more lines")]


def body_lines(body: Program) -> list[tuple[Any, Any]]:
    """Return a body as names and what they are, the outputs last."""
    graph = Graph(lines=False)
    graph.number(-1)  # before the slots, so that a difference is written as one
    slots = {k: graph.own_leaf(sp.Symbol(f"s{k}", real=True)) for k in range(len(body.inputs))}
    outputs = copied(body, [output.rows[0] for output in body.outputs], graph, slots)
    replacements, reduced = to_let(graph, outputs)
    lines: list[tuple[Any, Any]] = [*replacements, *((sp.Symbol(f"out{k}"), value) for k, value in enumerate(reduced))]
    return shortened(lines)
