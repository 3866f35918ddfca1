"""Operation budgets, counted on the lowered program before fusion; exact sparsity; size that does not explode."""

import numpy as np
import pytest
import sympy as sp

import symad as sa
from symad.derivatives.elimination import cross_country
from symad.derivatives.level import open_level
from symad.derivatives.linear import linearize
from symad.derivatives.second_order import dyad_operations
from symad.graph.builder import Builder
from symad.graph.graph import Graph
from tests.support.cases import lennard_jones, rosenbrock


def test_lennard_jones_of_ten_atoms():
    point = np.random.default_rng(0).normal(size=30) * 2
    kernel = sa.compile(sa.hessian(lennard_jones, sparse="lower"), point)
    assert kernel.stats.total <= 3400
    assert kernel.sparsity.nnz == 30 * 31 // 2


def test_chained_rosenbrock_of_100():
    kernel = sa.compile(sa.hessian(rosenbrock, sparse="lower"), np.ones(100))
    assert kernel.stats.total <= 800
    rows, columns = kernel.sparsity
    assert len(sa.hessian(rosenbrock, sparse="full")(np.ones(100)).rows) == 298
    assert sorted(zip((rows - columns).tolist(), rows.tolist(), strict=True)) == sorted(
        [(0, k) for k in range(100)] + [(1, k) for k in range(1, 100)]
    )


@pytest.mark.parametrize(("name", "mode"), [("mlp", "dyadic"), ("lennard_jones", "edge"), ("rosenbrock", "edge")])
def test_auto_takes_the_cheaper_of_edges_and_dyads(name, mode):
    weights = np.sin(np.arange(8 * 16.0)).reshape(16, 8)
    functions = {"mlp": lambda x: np.tanh(weights.T @ np.tanh(weights @ x)).sum(), "lennard_jones": lennard_jones,
                 "rosenbrock": rosenbrock}  # fmt: skip
    point = np.arange(1.0, 9.0) if name != "lennard_jones" else np.arange(9.0) ** 1.5
    counts = {m: sa.trace(sa.hessian(functions[name], mode=m, sparse="lower"), point).count_ops()
              for m in ("auto", "edge", "dyadic")}  # fmt: skip
    assert counts["auto"] == counts[mode] == min(counts.values())


def test_a_deep_chain_is_differentiated_twice_in_every_direction():
    def chain(x):
        for _ in range(2_000):
            x = np.sin(x)
        return x

    found = [sa.derivative(chain, 2)(0.5), sa.grad(sa.grad(chain))(0.5), sa.hessian(chain)(0.5)]
    assert found == pytest.approx([found[0]] * 3, rel=1e-9)


def test_the_tower_of_25_levels_stays_linear_to_second_order():
    def tower(x):
        for _ in range(25):
            x = np.sin(x) * x
        return x

    counts = [sa.trace(f, 0.9).count_ops() for f in (tower, sa.derivative(tower), sa.derivative(tower, 2))]
    assert counts[0] == 50
    assert counts[2] < 10 * counts[0]


def test_a_sparse_hessian_allocates_nothing_dense():
    """Nodes grow linearly with n: a dense temporary would need n**2 of them."""
    sizes = {}
    for n in (200, 400):
        with open_level([np.ones(n)]) as level:
            result = level.call(rosenbrock)
            linearize(level.build, result.flat, level.parameters.flat)
        sizes[n] = len(sa.trace(sa.hessian(rosenbrock, sparse="lower"), np.ones(n)).graph)
    assert sizes[400] < 2.1 * sizes[200]


def scalars(count):
    """Symbols of a new graph."""
    build = Builder(Graph())
    return build, [build.graph.alias(build.graph.leaf(sp.Symbol(f"x{k}"))) for k in range(count)]


def test_an_elimination_is_limited_by_products_and_sums():
    """Of exp(sin(x)) + sin(x) one sum and one product are made; products with 1 are not."""
    build, (x,) = scalars(1)
    sine = build.call(sp.sin, x)
    linear = linearize(build, [build.add(build.call(sp.exp, sine), sine)], [x])
    assert cross_country(build, linear, limit=1) is None
    assert cross_country(build, linear, limit=2) is not None


def test_operations_of_dyads_are_those_of_scaled_gradients():
    """A sum scales none, and a product with a number two; one of a product of both inputs has three entries."""
    build, (x, y) = scalars(2)
    for output, wanted in ((build.add(x, y), 4), (build.mul(build.two, x), 3), (build.mul(x, y), 14)):
        assert dyad_operations(build, linearize(build, [output], [x, y])) == wanted
