"""Loops of a rolled program against its straight lines, which the interpreter evaluates."""

import ctypes

import numpy as np
import pytest
import sympy as sp

from codegen import compile_program
from codegen.evaluation.interpret import evaluate
from codegen.expressions.sympy_in import program_from_sympy
from codegen.ir.program import Input, Output, Program
from codegen.ir.region import Buffer, Carry, Gather, Nest, Region, Result, RolledProgram
from codegen.ir.tables import Affine, table
from codegen.ir.unroll import unroll
from codegen.loops.emit.rolled_code import RolledPlan
from codegen.machine.storage.program_cache import ObjectCode
from codegen.options import Options

A, B, C, D, E, F = sp.symbols("a:f")
LANES = (1, 2, 8)


def run(rolled, values, lanes=None, level=2, **options):
    """Call the kernel on arrays; the outputs begin as nonsense, and nothing behind them is written."""
    plan = RolledPlan.of(rolled, Options(**options), lanes)
    library = ObjectCode.of(plan.emit(), level).linked()
    arrays = [np.ascontiguousarray(value, dtype=float) for value in values]
    guarded = [np.full(array.size + 8, np.nan) for array in rolled.outputs]
    for array in guarded:
        array[-8:] = 7.25
    outputs = [array[:-8].reshape(out.shape) for array, out in zip(guarded, rolled.outputs, strict=True)]
    tables = [(ctypes.c_void_p * max(len(part), 1))(*[a.ctypes.data for a in part]) for part in (arrays, outputs)]
    assert ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_void_p] * 2)(library.addresses["kernel"])(*tables) == 0
    assert all((array[-8:] == 7.25).all() for array in guarded)
    return outputs


def meant(rolled, values):
    """What the straight lines give."""
    flat = unroll(rolled)
    inputs = dict(enumerate(np.concatenate([np.ravel(value) for value in values]).tolist()))
    return [np.reshape(evaluate(flat, list(out.rows), dict(inputs)), out.shape) for out in flat.outputs]


def check(rolled, values, lanes=LANES, rtol=1e-14, **options):
    """Compare for all numbers of lanes."""
    expected = meant(rolled, values)
    for width in lanes:
        for got, want in zip(run(rolled, values, width, **options), expected, strict=True):
            np.testing.assert_allclose(got, want, rtol=rtol, atol=rtol, err_msg=f"{width} lanes")


def program(inputs, outputs, middle, *steps):
    """A rolled program; sizes of inputs and outputs, buffers between."""
    buffers = [Buffer("input", size) for size in inputs] + list(middle) + [Buffer("output", size) for size in outputs]
    names = tuple(Input(f"x{k}", (size,)) for k, size in enumerate(inputs))
    return RolledProgram(names, tuple(Output((size,), ()) for size in outputs), tuple(buffers), steps)


def lennard_jones(n):
    """Energy and its gradient: pairs (i, j), coordinates side by side."""
    a, b = sp.symbols("a0:3"), sp.symbols("b0:3")
    squared = sum((p - q) ** 2 for p, q in zip(a, b, strict=True))
    energy = squared**-6 - squared**-3
    body = program_from_sympy([*a, *b], [energy, *(sp.diff(energy, v) for v in (*a, *b))])
    i, j = np.triu_indices(n, 1)
    gathers = tuple(Gather(0, table(3 * k + d)) for k in (i, j) for d in range(3))
    results = (Result(0, 1, Affine(0, 0, len(i)), "add"),)
    results += tuple(Result(k + 1, 2, gathers[k].table, "add") for k in range(6))
    return program([3 * n], [1, 3 * n], [], Region(body, len(i), gathers, results))


@pytest.mark.parametrize("n", [2, 7, 12])
@pytest.mark.parametrize("level", [0, 2])
def test_pairs_in_runs(n, level):
    check(lennard_jones(n), [np.random.default_rng(n).normal(size=3 * n) * 3], (None, 1, 4, 8), 1e-11, level=level)


