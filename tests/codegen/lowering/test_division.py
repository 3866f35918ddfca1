"""A quotient is one division: the bits are those of Python."""

import numpy as np
import pytest

import symad as sa


@pytest.mark.parametrize("divisor", [10.0, 3, 0.1, -7.0, 1e-300, 49])
def test_division_by_a_constant_is_rounded_once(divisor):
    kernel = sa.compile(lambda x: x / divisor, 1.0)
    values = np.concatenate([np.arange(300.0), np.random.default_rng(0).normal(size=300)])
    assert [kernel(value) for value in values] == [value / divisor for value in values.tolist()]
    assert [sa.value_and_grad(lambda x: x / divisor)(value)[0] for value in values[:50]] == (
        values[:50] / divisor
    ).tolist()


def test_division_by_a_power_of_two_is_a_product():
    assert sa.compile(lambda x: x / 4.0, 1.0).stats.machine_operations == {"mul": 1}


def test_a_decision_on_a_quotient_is_pythons():
    def f(x):
        return x**2 if x / 10 == 0.7 and x // 0.1 == 69 else x

    assert f(7.0) == sa.value_and_grad(f)(7.0)[0] == sa.compile(f, 1.0)(7.0) == 49.0


def test_quotients_of_traced_values_are_rounded_once():
    kernel = sa.compile(lambda x: x[0] / x[1], np.ones(2))
    for pair in np.random.default_rng(1).normal(size=(300, 2)):
        assert kernel(pair) == pair[0] / pair[1] == sa.value_and_grad(lambda x: x[0] / x[1])(pair)[0]
    assert np.isnan(kernel(np.zeros(2)))
    assert kernel(np.array([1.0, 0.0])) == np.inf
