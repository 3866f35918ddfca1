"""A table of doors: for each tool the calls that its users make most, with symad's functions in the place of theirs.

A row is an expected value, or "refused", and a call; `python -m tests.support.doors` prints what each row gives.
"""

from __future__ import annotations

import importlib
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import sympy as sp
from scipy import integrate, optimize

import codegen
import symad as sa
from tests.support.solver_doors import MORE

Row = tuple[Any, Callable[[Any], Any]]

T, A, B = sp.symbols("t a b")
TIMES = np.linspace(0.0, 3.0, 30)
DATA = 2 * np.exp(-0.7 * TIMES)
FIT = [2.0, 0.7]
X = np.array([0.5, 1.5])


def decay(t: Any, a: Any, b: Any) -> Any:
    return a * np.exp(-b * t)


def misfit(a: Any, b: Any) -> Any:
    return np.sum((DATA - decay(TIMES, a, b)) ** 2)


def energy(x: Any) -> Any:
    return np.sum(np.sin(x) * x)


def squares(x: Any) -> Any:
    return np.sum((x - 1) ** 2)


LAMBDIFIED = codegen.lambdify([T, A, B], A * sp.exp(-B * T))
JITTED, GUFUNC = sa.jit(decay), sa.compile(decay, 1.0, 1.0, 1.0).gufunc()
ENERGY, SLOPE = sa.compile(energy, X), sa.compile(sa.grad(energy), X)
SQUARES, DESCENT = sa.compile(squares, X), sa.compile(sa.grad(squares), X)
RATE = sa.compile(lambda v, t: v * t, 1.0, 1.0)
GRADIENT = np.sin(X) + X * np.cos(X)


def minuit(m: Any, f: Any, **more: Any) -> Any:
    made = m.Minuit(f, a=1.0, b=1.0, **more)
    made.migrad()
    return list(made.values)


def sent(m: Any, value: Any) -> Any:
    return m.loads(m.dumps(value))


SCIPY: dict[str, Row] = {
    "curve_fit of lambdify, without p0": (FIT, lambda m: optimize.curve_fit(LAMBDIFIED, TIMES, DATA)[0]),
    "curve_fit of jit with bounds": (FIT, lambda m: optimize.curve_fit(JITTED, TIMES, DATA, bounds=(0, 5))[0]),
    "curve_fit of a gufunc": (FIT, lambda m: optimize.curve_fit(GUFUNC, TIMES, DATA)[0]),
    "minimize": ([1, 1], lambda m: optimize.minimize(SQUARES, X, jac=DESCENT).x),
    "minimize, value and gradient": (
        [1, 1], lambda m: optimize.minimize(sa.compile(sa.value_and_grad(squares), X), X, jac=True).x,
    ),
    "root": (
        [2**0.5] * 2,
        lambda m: optimize.root(sa.jit(lambda x: x * x - 2), X, jac=sa.jit(sa.jacobian(lambda x: x * x - 2))).x,
    ),
    "brentq": (2**0.5, lambda m: optimize.brentq(sa.compile(lambda x: x * x - 2, 1.0), 0, 2)),
    "check_grad": (0.0, lambda m: optimize.check_grad(ENERGY, SLOPE, X)),
    "quad": (0.5, lambda m: integrate.quad(sa.compile(lambda x: x, 1.0).low_level_callable(), 0, 1)[0]),
    "solve_ivp": (
        np.exp(-1),
        lambda m: integrate.solve_ivp(sa.compile(lambda t, y: -y, 0.0, np.ones(1)), (0, 1), [1.0], rtol=1e-9).y[0, -1],
    ),
}  # fmt: skip
SENT: dict[str, Row] = {
    "a kernel": (ENERGY(X), lambda m: sent(m, ENERGY)(X)),
    "lambdify": (LAMBDIFIED(1.0, 2.0, 3.0), lambda m: sent(m, LAMBDIFIED)(1.0, 2.0, 3.0)),
    "a gufunc": (GUFUNC(TIMES, 2.0, 0.7), lambda m: sent(m, GUFUNC)(TIMES, 2.0, 0.7)),
    "from_sympy": (4.0, lambda m: sent(m, sa.from_sympy([T], T**2))(2.0)),
    "a problem": ([1, 1], lambda m: sent(m, sa.Problem(squares)).minimize(X, solver="bfgs").x),
    "a solution": ([1, 1], lambda m: sent(m, sa.Problem(squares).minimize(X, solver="bfgs")).x),
    "rows": ([2.0], lambda m: sent(m, sa.rowwise(energy_of_row, np.ones(1), 0.0)).residuals([1.0], [2.0])),
}


