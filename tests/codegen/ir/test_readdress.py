"""Uses of buffers at other places: what affine tables say and what their places say is the same, and so are results."""

import numpy as np
import pytest
import sympy as sp

from codegen.evaluation.evaluate_rolled import evaluate_rolled
from codegen.expressions.sympy_in import program_from_sympy
from codegen.ir.program import Input, Output
from codegen.ir.readdress import (
    all_places,
    all_readdressed,
    backward,
    buffers_read,
    buffers_written,
    each_region,
    key_of,
    moved,
    renumbered,
    repetitions,
)
from codegen.ir.region import Buffer, Carry, Gather, Nest, Region, Result, RolledProgram
from codegen.ir.tables import Affine, Indexed

A, B = sp.symbols("a b")
TABLES = [Affine(3, 2, 5, (7,)), Affine(9, -1, 4, (0, 4)), Affine(6, 0, 3)]


def indexed(table):
    return Indexed(table.places(), table.shifts)


@pytest.mark.parametrize("found", TABLES)
def test_affine_tables_move_as_their_places_do(found):
    counts = (2, 3)
    for change in (
        lambda table: moved(table, 4, scale=3),
        lambda table: moved(table, -2),
        lambda table: moved(table, 1, shifts=(5, 6)),
        backward,
    ):
        places = all_places(change(found), counts)
        np.testing.assert_array_equal(places, all_places(change(indexed(found)), counts))
    np.testing.assert_array_equal(all_places(moved(found, 4, scale=3), counts), 3 * all_places(found, counts) + 4)
    np.testing.assert_array_equal(backward(found).places(), found.places()[::-1])


def test_repetitions_of_rounds_and_of_the_rest_are_all_repetitions():
    found, (rounds, length) = Affine(5, 3, 14), (4, 3)
    inside, rest = repetitions(found, 0, length, 0), repetitions(found, rounds * length, 2)
    places = np.concatenate([all_places(inside, (rounds,)), rest.places()])
    np.testing.assert_array_equal(places, found.places())


def test_equal_places_have_equal_keys():
    places = np.array([4, 1, 1])
    one, same, later = (Gather(0, Indexed(found, shifts)) for found, shifts in
                        ((places, ()), (places.copy(), ()), (places, (1,))))  # fmt: skip
    assert key_of(one) == key_of(same) != key_of(later)
    assert key_of(one) != key_of(Gather(1, one.table))


def history(count, first):
    """Rounds of a chain, each from the end of the one before; in a buffer whose places begin at `first`."""
    body = program_from_sympy([A, B], [A * B + 1])
    step = Region(
        body, count, (Gather(0, Affine(0, 1, count, (count,))),),
        (Result(0, 1, Affine(first + 1, 0, 1, (1,)), "last"),),
        (Carry(0, (Gather(1, Affine(first, 0, 1, (1,))),)),),
    )  # fmt: skip
    end = Region(body, 1, (Gather(1, Affine(first + 3, 0, 1)),) * 2, (Result(0, 2, Affine(0, 0, 1), "store"),))
    return Nest(3, (step,)), end


def test_every_kind_of_use_is_readdressed():
    def run(steps, sizes):
        buffers = (Buffer("input", 12), *(Buffer("workspace", size) for size in sizes), Buffer("output", 1))
        rolled = RolledProgram((Input("x", (12,)),), (Output((), ()),), buffers, tuple(steps))
        return evaluate_rolled(rolled, [np.linspace(0.5, 1.5, 12)])[0]

    steps = history(4, 0)
    further = all_readdressed(steps, lambda buffer, table: (buffer, moved(table, 6) if buffer == 1 else table))
    renamed = renumbered(steps, {0: 0, 1: 2, 2: 3}.__getitem__)
    expected = run(steps, [4])
    assert expected > 1
    assert run(further, [10]) == run(history(4, 6), [10]) == run(renamed, [1, 4]) == expected
    assert (buffers_read(steps), buffers_written(steps)) == ({0, 1}, {1, 2})
    assert (buffers_read(renamed), buffers_written(renamed)) == ({0, 2}, {2, 3})


def test_nests_stay_and_go_when_nothing_is_left_in_them():
    nest, end = history(4, 0)
    deep = [end, Nest(2, (Nest(5, (nest, end)), end)), end]
    found = each_region(deep, lambda region: region if region.count == 4 else None)
    (outer,) = found
    (middle,) = outer.steps
    assert (outer.count, middle.count, [step.count for step in middle.steps]) == (2, 5, [3])
    assert each_region(deep, lambda region: None) == ()


def test_deep_nests_need_no_recursion():
    step = history(4, 0)[1]
    for _ in range(5000):
        step = Nest(1, (step,))
    (found,) = renumbered([step], lambda buffer: buffer)
    depth = 0
    while isinstance(found, Nest):
        (found,), depth = found.steps, depth + 1
    assert depth == 5000