@pytest.mark.parametrize("atoms", [10, 40])
def test_short_runs_do_not_fill_the_lanes_of_single_precision(atoms, monkeypatch):
    """Nine runs of five pairs: eight lanes would be moved where four do; long runs fill all there are."""
    monkeypatch.setattr("codegen.loops.emit.rolled_code.vector_bits", lambda: 512)
    rolled = lennard_jones(atoms)
    (double,), (single,) = (RolledPlan.of(rolled, Options(dtype=dtype)).wide for dtype in ("float64", "float32"))
    assert (double.width, single.width) == ((4, 4) if atoms == 10 else (8, 8))
    x = np.random.default_rng(atoms).normal(size=3 * atoms) * 3
    for got, want in zip(compile_program(rolled, dtype="float32")(x), meant(rolled, [x]), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-3 * np.abs(want).max())


def test_both_levels_of_code_give_the_same_bits():
    rolled, values = lennard_jones(12), [np.random.default_rng(0).normal(size=36) * 3]
    for first, second in zip(run(rolled, values, level=0), run(rolled, values, level=2), strict=True):
        assert first.tobytes() == second.tobytes()


@pytest.mark.parametrize("count", [1, 2, 7, 8, 9, 33])
def test_map_and_sum(count):
    body = program_from_sympy([A, B], [A * B + sp.sin(A), A / (1 + B**2)])
    region = Region(
        body, count,
        (Gather(0, Affine(0, 1, count)), Gather(0, Affine(2 * count - 1, -1, count))),
        (Result(0, 1, Affine(1, 2, count), "store"), Result(1, 2, Affine(0, 0, count), "add")),
    )  # fmt: skip
    check(program([2 * count], [2 * count + 1, 1], [], region), [np.linspace(-1, 2, 2 * count)])


@pytest.mark.parametrize("accuracy", ["strict", "fast"])
def test_functions_and_choices(accuracy):
    expressions = [
        sp.Piecewise((sp.exp(A), A > B), (sp.log(1 + B**2), (A < 0) & (B > 0)), (sp.tanh(A), True)),
        sp.Max(A, B) + sp.erf(A) + sp.gamma(2 + B**2), sp.atan2(A, B), sp.floor(A) + sp.sign(B), A**B**2,
    ]  # fmt: skip
    body = program_from_sympy([A, B], expressions)
    n = 21
    gathers = (Gather(0, Affine(0, 1, n)), Gather(1, Affine(0, 1, n)))
    results = tuple(Result(k, 2 + k, Affine(0, 1, n), "store") for k in range(5))
    rng = np.random.default_rng(3)
    values = [rng.uniform(0.1, 2, n), rng.uniform(-2, 2, n)]
    rolled = program([n, n], [n] * 5, [], Region(body, n, gathers, results))
    check(rolled, values, rtol=1e-13, accuracy=accuracy)


@pytest.mark.parametrize("places", ["random", "unique", "same"])
def test_indexed_places(places):
    n, rng = 37, np.random.default_rng(1)
    where = {"random": rng.integers(0, 9, n), "unique": rng.permutation(n), "same": np.full(n, 4)}[places]
    body = program_from_sympy([A, B], [A * B, A + B])
    gathers = (Gather(0, table(rng.integers(0, n, n))), Gather(0, Affine(0, 1, n)))
    results = (Result(0, 1, table(where), "add"), Result(1, 2, table(rng.permutation(n)), "store"))
    results += (Result(1, 1, table(where[::-1].copy()), "add"),)
    check(program([n], [n, n], [], Region(body, n, gathers, results)), [rng.normal(size=n)])


def test_overlapping_sums_and_constants():
    n, rng = 100, np.random.default_rng(2)
    body = program_from_sympy([A, B, C], [C * A**2, A * B, B**2 + C])
    gathers = (Gather(0, Affine(0, 1, n - 1)), Gather(0, Affine(1, 1, n - 1)), Gather(1, Affine(0, 1, n - 1)))
    results = (
        Result(0, 2, Affine(0, 1, n - 1), "add"), Result(2, 2, Affine(1, 1, n - 1), "add"),
        Result(1, 3, Affine(0, 1, n - 1), "add"),
    )  # fmt: skip
    constant = Buffer("constant", n - 1, rng.normal(size=n - 1))
    rolled = program([n], [n, n - 1], [constant], Region(body, n - 1, gathers, results))
    check(rolled, [rng.normal(size=n)])


