"""Levels: parameters of their own, closed on every way out; epsilons of each."""

import pytest
import sympy as sp

from codegen.heads import Alias
from symad.derivatives.level import Epsilon, open_level


def test_nested_levels_have_parameters_of_their_own():
    with open_level([2.0]) as outer, open_level([2.0]) as inner:
        (first,), (second,) = outer.parameters.flat, inner.parameters.flat
        graph = inner.scope.graph
        assert graph is outer.scope.graph
        assert [graph.heads[node] for node in (first, second)] == [Alias, Alias]
        assert first != second
        assert graph.operands[first] == graph.operands[second]  # equal in value, never the same node


def test_epsilons_of_two_levels_are_different():
    one, two = Epsilon.of_level(1), Epsilon.of_level(2)
    assert sp.expand((one + two) ** 2) == 2 * one * two


def test_a_level_closes_when_its_body_fails():
    with pytest.raises(RuntimeError, match="inside"), open_level([2.0]) as level:
        raise RuntimeError("inside")
    assert not level.scope.open


def test_an_epsilon_has_no_reciprocal():
    with pytest.raises(ZeroDivisionError, match="epsilon_1 is nilpotent"):
        1 / Epsilon.of_level(1)
