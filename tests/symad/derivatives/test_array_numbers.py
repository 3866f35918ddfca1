"""Functions of arrays that are called on numbers: array nodes against operations on each element."""

from __future__ import annotations

import gc
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest
import sympy as sp
from scipy.stats import gamma, norm, t

import symad as sa
from symad.derivatives import level as levels, modes
from symad.derivatives.level import open_level
from symad.errors import WorkbenchError
from symad.graph.graph import Graph
from symad.tracing.values.traced import Traced
from tests.support.numbers_fuzz import array_nodes

N = 12
DATA = np.cos(np.arange(N * N)).reshape(N, N)
POINT = np.sin(1.0 + np.arange(N))
Numbers = Any


def stored(x: Numbers) -> Numbers:
    y = np.sin(x)
    z = y[2:5]
    y[3] = x[0] * 2
    z[0] = y[3] * x[1]
    return np.sum(y * y) + np.sum(z)


def written_after(x: Numbers) -> Numbers:
    y = x * 2
    z = y * x
    y[:] = 0.5
    return np.sum(z * y)


def added_at(x: Numbers) -> Numbers:
    y = np.zeros(N) + 0 * x
    np.add.at(y, [0, 1, 1, 2], x[:4] * x[4:8])
    return np.sum(y**3)


def closure(x: Numbers) -> Numbers:
    return np.sum(sa.grad(lambda y: np.sum(np.sin(x * y) * x))(x * 1.5) * x)


def with_arrays(x: Numbers) -> Numbers:
    m = x.reshape(3, 4)
    return np.sum(np.tanh(np.concatenate([m, np.ones((3, 1))], axis=1) @ DATA[:5, :6]))