def pairs_by_atom(n, order):
    """A Hessian-like program of pairs: blocks side by side or entry by entry, sums by atom."""
    a, b = sp.symbols("a0:3"), sp.symbols("b0:3")
    sums = [p * q + sp.cos(q) for p, q in zip(a, b, strict=True)]
    body = program_from_sympy([*a, *b], [*sums, *(sp.sin(s) for s in sums), a[0] * b[0]])
    i, j = np.triu_indices(n, 1)
    count, pair = len(i), np.arange(len(i))
    gathers = tuple(Gather(0, table(3 * k + d)) for k in (i, j) for d in range(3))
    by_entry = order == "entries"
    stores = [Result(k, 2, table(count * k + pair if by_entry else 7 * pair + k), "store") for k in range(7)]
    first = 7 * count
    sums = [Result(k, 2, table(first + 3 * where + k), "add") for k in range(3) for where in (i, j)]
    weights = Result(6, 3, table(2 * j), "add")
    constants = Buffer("constant", 2 * count, np.linspace(0, 1, 2 * count))
    scaled = program_from_sympy([A, B], [A * B])
    reads = (Gather(1, table(2 * pair)), Gather(1, table(2 * pair + 1)))
    regions = (
        Region(body, count, gathers, (*stores, *sums, weights)),
        Region(scaled, count, reads, (Result(0, 4, Affine(0, 1, count), "store"),)),
    )
    return program([3 * n], [first + 3 * n, 2 * n, count], [constants], *regions)


@pytest.mark.parametrize("order", ["blocks", "entries"])
@pytest.mark.parametrize("n", [5, 9, 14])
def test_rows_and_packed_sums(n, order):
    check(pairs_by_atom(n, order), [np.linspace(0, 2, 3 * n)])


@pytest.mark.parametrize("count", [3, 8, 16, 21])
@pytest.mark.parametrize("size", [1, 2, 3, 5, 9])
def test_rows(count, size):
    body = program_from_sympy([A], [A * (k + 1) for k in range(size)])
    results = tuple(Result(k, 1, Affine(2 + k, size + 1, count), "store") for k in range(size))
    region = Region(body, count, (Gather(0, Affine(0, 1, count)),), results)
    check(program([count], [2 + count * (size + 1)], [], region), [np.linspace(1, 2, count)])


@pytest.mark.parametrize("count", [1, 2, 7, 8, 9, 17])
@pytest.mark.parametrize("rounds", [None, 3])
def test_sums_a_few_places_apart(count, rounds):
    body = program_from_sympy([A, B], [A * B, A - B, B**2, A + 1])
    shift = () if rounds is None else (2,)
    gathers = (Gather(0, Affine(0, 1, count)), Gather(0, Affine(3, 1, count)))
    results = tuple(Result(k, 1, Affine(2 * k, 1, count, shift), "add") for k in (2, 0, 1))
    results += (Result(3, 1, Affine(2, 1, count, shift), "add"), Result(3, 2, Affine(0, 1, count), "add"))
    region = Region(body, count, gathers, results)
    step = region if rounds is None else Nest(rounds, (region,))
    check(program([count + 3], [count + 8, count + 1], [], step), [np.linspace(-1, 2, count + 3)])


@pytest.mark.parametrize("count", [2, 4, 8, 16])
def test_sums_a_few_places_apart_beside_other_places(count):
    body = program_from_sympy([A, B], [A + B, A * B, A - B])
    gathers = (Gather(0, Affine(0, 2, count)), Gather(0, table(np.arange(count)[::-1] ** 2 % 7)))
    results = (Result(0, 1, Affine(0, 1, count), "add"), Result(1, 1, Affine(1, 1, count), "add"))
    results += (Result(2, 2, Affine(0, 3, count), "store"), Result(1, 3, Affine(count, -1, count), "add"))
    region = Region(body, count, gathers, results)
    check(program([2 * count + 7], [count + 1, 3 * count, count + 1], [], region), [np.linspace(1, 2, 2 * count + 7)])


def test_places_between_sums_are_plain_zeros():
    body = program_from_sympy([A], [A + 1, 2 * A])
    results = (Result(0, 1, Affine(0, 1, 2), "add"), Result(1, 1, Affine(5, 1, 2), "add"))
    (found,) = run(program([2], [7], [], Region(body, 2, (Gather(0, Affine(0, 1, 2)),), results)), [[1.0, 2.0]], 8)
    assert found.tolist() == [2.0, 3.0, 0.0, 0.0, 0.0, 2.0, 4.0]
    assert not np.signbit(found).any()


