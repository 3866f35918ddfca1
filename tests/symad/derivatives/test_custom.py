"""Derivatives that the user gives: every order follows from a traced rule, in every mode."""

import pickle

import numpy as np
import pytest

import symad as sa
from symad.compiling.native import compile_trace
from symad.errors import ArgumentError, RuleError, TraceError
from tests.support import mixes

Z = np.array([0.7, 1.3])


def wave(x, y):
    return np.sin(x) * y**3


@sa.custom_derivative(derivative=lambda primals, tangents: sa.jvp(wave, primals, tangents)[1])
def ruled_wave(x, y):
    return np.sin(x) * y**3


@sa.custom_derivative(derivative=lambda primals, tangents: logistic(primals[0]) * tangents[0])
def softplus(x):
    return np.log1p(np.exp(x))


def logistic(x):
    return 1 / (1 + np.exp(-x))


def composed(f):
    return lambda z: f(z[0] ** 2, z[1] * z[0]) + f(z[1], z[1])


@pytest.mark.parametrize("mode", mixes.HESSIAN_MODES)
def test_a_rule_equals_what_is_derived_without_it(mode):
    expected = sa.hessian(composed(wave))(Z)
    assert sa.hessian(composed(ruled_wave), mode=mode)(Z) == pytest.approx(expected, rel=1e-13)
    kernel = sa.compile(sa.hessian(composed(ruled_wave), mode=mode), Z)
    assert kernel(Z + 0.1) == pytest.approx(sa.hessian(composed(wave))(Z + 0.1), rel=1e-13)


@pytest.mark.parametrize("word", mixes.words(3), ids="".join)
def test_third_derivatives_under_every_mix(word):
    plain = mixes.nested(word, lambda x: np.log1p(np.exp(x)) * x)
    ruled = mixes.nested(word, lambda x: softplus(x) * x)
    assert ruled(0.3) == pytest.approx(plain(0.3), rel=1e-13)


def test_a_rule_is_used_and_not_the_value():
    """The rule says 5; the value's own derivative is cos."""
    five = sa.custom_derivative(np.sin, lambda primals, tangents: 5.0 * tangents[0])
    assert sa.grad(five)(0.3) == 5.0
    assert sa.grad(sa.grad(five))(0.3) == 0.0
    assert five(0.3) == np.sin(0.3)
    assert sa.compile(five, 0.0)(0.3) == np.sin(0.3)


def test_containers_go_in_and_out():
    @sa.custom_derivative(derivative=lambda p, t: {"double": 2 * t[0]["u"], "square": 2 * p[0]["v"] * t[0]["v"]})
    def f(data):
        return {"double": 2 * data["u"], "square": data["v"] ** 2}

    found = sa.jacobian(f)({"u": 1.0, "v": np.array([1.0, 2.0])})
    assert found["double"]["u"] == 2.0
    assert found["square"]["v"].tolist() == [[2.0, 0.0], [0.0, 4.0]]
    assert found["square"]["u"].tolist() == [0.0, 0.0]


@sa.custom_derivative(opaque=True, derivative=lambda primals, tangents: slope_of_table(primals[0]) * tangents[0])
def table(x):
    return float(np.interp(x, [0, 1, 2], [0, 1, 4]))


@sa.custom_derivative(opaque=True)
def slope_of_table(x):
    assert isinstance(x, float)
    return 1.0 if x < 1 else 3.0


def test_opaque_functions_get_numbers_and_raise_at_the_order_they_lack():
    assert sa.grad(lambda x: table(x) ** 2)(1.5) == 2 * 2.5 * 3.0
    assert sa.derivative(table)(0.5) == 1.0
    for second in (lambda x: sa.grad(sa.grad(table))(x), lambda x: sa.derivative(sa.derivative(table))(x)):
        with pytest.raises(RuleError, match=r"test_custom\.py:\d+: slope_of_table has no derivative: .*without a rule"):
            second(1.5)
    with pytest.raises(TraceError, match="symbolic value"):
        sa.compile(table, 1.0)


@pytest.mark.parametrize(
    "rule", [lambda p, t: p[0] * t[0] ** 2, lambda p, t: p[0] * t[0] + 1, lambda p, t: np.where(t[0] > 0, t[0], 0.0)]
)
def test_a_rule_has_to_be_linear(rule):
    f = sa.custom_derivative(lambda x: x, rule)
    with pytest.raises(ArgumentError, match="the derivative of <lambda> is not linear in its tangents"):
        sa.grad(f)(1.5)


def test_a_rule_has_the_shape_of_the_result():
    f = sa.custom_derivative(lambda x: x * 2, lambda p, t: t[0][:1])
    with pytest.raises(ArgumentError, match=r"the derivative of <lambda> has shapes \[\(1,\)\]: its result has shapes"):
        sa.jacobian(f)(Z)


def test_captured_values_are_refused():
    """Also when the captured value is the argument itself."""
    for inner in (lambda y: y, lambda y: 2.0 * y):

        def outer(y, inner=inner):
            return sa.custom_derivative(lambda x: x * y, lambda p, t: t[0] * y)(inner(y))

        with pytest.raises(
            ArgumentError, match=r"test_custom\.py:\d+: <lambda> uses a traced value that is none of its"
        ):
            sa.grad(outer)(1.5)


def test_keywords_are_arguments_too():
    assert sa.grad(lambda x: ruled_wave(x, y=2.0))(0.3) == sa.grad(lambda x: ruled_wave(x, 2.0))(0.3)

    @sa.custom_derivative(derivative=lambda p, t: t[0])
    def f(x, *, factor=1.0):
        return x * factor

    assert sa.grad(f)(2.0) == 1.0
    with pytest.raises(ArgumentError, match="keyword 'factor' of f: its derivative rule knows arguments by their"):
        sa.grad(lambda x: f(x, factor=2.0))(2.0)


def test_stop_gradient():
    held = sa.stop_gradient
    assert sa.grad(lambda x: x * held(x**2))(3.0) == 9.0
    assert sa.grad(sa.grad(lambda x: x * held(x**2)))(3.0) == 0.0
    assert sa.grad(lambda z: (z * held({"a": z})["a"]).sum())(Z).tolist() == Z.tolist()
    assert held(3.0) == 3.0
    assert sa.hessian(lambda z: z[0] ** 2 * held(z[1]))(Z).tolist() == [[2.6, 0.0], [0.0, 0.0]]
    assert sa.compile(sa.grad(lambda x: x * held(x)), 0.0)(3.0) == 3.0


def test_a_rule_that_a_pickle_leaves_behind_is_missed():
    """The values of a pickled graph are right; the derivative is refused, not that of the value."""
    traced = pickle.loads(pickle.dumps(sa.trace(lambda x: sa.stop_gradient(x) * x, 1.0)))
    kernel = compile_trace(traced)
    assert kernel(3.0) == 9.0
