"""Random rolled programs, and their derivatives by two routes: as loops, and as straight lines.

`python -m tests.fuzz derive 1000`; as kernels too: `derive-native`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

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
from tests.support import written as text
from tests.support.derive_cases import Made, region
from tests.support.derive_flat import flat_function, points
from tests.support.derive_strict import run
from tests.support.draws import SEEDS, Draw
from tests.support.fuzzing import counted
from tests.support.in_digits import same

Straight = Callable[..., tuple[object, ...]]
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

    def __init__(self, draw: Draw) -> None:
        self.draw = draw
        shapes = {f"x{k}": (draw.integer(1, 5),) for k in range(draw.integer(1, 3))}
        sizes = {f"w{k}": (60,) for k in range(24)}
        self.made = Made(shapes, {"f": (), "g": (60,)}, sizes, c=(0.7, -0.25, -0.9, 0.4))
        self.ready = {name: int(np.prod(shape)) for name, shape in shapes.items()} | {"c": 4}
        self.fresh = list(sizes)
        self.steps: list[Step] = []
        for _ in range(draw.integer(1, 4)):
            draw.part(self.step)
        self.end()

    def step(self) -> None:
        """A region, or a nest."""
        self.draw.choice([self.flat, self.flat, self.chain, self.chain, self.nest, self.history, self.rows])()

    def function(self, slots: int, outputs: int) -> Callable[..., tuple[object, ...]]:
        """Return a random body."""
        length = self.draw.integer(outputs, 6)
        plan = [(self.draw.choice(OPERATIONS), *(self.draw.below(slots + k) for _ in range(2))) for k in range(length)]
        chosen = [self.draw.below(slots + length) for _ in range(outputs)]

        def body(*values: object) -> tuple[object, ...]:
            found = list(values)
            for operation, a, b in plan:
                found.append(operation(found[a], found[b]))
            return tuple(found[k] for k in chosen)

        return body

    def table(self, size: int, count: int, rounds: int = 1, *, different: bool = False) -> Table:
        """Return places in a buffer of some size, which move with the rounds if there are several."""
        shift = self.draw.choice([0, 1]) if rounds > 1 and not different else 0
        room = size - shift * (rounds - 1)
        if room < 1:
            shift, room = 0, size
        shifts = (shift,) if rounds > 1 else ()
        kind = self.draw.unit()
        if different:
            order = self.draw.sample(range(room), count)
            return Affine(0, 1, count, shifts) if kind < 0.5 else Indexed(np.array(order), shifts)
        if kind < 0.3:
            return Affine(self.draw.below(room), 0, count, shifts)
        if kind < 0.7 and count <= room:
            start = self.draw.integer(0, room - count)
            return self.draw.choice([Affine(start, 1, count, shifts), Affine(start + count - 1, -1, count, shifts)])
        return Indexed(np.array([self.draw.below(room) for _ in range(count)]), shifts)

    def gathers(self, count: int, rounds: int = 1) -> list[Gather]:
        names = self.draw.several(list(self.ready), self.draw.integer(1, 4))
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
            name, kind = self.fresh.pop(), self.draw.choice(["store", "add", "total"])
            size = {"store": count, "add": self.draw.integer(1, count + 1), "total": 1}[kind]
            table = self.table(size, count, different=kind == "store")
            found.append(self.made.to(output, name, table, "store" if kind == "store" else "add"))
            made[name] = size
        return found, made

    def flat(self) -> None:
        count, outputs = self.draw.integer(1, 6), self.draw.integer(1, 2)
        gathers = self.gathers(count)
        results, made = self.results(outputs, count)
        self.steps.append(region(self.function(len(gathers), outputs), count, gathers, results))
        self.ready |= made

    def chain(self) -> None:
        count, outputs = self.draw.choice([1, 2, 3, 5, 20]), self.draw.integer(1, 3)
        gathers = self.gathers(count)
        carries = []
        for _ in range(self.draw.integer(1, 3)):
            lag = self.draw.choice([1, 1, 2, 3])
            initial = tuple(gather for _ in range(lag) for gather in self.gathers(1)[:1])
            carries.append(Carry(self.draw.below(outputs), initial))
        results, made = self.results(outputs, count)
        lasts = sorted({carry.output for carry in carries if carry.lag == 1})
        if lasts:
            name = self.fresh.pop()
            results.append(self.made.to(self.draw.choice(lasts), name, 0, "last"))
            made[name] = 1
        self.steps.append(region(self.function(len(gathers) + len(carries), outputs), count, gathers, results, carries))
        self.ready |= made

    def nest(self) -> None:
        """Rounds of a map or sum, each at places of its own."""
        rounds, count = self.draw.integer(2, 3), self.draw.integer(1, 4)
        gathers = self.gathers(count, rounds)
        name, kind = self.fresh.pop(), self.draw.choice(["store", "add"])
        shift = count if kind == "store" else 1
        places = Affine(0, 1, count, (count,)) if kind == "store" else Affine(0, 0, count, (1,))
        body = self.function(len(gathers), 1)
        self.steps.append(Nest(rounds, (region(body, count, gathers, [self.made.to(0, name, places, kind)]),)))
        self.ready[name] = rounds * shift

    def history(self) -> None:
        """Rounds of a chain, each of which begins where the one before ended."""
        rounds, count = self.draw.integer(2, 3), self.draw.choice([2, 3, 18])
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
        rounds, width, lag = self.draw.choice([2, 3, 5, 18]), self.draw.integer(1, 3), self.draw.integer(1, 2)
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
        name, size = self.draw.choice([item for item in self.ready.items() if item[0] != "c"])
        self.steps.append(
            region(lambda x: (3 * x,), size, [self.made.at(name, Affine(0, 1, size))],
                   [self.made.to(0, "g", Affine(0, 1, size))])
        )  # fmt: skip

    def program(self) -> RolledProgram:
        return self.made.program(*self.steps)


@dataclass
class Case:
    """A program, its inputs that are differentiated, where numbers are kept, the second derivative, and a point."""

    program: RolledProgram
    active: tuple[int, ...]
    policies: tuple[Checkpoints, Checkpoints]
    inner: str
    outer: str
    seed: int


def make(draw: Draw) -> Case:
    """A random program, and how it is differentiated."""
    program = Grown(draw).program()
    inputs = range(len(program.inputs))
    active = tuple(sorted(draw.sample(inputs, draw.integer(1, len(inputs)))))
    policies = draw.choice(POLICIES), draw.choice(POLICIES)
    ways = draw.choice(("pullback", "pushforward")), draw.choice(("pushforward", "pullback"))
    return Case(program, active, policies, *ways, draw.below(SEEDS))


def check(case: Case, *, native: bool = False) -> str:
    """Compare all derivatives of one random program; AssertionError where they differ."""
    program, active, seed = case.program, case.active, case.seed
    arrays = points(program, seed)
    flat = flat_function(program)

    def of_active(*chosen: object) -> tuple[object, ...]:
        given: list[object] = list(arrays)
        for number, array in zip(active, chosen, strict=True):
            given[number] = array
        return flat(*given)

    chosen = tuple(arrays[number] for number in active)
    slope = sa.grad(lambda *given: of_active(*given)[0], tuple(range(len(active))))
    gradients = slope(*chosen)
    made = gradient(program, active, checkpoints=case.policies[0])
    same(run(made, arrays, scratch=True), gradients, made, arrays, slope, chosen)
    same(evaluate_rolled(made, arrays), gradients, made, arrays, slope, chosen)
    short = contracted(made, 1)
    same(evaluate_rolled(short, arrays), gradients, short, arrays, slope, chosen)
    if native and all(np.abs(values).max() < LARGEST for values in gradients):
        same(_outputs(compile_program(made, cache=False)(*arrays)), gradients, made, arrays, slope, chosen)
    pushed = pushforward(program, active)
    moved = [*arrays, *points(pushed, seed + 1)[len(arrays) :]]
    along = pushed_along(of_active, len(chosen))
    given = (*chosen, *moved[len(arrays) :])
    same(run(pushed, moved), along(*given), pushed, moved, along, given)
    inner = {"pullback": made, "pushforward": pushed}[case.inner]
    outers = {"pushforward": pushforward, "pullback": partial(pullback, checkpoints=case.policies[1])}
    second(inner, outers[case.outer], case.outer)
    for mode in (
        "gradient, checkpoints",
        "gradient",
        "gradient, contracted",
        "pushforward",
        f"{case.outer}, {case.inner}",
    ):
        counted(mode)
    return "right"


def second(inner: RolledProgram, outer: Callable[[RolledProgram, Sequence[int]], RolledProgram], name: str) -> None:
    """Compare a derivative of a derivative with that of its straight lines."""
    made = outer(inner, range(len(inner.inputs)))
    arrays, count = points(made, 7), len(inner.inputs)
    function = flat_function(inner)
    straight = pushed_along(function, count) if name == "pushforward" else pulled_back(function, count)
    expected, short = straight(*arrays), contracted(made, 1)
    same(run(made, arrays, scratch=True), expected, made, arrays, straight, arrays)
    same(evaluate_rolled(short, arrays), expected, short, arrays, straight, arrays)


def pushed_along(function: Straight, count: int) -> Straight:
    """The values of a function of so many arrays, and their tangents along as many more."""

    def straight(*given: object) -> tuple[object, ...]:
        values, tangents = sa.jvp(function, given[:count], given[count:])
        return (*values, *tangents)

    return straight


def pulled_back(function: Straight, count: int) -> Straight:
    """The values of a function of so many arrays, and the cotangents of these, of cotangents that are given too."""

    def straight(*given: object) -> tuple[object, ...]:
        values, pull = sa.vjp(function, *given[:count])
        return (*values, *pull(given[count:]))

    return straight


def _outputs(found: object) -> list[np.ndarray]:
    return [np.asarray(array) for array in found] if isinstance(found, tuple | list) else [np.asarray(found)]


written = text.written
read = partial(text.read, Case=Case)
