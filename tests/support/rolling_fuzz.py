"""Random functions of repeated structure, as loops and as straight lines: value, gradient, Hessian, at odd points too.

`python -m tests.fuzz rolling 1000`; with kernels too: `rolling-native`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import ExitStack
from unittest.mock import patch

import numpy as np

import codegen.loops.find.chains
import codegen.loops.find.cover
import codegen.loops.roll
import symad as sa
from codegen.evaluation.evaluate_rolled import evaluate_rolled
from codegen.evaluation.interpret import evaluate
from codegen.ir.program import Program
from codegen.ir.unroll import unroll
from symad.compiling.candidates import Rolled
from symad.compiling.native import compile_rolled
from symad.compiling.planning import plan
from symad.errors import LimitError, TraceError
from symad.tracing.trace import to_program, trace
from tests.support.draws import SEEDS, Draw
from tests.support.first_terms import of_first_terms
from tests.support.fuzzing import cause, counted
from tests.support.source_texts import execute

Point = np.ndarray
DIGITS = 700  # in which 1e200 and 1e-200, and their squares, are not lost beside each other
SMALL = (
    (codegen.loops.roll, "FEWEST_ROWS"),
    (codegen.loops.find.cover, "OPERATIONS"),
    (codegen.loops.find.chains, "LEAST_OPERATIONS"),
)

# {a}, {b}, {c} are numbers of one repetition; the domain of many is left at odd points
OPERATIONS = (
    "{a} + {b}", "{a} - {b}", "{a} * {b}", "-{a}", "{a} * {a}", "{a} * {b} * {c}", "{a} + {b} + {c}",
    "{a} / (2 + {b} * {b})", "np.sin({a})", "np.cos({a} * {b})", "np.exp(-{a} * {a})", "np.tanh({a})",
    "np.sqrt(0.5 + {a} * {a})", "{a} ** 2", "{a} ** 3", "np.sqrt(np.abs({a}))", "np.abs({a}) ** {b}", "np.abs({a})",
    "np.maximum({a}, {b})", "np.minimum({a}, 0.25)", "np.where({a} > {b}, {a} * {c}, {b})",
    "np.where({a} > 0, np.log(np.where({a} > 0, {a}, 1.0)), {b})", "np.where({a} > 0.0, np.sqrt({a}), 0.0)",
    "np.log1p({a} * {a})", "np.hypot({a}, {b})", "np.arctan2({a}, {b})", "np.clip({a}, -0.5, 0.5)",
    "np.sign({a}) * {b}", "0 * {a} + {b}", "1.0 * {a}", "{a} / {b}", "1 / (1 + {a} * {a})", "2 * {a} - 1",
    "np.floor({a}) * {b}", "({a} > {b}) * {c}", "(1.0 * {a}) ** 0 + {b}", "np.logaddexp({a}, {b})", "np.mod({a}, 0.7)",
    "({a} * {a} + {b} * {b}) ** 1.5", "np.exp({a}) / (1 + np.exp({a}))", "{a} * 0.5 + {b} * 0.5", "np.cbrt({a})",
)  # fmt: skip
ARRAYS = (
    "np.cumsum({y})", "np.diff({y})", "np.roll({y}, 1)", "M @ {y}", "np.sin({y}) * {y}", "{y}[::-1]", "{y}[I]",
    "{y}[1:] * {y}[:-1]", "np.where({y} > 0.1, {y} * {y}, W)", "np.maximum({y}, W)", "np.outer({y}, {y}).sum(axis=1)",
    "{y} / np.linalg.norm({y})", "W * {y}", "np.abs({y} - W)", "np.tanh(M @ {y} + W)", "{y} - np.max({y})",
    "np.exp({y}) / np.sum(np.exp({y}))", "np.concatenate([{y}, {y}[:2]])", "np.einsum('ij,j->i', M, {y} * {y})",
    "np.where(W == 0, 0.0, {y} / np.where(W == 0, 1.0, W))", "({y}[:, None] * {y}[None, :3]).sum(axis=1)",
    "np.clip({y}, -0.4, 0.4)", "np.repeat({y}, 2)", "{y} ** (np.arange(len({y})) % 3)",
)  # fmt: skip
REDUCTIONS = (
    "np.sum({y})", "np.sum({y} * {y})", "np.prod(1 + 0.1 * {y})", "np.max({y})", "np.mean({y} ** 2)", "{y} @ {y}",
    "np.sum(np.sin({y}))", "np.log(np.sum(np.exp({y})))", "np.linalg.norm({y})", "np.sum(np.abs({y}))",
    "np.min({y}) + {y}[0]", "np.sum({y}[1:] * {y}[:-1])", "np.var({y})", "{y}[-1]", "np.sum(np.outer({y}, {y}))",
)  # fmt: skip
OUTER = (
    "{s} * {t}", "np.log(1 + {s} * {s}) + {t}", "{s} / (1 + {t} * {t})", "np.sqrt({s} * {s} + 1) * np.sin({t})",
    "{s} + {t}", "np.where({s} > {t}, {s}, {t} * {s})", "np.exp(-{s} * {s}) + {t}", "{s} - 0.5 * {t}",
)  # fmt: skip


class Text:
    """The text of a function `f(x)` of an array, growing."""

    def __init__(self, draw: Draw) -> None:
        self.draw = draw
        self.size = draw.choice([4, 12, 20, 30])
        self.lines, self.arrays, self.scalars = list[str](), {"x": self.size}, ["x[0]"]
        for _ in range(draw.integer(1, 4)):
            draw.part(self.statement)
        self.lines.append(f"return {self.total()}")

    def statement(self) -> None:
        """Some repetitions, or an operation on a whole array."""
        some = [self.sum, self.sum, self.map, self.map, self.chain, self.array, self.pairs, self.mixed]
        self.draw.choice(some)()

    def source(self) -> str:
        """The function as text."""
        return "def f(x):\n" + "".join(f"    {line}\n" for line in self.lines)

    def fresh(self, letter: str) -> str:
        """A name that nothing has yet."""
        return f"{letter}{len(self.lines)}"

    def reads(self, count: int, index: str = "k") -> list[str]:
        """What a repetition may read: places of arrays that move, or stay, or come from a table; data; numbers."""
        found = []
        for name, size in self.arrays.items():
            shift = self.draw.below(3)
            found += [f"{name}[({index} + {shift}) % {size}]", f"{name}[I[{index} % {len(I)}] % {size}]"]
            found.append(f"{name}[{self.draw.below(size)}]")
            if count <= size:
                found.append(f"{name}[{index}]")
        data = [
            f"W[{index} % {len(W)}]",
            f"V[{index} % {len(V)}]",
            f"{index} * 0.1",
            self.draw.choice(["1.0", "0.0", "-1.0", "0.5"]),
        ]
        return found + data + self.scalars

    def body(self, operands: list[str], always: str | None = None) -> tuple[list[str], str]:
        """Some statements, and the name of the last result."""
        pick = self.draw.choice
        lines, operands = [], [pick(operands) for _ in range(4)] + ([] if always is None else [always] * 2)
        for number in range(self.draw.integer(1, 5)):
            a, b, c = (pick([*operands, *operands[-2:]]) for _ in range(3))
            lines.append(f"t{number} = " + pick(OPERATIONS).format(a=f"({a})", b=f"({b})", c=f"({c})"))
            operands.append(f"t{number}")
        return lines, operands[-1]

    def order(self, count: int) -> str:
        """The order of repetitions."""
        return self.draw.choice([f"range({count})"] * 3 + [f"range({count} - 1, -1, -1)", f"P({count})"])

    def count(self) -> int:
        return self.draw.choice([1, 3, 9, 17, 30, 41, 60])

    def sum(self) -> None:
        """A sum over repetitions."""
        name, count = self.fresh("s"), self.count()
        lines, last = self.body(self.reads(count))
        sign = self.draw.choice(["+"] * 3 + ["-"])
        form = self.draw.choice(
            [f"{name} = {name} {sign} {last}", f"{name} = {last} + {name}", f"{name} {sign}= {last} * V[k % {len(V)}]"]
        )
        self.lines += [f"{name} = {self.draw.choice(['0.0', '0', '1.5', 'x[0]'])}", f"for k in {self.order(count)}:"]
        self.lines += [f"    {line}" for line in [*lines, form]]
        self.scalars.append(name)

    def map(self) -> None:
        """An array of what repetitions give."""
        name, count = self.fresh("y"), self.count()
        lines, last = self.body(self.reads(count))
        self.lines += [f"{name} = []", f"for k in {self.order(count)}:", *(f"    {line}" for line in lines)]
        self.lines += [f"    {name}.append(0 * x[0] + {last})", f"{name} = np.stack({name})"]
        self.arrays[name] = count

    def mixed(self) -> None:
        """A map of two bodies."""
        name, count, period = self.fresh("y"), self.count(), self.draw.integer(2, 4)
        self.lines += [f"{name} = []", f"for k in range({count}):"]
        for word in (f"if k % {period} == 0:", "else:"):
            lines, last = self.body(self.reads(count))
            self.lines += [
                f"    {word}",
                *(f"        {line}" for line in lines),
                f"        {name}.append(0 * x[0] + {last})",
            ]
        self.lines.append(f"{name} = np.stack({name})")
        self.arrays[name] = count

    def chain(self) -> None:
        """A recurrence of one or two values, which may look back further than one repetition."""
        name, count, lag = self.fresh("y"), self.draw.choice([3, 12, 25, 40]), self.draw.integer(1, 3)
        feedback = [f"{name}[-1]", f"{name}[-{lag}]"]
        lines, last = self.body([*self.reads(count), *feedback * 4], f"{name}[-1]")
        bound = self.draw.choice(["{} * 0.5", "np.tanh({})", "np.sin({}) + 0.1", "{} * 0.3 + x[0] * 0.1"])
        start = ", ".join(self.draw.choice(["x[0]", "x[-1] * x[1]", "0 * x[0] + 0.3", "x[1]"]) for _ in range(lag))
        self.lines += [f"{name} = [{start}]", f"for k in {self.order(count)}:", *(f"    {line}" for line in lines)]
        self.lines += [f"    {name}.append({bound.format(f'({last})')})"]
        if self.draw.chance(0.5):
            self.scalars.append(f"{name}[-1]")
        else:
            self.lines.append(f"{name} = np.stack({name})")
            self.arrays[name] = count + lag

    def pairs(self) -> None:
        """A sum over pairs, or over rows of different lengths."""
        name = self.fresh("s")
        source, size = self.draw.choice(list(self.arrays.items()))
        operands = [
            f"{source}[i]",
            f"{source}[j]",
            f"{source}[i] - {source}[j]",
            f"V[(i + j) % {len(V)}]",
            *self.scalars,
        ]
        lines, last = self.body(operands, f"({source}[i] - {source}[j])")
        inner = self.draw.choice(["range(i)", "range(i % 4)", "range(max(0, i - 3), i)", "range(min(i + 2, 5))"])
        inner = inner if "min" not in inner or size >= 5 else "range(i)"
        self.lines += [f"{name} = 0.0", f"for i in range({min(size, 14)}):", f"    for j in {inner}:"]
        self.lines += [f"        {line}" for line in [*lines, f"{name} = {name} + {last}"]]
        self.scalars.append(name)

    def array(self) -> None:
        """An operation of NumPy on a whole array."""
        name = self.fresh("y")
        source = self.draw.choice(list(self.arrays))
        if self.arrays[source] != len(W):
            self.lines.append(f"z{name} = {source}[np.arange({len(W)}) % {self.arrays[source]}]")
            source = f"z{name}"
        form = self.draw.choice(ARRAYS).format(y=source)
        self.lines.append(f"{name} = {form}")
        scope = dict(globals(), **dict.fromkeys(["x", source, name], np.ones(len(W))))
        self.arrays[name] = len(eval(form, scope))  # its length

    def total(self) -> str:
        """The number that the function returns."""
        parts = self.scalars[1:] + [self.draw.choice(REDUCTIONS).format(y=name) for name in list(self.arrays)[-2:]]
        value = parts.pop()
        while parts:
            value = self.draw.choice(OUTER).format(s=f"({value})", t=f"({parts.pop()})")
        return value


W = np.array([0.0, 1.0, -1.0, 0.5, 0.0, 2.0, 1.0, -0.25, 1.0, 0.0, 3.0, 0.125])
V = np.array([1, 0, -1, 2, 1, 1, 0])  # integers, with those that vanish
I = np.array([0, 0, 3, 2, 1, 1, 5, 2, 7, 3, 0])  # with repeats
M = np.random.default_rng(0).choice([0.0, 1.0, -1.0, 0.3, 0.7], (12, 12))


def P(count: int) -> list[int]:  # noqa: N802
    """A shuffled order."""
    return [int(k) for k in np.random.default_rng(count).permutation(count)]


def make(draw: Draw) -> str:
    """A random function as text, the size of its argument, and what its points are made from."""
    text = Text(draw)
    return f"{text.source()}\nSIZE, POINTS = {text.size}, {draw.below(SEEDS)}\n"


def function_of(text: str) -> tuple[Callable[[Point], Point], list[Point]]:
    """The function of a text, and its points."""
    scope = dict(globals())
    execute(text, scope)
    return scope["f"], points(scope["SIZE"], scope["POINTS"])


def points(size: int, seed: int) -> list[Point]:
    """A usual point, and odd ones: zeros, ones, and what is not finite."""
    generator = np.random.default_rng(seed)
    usual = generator.uniform(-1, 1, size)
    odd = [generator.choice([0.0, -0.0, 1.0, -1.0, 0.5], size) for _ in range(3)]
    some = usual.copy()
    some[generator.integers(size)] = generator.choice([np.inf, -np.inf, np.nan, 1e-200, 0.0])
    return [usual, *odd, np.zeros(size), some]


def interpreted(program: Program, point: Point, digits: int = 0) -> list[Point]:
    """The outputs of straight lines, one operation after the other: in floats, or in so many digits."""
    first = dict(enumerate(point.tolist()))
    wanted = [row for output in program.outputs for row in output.rows]
    evaluate(program, wanted, first, "reference" if digits else "float64", digits)
    found = []
    for output in program.outputs:
        numbers = np.array([float(first[row]) for row in output.rows])
        full = numbers if output.positions is None else np.zeros(int(np.prod(output.shape)))
        if output.positions is not None:
            full[list(output.positions)] = numbers
        found.append(full)
    return found


def difference(found: Iterable[Point], expected: Iterable[Point], *, matrix: bool) -> str:
    """Where numbers differ by more than the order of sums can explain; "" if nowhere."""
    for a, b in zip(found, expected, strict=True):
        a, b = (np.where(np.isfinite(c), c, np.nan).ravel() for c in (a, b))
        if matrix and np.isnan(b).any():
            continue  # what is not differentiable twice at one place makes more or fewer others infinite
        scale = np.max(np.abs(b), initial=0.0, where=np.isfinite(b))
        places = np.flatnonzero(~np.isclose(a, b, rtol=1e-7, atol=1e-9 * scale + 1e-13, equal_nan=True))
        if len(places):
            return f"at {places[:9]} of {len(b)}: {a[places][:9]} and not {b[places][:9]}"
    return ""


def rounded(found: list[Point], rolled: Program, straight: Program, point: Point) -> bool:
    """Whether numbers of loops are off by rounding alone: beside 1e200, what is added in another order is lost.

    Then they are those of the loops written out, which in many digits have the numbers of the straight lines.
    """
    if difference(found, interpreted(rolled, point), matrix=False):
        return False
    exact = in_digits(rolled, point)
    return exact is not None and are(exact, straight, point)


def in_digits(program: Program, point: Point) -> list[Point] | None:
    """The outputs of straight lines in many digits; None for numbers that are too large for them."""
    try:
        return interpreted(program, point, DIGITS)
    except LimitError:
        return None


def are(found: list[Point], straight: Program, point: Point) -> bool:
    """Whether numbers are those of straight lines in many digits."""
    exact = in_digits(straight, point)
    return exact is not None and not difference(found, exact, matrix=False)


def check(text: str, *, native: bool = False) -> str:
    """Compare one function, in loops even where they are not worth it; AssertionError where numbers differ."""
    with np.errstate(all="ignore"), ExitStack() as small:
        for place, name in SMALL:
            small.enter_context(patch.object(place, name, 0 if name == "FEWEST_ROWS" else 12))
        try:
            done = compared(text, native)
        except (sa.errors.ArgumentError, TraceError) as error:
            return f"refused: {cause(error)}"
        except (ZeroDivisionError, ValueError):  # numbers of the function itself
            return "without numbers"
    return "as loops" if done else "straight"


def compared(text: str, native: bool) -> int:
    """Compare values with Python's own, and loops with straight lines; how many transforms are loops."""
    f, given = function_of(text)
    by_convention = of_first_terms(text, dict(globals()))["f"]
    python = [np.atleast_1d(np.asarray(f(point.copy()), dtype=float)) for point in given]
    finite, done = [bool(np.isfinite(point).all()) for point in given], 0
    transforms = [("value", f), ("gradient", sa.value_and_grad(f)), ("Hessian", sa.hessian(f))]
    for name, transformed in transforms[: 3 if len(given[0]) < 13 else 2]:
        straight = to_program(trace(transformed, given[0]))
        rolled = rolled_of(transformed, given[0])
        kernel = compile_rolled(rolled) if native and rolled is not None else None
        done += rolled is not None
        for number, point in enumerate(given):
            if not finite[number] and name != "value":
                continue  # infinity times zero: products come in another order
            expected = interpreted(straight, point)
            finite[number] &= all(np.isfinite(part).all() for part in expected)
            results = [("Python", [python[number]])] if name == "value" else []
            results += [] if rolled is None else [("loops", evaluate_rolled(rolled.program, [point]))]
            results += [] if kernel is None else [("kernel", flat(kernel(point)))]
            for way, numbers in results:
                counted(f"{name}, {way}")
                wrong = difference(numbers, expected, matrix=name == "Hessian")
                if wrong and way == "Python":
                    wrong = difference([np.atleast_1d(by_convention(point.copy()))], expected, matrix=False)
                    if not np.isfinite(point).all() and are(numbers, straight, point):
                        wrong = ""  # a variance that rounding keeps from 0, times infinity
                elif wrong and rolled is not None and rounded(numbers, unroll(rolled.program), straight, point):
                    counted(f"{name}, {way}, in {DIGITS} digits")
                    continue
                assert not wrong, f"{name} at {point.tolist()}: {wrong}"
        if rolled is None:
            break
    return done


def rolled_of(function: Callable[[Point], Point], point: Point) -> Rolled | None:
    """A function's loops, or None where there are none."""
    try:
        return plan(function, point, roll="always").candidate.rolled
    except sa.errors.ArgumentError as reason:
        if "roll='always'" not in str(reason) and 'roll="always"' not in str(reason):
            raise
        return None


def flat(result: object) -> list[Point]:
    """The arrays of a result."""
    return [np.ravel(part) for part in (result if isinstance(result, tuple) else (result,))]
