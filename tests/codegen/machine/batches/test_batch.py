"""Batches: the same bits as single calls, for every width, every number of points, every layout of the arrays."""

from __future__ import annotations

import ctypes
import ctypes.util
import inspect
import pickle
import platform
import re
import threading
import tracemalloc
from typing import Any

import numpy as np
import pytest
import sympy as sp

import codegen.machine.batches.batch
import codegen.machine.batches.batch_run
from codegen import ArgumentError, Kernel, compile_program, program_from_sympy
from codegen.lanes import Lanes
from codegen.machine.batches.batch_moves import transpose
from codegen.processor import has_fma

X = sp.symbols("x0:11")
S, T = sp.symbols("s t")
WIDTHS = (1, 2, 4, 8, 16)


def zoo(**options: Any) -> Kernel:
    """A kernel with results of many sizes: scalar, one, a few, a whole square and more, and with structural zeros."""
    products = [sp.sin(X[k]) * X[k + 1] + sp.sqrt(X[k + 2] ** 2 + 1) for k in range(9)]
    branches = sp.Piecewise((X[0] / X[1], X[0] < X[1]), (sp.exp(X[2]) - S, sp.And(X[3] > 0, X[4] < T)), (X[5], True))
    return compile_program(
        program_from_sympy(
            [X, S, (T,)],
            [branches, [X[10] ** 3], sp.Matrix(3, 3, products), [*X, *products, T, S * T], [0, X[3], 0, S - X[4], 0]],
        ),
        **options,
    )


@pytest.fixture(scope="module", params=WIDTHS)
def wide(request: pytest.FixtureRequest) -> Kernel:
    return zoo(lanes=request.param)


@pytest.fixture(scope="module")
def points() -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(5)
    return rng.normal(size=(67, 11)), rng.normal(size=67), rng.normal(size=(67, 1))


def one_by_one(kernel: Kernel, x: Any, s: Any, t: Any) -> list[bytes]:
    """Bytes of each result at all points, from single calls."""
    found = [kernel(*point) for point in zip(x, s, t, strict=True)]
    return [np.array([result[k] for result in found]).tobytes() for k in range(5)]


def bits(results: Any) -> list[bytes]:
    return [np.ascontiguousarray(result).tobytes() for result in results]


def test_every_number_of_points(wide: Kernel, points: Any) -> None:
    x, s, t = points
    for count in range(68):
        results = wide.batch(x[:count], s[:count], t[:count])
        assert [result.shape for result in results] == [
            (count,), (count, 1), (count, 3, 3), (count, 22), (count, 5),
        ]  # fmt: skip
        assert bits(results) == one_by_one(wide, x[:count], s[:count], t[:count])


def test_every_layout_of_the_inputs(wide: Kernel, points: Any) -> None:
    x, s, t = points
    want = one_by_one(wide, x, s, t)
    read_only = x.copy()
    read_only.flags.writeable = False
    unaligned = np.zeros(8 * x.size + 1, dtype=np.int8)[1:].view(np.float64).reshape(x.shape)
    unaligned[...] = x
    spaced = np.zeros((2 * 67, 33))[::2, ::3]
    spaced[...] = x
    crooked = np.zeros((67, 2, 8)).transpose(0, 2, 1)[:, :, 0]  # elements 8 bytes apart, points 128
    crooked[...] = x[:, :8]
    for given in (np.asfortranarray(x), x[::-1][::-1], read_only, unaligned, spaced, x.astype(">f8"), x.tolist()):
        assert bits(wide.batch(given, s, t)) == want
    back = [np.array(array)[::-1] for array in wide.batch(x[::-1], s[::-1], t[::-1])]
    assert bits(back) == want
    mixed = np.concatenate([crooked, x[:, 8:]], axis=1)
    assert bits(wide.batch(mixed, s, np.asfortranarray(t))) == want


def test_other_numbers_are_converted(wide: Kernel) -> None:
    x = np.arange(22).reshape(2, 11)
    want = bits(wide.batch(x.astype(float), 1.0, [1.0]))
    assert bits(wide.batch(x, True, np.array([1], dtype=np.uint8))) == want
    assert bits(wide.batch(x.astype(np.float32), np.float16(1), [1])) == want
    with pytest.raises(ArgumentError, match="complex"):
        wide.batch(x.astype(complex), 1.0, [1.0])
    masked = np.ma.masked_equal(x, 3)
    with pytest.raises(ArgumentError, match="masked"):
        wide.batch(masked, 1.0, [1.0])
    assert bits(wide.batch(np.ma.array(x), 1.0, [1.0])) == want


