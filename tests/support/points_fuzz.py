"""Random loops for points side by side, bit by bit against the same kernel at one point.

`python -m tests.fuzz points 1000`: rolled programs and their gradients; `points-bodies`: loops as people write them.
"""

from __future__ import annotations

from contextlib import ExitStack
from unittest.mock import patch

import numpy as np

import symad as sa
from codegen.ir.region import RolledProgram
from codegen.machine.build import compile_program
from symad.derivatives.loops.pullback import gradient
from symad.errors import TraceError
from tests.support import derive_fuzz, rolling_fuzz
from tests.support.fuzzing import cause, counted

LANES = (2, 4, 8, 16)
COUNT = 19  # points: whole blocks of some lanes, and a part


def check(case: derive_fuzz.Case) -> str:
    """Compare a program and its gradient."""
    made = gradient(case.program, case.active, checkpoints=case.policies[0])
    given = [derive_fuzz.points(made, case.seed + k) for k in range(COUNT)]
    arrays = [np.stack(column) for column in zip(*given, strict=True)]
    found = [compared(case.program, arrays, case.seed), compared(made, arrays, case.seed + 1)]
    return "side by side" if any(found) else "one after the other"


def check_bodies(text: str) -> str:
    """Compare a function with loops, its gradient and its Hessian."""
    with np.errstate(all="ignore"), ExitStack() as small:
        for place, name in rolling_fuzz.SMALL:
            small.enter_context(patch.object(place, name, 0 if name == "FEWEST_ROWS" else 12))
        try:
            f, given = rolling_fuzz.function_of(text)
            points = np.stack([given[k % len(given)] * (1 + k // len(given)) for k in range(COUNT)])
            done = 0
            for transformed in (f, sa.value_and_grad(f), sa.hessian(f))[: 3 if points.shape[1] < 13 else 2]:
                rolled = rolling_fuzz.rolled_of(transformed, given[0])
                done += rolled is not None and compared(rolled.program, [points], points.shape[1])
        except (sa.errors.ArgumentError, TraceError) as error:
            return f"refused: {cause(error)}"
        except (ZeroDivisionError, ValueError):  # numbers of the function itself
            return "without numbers"
    return "side by side" if done else "one after the other"


def compared(program: RolledProgram, arrays: list[np.ndarray], seed: int) -> bool:
    """Whether points were side by side; AssertionError where a bit differs."""
    kernel = compile_program(program, cache=False, lanes=LANES[seed % len(LANES)])
    if kernel.lanes == 1:
        return False
    together = in_tuple(kernel.batch(*arrays))
    for k, point in enumerate(zip(*arrays, strict=True)):
        for one, many in zip(in_tuple(kernel(*point)), together, strict=True):
            alone, beside = np.asarray(one), np.asarray(many[k])
            same = (alone.view(np.int64) == beside.view(np.int64)) | (np.isnan(alone) & np.isnan(beside))
            assert same.all(), (k, alone[~same], beside[~same])
            counted(f"{kernel.lanes} lanes")
    return True


def in_tuple(results: object) -> tuple[object, ...]:
    return results if isinstance(results, tuple) else (results,)
