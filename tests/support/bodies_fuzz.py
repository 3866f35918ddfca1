"""Random loops as people write them, as loops and as straight lines: what `rolling_fuzz` has, and what it has not.

Windows, lags of two and three, stores that meet in one place, nests with a state, no repetition or one, exponents that
change, several bodies. `python -m tests.fuzz bodies 1000`.
"""

from __future__ import annotations

from tests.support import rolling_fuzz
from tests.support.draws import SEEDS, Draw
from tests.support.rolling_fuzz import I, V, W, check

__all__ = ["check", "make"]

BOUNDS = ("np.tanh({})", "{} * 0.4", "np.sin({})", "{} / (1 + {} ** 2)", "np.where({} > 0.3, 0.3, {})")
POWERS = ("{} ** k", "{} ** (k % 4)", "({} ** 2 + 0.5) ** -(k % 3)", "np.abs({}) ** (k / 2)", "{} ** (2 - k % 5)")


class Text(rolling_fuzz.Text):
    """The text of a function of an array whose loops are of many kinds."""

    def statement(self) -> None:
        """Draw one of the kinds."""
        own = [self.windows, self.lags, self.scatter, self.nest, self.powers, self.several, self.states, self.changing]
        self.draw.choice([*own, *own, self.sum, self.map, self.mixed, self.pairs])()

    def count(self) -> int:
        """Repetitions, one among them."""
        return self.draw.choice([1, 2, 5, 9, 18, 33])

    def few(self) -> int:
        """Repetitions, none among them."""
        return self.draw.choice([0, 1, 2, 9, 18])

    def source_of(self) -> tuple[str, int]:
        """An array that is there, and its size."""
        return self.draw.choice(list(self.arrays.items()))

    def bounded(self, value: str) -> str:
        """A value that stays small however often it is computed."""
        form = self.draw.choice(BOUNDS)
        return form.format(*[f"({value})"] * form.count("{}"))

    def loop(self, count: int, *inside: str) -> None:
        """Write a loop down."""
        self.lines += [f"for k in {self.order(count)}:", *(f"    {line}" for line in inside)]

    def windows(self) -> None:
        """Sums or maxima over windows that move by one or more."""
        name, (source, size) = self.fresh("y"), self.source_of()
        width, step = self.draw.integer(1, 4), self.draw.integer(1, 3)
        value = self.draw.choice([
            "np.sum({0})", "np.max({0})", "{0} @ W[:len({0})]", "np.prod({0})", "{0}[0] * {0}[-1]", "{0}[::-1] @ {0}",
            "np.sum(np.diff({0}) ** 2)", "np.mean({0}) ** 2", "np.linalg.norm({0} + 2)",
        ]).format("w")  # fmt: skip
        self.lines.append(f"{name} = [0 * x[0]]")
        self.lines += [f"for k in range(0, {size} - {width} + 1, {step}):", f"    w = {source}[k:k + {width}]"]
        self.lines += [f"    {name}.append({value})", f"{name} = np.stack({name})"]
        self.arrays[name] = 1 + len(range(0, size - width + 1, step))

    def lags(self) -> None:
        """A recurrence that reads some repetitions back, in an array that is filled."""
        name, count, lag = self.fresh("y"), self.count(), self.draw.integer(1, 3)
        lines, last = self.body([*self.reads(count), *[f"{name}[k + {j}]" for j in range(lag)] * 4], f"{name}[k]")
        self.lines += [f"{name} = np.zeros({count + lag})", f"{name}[:{lag}] = x[{self.draw.below(2)}]"]
        self.lines += [f"for k in range({count}):", *(f"    {line}" for line in lines)]
        self.lines.append(f"    {name}[k + {lag}] = {self.bounded(last)}")
        self.arrays[name] = count + lag

    def scatter(self) -> None:
        """Stores and additions into places that meet."""
        name, count, size = self.fresh("y"), self.few(), self.draw.integer(1, 6)
        lines, last = self.body(self.reads(count))
        place = self.draw.choice([f"k % {size}", f"I[k % {len(I)}] % {size}", f"k // 3 % {size}", f"(k * k) % {size}"])
        operator = self.draw.choice(["+=", "-=", "=", "+="])
        before = self.draw.choice([f"np.zeros({size})", f"np.ones({size}) * x[0]"])
        self.lines.append(f"{name} = {before}")
        self.loop(count, *lines, f"{name}[{place}] {operator} {last}")
        self.arrays[name] = size

    def nest(self) -> None:
        """Loops in loops that hand on a state, which begins anew sometimes."""
        name, (source, size) = self.fresh("y"), self.source_of()
        rounds, inner = self.draw.choice([1, 2, 4, 9]), self.draw.choice(["4", "i", "i % 3", "min(i + 1, 5)", "1", "7"])
        reads = [
            f"{source}[(i + j) % {size}]",
            f"{source}[j % {size}]",
            f"{source}[i % {size}]",
            f"W[(i * j) % {len(W)}]",
        ]
        lines, last = self.body([*reads, "s", "s", *self.scalars], "s")
        self.lines += [f"s, {name} = x[0], [x[1]]", f"for i in range({rounds}):"]
        self.lines += ["    s = x[i % 3] * 0.5"] if self.draw.chance(0.4) else []
        self.lines += [f"    for j in range({inner}):", *(f"        {line}" for line in lines)]
        self.lines += [f"        s = {self.bounded(last)}", f"    {name}.append(s)", f"{name} = np.stack({name})"]
        self.arrays[name] = rounds + 1

    def powers(self) -> None:
        """A sum whose exponents are other ones each time."""
        name, count = self.fresh("s"), self.few()
        value = self.draw.choice(POWERS).format(f"({self.draw.choice(self.reads(count))})")
        self.lines.append(f"{name} = 0.0")
        self.loop(count, f"{name} += {value} * V[k % {len(V)}]")
        self.scalars.append(name)

    def several(self) -> None:
        """Two or three results of one repetition, into arrays and sums."""
        name, other, count = self.fresh("y"), self.fresh("z"), self.count()
        lines, last = self.body(self.reads(count))
        second = lines[0].split(" = ")[0]
        self.lines.append(f"{name}, {other} = [], 0.0")
        self.loop(count, *lines, f"{name}.append(0 * x[0] + {last})", f"{other} = {other} + {second} * {last}")
        self.lines.append(f"{name} = np.stack({name})")
        self.arrays[name] = count
        self.scalars.append(other)

    def states(self) -> None:
        """Two states that read each other, one of which stays behind."""
        name, count = self.fresh("s"), self.few()
        lines, last = self.body([*self.reads(count), *["p", "q"] * 4], "p")
        swapped = self.draw.choice([f"p, q = q, {self.bounded(last)}", f"p, q = {self.bounded(last)}, p"])
        self.lines.append("p, q = x[0], x[1] * 0.5")
        self.loop(count, *lines, swapped)
        self.lines.append(f"{name} = p * q + p")
        self.scalars.append(name)

    def changing(self) -> None:
        """A body that is another one at the ends, or once in the middle."""
        name, count = self.fresh("s"), self.few()
        condition = self.draw.choice(
            ["k == 0", f"k == {count - 1}", f"k == {count // 2}", f"k < {count // 2}", "k % 3 == 1"]
        )
        self.lines.append(f"{name} = x[1]")
        one, first = self.body([*self.reads(count), name])
        other, second = self.body([*self.reads(count), name])
        inside = [f"if {condition}:", *(f"    {line}" for line in one), f"    {name} = {self.bounded(first)}", "else:"]
        self.loop(count, *inside, *(f"    {line}" for line in other), f"    {name} = {name} * 0.7 + {second}")
        self.scalars.append(name)


def make(draw: Draw) -> str:
    """A random function as text, the size of its argument, and what its points are made from."""
    text = Text(draw)
    return f"{text.source()}\nSIZE, POINTS = {text.size}, {draw.below(SEEDS)}\n"
