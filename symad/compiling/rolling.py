"""Rolling: from a function to a rolled program, with loops found by themselves or written down, if that is cheaper.

The innermost function is traced, its loops are found and placed; then each transform around it, from the inside out,
differentiates the rolled program. So a body is differentiated once, and nothing grows with the number of repetitions.
What has no loops, or is too small for them, is left to straight-line code.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import symad.tracing.values.containers as containers
from codegen.ir.loop_cost import CALL, OPERATION, rolled_nanoseconds, straight_nanoseconds
from codegen.ir.program import Program, Rows
from codegen.ir.region import RolledProgram
from codegen.loops.find.agreement import agree
from codegen.loops.find.find import find
from codegen.loops.find.long_bodies import with_loops
from codegen.loops.find.plain_rows import PlainRows, plain_rows
from codegen.loops.loop import Block, Loop
from codegen.loops.place.buffers import Arrays
from codegen.loops.place.place_nodes import place
from symad.compiling.strategy import cost_of, seeded_program
from symad.derivatives.choice import record
from symad.derivatives.column_pushforward import columns_of
from symad.derivatives.loops.checkpoints import Checkpoints, check_checkpoints
from symad.derivatives.loops.kinds import KINDS, matrix
from symad.derivatives.loops.pullback import gradient
from symad.derivatives.loops.pushforward import pushforward
from symad.derivatives.loops.select_arrays import select
from symad.derivatives.recipe import Recipe, recipe_of
from symad.derivatives.selection import positions_of
from symad.errors import ArgumentError, WorkbenchError
from symad.tracing.calling.function_names import name_of
from symad.tracing.calling.user_place import user_place, written_at, written_place
from symad.tracing.control.derivative_blocks import Differentiation, Inner
from symad.tracing.control.paths import MAX_PATHS
from symad.tracing.to_program import input_arrays, patterns_of, skeleton
from symad.tracing.trace import StructuredTrace, Trace, trace_structured
from symad.tracing.values.node_trees import Tree
from symad.tracing.values.sparse_matrix import SparseMatrix

Roll = Literal["auto", "never", "always"]
Function = Callable[..., Any]
FEWEST_ROWS = 128  # a primal of fewer operations has no loops worth their while
LARGEST_SWEEP = 5000  # operations of a function whose matrix may be swept column by column
AS_FAST = 1.1
RULES = "a custom or implicit derivative belongs to one node, and not to a loop"
FEWEST_COPIES = 8  # operations carried out for one that is written


@dataclass(frozen=True, eq=False)
class Primal:
    """The innermost function: its trace, the rows of it that are needed, and the loops between them."""

    traced: StructuredTrace
    rows: PlainRows
    loops: Sequence[Loop]
    program: RolledProgram

    @property
    def operations(self) -> int:
        """Operations traced, in straight lines and in the bodies of loops that were written down."""
        return operations_of(self.rows) + sum(map(_written_operations, self.traced.loops))


@dataclass(frozen=True, eq=False)
class Rolled:
    """A rolled program, and its result with 0.0 or a SparseMatrix for each array."""

    program: RolledProgram
    result: Any
    primal: Primal
    checkpoints: Checkpoints = "all"


def rolled(
    f: Function, args: tuple[Any, ...], roll: Roll, max_paths: int = MAX_PATHS, checkpoints: Checkpoints = "all"
) -> Rolled | Trace | Program | None:
    """Return a function as a rolled program, or what is known of it where it is not to be one.

    That is its trace, its matrix as a sweep over columns (see `symad.compiling.strategy`), or nothing.

    `checkpoints` says what reverse mode keeps of chains (see `symad.derivatives.loops.checkpoints`). ArgumentError for
    roll="always" of a function that cannot be rolled, with the reason. `choices` shows what "auto" chose.
    """
    check_checkpoints(checkpoints)
    if roll not in ("auto", "never", "always"):
        raise ArgumentError(f"roll={roll!r}", do="use one of auto, never, always")
    if roll == "never":
        return None
    base, recipes = taken_apart(f)
    traced = traced_with_loops(base, args, max_paths, checkpoints)
    straight = None if recipes or traced.loops or columns_of(f) is not None else traced
    try:
        found = differentiated_loops(primal_of(traced, name_of(f), bool(recipes)), args, recipes, checkpoints)
    except StraightError as reason:
        if roll == "auto":
            return straight
        option = 'roll="always"' if checkpoints == "all" else f'checkpoints="{checkpoints}"'
        do = "leave the option out, or write the loop down, with one body for all repetitions"
        why = "; ".join([str(reason), *unrolled_lines(traced)])
        raise ArgumentError(f"{option} of {name_of(f)}", where=written_at(base), why=why, do=do) from None
    operations = {"executed": found.program.executed, "in bodies": found.program.operations}
    swept = _cheaper_sweep(f, args, found, max_paths) if roll == "auto" and worth_it(found) else None
    kept = roll == "always" or (swept is None and worth_it(found))
    record(f"loops of {name_of(f)}", "rolled" if kept else "straight", operations)
    return found if kept else swept or straight


def worth_it(found: Rolled) -> bool:
    """Whether loops are expected to be about as fast as straight lines, at least, with much less to compile.

    Where no transform was applied to the loops, the straight lines are there to be counted.
    """
    program, written = found.program, found.primal.traced.loops
    if program.executed < FEWEST_COPIES * program.operations:
        return False
    known = program is found.primal.program and not written
    straight = straight_nanoseconds(program, found.primal.operations if known else 0)
    return CALL + rolled_nanoseconds(program) <= AS_FAST * (CALL + straight)


def _cheaper_sweep(f: Function, args: tuple[Any, ...], found: Rolled, max_paths: int) -> Program | None:
    """Return a dense matrix by columns of straight lines, if that costs less (see `symad.compiling.strategy`)."""
    if found.primal.operations > LARGEST_SWEEP:
        return None
    try:
        program = seeded_program(f, args, max_paths)
    except WorkbenchError:
        return None
    if program is None or OPERATION * cost_of(program).sweep >= rolled_nanoseconds(found.program):
        return None
    return program


def _written_operations(loop: Loop) -> int:
    return loop.program.operations if isinstance(loop, Block) else operations_of(loop.body)


def operations_of(rows: Rows) -> int:
    """Return how many rows are operations."""
    return sum(map(bool, rows.operands))


def counted(number: int, what: str) -> str:
    """Return a number with its noun.

    >>> counted(1, "loop"), counted(2, "loop")
    ('1 loop', '2 loops')
    """
    return f"{number} {what}{'s'[: number != 1]}"


class StraightError(Exception):
    """Why a function stays in straight lines."""


def unrolled_lines(traced: StructuredTrace) -> list[str]:
    """Return a sentence for each loop that was written down and is carried out repetition by repetition."""
    return [
        f"the loop at {place.rpartition('/')[2]} is carried out repetition by repetition: {reason}"
        for place, reason in traced.carried_out.items()
    ]


def taken_apart(f: Function) -> tuple[Function, list[Recipe]]:
    """Return the function below all transforms, and the transforms, the innermost first."""
    recipes: list[Recipe] = []
    while (recipe := recipe_of(f)) is not None:
        recipes.append(recipe)
        f = recipe.function
    return f, recipes[::-1]


def traced_with_loops(
    f: Function, args: tuple[Any, ...], max_paths: int = MAX_PATHS, checkpoints: Checkpoints = "all"
) -> StructuredTrace:
    """Return the trace of a function with its loops, and with the derivatives of loops that are taken in its code."""

    def differentiate(inner: Inner, kind: str, **options: Any) -> tuple[RolledProgram, Sequence[Loop]] | None:
        try:
            return _differentiated(inner, kind, checkpoints, options)
        except (StraightError, ArgumentError) as reason:
            if inner.loops:
                why = f"the {kind} of {inner.name} is not taken of loops: {reason}"
                inner.scope.carried_out[user_place()] = why
            return None

    return trace_structured(f, *args, max_paths=max_paths, differentiate=Differentiation(differentiate))


def _differentiated(
    inner: Inner, kind: str, checkpoints: Checkpoints, options: dict[str, Any]
) -> tuple[RolledProgram, Sequence[Loop]]:
    """Return a derivative that is taken in the code of a function, and the loops of what is differentiated."""
    if inner.has_rules:
        raise StraightError(RULES)
    if inner.size < FEWEST_ROWS and not inner.loops:
        raise StraightError("it is too small for loops")
    inputs = Tree(containers.flatten((0,) * len(inner.leaves))[1], inner.leaves)
    names = [f"x{k}" for k in range(len(inner.leaves))]
    primal = primal_of(
        StructuredTrace(Trace(inner.graph, names, inputs, inner.result), inner.loops, {}), inner.name, False
    )
    program = KINDS[kind](primal.program, len(inner.parameters.arrays), checkpoints, **options)
    if program is None:
        raise StraightError(f"its {kind} is not taken of loops in this form")
    if not inner.loops and program.executed < FEWEST_COPIES * program.operations:
        raise StraightError("little is repeated in it")
    return program, primal.loops


def primal_of(traced: StructuredTrace, name: str, differentiated: bool) -> Primal:
    """Return the loops of a trace and its rolled program; StraightError where nothing repeats."""
    graph = traced.graph
    if differentiated and graph.rules:
        raise StraightError(RULES)
    inputs, outputs = (tree.nodes for tree in (traced.inputs, traced.outputs))
    rows = plain_rows(graph, inputs, outputs, traced.loops)
    if len(rows.heads) < FEWEST_ROWS and not traced.loops:
        raise StraightError(f"too few operations for loops ({operations_of(rows)})")
    written = [with_loops(rows.loop(loop)) for loop in traced.loops]
    found = find(rows, rows.row_of[inputs], rows.row_of[outputs], written, lambda row: _line(traced, rows, row))
    if not found.loops:
        raise StraightError("nothing is repeated in it")
    arrays = _arrays(traced, rows)
    program = place(rows, arrays, found.loops, found.sums, name)
    if any(isinstance(loop, Block) for loop in traced.loops):
        program = select(program, range(len(program.outputs)), {})  # not all that blocks compute is needed
    if not traced.loops and not agree(program, rows, arrays):
        raise StraightError("the loops found did not give the values of the straight lines at a random point")
    return Primal(traced, rows, found.loops, program)


def _arrays(traced: StructuredTrace, rows: PlainRows) -> Arrays:
    inputs = zip(input_arrays(traced), traced.inputs.arrays, strict=True)
    outputs = zip(traced.outputs.arrays, patterns_of(traced), strict=True)
    return Arrays(
        [(array.name, rows.row_of[nodes]) for array, nodes in inputs],
        [(rows.row_of[nodes], pattern) for nodes, pattern in outputs],
    )


def _line(traced: StructuredTrace, plain: PlainRows, row: int) -> tuple[str, int] | None:
    place = written_place(traced.graph, int(plain.node_of[row])) if row < len(plain.node_of) else ""
    file, _, line = place.rpartition(":")
    return (file, int(line)) if file else None


def differentiated_loops(
    primal: Primal, args: tuple[Any, ...], recipes: Sequence[Recipe], checkpoints: Checkpoints = "all"
) -> Rolled:
    """Apply transforms, the innermost first; StraightError for one that rolled programs do not have."""
    found = Rolled(primal.program, skeleton(primal.traced), primal, checkpoints)
    for recipe in recipes:
        made = _TRANSFORMS[recipe.transform](found, args, recipe)
        if made is None:
            raise StraightError(f"its {recipe.transform} is not taken of loops in this form")
        found = made
    return found


def _leaves(args: tuple[Any, ...], position: int) -> range:
    """Numbers of the input arrays that an argument consists of."""
    before = sum(len(containers.flatten(arg)[0]) for arg in args[:position])
    return range(before, before + len(containers.flatten(args[position])[0]))


def _empty(value: Any) -> Any:
    """Return a container with 0.0 for each array."""
    leaves, structure = containers.flatten(value)
    return containers.unflatten(structure, [0.0] * len(leaves))


def _gradient(found: Rolled, args: tuple[Any, ...], recipe: Recipe) -> Rolled | None:
    if [output.shape for output in found.program.outputs] != [()]:
        return None  # refused where it is traced, with the user's line
    positions = positions_of(recipe.argnums, len(args))
    active = [leaf for position in positions for leaf in _leaves(args, position)]
    both = recipe.transform == "value and gradient"
    parts = tuple(_empty(args[position]) for position in positions)
    result = parts if isinstance(recipe.argnums, tuple) else parts[0]
    program = gradient(found.program, active, value=both, checkpoints=found.checkpoints)
    return replace(found, program=program, result=(found.result, result) if both else result)


def _derivative(found: Rolled, args: tuple[Any, ...], recipe: Recipe) -> Rolled | None:
    if [array.shape for array in found.program.inputs] != [()]:
        return None
    outputs = len(found.program.outputs)
    pushed = pushforward(found.program, [0])
    return replace(found, program=select(pushed, range(outputs, 2 * outputs), {1: 1.0}))


def _matrix(found: Rolled, args: tuple[Any, ...], recipe: Recipe) -> Rolled | None:
    """The Hessian or Jacobian of one array in one array."""
    if len(found.program.outputs) != 1 or isinstance(recipe.argnums, tuple) or isinstance(found.result, SparseMatrix):
        return None
    leaves = _leaves(args, positions_of(recipe.argnums, len(args))[0])
    if len(leaves) != 1 or not isinstance(found.result, float):
        return None
    program = matrix(found.program, leaves[0], recipe.transform == "Hessian", recipe.sparse, recipe.format)
    if program is None:
        return None
    pattern = program.outputs[0].pattern
    return replace(found, program=program, result=0.0 if pattern is None else SparseMatrix(0.0, pattern))


_TRANSFORMS: dict[str, Callable[[Rolled, tuple[Any, ...], Recipe], Rolled | None]] = {
    "value and gradient": _gradient,
    "gradient": _gradient,
    "derivative": _derivative,
    "Jacobian": _matrix,
    "Hessian": _matrix,
}
