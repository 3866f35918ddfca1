"""Calls of kernels: the gate and the slow path give the same numbers, and refuse the same arguments."""

from __future__ import annotations

import gc
import math
import pickle
import sys
import threading
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sympy as sp

import codegen.machine.calls.kernel
from codegen import ArgumentError, Kernel, compile_program, program_from_sympy
from codegen.machine.build import ENCODING, STAGES
from codegen.machine.calls.gate import layout_as_expected, native_type
from codegen.machine.calls.gate_routines import MOST_ARRAYS
from codegen.options import Options

X, Y, Z = sp.symbols("x y z")


@pytest.fixture(scope="module")
def pair_kernel() -> Kernel:
    """(x[2], s) -> matrix 2x2."""
    return compile_program(program_from_sympy([(X, Y), Z], [sp.Matrix([[X * Y, Z], [sp.sin(X), X - Y]])]))


@pytest.fixture(scope="module")
def two_outputs() -> Kernel:
    return compile_program(program_from_sympy([(X, Y)], [X * Y, [X + Y, X - Y, 2]]))


def expected(x: float, y: float, z: float) -> Any:
    return np.array([[x * y, z], [math.sin(x), x - y]])


def test_native_type_is_used_here() -> None:
    assert layout_as_expected()
    made = native_type(Kernel)
    assert made is not None
    assert issubclass(made, Kernel)
    assert made.__basicsize__ == Kernel.__basicsize__ + 16


def test_gate_and_slow_path_agree(pair_kernel: Kernel) -> None:
    x, want = np.array([0.5, 3.0]), expected(0.5, 3.0, -2.0)
    results = [
        pair_kernel(x, -2.0),
        pair_kernel(x, np.float64(-2.0)),
        pair_kernel(x, np.array(-2.0)),
        pair_kernel([0.5, 3], -2),
        pair_kernel((0.5, 3.0), np.float32(-2)),
        pair_kernel(np.array([0.5, 3.0], dtype=np.float32), -2.0),
        pair_kernel(np.array([0.5, 9.0, 3.0])[::2], -2.0),
        pair_kernel(np.array([0.5, 3.0], dtype=">f8"), -2.0),
        Kernel.__call__(pair_kernel, x, -2.0),
        pair_kernel._call_slow(x, -2.0),
    ]
    for result in results:
        assert result.dtype == np.float64
        np.testing.assert_array_equal(result, want)


def test_read_only_and_unaligned_inputs(pair_kernel: Kernel) -> None:
    x = np.array([0.5, 3.0])
    x.setflags(write=False)
    np.testing.assert_array_equal(pair_kernel(x, -2.0), expected(0.5, 3.0, -2.0))
    raw = np.zeros(17, dtype=np.uint8)
    unaligned = raw[1:17].view(np.float64)
    unaligned[:] = [0.5, 3.0]
    assert not unaligned.flags.aligned
    np.testing.assert_array_equal(pair_kernel(unaligned, -2.0), expected(0.5, 3.0, -2.0))


def test_out_is_returned_and_written(pair_kernel: Kernel) -> None:
    x, out = np.array([0.5, 3.0]), np.full((2, 2), 9.0)
    assert pair_kernel(x, -2.0, out=out) is out
    np.testing.assert_array_equal(out, expected(0.5, 3.0, -2.0))
    wide = np.zeros((2, 4))
    strided = wide[:, ::2]
    assert pair_kernel(x, -2.0, out=strided) is strided
    np.testing.assert_array_equal(strided, expected(0.5, 3.0, -2.0))
    assert not wide[:, 1::2].any()
    assert pair_kernel.into(out, x, 1.0) is out
    assert out[0, 1] == 1.0


def test_overlapping_out_is_as_if_inputs_were_copied(pair_kernel: Kernel) -> None:
    memory = np.array([0.5, 3.0, 0.0, 0.0, 0.0])
    pair_kernel(memory[:2], -2.0, out=memory[1:].reshape(2, 2))
    np.testing.assert_array_equal(memory[1:].reshape(2, 2), expected(0.5, 3.0, -2.0))


