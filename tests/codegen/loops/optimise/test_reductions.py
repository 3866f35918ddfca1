"""Chains that only add: sums where their history is not used, else chains as before."""

import numpy as np
import pytest

from codegen.ir.program import Input, Output
from codegen.ir.region import Buffer, Carry, Gather, Region, Result, RolledProgram
from codegen.ir.tables import Affine, table
from codegen.loops.optimise.reductions import with_reductions
from symad.derivatives.loops.body_derivatives import body_program
from symad.derivatives.loops.loop_hessian import hessian
from tests.support.second_cases import flat_hessian, numbers_of, points_of


def chain(function, count, lag, kind, reads):
    """Terms sin(x_k) are added up `lag` places apart, from initial values; then squares of what `reads` are added."""
    body = body_program(function, 2)
    gathers = (Gather(0, Affine(lag, 1, count)),)
    carry = Carry(0, tuple(Gather(0, Affine(k, 0, 1)) for k in range(lag)))
    into = Affine(0, 0, 1) if kind == "last" else Affine(0, 1, count)
    first = Region(body, count, gathers, (Result(0, 1, into, kind),), (carry,))
    reads = np.array(reads)
    square = body_program(lambda a: (a * a,), 1)
    second = Region(square, len(reads), (Gather(1, table(reads)),), (Result(0, 2, Affine(0, 0, len(reads)), "add"),))
    buffers = (Buffer("input", count + lag), Buffer("workspace", count), Buffer("output", 1))
    return RolledProgram((Input("x", (count + lag,)),), (Output((), ()),), buffers, (first, second))


def add(a, total):
    return (total + np.sin(a),)


@pytest.mark.parametrize(
    ("count", "lag", "kind", "reads"),
    [
        (7, 1, "last", [0]),
        (7, 1, "store", [6]),
        (7, 3, "store", [4, 5, 6]),
        (7, 3, "store", [6, 4]),
        (3, 3, "store", [1]),
    ],
)
def test_sums_of_chains(count, lag, kind, reads):
    rolled = chain(add, count, lag, kind, reads)
    found = with_reductions(rolled)
    assert all(region.parallel for region in found.steps)
    points = points_of(rolled)
    np.testing.assert_allclose(numbers_of(found, points), numbers_of(rolled, points), rtol=1e-15)
    (data,) = numbers_of(hessian(rolled, 0, "lower", "coo"), points)
    np.testing.assert_allclose(data, list(dict(sorted(flat_hessian(rolled, 0, points).items())).values()), rtol=1e-13)


def test_what_is_stored_beside_a_sum_is_still_stored():
    rolled = chain(lambda a, total: (total + np.sin(a), a * a), 7, 1, "last", [0])
    first, second = rolled.steps
    stored = Result(1, 3, Affine(0, 1, 7), "store")
    rolled = RolledProgram(
        rolled.inputs, (*rolled.outputs, Output((7,), ())), (*rolled.buffers, Buffer("output", 7)),
        (Region(first.body, 7, first.gathers, (*first.results, stored), first.carries), second),
    )  # fmt: skip
    found, points = with_reductions(rolled), points_of(rolled)
    assert all(region.parallel for region in found.steps)
    for one, other in zip(numbers_of(found, points), numbers_of(rolled, points), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-15)


@pytest.mark.parametrize(
    ("function", "reads"),
    [
        (add, [3, 6]),  # a value on the way is used
        (lambda a, total: (total * 0.5 + np.sin(a),), [6]),
        (lambda a, total: (total + np.sin(a * total),), [6]),
        (lambda a, total: (total + total,), [6]),
    ],
)
def test_chains_that_stay(function, reads):
    rolled = chain(function, 7, 1, "store", reads)
    assert not with_reductions(rolled).steps[0].parallel
