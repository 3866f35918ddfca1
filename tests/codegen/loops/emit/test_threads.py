"""Loops on several threads: the same bits for any number of them, whatever happens around."""

import ctypes.util
import os
import pickle
import subprocess
import sys
import threading

import numpy as np
import pytest
import sympy as sp

import codegen.loops.emit.thread_blocks as blocks
import symad as sa
from codegen import compile_program, load_kernel, special_heads
from codegen.emission.schedule import schedule
from codegen.errors import ArgumentError
from codegen.expressions.sympy_in import program_from_sympy
from codegen.ir.program import Input
from codegen.ir.region import Gather, Nest, Region, Result
from codegen.ir.tables import Affine, table
from codegen.loops.emit.rolled_code import RolledPlan
from codegen.options import Options
from tests.codegen.loops.emit.test_loops import A, B, lennard_jones, meant, program, run
from tests.codegen.loops.emit.test_loops_random import Maker
from tests.support.rolled_programs import momentum

THREADS = (1, 2, 3, 7)


@pytest.fixture(autouse=True)
def _short_loops_are_cut(monkeypatch):
    monkeypatch.setattr(blocks, "SPLIT", 0.0)
    monkeypatch.setattr(blocks, "BLOCK", 100.0)
    monkeypatch.setattr(blocks, "SHARE", 1e3)


def cut(rolled, lanes=None):
    return RolledPlan.of(rolled, Options(), lanes).cut


def agree(rolled, values, lanes=None, rtol=1e-12, **options):
    """Compare the kernels for all numbers of threads with each other, and with the straight lines."""
    results = [run(rolled, values, lanes, threads=threads, **options) for threads in THREADS]
    for got, want in zip(results[0], meant(rolled, values), strict=True):
        np.testing.assert_allclose(got, want, rtol=rtol, atol=rtol)
    for others in results[1:]:
        assert [array.tobytes() for array in others] == [array.tobytes() for array in results[0]]


def valley(x):
    return sa.sum_over(lambda a, b: 100 * (b - a**2) ** 2 + (1 - a) ** 2, x[:-1], x[1:])


@pytest.mark.parametrize("lanes", [None, 1, 2])
@pytest.mark.parametrize("n", [129, 1000, 4096])
def test_sums_and_maps(n, lanes):
    body = program_from_sympy([A, B], [A * B, A / (2 + B**2), sp.tanh(A)])
    gathers = (Gather(0, Affine(0, 1, n)), Gather(0, Affine(1, 1, n)))
    results = (
        Result(0, 1, Affine(0, 0, n), "add"), Result(1, 2, Affine(3 * n - 2, -3, n), "store"),
        Result(2, 2, Affine(0, 3, n), "store"), Result(2, 1, Affine(1, 0, n), "add"),
    )  # fmt: skip
    rolled = program([n + 1], [2, 3 * n], [], Region(body, n, gathers, results))
    assert cut(rolled, lanes)[0] > 1
    agree(rolled, [np.random.default_rng(n).normal(size=n + 1)], lanes)


@pytest.mark.parametrize("lanes", [None, 1, 4])
def test_sums_that_overlap(lanes):
    """Vectors that lie across the border of two blocks, with a sum over all beside them."""
    n, body = 1000, program_from_sympy([A, B], [A * B, A - B, A / 2, A * A])
    gathers = (Gather(0, Affine(0, 1, n)), Gather(0, Affine(3, 1, n)))
    results = [Result(k, 2, Affine(d, 1, n), "add") for k, d in enumerate((0, 1, 3))]
    results.append(Result(3, 1, Affine(0, 0, n), "add"))
    rolled = program([n + 3], [1, n + 5], [], Region(body, n, gathers, tuple(results)))
    assert (cut(rolled, lanes)[0] > 1) == (lanes != 1)
    agree(rolled, [np.random.default_rng(1).normal(size=n + 3)], lanes)


@pytest.mark.parametrize("lanes", [None, 1])
def test_runs(lanes):
    """A matrix times a vector: a run, and a place, for each row."""
    rows, columns = 60, 25
    i, j = np.divmod(np.arange(rows * columns), columns)
    gathers = (Gather(0, Affine(0, 1, rows * columns)), Gather(1, table(j)))
    results = (Result(0, 2, table(i), "add"), Result(0, 3, Affine(0, 0, len(i)), "add"))
    region = Region(program_from_sympy([A, B], [A * B]), len(i), gathers, results)
    rolled = program([len(i), columns], [rows, 1], [], region)
    assert (cut(rolled, lanes)[0] > 1) == (lanes is None)
    rng = np.random.default_rng(2)
    agree(rolled, [rng.normal(size=len(i)), rng.normal(size=columns)], lanes)


