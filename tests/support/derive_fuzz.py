"""Random rolled programs, and their derivatives by two routes: as loops, and as straight lines.

Soak: `python -m tests.support.derive_fuzz --seconds 300 --seed N`; the seed of every failure is printed.
"""

from __future__ import annotations

import argparse
import time
import traceback
from collections.abc import Callable, Sequence
from random import Random

import numpy as np

import symad as sa
from codegen.evaluation.evaluate_rolled import evaluate_rolled
from codegen.ir.region import Carry, Gather, Nest, Result, RolledProgram, Step
from codegen.ir.tables import Affine, Indexed, Table
from codegen.loops.optimise.contraction import contracted
from codegen.machine.build import compile_program
from symad.derivatives.loops.checkpoints import Checkpoints
from symad.derivatives.loops.pullback import gradient, pullback
from symad.derivatives.loops.pushforward import pushforward
from tests.support.derive_cases import Made, region
from tests.support.derive_flat import agree, flat_function, points
from tests.support.derive_strict import run

POLICIES: tuple[Checkpoints, ...] = ("all", "sqrt", "none")
LARGEST = 1e6  # with larger derivatives a rounding of fused operations is seen in the twelfth digit
OPERATIONS: tuple[Callable[..., object], ...] = (
    lambda a, b: a + b,
    lambda a, b: a * b - 0.5,
    lambda a, b: np.sin(a) + 0.25 * b,
    lambda a, b: a / (2 + b * b),
    lambda a, b: np.tanh(a - b),
    lambda a, b: np.where(a > b, a * a, 0.5 * b),
    lambda a, b: np.exp(-a * a) * b,
    lambda a, b: 0.75 * a,
    lambda a, b: np.floor(3 * a) * 0.25 + b,
    lambda a, b: np.where(a > b, np.sqrt(np.abs(a - b)), 0.0),  # a derivative that is infinite where it is not taken
    lambda a, b: np.sqrt(np.where(a > b, a - b, 0.0)),
    lambda a, b: np.maximum(a, b),
)  # fmt: skip