def energy_of_row(p: Any, t: Any) -> Any:
    return p[0] * t


DOORS: dict[str, dict[str, Row]] = {
    "scipy": SCIPY,
    "pickle": SENT,
    "cloudpickle": SENT
    | {
        "grad of a lambda": (2 * X, lambda m: sent(m, sa.grad(lambda x: np.sum(x**2)))(X)),
        "jit of a lambda": (4.0, lambda m: sent(m, sa.jit(lambda x: x**2))(2.0)),
        "a system": (
            np.exp(-1), lambda m: sent(m, sa.ode(lambda t, y, k: -k * y, [1.0], (1.0,))).solve((0, 1)).y[0, -1],
        ),
    },
    "lmfit": {
        name: (FIT, lambda m, f=f: list(
            m.Model(f, independent_vars=["t"]).fit(DATA, t=TIMES, a=1.0, b=1.0).best_values.values()
        ))
        for name, f in {"lambdify": LAMBDIFIED, "jit": JITTED, "gufunc": GUFUNC}.items()
    },
    "iminuit": {
        "a kernel": (FIT, lambda m: minuit(m, sa.compile(misfit, 1.0, 1.0))),
        "jit and its gradient": (FIT, lambda m: minuit(m, sa.jit(misfit), grad=sa.jit(sa.grad(misfit, (0, 1))))),
        "names": (["a", "b"], lambda m: list(m.Minuit(sa.compile(misfit, 1.0, 1.0), 1.0, 1.0).parameters)),
    },
    "pandas": {
        "alignment": (200.0, lambda m: sa.derivative(
            lambda p: ((p * m.Series([1.0, 2, 3, 4], list("abcd"))) * m.Series([10.0, 20, 30, 40], list("dcba"))).sum()
        )(0.7)),
        "a Series of derivatives": (["b", "a"], lambda m: list(sa.grad(np.sum)(m.Series([1.0, 2], ["b", "a"])).index)),
        "a fit on a sorted frame": (FIT, lambda m: fitted(m.DataFrame({"t": TIMES, "y": DATA}))),
        "apply": (7.0, lambda m: m.Series([1.0, 2.0]).apply(sa.compile(lambda x: 2 * x + 0.5, 1.0)).sum()),
        "labels into a kernel": ("refused", lambda m: ENERGY(m.Series(X))),
    },
    "xarray": {
        "curvefit": (FIT, lambda m: m.DataArray(DATA, dims="t", coords={"t": TIMES}).curvefit(
            "t", LAMBDIFIED).curvefit_coefficients.values),
        "dimensions": (90.0, lambda m: sa.derivative(
            lambda p: ((p * m.DataArray([1.0, 2], dims="i")) * m.DataArray([10.0, 20], dims="j")).sum())(0.7)),
        "apply_ufunc": ([ENERGY(X)] * 2, lambda m: m.apply_ufunc(
            ENERGY.gufunc(), m.DataArray([X, X], dims=("i", "j")), input_core_dims=[["j"]]).values),
        "labels into a kernel": ("refused", lambda m: ENERGY(m.DataArray(X))),
    },
    "pint": {
        "wraps": (600.0, lambda u: u.wraps("m", ("m/s", "s"))(RATE)(36 * u.km / u.hour, 1 * u.minute).magnitude),
        "lambdify": (1.001, lambda u: codegen.lambdify([A, B], A + B)(1.0 * u.km, 1.0 * u.m).magnitude),
        "in a closure": (3000.0, lambda u: sa.derivative(lambda p: (p * 3.0 * u.km).m_as("m"))(2.0)),
        "into a kernel": ("refused", lambda u: RATE(1.0 * u.m, 1.0)),
    },
    "astropy.units": {
        "lambdify": (1.001, lambda m: codegen.lambdify([A, B], A + B)(1.0 * m.km, 1.0 * m.m).value),
        "its value in a closure": (3000.0, lambda m: sa.derivative(lambda p: p * (3.0 * m.km).to_value(m.m))(2.0)),
        "in a closure": ("refused", lambda m: sa.derivative(lambda p: (p * 3.0 * m.km).value)(2.0)),
        "into a kernel": ("refused", lambda m: RATE(1.0 * m.m, 1.0)),
    },
    "joblib": {
        "Parallel": ([2 * X] * 2, lambda m: m.Parallel(2)(m.delayed(sa.grad(lambda x: np.sum(x**2)))(X) for _ in "ab")),
        "hash": (True, lambda m: m.hash(ENERGY) == m.hash(sent(pickle, ENERGY))),
    },
    "dask.array": {
        "map_blocks": (np.full(4, 2.0), lambda m: m.map_blocks(
            codegen.lambdify([A, B], A * B), m.ones(4, chunks=2), 2 * m.ones(4, chunks=2)).compute()),
        "apply_gufunc": ([ENERGY(X)] * 4, lambda m: (lambda g: m.apply_gufunc(
            g, g.signature, m.from_array(np.tile(X, (4, 1)), chunks=(2, 2)), **g.sizes).compute())(ENERGY.gufunc())),
        "into a kernel": ("refused", lambda m: ENERGY.batch(m.ones((4, 2), chunks=2))),
    },
    "numba": {"njit": (ENERGY(X), lambda m: m.njit(lambda kernel, x: kernel(x))(ENERGY, X))},
    "jax": {
        "jit of grad": (GRADIENT, lambda m: with_doubles(m, lambda: m.jit(m.grad(sa.to_jax(energy, X)))(X))),
        "vmap": ([ENERGY(X)] * 3, lambda m: with_doubles(m, lambda: m.vmap(sa.to_jax(energy, X))(np.tile(X, (3, 1))))),
        "an array in a closure": (3.0, lambda m: sa.derivative(lambda p: np.sum(p * m.numpy.array([1.0, 2.0])))(0.7)),
        "complex numbers": ("refused", lambda m: sa.to_jax(energy, X)(X * 1j)),
        "symad inside of jit": ("refused", lambda m: m.jit(sa.grad(energy))(X)),
    },
    "torch": {
        "backward": (GRADIENT, lambda m: backward(m.tensor(X, requires_grad=True))),
        "containers": (2.0, lambda m: sa.to_torch(lambda p: p["a"] * p["b"], {"a": 1.0, "b": 1.0})(
            {"a": 1.0, "b": m.tensor(2.0, dtype=m.float64)}).item()),
        "slopes into a kernel": ("refused", lambda m: ENERGY(m.tensor(X, requires_grad=True))),
    },
}  # fmt: skip


