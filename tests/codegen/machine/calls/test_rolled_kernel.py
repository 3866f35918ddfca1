"""A rolled program as a kernel: all that kernels do."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest
import sympy as sp

from codegen import ArgumentError, Input, LoweringError, Output, Program, compile_program
from codegen.errors import LimitError
from codegen.evaluation.evaluate_rolled import evaluate_rolled
from codegen.expressions.sympy_in import program_from_sympy
from codegen.ir.region import Buffer, Carry, Gather, Region, Result, RolledProgram
from codegen.ir.sparsity import SparsityPattern
from codegen.ir.tables import Affine, table
from codegen.ir.unroll import unroll
from codegen.limits import limits
from codegen.machine.calls.compiled import RegionStats
from tests.support.rolled_programs import KNOWN, A, B, arrays_for, heat, momentum, pairs, random_program


def results(kernel: Any, arrays: Any) -> list[Any]:
    found = kernel(*arrays)
    return list(found) if isinstance(found, tuple) else [found]


def close(found: Any, wanted: Any) -> None:
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", KNOWN)
def test_known_programs(name: str) -> None:
    program = KNOWN[name]
    kernel = compile_program(program)
    for seed in range(3):
        arrays = arrays_for(program, seed)
        close(results(kernel, arrays), evaluate_rolled(program, arrays))


@pytest.mark.parametrize("seed", range(100, 130))
@pytest.mark.thinned
def test_random_programs(seed: int) -> None:
    """The kernel's loops, the interpreter's columns, and the straight lines' kernel agree."""
    program = random_program(seed)
    arrays = arrays_for(program, seed)
    wanted = evaluate_rolled(program, arrays)
    close(results(compile_program(program, tier="fast"), arrays), wanted)
    close(results(compile_program(unroll(program), tier="fast"), arrays), wanted)


def test_it_is_called_like_any_kernel() -> None:
    kernel = compile_program(pairs())
    (x,) = arrays_for(pairs())
    total, products = kernel(x)
    assert isinstance(total, float)
    out = np.full((), 7.0), np.full(36, 7.0)
    assert kernel.into(out, x) is out
    assert (float(out[0]), out[1].tolist()) == (total, products.tolist())
    assert kernel(list(x))[0] == total
    assert kernel.signature == "(9)->(),(36)"
    assert repr(kernel).startswith("<Kernel pairs(x[9]) -> float, [36]:")
    assert "@kernel(" in kernel.llvm
    assert "kernel" in kernel.assembly
    assert kernel.program is not None
    assert kernel.sparsity is None
    with pytest.raises(ArgumentError, match="shape"):
        kernel(x[:5])


def test_statistics_name_the_loops() -> None:
    kernel = compile_program(heat())
    stats = kernel.stats
    assert stats.strategy == "rolled"
    assert stats.regions[1] == RegionStats(5, 5, 5, "heat.py:3")
    assert [region.count for region in stats.regions] == [7, 5, 7]
    assert stats.total == 5
    assert stats.workspace == 42
    assert 0 < stats.executed <= 5 * 5 * 5
    assert list(stats.seconds) == ["lower", "schedule", "emit", "parse", "codegen"]


def test_the_lock_of_python_is_given_back_by_the_operations_that_are_run() -> None:
    few, many = (compile_program(pairs(count), tier="fast") for count in (4, 3000))
    assert (few._compiled.release, many._compiled.release) == (False, True)


def test_code_does_not_grow_with_the_data() -> None:
    lines = [
        compile_program(heat(points, steps), tier="fast").llvm.count("\n") for points, steps in ((400, 50), (4000, 500))
    ]
    assert lines[0] == lines[1]


def diagonal(size: int) -> RolledProgram:
    """The squares of x as a sparse diagonal matrix, and their sum."""
    pattern = SparsityPattern(np.arange(size), np.arange(size), (size, size), "csr")
    body = program_from_sympy([A], [A**2])
    results = (Result(0, 1, Affine(0, 1, size), "store"), Result(0, 2, Affine(0, 0, size), "add"))
    region = Region(body, size, (Gather(0, Affine(0, 1, size)),), results)
    buffers = (Buffer("input", size), Buffer("output", size), Buffer("output", 1))
    outputs = (Output((size,), (), None, pattern), Output((), ()))
    return RolledProgram((Input("x", (size,)),), outputs, buffers, (region,), "diagonal")


