"""Random programs on arrays, as people write them, against NumPy's own numbers and central differences.

While a program grows, it is run by NumPy at one point: that gives the shapes, and what raises is left out.
`python -m tests.fuzz arrays 1000`; values at zeros, ties, infinities and NaN: `arrays-odd`.
"""

from __future__ import annotations

import functools
import itertools
import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from string import Formatter
from typing import Any, ClassVar
from unittest.mock import patch

import numpy as np

import symad as sa
from codegen.errors import ArgumentError, LimitError
from codegen.limits import limits
from symad.errors import BoundWarning, EscapedValueError, RuleError, TraceError
from tests.support.array_forms import EXPRESSIONS, STATEMENTS
from tests.support.draws import SEEDS, Draw
from tests.support.fuzzing import cause, counted
from tests.support.source_texts import execute

Numbers = Any
LARGEST = 1e3  # absolute values
STEPS = (1e-3, 5e-4)  # of central differences; where both agree, the function is smooth there
SMOOTH, TOLERANCE = 1e-7, 1e-6  # differences of sixth order against each other, and against derivatives
SAME = 1e-9  # values and derivatives by different ways
SECONDS = 20.0  # for one transform
CASES = (1.0, 2.0, 3.0)
REFUSED = (TraceError, ArgumentError, EscapedValueError, LimitError, RuleError)  # the last of equal eigenvalues


def MASK(array: Numbers) -> Numbers:  # noqa: N802
    """Two places of three."""
    return np.arange(np.size(array)).reshape(np.shape(array)) % 3 != 1


def DATA(array: Numbers) -> Numbers:  # noqa: N802
    """Numbers that fit an array."""
    return np.cos(np.arange(np.size(array))).reshape(np.shape(array))


def PLACES(array: Numbers) -> Numbers:  # noqa: N802
    """Places along the first axis, with repeats."""
    return np.arange(len(array)) ** 2 % max(1, len(array) - 1)


def KERNEL(array: Numbers) -> Numbers:  # noqa: N802
    """A positive definite matrix."""
    return 2.0 * np.eye(len(array)) + np.outer(np.sin(array), np.sin(array))


SCOPE: dict[str, Any] = {
    "np": np, "math": math, "functools": functools, "MASK": MASK, "DATA": DATA, "PLACES": PLACES, "KERNEL": KERNEL,
}  # fmt: skip


class Text:
    """A function `f(x)`, growing, and the numbers that its names have at one point."""

    SIZES: ClassVar[Sequence[int]] = (3, 4, 5, 6)
    MOST: ClassVar[int] = 40  # numbers in one array
    SCOPE: ClassVar[dict[str, Any]] = SCOPE
    EXPRESSIONS: ClassVar[Sequence[Sequence[str]]] = EXPRESSIONS
    STATEMENTS: ClassVar[Sequence[Sequence[str]]] = STATEMENTS

    def __init__(self, draw: Draw) -> None:
        self.draw = draw
        self.size, self.seed = draw.choice(self.SIZES), draw.below(SEEDS)
        self.names: dict[str, Any] = dict(self.SCOPE)
        self.lines: list[str] = []
        self.arrays: list[str] = ["x"]
        self.numbers = ["x[0]", "x[-1]", "0.3"]
        self.names["x"] = points(self.size, self.seed)[0]
        for _ in range(draw.integer(1, 7)):
            draw.part(self.statement)

    def statement(self) -> None:
        """Draw a statement; it stays if NumPy can do it."""
        name = f"v{len(self.lines)}"
        if self.draw.chance(0.3):
            lines = self.filled(self.draw.choice(self.draw.choice(self.STATEMENTS)), name).splitlines()
        else:
            lines = [f"{name} = {self.filled(self.draw.choice(self.draw.choice(self.EXPRESSIONS)), name)}"]
        trial = {key: value.copy() if isinstance(value, np.ndarray) else value for key, value in self.names.items()}
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                exec("\n".join(lines), trial)
            value = np.asarray(trial[name], dtype=float)
        except Exception:
            return
        if not 0 < value.size <= self.MOST or not np.all(np.abs(value) < LARGEST):
            return
        self.lines += lines
        self.names = trial
        (self.arrays if value.ndim else self.numbers).append(name)
        if value.ndim and not isinstance(trial[name], np.ndarray):
            self.lines.append(f"{name} = np.asarray({name})")
            trial[name] = value

    def filled(self, form: str, name: str) -> str:
        """A form with names in its gaps, those of late statements more often."""
        gaps = {gap for _, gap, _, _ in Formatter().parse(form) if gap}
        some = {"A": range(1, 4), "B": range(1, 4), "V": (1,), "M": (2,)}
        found = {"r": name, "q": f"q{name}"}
        for gap in sorted(gaps - found.keys()):
            if gap in some:
                fits = [array for array in self.arrays if np.ndim(self.names[array]) in some[gap]]
                found[gap] = self.draw.choice([*(fits or ["x"]), *fits[-2:]])
            elif gap in "st":
                found[gap] = self.draw.choice([*self.numbers, *self.numbers[-2:]])
            else:
                found[gap] = self.draw.choice(["0", "-1", "1"] if gap == "x" else ["1", "2", "3"])
        return form.format(**found)

    def result(self) -> str:
        """A number of the last things that were made."""
        parts = [f"np.sum({name} * DATA({name}))" for name in self.arrays[-2:]] + self.numbers[3:][-1:]
        return " + ".join(parts) if self.draw.chance(0.5) else f"np.sin({' + '.join(parts)})"


