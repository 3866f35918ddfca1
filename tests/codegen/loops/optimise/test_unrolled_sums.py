"""Sums of few terms at many places: one repetition for each place, the same bits."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sp

import symad as sa
from codegen.evaluation.evaluate_rolled import evaluate_rolled
from codegen.expressions.sympy_in import program_from_sympy
from codegen.ir.program import Input, Output
from codegen.ir.region import Buffer, Gather, Region, Result, RolledProgram
from codegen.ir.tables import Affine, Indexed
from codegen.loops.optimise.unrolled_sums import with_unrolled_sums
from codegen.machine.build import compile_program

A, B = sp.symbols("a b", real=True)
RANDOM = np.random.default_rng(3)
N, TERMS = 100, 7
BY_ROWS = np.arange(N * TERMS) // TERMS
BY_COLUMNS = np.arange(N * TERMS) % N


def loop(places, *, read=None, kind="add", buffer=1):
    body = program_from_sympy([A, B], [sp.sin(A) * B])
    read = Affine(0, 1, len(places)) if read is None else read
    gathers = (Gather(0, read), Gather(0, Indexed(places)))
    return Region(body, len(places), gathers, (Result(0, buffer, Indexed(places), kind),))


def program(*steps, size=N):
    buffers = Buffer("input", N * TERMS), Buffer("output", size)
    return RolledProgram((Input("x", (N * TERMS,)),), (Output((size,), ()),), buffers, steps)


def same_bits(one, other):
    x = RANDOM.normal(size=N * TERMS)
    np.testing.assert_array_equal(evaluate_rolled(one, [x])[0], evaluate_rolled(other, [x])[0])
    for lanes in (1, 4, None):
        np.testing.assert_array_equal(compile_program(one, lanes=1)(x), compile_program(other, lanes=lanes)(x))


@pytest.mark.parametrize("places", [BY_ROWS, BY_COLUMNS], ids=["rows", "columns"])
def test_places_are_the_repetitions(places):
    made = with_unrolled_sums(program(loop(places)))
    (step,) = made.steps
    assert (step.count, step.results[0].table, step.results[0].kind) == (N, Affine(0, 1, N), "store")
    assert len(step.gathers) == TERMS + (places is BY_ROWS)  # what all terms read, or two slots, is read once
    assert len(set(map(type, (use.table for use in step.gathers)))) == 1
    same_bits(program(loop(places)), made)


def test_places_that_nothing_is_added_to_stay_zero():
    made = with_unrolled_sums(program(loop(BY_ROWS + 3), size=N + 5))
    (use,) = made.steps[0].results
    assert (use.table, use.kind) == (Affine(3, 1, N), "add")
    same_bits(program(loop(BY_ROWS + 3), size=N + 5), made)


@pytest.mark.parametrize(
    "steps",
    [
        (loop(RANDOM.permutation(BY_ROWS)),),  # read anywhere
        (loop(np.arange(N * TERMS) // TERMS // 2 * 2),),  # with holes between the places
        (loop(np.minimum(BY_ROWS, N - 2)),),  # one sum is longer
        (loop(BY_ROWS), loop(BY_ROWS)),  # two loops add to the same places
        (loop(np.arange(N * TERMS) // (N * TERMS // 10)),),  # few places of many terms
    ],
    ids=["anywhere", "holes", "longer", "two", "many terms"],
)
def test_other_sums_are_left(steps):
    rolled = program(*steps)
    assert with_unrolled_sums(rolled) is rolled


def test_sums_along_axes():
    x = RANDOM.normal(size=(300, 20))

    def f(x):
        e = np.exp(x - np.max(x, axis=1, keepdims=True))
        return np.sum(np.log(np.sum(e, axis=1))) + np.sum(np.sum(x * x, axis=1) ** 2)

    kernel = sa.compile(sa.value_and_grad(f), x)
    value, gradient = kernel(x)
    wanted = sa.value_and_grad(f)(x)
    np.testing.assert_allclose(value, wanted[0], rtol=1e-13)
    np.testing.assert_allclose(gradient, wanted[1], rtol=1e-11)
