"""`symad hessian` of a function with loops: what was found, how little is written, and a check along directions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from codegen import Kernel
from codegen.ir.sparsity import spy
from codegen.options import Accuracy, Tier
from symad.checking.verification.verify import compare_exact
from symad.commands.build_stages import Stage, Stopwatch, table, time_call
from symad.commands.checks import DIGITS, DIRECTIONS, along_directions, check_finite, check_pattern, exact_matrix
from symad.compiling.native import compile_rolled
from symad.compiling.rolling import (
    Primal,
    Roll,
    Rolled,
    StraightError,
    differentiated_loops,
    primal_of,
    taken_apart,
    traced_with_loops,
    unrolled_lines,
    worth_it,
)
from symad.errors import ArgumentError
from symad.teaching.loops_report import line_of
from symad.tracing.calling.user_place import written_at
from symad.transforms.first_order import hessian

FEW = 500_000  # operations times variables: 50 digits take seconds
SHOWN_LOOPS = 8


@dataclass(frozen=True)
class LoopStudy:
    """What was found out about a function whose Hessian is compiled as loops; values are of the lower triangle."""

    name: str
    primal: Primal
    found: Rolled
    kernel: Kernel
    values: NDArray[np.float64]
    size: int
    check: str
    call_seconds: float
    stages: list[Stage]

    @property
    def matrix(self) -> NDArray[np.float64]:
        """The whole Hessian."""
        rows, columns = self.places
        matrix = np.zeros((self.size, self.size))
        matrix[rows, columns] = matrix[columns, rows] = self.values
        return matrix

    @property
    def places(self) -> tuple[Any, Any]:
        """Rows and columns of the values."""
        assert self.kernel.sparsity is not None
        return self.kernel.sparsity.rows, self.kernel.sparsity.columns


def study_loops(
    function: Callable[..., Any],
    arguments: tuple[Any, ...],
    *,
    name: str,
    roll: Roll,
    tier: Tier,
    accuracy: Accuracy,
    progress: Callable[[str], None] = lambda stage: None,
) -> LoopStudy | None:
    """Return the study of a function whose Hessian has loops, None where straight lines are compiled.

    ArgumentError for roll="always" of a function without loops, and for a Hessian that is not finite.
    """
    timed = Stopwatch(progress)
    base, recipes = taken_apart(hessian(function, sparse="lower"))
    traced = timed("trace", lambda: traced_with_loops(base, arguments))
    try:
        primal = timed("find loops", lambda: primal_of(traced, name, differentiated=True))
        found = timed("differentiate bodies", lambda: differentiated_loops(primal, arguments, recipes))
    except StraightError as reason:
        if roll == "always":
            why = "; ".join([str(reason), *unrolled_lines(traced)])
            raise ArgumentError(
                f"--roll always of {name}", where=written_at(base), why=why, do="leave the option out"
            ) from None
        return None
    if roll == "auto" and not worth_it(found):
        return None
    kernel: Kernel = timed("compile", lambda: compile_rolled(found, tier=tier, accuracy=accuracy, cache=False))
    values = np.asarray(kernel(*arguments))
    size = found.program.inputs[0].size
    assert kernel.sparsity is not None
    places = kernel.sparsity.rows, kernel.sparsity.columns
    check_finite(values, *places)
    check = timed("check", lambda: _check(function, arguments, primal, values, places))
    return LoopStudy(name, primal, found, kernel, values, size, check, time_call(kernel, arguments), timed.stages)


def _check(
    function: Callable[..., Any], arguments: tuple[Any, ...], primal: Primal, values: NDArray[np.float64], places: Any
) -> str:
    """Return how right the values are, in words: against 50 digits where that does not take long."""
    size = np.size(arguments[0])
    if primal.operations * size > FEW:
        worst = along_directions(primal, arguments, values, places)
        return (
            f"check against forward over reverse mode of the loops, along {DIRECTIONS} random directions: "
            f"off by {worst:.1e} of the largest value"
        )
    exact = exact_matrix(function, arguments, "fwd-rev")
    check_pattern(exact, *places)
    found = compare_exact(values.tolist(), exact[places[0], places[1]].tolist())
    return f"check against fwd-rev evaluated in {DIGITS} digits: {found.statement}"


def loop_report(found: LoopStudy) -> str:
    """Return the study as text: stages, loops, sizes, pattern, check."""
    program, stats = found.found.program, found.kernel.stats
    rows, columns = found.places
    loops = [line_of(loop) for loop in found.primal.loops[:SHOWN_LOOPS]]
    hidden = len(found.primal.loops) - len(loops)
    loops += [f"and {hidden} more"] if hidden > 0 else []
    loops += unrolled_lines(found.primal.traced)
    lines = [f"Hessian of {found.name}, {found.size} variables", ""]
    lines += table(("stage", "nodes", "operations", "seconds"), [stage.cells() for stage in found.stages])
    lines += ["", "loops                  " + ("\n" + " " * 23).join(loops)]
    lines += [
        f"operations traced      {found.primal.operations}",
        f"operations written     {program.operations} in the bodies of the Hessian's loops",
        f"operations carried out {program.executed} a call",
        f"machine operations     {stats.total}",
        f"non-zeros              {len(rows)} in the lower triangle, of {found.size * (found.size + 1) // 2}",
        f"time per call          {found.call_seconds * 1e6:.3g} us",
        "",
        "sparsity pattern:",
        spy(np.concatenate([rows, columns]), np.concatenate([columns, rows]), (found.size, found.size)),
        "",
        found.check,
    ]
    return "\n".join(lines)
