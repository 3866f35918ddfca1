"""Derivative tensors, Taylor polynomials, Laplacians: against nested modes and SymPy, exact patterns, counts."""

from __future__ import annotations

import math
from itertools import combinations_with_replacement, pairwise

import numpy as np
import pytest
import sympy as sp

import symad as sa
from symad.errors import ArgumentError, LimitError
from tests.support import mixes
from tests.support.cases import CASES, lennard_jones, rosenbrock
from tests.support.draws import seeded
from tests.support.fuzz_programs import SIZE, program_text
from tests.support.nested_fuzz import load
from tests.symad.derivatives.test_known_answers import rosenbrock2


def exp_xy(x):
    return np.exp(x[0] * x[1])


def nested_tensor(f, order):
    for _ in range(order):
        f = sa.jacfwd(f)
    return f


@pytest.mark.parametrize("case", [case for case in CASES if len(case.point) <= 4], ids=lambda case: case.name)
@pytest.mark.thinned
def test_dense_and_sparse_tensors_against_nested_forward_mode(case):
    point = np.array(case.point)
    for order in (1, 2, 3, 4) if len(point) < 3 else (1, 2, 3):
        wanted = nested_tensor(case.function, order)(point)
        tolerance = 1e-12 * np.max(np.abs(wanted), initial=1.0)
        for sparse, mode in ((False, "auto"), (True, "fwd"), (True, "rev"), (True, "cross-country")):
            transformed = sa.partials(case.function, order, sparse=sparse, mode=mode)
            for found in (transformed(point), sa.compile(transformed, point)(point)):
                full = found.toarray() if sparse else found
                assert np.max(np.abs(full - wanted)) <= tolerance, (order, mode)


@pytest.mark.parametrize("seed", [2, 3, 5, 8, 13, 21, 34, 55, 89, 144])
@pytest.mark.thinned
def test_random_programs_with_derivatives_inside(seed):
    """Third derivatives by five routes: nested passes, tensor, Taylor coefficients, interpolation, compiled."""
    draw = seeded(seed)
    f = load(program_text(draw), f"higher order {seed}", "symad")
    x, v = (np.array([draw.real(low, 1.7) for _ in range(SIZE)]) for low in (0.3, -1.7))
    nested = nested_tensor(f, 3)(x)
    tolerance = 1e-9 * np.max(np.abs(nested), initial=1.0)
    along = np.einsum("ijk,i,j,k", nested, v, v, v)
    for tensor in (sa.partials(f, 3), sa.compile(sa.partials(f, 3), x)):
        assert np.max(np.abs(tensor(x) - nested)) <= tolerance
    assert abs(6 * sa.taylor(f, (x,), (v,), 3)[3] - along) <= tolerance
    assert abs(sa.partials(f, 2, along=v)(x) - v @ sa.hessian(f)(x) @ v) <= tolerance
    assert abs(sa.laplacian(f, mode="collapsed")(x) - np.trace(sa.hessian(f)(x))) <= tolerance
    found = sa.partials(f, 3, mode="interpolation")(x)
    assert np.max(np.abs(found.interpolated - found.exact)) <= tolerance


@pytest.mark.parametrize("order", [3, 4])
def test_a_tensor_against_sympy_at_50_digits(order):
    x, y = symbols = sp.symbols("x y", real=True)
    formula = sp.sin(x * y) * sp.exp(x) / (1 + y**2)
    point = (0.7, 1.3)
    at = dict(zip(symbols, (sp.Float(v, 50) for v in point), strict=True))
    tensor = sa.partials(lambda p: np.sin(p[0] * p[1]) * np.exp(p[0]) / (1 + p[1] ** 2), order)
    found, compiled = tensor(np.array(point)), sa.compile(tensor, np.array(point))(np.array(point))
    for place in combinations_with_replacement(range(2), order):
        wanted = float(formula.diff(*(symbols[k] for k in place)).subs(at).evalf(50))
        assert found[place] == pytest.approx(wanted, rel=1e-12)
        assert compiled[place[::-1]] == pytest.approx(wanted, rel=1e-12)


def test_rosenbrock_in_two_variables():
    point = np.array([-1.2, 1.0])
    third, fourth = (sa.partials(rosenbrock2, order)(point) for order in (3, 4))
    assert third[0, 0, 0] == pytest.approx(-2880, rel=1e-14)
    assert third[0, 0, 1] == third[0, 1, 0] == third[1, 0, 0] == pytest.approx(-400, rel=1e-14)
    assert fourth[0, 0, 0, 0] == pytest.approx(2400, rel=1e-14)
    assert np.count_nonzero(third) == 4
    assert np.count_nonzero(fourth) == 1


