"""What passes may rely on: every invariant has a program that breaks it, and is told by its name."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import sympy as sp

import codegen.ir.accesses
from codegen.errors import InvariantError
from codegen.evaluation.evaluate_rolled import evaluate_rolled
from codegen.expressions.sympy_in import program_from_sympy
from codegen.ir.check import check_needed, check_program, check_rolled
from codegen.ir.program import Input, Output, Program
from codegen.ir.region import Buffer, Carry, Gather, Nest, Region, Result, RolledProgram
from codegen.ir.sparsity import SparsityPattern
from codegen.ir.tables import Affine, Indexed
from tests.support.rolled_programs import KNOWN, A, B, random_program

X = sp.Symbol("x")
SCALAR = (Input("x", ()),)
COPY = program_from_sympy([A], [A])
DOUBLE = program_from_sympy([A], [2 * A])
ZERO = Program([type(sp.S.Zero)], [()], {0: sp.S.Zero}, (), (Output((), (0,)),), "zero")


def rows(
    heads: list, operands: list, atoms: dict | None = None, outputs: tuple | None = None, **more: object
) -> Program:
    """A program of one number."""
    last = (Output((), (len(heads) - 1,)),)
    return Program(heads, operands, {0: X} if atoms is None else atoms, SCALAR, outputs or last, "f", **more)


def packed(shape: tuple[int, ...], rows_: list[int], size: tuple[int, int]) -> Output:
    """The packed data of a matrix whose pattern has been damaged since it was made."""
    pattern = SparsityPattern(np.array([0, 0]), np.array([0, 1]), (2, 2))
    object.__setattr__(pattern, "rows", np.array(rows_))
    object.__setattr__(pattern, "shape", size)
    return Output(shape, (0,) * shape[0], None, pattern)


SQUARE = [sp.Symbol, sp.Mul], [(), (0, 0)]
BROKEN_PROGRAMS = {
    "columns": (rows([sp.Symbol, sp.sin], [()]), "the columns are of one length"),
    "atom of no row": (rows(*SQUARE, {0: X, 5: X}), "row 5: an atom belongs to a row"),
    "leaf": (rows([sp.Symbol, sp.Integer, sp.Add], [(), (), (0, 1)]), "row 1: a leaf has an atom"),
    "operation": (rows(*SQUARE, {0: X, 1: X}), "row 1: an operation has no atom"),
    "itself": (rows([sp.Symbol, sp.sin], [(), (1,)]), "row 1: operands come before their row: sin reads row 1"),
    "later": (rows([sp.Symbol, sp.sin, sp.cos], [(), (2,), (0,)]), "row 1: operands come before their row"),
    "negative": (rows([sp.Symbol, sp.sin], [(), (-1,)]), "row 1: operands come before their row"),
    "sum of one": (rows([sp.Symbol, sp.Add], [(), (0,)]), "row 1: a head has as many operands as it takes: Add of 1"),
    "sine of two": (rows([sp.Symbol, sp.sin], [(), (0, 0)]), "row 1: a head has as many operands as it takes"),
    "power": (rows([sp.Symbol, sp.Pow], [(), (0,)]), "row 1: a head has as many operands as it takes"),
    "comparison": (rows([sp.Symbol, sp.Lt], [(), (0, 0, 0)]), "row 1: a head has as many operands as it takes"),
    "odd choice": (rows([sp.Symbol, sp.Piecewise], [(), (0, 0, 0)]), "a head has as many operands as it takes"),
    "no condition": (
        rows([sp.Symbol, sp.sin, sp.Piecewise], [(), (0,), (0, 1)]), "row 2: a condition is a truth value: Piecewise"
    ),
    "inputs": (
        Program([sp.Symbol, sp.sin], [(), (0,)], {0: X}, (Input("x", (2,)),), (Output((), (1,)),), "f"),
        "row 1: the first rows are the inputs",
    ),
    "too few rows": (Program([sp.Symbol], [()], {0: X}, (Input("x", (2,)),), (), "f"), "row 1: the first rows are the"),
    "no seed": (Program([], [], {}, (), (), "f", seeded=True), "the last input is the seed"),
    "output": (rows(*SQUARE, None, (Output((), (7,)),)), "output 0: an output has rows that exist: row 7 of 2"),
    "shape": (rows(*SQUARE, None, (Output((3,), (1,)),)), "output 0: an output has a row for each position"),
    "positions": (rows(*SQUARE, None, (Output((3,), (1,), (3,)),)), "output 0: positions are those of the rows"),
    "one place twice": (rows(*SQUARE, None, (Output((3,), (1, 0), (2, 2)),)), "output 0: a position is stored once"),
    "swept": (rows(*SQUARE, None, (Output((3,), (1,), (0,), None, True),)), "output 0: a swept output has a seed"),
    "packed": (rows(*SQUARE, None, (packed((1,), [0, 0], (2, 2)),)), "packed data has a number for each entry"),
    "pattern": (rows(*SQUARE, None, (packed((2,), [0, 9], (2, 2)),)), "output 0: a pattern is inside of its matrix"),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN_PROGRAMS)
def test_broken_rows_are_found(name: str) -> None:
    program, message = BROKEN_PROGRAMS[name]
    with pytest.raises(InvariantError, match="defect of a pass") as found:
        check_program(program, "a pass")
    assert message in str(found.value)
    assert "after a pass" in str(found.value)
    assert str(found.value).startswith("f")


def test_operations_that_nothing_needs_are_found() -> None:
    program = rows([sp.Symbol, sp.sin, sp.cos], [(), (0,), (0,)])
    for found in (program, rolled(moved(0, 2, body=program))):
        (check_program if found is program else check_rolled)(found)
        with pytest.raises(InvariantError, match=r"^f, row 1: every operation is needed by an output: sin: .*a pass"):
            check_needed(found, "a pass")
    check_needed(rows([sp.Symbol, sp.Integer], [(), ()], {0: X, 1: sp.Integer(2)}))  # leaves need not be read


def rolled(*steps: Region | Nest, middle: int = 9, outputs: tuple[Output, ...] = (Output((9,), ()),)) -> RolledProgram:
    """Steps over buffers 0 (an input of nine numbers), 1 (a workspace) and 2 (the output)."""
    buffers = (Buffer("input", 9), Buffer("workspace", middle), Buffer("output", 9))
    return RolledProgram((Input("x", (9,)),), outputs, buffers, steps, "f")


def moved(
    source: int, target: int, count: int = 3, *, body: Program = COPY, kind: str = "store", **at: object
) -> Region:
    """A region that brings numbers from one buffer to another: from `first`, to `into`."""
    shifts = at.get("shifts", ())
    read = Gather(source, Affine(at.get("first", 0), 1, count, at.get("reads", shifts)))
    written = Result(0, target, Affine(at.get("into", 0), at.get("step", 1), count, shifts), kind)
    return Region(body, count, (read,), (written,))


def zeros(target: int, count: int = 3, shifts: tuple[int, ...] = ()) -> Region:
    return Region(ZERO, count, (), (Result(0, target, Affine(0, 1, count, shifts), "store"),))


def carried(**more: object) -> Region:
    """A chain over three numbers whose last value is kept."""
    body = program_from_sympy([A, B], [A + B, A > B])
    last = Result(more.pop("output", 0), 2, Affine(0, 0, 1), "last")
    return Region(body, 3, (Gather(0, Affine(0, 1, 3)),), (last,), (Carry(0, (Gather(0, Affine(0, 0, 1)),)),), **more)


def stopping() -> Region:
    """A chain that stores until it stops."""
    made = program_from_sympy([A, B], [A + B, A > B])
    store = Result(0, 1, Affine(0, 1, 3), "store")
    return Region(made, 3, (Gather(0, Affine(0, 1, 3)),), (store,), (Carry(0, (Gather(0, Affine(0, 0, 1)),)),), stop=1)


def damaged(program: RolledProgram, table: Indexed, places: list[int]) -> RolledProgram:
    """A program whose table has changed since it was made."""
    object.__setattr__(table, "index", np.array(places))
    return program


LIST = Indexed(np.array([0, 2, 1]))
WHOLE = Indexed(np.array([0.0, 2.0, 1.0]))
LISTED = Region(COPY, 3, (Gather(0, LIST),), (Result(0, 2, Affine(0, 1, 3), "store"),))
FLOATS = Region(COPY, 3, (Gather(0, WHOLE),), (Result(0, 2, Affine(0, 1, 3), "store"),))
BAD_BODY = rows([sp.Symbol, sp.sin], [(), (1,)])
BROKEN_LOOPS = {
    "bounds": (damaged(rolled(LISTED), LIST, [0, 2, 9]), "tables fit their bodies, counts and buffers"),
    "floats": (rolled(FLOATS), "region 0: places are whole numbers"),
    "shifts": (rolled(moved(0, 2, shifts=(3,))), "region 0: places move on with nests that are there: shifts (3,)"),
    "rows": (rolled(moved(0, 2), outputs=(Output((9,), (1,)),)), "output 0: an output of loops is a whole buffer"),
    "body": (rolled(moved(0, 2, body=BAD_BODY)), "row 1: operands come before their row: sin reads row 1"),
    "stop": (rolled(carried(stop=0)), "region 0: a loop stops at a truth value: output 0 is Add"),
    "last": (rolled(carried(output=1)), "region 0: a last value is one that is carried: no carry of lag 1 has"),
    "read before": (
        rolled(moved(1, 2), moved(0, 1)), "buffer 1, place 0: a place is read only after it is written: region 1 stores"
    ),
    "read before some": (
        rolled(moved(0, 1), moved(1, 2, 4), moved(0, 1, 1, into=3)), "buffer 1, place 3: a place is read only after"
    ),
    "read before a sum": (
        rolled(moved(0, 1, kind="add"), moved(1, 2), moved(0, 1, kind="add")), "region 2 adds to what region 1 has read"
    ),
    "read by itself": (rolled(moved(1, 1, into=3, first=2)), "region 0 reads it and writes to it"),
    "stored twice": (
        rolled(moved(0, 1), moved(0, 1, into=2)), "buffer 1, place 2: a place is stored once: region 0 and region 1"
    ),
    "stored twice at once": (rolled(moved(0, 1, step=0)), "buffer 1, place 0: a place is stored once: region 0 stores"),
    "stored and added": (
        rolled(moved(0, 1, body=DOUBLE), moved(0, 1, kind="add", into=2)),
        "buffer 1, place 2: a place is stored or added to: region 0 stores to it, region 1 adds to it",
    ),
    "added and stored": (
        rolled(moved(0, 1, kind="add"), moved(0, 1)), "a place is stored or added to: region 0 adds to it, region 1"
    ),
    "stored after a nest": (
        rolled(Nest(2, (moved(0, 1), moved(1, 2, shifts=(3,), reads=(0,)))), moved(0, 1)),
        "buffer 1, place 0: a place is read only after it is written: region 2 stores to what region 1 has read",
    ),
    "sum not begun anew": (
        rolled(Nest(2, (moved(0, 1, kind="add"), moved(1, 2, shifts=(3,), reads=(0,))))),
        "buffer 1, place 0: a place is read only after it is written: region 0 adds to what region 1 has read",
    ),
    "rounds that meet": (
        rolled(moved(0, 1, body=DOUBLE), Nest(3, (moved(0, 1, 1, kind="add", into=4, shifts=(-1,), reads=(0,)),))),
        "buffer 1, place 2: a place is stored or added to: region 0 stores to it, region 1 adds to it",
    ),
    "read in the round before": (
        rolled(Nest(2, (moved(1, 2, body=DOUBLE, shifts=(3,), reads=(0,)), moved(0, 1)))),
        "buffer 1, place 0: a place is read only after it is written: it is read first and written later",
    ),
    "moved and read in the round before": (
        rolled(Nest(2, (moved(1, 1, into=3), moved(1, 2, body=DOUBLE, shifts=(3,), reads=(0,)), moved(0, 1)))),
        "buffer 1, place 0: a place is read only after it is written: it is read first and written later",
    ),
    "moved and added to": (
        rolled(Nest(2, (moved(1, 1, into=3), moved(0, 1, kind="add")))), "region 1 adds to what region 0 has read"
    ),
    "stored again by what may stop": (
        rolled(Nest(2, (stopping(), moved(1, 2, shifts=(3,), reads=(0,))))), "region 0 stores to what region 1"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN_LOOPS)
def test_broken_loops_are_found(name: str) -> None:
    program, message = BROKEN_LOOPS[name]
    with pytest.raises(InvariantError, match="after a pass") as found:
        check_rolled(program, "a pass")
    assert message in str(found.value)
    assert str(found.value).startswith("f")


ALLOWED = {
    "a workspace of each round": Nest(3, (moved(0, 1), moved(1, 2, shifts=(3,), reads=(0,)))),
    "a sum of each round": Nest(3, (zeros(1), moved(0, 1, kind="add"), moved(1, 2, shifts=(3,), reads=(0,)))),
    "a sum that goes on": Nest(3, (moved(0, 1), moved(0, 1, kind="add"), moved(1, 2, shifts=(3,), reads=(0,)))),
    "a sum over all rounds": Nest(9, (moved(0, 2, 1, kind="add", reads=(1,)),)),
    "a place that nothing writes": moved(1, 2, first=3),
    "a window that moves on": Nest(
        3, (moved(1, 1, into=3), moved(0, 1), moved(1, 2, first=3, shifts=(3,), reads=(0,)))
    ),
    "a chain": carried(),
    "a loop that stops": stopping(),
}


@pytest.mark.parametrize("name", ALLOWED)
def test_what_is_allowed_passes(name: str) -> None:
    check_rolled(rolled(ALLOWED[name]), "a pass")


@pytest.mark.parametrize("name", KNOWN)
def test_known_programs_pass(name: str) -> None:
    check_rolled(KNOWN[name])


@pytest.mark.parametrize("seed", range(40))
def test_the_order_of_regions_counts(seed: int) -> None:
    """Programs pass as they are. Backwards, where that changes what they compute, they do not."""
    program = random_program(seed)
    check_rolled(program)
    turned = replace(program, steps=program.steps[::-1])
    arrays = [np.linspace(0.5, 1.5, array.size).reshape(array.shape) for array in program.inputs]
    with np.errstate(all="ignore"):
        pairs = zip(evaluate_rolled(program, arrays), evaluate_rolled(turned, arrays), strict=True)
    if not all(np.allclose(found, other, equal_nan=True) for found, other in pairs):
        with pytest.raises(InvariantError, match="a place is read only after it is written"):
            check_rolled(turned)


def test_of_many_accesses_those_of_some_places_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is wrong at the first places is found in any case, and nothing right is refused."""
    summed = (zeros(1), moved(0, 1, kind="add"), moved(1, 2, shifts=(3,), reads=(0,)))
    late = rolled(Nest(3, summed), moved(0, 1, kind="add"))
    early = rolled(Nest(3, summed[1:]), moved(0, 1, kind="add"))
    for limit in (codegen.ir.accesses.SORTED, 1):
        monkeypatch.setattr(codegen.ir.accesses, "SORTED", limit)
        check_rolled(rolled(Nest(3, summed)))
        with pytest.raises(InvariantError, match="region 3 adds to what region 2 has read"):
            check_rolled(late)
        with pytest.raises(InvariantError, match="region 0 adds to what region 1 has read"):
            check_rolled(early)