def fitted(frame: Any) -> Any:
    other = frame.sort_values("y")
    problem = sa.Problem(lambda p: ((other["y"] - p[0] * np.exp(-p[1] * frame["t"])) ** 2).sum())
    return problem.minimize(np.ones(2), solver="bfgs").x


def with_doubles(jax: Any, run: Callable[[], Any]) -> Any:
    with jax.enable_x64(True):
        return run()


def backward(x: Any) -> Any:
    sa.to_torch(energy, X)(x).backward()
    return x.grad.numpy()


def outcome(tool: str, name: str) -> str:
    """Return "works", "refused" or what is wrong."""
    expected, call = DOORS[tool][name]
    module: Any = importlib.import_module(tool)
    try:
        found = call(module.UnitRegistry() if tool == "pint" else module)
    except sa.WorkbenchError as error:
        return "refused" if isinstance(expected, str) else f"refused: {error}"
    if isinstance(expected, str):
        return f"{found!r} in place of a refusal"
    texts = isinstance(expected, list) and isinstance(expected[0], str)
    same = found == expected if texts else np.allclose(found, expected, rtol=1e-3, atol=1e-6)
    return "works" if same else f"{found!r} in place of {expected!r}"


for tool, rows in MORE.items():
    DOORS[tool] = DOORS.get(tool, {}) | rows
ROWS = [(tool, name) for tool, rows in DOORS.items() for name in rows]

if __name__ == "__main__":
    for row in ROWS:
        try:
            print(*row, outcome(*row), sep=" | ", flush=True)
        except Exception as error:
            print(*row, f"{type(error).__name__}: {error}", sep=" | ", flush=True)