def test_every_layout_of_the_results(wide: Kernel, points: Any) -> None:
    x, s, t = points
    want = one_by_one(wide, x, s, t)
    shapes = [(67,), (67, 1), (67, 3, 3), (67, 22), (67, 5)]
    around = [np.full((69, *(extent + 2 for extent in shape[1:])), 7.0) for shape in shapes]
    inner = tuple(array[(slice(1, -1),) * array.ndim] for array in around)
    by_element = tuple(np.full(shape[1:] + shape[:1], 7.0) for shape in shapes)
    moved = tuple(np.moveaxis(array, -1, 0) for array in by_element)
    backward = tuple(np.full(shape, 7.0)[::-1] for shape in shapes)
    for out in (inner, moved, backward, tuple(np.full(shape, 7.0, order="F") for shape in shapes)):
        assert wide.batch(x, s, t, out=out) is out
        assert bits(out) == want
    for array, part in zip(around, inner, strict=True):
        part[...] = 7.0
        assert (array == 7.0).all()  # nothing was written beside the results


def test_results_over_the_inputs(wide: Kernel) -> None:
    kernel = compile_program(program_from_sympy([X[:3]], [[X[1], X[2] + X[0], X[0]]]), lanes=wide.options.lanes)
    for count in (1, 7, 40):
        x = np.random.default_rng(1).normal(size=(count + 1, 3))
        want = kernel.batch(x[1:].copy())
        assert kernel.batch(x[1:], out=x[:-1]).tobytes() == want.tobytes()
        same = kernel.batch(want)
        assert kernel.batch(want, out=want).tobytes() == same.tobytes()


def test_several_results_in_one_array(wide: Kernel) -> None:
    kernel = compile_program(program_from_sympy([X[0]], [X[0] + 1, X[0] + 2]), lanes=wide.options.lanes)
    shared = np.zeros(10)
    kernel.batch(np.arange(10.0), out=(shared, shared))
    assert shared.tolist() == (np.arange(10.0) + 2).tolist()  # as one call after the other


@pytest.mark.parametrize("lanes", WIDTHS)
def test_leading_axes_broadcast(lanes: int) -> None:
    kernel = compile_program(program_from_sympy([X[:2], S], [X[0] * X[1] + sp.sin(S), X[:2]]), lanes=lanes)
    assert kernel.signature == "(2),()->(),(2)"
    rng = np.random.default_rng(2)
    for first, second in (((), (5,)), ((5,), ()), ((4, 1), (3,)), ((1, 3), (4, 1)), ((2, 1, 3), (4, 1)), ((1,), (1, 1)),
                          ((0,), ()), ((3, 0), (1,)), ((2, 1), (0,)), ((), ())):  # fmt: skip
        x, s = rng.normal(size=(*first, 2)), rng.normal(size=second)
        leading = np.broadcast_shapes(first, second)
        products, copies = kernel.batch(x, s)
        assert np.shape(products) == leading
        assert copies.shape == (*leading, 2)
        spread_x, spread_s = np.broadcast_to(x, (*leading, 2)), np.broadcast_to(s, leading)
        for place in np.ndindex(leading):
            one, pair = kernel(spread_x[place], spread_s[place])
            assert np.asarray(products)[place] == one
            assert copies[place].tolist() == pair.tolist()
    assert type(kernel.batch(x, 1.0)[0]) is float


def test_shared_and_broadcast_arguments_are_not_copied_to_every_point() -> None:
    kernel = compile_program(program_from_sympy([X[:2], S], [X[0] * X[1] + S]), lanes=4)
    x = np.random.default_rng(2).normal(size=(2, 2))
    spread = np.broadcast_to(x[:, 1], (10**6, 2))  # 16 MB if it were copied
    tracemalloc.start()
    result = kernel.batch(spread, np.broadcast_to(1.5, 10**6))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 9e6
    assert (result == kernel(x[:, 1], 1.5)).all()


def test_arguments_have_names(wide: Kernel, points: Any) -> None:
    x, s, t = points
    _, second, third = wide.argument_names
    for result, named in zip(wide.batch(x, s, t), wide.batch(x, **{third: t, second: s}), strict=True):
        np.testing.assert_array_equal(result, named)
    with pytest.raises(ArgumentError, match="keyword 'thread'"):
        wide.batch(x, s, t, thread=2)