def test_sums_of_which_one_meets_another():
    body = program_from_sympy([A], [A, 2 * A, 3 * A])
    places = [np.array([0, 10]), np.array([1, 11]), np.array([1, 25])]
    results = tuple(Result(k, 1, table(where), "add") for k, where in enumerate(places))
    region = Region(body, 2, (Gather(0, Affine(0, 1, 2)),), results)
    check(program([2], [30], [], region), [[1.0, 2.0]])


@pytest.mark.parametrize("lag", [1, 2, 5])
@pytest.mark.parametrize("count", [1, 2, 11])
def test_carries(lag, count):
    body = program_from_sympy([A, B, C], [A * B + C, C + A])
    initial = tuple(Gather(1, Affine(k, 0, 1)) for k in range(lag))
    gathers = (Gather(0, Affine(0, 1, count)),)
    carries = (Carry(0, initial), Carry(1, (Gather(1, Affine(lag, 0, 1)),)))
    results = (
        Result(0, 2, Affine(0, 1, count), "store"), Result(1, 3, Affine(0, 0, 1), "last"),
        Result(0, 4, Affine(0, 0, count), "add"),
    )  # fmt: skip
    rolled = program([count, lag + 1], [count, 1, 1], [], Region(body, count, gathers, results, carries))
    rng = np.random.default_rng(lag)
    check(rolled, [rng.normal(size=count), rng.normal(size=lag + 1)], lanes=(None,))


@pytest.mark.parametrize("start", [0.5, 3.0, 1e9])
def test_stop(start):
    body = program_from_sympy([A], [A * 2, A * 2 > 100])
    region = Region(
        body, 20, (), (Result(0, 1, Affine(0, 1, 20), "store"), Result(0, 2, Affine(0, 0, 1), "last")),
        (Carry(0, (Gather(0, Affine(0, 0, 1)),)),), stop=1,
    )  # fmt: skip
    steps, found = [], start
    while len(steps) < 20:
        found *= 2
        steps.append(found)
        if found > 100:
            break
    every, last = run(program([1], [20, 1], [], region), [[start]])
    assert every.tolist() == steps + [0.0] * (20 - len(steps))
    assert last.tolist() == [steps[-1]]


def wave(rounds, width):
    """A field that goes on from row to row of a history: a nest around a map, and the sum of a row."""
    body = program_from_sympy([A, B, C], [A / 4 + B / 2 + C / 4])
    n = width
    first = program_from_sympy([A], [sp.sin(A)])
    begin = Region(first, n, (Gather(0, Affine(0, 1, n)),), (Result(0, 1, Affine(0, 1, n), "store"),))
    gathers = tuple(Gather(1, Affine(k, 1, n - 2, (n,))) for k in range(3))
    inner = Region(body, n - 2, gathers, (Result(0, 1, Affine(n + 1, 1, n - 2, (n,)), "store"),))
    edges = program_from_sympy([A, B], [A * B, A - B])
    ends = Region(
        edges, 1, (Gather(1, Affine(0, 0, 1, (n,))), Gather(1, Affine(n - 1, 0, 1, (n,)))),
        (Result(0, 1, Affine(n, 0, 1, (n,)), "store"), Result(1, 1, Affine(2 * n - 1, 0, 1, (n,)), "store")),
    )  # fmt: skip
    total = program_from_sympy([A], [A**2])
    sums = Region(total, n, (Gather(1, Affine(0, 1, n, (n,))),), (Result(0, 2, Affine(0, 0, n, (1,)), "add"),))
    everything = Region(total, n, (Gather(1, Affine(0, 1, n, (n,))),), (Result(0, 3, Affine(0, 0, n), "add"),))
    nest = Nest(rounds, (inner, ends, sums, everything))
    return program([n], [rounds, 1], [Buffer("workspace", n * (rounds + 1))], begin, nest)


@pytest.mark.parametrize("rounds", [1, 5])
def test_nest(rounds):
    check(wave(rounds, 19), [np.linspace(0, 1, 19)])


