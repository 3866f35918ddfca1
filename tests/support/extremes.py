"""Extremes: functions at NaN, infinities, zeros of both signs, subnormal, tiny and huge numbers, by every route.

`python -m tests.campaign extremes` compares the derivatives of orders 0 to 2 by every mix of modes, interpreted,
compiled in every form and in batches. Routes that differ are listed, with the reason, in docs/extremes.md; none differ
at ordinary points.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy import special

import symad as sa
from tests.support import mixes

INF, NAN = math.inf, math.nan
TINY = [0.0, -0.0, 5e-324, -1e-310, 1e-200]
HUGE = [1e200, -1e200, 1e308, -1.7e308, INF, -INF, NAN]
POINTS = [*TINY, *HUGE, 1.0, -1.0, 0.5, -0.5, 2.0, 710.0, -745.0]
ONE_TWO_THREE = np.array([1.0, 2.0, 3.0])
TOLERANCE = 1e-9  # of regular values: what is compared is their kind

FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    **{ufunc.__name__: ufunc for ufunc in (
        np.sin, np.cos, np.tan, np.arcsin, np.arccos, np.arctan, np.sinh, np.cosh, np.tanh, np.arcsinh, np.arccosh,
        np.arctanh, np.exp, np.exp2, np.expm1, np.log, np.log2, np.log10, np.log1p, np.sqrt, np.cbrt, np.square,
        np.reciprocal, np.absolute, np.sign, np.floor, np.ceil, np.trunc, np.rint, np.sinc, special.expit,
        special.log_expit, special.erf, special.erfc, special.erfinv, special.gamma, special.gammaln, special.digamma,
        special.entr, special.i0, special.j0, special.y0,
    )},
    "x**2": lambda x: x**2, "x**3": lambda x: x**3, "x**-1": lambda x: x**-1, "x**0.5": lambda x: x**0.5,
    "x**1.5": lambda x: x**1.5, "x**x": lambda x: x**x, "2**x": lambda x: 2**x, "1/x": lambda x: 1 / x,
    "x/x": lambda x: x / x, "x - x": lambda x: x - x, "|x| |x|": lambda x: np.abs(x) * np.abs(x),
    "hypot(x, 1)": lambda x: np.hypot(x, 1.0), "hypot(x, x)": lambda x: np.hypot(x, x),
    "arctan2(x, 1)": lambda x: np.arctan2(x, 1.0), "arctan2(1, x)": lambda x: np.arctan2(1.0, x),
    "maximum(x, 0)": lambda x: np.maximum(x, 0.0), "minimum(x, 0)": lambda x: np.minimum(x, 0.0),
    "maximum(x, x)": lambda x: np.maximum(x, x), "logaddexp(x, 0)": lambda x: np.logaddexp(x, 0.0),
    "modf(x)[0]": lambda x: np.modf(x)[0], "fmod(x, 2)": lambda x: np.fmod(x, 2.0), "x % 2": lambda x: np.mod(x, 2.0),
    "copysign(x, -1)": lambda x: np.copysign(x, -1.0), "xlogy(x, x)": lambda x: special.xlogy(x, x),
    "where(x > 0, log(x), x)": lambda x: np.where(x > 0, np.log(x), x), "clip(x, -1, 1)": lambda x: np.clip(x, -1, 1),
    "heaviside(x, 1/2)": lambda x: np.heaviside(x, 0.5),
    "norm([x, 2x])": lambda x: np.linalg.norm(ONE_TWO_THREE[:2] * x),
    "std([x, 2x, 3x])": lambda x: np.std(ONE_TWO_THREE * x), "cumprod": lambda x: np.cumprod(ONE_TWO_THREE * x)[-1],
    "logsumexp([x, 2x])": lambda x: special.logsumexp(ONE_TWO_THREE[:2] * x),
}  # fmt: skip
LIBRARIES = "interpreted it is SciPy's function, compiled it is the C library's"
ROOT = "compiled it is a square root, of -inf nan and of -0.0 -0.0; powers are inf and 0.0"
EXPECTED: dict[tuple[str, int], tuple[list[float], str]] = {  # where routes differ, and why; docs/extremes.md shows it
    ("gamma", 1): ([-1e-310], LIBRARIES),
    ("gamma", 2): ([-1e-310], LIBRARIES),
    ("gammaln", 0): ([5e-324, -1e-310, -INF], LIBRARIES),
    **{("j0", order): ([-1e-310, 1e200, -1e200, 1e308, -1.7e308, INF, -INF], LIBRARIES) for order in range(3)},
    **{("y0", order): ([5e-324, 1e200, 1e308, INF], LIBRARIES) for order in range(3)},
    ("expit", 0): ([-745.0], "SciPy's is 0 where the value is subnormal"),
    ("x**0.5", 0): ([-INF], ROOT),
    ("x**0.5", 1): ([-0.0], ROOT),
    ("x**1.5", 0): ([-INF], ROOT),
    ("x**1.5", 2): ([-0.0], ROOT),
    ("std([x, 2x, 3x])", 1): ([5e-324, -1e-310, 1e-200], "squares underflow: x/0 forward, 0 (1/0) in reverse"),
    ("x/x", 2): ([1e-200], "1/x**2 overflows, and infinities are subtracted or not"),
    ("erf", 2): ([1e308, -1.7e308], "0 times an overflow, or times what does not overflow"),
    ("erfc", 2): ([1e308, -1.7e308], "0 times an overflow, or times what does not overflow"),
}


PAGE = Path(__file__).parents[2] / "docs" / "extremes.md"
TEXT = """# At NaN, infinities, zeros and the ends of the range

