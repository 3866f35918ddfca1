"""Every mix of forward and reverse mode, compiled and not: the routes that a derivative is checked on."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

import symad as sa

FORWARD, REVERSE = "F", "R"
ONCE = {FORWARD: sa.derivative, REVERSE: sa.grad}


def words(order: int) -> list[str]:
    """All words over {F, R} of one length, outermost mode first: FR is forward over reverse."""
    return ["".join(letters) for letters in product(FORWARD + REVERSE, repeat=order)]


def nested(word: str, f: Any) -> Any:
    """Apply one mode after the other to a function of one scalar, the last letter first."""
    for letter in reversed(word):
        f = ONCE[letter](f)
    return f


def every_value(f: Any, x: float, order: int, *, compiled: bool = True) -> dict[str, float]:
    """The order-th derivative of f at x by every mix, interpreted and compiled, by name of the route."""
    found = {}
    for word in words(order):
        g = nested(word, f)
        with np.errstate(all="ignore"):  # order 0 is the plain function, on NumPy's numbers
            found[f"{word or 'value'} interpreted"] = g(x)
        if compiled:
            found[f"{word or 'value'} compiled"] = sa.compile(g, 1.0)(x)
    return found


HESSIAN_MODES = ("auto", "edge", "dyadic", "fwd-rev", "rev-rev", "rev-fwd", "fwd-fwd")