def test_refusals(wide: Kernel, points: Any) -> None:
    x, s, t = points
    for bad, message in (
        ((x, s), "2 arguments"), ((x[:, :4], s, t), r"shape \(67, 4\)"), ((x[0, 0], s, t), r"argument 0 \(x0\)|shape"),
        ((x, s[:5], t), "broadcast"), ((x, s, t[:, 0]), r"last axes are not \(1,\)"), ((x, "a", t), "dtype"),
    ):  # fmt: skip
        with pytest.raises(ArgumentError, match=message):
            wide.batch(*bad)
    for threads in (0, -1, 1.5, "2", True):
        with pytest.raises(ArgumentError, match="threads="):
            wide.batch(x, s, t, threads=threads)
    with pytest.raises(ArgumentError, match="5 outputs"):
        wide.batch(x, s, t, out=np.zeros(67))
    single = compile_program(program_from_sympy([S], [S]), lanes=wide.options.lanes)
    fixed = np.zeros(67)
    fixed.flags.writeable = False
    for out in (np.zeros(66), np.zeros(67, dtype=np.float32), np.zeros(67).tolist(), fixed, np.zeros(67).astype(">f8")):
        with pytest.raises(ArgumentError):
            single.batch(s, out=out)
    with pytest.raises(ArgumentError, match="lanes=3"):
        compile_program(program_from_sympy([S], [S]), lanes=3)


def test_containers_take_leading_axes_in_their_leaves() -> None:
    program = program_from_sympy([X[0], X[1]], [X[0] + X[1], X[0] * X[1]])
    kernel = compile_program(
        program, pack=lambda args, _: [args[0]["a"], args[0]["b"]], unpack=lambda arrays: {"sum": arrays[0]}
    )
    result = kernel.batch({"a": np.array([1.0, 2.0]), "b": 3.0})
    assert result["sum"].tolist() == [4.0, 5.0]


@pytest.mark.parametrize("lanes", WIDTHS)
def test_chunks_and_their_workspace(lanes: int) -> None:
    expressions = [sp.sin(X[k % 3] + k) * X[(k + 1) % 3] + sp.Abs(X[k % 2]) ** k for k in range(1, 9)]
    kernel = compile_program(program_from_sympy([X[:3]], [sum(expressions), expressions]), chunk=3, lanes=lanes)
    x = np.random.default_rng(1).normal(size=(2 * lanes + 1, 3))
    totals, parts = kernel.batch(x)
    for k, point in enumerate(x):
        total, values = kernel(point)
        assert totals[k] == total
        assert parts[k].tobytes() == values.tobytes()


def shuffled(lines: list[str], values: dict[str, Any]) -> None:
    """Carry shuffles out on labels."""
    for line in lines:
        name, _, text = line.partition("=shufflevector ")
        first, second = re.findall(r"%[\w.]+", text)
        both = values[first] + values[second]
        mask = text[text.rindex("<") + 1 : text.rindex(">")]
        values[name] = [both[int(entry.removeprefix("i32 "))] for entry in mask.split(",")]


@pytest.mark.parametrize("scalar", ["double", "float"])
@pytest.mark.parametrize("width", WIDTHS[1:])
def test_transposition_of_squares(width: int, scalar: str) -> None:
    """The shuffles, carried out here on labels, turn rows into columns."""
    values = {f"%r{row}": [(row, lane) for lane in range(width)] for row in range(width)}
    lines, columns = transpose(Lanes(width, scalar), list(values))
    shuffled(lines, values)
    assert [values[column] for column in columns] == [[(row, lane) for row in range(width)] for lane in range(width)]


@pytest.mark.parametrize("width", WIDTHS[1:])
def test_transposition_of_squares_side_by_side(width: int) -> None:
    """Half as many rows as lanes: two squares, each of which is transposed."""
    half = width // 2
    values = {f"%r{row}": [(row, lane) for lane in range(width)] for row in range(half)}
    lines, columns = transpose(Lanes(width), list(values))
    shuffled(lines, values)
    assert [values[column] for column in columns] == [
        [(row, side + lane) for side in (0, half) for row in range(half)] for lane in range(half)
    ]