Made by `python -m tests.support.extremes`; do not edit. `python -m tests.campaign extremes` compares {functions}
functions at {points} points by every route: the value and its derivatives of orders 1 and 2, every mix of forward and
reverse mode, interpreted, compiled (in straight lines, in the quick tier, in loops, as a sweep) and in batches. Two
routes agree where both are NaN, both the same infinity, or the same number to {digits} digits. They agree everywhere
but here:

| function | order | at | why |
|---|---|---|---|
{rows}

Conventions: NaN goes through every comparison as it does in Python, and through `maximum` and `minimum` as in NumPy. A
branch that is not taken contributes nothing, also where its own derivative is infinite. At a tie `maximum`, `minimum`
and `clip` give each side half, at 0 `absolute` gives 0. Slopes that choose between pieces are NaN at NaN, as the value
is: those of `absolute`, `maximum`, `minimum` and `clip`. Constant slopes stay what they are at NaN: the 2 of `2*x`, and
the 0 of `sign`, `floor` and other steps. A sum begins with its first term: of negative zeros alone it is -0.0, as that
of `np.inner` and `np.cumsum`, where `np.sum` and `np.dot` of NumPy begin with 0.0. Loops and straight lines add in
different orders: beside terms of 1e200 that cancel each other, one may lose what the other keeps. Where a derivative
overflows, or is a product of 0 and an infinity, modes may differ beyond this table: they multiply in different orders.
A 0 is a number, whoever wrote it: 0 times an infinite slope is NaN (`0.0 * norm(x)` at 0, `std(0.0 * x)`), as in JAX.
`quantile` at an element is that element, also beside an infinite one, where NumPy's is inf - inf. Which zero `max` and
`min` return of zeros of both signs is left open, as in NumPy.
`sorted` of numbers of which one is NaN, in more orders than there may be paths, is NaN compiled, where Python leaves
the others in some order.
`accuracy="fast"` is not in the comparison: docs/performance.md says where it loses a NaN.
"""


def page() -> str:
    """Return the page of differences and their reasons."""
    rows = [
        f"| `{name}` | {order} | {', '.join(map(repr, points))} | {why} |"
        for (name, order), (points, why) in sorted(EXPECTED.items())
    ]
    digits = round(-math.log10(TOLERANCE))
    return TEXT.format(functions=len(FUNCTIONS), points=len(POINTS), digits=digits, rows="\n".join(rows))


def values(f: Callable[[Any], Any], order: int) -> dict[str, list[float]]:
    """Return the derivative of one order at all points, by route."""
    found: dict[str, list[float]] = {}
    for word in mixes.words(order):
        g = mixes.nested(word, f)
        if word:  # without derivatives, the interpreted function is the user's own
            found[f"{word} interpreted"] = [float(g(np.float64(point))) for point in POINTS]  # Python's floats raise
        straight = sa.compile(g, 1.0, roll="never")
        found[f"{word} compiled"] = [float(straight(point)) for point in POINTS]
        found[f"{word} quick tier"] = [float(sa.compile(g, 1.0, tier="fast")(point)) for point in POINTS]
        found[f"{word} batch"] = [float(value) for value in straight.batch(np.array(POINTS))]
        if sa.trace(g, 1.0).count_ops():  # else there is nothing to repeat
            loops = sa.compile(lambda v, g=g: sa.vmap(g)(v), np.ones(len(POINTS)), roll="always")
            found[f"{word} loops"] = [float(value) for value in loops(np.array(POINTS))]
    if order == 2:
        swept = sa.compile(sa.hessian(lambda v: sum(f(u) for u in v)), np.ones(4), strategy="sweep")
        found["swept"] = [float(swept(np.full(4, point))[0, 0]) for point in POINTS]
    if order == 0:
        with np.errstate(all="ignore"):
            found["NumPy"] = [float(value) for value in _on_numpy(f)]
    return found


def _on_numpy(f: Callable[[Any], Any]) -> list[Any]:
    return [f(np.float64(point)) for point in POINTS]


def differing(f: Callable[[Any], Any], order: int) -> dict[str, str]:
    """Return the points at which routes differ, each with a route for every value that was found."""
    found = values(f, order)
    with np.errstate(all="ignore"):
        sizes = [abs(float(value)) for value in _on_numpy(f)]
    differences = {}
    for k, point in enumerate(POINTS):
        ordinary = 1e-3 < abs(point) < 1e3 and math.isfinite(sizes[k])
        rounding = TOLERANCE * sizes[k] / abs(point) ** order if ordinary else 0.0
        kinds: dict[str, float] = {}
        for route, column in found.items():
            if not any(_alike(column[k], value, rounding) for value in kinds.values()):
                kinds[route] = column[k]
        if len(kinds) > 1:
            differences[repr(point)] = ", ".join(f"{route}: {value!r}" for route, value in kinds.items())
    return differences


def _alike(a: float, b: float, rounding: float) -> bool:
    if math.isnan(a) or math.isnan(b):
        return math.isnan(a) and math.isnan(b)
    if math.isinf(a) or math.isinf(b):
        return a == b
    return abs(a - b) <= TOLERANCE * max(abs(a), abs(b)) + rounding


def check(name: str, order: int) -> str:
    """Compare all routes of one function; those that differ must be expected, with a reason."""
    found = differing(FUNCTIONS[name], order)
    points, _ = EXPECTED.get((name, order), ([], ""))
    new = {point: routes for point, routes in found.items() if point not in map(repr, points)}
    assert not new, f"{name}, order {order}: {new}"
    return "differ as expected" if found else "alike"


def tries(seed: int) -> Iterator[tuple[str, Callable[[], str]]]:
    """Yield every function and order, each once; the seed changes nothing."""
    for order in range(3):
        for name in FUNCTIONS:
            yield f"{name}, order {order}", lambda name=name, order=order: check(name, order)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
