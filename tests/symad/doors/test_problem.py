"""Problems: known optima by every solver, what kernels give, and what is refused or told."""

from __future__ import annotations

import contextlib
import importlib
import signal
import sys
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from scipy.optimize import Bounds, LinearConstraint, NonlinearConstraint, minimize

import symad as sa
from symad.errors import ArgumentError

CONSTRAINED = ["trust-constr", "slsqp", "ipopt"]
FREE = ["bfgs", "l-bfgs-b", "tnc", "newton-cg", "trust-exact", "trust-krylov", *CONSTRAINED]


def hs71(x: Any) -> Any:
    return x[0] * x[3] * (x[0] + x[1] + x[2]) + x[2]


def hs71_constraints(x: Any) -> Any:
    return [x[0] * x[1] * x[2] * x[3], np.sum(x**2)]


HS71 = sa.Problem(hs71, hs71_constraints, bounds=(1.0, 5.0), constraint_bounds=([25.0, 40.0], [np.inf, 40.0]))


def rosenbrock(x: Any, a: Any = 1.0) -> Any:
    return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (a - x[:-1]) ** 2)


@pytest.mark.parametrize("solver", CONSTRAINED)
def test_hock_schittkowski_71(solver: Any) -> None:
    found = HS71.minimize([1.0, 5.0, 5.0, 1.0], solver=solver)
    assert found.success
    assert found.solver == solver
    assert found.fun == pytest.approx(17.0140173, abs=2e-4)
    assert found.x == pytest.approx([1.0, 4.7429996, 3.8211500, 1.3794083], abs=1e-4)
    assert found.constraints == pytest.approx([25.0, 40.0], abs=1e-4)
    assert found.violation < 1e-4
    if found.multipliers is not None:
        assert found.multipliers == pytest.approx([-0.5522937, 0.1614686], abs=1e-3)
        slope = sa.grad(hs71)(found.x) + found.multipliers @ sa.jacobian(lambda x: np.stack(hs71_constraints(x)))(
            found.x
        )
        assert slope[1:] == pytest.approx(0.0, abs=1e-3)  # the first x is at its bound


@pytest.mark.parametrize("solver", FREE)
def test_without_constraints(solver: Any) -> None:
    found = sa.Problem(rosenbrock).minimize(np.full(3, 0.5), solver=solver, tolerance=1e-9)
    assert found.x == pytest.approx(np.ones(3), abs=1e-3)
    assert (found.multipliers, found.constraints.size) in ((None, 0),)


@pytest.mark.parametrize("solver", ["trust-constr", "slsqp", "l-bfgs-b", "tnc", "ipopt"])
def test_bounds_parameters_and_a_matrix(solver: Any) -> None:
    problem = sa.Problem(lambda x, a: np.sum((x - a) ** 4 + (x - a) ** 2), bounds=(None, [[1.0, 1.0], [0.5, 9.0]]))
    target = np.array([[0.5, 2.0], [2.0, -1.0]])
    found = problem.minimize(np.zeros((2, 2)), target, solver=solver)
    assert found.x == pytest.approx(np.array([[0.5, 1.0], [0.5, -1.0]]), abs=2e-2)
    assert problem.kernels(np.zeros((2, 2)), target) is problem.kernels(np.ones((2, 2)), target)


def test_kernels_are_those_of_the_lagrangian() -> None:
    x, multipliers, sigma = np.array([1.1, 4.0, 3.5, 1.3]), np.array([0.3, -0.7]), 0.6
    made = HS71.kernels(x)
    want = sa.value_gradient_hessian(hs71, lambda x: np.stack(hs71_constraints(x)), sparse="lower")(
        x, multipliers, sigma
    )
    assert made.value(x) == pytest.approx(want[0], rel=1e-14)
    assert made.gradient(x) == pytest.approx(want[1], rel=1e-14)
    assert made.constraints is not None
    assert made.constraints(x) == pytest.approx(want[2], rel=1e-14)
    assert made.jacobian is not None
    assert made.jacobian(x) == pytest.approx(want[3].data, rel=1e-14)
    assert made.hessian(x, multipliers, sigma) == pytest.approx(want[4].data, rel=1e-13)
    assert made.hessian.sparsity == want[4].pattern


