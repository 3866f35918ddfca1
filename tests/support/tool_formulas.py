"""Functions that tests write with NumPy and with the tools that kernels go into; `xp` is the module of either."""

from __future__ import annotations

from typing import Any


def formula(x: Any, a: Any, xp: Any) -> Any:
    return xp.sum(xp.sin(x) * x[0] * a) + a**3


def vector(x: Any, a: Any, xp: Any) -> Any:
    return xp.stack([x[0] * x[1] * a, xp.exp(x[1]), a * a])


def several(x: Any, a: Any, xp: Any) -> Any:
    return xp.exp(a * x), xp.sum(x * x) * a


FORMULAS = {"scalar": formula, "vector": vector, "several": several}