def test_the_patterns_of_chained_rosenbrock_are_exact():
    """f_iii = 2400 x_i, f_(i, i, i+1) = -400, f_iiii = 2400, and nothing else."""
    size = 60
    x = np.linspace(-1.3, 1.1, size)
    third = sa.partials(rosenbrock, 3, sparse=True)(x)
    wanted = {(i, i, i): 2400 * x[i] for i in range(size - 1)} | {(i, i, i + 1): -400.0 for i in range(size - 1)}
    assert sorted(wanted) == list(map(tuple, third.indices.T.tolist()))
    assert third.data == pytest.approx([wanted[place] for place in sorted(wanted)], rel=1e-13)
    fourth = sa.partials(rosenbrock, 4, sparse=True)(x)
    assert fourth.indices.tolist() == [list(range(size - 1))] * 4
    assert fourth.data == pytest.approx([2400.0] * (size - 1), rel=1e-14)
    assert sa.partials(rosenbrock, 5, sparse=True)(x).nnz == 0


@pytest.mark.parametrize("size", [2_000, pytest.param(10_000, marks=pytest.mark.wide)])
def test_thousands_of_variables_without_anything_dense(size):
    x = np.linspace(-1.0, 1.0, size)
    found = sa.partials(rosenbrock, 3, sparse=True)(x)
    assert found.shape == (size,) * 3
    assert found.nnz == 2 * (size - 1)
    on_diagonal = found.indices[0] == found.indices[2]
    assert found.data[on_diagonal] == pytest.approx(2400 * x[:-1], rel=1e-12)
    assert np.all(found.data[~on_diagonal] == -400)


def test_nodes_grow_in_proportion_to_the_variables():
    def operations(size):
        return sa.trace(sa.partials(rosenbrock, 3, sparse=True), np.ones(size)).count_ops() / size

    assert operations(200) == pytest.approx(operations(50), rel=0.05)


def test_tensors_of_vectors_scalars_and_parts():
    point = np.array([0.7, 1.3])
    found = sa.partials(lambda x: {"y": np.stack([x[0] ** 2 * x[1], x[1] ** 3])}, 2)(point)["y"]
    assert found == pytest.approx(np.array([[[2.6, 1.4], [1.4, 0]], [[0, 0], [0, 7.8]]]))
    assert sa.partials(np.exp, 3)(0.5) == pytest.approx(math.exp(0.5))
    matrix = np.arange(4.0).reshape(2, 2)
    assert sa.partials(lambda m: (m**3).sum(), 3)(matrix).shape == (2, 2) * 3
    part = sa.partials(lambda p: (p["a"] * p["b"]) ** 2, 2, wrt='p["a"]')({"a": 3.0, "b": 2.0})
    assert part == 8.0


def test_a_tensor_nests():
    def trace_of_third(x):
        return np.einsum("iii->", sa.partials(rosenbrock, 3)(x))

    assert sa.grad(trace_of_third)(np.array([0.3, -0.7, 1.1])) == pytest.approx([2400, 2400, 0], rel=1e-13)
    x = sp.Symbol("x")
    assert sa.partials(lambda u: u**4, 3)(x) == 24 * x
    sparse = sa.trace(sa.partials(rosenbrock, 3, sparse=True), np.ones(3)).expr()
    assert sparse.data[0] == 2400.0 * sp.Symbol("x_0", real=True)


def test_speelpenning_with_zeros_and_its_mixed_derivative_of_order_20():
    point = np.array([0.0, 2.0, 0.0, 3.0, 4.0])
    wanted = np.zeros((5, 5))
    wanted[0, 2] = wanted[2, 0] = 24
    assert np.array_equal(sa.partials(np.prod, 2)(point), wanted)
    everything = sa.partials(np.prod, range(20))
    assert everything(np.linspace(0.0, 2.0, 20)) == 1.0
    assert sa.partials(np.prod, range(19))(np.linspace(0.0, 2.0, 20)) == 2.0
    assert sa.trace(everything, np.ones(20)).count_ops() == 0
    assert sa.partials(np.prod, (0, 0))(np.ones(3)) == 0.0


def test_a_mixed_derivative_is_an_entry_of_the_tensor():
    point = np.array([0.7, 1.3])
    tensor = sa.partials(exp_xy, 4)(point)
    for indices in ((0, 1, 0, 1), (1, 1, 0, 1), (-1, 0, 0, 0)):
        found = sa.partials(exp_xy, indices)
        assert found(point) == pytest.approx(tensor[indices], rel=1e-13)
        assert sa.compile(found, point)(point) == pytest.approx(tensor[indices], rel=1e-13)