@pytest.mark.parametrize("atoms", [9, 40, 41])
def test_sums_that_meet_are_added_in_copies(atoms):
    """Pairs of atoms: each block adds to a gradient of its own."""
    rolled = lennard_jones(atoms)
    assert cut(rolled)[0] > 1
    agree(rolled, [np.random.default_rng(3).normal(size=3 * atoms) * 3], rtol=1e-9)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("sparse", ["lower", "full", False])
@pytest.mark.thinned
def test_blocks_of_three_by_three_beside_copies(sparse, dtype):
    """What is stored, what is added up apart and copied, a dense matrix, and single precision."""
    x = np.random.default_rng(5).normal(size=3 * 70).astype(dtype)

    def energy(x):
        i, j = np.triu_indices(len(x) // 3, 1)
        difference = x.reshape(-1, 3)[i] - x.reshape(-1, 3)[j]
        return np.sum(1 / (1 + np.sum(difference**2, axis=1)))

    derivative = sa.hessian(energy, sparse=sparse)
    kernels = [sa.compile(derivative, x, cache=False, threads=threads, dtype=dtype) for threads in THREADS]
    assert max(region.blocks for region in kernels[1].stats.regions) > 1
    numbers = [np.asarray(kernel(x)).tobytes() for kernel in kernels]
    assert len(set(numbers)) == 1
    straight = sa.compile(derivative, x[:45], cache=False, roll="never", tier="fast", dtype=dtype)
    small = sa.compile(derivative, x[:45], cache=False, roll="always", threads=3, dtype=dtype)
    tolerance = 1e-12 if dtype == "float64" else 1e-4
    np.testing.assert_allclose(small(x[:45]), straight(x[:45]), rtol=tolerance, atol=tolerance)


def test_many_sums_are_not_copied_for_little_work(monkeypatch):
    """Copies may take a twentieth of the time of a loop; repetitions that need each other are never cut."""
    monkeypatch.setattr(blocks, "SHARE", 0.05)
    rolled = lennard_jones(40)
    assert cut(rolled) == [1]
    agree(rolled, [np.random.default_rng(3).normal(size=120) * 3], rtol=1e-9)
    assert cut(momentum(3000)) == [1]


def test_memory_is_cleared(monkeypatch):
    """Sums that meet stay on one thread; their zeros are shared."""
    monkeypatch.setattr("codegen.loops.emit.thread_text.LARGE", 1000)
    monkeypatch.setattr("codegen.loops.emit.thread_text.PIECE", 4096)
    n, rng = 300, np.random.default_rng(11)
    results = (Result(0, 1, table(rng.integers(0, 2000, n)), "add"), Result(0, 2, table(rng.integers(0, 99, n)), "add"))
    region = Region(program_from_sympy([A], [A * A]), n, (Gather(0, Affine(0, 1, n)),), results)
    rolled = program([n], [2000, 99], [], region)
    assert "kernel.zeros,ptr" in RolledPlan.of(rolled, Options(threads=2)).emit().text
    agree(rolled, [rng.normal(size=n)])


def test_functions_of_scipy_stay_on_one_thread():
    """They may want to warn, and wait for Python."""
    pytest.importorskip("scipy")
    n = 1000
    result = Result(0, 1, Affine(0, 1, n), "store")

    def regions(function):
        region = Region(program_from_sympy([A], [function]), n, (Gather(0, Affine(0, 1, n)),), (result,))
        return cut(program([n], [n], [], region))

    assert regions(sp.erf(A))[0] > 1
    assert regions(special_heads.hyp2f1(A, 1.5, 2.5, 0.5)) == [1]


def test_nests():
    """In each round of a nest all blocks, with their sums."""
    n, rounds = 500, 3
    here = (n,)
    gathers = (Gather(0, Affine(0, 1, n, here)), Gather(0, Affine(1, 1, n, here)))
    results = (Result(0, 1, Affine(0, 1, n, here), "store"), Result(1, 2, Affine(0, 0, n, (1,)), "add"))
    region = Region(program_from_sympy([A, B], [A - B, A * B]), n, gathers, results)
    rolled = program([rounds * n + 1], [rounds * n, rounds], [], Nest(rounds, (region,)))
    assert cut(rolled)[0] > 1
    agree(rolled, [np.random.default_rng(4).normal(size=rounds * n + 1)])


def test_long_bodies(monkeypatch):
    """Each thread has memory of its own for a body in several functions."""
    monkeypatch.setattr("codegen.loops.emit.loop_text.schedule", lambda lowered: schedule(lowered, 5))
    n, slots = 300, sp.symbols("s0:9")
    terms = [sp.sin(a) * b + sp.exp(-((a - c) ** 2)) for a, b, c in zip(slots, slots[1:], slots[2:], strict=False)]
    body = program_from_sympy(list(slots), [sum(terms), terms[0] * terms[-1]])
    gathers = tuple(Gather(0, Affine(k, 1, n)) for k in range(9))
    results = (Result(0, 1, Affine(0, 0, n), "add"), Result(1, 2, Affine(0, 1, n), "store"))
    rolled = program([n + 8], [1, n], [], Region(body, n, gathers, results))
    assert "region0.3(" in RolledPlan.of(rolled, Options()).emit().text
    assert cut(rolled)[0] > 1
    agree(rolled, [np.random.default_rng(5).normal(size=n + 8)], rtol=1e-12)


@pytest.mark.parametrize("seed", range(16))
def test_random_programs(seed, monkeypatch):
    """Those of the loops, with blocks as short as they can be."""
    lanes = (None, 1, 2, 4)[seed % 4]
    monkeypatch.setattr(blocks, "WHOLE", lanes or 8)
    monkeypatch.setattr(blocks, "BLOCK", 1e-6)
    maker = Maker(seed)
    if seed % 2:
        maker.steps, maker.outputs = [maker.stencil()], maker.written
        rolled = maker.with_outputs(tuple(Input(f"x{k}", (size,)) for k, size in enumerate(maker.inputs)))
    else:
        rolled = maker.program()
    agree(rolled, [maker.rng.normal(size=size) for size in maker.inputs], lanes, 1e-10, level=0)


CASES = {
    "value": valley,
    "gradient": sa.grad(valley),
    "Hessian in the order of the loops": sa.hessian(valley, sparse="lower", format="regions"),
    "Hessian by rows": sa.hessian(valley, sparse="lower"),
    "value and gradient": sa.value_and_grad(valley),
    "map": lambda x: np.sin(x) * np.cos(x) - x,
}


@pytest.mark.parametrize("case", CASES)
def test_derivatives(case):
    x = np.random.default_rng(6).normal(size=600)
    kernels = [sa.compile(CASES[case], x, threads=threads, roll="always") for threads in THREADS]
    assert any(region.blocks > 1 for region in kernels[0].stats.regions)
    results = [kernel(x) for kernel in kernels]
    straight = sa.compile(CASES[case], x, roll="never")
    for got, want in zip(_flat(results[0]), _flat(straight(x)), strict=True):
        if straight.sparsity is not None:
            (rows, columns), (i, j) = kernels[0].sparsity, straight.sparsity
            got, want = got[np.lexsort((columns, rows))], want[np.lexsort((j, i))]
        np.testing.assert_allclose(got, want, rtol=1e-12)
    for result in results[1:]:
        assert [array.tobytes() for array in _flat(result)] == [array.tobytes() for array in _flat(results[0])]


def _flat(result):
    return [np.asarray(array) for array in (result if isinstance(result, tuple) else (result,))]


@pytest.fixture
def gradient():
    return sa.compile(sa.value_and_grad(valley), np.ones(3000), threads=3)


def test_batches(gradient):
    points = np.random.default_rng(7).normal(size=(9, 3000))
    values, gradients = gradient.batch(points, threads=2)
    for k, point in enumerate(points):
        value, slope = gradient(point)
        assert value == values[k]
        np.testing.assert_array_equal(slope, gradients[k])


def test_many_callers(gradient):
    """Who finds the workers taken runs all blocks alone."""
    points = np.random.default_rng(8).normal(size=(6, 3000))
    expected, wrong = [gradient(point)[1].tobytes() for point in points], []

    def work(k):
        for _ in range(50):
            if gradient(points[k])[1].tobytes() != expected[k]:
                wrong.append(k)

    callers = [threading.Thread(target=work, args=(k,)) for k in range(len(points))]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert wrong == []


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*fork")  # of Python, and of JAX where other tests have imported it
def test_fork(gradient):
    """The child has workers of its own, also where the fork came while others were at work."""
    point = np.random.default_rng(9).normal(size=3000)
    expected, over = gradient(point)[1].tobytes(), threading.Event()

    def work():
        while not over.is_set():
            gradient(point)

    busy = threading.Thread(target=work)
    busy.start()
    children = []
    for _ in range(5):
        child = os.fork()
        if not child:
            os._exit(0 if all(gradient(point)[1].tobytes() == expected for _ in range(20)) else 1)
        children.append(child)
    codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    over.set()
    busy.join()
    assert codes == [0] * 5


LEAVES = """
import numpy as np, threading, symad as sa, codegen.loops.emit.thread_blocks as blocks
blocks.SPLIT, blocks.BLOCK = 0.0, 100.0
x = np.ones(20_000)
kernel = sa.compile(sa.grad(lambda x: sa.sum_over(lambda a, b: np.sin(a * b), x[:-1], x[1:])), x, threads=4)
def work():
    while True:
        kernel(x)
for _ in range(2):
    threading.Thread(target=work, daemon=True).start()
print(kernel(x)[0])
"""


def test_a_program_ends_with_workers_at_work():
    done = subprocess.run([sys.executable, "-c", LEAVES], capture_output=True, text=True, timeout=600)
    assert (done.returncode, done.stderr) == (0, "")
    assert float(done.stdout) == pytest.approx(np.cos(1.0))


def test_rounding_is_that_of_the_caller(gradient):
    """Workers that began with another rounding mode compute with that of this call."""
    libm = ctypes.CDLL(ctypes.util.find_library("m"))
    point = np.random.default_rng(10).normal(size=3000)
    single = sa.compile(sa.value_and_grad(valley), np.ones(3000))
    gradient(point)
    upward = {"x86_64": 0x800, "AMD64": 0x800, "aarch64": 0x400000}.get(os.uname().machine)
    if upward is None:
        pytest.skip("unknown processor")
    before = libm.fegetround()
    try:
        assert libm.fesetround(upward) == 0
        results = [[array.tobytes() for array in _flat(kernel(point))] for kernel in [single] + [gradient] * 20]
    finally:
        libm.fesetround(before)
    assert all(result == results[0] for result in results)
    assert results[0] != [array.tobytes() for array in _flat(single(point))]


def test_the_option(tmp_path):
    for wrong in (0, -1, 1.5, True, None, "2", np.float64(2)):
        with pytest.raises(ArgumentError, match="threads="):
            sa.compile(valley, np.ones(100), threads=wrong)
    kernel = sa.compile(valley, np.ones(3000), threads=np.int64(2))
    kernel.save(tmp_path / "valley.symad")
    for again in (pickle.loads(pickle.dumps(kernel)), load_kernel(tmp_path / "valley.symad")):
        assert again.options == kernel.options == Options(threads=2)
    assert sa.compile(lambda x: x * x, 2.0, threads=2)(3.0) == 9.0  # no loop: one thread, as always
    assert sa.jit(valley, threads=2)(np.ones(3000)) == 0.0


def test_object_code_is_kept_for_each_number_of_threads(tmp_path):
    rolled, straight = lennard_jones(4), program_from_sympy([A], [A + 1])
    for found, different in ((rolled, True), (straight, False)):
        compile_program(found, cache=tmp_path)
        assert compile_program(found, cache=tmp_path).stats.cached
        assert compile_program(found, cache=tmp_path, threads=2).stats.cached != different


def test_exported_code_has_no_threads(tmp_path, gradient):
    exported = gradient.export(tmp_path, "valley", library=False)
    assert b"codegen.parallel" not in exported.files["object"].read_bytes()
    assert "codegen.parallel" in gradient.llvm


def test_without_threads_kernels_run_on_one(monkeypatch):
    monkeypatch.setattr("codegen.loops.emit.rolled_code.available", lambda: False)
    kernel = sa.compile(sa.value_and_grad(valley), np.ones(3000), threads=3)
    assert "codegen.parallel" not in kernel.llvm
    assert kernel(np.ones(3000))[0] == 0.0
