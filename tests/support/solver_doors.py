"""Rows for the table of doors: solvers, CasADi, SymPy, PyTensor, pydy, and more calls of other tools' users."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from typing import Any

import numpy as np
import sympy as sp
from scipy import integrate, optimize

import codegen
import symad as sa

Row = tuple[Any, Callable[[Any], Any]]

T, A, B = sp.symbols("t a b")
TIMES = np.linspace(0.0, 3.0, 30)
DATA = 2 * np.exp(-0.7 * TIMES)
X = np.array([0.5, 1.5])
LAMBDIFIED = codegen.lambdify([T, A, B], A * sp.exp(-B * T))


def rest(p: Any) -> Any:
    return p[0] * np.exp(-p[1] * TIMES) - DATA


def valley(x: Any) -> Any:
    return (1 - x[0]) ** 2 + 100 * (x[1] - x[0] ** 2) ** 2


def energy(x: Any) -> Any:
    return np.sum(np.sin(x) * x)


GRADIENT = np.sin(X) + X * np.cos(X)
REST, SLOPES = sa.compile(rest, X), sa.compile(sa.jacobian(rest), X)
VALLEY, DESCENT = sa.compile(valley, X), sa.compile(sa.grad(valley), X)
BENT = sa.compile(sa.hessian(valley), X)
RATES, OF_STATE = (sa.compile(g, 0.0, X) for g in (lambda t, y: -y * t, sa.jacobian(lambda t, y: -y * t, 1)))
COUPLED = [np.exp(-0.5), 2 * np.exp(-0.5)]


def problem() -> sa.Problem:
    return sa.Problem(valley, lambda x: [x[0] + x[1]], bounds=(-2, 2), constraint_bounds=(None, 1.5))


BEST = problem().minimize(X, solver="slsqp").x


def flow(integrator: Any, method: str) -> Any:
    return integrator(RATES, (0, 1), [1.0, 2.0], method=method, jac=OF_STATE, rtol=1e-8, atol=1e-9).y[:, -1]


def exported(casadi: Any, use: Callable[[Any, Any], Any]) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        made = sa.export(energy, folder, X, abi="casadi", name="energy")
        f, x = casadi.external("energy", str(made.files["library"])), casadi.MX.sym("x", 2)
        return np.ravel(casadi.Function("g", [x], [use(x, f(x))])(X))


def nlpsol(casadi: Any, **options: Any) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        library = str(problem().export(folder, X, abi="casadi").files["library"])
        solver = casadi.nlpsol("solver", "ipopt", library, {"ipopt.print_level": 0, "print_time": 0, **options})
        return np.ravel(solver(x0=X, lbx=-2, ubx=2, lbg=-np.inf, ubg=1.5)["x"])


def same(expression: Any, symbols: Any, *points: Any, **keywords: Any) -> Any:
    """Return the largest difference of two functions of an expression."""
    ours, theirs = codegen.lambdify(symbols, expression, **keywords), sp.lambdify(symbols, expression, **keywords)
    return np.max(np.abs(np.subtract(ours(*points), theirs(*points))))


def tensor_value(pytensor: Any, use: Callable[[Any, Any], Any]) -> Any:
    x = pytensor.tensor.dvector("x")
    return pytensor.function([x], use(x, sa.to_pytensor(energy, X)(x)))(X)


MORE: dict[str, dict[str, Row]] = {
    "scipy": {
        "least_squares": ([2.0, 0.7], lambda m: optimize.least_squares(REST, [1.0, 1.0], jac=SLOPES).x),
        "least_squares with bounds": (
            [2.0, 0.7],
            lambda m: optimize.least_squares(REST, [1.0, 1.0], jac=SLOPES, bounds=(0, 3), loss="soft_l1").x,
        ),
        "minimize by trust-exact": (
            [1, 1],
            lambda m: optimize.minimize(VALLEY, X, jac=DESCENT, hess=BENT, method="trust-exact").x,
        ),
        "minimize with constraints": (
            BEST,
            lambda m: (
                optimize.minimize(
                    VALLEY,
                    X,
                    jac=DESCENT,
                    method="SLSQP",
                    bounds=[(-2, 2)] * 2,
                    constraints={
                        "type": "ineq",
                        "fun": sa.jit(lambda x: 1.5 - x[0] - x[1]),
                        "jac": sa.jit(sa.grad(lambda x: 1.5 - x[0] - x[1])),
                    },
                ).x
            ),
        ),
        "newton": (
            2**0.5,
            lambda m: optimize.newton(
                sa.compile(lambda x: x * x - 2, 1.0), 1.0, sa.compile(sa.derivative(lambda x: x * x - 2), 1.0)
            ),
        ),
        "fsolve": (X**0.5, lambda m: optimize.fsolve(sa.jit(lambda x: x * x - X), [1.0, 1.0])),
        "solve_ivp, implicit": (COUPLED, lambda m: flow(integrate.solve_ivp, "Radau")),
        "solve_ivp, LSODA": (COUPLED, lambda m: flow(integrate.solve_ivp, "LSODA")),
        "odeint": (COUPLED, lambda m: integrate.odeint(RATES, [1.0, 2.0], [0, 1], tfirst=True)[-1]),
        "differential_evolution": (
            [1, 1],
            lambda m: optimize.differential_evolution(VALLEY, [(-2, 2)] * 2, rng=0, maxiter=200).x,
        ),
        "approx_fprime": (DESCENT(X), lambda m: optimize.approx_fprime(X, VALLEY)),
    },
    "lmfit": {
        "minimize": (
            [2.0, 0.7],
            lambda m: list(
                m.minimize(lambda p: REST([p["a"].value, p["b"].value]), m.create_params(a=1.0, b=1.0))
                .params.valuesdict()
                .values()
            ),
        ),
        "minimize with slopes": (
            [2.0, 0.7],
            lambda m: list(
                m.minimize(
                    lambda p: REST([p["a"].value, p["b"].value]),
                    m.create_params(a=1.0, b=1.0),
                    Dfun=lambda p: SLOPES([p["a"].value, p["b"].value]),
                )
                .params.valuesdict()
                .values()
            ),
        ),
        "eval": (DATA, lambda m: m.Model(LAMBDIFIED, independent_vars=["t"]).eval(t=TIMES, a=2.0, b=0.7)),
        "names": (["a", "b"], lambda m: m.Model(LAMBDIFIED, independent_vars=["t"]).param_names),
        "two models": (
            2 * DATA,
            lambda m: (
                m.Model(LAMBDIFIED, independent_vars=["t"], prefix="u_")
                + m.Model(LAMBDIFIED, independent_vars=["t"], prefix="v_")
            ).eval(t=TIMES, u_a=2.0, u_b=0.7, v_a=2.0, v_b=0.7),
        ),
        "a fit with bounds": (
            [2.0, 0.7],
            lambda m: list(
                m.Model(LAMBDIFIED, independent_vars=["t"])
                .fit(DATA, m.create_params(a={"value": 1.0, "min": 0.0}, b={"value": 1.0, "max": 2.0}), t=TIMES)
                .best_values.values()
            ),
        ),
    },
    "iminuit.cost": {
        "LeastSquares": ([2.0, 0.7], lambda m: fitted(m.LeastSquares(TIMES, DATA, 0.1, LAMBDIFIED))),
        "UnbinnedNLL": (
            [0.5],
            lambda m: fitted(
                m.UnbinnedNLL(np.array([1.0, 2.0, 3.0]), codegen.lambdify([T, B], B * sp.exp(-B * T))), b=1.0
            ),
        ),
    },
    "casadi": {
        "the value": ([energy(X)], lambda m: exported(m, lambda x, y: y)),
        "gradient": (GRADIENT, lambda m: exported(m, lambda x, y: m.gradient(y, x))),
        "hessian": (np.ravel(sa.hessian(energy)(X)), lambda m: exported(m, lambda x, y: m.hessian(y, x)[0])),
        "jacobian of an expression": (
            2 * energy(X) * GRADIENT,
            lambda m: exported(m, lambda x, y: m.jacobian(y**2, x)),
        ),
        "jtimes": ([GRADIENT[0]], lambda m: exported(m, lambda x, y: m.jtimes(y, x, m.DM([1, 0])))),
        "nlpsol with ipopt": (BEST, nlpsol),
        "nlpsol, other options": (
            BEST,
            lambda m: nlpsol(m, **{"ipopt.tol": 1e-10, "ipopt.hessian_approximation": "exact"}),
        ),
        "on traced values": ("refused", lambda m: sa.grad(lambda x: m.sumsqr(x))(X)),
        "symbols into a kernel": ("refused", lambda m: VALLEY(m.SX.sym("x", 2))),
        "numbers of DM": (VALLEY(X), lambda m: VALLEY(np.ravel(m.DM(X)))),
    },
    "ipyopt": {
        "minimize": (BEST, lambda m: problem().minimize(X, solver="ipopt").x),
        "warm": (
            BEST,
            lambda m: (lambda p: p.minimize(X, solver="ipopt", multipliers=p.minimize(X, solver="ipopt")).x)(problem()),
        ),
        "options": (False, lambda m: problem().minimize(X, solver="ipopt", max_iterations=2).success),
        "parameters": (
            [3.0],
            lambda m: sa.Problem(lambda x, a: (x[0] - a) ** 2).minimize(np.ones(1), 3.0, solver="ipopt").x,
        ),
        "parameters in a dict": (
            [3.0],
            lambda m: sa.Problem(lambda x, a: (x[0] - a["k"]) ** 2).minimize(np.ones(1), {"k": 3.0}, solver="ipopt").x,
        ),
        "derivative of a solution": (
            [1.0],
            lambda m: sa.derivative(
                lambda a: sa.Problem(lambda x, a: np.sum((x - a) ** 2)).solution(np.ones(1), a, solver="ipopt")
            )(3.0),
        ),
        "an unbounded problem": (
            False,
            lambda m: sa.Problem(lambda x: x[0]).minimize(np.ones(1), solver="ipopt").success,
        ),
        "an unknown option": ("refused", lambda m: problem().minimize(X, solver="ipopt", options={"no_such": 1})),
    },
    "jax": {
        "hessian": (sa.hessian(energy)(X), lambda m: doubles(m, lambda: m.hessian(sa.to_jax(energy, X))(X))),
        "jvp": (
            GRADIENT[0],
            lambda m: doubles(m, lambda: m.jvp(sa.to_jax(energy, X), (X,), (np.array([1.0, 0.0]),))[1]),
        ),
        "value_and_grad": (energy(X), lambda m: doubles(m, lambda: m.value_and_grad(sa.to_jax(energy, X))(X)[0])),
        "scan": (
            3 * energy(X),
            lambda m: doubles(
                m, lambda: m.lax.scan(lambda c, _: (c + sa.to_jax(energy, X)(X), None), 0.0, length=3)[0]
            ),
        ),
        "checkpoint": (GRADIENT, lambda m: doubles(m, lambda: m.grad(m.checkpoint(sa.to_jax(energy, X)))(X))),
        "a kernel of an array of JAX": (
            energy(X),
            lambda m: doubles(m, lambda: sa.compile(energy, X)(m.numpy.asarray(X))),
        ),
    },
    "torch": {
        "func.grad": (GRADIENT, lambda m: m.func.grad(sa.to_torch(energy, X))(m.tensor(X)).numpy()),
        "func.hessian": (sa.hessian(energy)(X), lambda m: m.func.hessian(sa.to_torch(energy, X))(m.tensor(X)).numpy()),
        "func.vmap": (
            [energy(X)] * 2,
            lambda m: m.func.vmap(sa.to_torch(energy, X))(m.tensor(np.tile(X, (2, 1)))).numpy(),
        ),
        "autograd.gradcheck": (
            True,
            lambda m: m.autograd.gradcheck(sa.to_torch(energy, X), m.tensor(X, requires_grad=True)),
        ),
        "an optimizer": ([1.0, 1.0], lambda m: descended(m)),
        "lambdify": (
            [3.0, 4.0],
            lambda m: codegen.lambdify([A, B], A + B)(m.tensor([1.0, 2.0]), m.tensor([2.0, 2.0])).numpy(),
        ),
        "a tensor in a closure": (3.0, lambda m: sa.derivative(lambda p: np.sum(p * m.tensor([1.0, 2.0])))(0.7)),
    },
    "pytensor": {
        "function": (energy(X), lambda m: tensor_value(m, lambda x, y: y)),
        "grad": (GRADIENT, lambda m: tensor_value(m, lambda x, y: m.grad(y, x))),
        "hessian": (sa.hessian(energy)(X), lambda m: tensor_value(m, lambda x, y: m.gradient.hessian(y, x))),
        "in an expression": (2 * energy(X) * GRADIENT, lambda m: tensor_value(m, lambda x, y: m.grad(y**2, x))),
    },
    "sympy": {
        "an expression": (0.0, lambda m: same(A * sp.exp(-B * T), [T, A, B], 0.3, 2.0, 0.7)),
        "on arrays": (0.0, lambda m: same(A * sp.sin(T), [T, A], TIMES, 2.0)),
        "a matrix": (0.0, lambda m: same(sp.Matrix([[A, B], [A * B, 1]]), [A, B], 2.0, 0.7)),
        "a list": (0.0, lambda m: same([A, A * B], [A, B], 2.0, 0.7)),
        "a vector of symbols": (0.0, lambda m: same(A * B, [[A, B]], [2.0, 0.7])),
        "cse": (0.0, lambda m: same((A + B) ** 2 + sp.sin(A + B), [A, B], 2.0, 0.7, cse=True)),
        "Piecewise": (0.0, lambda m: same(sp.Piecewise((A, A > 1), (A**2, True)), [A], TIMES)),
        "special functions": (1e-15, lambda m: same(sp.besselj(0, A) + sp.erf(A), [A], 2.0, modules="scipy")),
        "modules": (
            0.0,
            lambda m: same(sp.Function("mine")(A), [A], 2.0, modules=[{"mine": lambda v: v + 1}, "numpy"]),
        ),
        "big integers": (2**60 + 1, lambda m: codegen.lambdify([A], A + 1)(2**60)),
        "dummies and functions of time": (0.0, lambda m: same(sp.Function("q")(T) * 2, [sp.Function("q")(T)], 2.0)),
    },
    "pandas": {
        "groupby": (
            2.0,
            lambda m: sa.derivative(lambda p: (p * m.Series([1.0, 2.0, 3.0])).groupby([0, 1, 0]).mean().max())(0.7),
        ),
        "rolling": (
            2.5,
            lambda m: sa.derivative(lambda p: (p * m.Series([1.0, 2.0, 3.0])).rolling(2).mean().max())(0.7),
        ),
        "ewm": (
            1.0 / 3 + 4.0 / 3,
            lambda m: sa.derivative(lambda p: (p * m.Series([1.0, 2.0])).ewm(com=1).mean().iloc[-1])(0.7),
        ),
        "eval": (
            6.0,
            lambda m: sa.derivative(lambda p: m.DataFrame({"u": [1.0, 2.0], "v": [2.0, 2.0]}).eval("u * v * @p").sum())(
                0.7
            ),
        ),
        "assign": (
            3.0,
            lambda m: sa.derivative(lambda p: m.DataFrame({"u": [1.0, 2.0]}).assign(z=p).prod(axis=1).sum())(0.7),
        ),
        "loc": (2.0, lambda m: sa.derivative(lambda p: (p * m.Series([1.0, 2.0], list("ab"))).loc["b"])(0.7)),
        "merge": (
            2.0,
            lambda m: sa.derivative(
                lambda p: (
                    p
                    * m.DataFrame({"k": [1, 2], "u": [1.0, 2.0]})
                    .merge(m.DataFrame({"k": [2], "v": [1.0]}), on="k")["u"]
                    .sum()
                )
            )(0.7),
        ),
        "sort_values": (1.0, lambda m: sa.derivative(lambda p: (p * m.Series([2.0, 1.0])).sort_values().iloc[0])(0.7)),
    },
    "xarray": {
        "sel": (
            2.0,
            lambda m: sa.derivative(lambda p: (p * m.DataArray([1.0, 2.0], coords={"t": [0, 1]}, dims="t")).sel(t=1))(
                0.7
            ),
        ),
        "groupby": (
            1.5,
            lambda m: sa.derivative(
                lambda p: (p * m.DataArray([1.0, 2.0], coords={"t": [0, 0]}, dims="t")).groupby("t").mean().sum()
            )(0.7),
        ),
        "rolling": (
            1.5,
            lambda m: sa.derivative(lambda p: (p * m.DataArray([1.0, 2.0], dims="t")).rolling(t=2).mean().sum())(0.7),
        ),
        "a Dataset": (3.0, lambda m: sa.derivative(lambda p: (m.Dataset({"u": ("t", [1.0, 2.0])}) * p).u.sum())(0.7)),
        "dot": (
            5.0,
            lambda m: sa.derivative(
                lambda p: m.dot(p * m.DataArray([1.0, 2.0], dims="t"), m.DataArray([1.0, 2.0], dims="t"))
            )(0.7),
        ),
        "interp": (
            1.5,
            lambda m: sa.derivative(
                lambda p: (p * m.DataArray([1.0, 2.0], coords={"t": [0, 1]}, dims="t")).interp(t=0.5)
            )(0.7),
        ),
    },
    "numba": {
        "prange": (4 * energy(X), lambda m: m.njit(lambda f, x: f(x) + f(x) + f(x) + f(x))(sa.compile(energy, X), X)),
        "cfunc": (0.5, lambda m: integrate.quad(sa.compile(lambda x: x, 1.0).low_level_callable(), 0, 1)[0]),
        "a compiled function traced": ([2.0, 0.0], lambda m: sa.grad(m.njit(lambda x: x[0] * 2))(X)),
    },
    "joblib": {
        "a kernel in processes": (
            [energy(X)] * 2,
            lambda m: m.Parallel(2)(m.delayed(sa.compile(energy, X))(X) for _ in "ab"),
        ),
        "threads": (
            [energy(X)] * 2,
            lambda m: m.Parallel(2, prefer="threads")(m.delayed(sa.compile(energy, X))(X) for _ in "ab"),
        ),
        "Memory": (energy(X), lambda m: m.Memory(None).cache(sa.compile(energy, X).__call__)(X)),
    },
}


def fitted(cost: Any, **start: float) -> Any:
    import iminuit  # noqa: PLC0415 - the row asks for it

    result = iminuit.Minuit(cost, **(start or {"a": 1.0, "b": 1.0}))
    result.migrad()
    return list(result.values)


def doubles(jax: Any, run: Callable[[], Any]) -> Any:
    with jax.enable_x64(True):
        return run()


def descended(torch: Any) -> Any:
    x, f = torch.tensor(X, requires_grad=True), sa.to_torch(valley, X)
    optimizer = torch.optim.LBFGS(
        [x], max_iter=100, tolerance_grad=1e-10, tolerance_change=1e-14, line_search_fn="strong_wolfe"
    )

    def closure() -> Any:
        optimizer.zero_grad()
        value = f(x)
        value.backward()
        return value

    for _ in range(5):
        optimizer.step(closure)
    return x.detach().numpy()
