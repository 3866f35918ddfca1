"""`Rotation` where angles are not unique, and at the rotation by nothing."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import symad as sa

FOLDED = [
    ("xyz", [0.3, np.pi / 2, 0.2]), ("XYZ", [0.3, -np.pi / 2, 0.2]), ("YXZ", [0.3, np.pi / 2, 0.2]),
    ("ZXZ", [0.3, 0.0, 0.2]), ("zxz", [0.3, np.pi, 0.2]), ("XYX", [0.3, np.pi, 0.2]),
]  # fmt: skip


@pytest.mark.filterwarnings("ignore:Gimbal lock")
@pytest.mark.parametrize(("axes", "angles"), FOLDED, ids=lambda value: str(value)[:3])
def test_angles_that_are_not_unique_are_scipys(axes, angles):
    vector = Rotation.from_euler(axes, angles).as_rotvec()

    def again(v):
        return Rotation.from_rotvec(v).as_euler(axes)

    np.testing.assert_allclose(sa.compile(again, vector)(vector), again(vector), atol=1e-7)


def test_derivatives_at_the_rotation_by_nothing():
    """exp(K(v)) y = y + v x y + v x (v x y)/2 + ..."""
    y = np.array([0.3, -0.7, 0.5])

    def turned(v):
        return Rotation.from_rotvec(v).apply(y)

    np.testing.assert_allclose(sa.jacobian(turned)(np.zeros(3)), np.cross(np.eye(3), y).T, atol=1e-15)
    v = np.array([1.0, 2.0, -1.0])
    second = sa.jvp(lambda s: sa.jvp(lambda t: turned(t * v), (s,), (1.0,))[1], (0.0,), (1.0,))[1]
    np.testing.assert_allclose(second, np.cross(v, np.cross(v, y)), atol=1e-13)
    back = sa.jacobian(lambda v: Rotation.from_rotvec(v).as_rotvec())
    for point in (np.zeros(3), 1e-4 * v, 1e-3 * v, v):
        np.testing.assert_allclose(back(point), np.eye(3), atol=1e-12)


def test_a_matrix_is_made_orthogonal():
    """As SciPy: the nearest orthogonal matrix, whose derivative ignores what stretches."""
    value, slope = sa.jvp(lambda s: Rotation.from_matrix(s * np.eye(3)).as_matrix(), (1.0,), (1.0,))
    np.testing.assert_allclose(value, np.eye(3), atol=1e-15)
    np.testing.assert_allclose(slope, np.zeros((3, 3)), atol=1e-15)
