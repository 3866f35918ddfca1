"""Matrix operations: by a library, as loops, and with NumPy, to the same numbers."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg

import codegen.loops.emit.rolled_code as rolled_code
from codegen.errors import ArgumentError, LoweringError
from codegen.evaluation.evaluate_rolled import evaluate_rolled
from codegen.functions.libraries import has_library, pointers, routine_address
from codegen.ir.body_parts import copy
from codegen.ir.matrix_operation import MatrixOperation
from codegen.ir.program import Input, Output
from codegen.ir.region import Buffer, Gather, Nest, Result, RolledProgram
from codegen.ir.tables import Affine
from codegen.machine.build import compile_program
from codegen.machine.stored_kernels import load_kernel
from codegen.matrices.matrix_loops import matrix_program, matrix_region, without_library, without_matrices
from tests.support.matrix_operations import FACTORS, OPERATIONS, name_of, operands_of


def arrays(found):
    return [np.ravel(array) for array in (found if isinstance(found, tuple | list) else [found])]


def assert_close(found, wanted):
    for one, other in zip(arrays(found), arrays(wanted), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-11, atol=1e-12 * np.abs(other).max())


@pytest.mark.parametrize("operation", OPERATIONS, ids=name_of)
@pytest.mark.thinned
def test_every_way_gives_numpys_numbers(operation, monkeypatch):
    program, given = matrix_program(operation), operands_of(operation)
    wanted = evaluate_rolled(program, given)
    assert_close(evaluate_rolled(without_matrices(program), given), wanted)
    assert has_library()
    assert_close(compile_program(program)(*given), wanted)
    monkeypatch.setattr(rolled_code, "has_library", lambda: False)
    assert_close(compile_program(program, cache=False)(*given), wanted)


@pytest.mark.parametrize("operation", FACTORS, ids=name_of)
def test_what_has_no_loops_is_carried_out_by_the_library(operation, monkeypatch):
    program, given = matrix_program(operation), operands_of(operation)
    wanted = evaluate_rolled(program, given)
    kernel = compile_program(program)
    assert_close(kernel(*given), wanted)
    with pytest.raises(LoweringError, match=r" of a matrix .* as loops: only LAPACK"):
        without_matrices(program)
    monkeypatch.setattr(rolled_code, "has_library", lambda: False)
    with pytest.raises(LoweringError, match=r"pip install symad\[special\]"):
        compile_program(program, cache=False)


@pytest.mark.parametrize("operation", FACTORS, ids=name_of)
def test_what_is_not_finite_gives_nan(operation):
    for spoiled in (np.nan, np.inf):
        matrix = operands_of(operation)[0]
        matrix[0] = spoiled
        for found in (
            compile_program(matrix_program(operation))(matrix),
            evaluate_rolled(matrix_program(operation), [matrix]),
        ):
            assert all(np.isnan(part).all() for part in arrays(found))


@pytest.mark.parametrize("n", [1, 2, 5, 60])
def test_exponentials_are_scipys(n):
    """Of small and large numbers, and of matrices whose powers are far smaller than they are."""
    random, operation = np.random.default_rng(n), MatrixOperation("exponential", (n,))
    program = matrix_program(operation)
    kernel = compile_program(program)
    for size in (0.0, 1e-9, 0.3, 1.0, 4.0, 5.5, 40.0):
        for corner in (0.0, 1e3, 1e7):
            matrix = size * random.normal(size=(n, n)) / np.sqrt(n)
            matrix = np.triu(matrix) if corner else matrix
            matrix[0, -1] += corner * (n > 1)
            wanted = scipy.linalg.expm(matrix)
            for found in (kernel(matrix.ravel()), evaluate_rolled(program, [matrix.ravel()])[0]):
                gap = np.abs(np.reshape(found, (n, n)) - wanted).max() / np.abs(wanted).max()
                assert gap < 1e-12 * max(1.0, size)
    for huge in (1e305, np.inf):
        assert np.isnan(kernel(np.full(n * n, huge))).all()


def test_the_other_triangle_is_not_read():
    """The lower one, by columns."""
    program, given = matrix_program(MatrixOperation("eigen", (4,))), operands_of(MatrixOperation("eigen", (4,)))[0]
    spoiled = np.where(np.tri(4, k=-1, dtype=bool), np.nan, given.reshape(4, 4)).ravel()
    assert_close(compile_program(program)(spoiled), compile_program(program)(given))
    assert_close(evaluate_rolled(program, [spoiled]), compile_program(program)(given))


def test_a_saved_kernel_has_its_operation(tmp_path):
    operation = MatrixOperation("solve", (5, 2), (True, False))
    kernel = compile_program(matrix_program(operation))
    kernel.save(tmp_path / "solve.symad")
    again = load_kernel(tmp_path / "solve.symad")
    assert again.program.steps[0].matrix == operation
    assert_close(again(*operands_of(operation)), kernel(*operands_of(operation)))


def test_operands_that_are_constants():
    operation = MatrixOperation("product", (1, 3, 4, 2))
    left, right = operands_of(operation)
    for values in ((left, None), (None, right)):
        program = matrix_program(operation, values)
        given = [each for each, known in zip((left, right), values, strict=True) if known is None]
        wanted = left.reshape(3, 4) @ right.reshape(4, 2)
        assert_close(compile_program(program)(*given), wanted)
        assert_close(evaluate_rolled(without_matrices(program), given), wanted)


@pytest.mark.parametrize("kind", ["store", "add"])
def test_products_go_into_a_part_of_an_array(kind):
    """The places before and behind it keep what they have: nothing."""
    operation = MatrixOperation("product", (1, 2, 3, 2))
    reads = [Gather(0, Affine(1, 1, 6)), Gather(0, Affine(5, 1, 6))]
    results = [matrix_region(operation, reads, [Result(0, 1, Affine(3, 1, 4), kind)])]
    whole = RolledProgram(
        (Input("a", (12,)),), (Output((9,), ()),),
        (Buffer("input", 12), Buffer("output", 9)), tuple(results if kind == "store" else results * 2),
    )  # fmt: skip
    given = np.arange(12.0)
    wanted = np.zeros(9)
    wanted[3:7] = (given[1:7].reshape(2, 3) @ given[5:11].reshape(3, 2)).ravel() * (1 if kind == "store" else 2)
    for program in (whole, without_matrices(whole)):
        assert_close(compile_program(program)(given), wanted)
        assert_close(evaluate_rolled(program, [given]), wanted)


@pytest.mark.parametrize("operation", OPERATIONS, ids=name_of)
@pytest.mark.thinned
def test_operations_in_nests(operation):
    """Of three rounds, each of which has matrices of its own."""
    rounds = [operands_of(operation, seed) for seed in range(3)]
    given = [np.concatenate(arrays) for arrays in zip(*rounds, strict=True)]
    first = len(given)
    reads = [Gather(k, Affine(0, 1, size, (size,))) for k, size in enumerate(operation.operands)]
    results = [Result(k, first + k, Affine(0, 1, n, (n,)), "store") for k, n in enumerate(operation.results)]
    nested = RolledProgram(
        tuple(Input(f"matrix_{k}", (array.size,)) for k, array in enumerate(given)),
        tuple(Output((3 * size,), ()) for size in operation.results),
        (*(Buffer("input", a.size) for a in given), *(Buffer("output", 3 * size) for size in operation.results)),
        (Nest(3, (matrix_region(operation, reads, results),)),),
    )
    parts = [arrays(evaluate_rolled(matrix_program(operation), each)) for each in rounds]
    wanted = [np.concatenate(found) for found in zip(*parts, strict=True)]
    assert_close(evaluate_rolled(nested, given), wanted)
    assert_close(evaluate_rolled(without_matrices(nested), given), wanted)
    assert_close(compile_program(nested)(*given), wanted)


def test_what_has_no_solution_is_nan():
    singular = np.ones(9)
    for operation in (MatrixOperation("solve", (3, 1)), MatrixOperation("cholesky", (3,))):
        given = [-singular, np.ones(3)][: len(operation.operands)]
        found = compile_program(matrix_program(operation))(*given)
        assert np.isnan(found).any()
        assert not np.isinf(found).any()
    assert compile_program(matrix_program(MatrixOperation("determinant", (3,))))(singular) == [0.0]
    logarithm, sign = compile_program(matrix_program(MatrixOperation("log_determinant", (3,))))(singular)
    assert (logarithm, sign) == (-np.inf, 0.0)


def test_a_nan_is_seen_in_every_result():
    for operation in (MatrixOperation("determinant", (4,)), MatrixOperation("log_determinant", (4,))):
        for place in range(16):
            matrix = operands_of(operation)[0]
            matrix[place] = np.nan
            assert np.isnan(arrays(compile_program(matrix_program(operation))(matrix))).all()


def test_malformed_operations_are_refused():
    for kind, sizes in (("cholesky", (3, 2)), ("qr", (2, 3)), ("eigen", (2, 2)), ("singular", (0, 1))):
        with pytest.raises(ArgumentError, match=rf"a matrix operation {kind} of sizes \({sizes[0]}, {sizes[1]}\)"):
            MatrixOperation(kind, sizes)
    operation, whole = MatrixOperation("cholesky", (2,)), Affine(0, 1, 4)
    region = matrix_region(operation, [Gather(0, whole)], [Result(0, 1, whole, "store")])
    program = matrix_program(operation)
    for steps, problem in (
        ((matrix_region(operation, [Gather(0, Affine(3, -1, 4))], region.results),), "not side by side"),
        ((matrix_region(operation, [Gather(0, Affine(0, 1, 3))], region.results),), "places 0 to 2"),
        ((matrix_region(operation, region.gathers * 2, region.results),), "does not fit|operands and results"),
    ):
        with pytest.raises(ArgumentError, match=problem):
            RolledProgram(program.inputs, program.outputs, program.buffers, steps)


def test_a_missing_library_names_the_extra(monkeypatch):
    modules = __import__("sys").modules
    monkeypatch.setitem(modules, "scipy", None)
    monkeypatch.delitem(modules, "scipy.linalg.cython_lapack", raising=False)
    pointers.cache_clear()
    routine_address.cache_clear()
    try:
        with pytest.raises(LoweringError, match=r"SciPy is not installed; pip install symad\[special\]"):
            routine_address("lapack.dpotrf")
    finally:
        pointers.cache_clear()
        routine_address.cache_clear()


def test_loops_of_a_product_in_a_nest_begin_anew_in_each_round():
    """Loops add to a product, and a nest may store the products of all its rounds at one place."""
    whole, product = Affine(0, 1, 4, (4,)), MatrixOperation("product", (1, 2, 2, 2))
    stored = Result(0, 1, Affine(0, 1, 4), "store")
    rounds = Nest(
        3,
        (
            matrix_region(product, [Gather(0, whole), Gather(0, whole)], [stored]),
            copy(Gather(1, Affine(0, 1, 4)), 2, Affine(0, 1, 4), "add"),
        ),
    )
    buffers = Buffer("input", 12), Buffer("workspace", 4), Buffer("output", 4)
    program = RolledProgram((Input("x", (3, 2, 2)),), (Output((2, 2), ()),), buffers, (rounds,))
    x = np.arange(12.0).reshape(3, 2, 2)
    for made in (program, without_library(program), without_matrices(program)):
        (found,) = evaluate_rolled(made, [x])
        np.testing.assert_array_equal(np.reshape(found, (2, 2)), sum(part @ part for part in x))
