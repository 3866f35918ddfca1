"""Array calls: kernels on arrays with one step, with the bits of single calls, and `Batch` for all else."""

from __future__ import annotations

import gc
import sys
import threading
from typing import Any

import numpy as np
import pytest
import sympy as sp

from codegen import compile_program, lambdify, program_from_sympy
from codegen.machine.batches import array_call as calls

x, y = sp.symbols("x y")
CASES = {
    "product": ([x, y], x * y), "square": ([x, y], x**2 + y), "functions": ([x, y], sp.sin(x) * sp.exp(y)),
    "choice": ([x, y], sp.Piecewise((x, x > y), (y, True))), "one": ([x], sp.sqrt(x) - 1), "constant": ([x], sp.pi),
}  # fmt: skip


def arrays(count: int, shape: tuple[int, ...]) -> list[Any]:
    rng = np.random.default_rng(len(shape))
    return [rng.uniform(0.1, 2.0, shape) for _ in range(count)]


def direct(f: Any, given: list[Any]) -> Any:
    """Call until the array call is there, and return what it returns."""
    f(*given)
    return f.kernel.array_call()(*given)


@pytest.mark.parametrize("lanes", [None, 1, 8])
@pytest.mark.parametrize("name", CASES)
def test_numbers_are_those_of_single_calls(name: str, lanes: int | None) -> None:
    f = lambdify(*CASES[name], lanes=lanes)
    for shape in [(1,), (2,), (3, 5), (7,), (8,), (33,), (2, 1, 40), (1000,)]:
        given = arrays(len(CASES[name][0]), shape)
        result = direct(f, given)
        assert type(result) is np.ndarray
        assert result.shape == shape
        points = zip(*(array.ravel().tolist() for array in given), strict=True)
        assert result.ravel().tolist() == [f.kernel(*point) for point in points]


def test_floats_are_the_same_at_all_points() -> None:
    f = lambdify([x, y], x - y)
    (given,) = arrays(1, (5, 3))
    assert (direct(f, [given, 2.0]) == given - 2.0).all()
    assert (direct(f, [0.5, given]) == 0.5 - given).all()


@pytest.mark.parametrize("lanes", [None, 1, 8, 16])
@pytest.mark.parametrize("count", [1, 2, 3, 9, 40])
def test_lists_of_results(count: int, lanes: int | None) -> None:
    f = lambdify([x, y], [x * k - y / (k + 1) for k in range(count)], lanes=lanes)
    for shape in [(1,), (2,), (3, 5), (8,), (33,), (700,)]:
        given = arrays(2, shape)
        f(*given)
        results, batch = f(*given), f.kernel.batch(*given)
        assert f._on_arrays(*given).shape == (count, *shape)
        assert [result.shape for result in results] == [shape] * count
        points = [f.kernel(*point).tolist() for point in zip(*(array.ravel().tolist() for array in given), strict=True)]
        assert np.transpose([result.ravel() for result in results]).tolist() == points
        assert batch.shape == (*shape, count)
        assert batch.reshape(-1, count).tolist() == points


@pytest.mark.parametrize("lanes", [1, 8])
def test_columns_and_turned_arrays(lanes: int) -> None:
    f = lambdify([x, y], x - 2 * y, lanes=lanes)
    (table,) = arrays(1, (30, 4))
    for given in (
        [table[:, 0], table[:, 3]], [table[::-1, 1], table[:, 2]], [table[3], table[2, ::-1]], [table[0, 1::2]] * 2,
        [np.broadcast_to(0.5, 9), table[:9, 0]], [table[:1, 2], table[2:3, 1]],
    ):  # fmt: skip
        points = zip(*map(np.ndarray.tolist, given), strict=True)
        assert direct(f, given).tolist() == [f.kernel(*point) for point in points]


@pytest.mark.parametrize(
    "given",
    [
        [np.ones((4, 4))[:, 1:3], 1.0], [np.asfortranarray(np.ones((3, 4))), np.ones((3, 4))], [np.ones(3), np.ones(4)],
        [np.ones(3), np.ones((1, 3))], [np.ones(3, np.float32), 1.0], [np.ones(3, int), 1.0], [np.ones(0), 1.0],
        [1.0, 2.0], [np.ones(3)], [np.ones(3)] * 3, [np.float64(1.0), np.ones(3)], [np.ma.array([1.0]), 1.0],
        [np.ones(()), 1.0], ["a", 1.0], [np.ones(3, ">f8"), 1.0], [None, np.ones(2)], [],
    ],
)  # fmt: skip
def test_all_else_is_left_to_the_batch(given: list[Any]) -> None:
    f = lambdify([x, y], x + 2 * y)
    f(np.ones(3), np.ones(3))
    assert f.kernel.array_call()(*given) is NotImplemented
    assert f.kernel._batched()._on_arrays(*given) is NotImplemented


