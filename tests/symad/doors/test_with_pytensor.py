"""Compiled functions inside PyTensor: the numbers of PyTensor's own derivatives, and of its check by differences."""

from __future__ import annotations

import importlib
import pickle
import warnings
from typing import Any

import numpy as np
import pytest

import symad as sa
from symad.errors import ArgumentError, RuleError
from tests.support.tool_formulas import FORMULAS, formula, vector

pytensor = pytest.importorskip("pytensor", reason="pip install -e '.[pytensor]'")
from pytensor.graph.replace import vectorize_graph  # noqa: E402

pytestmark = pytest.mark.wide
pt: Any = pytensor.tensor
X, A = np.array([0.3, 0.4, 0.5]), np.array(1.3)


def squares(x: Any) -> Any:
    return np.sum(x**2 * x[0])


def ours(f: Any) -> Any:
    return sa.to_pytensor(lambda x, a: f(x, a, np), np.zeros(3), 1.0)


def total(found: Any) -> Any:
    parts = found if isinstance(found, list | tuple) else [found]
    return sum(pt.sum(part * (k + 2.0)) for k, part in enumerate(parts))


TRANSFORMS = {
    "value": lambda f, x, a: [total(f(x, a))],
    "gradient": lambda f, x, a: pytensor.grad(total(f(pt.sin(x), a)), [x, a]),
    "hessian": lambda f, x, a: [pytensor.gradient.hessian(total(f(x, a)), x)],
    "mixed": lambda f, x, a: [pytensor.gradient.jacobian(pytensor.grad(total(f(x, a)), a), x)],
    "third": lambda f, x, a: [
        pytensor.grad(pt.sum(pytensor.grad(pt.sum(pytensor.grad(total(f(x, a)), x)), x) ** 2), a)
    ],
}


ROWS = [(t, f, mode) for mode in ("FAST_COMPILE", "NUMBA") for t in TRANSFORMS for f in FORMULAS]