class Grown:
    """A program of random regions, one after the other."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        shapes = {f"x{k}": (self.random.randint(1, 5),) for k in range(self.random.randint(1, 3))}
        numbers = np.random.default_rng(seed).uniform(-1, 1, 4)
        sizes = {f"w{k}": (60,) for k in range(24)}
        self.made = Made(shapes, {"f": (), "g": (60,)}, sizes, c=numbers)
        self.ready = {name: int(np.prod(shape)) for name, shape in shapes.items()} | {"c": 4}
        self.fresh = list(sizes)
        self.steps: list[Step] = []
        for _ in range(self.random.randint(1, 4)):
            self.random.choice([self.flat, self.flat, self.chain, self.chain, self.nest, self.history, self.rows])()
        self.end()

    def function(self, slots: int, outputs: int) -> Callable[..., tuple[object, ...]]:
        """Return a random body."""
        length = self.random.randint(outputs, 6)
        plan = [
            (self.random.choice(OPERATIONS), *(self.random.randrange(slots + k) for _ in range(2)))
            for k in range(length)
        ]
        chosen = [self.random.randrange(slots + length) for _ in range(outputs)]

        def body(*values: object) -> tuple[object, ...]:
            found = list(values)
            for operation, a, b in plan:
                found.append(operation(found[a], found[b]))
            return tuple(found[k] for k in chosen)

        return body

    def table(self, size: int, count: int, rounds: int = 1, *, different: bool = False) -> Table:
        """Return places in a buffer of some size, which move with the rounds if there are several."""
        shift = self.random.choice([0, 1]) if rounds > 1 and not different else 0
        room = size - shift * (rounds - 1)
        if room < 1:
            shift, room = 0, size
        shifts = (shift,) if rounds > 1 else ()
        kind = self.random.random()
        if different:
            order = self.random.sample(range(room), count)
            return Affine(0, 1, count, shifts) if kind < 0.5 else Indexed(np.array(order), shifts)
        if kind < 0.3:
            return Affine(self.random.randrange(room), 0, count, shifts)
        if kind < 0.7 and count <= room:
            start = self.random.randint(0, room - count)
            return self.random.choice([Affine(start, 1, count, shifts), Affine(start + count - 1, -1, count, shifts)])
        return Indexed(np.array([self.random.randrange(room) for _ in range(count)]), shifts)

    def gathers(self, count: int, rounds: int = 1) -> list[Gather]:
        names = self.random.choices(list(self.ready), k=self.random.randint(1, 4))
        return [Gather(self.made.number[name], self.table(self.ready[name], count, rounds)) for name in names]

    def target(self, size: int) -> str:
        name = self.fresh.pop()
        self.ready[name] = size
        return name

    def results(self, outputs: int, count: int) -> tuple[list[Result], dict[str, int]]:
        """Return random results, and the buffers that are ready after them."""
        found: list[Result] = []
        made: dict[str, int] = {}
        for output in range(outputs):
            name, kind = self.fresh.pop(), self.random.choice(["store", "add", "total"])
            size = {"store": count, "add": self.random.randint(1, count + 1), "total": 1}[kind]
            table = self.table(size, count, different=kind == "store")
            found.append(self.made.to(output, name, table, "store" if kind == "store" else "add"))
            made[name] = size
        return found, made

    def flat(self) -> None:
        count, outputs = self.random.randint(1, 6), self.random.randint(1, 2)
        gathers = self.gathers(count)
        results, made = self.results(outputs, count)
        self.steps.append(region(self.function(len(gathers), outputs), count, gathers, results))
        self.ready |= made

    def chain(self) -> None:
        count, outputs = self.random.choice([1, 2, 3, 5, 20]), self.random.randint(1, 3)
        gathers = self.gathers(count)
        carries = []
        for _ in range(self.random.randint(1, 3)):
            lag = self.random.choice([1, 1, 2, 3])
            initial = tuple(gather for _ in range(lag) for gather in self.gathers(1)[:1])
            carries.append(Carry(self.random.randrange(outputs), initial))
        results, made = self.results(outputs, count)
        lasts = sorted({carry.output for carry in carries if carry.lag == 1})
        if lasts:
            name = self.fresh.pop()
            results.append(self.made.to(self.random.choice(lasts), name, 0, "last"))
            made[name] = 1
        self.steps.append(region(self.function(len(gathers) + len(carries), outputs), count, gathers, results, carries))
        self.ready |= made

    def nest(self) -> None:
        """Rounds of a map or sum, each at places of its own."""
        rounds, count = self.random.randint(2, 3), self.random.randint(1, 4)
        gathers = self.gathers(count, rounds)
        name, kind = self.fresh.pop(), self.random.choice(["store", "add"])
        shift = count if kind == "store" else 1
        places = Affine(0, 1, count, (count,)) if kind == "store" else Affine(0, 0, count, (1,))
        body = self.function(len(gathers), 1)
        self.steps.append(Nest(rounds, (region(body, count, gathers, [self.made.to(0, name, places, kind)]),)))
        self.ready[name] = rounds * shift

    def history(self) -> None:
        """Rounds of a chain, each of which begins where the one before ended."""
        rounds, count = self.random.randint(2, 3), self.random.choice([2, 3, 18])
        gathers = self.gathers(count, rounds)
        ends, total = self.fresh.pop(), self.fresh.pop()
        (first,) = self.gathers(1)[:1]
        start = region(lambda x: (x,), 1, [first], [self.made.to(0, ends, 0)])
        carry = Carry(0, (self.made.at(ends, Affine(0, 0, 1, (1,))),))
        results = [self.made.to(0, ends, Affine(1, 0, 1, (1,)), "last")]
        results.append(self.made.to(1, total, Affine(0, 0, count), "add"))
        body = self.function(len(gathers) + 1, 2)
        self.steps += [start, Nest(rounds, (region(body, count, gathers, results, [carry]),))]
        self.ready |= {ends: rounds + 1, total: 1}

    def rows(self) -> None:
        """Rounds that make a row from the one before, or the two, and from a sum over it; the last row stays."""
        rounds, width, lag = self.random.choice([2, 3, 5, 18]), self.random.randint(1, 3), self.random.randint(1, 2)
        history, sums, last = self.fresh.pop(), self.fresh.pop(), self.fresh.pop()
        first = [self.gathers(width)[0] for _ in range(lag)]
        start = [
            region(lambda x: (x,), width, [use], [self.made.to(0, history, Affine(k * width, 1, width))])
            for k, use in enumerate(first)
        ]
        before = [self.made.at(history, Affine(k * width, 1, width, (width,))) for k in range(lag)]
        total = region(self.function(lag, 1), width, before, [self.made.to(0, sums, Affine(0, 0, width, (1,)), "add")])
        gathers = [*self.gathers(width, rounds), *before, self.made.at(sums, Affine(0, 0, width, (1,)))]
        bounded = self.function(len(gathers), 1)
        step = region(lambda *x: (np.tanh(bounded(*x)[0]),), width, gathers,
                      [self.made.to(0, history, Affine(lag * width, 1, width, (width,)))])  # fmt: skip
        end = self.made.at(history, Affine((rounds + lag - 1) * width, 1, width))
        copy = region(lambda x: (x,), width, [end], [self.made.to(0, last, Affine(0, 1, width))])
        self.steps += [*start, Nest(rounds, (total, step)), copy]
        self.ready[last] = width

    def end(self) -> None:
        """A scalar of all that was made, and some of it as it is."""
        for name, size in list(self.ready.items()):
            if name != "c":
                places = Affine(0, 1, size)
                self.steps.append(
                    region(lambda x: (np.sin(x) * x,), size, [self.made.at(name, places)],
                           [self.made.to(0, "f", Affine(0, 0, size), "add")])
                )  # fmt: skip
        name, size = self.random.choice([item for item in self.ready.items() if item[0] != "c"])
        self.steps.append(
            region(lambda x: (3 * x,), size, [self.made.at(name, Affine(0, 1, size))],
                   [self.made.to(0, "g", Affine(0, 1, size))])
        )  # fmt: skip

    def program(self) -> RolledProgram:
        return self.made.program(*self.steps)


def check(seed: int, *, native: bool = False) -> None:
    """Compare all derivatives of one random program."""
    program = Grown(seed).program()
    random = Random(seed)
    active = sorted(random.sample(range(len(program.inputs)), random.randint(1, len(program.inputs))))
    arrays = points(program, seed)
    flat = flat_function(program)

    def of_active(*chosen: object) -> tuple[object, ...]:
        given: list[object] = list(arrays)
        for number, array in zip(active, chosen, strict=True):
            given[number] = array
        return flat(*given)

    chosen = tuple(arrays[number] for number in active)
    gradients = sa.grad(lambda *given: of_active(*given)[0], tuple(range(len(active))))(*chosen)
    made = gradient(program, active, checkpoints=random.choice(POLICIES))
    agree(run(made, arrays, scratch=True), gradients)
    agree(evaluate_rolled(made, arrays), gradients)
    agree(evaluate_rolled(contracted(made, 1), arrays), gradients)
    if native and all(np.abs(values).max() < LARGEST for values in gradients):
        agree(_outputs(compile_program(made, cache=False)(*arrays)), gradients)
    pushed = pushforward(program, active)
    given = points(pushed, seed + 1)
    values, tangents = sa.jvp(of_active, chosen, tuple(given[len(arrays) :]))
    agree(run(pushed, [*arrays, *given[len(arrays) :]]), (*values, *tangents))
    inner = random.choice([made, pushed])
    outer = random.choice([pushforward, lambda p, a: pullback(p, a, checkpoints=random.choice(POLICIES))])
    second(inner, outer)


def second(inner: RolledProgram, outer: Callable[[RolledProgram, Sequence[int]], RolledProgram]) -> None:
    """Compare a derivative of a derivative with that of its straight lines."""
    made = outer(inner, range(len(inner.inputs)))
    arrays = points(made, 7)
    own, given = arrays[: len(inner.inputs)], arrays[len(inner.inputs) :]
    if outer is pushforward:
        values, found = sa.jvp(flat_function(inner), tuple(own), tuple(given))
    else:
        values, pull = sa.vjp(flat_function(inner), *own)
        found = pull(tuple(given))
    agree(run(made, arrays, scratch=True), (*values, *found))
    agree(evaluate_rolled(contracted(made, 1), arrays), (*values, *found))


def _outputs(found: object) -> list[np.ndarray]:
    return [np.asarray(array) for array in found] if isinstance(found, tuple | list) else [np.asarray(found)]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--native", action="store_true", help="compile as well")
    asked = parser.parse_args()
    end, seed, failures = time.monotonic() + asked.seconds, asked.seed, 0
    while time.monotonic() < end:
        try:
            check(seed, native=asked.native)
        except Exception:
            failures += 1
            print(f"seed {seed}")
            traceback.print_exc(limit=-4)
        seed += 1
    print(f"{seed - asked.seed} programs, {failures} failures")


if __name__ == "__main__":
    main()
