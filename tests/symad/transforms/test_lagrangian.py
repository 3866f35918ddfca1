"""value_gradient_hessian: Lagrangians by hand and by other modes, exact patterns, shared operations, a solver run."""

import inspect
import re

import numpy as np
import pytest
import sympy as sp
from scipy.optimize import NonlinearConstraint, minimize

import symad as sa
from tests.support.cases import lennard_jones, rosenbrock

FORMATS = ("coo", "csr", "csc")
TRIANGLES = {"lower": np.tril, "upper": np.triu, "full": np.array, True: np.array}
RANDOM = np.random.default_rng(4)


def hs71(x):
    return x[0] * x[3] * (x[0] + x[1] + x[2]) + x[2]


def hs71_constraints(x):
    return np.stack([x[0] * x[1] * x[2] * x[3], x @ x])


def hs71_by_hand(x, multipliers, sigma):
    """Hock and Schittkowski (1981), problem 71, differentiated by hand."""
    a, b, c, d = x
    objective = [[2 * d, d, d, 2 * a + b + c], [d, 0, 0, a], [d, 0, 0, a], [2 * a + b + c, a, a, 0]]
    product = [[0, c * d, b * d, b * c], [c * d, 0, a * d, a * c], [b * d, a * d, 0, a * b], [b * c, a * c, a * b, 0]]
    return sigma * np.array(objective) + multipliers[0] * np.array(product) + multipliers[1] * 2 * np.eye(4)


def hs39(x):
    return -x[0]


def hs39_constraints(x):
    return np.stack([x[1] - x[0] ** 3 - x[2] ** 2, x[0] ** 2 - x[1] - x[3] ** 2])


def hs39_by_hand(x, multipliers, sigma):
    """Problem 39: a linear objective, so sigma is nowhere, and x[1] has a row and a column of zeros."""
    first, second = multipliers
    return np.diag([-6 * x[0] * first + 2 * second, 0.0, -2 * first, -2 * second])


def chain(x):
    """Constraints that share the products and powers of `rosenbrock`."""
    return x[:-2] ** 2 * x[1:-1] + np.exp(x[1:-1] * x[2:])


def bonds(x):
    p = x.reshape(-1, 3)
    return np.sqrt(((p[1:] - p[:-1]) ** 2).sum(axis=1))


PROBLEMS = {
    "hs71": (hs71, hs71_constraints, np.array([1.0, 5.0, 5.0, 1.0])),
    "hs39": (hs39, hs39_constraints, np.array([2.0, 2.0, 2.0, 2.0])),
    "rosenbrock": (rosenbrock, chain, np.linspace(-1.2, 1.2, 8)),
    "lennard_jones": (lennard_jones, bonds, np.arange(12.0) ** 1.3),
}


def lagrangian(f, constraints):
    return lambda x, multipliers, sigma: sigma * f(x) + multipliers @ constraints(x)


def example(name):
    f, constraints, x = PROBLEMS[name]
    return f, constraints, x, RANDOM.normal(size=constraints(x).size), 0.7


@pytest.mark.parametrize(("name", "by_hand"), [("hs71", hs71_by_hand), ("hs39", hs39_by_hand)])
def test_hessians_by_hand(name, by_hand):
    f, constraints, x, multipliers, sigma = example(name)
    kernel = sa.compile(sa.value_gradient_hessian(f, constraints), x, multipliers, sigma)
    for point in (x, RANDOM.normal(size=4)):
        right = by_hand(point, multipliers, sigma)
        for found in (kernel.scipy, sa.value_gradient_hessian(f, constraints)):
            assert found(point, multipliers, sigma)[-1].toarray() == pytest.approx(right, rel=1e-14, abs=1e-13)
    a, b, c, d, p, q, s = sp.symbols("a b c d p q s", real=True)
    exact = by_hand(np.array([a, b, c, d]), (p, q), s)
    pattern = [[not sp.simplify(entry).is_zero for entry in row] for row in exact]
    assert kernel.sparsity[-1].toarray().tolist() == pattern


