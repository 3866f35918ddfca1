"""Where a ternary liquid becomes unstable: the spinodal of a regular solution, from a Hessian.

The molar Gibbs energy of mixing over RT is ideal mixing plus pairwise interactions. A mixture is unstable against
small fluctuations where the Hessian with respect to two independent mole fractions is not positive definite; its
determinant is zero on the border, the spinodal. The Hessian is known in closed form and serves as the check.
"""

import numpy as np

import symad as sa

# Interaction parameters of the pairs 1-2, 1-3 and 2-3: species 1 and 2 dislike each other.
CHI_12, CHI_13, CHI_23 = 3.0, 1.2, 0.7

example_args = (np.array([0.2, 0.3]),)


def gibbs(x):
    """Return the molar Gibbs energy of mixing over RT at mole fractions x[0], x[1] and 1 - x[0] - x[1]."""
    x1, x2 = x
    x3 = 1 - x1 - x2
    ideal = x1 * np.log(x1) + x2 * np.log(x2) + x3 * np.log(x3)
    return ideal + CHI_12 * x1 * x2 + CHI_13 * x1 * x3 + CHI_23 * x2 * x3


def closed_form(x):
    """Return the Hessian as a textbook writes it."""
    x1, x2 = x
    x3 = 1 - x1 - x2
    mixed = 1 / x3 + CHI_12 - CHI_13 - CHI_23
    return np.array([[1 / x1 + 1 / x3 - 2 * CHI_13, mixed], [mixed, 1 / x2 + 1 / x3 - 2 * CHI_23]])


def bisect(function, low, high):
    """Return where a function changes its sign between two points."""
    sign = np.sign(function(low))
    assert sign != np.sign(function(high))
    while low < (middle := (low + high) / 2) < high:
        low, high = (middle, high) if np.sign(function(middle)) == sign else (low, middle)
    return middle


def main():
    """Check gradient and Hessian, then find the spinodal on the line of equal x1 and x2."""
    (x,) = example_args
    gradient = sa.grad(gibbs)(x)
    hessian = sa.compile(sa.hessian(gibbs), x)
    print("g/RT     ", gibbs(x))
    print("gradient ", gradient)
    print("Hessian  ", hessian(x).tolist())
    np.testing.assert_allclose(hessian(x), closed_form(x), rtol=1e-14)

    # The differences of chemical potentials mu1 - mu3 and mu2 - mu3 are the gradient.
    x1, x2 = x
    x3 = 1 - x1 - x2
    mu1 = np.log(x1) + CHI_12 * x2 * (1 - x1) + CHI_13 * x3 * (1 - x1) - CHI_23 * x2 * x3
    mu3 = np.log(x3) + CHI_13 * x1 * (1 - x3) + CHI_23 * x2 * (1 - x3) - CHI_12 * x1 * x2
    np.testing.assert_allclose(gradient[0], mu1 - mu3, rtol=1e-13)

    def stability(t, matrix=hessian):
        return np.linalg.det(matrix(np.array([t, t])))

    spinodal = bisect(stability, 0.05, 0.45)
    expected = bisect(lambda t: stability(t, closed_form), 0.05, 0.45)
    print(f"spinodal at x1 = x2 = {spinodal:.12f}: stable below, unstable above")
    assert abs(spinodal - expected) < 1e-12
    assert np.linalg.eigvalsh(hessian(np.array([0.1, 0.1]))).min() > 0
    assert np.linalg.eigvalsh(hessian(np.array([0.44, 0.44]))).min() < 0


if __name__ == "__main__":
    main()