PROGRAMS: dict[str, Callable[[Numbers], Numbers]] = {
    "sum": lambda x: np.sum(x * x),
    "broadcast": lambda x: np.sum(np.sin(x[:, None] * x[None, :3] + DATA[:, :3])),
    "views": lambda x: np.sum(x[::-2] * x[1::2] ** 2) + x[0] * x[-1],
    "transposed": lambda x: np.sum(x.reshape(3, 4).T @ (x.reshape(3, 4) * DATA[:3, :4])),
    "gathered": lambda x: np.sum(np.exp(x[[0, 1, 1, 5, 0]]) * x[:5]),
    "masked": lambda x: np.sum(np.where(np.arange(N) % 3 == 0, np.sqrt(x + 2), x * DATA[0])),
    "chosen": lambda x: np.sum(np.where(x > 0, np.sqrt(np.abs(x)), x * x)),
    "chosen or 0": lambda x: np.sum(np.where(x > 0, np.sqrt(np.abs(x)), 0.0)),
    "clipped": lambda x: np.sum(np.maximum(x, 0.1) * np.minimum(x, 0.3) + np.clip(x, -0.5, 0.5)),
    "largest": lambda x: np.max(x.reshape(3, 4), axis=1) @ np.min(x.reshape(3, 4), axis=0)[:3],
    "softmax": lambda x: np.log(np.sum(np.exp(x - np.max(x)))) + np.max(x) * x[0],
    "running": lambda x: np.sum(np.cumsum(x * x)[::3] * DATA[0, :4]),
    "product": lambda x: np.prod(1 + x / 5) + np.sum(np.cumprod(x[:4])),
    "norm": lambda x: np.linalg.norm(x) + np.sqrt(np.sum(x * x)) ** 2,
    "logistic": lambda x: np.sum(np.log1p(np.exp(-(DATA @ x))) + np.logaddexp(0, x) + 1 / (1 + np.exp(x))),
    "variance": lambda x: np.var(x) + np.std(x) + np.mean(x) ** 2,
    "einsum": lambda x: np.einsum("ij,jk,k->", DATA[:4], np.multiply.outer(x, x), x),
    "stacks": lambda x: np.sum((x.reshape(2, 2, 3) @ x.reshape(2, 3, 2)) ** 2),
    "rolled": lambda x: np.sum(np.roll(x, 2) * np.pad(x, 1)[2:] * np.repeat(x[:4], 3)),
    "powers": lambda x: np.sum((x * x + 1) ** x + (x * x + 1) ** DATA[0] + x ** np.arange(N)),
    "vectorized": lambda x: np.sum(np.vectorize(lambda u: u * u if u > 0 else -u)(x)),
    "solve": lambda x: np.sum(np.linalg.solve(np.multiply.outer(x[:5], x[5:10]) + 4 * np.eye(5), x[7:]) ** 2),
    "determinant": lambda x: np.linalg.det(np.diag(x[:5]) + DATA[:5, :5]) + np.linalg.slogdet(np.eye(N) * 2 + x)[1],
    "cholesky": lambda x: np.sum(np.sin(np.linalg.cholesky(np.multiply.outer(x, x) + 4 * np.eye(N)))),
    "inverse": lambda x: np.sum(np.linalg.inv(np.multiply.outer(x, x) + 4 * np.eye(N))[0] * x),
    "stored": stored,
    "written after": written_after,
    "added at": added_at,
    "closure": closure,
    "concatenated": with_arrays,
    "counted": lambda x: np.sum(x > 0.2) * x[0] + np.sum((x < DATA[0]) * x) + np.mean(~(x > 0)) * np.sum(x),
    "truths": lambda x: np.sum(np.where((x > 0) & (x < 0.5) | (x < -0.5), x * x, x)) * (1.0 if np.any(x > 0) else 2.0),
    "scalars": lambda x: sum(x[k] * x[k - 1] for k in range(N)) * np.sum(x),
}
DIRECTION = np.cos(2.0 + np.arange(N))
TRANSFORMS: dict[str, Callable[[Callable[[Numbers], Numbers]], Callable[[Numbers], Numbers]]] = {
    "value and gradient": lambda f: lambda x: np.append(*reversed(sa.value_and_grad(f)(x))),
    "jvp": lambda f: lambda x: sa.jvp(lambda y: f(y) * y, (x,), (DIRECTION,))[1],
    "linearize": lambda f: lambda x: sa.linearize(lambda y: f(y) * y, x)[1](DIRECTION),
    "vjp": lambda f: lambda x: sa.vjp(lambda y: f(y) * y, x)[1](DIRECTION)[0],
    "forward over reverse": lambda f: lambda x: sa.hvp(f, (x,), (DIRECTION,)),
    "reverse over forward": lambda f: sa.grad(lambda x: sa.jvp(f, (x,), (DIRECTION,))[1]),
    "reverse over reverse": lambda f: sa.grad(lambda x: np.sum(sa.grad(f)(x) * DIRECTION)),
    "forward over forward": lambda f: (
        lambda x: sa.jvp(lambda y: sa.jvp(f, (y,), (DIRECTION,))[1], (x,), (DIRECTION,))[1]
    ),
    "pullback at a deeper level": lambda f: sa.grad(lambda x: np.sum(sa.vjp(f, x)[1](np.sum(x))[0] * DIRECTION)),
    "Hessian": sa.hessian,
    "Jacobian": lambda f: sa.jacobian(lambda x: f(x) * x),
    "Jacobian forwards": lambda f: sa.jacfwd(lambda x: x[:3] * f(x)),
    "Jacobian backwards": lambda f: sa.jacrev(lambda x: x[:3] * f(x)),
    "backwards over forwards": lambda f: sa.hessian(f, mode="rev-fwd"),
    "gradient of a Hessian": lambda f: sa.grad(lambda x: np.sum(sa.hessian(lambda y: f(np.append(y, x[2:])))(x[:2]))),
    "third": lambda f: sa.grad(lambda x: np.sum(sa.hvp(f, (x,), (DIRECTION,)) * DIRECTION)),
}


ALL = ("value and gradient", "forward over reverse", "third")  # of every program
EVERYTHING = ("views", "chosen", "closure", "solve", "stored")  # in every way
PAIRS = [*product(PROGRAMS, ALL), *product(EVERYTHING, [name for name in TRANSFORMS if name not in ALL])]


@pytest.mark.parametrize(("name", "transform"), PAIRS)
@pytest.mark.thinned
def test_array_nodes_give_what_each_element_gives(name: str, transform: str) -> None:
    run, least = TRANSFORMS[transform](PROGRAMS[name]), 5 if transform == "third" else 1
    with array_nodes(None):
        wanted = run(POINT.copy())
    with array_nodes(least):
        found = run(POINT.copy())
    np.testing.assert_allclose(found, wanted, rtol=1e-10, atol=1e-11)


def nodes_made(f: Callable[[Numbers], Numbers], x: Numbers) -> tuple[int, int]:
    """How many array nodes a function adds, and how many nodes that are no elements of them."""
    with open_level([x], arrays=True) as level:
        level.call(f)
        graph = level.scope.graph
        elements = sum(array.size for array in graph.arrays.nodes)
        return len(graph.arrays.nodes), len(graph) - elements


@pytest.mark.parametrize("n", [100, 10_000])
def test_the_number_of_nodes_does_not_depend_on_the_size(n: int) -> None:
    data = np.ones((n, 3))
    made = nodes_made(lambda x: np.sum(np.tanh(x[:, None] * data + 1) @ np.ones((3, 2))), np.ones(n))
    assert made[0] <= 12
    assert made[1] <= 12