def make(draw: Draw) -> str:
    """A random function as text, the size of its argument, and what its points are made from."""
    text = Text(draw)
    lines = [*text.lines, f"return {text.result()}"]
    return "def f(x):\n" + "".join(f"    {line}\n" for line in lines) + f"\nSIZE, POINTS = {text.size}, {text.seed}\n"


def points(size: int, seed: int) -> list[Numbers]:
    """Three points."""
    generator = np.random.default_rng(seed)
    return [scale * generator.uniform(-0.6, 0.7, size) for scale in CASES]


def differences(f: Callable[[Numbers], Numbers], x: Numbers, step: float) -> Numbers:
    """A gradient by central differences of sixth order."""
    return np.array([
        sum(w * (f(x + k * step * unit) - f(x - k * step * unit)) for k, w in ((1, 45), (2, -9), (3, 1))) / (60 * step)
        for unit in np.eye(len(x))
    ])  # fmt: skip


def near(found: Numbers, right: Numbers, tolerance: float) -> bool:
    """Whether numbers agree, relative to the largest; not numbers agree with each other."""
    right = np.asarray(right, dtype=float)
    scale = max(1.0, float(np.max(np.abs(right), initial=0.0, where=np.isfinite(right))))
    return bool(np.allclose(found, right, rtol=0, atol=tolerance * scale, equal_nan=True))


def function_of(text: str) -> tuple[Callable[[Numbers], Numbers], int, int]:
    """The function of a text, the size of its argument, and what its points are made from."""
    scope = dict(SCOPE)
    execute(text, scope)
    return scope["f"], scope["SIZE"], scope["POINTS"]


@contextmanager
def quietly(seconds: float = SECONDS) -> Iterator[None]:
    """NumPy says nothing of what is not finite, and no transform takes long."""
    with warnings.catch_warnings(), np.errstate(all="ignore"), limits(max_seconds=seconds):
        warnings.simplefilter("ignore", RuntimeWarning)
        warnings.simplefilter("ignore", BoundWarning)  # 64 steps are more than the programs have
        yield


def check(text: str) -> str:
    """Compare a program's value, gradient and Hessian by many ways; AssertionError where they differ."""
    f, size, seed = function_of(text)
    with quietly():
        given = [(x, value) for x in points(size, seed) if (value := plain(f, x)) is not None and abs(value) < LARGEST]
        right = [(x, value, smooth(f, x)) for x, value in given]
        if not right:
            return "without numbers"
        try:
            for wrong in itertools.chain(interpreted(f, right), compiled(f, right)):
                assert not wrong, wrong
        except REFUSED as error:
            return f"refused: {cause(error)}"
    return "right" if any(slope is not None for _, _, slope in right) else "right, not smooth"


