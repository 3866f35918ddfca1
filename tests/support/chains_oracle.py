"""Running found loops with plain floats, to compare with the straight lines they were found in."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import sympy as sp
from sympy.logic.boolalg import Boolean

import symad
from codegen.evaluation.interpret import evaluate
from codegen.ir.check import check_needed
from codegen.ir.program import Program, reachable
from codegen.loops.find.chains import find_chains
from codegen.loops.loop import Loop, is_nodes
from symad.tracing.trace import to_program


def flat(function: Callable[..., Any], *arguments: Any) -> Program:
    """Return the straight lines of a function."""
    return to_program(symad.trace(function, *arguments))


def ends(program: Program) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return the nodes of inputs and outputs."""
    outputs = [row for output in program.outputs for row in output.rows]
    return np.arange(program.input_count), np.array(outputs, dtype=np.int64)


def found(program: Program) -> list[Loop]:
    """Return the chains of a program."""
    return find_chains(program, *ends(program))


def run_loop(loop: Loop, values: dict[int, Any], number: Callable[[int], Any]) -> None:
    """Run a loop; `number` gives the value of a node from before it, `values` gets those of its results."""
    body = loop.body
    history: list[list[Any]] = []
    for k in range(loop.count):
        slots = [number(int(reads[k])) if is_nodes(reads) else float(reads[k]) for reads in loop.reads]
        for carry in loop.carries:
            lag = len(carry.initial)
            slots.append(number(int(carry.initial[k])) if k < lag else history[k - lag][carry.output])
        rows = [output.rows[0] for output in body.outputs]
        history.append(evaluate(body, rows, dict(enumerate(slots))))
    for result in loop.results:
        column = [values_of_repetition[result.output] for values_of_repetition in history]
        if result.kind == "each":
            values |= dict(zip(result.nodes.tolist(), column, strict=True))
        else:
            assert any(carry.output == result.output and len(carry.initial) == 1 for carry in loop.carries)
            values[int(result.nodes[0])] = column[-1]


def repeats(program: Program, node: int) -> bool:
    """Whether a node may be computed twice: a truth value, or 1 / v."""
    return issubclass(program.heads[node], Boolean) or is_inverse(program, node)


def is_inverse(rows: Program, node: int) -> bool:
    """Whether a node is 1 / v."""
    return rows.heads[node] is sp.Pow and rows.atoms.get(rows.operands[node][1]) is sp.S.NegativeOne


def rounds_twice(program: Program, loop: Loop) -> bool:
    """Whether 1 / v is an output: who multiplies it later has two roundings, and straight lines, u / v, have one."""
    return any(is_inverse(program, node) for result in loop.results for node in result.nodes.tolist())


def check(program: Program, loops: Sequence[Loop], seed: int = 0) -> float:
    """Compare outputs with and without loops, bit by bit; return which part of all operations is in loops.

    No operation may be computed in a loop and in straight lines too, and every one of a body is needed.
    """
    for loop in loops:
        check_needed(loop.body)
    inputs, outputs = ends(program)
    points = np.random.default_rng(seed).uniform(0.3, 0.9, len(inputs)).tolist()
    expected = evaluate(program, outputs.tolist(), dict(zip(inputs.tolist(), points, strict=True)))
    values = dict(zip(inputs.tolist(), points, strict=True))

    def number(node: int) -> Any:
        return evaluate(program, [node], values)[0]

    for loop in loops:
        run_loop(loop, values, number)
    got = [number(int(node)) for node in outputs]
    if any(rounds_twice(program, loop) for loop in loops):
        assert np.allclose(got, expected, rtol=1e-6, atol=1e-9, equal_nan=True)
    else:
        assert np.array_equal(np.array(got), np.array(expected), equal_nan=True)
    results = {node for loop in loops for result in loop.results for node in result.nodes.tolist()}
    straight = sum(1 for node in values.keys() - results if program.operands[node] and not repeats(program, node))
    repeated = sum(loop.count * len(loop.example) for loop in loops)
    total = sum(1 for row in reachable(program, outputs.tolist()) if program.operands[row])
    assert straight + repeated <= total
    return repeated / max(total, 1)


def counts(loops: list[Loop]) -> list[tuple[int, int, int]]:
    """Count, operations and carries."""
    return [(loop.count, len(loop.example), len(loop.carries)) for loop in loops]


def rows_of(function: Any, *arguments: Any) -> tuple[Program, list[Loop]]:
    """Return straight lines and the loops in them, that were compared with each other."""
    program = flat(function, *arguments)
    loops = found(program)
    check(program, loops)
    return program, loops