def test_few_elements_are_written_out() -> None:
    assert nodes_made(lambda x: np.sum(np.sin(x)), np.ones(10))[0] == 0


def test_large_arrays_are_differentiated() -> None:
    n = 200_000
    x, weights = np.linspace(-1, 1, n), np.random.default_rng(0).normal(size=(20, n // 20))
    value, gradient = sa.value_and_grad(lambda x: np.sum(np.tanh(weights @ x.reshape(-1, 20))))(x)
    product = np.tanh(weights @ x.reshape(-1, 20))
    np.testing.assert_allclose(value, product.sum())
    np.testing.assert_allclose(gradient, (weights.T @ (1 - product**2)).ravel(), rtol=1e-12, atol=1e-12)


def test_a_hessian_of_few_inputs_of_many_numbers_is_made_by_columns() -> None:
    data = np.random.default_rng(0).normal(size=(20_000, 3))
    found = sa.hessian(lambda w: np.sum(np.log1p(np.exp(-(data @ w)))))(np.zeros(3))
    np.testing.assert_allclose(found, data.T @ data / 4, rtol=1e-12)
    jacobian = sa.jacobian(lambda w: data @ w)(np.zeros(3))
    np.testing.assert_array_equal(jacobian, data)


def test_elements_have_a_limit_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("symad.graph.graph.Graph.most", 1000)
    x = np.ones(500)
    np.testing.assert_array_equal(sa.grad(lambda x: np.sum(np.sin(x) * x) + x[0] * x[1])(x * 0), np.zeros(500))
    monkeypatch.setattr("symad.graph.graph.ELEMENT_LIMIT", 1200)
    with pytest.raises(sa.errors.LimitError, match="1200 elements of arrays"):
        sa.grad(lambda x: np.sum(np.sin(x) * x))(x)


def test_a_sparse_hessian_is_made_element_by_element() -> None:
    found = sa.hessian(lambda x: np.sum(x**3), sparse="lower")(np.ones(100))
    assert found.nnz == 100


@pytest.mark.parametrize("head", [np.max, np.min])
def test_equal_largest_elements_share_as_pairs_do(head: Callable[[Numbers], Numbers]) -> None:
    x = np.array([1.0, 2.0, 1.0, 2.0, 2.0, 1.0, 1.0])
    with array_nodes(None):
        wanted = sa.grad(head)(x)
    with array_nodes(1):
        np.testing.assert_array_equal(sa.grad(head)(x), wanted)


@pytest.mark.parametrize(
    "f", [lambda x: np.max(x) * 2, lambda x: np.sum(np.maximum(x, 0.0)), lambda x: np.sum(np.where(x > 0, x, -x))]
)
def test_nan_is_not_lost(f: Callable[[Numbers], Numbers]) -> None:
    x = np.array([1.0, np.nan, 3.0, -1.0])
    results = []
    for least in (None, 1):
        with array_nodes(least):
            results.append(np.append(*reversed(sa.value_and_grad(f)(x))))
    np.testing.assert_array_equal(*results)
    assert np.isnan(results[0][-1])


def test_a_branch_that_is_not_taken_never_contributes_nan() -> None:
    def f(x: Numbers) -> Numbers:
        return np.sum(np.where(x > 0, np.sqrt(np.where(x > 0, x, 1.0)) * np.log(np.abs(x)), 0.0))

    x = np.array([0.0, 4.0, -1.0, 0.0])
    with array_nodes(1):
        gradient = sa.grad(f)(x)
        second = sa.hvp(f, (x,), (np.ones(4),))
    np.testing.assert_allclose(gradient, [0, np.log(4) / 4 + 0.5, 0, 0])
    assert np.isfinite(second).all()


def test_symbols_that_meet_arrays_are_traced_element_by_element() -> None:
    a = sp.Symbol("a")
    found = sa.grad(lambda x: np.sum(x * x) * a)(np.ones(100))
    assert found.shape == (100,)
    assert found[0] == 2.0 * a


def test_perturbations_are_not_confused() -> None:
    x = np.linspace(0.5, 1.5, 100)
    found = sa.grad(lambda x: np.sum(x * sa.grad(lambda y: np.sum(x * y))(x)))(x)
    np.testing.assert_allclose(found, 2 * x)


def test_a_singular_matrix_is_refused_at_the_users_line() -> None:
    def f(x: Numbers) -> Numbers:
        return np.sum(np.linalg.solve(np.multiply.outer(x, x), x))

    with pytest.raises(np.linalg.LinAlgError, match="Singular matrix") as caught:
        sa.grad(f)(np.zeros(N))
    assert any(frame.name == "f" for frame in caught.traceback)


def test_a_value_kept_after_its_level_is_refused() -> None:
    kept: list[Traced] = []
    sa.grad(lambda x: (kept.append(x), np.sum(x))[1])(np.ones(100))
    with pytest.raises(WorkbenchError, match="after its derivative level closed"):
        np.sum(kept[0] * 2)


def test_steps_that_somebody_listens_to_are_those_of_each_element() -> None:
    with levels.noting() as events:
        sa.grad(lambda x: np.sum(x * x))(np.ones(100))
    assert not events[0].graph.arrays.nodes


SIZES = pytest.mark.parametrize("size", [5, 100])


@SIZES
def test_a_root_that_captures_what_is_made_of_arrays(size):
    def solved(p):
        q = p * p
        return sa.root(lambda y: y**3 + y - np.sum(q) - q[1], 1.0) * p[0]

    def by_hand(p):
        total = np.sum(p * p) + p[1] ** 2
        y = np.real(next(root for root in np.roots([1.0, 0.0, 1.0, -total]) if abs(root.imag) < 1e-9))
        inner = 2 * p + 2 * p[1] * (np.arange(size) == 1)
        return y * p[0], y * (np.arange(size) == 0) + p[0] * inner / (3 * y**2 + 1)

    p = np.linspace(0.1, 0.9, size)
    value, gradient = sa.value_and_grad(solved)(p)
    expected, slope = by_hand(p)
    np.testing.assert_allclose(value, expected, rtol=1e-12)
    np.testing.assert_allclose(gradient, slope, rtol=1e-10)
    direction = np.cos(np.arange(size))
    product = sa.hvp(solved, (p,), (direction,))
    step = 1e-6 * direction
    np.testing.assert_allclose(product, (by_hand(p + step)[1] - by_hand(p - step)[1]) / 2e-6, rtol=1e-6, atol=1e-7)


@SIZES
def test_a_rule_of_ones_own_on_an_array(size):
    cubes = sa.custom_derivative(
        lambda x: np.sum(x**3), derivative=lambda primals, tangents: np.sum(3 * primals[0] ** 2 * tangents[0])
    )
    x, v = np.linspace(0.1, 0.9, size), np.cos(np.arange(size))
    value, gradient = sa.value_and_grad(lambda x: cubes(np.sin(x)) * x[0])(x)
    inner = np.sum(np.sin(x) ** 3)
    np.testing.assert_allclose(value, inner * x[0], rtol=1e-13)
    first = np.arange(size) == 0
    np.testing.assert_allclose(gradient, 3 * np.sin(x) ** 2 * np.cos(x) * x[0] + first * inner, rtol=1e-12)
    np.testing.assert_allclose(sa.hvp(cubes, (x,), (v,)), 6 * x * v, rtol=1e-12)


@SIZES
def test_a_rule_of_ones_own_refuses_what_is_made_of_captured_arrays(size):
    def captured(p):
        total = np.sum(p * p)
        return sa.custom_derivative(lambda y: y * total, derivative=lambda args, tangents: tangents[0])(p[0])

    with pytest.raises(sa.errors.ArgumentError, match="none of its arguments"):
        sa.grad(captured)(np.linspace(0.1, 0.9, size))


STORES = {
    "fill_diagonal": lambda z, x: np.fill_diagonal(z, x[:10]),
    "put": lambda z, x: np.put(z, [3, 5, 77], x[:3]),
    "put_along_axis": lambda z, x: np.put_along_axis(z, np.arange(10)[:, None] % 3, x[:10, None], 1),
    "place": lambda z, x: np.place(z, np.arange(100).reshape(10, 10) % 7 == 0, x[:20]),
    "putmask": lambda z, x: np.putmask(z, np.arange(100).reshape(10, 10) % 7 == 0, np.resize(x[:10], (10, 10))),
}


@pytest.mark.parametrize("name", STORES)
@pytest.mark.parametrize("made", [lambda x: np.sin(x), lambda x: x.copy()], ids=["computed", "copied"])
def test_what_is_stored_by_a_function_is_seen(name, made):
    def f(x):
        z = made(x).reshape(10, 10)
        STORES[name](z, x**2)
        return np.sum(np.cos(np.arange(100.0)).reshape(10, 10) * z)

    x, v = np.linspace(0.1, 0.9, 100), np.sin(np.arange(100.0))
    value, gradient = sa.value_and_grad(f)(x)
    np.testing.assert_allclose(value, f(x), rtol=1e-13)
    np.testing.assert_allclose(gradient @ v, (f(x + 1e-6 * v) - f(x - 1e-6 * v)) / 2e-6, rtol=1e-7)


def test_data_may_change_while_the_function_runs():
    rng = np.random.default_rng(0)
    data, buffer = rng.normal(size=(50, 20)), np.empty((50, 20))

    def f(w, changing):
        first = buffer if changing else data.copy()
        first[...] = data
        total = np.sum(np.sin(first @ w) * first[:, 0])
        second = buffer if changing else data.copy()
        second[...] = 2 * data
        total = total + np.sum((second * w) ** 2)
        buffer[...] = np.nan
        return total

    w, v = rng.normal(size=20), rng.normal(size=20)
    for transform in (sa.value_and_grad, lambda f: lambda w: sa.hvp(f, (w,), (v,))):
        one, other = (transform(lambda w, changing=changing: f(w, changing))(w) for changing in (True, False))
        for a, b in zip(one, other, strict=True):
            assert np.array_equal(a, b)


@pytest.mark.parametrize("size", [5, 100])
def test_numbers_of_every_kind_in_an_array_keep_their_sign_and_value(size):
    odd = np.linspace(1.0, 2.0, size)
    odd[:4] = -0.0, np.inf, np.nan, 0.0

    def f(x):
        z = np.zeros_like(x)
        z[:] = odd
        signs = np.copysign(1.0, z[0]) * x[0] + np.copysign(1.0, z[3]) * x[1]
        return signs + (x[2] if z[1] == np.inf and z[2] != z[2] else 0.0) + np.sum(x[4:] * z[4:])

    expected = np.concatenate([[-1.0, 1.0, 1.0, 0.0], odd[4:]])
    assert np.array_equal(sa.grad(f)(np.linspace(0.1, 0.9, size)), expected)


def test_a_graph_is_gone_with_its_last_user():
    def graphs():
        return sum(type(thing) is Graph for thing in gc.get_objects())

    data = np.linspace(0.1, 0.9, 300).reshape(100, 3)

    def f(x):
        y = np.maximum(data @ x, 0.1)
        return np.sum(np.exp(-y) / np.sqrt(1 + y * y))

    gc.collect()
    gc.disable()
    try:
        before = graphs()
        sa.value_and_grad(f)(np.ones(3))
        sa.vjp(f, np.ones(3))[1](1.0)
        sa.hvp(f, (np.ones(3),), (np.ones(3),))
        assert graphs() == before
    finally:
        gc.enable()


def test_joined_and_rolled_arrays_that_are_stored_into():
    def f(x):
        square = x.reshape(10, 10)
        joined = np.hstack([np.sin(square), np.cos(square)])
        joined[3, 5:15] = square[0] ** 2
        rolled = np.roll(np.exp(square), 3, axis=1)
        other = np.roll(rolled, -1, axis=0)
        rolled[2] = 0.0
        return np.sum(joined[:, ::2] * rolled[:, ::-1][:, :10]) + np.sum(other**2) + np.sum(rolled * square)

    x, v = np.linspace(0.1, 0.9, 100), np.sin(np.arange(100.0))
    value, gradient = sa.value_and_grad(f)(x)
    np.testing.assert_allclose(value, f(x), rtol=1e-13)
    np.testing.assert_allclose(gradient @ v, (f(x + 1e-6 * v) - f(x - 1e-6 * v)) / 2e-6, rtol=1e-6)
    np.testing.assert_allclose(sa.jvp(f, (x,), (v,))[1], gradient @ v, rtol=1e-12)


GRID = np.arange(64.0).reshape(8, 8) ** 1.5
INDEXED: dict[str, Callable[[Numbers], Numbers]] = {
    "rounded": lambda x: np.sum(GRID[np.floor(4 * np.abs(x)).astype(int), 2] * x),
    "of a traced array": lambda x: np.sum((x * x)[np.mod(np.floor(9 * x).astype(int) + 1, N)] * x),
    "clipped": lambda x: np.sum((x * x)[np.clip(np.rint(9 * x), 0, N - 1).astype(int)]),
    "chosen": lambda x: np.sum((x * x)[np.where(x > 0, np.floor(3 * x), 1).astype(int)] * x),
    "quotient": lambda x: np.sum((x * x)[(np.arange(N) + np.floor(x).astype(int)) // 2 % N] * x),
    "one of them": lambda x: (x * x)[np.floor(9 * np.abs(x)).astype(int)[3]] * x[0],
}


@pytest.mark.parametrize("f", INDEXED.values(), ids=INDEXED)
@pytest.mark.parametrize("least", [1, None])
def test_whole_numbers_are_indices(f: Callable[[Numbers], Numbers], least: int | None) -> None:
    with array_nodes(least):
        value, gradient = sa.value_and_grad(f)(POINT)
    assert value == pytest.approx(f(POINT), rel=1e-14)
    for k, slope in enumerate(gradient):
        move = 1e-7 * np.eye(N)[k]
        assert slope == pytest.approx((f(POINT + move) - f(POINT - move)) / 2e-7, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("key", [lambda x: x * 2.0, lambda x: np.floor(x) * 0.5, lambda x: np.floor(x) / 0.0])
def test_what_may_not_be_whole_is_no_index(key: Callable[[Numbers], Numbers]) -> None:
    with array_nodes(1), pytest.raises((WorkbenchError, ValueError)):
        sa.grad(lambda x: np.sum(x[key(x)]))(POINT)


def singles_made(f: Callable[[Numbers], Numbers], x: Numbers) -> tuple[int, int]:
    """Return how many nodes a function makes that are no elements of array nodes, and what it returns, 0 or more."""
    graphs = []

    def watched(x: Numbers) -> Numbers:
        graphs.append(x.scope.graph)
        return f(x)

    sa.grad(watched)(x)
    graph = graphs[-1]
    return len(graph.heads) - sum(array.size for array in graph.arrays.nodes), len(graphs)


@pytest.mark.parametrize("f", [
    lambda x: np.sum(x * np.log(np.broadcast_arrays(x, 2.4)[1].ravel())),  # a constant, 500 times
    lambda x: np.sum(x * np.sqrt(np.concatenate([0 * x[:1], np.arange(1.0, 500.0)])[1:].sum())),
    lambda x: np.sum(np.where(np.logical_and(np.full(500, True), x > 0), x, 2.0)),  # "and" of what is known
    lambda x: np.sum(np.where(np.logical_or(np.broadcast_arrays(x > 0, False)[1], x > 0), x, 2.0)),
    lambda x: np.sum(np.where(np.logical_and(np.arange(500) % 2 == 0, x > 0), x, 2.0)),
    lambda x: -np.sum(norm.logpdf(x, 0.5, np.exp(x[0]))),
    lambda x: -np.sum(t.logpdf(x, 2.4, 0.1, np.exp(x[0]))),
    lambda x: -np.sum(gamma.logpdf(x * x, np.linspace(1.0, 2.0, 500))),
])  # fmt: skip
def test_constants_among_arrays_are_no_single_nodes(f: Callable[[Numbers], Numbers]) -> None:
    x = np.sin(np.arange(500.0)) + 0.1
    singles, runs = singles_made(f, x)
    assert singles < 250 * runs


def test_a_node_that_is_read_often_gets_one_sum() -> None:
    """Thresholds by outcome, as ordered models have them: products with the Hessian made nodes for each reading."""
    outcomes = np.arange(2000) * 7 % 4
    data = np.sin(np.arange(2000.0))

    def f(p: Numbers) -> Numbers:
        ends = np.concatenate([[-5.0], np.cumsum(np.exp(p)), [9.0]])
        above, below = ends[outcomes + 1] - data, ends[outcomes] - data
        return np.sum(np.log(np.exp(-(above**2)) + below**2 + 1.0))

    point = np.array([0.1, -0.2, 0.3])
    weights = np.array([1.0, 2.0, 3.0])
    singles, runs = singles_made(lambda p: np.sum(sa.grad(f)(p) * weights), point)
    assert singles < 1000 * runs
    with array_nodes(None):
        wanted = sa.hessian(f)(point)
    np.testing.assert_allclose(sa.hessian(f)(point), wanted, rtol=1e-11)
    moved = [(f(point + step) - f(point - step)) / 2e-6 for step in 1e-6 * np.eye(3)]
    np.testing.assert_allclose(sa.grad(f)(point), moved, rtol=1e-7)


def test_weights_that_begin_with_one() -> None:
    """A product with the number 1 is left out, one with an array of numbers is not."""
    weights, x = np.tile([1.0, 2.0, 3.0], 10), np.linspace(0.1, 0.9, 30)

    def f(x: Numbers) -> Numbers:
        return np.sum(np.tanh(weights * x))

    tanh = np.tanh(weights * x)
    slope = weights * (1 - tanh**2)
    np.testing.assert_allclose(sa.grad(f)(x), slope, rtol=1e-14)
    np.testing.assert_allclose(sa.compile(sa.grad(f), x)(x), slope, rtol=1e-14)
    np.testing.assert_allclose(sa.hvp(f, (x,), (np.ones(30),)), -2 * weights * tanh * slope, rtol=1e-13)

    def shifted(x: Numbers) -> Numbers:
        return np.sum(np.concatenate([np.ones(1), x[:-1]]) * x)

    wanted = np.concatenate([[1.0], x[:-1]]) + np.append(x[1:], 0.0)
    np.testing.assert_allclose(sa.grad(shifted)(x), wanted, rtol=1e-14)
    np.testing.assert_allclose(sa.compile(sa.grad(shifted), x)(x), wanted, rtol=1e-14)
    np.testing.assert_allclose(sa.hessian(shifted)(x), np.eye(30, k=1) + np.eye(30, k=-1), rtol=1e-14)


@pytest.mark.filterwarnings("ignore:overflow")
def test_the_logarithm_of_an_overflow_has_its_slope() -> None:
    """The derivative sees the exponential in the sum in the logarithm."""
    x = np.full(40, 800.0)
    np.testing.assert_array_equal(sa.grad(lambda x: np.sum(np.log(1 + np.exp(x))))(x), np.ones(40))


def test_a_few_places_of_a_large_array_that_are_read_twice() -> None:
    """Their cotangents are added up, in one of many places for each."""
    x, places = np.linspace(-1.0, 1.0, 4000), np.array([7, 7, 7, 3999, 7, 0, 3999, 20, 20, 21] * 3)
    wanted = np.zeros(4000)
    np.add.at(wanted, places, np.cos(x[places]))
    np.testing.assert_allclose(sa.grad(lambda x: np.sum(np.sin(x[places])))(x), wanted, rtol=1e-14)
    apart = np.arange(10, 40)
    wanted = np.where((np.arange(4000) >= 10) & (np.arange(4000) < 40), np.cos(x), 0.0)
    np.testing.assert_allclose(sa.grad(lambda x: np.sum(np.sin(x[apart])))(x), wanted, rtol=1e-14)


def network(w):
    """Two layers of eight for thirty rows of three: few array nodes, and a Hessian without zeros."""
    first, second, last = w[:24].reshape(3, 8), w[24:88].reshape(8, 8), w[88:]
    return np.sum((np.tanh(np.tanh(np.cos(np.arange(90.0)).reshape(30, 3) @ first) @ second) @ last) ** 2)


def scalars_and_an_array(x):
    total = 0.0
    for k in range(300):
        total = 0.5 * total + x[k % 64] * x[(k + 1) % 64]
    return total + np.sum(np.sin(x))


@pytest.mark.parametrize(
    ("f", "size", "by_elements"),
    [
        (network, 96, False),
        (lambda x: np.sum(np.exp(-(np.subtract.outer(x, x) ** 2))), 40, False),
        (lambda x: np.sum(np.sin(x) * np.cos(x)), 300, False),  # a diagonal matrix
        (lambda x: np.sum(np.sin(x) * x**2), 20, True),  # few operations
        (scalars_and_an_array, 64, True),  # few of them on arrays
    ],
)
def test_a_hessian_on_numbers_is_made_of_arrays_where_that_is_less_work(f, size, by_elements, monkeypatch):
    calls = []
    pushed = modes.hessian_entries
    monkeypatch.setattr(modes, "hessian_entries", lambda *args: calls.append(1) or pushed(*args))
    x = np.sin(np.arange(float(size)))
    found = sa.hessian(f)(x)
    assert bool(calls) is by_elements
    v = np.cos(np.arange(float(size)))
    np.testing.assert_allclose(found @ v, sa.hvp(f, (x,), (v,)), rtol=1e-10, atol=1e-12 * np.abs(found).max())


_PLACES = np.array([0, 3, 3, 1, 5, 0])
_STACK = np.random.default_rng(6).normal(size=(3, 4, 4))
COLUMNS = {
    "products of a stack": lambda x: np.matmul(_STACK, x.reshape(4, 4)) + np.matmul(x.reshape(4, 4), _STACK),
    "product with itself": lambda x: x.reshape(4, 4) @ np.tanh(x.reshape(4, 4).T) @ x[:4],
    "branches at their ends": lambda x: np.where(x > x[0], np.sqrt(np.abs(x - x[0])), 0.0) * x[::-1],
    "largest of rows": lambda x: np.max(x.reshape(4, 4), axis=1) * np.sort(x)[:4],
    "running sums": lambda x: np.cumsum(np.exp(x))[::2] * np.cumsum(x[::-1])[1::2],
    "places that repeat": lambda x: np.bincount(np.r_[_PLACES, 2, 4], np.sin(x[:8]) * x[1], 6) + x[_PLACES],
    "scalars and arrays": lambda x: np.sin(x[0] * x[1]) * np.exp(x) + x[2] ** 2 * np.concatenate([x[3:], x[:3]]),
    "solve": lambda x: np.linalg.solve(x.reshape(4, 4) + 4 * np.eye(4), np.exp(x[:4])),
    "cholesky": lambda x: np.linalg.cholesky(x.reshape(4, 4) @ x.reshape(4, 4).T + np.eye(4)),
    "determinant": lambda x: np.linalg.slogdet(x.reshape(4, 4) + 4 * np.eye(4))[1] * x,
    "eigenvalues": lambda x: np.linalg.eigvalsh(x.reshape(4, 4) + x.reshape(4, 4).T + np.diag(np.arange(4.0))),
    "singular values": lambda x: np.linalg.svd(x.reshape(4, 4) + np.diag(np.arange(4.0)), compute_uv=False) * x[:4],
    "QR": lambda x: np.linalg.qr(x.reshape(8, 2))[0] @ x[:2],
}


@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.parametrize("carried", [1, 500, 2**22])
def test_columns_at_once_are_those_one_by_one(name, carried, monkeypatch):
    """The matrix of a level carries all columns, or some at a time; each is a product with a unit vector."""
    f, x = COLUMNS[name], np.random.default_rng(7).normal(size=16)
    monkeypatch.setattr(modes, "CARRIED", carried)
    monkeypatch.setattr(modes, "FEW", -1)
    columns = np.stack([sa.jvp(f, (x,), (unit,))[1] for unit in np.eye(16)], axis=-1)
    scale = np.abs(columns).max()
    for mode in ("fwd", "rev"):
        np.testing.assert_allclose(sa.jacobian(f, mode=mode)(x), columns, rtol=1e-11, atol=1e-13 * scale)


def weighted(name):
    """Return a scalar function of 16 numbers, and a point."""
    f, x = COLUMNS[name], np.random.default_rng(7).normal(size=16)
    weights = np.random.default_rng(8).normal(size=np.shape(f(x)))
    return (lambda x: np.sum(f(x) * weights)), x


@pytest.mark.parametrize("name", COLUMNS)
def test_a_hessian_of_columns_at_once_has_products_with_unit_vectors(name, monkeypatch):
    monkeypatch.setattr(modes, "FEW", -1)
    f, x = weighted(name)
    rows = np.stack([sa.hvp(f, (x,), (unit,)) for unit in np.eye(16)[::5]])
    np.testing.assert_allclose(sa.hessian(f)(x)[::5], rows, rtol=1e-9, atol=1e-11 * np.abs(rows).max())


@pytest.mark.parametrize("name", COLUMNS)
def test_columns_of_nodes_are_differentiated_again(name, monkeypatch):
    monkeypatch.setattr(modes, "FEW", -1)
    f, x = weighted(name)
    third = sa.grad(lambda x: np.sum(sa.hessian(f)(x) ** 2))(x)
    step = 1e-5 * np.cos(np.arange(16.0))
    change = np.sum(sa.hessian(f)(x + step) ** 2 - sa.hessian(f)(x - step) ** 2) / 2
    np.testing.assert_allclose(third @ step, change, rtol=1e-5, atol=1e-7 * np.abs(change))


STACKED: dict[str, Callable[[Numbers], Numbers]] = {
    "rows": lambda x: np.sum(np.stack([x, x * x]), axis=1)[1],
    "beside constants": lambda x: np.sum(np.stack([x, np.arange(len(x)) * 0.3]), axis=1)[0],
    "columns": lambda x: np.sum(np.stack([x, x * x], axis=1), axis=0)[1],
    "three axes": lambda x: np.sum(np.stack([np.stack([x, x * x]), np.stack([x, x])]), axis=2)[0, 1],
    "all": lambda x: np.sum(np.stack([x, x * x])),
}


@pytest.mark.parametrize("name", STACKED)
@pytest.mark.parametrize("n", [16, 100, 1000])
def test_sums_of_joined_arrays_have_the_bits_of_numpy(name: str, n: int) -> None:
    """docs/tracing.md: sums over one axis or over all, of 16 elements or more."""
    f, rng = STACKED[name], np.random.default_rng(n)
    for _ in range(5):
        x = rng.normal(size=n)
        assert sa.value_and_grad(f)(x)[0] == f(x)


def test_negative_zeros_are_added_as_the_page_says() -> None:
    """docs/tracing.md: -0.0 where the sum begins with its first term, 0.0 as NumPy's elsewhere."""
    few, many = np.full(8, -0.0), np.full(5000, -0.0)
    begun = [sa.value_and_grad(np.sum)(few)[0], sa.compile(lambda x: np.sum(x), few)(few)]
    others = [sa.value_and_grad(np.sum)(many)[0], sa.compile(lambda x: np.sum(x), many)(many)]
    assert np.signbit(begun).tolist() == [True, True]
    assert np.signbit(others).tolist() == [False, False]
    assert not np.signbit(np.sum(few))
