"""A transform that is called many times on numbers says once that `jit` exists."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import symad as sa
from symad.errors import UncompiledWarning


@pytest.mark.parametrize(
    ("transform", "what"),
    [
        (sa.grad, "the gradient of cubed"),
        (lambda f: sa.hessian(f, mode="fwd-rev"), "the Hessian of cubed"),  # which is made of two transforms
        (sa.value_and_grad, "the value and gradient of cubed"),
    ],
    ids=["grad", "hessian", "value_and_grad"],
)
def test_who_calls_it_a_hundred_times_is_told_of_jit_once(transform: Any, what: str) -> None:
    def cubed(x: Any) -> Any:
        return x * x * x

    transformed = transform(cubed)
    for _ in range(99):
        transformed(2.0)
    with pytest.warns(UncompiledWarning, match=rf"{what} was called 100 times, .* sa\.jit") as told:
        transformed(2.0)
    for _ in range(300):  # where a warning is an error
        transformed(2.0)
    assert [Path(each.filename).name for each in told] == [Path(__file__).name]


def test_calls_that_are_traced_do_not_count() -> None:
    slope = sa.grad(lambda x: x * x * x)
    outer = sa.jit(lambda x: sum(slope(x + k) for k in range(200)))
    kernel = sa.compile(slope, 1.0)
    for _ in range(200):
        outer(1.0)
        kernel(1.0)
        sa.trace(slope, 1.0)
