"""The Hessian of the chained Rosenbrock function: dense on plain numbers, then a compiled kernel of its non-zeros.

The function is ordinary NumPy code for any number of variables. SciPy knows its Hessian in closed form, so both are
compared with that. Try also `symad hessian examples/rosenbrock.py:rosenbrock`.
"""

import numpy as np
from scipy.optimize import rosen_hess

import symad as sa

example_args = (np.array([-1.2, 1.0, 0.8, 1.1, 0.9]),)


def rosenbrock(x):
    """Return the sum of 100 (x[i+1] - x[i]^2)^2 + (1 - x[i])^2."""
    return np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def main():
    """Compare both Hessians with SciPy's."""
    (x,) = example_args
    hessian = sa.hessian(rosenbrock)(x)
    np.testing.assert_allclose(hessian, rosen_hess(x), rtol=1e-13, atol=1e-10)
    print("Hessian at", x)
    print(hessian)

    x = np.linspace(-1.2, 1.2, 1000)
    kernel = sa.compile(sa.hessian(rosenbrock, sparse="lower"), x)
    rows, columns = kernel.sparsity
    lower = np.zeros((x.size, x.size))
    lower[rows, columns] = kernel(x)
    np.testing.assert_allclose(lower, np.tril(rosen_hess(x)), rtol=1e-13, atol=1e-10)
    print(f"n = {x.size}: the kernel computes {len(rows)} numbers instead of {x.size**2}; they equal SciPy's Hessian")


if __name__ == "__main__":
    main()