@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.thinned
def test_everything_against_other_modes_in_every_format_and_triangle(name):
    f, constraints, x, multipliers, sigma = example(name)
    right = (
        f(x),
        sa.jacfwd(f)(x),
        constraints(x),
        sa.jacobian(constraints, mode="rev")(x),
        sa.hessian(lagrangian(f, constraints), mode="fwd-rev")(x, multipliers, sigma),
    )
    for format in FORMATS:
        for triangle, part in TRIANGLES.items():
            transform = sa.value_gradient_hessian(f, constraints, sparse=triangle, format=format)
            kernel = sa.compile(transform, x, multipliers, sigma)
            direct = transform(x, multipliers, sigma)
            for found in (kernel.scipy(x, multipliers, sigma), (*direct[:3], *(m.to_scipy() for m in direct[3:]))):
                for value, wanted in zip(found[:3], right, strict=False):
                    assert value == pytest.approx(wanted, rel=1e-12, abs=1e-12)
                assert [matrix.format for matrix in found[3:]] == [format, format]
                assert found[3].toarray() == pytest.approx(right[3], rel=1e-11, abs=1e-11)
                assert found[4].toarray() == pytest.approx(part(right[4]), rel=1e-10, abs=1e-10)
            assert kernel.sparsity[:3] == (None, None, None)
            assert kernel.sparsity[3:] == (direct[3].pattern, direct[4].pattern)


@pytest.mark.parametrize("name", PROBLEMS)
def test_without_constraints(name):
    f, _, x, _, _ = example(name)
    kernel = sa.compile(sa.value_gradient_hessian(f, sparse="lower", format="csc"), x)
    value, gradient, matrix = kernel.scipy(x)
    assert (value, gradient.tolist()) == (pytest.approx(f(x)), pytest.approx(sa.jacfwd(f)(x).tolist(), rel=1e-12))
    assert matrix.toarray() == pytest.approx(np.tril(sa.hessian(f, mode="fwd-rev")(x)), rel=1e-11, abs=1e-11)
    dense = sa.value_gradient_hessian(f, sparse=False)(x)
    assert dense[2] == pytest.approx(sa.hessian(f, mode="fwd-rev")(x), rel=1e-11, abs=1e-11)


@pytest.mark.parametrize("name", PROBLEMS)
def test_one_kernel_needs_fewer_operations_than_five(name):
    f, constraints, x, multipliers, sigma = example(name)
    arguments = (x, multipliers, sigma)
    whole = sa.compile(sa.value_gradient_hessian(f, constraints, sparse="lower"), *arguments)
    parts = [
        sa.compile(f, x),
        sa.compile(sa.grad(f), x),
        sa.compile(constraints, x),
        sa.compile(sa.jacobian(constraints, sparse=True), x),
        sa.compile(sa.hessian(lagrangian(f, constraints), sparse="lower"), *arguments),
    ]
    together, apart = whole.stats.total, sum(part.stats.total for part in parts)
    assert together < {"hs71": 0.9, "hs39": 1, "rosenbrock": 0.8, "lennard_jones": 0.75}[name] * apart


def test_the_pattern_is_that_of_all_multipliers():
    """Plain numbers too: a multiplier that happens to be 0, or 1, takes no entry away."""
    f, constraints, x, multipliers, sigma = example("rosenbrock")
    transform = sa.value_gradient_hessian(f, constraints)
    whole = sa.compile(transform, x, multipliers, sigma).sparsity[-1]
    for numbers, factor in ((0 * multipliers, 0.0), (0 * multipliers, 1.0), (multipliers, 0.0), (multipliers**0, 1)):
        found = transform(x, numbers, factor)[-1]
        assert found.pattern == whole
        right = sa.hessian(lagrangian(f, constraints), mode="rev-fwd")(x, numbers, factor)
        assert found.toarray() == pytest.approx(right, rel=1e-11, abs=1e-11)
    assert transform(x, 0 * multipliers, 1.0)[-1].toarray() == pytest.approx(sa.hessian(f)(x), rel=1e-12, abs=1e-12)


def test_written_into_the_arrays_and_matrices_of_a_solver():
    f, constraints, x, multipliers, sigma = example("hs71")
    kernel = sa.compile(sa.value_gradient_hessian(f, constraints, sparse="lower", format="csc"), x, multipliers, sigma)
    right = kernel.scipy(x, multipliers, sigma)
    out = (np.zeros(()), np.zeros(4), np.zeros(2), *(matrix.copy() for matrix in right[3:]))
    for array in (*out[:3], out[3].data, out[4].data):
        array[...] = np.nan
    assert kernel.into(out, x, multipliers, sigma) is out
    for one, other in zip(out, right, strict=True):
        assert np.array_equal(one, other) if np.ndim(one) < 2 else np.array_equal(one.toarray(), other.toarray())


def in_parts(x):
    return {"equal": x["a"] * x["b"], "less": [x["b"] ** 3, x["a"].sum() * x["b"][0]]}


def energy(x, weight):
    return weight * np.sum(np.sin(x["a"]) * x["b"]) + x["b"][1] ** 2


