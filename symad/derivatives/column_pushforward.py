"""Columns: a Jacobian or Hessian as its pushforward along one column, for kernels that sweep over the columns.

A transform that returns a dense matrix leaves here how one of its columns is computed; `native.compile` weighs a sweep
(`codegen.emission.sweep`) against straight-line code of all entries.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from inspect import Parameter, Signature
from typing import Any

import numpy as np
import sympy as sp

from codegen.ir.cost import vector_operation
from codegen.ir.program import Program
from symad.derivatives.recipe import note_on, noted
from symad.tracing.calling.function_names import argument_names

Function = Callable[..., Any]

CLEARLY = 2.0  # a matrix by forward columns may cost this many times less by other ways, hardly more


@dataclass(frozen=True)
class Columns:
    """How one column of a matrix is computed: `pushforward(args, seed)`, the seed shaped as argument `argument`."""

    pushforward: Callable[[tuple[Any, ...], Any], Any]
    argument: int

    def seeded(self, f: Function, args: tuple[Any, ...]) -> tuple[Function, tuple[Any, ...]] | None:
        """Return a function of the arguments and a seed, with examples; None unless the argument is one array."""
        if self.argument >= len(args) or not isinstance(args[self.argument], np.ndarray | float):
            return None
        names = argument_names(f, len(args))
        seed = next(name for name in ("seed", "seed_", "seed__") if name not in names)

        def function(*all_args: Any) -> Any:
            return self.pushforward(all_args[:-1], all_args[-1])

        function.__signature__ = Signature(  # type: ignore[attr-defined]
            [Parameter(name, Parameter.POSITIONAL_OR_KEYWORD) for name in (*names, seed)]
        )
        function.__name__ = getattr(f, "__name__", "kernel")
        return function, (*args, np.zeros(np.shape(args[self.argument])))


def with_columns(transformed: Function, columns: Columns) -> Function:
    """Return a transform's function with its columns noted on it."""
    return noted(transformed, "__columns__", columns)


def columns_of(f: Function) -> Columns | None:
    """Return the columns that a transform noted on a function, None for any other function."""
    found = note_on(f, "__columns__")
    return found if isinstance(found, Columns) else None


@dataclass(frozen=True)
class SweepCost:
    """Operations of a sweep: once, and for each block of so many lanes; `straight` is the same sweep written out."""

    once: int
    columns: int
    blocks: int
    lanes: int
    straight: int

    @property
    def sweep(self) -> int:
        """Cost of the sweep in scalar operations."""
        return self.once + round(vector_operation(self.lanes) * self.blocks * self.columns)


def sweep_cost(program: Program, lanes: int) -> SweepCost:
    """Count the operations of a seeded program, and how many are left when every column is written out.

    A column's operations are those that its unit vector reaches: each row carries a bit for every column.
    """
    columns, start = program.inputs[-1].size, program.input_count - program.inputs[-1].size
    reached, full = [0] * len(program), (1 << columns) - 1
    once = linear = straight = 0
    for row, operands in enumerate(program.operands):
        if start <= row < start + columns:
            reached[row] = 1 << (row - start)
        elif operands:
            mask = 0
            for operand in operands:
                mask |= reached[operand]
            reached[row] = mask
            once += not mask
            linear += bool(mask) + (mask not in (0, full) and _needs_guard(program, row, reached))
            straight += mask.bit_count()
    return SweepCost(once, linear, -(-columns // lanes), lanes, once + straight)


def _needs_guard(program: Program, row: int, reached: list[int]) -> bool:
    """Whether a product is guarded (see `codegen.lowering.guards`): its coefficient is no constant."""
    if program.heads[row] is not sp.Mul:
        return False
    return any(not reached[u] and u not in program.atoms for u in program.operands[row])
