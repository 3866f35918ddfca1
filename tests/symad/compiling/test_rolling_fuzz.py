"""Some of the random functions of tests/support/rolling_fuzz.py, always the same."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sp

from codegen.expressions.sympy_in import program_from_sympy
from tests.support.draws import seeded
from tests.support.first_terms import of_first_terms
from tests.support.rolling_fuzz import check, interpreted, make, rounded


@pytest.mark.parametrize("first", range(0, 40, 10))
@pytest.mark.thinned
def test_random_functions(first):
    found = [check(make(seeded(seed))) for seed in range(first, first + 10)]
    assert found.count("as loops") >= 4


def test_random_functions_as_kernels():
    assert [check(make(seeded(seed)), native=True) for seed in (2, 5, 7)] == ["as loops"] * 3


def test_rounding_is_told_from_other_numbers():
    x = sp.symbols("x:3")
    one, same, other = (
        program_from_sympy(x, [sum_]) for sum_ in (
            sp.Add(x[0], sp.Add(x[1], x[2], evaluate=False), evaluate=False),
            sp.Add(sp.Add(x[0], x[1], evaluate=False), x[2], evaluate=False),
            sp.Add(sp.Add(x[0], x[1], evaluate=False), 2 * x[2], evaluate=False),
        )
    )  # fmt: skip
    point = np.array([1e200, -1e200, 3.0])
    in_order, of_other = interpreted(same, point), interpreted(other, point)
    assert interpreted(one, point) != in_order
    assert rounded(in_order, same, one, point)
    assert not rounded(of_other, other, one, point), "another function"
    assert not rounded([np.array([7.0])], same, one, point), "not the numbers of the program"


def test_sums_of_the_convention_begin_with_their_first_terms():
    text = "def f(x):\n    return np.sum(x), x.sum(axis=0), x @ np.ones(2), np.sum(x[:0])"
    found = of_first_terms(text, {"np": np})["f"](np.full(2, -0.0))
    assert [str(float(value)) for value in found] == ["-0.0"] * 4
    assert of_first_terms(text, {"np": np})["f"](np.array([1.0, 2.0])) == (3.0, 3.0, 3.0, 0.0)
