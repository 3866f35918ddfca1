"""Loops that are rewritten before they are emitted: what two of them compute alike."""

from dataclasses import replace

import numpy as np
import pytest
import sympy as sp

from codegen.evaluation.evaluate_rolled import evaluate_rolled
from codegen.expressions.sympy_in import program_from_sympy
from codegen.ir.region import Buffer, Gather, Region, Result, regions_of
from codegen.ir.tables import Affine
from codegen.loops.optimise.common_rows import share
from tests.codegen.loops.emit.test_loops import A, B, check, program

N, M = 11, 9


def layer(count=N, width=M, *, other="tanh", twice=False, far=0.0):
    """A map of sums, and the backward loop of another function of the same sums: both compute the sums."""
    rng = np.random.default_rng(0)
    slots = sp.symbols(f"w0:{width} x0:{width} y")
    w, x, y = slots[:width], slots[width : 2 * width], slots[-1]
    total = sum(a * b for a, b in zip(w, x, strict=True))
    weights = Buffer("constant", width * count, rng.normal(size=width * count))
    reads = [Gather(1, Affine(k, width, count)) for k in range(width)]
    reads += [Gather(0, Affine(k, 0, count)) for k in range(width)]
    forward = Region(
        program_from_sympy([*w, *x], [sp.tanh(total)]), count, tuple(reads),
        (Result(0, 2, Affine(0, 1, count), "store"),),
    )  # fmt: skip
    factor = y + getattr(sp, other)(total)
    body = program_from_sympy([*w, *x, y], [a * factor for a in w])
    sums = tuple(Result(k, 3, Affine(k, 0, count), "add") for k in range(width))
    backward = Region(body, count, (*reads, Gather(2, Affine(0, 1, count))), sums)
    middle = [weights, Buffer("workspace", count)]
    if twice:
        middle.append(replace(weights, values=weights.values + far))
        first = (replace(read, buffer=3) if read.buffer == 1 else read for read in forward.gathers)
        forward = replace(forward, gathers=tuple(first))
        backward = replace(backward, results=tuple(replace(use, buffer=4) for use in sums))
    return program([width], [width], middle, forward, backward)


def operations(rolled):
    return [sum(map(bool, region.body.operands)) for region, _ in regions_of(rolled.steps)]


def same(rolled, rewritten):
    given = [np.random.default_rng(1).normal(size=M)]
    for one, other in zip(evaluate_rolled(rolled, given), evaluate_rolled(rewritten, given), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-14)
    check(rolled, given, lanes=(None, 1, 2, 4, 8), rtol=1e-13)


@pytest.mark.parametrize("other", ["tanh", "cos"])
def test_sums_that_two_loops_compute_are_computed_once(other):
    rolled = layer(other=other)
    shared = share(rolled)
    sums = M + 1
    products = 1 + M + (other == "cos")  # of the backward loop: its factor, and what it adds
    assert operations(rolled) == [sums + 1, sums + products + (other == "tanh")]
    assert operations(shared) == [sums + 1, products]
    kept = [buffer.kind for buffer in shared.buffers].count("workspace")
    assert kept == (1 if other == "tanh" else 2)  # a result of the first loop is read where it is
    same(rolled, shared)


def test_equal_constants_in_two_buffers_are_equal():
    rolled = layer(twice=True)
    assert operations(share(rolled)) == operations(share(layer()))
    assert operations(share(layer(twice=True, far=1.0))) == operations(layer(twice=True, far=1.0))
    same(rolled, share(rolled))


def test_loops_of_other_lengths_or_little_work_are_left_alone():
    body = program_from_sympy([A, B], [A * B + A])
    regions = [
        Region(
            body, count, (Gather(0, Affine(0, 1, count)), Gather(0, Affine(1, 1, count))),
            (Result(0, 1, Affine(start, 1, count), "store"),),
        )
        for count, start in ((9, 0), (9, 9), (8, 18))
    ]  # fmt: skip
    rolled = program([10], [26], [], *regions)
    assert share(rolled) is rolled


def test_what_is_dear_is_shared_however_few_operations_it_has():
    bodies = [[sp.exp(A * B)], [sp.exp(A * B) * A]]
    reads = Gather(0, Affine(0, 1, 9)), Gather(0, Affine(1, 1, 9))
    first, second = (
        Region(program_from_sympy([A, B], body), 9, reads, (Result(0, 1, Affine(9 * k, 1, 9), "store"),))
        for k, body in enumerate(bodies)
    )
    rolled = program([10], [18], [], first, second)
    shared = share(rolled)
    assert operations(shared) == [2, 1]
    read = shared.steps[1].gathers[-1]
    assert (read.buffer, read.table) == (1, Affine(0, 1, 9))  # where it is stored anyway
    given = [np.random.default_rng(1).normal(size=10)]
    for one, other in zip(evaluate_rolled(rolled, given), evaluate_rolled(shared, given), strict=True):
        np.testing.assert_array_equal(one, other)
