"""Tangents and cotangents of matrix operations, against those of the loops that they stand for, to second order."""

from __future__ import annotations

import numpy as np
import pytest

from codegen.evaluation.evaluate_rolled import evaluate_rolled
from codegen.ir.program import Input, Output
from codegen.ir.region import Buffer, Gather, Nest, Result, RolledProgram, regions_of
from codegen.ir.tables import Affine
from codegen.matrices.matrix_loops import has_matrices, matrix_program, matrix_region, without_matrices
from symad.derivatives.loops.pullback import pullback
from symad.derivatives.loops.pushforward import pushforward
from tests.support.matrix_operations import FACTORS, OPERATIONS, name_of, operands_of

LARGEST = 50  # entries of an operand of which second derivatives are compared


def assert_close(found, wanted):
    for one, other in zip(found, wanted, strict=True):
        scale = max(np.abs(other).max(), 1e-300)
        np.testing.assert_allclose(one / scale, other / scale, rtol=0, atol=1e-9)


def active_of(operation):
    both = list(range(len(operation.operands)))
    return [both] if len(both) == 1 else [both, [0], [1]]


CASES = [
    pytest.param(each, active, id=f"{name_of(each)}-{active}") for each in OPERATIONS for active in active_of(each)
]


@pytest.mark.parametrize(("operation", "active"), CASES)
@pytest.mark.thinned
def test_first_and_second_derivatives_are_those_of_loops(operation, active):
    whole = matrix_program(operation)
    programs, given, random = (whole, without_matrices(whole)), operands_of(operation), np.random.default_rng(1)
    tangents = [random.normal(size=operation.operands[number]) for number in active]
    assert_close(*(evaluate_rolled(pushforward(program, active), [*given, *tangents]) for program in programs))
    given += [random.normal(size=size) for size in operation.results]
    pulled = [pullback(program, active) for program in programs]
    assert has_matrices(pulled[0])
    assert_close(*(evaluate_rolled(program, given) for program in pulled))
    if max(operation.operands) > LARGEST:
        return
    every = list(range(len(given)))
    tangents = [random.normal(size=array.size) for array in given]
    assert_close(*(evaluate_rolled(pushforward(program, every), [*given, *tangents]) for program in pulled))
    cotangents = [random.normal(size=output.size) for output in pulled[0].outputs]
    assert_close(*(evaluate_rolled(pullback(program, every), [*given, *cotangents]) for program in pulled))


ROUNDS = 3


def in_rounds(operation):
    """A nest that carries an operation out for each row of its arrays, and the same regions one by one."""
    first = len(operation.operands)
    inputs = tuple(Input(f"x{k}", (ROUNDS * size,)) for k, size in enumerate(operation.operands))
    outputs = tuple(Output((ROUNDS * size,), ()) for size in operation.results)
    buffers = [Buffer("input", array.size) for array in inputs] + [Buffer("output", array.size) for array in outputs]

    def region(start, shifts):
        reads = [Gather(k, Affine(start * n, 1, n, (n,) * shifts)) for k, n in enumerate(operation.operands)]
        results = [(first + k, Affine(start * n, 1, n, (n,) * shifts)) for k, n in enumerate(operation.results)]
        stores = [Result(k, buffer, places, "store") for k, (buffer, places) in enumerate(results)]
        return matrix_region(operation, reads, stores)

    nest, flat = (Nest(ROUNDS, (region(0, 1),)),), tuple(region(k, 0) for k in range(ROUNDS))
    return [RolledProgram(inputs, outputs, tuple(buffers), steps) for steps in (nest, flat)]


@pytest.mark.parametrize("operation", [*OPERATIONS, *FACTORS], ids=name_of)
@pytest.mark.thinned
def test_derivatives_of_rounds_are_those_of_operations_one_by_one(operation):
    """To second order, and no matrix operation becomes loops on the way."""
    programs, random = in_rounds(operation), np.random.default_rng(1)
    rounds = [operands_of(operation, seed) for seed in range(ROUNDS)]
    given = [np.concatenate([each[k].ravel() for each in rounds]) for k in range(len(operation.operands))]
    active = range(len(given))
    tangents = [random.normal(size=array.size) for array in given]
    assert_close(*(evaluate_rolled(pushforward(program, active), [*given, *tangents]) for program in programs))
    pulled = [pullback(program, active) for program in programs]
    assert len(list(regions_of(pulled[0].steps))) < len(list(regions_of(pulled[1].steps)))
    given += [random.normal(size=output.size) for output in programs[0].outputs]
    assert_close(*(evaluate_rolled(program, given) for program in pulled))
    if max(operation.operands) > LARGEST:
        return
    every = range(len(given))
    tangents = [random.normal(size=array.size) for array in given]
    assert_close(*(evaluate_rolled(pushforward(program, every), [*given, *tangents]) for program in pulled))
    cotangents = [random.normal(size=output.size) for output in pulled[0].outputs]
    assert_close(*(evaluate_rolled(pullback(program, every), [*given, *cotangents]) for program in pulled))


def joined(arrays):
    return np.concatenate([np.ravel(array) for array in arrays])


@pytest.mark.parametrize("operation", FACTORS, ids=name_of)
@pytest.mark.thinned
def test_derivatives_of_what_has_no_loops(operation):
    """Pushforwards against central differences, pullbacks as their transposed maps; the same of the pullback."""
    program, random = matrix_program(operation), np.random.default_rng(1)
    for _ in range(2):
        every = list(range(len(program.inputs)))
        given = [random.normal(size=array.size) for array in program.inputs]
        tangents = [random.normal(size=array.size) for array in program.inputs]
        ahead, behind = (
            joined(evaluate_rolled(program, [x + step * t for x, t in zip(given, tangents, strict=True)]))
            for step in (1e-6, -1e-6)
        )
        count = len(program.outputs)
        found = joined(evaluate_rolled(pushforward(program, every), [*given, *tangents])[count:])
        wanted = (ahead - behind) / 2e-6
        np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-6 * np.abs(wanted).max())
        cotangents = [random.normal(size=output.size) for output in program.outputs]
        pulled = pullback(program, every)
        back = joined(evaluate_rolled(pulled, [*given, *cotangents])[count:])
        assert back @ joined(tangents) == pytest.approx(found @ joined(cotangents), rel=1e-9, abs=1e-9)
        program = pulled
