"""Many directions at once in numbers, against the pushforward one by one."""

import numpy as np
import pytest

import symad as sa
from symad.derivatives.level import open_level
from symad.derivatives.modes import derivative_of
from symad.transforms.jacobians import images
from tests.support.cases import CASES


def guarded(x):
    """On the branch not taken, the derivative of the logarithm is infinite."""
    return np.stack([np.where(x[0] > 0, np.log(x[0]), x[1]), np.maximum(x[0], x[1]), x[1], np.abs(x[1]) * 0 + 2])


FUNCTIONS = [(lambda x, f=case.function: np.stack([f(x)]), np.array(case.point)) for case in CASES]


@pytest.mark.parametrize(("f", "x"), [*FUNCTIONS, (guarded, np.array([0.0, -1.0])), (guarded, np.array([2.0, 1.0]))])
def test_all_directions_at_once_are_the_pushforwards_one_by_one(f, x):
    directions = np.random.default_rng(3).normal(size=(x.size, 5))
    with open_level([x]) as level:
        found = images(level, derivative_of(level, level.call(f)), directions)
    right = np.stack([sa.jvp(f, (x,), (direction,))[1] for direction in directions.T], axis=1)
    assert np.isfinite(found).all()
    assert found == pytest.approx(right, rel=1e-14, abs=1e-14)
