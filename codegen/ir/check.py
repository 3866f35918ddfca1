"""Check that a program or rolled program is well formed between two passes (docs/design/rolled-programs.md).

InvariantError names the invariant, the row, region or buffer that breaks it, and the pass after which that was seen.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import chain
from typing import NoReturn

import numpy as np
import sympy as sp
from numpy.typing import NDArray
from sympy.core.relational import Relational
from sympy.logic.boolalg import Boolean

from codegen.errors import ArgumentError, InvariantError
from codegen.heads import Alias
from codegen.ir.accesses import check_accesses
from codegen.ir.program import Head, Output, Program, reachable
from codegen.ir.region import Region, RolledProgram, regions_of
from codegen.ir.tables import Affine, Indexed, Table

Rows = NDArray[np.int64]
Fail = Callable[[str, str, str], NoReturn]  # the invariant, where it breaks, why

FOLDED = (sp.Add, sp.Mul, sp.Max, sp.Min, sp.And, sp.Or)
FIXED: dict[Head, int] = {sp.Pow: 2, sp.ITE: 3, sp.Implies: 2}


def check_program(program: Program, after: str = "") -> None:
    """Raise InvariantError for a program of straight lines, or a body, that no pass may make.

    >>> from codegen.ir.program import Input
    >>> x = sp.Symbol("x")
    >>> check_program(Program([sp.Symbol, sp.sin], [(), (0,)], {0: x}, (Input("x", ()),), (Output((), (1,)),)))
    >>> check_program(Program([sp.Symbol, sp.sin], [(), (1,)], {0: x}, (Input("x", ()),), (Output((), (1,)),), "f"))
    Traceback (most recent call last):
        ...
    codegen.errors.InvariantError: f, row 1: operands come before their row: sin reads row 1; ...
    """
    fail = partial(_fail, program.name, after)
    counts = _columns(program, fail)
    _operands(program, counts, fail)
    _arities(program, counts, fail)
    _inputs(program, fail)
    for number, output in enumerate(program.outputs):
        _output(program, output, f"output {number}", fail)


def check_needed(program: Program | RolledProgram, after: str = "") -> None:
    """Raise InvariantError for an operation, in a program or in a body, that no output needs."""
    bodies = [program] if isinstance(program, Program) else [region.body for region, _ in regions_of(program.steps)]
    for body in {id(body): body for body in bodies}.values():
        needed = np.array([not operands for operands in body.operands], dtype=bool)
        needed[reachable(body, [row for output in body.outputs for row in output.rows])] = True
        fail = partial(_fail, program.name, after)
        _first(~needed, "every operation is needed by an output", "nothing reads it", body, fail)


def check_rolled(program: RolledProgram, after: str = "") -> None:
    """Raise InvariantError for a rolled program that no pass may make.

    >>> from codegen.ir.program import Input
    >>> from codegen.ir.region import Buffer, Gather, Result
    >>> from codegen.expressions.sympy_in import program_from_sympy
    >>> x = sp.Symbol("x")
    >>> body, every = program_from_sympy([x], [x**2]), Affine(0, 1, 3)
    >>> region = Region(body, 3, (Gather(0, every),), (Result(0, 1, Affine(0, 0, 3), "store"),))
    >>> buffers = (Buffer("input", 3), Buffer("output", 3))
    >>> check_rolled(RolledProgram((Input("x", (3,)),), (Output((3,), ()),), buffers, (region,), "f"), "a pass")
    Traceback (most recent call last):
        ...
    codegen.errors.InvariantError: f, buffer 1, place 0: a place is stored once: region 0 stores to it twice, after...
    """
    fail = partial(_fail, program.name, after)
    for region, _ in regions_of(program.steps):
        for table in _tables(region):
            if isinstance(table, Indexed):
                vars(table).pop("bounds", None)  # which tables keep, but a pass may have changed their places since
    try:
        program.__post_init__()  # checks bounds, lengths and order again
    except ArgumentError as error:
        fail("tables fit their bodies, counts and buffers", error.where, str(error))
    for number, output in enumerate(program.outputs):
        if output.rows or output.positions is not None or output.swept:
            fail("an output of loops is a whole buffer", f"output {number}", "it has rows or positions")
        _pattern(output, f"output {number}", fail)
    bodies: set[int] = set()
    for number, (region, counts) in enumerate(regions_of(program.steps)):
        if id(region.body) not in bodies:
            bodies.add(id(region.body))
            check_program(region.body, f"{after} (the body of region {number} of {program.name})".strip())
        _region(region, len(counts), f"region {number}", fail)
    check_accesses(program, fail)


def _fail(name: str, after: str, invariant: str, where: str, why: str) -> NoReturn:
    raise InvariantError(
        invariant, where=f"{name}, {where}" if where else name, why=f"{why}, after {after}" if after else why,
        do="report it with the function that was compiled: it is a defect of a pass, not of the function",
    )  # fmt: skip


def _first(wrong: NDArray[np.bool_], invariant: str, why: str, program: Program, fail: Fail) -> None:
    if wrong.any():
        row = int(np.argmax(wrong))
        fail(invariant, f"row {row}", f"{program.heads[row].__name__}: {why}")


def _columns(program: Program, fail: Fail) -> Rows:
    """Return the number of operands of each row; fail for columns of different lengths, or leaves without atoms."""
    if len(program.heads) != len(program.operands):
        fail("the columns are of one length", "", f"{len(program.heads)} heads, {len(program.operands)} operands")
    counts = np.fromiter(map(len, program.operands), np.int64, len(program))
    rows = np.fromiter(program.atoms, np.int64, len(program.atoms))
    if len(rows) and not 0 <= rows.min() <= rows.max() < len(program):
        fail("an atom belongs to a row", f"row {rows.max()}", f"there are {len(program)} rows")
    has_atom = np.zeros(len(program), dtype=bool)
    has_atom[rows] = True
    _first((counts == 0) & ~has_atom, "a leaf has an atom", "it has neither operands nor an atom", program, fail)
    _first((counts > 0) & has_atom, "an operation has no atom", "it has operands and an atom", program, fail)
    return counts


def _operands(program: Program, counts: Rows, fail: Fail) -> None:
    flat = np.fromiter(chain.from_iterable(program.operands), np.int64, int(counts.sum()))
    reading = np.repeat(np.arange(len(program)), counts)
    wrong = (flat >= reading) | (flat < 0)
    if wrong.any():
        row, read = int(reading[wrong][0]), int(flat[wrong][0])
        fail("operands come before their row", f"row {row}", f"{program.heads[row].__name__} reads row {read}")


def _arities(program: Program, counts: Rows, fail: Fail) -> None:
    """Fail for a head with a wrong number of operands, or numbers in place of truth values."""
    for head, count in dict.fromkeys(zip(program.heads, counts.tolist(), strict=True)):
        if count and not _may_have(head, count):
            row = next(k for k in range(len(program)) if program.heads[k] is head and counts[k] == count)
            fail("a head has as many operands as it takes", f"row {row}", f"{head.__name__} of {count}")
    connectives = (sp.And, sp.Or, sp.Not, sp.Xor, sp.Nand, sp.Nor, sp.Implies)
    asking = {sp.Piecewise, sp.ITE, *connectives}.intersection(program.heads)
    if not asking:
        return
    number = {head: _is_number(head) for head in set(program.heads)}
    for row, (head, parts) in enumerate(zip(program.heads, program.operands, strict=True)):
        if head in asking:
            tests = parts[1::2] if head is sp.Piecewise else parts[:1] if head is sp.ITE else parts
            for test in tests:
                if number[program.heads[test]]:
                    fail(
                        "a condition is a truth value", f"row {row}",
                        f"{head.__name__} asks row {test}, which is {program.heads[test].__name__}",
                    )  # fmt: skip


def _may_have(head: Head, count: int) -> bool:
    if head in FOLDED:
        return count >= 2
    if head is sp.Piecewise:
        return count % 2 == 0
    if head is Alias:
        return count >= 1
    if head in FIXED or issubclass(head, Relational):
        return count == FIXED.get(head, 2)
    known = getattr(head, "nargs", None)
    return not isinstance(known, sp.FiniteSet) or count in known


def _is_number(head: Head) -> bool:
    """Whether rows of a head are always numbers: a symbol, a choice or an alias may be a truth value."""
    return not issubclass(head, Boolean | sp.Symbol) and head not in (sp.Piecewise, Alias)


def _inputs(program: Program, fail: Fail) -> None:
    count = program.input_count
    if count > len(program):
        fail("the first rows are the inputs", f"row {len(program)}", f"{count} numbers are given")
    for row in range(count):
        if program.operands[row]:
            fail("the first rows are the inputs", f"row {row}", f"it is {program.heads[row].__name__}")
    if program.seeded and not program.inputs:
        fail("the last input is the seed", "", "there are no inputs")


def _output(program: Program, output: Output, where: str, fail: Fail) -> None:
    rows, positions = np.array(output.rows, dtype=np.int64), output.positions
    if len(rows) and not 0 <= rows.min() <= rows.max() < len(program):
        fail("an output has rows that exist", where, f"row {rows.max()} of {len(program)}")
    _pattern(output, where, fail)
    if positions is None:
        if len(rows) != output.size:
            fail("an output has a row for each position", where, f"{len(rows)} rows for shape {output.shape}")
        return
    columns = program.inputs[-1].size if output.swept and program.inputs else 1
    places = np.array(positions, dtype=np.int64)
    if len(places) != len(rows) or (len(places) and not 0 <= places.min() <= places.max() <= output.size - columns):
        fail("positions are those of the rows, inside of the output", where, f"{len(places)} for shape {output.shape}")
    if len(np.unique(places)) != len(places):
        fail("a position is stored once", where, "a position comes twice")
    if output.swept and not program.seeded:
        fail("a swept output has a seed", where, f"{program.name} has none")


def _pattern(output: Output, where: str, fail: Fail) -> None:
    pattern = output.pattern
    if pattern is None:
        return
    if output.shape != (pattern.nnz,):
        fail("packed data has a number for each entry", where, f"shape {output.shape}, {pattern.nnz} entries")
    for name, indices, size in (("row", pattern.rows, pattern.shape[0]), ("column", pattern.columns, pattern.shape[1])):
        if len(indices) and not 0 <= int(indices.min()) <= int(indices.max()) < size:
            fail("a pattern is inside of its matrix", where, f"a {name} beyond {size}")


def _region(region: Region, depth: int, where: str, fail: Fail) -> None:
    """Fail for a region with tables, carries or results that no loop can be written of."""
    for table in _tables(region):
        _table(table, depth, where, fail)
    heads = [region.body.heads[output.rows[0]] for output in region.body.outputs]
    if region.stop is not None and _is_number(heads[region.stop]):
        fail("a loop stops at a truth value", where, f"output {region.stop} is {heads[region.stop].__name__}")
    carried = {carry.output for carry in region.carries if carry.lag == 1}
    for use in region.results:
        if use.kind == "last" and use.output not in carried:
            fail("a last value is one that is carried", where, f"no carry of lag 1 has output {use.output}")


def _tables(region: Region) -> list[Table]:
    return [use.table for use in region.reads] + [use.table for use in region.results]


def _table(table: Table, depth: int, where: str, fail: Fail) -> None:
    if any(table.shifts[depth:]):
        fail("places move on with nests that are there", where, f"shifts {table.shifts} in {depth} nests")
    if isinstance(table, Indexed):
        if table.index.dtype != np.int64 or table.index.ndim != 1:
            fail("places are whole numbers", where, f"an index of {table.index.dtype}, {table.index.ndim} dimensions")
    elif not isinstance(table, Affine):
        fail("a table is affine or indexed", where, f"it is {type(table).__name__}")