def test_several_outputs(two_outputs: Kernel) -> None:
    value, array = two_outputs(np.array([2.0, 3.0]))
    assert type(value) is float
    assert value == 6.0
    np.testing.assert_array_equal(array, [5.0, -1.0, 2.0])
    scalar, vector = np.zeros(()), np.zeros(3)
    given = (scalar, vector)
    assert two_outputs(np.array([2.0, 3.0]), out=given) is given
    assert scalar == 6.0
    np.testing.assert_array_equal(vector, [5.0, -1.0, 2.0])
    both = np.zeros(4)
    two_outputs(np.array([2.0, 3.0]), out=(both[2:3].reshape(()), both[:3]))  # the outputs overlap: no crash
    with pytest.raises(ArgumentError, match="2 outputs"):
        two_outputs(np.array([2.0, 3.0]), out=vector)
    with pytest.raises(ArgumentError, match="2 outputs"):
        two_outputs(np.array([2.0, 3.0]), out=(scalar, vector, vector))


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (([1.0, 2.0, 3.0], 1.0), r"argument 0 \(argument0\): shape \(3,\).*\(2,\)"),
        (([1.0, 2.0], [1.0]), r"argument 1 \(z\): shape \(1,\).*\(\)"),
        ((np.zeros((2, 1)), 1.0), r"shape \(2, 1\)"),
        ((np.zeros(2, dtype=complex), 1.0), "complex128"),
        ((np.array([1, None]), 1.0), "object"),
        ((["a", "b"], 1.0), "dtype <U1"),
        (([[1.0], [2.0, 3.0]], 1.0), "ragged"),
        (([1.0, 2.0],), "1 argument: .*takes 2"),
        ((), "0 arguments"),
        (([1.0, 2.0], 1.0, 2.0), "3 arguments"),
        (([1.0, 2.0], None), "a value of type NoneType: it is no array of numbers"),
        (([1.0, 2.0], 1j), "complex"),
    ],
)
def test_wrong_arguments_are_named(pair_kernel: Kernel, args: tuple[Any, ...], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        pair_kernel(*args)


def _read_only() -> Any:
    array = np.zeros((2, 2))
    array.setflags(write=False)
    return array


@pytest.mark.parametrize(
    ("out", "message"),
    [
        (np.zeros(4), r"out: shape \(4,\).*\(2, 2\)"),
        (np.zeros((2, 2), dtype=np.float32), "out: dtype float32"),
        (np.zeros((2, 2), dtype=">f8"), "out: dtype >f8"),
        (_read_only(), "out: a read-only array"),
        ([[0.0, 0.0], [0.0, 0.0]], "1 outputs"),
        (3.0, "out: float"),
    ],
)
def test_wrong_out_is_named(pair_kernel: Kernel, out: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        pair_kernel(np.array([1.0, 2.0]), 1.0, out=out)


def test_unknown_keyword(pair_kernel: Kernel) -> None:
    with pytest.raises(ArgumentError, match="'other'"):
        pair_kernel(np.array([1.0, 2.0]), 1.0, other=1)
    with pytest.raises(ArgumentError, match="'other'"):
        pair_kernel(np.array([1.0, 2.0]), 1.0, out=np.zeros((2, 2)), other=1)


def test_arguments_have_names(pair_kernel: Kernel) -> None:
    x, y = (array.name for array in pair_kernel.program.arguments)
    expected = pair_kernel(np.array([1.0, 2.0]), 3.0)
    out = np.zeros_like(expected)
    assert np.array_equal(pair_kernel(np.array([1.0, 2.0]), **{y: 3.0}), expected)
    assert np.array_equal(pair_kernel(**{y: 3.0, x: np.array([1.0, 2.0])}), expected)
    assert pair_kernel(np.array([1.0, 2.0]), **{y: 3.0}, out=out) is out
    assert np.array_equal(out, expected)
    with pytest.raises(ArgumentError, match=f"keyword '{x}': it is given by position too"):
        pair_kernel(np.array([1.0, 2.0]), **{x: 1.0})
    with pytest.raises(ArgumentError, match=f"no value for {y}"):
        pair_kernel(**{x: np.array([1.0, 2.0])})


def test_subclasses_and_other_arrays(pair_kernel: Kernel) -> None:
    class Tagged(np.ndarray):  # type: ignore[type-arg]
        pass

    x = np.array([0.5, 3.0]).view(Tagged)
    np.testing.assert_array_equal(pair_kernel(x, -2.0), expected(0.5, 3.0, -2.0))
    np.testing.assert_array_equal(pair_kernel(memoryview(np.array([0.5, 3.0])), True), expected(0.5, 3.0, 1.0))


def test_plain_python_fallback(monkeypatch: pytest.MonkeyPatch, pair_kernel: Kernel) -> None:
    monkeypatch.setattr(codegen.machine.calls.kernel, "native_type", lambda base: None)
    plain = compile_program(pair_kernel.program)
    assert type(plain) is Kernel
    np.testing.assert_array_equal(plain(np.array([0.5, 3.0]), -2.0), expected(0.5, 3.0, -2.0))


def test_structured_arguments_go_through_pack_and_unpack() -> None:
    program = program_from_sympy([X, Y], [X + Y, X * Y])
    kernel = compile_program(
        program,
        pack=lambda args, kwargs: [args[0]["x"], kwargs["y"]],
        unpack=lambda results: {"sum": results[0], "product": results[1]},
    )
    assert kernel({"x": 2.0}, y=3.0) == {"sum": 5.0, "product": 6.0}
    out = (np.zeros(()), np.zeros(()))
    assert kernel({"x": 2.0}, y=3.0, out=out) == {"sum": 5.0, "product": 6.0}
    assert out[1] == 6.0
    with pytest.raises(ArgumentError, match=r"argument 1 \(y\): shape"):
        kernel({"x": 2.0}, y=[3.0])
    packed_only = compile_program(program_from_sympy([X], [X + 1]), pack=lambda args, kwargs: [args[0]["x"]])
    assert packed_only({"x": 2}) == 3.0


def many(count: int) -> Kernel:
    symbols = sp.symbols(f"v:{count}")
    return compile_program(program_from_sympy(list(symbols), [k * symbol for k, symbol in enumerate(symbols)]))


@pytest.mark.parametrize("count", [65, MOST_ARRAYS])
def test_as_many_arrays_as_the_gate_takes(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel, x = many(count), [float(k) for k in range(count)]
    given: list[Any] = [np.array(value) if k % 3 else value for k, value in enumerate(x)]
    want, out = tuple(k * k * 1.0 for k in range(count)), tuple(np.zeros(()) for _ in x)
    assert Kernel.__call__(kernel, *given) == want
    monkeypatch.setattr(Kernel, "_call_slow", None)  # which the gate calls for what it does not take
    assert kernel(*given) == want
    assert kernel(*given, out=out) is out
    assert tuple(map(float, out)) == want


def test_more_arrays_than_the_gate_takes() -> None:
    count = MOST_ARRAYS + 1
    assert many(count)(*[float(k) for k in range(count)]) == tuple(k * k * 1.0 for k in range(count))


def test_many_outputs_use_the_pointer_tables() -> None:
    kernel = compile_program(program_from_sympy([X, Y], [X + k * Y for k in range(12)]))
    assert kernel(1.0, 2.0) == tuple(1.0 + k * 2.0 for k in range(12))


def test_no_reference_is_leaked(pair_kernel: Kernel, two_outputs: Kernel) -> None:
    x, out = np.array([0.5, 3.0]), np.zeros((2, 2))
    things = (x, out, np.dtype(np.float64), None)
    for _ in range(10):
        pair_kernel(x, 1.0, out=out)
    before = [sys.getrefcount(thing) for thing in things]
    for _ in range(1000):
        pair_kernel(x, 1.0, out=out)
        two_outputs(x)
    after = [sys.getrefcount(thing) for thing in things]
    assert after[:2] == before[:2]
    assert abs(after[3] - before[3]) < 100
    result = pair_kernel(x, 1.0)
    assert sys.getrefcount(result) == 2


def test_kernel_dies_with_its_last_reference() -> None:
    kernel = compile_program(program_from_sympy([X], [X + 1]))
    died = weakref.ref(kernel)
    del kernel
    gc.collect()
    assert died() is None


def test_threads_share_a_kernel(pair_kernel: Kernel) -> None:
    wrong: list[float] = []

    def work(seed: int) -> None:
        x, out = np.array([0.1 * seed, 2.0]), np.zeros((2, 2))
        want = expected(0.1 * seed, 2.0, float(seed))
        for _ in range(2000):
            pair_kernel(x, float(seed), out=out)
            if not np.array_equal(out, want):
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_long_kernels_release_the_gil_and_agree() -> None:
    symbols = sp.symbols("v:400")
    kernel = compile_program(program_from_sympy([list(symbols)], [sum(sp.sin(s) * sp.exp(-s) for s in symbols) * 1.0]
                                                + [sp.tanh(s) + sp.cosh(s) for s in symbols[:10]]))  # fmt: skip
    assert kernel._compiled.release
    values = np.linspace(0.1, 1, 400)
    results: list[Any] = []
    threads = [threading.Thread(target=lambda: results.append(kernel(values))) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(result == kernel(values) for result in results)


def test_threads_compile_at_the_same_time() -> None:
    results: dict[int, Any] = {}

    def work(power: int) -> None:
        results[power] = compile_program(program_from_sympy([X], [X**power + sp.pi ** sp.Rational(1, 3)]))(1.5)

    threads = [threading.Thread(target=work, args=(power,)) for power in range(2, 14)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for power in range(2, 14):
        assert results[power] == pytest.approx(1.5**power + math.pi ** (1 / 3), rel=1e-14)


def test_batch_is_the_kernel_at_every_point(pair_kernel: Kernel, two_outputs: Kernel) -> None:
    x = np.random.default_rng(1).normal(size=(7, 2))
    result = pair_kernel.batch(x, 0.5)
    assert result.shape == (7, 2, 2)
    for k in range(7):
        np.testing.assert_array_equal(result[k], pair_kernel(x[k], 0.5))
    products, arrays = two_outputs.batch(x[:, ::-1])
    assert products.shape == (7,)
    assert arrays.shape == (7, 3)
    assert pair_kernel.batch(np.zeros((0, 2)), 1.0).shape == (0, 2, 2)
    assert pair_kernel.batch(x[0], 1.0).shape == (2, 2)
    for bad in ((x, np.zeros(6)), (x[:, :1], 1.0), (x,)):
        with pytest.raises(ArgumentError):
            pair_kernel.batch(*bad)


def test_stats_and_texts(pair_kernel: Kernel) -> None:
    stats = pair_kernel.stats
    assert stats.machine_operations == {"mul": 1, "call": 1, "sub": 1}
    assert stats.total == 3
    assert list(stats.seconds) == list(ENCODING if stats.generator == "encoder" else STAGES)
    assert stats.code_bytes > 0
    assert "define i32 @kernel" in pair_kernel.llvm
    assert "kernel:" in pair_kernel.assembly
    assert pair_kernel.address > 0
    assert "3 operations" in repr(pair_kernel)


@pytest.mark.parametrize(
    "option",
    [
        {"chunk": 0}, {"chunk": -1}, {"chunk": 0.5}, {"chunk": True}, {"chunk": "9"}, {"chunk": math.inf},
        {"lanes": True}, {"lanes": 2.0}, {"fma": "no"}, {"fma": 1}, {"fma": np.True_}, {"tier": ["fast"]},
        {"dtype": np.dtype("float32")},
    ],
    ids=str,
)  # fmt: skip
def test_options_that_no_file_could_hold_are_refused(option: Any) -> None:
    with pytest.raises(ArgumentError, match=next(iter(option))):
        Options(**option)


def test_whole_numbers_of_numpy_are_options(tmp_path: Path) -> None:
    kernel = compile_program(program_from_sympy([X], [X + 1]), chunk=np.int64(5), lanes=np.int32(4), cache=tmp_path)
    assert pickle.loads(pickle.dumps(kernel)).options == Options(chunk=5, lanes=4)


def test_unknown_tier() -> None:
    with pytest.raises(ArgumentError, match="tier"):
        compile_program(program_from_sympy([X], [X]), tier="warp")


def test_random_calls_agree_with_the_slow_path(pair_kernel: Kernel) -> None:
    rng = np.random.default_rng(3)
    base = rng.normal(size=64)

    def vector() -> Any:
        start = int(rng.integers(0, 8))
        part = base[start : start + 2]
        choices = [part, base[start : start + 4 : 2], part.tolist(), base[start : start + 3], 1.0]
        choices += [part.astype(np.float32), part.astype(complex), part.reshape(1, 2)]
        return choices[int(rng.integers(0, len(choices)))]

    def number() -> Any:
        return [1.5, 2, np.float64(0.5), np.float32(0.25), True, "a", [1.0], np.array(2.0)][int(rng.integers(0, 8))]

    def output() -> Any:
        start = int(rng.integers(0, 8))
        return [
            np.zeros((2, 2)), np.zeros((2, 2)).T, np.zeros((2, 2), dtype=int), base[start : start + 4].reshape(2, 2),
            np.zeros(4), np.zeros((4, 4))[::2, ::2], None, (np.zeros((2, 2)),),
        ][int(rng.integers(0, 8))]  # fmt: skip

    def attempt(call: Any, args: Any, out: Any) -> Any:
        try:
            result = call(*args, out=out) if out is not None else call(*args)
        except ArgumentError as error:
            return str(error)
        return np.array(result).tolist()

    seen = set()
    for _ in range(1500):
        args, out = (vector(), number()), output()
        before = base.copy()
        fast = attempt(pair_kernel, args, out)
        base[:] = before
        slow = attempt(pair_kernel._call_slow, args, out)
        base[:] = before
        assert fast == slow
        seen.add(type(fast))
    assert seen == {str, list}
