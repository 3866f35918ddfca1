"""Thirteen Lennard-Jones atoms: relax the icosahedron with Newton's method, then look at its vibrations.

Energies are in units of the well depth, lengths in units of sigma. The icosahedral cluster of 13 atoms is the global
minimum, with energy -44.326801 (Hoare and Pal, 1971). Its Hessian has six zero eigenvalues, one for each translation
and rotation; the other 33 are positive, and equal in groups of 1, 3, 4 and 5, as the symmetry group of the
icosahedron demands.
"""

import numpy as np

import symad as sa

KNOWN_MINIMUM = -44.326801
RIGID_MOTIONS = 6


def energy(positions):
    """Return the Lennard-Jones energy of the atoms whose coordinates follow each other in a flat array."""
    atoms = positions.reshape(-1, 3)
    first, second = np.triu_indices(len(atoms), 1)
    squares = np.sum((atoms[first] - atoms[second]) ** 2, axis=1)
    sixth = 1 / squares**3
    return np.sum(4 * (sixth**2 - sixth))


def icosahedron(radius):
    """Return an atom in the centre and twelve at the vertices, as a flat array of 39 coordinates."""
    golden = (1 + np.sqrt(5)) / 2
    corners = [(0, a, b * golden) for a in (-1, 1) for b in (-1, 1)]
    vertices = np.array([np.roll(corner, turn) for corner in corners for turn in range(3)])
    return np.vstack([np.zeros(3), radius * vertices / np.hypot(1, golden)]).ravel()


example_args = (icosahedron(1.08),)


def relax(positions, gradient, hessian):
    """Return the nearest stationary point and the Newton steps it took.

    The step of least norm is taken, because the Hessian cannot tell how far to shift or to turn the whole cluster.
    """
    for step in range(20):
        force = -gradient(positions)
        if np.abs(force).max() < 1e-10:
            return positions, step
        positions = positions + np.linalg.lstsq(hessian(positions), force, rcond=1e-8)[0]
    raise AssertionError("Newton's method did not converge")


def group_sizes(values, tolerance=1e-6):
    """Return how many of the sorted values are equal to each other, group by group."""
    steps = np.flatnonzero(np.diff(values) > tolerance * values[-1])
    return np.diff([0, *(steps + 1), len(values)])


def main():
    """Relax the cluster, then check its energy and its vibrational spectrum."""
    (start,) = example_args
    shaken = start + np.random.default_rng(0).uniform(-0.02, 0.02, start.size)
    gradient = sa.compile(sa.grad(energy), start)
    hessian = sa.compile(sa.hessian(energy), start)

    relaxed, steps = relax(shaken, gradient, hessian)
    print(f"energy {energy(shaken):.6f} -> {energy(relaxed):.6f} in {steps} Newton steps")
    assert abs(energy(relaxed) - KNOWN_MINIMUM) < 1e-6

    stiffness = np.linalg.eigvalsh(hessian(relaxed))
    order = np.argsort(np.abs(stiffness))
    rigid, vibrations = stiffness[order[:RIGID_MOTIONS]], np.sort(stiffness[order[RIGID_MOTIONS:]])
    print(f"six rigid motions: largest eigenvalue {np.abs(rigid).max():.1e}")
    assert np.abs(rigid).max() < 1e-9 * vibrations.max()
    assert vibrations.min() > 0

    sizes = group_sizes(vibrations)
    for size, value in zip(sizes, vibrations[np.cumsum(sizes) - 1], strict=True):
        print(f"  {size} vibrations of frequency {np.sqrt(value):8.4f}")
    assert sorted(sizes) == [1, 3, 3, 3, 4, 4, 5, 5, 5]


if __name__ == "__main__":
    main()
