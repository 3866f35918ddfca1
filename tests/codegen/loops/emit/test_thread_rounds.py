"""Rounds of nests on several threads: the bits of one thread, and which nests have them."""

import numpy as np
import pytest

import codegen.loops.emit.thread_blocks as blocks
import codegen.loops.emit.thread_rounds as rounds
import symad as sa
from codegen.expressions.sympy_in import program_from_sympy
from codegen.ir.region import Buffer, Gather, Nest, Region, Result
from codegen.ir.tables import Affine
from codegen.loops.emit.rolled_code import RolledPlan
from codegen.options import Options
from tests.codegen.loops.emit.test_loops import A, B, meant, program, run

THREADS = (1, 2, 3, 7)
N, ROUNDS = 50, 6
CHUNK, KEPT, SUMS, ALL = 1, 2, 3, 4  # buffers: workspaces of N and 2 numbers, outputs of 2 and N * ROUNDS
HERE, MOVING = Affine(0, 1, N), Affine(0, 1, N, (N,))


@pytest.fixture(autouse=True)
def _rounds_are_shared_and_loops_are_not_cut(monkeypatch):
    monkeypatch.setattr(rounds, "SPLIT", 0.0)
    monkeypatch.setattr(rounds, "ROUND", 0.0)
    monkeypatch.setattr(blocks, "SPLIT", 1e12)


def chunk(to=HERE):
    """What a round leaves for itself."""
    reads = (Gather(0, MOVING), Gather(0, Affine(1, 1, N, (N,))))
    return Region(program_from_sympy([A, B], [A * B]), N, reads, (Result(0, CHUNK, to, "store"),))


def sums(buffer, places=(1, 0), shift=0, read=HERE):
    """What is added up of it: the numbers and their squares."""
    tables = [Affine(place, 0, N, (shift,) if shift else ()) for place in places]
    results = tuple(Result(k, buffer, found, "add") for k, found in enumerate(tables))
    return Region(program_from_sympy([A], [A, A * A]), N, (Gather(CHUNK, read),), results)


def kept():
    """What is stored of it, each time elsewhere."""
    result = Result(0, ALL, MOVING, "store")
    return Region(program_from_sympy([A], [A / 3]), N, (Gather(CHUNK, HERE),), (result,))


def before():
    """What is left once."""
    return Region(program_from_sympy([A], [A]), N, (Gather(0, HERE),), (Result(0, CHUNK, HERE, "store"),))


def spread():
    """Numbers of each chunk, added up side by side."""
    gather = Gather(0, Affine(0, 1, 2, (N,)))
    return Region(program_from_sympy([A], [A]), 2, (gather,), (Result(0, SUMS, Affine(0, 1, 2), "add"),))


def copied():
    """The numbers of one workspace, doubled, as sums in the output."""
    table = Affine(0, 1, 2)
    return Region(program_from_sympy([A], [2 * A]), 2, (Gather(KEPT, table),), (Result(0, SUMS, table, "add"),))


def made(*steps):
    middle = [Buffer("workspace", N), Buffer("workspace", 2)]
    return program([ROUNDS * N + 1], [2, ROUNDS * N], middle, *steps)


def shared(rolled):
    return [found.count for _, found in RolledPlan.of(rolled, Options(threads=2)).packed.rounds.values()]


def agree(rolled, lanes=None, size=ROUNDS * N + 1):
    values = [np.random.default_rng(1).normal(size=size)]
    results = [run(rolled, values, lanes, threads=threads) for threads in THREADS]
    for got, want in zip(results[0], meant(rolled, values), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12)
    for others in results[1:]:
        assert [array.tobytes() for array in others] == [array.tobytes() for array in results[0]]


@pytest.mark.parametrize("together", [1 << 17, 32])
@pytest.mark.parametrize("lanes", [None, 1, 4])
@pytest.mark.thinned
def test_sums_in_outputs_and_in_workspaces(lanes, together, monkeypatch):
    """Also where few rounds at a time are under way, and where something is there before."""
    monkeypatch.setattr(rounds, "COPIES", together)
    nests = {
        "output": Nest(ROUNDS, (chunk(), sums(SUMS), kept())),
        "workspace": Nest(ROUNDS, (chunk(), sums(KEPT), kept())),
    }
    assert shared(made(nests["output"])) == shared(made(nests["workspace"], copied())) == [ROUNDS]
    agree(made(nests["output"]), lanes)
    agree(made(nests["workspace"], copied()), lanes)
    agree(made(Nest(ROUNDS, (chunk(), sums(KEPT))), copied(), nests["output"]), lanes)


