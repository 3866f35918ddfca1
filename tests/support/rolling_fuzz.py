"""Random functions of repeated structure, as loops and as straight lines: value, gradient, Hessian, at odd points too.

python -m tests.support.rolling_fuzz 1000 [first seed]; the text of every function that differs is printed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from random import Random

import numpy as np

import codegen.loops.find.chains
import codegen.loops.find.cover
import codegen.loops.roll
import symad as sa
from codegen.evaluation.evaluate_rolled import evaluate_rolled
from codegen.evaluation.interpret import evaluate
from codegen.ir.program import Program
from symad.compiling.native import compile_rolled
from symad.compiling.planning import plan
from symad.tracing.trace import to_program, trace

Point = np.ndarray

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

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.size = self.random.choice([4, 12, 20, 30])
        self.lines, self.arrays, self.scalars = list[str](), {"x": self.size}, ["x[0]"]
        for _ in range(self.random.randint(1, 4)):
            self.random.choice(
                [self.sum, self.sum, self.map, self.map, self.chain, self.array, self.pairs, self.mixed]
            )()
        self.lines.append(f"return {self.total()}")

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
            shift = self.random.randrange(3)
            found += [f"{name}[({index} + {shift}) % {size}]", f"{name}[I[{index} % {len(I)}] % {size}]"]
            found.append(f"{name}[{self.random.randrange(size)}]")
            if count <= size:
                found.append(f"{name}[{index}]")
        data = [
            f"W[{index} % {len(W)}]",
            f"V[{index} % {len(V)}]",
            f"{index} * 0.1",
            self.random.choice(["1.0", "0.0", "-1.0", "0.5"]),
        ]
        return found + data + self.scalars

    def body(self, operands: list[str], always: str | None = None) -> tuple[list[str], str]:
        """Some statements, and the name of the last result."""
        pick = self.random.choice
        lines, operands = [], [pick(operands) for _ in range(4)] + ([] if always is None else [always] * 2)
        for number in range(self.random.randint(1, 5)):
            a, b, c = (pick([*operands, *operands[-2:]]) for _ in range(3))
            lines.append(f"t{number} = " + pick(OPERATIONS).format(a=f"({a})", b=f"({b})", c=f"({c})"))
            operands.append(f"t{number}")
        return lines, operands[-1]

    def order(self, count: int) -> str:
        """The order of repetitions."""
        return self.random.choice([f"range({count})"] * 3 + [f"range({count} - 1, -1, -1)", f"P({count})"])

    def count(self) -> int:
        return self.random.choice([1, 3, 9, 17, 30, 41, 60])

    def sum(self) -> None:
        """A sum over repetitions."""
        name, count = self.fresh("s"), self.count()
        lines, last = self.body(self.reads(count))
        sign = self.random.choice(["+"] * 3 + ["-"])
        form = self.random.choice(
            [f"{name} = {name} {sign} {last}", f"{name} = {last} + {name}", f"{name} {sign}= {last} * V[k % {len(V)}]"]
        )
        self.lines += [f"{name} = {self.random.choice(['0.0', '0', '1.5', 'x[0]'])}", f"for k in {self.order(count)}:"]
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
        name, count, period = self.fresh("y"), self.count(), self.random.randint(2, 4)
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
        name, count, lag = self.fresh("y"), self.random.choice([3, 12, 25, 40]), self.random.randint(1, 3)
        feedback = [f"{name}[-1]", f"{name}[-{lag}]"]
        lines, last = self.body([*self.reads(count), *feedback * 4], f"{name}[-1]")
        bound = self.random.choice(["{} * 0.5", "np.tanh({})", "np.sin({}) + 0.1", "{} * 0.3 + x[0] * 0.1"])
        start = ", ".join(self.random.choice(["x[0]", "x[-1] * x[1]", "0 * x[0] + 0.3", "x[1]"]) for _ in range(lag))
        self.lines += [f"{name} = [{start}]", f"for k in {self.order(count)}:", *(f"    {line}" for line in lines)]
        self.lines += [f"    {name}.append({bound.format(f'({last})')})"]
        if self.random.random() < 0.5:
            self.scalars.append(f"{name}[-1]")
        else:
            self.lines.append(f"{name} = np.stack({name})")
            self.arrays[name] = count + lag

    def pairs(self) -> None:
        """A sum over pairs, or over rows of different lengths."""
        name = self.fresh("s")
        source, size = self.random.choice(list(self.arrays.items()))
        operands = [
            f"{source}[i]",
            f"{source}[j]",
            f"{source}[i] - {source}[j]",
            f"V[(i + j) % {len(V)}]",
            *self.scalars,
        ]
        lines, last = self.body(operands, f"({source}[i] - {source}[j])")
        inner = self.random.choice(["range(i)", "range(i % 4)", "range(max(0, i - 3), i)", "range(min(i + 2, 5))"])
        inner = inner if "min" not in inner or size >= 5 else "range(i)"
        self.lines += [f"{name} = 0.0", f"for i in range({min(size, 14)}):", f"    for j in {inner}:"]
        self.lines += [f"        {line}" for line in [*lines, f"{name} = {name} + {last}"]]
        self.scalars.append(name)

    def array(self) -> None:
        """An operation of NumPy on a whole array."""
        name = self.fresh("y")
        source = self.random.choice(list(self.arrays))
        if self.arrays[source] != len(W):
            self.lines.append(f"z{name} = {source}[np.arange({len(W)}) % {self.arrays[source]}]")
            source = f"z{name}"
        form = self.random.choice(ARRAYS).format(y=source)
        self.lines.append(f"{name} = {form}")
        scope = dict(globals(), **dict.fromkeys(["x", source, name], np.ones(len(W))))
        self.arrays[name] = len(eval(form, scope))  # its length

    def total(self) -> str:
        """The number that the function returns."""
        parts = self.scalars[1:] + [self.random.choice(REDUCTIONS).format(y=name) for name in list(self.arrays)[-2:]]
        value = parts.pop()
        while parts:
            value = self.random.choice(OUTER).format(s=f"({value})", t=f"({parts.pop()})")
        return value


W = np.array([0.0, 1.0, -1.0, 0.5, 0.0, 2.0, 1.0, -0.25, 1.0, 0.0, 3.0, 0.125])
V = np.array([1, 0, -1, 2, 1, 1, 0])  # integers, with those that vanish
I = np.array([0, 0, 3, 2, 1, 1, 5, 2, 7, 3, 0])  # with repeats
M = np.random.default_rng(0).choice([0.0, 1.0, -1.0, 0.3, 0.7], (12, 12))


def P(count: int) -> list[int]:  # noqa: N802
    """A shuffled order."""
    return [int(k) for k in np.random.default_rng(count).permutation(count)]


def function_of(seed: int) -> tuple[str, Callable[[Point], Point], int]:
    """The text of a random function, the function, and the size of its argument."""
    text = Text(seed)
    scope = dict(globals())
    exec(compile(text.source(), f"<seed {seed}>", "exec"), scope)
    return text.source(), scope["f"], text.size


def points(size: int, seed: int) -> list[Point]:
    """A usual point, and odd ones."""
    generator = np.random.default_rng(seed)
    usual = generator.uniform(-1, 1, size)
    odd = generator.choice([0.0, -0.0, 1.0, -1.0, 0.5], size)
    some = usual.copy()
    some[generator.integers(size)] = generator.choice([np.inf, -np.inf, np.nan, 1e-200, 0.0])
    return [usual, odd, np.zeros(size), some]


def interpreted(program: Program, point: Point) -> list[Point]:
    """The outputs of straight lines, one operation after the other."""
    first = dict(enumerate(point.tolist()))
    wanted = [row for output in program.outputs for row in output.rows]
    evaluate(program, wanted, first)
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


def check(seed: int, *, native: bool = False) -> int:
    """Compare one function; how many transforms of it are loops. AssertionError where numbers differ."""
    source, f, size = function_of(seed)
    given, finite, done = points(size, seed), dict[int, bool](), 0
    transforms = [("value", f), ("gradient", sa.value_and_grad(f)), ("Hessian", sa.hessian(f))]
    for name, transformed in transforms[: 3 if size < 13 else 2]:
        try:
            found = plan(transformed, given[0], roll="always").candidate.rolled
        except sa.ArgumentError as reason:
            if "roll='always'" not in str(reason) and 'roll="always"' not in str(reason):
                raise
            break
        assert found is not None
        straight = to_program(trace(transformed, given[0]))
        kernel = compile_rolled(found) if native else None
        done += 1
        for number, point in enumerate(given):
            expected = interpreted(straight, point)
            if not finite.setdefault(number, bool(np.isfinite(point).all())) and name != "value":
                continue  # infinity times zero: products come in another order
            finite[number] = all(np.isfinite(part).all() for part in expected)
            results = [evaluate_rolled(found.program, [point])]
            results += [] if kernel is None else [flat(kernel(point))]
            for numbers in results:
                wrong = difference(numbers, expected, matrix=name == "Hessian")
                assert not wrong, f"{name} of seed {seed} at {point.tolist()}\n{wrong}\n{source}"
    return done


def flat(result: object) -> list[Point]:
    """The arrays of a result."""
    return [np.ravel(part) for part in (result if isinstance(result, tuple) else (result,))]


def small() -> None:
    """Take loops where they are not worth it, too."""
    codegen.loops.roll.FEWEST_ROWS = 0
    codegen.loops.find.cover.OPERATIONS = codegen.loops.find.chains.LEAST_OPERATIONS = 12


def main() -> None:
    """Check many functions; with "native" among the words, compiled too."""
    small()
    words = [word for word in sys.argv[1:] if word != "native"]
    count, first = int(words[0]), int(words[1]) if len(words) > 1 else 0
    found, wrong = 0, []
    for seed in range(first, first + count):
        try:
            with np.errstate(all="ignore"):
                found += check(seed, native="native" in sys.argv) > 0
        except (ZeroDivisionError, ValueError):
            continue  # numbers of the function itself
        except Exception as error:
            wrong.append(seed)
            print(seed, type(error).__name__, str(error)[:3000], flush=True)
    print(f"{count} functions, {found} as loops, {len(wrong)} wrong: {wrong}")


if __name__ == "__main__":
    main()
