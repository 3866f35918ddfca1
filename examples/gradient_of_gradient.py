"""Why a gradient has no gradient, and what is meant: a Jacobian, a pullback of ones, or a product with the Hessian.

A gradient belongs to a function with one result. The gradient itself has as many results as there are variables, so it
has a Jacobian, whose rows are gradients of single results: the Hessian. Reverse mode pulls back one vector y and gives
J^T y: a unit vector gives a row of J; a vector of ones gives the gradient of the sum of all results. Libraries that
differentiate anything take that sum without saying so. Here `grad` refuses, and the sum has a name of its own.
"""

import numpy as np

import symad as sa

example_args = (np.array([0.4, -0.9, 1.3]),)


def f(x):
    """Return a function with one result."""
    return np.sin(x[0] * x[1]) * x[2] ** 2 + np.exp(x[0] - x[2])


def hessian_forward_over_reverse(x):
    """Return the Jacobian, by forward mode, of the gradient, by reverse mode."""
    return sa.jacfwd(sa.grad(f))(x)


def hessian_times(x, v):
    """Return the product with the Hessian from one seeded direction: no matrix is formed."""
    return sa.jvp(sa.grad(f), (x,), (v,))[1]


def main():
    """Ask for the gradient of a gradient, and take the answers apart."""
    (x,) = example_args
    try:
        sa.grad(sa.grad(f))(x)
    except sa.errors.ArgumentError as error:
        print("grad(grad(f)):", error)
    else:
        raise AssertionError("a gradient of a gradient was given")

    hessian = hessian_forward_over_reverse(x)
    print(hessian)
    np.testing.assert_allclose(hessian, sa.hessian(f)(x), rtol=1e-14)
    np.testing.assert_allclose(hessian, hessian.T, rtol=1e-14)

    _, pullback = sa.vjp(sa.grad(f), x)
    for k, unit in enumerate(np.eye(3)):
        np.testing.assert_allclose(pullback(unit)[0], hessian[k], rtol=1e-14)
    (of_ones,) = pullback(np.ones(3))
    print("a pullback of ones gives the sum of the rows:", of_ones)
    np.testing.assert_allclose(of_ones, hessian.sum(axis=0), rtol=1e-14)
    np.testing.assert_allclose(of_ones, sa.grad(lambda x: np.sum(sa.grad(f)(x)))(x), rtol=1e-14)

    v = np.array([1.0, -2.0, 0.5])
    print("the Hessian times", v, "is", hessian_times(x, v))
    np.testing.assert_allclose(hessian_times(x, v), hessian @ v, rtol=1e-13)
    np.testing.assert_allclose(sa.hvp(f, (x,), (v,)), hessian @ v, rtol=1e-13)
    matrix, product = sa.trace(hessian_forward_over_reverse, x), sa.trace(hessian_times, x, v)
    print(f"operations: {matrix.count_ops()} for the matrix, {product.count_ops()} for the product")


if __name__ == "__main__":
    main()
