"""Optimisers as differentiable programs: gradient descent, momentum, Adam, a schedule of learning rates.

An optimiser is a loop around a gradient. Differentiated as it stands, it tells how its result depends on what it was
given: the learning rate, the momentum, the schedule, the starting point, the loss. Every step holds a gradient, so the
first derivatives of the result hold second derivatives of the loss. The minimiser itself depends neither on where the
loop began nor on how fast it ran, so those derivatives vanish as the loop converges; what remains is how the minimiser
depends on the loss, which the implicit function theorem gives without any loop.
"""

import numpy as np

import symad as sa


def loss(x, slope):
    """Return a smooth function of two variables with one minimum, which `slope` moves."""
    return np.cosh(x[0] - 1) + (x[1] - x[0] ** 2) ** 2 + slope * x[0] + 0.1 * x[1] ** 4


loss_gradient = sa.jit(sa.grad(loss))


def gradient_descent(x, slope, rates, gradient=loss_gradient):
    """Return where one step for each learning rate leads: a schedule is an array of rates."""
    for rate in rates:
        x = x - rate * gradient(x, slope)
    return x


def momentum(x, slope, rate, friction, steps, gradient=loss_gradient):
    """Return where gradient descent with a velocity leads."""
    velocity = np.zeros_like(x)
    for _ in range(steps):
        velocity = friction * velocity - rate * gradient(x, slope)
        x = x + velocity
    return x


def adam(x, slope, rate, decay, steps, gradient=loss_gradient):
    """Return where Adam leads (Kingma and Ba 2015): running means of the gradient and of its square, both corrected."""
    mean, square = np.zeros_like(x), np.zeros_like(x)
    for step in range(1, steps + 1):
        force = gradient(x, slope)
        mean = decay[0] * mean + (1 - decay[0]) * force
        square = decay[1] * square + (1 - decay[1]) * force**2
        x = x - rate * (mean / (1 - decay[0] ** step)) / (np.sqrt(square / (1 - decay[1] ** step)) + 1e-8)
    return x


def cosine_schedule(highest, steps):
    """Return learning rates that fall along half a cosine."""
    return highest * (1 + np.cos(np.pi * np.arange(steps) / steps)) / 2


START, SLOPE = np.array([-0.5, 0.8]), 0.3
# Each with its settings: the learning rate, then the momentum, or Adam's two decays.
OPTIMISERS = {
    "gradient descent": (lambda x, slope, p, **how: gradient_descent(x, slope, [p[0]] * 30, **how), np.array([0.1])),
    "cosine schedule": (
        lambda x, slope, p, **how: gradient_descent(x, slope, cosine_schedule(p[0], 30), **how),
        np.array([0.15]),
    ),
    "momentum": (lambda x, slope, p, **how: momentum(x, slope, p[0], p[1], 30, **how), np.array([0.05, 0.8])),
    "Adam": (lambda x, slope, p, **how: adam(x, slope, p[0], p[1:], 30, **how), np.array([0.1, 0.9, 0.99])),
}


def central_differences(function, point, step=1e-6):
    """Return the derivatives of an array in each number of a point, last, by central differences."""
    units = step * np.eye(np.size(point)).reshape((-1, *np.shape(point)))
    return np.stack([(function(point + u) - function(point - u)) / (2 * step) for u in units], -1)


def check(name, optimiser, settings):
    """Print and check the derivatives of one optimiser's result in its settings, its start and the loss."""
    point = (START, SLOPE, settings)
    print(f"{name}: ends at {optimiser(*point)}")
    for k, what in enumerate(("start", "slope of the loss", "settings")):
        one = lambda value, k=k: optimiser(*point[:k], value, *point[k + 1 :])  # noqa: E731 (the other two are fixed)
        forward, reverse = sa.jacfwd(one)(point[k]), sa.jacrev(one)(point[k])
        differences = central_differences(one, point[k]).reshape(forward.shape)
        scale = np.abs(forward).max()
        print(f"  in the {what:18} {forward.tolist()}")
        assert np.abs(forward - reverse).max() < 1e-13 * scale
        assert np.abs(forward - differences).max() < 1e-6 * scale


def main():
    """Check all optimisers, then watch an unrolled derivative converge to that of the minimiser."""
    for name, (optimiser, settings) in OPTIMISERS.items():
        check(name, optimiser, settings)

    print("in the slope of the loss, by the number of steps:")
    for steps in (10, 50, 250):
        unrolled = sa.derivative(lambda slope, steps=steps: gradient_descent(START, slope, [0.2] * steps))(SLOPE)
        in_start = np.abs(sa.jacrev(lambda x, steps=steps: gradient_descent(x, SLOPE, [0.2] * steps))(START)).max()
        print(f"  {steps:4} steps: {unrolled}   in the start: {in_start:.1e}")

    # At a minimum the gradient is zero for every slope: H dx/dslope = -d(gradient)/dslope = -(1, 0).
    minimum = gradient_descent(START, SLOPE, [0.2] * 250)
    step = lambda x, slope: x - 0.2 * sa.grad(loss)(x, slope)  # noqa: E731 (the step whose fixed point is the minimum)
    implicit = {
        "by hand": np.linalg.solve(sa.hessian(loss)(minimum, SLOPE), [-1.0, 0.0]),
        "fixed point of a step": sa.derivative(lambda slope: sa.fixed_point(step, START, slope))(SLOPE),
        "argmin": sa.derivative(lambda slope: sa.argmin(loss, START, slope))(SLOPE),
    }
    for name, found in implicit.items():
        print(f"  {name:22} {found}")
        np.testing.assert_allclose(found, unrolled, rtol=1e-9)
    assert in_start < 1e-10


if __name__ == "__main__":
    main()
