"""verify over a box: which boxes there are, which points are tried, for how long; what is refused, by name."""

from __future__ import annotations

import sys

import numpy as np
import pytest
import sympy as sp

import symad as sa
from symad.classroom.verification import balls_functions
from symad.classroom.verification.points import (
    adversarial_points,
    box_of,
    edge_points,
    floats,
    neighbours,
    ordinals,
    random_points,
)
from symad.errors import ArgumentError

X = sp.Symbol("x", real=True)


@pytest.mark.parametrize(
    ("box", "message"),
    [
        ((0, 1), "takes 2 arguments"),
        ([(0, 1)], "takes 2 arguments"),
        ([(0, 1), (0, 1), (0, 1)], "takes 2 arguments"),
        ([(0, 1, 2), (0, 1)], "takes 2 arguments"),
        ([(0, 1), 3], "takes 2 arguments"),
        ([(0, [1, 2, 3]), (0, 1)], "not numbers of the shape"),
        ([(0, "a"), (0, 1)], "not numbers of the shape"),
        ([(0, 1), (0, np.nan)], "nan"),
        ([(0, 1), (1, 0)], "a box from 1 to 0"),
        ([({"a": 0.0}, 1), (1, 2)], "the lower bound of argument 0"),
        ("ab", "takes 2 arguments"),
    ],
    ids=range(11),
)
def test_boxes_that_do_not_fit_are_refused(box, message):
    kernel = sa.compile(lambda x, y: x * y, np.ones(2), 1.0)
    with pytest.raises(ArgumentError, match=message):
        sa.verify(kernel, box=box, points=5)


def test_a_container_of_another_structure_is_refused():
    kernel = sa.compile(lambda p: p["a"], {"a": 1.0})
    with pytest.raises(ArgumentError, match="of structure"):
        sa.verify(kernel, box=({"b": 0.0}, {"a": 1.0}), points=5)
    assert sa.verify(kernel, box=({"a": 0.0}, {"a": 1.0}), points=5).worst_ulp == 0


def test_wrong_calls_are_refused():
    kernel = sa.compile(lambda x: x, 1.0)
    with pytest.raises(ArgumentError, match="a point and a box"):
        sa.verify(kernel, 1.0, box=(0, 1))
    with pytest.raises(ArgumentError, match="points=0"):
        sa.verify(kernel, box=(0, 1), points=0)
    with pytest.raises(ArgumentError, match="seed=-1"):
        sa.verify(kernel, box=(0, 1), seed=-1)
    with pytest.raises(ArgumentError, match="max_seconds"):
        sa.verify(kernel, box=(0, 1), max_seconds=0)
    with pytest.raises(ArgumentError, match="1 results against 2"):
        sa.verify(kernel, box=(0, 1), against=lambda x: (x, x))


def test_the_extra_is_named_where_it_is_missing(monkeypatch):
    kernel = sa.compile(lambda x: x * x, 1.0)
    balls_functions.flint.cache_clear()
    monkeypatch.setitem(sys.modules, "flint", None)
    with pytest.raises(ArgumentError, match=r"pip install 'symad\[rigorous\]'"):
        sa.verify(kernel, 1.0, rigorous=True)
    assert sa.verify(kernel, box=(0, 1), points=10).worst_ulp < 1  # the rest needs no extra


# ---- points


def test_points_are_inside_deterministic_and_of_all_kinds():
    kernel = sa.compile(lambda x: np.where(x[0] > x[1], x[0], x[1]) / (x[2] - 0.25), np.ones(3))
    box = box_of(kernel, (np.array([-1.0, -1.0, 0.0]), 2.0))

    def made(seed):
        random = np.random.default_rng(seed)
        kinds = [adversarial_points(box, 300, random), random_points(box, 100, random)]
        kinds += [edge_points(kernel, box, 60, random), neighbours(box, np.array([0.0, 1.0, 2.0]), 50, random)]
        return kinds

    first, second, other = made(0), made(0), made(1)
    for u, v in zip(first, second, strict=True):
        np.testing.assert_array_equal(u, v)
        assert np.all((u >= box.low) & (u <= box.high))
    assert not np.array_equal(first[0][:50], other[0][:50])
    special, _, edges, near = first
    assert np.any((special == 0) & np.signbit(special))
    assert np.any((special != 0) & (abs(special) < 2.3e-308))
    assert np.any(special[:, 0] == special[:, 1])
    assert {tuple(corner) for corner in np.ndindex(2, 2, 2)} <= {
        tuple((point == box.high).astype(int)) for point in special if np.all((point == box.low) | (point == box.high))
    }
    gap = abs(ordinals(edges[:, 0].copy()) - ordinals(edges[:, 1].copy()))
    assert np.any(gap <= 1)  # both sides of x[0] > x[1]
    assert np.any(abs(edges[:, 2] - 0.25) < 1e-15)  # and of the pole
    assert len(near) > 10


def test_the_order_of_floats():
    values = np.array([-np.inf, -1.0, -5e-324, 0.0, 5e-324, 1.0, np.nextafter(1.0, 2), 1.7976931348623157e308])
    places = ordinals(values)
    assert np.all(np.diff(places) > 0)
    np.testing.assert_array_equal(floats(places), values)
    assert places[6] - places[5] == 1


def test_the_same_seed_gives_the_same_result_and_no_point_leaves_the_box():
    kernel = sa.compile(lambda x: np.sin(x[0]) * x[1], np.ones(2))
    first, second = (sa.verify(kernel, box=([0.5, -3], [0.75, 8]), points=150, seed=3) for _ in range(2))
    assert first.statement == second.statement
    assert first.rows[0].value == second.rows[0].value
    assert 0.5 <= first.worst_point[0][0] <= 0.75
    assert first.points == 150
    fixed = sa.verify(kernel, box=([0.5, 2], [0.5, 2]), points=50)
    assert fixed.points == 1  # there is no other
    assert fixed.complete


def test_time_is_bounded_and_the_report_says_so():
    kernel = sa.compile(sa.hessian(lambda x: np.sin(x @ x) * np.exp(x[0])), np.ones(6))
    found = sa.verify(kernel, box=(-1, 1), points=10**5, max_seconds=0.05)
    assert 1 <= found.points < 10**5
    assert not found.complete
    assert "time was up" in found.statement
