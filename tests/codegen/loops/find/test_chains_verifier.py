"""Chains: what the verifier must refuse, what is left to others, and what goes in and out of a loop."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import sympy as sp

import symad
from codegen.errors import LimitError
from codegen.ir.program import Input, Output, Program
from codegen.ir.row_table import RowTable
from codegen.limits import limits
from codegen.loops.find.chains import find_chains
from codegen.loops.loop import Loop, LoopResult
from tests.support.chains_cases import CASES, RISING, momentum
from tests.support.chains_fuzz import Author, make, part_in_loops
from tests.support.chains_oracle import check, counts, ends, flat, found, rows_of
from tests.support.draws import seeded


def test_invariant_of_the_first_repetition() -> None:
    """sin(a) is written in the first repetition and shared by all others: the loop begins after it."""

    def run(x: Any, a: Any) -> Any:
        for _ in range(100):
            x = np.cos(x) * np.sin(a) + x
        return x

    program, (loop,) = rows_of(run, 0.3, 0.4)
    assert counts([loop]) == [(99, 3, 1)]
    assert sp.sin not in loop.body.heads
    (column,) = loop.reads
    assert program.heads[column[0]] is sp.sin


def test_shared_operation_of_a_later_repetition() -> None:
    """What repetition 50 computes and all later ones share is from before the second loop."""

    def run(x: Any, a: Any) -> Any:
        for k in range(100):
            x = np.cos(x) * np.sin(a + (k >= 50)) + x
        return x

    _, loops = rows_of(run, 0.3, 0.4)
    assert counts(loops) == [(49, 3, 1), (49, 3, 1)]


def test_runs_of_one_period_do_not_overlap() -> None:
    """Three stretches with other operations in their midst: each operation is in one loop at most."""

    def run(x: Any) -> Any:
        for k in range(150):
            x = np.cos(x) * 0.5 + x if k % 50 else np.tanh(x)
        return x

    _, loops = rows_of(run, 0.3)
    assert counts(loops) == [(49, 3, 1)] * 3
    operations = [node for loop in loops for node in loop.example]
    assert len(set(operations)) == len(operations)


def test_columns_are_of_one_kind() -> None:
    """A table of inputs that goes on as one of values, and then as one of constants: three loops."""

    def run(x: Any, u: Any) -> Any:
        for factor in [*u[:40], *np.sin(u[:40]), *RISING[:40]]:
            x = np.cos(x * factor)
        return x

    program, loops = rows_of(run, 0.3, RISING[:40])
    assert len(loops) == 3
    for loop in loops:
        (column,) = loop.reads
        kinds = {"input" if node < 41 else "value" if program.operands[node] else "constant" for node in column}
        assert len(kinds) == 1


@pytest.mark.parametrize("steps", range(1, 12))
def test_short_programs(steps: int) -> None:
    """Programs of fewer operations than six, of few periods, of fewer operations than are worth a loop."""

    def run(x: Any) -> Any:
        for _ in range(steps):
            x = np.cos(np.sin(x))
        return x

    _, loops = rows_of(run, 0.3)
    assert loops == []


def test_no_operation() -> None:
    assert rows_of(lambda x: x, 0.3)[1] == []
    assert rows_of(lambda x: 1.0, 0.3)[1] == []


def test_order_of_factors_does_not_matter() -> None:
    """Rows of a pair are sorted by number, so constants that are met again come first, and new ones last."""

    def run(x: Any) -> Any:
        for k in range(100):
            x = np.cos(x * RISING[k * k % 17])
        return x

    _, loops = rows_of(run, 0.3)
    assert counts(loops) == [(100, 2, 1)]
    assert len(loops[0].reads) == 1


def test_values_needed_in_between() -> None:
    """One repetition of all is read after the loop: its column is kept."""

    def run(x: Any) -> Any:
        path = [x]
        for _ in range(100):
            path.append(np.cos(path[-1]) * np.sin(path[-1]))
        return path[50] * path[-1]

    _, (loop,) = rows_of(run, 0.3)
    assert [(result.kind, len(result.nodes)) for result in loop.results] == [("each", 100)]


@pytest.mark.parametrize("reader", ["sum", "map", "shifted"])
def test_sums_and_maps_are_left(reader: str) -> None:
    """No repetition needs another, but for adding up: `find_sums` does that better."""

    def run(x: Any) -> Any:
        if reader == "map":
            return [np.cos(x[k]) * np.sin(x[k]) + 1 for k in range(100)]
        total = 0.0
        for k in range(100):
            total = total + (np.cos(x[k]) ** 2 if reader == "sum" else (x[k + 1] - x[k] ** 2) ** 2 + (1 - x[k]) ** 2)
        return total

    _, loops = rows_of(run, RISING)
    assert loops == []


def test_chains_that_add_up_too() -> None:
    function, arguments, _ = CASES["learned"]
    _, (loop,) = rows_of(function, *arguments)
    assert len(loop.carries) == 4  # the total is one of them


def test_sums_of_two_carries_are_chains() -> None:
    """a, b = b, a + b adds, but what it adds is what it had."""

    def run(a: Any, b: Any) -> Any:
        for _ in range(100):
            a, b = b, a + b
        return b

    _, loops = rows_of(run, 0.3, 0.4)
    assert counts(loops) == [(100, 1, 2)]


def test_many_chains_side_by_side_are_left() -> None:
    """Forty chains of twenty steps: one loop over the forty is shorter than forty loops."""

    def run(x: Any) -> Any:
        results = []
        for start in x[:40]:
            y = start
            for _ in range(20):
                y = np.cos(y) * 0.5 + np.sin(y) * y
            results.append(y)
        return results

    _, loops = rows_of(run, RISING)
    assert loops == []


def test_few_long_chains_are_loops_of_their_own() -> None:
    def run(x: Any) -> Any:
        results = []
        for start in x[:9]:
            y = start
            for _ in range(250):
                y = np.cos(y) * 0.5 + np.sin(y) * y
            results.append(y)
        return results

    _, loops = rows_of(run, RISING)
    assert counts(loops) == [(250, 5, 1)] * 9


def test_sums_side_by_side_are_left() -> None:
    """The sums of a matrix product, column by column, look like one chain of a long lag."""
    matrix = np.arange(8.0 * 32).reshape(8, 32) / 256

    def run(x: Any) -> Any:
        totals = matrix[:, 0] * x[0]
        for k in range(1, 32):
            totals = totals + matrix[:, k] * x[k]
        return np.tanh(totals)

    _, loops = rows_of(run, RISING[:32])
    assert loops == []


def test_loops_that_are_done_are_given() -> None:
    """What a loop computes is read as inputs are, and the operations behind it are not looked at."""
    function, arguments, _ = CASES["there_and_back"]
    program = flat(function, *arguments)
    inputs, outputs = ends(program)
    forward, backward = found(program)
    (rest,) = find_chains(program, inputs, outputs, [forward])
    assert counts([rest]) == counts([backward])
    assert find_chains(program, inputs, outputs, [forward, backward]) == []
    (first,) = find_chains(program, inputs, outputs, [backward])  # what it reads is wanted
    assert counts([first]) == counts([forward])
    assert [result.kind for result in first.results] == ["each"]


@pytest.mark.parametrize("waits", [True, False])
def test_loops_that_are_done_and_wait_for_the_chain(waits: bool) -> None:
    """In every step a loop that the user wrote reads what the step has: a chain of all steps would wait for itself."""
    table, steps = RowTable(), 40
    x = y = table.leaf(sp.Symbol("x"))
    body = flat(lambda value: value * value, 0.3)
    done = []
    for k in range(steps):
        given = table.leaf(sp.Symbol(f"given{k}"))
        reads = np.full(3, y if waits else x)
        done.append(Loop(body, 3, (reads,), (LoopResult(0, "sum", np.array([given])),)))
        y = table.row(sp.Mul, (y, table.row(sp.cos, (table.row(sp.Add, (y, given)),))))
    rows = Program(table.heads, table.operands, table.atoms, (Input("x", ()),), (Output((), (y,)),))
    loops = find_chains(rows, np.array([x]), np.array([y]), done[::-1])
    assert counts(loops) == ([] if waits else [(steps, 3, 1)])


def test_factors_from_before_are_divided_by() -> None:
    """1 / d[0] is from before the loop: the body divides by d[0], as straight lines do."""
    function, arguments, _ = CASES["quotients"]
    _, (loop,) = rows_of(function, *arguments)
    assert loop.body.heads.count(sp.Pow) == 2


def test_divisors_of_the_repetition_before() -> None:
    """u * v**-1 with a power of the step before is u / v: v is carried, so that it is rounded once."""

    def run(x: Any, y: Any) -> Any:
        part = y**-1
        for _ in range(100):
            new = (np.cos(x) * x + 2) ** -1
            x, part = np.tanh(x) * new + np.sin(x) * part, new
        return x

    _, (loop,) = rows_of(run, 0.3, 0.4)
    assert loop.body.heads.count(sp.Pow) == 2
    assert len(loop.carries) == 2  # x and v


def quotients_in_turn(x: Any, y: Any) -> Any:
    """Each repetition divides by what the one before computed: nothing reads the 1 / v of its own."""
    for _ in range(40):
        unused = y / (2 + x * x)
        assert unused is not None
        x, y = x / (2 + y * y) * 0.5, x
    return x


def choices_for_later(x: Any, y: Any) -> Any:
    """Every comparison is read after the loop only."""
    low = []
    for _ in range(40):
        low.append(x < y)
        x = np.sin(x) + 0.5
    return sum(np.cos(np.where(each, y, k * y)) for k, each in enumerate(low)) + x


@pytest.mark.parametrize("run", [quotients_in_turn, choices_for_later])
def test_bodies_have_only_what_is_needed(run: Any) -> None:
    """What others compute again for themselves is no operation of the body, which the comparison checks."""
    assert rows_of(run, 0.3, 0.4)[1]


def test_truth_values_are_not_read() -> None:
    """The sweep backward chooses as the one forward did: it compares again."""
    function, arguments, _ = CASES["choice"]
    program, loops = rows_of(symad.grad(function), *arguments)
    read = {node for loop in loops for reads in loop.reads for node in reads.tolist()}
    assert not any(issubclass(program.heads[node], sp.Rel) for node in read)
    assert all(any(issubclass(head, sp.Rel) for head in loop.body.heads) for loop in loops)


def test_initial_value_that_the_first_repetition_computes() -> None:
    """cos(x) is what the second repetition reads from two before, but the first one computes it."""

    def run(x: Any, y: Any) -> Any:
        before, now = y, x
        for k in range(100):
            before, now = np.cos(x) if k == 0 else now, np.cos(now) * np.sin(before)
        return now

    _, (loop,) = rows_of(run, 0.3, 0.4)
    assert loop.count == 99
    initial = {node for carry in loop.carries for node in carry.initial.tolist()}
    assert max(initial) < min(loop.example)


def test_carries_begin_alike() -> None:
    """In the first step x * y is y * x, by the order of the inputs; still each of them has one slot."""

    def run(y: Any, x: Any) -> Any:
        for _ in range(100):
            x, y = np.sin(x * y) + np.cos(x), np.cos(y + x) + np.sin(y)
        return x

    _, loops = rows_of(run, 0.3, 0.4)
    assert counts(loops) == [(100, 8, 2)] or counts(loops) == [(99, 8, 2)]


def test_exponents_are_literals() -> None:
    """x**2 is a product and x**3 another one: no table of exponents."""

    def run(x: Any) -> Any:
        for k in range(60):
            x = np.cos(x ** (3 if k < 30 else 2)) * 0.5 + x
        return x

    _, loops = rows_of(run, 0.3)
    assert counts(loops) == [(30, 4, 1)] * 2
    literals = [{atom for atom in loop.body.atoms.values() if isinstance(atom, sp.Integer)} for loop in loops]
    assert literals == [{sp.Integer(3)}, {sp.Integer(2)}]


@pytest.mark.parametrize("after", ["value", "choice"])
def test_truth_values_needed_after_the_loop(after: str) -> None:
    """The last comparison is used again after the loop: what it compares is passed on."""

    def run(x: Any, y: Any) -> Any:
        for _ in range(100):
            low = x < y
            x, last = np.where(low, np.sin(x) + 0.5, x * 0.5), x
        return np.where(low, y, x) if after == "choice" else x + last

    program, loops = rows_of(run, 0.3, 0.4)
    assert len(loops) == 1
    assert not any(
        issubclass(program.heads[node], sp.Rel) for result in loops[0].results for node in result.nodes.tolist()
    )


def test_truth_value_of_the_repetition_before() -> None:
    """No buffer holds it: straight lines."""

    def run(x: Any, y: Any) -> Any:
        low = before = x < y
        for _ in range(100):
            x = np.where(before, np.where(low, np.sin(x), x * y), np.cos(x))
            low, before = x < y, low
        return x

    _, loops = rows_of(run, 0.3, 0.4)
    assert loops == []


def test_repetitions_do_not_begin_between_comparison_and_choice() -> None:
    """One value goes on either way, and the run ends with a comparison: but that could not go on."""

    def run(x: Any, u: Any) -> Any:
        for k in range(100):
            x = np.where(x < 0.5, u[k] * 2, np.sin(u[k]))
        return np.where(x < 0.5, u[0], u[1])

    _, loops = rows_of(run, 0.3, RISING)
    assert [loop.count for loop in loops] == [100] or [loop.count for loop in loops] == [99]


@pytest.mark.parametrize("name", ["schedule", "adam", "table", "pendulum"])
def test_columns_come_from_one_place(name: str) -> None:
    """What a sweep backward reads is computed in the loop forward, or in straight lines, but not partly in each."""
    function, arguments, _ = CASES[name]
    program = flat(symad.grad(lambda *values: np.ravel(np.array(function(*values)))[0]), *arguments)
    loops = found(program)
    columns = [result.nodes for loop in loops for result in loop.results if result.kind == "each"]
    for reads in (reads for loop in loops for reads in loop.reads if len(set(reads.tolist())) > 1):
        assert all(np.isin(reads, column).all() or not np.isin(reads, column).any() for column in columns)


@pytest.mark.parametrize("width", [3.0, 1000.0])
def test_other_order_of_rows(width: float) -> None:
    """Chains in another order may be lost, but are never wrong."""
    program = flat(momentum(100), 0.5, 0.01)
    author = Author(seeded(0))
    author.table, author.inputs, author.wanted = program, 2, list(program.outputs[0].rows)  # type: ignore[assignment]
    for _ in range(3):
        shuffled = author.in_order(author.shuffled(width))
        check(shuffled, found(shuffled))


def test_random_programs() -> None:
    parts = [part_in_loops(make(seeded(seed))) for seed in range(150)]
    assert np.count_nonzero(parts) > 25


def test_limit_of_time() -> None:
    program = flat(momentum(10), 0.5, 0.01)
    with limits(max_seconds=1e-9), pytest.raises(LimitError, match="looking for chains"):
        found(program)
