"""Values that go to very many places: stored in part, copied to the rest, in functions of limited size."""

from __future__ import annotations

import math

import numpy as np
import pytest
import sympy as sp

from codegen import compile_program
from codegen.emission.schedule import MOST, SINGLE_LIMIT, split_stores
from codegen.ir.program import Input, Output, Program
from codegen.ir.region import Buffer, Gather, Region, Result, RolledProgram
from codegen.ir.row_table import RowTable
from codegen.ir.tables import Affine

PLACES = 2 * MOST + 7


def repeated() -> Program:
    """Return a program that stores an input, a constant, a sine and a product at very many places each, in turns."""
    table = RowTable()
    x = sp.Symbol("x")
    row = table.leaf(x)
    constant = table.leaf(sp.Float(2.5))
    values = (row, constant, table.row(sp.sin, (row,)), table.row(sp.Mul, (row, constant)))
    half = PLACES // 2
    outputs = (Output((PLACES, 4), values * PLACES), Output((half,), (values[3],) * half))
    return Program(table.heads, table.operands, table.atoms, (Input("x", ()),), outputs, "repeated")


@pytest.mark.parametrize("lanes", [1, 2, 8])
def test_every_place_has_its_value(lanes: int) -> None:
    kernel = compile_program(repeated(), lanes=lanes)
    plain, last = kernel(0.7)
    wanted = np.array([0.7, 2.5, np.sin(0.7), 0.7 * 2.5])
    np.testing.assert_array_equal(plain, np.tile(wanted, (PLACES, 1)))
    np.testing.assert_array_equal(last, np.full(PLACES // 2, wanted[3]))
    points = np.linspace(0.1, 2.0, 11)
    many, lasts = kernel.batch(points)
    for k, x in enumerate(points):
        one, end = kernel(x)
        np.testing.assert_array_equal(many[k], one)
        np.testing.assert_array_equal(lasts[k], end)


def test_no_function_has_many_more_stores_than_the_limit() -> None:
    functions = compile_program(repeated()).llvm.split("define ")
    counts = [function.count("store double") for function in functions]
    assert sum(counts) == 4 * PLACES + PLACES // 2
    assert max(counts) <= MOST + 4


def test_few_stores_stay_where_the_value_is() -> None:
    stores = [(0, k, k % 5) for k in range(MOST)]
    kept, copies = split_stores([[0, 1], [2, 3, 4]], stores)
    assert not copies
    assert sum(map(len, kept.values())) == MOST


def shared(places: int, length: int) -> Program:
    """Return a body of `length` operations whose value, and whose slot, go to many outputs."""
    table = RowTable()
    slot = row = table.leaf(sp.Symbol("a"))
    for k in range(length):
        row = table.row((sp.sin, sp.cos)[k % 2], (row,))
    outputs = (*(Output((), (row,)) for _ in range(places)), Output((), (slot,)))
    return Program(table.heads, table.operands, table.atoms, (Input("a", ()),), outputs, "shared")


@pytest.mark.parametrize("places", [MOST + 1, 2 * MOST + 1, 5000])
@pytest.mark.parametrize("length", [3, SINGLE_LIMIT + 100])
@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.thinned
def test_bodies_leave_a_value_in_all_its_places(places: int, length: int, count: int) -> None:
    """A long body lost what it stores more than 500 times."""
    body = shared(places, length)
    every = [Affine(k, places + 1, count) for k in range(places + 1)]
    results = tuple(Result(k, 1, every[k], "store") for k in range(places + 1))
    region = Region(body, count, (Gather(0, Affine(0, 1, count)),), results)
    buffers = (Buffer("input", count), Buffer("output", count * (places + 1)))
    output = Output((count, places + 1), ())
    program = RolledProgram((Input("x", (count,)),), (output,), buffers, (region,))
    x = np.linspace(0.1, 1.0, count)
    value = x.tolist()
    for k in range(length):
        value = [(math.sin, math.cos)[k % 2](number) for number in value]
    wanted = np.column_stack([np.tile(np.array(value)[:, None], (1, places)), x])
    for lanes in (1, None)[places > 2 * MOST + 1 :]:
        np.testing.assert_allclose(compile_program(program, tier="fast", lanes=lanes)(x), wanted, rtol=1e-14)
    if count == 1:
        np.testing.assert_allclose(compile_program(body, tier="fast")(x[0]), wanted[0], rtol=1e-14)