def test_code_for_several_points_comes_when_enough_points_were_computed() -> None:
    f = lambdify([x, y], x**2 + y)
    given = arrays(2, (1000,))
    f(*given)
    batch = f.kernel._batched()
    first = batch._on_arrays
    assert batch._code.lanes.width == 1 < batch.lanes.width
    while batch._on_arrays is first:  # each call takes from the time that is left
        right = f(*given)
    assert batch._code.lanes.width == batch.lanes.width
    assert first(*given) is NotImplemented
    assert (batch._on_arrays(*given)[0] == right).all()


def test_other_machine_code_is_taken_up() -> None:
    f = lambdify([x, y], x * y + 1, tier="auto")
    given = arrays(2, (10,))
    before = f(*given)
    f.kernel.wait()
    assert (f(*given) == before).all()
    assert (f.kernel.batch(*given) == before).all()


@pytest.mark.parametrize(
    ("arguments", "expression", "options"),
    [
        ([(x, y)], x * y, {}),
        ([x], x + 1, {"dtype": "float32"}),
        ([x], x + 1, {"dtype": "complex128"}),
    ],
)
def test_functions_of_arrays_and_of_other_numbers_have_none(arguments: Any, expression: Any, options: Any) -> None:
    f = lambdify(arguments, expression, **options)
    f.kernel.batch(np.ones((3, 2)) if isinstance(arguments[0], tuple) else np.ones(3))
    assert f.kernel.array_call() is None


def test_many_arguments() -> None:
    symbols = sp.symbols(f"s:{calls.MOST_NUMBERS + 1}")
    for count, has in ((calls.MOST_NUMBERS, True), (calls.MOST_NUMBERS + 1, False)):
        f = lambdify(symbols[:count], sum(symbols[:count]), lanes=8)
        given = arrays(count, (9,))
        assert np.allclose(f(*given), sum(given), rtol=1e-13)
        assert (f.kernel.array_call() is not None) is has
        assert f(*given).tolist() == [f.kernel(*point) for point in zip(*map(np.ndarray.tolist, given), strict=True)]


