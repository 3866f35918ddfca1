"""The gradient of a function of a gradient: h(x) = g(grad f(x)) with f = 1 / norm and g(v) = sum(v)**3.

The chain rule says grad h = H grad g, with H the Hessian of f: one directional derivative of grad f, or the gradient
of one directional derivative of f. So every way to nest forward and reverse mode has to give the same vector; here are
a dozen, checked against each other and against central differences.
"""

import numpy as np

import symad as sa

example_args = (np.array([0.3, -0.7, 1.1, 0.5, -0.2]),)
HESSIAN_MODES = ("auto", "edge", "fwd-rev", "rev-rev", "rev-fwd", "fwd-fwd")


def f(x):
    """Return the inverse of the Euclidean norm."""
    return 1 / np.linalg.norm(x)


def g(v):
    """Return the cube of the sum."""
    return np.sum(v) ** 3


def h(x):
    """Return g of the gradient of f."""
    return g(sa.grad(f)(x))


def h_forward(x):
    """Return the same, with the inner gradient in forward mode."""
    return g(sa.jacfwd(f)(x))


def mode_mixes(x):
    """Return grad h by every mix of modes, by name."""
    outer = {"reverse": sa.grad, "forward": sa.jacfwd}
    inner = {"reverse": h, "forward": h_forward}
    mixes = {f"{o} over {i}": outer[o](inner[i])(x) for o in outer for i in inner}

    direction = sa.grad(g)(sa.grad(f)(x))
    _, mixes["one forward direction over reverse"] = sa.jvp(sa.grad(f), (x,), (direction,))
    mixes["reverse over one forward direction"] = sa.grad(lambda y: sa.jvp(f, (y,), (direction,))[1])(x)
    _, pullback = sa.vjp(sa.grad(f), x)
    (mixes["one pullback of reverse"],) = pullback(direction)
    mixes["derivative along x + t direction"] = sa.derivative(lambda t: sa.grad(f)(x + t * direction))(0.0)
    mixes["hvp"] = sa.hvp(f, (x,), (direction,))
    for mode in HESSIAN_MODES:
        mixes[f"Hessian {mode}"] = sa.hessian(f, mode=mode)(x) @ direction
    mixes["compiled"] = sa.compile(sa.grad(h), x)(x)
    return mixes


def central_differences(function, x, step=1e-5):
    """Return the gradient by central differences."""
    shifts = step * np.eye(x.size)
    return np.array([function(x + shift) - function(x - shift) for shift in shifts]) / (2 * step)


def main():
    """Compare all mixes with each other and with central differences."""
    (x,) = example_args
    mixes = mode_mixes(x)
    reference = mixes["reverse over reverse"]
    scale = np.abs(reference).max()
    print("h(x)      ", h(x))
    print("grad h(x) ", reference)
    for name, gradient in mixes.items():
        distance = np.abs(gradient - reference).max() / scale
        print(f"  {name:36} {distance:.1e}")
        assert distance < 1e-13, name
    error = np.abs(central_differences(h, x) - reference).max() / scale
    print(f"  {'central differences':36} {error:.1e}")
    assert error < 1e-7


if __name__ == "__main__":
    main()
