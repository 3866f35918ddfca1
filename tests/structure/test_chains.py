"""Chains: what is found in unrolled time stepping, and that running it gives the same bits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from structure.chains_oracle import check, flat, found


def momentum(steps: int) -> Callable[[Any, Any], Any]:
    def run(x: Any, rate: Any) -> Any:
        speed = 0.0
        for _ in range(steps):
            slope = 4 * x**3 - 2 * x + 0.5
            speed = 0.9 * speed - rate * slope
            x = x + speed
        return x

    return run


def test_momentum_is_one_loop() -> None:
    program = flat(momentum(1000), 1.0, 0.01)
    (loop,) = loops = found(program)
    assert loop.count >= 998
    assert len(loop.carries) == 2
    assert [result.kind for result in loop.results] == ["last"]
    assert check(program, loops) > 0.99
