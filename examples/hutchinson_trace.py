"""The trace of a Jacobian from one random direction (Hutchinson 1990), by three routes, and its gradient.

v . J v has the trace of J as its mean when the entries of v are +1 or -1 at random. A pullback gives v J, a pushforward
J v, each at a small multiple of the cost of the network; the full Jacobian is only there to check them. The estimate is
a term of a loss, so it is differentiated again, in the inputs and in the parameters.
"""

import numpy as np
import optree

import symad as sa


def network(params, x):
    """Return two tanh layers and a linear one, for each column of x."""
    *hidden, last = params
    for layer in hidden:
        x = np.tanh(layer["weight"] @ x + layer["bias"])
    return last["weight"] @ x + last["bias"]


def trace_by_pullback(params, x, v):
    """Return v . J v from the row v J."""
    _, pullback = sa.vjp(lambda x: network(params, x), x)
    (row,) = pullback(v)
    return np.sum(row * v)


def trace_by_pushforward(params, x, v):
    """Return v . J v from the column J v."""
    _, column = sa.jvp(lambda x: network(params, x), (x,), (v,))
    return np.sum(v * column)


def trace_by_jacobian(params, x, v):
    """Return v . J v from the whole Jacobian, all samples by all samples."""
    matrix = sa.jacobian(lambda x: network(params, x))(x).reshape(x.size, x.size)
    return v.ravel() @ matrix @ v.ravel()


ROUTES = {"pullback": trace_by_pullback, "pushforward": trace_by_pushforward, "full Jacobian": trace_by_jacobian}


def problem(rng, width=6, batch=5):
    """Return parameters, inputs with a column for each sample, and a direction of random signs."""
    sizes = [(width, 4), (width, width), (4, width)]
    params = [{"weight": rng.normal(size=size) / 2, "bias": rng.normal(size=(size[0], 1)) / 5} for size in sizes]
    return params, rng.uniform(size=(4, batch)), rng.choice([-1.0, 1.0], size=(4, batch))


def flat(tree):
    """Return all numbers of nested containers as one array."""
    return np.concatenate([np.ravel(leaf) for leaf in optree.tree_leaves(tree)])


def central_differences(params, x, v, step=1e-5):
    """Return the gradient of the estimate in the inputs by central differences."""
    gradient = np.empty(x.size)
    for k in range(x.size):
        shift = step * (np.arange(x.size) == k).reshape(x.shape)
        gradient[k] = trace_by_pushforward(params, x + shift, v) - trace_by_pushforward(params, x - shift, v)
    return gradient / (2 * step)


def main():
    """Compare the three estimates and their gradients, and average the estimate to the trace itself."""
    rng = np.random.default_rng(0)
    params, x, v = problem(rng)
    reference = flat(sa.grad(trace_by_pullback, (0, 1))(params, x, v))
    for name, route in ROUTES.items():
        value = route(params, x, v)
        gradient = flat(sa.grad(route, (0, 1))(params, x, v))
        operations = sa.trace(lambda params, x, route=route: route(params, x, v), params, x).count_ops()
        distance = np.abs(gradient - reference).max() / np.abs(reference).max()
        print(f"{name:14} {value:.15f}   gradient differs by {distance:.1e}   {operations} operations")
        assert abs(value - trace_by_pullback(params, x, v)) < 1e-13
        assert distance < 1e-12

    error = np.abs(flat(sa.grad(trace_by_pushforward, 1)(params, x, v)) - central_differences(params, x, v)).max()
    print(f"gradient in the inputs differs from central differences by {error:.1e}")
    assert error < 1e-8

    estimate = sa.compile(lambda v: trace_by_pushforward(params, x, v), v)
    samples = [estimate(rng.choice([-1.0, 1.0], size=v.shape)) for _ in range(4000)]
    trace = np.trace(sa.jacobian(lambda x: network(params, x))(x).reshape(x.size, x.size))
    deviation = np.std(samples) / np.sqrt(len(samples))
    print(f"trace {trace:.6f}, mean of {len(samples)} estimates {np.mean(samples):.6f} +- {deviation:.6f}")
    assert abs(np.mean(samples) - trace) < 4 * deviation


if __name__ == "__main__":
    main()
