"""What is planned before loops are written: buffers that are cleared, sums that are stored, packing, lanes."""

import numpy as np
import pytest
import sympy as sp

from codegen.expressions.sympy_in import program_from_sympy
from codegen.ir.region import Buffer, Carry, Gather, Nest, Region, Result, regions_of
from codegen.ir.tables import Affine, table
from codegen.loops.emit.loop_columns import columns_of, rows_of
from codegen.loops.emit.rolled_code import RolledPlan
from codegen.loops.emit.workspace import Tables, writes
from codegen.loops.optimise.packing import pack
from codegen.options import Options
from codegen.processor import vector_bits
from tests.codegen.loops.emit.test_loops import A, B, C, check, lennard_jones, program, wave

BODY = program_from_sympy([A, B], [A * B, A - B, B**2])


def chain(count, *extra):
    """The sums of a Hessian of squares of neighbours: a diagonal, and a line beside it."""
    gathers = (Gather(0, Affine(0, 1, count)), Gather(0, Affine(1, 1, count)))
    results = (
        Result(0, 1, Affine(0, 1, count), "add"), Result(2, 1, Affine(1, 1, count), "add"),
        Result(1, 2, Affine(0, 1, count), "add"),
    )  # fmt: skip
    return program([count + 1], [count + 1, count], [], Region(BODY, count, gathers, results), *extra)


def known(rolled, width=8):
    regions = [region for region, _ in regions_of(rolled.steps)]
    found = writes(rolled, [columns_of(region, width) if width > 1 else None for region in regions])
    pairs = zip(regions, found.stored, strict=True)
    return found.cleared, [c in stored for region, stored in pairs for c in range(len(region.results))]


def test_what_is_written_once_is_stored_and_not_cleared():
    assert known(chain(20)) == (frozenset(), [True, True, True])
    assert known(chain(20), 1) == (frozenset({1}), [False, False, True])


def test_a_second_writer_makes_sums_of_both():
    more = Region(BODY, 1, (Gather(0, Affine(0, 0, 1)),) * 2, (Result(0, 1, Affine(3, 0, 1), "add"),))
    assert known(chain(20, more)) == (frozenset({1}), [False, False, True, False])


def test_gaps_are_cleared():
    region = Region(BODY, 4, (Gather(0, Affine(0, 1, 4)),) * 2, (Result(0, 1, Affine(0, 2, 4), "store"),))
    assert known(program([4], [7], [], region))[0] == {1}


def test_places_that_a_stop_may_leave_out_are_cleared():
    body = program_from_sympy([A], [A * 2, A > 100])
    results = (Result(0, 1, Affine(0, 1, 4), "store"), Result(0, 2, Affine(0, 0, 1), "last"))
    region = Region(body, 4, (), results, (Carry(0, (Gather(0, Affine(0, 0, 1)),)),), stop=1)
    assert known(program([1], [4, 1], [], region), 1)[0] == {1}


def test_rounds_of_nests_are_counted():
    assert known(wave(5, 19))[0] == {2, 3}  # the sums, and not the history


def names(rolled):
    return [region.origin for region, _ in regions_of(rolled.steps)]


def packed(rolled):
    return pack(rolled, set(range(len(rolled.steps))))


def test_pairs_read_and_add_side_by_side():
    found = packed(lennard_jones(12))
    assert names(found) == ["packing", "", "packing"]
    steps = [columns_of(region, 8).runs.steps for region, _ in regions_of(found.steps)]
    assert set(steps[1]) == {0, 1}
    assert [buffer.kind for buffer in found.buffers] == ["input", "workspace", "workspace", "output", "output"]


def test_sums_in_two_steps_move_once():
    i, j = np.triu_indices(12, 1)
    gathers = (Gather(0, table(i)), Gather(0, table(j)))
    spots = [(0, 2, 0), (1, 2, 1), (2, 3, 0)]
    results = tuple(Result(k, 1, table(step * where + d), "add") for k, step, d in spots for where in (i, j))
    rolled = program([12], [40], [], Region(BODY, len(i), gathers, results))
    assert names(packed(rolled)) == ["", "packing"]
    check(rolled, [np.linspace(1, 2, 12)], lanes=(2, 8), rtol=1e-12)


def test_few_uses_are_not_packed():
    region = Region(BODY, 9, (Gather(0, Affine(0, 2, 9)), Gather(0, Affine(1, 2, 9))), ())
    assert packed(program([18], [1], [], region)).steps == (region,)


def test_constants_are_packed_at_once():
    n = 9
    gathers = (Gather(1, Affine(0, 2, n)), Gather(1, Affine(1, 2, n)))
    region = Region(BODY, n, gathers, (Result(0, 2, Affine(0, 1, n), "store"),))
    found = packed(program([1], [n], [Buffer("constant", 2 * n, np.arange(2.0 * n))], region))
    assert names(found) == [""]
    assert found.buffers[1].values.tolist() == [*range(0, 18, 2), *range(1, 18, 2)]


