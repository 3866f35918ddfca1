"""Strategy: whether a dense matrix is compiled as straight-line code of its entries, or as a sweep over its columns.

Source of the cost model: operations are counted on both programs before anything is compiled. An operation on a vector
register of 512 bits costs about two scalar ones, of 256 bits one (0.4 ns and 0.2 ns on an AVX-512 machine).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal

from codegen.ir.program import Program
from codegen.lowering.halves import columns_at_once
from symad.derivatives.choice import record
from symad.derivatives.column_pushforward import CLEARLY, SweepCost, columns_of, sweep_cost
from symad.errors import ArgumentError, WorkbenchError
from symad.tracing.to_program import to_program
from symad.tracing.trace import Trace, trace

Strategy = Literal["auto", "straight", "sweep"]
FEWEST_COLUMNS = 4  # a sweep over fewer columns saves nothing


def seeded_program(f: Callable[..., Any], args: tuple[Any, ...], max_paths: int) -> Program | None:
    """Return a function's matrix as a sweep over its columns, None where f is not a transform with columns.

    >>> import numpy as np
    >>> from symad.transforms.first_order import hessian
    >>> program = seeded_program(hessian(lambda x: np.prod(x)), (np.ones(4),), 10)
    >>> program.seeded, program.outputs[0].shape
    (True, (4, 4))
    """
    columns = columns_of(f)
    found = columns.seeded(f, args) if columns is not None else None
    if found is None:
        return None
    function, examples = found
    traced = trace(function, *examples, max_paths=max_paths)
    if len(traced.outputs.arrays) != 1 or len(traced.inputs.arrays) != len(examples):
        return None
    program = to_program(traced, getattr(f, "__name__", "kernel"))
    seed, output = program.inputs[-1], program.outputs[0]
    positions = range(len(output.rows)) if output.positions is None else output.positions
    swept = replace(
        output,
        shape=output.shape + seed.shape,
        positions=tuple(position * seed.size for position in positions),
        swept=True,
    )
    return replace(program, outputs=(swept,), seeded=True)


def choose(
    f: Callable[..., Any], args: tuple[Any, ...], strategy: Strategy, max_paths: int, sweep: Program | None = None
) -> Trace | Program:
    """Return the trace of a function or, where that is the cheaper kernel, its matrix as a sweep over columns.

    `sweep` is what `seeded_program` returned, where it was called already. `choices` shows what "auto" chose, and the
    operations. ArgumentError for strategy="sweep" of a function that is not a dense Hessian or Jacobian of one array.
    """
    if strategy not in ("auto", "straight", "sweep"):
        raise ArgumentError(f"strategy={strategy!r}", do="use one of auto, straight, sweep")
    program = sweep
    if program is None and strategy != "straight":
        program = _seeded_or_none(f, args, strategy, max_paths)
    if program is None or (strategy == "auto" and program.inputs[-1].size < FEWEST_COLUMNS):
        if strategy == "sweep":
            raise ArgumentError(
                'strategy="sweep"',
                why="only a dense Hessian or Jacobian with respect to one array has columns to sweep over",
                do='compile hessian(f) or jacobian(f) of one array, or use strategy="auto"',
            )
        return trace(f, *args, max_paths=max_paths)
    cost = sweep_cost(program, columns_at_once(program))
    tall = len(program.outputs[0].rows) >= program.inputs[-1].size  # else reverse mode may cost far less
    if strategy == "sweep" or (tall and CLEARLY * cost.sweep < cost.straight):
        _record(f, "sweep", cost, cost.straight)
        return program
    traced = trace(f, *args, max_paths=max_paths)
    straight = traced.count_ops() if cost.sweep < cost.straight else 0
    chosen = "sweep" if cost.sweep < straight else "straight"
    _record(f, chosen, cost, straight or cost.straight)
    return program if chosen == "sweep" else traced


def _seeded_or_none(f: Callable[..., Any], args: tuple[Any, ...], strategy: Strategy, max_paths: int) -> Program | None:
    """Return the sweep; None where "auto" finds that forward over reverse mode cannot be traced, as other modes may."""
    try:
        return seeded_program(f, args, max_paths)
    except WorkbenchError:
        if strategy == "sweep":
            raise
        return None


def cost_of(program: Program) -> SweepCost:
    """Return what a sweep costs on this machine, in scalar operations."""
    return sweep_cost(program, columns_at_once(program))


def _record(f: Callable[..., Any], chosen: str, cost: SweepCost, straight: int) -> None:
    what = f"kernel of {getattr(f, '__name__', 'a function')}"
    record(what, chosen, {"sweep": cost.sweep, "straight": straight})
