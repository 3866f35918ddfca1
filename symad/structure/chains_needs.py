"""What is needed of a chain after it: values that a buffer can hold, and that are rounded as in straight lines."""

from __future__ import annotations

import numpy as np
import sympy as sp

from codegen.program import Rows
from symad.structure.chains_columns import Columns, Flags
from symad.structure.verify_chain import Chain


def needed_after(columns: Columns, chain: Chain, wanted: Flags) -> Flags:
    """Return, by repetition and operation of the body, what later operations read and what is wanted."""
    inside = slice(chain.start, chain.stop)
    needed: Flags = (columns.last_use[inside] >= chain.stop) | wanted[inside]
    return needed.reshape(chain.count, chain.shape.period)


def passed_on(columns: Columns, chain: Chain, wanted: Flags) -> Flags:
    """Return what a chain passes on; `wanted` is told what that needs from before the chain.

    Truth values, which no buffer holds, are computed again where they are read: their operands are passed on instead.
    So are 1 / v as factors: u / v is rounded only once.
    """
    shape = chain.shape
    needed = needed_after(columns, chain, wanted)
    models = range(shape.model, shape.model + shape.period)
    again = columns.truth[shape.model : shape.model + shape.period].copy()
    for offset, position in enumerate(models):
        shown = wanted[chain.start + offset : chain.stop : shape.period]
        again[offset] |= is_inverse(columns.rows, int(columns.nodes[position])) and not shown.any()
    while (left := np.nonzero(needed.any(axis=0) & again)[0]).size:
        offset = int(left[-1])
        when = np.nonzero(needed[:, offset])[0]
        needed[:, offset] = False
        for operand in np.nonzero(shape.consumer == offset)[0].tolist():
            there = when - shape.lag[operand]
            if shape.carried[operand]:
                needed[there[there >= 0], shape.producer[operand]] = True
            before = when if not shape.carried[operand] else when[there < 0]
            sources = columns.place[chain.operands[before, operand]]
            wanted[sources[sources >= 0]] = True
    return needed


def is_inverse(rows: Rows, node: int) -> bool:
    """Whether a node is 1 / v.

    >>> from codegen.sympy_in import program_from_sympy
    >>> x = sp.Symbol("x")
    >>> program = program_from_sympy([x], [1 / x])
    >>> is_inverse(program, program.outputs[0].rows[0])
    True
    """
    operands = rows.operands[node]
    return rows.heads[node] is sp.Pow and rows.atoms.get(operands[1]) is sp.S.NegativeOne
