"""Candidate programs of a plan beside straight lines: loops, and a sweep over columns.

Loops are found in the trace of the innermost function, or written down. Each transform around the function, from the
inside out, differentiates the rolled program: a body is differentiated once, and nothing grows with the number of
repetitions. A `StraightError` says why there are no loops. A sweep is a dense matrix as its columns, each one
pushforward, several side by side.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import replace
from inspect import Parameter, Signature
from typing import Any

import numpy as np

import symad.tracing.values.containers as containers
import symad.tracing.values.node_builders as op
from codegen.ir.program import Program, operations_of
from codegen.ir.region import RolledProgram, regions_of
from codegen.loops.find.plain_rows import PlainRows, plain_rows
from codegen.loops.find.repeated_regions import with_nests
from codegen.loops.loop import Loop, RolledBlock, StraightError
from codegen.loops.optimise.draft import select
from codegen.loops.optimise.unrolled_sums import with_unrolled_sums
from codegen.loops.place.buffers import Arrays
from codegen.loops.roll import FEWEST_ROWS, repeats_enough, roll_rows, with_loops
from codegen.records import dataclass
from symad.derivatives.in_code import MatrixColumns, TransformRecord, transform_of
from symad.derivatives.loops.checkpoints import Checkpoints
from symad.derivatives.loops.kinds import KINDS, restricted
from symad.derivatives.loops.pullback import EndlessLoopError
from symad.derivatives.selection import positions_of
from symad.tracing.calling.function_names import argument_names
from symad.tracing.calling.recorded_errors import discarding_recorded_errors
from symad.tracing.calling.scope import Scope
from symad.tracing.calling.user_place import user_place, written_place
from symad.tracing.control.array_loops import LARGE, ArrayLoops
from symad.tracing.control.derivative_blocks import Differentiation, Inner
from symad.tracing.control.paths import MAX_PATHS
from symad.tracing.trace import (
    StructuredTrace,
    Trace,
    input_arrays,
    patterns_of,
    skeleton,
    to_program,
    trace,
    trace_structured,
)
from symad.tracing.values.node_trees import Tree
from symad.tracing.values.sparse_matrix import SparseMatrix

Function = Callable[..., Any]
RAISES = "it raises an error on one of its paths: its derivatives are NaN there, and those of the loops would be 0"
MATRICES = ("Jacobian", "Hessian")
PRODUCTS = 1024  # terms of a product of matrices from which on a Hessian or Jacobian is taken of it as a whole
FEW_BODIES = 4  # loops over large arrays whose matrices of derivatives are taken
WRITTEN_OUT = 1 << 16  # operations of a function whose rounds are found: each takes some 10 microseconds to find
MANY_LOOPS = 64  # one after the other, of which it is told why they are no nest
RULES = "a custom or implicit derivative belongs to one node, and not to a loop"


@dataclass(frozen=True, eq=False)
class Primal:
    """The innermost function: its trace, the rows that it needs, and the loops between them."""

    traced: StructuredTrace
    rows: PlainRows
    loops: Sequence[Loop]
    program: RolledProgram
    notes: tuple[str, ...] = ()
    domain: RolledProgram | None = None  # a factor of the derivatives, NaN where the function has no value

    @property
    def operations(self) -> int:
        """Operations traced, in straight lines and in the bodies of loops that were written down."""
        return self.rows.operations + sum(map(written_operations, self.traced.loops))


@dataclass(frozen=True, eq=False)
class Rolled:
    """A rolled program, and its result with 0.0 or a SparseMatrix for each array."""

    program: RolledProgram
    result: Any
    primal: Primal
    checkpoints: Checkpoints = "all"


def written_operations(loop: Loop) -> int:
    """Return the operations in the body of a loop that was written down."""
    return loop.program.operations if isinstance(loop, RolledBlock) else operations_of(loop.body)


def unrolled_lines(traced: Trace) -> list[str]:
    """Return a sentence for each loop that was written down and is carried out repetition by repetition."""
    places = traced.carried_out if isinstance(traced, StructuredTrace) else {}
    return [
        f"the loop at {place.rpartition('/')[2]} is carried out repetition by repetition: {reason}"
        for place, reason in places.items()
    ]


def transforms_of(f: Function) -> tuple[Function, list[TransformRecord]]:
    """Return the function below all transforms, and the transforms, the innermost first."""
    recipes: list[TransformRecord] = []
    while (recipe := transform_of(f)) is not None:
        recipes.append(recipe)
        f = recipe.function
    return f, recipes[::-1]


def traced_with_loops(
    f: Function,
    args: tuple[Any, ...],
    max_paths: int = MAX_PATHS,
    checkpoints: Checkpoints = "all",
    *,
    arrays: bool = True,
    at_once: bool = True,
    matrix: bool = False,
) -> StructuredTrace:
    """Return the trace of a function with its loops, and with the derivatives of loops that are taken in its code.

    With `arrays`, operations on large arrays are loops too; with `at_once`, also those on smaller evenly spaced
    arguments; for a `matrix` of derivatives, also smaller products of matrices.
    """
    writers: list[ArrayLoops] = []

    def writer(scope: Scope) -> ArrayLoops:
        writers.append(ArrayLoops(scope, at_once=at_once, products=PRODUCTS if matrix else LARGE))
        return writers[0]

    def differentiate(inner: Inner, kind: str, **options: Any) -> tuple[RolledProgram, Sequence[Loop]] | None:
        try:
            with discarding_recorded_errors():
                return _differentiated(inner, kind, checkpoints, options)
        except (StraightError, EndlessLoopError) as reason:
            if inner.loops:
                why = f"the {kind} of {inner.name} is not taken of loops: {reason}"
                inner.scope.carried_out[user_place()] = why
            return None

    traced = trace_structured(
        f, *args, max_paths=max_paths, differentiate=Differentiation(differentiate), arrays=writer if arrays else None
    )
    traced.of_arrays = any(writer.written_down for writer in writers)
    traced.of_small_arrays = any(writer.small for writer in writers)
    return traced


def _differentiated(
    inner: Inner, kind: str, checkpoints: Checkpoints, options: dict[str, Any]
) -> tuple[RolledProgram, Sequence[Loop]]:
    """Return a derivative that is taken in the code of a function, and the loops of the differentiated function."""
    if inner.has_rules:
        raise StraightError(RULES)
    if inner.scope.raises:
        raise StraightError(RAISES)
    if inner.size < FEWEST_ROWS and not inner.loops:
        raise StraightError("it is too small for loops")
    inputs = Tree(containers.flatten((0,) * len(inner.leaves))[1], inner.leaves)
    names = [f"x{k}" for k in range(len(inner.leaves))]
    primal = primal_of(
        StructuredTrace(Trace(inner.graph, names, inputs, inner.result), inner.loops, {}), inner.name, False
    )
    if kind in MATRICES:
        options = options | {"columns": inner.of_arrays and not few_bodies(primal.program)}
    program = KINDS[kind](primal.program, range(len(inner.parameters.arrays)), checkpoints, **options)
    if program is None:
        raise StraightError(f"its {kind} is not taken of loops in this form")
    if not inner.loops and not repeats_enough(program):
        raise StraightError("little is repeated in it")
    return program, primal.loops


def few_bodies(program: RolledProgram) -> bool:
    """Return whether a program is a few loops one after the other, whose matrices of derivatives keep their pattern.

    The matrices of others, which are operations on large arrays, are computed column by column.
    """
    regions = list(regions_of(program.steps))
    return len(regions) <= FEW_BODIES and not any(counts for _, counts in regions)


def in_rounds(program: RolledProgram) -> bool:
    """Return whether loops repeat in rounds, such as time steps on a small grid, so that writing out all rows is
    better.

    These become one long body whose numbers stay in registers: up to three times as quick to call.
    """
    return program.executed < WRITTEN_OUT and any(counts for _, counts in regions_of(program.steps))


def primal_of(traced: StructuredTrace, name: str, differentiated: bool) -> Primal:
    """Return the loops of a trace and its rolled program; StraightError where nothing repeats."""
    if differentiated and traced.graph.rules:
        raise StraightError(RULES)
    everywhere = not differentiated or (traced.raised is None and not traced.in_body)
    source = traced if everywhere else _with_factor(traced)
    rows = plain_rows(traced.graph, source.inputs.nodes, source.outputs.nodes, source.loops)
    written = [with_loops(rows.loop(loop)) for loop in source.loops]
    loops, program = roll_rows(rows, _arrays(source, rows), written, lambda row: _line(traced, rows, row), name)
    before, program = program, with_nests(program)
    notes = _repeated(before, program)
    *values, last = range(len(program.outputs))
    domain = None if everywhere else select(program, [last], {})
    if domain is not None:
        program = select(program, values, {})
    elif len(traced.loops) > 1 or any(isinstance(loop, RolledBlock) for loop in traced.loops):
        program = select(program, [*values, last], {})  # this fuses loops and removes dead code
        program = select(with_unrolled_sums(program), [*values, last], {})
    return Primal(traced, rows, loops, program, notes, domain)


def _repeated(program: RolledProgram, nested: RolledProgram) -> tuple[str, ...]:
    """Return a sentence on many loops one after the other, the result of Python loops around arrays."""
    before, after = (sum(1 for _ in regions_of(version.steps)) for version in (program, nested))
    if after < before:
        return (f"{before} loops one after the other repeat in rounds: {after} are compiled",)
    return (f"{before} loops one after the other, which do not repeat evenly",) if before >= MANY_LOOPS else ()


def _with_factor(traced: StructuredTrace) -> StructuredTrace:
    """Return a trace with any numbers outside the domain of a function, and with a last output: NaN there, elsewhere 1.

    StraightError where the body of a loop has no value for some repetitions.
    """
    if traced.in_body or traced.raised is None:
        raise StraightError(RAISES)
    graph, factored = traced.graph, copy(traced)
    factor = op.select(graph, traced.raised, graph.number(math.nan), graph.number(1.0))
    structure = containers.flatten((skeleton(traced), 0.0))[1]
    factored.outputs = Tree(structure, [*traced.whole.arrays, np.array(factor)])
    return factored


def _arrays(traced: StructuredTrace, rows: PlainRows) -> Arrays:
    inputs = zip(input_arrays(traced), traced.inputs.arrays, strict=True)
    outputs = zip(traced.outputs.arrays, patterns_of(traced), strict=True)
    return Arrays(
        [(array.name, rows.rows_of(nodes)) for array, nodes in inputs],
        [(rows.rows_of(nodes), pattern) for nodes, pattern in outputs],
    )


def _line(traced: StructuredTrace, plain: PlainRows, row: int) -> tuple[str, int] | None:
    node = plain.node_of(row)
    file, _, line = ("", "", "") if node is None else written_place(traced.graph, node).rpartition(":")
    return (file, int(line)) if file else None


def differentiated_loops(
    primal: Primal, args: tuple[Any, ...], recipes: Sequence[TransformRecord], checkpoints: Checkpoints = "all"
) -> Rolled:
    """Apply transforms, the innermost first; StraightError for one that rolled programs do not have."""
    rolled = Rolled(primal.program, skeleton(primal.traced), primal, checkpoints)
    for recipe in recipes:
        transformed = _RESULTS[recipe.transform](rolled, args, recipe)
        if transformed is None:
            raise StraightError(f"its {recipe.transform} is not taken of loops in this form")
        rolled = transformed
    return rolled if primal.domain is None else replace(rolled, program=restricted(rolled.program, primal.domain))


def _leaves(args: tuple[Any, ...], position: int) -> range:
    """Return the numbers of the input arrays of an argument."""
    before = sum(len(containers.flatten(arg)[0]) for arg in args[:position])
    return range(before, before + len(containers.flatten(args[position])[0]))


def _empty(value: Any) -> Any:
    """Return a container with 0.0 for each array."""
    leaves, structure = containers.flatten(value)
    return containers.unflatten(structure, [0.0] * len(leaves))


def _gradient(rolled: Rolled, args: tuple[Any, ...], recipe: TransformRecord) -> Rolled | None:
    positions = positions_of(recipe.argnums, len(args))
    active = [leaf for position in positions for leaf in _leaves(args, position)]
    both = recipe.transform == "value and gradient"
    program = KINDS["gradient"](rolled.program, active, rolled.checkpoints, value=both)
    if program is None:
        return None
    parts = tuple(_empty(args[position]) for position in positions)
    result = parts if isinstance(recipe.argnums, tuple) else parts[0]
    return replace(rolled, program=program, result=(rolled.result, result) if both else result)


def _derivative(rolled: Rolled, args: tuple[Any, ...], recipe: TransformRecord) -> Rolled | None:
    program = KINDS["derivative"](rolled.program, [0], rolled.checkpoints)
    return None if program is None else replace(rolled, program=program)


def _matrix(rolled: Rolled, args: tuple[Any, ...], recipe: TransformRecord) -> Rolled | None:
    """The Hessian or Jacobian of one array in one array."""
    if isinstance(recipe.argnums, tuple) or not isinstance(rolled.result, float):
        return None
    active = _leaves(args, positions_of(recipe.argnums, len(args))[0])
    columns = rolled.primal.traced.of_arrays and not few_bodies(rolled.program)
    program = KINDS[recipe.transform](
        rolled.program, active, rolled.checkpoints, sparse=recipe.sparse, format=recipe.format, columns=columns
    )
    if program is None:
        return None
    pattern = program.outputs[0].pattern
    return replace(rolled, program=program, result=0.0 if pattern is None else SparseMatrix(0.0, pattern))


_RESULTS: dict[str, Callable[[Rolled, tuple[Any, ...], TransformRecord], Rolled | None]] = {
    "value and gradient": _gradient,
    "gradient": _gradient,
    "derivative": _derivative,
    "Jacobian": _matrix,
    "Hessian": _matrix,
}


def columns_of(f: Function, args: tuple[Any, ...]) -> int | None:
    """Return how many columns a transform has, None for a function without columns of one array.

    >>> import numpy as np
    >>> from symad.transforms.first_order import hessian
    >>> columns_of(hessian(lambda x: np.prod(x)), (np.ones(4),))
    4
    """
    columns = _columns(f, args)
    return None if columns is None else np.size(args[columns.argument])


def seeded_program(f: Function, args: tuple[Any, ...], max_paths: int) -> Program | None:
    """Return a function's matrix as a sweep over its columns, None where f is not a transform with columns.

    >>> import numpy as np
    >>> from symad.transforms.first_order import hessian
    >>> program = seeded_program(hessian(lambda x: np.prod(x)), (np.ones(4),), 10)
    >>> program.seeded, program.outputs[0].shape
    (True, (4, 4))
    """
    columns = _columns(f, args)
    if columns is None:
        return None
    function, examples = _seeded(f, columns, args)
    traced = trace(function, *examples, max_paths=max_paths, freeze=True)
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


def _columns(f: Function, args: tuple[Any, ...]) -> MatrixColumns | None:
    """Return the columns of a transform's matrix of one array, None if it has none."""
    recipe = transform_of(f)
    columns = None if recipe is None else recipe.columns
    is_array = columns and isinstance(dict(enumerate(args)).get(columns.argument), np.ndarray | float)
    return columns if is_array else None


def _seeded(f: Function, columns: MatrixColumns, args: tuple[Any, ...]) -> tuple[Function, tuple[Any, ...]]:
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
