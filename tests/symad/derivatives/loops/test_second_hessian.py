"""Hessians of rolled programs against those of the same programs in straight lines."""

import numpy as np
import pytest

import symad as sa
from codegen import compile_program
from codegen.evaluation.evaluate_rolled import evaluate_rolled
from codegen.ir.region import Nest
from codegen.ir.tables import Affine
from symad.derivatives.loops.loop_hessian import hessian
from symad.derivatives.loops.loop_jacobian import jacobian
from symad.derivatives.loops.matrix_layout import MOST_SUMS
from tests.support.second_cases import (
    MAPS,
    SCALARS,
    Rolled,
    flat_hessian,
    lennard_jones,
    logistic,
    numbers_of,
    points_of,
    powers,
    reaction_diffusion,
    rosenbrock,
)


def places_of(pattern):
    return list(zip(pattern.rows.tolist(), pattern.columns.tolist(), strict=True))


def triangle_of(lower, triangle):
    upper = {(column, row): value for (row, column), value in lower.items()}
    return {"lower": lower, "upper": upper, "full": lower | upper}[triangle]


@pytest.mark.parametrize("name", SCALARS)
@pytest.mark.thinned
def test_triangles_and_formats(name):
    rolled = SCALARS[name]()
    points = points_of(rolled)
    lower = flat_hessian(rolled, 0, points)
    for triangle in ("lower", "upper", "full"):
        right = triangle_of(lower, triangle)
        for format in ("regions", "coo", "csr", "csc"):
            found = hessian(rolled, 0, triangle, format)
            pattern = found.outputs[0].pattern
            assert (pattern.format, set(places_of(pattern))) == (format, set(right))
            (data,) = numbers_of(found, points)
            wanted = [right[place] for place in places_of(pattern)]
            np.testing.assert_allclose(data, wanted, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("name", SCALARS)
def test_dense(name):
    rolled = SCALARS[name]()
    points = points_of(rolled)
    found = hessian(rolled, 0, None)
    shape = rolled.inputs[0].shape
    assert found.outputs[0].shape == shape + shape
    matrix = np.zeros((rolled.inputs[0].size,) * 2)
    for (row, column), value in flat_hessian(rolled, 0, points).items():
        matrix[row, column] = matrix[column, row] = value
    (data,) = numbers_of(found, points)
    np.testing.assert_allclose(data, matrix.reshape(shape + shape), rtol=1e-11, atol=1e-12)


def test_a_wide_body_is_cut_into_loops_of_few_sums():
    found = hessian(logistic(20, 20), 0, "lower", "regions")
    assert len(found.steps) > 1
    assert max(sum(use.kind == "add" for use in region.results) for region in found.steps) <= MOST_SUMS


def test_a_wide_body_whose_sums_share_no_factors_stays_one_loop():
    """Cut into loops, the Hessian of a sum of Gaussians in 20 variables took 8 times as long."""
    rows = np.random.default_rng(0).normal(size=(300, 20))
    f = sa.hessian(lambda w: sa.sum_over(lambda row: np.exp(-np.sum((row - w) ** 2)), rows))
    program = sa.compile(f, np.full(20, 0.01), roll="always", cache=False).program
    assert max(sum(use.kind == "add" for use in step.results) for step in program.steps) >= 210


def test_exponents_that_are_data():
    found = hessian(powers(8), 0, "lower", "coo")
    assert found.outputs[0].pattern.rows.tolist() == [1, 2, 3, 5, 6, 7]  # x**1 has no second derivative
    np.testing.assert_allclose(numbers_of(found, [np.zeros(8)])[0], [2.0, 0.0, 0.0] * 2)


def test_many_repetitions_of_a_wide_body_run_in_chunks():
    rolled = logistic(5000, 20)
    points = points_of(rolled)
    found = hessian(rolled, 0, None)
    assert isinstance(found.steps[0], Nest)
    data, weights = [buffer.values for buffer in rolled.buffers if buffer.kind == "constant"], points[0]
    columns, labels = np.stack(data[:20], axis=1), data[20]
    p = 1 / (1 + np.exp(-labels * (columns @ weights)))
    right = (columns * (p * (1 - p))[:, None]).T @ columns
    np.testing.assert_allclose(evaluate_rolled(found, points)[0], right, rtol=1e-9)
    np.testing.assert_allclose(compile_program(found)(*points), right, rtol=1e-9)


def test_few_repetitions_with_a_waist_have_a_loop_over_the_matrix():
    found = hessian(logistic(9, 14), 0, None)
    assert found.steps[-1].count == 14 * 14
    assert max(len(region.results) for region in found.steps) <= 16


def test_internal_variables_are_found():
    (region,) = hessian(lennard_jones(5), 0, "lower", "regions").steps
    assert len(region.results) == 21
    assert sum(map(bool, region.body.operands)) < 80  # 130 with six variables apart


def test_the_build_does_not_depend_on_the_number_of_repetitions():
    few, many = (hessian(rosenbrock(n), 0, "lower", "regions") for n in (10, 100_000))
    assert [len(region.body) for region in few.steps] == [len(region.body) for region in many.steps]
    assert all(type(use.table) is Affine for region in many.steps for use in (*region.gathers, *region.results))


def test_what_has_no_hessian_in_loops():
    assert hessian(reaction_diffusion(12), 0, "lower") is None
    assert hessian(MAPS["normalised"](), 0, None) is None


@pytest.mark.parametrize(("triangle", "format"), [("lower", "coo"), ("full", "csr"), ("upper", "regions")])
def test_a_linear_function_has_an_empty_hessian(triangle, format):
    made = Rolled((5,))
    made.region(lambda a: (2 * a,), [(0, np.arange(5))], [("add", ~0, 0)])
    found = hessian(made.program(()), 0, triangle, format)
    assert found.outputs[0].pattern.nnz == 0
    assert found.steps == ()
    assert numbers_of(found, [np.ones(5)])[0].shape == (0,)


@pytest.mark.parametrize("name", SCALARS)
@pytest.mark.thinned
def test_kernels(name):
    rolled = SCALARS[name]()
    points = points_of(rolled)
    for triangle, format in (("lower", "regions"), ("full", "csc"), (None, "coo")):
        found = hessian(rolled, 0, triangle, format)
        (right,) = evaluate_rolled(found, points)
        np.testing.assert_allclose(compile_program(found)(*points), right, rtol=1e-11, atol=1e-12)


def test_a_packed_hessian_has_loops_where_a_dense_one_is_taken_by_columns():
    """Three layers of 34: more inner values than a dense matrix would be made of."""
    weights = np.cos(np.arange(3 * 34.0**2)).reshape(3, 34, 34) / 6

    def network(x):
        for layer in weights:
            x = np.tanh(layer @ x)
        return np.sum(x * x)

    x = np.sin(np.arange(34.0))
    dense, lower = (sa.compile(sa.hessian(network, sparse=sparse), x) for sparse in (False, "lower"))
    assert (dense.stats.strategy, lower.stats.strategy) == ("rolled", "rolled")
    np.testing.assert_allclose(lower.scipy(x).toarray(), np.tril(dense(x)), rtol=1e-11, atol=1e-13)


def test_an_inner_value_that_meets_the_first_input_is_not_taken_for_one_that_meets_the_first_inner_value():
    """Both had the same key, and R had the rows of one of them twice: a Hessian that was wrong in silence."""

    def f(x):
        sines, weighted = 0.0, 0.0
        for i in range(12):
            for j in range(i):
                sines = sines + np.sin(x[j])
                weighted = weighted + (x[i] + x[i])
        return ((np.sum(x * x) + weighted) * x[0]) * sines

    x = np.random.default_rng(0).normal(size=12)
    right = sa.compile(sa.hessian(f), x, roll="never")(x)
    for sparse in (False, "lower"):
        kernel = sa.compile(sa.hessian(f, sparse=sparse), x, roll="always")
        matrix = kernel.scipy(x).toarray() if sparse else kernel(x)
        np.testing.assert_allclose(matrix, np.tril(right) if sparse else right, rtol=1e-12, atol=1e-10)


def test_a_constant_0_times_what_may_be_infinite_is_an_entry():
    """As in straight lines; the other factor comes from another region."""
    k = np.arange(4)
    made = Rolled((4,))
    inner = made.workspace(1)
    made.region(lambda a: (a / (a * a + 2),), [(0, k)], [("add", inner, 0)])
    made.region(lambda a, u: (a * a + u * 0.0,), [(0, [0, 0]), (inner, [0, 0])], [("add", ~0, 0)])
    rolled = made.program(())
    points = points_of(rolled)
    places = set(flat_hessian(rolled, 0, points))
    assert len(places) == 4
    assert set(places_of(hessian(rolled, 0, "lower", "regions").outputs[0].pattern)) >= places
    first = jacobian(rolled, 0, True, "regions")
    assert set(places_of(first.outputs[0].pattern)) == {(0, column) for column in range(4)}


def test_what_constants_cancel_is_an_entry_in_loops_and_in_straight_lines_alike():
    k = np.arange(4)
    for slope, number in ((lambda a: a * a, 0), (lambda a: 1 / a, 1)):
        made = Rolled((4,))
        inner = made.workspace(1)
        made.region(lambda a, slope=slope: (slope(a),), [(0, k)], [("add", inner, 0)])
        made.region(lambda a, u: (a * a + (u - u),), [(0, [3, 3]), (inner, [0, 0])], [("add", ~0, 0)])
        rolled = made.program(())
        places = set(places_of(hessian(rolled, 0, "lower", "regions").outputs[0].pattern))
        assert (
            places == set(flat_hessian(rolled, 0, points_of(rolled))) == {(n, n) for n in (range(4) if number else [3])}
        )