def test_containers_parts_and_more_arguments():
    x, weight = {"a": np.array([0.3, 0.5]), "b": np.array([1.1, -0.4])}, 3.0
    multipliers = {"equal": np.array([1.0, 2.0]), "less": [np.array([3.0, 4.0]), 5.0]}
    transform = sa.value_gradient_hessian(energy, lambda x, weight: in_parts(x))
    value, gradient, limits, slopes, curvature = transform(x, weight, multipliers, 2.0)

    def flat(v):
        return {"a": v[:2], "b": v[2:]}

    def stacked(v):
        parts = in_parts(flat(v))
        return np.concatenate([parts["equal"], parts["less"][0], parts["less"][1].reshape(1)])

    v, weights = np.array([0.3, 0.5, 1.1, -0.4]), np.arange(1.0, 6.0)
    assert value == pytest.approx(energy(x, weight))
    assert np.concatenate([gradient["a"], gradient["b"]]) == pytest.approx(
        sa.jacfwd(lambda v: energy(flat(v), weight))(v), rel=1e-14
    )
    assert limits["less"][1] == in_parts(x)["less"][1]
    assert slopes.toarray() == pytest.approx(sa.jacfwd(stacked)(v), rel=1e-14)
    whole = sa.hessian(lambda v: 2 * energy(flat(v), weight) + weights @ stacked(v), mode="rev-rev")(v)
    assert curvature.toarray() == pytest.approx(whole, rel=1e-13)
    part = sa.value_gradient_hessian(energy, lambda x, weight: in_parts(x), wrt='x["b"]')
    _, gradient, _, slopes, curvature = part(x, weight, multipliers, 2.0)
    assert gradient.shape == (2,)
    assert slopes.toarray() == pytest.approx(sa.jacfwd(stacked)(v)[:, 2:], rel=1e-14)
    assert curvature.toarray() == pytest.approx(whole[2:, 2:], rel=1e-13)
    kernel = sa.compile(transform, x, weight, multipliers, 2.0)
    assert kernel.scipy(x, weight, multipliers, 2.0)[4].toarray() == pytest.approx(whole, rel=1e-13)


def test_dense_blocks_have_the_shapes_of_jacobian_and_hessian():
    f, constraints, x, multipliers, sigma = example("hs71")
    found = sa.value_gradient_hessian(f, constraints, sparse=False)(x, multipliers, sigma)
    assert found[3] == pytest.approx(sa.jacobian(constraints)(x), rel=1e-14)
    assert found[4] == pytest.approx(hs71_by_hand(x, multipliers, sigma), rel=1e-14)
    two = lambda x, y: x[0] * y * x[1]  # noqa: E731
    blocks = sa.value_gradient_hessian(two, lambda x, y: x * y, (0, 1), sparse=False)(
        np.ones(2), 3.0, np.array([5.0, 7.0]), 1.0
    )
    assert [[np.shape(block) for block in row] for row in blocks[4]] == [[(2, 2), (2,)], [(2,), ()]]
    assert blocks[4][0][0].tolist() == [[0.0, 3.0], [3.0, 0.0]]
    assert blocks[4][0][1].tolist() == [6.0, 8.0]  # 1 + multiplier


def test_one_constraint_that_is_a_number():
    transform = sa.value_gradient_hessian(lambda x: x[0], lambda x: x[0] * x[1] * x[1])
    value, _, limit, slopes, curvature = sa.compile(transform, np.ones(2), 1.0, 1.0).scipy(
        np.array([2.0, 3.0]), 5.0, 1.0
    )
    assert (value, limit) == (2.0, 18.0)
    assert slopes.toarray().tolist() == [[9.0, 12.0]]
    assert curvature.toarray().tolist() == [[0.0, 30.0], [30.0, 20.0]]


def test_sympy_in_sympy_out():
    x, multipliers, sigma = np.array(sp.symbols("a b c d")), np.array(sp.symbols("p q")), sp.Symbol("s")
    value, gradient, limits, slopes, curvature = sa.value_gradient_hessian(hs71, hs71_constraints)(
        x, multipliers, sigma
    )
    assert sp.simplify(value - hs71(x)) == 0
    assert [sp.expand(entry) for entry in gradient] == [sp.expand(sp.diff(hs71(x), symbol)) for symbol in x]
    assert sp.simplify(limits[1] - x @ x) == 0
    jacobian = sp.Matrix(hs71_constraints(x).tolist()).jacobian(x.tolist())
    assert sp.simplify(sp.Matrix(slopes.toarray()) - jacobian) == sp.zeros(2, 4)
    right = sp.Matrix(4, 4, hs71_by_hand(x, multipliers, sigma).ravel().tolist())
    assert sp.simplify(sp.Matrix(curvature.toarray()) - right) == sp.zeros(4, 4)


