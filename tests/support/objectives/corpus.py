"""The table of objective functions: each row is a plain Python function with what its paper says about it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Function = Callable[..., Any]


@dataclass(frozen=True)
class Problem:
    """A function, the start and the optimum that its paper gives, and where it stands.

    `first` is the value at the start, where it is printed or easily worked out by hand. `at` holds the optimal points.
    `rounded` points are printed with few digits (or the paper gives the value alone): Newton's method completes them.
    `tolerance` is what the digits of `minimum` allow. `smooth=False`: a kink or an irregular optimum, where the
    gradient need not vanish. `unpacked` functions take the numbers one by one, `residuals` return what is squared and
    summed. `equal` functions vanish, `at_least_zero` functions are >= 0. A `source` in lower case is no paper, but
    a computation of every day.
    """

    function: Function
    start: np.ndarray
    minimum: float
    at: tuple[np.ndarray, ...]
    source: str
    first: float | None = None
    tolerance: float = 1e-10
    rounded: bool = False
    smooth: bool = True
    unpacked: bool = False
    residuals: bool = False
    equal: Function | None = None
    at_least_zero: Function | None = None
    low: Any = -np.inf
    high: Any = np.inf

    def objective(self, x: Any) -> Any:
        """Return the objective: the function itself, or the sum of its squared residuals."""
        result = self.function(*x) if self.unpacked else self.function(x)
        return sum(r**2 for r in result) if self.residuals else result


PROBLEMS: dict[str, Problem] = {}


def problem(*, start: Any, minimum: float, at: Any, source: str, **details: Any) -> Callable[[Function], Function]:
    """Enter the function below into the table; `at` is one optimal point, or a list of several."""

    def register(function: Function) -> Function:
        name = getattr(function, "__name__", type(function).__name__)
        if name in PROBLEMS:
            raise ValueError(f"two objectives are called {name}")
        begin = np.array(start, dtype=float)
        points = np.array(at, dtype=float)
        known = tuple(points) if points.ndim > begin.ndim else (points,)
        PROBLEMS[name] = Problem(function, begin, minimum, known, source, **details)
        return function

    return register
