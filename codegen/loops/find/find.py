"""Find: loops in straight lines. Chains are looked for first, sums and maps in what they leave."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from codegen.ir.program import Rows
from codegen.loops.find.chains import find_chains
from codegen.loops.find.cover import OPERATIONS
from codegen.loops.find.flat_rows import flattened
from codegen.loops.find.plain_rows import PlainRows
from codegen.loops.find.sums_and_maps import Found, find_sums
from codegen.loops.loop import Loop, Nodes

Line = Callable[[int], tuple[str, int] | None]  # the user's file and line that made a row


def find(rows: Rows, inputs: Nodes, outputs: Nodes, written: Sequence[Loop], line_of: Line) -> Found:
    """Return all loops, those that the user wrote first; each of the others says which lines it comes from."""
    if 2 * sum(map(bool, rows.operands)) < OPERATIONS:
        return Found(list(written), {})
    flat = rows.flat if isinstance(rows, PlainRows) else flattened(rows)
    chains = find_chains(rows, inputs, outputs, written, flat)
    given = [*written, *chains]
    top = [int(result.nodes.max()) + 1 for loop in given for result in loop.results if result.nodes.size]
    sums = find_sums(rows, inputs, outputs, given, max([len(rows.heads), *top]), flat)
    found = [replace(loop, origin=_origin(loop, line_of)) for loop in (*chains, *sums.loops)]
    return Found([*written, *found], sums.sums)


def _origin(loop: Loop, line_of: Line) -> str:
    """Return the lines that one repetition was written in: "forces.py:12-16"."""
    rows = loop.example or [int(result.nodes[0]) for result in loop.results]
    lines = sorted({line for row in rows if (line := line_of(row)) is not None})
    if not lines:
        return loop.origin
    file, first = lines[0]
    last = max(line for other, line in lines if other == file)
    return f"{Path(file).name}:{first}" + (f"-{last}" if last > first else "")
