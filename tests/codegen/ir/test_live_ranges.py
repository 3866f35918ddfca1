"""Live ranges, looked at without numbers: what is wrong is found, a fault that was there too, and nothing else is."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest

import symad as sa
from codegen.errors import InvariantError
from codegen.evaluation.evaluate_rolled import evaluate_rolled
from codegen.expressions.printing import rolled_text
from codegen.ir import accesses
from codegen.ir.accesses import check_rounds
from codegen.ir.check import check_rolled
from codegen.ir.region import Nest, Region, RolledProgram, Step
from codegen.ir.tables import Affine, Indexed, Table
from codegen.loops.optimise.contraction import contracted, zeros
from symad.derivatives.loops import checkpoints, pullback as way_back
from symad.derivatives.loops.checkpoints import Checkpoints
from symad.derivatives.loops.pullback import gradient, pullback
from symad.derivatives.loops.pushforward import pushforward
from tests.support.derive_cases import CASES, Made, region, run as table
from tests.support.derive_fuzz import Grown
from tests.support.draws import seeded
from tests.symad.derivatives.loops.test_derive_nests import rows

PAGE = Path(__file__).parents[3] / "docs" / "design" / "nested-segments.md"


def sines(rounds: int) -> RolledProgram:
    """The smallest nest that has to be cut: each number is the sine of a sum, of one square, of the one before."""
    made = Made({"x": ()}, {"f": ()}, {"h": (rounds + 1,), "s": (rounds,)})
    here, after = table(1, 0, 1, (1,)), table(1, 1, 1, (1,))
    inside = (
        region(lambda h: (h * h,), 1, [made.at("h", here)], [made.to(0, "s", here, "add")]),
        region(lambda s: (np.sin(s),), 1, [made.at("s", here)], [made.to(0, "h", after)]),
    )
    return made.program(
        region(lambda x: (x,), 1, [made.at("x", 0)], [made.to(0, "h", 0)]),
        Nest(rounds, inside),
        region(lambda h: (h,), 1, [made.at("h", rounds)], [made.to(0, "f", 0)]),
    )


def few(patch: pytest.MonkeyPatch) -> None:
    """Let "none" cut in two what has more than two rounds: seven are segments in segments."""
    patch.setattr(checkpoints, "FEW", 2)
    patch.setattr(checkpoints, "SIXTEEN", 2)


def forgotten(patch: pytest.MonkeyPatch) -> None:
    """Plant the fault that was there: of segments in segments it is not known that they are segments."""

    def cut_nests(draft: Any, steps: Sequence[Step], policy: Checkpoints, depth: int, first: int = 0) -> Any:
        found, cuts = reverse_cut_nests(draft, steps, policy, depth, first)
        return found, {} if depth else cuts

    reverse_cut_nests = way_back.cut_nests
    patch.setattr(way_back, "cut_nests", cut_nests)


@pytest.mark.parametrize("program", [sines(7), sines(9), rows(7), rows(15, 2)])
def test_the_fault_of_segments_in_segments_is_found(program: RolledProgram, monkeypatch: pytest.MonkeyPatch) -> None:
    few(monkeypatch)
    monkeypatch.setenv("SYMAD_STRICT", "0")  # what is planted is to be made
    arrays = [np.full(array.shape, 0.7) for array in program.inputs]
    expected = evaluate_rolled(gradient(program, [0]), arrays)
    made = gradient(program, [0], checkpoints="none")
    check_rolled(made)
    check_rounds(made)
    np.testing.assert_allclose(evaluate_rolled(made, arrays), expected, rtol=1e-14)
    forgotten(monkeypatch)
    broken = gradient(program, [0], checkpoints="none")
    assert not np.allclose(evaluate_rolled(broken, arrays), expected, rtol=1e-3, atol=0)
    with pytest.raises(InvariantError, match=r"region \d+ adds to what region \d+ has read"):
        check_rolled(broken)
    with pytest.raises(InvariantError, match=r"is read in another round than region \d+ began it in"):
        check_rounds(broken)


def test_the_page_shows_the_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    few(monkeypatch)
    monkeypatch.setenv("SYMAD_STRICT", "0")  # what is planted is to be made
    shown = [rolled_text(sines(7)), rolled_text(gradient(sines(7), [0], checkpoints="none"))]
    forgotten(monkeypatch)
    shown.append(rolled_text(gradient(sines(7), [0], checkpoints="none")))
    blocks = re.findall(r"^```text\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    found = [[block.rstrip("\n") in program for program in shown] for block in blocks]
    assert found == [[True, False, False], [False, True, True], [False, False, True], [False, True, False]]


TWO = table(2)


def small(*steps: Callable[[Made], Step], size: int = 4) -> RolledProgram:
    """A program of an input x, a workspace w and an output y."""
    made = Made({"x": (size,)}, {"y": (size,)}, {"w": (size,), "v": (size,)})
    return made.program(*(step(made) for step in steps))


def move(source: str, target: str, kind: str = "store", at: Table = TWO) -> Callable[[Made], Region]:
    """Two numbers, doubled, go from a buffer to another one."""
    return lambda made: region(lambda a: (2.0 * a,), 2, [made.at(source, TWO)], [made.to(0, target, at, kind)])


def copy(source: str, target: str) -> Callable[[Made], Region]:
    return lambda made: region(lambda a: (a,), 2, [made.at(source, TWO)], [made.to(0, target, TWO)])


def clear(name: str) -> Callable[[Made], Region]:
    return lambda made: zeros(made.number[name], 2)


def rounds(*steps: Callable[[Made], Step], count: int = 3) -> Callable[[Made], Step]:
    return lambda made: Nest(count, tuple(step(made) for step in steps))


TOTAL = move("w", "y", "add")
RIGHT = {
    "a sum of two": [move("x", "w", "add"), move("x", "w", "add"), TOTAL],
    "a sum over rounds": [rounds(move("x", "w", "add")), TOTAL],
    "a sum of each round": [rounds(clear("w"), move("x", "w", "add"), TOTAL)],
    "a number of each round": [rounds(move("x", "w"), TOTAL)],
    "zeros, then numbers": [rounds(clear("w"), move("x", "w"), TOTAL)],
    "a sum goes on where it was moved": [move("x", "v", "add"), copy("v", "w"), move("x", "w", "add"), TOTAL],
    "rounds in rounds": [rounds(rounds(move("x", "w"), TOTAL), move("x", "v"), move("v", "y", "add"))],
    "places of their own": [
        rounds(move("x", "w", at=Affine(0, 1, 2, (2,))), count=2), rounds(move("w", "y", "add"), count=2)
    ],
}  # fmt: skip
WRONG = {
    "a sum goes on": ([move("x", "w", "add"), TOTAL, move("x", "w", "add")], check_rolled,
        "buffer 1, place 0: a place is read only after it is written: region 2 adds to what region 1 has read"),
    "sums of rounds": ([rounds(move("x", "w", "add"), TOTAL)], check_rolled,
        "place 0: a place is read only after it is written: region 0 adds to what region 1 has read"),
    "a sum reads itself": ([move("w", "w", "add")], check_rolled, "region 0 reads it and writes to it"),
    "sums of inner rounds": ([rounds(clear("w"), rounds(move("x", "w", "add"), TOTAL))], check_rolled,
        "region 1 adds to what region 2 has read"),
    "a sum begins at a number": ([move("x", "w"), move("x", "w", "add"), TOTAL], check_rolled,
        "place 0: a place is stored or added to: region 0 stores to it, region 1 adds to it"),
    "two numbers": ([move("x", "w", at=Indexed(np.zeros(2, dtype=np.int64))), TOTAL], check_rolled,
        "place 0: a place is stored once: region 0 stores to it twice"),
    "read when the rounds are over": ([rounds(move("x", "w")), TOTAL], check_rounds,
        "place 0 of w0 is read in another round than region 0 began it in"),
    "read in later rounds": ([rounds(move("x", "w")), rounds(TOTAL)], check_rounds, "is read in another round"),
    "read a round later": ([rounds(TOTAL, move("x", "w"))], check_rounds, "is read in a round before it begins in one"),
    "read behind inner rounds": ([rounds(rounds(move("x", "w")), TOTAL)], check_rounds, "is read in another round"),
    "stored again": ([move("x", "w"), TOTAL, move("x", "w")], check_rounds,
        "place 0 of w0 begins anew in a round in which it began in region 0"),
    "begun by two nests": ([rounds(clear("w"), rounds(clear("w"), move("x", "w", "add"), TOTAL))], check_rounds,
        "place 0 of w0 begins anew in a round in which it began in region 0"),
}  # fmt: skip


@pytest.mark.parametrize("name", RIGHT)
def test_what_is_right_passes(name: str) -> None:
    program = small(*RIGHT[name])
    check_rolled(program)
    check_rounds(program)


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_refused(name: str) -> None:
    steps, check, message = WRONG[name]
    with pytest.raises(InvariantError, match=message) as caught:
        check(small(*steps))
    assert "report it" in str(caught.value)


@pytest.mark.parametrize("rounds_too_many", [0, 1])
def test_some_places_of_large_buffers_are_looked_at(rounds_too_many: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sum that all rounds read, once too often: with all uses in order, and with those of some places."""
    size = 2000
    made = Made({"x": (size,)}, {"y": (size,)}, {"w": (size * 3,)})
    add = region(
        lambda a: (a,), size, [made.at("x", table(size))], [made.to(0, "w", table(size, 0, 1, (size,)), "add")]
    )
    total = region(lambda a: (a,), size, [made.at("w", table(size))], [made.to(0, "y", table(size), "add")])
    again = region(lambda a: (a,), size, [made.at("x", table(size))], [made.to(0, "w", table(size, 0, 1), "add")])
    program = made.program(Nest(3, (add,)), total, *[again] * rounds_too_many)
    for limit in (accesses.SORTED, 100):
        monkeypatch.setattr(accesses, "SORTED", limit)
        monkeypatch.setattr(accesses, "BLOCK", 3000)
        if rounds_too_many:
            with pytest.raises(InvariantError, match=r"place 0: .*: region 2 adds to what region 1 has read"):
                check_rolled(program)
        else:
            check_rolled(program)