def test_inside_of_another_derivative():
    """The derivative of the Lagrangian's Hessian in the multipliers, in sigma and in x."""
    f, constraints, x, multipliers, sigma = example("hs71")
    transform = sa.value_gradient_hessian(f, constraints)
    curvature = lambda x, m, s: transform(x, m, s)[-1].toarray()  # noqa: E731
    by_multipliers = sa.jacfwd(curvature, 1)(x, multipliers, sigma)
    assert by_multipliers[..., 1] == pytest.approx(2 * np.eye(4))
    assert sa.jacrev(curvature, 2)(x, multipliers, sigma) == pytest.approx(hs71_by_hand(x, [0, 0], 1.0), rel=1e-14)
    nested = sa.jacfwd(sa.hessian(lagrangian(f, constraints), mode="rev-fwd"))(x, multipliers, sigma)
    assert sa.jacfwd(curvature)(x, multipliers, sigma) == pytest.approx(nested, rel=1e-13)


def test_signatures():
    assert str(inspect.signature(sa.value_gradient_hessian(hs71))) == "(x)"
    assert str(inspect.signature(sa.value_gradient_hessian(hs71, hs71_constraints))) == "(x, multipliers, sigma, /)"
    for f in (lambda x, sigma: x, lambda x, y=1.0: x, lambda *x: x, np.sum):
        assert str(inspect.signature(sa.value_gradient_hessian(f, chain))) == "(*arguments)"
    kernel = sa.compile(sa.value_gradient_hessian(hs71, hs71_constraints), np.ones(4), np.ones(2), 1.0)
    assert [array.name for array in kernel.program.inputs] == ["x", "multipliers", "sigma"]
    assert kernel.program.name == "value_and_derivatives_of_hs71"
    optional = sa.value_gradient_hessian(lambda x, y=2.0: y * x[0] ** 2, lambda x, y=2.0: y * x)
    assert optional(np.ones(1), np.ones(1), 1.0)[-1].toarray().tolist() == [[4.0]]
    assert optional(np.ones(1), 3.0, np.ones(1), 1.0)[-1].toarray().tolist() == [[6.0]]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda t, f, c, x: t(f, c)(x), "1 arguments for the derivatives of hs71 under constraints: they depend on the "
         "arguments of the function, then the multipliers, then sigma; pass sigma=1.0 as the last one"),
        (lambda t, f, c, x: t(f, c)(x, np.ones(2)), "2 arguments for the derivatives of hs71"),
        (lambda t, f, c, x: t(f, c)(x, np.ones(3), 1.0), "multipliers of shape (3,): the value has shape (2,)"),
        (lambda t, f, c, x: t(f, c)(x, [1.0, 2.0], 1.0), "multipliers of structure"),
        (lambda t, f, c, x: t(f, c)(x, np.ones(2), np.ones(2)), "sigma of shape (2,): the value has shape ()"),
        (lambda t, f, c, x: t(c, f)(x, 1.0, 1.0), "hs71_constraints returned (2,) instead of one scalar"),
        (lambda t, f, c, x: t(f, lambda x: None)(x, 1.0, 1.0), "<lambda> returned None"),
        (lambda t, f, c, x: t(f, lambda x: [])(x, [], 1.0), "constraints that return no number; leave"),
        (lambda t, f, c, x: t(f, c(x)), "a value of type ndarray in place of a function"),
        (lambda t, f, c, x: t(f, c, sparse="both"), "sparse='both'; use one of False, True, 'lower'"),
        (lambda t, f, c, x: t(f, c, wrt="y")(x, np.ones(2), 1.0), "wrt='y': hs71 has no such argument"),
        (lambda t, f, c, x: t(f, lambda y: c(y), wrt="x")(x, np.ones(2), 1.0), "wrt='x': <lambda> has no such"),
    ],
)  # fmt: skip
def test_what_is_refused(call, message):
    with pytest.raises(sa.errors.ArgumentError, match=re.escape(message)):
        call(sa.value_gradient_hessian, hs71, hs71_constraints, np.ones(4))


