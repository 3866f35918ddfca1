"""Loop interchange: many sums over few repetitions become many repetitions of one short sum.

The backward loop of a layer adds `weight[k][j] * t[k]` to place j, for all j, in every repetition k. Repetitions side
by side would need a register for each j, and add up its lanes in the end. With j as the repetition, the body is a sum
over k in the order of k, and the weights, which are constants, are reordered so that those of one k lie side by side.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import sympy as sp

from codegen.ir.body_parts import outputs_of, rebuilt
from codegen.ir.program import Input, Output, Program
from codegen.ir.region import Gather, Region, Result, RolledProgram
from codegen.ir.tables import Affine, table
from codegen.loops.optimise.draft import Draft

FEWEST = 8  # sums
MOST = 64  # repetitions, which become the terms of a body

Term = tuple[int, int]  # the number of a result, which adds up products, and the slot of their constants


def interchanged(program: RolledProgram) -> RolledProgram:
    """Return the program with loops interchanged that sum products with constants, in regions outside of nests."""
    draft = Draft(program)
    for at, step in enumerate(program.steps):
        if isinstance(step, Region) and step.parallel and 1 < step.count <= MOST:
            families = _families(program, step)
            if families:
                _exchange(draft, at, step, families)
    return draft.finished() if draft.added else program


def _families(program: RolledProgram, region: Region) -> dict[int, list[Term]]:
    """Return the sums of products with constants, by the row of the other factor, that go to one buffer."""
    families: dict[int, list[Term]] = {}
    for number, (row, use) in enumerate(outputs_of(region)):
        parts = region.body.operands[row]
        if use.kind != "add" or not use.table.fixed or region.body.heads[row] is not sp.Mul or len(parts) != 2:
            continue
        for constants, factor in (parts, parts[::-1]):
            if constants < len(region.gathers) and program.buffers[region.gathers[constants].buffer].values is not None:
                families.setdefault(factor, []).append((number, constants))
                break
    long = {factor: terms for factor, terms in families.items() if len(terms) >= FEWEST}
    for factor, terms in list(long.items()):
        places = {(region.results[number].buffer, region.results[number].table.first) for number, _ in terms}
        if len(places) < len(terms) or len({buffer for buffer, _ in places}) > 1:
            del long[factor]
    return long


def _exchange(draft: Draft, at: int, region: Region, families: Mapping[int, Sequence[Term]]) -> None:
    """Store the other factors in workspaces, and sum up the products in separate regions."""
    exchanged = {number for terms in families.values() for number, _ in terms}
    outputs = [output for number, output in enumerate(outputs_of(region)) if number not in exchanged]
    sums = []
    for factor, terms in families.items():
        if factor < len(region.gathers):
            read = region.gathers[factor]
        else:
            read = Gather(draft.workspace(region.count), Affine(0, 1, region.count))
            outputs.append((factor, Result(0, read.buffer, read.table, "store")))
        sums.append(_sum(draft, region, read, terms))
    steps = [rebuilt(region, outputs, {})] * bool(outputs) + sums
    for step in steps[:-1]:
        draft.insert(at, step)
    draft.steps[at] = steps[-1]


def _sum(draft: Draft, region: Region, factor: Gather, terms: Sequence[Term]) -> Region:
    """Return the region whose repetitions are the sums, of products over the repetitions of the other region."""
    terms = sorted(terms, key=lambda term: region.results[term[0]].table.first)
    uses, reads = [region.results[number] for number, _ in terms], [region.gathers[slot] for _, slot in terms]
    count, length = len(terms), region.count
    columns = []
    for read in reads:
        values = draft.program.buffers[read.buffer].values
        assert values is not None
        columns.append(values[read.table.places()])
    constants = draft.constants(np.stack(columns, axis=1).ravel())
    gathers = [Gather(constants, Affine(k * count, 1, count)) for k in range(length)]
    gathers += [Gather(factor.buffer, Affine(int(place), 0, count)) for place in factor.table.places()]
    names = [f"slot{k}" for k in range(2 * length)]
    body = Program(
        [*[sp.Symbol] * (2 * length), *[sp.Mul] * length, sp.Add],
        [*[()] * (2 * length), *((k, length + k) for k in range(length)), tuple(range(2 * length, 3 * length))],
        {k: sp.Symbol(name) for k, name in enumerate(names)},
        tuple(Input(name, ()) for name in names), (Output((), (3 * length,)),), region.body.name,
    )  # fmt: skip
    total = Result(0, uses[0].buffer, table(np.array([use.table.first for use in uses])), "add")
    return Region(body, count, tuple(gathers), (total,), origin=region.origin)
