"""Copies one by one: what they bring together is read where it was, at even places; else they stay."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sp

import symad as sa
from codegen.evaluation.evaluate_rolled import evaluate_rolled
from codegen.expressions.sympy_in import program_from_sympy
from codegen.ir.body_parts import copy
from codegen.ir.program import Input, Output
from codegen.ir.region import Buffer, Gather, Nest, Region, Result, RolledProgram, regions_of
from codegen.ir.tables import Affine, Indexed
from codegen.loops.optimise.copy_propagation import without_copies

A = sp.Symbol("a", real=True)
N = 6
BUFFERS = Buffer("input", 4 * N), Buffer("workspace", N), Buffer("output", N)


def one_by_one(places, source=0, target=1):
    return [copy(Gather(source, Affine(at, 0, 1)), target, Affine(k, 0, 1)) for k, at in enumerate(places)]


def reading(table, result=None, count=N):
    body = program_from_sympy([A], [sp.sin(A)])
    result = Affine(0, 1, N) if result is None else result
    return Region(body, count, (Gather(1, table),), (Result(0, 2, result, "store"),))


def program(*steps):
    return RolledProgram((Input("x", (4 * N,)),), (Output((N,), ()),), BUFFERS, steps)


def same_numbers(one, other):
    x = np.random.default_rng(3).normal(size=4 * N)
    np.testing.assert_array_equal(evaluate_rolled(one, [x])[0], evaluate_rolled(other, [x])[0])


@pytest.mark.parametrize(
    ("places", "steps", "found"),
    [
        (range(0, 4 * N, 4), [reading(Affine(0, 1, N))], Affine(0, 4, N)),
        (range(9, 9 - N, -1), [reading(Affine(N - 1, -1, N))], Affine(9 - N + 1, 1, N)),
        (
            range(1, 4 * N, 4),
            [Nest(2, (reading(Affine(0, 1, 3, (3,)), Affine(0, 1, 3, (3,)), 3),))],
            Affine(1, 4, 3, (12,)),
        ),
        (None, [reading(Affine(N - 1, -1, N))], Affine(3 + N - 1, -1, N)),  # one copy, of an array as it is
        ([3, 8, 1, 4, 9, 2], [reading(Affine(4, -4, 2), Affine(0, 1, 2), 2)], Affine(9, -6, 2)),  # of them, two
    ],
    ids=["steps", "backward", "in a nest", "as it is", "some of them"],
)
def test_what_was_copied_is_read_where_it_was(places, steps, found):
    copies = [copy(Gather(0, Affine(3, 1, N)), 1, Affine(0, 1, N))] if places is None else one_by_one(places)
    copied = program(*copies, *steps)
    made = without_copies(copied)
    ((region, _),) = regions_of(made.steps)
    assert (region.gathers[0].buffer, region.gathers[0].table) == (0, found)
    same_numbers(copied, made)


@pytest.mark.parametrize(
    "steps",
    [
        (*one_by_one([3, 8, 1, 4, 9, 2]), reading(Affine(0, 1, N))),  # from uneven places
        (*one_by_one(range(N)), reading(Indexed(np.array([1, 0, 5, 4, 2, 3])))),
        (copy(Gather(0, Affine(0, 4, N)), 1, Affine(0, 1, N)), reading(Affine(0, 1, N))),  # one copy: a layout
        (*one_by_one(range(N - 1)), reading(Affine(0, 1, N - 1), Affine(0, 1, N - 1), N - 1)),  # a place is not filled
        (*one_by_one(range(N), target=2),),  # an output has to be filled
        (
            *one_by_one([3, 8, 1, 4, 9, 2]),
            Nest(2, (reading(Affine(0, 1, 3, (3,)), Affine(0, 1, 3, (3,)), 3),)),
        ),
    ],
    ids=["uneven", "read anywhere", "layout", "not filled", "output", "uneven in a nest"],
)
def test_other_copies_stay(steps):
    rolled = program(*steps)
    assert without_copies(rolled) is rolled


def test_draws_of_weights_need_no_copies():
    random = np.random.default_rng(3)
    noise, x, y = random.normal(size=(10, 100)), np.linspace(-2, 2, 40)[:, None], np.cos(np.linspace(-2, 2, 40))

    def f(p):
        total = 0.0
        for draw in noise:
            weights = p + draw
            hidden = np.exp(-((x @ weights[:50].reshape(1, 50)) ** 2))
            total = total - np.sum(((hidden @ weights[50:].reshape(50, 1))[:, 0] - y) ** 2)
        return total

    p = random.normal(size=100) * 0.3
    plan = sa.plan(sa.grad(f), p)
    (loops,) = [each for each in plan.candidates if each.way == "rolled"]
    assert len(list(regions_of(loops.rolled.program.steps))) < 40
    np.testing.assert_allclose(sa.compile(sa.grad(f), p)(p), sa.grad(f)(p), rtol=1e-11)
