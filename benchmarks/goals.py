"""The goals, times faster than what, and the words for how far a measurement is from them."""

from __future__ import annotations

LIBRARIES = 5.0  # a call from Python: than the best of CasADi, heyoka, SymEngine, JAX, numba
C_CODE = 2.0  # than CasADi's C code, compiled by gcc
BUILD = 10.0  # from the Python function to the first number: than every peer that compiles
BATCH = 2.0  # points per second: than heyoka's and JAX's
WRITING = 0.8  # or of the rate at which the results alone are written
SHARE = 0.6  # of the measured instruction peak, or of the memory bandwidth


def times(ratio: float | None) -> str:
    """Return a ratio for a table.

    >>> times(2.345), times(None)
    ('2.3', '-')
    """
    if ratio is None:
        return "-"
    return f"{ratio:.2g}" if ratio < 10 else f"{ratio:.0f}"


def verdict(plain: float | None, goal: float, other: float | None = None, name: str = "") -> str:
    """Return "met", "met by ..." when only our other form reaches the goal, else how far the better one is.

    >>> verdict(5.5, 5.0), verdict(4.0, 5.0, 5.5, "fast"), verdict(2.5, 5.0), verdict(None, 5.0)
    ('met', 'met by fast', '50 %', '-')
    """
    known = [ratio for ratio in (plain, other) if ratio is not None]
    if not known:
        return "-"
    if max(known) >= goal:
        return "met" if plain is not None and plain >= goal else f"met by {name}"
    return f"{100 * max(known) / goal:.0f} %"
