"""Losses that contain derivatives of a network, and the gradients of those losses.

A regularised loss holds the Jacobian of a network in its inputs, a differential equation's residual holds a gradient in
its inputs, a sensitivity penalty holds the Jacobian in the parameters. To train on them, the derivative is
differentiated once more, in inputs and in nested parameters.

Where forward and reverse mode are different programs, an inner derivative of one kind can be opaque to an outer one of
the other kind, and its gradient is dropped. One remedy is automatic switching: a library that recognises some calls
(this kind of layer, composed in that way, in these functions) replaces the inner program by one that the outer program
can follow; a call that it does not recognise goes wrong as before. Here there is nothing to switch. All transforms
write ordinary nodes into one graph, so each can differentiate what any other wrote, and the choice between them is a
matter of cost alone.
"""

from itertools import pairwise

import numpy as np
import optree

import symad as sa

EPSILON = 1e-5  # added to the variance by batch normalisation


def dense(layer, x):
    """Return an affine function of each column of x."""
    return layer["weight"] @ x + layer["bias"]


def batch_norm(layer, state, x):
    """Return batch normalisation in test mode: by running statistics, so that columns stay independent."""
    return layer["scale"] * (x - state["mean"]) / np.sqrt(state["variance"] + EPSILON) + layer["bias"]


def small_network(params, state, x):
    """Return dense, tanh, batch normalisation, dense."""
    hidden = np.tanh(dense(params["first"], x))
    return dense(params["last"], batch_norm(params["norm"], state, hidden))


def deep_network(params, x):
    """Return three tanh layers and a linear one."""
    for layer in params[:-1]:
        x = np.tanh(dense(layer, x))
    return dense(params[-1], x)


def jacobian_loss(params, x, state, y, jacobian=sa.jacobian):
    """Return the misfit, plus the squares of the Jacobian of all outputs in all inputs."""
    matrix = jacobian(lambda x: small_network(params, state, x))(x)
    return np.sum((small_network(params, state, x) - y) ** 2) + np.sum((0.01 * matrix) ** 2)


def blockwise_loss(params, x, state, y):
    """Return the same without the zero blocks: one pushforward gives a column of the block of every sample at once."""
    total = np.sum((small_network(params, state, x) - y) ** 2)
    for unit in np.eye(x.shape[0]):
        direction = np.repeat(unit[:, None], x.shape[1], axis=1)
        _, column = sa.jvp(lambda x: small_network(params, state, x), (x,), (direction,))
        total = total + np.sum((0.01 * column) ** 2)
    return total


def batched_loss(params, x, state, y):
    """Return the same with the blocks of all samples from one call, which checks that no sample depends on another."""
    blocks = sa.batched_jacobian(lambda rows: small_network(params, state, rows.T).T)(x.T)
    return np.sum((small_network(params, state, x) - y) ** 2) + np.sum((0.01 * blocks) ** 2)


def by_hand_loss(params, x, state, y):
    """Return the same with the Jacobian of each sample written by hand."""
    hidden = np.tanh(dense(params["first"], x))
    slopes = params["norm"]["scale"] / np.sqrt(state["variance"] + EPSILON) * (1 - hidden**2)
    total = np.sum((small_network(params, state, x) - y) ** 2)
    for sample in range(x.shape[1]):
        block = params["last"]["weight"] @ (slopes[:, sample, None] * params["first"]["weight"])
        total = total + np.sum((0.01 * block) ** 2)
    return total


def gradient_loss(params, t, gradient=sa.grad):
    """Return how far the gradient of the squared network, in its inputs, is from a cosine."""
    return np.sum((gradient(lambda t: np.sum(deep_network(params, t) ** 2))(t) - np.cos(t)) ** 2)


def parameter_loss(params, x, jacobian=sa.jacobian):
    """Return the squares of the Jacobian in the parameters, which has their nested structure."""
    blocks = jacobian(lambda params: deep_network(params, x))(params)
    return sum(np.sum(layer["weight"] ** 2) + np.sum(layer["bias"] ** 2) for layer in blocks)


