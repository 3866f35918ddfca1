"""Sparse derivatives of functions that gather rows by index arrays: a bundle adjustment gathers cameras and points."""

from __future__ import annotations

from typing import Any

import numpy as np

import symad as sa

CAMERAS, POINTS, OBSERVATIONS = 12, 200, 2000
RANDOM = np.random.default_rng(5)
CAMERA, POINT = RANDOM.integers(0, CAMERAS, OBSERVATIONS), RANDOM.integers(0, POINTS, OBSERVATIONS)
SEEN = RANDOM.normal(size=(OBSERVATIONS, 2))
UNKNOWNS = RANDOM.uniform(0.2, 1.0, CAMERAS * 11 + POINTS * 3 + OBSERVATIONS)


def residuals(unknowns: Any) -> Any:
    """Return the reprojection errors, each times a weight, and how far the weights are from 1 (as ADBench has it)."""
    camera = unknowns[: CAMERAS * 11].reshape(CAMERAS, 11)[CAMERA]
    point = unknowns[CAMERAS * 11 : CAMERAS * 11 + POINTS * 3].reshape(POINTS, 3)[POINT]
    weight = unknowns[CAMERAS * 11 + POINTS * 3 :]
    angle = np.sqrt(np.sum(camera[:, :3] ** 2, axis=1))
    cosine, sine = np.cos(angle), np.sin(angle)
    axis, shifted = camera[:, :3] / angle[:, None], point - camera[:, 3:6]
    turned = [axis[:, j] * shifted[:, k] - axis[:, k] * shifted[:, j] for j, k in ((1, 2), (2, 0), (0, 1))]
    along = np.sum(axis * shifted, axis=1) * (1 - cosine)
    rotated = shifted * cosine[:, None] + np.stack(turned, axis=1) * sine[:, None] + axis * along[:, None]
    image = rotated[:, :2] / rotated[:, 2:3]
    size = np.sum(image**2, axis=1)
    distortion = 1 + camera[:, 9] * size + camera[:, 10] * size**2
    projected = image * distortion[:, None] * camera[:, 6:7] + camera[:, 7:9]
    return np.concatenate([((projected - SEEN) * weight[:, None]).ravel(), 1 - weight**2])


def pattern() -> set[tuple[int, int]]:
    """Return the places of the Jacobian that may be other than 0: cameras, points and weights by observation."""
    places = set()
    for k, (camera, point) in enumerate(zip(CAMERA.tolist(), POINT.tolist(), strict=True)):
        weight = CAMERAS * 11 + POINTS * 3 + k
        for axis in range(2):
            of_camera = [camera * 11 + j for j in range(11) if j != 8 - axis]  # the other coordinate of the centre
            of_point = [CAMERAS * 11 + point * 3 + j for j in range(3)]
            places |= {(2 * k + axis, column) for column in [*of_camera, *of_point, weight]}
        places.add((2 * OBSERVATIONS + k, weight))
    return places


def test_the_jacobian_of_a_bundle_adjustment_is_taken_of_loops() -> None:
    kernel = sa.compile(sa.jacobian(residuals, sparse=True), UNKNOWNS)
    assert kernel.stats.strategy == "rolled"
    assert set(zip(kernel.sparsity.rows.tolist(), kernel.sparsity.columns.tolist(), strict=True)) == pattern()
    matrix = kernel.sparsity.scipy(kernel(UNKNOWNS))
    direction, weights = RANDOM.normal(size=UNKNOWNS.size), RANDOM.normal(size=3 * OBSERVATIONS)
    slopes = np.imag(residuals(UNKNOWNS + 1e-30j * direction)) / 1e-30
    np.testing.assert_allclose(matrix @ direction, slopes, rtol=1e-8, atol=1e-10 * np.abs(slopes).max())
    (pulled,) = (sa.vjp(residuals, UNKNOWNS)[1](weights),)
    np.testing.assert_allclose(matrix.T @ weights, np.ravel(pulled), rtol=1e-8, atol=1e-10 * np.abs(pulled).max())


def test_the_hessian_of_a_bundle_adjustment_is_taken_of_loops() -> None:
    def cost(unknowns: Any) -> Any:
        return np.sum(residuals(unknowns) ** 2) / 2

    kernel = sa.compile(sa.hessian(cost, sparse="full"), UNKNOWNS)
    assert kernel.stats.strategy == "rolled"
    matrix, direction = kernel.sparsity.scipy(kernel(UNKNOWNS)), RANDOM.normal(size=UNKNOWNS.size)
    expected = sa.hvp(cost, (UNKNOWNS,), (direction,))
    np.testing.assert_allclose(matrix @ direction, expected, rtol=1e-8, atol=1e-10 * np.abs(expected).max())