def test_functions_of_equal_loops():
    """Equal regions of one nest have one function, which is given arrays of the thread."""
    one, other = sums(SUMS, (0,)), sums(KEPT, (1,))
    rolled = made(Nest(ROUNDS, (chunk(), one, other, kept())), copied())
    assert shared(rolled) == [ROUNDS]
    agree(rolled)


@pytest.mark.parametrize(
    "steps",
    [
        [before(), Nest(ROUNDS, (sums(SUMS), kept()))],  # a round reads what is left before all of them
        [Nest(ROUNDS, (chunk(), sums(SUMS), sums(SUMS)))],  # it adds twice to one place
        [Nest(ROUNDS, (chunk(), kept(), spread()))],  # it adds to places that follow each other
        [Nest(ROUNDS, (chunk(), sums(SUMS, (0,)), kept())), sums(SUMS, (1,))],  # its chunk is read behind it
        [Nest(2, (Nest(3, (chunk(), sums(SUMS))),))],
    ],
)  # fmt: skip
def test_rounds_that_are_not_shared(steps):
    rolled = made(*steps)
    assert shared(rolled) == []


def test_short_rounds_are_not_shared(monkeypatch):
    monkeypatch.undo()
    assert shared(made(Nest(ROUNDS, (chunk(), sums(SUMS))))) == []


@pytest.mark.parametrize("sparse", ["lower", "full"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.thinned
def test_a_hessian_of_many_rows(sparse, dtype):
    """Of logistic regression: so many sums of products that they are taken chunk by chunk, and a rest."""
    rng = np.random.default_rng(0)
    data, w = rng.normal(size=(10_009, 20)), np.linspace(-0.2, 0.3, 20).astype(dtype)
    hessian = sa.hessian(lambda w: np.sum(np.log1p(np.exp(-(data @ w)))), sparse=sparse)
    kernels = [sa.compile(hessian, w, threads=threads, dtype=dtype, cache=False) for threads in THREADS]
    assert max(region.blocks for region in kernels[0].stats.regions) > 1
    assert len({np.asarray(kernel(w)).tobytes() for kernel in kernels for _ in range(5)}) == 1
    assert ["nest0.round" in kernel.llvm for kernel in kernels] == [False, True, True, True]
    points = np.stack([w, 2 * w, -w])
    assert np.asarray(kernels[1].batch(points)).tobytes() == np.stack([kernels[0](x) for x in points]).tobytes()


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.thinned
def test_random_chunks(seed):
    """Each region of a round reads what those before it have left there, perhaps moving on, and adds some of it up."""
    rng = np.random.default_rng(seed)
    lanes, n, count = (None, 1, 2, 4)[seed % 4], int(rng.integers(3, 40)), int(rng.integers(2, 9))
    buffers, left, steps, places, regions = [], [], [], iter(rng.permutation(40).tolist()), int(rng.integers(2, 6))
    for _ in range(regions):
        gathers = [Gather(0, Affine(int(rng.integers(5)), 1, n, (n,)))]
        gathers += [left[int(rng.integers(len(left)))] if left else gathers[0]]
        moves = bool(rng.integers(2))
        buffers.append(Buffer("workspace", n * count if moves else n))
        left.append(Gather(len(buffers), Affine(0, 1, n, (n,) if moves else ())))
        results = [Result(0, len(buffers), left[-1].table, "store")]
        results += [Result(1, regions + 1, Affine(next(places), 0, n), "add") for _ in range(int(rng.integers(1, 4)))]
        steps.append(Region(program_from_sympy([A, B], [A - B / 2, A * B + 1]), n, tuple(gathers), tuple(results)))
    rolled = program([n * count + 5], [40], buffers, Nest(count, tuple(steps)))
    assert shared(rolled) == [count]
    agree(rolled, lanes, n * count + 5)
