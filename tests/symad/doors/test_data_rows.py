"""Models over rows of data: beside the same model written for all rows, with one compilation for any number of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.optimize import curve_fit, least_squares, minimize

import symad as sa
import symad.doors.data_rows as data_rows
from symad.errors import ArgumentError

TIMES = np.linspace(0.1, 3.0, 60)
DATA = 2.0 * np.exp(-0.7 * TIMES) + 0.01 * np.cos(9.0 * TIMES)
POINT = np.array([1.5, 0.4])


def residual(p: Any, t: Any, y: Any) -> Any:
    return p[0] * np.exp(-p[1] * t) - y


@pytest.fixture
def model() -> Any:
    return sa.rowwise(residual, np.ones(2), 0.0, 0.0)


@pytest.mark.parametrize("count", [1, 7, 60])
def test_values_and_derivatives_are_those_of_all_rows(model: Any, count: int) -> None:
    t, y = TIMES[:count], DATA[:count]
    everything = lambda p: residual(p, t, y)  # noqa: E731
    np.testing.assert_allclose(model.residuals(POINT, t, y), everything(POINT), rtol=1e-13, atol=1e-15)
    np.testing.assert_allclose(model.jacobian(POINT, t, y), sa.jacobian(everything)(POINT), rtol=1e-13)
    total = lambda p: np.sum(everything(p))  # noqa: E731
    assert model.value(POINT, t, y) == pytest.approx(total(POINT), rel=1e-12)
    np.testing.assert_allclose(model.gradient(POINT, t, y), sa.grad(total)(POINT), rtol=1e-12)
    np.testing.assert_allclose(model.hessian(POINT, t, y), sa.hessian(total)(POINT), rtol=1e-12, atol=1e-12)


def test_five_folds_compile_once(model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Any] = []
    compile_it = data_rows.compile
    monkeypatch.setattr(data_rows, "compile", lambda *arguments: made.append(arguments) or compile_it(*arguments))
    for fold in range(5):
        kept = np.arange(TIMES.size) % 5 != fold
        found = least_squares(model.residuals, [1.0, 1.0], jac=model.jacobian, args=(TIMES[kept], DATA[kept]))
        assert found.x == pytest.approx([2.0, 0.7], abs=0.02)
    assert len(made) == 2


def test_curve_fit_and_a_likelihood(model: Any) -> None:
    shape = sa.rowwise(lambda p, t: p[0] * np.exp(-p[1] * t), np.ones(2), 0.0)
    fitted, _ = curve_fit(
        lambda t, *p: shape.residuals(np.array(p), t), TIMES, DATA, p0=[1.0, 1.0],
        jac=lambda t, *p: shape.jacobian(np.array(p), t),
    )  # fmt: skip
    likelihood = sa.rowwise(lambda p, t, y: residual(p, t, y) ** 2 / 2, np.ones(2), 0.0, 0.0)
    found = minimize(
        likelihood.value, [1.0, 1.0], args=(TIMES, DATA), jac=likelihood.gradient, hess=likelihood.hessian,
        method="trust-exact",
    )  # fmt: skip
    assert found.x == pytest.approx(fitted, abs=1e-5)


def test_rows_of_vectors_and_several_results() -> None:
    points = np.random.default_rng(0).normal(size=(11, 3))
    model = sa.rowwise(lambda p, x: np.stack([p @ x, np.tanh(p[0] * x[1])]), np.ones(3), np.ones(3))
    p = np.array([0.3, -0.2, 0.7])
    expected = np.stack([points @ p, np.tanh(p[0] * points[:, 1])], axis=1)
    np.testing.assert_allclose(model.residuals(p, points), expected.ravel(), rtol=1e-12)
    assert model.jacobian(p, points).shape == (22, 3)


def test_second_derivatives_of_many_rows_are_added_in_parts(model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = model.hessian(POINT, TIMES, DATA)
    monkeypatch.setattr(data_rows, "CHUNK", 4 * 7)
    np.testing.assert_allclose(model.hessian(POINT, TIMES, DATA), whole, rtol=1e-13)
    assert model.hessian(POINT, TIMES[:0], DATA[:0]).tolist() == [[0, 0], [0, 0]]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: sa.rowwise(residual, 1.0, 0.0, 0.0), "parameters of shape .*give one vector"),
        (lambda: sa.rowwise(lambda p: p, np.ones(2)), "no example of a row"),
        (lambda: sa.rowwise(residual, POINT, 0.0, 0.0).residuals(POINT, TIMES), "1 arrays of data: a row has 2"),
        (lambda: sa.rowwise(residual, POINT, 0.0, 0.0).residuals(POINT, TIMES, DATA[:3]), "3 and 60 rows"),
        (lambda: sa.rowwise(residual, POINT, 0.0, 0.0).residuals(POINT, TIMES, DATA[:, None]), r"data 1 of .*60, 1"),
        (lambda: sa.rowwise(residual, POINT, 0.0, 0.0).residuals(np.ones(3), TIMES, DATA), r"\(3,\)"),
    ],
)  # fmt: skip
def test_what_is_refused(call: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        call()


def test_curve_fit_takes_a_model_and_its_jacobian() -> None:
    t = np.linspace(0.0, 3.0, 50)
    model = sa.rowwise(lambda p, t: p[0] * np.exp(-p[1] * t), np.ones(2), 0.0)
    found = curve_fit(model.residuals, t, 2.0 * np.exp(-0.7 * t), [1.0, 1.0], jac=model.jacobian)[0]
    assert found == pytest.approx([2.0, 0.7], rel=1e-6)
    plane = sa.rowwise(lambda p, u, v: p[0] * u + p[1] * v, np.ones(2), 0.0, 0.0)
    found = curve_fit(plane.residuals, np.stack([t, t**2]), 3.0 * t - t**2, [1.0, 1.0], jac=plane.jacobian)[0]
    assert found == pytest.approx([3.0, -1.0], rel=1e-6)
