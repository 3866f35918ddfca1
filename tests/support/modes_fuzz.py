"""Random programs on arrays, each with two mixes of modes of one order, 0 to 3: by array nodes, elements and kernels.

All mixes of an order are the same number, the derivative along its directions. `python -m tests.fuzz arrays-modes 9`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

import symad as sa
from tests.support.arrays_fuzz import (
    LARGEST,
    REFUSED,
    SAME,
    TOLERANCE,
    Numbers,
    Text,
    near,
    plain,
    points,
    quietly,
)
from tests.support.draws import SEEDS, Draw
from tests.support.fuzzing import cause, counted
from tests.support.large_fuzz import STEEP, LargeText, last_digits, smooth_along, thresholds
from tests.support.numbers_fuzz import array_nodes
from tests.support.source_texts import execute

Function = Callable[[Numbers], Numbers]
Apply = Callable[[Function, Numbers], Function]
ONCE: dict[str, Apply] = {
    "F": lambda f, v: lambda x: sa.jvp(f, (x,), (v,))[1],
    "L": lambda f, v: lambda x: sa.linearize(f, x)[1](v),
    "R": lambda f, v: lambda x: np.sum(sa.grad(f)(x) * v),
    "V": lambda f, v: lambda x: np.sum(sa.vjp(f, x)[1](1.0)[0] * v),
}
TWICE = "H"  # a Hessian-vector product, along both directions
ORDERS = (0, 1, 1, 2, 2, 2, 3, 3)
KERNELS: tuple[dict[str, Any] | None, ...] = (
    None, None, None, {}, {}, {"roll": "never"}, {"tier": "fast"}, {"roll": "never", "tier": "fast"},
)  # fmt: skip
DIFFERENCES = 0.25  # how often the outermost derivative is compared with differences
THRESHOLDS = (3, 2, 1, 2, 1, 2), (6, 3, 3, 5, 30, 4), (12, 4, 32, 64, 1 << 15, 24)  # what is large in a kernel


class LargeForms(LargeText):
    """The forms of large programs, on arrays that are small."""

    SIZES: ClassVar = (6, 12)
    MOST: ClassVar = 48


def word(draw: Draw, order: int) -> str:
    """Modes of so many derivatives in all, the outermost first."""
    letters = ""
    while order:
        letter = draw.choice([*ONCE, *((TWICE,) if order > 1 else ())])
        letters += letter
        order -= 2 if letter == TWICE else 1
    return letters


def make(draw: Draw) -> str:
    """A random function as text, and what it is checked with."""
    text = (LargeForms if draw.unit() > 0.7 else Text)(draw)
    lines = "\n".join([*text.lines, f"return {text.result()}"]).splitlines()
    order = draw.choice(ORDERS)
    mixes = [word(draw, order), word(draw, order)]
    some = draw.choice((2, 3, 6, 12)), draw.choice(KERNELS), draw.choice(THRESHOLDS), draw.unit() > 1 - DIFFERENCES
    return (
        "def f(x):\n"
        + "".join(f"    {line}\n" for line in lines)
        + f"\nSIZE, POINTS, MIXES = {text.size}, {text.seed}, {mixes}\n"
        + "LEAST, KERNEL, LARGE, DIFFERENCES = {}, {}, {}, {}\n".format(*some)
    )


@dataclass(frozen=True)
class Case:
    """A function with its derivatives by two mixes of modes, its point, and by what ways they are computed."""

    f: Function
    directions: Sequence[Numbers]
    mixes: Sequence[str]
    point: Numbers
    least: int
    kernel: dict[str, Any] | None
    large: tuple[int, ...]
    differences: bool


def case_of(text: str) -> Case | None:
    """What a text says; None for a function without numbers at its points."""
    scope: dict[str, Any] = dict(LargeText.SCOPE)
    execute(text, scope)
    size, seed, f = scope["SIZE"], scope["POINTS"], scope["f"]
    right = [x for x in points(size, seed) if (value := plain(f, x)) is not None and abs(value) < LARGEST]
    if not right:
        return None
    directions = np.random.default_rng(seed + SEEDS).uniform(-1, 1, (3, size))
    others = scope["LEAST"], scope["KERNEL"], scope["LARGE"], scope["DIFFERENCES"]
    return Case(f, directions, scope["MIXES"], right[seed % len(right)], *others)


def derivative(f: Function, mix: str, directions: Sequence[Numbers]) -> Function:
    """The derivative along directions by a mix of modes, the outermost mode first, as its direction is."""
    if not mix:
        return f
    if mix[0] == TWICE:
        inside = derivative(f, mix[1:], directions[2:])
        return lambda x: np.sum(sa.hvp(inside, (x,), (directions[1],)) * directions[0])
    return ONCE[mix[0]](derivative(f, mix[1:], directions[1:]), directions[0])


def check(text: str) -> str:
    """Compare the ways; AssertionError where they differ."""
    with quietly():
        case = case_of(text)
        if case is None:
            return "without numbers"
        first, second = (derivative(case.f, mix, case.directions) for mix in case.mixes)
        try:
            with array_nodes(case.least):
                found = number(first, case.point)
            _compare(case, first, found, ways(case, first, second))
            if case.differences and case.mixes[0]:
                _differences(case, found)
        except REFUSED as error:
            return f"refused: {cause(error)}"
    return "right"


def number(function: Function, x: Numbers) -> float:
    """What a function gives at a point."""
    return float(function(x.copy()))


def ways(case: Case, first: Function, second: Function) -> Iterator[tuple[str, float]]:
    """The same derivative by the other ways; each is `REFUSED` where the first way is."""
    one, other = case.mixes
    with array_nodes(None):
        yield f"{one}, each element", number(first, case.point)
    if other != one:
        with array_nodes(case.least):
            yield f"{other}, array nodes", number(second, case.point)
    if case.kernel is None:
        return
    with thresholds(case.large):
        kernel = sa.compile(second, case.point, **case.kernel)
    options = "".join(f", {name}={value}" for name, value in case.kernel.items())
    yield f"{other}, kernel{options}", float(kernel(case.point))


def _compare(case: Case, first: Function, found: float, others: Iterator[tuple[str, float]]) -> None:
    if not case.mixes[0]:
        others = _also(("NumPy", plain(case.f, case.point)), others)
    steep = None
    for way, wanted in others:
        counted(f"order {order_of(case.mixes[0])}, {way}")
        if near(found, wanted, SAME):
            continue
        if steep is None:
            steep = STEEP * last_digits(first, case.point, found)[0]
        assert abs(found - wanted) <= steep, f"{case.mixes[0] or 'value'}: {found}, {way}: {wanted}{_at(case)}"
        counted("decided by the last digits of the point")


def _also(one: tuple[str, float], others: Iterator[tuple[str, float]]) -> Iterator[tuple[str, float]]:
    yield one
    yield from others


def order_of(mix: str) -> int:
    """How many derivatives a mix takes."""
    return len(mix) + mix.count(TWICE)


def _differences(case: Case, found: float) -> None:
    """Compare the outermost derivative with differences of what it is taken of."""
    mix, directions = case.mixes[0], case.directions
    if mix[0] == TWICE:
        mix = "FF" + mix[1:]
    inside = derivative(case.f, mix[1:], directions[1:])
    with array_nodes(case.least):
        wanted = smooth_along(lambda y: number(inside, y), case.point, directions[0])
    if wanted is not None:
        counted(f"order {order_of(mix)}, differences")
        assert near(found, wanted, TOLERANCE), f"{mix}: {found}, by differences {wanted}{_at(case)}"


def _at(case: Case) -> str:
    return f", at {case.point.tolist()}"