@pytest.mark.parametrize("solver", ["trust-constr", "ipopt"])
def test_thousands_of_variables(solver: Any) -> None:
    """Luksan and Vlcek's first problem: its known value, with loops for every kernel."""

    def constraints(x: Any) -> Any:
        a, b, c = x[:-2], x[1:-1], x[2:]
        return 3.0 * b**3 + 2.0 * c - 5.0 + np.sin(b - c) * np.sin(b + c) + 4.0 * b - a * np.exp(a - b) - 3.0

    n = 2000 if solver == "ipopt" else 60
    objective = lambda x: np.sum(100.0 * (x[:-1] ** 2 - x[1:]) ** 2 + (x[:-1] - 1.0) ** 2)  # noqa: E731
    found = sa.Problem(objective, constraints).minimize(np.where(np.arange(n) % 2, 1.0, -1.2), solver=solver)
    assert found.success
    assert found.fun == pytest.approx(6.2324586, rel=1e-4)


def test_progress_options_and_a_warm_start() -> None:
    seen: list[tuple[int, float, float]] = []
    cold = HS71.minimize([1.0, 5.0, 5.0, 1.0], solver="ipopt", progress=lambda *told: seen.append(told))
    assert [number for number, _, _ in seen] == list(range(1, cold.nit + 1))
    assert seen[-1][1] == pytest.approx(cold.fun, rel=1e-6)
    warm = HS71.minimize(
        cold.x, solver="ipopt", multipliers=cold.multipliers, options={"mu_init": 1e-8, "warm_start_bound_push": 1e-9}
    )
    assert warm.success
    assert warm.nit < cold.nit
    seen.clear()
    HS71.minimize([1.0, 5.0, 5.0, 1.0], max_iterations=5, progress=lambda *told: seen.append(told))
    assert 0 < len(seen) <= 5


@pytest.mark.filterwarnings("ignore:Singular Jacobian matrix:UserWarning")  # SciPy says so
@pytest.mark.parametrize("solver", CONSTRAINED)
def test_an_infeasible_problem_ends_in_the_solvers_own_words(solver: Any) -> None:
    problem = sa.Problem(
        lambda x: np.sum(x**2),
        lambda x: np.stack([x[0] + x[1], x[0] + x[1]]),
        constraint_bounds=([0.0, 1.0], [0.0, 1.0]),
    )
    found = problem.minimize(np.zeros(2), solver=solver, max_iterations=60)
    assert not found.success or found.violation > 0.1
    assert found.violation == pytest.approx(np.max(np.abs(found.constraints - [0.0, 1.0])))
    assert found.message


def test_nan_at_the_start_is_ipopts_status() -> None:
    found = sa.Problem(lambda x: np.sum(np.log(x))).minimize(np.full(2, -1.0), solver="ipopt")
    assert (found.success, found.status, found.message) == (False, -13, "invalid number detected")


@pytest.mark.parametrize("solver", CONSTRAINED)
def test_a_constraint_that_depends_on_nothing_and_a_variable_that_is_in_none(solver: Any) -> None:
    problem = sa.Problem(
        lambda x: (x[0] - 2.0) ** 2, lambda x: np.stack([0.0 * x[0] + 1.0, x[0] + 0.0]), constraint_bounds=(0.0, 1.5)
    )
    found = problem.minimize(np.zeros(3), solver=solver)
    assert found.x == pytest.approx([1.5, 0.0, 0.0], abs=1e-3)


