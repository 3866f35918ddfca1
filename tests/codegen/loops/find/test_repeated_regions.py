"""Repeated regions: the nests that are written for them compute what was written down, to the last bit."""

from dataclasses import replace

import numpy as np
import pytest
import sympy as sp

from codegen.evaluation.evaluate_rolled import evaluate_rolled
from codegen.expressions.sympy_in import program_from_sympy
from codegen.ir.matrix_operation import MatrixOperation
from codegen.ir.program import Input, Output
from codegen.ir.region import Buffer, Carry, Gather, Nest, Region, Result, RolledProgram, regions_of
from codegen.ir.tables import Affine, table
from codegen.loops.find.repeated_regions import FEWEST_ROUNDS, FEWEST_SAVED, with_nests
from codegen.matrices.matrix_loops import matrix_region

N = 6
X, Y, Z = sp.symbols("x y z")
WHOLE = Affine(0, 1, N)
ALONG = table(np.array([1, 2, 4, 5, 0, 3]))
RNG = np.random.default_rng(0)


class Writer:
    """A program in the making: input x of 100 numbers, buffers in the order of their making."""

    def __init__(self):
        self.buffers, self.steps = [Buffer("input", 100)], []

    def new(self, size=N, values=None):
        self.buffers.append(Buffer("workspace" if values is None else "constant", size, values))
        return len(self.buffers) - 1

    def run(self, formula, *reads, target=None, places=WHOLE, kind="store"):
        target = self.new() if target is None else target
        body = BODIES[formula]
        self.steps.append(Region(body, N, tuple(Gather(*read) for read in reads), (Result(0, target, places, kind),)))
        return target

    def program(self, *outputs):
        """Each output is the sum of the numbers of a buffer."""
        first = len(self.buffers)
        for number, buffer in enumerate(outputs, first):
            self.run("x", (buffer, WHOLE), target=number, places=Affine(0, 0, N), kind="add")
        buffers = (*self.buffers, *(Buffer("output", 1) for _ in outputs))
        arrays = (Input("x", (100,)),), tuple(Output((), ()) for _ in outputs)
        return RolledProgram(*arrays, buffers, tuple(self.steps))


BODIES = {text: program_from_sympy([X, Y, Z][: 1 + ("y" in text) + ("z" in text)], [sp.sympify(text)])
          for text in ("x", "sin(x)", "x*y", "x + y", "cos(x) + y", "x*y + z", "2*x")}  # fmt: skip


def chain(steps, state=1):
    """Steps with a state of some steps before, a slice of the input, constants of their own, and a sum."""
    made = Writer()
    kept = [made.run("sin(x)", (0, Affine(90 + k, 1, N))) for k in range(state)]
    total = made.new()
    for k in range(steps):
        own = made.new(values=RNG.normal(size=N))
        same = made.new(1, np.array([0.5]))
        a = made.run("x*y + z", (kept[-1], WHOLE), (own, WHOLE), (0, Affine(k, 1, N)))
        b = made.run("cos(x) + y", (a, ALONG), (kept[-state], WHOLE))
        c = made.run("x*y", (b, WHOLE), (same, Affine(0, 0, N)))
        made.run("x*y", (c, WHOLE), (a, WHOLE), target=total, kind="add")
        kept.append(made.run("sin(x)", (c, ALONG)))
    return made.program(kept[-1], total, kept[steps // 2])


def inner_loops(steps, repeats):
    """Steps in which something is repeated too."""
    made = Writer()
    kept = made.run("sin(x)", (0, WHOLE))
    for k in range(steps):
        force = made.run("x*y", (0, Affine(k, 1, N)), (kept, WHOLE))
        p = made.run("2*x", (force, WHOLE))
        for _ in range(repeats):
            p = made.run("sin(x)", (made.run("x + y", (p, ALONG), (force, WHOLE)), WHOLE))
        kept = made.run("cos(x) + y", (p, WHOLE), (kept, WHOLE))
    return made.program(kept)


def matrices(steps):
    """A matrix operation and a carried region in each step."""
    made = Writer()
    kept = made.run("sin(x)", (0, Affine(20, 1, N)))
    lagged = program_from_sympy([X, Y], [X + sp.sin(Y)])
    for k in range(steps):
        target = made.new()
        product = MatrixOperation("product", (1, 2, 3, 3))
        reads = Gather(kept, WHOLE), Gather(0, Affine(k, 1, 9))
        made.steps.append(matrix_region(product, reads, [Result(0, target, WHOLE, "store")]))
        last = made.new()
        carry = Carry(0, (Gather(target, Affine(0, 0, 1)),))
        result = Result(0, last, WHOLE, "store")
        made.steps.append(Region(lagged, N, (Gather(target, WHOLE),), (result,), (carry,)))
        scaled = made.run("sin(x)", (last, ALONG))
        kept = made.run("x + y", (scaled, WHOLE), (made.run("2*x", (target, ALONG)), WHOLE))
    return made.program(kept)


PROGRAMS = {
    "chain": chain(20), "lag 2": chain(20, state=2), "lag 3": chain(23, state=3), "inner": inner_loops(12, 3),
    "inner nests": inner_loops(12, 30), "matrices": matrices(20),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_nest_computes_what_was_written_down(name):
    program, x = PROGRAMS[name], RNG.normal(size=100)
    made = with_nests(program)
    assert any(isinstance(step, Nest) for step in made.steps)
    for one, other in zip(evaluate_rolled(made, [x]), evaluate_rolled(program, [x]), strict=True):
        assert one.tobytes() == other.tobytes()
    assert made.executed == program.executed


@pytest.mark.parametrize("make", [chain, matrices, lambda steps: inner_loops(steps, 30)])
def test_twice_as_many_steps_are_no_more_regions(make):
    counts = [len(list(regions_of(with_nests(make(steps)).steps))) for steps in (25, 50)]
    assert counts[0] == counts[1] < 100


def test_what_is_repeated_in_rounds_is_a_nest_in_the_nest():
    made = with_nests(PROGRAMS["inner nests"])
    assert max(len(counts) for _, counts in regions_of(made.steps)) == 2


def test_rounds_that_differ_stay_written_down():
    program = chain(20)
    (at,) = [k for k, step in enumerate(program.steps) if step.body is BODIES["cos(x) + y"]][10:11]
    other = replace(
        program.steps[at], gathers=(replace(program.steps[at].gathers[0], table=WHOLE), program.steps[at].gathers[1])
    )
    changed = replace(program, steps=(*program.steps[:at], other, *program.steps[at + 1 :]))
    made, x = with_nests(changed), RNG.normal(size=100)
    nests = [step for step in made.steps if isinstance(step, Nest)]
    assert 0 < sum(nest.count for nest in nests) < 20
    assert [found.tolist() for found in evaluate_rolled(made, [x])] == [
        found.tolist() for found in evaluate_rolled(changed, [x])
    ]


def test_places_that_do_not_move_on_evenly_stay_written_down():
    made = Writer()
    kept = made.run("sin(x)", (0, WHOLE))
    for k in range(40):
        kept = made.run("x*y", (kept, WHOLE), (0, Affine(k * k % 59, 1, N)))
    program = made.program(kept)
    assert with_nests(program) is program


def test_few_regions_are_left_as_they_are():
    steps = FEWEST_SAVED // 5 - 1
    assert steps >= FEWEST_ROUNDS
    program = chain(steps)
    assert with_nests(program) is program