@pytest.mark.parametrize("kind", ["read", "stored", "nest"])
def test_sums_that_others_use_are_not_packed(kind):
    i, j = np.triu_indices(12, 1)
    sums = Region(
        BODY, len(i), (Gather(0, table(i)), Gather(0, table(j))),
        tuple(Result(k, 1, table(2 * where + k), "add") for k in (0, 1) for where in (i, j)),
    )  # fmt: skip
    other = {
        "read": Region(BODY, 3, (Gather(1, Affine(0, 1, 3)),) * 2, (Result(0, 2, Affine(0, 1, 3), "add"),)),
        "stored": Region(BODY, 3, (Gather(0, Affine(0, 1, 3)),) * 2, (Result(0, 1, Affine(24, 1, 3), "store"),)),
        "nest": Nest(2, (Region(BODY, 1, (Gather(0, Affine(0, 0, 1)),) * 2, (Result(0, 1, Affine(0, 0, 1), "add"),)),)),
    }[kind]
    middle = Buffer("workspace", 27)
    rolled = program([12], [4], [middle], sums, other)
    found = packed(rolled)
    assert names(found).count("packing") == (kind == "stored")
    copy = program_from_sympy([A], [A])
    end = Region(copy, 4, (Gather(1, Affine(22, 1, 4)),), (Result(0, 2, Affine(0, 1, 4), "add"),))
    check(program([12], [4], [middle], sums, other, end), [np.linspace(1, 2, 12)], lanes=(2, 8), rtol=1e-12)


def test_lanes():
    def lanes(region):
        plan = RolledPlan.of(program([5000], [5000], [], region), Options())
        return plan.lanes_of(region, plan.prepared[0].fused).width

    def region(count, body=BODY, **more):
        gathers = (Gather(0, Affine(0, 1, count)), Gather(0, Affine(0, 1, count)))
        return Region(body, count, gathers, (Result(0, 1, Affine(0, 1, count), "store"),), **more)

    widest = vector_bits() // 64
    assert [lanes(region(count)) for count in (1, 2, 100)] == [1, 2, min(widest, 4)]
    assert lanes(region(5000)) == widest
    pair = program_from_sympy([A, B], [sp.sin(A) * sp.cos(A) + B])
    assert lanes(region(5000, pair)) == widest
    carried = program_from_sympy([A, B, C], [A * B + C])
    assert lanes(region(5000, carried, carries=(Carry(0, (Gather(0, Affine(0, 0, 1)),)),))) == 1


@pytest.mark.parametrize(("count", "terms", "results", "wider"), [(64, 40, 1, 4), (64, 6, 1, 1), (64, 40, 3, 1)])
def test_long_sums_run_in_several_registers(count, terms, results, wider):
    slots = sp.symbols(f"s0:{terms}")
    body = program_from_sympy(slots, [sum(slot * slots[0] for slot in slots)])
    reads = tuple(Gather(0, Affine(k, 1, count)) for k in range(terms))
    stores = tuple(Result(0, 1, Affine(k * count, 1, count), "store") for k in range(results))
    rolled = program([count + terms], [3 * count], [], Region(body, count, reads, stores))
    plan = RolledPlan.of(rolled, Options())
    assert plan.lanes_of(rolled.steps[0], plan.prepared[0].fused).width == wider * min(vector_bits() // 64, 4)
    check(rolled, [np.linspace(1, 2, count + terms)], lanes=(None,))


def test_equal_tables_are_written_once():
    tables = Tables("kernel")
    first, second, third = (tables.places(np.array(values)) for values in ([0, 1], [0, 1], [0, 2**40]))
    assert first == second == ("@kernel.table0", "i32")
    assert third[1] == "i64"
    assert len(tables.globals) == 2


def test_columns_side_by_side_are_rows():
    results = tuple(Result(0, 1, Affine(start, 9, 4), "store") for start in (3, 2, 7, 0, 4))
    columns = columns_of(Region(BODY, 4, (Gather(0, Affine(0, 1, 4)),) * 2, results), 4).results
    assert rows_of(columns) == [[3], [1, 0, 4], [2]]


@pytest.mark.parametrize("count", [3, 8, 21])
def test_rows_of_three_are_stored_as_two_and_one(count):
    """Two vectors are shuffled for each pair, and the third number is stored from where it is computed."""
    gathers = (Gather(0, Affine(0, 1, count)), Gather(0, Affine(1, 1, count)))
    results = tuple(Result(k, 1, Affine(k, 20, count), "store") for k in range(3))
    rolled = program([count + 1], [20 * count], [], Region(BODY, count, gathers, results))
    check(rolled, [np.random.default_rng(count).normal(size=count + 1)], lanes=(1, 2, 4, 8))
    text = RolledPlan.of(rolled, Options(), lanes=8).emit().text
    shuffles = text.count("shufflevector <8 x double>") - text.count("x double> poison")
    assert shuffles == 2 * ((count >= 8) + (count % 8 > 0))
    assert "store <3 x" not in text


def test_operations_are_counted_by_vectors():
    plan = RolledPlan.of(chain(20), Options(fma=False), lanes=8)
    assert plan.executed().total() == 3 * 3
    assert plan.chunks == 1