def test_sparse_results() -> None:
    kernel = compile_program(diagonal(4))
    x = np.array([1.0, 2.0, 3.0, 4.0])
    pattern, none = kernel.sparsity
    assert (pattern.nnz, none) == (4, None)
    matrix, total = kernel.scipy(x)
    assert matrix.toarray().tolist() == np.diag(x**2).tolist()
    assert total == 30.0


@pytest.mark.parametrize("tier", ["default", "fast", "auto"])
def test_tiers_have_the_same_bits(tier: Any) -> None:
    program = momentum(40)
    kernel = compile_program(program, tier=tier)
    found = kernel(0.1, 0.75)
    assert kernel.wait()
    wanted = compile_program(program)(0.1, 0.75)
    for one in (found, kernel(0.1, 0.75)):
        assert (one[0], one[1].tolist()) == (wanted[0], wanted[1].tolist())


def test_complex_numbers_are_refused() -> None:
    with pytest.raises(ArgumentError, match=r'in loops: .* for real numbers; compile it without loops: roll="never"'):
        compile_program(pairs(), dtype="complex128")
    assert compile_program(unroll(pairs()), dtype="complex128") is not None


def test_a_head_without_lowering_is_named() -> None:
    body = Program([sp.Symbol, sp.Function("unknown")], [(), (0,)], {0: A}, (Input("a", ()),), (Output((), (1,)),))
    region = Region(body, 3, (Gather(0, Affine(0, 1, 3)),), (Result(0, 1, Affine(0, 0, 3), "add"),))
    buffers = (Buffer("input", 3), Buffer("output", 1))
    program = RolledProgram((Input("x", (3,)),), (Output((), ()),), buffers, (region,))
    for use in (lambda: compile_program(program), lambda: evaluate_rolled(program, [np.ones(3)])):
        with pytest.raises(LoweringError, match="unknown"):
            use()


def test_limits_count_the_operations_of_bodies() -> None:
    with limits(max_ops=10):
        compile_program(pairs(50), tier="fast")  # 1,225 repetitions of a few operations
    with limits(max_ops=1), pytest.raises(LimitError, match="the bodies of the program"):
        compile_program(heat(), tier="fast")
    with limits(max_ops=1000), pytest.raises(LimitError, match="straight lines"):
        unroll(pairs(200))


def test_batches_of_every_layout() -> None:
    program = pairs()
    kernel = compile_program(program)
    points = np.random.default_rng(2).uniform(0.5, 1.5, (3, 4, 9))
    wanted = [kernel(x) for x in points.reshape(12, 9)]
    totals, products = kernel.batch(points)
    assert totals.ravel().tolist() == [total for total, _ in wanted]
    assert products.reshape(12, 36).tolist() == [found.tolist() for _, found in wanted]
    for given in (points.astype(np.float32).astype(float), points[::-1, :, ::-1], np.asfortranarray(points)):
        totals, products = kernel.batch(given)
        assert totals[1, 2] == kernel(given[1, 2])[0]
        assert products[2, 3].tolist() == kernel(given[2, 3])[1].tolist()
    out = np.empty((3, 4)), np.empty((3, 4, 36))
    assert kernel.batch(points, out=out, threads=2) is out
    assert out[0].ravel().tolist() == [total for total, _ in wanted]
    assert kernel.lanes == 1


def test_batches_broadcast_and_use_threads() -> None:
    kernel = compile_program(momentum(50))
    rates, starts = np.linspace(0.01, 0.2, 400)[:, None], np.array([0.5, 1.0, 2.0])
    seen: list[int] = []
    one = kernel.batch(rates, starts)
    many = kernel.batch(rates, starts, threads=3, progress=lambda done, points: seen.append(done))
    assert one[0].shape == (400, 3)
    assert one[1].shape == (400, 3, 50)
    assert all(np.array_equal(left, right) for left, right in zip(one, many, strict=True))
    assert seen[-1] == 1200
    assert one[0][17, 2] == kernel(rates[17, 0], 2.0)[0]
    beside = compile_program(momentum(50), lanes=4)
    assert beside.lanes == 4
    assert all(np.array_equal(left, right) for left, right in zip(one, beside.batch(rates, starts), strict=True))


