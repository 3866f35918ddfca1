"""Edge pushing: right against four nested modes and SymPy, exact sparsity, operation counts."""

import numpy as np
import pytest
import sympy as sp

import symad as sa
from symad.classroom.verification.verify import exact_values
from tests.support import mixes
from tests.support.cases import CASES, lennard_jones, rosenbrock


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
@pytest.mark.wide_rows("network", "lennard_jones")
def test_every_mode_gives_the_hessian_of_fifty_digit_sympy(case):
    """The oracle is sympy.diff on the unrolled expression, where that is small; 50-digit fwd-rev otherwise."""
    point = np.array(case.point)
    traced = sa.trace(case.function, point)
    if traced.count_ops() < 60:
        formula, symbols = traced.expr(), [traced.graph.atoms[node] for node in traced.inputs.flat]
        at = {symbol: sp.Float(value, 60) for symbol, value in zip(symbols, case.point, strict=True)}
        wanted = [float(sp.diff(formula, a, b).subs(at).doit().evalf(30)) for a in symbols for b in symbols]
    else:
        wanted = [float(v) for v in exact_values(sa.trace(sa.hessian(case.function, mode="fwd-rev"), point), (point,))]
    scale = max(map(abs, wanted)) + 1e-30
    for mode in mixes.HESSIAN_MODES:
        transformed = sa.hessian(case.function, mode=mode)
        for found in (transformed(point), sa.compile(transformed, point)(point)):
            assert np.max(np.abs(found.ravel() - wanted)) <= 1e-13 * scale, mode


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
@pytest.mark.thinned
def test_sparse_forms_agree_with_the_dense_one(case):
    point = np.array(case.point)
    dense = sa.hessian(case.function)(point)
    for triangle, part in (("lower", np.tril(dense)), ("upper", np.triu(dense)), ("full", dense)):
        assert np.array_equal(sa.hessian(case.function, sparse=triangle)(point).toarray(), part)
        kernel = sa.compile(sa.hessian(case.function, sparse=triangle), point)
        rows, columns = kernel.sparsity
        assert np.max(np.abs(kernel(point) - dense[rows, columns]), initial=0) <= 1e-13 * np.max(np.abs(dense))


def test_a_linear_function_has_no_second_derivatives_at_all():
    assert sa.hessian(lambda x: 3 * x[0] - x[1], sparse="lower")(np.ones(2)).nnz == 0


def test_the_pattern_of_rosenbrock_is_a_band_and_of_lennard_jones_full():
    band = sa.hessian(rosenbrock, sparse="full")(np.ones(100))
    assert band.nnz == 298
    assert np.abs(band.rows - band.columns).max() == 1
    cluster = sa.hessian(lennard_jones, sparse="lower")(np.arange(12.0) ** 1.5)
    assert cluster.nnz == 12 * 13 // 2


def test_edge_pushing_nests_inside_other_levels():
    def trace_of_hessian(x):
        return np.trace(sa.hessian(rosenbrock)(x))

    point = np.array([0.3, -0.7, 1.1])
    wanted = [2400 * point[0], 2400 * point[1] - 400, -400]
    assert sa.grad(trace_of_hessian)(point) == pytest.approx(wanted, rel=1e-13)
    assert sa.jacfwd(trace_of_hessian)(point) == pytest.approx(wanted, rel=1e-13)