@pytest.mark.parametrize(
    ("options", "solver", "message"),
    [
        ({"bounds": (1.0, 0.0)}, "ipopt", "bounds: the lowest of number 0 is 1.0, the highest 0.0; exchange the two"),
        ({"bounds": (np.nan, 0.0)}, "ipopt", "bounds: NaN; None, or an infinity, stands for no bound"),
        ({"bounds": (np.zeros(3), None)}, "ipopt", "bounds: .*they are for numbers of shape .2,."),
        ({"bounds": 3.0}, "ipopt", "bounds=3.0; give"),
        ({"constraint_bounds": (0.0, np.zeros(5))}, "ipopt", "constraint_bounds: .*of shape .1,."),
        ({}, "simplex", "solver='simplex'; use one of trust-constr, .*ipopt"),
        ({}, "bfgs", "constraints with solver='bfgs'; use one of trust-constr, slsqp, ipopt"),
        (
            {"constraints": None, "bounds": (0.0, 1.0)},
            "newton-cg",
            "bounds with solver='newton-cg'; use one of trust-constr",
        ),
    ],
)
def test_what_is_refused(options: dict[str, Any], solver: Any, message: str) -> None:
    given: dict[str, Any] = {"constraints": lambda x: x[0] * x[1]} | options
    with pytest.raises(ArgumentError, match=message):
        sa.Problem(rosenbrock, **given).minimize(np.zeros(2), solver=solver)


def test_refusals_of_ipopt() -> None:
    with pytest.raises(ArgumentError, match="multipliers of a solution of slsqp: it gives none; give an array"):
        HS71.minimize(np.ones(4), solver="ipopt", multipliers=HS71.minimize([1.0, 5.0, 5.0, 1.0], solver="slsqp"))
    with pytest.raises(ArgumentError, match="3 multipliers: there are 2 constraints"):
        HS71.minimize([1.0, 5.0, 5.0, 1.0], solver="ipopt", multipliers=np.zeros(3))
    with pytest.raises(ArgumentError, match=r"options of ipopt: .*no_such"):
        HS71.minimize([1.0, 5.0, 5.0, 1.0], solver="ipopt", options={"no_such": 1})


