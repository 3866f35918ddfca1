"""Quantities with units: pint carries them itself, everything else is refused by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import sympy as sp

import symad as sa
from codegen import lambdify


@pytest.fixture(params=["pint", "astropy"])
def units(request: pytest.FixtureRequest) -> Any:
    if request.param == "pint":
        pint = pytest.importorskip("pint", reason="pint is no part of the tests' environment")
        return pint.UnitRegistry()
    return pytest.importorskip("astropy.units", reason="astropy is no part of the tests' environment")


KERNEL = sa.compile(lambda a, b: a + b, 1.0, 1.0)
DECAY = sa.ode(lambda t, y, k: -k * y, [1.0], (1.0,))
CALLS: dict[str, Callable[[Any], Any]] = {
    "a kernel": lambda u: KERNEL(1 * u.km, 1 * u.m),
    "a batch": lambda u: KERNEL.batch(np.ones(2) * u.km, np.ones(2) * u.m),
    "a list": lambda u: KERNEL.batch([1 * u.km, 2 * u.km], 1.0),
    "derivative": lambda u: sa.derivative(lambda a: a * a)(3 * u.km),
    "grad": lambda u: sa.grad(lambda a: np.sum(a * a))(np.ones(2) * u.km),
    "jit": lambda u: sa.jit(lambda a: 2 * a)(3 * u.km),
    "a start": lambda u: sa.Problem(lambda z: np.sum(z**2)).minimize(np.ones(1) * u.km, solver="slsqp"),
    "a parameter": lambda u: sa.Problem(lambda z, a: np.sum((z - a) ** 2)).minimize(
        np.ones(1), 1 * u.km, solver="slsqp"
    ),
    "a parameter of an ODE": lambda u: sa.ode(lambda t, y, k: -k * y, [1.0], (1.0,)).solve((0.0, 1.0), 1 / u.s),
    "a state": lambda u: sa.ode(lambda t, y: -y, [1.0] * u.m),
    "times": lambda u: DECAY.solve((0.0, 3.0), times=np.ones(2) * u.s),
    "times of a solution": lambda u: DECAY.solution(np.arange(2.0) * u.s),
    "a span": lambda u: DECAY.solve([0.0, 3 * u.s]),
    "a tolerance": lambda u: DECAY.solve((0.0, 1.0), atol=1e-9 * u.m),
    "pieces": lambda u: sa.vmap(lambda a: 2 * a)(np.ones(2) * u.km),
    "what is scanned": lambda u: sa.scan(lambda c, v: (c * v, c), 1.0, np.ones(2) * u.km),
    "a comparison": lambda u: sa.compare(lambda a: a * a, 3 * u.km),
    "data": lambda u: sa.rowwise(lambda p, t: p[0] * t, np.ones(1), 0.0).residuals(np.ones(1), np.ones(3) * u.s),
}


@pytest.mark.parametrize("name", CALLS)
def test_quantities_are_refused_by_name(units: Any, name: str) -> None:
    with pytest.raises(sa.errors.ArgumentError, match=r"of type (Plain)?Quantity: .* would be lost"):
        CALLS[name](units)


def test_results_are_not_written_into_quantities_nor_carried_as_numbers() -> None:
    u = pytest.importorskip("astropy.units", reason="astropy is no part of the tests' environment")
    with pytest.raises(sa.errors.ArgumentError, match="out: a value of type Quantity"):
        sa.compile(lambda a: 2 * a, np.ones(2))(np.ones(2), out=np.ones(2) * u.km)
    with pytest.raises(sa.errors.ArgumentError, match="init holds a value of type Quantity"):
        sa.scan(lambda c, v: (c * v, c), 3 * u.km, np.ones(2))


def test_quantities_among_data_keep_their_units() -> None:
    pint = pytest.importorskip("pint", reason="pint is no part of the tests' environment")
    u = pint.UnitRegistry()
    lengths = np.array([1.0, 2.0]) * u.km

    def attenuation(p):
        total = np.sum(np.exp(-p * lengths / (1000 * u.m))).m_as("") + (lengths * p + 1 * u.m).sum().m_as("m")
        return total + np.sum(p * (2 * u.minute)).to_base_units().magnitude

    assert sa.compile(attenuation, 0.7)(0.7) == pytest.approx(attenuation(0.7), rel=1e-15)
    slope = (attenuation(0.7 + 1e-6) - attenuation(0.7 - 1e-6)) / 2e-6
    assert sa.derivative(attenuation)(0.7) == pytest.approx(slope, rel=1e-8)
    with pytest.raises(pint.DimensionalityError):
        sa.derivative(lambda p: (p * u.km + 3 * u.s).magnitude)(0.7)


def test_quantities_of_astropy_among_data_are_refused() -> None:
    u = pytest.importorskip("astropy.units", reason="astropy is no part of the tests' environment")
    lengths = np.array([1.0, 2.0]) * u.km
    for f in (
        lambda p: np.sum(p * lengths).value,
        lambda p: np.sum(lengths * p).value,
        lambda p: np.where(p > 0, p, lengths),
    ):
        with pytest.raises(sa.errors.TraceError, match="Quantity"):
            sa.derivative(f)(0.7)


def test_lambdified_functions_compute_with_units(units: Any) -> None:
    x, y = sp.symbols("x y")
    total = lambdify([x, y], x + y)(1 * units.km, 1 * units.m)
    assert float(total.to(units.m) / (1 * units.m)) == pytest.approx(1001.0)
