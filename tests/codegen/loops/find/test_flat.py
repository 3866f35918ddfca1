"""Classes of many rows at once are those of one row after the other."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sp

import symad
from codegen.ir.program import Program
from codegen.loops.find import flat_rows as flat
from codegen.loops.find.flat_rows import FlatRows, flattened, grouped, needed, packed, waves
from codegen.loops.find.row_classes import Classes, classify
from codegen.loops.find.sum_terms import ragged_sums
from symad.tracing.trace import to_program
from tests.support.draws import seeded
from tests.support.sums_fuzz import Author, check, make, shuffled


def long_sums(x):
    """Sums and a product that share their beginning, of terms written before or after the sum above."""
    terms = x**2 + 3
    total = 0.0
    for k in range(40):
        total = total + terms[k]
    other = total
    for k in range(30):
        other = other + np.sin(x[k])
    return [total, other, np.sum(terms), np.sum(terms[:35]) * x[0], np.sum(x) + np.prod(x), np.cumsum(x * 2)[-1]]


def programs() -> list[Program]:
    random = [Author(seeded(seed)).program() for seed in range(40)]
    written = to_program(symad.trace(long_sums, np.ones(50)))
    return [*random, *(shuffled(program, 1) for program in random[:10]), written]


def classes_of(program: Program, ragged: set[int]) -> Classes:
    outputs = np.unique([row for output in program.outputs for row in output.rows])
    return classify(program, np.arange(program.input_count), outputs, [], ragged)


def facts(found: Classes) -> list[tuple[object, ...]]:
    """What is known of each row, with classes numbered as they are met."""
    numbers: dict[int, int] = {}
    return [
        (numbers.setdefault(kind, len(numbers)), found.heads[kind], found.keys[kind], found.weights[kind],
         found.operations[kind], found.constant[kind], int(found.members[kind]), int(found.uses[row]))
        for row, kind in enumerate(found.of.tolist()) if kind >= 0
    ]  # fmt: skip


@pytest.fixture
def all_at_once(monkeypatch):
    """Everything is taken for many."""
    monkeypatch.setattr(flat, "MANY", 1)
    monkeypatch.setattr(flat, "SMALL_WAVES", 10)


def test_classes_are_the_same(request):
    written = programs()
    ragged = [set[int](), *[set(ragged_sums(classes_of(program, set())).tolist()) for program in written]]
    cases = [(program, sums) for program, apart in zip(written, ragged[1:], strict=True) for sums in (set(), apart)]
    expected = [facts(classes_of(*case)) for case in cases]
    request.getfixturevalue("all_at_once")
    assert [facts(classes_of(*case)) for case in cases] == expected
    assert any(apart for _, apart in cases)


@pytest.mark.parametrize("seed", range(0, 60, 3))
def test_loops_have_the_values_of_straight_lines(all_at_once, seed):
    check(make(seeded(seed)))


def test_waves_take_each_row_once(all_at_once):
    for program in programs()[:5]:
        rows = flattened(program)
        done = rows.arity == 0
        *many, rest = waves(rows, ~done, np.zeros(len(rows), dtype=bool))
        for wave in many:
            parts, counts = rows.parts(wave)
            assert done[parts].all()
            assert counts.sum() == len(parts)
            done[wave] = True
        assert np.array_equal(np.nonzero(~done)[0], rest)


def test_needed_rows_do_not_go_through_what_is_given():
    x = sp.Symbol("x")
    heads = [sp.Symbol, sp.sin, sp.cos, sp.Mul, sp.exp]
    program = Program(heads, [(), (0,), (1,), (2, 0), (1,)], {0: x}, (), ())
    rows, nothing = flattened(program), np.zeros(5, dtype=bool)
    wanted, given = nothing.copy(), nothing.copy()
    wanted[3] = True
    assert needed(rows, wanted, nothing).tolist() == [True, True, True, True, False]
    given[2] = True
    assert needed(rows, wanted, given).tolist() == [True, False, True, True, False]
    wanted[4] = True
    assert needed(rows, wanted, given).all()


def test_different_keys_are_told_apart():
    keys = np.random.default_rng(0).integers(0, 50, 300)
    firsts, numbers = grouped(keys)
    assert np.array_equal(keys[firsts][numbers], keys)
    assert len(firsts) == len(np.unique(keys))
    assert (np.diff(firsts) > 0).all()


def test_packed_rows_do_not_overflow():
    columns = [np.array([1, 2, 1]) << 40, np.array([3, 3, 3]) << 40, np.array([5, 5, 5]), np.array([7, 8, 7]) << 30]
    keys = packed(columns)
    assert keys[0] == keys[2] != keys[1]
    assert isinstance(flattened(programs()[0]), FlatRows)
