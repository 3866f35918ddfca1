"""Find: loops in straight lines. Chains are looked for first, sums and maps in what they leave.

Sums and maps are operations written alike, many times (see `row_classes`, `cover`, `repetition_order`). Their loops are
exact by construction: every slot is a column of the original nodes. Only the order of additions in a sum of many terms
changes, to that of the loop; rounding apart, the values are those of the straight lines.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from codegen.ir.program import Rows
from codegen.ir.tables import distinct
from codegen.limits import check
from codegen.loops.find.anti_unification import Name, Template, fused, to_loop
from codegen.loops.find.chains import find_chains
from codegen.loops.find.compositions import whole_compositions
from codegen.loops.find.cover import OPERATIONS, cover
from codegen.loops.find.few_rows import few_rows
from codegen.loops.find.flat_rows import Flat, flattened
from codegen.loops.find.plain_rows import PlainRows, operations_of
from codegen.loops.find.repetition_order import Places, gathered, order_of
from codegen.loops.find.row_classes import Classes, classify
from codegen.loops.find.sum_terms import ragged_sums
from codegen.loops.loop import Loop, Nodes

TRIES = 5  # each refuses loops that are not worth it, and looks again


@dataclass(frozen=True, eq=False)
class Found:
    """Loops, and the nodes that are sums of other nodes, from left to right, whatever their rows say."""

    loops: list[Loop]
    sums: dict[int, tuple[int, ...]]


def find_sums(
    rows: Rows, inputs: Nodes, outputs: Nodes, done: Sequence[Loop], first: int, flat: Flat | None = None
) -> Found:
    """Return the sums and maps among what outputs and loops in `done` need; new nodes are numbered from `first`.

    >>> import sympy as sp
    >>> from codegen.ir.program import Program
    >>> x, n = sp.Symbol("x"), 40
    >>> heads = [sp.Symbol] * n + [sp.sin] * n + [sp.Add] * (n - 1)
    >>> sums = [(n, n + 1)] + [(2 * n + k, n + 2 + k) for k in range(n - 2)]
    >>> rows = Program(heads, [()] * n + [(k,) for k in range(n)] + sums, dict.fromkeys(range(n), x), (), ())
    >>> found = find_sums(rows, np.arange(n), np.array([3 * n - 2]), [], 3 * n - 1)
    >>> [(loop.count, len(loop.body), loop.results[0].kind) for loop in found.loops], found.sums
    ([(40, 2, 'sum')], {})
    """
    inputs, outputs = (np.asarray(nodes, dtype=np.int64).ravel() for nodes in (inputs, outputs))
    columns = [np.asarray(nodes, dtype=np.int64).ravel() for loop in done for nodes in loop.nodes_read]
    wanted = distinct(np.concatenate([outputs, *columns]))
    if not wanted.size:
        return Found([], {})
    ragged: set[int] = set()
    flat = flattened(rows) if flat is None else flat
    while more := set(ragged_sums(classes := classify(rows, inputs, wanted, done, ragged, flat)).tolist()):
        ragged |= more
    refused: set[Name] = set()
    for _ in range(TRIES):
        templates, sums = cover(classes, wanted, first, refused)
        places = Places(classes, outputs, done, first + len(rows.heads))
        poor = [name for template in templates if not _settled(template, classes, places) for name in template.names]
        if not poor:
            break
        refused.update(poor)
    return Found([to_loop(template, rows, classes) for template in fused(templates, classes)], sums)


def _settled(template: Template, classes: Classes, places: Places) -> bool:
    """Put the repetitions of a loop in order; return whether there is enough to do besides gathering."""
    check("ordering repetitions")
    template.reorder(order_of(template, classes, places))
    for entry in template.stores:
        places.keep(entry.nodes)
    return template.count * template.size >= OPERATIONS * (1 + gathered(template, classes, places))


Line = Callable[[int], tuple[str, int] | None]  # the user's file and line that made a row


def find(rows: Rows, inputs: Nodes, outputs: Nodes, written: Sequence[Loop], line_of: Line) -> Found:
    """Return all loops, those that the user wrote first; each of the others says which lines it comes from."""
    if 2 * operations_of(rows) < OPERATIONS:
        return Found(whole_compositions(rows, written, outputs), {})
    flat = rows.flat if isinstance(rows, PlainRows) else flattened(rows)
    few = few_rows(rows, flat, inputs, outputs, written)
    if few is None:
        made = _looked_for(rows, flat, inputs, outputs, written)
    else:
        made = _looked_for(few, few.flat, few.inputs, few.outputs, few.written)
        made = Found(list(map(few.loop, made.loops)), few.sums(made.sums))
    found = [replace(loop, origin=_origin(loop, line_of)) for loop in made.loops]
    return Found(whole_compositions(rows, [*written, *found], outputs, flat if found else None), made.sums)


def _looked_for(rows: Rows, flat: Flat, inputs: Nodes, outputs: Nodes, written: Sequence[Loop]) -> Found:
    """Return the loops besides those that the user wrote: chains, then sums and maps in what they leave."""
    chains = find_chains(rows, inputs, outputs, written, flat)
    given = [*written, *chains]
    top = [int(result.nodes.max()) + 1 for loop in given for result in loop.results if result.nodes.size]
    sums = find_sums(rows, inputs, outputs, given, max([len(rows.heads), *top]), flat)
    return Found([*chains, *sums.loops], sums.sums)


def _origin(loop: Loop, line_of: Line) -> str:
    """Return the lines that one repetition was written in: "forces.py:12-16"."""
    rows = loop.example or [int(result.nodes[0]) for result in loop.results]
    lines = sorted({line for row in rows if (line := line_of(row)) is not None})
    if not lines:
        return loop.origin
    file, first = lines[0]
    last = max(line for other, line in lines if other == file)
    return f"{Path(file).name}:{first}" + (f"-{last}" if last > first else "")
