"""Loops in the order of what they store: the same numbers, side by side in memory."""

from __future__ import annotations

import math

import numpy as np
import pytest
import sympy as sp

import symad as sa
from codegen.evaluation.evaluate_rolled import evaluate_rolled
from codegen.expressions.sympy_in import program_from_sympy
from codegen.ir.program import Input, Output
from codegen.ir.region import Buffer, Gather, Nest, Region, Result, RolledProgram
from codegen.ir.tables import Affine, Indexed
from codegen.loops.optimise.reordering import reordered
from codegen.machine.build import compile_program

A, B = sp.symbols("a b", real=True)
RANDOM = np.random.default_rng(5)
COLUMNS = np.arange(600).reshape(300, 2).T.ravel()


def loop(target, kind="store", read=None, shifts=()):
    body = program_from_sympy([A, B], [sp.sin(A) * B])
    read = Affine(0, 1, 600, shifts) if read is None else read
    gathers = (Gather(0, read), Gather(0, Affine(3, 0, 600)))
    return Region(body, 600, gathers, (Result(0, 1, target, kind),))


def program(steps, rounds=1):
    buffers = Buffer("input", 600 * rounds), Buffer("output", 600 * rounds)
    return RolledProgram((Input("x", (600 * rounds,)),), (Output((600 * rounds,), ()),), buffers, tuple(steps))


@pytest.mark.parametrize("target", [COLUMNS, RANDOM.permutation(600)], ids=["columns", "drawn"])
def test_numbers_stay_the_same(target):
    steps = [loop(Indexed(target))]
    made = reordered(steps)
    assert made[0].results[0].table == Affine(0, 1, 600)
    x = RANDOM.normal(size=600)
    found = [evaluate_rolled(program(each), [x])[0] for each in (steps, made)]
    np.testing.assert_array_equal(*found)
    np.testing.assert_array_equal(*[compile_program(program(each), lanes=1)(x) for each in (steps, made)])


def test_rounds_move_on_as_before():
    steps = [Nest(3, (loop(Indexed(COLUMNS, (600,)), shifts=(600,)),))]
    made = reordered(steps)
    assert made[0].steps[0].results[0].table == Affine(0, 1, 600, (600,))
    x = RANDOM.normal(size=1800)
    np.testing.assert_array_equal(*[evaluate_rolled(program(each, 3), [x])[0] for each in (steps, made)])


def test_what_adds_and_what_gains_nothing_is_left():
    spread = Indexed(RANDOM.permutation(600))
    for region in (
        loop(Indexed(COLUMNS), "add"),
        loop(Affine(0, 1, 600)),
        loop(Indexed(np.arange(600).reshape(2, 300)[::-1].ravel())),  # two stretches side by side
    ):
        assert reordered([region])[0] is region
    few = Region(loop(spread).body, 2, (Gather(0, Affine(0, 1, 2)),) * 2, (Result(0, 1, Affine(1, -1, 2), "store"),))
    assert reordered([few])[0] is few


def test_a_sum_along_the_last_axis_is_fused_backward():
    """What its cotangents are stored for reads them in the order of the array."""
    data = RANDOM.normal(size=(100, 50))

    def f(x):
        return np.sum(np.tanh(np.sum((data * np.exp(x)) ** 2, axis=1)))

    x = RANDOM.normal(size=50) / 9
    kernel = sa.compile(sa.value_and_grad(f), x)
    large = [region for region in kernel.program.steps if isinstance(region, Region) and region.count == data.size]
    assert all(isinstance(use.table, Affine) for region in large for use in region.results if use.kind == "store")
    value, gradient = kernel(x)
    assert value == pytest.approx(f(x), rel=1e-12)
    np.testing.assert_allclose(gradient, sa.grad(f)(x), rtol=1e-10, atol=1e-12)


def sums(places, count=12000, kind="add", read=None):
    body = program_from_sympy([A], [sp.sin(A)])
    gathers = (Gather(0, Affine(0, 1, count) if read is None else read),)
    return Region(body, count, gathers, (Result(0, 1, Indexed(places), kind),))


def summed(step):
    buffers = Buffer("input", 12000), Buffer("output", 50)
    return RolledProgram((Input("x", (12000,)),), (Output((50,), ()),), buffers, (step,))


def test_long_sums_take_their_terms_as_they_lie():
    """The sum along the last axis of 50 x 240 numbers, which was traced column by column."""
    by_columns = np.arange(12000).reshape(50, 240).T.ravel()
    step = sums(by_columns // 240, read=Indexed(by_columns))
    (made,) = reordered([step])
    assert made.gathers[0].table == Affine(0, 1, 12000)
    assert made.results[0].table.places().tolist() == np.repeat(np.arange(50), 240).tolist()
    x = RANDOM.normal(size=12000)
    np.testing.assert_array_equal(evaluate_rolled(summed(step), [x])[0], evaluate_rolled(summed(made), [x])[0])
    right = np.array([math.fsum(terms) for terms in np.sin(x).reshape(50, 240)])
    for lanes in (1, None):  # a register adds up part of a sum
        np.testing.assert_allclose(compile_program(summed(made), lanes=lanes)(x), right, rtol=0, atol=1e-13)


def test_other_sums_are_left():
    by_columns = np.arange(12000).reshape(50, 240).T.ravel()
    few = np.arange(12000).reshape(1500, 8).T.ravel()
    for step in (
        sums(by_columns // 240),  # read as they come
        sums(RANDOM.integers(0, 50, 12000), read=Indexed(RANDOM.permutation(12000))),  # read anywhere in any case
        sums(few // 8, read=Indexed(few)),  # few terms for each, which are unrolled
    ):
        assert reordered([step]) == [step]
