"""The candidate that sweeps: a dense matrix as its columns, each one pushforward, several side by side."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from inspect import Parameter, Signature
from typing import Any

import numpy as np

from codegen.ir.program import Program
from symad.derivatives.in_code import Columns, recipe_of
from symad.tracing.calling.function_names import argument_names
from symad.tracing.trace import to_program, trace

Function = Callable[..., Any]


def seeded_program(f: Function, args: tuple[Any, ...], max_paths: int) -> Program | None:
    """Return a function's matrix as a sweep over its columns, None where f is not a transform with columns.

    >>> import numpy as np
    >>> from symad.transforms.first_order import hessian
    >>> program = seeded_program(hessian(lambda x: np.prod(x)), (np.ones(4),), 10)
    >>> program.seeded, program.outputs[0].shape
    (True, (4, 4))
    """
    recipe = recipe_of(f)
    if recipe is None or recipe.columns is None or not _is_array(args, recipe.columns.argument):
        return None
    function, examples = _seeded(f, recipe.columns, args)
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


def _is_array(args: tuple[Any, ...], argument: int) -> bool:
    return argument < len(args) and isinstance(args[argument], np.ndarray | float)


def _seeded(f: Function, columns: Columns, args: tuple[Any, ...]) -> tuple[Function, tuple[Any, ...]]:
    """Return a function of the arguments and a seed, with examples."""
    names = argument_names(f, len(args))
    seed = next(name for name in ("seed", "seed_", "seed__") if name not in names)

    def function(*all_args: Any) -> Any:
        return columns.pushforward(all_args[:-1], all_args[-1])

    function.__signature__ = Signature(  # type: ignore[attr-defined]
        [Parameter(name, Parameter.POSITIONAL_OR_KEYWORD) for name in (*names, seed)]
    )
    function.__name__ = getattr(f, "__name__", "kernel")
    return function, (*args, np.zeros(np.shape(args[columns.argument])))