@pytest.mark.parametrize("mode", ["auto", "collapsed", "hessian"])
def test_laplacian(mode):
    point = np.array([0.7, 1.3])
    wanted = (0.7**2 + 1.3**2) * math.exp(0.7 * 1.3)
    for found in (sa.laplacian(exp_xy, mode=mode), sa.compile(sa.laplacian(exp_xy, mode=mode), point)):
        assert found(point) == pytest.approx(wanted, rel=1e-14)


@pytest.mark.parametrize("mode", ["auto", "nested", "taylor"])
def test_biharmonic(mode):
    assert sa.laplacian(exp_xy, power=2, mode=mode)(np.ones(2)) == pytest.approx(16 * math.e, rel=1e-13)
    kernel = sa.compile(sa.laplacian(exp_xy, power=2, mode=mode), np.ones(2))
    assert kernel(np.ones(2)) == pytest.approx(16 * math.e, rel=1e-13)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_laplacians_of_cases_are_traces_of_hessians(case):
    point = np.array(case.point)
    wanted = np.trace(sa.hessian(case.function, mode="fwd-rev")(point))
    scale = np.max(np.abs(sa.hessian(case.function)(point)), initial=1.0)
    for mode in ("auto", "collapsed", "hessian"):
        assert abs(sa.laplacian(case.function, mode=mode)(point) - wanted) <= 1e-13 * scale, mode


@pytest.mark.parametrize("case", [case for case in CASES if len(case.point) <= 4], ids=lambda case: case.name)
@pytest.mark.thinned
def test_biharmonics_of_cases(case):
    point = np.array(case.point)
    tensor = nested_tensor(case.function, 4)(point)
    wanted, scale = np.einsum("iijj->", tensor), np.max(np.abs(tensor), initial=1.0)
    for mode in ("nested", "taylor"):
        assert abs(sa.laplacian(case.function, power=2, mode=mode)(point) - wanted) <= 1e-12 * scale, mode


def test_the_loss_of_a_partial_differential_equation_is_differentiated_again():
    """Laplacian of a vector-valued network with respect to its input; its square's gradient in the weights."""

    def residual(w, x):
        return (sa.laplacian(lambda u: np.tanh(w @ u))(x) ** 2).sum()

    w, x = np.array([[0.3, -0.7], [0.5, 0.2]]), np.array([0.4, 0.9])
    t = np.tanh(w @ x)
    assert residual(w, x) == pytest.approx(((-2 * t * (1 - t**2) * (w**2).sum(axis=1)) ** 2).sum(), rel=1e-13)
    found, h = sa.grad(residual)(w, x), 1e-6
    for place in np.ndindex(2, 2):
        step = np.zeros((2, 2))
        step[place] = h
        central = (residual(w + step, x) - residual(w - step, x)) / (2 * h)
        assert found[place] == pytest.approx(central, rel=1e-7)


def test_laplacians_of_many_variables_need_no_gradient_of_the_sum():
    """Nodes in proportion to the variables; the Hessians of many results are not even looked at."""
    x = np.linspace(-1.0, 1.0, 3000)
    wanted = (1200 * x[:-1] ** 2 - 400 * x[1:] + 2).sum() + 200 * (len(x) - 1)
    for mode in ("collapsed", "hessian"):
        assert sa.laplacian(rosenbrock, mode=mode)(x) == pytest.approx(wanted, rel=1e-12)
    with sa.choices() as made:
        found = sa.laplacian(lambda y: y**3)(x)
    assert found == pytest.approx(6 * x, rel=1e-14)
    assert list(made[0].operations) == ["collapsed"]


@pytest.mark.parametrize("word", ["F", "R"])
def test_laplacians_nest(word):
    def f(s):
        return sa.laplacian(lambda x: np.exp(s * x[0]) * x[1])(np.array([0.5, 2.0]))

    wanted = 2.0 * math.exp(0.5 * 0.7) * (2 * 0.7 + 0.5 * 0.7**2)
    assert mixes.nested(word, f)(0.7) == pytest.approx(wanted, rel=1e-13)


def test_guards_stay_outside_the_collapsed_products():
    found = sa.laplacian(lambda x: np.where(x > 0, np.sqrt(x), x**2).sum(), mode="collapsed")
    assert found(np.array([-1.0, 0.0])) == 4.0


def test_auto_takes_the_cheapest_order_of_elimination_for_tensors():
    point = np.arange(9.0) ** 1.5
    with sa.choices() as made:
        sa.partials(lennard_jones, 3, sparse=True)(point)
    counts = {
        mode: sa.trace(sa.partials(lennard_jones, 3, sparse=True, mode=mode), point).count_ops()
        for mode in ("auto", "fwd", "rev", "cross-country")
    }
    assert made[-1].what == "derivative tensor of order 3"
    assert counts["auto"] == counts[made[-1].chosen] == min(counts.values())


