"""Levels: parameters and epsilons of their own, closed on every way out."""

import pytest
import sympy as sp

from codegen.heads import Alias
from symad.derivatives.level import Epsilon, open_level


def test_nested_levels_have_parameters_and_epsilons_of_their_own():
    with open_level([2.0]) as outer, open_level([2.0]) as inner:
        (first,), (second,) = outer.parameters.flat, inner.parameters.flat
        graph = inner.scope.graph
        assert graph is outer.scope.graph
        assert [graph.heads[node] for node in (first, second)] == [Alias, Alias]
        assert first != second
        assert graph.operands[first] == graph.operands[second]  # equal in value, never the same node
        assert outer.epsilon != inner.epsilon
        assert sp.expand((outer.epsilon + inner.epsilon) ** 2) == 2 * outer.epsilon * inner.epsilon


def test_a_level_closes_when_its_body_fails():
    with pytest.raises(RuntimeError, match="inside"), open_level([2.0]) as level:
        raise RuntimeError("inside")
    assert not level.scope.open


def test_an_epsilon_has_no_reciprocal():
    with pytest.raises(ZeroDivisionError, match="epsilon_1 is nilpotent"):
        1 / Epsilon.of_level(1)
