"""Places: whatever loops and lines there are, the rolled program has the values of the rows it was made of."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sp

import symad as sa
from codegen.evaluation.evaluate_rolled import evaluate_rolled
from codegen.expressions.sympy_in import program_from_sympy
from codegen.ir.program import Input, Output, Program
from codegen.loops.find.agreement import agree
from codegen.loops.find.find import find
from codegen.loops.find.flat_rows import flattened
from codegen.loops.find.plain_rows import plain_rows
from codegen.loops.find.row_classes import _stages
from codegen.loops.loop import Loop, LoopCarry, LoopResult, StraightError
from codegen.loops.place.buffers import Arrays
from codegen.loops.place.place_nodes import place

X, Y = sp.symbols("x y")
WEIGHTS = np.linspace(0.1, 1, 40)


def rolled_of(f, *args):
    """Return the rolled program of a function, its rows, and the arrays between which they stand."""
    traced = sa.trace(f, *args)
    inputs, outputs = np.array(traced.inputs.flat), np.array(traced.outputs.flat)
    rows = plain_rows(traced.graph, inputs, outputs, [])
    found = find(rows, rows.rows_of(inputs), rows.rows_of(outputs), [], lambda row: None)
    named = [(f"x{k}", rows.rows_of(nodes)) for k, nodes in enumerate(traced.inputs.arrays)]
    arrays = Arrays(named, [(rows.rows_of(nodes), None) for nodes in traced.outputs.arrays])
    return place(rows, arrays, found.loops, found.sums, "f"), rows, arrays, found


def two_inputs(x, y):
    """Columns that change from one input to the other halfway."""
    both = np.concatenate([x, y])
    return np.sum(np.sin(both) * both)


def constants_among_inputs(x):
    padded = np.concatenate([[0.0], x, [1.0]])
    return np.sum(np.exp(padded[1:] - padded[:-1] ** 2))


def map_and_copy(x):
    return np.concatenate([x[:3], np.sin(x) * 2, [5.0, 0.0], x[-1:]])


def sum_then_map(x):
    weights = np.exp(x) * np.sin(x) ** 2 + x
    return weights / np.sum(weights)


def several(x):
    total = np.sum(x**3)
    return {"total": total, "each": x * total, "again": total}


@pytest.mark.parametrize("f", [two_inputs, constants_among_inputs, map_and_copy, sum_then_map, several])
def test_the_values_are_those_of_the_rows(f):
    x = np.linspace(0.2, 1.3, 40)
    args = (x, WEIGHTS) if f is two_inputs else (x,)
    program, rows, arrays, found = rolled_of(f, *args)
    assert found.loops
    assert agree(program, rows, arrays)
    leaves = [np.ravel(leaf) for leaf in (f(*args).values() if f is several else [f(*args)])]
    for value, expected in zip(evaluate_rolled(program, list(args)), leaves, strict=True):
        np.testing.assert_allclose(np.ravel(value), expected, rtol=1e-14)


def rows_of(size):
    """Return rows of so many inputs."""
    return Program([sp.Symbol] * size, [()] * size, dict.fromkeys(range(size), X), (Input("x", (size,)),), ())


def test_a_result_that_is_only_an_output_goes_there_at_once():
    square = program_from_sympy([X], [X**2])
    loop = Loop(square, 5, (np.arange(5),), (LoopResult(0, "each", np.arange(5, 10)),))
    program = place(rows_of(5), Arrays([("x", np.arange(5))], [(np.arange(5, 10)[::-1], None)]), [loop], {})
    assert [buffer.kind for buffer in program.buffers] == ["input", "output"]
    (squares,) = evaluate_rolled(program, [np.arange(5.0)])
    assert squares.tolist() == [16.0, 9.0, 4.0, 1.0, 0.0]


def test_numbers_are_read_as_they_are_and_a_carry_starts_at_a_node():
    step = program_from_sympy([X, Y], [X * Y])
    loop = Loop(
        step, 4, (np.array([1.0, 2.0, 3.0, 4.0]),), (LoopResult(0, "last", np.array([1])),),
        (LoopCarry(0, np.array([0])),),
    )  # fmt: skip
    program = place(rows_of(1), Arrays([("x", np.array([0]))], [(np.array(1), None)]), [loop], {})
    assert evaluate_rolled(program, [np.array([2.0])])[0] == 48.0


def test_loops_that_wait_for_each_other_are_refused():
    identity = program_from_sympy([X], [X])
    loops = [
        Loop(identity, 1, (np.array([2]),), (LoopResult(0, "each", np.array([1])),)),
        Loop(identity, 1, (np.array([1]),), (LoopResult(0, "each", np.array([2])),)),
    ]
    with pytest.raises(StraightError, match="loops wait for each other"):
        place(rows_of(1), Arrays([("x", np.array([0]))], [(np.array(1), None)]), loops, {})


def test_a_loop_that_adds_reads_what_another_leaves_that_adds_to_the_same_sum():
    """The numbers that one leaves are there when it has run, the sum when both have: so none waits for itself."""
    square = program_from_sympy([X], [X**2])
    left, total = np.arange(3, 6), np.array([6, 6, 6])
    loops = [
        Loop(square, 3, (np.arange(3),), (LoopResult(0, "each", left), LoopResult(0, "add", total))),
        Loop(square, 3, (left,), (LoopResult(0, "add", total),)),
    ]
    rows, inputs, outputs = rows_of(3), np.arange(3), np.array([6])
    assert _stages(rows, flattened(rows), inputs, outputs, loops, frozenset(), 7) == [(1, 2), (2, 2)]
    program = place(rows, Arrays([("x", inputs)], [(outputs, None)]), loops, {})
    (sums,) = evaluate_rolled(program, [np.array([1.0, 2.0, 3.0])])
    assert sums.tolist() == [(1 + 4 + 9) + (1 + 16 + 81)]


def test_a_wrong_table_is_noticed():
    x = np.linspace(0.2, 1.3, 40)
    program, rows, arrays, found = rolled_of(lambda x: np.sum(np.sin(x) * WEIGHTS * x), x)
    (loop,) = found.loops
    wrong = [column[::-1] if len(np.unique(column)) > 1 else column for column in loop.reads[:1]]
    broken = Loop(loop.body, loop.count, (*wrong, *loop.reads[1:]), loop.results)
    assert agree(program, rows, arrays)
    assert not agree(place(rows, arrays, [broken], found.sums, "f"), rows, arrays)
    assert isinstance(program.outputs[0], Output)