def test_the_choice_and_its_alternatives_are_shown():
    with sa.choices() as made:
        sa.laplacian(exp_xy)(np.ones(2))
        sa.laplacian(exp_xy, power=2)(np.ones(2))
        sa.partials(exp_xy, 2, along=np.ones(2))(np.ones(2))
    assert [set(choice.operations) for choice in made] == [
        {"collapsed", "hessian"}, {"nested", "taylor"}, {"nested", "taylor"},
    ]  # fmt: skip
    for choice in made:
        assert choice.operations[choice.chosen] == min(choice.operations.values())
    with sa.choices() as made:
        sa.laplacian(exp_xy, mode="hessian")(np.ones(2))
    assert [choice.chosen for choice in made] == ["hessian"]


def test_second_degree_polynomials_by_both_ways():
    def f(x):
        return np.stack([np.exp(x[0]) * x[1], np.sin(x[0] * x[1])])

    center = np.array([0.3, 0.8])
    gradient, hessian = sa.jacfwd(f)(center), sa.jacfwd(sa.jacfwd(f))(center)
    h = np.array([0.1, -0.2])
    for mode in ("forward", "reverse", "auto"):
        p = sa.taylor(f, (center,), None, 2, mode=mode)
        assert p.parts[1] == pytest.approx(gradient, rel=1e-14)
        assert p.parts[2] == pytest.approx(hessian, rel=1e-13)
        assert p(center + h) == pytest.approx(f(center) + gradient @ h + 0.5 * (hessian @ h) @ h, rel=1e-13)


@pytest.mark.parametrize("case", [case for case in CASES if len(case.point) <= 4], ids=lambda case: case.name)
def test_second_degree_polynomials_of_cases(case):
    point = np.array(case.point)
    hessian = sa.hessian(case.function)(point)
    for mode in ("forward", "reverse"):
        p = sa.taylor(case.function, (point,), None, 2, mode=mode)
        assert p.parts[1] == pytest.approx(sa.grad(case.function)(point), rel=1e-13, abs=1e-13)
        assert np.max(np.abs(p.parts[2] - hessian)) <= 1e-13 * np.max(np.abs(hessian), initial=1.0)


def test_a_polynomial_converges_to_its_function_and_compiles():
    center, x = np.array([0.3, 0.8]), np.array([0.4, 0.7])
    errors = [abs(sa.taylor(exp_xy, (center,), None, k)(x) - exp_xy(x)) for k in range(7)]
    assert all(after < before / 3 for before, after in pairwise(errors))
    kernel = sa.compile(lambda c, y: sa.taylor(exp_xy, (c,), None, 3)(y), center, x)
    assert kernel(center, x) == pytest.approx(sa.taylor(exp_xy, (center,), None, 3)(x), rel=1e-14)
    assert sa.taylor(np.exp, (0.0,), None, 4)(0.5) == pytest.approx(sum(0.5**k / math.factorial(k) for k in range(5)))


def test_what_is_refused():
    with pytest.raises(ArgumentError, match="order=0"):
        sa.partials(exp_xy, 0)
    with pytest.raises(ArgumentError, match="2 arrays"):
        sa.partials(lambda p: p["a"] * p["b"], 2)({"a": 1.0, "b": 2.0})
    with pytest.raises(LimitError, match="sparse=True"):
        sa.partials(rosenbrock, 3)(np.ones(300))
    with pytest.raises(ArgumentError, match="instead of one scalar"):
        sa.partials(lambda x: x * x, 2, sparse=True)(np.ones(2))
    with pytest.raises(ArgumentError, match="index 2"):
        sa.partials(exp_xy, (0, 2))(np.ones(2))
    for wrong in ({"along": np.ones(2), "sparse": True}, {"mode": "taylor"}, {"mode": "interpolation", "sparse": True}):
        with pytest.raises(ArgumentError, match=r"sparse=True: |mode='taylor'"):
            sa.partials(exp_xy, 2, **wrong)
    with pytest.raises(ArgumentError, match="both choose directions"):
        sa.partials(exp_xy, (0, 1), along=np.ones(2))
    with pytest.raises(ArgumentError, match="mode='nested'"):
        sa.laplacian(exp_xy, mode="nested")
    with pytest.raises(ArgumentError, match="power=3"):
        sa.laplacian(exp_xy, power=3)
    with pytest.raises(ArgumentError, match="mode='dense'"):
        sa.laplacian(exp_xy, mode="dense")
    with pytest.raises(ArgumentError, match="degree 2"):
        sa.taylor(exp_xy, (np.ones(2),), None, 3, mode="forward")