def test_calls_at_the_same_time() -> None:
    f = lambdify([x, y], sp.sin(x) * y)
    given = [arrays(2, (n,)) for n in (3, 50, 20_000)]
    rights = [f(*pair) for pair in given]
    wrong: list[int] = []

    def work(k: int) -> None:
        for _ in range(200 if k < 2 else 20):
            if not (f(*given[k]) == rights[k]).all():
                wrong.append(k)

    threads = [threading.Thread(target=work, args=(k % 3,)) for k in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_nothing_is_kept_of_a_call() -> None:
    f = lambdify([x, y], x * y, lanes=8)
    a, b = arrays(2, (40,))
    call = f.kernel.array_call
    f(a, b)
    on_arrays = call()
    references = [sys.getrefcount(thing) for thing in (a, b, on_arrays.__self__)]
    for _ in range(1000):
        on_arrays(a, b)
        on_arrays(a, "text")
    assert [sys.getrefcount(thing) for thing in (a, b, on_arrays.__self__)] == references
    result = on_arrays(a, b)
    assert sys.getrefcount(result) == 2


def test_a_call_outlives_its_kernel() -> None:
    f = lambdify([x, y], x * y + 2, lanes=8)
    a, b = arrays(2, (40,))
    right = f(a, b)
    on_arrays = f.kernel.array_call()
    del f
    gc.collect()
    assert (on_arrays(a, b) == right).all()


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("lanes", [1, 8])
def test_axes_of_arrays_in_any_order_and_results_that_are_given(lanes: int, dtype: Any) -> None:
    """What has one step along the axes of points and one along the others is computed; the batch takes the rest."""
    u, v = sp.Matrix(2, 3, sp.symbols("u:6")), sp.symbols("v:2")
    f = compile_program(program_from_sympy([u, v, x], [u * x, [v[0] * u[0], v[1] - x]]), lanes=lanes, dtype=dtype)
    rng, points = np.random.default_rng(5), (4, 5)
    whole, vectors, numbers = (rng.normal(size=(*points, *shape)).astype(dtype) for shape in ((2, 3), (2,), ()))
    f.batch(whole, vectors, numbers)
    call = f._batched()._on_arrays
    layouts = {
        "as they are": (whole, vectors, numbers, True), "backwards": (whole[::-1], vectors[::-1], numbers[::-1], False),
        "columns first": (np.asfortranarray(whole), vectors, numbers, False),
        "all of them backwards": (*(array[::-1, ::-1] for array in (whole, vectors, numbers)), True),
        "elements backwards": (whole[..., ::-1, ::-1], vectors[..., ::-1], numbers, True),
        "shared ones": (whole[0, 0], vectors, np.array(0.5, dtype), True),
        "a float": (whole, vectors, 0.5, dtype == "float64"),
        "a few": (whole[:, :3], vectors[:, :3], numbers[:, :3], False),
        "an axis of one": (whole[:1], vectors[:1], numbers[:1], True),
        "one axis": (whole[0], vectors[0], numbers[0], True),
        "other shapes": (whole, vectors[0], numbers, False), "other declared ones": (vectors, whole, numbers, False),
        "parts": (np.repeat(whole, 2, -1)[..., ::2], np.repeat(vectors, 2, -1)[..., ::2], numbers, True),
    }  # fmt: skip
    for name, (*given, computed) in layouts.items():
        found = call(*given)
        assert (found is not NotImplemented) is computed, name
        if name == "other declared ones":
            continue
        axes = np.broadcast_shapes(*(np.shape(a)[: np.ndim(a) - n] for a, n in zip(given, (2, 1, 0), strict=True)))
        spread = [
            np.broadcast_to(a, (*axes, *np.shape(a)[np.ndim(a) - n :])) for a, n in zip(given, (2, 1, 0), strict=True)
        ]
        rights = [f(*(a[at] for a in spread)) for at in np.ndindex(axes)]
        memory = np.full((3, *axes, 4), np.nan, dtype)
        out = np.empty((*axes, 2, 3), dtype), memory[1, ..., 1:3]
        for results in (found if computed else (), f.batch(*given), f.batch(*given, out=out), out):
            for k, result in enumerate(results):
                np.testing.assert_array_equal(
                    result.reshape(-1, *rights[0][k].shape), [right[k] for right in rights], name
                )
        assert np.isnan(memory[[0, 2]]).all()
        assert np.isnan(memory[1, ..., [0, 3]]).all()


def test_results_that_overlap_or_may_not_be_written_are_left_to_the_batch() -> None:
    f = lambdify([(x, y)], [x * y, x - y], lanes=8).kernel
    points = np.random.default_rng(6).normal(size=(30, 2))
    rights = f.batch(points)
    call, memory = f._batched()._on_arrays, np.zeros(130)
    memory[:60] = points.ravel()
    given = memory[:60].reshape(30, 2)
    assert call(given, memory[60:120].reshape(30, 2)) is None
    for out in (given, memory[1:61].reshape(30, 2), memory[59:119].reshape(30, 2), memory[59::-1].reshape(30, 2)):
        assert call(given, out) is NotImplemented
    assert call(points, points[0]) is NotImplemented
    memory.flags.writeable = False
    assert call(points, memory[60:120].reshape(30, 2)) is NotImplemented
    memory.flags.writeable = True
    assert (f.batch(given, out=given) == rights).all()


@pytest.mark.parametrize("options", [{}, {"chunk": 2}, {"accuracy": "fast"}, {"dtype": "float32"}, {"fma": False}])
@pytest.mark.parametrize("lanes", [2, 8, 16])
def test_code_that_steps_from_block_to_block(lanes: int, options: dict[str, Any]) -> None:
    """Many arguments and results, equal ones, constants, zeros, numbers that all points share, and any end."""
    symbols = sp.symbols("s:7")
    results = [sum(symbols), sp.prod(symbols[:3]) - sp.sqrt(symbols[3]), symbols[6], symbols[6], sp.S.Zero, sp.pi]
    f = compile_program(program_from_sympy(symbols, results), lanes=lanes, **options)
    alone = compile_program(program_from_sympy(symbols, results), lanes=1, **options)
    for count in (1, lanes - 1, lanes, lanes + 1, 3 * lanes, 70, 1001):
        given = [array.astype(f.options.number.dtype) for array in arrays(7, (count,))]
        for shared in ((), (0,), (2, 6)):
            mixed = [array[0] if k in shared else array for k, array in enumerate(given)]
            for threads in (1, 3):
                found, right = f.batch(*mixed, threads=threads), alone.batch(*mixed)
                for ours, theirs in zip(found, right, strict=True):
                    if options.get("accuracy") == "fast":
                        np.testing.assert_allclose(ours, theirs, rtol=1e-15)
                    else:
                        np.testing.assert_array_equal(ours, theirs)
