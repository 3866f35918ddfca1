"""Results of transforms go through pickle and cloudpickle, as joblib and dask send them to other processes."""

from __future__ import annotations

import copy
import inspect
import pickle
from collections.abc import Callable
from functools import partial
from multiprocessing import get_context
from typing import Any

import numpy as np
import pytest
from scipy.optimize import LinearConstraint

import symad as sa

POINT = np.array([0.5, 1.5])


def energy(x: Any) -> Any:
    return np.sum(np.sin(x) * x)


class Scaled:
    factor = 3.0

    def __call__(self, x: Any) -> Any:
        return self.factor * energy(x)


MADE: dict[str, Callable[[Callable[..., Any]], Callable[..., Any]]] = {
    "grad": sa.grad,
    "value and grad": sa.value_and_grad,
    "hessian": sa.hessian,
    "jacobian": lambda f: sa.jacobian(lambda x: f(x) * x),
    "jit": sa.jit,
    "jit of grad": lambda f: sa.jit(sa.grad(f)),
    "hvp": lambda f: lambda x: sa.hvp(f, (x,), (x,)),
}


@pytest.mark.filterwarnings("ignore::symad.errors.UnknownStateWarning")  # code that was sent is nobody's for jit
@pytest.mark.parametrize("name", MADE)
def test_results_of_transforms_are_sent(name: str) -> None:
    cloudpickle = pytest.importorskip("cloudpickle", reason="cloudpickle is no part of the tests' environment")
    made = MADE[name](lambda x: energy(x))
    expected = [made(POINT) for _ in range(3)]  # kept traces and kernels stay here
    sent = cloudpickle.loads(cloudpickle.dumps(made))
    for ours, theirs in zip(parts(sent(POINT)), parts(expected[0]), strict=True):
        np.testing.assert_array_equal(ours, theirs)


PICKLED: dict[str, Callable[..., Any]] = {
    **{name: made(energy) for name, made in MADE.items() if name in ("grad", "value and grad", "hessian", "jit")},
    "gradient in a part": sa.grad(energy, wrt="x"),
    "lower triangle": sa.hessian(energy, sparse="lower"),
    "nested modes": sa.hessian(energy, mode="fwd-rev"),
    "jacfwd": sa.jacfwd(np.sin),
    "jit of grad": sa.jit(sa.grad(energy), tier="fast"),
    "second derivative": sa.derivative(sa.derivative(np.sin)),
    "vmap": sa.vmap(sa.grad(np.sin)),
    "Laplacian": sa.laplacian(energy),
    "third derivatives": sa.partials(energy, 3),
    "derivatives along": sa.partials(energy, 2, along=np.ones(2)),
    "value and all derivatives": sa.value_gradient_hessian(energy),
    "gradient of a partial function": sa.grad(partial(energy)),
    "gradient of an object": sa.grad(Scaled()),
    "jit of an object": sa.jit(Scaled()),
    "vmap of a partial function": sa.vmap(partial(np.sin)),
}


@sa.jit
def decorated(x: Any) -> Any:
    return 3.0 * x


@sa.grad
def slope_of_square(x: Any) -> Any:
    return x**2


class Model:
    rate = 3.0

    def times(self, x: Any) -> Any:
        return self.rate * x**2

    jitted = sa.jit(times)
    slope = sa.grad(times, 1)


@pytest.mark.filterwarnings("ignore::symad.errors.UnknownStateWarning")
@pytest.mark.parametrize("name", PICKLED)
def test_results_of_transforms_are_pickled_and_copied(name: str) -> None:
    made, point = PICKLED[name], 0.5 if name == "second derivative" else POINT
    expected = made(point)
    assert repr(made(point)) == repr(made(point)) == repr(expected)  # by a kept trace too
    for other in (pickle.loads(pickle.dumps(made)), copy.deepcopy(made), copy.copy(made)):
        assert type(other) is type(made)
        assert repr(other) == repr(made)
        assert inspect.signature(other) == inspect.signature(made)
        assert repr(other(point)) == repr(expected)


def test_decorated_functions_are_themselves_and_methods_are_bound() -> None:
    for made in (decorated, slope_of_square):
        assert pickle.loads(pickle.dumps(made)) is copy.deepcopy(made) is made
    model = Model()
    assert (model.jitted(2.0), model.slope(2.0)) == (12.0, 12.0)
    model.rate = 4.0
    copied = copy.deepcopy({"slope": sa.derivative(model.times)})
    model.rate = 5.0
    assert copied["slope"](2.0) == 16.0
    assert sa.derivative(slope_of_square, 0) is slope_of_square
    assert Model.jitted is vars(Model)["jitted"]


def test_other_processes_get_them() -> None:
    with get_context("spawn").Pool(1) as pool:
        assert pool.apply(sa.grad(energy), (POINT,)).tolist() == sa.grad(energy)(POINT).tolist()
        assert pool.map(sa.jit(sa.derivative(np.sin)), [0.0, 0.5]) == [1.0, float(np.cos(0.5))]


def parts(result: Any) -> tuple[Any, ...]:
    return result if isinstance(result, tuple) else (result,)


def slope(t: Any, y: Any, k: Any) -> Any:
    return [-k * y[0]]


def start(k: Any) -> Any:
    return [k]


def half(t: Any, y: Any, k: Any) -> Any:
    return y[0] - 0.5


def difference(x: Any) -> Any:
    return x[0] - x[1]


SOLVED: dict[str, tuple[Callable[[], Any], Callable[[Any], Any]]] = {
    "a system": (
        lambda: sa.ode(slope, start, (1.0,), mass=[[2.0]], events=half),
        lambda system: system.solve((0.0, 3.0), times=[1.0], sensitivities=2).second_sensitivities,
    ),
    "constraints of SciPy": (
        lambda: sa.Problem(energy, [{"type": "eq", "fun": difference}, LinearConstraint([[1, 1]], 1, 3)]),
        lambda problem: problem.minimize(POINT, solver="slsqp").x,
    ),
    "a plan": (lambda: sa.plan(sa.grad(energy), POINT), lambda plan: plan.choice),
    "statistics": (lambda: sa.compile(energy, POINT).stats, lambda stats: stats.total),
}


@pytest.mark.parametrize("name", SOLVED)
def test_what_was_made_and_used_is_pickled(name: str) -> None:
    make, use = SOLVED[name]
    made = make()
    expected = use(made)
    found = use(pickle.loads(pickle.dumps(made)))
    assert found == expected if isinstance(expected, str) else np.allclose(found, expected, rtol=1e-12)