def random_dense(rng, inputs, outputs):
    """Return the parameters of a dense layer."""
    return {"weight": rng.normal(size=(outputs, inputs)) / np.sqrt(inputs), "bias": rng.normal(size=(outputs, 1)) / 10}


def small_problem(rng, batch=10):
    """Return parameters, inputs, running statistics and targets for the small network."""
    column = (4, 1)
    params = {
        "first": random_dense(rng, 2, 4),
        "norm": {"scale": rng.normal(size=column), "bias": rng.normal(size=column)},
        "last": random_dense(rng, 4, 2),
    }
    state = {"mean": rng.normal(size=column), "variance": rng.uniform(0.5, 2, column)}
    return params, rng.normal(size=(2, batch)), state, rng.normal(size=(2, batch))


def deep_problem(rng, width=6, batch=8):
    """Return parameters and inputs for the deep network."""
    sizes = [1, width, width, width, 1]
    return [random_dense(rng, *pair) for pair in pairwise(sizes)], rng.uniform(size=(1, batch))


def flat(tree):
    """Return all numbers of nested containers as one array."""
    return np.concatenate([np.ravel(leaf) for leaf in optree.tree_leaves(tree)])


def slope(loss, params, x, direction, step=1e-5):
    """Return the central difference of a loss along a direction in parameters and inputs."""
    (up, down) = (
        loss(*optree.tree_map(lambda a, b, sign=sign: a + sign * step * b, (params, x), direction)) for sign in (1, -1)
    )
    return (up - down) / (2 * step)


def agree(title, routes, params, x, rng):
    """Print and check the gradients of several routes to one loss, in parameters and inputs."""
    print(title)
    direction = optree.tree_map(lambda leaf: rng.normal(size=leaf.shape), (params, x))
    reference = flat(sa.grad(next(iter(routes.values())), (0, 1))(params, x))
    for name, loss in routes.items():
        gradient = flat(sa.grad(loss, (0, 1))(params, x))
        _, pushed = sa.jvp(loss, (params, x), direction)
        distance = np.abs(gradient - reference).max() / np.abs(reference).max()
        forward = abs(pushed - reference @ flat(direction)) / abs(pushed)
        difference = abs(slope(loss, params, x, direction) - pushed) / abs(pushed)
        print(f"  {name:24} reverse {distance:.1e}   forward {forward:.1e}   central differences {difference:.1e}")
        assert distance < 1e-12
        assert forward < 1e-12
        assert difference < 1e-6


def main():
    """Take the gradient of each loss with each inner mode, by both outer modes."""
    rng = np.random.default_rng(0)
    modes = {"inner forward": sa.jacfwd, "inner reverse": sa.jacrev}

    params, x, state, y = small_problem(rng)
    routes = {
        name: lambda params, x, mode=mode: jacobian_loss(params, x, state, y, mode) for name, mode in modes.items()
    }
    routes["blocks by pushforward"] = lambda params, x: blockwise_loss(params, x, state, y)
    routes["batched Jacobian"] = lambda params, x: batched_loss(params, x, state, y)
    routes["written by hand"] = lambda params, x: by_hand_loss(params, x, state, y)
    agree("a Jacobian in the inputs, with batch normalisation", routes, params, x, rng)

    params, t = deep_problem(rng)
    routes = {name: lambda params, t, mode=mode: gradient_loss(params, t, mode) for name, mode in modes.items()}
    agree("a gradient in the inputs", routes, params, t, rng)

    params, x = deep_problem(rng, width=4, batch=5)
    routes = {name: lambda params, x, mode=mode: parameter_loss(params, x, mode) for name, mode in modes.items()}
    agree("a Jacobian in the parameters", routes, params, x, rng)


if __name__ == "__main__":
    main()
