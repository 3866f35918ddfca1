"""sympy.physics.mechanics: a double pendulum on a cart, by Kane and by Lagrange, against SymPy's derivatives."""

from __future__ import annotations

import importlib.util
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sympy as sp
from sympy.physics.mechanics import LagrangesMethod, ReferenceFrame, dynamicsymbols

import codegen
import symad as sa

EXAMPLE = Path(__file__).parents[3] / "examples" / "cart_double_pendulum.py"
POINTS = [np.random.default_rng(seed).uniform(0.5, 1.5, 13) for seed in range(3)]


@cache
def example() -> Any:
    """Return the module of the example."""
    spec = importlib.util.spec_from_file_location("cart_double_pendulum", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@cache
def kane() -> Any:
    """Return coordinates, speeds, parameters, the force, mass matrix and forcing by Kane's method."""
    return example().equations_of_motion()


@cache
def lagrange() -> Any:
    """Return the same by Lagrange's method, where the speeds are Derivative(q(t), t)."""
    q = dynamicsymbols("x a b")
    speeds = [coordinate.diff() for coordinate in q]
    masses, lengths, g, force = sp.symbols("m:3"), sp.symbols("l:2"), sp.Symbol("g"), dynamicsymbols("F")
    x, y = [q[0]], [sp.S.Zero]
    for angle, length in zip(q[1:], lengths, strict=True):
        x.append(x[-1] + length * sp.sin(angle))
        y.append(y[-1] - length * sp.cos(angle))
    time = dynamicsymbols._t
    kinetic = sum(m * (h.diff(time) ** 2 + v.diff(time) ** 2) / 2 for m, h, v in zip(masses, x, y, strict=True))
    potential = sum(m * g * v for m, v in zip(masses, y, strict=True))
    method = LagrangesMethod(kinetic - potential + force * q[0], q, frame=ReferenceFrame("N"))
    method.form_lagranges_equations()
    return q, speeds, [*masses, *lengths, g], force, method.mass_matrix, method.forcing


def formula_of(system: Any) -> Any:
    q, u, parameters, force, mass, forcing = system
    return sa.from_sympy([sp.Array(q), sp.Array(u), sp.Array(parameters), force], [mass, forcing])


def split(flat: Any) -> Any:
    return flat[:3], flat[3:6], flat[6:12], flat[12]


@cache
def by_sympy(system: Any, matrix: int) -> Any:
    """Return functions of a matrix and of its derivatives in q, u and the parameters, by diff and lambdify."""
    q, u, parameters, force, *matrices = system()
    arguments, formula = [*q, *u, *parameters, force], matrices[matrix]
    slopes = [[sp.lambdify(arguments, formula.diff(s)) for s in part] for part in (q, u, parameters)]
    return sp.lambdify(arguments, formula), slopes


def at_a_point(functions: Any, flat: Any) -> Any:
    value, slopes = functions
    parts = [np.array([slope(*flat) for slope in part], dtype=float) for part in slopes]
    return np.array(value(*flat), dtype=float), [np.moveaxis(part, 0, -1) for part in parts]


@cache
def kernels(system: Any) -> Any:
    """Return kernels of a mass matrix and forcing with their Jacobians, by each mode."""
    formula = formula_of(system())
    both = [sa.jacobian(formula, argnums=(0, 1, 2), mode=mode) for mode in ("fwd", "rev")]
    return [sa.compile(lambda *point, f=f: (formula(*point), f(*point)), *split(POINTS[0])) for f in both]


@pytest.mark.parametrize("flat", POINTS, ids=range(3))
@pytest.mark.parametrize("system", [kane, lagrange])
def test_mass_matrix_forcing_and_jacobians(system, flat):
    wanted = [at_a_point(by_sympy(system, matrix), flat) for matrix in range(2)]
    for kernel in kernels(system):
        values, derivatives = kernel(*split(flat))
        for value, row, (wanted_value, wanted_row) in zip(values, derivatives, wanted, strict=True):
            np.testing.assert_allclose(value, wanted_value, rtol=1e-12, atol=1e-13)
            for found, expected in zip(row, wanted_row, strict=True):
                np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


def test_both_methods_describe_one_pendulum():
    """u(t) and Derivative(q(t), t) are inputs alike, so the accelerations agree."""
    by_kane, by_lagrange = formula_of(kane()), formula_of(lagrange())
    for flat in POINTS:
        mass, forcing = by_lagrange(*split(flat))
        full_mass, full_forcing = by_kane(*split(flat))
        accelerations = np.linalg.solve(mass, forcing)[:, 0]
        np.testing.assert_allclose(np.linalg.solve(full_mass, full_forcing)[3:, 0], accelerations, rtol=1e-11)


def test_the_energy_is_kept_along_the_motion():
    """A third route: dE/dt = 0 without a force, with E written down from the positions."""
    formula, energy = formula_of(kane()), example().energy

    def rate(state: Any, parameters: Any) -> Any:
        mass, forcing = formula(state[:3], state[3:], parameters, 0.0)
        return np.linalg.solve(mass, forcing)[:, 0]

    for flat in POINTS:
        state, parameters = flat[:6], flat[6:12]
        along = sa.jvp(lambda s, p=parameters: energy(s[:3], s[3:], p), (state,), (rate(state, parameters),))[1]
        assert abs(along) < 1e-11 * energy(state[:3], state[3:], parameters)


def test_the_kinetic_energy_has_the_mass_matrix_as_hessian():
    formula, energy = formula_of(lagrange()), example().energy
    q, u, parameters, force = split(POINTS[0])
    found = sa.hessian(energy, argnums=1)(q, u, parameters)
    np.testing.assert_allclose(found, formula(q, u, parameters, force)[0], rtol=1e-12)


def test_second_derivatives_against_sympy():
    q, u, parameters, force, _, forcing = kane()
    formula = sa.from_sympy([sp.Array(q), sp.Array(u), sp.Array(parameters), force], forcing[4])
    q0, u0, p0, f0 = split(POINTS[1])
    found = sa.compile(sa.hessian(formula), q0, u0, p0, f0)(q0, u0, p0, f0)
    arguments = [*q, *u, *parameters, force]
    wanted = sp.lambdify(arguments, sp.hessian(forcing[4], q))(*POINTS[1])
    np.testing.assert_allclose(found, wanted, rtol=1e-11, atol=1e-12)


def test_codegen_alone_takes_functions_of_time():
    q, u, parameters, force, mass, forcing = kane()
    f = codegen.lambdify([q, u, parameters, force], [mass, forcing])
    for flat in POINTS:
        for found, matrix in zip(f(*map(np.atleast_1d, split(flat)[:3]), flat[12]), (mass, forcing), strict=True):
            wanted = sp.lambdify([*q, *u, *parameters, force], matrix)(*flat)
            np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-13)


def test_a_forgotten_function_of_time_is_named():
    q, u, parameters, _, _, forcing = kane()
    with pytest.raises(sa.errors.ArgumentError, match=r"F\(t\) in the expression.*add it to the arguments"):
        sa.from_sympy([q, u, parameters], forcing)
    with pytest.raises(sa.errors.ArgumentError, match=r"Derivative\(q0\(t\), t\) in the expression"):
        sa.from_sympy([q, u, parameters], q[0].diff() * u[1])