def test_many_threads_call_one_kernel() -> None:
    """With a workspace on the heap: each call has its own."""
    program = heat(400, 60)
    kernel = compile_program(program)
    inputs = [arrays_for(program, seed)[0] for seed in range(6)]
    wanted = [kernel(u).tobytes() for u in inputs]
    wrong: list[int] = []

    def work(number: int) -> None:
        for _ in range(30):
            if kernel(inputs[number]).tobytes() != wanted[number]:
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_workspace_larger_than_any_stack() -> None:
    program = heat(5000, 400)  # 16 MB
    kernel = compile_program(program)
    assert kernel.stats.workspace == 5000 * 401
    arrays = arrays_for(program)
    close(results(kernel, arrays), evaluate_rolled(program, arrays))


def test_a_workspace_that_no_machine_has() -> None:
    """The kernel says so, and goes on living."""
    body = program_from_sympy([A], [A])
    region = Region(body, 2, (Gather(0, Affine(0, 1, 2)),), (Result(0, 1, Affine(0, 1, 2), "store"),))
    last = Region(body, 2, (Gather(1, Affine(0, 1, 2)),), (Result(0, 2, Affine(0, 1, 2), "store"),))
    buffers = (Buffer("input", 2), Buffer("workspace", 2**50), Buffer("output", 2))
    program = RolledProgram((Input("x", (2,)),), (Output((2,), ()),), buffers, (region, last), "vast")
    kernel = compile_program(program)
    with pytest.raises(MemoryError, match="vast"):
        kernel(np.ones(2))
    with pytest.raises(MemoryError):
        kernel.batch(np.ones((3, 2)))


def test_one_repetition_and_empty_arrays() -> None:
    body = program_from_sympy([A], [A + 1])
    region = Region(body, 1, (Gather(0, table(np.array([0]))),), (Result(0, 2, Affine(0, 0, 1), "store"),))
    buffers = (Buffer("input", 1), Buffer("input", 0), Buffer("output", 1), Buffer("output", 0), Buffer("output", 3))
    inputs = (Input("x", ()), Input("nothing", (0, 2)))
    outputs = (Output((), ()), Output((0,), ()), Output((3,), ()))
    program = RolledProgram(inputs, outputs, buffers, (region,), "one")
    found = compile_program(program)(2.0, np.zeros((0, 2)))
    assert (found[0], found[1].shape, found[2].tolist()) == (3.0, (0,), [0.0, 0.0, 0.0])
    close(found, evaluate_rolled(program, [2.0, np.zeros((0, 2))]))


@pytest.mark.parametrize("count", [0, -1])
def test_no_repetitions_are_refused(count: int) -> None:
    places = Affine(0, 1, count)
    region = Region(program_from_sympy([A], [A]), count, (Gather(0, places),), (Result(0, 1, places, "store"),))
    with pytest.raises(ArgumentError, match="none are run"):
        RolledProgram((Input("x", (1,)),), (Output((1,), ()),), (Buffer("input", 1), Buffer("output", 1)), (region,))


def test_a_loop_that_may_stop_stops() -> None:
    """Its bound costs nothing."""
    ones, bound = Affine(0, 0, 1), 10**12
    body = program_from_sympy([B, A], [(A + B / A) / 2, sp.Abs(A * A - B) < 1e-12 * B])
    carry = Carry(0, (Gather(0, ones),))
    region = Region(body, bound, (Gather(0, Affine(0, 0, bound)),), (Result(0, 1, ones, "last"),), (carry,), 1)
    buffers = (Buffer("input", 1), Buffer("output", 1))
    kernel = compile_program(RolledProgram((Input("a", ()),), (Output((), ()),), buffers, (region,), "root"))
    assert kernel(2.0) == pytest.approx(2**0.5, rel=1e-15)
    assert kernel.batch([4.0, 9.0]).tolist() == pytest.approx([2.0, 3.0], rel=1e-15)
