"""Seed 003: losses that contain derivatives, and traces estimated from them, differentiated again by every mode.

The networks are those of the examples. Each inner mode stands under each outer mode, in inputs and nested parameters,
interpreted and compiled, and beside central differences of every single number.
"""

from __future__ import annotations

import runpy
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import optree
import pytest

import symad as sa

EXAMPLES = Path(__file__).parents[3] / "examples"
losses = SimpleNamespace(**runpy.run_path(str(EXAMPLES / "losses_with_derivatives.py")))
hutchinson = SimpleNamespace(**runpy.run_path(str(EXAMPLES / "hutchinson_trace.py")))
JACOBIANS = {"forward": sa.jacfwd, "reverse": sa.jacrev, "auto": sa.jacobian}


def jacobian_losses():
    """The loss with a Jacobian in the inputs, by every route; the last two form no inner matrix."""
    params, x, state, y = losses.small_problem(np.random.default_rng(1), batch=2)
    routes = {
        name: lambda params, x, mode=mode: losses.jacobian_loss(params, x, state, y, mode)
        for name, mode in JACOBIANS.items()
    }
    routes["blocks"] = lambda params, x: losses.blockwise_loss(params, x, state, y)
    routes["batched"] = lambda params, x: losses.batched_loss(params, x, state, y)
    routes["by hand"] = lambda params, x: losses.by_hand_loss(params, x, state, y)
    return routes, params, x


def gradient_losses():
    params, t = losses.deep_problem(np.random.default_rng(2), width=4, batch=5)
    inner = {"forward": sa.jacfwd, "reverse": sa.grad}
    return (
        {n: lambda params, t, mode=mode: losses.gradient_loss(params, t, mode) for n, mode in inner.items()},
        params,
        t,
    )


def parameter_losses():
    params, x = losses.deep_problem(np.random.default_rng(3), width=3, batch=3)
    return {n: lambda p, x, mode=mode: losses.parameter_loss(p, x, mode) for n, mode in JACOBIANS.items()}, params, x


def traces():
    params, x, v = hutchinson.problem(np.random.default_rng(4), width=3, batch=3)
    return (
        {name: lambda params, x, route=route: route(params, x, v) for name, route in hutchinson.ROUTES.items()},
        params,
        x,
    )


CASES = {"Jacobian": jacobian_losses, "gradient": gradient_losses, "parameter": parameter_losses, "trace": traces}


def flat(tree):
    return np.concatenate([np.ravel(leaf) for leaf in optree.tree_leaves(tree)])


def central_differences(loss, params, x, step=1e-5):
    """Return the derivative in every single number, flat, by central differences of the compiled loss."""
    leaves, structure = optree.tree_flatten((params, x))
    found, loss = [], sa.compile(loss, params, x)
    for k, leaf in enumerate(leaves):
        for position in np.ndindex(leaf.shape):
            ends = []
            for sign in (1, -1):
                moved = leaf.copy()
                moved[position] += sign * step
                ends.append(loss(*optree.tree_unflatten(structure, [*leaves[:k], moved, *leaves[k + 1 :]])))
            found.append((ends[0] - ends[1]) / (2 * step))
    return np.array(found)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.thinned
@pytest.mark.wide_rows("parameter")
def test_every_inner_mode_under_every_outer_mode(case):
    routes, params, x = CASES[case]()
    found = {}
    for name, loss in routes.items():
        for outer, transform in {"reverse": sa.grad, "forward": sa.jacfwd}.items():
            gradient = transform(loss, (0, 1))
            interpreted = gradient(params, x)
            assert optree.tree_structure(interpreted) == optree.tree_structure((params, x))
            found[f"{outer} over {name}"] = flat(interpreted)
            if outer == "reverse" or name == next(iter(routes)):  # forward mode is compiled over one of them
                found[f"{outer} over {name}, compiled"] = flat(sa.compile(gradient, params, x)(params, x))
    reference = found["reverse over " + next(iter(routes))]
    scale = np.abs(reference).max()
    assert scale > 0.01
    for route, gradient in found.items():
        assert np.abs(gradient - reference).max() < 1e-12 * scale, route
    differences = central_differences(next(iter(routes.values())), params, x)
    assert np.abs(differences - reference).max() < 1e-8 * scale


@pytest.mark.parametrize("case", CASES)
@pytest.mark.thinned
def test_the_losses_once_more_along_a_direction(case):
    """A Hessian-vector product of each loss, in inputs and parameters: a third or fourth derivative of the network."""
    routes, params, x = CASES[case]()
    rng = np.random.default_rng(9)
    direction = optree.tree_map(lambda leaf: rng.normal(size=leaf.shape), (params, x))
    products = {name: flat(sa.hvp(loss, (params, x), direction)) for name, loss in routes.items()}
    reference = next(iter(products.values()))
    for name, product in products.items():
        assert np.abs(product - reference).max() < 1e-12 * np.abs(reference).max(), name

    gradient, step = sa.grad(next(iter(routes.values())), (0, 1)), 1e-5
    up, down = (
        flat(gradient(*optree.tree_map(lambda a, b, sign=sign: a + sign * step * b, (params, x), direction)))
        for sign in (1, -1)
    )
    assert np.abs((up - down) / (2 * step) - reference).max() < 1e-7 * np.abs(reference).max()


def test_batch_normalisation_in_test_mode_keeps_the_samples_apart():
    """Only then are the blocks of single samples the whole Jacobian."""
    params, x, state, _ = losses.small_problem(np.random.default_rng(1), batch=4)
    network = lambda x: losses.small_network(params, state, x)  # noqa: E731
    pattern = sa.jacobian(lambda v: network(v.reshape(x.shape)).ravel(), sparse=True)(x.ravel())
    assert pattern.nnz == 4 * 2 * 2
    blocks = sa.batched_jacobian(lambda rows: network(rows.T).T)(x.T)
    whole = sa.jacobian(network)(x)  # out, sample, in, sample
    assert blocks == pytest.approx(np.stack([whole[:, k, :, k] for k in range(4)]), rel=1e-14)
    assert set((pattern.rows % 4) - (pattern.columns % 4)) == {0}


def test_batch_normalisation_in_training_mixes_the_samples():
    """Statistics of the batch make each sample depend on all: there are no blocks, and the batched Jacobian says so."""

    def normalised(rows):
        return (rows - rows.mean(axis=0)) / np.sqrt(rows.var(axis=0) + losses.EPSILON)

    rows = np.random.default_rng(6).normal(size=(4, 2))
    with pytest.raises(sa.errors.ArgumentError, match="row"):
        sa.batched_jacobian(normalised)(rows)
    assert np.all(sa.jacobian(normalised)(rows)[:, 0, :, 0] != 0)


def test_the_three_traces_are_one_number():
    routes, params, x = traces()
    values = [route(params, x) for route in routes.values()]
    assert np.ptp(values) < 1e-13 * max(map(abs, values))
    assert len({flat(sa.grad(route)(params, x)).size for route in routes.values()}) == 1