def odd_points(size: int, seed: int) -> list[Numbers]:
    """Points with ties and zeros, and with what is not finite."""
    generator = np.random.default_rng(seed)
    ties = [generator.choice([0.0, -0.0, 1.0, -1.0, 0.5], size) for _ in range(2)]
    some = generator.uniform(-1, 1, (4, size))
    some[range(4), generator.integers(size, size=4)] = np.nan, np.inf, -np.inf, 1e-200
    return [*ties, np.zeros(size), *some]


ROUNDED = ("var", "std", "mean", "tanh", "exp", "cos", "log1p", "sqrt", "cumprod", "hypot")
LAPACK = ("solve", "inv", "cholesky", "lstsq", "pinv", "qr", "eigvalsh", "det", "slogdet")
BESIDE_INFINITY = ("percentile(", "quantile(")  # see docs/extremes.md
LEFT_OPEN = ("sorted(", "astype(int)")  # what they make of NaN: any order, any number


def check_odd(text: str) -> str:
    """Compare values at odd points with NumPy's, interpreted and compiled; AssertionError where they differ."""
    f, size, seed = function_of(text)
    with quietly():
        numbers = valid if any(form in text for form in LEFT_OPEN) else plain
        given = [(x, value) for x in odd_points(size, seed) if (value := numbers(f, x)) is not None]
        if not given:
            return "without numbers"
        try:
            kernel = sa.compile(f, points(size, seed)[0])
            for x, value in given:
                for how, found in (("interpreted", sa.value_and_grad(f)(x)[0]), ("kernel", kernel(x))):
                    counted(f"value, {how}")
                    right = near(found, value, SAME) or hangs_on_roundings(text, f, x, found, value)
                    assert right, f"{how} at {x.tolist()}: {found} and not {value}"
        except REFUSED as error:
            return f"refused: {cause(error)}"
    return "right"


@contextmanager
def rounding_differently(text: str) -> Iterator[None]:
    """Results of LAPACK and others are changed in the last digits, sums taken in other orders, large sines any number.

    Results that are equal but for roundings often stay equal.
    """
    generator = np.random.default_rng(0)
    total, sine = np.sum, np.sin

    def rounded(part: Numbers) -> Numbers:
        unit = np.max(np.abs(part), initial=0.0) * 2.0**-46 or 1.0
        return (np.round(part / unit) + generator.integers(-1, 2, np.shape(part))) * unit

    def changed(function: Callable[..., Any]) -> Callable[..., Any]:
        def other(*args: Any, **keywords: Any) -> Any:
            found = function(*args, **keywords)
            return tuple(map(rounded, found)) if isinstance(found, tuple) else rounded(found)

        return other

    def in_another_order(a: Any, *args: Any, **keywords: Any) -> Any:
        return total(a, *args, **keywords) if args or keywords else total(generator.permutation(np.ravel(a)))

    def any_if_large(a: Any) -> Any:
        return np.where(np.abs(a) > 1e17, generator.uniform(-1, 1, np.shape(a)), sine(a))

    with ExitStack() as stack:
        for name in LAPACK:
            stack.enter_context(patch.object(np.linalg, name, changed(getattr(np.linalg, name))))
        for name in ROUNDED:
            stack.enter_context(patch.object(np, name, changed(getattr(np, name))))
        if "nan_to_num" in text:
            stack.enter_context(patch.multiple(np, sum=in_another_order, sin=any_if_large))
        yield


