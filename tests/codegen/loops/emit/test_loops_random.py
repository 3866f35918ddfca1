"""Random rolled programs: their loops, in any number of lanes, against the straight lines."""

import numpy as np
import pytest
import sympy as sp

from codegen.expressions.sympy_in import program_from_sympy
from codegen.ir.program import Input, Output
from codegen.ir.region import Buffer, Carry, Gather, Nest, Region, Result, RolledProgram
from codegen.ir.tables import Affine, Indexed, table
from tests.codegen.loops.emit.test_loops import check


class Maker:
    """A random program: each region reads what earlier ones have finished, and writes buffers of its own."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.inputs = [int(size) for size in self.rng.integers(30, 60, 2)]
        values = self.rng.normal(size=40)
        self.buffers = [Buffer("input", size) for size in self.inputs] + [Buffer("constant", 40, values)]
        self.readable = [0, 1, 2]
        self.written, self.steps = [], []

    def pick(self, *choices):
        return choices[self.rng.integers(len(choices))]

    def places(self, count, size):
        """Places of a buffer in some pattern that loops know: affine, pairs, blocks, repeated, or none."""
        rng, kind = self.rng, self.pick("affine", "pairs", "blocks", "random", "fixed", "few")
        if kind == "pairs":
            i, j = np.triu_indices(8, 1)
            found = np.resize(self.pick(i, j), count) * self.pick(1, 2, 3)
        elif kind == "blocks":
            found = np.arange(count) % self.pick(5, 9, 16) + self.pick(1, 2) * (np.arange(count) // 5)
        elif kind == "random":
            found = rng.integers(0, size, count)
        elif kind == "fixed":
            found = np.full(count, rng.integers(size))
        elif kind == "few":
            found = np.sort(rng.integers(0, 3, count))
        else:
            found = np.arange(count) * self.pick(-3, -2, -1, 1, 2, 3)
        found = found - found.min()
        return found % size if found.max() >= size else found + rng.integers(size - found.max())

    def gathers(self, number, count, shifted):
        found = []
        for _ in range(number):
            buffer = int(self.pick(*self.readable))
            size = self.buffers[buffer].size
            if shifted and size > 12 and self.rng.random() < 0.5:
                shift = int(self.pick(0, 1, 2))
                where = table(self.places(count, size - 2 * shift))
                shifts = (shift,)
            else:
                where, shifts = table(self.places(count, size)), ()
            made = (
                Affine(where.start, where.step, where.count, shifts)
                if isinstance(where, Affine)
                else Indexed(where.index, shifts)
            )
            found.append(Gather(buffer, made))
        return tuple(found)

    def buffer(self, size):
        self.buffers.append(Buffer("workspace", size))
        self.written.append(len(self.buffers) - 1)
        return len(self.buffers) - 1

    def stores(self, outputs, count, rounds):
        """Results that are stored, each place once: rows, columns, or in any order."""
        kind, n = self.pick("rows", "columns", "any", "gaps"), len(outputs)
        buffer = self.buffer(n * count * rounds * (2 if kind == "gaps" else 1))
        shifts = (n * count * (2 if kind == "gaps" else 1),) if rounds > 1 else ()
        order = self.rng.permutation(n * count)
        for k, output in enumerate(outputs):
            if kind == "rows":
                where = Affine(k, n, count, shifts)
            elif kind == "columns":
                where = Affine(k * count, 1, count, shifts)
            elif kind == "gaps":
                where = Affine(2 * k, 2 * n, count, shifts)
            else:
                found = table(order[k * count : (k + 1) * count])
                where = (
                    Affine(found.start, found.step, count, shifts)
                    if isinstance(found, Affine)
                    else Indexed(found.index, shifts)
                )
            yield Result(output, buffer, where, "store")

    def sums(self, outputs, count):
        size = int(self.rng.integers(4, 40))
        buffer = self.buffer(size)
        base = self.places(count, size)
        for output in outputs:
            if self.rng.random() < 0.5:
                where = np.clip(base + self.rng.integers(-2, 3), 0, size - 1) if self.rng.random() < 0.5 else base
            else:
                where = self.places(count, size)
            yield Result(output, buffer, table(where), "add")

    def region(self, rounds=1):
        rng = self.rng
        count, slots = int(self.pick(1, 2, 3, 7, 8, 9, 16, 20, 28, 28, 28, 33)), int(rng.integers(1, 7))
        names = sp.symbols(f"s0:{slots}")
        carries = int(rng.integers(1, 3)) if rng.random() < 0.3 else 0
        names += sp.symbols(f"c0:{carries}") if carries else ()
        outputs = []
        for _ in range(int(rng.integers(2, 7))):
            a, b, c = (self.pick(*names) for _ in range(3))
            outputs.append(self.pick(
                a * b / 2 - c, a + b / 4, sp.sin(a) * b, a / (2 + b**2), sp.Piecewise((a, b > c), (a * c / 3, True)),
                sp.Max(a, b) - c, sp.tanh(a + b), sp.Float(0.25) * a, sp.sqrt(1 + a**2) + b, sp.Integer(2),
            ))  # fmt: skip
        body = program_from_sympy(list(names), [0.5 * sp.tanh(v) if carries else v for v in outputs])
        order = [int(k) for k in rng.permutation(len(outputs))]
        some = max(1, len(order) // 2)
        results = [*self.stores(order[:some], count, rounds), *self.sums(order[some:], count)]
        made, unique = [], set()
        for _ in range(carries):
            lag = int(self.pick(1, 1, 2, 6))
            first = tuple(self.gathers(1, 1, rounds > 1)[0] for _ in range(lag))
            made.append(Carry(int(rng.integers(len(outputs))), first))
            if lag == 1 and rng.random() < 0.5 and made[-1].output not in unique:
                unique.add(made[-1].output)
                results.append(
                    Result(made[-1].output, self.buffer(rounds), Affine(0, 0, 1, (1,) * (rounds > 1)), "last")
                )
        return Region(body, count, self.gathers(slots, count, rounds > 1), tuple(results), tuple(made))

    def expressions(self, names, count):
        found = [self.pick(*names) * self.pick(*names) / 2 - self.pick(*names) for _ in range(count)]
        return program_from_sympy(list(names), found)

    def pairs(self):
        """Things of several numbers each, side by side or not, read and added to in pairs."""
        rng, size, things = self.rng, int(self.pick(2, 3)), int(self.pick(5, 8, 9))
        i, j = np.triu_indices(things, 1)
        begin = int(rng.integers(3))
        gathers = [Gather(0, table(begin + size * k + d)) for k in (i, j) for d in range(size)]
        first, more = int(rng.integers(4)), int(rng.integers(4))
        buffer = self.buffer(first + size * things + more)
        sums = [(d, k) for d in range(size) for k in (i, j)]
        if rng.random() < 0.3:
            sums.pop(rng.integers(len(sums)))
        body = self.expressions(sp.symbols(f"s0:{2 * size}"), len(sums))
        results = [Result(k, buffer, table(first + size * k_ + d), "add") for k, (d, k_) in enumerate(sums)]
        if rng.random() < 0.4:
            results.append(Result(0, buffer, table(rng.integers(0, first + size * things, len(i))), "add"))
        return Region(body, len(i), tuple(gathers), tuple(results))

    def stencil(self):
        """Sums a few places apart, in one stretch or in rows."""
        rng, count, places = self.rng, int(self.pick(5, 8, 15, 16, 17)), int(self.pick(2, 3, 4))
        rows, far = int(self.pick(1, 1, 3)), int(self.pick(0, 1, 3))
        numbers = np.concatenate([k * (count + far) + np.arange(count) for k in range(rows)])
        body = self.expressions(sp.symbols("s0:3"), places + 1)
        gathers = [Gather(0, table(numbers % 18 + d)) for d in range(3)]
        buffer = self.buffer(rows * (count + far) + 8)
        distances = rng.integers(0, 6, places)
        results = [Result(k, buffer, table(numbers + int(d)), "add") for k, d in enumerate(distances)]
        results.append(Result(places, self.buffer(2 * len(numbers)), Affine(1, 2, len(numbers)), "store"))
        return Region(body, len(numbers), tuple(gathers), tuple(results))

    def program(self):
        for _ in range(int(self.rng.integers(1, 4))):
            if self.rng.random() < 0.3:
                self.steps.append(Nest(2, (self.region(2), self.region(2))))
            else:
                self.steps.append(self.pick(self.region, self.region, self.pairs, self.stencil)())
            self.readable += self.written
            self.outputs = self.written
            self.written = []
        inputs = tuple(Input(f"x{k}", (size,)) for k, size in enumerate(self.inputs))
        return self.with_outputs(inputs)

    def with_outputs(self, inputs):
        """The buffers that the last step wrote are the outputs."""
        count = len(self.buffers) - len(self.outputs)
        assert self.outputs == list(range(count, len(self.buffers)))
        buffers = [*self.buffers[:count], *(Buffer("output", self.buffers[k].size) for k in self.outputs)]
        outputs = tuple(Output((self.buffers[k].size,), ()) for k in self.outputs)
        return RolledProgram(inputs, outputs, tuple(buffers), tuple(self.steps))


def compare(seed):
    maker = Maker(seed)
    rolled = maker.program()
    lanes = (None, 1, (2, 4, 8)[seed % 3])
    check(rolled, [maker.rng.normal(size=size) for size in maker.inputs], lanes=lanes, rtol=1e-10)


@pytest.mark.parametrize("seed", range(25))
@pytest.mark.thinned
def test_random_programs(seed):
    compare(seed)