def kept(program: RolledProgram) -> None:
    """Check a program, and what is left of its buffers in one that is only run."""
    check_rolled(program)
    check_rounds(program)
    check_rolled(contracted(program, 1))


@pytest.mark.parametrize("name", CASES)
@pytest.mark.thinned
def test_derivatives_of_every_case(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    few(monkeypatch)
    program = CASES[name]()
    active = range(len(program.inputs))
    kept(pushforward(program, active))
    for policy in get_args(Checkpoints):
        made = pullback(program, active, checkpoints=policy)
        kept(made)
        kept(pullback(made, active, checkpoints=policy))


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.thinned
def test_derivatives_of_random_programs(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    few(monkeypatch)
    program = Grown(seeded(seed)).program()
    for policy in get_args(Checkpoints):
        made = gradient(program, [0], checkpoints=policy)
        kept(made)
        kept(pushforward(made, [0]))
        kept(pullback(made, [0], checkpoints=policy))


def test_a_dense_matrix_of_many_variables_is_looked_at_where_it_is_written() -> None:
    """Its places are more than the memory has; those in use are few."""
    chain = lambda x: sa.sum_over(lambda a, b: (b - a**2) ** 2, x[:-1], x[1:])  # noqa: E731
    planned = sa.plan(sa.hessian(chain), np.ones(100_000), roll="always")
    check_rounds(planned.candidate.rolled.program)
    check_rolled(planned.candidate.rolled.program)