def hangs_on_roundings(text: str, f: Callable[[Numbers], Numbers], x: Numbers, found: Numbers, value: Numbers) -> bool:
    """Whether a number other than NumPy's is as good, which hangs on the last digits.

    So it is where results are equal but for roundings, and are put in an order: NumPy has the number when it rounds
    differently. Numbers of 1e308, which stand for infinities, overflow or not by the order of a sum, and have a sine
    for every rounding: NumPy has others in other orders.
    """
    if np.isinf(x).any() and any(form in text for form in BESIDE_INFINITY):
        return True
    if "corrcoef(" in text and not (np.isfinite(found) and np.isfinite(value)):
        return True  # of equal numbers it is 0 / 0, or a quotient of roundings
    with rounding_differently(text):
        others = [other for _ in range(200) if (other := plain(f, x)) is not None]
    if "nan_to_num" in text and np.isinf(x).any():
        return not all(near(other, value, SAME) for other in others)
    return any(near(found, other, SAME) for other in others)


def plain(f: Callable[[Numbers], Numbers], x: Numbers) -> Numbers:
    """NumPy's own number, or None where there is none."""
    try:
        return float(f(x.copy()))
    except Exception:
        return None


def valid(f: Callable[[Numbers], Numbers], x: Numbers) -> Numbers:
    """NumPy's own number, or None where there is none, or where something on the way is not a number."""
    with np.errstate(invalid="raise"):
        return plain(f, x) if np.isfinite(x).all() else None


def smooth(f: Callable[[Numbers], Numbers], x: Numbers) -> Numbers:
    """The gradient by differences where they can be relied on, or None."""
    try:
        one, other = (differences(lambda y: float(f(y.copy())), x, step) for step in STEPS)
    except Exception:
        return None
    return other if np.all(np.isfinite(one)) and near(one, other, SMOOTH) else None


def interpreted(f: Callable[[Numbers], Numbers], right: list[tuple[Numbers, Numbers, Numbers]]) -> Iterator[str]:
    """What is wrong with derivatives of numbers."""
    for x, value, slope in right:
        same, reverse = sa.value_and_grad(f)(x)
        forward = sa.jacfwd(f)(x)
        for mode in ("value", "forward") if slope is None else ("value", "forward", "gradient, differences"):
            counted(mode)
        if not near(same, value, SAME):
            yield f"value at {x.tolist()}: {same} and not {value}"
        if slope is not None and not near(reverse, slope, TOLERANCE):
            yield f"gradient at {x.tolist()}: {reverse.tolist()} and not {slope.tolist()}"
        if not near(forward, reverse, SAME):
            yield f"forward at {x.tolist()}: {forward.tolist()}, reverse {reverse.tolist()}"


def compiled(f: Callable[[Numbers], Numbers], right: list[tuple[Numbers, Numbers, Numbers]]) -> Iterator[str]:
    """What is wrong with kernels, and with second derivatives."""
    x = right[0][0]
    value, gradient, matrix = sa.compile(f, x), sa.compile(sa.grad(f), x), sa.compile(sa.hessian(f), x)
    for x, expected, slope in right:
        found, reverse = value(x), sa.grad(f)(x)
        if not near(found, expected, SAME):
            yield f"kernel of the value at {x.tolist()}: {found} and not {expected}"
        if not near(gradient(x), reverse, SAME):
            yield f"kernel of the gradient at {x.tolist()}: {gradient(x).tolist()}, interpreted {reverse.tolist()}"
        second = sa.hessian(f, mode="fwd-rev")(x)
        for mode in ("value", "gradient", "Hessian"):
            counted(f"{mode}, kernel")
        if not near(matrix(x), second, SAME):
            yield f"kernel of the Hessian at {x.tolist()}: {matrix(x).tolist()}, interpreted {second.tolist()}"
        rows = None if slope is None else smooth_rows(gradient, x)  # the kernel's: as good, and a hundred times quicker
        if rows is not None:
            counted("Hessian, differences")
        if rows is not None and not near(second, rows, TOLERANCE):
            yield f"Hessian at {x.tolist()}: {second.tolist()} and not {rows.tolist()}"


def smooth_rows(g: Callable[[Numbers], Numbers], x: Numbers) -> Numbers:
    """The derivative of a gradient by differences where they can be relied on, or None."""
    one, other = (differences(g, x, step) for step in STEPS)
    return other if np.all(np.isfinite(one)) and near(one, other, SMOOTH) else None
