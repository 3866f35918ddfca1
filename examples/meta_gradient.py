"""Learn how to learn: the gradient of a training result in the learning rate, the momentum and the starting point.

First a training loop with a closed form: K gradient steps on (a/2)(t - c)^2. Then momentum on Rosenbrock's valley: the
meta-gradient, one compiled kernel for all sixty inner steps and their derivatives, improves the learning rate and the
momentum by gradient descent of its own.
"""

import numpy as np

import symad as sa

STEPS = 60


def quadratic(t, curvature, centre):
    """Return (a/2)(t - c)^2."""
    return curvature / 2 * (t - centre) ** 2


def trained(rate, start, centre, curvature=3.0, steps=3):
    """Return the end of an inner loop of gradient descent."""
    t = start
    for _ in range(steps):
        t = t - rate * sa.grad(quadratic)(t, curvature, centre)
    return t


def check_closed_form(rate=0.1, start=2.0, centre=1.0, curvature=3.0, steps=3):
    """Compare with t_K = c + (1 - a h)^K (t0 - c), and L = t_K^2 / 2."""

    def outer(rate, start, centre):
        return trained(rate, start, centre, curvature, steps) ** 2 / 2

    shrink, apart = 1 - curvature * rate, start - centre
    end = centre + shrink**steps * apart
    in_rate = -steps * curvature * shrink ** (steps - 1) * apart
    twice = steps * (steps - 1) * curvature**2 * shrink ** (steps - 2) * apart
    expected = (end * in_rate, end * shrink**steps, end * (1 - shrink**steps))
    found = sa.grad(outer, (0, 1, 2))(rate, start, centre)
    curvature_in_rate = sa.derivative(lambda rate: outer(rate, start, centre), 2)(rate)
    print(f"three steps on a parabola: dL/dh, dL/dt0, dL/dc = {found}, d2L/dh2 = {curvature_in_rate}")
    np.testing.assert_allclose(found, expected, rtol=1e-13)
    np.testing.assert_allclose(curvature_in_rate, in_rate**2 + end * twice, rtol=1e-13)


def rosenbrock(x):
    """Return Rosenbrock's function of two variables."""
    return 100 * (x[1] - x[0] ** 2) ** 2 + (1 - x[0]) ** 2


def meta_loss(rate, momentum, start, steps=STEPS):
    """Return the logarithm of the loss after a number of steps with momentum."""
    x, velocity = start, np.zeros_like(start)
    for _ in range(steps):
        velocity = momentum * velocity - rate * sa.grad(rosenbrock)(x)
        x = x + velocity
    return np.log(rosenbrock(x))


example_args = (3e-4, 0.8, np.array([-1.2, 1.0]))


def main():
    """Check the closed form and the meta-gradient, then follow it."""
    check_closed_form()

    rate, momentum, start = example_args
    meta_gradient = sa.compile(sa.value_and_grad(meta_loss, (0, 1, 2)), *example_args)
    print(f"{STEPS} steps with momentum on Rosenbrock's function: {meta_gradient.stats.nodes} nodes")
    value, (in_rate, in_momentum, in_start) = meta_gradient(rate, momentum, start)
    point, sizes = np.array([rate, momentum, *start]), [1e-8, 1e-6, 1e-6, 1e-6]
    for unit, size, found in zip(np.eye(4), sizes, [in_rate, in_momentum, *in_start], strict=True):
        up, down = (meta_loss(p[0], p[1], p[2:]) for p in (point + size * unit, point - size * unit))
        assert abs((up - down) / (2 * size) - found) < 1e-5 * abs(found)

    first = value
    for step in range(101):
        value, (in_rate, in_momentum, _) = meta_gradient(rate, momentum, start)
        if step % 20 == 0:
            print(f"  rate {rate:.6f}, momentum {momentum:.4f}: loss {np.exp(value):.2e}")
        # steps of one length in the logarithms of the rate and of 1 - momentum
        downhill = np.array([-rate * in_rate, (1 - momentum) * in_momentum])
        moved = np.exp(0.02 * downhill / np.linalg.norm(downhill))
        rate, momentum = rate * moved[0], 1 - (1 - momentum) * moved[1]
    assert value < first - np.log(10), "ten times better than the first guess"


if __name__ == "__main__":
    main()
