"""Whose a traced number is: NumPy's integers have a size and divide by zero, Python's do neither."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import symad as sa

X = np.array([1.5, 2.5, 0.5])

MADE: dict[str, Callable[[Any], Any]] = {
    "place of the largest": np.argmax,
    "place in an order": lambda x: np.argsort(x)[1],
    "place where": lambda x: np.where(x == x.max())[0][0],
    "place where, known lengths": lambda x: np.where(x == x.max())[0].ravel()[0],
    "sum of truths": lambda x: (x > 1).sum(),
    "Python's sum of truths": lambda x: sum(x > 1),
    "truth and a number": lambda x: 1 + (x > 1)[0],
    "negative sum of truths": lambda x: -sum(x > 1),
    "truth times a number": lambda x: (x > 1)[0] * 2,
    "sum of Python's truths": lambda x: sum(float(v) > 1 for v in x),
    "running count": lambda x: np.cumsum(x > 1)[1],
    "count": lambda x: np.count_nonzero(x > 1),
    "integer element": lambda x: x.astype(int)[0],
    "sum of integers": lambda x: x.astype(int).sum(),
    "place and a number": lambda x: np.argmax(x) + 1,
    "place and an int": lambda x: int(x[0]) + np.argmax(x),
    "int": lambda x: int(x[0]),
    "int of what is an integer": lambda x: int(x.astype(int)[0]),
    "int and a number": lambda x: int(x[0]) + 1,
    "quotient of ints": lambda x: int(x[1]) // 2,
    "np.int64": lambda x: np.int64(x[0]),
    "element of np.int64": lambda x: np.int64(x)[1],
    "np.int32 of a sum": lambda x: np.int64(np.int32(x).sum()),
    "np.int64 of a list": lambda x: np.int64([x[0], x[1]])[1],
    "np.float64": lambda x: np.float64(x[0]),
    "choice of numbers": lambda x: 2 if x[0] > 1 else 3,
    "length": lambda x: len(np.nonzero(x > 1)[0]),
    "float": lambda x: float(x[0]),
    "element": lambda x: x[0],
}


def has_infinite_inverse(number):
    try:
        return 1 / (number - number) > 0
    except ZeroDivisionError:
        return False


ASKED: dict[str, Callable[[Any], bool]] = {
    "int": lambda number: isinstance(number, int),
    "int or float": lambda number: isinstance(number, int | float),
    "integer of NumPy": lambda number: isinstance(number, np.integer),
    "size": lambda number: hasattr(number, "size"),
    "numerator": lambda number: hasattr(number, "numerator"),
    "scalar": np.isscalar,
    "inverse of zero": has_infinite_inverse,
}


@pytest.mark.filterwarnings("ignore:divide by zero", "ignore:invalid value")
@pytest.mark.parametrize("question", ASKED)
@pytest.mark.parametrize("name", MADE)
def test_the_answer_is_that_of_numbers(name: str, question: str) -> None:
    def f(x: Any) -> Any:
        return np.sum(x) * (2.0 if ASKED[question](MADE[name](x)) else 3.0)

    assert sa.value_and_grad(f)(X)[0] == f(X)
    assert sa.compile(f, X)(X) == f(X)


def test_float_of_an_input_is_a_float_of_python() -> None:
    def inverse(x: Any) -> Any:
        try:
            return 1 / float(x[0])
        except ZeroDivisionError:
            return 5.0

    assert sa.compile(inverse, X)(np.array([0.0, 1.0, 2.0])) == 5.0
