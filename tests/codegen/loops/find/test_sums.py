"""Sums and maps in straight lines become loops with the same values, whatever the order of the rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import sympy as sp

import symad
from codegen.errors import LimitError
from codegen.ir.program import Input, Output, Program
from codegen.ir.row_table import RowTable
from codegen.ir.tables import runs, table
from codegen.limits import limits
from codegen.loops.find.agreement import agree
from codegen.loops.find.anti_unification import is_uniform
from codegen.loops.find.find import Found, find_sums
from codegen.loops.loop import Loop, LoopResult, is_nodes
from codegen.loops.place.buffers import Arrays
from codegen.loops.place.place_nodes import place
from symad.tracing.trace import to_program
from tests.support.draws import seeded
from tests.support.loop_values import flat_values, rolled_values
from tests.support.sums_cases import CASES, rosenbrock
from tests.support.sums_fuzz import loops_of, make, shuffled

SLOW = ("rosenbrock_4000", "lennard_jones_50", "kuramoto_150")
PAIRED = ("node_balances",)  # which terms are put together depends on their order


def found_in(program: Program) -> Found:
    outputs = np.array([row for output in program.outputs for row in output.rows])
    return find_sums(program, np.arange(program.input_count), outputs, [], len(program))


def counts(found: Found) -> list[str]:
    """Count, operations and kinds of results of each loop: "45 x 18 sum"."""
    return [
        f"{loop.count} x {sum(map(bool, loop.body.operands))} {' '.join(use.kind for use in loop.results)}"
        for loop in found.loops
    ]


def check_values(program: Program, found: Found, seed: int = 0) -> int:
    """Compare with the straight lines at a point; return how many operations are left in straight lines."""
    point = np.random.default_rng(seed).uniform(0.5, 1.5, program.input_count)
    wanted = [row for output in program.outputs for row in output.rows]
    flat = flat_values(program, point)
    values, straight = rolled_values(program, found, wanted, dict(enumerate(point)))
    np.testing.assert_allclose([values[row] for row in wanted], [flat[row] for row in wanted], rtol=1e-12, atol=1e-13)
    return len(straight)


def traced(function: Callable[..., Any], *arguments: Any) -> Program:
    return to_program(symad.trace(function, *arguments))


@pytest.mark.parametrize("name", CASES)
def test_loops_that_people_write(name: str) -> None:
    function, shapes, loops, left = CASES[name]
    program = traced(function, *(np.ones(shape) for shape in shapes))
    found = found_in(program)
    assert (sorted(counts(found)), check_values(program, found)) == (sorted(loops), left)


@pytest.mark.parametrize("name", [name for name in CASES if name not in (*SLOW, *PAIRED)])
@pytest.mark.thinned
def test_the_order_of_the_rows_does_not_matter(name: str) -> None:
    function, shapes, loops, left = CASES[name]
    program = shuffled(traced(function, *(np.ones(shape) for shape in shapes)), 3)
    found = found_in(program)
    assert (sorted(counts(found)), check_values(program, found)) == (sorted(loops), left)


@pytest.mark.parametrize(
    ("name", "expected"),
    [("lennard_jones_20", 19), ("rosenbrock_loop", 1), ("reaction_plane_with_walls", 30), ("two_types", 19)],
)
@pytest.mark.parametrize("shuffle", [False, True])
def test_tables_are_long_affine_runs(name: str, expected: int, shuffle: bool) -> None:
    program = traced(CASES[name].function, *(np.ones(shape) for shape in CASES[name].shapes))
    program = shuffled(program, 4) if shuffle else program
    loop = max(found_in(program).loops, key=lambda loop: loop.count)
    inputs = [column for column in loop.reads if is_nodes(column) and (column < program.input_count).all()]
    found = runs([table(column) for column in inputs], loop.count)
    assert found is not None
    assert len(found) == expected


def test_constants_stay_as_written() -> None:
    """x * 0 and x * 1 are operations, so rows of data are all alike; an equal constant is a literal of the body."""
    data = np.array([[a, b, c, 7.0] for a in (0.0, 1.0, -1.0, 2.0) for b in (0.0, 1.0) for c in (1.0, -1.0)])
    found = found_in(traced(lambda w: np.tanh(data @ w), np.ones(4)))
    assert counts(found) == ["16 x 8 each"]
    assert [is_uniform(column) for column in found.loops[0].reads].count(True) == 4
    assert 7.0 in [atom for atom in found.loops[0].body.atoms.values() if isinstance(atom, sp.Number)]


def test_exponents_are_part_of_the_operation() -> None:
    """x**2 and x**3 are no one operation with a table of exponents, which would have other derivatives."""
    found = found_in(traced(lambda x: [np.sum(np.sin(x[:40]) ** 2), np.sum(np.sin(x[40:]) ** 3)], np.ones(80)))
    assert counts(found) == ["40 x 2 sum", "40 x 2 sum"]
    assert all(not (column >= 80).any() for loop in found.loops for column in loop.reads)


def test_results_of_loops_are_given() -> None:
    """What a loop reads is computed before it, and what it computes is not computed again."""
    program = traced(lambda x: np.cos(np.sin(np.exp(x))), np.ones(80))
    start = program.input_count
    body = Program([sp.Symbol, sp.sin], [(), (0,)], {0: sp.Symbol("z")}, (Input("z", ()),), (Output((), (1,)),), "body")
    exponentials, sines = (np.array([row for row in range(start, len(program)) if program.heads[row] is head])
                           for head in (sp.exp, sp.sin))  # fmt: skip
    given = Loop(body, 80, (exponentials,), (LoopResult(0, "each", sines),))
    outputs = np.array(program.outputs[0].rows)
    found = find_sums(program, np.arange(start), outputs, [given], len(program))
    assert sorted(counts(found)) == ["80 x 1 each", "80 x 1 each"]
    point = np.linspace(0.1, 1, 80)
    values, _ = rolled_values(program, Found([given, *found.loops], {}), outputs.tolist(), dict(enumerate(point)))
    np.testing.assert_allclose([values[row] for row in outputs], np.cos(np.sin(np.exp(point))), rtol=1e-14)


def test_loops_do_not_wait_for_each_other() -> None:
    """Equal operations before and after a loop are not one loop, though they look alike."""
    rows = RowTable()
    x = [rows.leaf(sp.Symbol(f"x{k}")) for k in range(80)]
    before = [rows.row(sp.sin, (row,)) for row in x]
    middle = [rows.row(sp.exp, (row,)) for row in before]
    after = [rows.row(sp.sin, (row,)) for row in middle]
    body = Program([sp.Symbol, sp.exp], [(), (0,)], {0: sp.Symbol("z")}, (Input("z", ()),), (Output((), (1,)),), "body")
    given = Loop(body, 80, (np.array(before),), (LoopResult(0, "each", np.array(middle)),))
    more = [rows.row(sp.tanh, (row,)) for row in after]
    outputs = np.array([*after, *more])
    found = find_sums(rows, np.arange(80), outputs, [given], len(rows))
    point = np.linspace(0.1, 1, 80)
    values, _ = rolled_values(rows, Found([given, *found.loops], {}), outputs.tolist(), dict(enumerate(point)))
    assert sorted(counts(found)) == ["80 x 1 each", "80 x 2 each each"]
    assert values[more[-1]] == pytest.approx(np.tanh(np.sin(np.exp(np.sin(1.0)))))


@pytest.mark.parametrize("name", ["ragged_kuramoto", "embedded_atoms", "node_balances", "power_flow", "softmax"])
def test_loops_are_placed(name: str) -> None:
    """Several loops may add to the same sums; who reads them waits for all."""
    program = traced(CASES[name].function, *(np.ones(shape) for shape in CASES[name].shapes))
    found = found_in(program)
    ends = np.cumsum([array.size for array in program.inputs])
    inputs = [
        (array.name, np.arange(end - array.size, end).reshape(array.shape))
        for array, end in zip(program.inputs, ends.tolist(), strict=True)
    ]
    outputs = [(np.array(output.rows), None) for output in program.outputs if output.rows]
    arrays = Arrays(inputs, outputs)
    assert agree(place(program, arrays, found.loops, found.sums), program, arrays)


def test_nothing_is_found() -> None:
    program = traced(lambda x: x[0] * x[1] + np.sin(x[2]), np.ones(3))
    found = found_in(program)
    assert (found.loops, found.sums) == ([], {})
    constant = traced(lambda x: [3.0, x], 2.0)
    assert find_sums(constant, np.arange(1), np.array([], dtype=np.int64), [], len(constant)).loops == []
    assert found_in(constant).loops == []


def test_limits_are_kept() -> None:
    program = traced(rosenbrock, np.ones(2000))
    with pytest.raises(LimitError, match="looking for sums"), limits(max_seconds=1e-9):
        found_in(program)


def test_random_programs() -> None:
    assert sum(loops_of(make(seeded(seed))) for seed in range(100)) > 50