@pytest.mark.parametrize(("transform", "f", "mode"), [row for row in ROWS if row[2] != "NUMBA" or row[0] == "hessian"])
def test_as_pytensor_itself(transform: str, f: str, mode: str) -> None:
    x, a = pt.dvector("x"), pt.dscalar("a")
    found, want = (
        pytensor.function([x, a], TRANSFORMS[transform](g, x, a), mode=mode, on_unused_input="ignore")(X, A)
        for g in (ours(FORMULAS[f]), lambda x, a: FORMULAS[f](x, a, pt))
    )
    for part, exact in zip(found, want, strict=True):
        assert part.shape == exact.shape
        np.testing.assert_allclose(part, exact, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("f", FORMULAS)
def test_pytensors_own_check_of_first_and_second_derivatives(f: str) -> None:
    rng = np.random.default_rng(0)

    def slope(x: Any, a: Any) -> Any:
        return pytensor.grad(total(ours(FORMULAS[f])(x, a)) ** 2, x)

    for function in (lambda x, a: total(ours(FORMULAS[f])(x, a)), slope):
        pytensor.gradient.verify_grad(function, [X, A], rng=rng, mode="FAST_COMPILE")


def test_the_check_finds_a_wrong_derivative() -> None:
    twice = sa.custom_derivative(lambda x: 2.0 * x, lambda primals, tangents: 3.0 * tangents[0])
    with pytest.raises(pytensor.gradient.GradientError):
        pytensor.gradient.verify_grad(
            sa.to_pytensor(twice, 1.0), [A], rng=np.random.default_rng(0), mode="FAST_COMPILE"
        )


def test_forward() -> None:
    x, a, t = pt.dvector("x"), pt.dscalar("a"), pt.dvector("t")
    found = pytensor.gradient.pushforward(ours(vector)(x, a), x, t, use_op_pushforward=True)
    want = sa.jvp(lambda x: vector(x, 1.3, np), (X,), (np.array([1.0, 2.0, 3.0]),))[1]
    got = found.eval({x: X, a: A, t: np.array([1.0, 2.0, 3.0])}, mode="FAST_COMPILE")
    np.testing.assert_allclose(got, want, rtol=1e-14)


@pytest.mark.parametrize("mode", ["FAST_COMPILE", "NUMBA"])
def test_many_points(mode: str) -> None:
    x, a, points = pt.dvector("x"), pt.dscalar("a"), pt.dmatrix("points")
    value = ours(formula)(x, a)
    mapped = vectorize_graph([value, pytensor.grad(value, x)], {x: points})
    many = np.random.default_rng(0).normal(size=(7, 3))
    found = pytensor.function([points, a], mapped, mode=mode)(many, A)
    kernel = sa.compile(sa.value_and_grad(lambda x, a: formula(x, a, np)), X, 1.3)
    for part, want in zip(found, kernel.batch(many, 1.3), strict=True):
        np.testing.assert_allclose(part, want, rtol=1e-14)


def test_numba_calls_the_machine_code_without_python(monkeypatch: pytest.MonkeyPatch) -> None:
    x = pt.dmatrix("x")
    value = sa.to_pytensor(lambda x: x @ x.T, np.zeros((2, 3)))(x.T)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # numba's mode warns of what it calls through Python
        f = pytensor.function([x], value, mode="NUMBA")
    monkeypatch.setattr("symad.doors.with_pytensor.KernelOp.perform", None)
    at = np.arange(6.0).reshape(3, 2)
    assert f(at).tolist() == (at.T @ at).tolist()


def test_constants_have_no_gradient() -> None:
    x = pt.dvector("x")
    constant = pt.constant(1.3)
    value = ours(formula)(x, constant)
    slope = pytensor.function([x], pytensor.grad(value, x), mode="FAST_COMPILE")
    (node,) = [node for node in slope.maker.fgraph.apply_nodes if "pullback" in str(node.op)]
    assert len(node.outputs) == 1
    with pytest.raises(pytensor.gradient.DisconnectedInputError):
        pytensor.grad(value, constant)


def test_shared_variables_are_trained() -> None:
    rates = pytensor.shared(np.array([1.0, 1.0]))
    t = np.linspace(0.0, 3.0, 40)
    misfit = sa.to_pytensor(lambda p: np.sum((p[0] * np.exp(-p[1] * t) - 2.0 * np.exp(-0.7 * t)) ** 2), np.ones(2))
    loss = misfit(rates)
    step = pytensor.function([], loss, updates={rates: rates - 0.02 * pytensor.grad(loss, rates)}, mode="FAST_COMPILE")
    first = float(step())
    for _ in range(300):
        last = float(step())
    assert last < 1e-3 * first


def test_a_function_of_pytensor_is_pickled() -> None:
    x = pt.dvector("x")
    f = pytensor.function([x], pytensor.grad(sa.to_pytensor(squares, np.zeros(3))(x), x), mode="FAST_COMPILE")
    again = pickle.loads(pickle.dumps(f))
    assert again(X).tolist() == f(X).tolist() == sa.grad(squares)(X).tolist()


def test_shapes_are_checked_when_they_are_known() -> None:
    x = pt.dvector("x")
    f = ours(formula)(x, 1.3)
    assert (f.type.shape, ours(vector)(x, 1.3).type.shape) == ((), (3,))
    with pytest.raises(ValueError, match="shape"):
        f.eval({x: np.zeros(2)}, mode="FAST_COMPILE")
    with pytest.raises(ValueError, match="shape"):
        f.eval({x: np.zeros(2)}, mode="NUMBA")


REFUSED = {
    "single precision": (lambda f: f(pt.fvector("x"), 1.0), "argument 0: x of type .*float32.*: kernels take dense"),
    "no tensor": (lambda f: f(pytensor.tensor.type_other.NoneConst, 1.0), "argument 0: .* of type .*None"),
    "axes": (lambda f: f(pt.dmatrix("x"), 1.0), r"shapes \(None, None\), \(\): the function.*use .*vectorize_graph"),
    "shapes": (lambda f: f(np.zeros(4), 1.0), r"arguments of shapes \(4,\), \(\): the function was made for \(3,\)"),
    "fewer": (lambda f: f(pt.dvector("x")), r"arguments of shapes \(None,\): the function was made for \(3,\), \(\)"),
    "complex numbers": (lambda f: f(np.ones(3) * 1j, A), "argument 0: dtype complex128"),
    "kernels": (lambda f: sa.to_pytensor(sa.compile(lambda x: x, 1.0), 1.0), "a kernel for PyTensor: its deriv"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_does_not_fit_is_refused(case: str) -> None:
    call, message = REFUSED[case]
    with pytest.raises(ArgumentError, match=message):
        call(ours(vector))


def test_a_function_without_a_derivative_says_so() -> None:
    x = pt.dscalar("x")
    value = sa.to_pytensor(sa.custom_derivative(lambda x: x * x), 1.0)(x)
    with pytest.raises(RuleError, match="declared with custom_derivative and without a rule"):
        pytensor.grad(value, x)


def test_without_pytensor_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> Any:
        raise ImportError(f"No module named '{name}'")

    monkeypatch.setattr(importlib, "import_module", missing)
    with pytest.raises(ArgumentError, match=r"PyTensor without pytensor: No module.*pip install 'symad\[pytensor\]'"):
        sa.to_pytensor(lambda x: x, 1.0)