def test_code_for_lanes_is_compiled_once_and_late(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    planned = codegen.machine.batches.batch.planned

    def counted(*given: Any) -> Any:
        made.append(given)
        return planned(*given)

    monkeypatch.setattr(codegen.machine.batches.batch, "planned", counted)
    kernel = zoo(lanes=4)
    x, s, t = np.ones((9, 11)), np.ones(9), np.ones((9, 1))
    kernel(x[0], s[0], t[0])
    assert not made
    results: list[Any] = []
    threads = [threading.Thread(target=lambda: results.append(bits(kernel.batch(x, s, t)))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 1
    assert all(result == results[0] for result in results)


def test_small_batches_do_not_wait_for_a_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    monkeypatch.setattr(
        codegen.machine.batches.batch.Batch, "_compiled", lambda batch: made.append(batch) or compiled(batch)
    )
    kernel = compile_program(program_from_sympy([S], [sum(sp.sqrt(S + k) / (S + k) for k in range(40))]))
    x = np.random.default_rng(1).uniform(1, 2, 20_000)
    assert kernel.lanes > 1
    first = kernel.batch(x[:9])
    assert not made
    second = kernel.batch(x)  # long enough
    assert len(made) == 1
    assert first.tobytes() == second[:9].tobytes() == kernel.batch(x[:9]).tobytes()
    other = compile_program(kernel.program)
    for _ in range(2000):
        other.batch(x[:9])
    assert len(made) == 2  # often enough


compiled = codegen.machine.batches.batch.Batch._compiled


def test_lanes_are_chosen_by_arithmetic_per_number_moved() -> None:
    light = compile_program(program_from_sympy([X], [[x + 1 for x in X]]))
    heavy = compile_program(program_from_sympy([S], [sum(sp.sqrt(S + k) / (S - k) for k in range(20))]))
    calls = compile_program(program_from_sympy([S], [sp.gamma(S) + sp.erf(S)]))
    own = compile_program(program_from_sympy([S], [sp.exp(S)]))
    assert light.lanes == calls.lanes == 1
    assert heavy.lanes > 1
    assert (own.lanes > 1) is has_fma()


def test_short_lines_that_wait_for_themselves_fill_two_registers(monkeypatch: pytest.MonkeyPatch) -> None:
    """A chain of roots and quotients does; many beside each other, many numbers, and single precision do not."""
    monkeypatch.setattr("codegen.machine.batches.batch_lanes.vector_bits", lambda: 512)
    chain = program_from_sympy([X[:2]], [sp.sqrt(X[0] / X[1] + 1) / X[0], X[0] / (1 + sp.sqrt(X[1]))])
    beside = program_from_sympy([X], [[sp.sqrt(x) + 1 / x for x in X]])
    numbers = program_from_sympy([X], [[sp.sqrt(X[0] / X[1] + 1) * X[k % 11] for k in range(60)]])
    chosen = {name: compile_program(program, **options).lanes for name, program, options in (
        ("chain", chain, {}), ("beside", beside, {}), ("single", chain, {"dtype": "float32"}), ("numbers", numbers, {}),
    )}  # fmt: skip
    assert chosen["chain"] == 16
    assert chosen["beside"] == 8
    assert chosen["single"] == 16
    assert chosen["numbers"] < 16
    x = np.random.default_rng(1).uniform(1, 2, size=(3000, 2))
    kernel = compile_program(chain)
    found = kernel.batch(x)
    assert bits(found) == [np.array(part).tobytes() for part in zip(*[kernel(each) for each in x], strict=True)]


def test_idle_lanes_raise_no_floating_point_flags(wide: Kernel) -> None:
    library = ctypes.CDLL(ctypes.util.find_library("m"))
    invalid, by_zero = 1, 2 if platform.machine() in ("arm64", "aarch64") else 4
    kernel = compile_program(program_from_sympy([X[:2]], [X[0] / X[1], sp.sqrt(X[0])]), lanes=wide.options.lanes)
    x = np.ones((3, 2))
    kernel.batch(x)
    library.feclearexcept(invalid | by_zero)
    kernel.batch(x)
    assert not library.fetestexcept(invalid | by_zero)
    kernel.batch(np.array([[1.0, 0.0]]))
    assert library.fetestexcept(invalid | by_zero) == by_zero


@pytest.mark.parametrize("lanes", WIDTHS)
def test_the_fast_tier_gives_the_same_bits(lanes: int, points: Any) -> None:
    x, s, t = (array[:20] for array in points)
    assert bits(zoo(lanes=lanes, tier="fast").batch(x, s, t)) == bits(zoo(lanes=lanes).batch(x, s, t))


def test_points_do_not_depend_on_their_neighbours(wide: Kernel, points: Any) -> None:
    x, s, t = (array.copy() for array in points)
    want = wide.batch(x, s, t)
    x[::3], s[1::3] = np.nan, np.inf
    kept = [k for k in range(67) if k % 3 == 2]
    changed = wide.batch(x, s, t)
    assert bits(result[kept] for result in changed) == bits(result[kept] for result in want)


def test_arrays_beyond_the_caches(wide: Kernel, points: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Large arrays are read and written line by line; here all arrays count as large."""
    x, s, t = points
    monkeypatch.setattr(codegen.machine.batches.batch_run, "STREAMED", -1)
    want = one_by_one(wide, x, s, t)
    for count in (1, 2, 7, 8, 9, 15, 16, 17, 33, 67):
        found = wide.batch(x[:count], s[:count], t[:count])
        assert bits(found) == one_by_one(wide, x[:count], s[:count], t[:count])
    for shift in range(9):  # results begin anywhere in a line
        around = [np.full(67 * size + 16, 7.0) for size in (1, 1, 9, 22, 5)]
        inner = tuple(array[shift : shift + 67 * size] for array, size in zip(around, (1, 1, 9, 22, 5), strict=True))
        shaped = tuple(
            part.reshape(shape)
            for part, shape in zip(inner, [(67,), (67, 1), (67, 3, 3), (67, 22), (67, 5)], strict=True)
        )
        assert bits(wide.batch(x, s, t, out=shaped)) == want
        for part in inner:
            part[...] = 7.0
        assert all((array == 7.0).all() for array in around)


@pytest.mark.parametrize("lanes", WIDTHS)
def test_fast_accuracy_depends_on_the_point_alone(lanes: int, points: Any) -> None:
    x, s, t = points
    fast, strict = zoo(lanes=lanes, accuracy="fast"), zoo()
    whole = fast.batch(x, s, t)
    for result, exact in zip(whole, strict.batch(x, s, t), strict=True):
        np.testing.assert_allclose(result, exact, rtol=1e-13, atol=1e-14)
    for count in (1, 3, 8, 17):
        assert bits(fast.batch(x[:count], s[:count], t[:count])) == bits(result[:count] for result in whole)
    turned = fast.batch(x[::-1], s[::-1], t[::-1], threads=2)
    assert bits(result[::-1] for result in turned) == bits(whole)


def test_vector_functions_make_lanes_worthwhile() -> None:
    program = program_from_sympy([X], [[sp.erf(x) for x in X]])
    assert compile_program(program).lanes == 1
    assert compile_program(program, accuracy="fast").lanes > 1


@pytest.mark.parametrize("count", [1, 63, 64, 65, 1000])
def test_blocks_of_single_numbers_are_computed_in_place(count: int) -> None:
    x, y = sp.symbols("x y")
    program = program_from_sympy([x, y], [x**3 + y**2 + x * y])
    wide, narrow = compile_program(program), compile_program(program, lanes=1)
    assert wide.lanes > 1
    a, b = np.random.default_rng(count).normal(size=(2, count))
    expected = narrow.batch(a, b)
    for left, right in ((a, b), (np.repeat(a, 2)[::2], b), (a.copy(), np.stack([b, b], 1)[:, 0])):
        for _ in range(3):
            np.testing.assert_array_equal(wide.batch(left, right), expected)
    np.testing.assert_array_equal(wide.batch(a, 2.0), narrow.batch(a, 2.0))
    room = np.concatenate([a, [0.0]])
    np.testing.assert_array_equal(wide.batch(room[:-1], b, out=room[1:]), expected)  # which overlap
    np.testing.assert_array_equal(wide.batch(a, b, out=a), expected)


def test_batch_has_the_signature_of_the_function_and_its_own_options() -> None:
    """`curve_fit` without a start, lmfit and iminuit count parameters there; pool workers get it by pickle."""
    curve_fit = pytest.importorskip("scipy.optimize").curve_fit
    t, a, b = sp.symbols("t a b")
    kernel = compile_program(program_from_sympy([t, a, b], [a * sp.exp(-b * t)]))
    names = list(inspect.signature(kernel.batch).parameters)
    assert names == ["t", "a", "b", "out", "threads", "progress", "layout"]
    times = np.linspace(0.0, 3.0, 20)
    assert curve_fit(kernel.batch, times, 2 * np.exp(-0.7 * times))[0] == pytest.approx([2.0, 0.7])
    other = pickle.loads(pickle.dumps(kernel.batch))
    assert np.array_equal(other(times, 2.0, b=0.7), kernel.batch(times, 2.0, 0.7))
    assert (other.__name__, other.__doc__) == ("batch", type(kernel).batch.__doc__)
