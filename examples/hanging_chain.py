"""A hanging chain: Newton's method on the Karush-Kuhn-Tucker equations, all derivatives from one sparse kernel.

The chain has 200 links of fixed length and fixed ends, and hangs where its potential energy is least. One kernel gives
energy, gradient, constraints, their Jacobian and the Hessian of the Lagrangian, and writes the non-zeros straight into
SciPy's matrices. In equilibrium the tension's horizontal part is the same in all links while its vertical part grows
by one weight from link to link, so the slopes of the links are an arithmetic progression.
"""

import numpy as np
from scipy.sparse import block_array
from scipy.sparse.linalg import spsolve

import symad as sa

LINKS, LENGTH = 200, 1.5  # between (0, 0) and (1, 0)


def joints(x):
    """Return all joints, with the fixed ends, as rows (horizontal, vertical)."""
    ends = np.array([[0.0, 0.0], [1.0, 0.0]])
    return np.concatenate([ends[:1], x.reshape(-1, 2), ends[1:]])


def energy(x):
    """Return the potential energy: the sum of the heights of the joints, each of weight 1."""
    return np.sum(x.reshape(-1, 2)[:, 1])


def stretch(x):
    """Return the squared length of each link, less what it should be."""
    steps = np.diff(joints(x), axis=0)
    return np.sum(steps**2, axis=1) - (LENGTH / LINKS) ** 2


def start():
    """Return the joints on a parabola of about the right length."""
    across = np.linspace(0, 1, LINKS + 1)[1:-1]
    return np.stack([across, -2.0 * across * (1 - across)], axis=1).ravel()


def main():
    """Solve, and check the solution against what is known of it."""
    x, multipliers = start(), np.ones(LINKS)
    derivatives = sa.value_gradient_hessian(energy, stretch, format="csc")
    kernel = sa.compile(derivatives, x, multipliers, 1.0)
    _, gradient, slack, jacobian, hessian = kernel.scipy(x, multipliers, 1.0)
    print(f"{x.size} unknowns, {LINKS} constraints: {jacobian.nnz} + {hessian.nnz} non-zeros, ", end="")
    print(f"{kernel.stats.total} operations")

    store = (np.zeros(()), gradient, slack, jacobian, hessian)  # what the kernel writes into from now on
    multipliers = -np.linalg.lstsq(jacobian.T.toarray(), gradient, rcond=None)[0]
    for iteration in range(20):
        kernel.into(store, x, multipliers, 1.0)
        residual = np.concatenate([gradient + jacobian.T @ multipliers, slack])
        print(f"iteration {iteration}: residual {np.abs(residual).max():.1e}")
        if np.abs(residual).max() < 1e-9:
            break
        step = spsolve(block_array([[hessian, jacobian.T], [jacobian, None]], format="csc"), -residual)
        x, multipliers = x + step[: x.size], multipliers + step[x.size :]

    assert iteration < 12, "Newton's method with exact second derivatives is quadratic"
    across, down = np.diff(joints(x), axis=0).T
    np.testing.assert_allclose(np.hypot(across, down), LENGTH / LINKS, rtol=1e-9)
    np.testing.assert_allclose(2 * multipliers * across, 2 * multipliers[0] * across[0], rtol=1e-7)
    np.testing.assert_allclose(np.diff(down / across), 1 / (2 * multipliers[0] * across[0]), rtol=1e-5)
    print(f"the horizontal tension is {abs(2 * multipliers[0] * across[0]):.6f} weights in every link")


if __name__ == "__main__":
    main()
