"""What is multiplied by the number 0 is 0: so is its derivative, also where that of the other factor is infinite."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import symad as sa

POINT = np.linspace(0.3, 0.9, 20)
WORDS: dict[str, Callable[[Callable[..., Any], Any], Any]] = {
    "gradient": lambda f, x: sa.grad(f)(x),
    "jvp": lambda f, x: np.array(
        [sa.jvp(f, (x,), (unit,))[1] for unit in np.eye(np.size(x)).reshape(-1, *np.shape(x))]
    ),
    "kernel": lambda f, x: sa.compile(sa.grad(f), x)(x),
    "straight lines": lambda f, x: sa.compile(sa.grad(f), x, roll="never")(x),
}


def _no_penalty(x: Any) -> Any:
    return np.sum(np.sin(x)) + 0.0 * np.linalg.norm(x - POINT)


def _constant(x: Any) -> Any:
    zero = 0.0 * x
    return np.sum(np.sin(x)) + np.sum((zero - zero.mean()) / (zero.std() + 1.0))


def _nothing_of_a_root(x: Any) -> Any:
    return np.sum(np.sin(x)) + np.sum(0 * np.sqrt(x - POINT))


@pytest.mark.parametrize("word", WORDS)
@pytest.mark.parametrize("function", [_no_penalty, _constant, _nothing_of_a_root])
@pytest.mark.parametrize("size", [3, 20])
def test_a_factor_of_zero_takes_the_slope_away(function: Any, word: str, size: int, monkeypatch: Any) -> None:
    monkeypatch.setitem(globals(), "POINT", POINT[:size])
    np.testing.assert_allclose(WORDS[word](function, POINT), np.cos(POINT), rtol=1e-14)


def test_second_derivatives_too() -> None:
    def f(x: Any) -> Any:
        return x * x + 0.0 * abs(x) ** 1.5

    assert sa.grad(sa.grad(f))(0.0) == 2.0
    assert sa.compile(sa.hessian(f), 0.0)(0.0) == 2.0


def test_a_zero_that_is_given_is_a_number() -> None:
    """As JAX has it: what is multiplied is the slope, here an infinite one."""

    def f(x: Any, weight: Any) -> Any:
        return weight * np.sqrt(x)

    of_both = sa.grad(f, argnums=(0, 1))
    assert np.isnan(of_both(0.0, 0.0)[0])
    assert np.isnan(sa.compile(of_both, 0.0, 0.0)(0.0, 0.0)[0])