@pytest.mark.parametrize("format", ["csr", "csc"])
def test_a_solver_finds_the_known_solutions(format):
    """Trust-constr with the kernels: problem 71 with a bound and an equation, 39 with two equations."""
    hs71_solution, hs39_solution = [1.0, 4.74299963, 3.82114998, 1.37940829], [1.0, 1.0, 0.0, 0.0]
    for name, low, high, bounds, solution in (
        ("hs71", [25.0, 40.0], [np.inf, 40.0], [(1, 5)] * 4, hs71_solution),
        ("hs39", [0.0, 0.0], [0.0, 0.0], None, hs39_solution),
    ):
        f, constraints, x, multipliers, _ = example(name)
        kernel = sa.compile(sa.value_gradient_hessian(f, constraints, format=format), x, multipliers, 1.0)
        nothing = np.zeros_like(multipliers)
        found = minimize(
            lambda x: kernel(x, nothing, 1.0)[0],  # noqa: B023
            x,
            jac=lambda x: kernel(x, nothing, 1.0)[1],  # noqa: B023
            hess=lambda x: kernel.scipy(x, nothing, 1.0)[-1],  # noqa: B023
            constraints=NonlinearConstraint(
                lambda x: kernel(x, nothing, 1.0)[2],  # noqa: B023
                low,
                high,
                jac=lambda x: kernel.scipy(x, nothing, 1.0)[3],  # noqa: B023
                hess=lambda x, multipliers: kernel.scipy(x, multipliers, 0.0)[-1],  # noqa: B023
            ),
            bounds=bounds,
            method="trust-constr",
            options={"gtol": 1e-10, "xtol": 1e-12},
        )
        assert found.x == pytest.approx(solution, abs=1e-5)


def luksan_vlcek(x):
    return np.sum(100.0 * (x[:-1] ** 2 - x[1:]) ** 2 + (x[:-1] - 1.0) ** 2)


def luksan_vlcek_constraints(x):
    a, b, c = x[:-2], x[1:-1], x[2:]
    return 3.0 * b**3 + 2.0 * c - 5.0 + np.sin(b - c) * np.sin(b + c) + 4.0 * b - a * np.exp(a - b) - 3.0


@pytest.mark.parametrize("n", [200, 700])  # repetitions found in scalars, and loops of arrays
@pytest.mark.parametrize(("triangle", "format"), [("lower", "coo"), (True, "csc")])
@pytest.mark.thinned
def test_the_derivatives_of_large_problems_are_loops(n, triangle, format):
    f, constraints = luksan_vlcek, luksan_vlcek_constraints
    x, multipliers, sigma = RANDOM.normal(size=n), RANDOM.normal(size=n - 2), 0.7
    transform = sa.value_gradient_hessian(f, constraints, sparse=triangle, format=format)
    kernel = sa.compile(transform, x, multipliers, sigma)
    assert kernel.stats.plan.chosen == "rolled"
    found, wanted = kernel(x, multipliers, sigma), transform(x, multipliers, sigma)  # on numbers: of the graph
    assert kernel.sparsity[3:] == (wanted[3].pattern, wanted[4].pattern)
    for one, other in zip(found, (*wanted[:3], wanted[3].data, wanted[4].data), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-11)


def test_known_multipliers_take_no_entry_away_from_loops():
    x, zeros = RANDOM.normal(size=300), np.zeros(298)
    transform = sa.value_gradient_hessian(luksan_vlcek, luksan_vlcek_constraints)
    given = sa.compile(transform, x, zeros, 1.0)
    for known, sigma in ((zeros, 1.0), (zeros + 1.0, 0.0)):
        kernel = sa.compile(lambda x, known=known, sigma=sigma: transform(x, known, sigma), x)
        assert kernel.sparsity == given.sparsity
        np.testing.assert_allclose(kernel(x)[-1], given(x, known, sigma)[-1], rtol=1e-12, atol=1e-12)


def test_a_dot_product_is_a_sum_in_loops():
    """The Hessian of one takes no time that grows with the square of its length, and its loops are few."""
    x, weights = RANDOM.normal(size=5000), RANDOM.normal(size=4999)
    f = lambda x, weights: np.dot(weights, np.sin(x[1:] * x[:-1]))  # noqa: E731
    kernel = sa.compile(sa.hessian(f, sparse="lower"), x, weights)
    assert kernel.stats.plan.chosen == "rolled"
    assert kernel.stats.total < 40
    small = sa.hessian(f, mode="fwd-rev")(x[:9], weights[:8])
    found = sa.compile(sa.hessian(f, sparse="lower"), x[:9], weights[:8]).scipy(x[:9], weights[:8]).toarray()
    np.testing.assert_allclose(found, np.tril(small), rtol=1e-12, atol=1e-12)