def test_nest_of_nests():
    body = program_from_sympy([A, B], [A * B])
    n, m, k = 3, 4, 9
    gathers = (Gather(0, Affine(0, 1, k, (0, k))), Gather(1, Affine(0, 1, k, (k, 0))))
    results = (Result(0, 2, Affine(0, 1, k, (m * k, k)), "store"), Result(0, 3, Affine(0, 0, k, (1, 0)), "add"))
    carry = program_from_sympy([A, B], [A + B / 2])
    chain = Region(
        carry, m, (Gather(3, Affine(0, 0, m, (1, 0))),), (Result(0, 4, Affine(0, 0, 1, (2,)), "last"),),
        (Carry(0, (Gather(1, Affine(3, 0, 1, (k,))),)),),
    )  # fmt: skip
    nest = Nest(n, (Nest(m, (Region(body, k, gathers, results),)), chain))
    rng = np.random.default_rng(0)
    check(program([m * k, n * k], [n * m * k, n, 2 * n], [], nest), [rng.normal(size=m * k), rng.normal(size=n * k)])


def long_expressions(rows):
    """Many operations with few inputs."""
    heads, operands = [sp.Symbol, sp.Symbol, sp.Symbol, sp.Float], [()] * 4
    atoms = {0: A, 1: B, 2: C, 3: sp.Float(0.75)}
    rng = np.random.default_rng(5)
    for _ in range(rows):
        i, j = (int(v) for v in rng.integers(max(0, len(heads) - 40), len(heads), 2))
        heads += [sp.Add, sp.Mul]
        operands += [(i, j), (len(heads) - 2, 3)]
    outputs = tuple(Output((), (len(heads) - 1 - 7 * k,)) for k in range(5))
    return Program(heads, operands, atoms, tuple(Input(str(v), ()) for v in (A, B, C)), outputs)


@pytest.mark.parametrize("rows", [150, 1200])
@pytest.mark.parametrize("count", [1, 13])
def test_long_bodies(rows, count):
    body = long_expressions(rows)
    gathers = tuple(Gather(0, Affine(k, 1, count)) for k in range(3))
    results = (
        Result(0, 1, Affine(0, 1, count), "store"), Result(1, 2, Affine(0, 0, count), "add"),
        Result(2, 2, Affine(0, 0, count), "add"), Result(3, 3, Affine(0, 2, count), "store"),
        Result(3, 4, Affine(0, 1, count), "store"), Result(4, 2, Affine(1, 0, count), "add"),
    )  # fmt: skip
    one, two = Region(body, count, gathers, results), Region(body, count, gathers, (results[1],))
    rolled = program([count + 2], [count, 2, 2 * count, count], [], one, two)
    check(rolled, [np.linspace(-1, 1, count + 2)], rtol=1e-12)


def test_many_stores():
    count, size = 11, 230
    symbols = sp.symbols("s0:20")
    body = program_from_sympy(symbols, [symbols[k % 20] * k + symbols[k * k % 17] for k in range(size)])
    gathers = tuple(Gather(0, Affine(k, 1, count)) for k in range(20))
    results = tuple(Result(k, 1, Affine(k * count, 1, count), "add" if k % 3 else "store") for k in range(size))
    region = Region(body, count, gathers, results)
    check(program([count + 20], [size * count], [], region), [np.linspace(-1, 1, count + 20)], lanes=(1, 8))


def test_long_body_with_carry():
    body = long_expressions(1000)
    carries = (Carry(0, (Gather(0, Affine(0, 0, 1)),)),)
    for count in (1, 3):
        gathers = tuple(Gather(0, Affine(k, 1, count)) for k in range(2))
        results = (Result(0, 1, Affine(0, 0, 1), "last"), Result(1, 2, Affine(0, 1, count), "store"))
        rolled = program([4], [1, 3], [], Region(body, count, gathers, results, carries))
        check(rolled, [[0.1, 0.2, 0.3, 0.4]], lanes=(None,), rtol=1e-12)


def test_code_does_not_grow():
    sizes = [len(RolledPlan.of(wave(5, n), Options(), 4).emit().text.splitlines()) for n in (5003, 50003)]
    assert sizes[0] == sizes[1]
