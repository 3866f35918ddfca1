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
from symad.commands.build_stages import (
    DIGITS,
    DIRECTIONS,
    Stage,
    Stopwatch,
    along_directions,
    check_finite,
    check_pattern,
    exact_matrix,
    table,
    time_call,
)
from symad.compiling.loop_candidate import Primal, Rolled
from symad.compiling.native import carry_out
from symad.compiling.plan import WAYS, CompilationPlan

FEW = 500_000  # operations times variables: 50 digits take seconds
SHOWN_LOOPS = 8


@dataclass(frozen=True)
class LoopStudy:
    """What was found out about a function whose Hessian is compiled as loops; values are of the lower triangle."""

    name: str
    planned: CompilationPlan
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
    planned: CompilationPlan,
    timed: Stopwatch,
    *,
    name: str,
    tier: Tier,
    accuracy: Accuracy,
) -> LoopStudy:
    """Return the study of a function whose Hessian is planned as loops; ArgumentError for one that is not finite."""
    found, primal = planned.candidate.rolled, planned.primal
    assert found is not None
    assert primal is not None
    kernel: Kernel = timed("compile", lambda: carry_out(planned, tier=tier, accuracy=accuracy, cache=False))
    values = np.asarray(kernel(*arguments))
    size = found.program.inputs[0].size
    assert kernel.sparsity is not None
    places = kernel.sparsity.rows, kernel.sparsity.columns
    check_finite(values, *places)
    check = timed("check", lambda: _check(function, arguments, primal, values, places))
    return LoopStudy(name, planned, found, kernel, values, size, check, time_call(kernel, arguments), timed.stages)


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


def ways(planned: CompilationPlan) -> list[str]:
    """Return a line for each way that was priced, the one that is taken first."""
    others = sorted(planned.candidates, key=lambda each: each.way != planned.chosen)
    lines = [f"{WAYS[each.way]}, {each.executed} operations, {each.costs} by the price list" for each in others]
    return [f"{'plan' if not k else '':22} {line}" for k, line in enumerate(lines)]


def loop_report(found: LoopStudy) -> str:
    """Return the study as text: stages, loops, sizes, pattern, check."""
    program, stats = found.found.program, found.kernel.stats
    rows, columns = found.places
    loops = found.planned.lines[:SHOWN_LOOPS]
    hidden = len(found.planned.loops) - len(loops)
    loops += [f"and {hidden} more"] if hidden > 0 else []
    loops += found.planned.carried_out
    lines = [f"Hessian of {found.name}, {found.size} variables", ""]
    lines += table(("stage", "nodes", "operations", "seconds"), [stage.cells() for stage in found.stages])
    lines += ["", *ways(found.planned), "loops                  " + ("\n" + " " * 23).join(loops)]
    lines += [
        f"operations traced      {found.planned.traced}",
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
