"""Equal regions are written once, and compute the bits that they compute apart."""

import re
from collections import Counter
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import sympy as sp

import codegen.loops.emit.thread_blocks as blocks
import symad as sa
from codegen import compile_program, load_kernel
from codegen.expressions.sympy_in import program_from_sympy
from codegen.ir.readdress import interned, renumbered
from codegen.ir.region import Buffer, Gather, Region, Result, RolledProgram
from codegen.ir.tables import Affine, table
from codegen.loops.emit import rolled_code
from codegen.loops.emit.rolled_code import RolledPlan
from codegen.options import Options
from codegen.stages import Listing, bisecting, bisection_of, compilation
from symad.derivatives.loops.body_derivatives import Replay
from tests.codegen.loops.emit.test_loops import A, B, check, lennard_jones, long_expressions, program, run, wave
from tests.codegen.loops.emit.test_loops_random import Maker
from tests.support.rolled_programs import momentum


@contextmanager
def without(*names):
    """Leave passes out."""
    with bisecting(bisection_of(",".join(f"-{name}" for name in names))), compilation("test", Listing()):
        yield


def functions(rolled, lanes=None, **options):
    """How many functions have the regions of a program."""
    text = RolledPlan.of(rolled, Options(**options), lanes).emit().text
    return len(re.findall(r"^define internal void @kernel\.region\d+\(", text, re.MULTILINE))


def twice(rolled):
    """The steps of a program and, between other buffers, the same steps again."""
    inputs, outputs = len(rolled.inputs), len(rolled.outputs)
    middle = list(rolled.buffers[inputs : rolled.first_output])
    rng = np.random.default_rng(1)
    others = [replace(b, values=b.values if b.values is None else rng.normal(size=b.size)) for b in middle]
    m = len(middle)

    def at(second, buffer):
        if buffer < inputs:
            return buffer + second * inputs
        if buffer < rolled.first_output:
            return buffer + inputs + second * m
        return buffer + inputs + m + second * outputs

    steps = [step for k in (0, 1) for step in renumbered(rolled.steps, partial(at, k))]
    names = tuple(replace(array, name=f"{array.name}_{k}") for k in (0, 1) for array in rolled.inputs)
    ends = rolled.buffers[:inputs] * 2, rolled.buffers[rolled.first_output :] * 2
    both = RolledProgram(names, rolled.outputs * 2, (*ends[0], *middle, *others, *ends[1]), tuple(steps))
    alone = replace(rolled, buffers=(*rolled.buffers[:inputs], *others, *rolled.buffers[rolled.first_output :]))
    return both, alone


def agree(rolled, lanes=None, packed=True, **options):
    """A program twice has no more functions than once, and gives the bits of both."""
    rng = np.random.default_rng(7)
    first, second = ([rng.uniform(0.5, 2, array.shape) for array in rolled.inputs] for _ in (0, 1))
    left_out = [] if packed else ["packing"]
    with without(*left_out):
        both, other = twice(rolled)
        assert functions(both, lanes, **options) == functions(rolled, lanes, **options)
        wanted = [*run(rolled, first, lanes, **options), *run(other, second, lanes, **options)]
        found = run(both, [*first, *second], lanes, **options)
    with without("equal-loops", *left_out):
        apart = run(both, [*first, *second], lanes, **options)
        assert functions(both, lanes, **options) == 2 * functions(rolled, lanes, **options)
    for one, each, right in zip(found, apart, wanted, strict=True):
        assert one.tobytes() == each.tobytes() == right.tobytes()


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.thinned
def test_random_programs(seed):
    agree(Maker(seed).program(), (None, 1, 2, 8)[seed % 4], accuracy=("strict", "fast")[seed % 2])


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("lanes", [None, 1])
def test_pairs_in_blocks(threads, lanes, monkeypatch):
    monkeypatch.setattr(blocks, "SPLIT", 0.0)
    monkeypatch.setattr(blocks, "BLOCK", 100.0)
    agree(lennard_jones(12), lanes, threads=threads)
    agree(lennard_jones(12), lanes, packed=False, threads=threads)


@pytest.mark.parametrize("rounds", [1, 5])
def test_nests(rounds):
    agree(wave(rounds, 19))


@pytest.mark.parametrize("count", [1, 13])
def test_long_bodies(count):
    gathers = tuple(Gather(0, Affine(k, 1, count)) for k in range(3))
    stores = (Result(0, 1, Affine(0, 1, count), "store"), Result(3, 2, Affine(0, 2, count), "store"))
    body = long_expressions(1200)
    agree(program([count + 2], [count, 2 * count], [], Region(body, count, gathers, stores)))


def test_parts_of_one_buffer():
    """Each region reads and writes a part further on; the last one in steps of its own."""
    n, body = 20, program_from_sympy([A, B], [A * B + 1])

    def step(first, reads):
        gathers = (Gather(0, table(first + reads)), Gather(0, Affine(first + 1, 1, n)))
        return Region(body, n, gathers, (Result(0, 1, Affine(first, 1, n), "store"),))

    reads = np.random.default_rng(0).permutation(n)
    steps = [step(first, reads) for first in (0, 20, 40)]
    other = Region(body, n, (Gather(0, Affine(0, 2, n)),) * 2, (Result(0, 2, Affine(0, 1, n), "store"),))
    rolled = program([61], [60, n], [], *steps, other)
    with without("packing"):
        assert functions(rolled) == 2
        check(rolled, [np.linspace(-1, 2, 61)])


