"""Sharing: common subexpression elimination between the bodies of two loops that repeat equally often.

What both compute alike, repetition by repetition, is computed by the first and kept. They stay two loops: it is no loop
fusion (`codegen.loops.optimise.fusion`), and works where that cannot, as something between them needs the first one's
end.

The backward loop of a layer of a network needs the sums that its forward loop has computed. Their bodies are
differentiated apart, so both compute them; here the first one leaves them in a workspace, and the second reads them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from hashlib import blake2b

import sympy as sp

from codegen.ir.body_parts import outputs_of, rebuilt
from codegen.ir.program import Program, needed
from codegen.ir.region import Gather, Region, Result, RolledProgram
from codegen.ir.tables import Affine
from codegen.loops.optimise.draft import Draft
from codegen.pricing.price_table import NANOSECONDS, kinds, nanoseconds, operations

PLACE = 8 * NANOSECONDS["operation"]  # what is worth a place in memory
READ = NANOSECONDS["stride"]  # what is worth to be read, where it is stored anyway

Where = tuple[int, int]  # a step, and a row of its body


def share(program: RolledProgram) -> RolledProgram:
    """Return the program with what several parallel regions outside of nests compute computed once."""
    draft, numbers = Draft(program), dict[Hashable, int]()
    known: dict[int, Where] = {}
    outputs = {at: outputs_of(step) for at, step in enumerate(program.steps) if isinstance(step, Region)}
    reads: dict[int, dict[int, Gather]] = {}
    counts = Counter(step.count for step in program.steps if isinstance(step, Region) and step.parallel)
    for at, step in enumerate(program.steps):
        if not isinstance(step, Region) or not step.parallel or step.count == 1 or counts[step.count] == 1:
            continue
        keys = _keys(program, step, numbers)
        reads[at] = {
            row: _kept(draft, outputs[source], computed, step.count)
            for row, (source, computed) in _known_rows(step, keys, known, outputs).items()
        }
        for row, key in enumerate(keys):
            if step.body.operands[row]:
                known.setdefault(key, (at, row))
    for at, gathers in reads.items():
        step = program.steps[at]
        if isinstance(step, Region) and (gathers or len(outputs[at]) > len(step.results)):
            draft.steps[at] = rebuilt(step, outputs[at], gathers)
    return draft.finished() if any(reads.values()) else program


def _keys(program: RolledProgram, region: Region, numbers: dict[Hashable, int]) -> list[int]:
    """A number for each row of a body; rows with the same number have the same values."""
    body, keys = region.body, list[int]()
    for row, (head, operands) in enumerate(zip(body.heads, body.operands, strict=True)):
        key: Hashable
        if row < len(region.gathers):
            key = _gather_key(program, region.gathers[row])
        elif operands:
            key = (head, *(keys[operand] for operand in operands))
        else:
            atom = body.atoms[row]
            key = (head, atom._mpf_, atom._prec) if isinstance(atom, sp.Float) else (head, atom, region.count)
        keys.append(numbers.setdefault(key, len(numbers)))
    return keys


def _gather_key(program: RolledProgram, gather: Gather) -> Hashable:
    """What a slot reads: constants by their values, others by their places."""
    values = program.buffers[gather.buffer].values
    if values is not None:
        return blake2b(values[gather.table.places()].tobytes()).digest()
    return gather.buffer, gather.table.key


def _known_rows(
    region: Region, keys: Sequence[int], known: dict[int, Where], outputs: Mapping[int, list[tuple[int, Result]]]
) -> dict[int, Where]:
    """Rows that are computed before and are worth to be kept, from the outputs down."""
    found: dict[int, Where] = {}
    body = region.body
    stack, seen = [output.rows[0] for output in body.outputs], set[int]()
    while stack:
        row = stack.pop()
        if row in seen or not body.operands[row]:
            continue
        seen.add(row)
        source, computed = known.get(keys[row], (None, 0))
        if source is not None and _worth(body, row) >= (READ if _stored(outputs[source], computed) else PLACE):
            found[row] = source, computed
        else:
            stack += body.operands[row]
    return found


def _worth(body: Program, row: int) -> float:
    """What it costs to compute a row from the slots, in nanoseconds."""
    return nanoseconds(operations(kinds(body, needed(body, [row], ()))))


def _stored(outputs: list[tuple[int, Result]], row: int) -> Gather | None:
    """Where a region stores a row of its body."""
    places = (Gather(use.buffer, use.table) for kept, use in outputs if kept == row and use.kind == "store")
    return next(places, None)


def _kept(draft: Draft, outputs: list[tuple[int, Result]], row: int, count: int) -> Gather:
    """Where a region keeps a row of its body: a result that stores it, or a new one."""
    if (stored := _stored(outputs, row)) is not None:
        return stored
    gather = Gather(draft.workspace(count), Affine(0, 1, count))
    outputs.append((row, Result(0, gather.buffer, gather.table, "store")))
    return gather