@pytest.mark.parametrize(
    ("solver", "module", "extra"), [("ipopt", "ipyopt", "ipopt"), ("slsqp", "scipy.optimize", "special")]
)
def test_a_solver_that_is_not_installed(solver: Any, module: str, extra: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import_module = importlib.import_module

    def without(name: str, *rest: Any) -> Any:
        if name == module:
            raise ImportError(f"No module named '{name}'")
        return import_module(name, *rest)

    monkeypatch.setattr(importlib, "import_module", without)
    with pytest.raises(ArgumentError, match=rf"the solver {solver} without .*pip install 'symad\[{extra}\]'"):
        HS71.minimize([1.0, 5.0, 5.0, 1.0], solver=solver)


def test_ctrl_c_comes_through() -> None:
    def stop(*_: Any) -> None:
        raise KeyboardInterrupt

    for solver in ("trust-constr", "ipopt"):
        with pytest.raises(KeyboardInterrupt):
            HS71.minimize([1.0, 5.0, 5.0, 1.0], solver=solver, progress=stop)


def test_an_error_in_a_callback_comes_out() -> None:
    def objective(x: Any) -> Any:
        return np.sum(x**2)

    problem = sa.Problem(objective, lambda x: x[0] - 1.0)
    made = problem.kernels(np.zeros(2))

    class Wrong:
        def __call__(self, *_: Any) -> Any:
            raise ZeroDivisionError("mine")

    problem._kernels[((2,),)] = made._replace(gradient=Wrong())  # type: ignore[arg-type]
    for solver in ("trust-constr", "slsqp"):  # Ipopt calls no Python but for `progress`
        with pytest.raises(ZeroDivisionError, match="mine"):
            problem.minimize(np.zeros(2), solver=solver)  # type: ignore[arg-type]


def luksan_vlcek(n: int) -> tuple[sa.Problem, Any]:
    def constraints(x: Any) -> Any:
        a, b, c = x[:-2], x[1:-1], x[2:]
        return 3.0 * b**3 + 2.0 * c - 5.0 + np.sin(b - c) * np.sin(b + c) + 4.0 * b - a * np.exp(a - b) - 3.0

    objective = lambda x: np.sum(100.0 * (x[:-1] ** 2 - x[1:]) ** 2 + (x[:-1] - 1.0) ** 2)  # noqa: E731
    return sa.Problem(objective, constraints), np.where(np.arange(n) % 2, 1.0, -1.2)


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timer")
def test_ctrl_c_comes_out_of_ipopt(capfd: pytest.CaptureFixture[str]) -> None:
    """Also where it comes between two lines of Python, which ipyopt prints and turns into a status."""
    problem, start = luksan_vlcek(10_000)
    problem.minimize(start, solver="ipopt", max_iterations=1)  # which compiles the callbacks
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    ended = []
    try:
        for delay in (0.005, 0.01, 0.015, 0.02, 0.03):
            signal.setitimer(signal.ITIMER_REAL, delay)
            with contextlib.suppress(KeyboardInterrupt):
                ended.append(problem.minimize(start, solver="ipopt").status)
            signal.setitimer(signal.ITIMER_REAL, 0)
    finally:
        signal.signal(signal.SIGALRM, before)
    assert set(ended) <= {0}  # who was not interrupted has the solution
    assert len(ended) < 5
    capfd.readouterr()


def test_no_python_runs_where_ipopt_asks_for_numbers() -> None:
    problem, start = luksan_vlcek(50)
    problem.kernels(start)
    called: set[str] = set()
    sys.setprofile(lambda frame, event, _: called.add(frame.f_code.co_name) if event == "call" else None)
    try:
        found = problem.minimize(start, solver="ipopt")
    finally:
        sys.setprofile(None)
    assert found.nit > 3
    assert not called & {"gradient", "hessian", "jacobian"}
    assert "iterated" in called


def test_ipopt_without_constraints_scales_its_hessian() -> None:
    """The factor of the objective is not 1 where Ipopt scales: the Hessian follows."""
    problem = sa.Problem(lambda x, a: 1e6 * np.sum((x - a) ** 4 + (x - a) ** 2), parameters=(np.arange(3.0),))
    found = problem.minimize(np.full(3, 30.0), solver="ipopt", options={"derivative_test": "second-order"})
    assert found.x == pytest.approx(np.arange(3.0), abs=1e-4)
    assert found.nit < 30


def test_nan_on_the_way_makes_ipopt_step_back_or_end_in_its_own_status() -> None:
    """No numbers where x is below 0: a step there is shortened; where everything is NaN, Ipopt says so."""
    found = sa.Problem(lambda x: np.sum(x - np.log(x))).minimize(np.full(2, 5.0), solver="ipopt")
    assert found.x == pytest.approx(np.ones(2), abs=1e-6)
    nowhere = sa.Problem(lambda x: np.sum(x**2), lambda x: np.log(x[0] - 9.0) + 0.0 * x[1])
    told = nowhere.minimize(np.zeros(2), solver="ipopt")
    assert (told.success, told.message) == (False, "invalid number detected")


@pytest.mark.parametrize(
    ("size", "traces"),  # of limits and objective: of a large one once more for matrices, and for the Lagrangian
    [(3, (1, 1)), (1000, (3, 2))],
    ids=["straight", "loops"],
)
def test_a_problem_is_traced_once_for_values_and_slopes(size: int, traces: tuple[int, int]) -> None:
    calls = []

    def objective(x: Any) -> Any:
        calls.append("objective")
        return np.sum(x**4)

    def limits(x: Any) -> Any:
        calls.append("limits")
        return x[1:] * x[:-1] - 1.0

    kernels = sa.Problem(objective, limits).kernels(np.ones(size))
    assert (calls.count("limits"), calls.count("objective")) == traces
    assert kernels.jacobian is not None
    names = [kernel.declared.name for kernel in (kernels.value, kernels.gradient, kernels.jacobian)]
    assert names == ["objective", "gradient_of_objective", "Jacobian_of__limited"]
    x = np.linspace(0.5, 1.5, size)
    np.testing.assert_array_equal(kernels.gradient(x), sa.compile(sa.grad(objective), x)(x))


TARGET, BEGIN = np.array([5.0, -5.0]), np.array([0.5, 2.5])


def distance(x: Any) -> Any:
    return np.sum((x - TARGET) ** 2)


@pytest.mark.parametrize(
    "bounds",
    [
        [(0, 1), (2, 3)], ((0, 1), (2, None)), [[0, 1], [2, 3]], np.array([[0, 1], [2, 3]]), Bounds([0, 2], [1, 3]),
        (np.array([0, 2]), np.array([1, 3])),
    ],
    ids=repr,
)  # fmt: skip
def test_bounds_of_two_variables_are_read_as_scipy_reads_them(bounds: Any) -> None:
    found = sa.Problem(distance, bounds=bounds).minimize(BEGIN, solver="l-bfgs-b")
    assert found.x == pytest.approx([1.0, 2.0])


def test_bounds_that_can_be_read_both_ways_are_refused() -> None:
    with pytest.raises(ArgumentError, match="this may be one pair for each of two numbers, as in SciPy"):
        sa.Problem(distance, bounds=([0, 2], [1, 3]))
    assert sa.Problem(distance, bounds=([0, 2, 0], [1, 3, 1])).bounds == ([0, 2, 0], [1, 3, 1])
    for wrong in ((0,), [(0, 1, 2)] * 2, 3.0):
        with pytest.raises(ArgumentError, match="or a list of pairs as SciPy"):
            sa.Problem(distance, bounds=wrong)


CONSTRAINTS: list[Any] = [
    {"type": "ineq", "fun": lambda x: 1 - x[0] ** 2 - x[1] ** 2},
    [{"type": "ineq", "fun": lambda x: 1 - x[0]}, {"type": "eq", "fun": lambda x, b: x[1] - b, "args": (-0.25,)}],
    LinearConstraint([[1, 2]], -1, 1),
    LinearConstraint(np.eye(2), [0, -1], [1, 0]),
    LinearConstraint(scipy.sparse.csr_matrix(np.eye(2)), [0, -1], [1, 0]),
    NonlinearConstraint(lambda x: x[0] ** 2, -np.inf, 1),
    [NonlinearConstraint(lambda x: x**2, -np.inf, [1, 2]), {"type": "ineq", "fun": lambda x: x}],
]


@pytest.mark.parametrize("number", range(len(CONSTRAINTS)))
def test_constraints_are_taken_as_scipy_takes_them(number: int) -> None:
    start, constraints = np.array([0.5, 0.5]), CONSTRAINTS[number]
    wanted = minimize(distance, start, constraints=constraints, method="slsqp")
    found = sa.Problem(distance, constraints).minimize(start, solver="slsqp")
    assert wanted.success
    assert found.success
    assert found.x == pytest.approx(wanted.x, abs=1e-5)


def test_what_is_no_constraint_or_no_vector_is_refused() -> None:
    with pytest.raises(ArgumentError, match="a constraint of type int"):
        sa.Problem(distance, 3)
    with pytest.raises(ArgumentError, match="its type is 'neq'"):
        sa.Problem(distance, {"type": "neq", "fun": distance})
    with pytest.raises(ArgumentError, match="these have bounds of their own"):
        sa.Problem(distance, CONSTRAINTS[0], constraint_bounds=(0, 1))


def test_a_number_is_minimised_over() -> None:
    problem = sa.Problem(lambda x, a: x**4 / 4 - a * x)
    for solver in ("ipopt", "slsqp", "l-bfgs-b"):
        assert problem.minimize(1.5, 2.0, solver=solver).x == pytest.approx(2 ** (1 / 3), rel=1e-3)
    slope = sa.derivative(lambda a: problem.solution(1.5, a, solver="ipopt"))(2.0)
    assert slope == pytest.approx(2 ** (-2 / 3) / 3, rel=1e-9)


def test_a_limit_of_iterations_holds_for_tnc() -> None:
    found = sa.Problem(rosenbrock).minimize(np.full(4, -1.2), solver="tnc", max_iterations=3)
    assert (found.success, found.nit, found.status) == (False, 3, 3)


@pytest.mark.parametrize("warm", [lambda found: found, lambda found: found.multipliers])
def test_ipopt_starts_warm_from_a_solution_or_its_multipliers(warm: Any) -> None:
    cold = HS71.minimize([1.0, 5.0, 5.0, 1.0], solver="ipopt")
    assert HS71.minimize(cold.x, solver="ipopt", multipliers=warm(cold)).nit <= 4
    slope = sa.grad(hs71)(cold.x) + cold.bound_multipliers
    slope += cold.multipliers @ sa.jacobian(lambda x: np.stack(hs71_constraints(x)))(cold.x)
    assert slope == pytest.approx(0.0, abs=1e-6)


def test_ipopt_compiles_nothing_at_the_second_solve(monkeypatch: pytest.MonkeyPatch) -> None:
    HS71.minimize([1.0, 5.0, 5.0, 1.0], solver="ipopt")
    monkeypatch.setattr("codegen.machine.calls.conventions.compile_text", None)
    assert HS71.minimize([1.1, 5.0, 5.0, 1.0], solver="ipopt").success


def test_parameters_in_containers() -> None:
    problem = sa.Problem(
        lambda x, q: np.sum((x - q["a"]) ** 2) + q["b"] * x[0],
        lambda x, q: x[0] - q["c"][0],
        constraint_bounds=(None, 0),
    )
    for solver in CONSTRAINED:
        found = problem.minimize(np.zeros(2), {"a": np.ones(2), "b": 2.0, "c": (1.0,)}, solver=solver)
        assert found.x == pytest.approx([0.0, 1.0], abs=1e-4)


def test_none_among_bounds_is_no_bound() -> None:
    found = sa.Problem(distance, lambda x: [x[0], x[1]], constraint_bounds=([None, 0.0], [1.0, None]))
    assert found.minimize(np.zeros(2), solver="slsqp").x == pytest.approx(
        sa.Problem(distance, bounds=[(None, 1.0), (0.0, None)]).minimize(np.zeros(2), solver="slsqp").x, abs=1e-6
    )


@pytest.mark.parametrize("solver", ["trust-constr", "tnc", "ipopt"])
@pytest.mark.parametrize(
    "wrong", [{"max_iterations": -1}, {"max_iterations": 1.5}, {"max_iterations": "3"}, {"tolerance": -1.0}]
)
def test_what_is_no_count_and_no_tolerance_is_refused(solver: Any, wrong: dict[str, Any]) -> None:
    with pytest.raises(ArgumentError, match=f"{next(iter(wrong))}=.*; give a"):
        sa.Problem(rosenbrock).minimize(np.zeros(2), solver=solver, **wrong)


def test_what_scipy_says_in_place_of_a_result() -> None:
    with pytest.raises(ArgumentError, match=r"options of trust-constr: .*'nonsense'; use those"):
        sa.Problem(rosenbrock).minimize(np.zeros(2), options={"nonsense": 1})
    fixed = sa.Problem(rosenbrock, bounds=[(0.0, 0.0), (1.0, 1.0)]).minimize(np.zeros(2), solver="slsqp")
    assert (fixed.x.tolist(), fixed.nit) == ([0.0, 1.0], 0)
    nowhere = sa.Problem(rosenbrock).minimize(np.full(2, np.nan), solver="trust-exact")
    assert (nowhere.success, nowhere.message) == (False, "array must not contain infs or NaNs")


def test_parameters_of_odeint_are_what_they_are() -> None:
    found = sa.odeint(lambda y, t, p: -p["k"] * y + p["b"][1], [1.0], [0.0, 1.0], {"k": 1.0, "b": [5.0, np.zeros(1)]})
    np.testing.assert_allclose(found[-1], np.exp(-1.0), rtol=1e-6)


@pytest.mark.parametrize("solver", ["slsqp", "ipopt"])
def test_scipys_constraints_serve_x_of_several_shapes_in_turn(solver: Any) -> None:
    problem = sa.Problem(lambda x: np.sum((x - 3) ** 2), NonlinearConstraint(lambda x: x, -np.inf, 1.0))
    for size in (2, 3, 2):
        assert problem.minimize(np.zeros(size), solver=solver).x == pytest.approx(np.ones(size), abs=1e-6)


SMALL_PROBLEMS: dict[str, tuple[Any, Any, tuple[Any, ...]]] = {
    "plain": (lambda x: x[0] ** 2 * x[1], lambda x: np.stack([x[0] * x[1], x[1] ** 2]), (np.array([2.0, 3.0]),)),
    "linear constraints": (lambda x: np.sum(x**4), lambda x: x[1:] - x[:-1], (np.array([0.5, 2.0, 1.0]),)),
    "no constraints": (lambda x: np.sum(np.sin(x) * x[::-1]), None, (np.array([0.5, 2.0, 1.0]),)),
    "a branch": (lambda x: x[0] ** 2 if x[0] > x[1] else x[1] ** 3, lambda x: x[0] * x[1], (np.array([2.0, 3.0]),)),
    "parameters": (
        lambda x, p, a: p["w"] @ x**3 + a,
        lambda x, p, a: a * x * p["w"],
        (np.array([2.0, 3.0]), {"w": np.array([0.5, 4.0])}, 1.5),
    ),
    "a matrix": (lambda x: np.sum(x @ x), lambda x: x[0] * x[1], (np.arange(4.0).reshape(2, 2),)),
    "a number": (lambda x: np.cos(x), lambda x: x**3, (0.7,)),
}


@pytest.mark.parametrize("name", SMALL_PROBLEMS)
def test_the_kernels_of_a_small_problem_are_those_of_its_derivatives(name: str) -> None:
    objective, limits, point = SMALL_PROBLEMS[name]
    kernels, other = sa.Problem(objective, limits).kernels(*point), {"value": objective}
    assert kernels.value.stats.plan.refused["rolled"].startswith("the problem is small")
    weights: tuple[Any, ...] = ()

    def lagrangian(*arguments: Any) -> Any:
        if limits is None:
            return objective(*arguments)
        *values, multipliers, sigma = arguments
        return sigma * objective(*values) + np.dot(multipliers, np.ravel(limits(*values)))

    if limits is not None:
        other |= {"constraints": lambda *values: np.ravel(limits(*values))}
        weights = np.linspace(0.5, 2.0, np.size(limits(*point))), 0.25
    for kind, function in other.items():
        np.testing.assert_allclose(getattr(kernels, kind)(*point), function(*point), rtol=1e-14)
    np.testing.assert_allclose(kernels.gradient(*point), sa.grad(objective)(*point), rtol=1e-14)
    matrices = [(kernels.hessian, sa.hessian(lagrangian, sparse="lower"), (*point, *weights))]
    if limits is not None:
        assert kernels.jacobian is not None
        matrices.append((kernels.jacobian, sa.jacobian(other["constraints"], sparse=True), point))
    for kernel, transform, arguments in matrices:
        wanted = transform(*arguments)
        pattern = kernel.sparsity
        assert set(zip(wanted.pattern.rows, wanted.pattern.columns, strict=True)) <= set(
            zip(pattern.rows, pattern.columns, strict=True)
        )
        full = np.zeros(pattern.shape)
        full[pattern.rows, pattern.columns] = kernel(*arguments)
        np.testing.assert_allclose(full, wanted.toarray(), rtol=1e-14)


def test_parameters_may_have_the_names_of_multipliers_and_sigma_and_constraints_may_be_none() -> None:
    kernels = sa.Problem(lambda x, sigma: sigma * np.sum(x**4), lambda x, sigma: x[:1] ** 2).kernels(np.ones(2), 2.0)
    assert kernels.hessian(np.array([1.0, 2.0]), 3.0, np.array([5.0]), 0.5).tolist() == [18.0 + 10.0, 72.0]
    assert len(set(kernels.hessian.argument_names)) == 4
    found = sa.Problem(lambda x: np.sum((x - 2.0) ** 2), lambda x: x[:0]).minimize(np.zeros(2), solver="ipopt")
    assert found.x == pytest.approx([2.0, 2.0])


@pytest.mark.parametrize("size", [10, 20, 30, 60])
def test_derivatives_of_a_problem_are_traced_once_whether_it_is_small_or_not(
    size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What looks for loops has not traced straight lines before: a Hessian of 30 x 30 would have 25,000 operations."""
    matrix, traced = np.random.default_rng(0).normal(size=(size, size)), []
    module = sys.modules["symad.compiling.problem_kernels"]
    trace = module.trace_ours
    monkeypatch.setattr(module, "trace_ours", lambda *args: traced.append(1) or trace(*args))
    kernels = sa.Problem(lambda x: np.sum(np.tanh(matrix @ x))).kernels(np.ones(size))
    is_small = kernels.hessian.stats.plan.refused.get("rolled", "").startswith("the problem is small")
    assert is_small == bool(traced) == (size < 20)