N = 9
WHOLE, BODY = Affine(0, 1, N), program_from_sympy([A, B], [A * B, A - B])
READ = (Gather(0, WHOLE), Gather(1, WHOLE))
FIRST = Region(BODY, N, READ, (Result(0, 2, WHOLE, "store"),))
LAST = Region(BODY, N, READ, (Result(0, 3, WHOLE, "store"),))
BACKWARD, ANY_ORDER = Affine(N - 1, -1, N), table(np.arange(N)[::-1] ** 2 % N)
OTHERS = {
    "another body": replace(LAST, body=program_from_sympy([A, B], [A * B + 1, A - B])),
    "another constant": replace(LAST, body=program_from_sympy([A, B], [A * B + 1.0, A - B])),
    "fewer repetitions": Region(
        BODY, N - 1, tuple(Gather(k, Affine(0, 1, N - 1)) for k in (0, 1)),
        (Result(0, 3, Affine(0, 1, N - 1), "store"),),
    ),
    "one array twice": replace(LAST, gathers=READ[:1] * 2),
    "another output": replace(LAST, results=(Result(1, 3, WHOLE, "store"),)),
    "backward": replace(LAST, gathers=(Gather(0, BACKWARD), READ[1])),
    "any order": replace(LAST, gathers=(Gather(0, ANY_ORDER), READ[1])),
    "one place": replace(LAST, gathers=(Gather(0, Affine(3, 0, N)), READ[1])),
    "a sum": replace(LAST, results=(Result(0, 3, Affine(4, 0, N), "add"),)),
    "two results": replace(LAST, results=(*LAST.results, Result(1, 4, WHOLE, "store"))),
}  # fmt: skip


@pytest.mark.parametrize("what", OTHERS)
def test_what_differs_in_more_than_arrays_has_a_function_of_its_own(what):
    first = replace(FIRST, body=program_from_sympy([A, B], [A * B + 1, A - B])) if what == "another constant" else FIRST
    for other, number in ((OTHERS[what], 2), (replace(first, results=LAST.results), 1)):
        made = program([N, N], [N, N, N], [], first, other)
        assert functions(made) == number
        check(made, [np.linspace(-1, 1, N), np.linspace(1, 2, N)])


def test_a_workspace_is_no_output():
    """Behind a workspace there is room for a vector, which loops store to."""
    double = Region(program_from_sympy([A], [A + A]), N, (Gather(2, WHOLE),), (Result(0, 4, WHOLE, "store"),))
    made = program([N, N], [N, N], [Buffer("workspace", N)], FIRST, LAST, double)
    assert functions(made) == 3
    check(made, [np.linspace(-1, 1, N), np.linspace(1, 2, N)])


def test_equal_bodies_are_one():
    bodies = [program_from_sympy([A, B], [A * B, A - B]) for _ in range(3)]
    steps = interned([*(replace(FIRST, body=body) for body in bodies), OTHERS["another body"]])
    assert len({id(step.body) for step in steps}) == 2
    numbers = [program_from_sympy([A], [A + value]) for value in (sp.Float(2), sp.Integer(2), sp.Float(2, 30))]
    steps = interned([Region(body, 1, (), ()) for body in numbers])
    assert len({id(step.body) for step in steps}) == 3


def layers(number):
    rng = np.random.default_rng(0)
    points = rng.normal(size=(70, 65))

    def f(x):
        values = points
        for _ in range(number):
            values = np.tanh(values @ x.reshape(65, 65))
        return np.sum(values**2)

    return f, rng.normal(size=65 * 65) * 0.1


def test_the_code_does_not_grow_with_repetitions_of_array_operations():
    def size(number):
        f, x = layers(number)
        kernel = sa.compile(sa.value_and_grad(f), x)
        value, gradient = kernel(x)
        assert value == pytest.approx(f(x), rel=1e-12)
        step = np.random.default_rng(1).normal(size=x.shape) * 1e-6
        assert gradient @ step == pytest.approx((f(x + step) - f(x - step)) / 2, rel=1e-5)
        return len(re.findall(r"define internal void @kernel\.region", kernel.llvm)), len(kernel.stats.regions)

    (few, short), (many, long) = size(4), size(12)
    assert few == many
    assert long > short


def test_what_is_made_of_bodies_does_not_grow_with_repetitions(monkeypatch):
    """Each body is differentiated, and lowered, once for all regions that have it."""
    made = Counter()

    def counting(name, function):
        def counted(*args):
            made[name] += 1
            return function(*args)

        return counted

    monkeypatch.setattr(Replay, "program", counting("differentiated", Replay.program))
    monkeypatch.setattr(rolled_code, "prepare", counting("lowered", rolled_code.prepare))

    def numbers(steps):
        made.clear()
        sa.compile(sa.value_and_grad(layers(steps)[0]), layers(steps)[1])
        return dict(made)

    few, many = numbers(4), numbers(12)
    assert few == many
    assert few["lowered"] < 30


def test_saved_kernels_and_batches(tmp_path):
    """What a file keeps is the program: equal regions are found again in it."""
    both, _ = twice(lennard_jones(7))
    values = [np.random.default_rng(k).normal(size=21) * 3 for k in (0, 1)]
    kernel = compile_program(both)
    kernel.save(tmp_path / "both.symad")
    again = load_kernel(tmp_path / "both.symad")
    for one, other in zip(kernel(*values), again(*values), strict=True):
        assert one.tobytes() == other.tobytes()
    assert kernel.llvm == again.llvm
    for threads in (1, 2):
        many = kernel.batch(*(np.stack([value] * 3) for value in values), threads=threads)
        for one, rows in zip(kernel(*values), many, strict=True):
            assert all(np.asarray(row).tobytes() == np.asarray(one).tobytes() for row in rows)


def test_carried_loops():
    agree(momentum(50))
