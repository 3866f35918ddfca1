"""Agreement: a rolled program and the straight lines that it was found in, at a random point."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from codegen.evaluation.evaluate_rolled import evaluate_rolled
from codegen.ir.program import Rows
from codegen.ir.region import RolledProgram
from codegen.loops.find.flat_rows import flattened
from codegen.loops.find.plain_rows import PlainRows
from codegen.loops.find.straight_values import straight_values
from codegen.loops.place.buffers import Arrays

POINTS = 4  # tried until the values are finite
CLOSE = 1e-9  # of the largest value: sums are added up in another order


def agree(program: RolledProgram, rows: Rows, arrays: Arrays) -> bool:
    """Return whether a rolled program has the values of its rows at a random point, the same one every time.

    A wrong table shows at any point, so one is enough; of several points that are tried, it is the first one with
    finite values, or the last.
    """
    generator = np.random.default_rng(0)
    for _ in range(POINTS):
        point = [generator.uniform(0.25, 1.25, nodes.shape) for _, nodes in arrays.inputs]
        expected = _straight(rows, arrays, point)
        if all(np.isfinite(array).all() for array in expected):
            break
    with np.errstate(all="ignore"):
        found = evaluate_rolled(program, point)
    return all(_close(np.ravel(a), np.ravel(b)) for a, b in zip(found, expected, strict=True))


def _straight(rows: Rows, arrays: Arrays, point: list[NDArray[np.float64]]) -> list[NDArray[np.float64]]:
    inputs = np.concatenate([np.empty(0, dtype=np.int64), *(nodes.ravel() for _, nodes in arrays.inputs)])
    numbers = np.concatenate([np.empty(0), *(array.ravel() for array in point)])
    wanted = [nodes.ravel() for nodes, _ in arrays.outputs]
    flat = rows.flat if isinstance(rows, PlainRows) else flattened(rows)
    values = straight_values(rows, flat, inputs, numbers, np.concatenate([np.empty(0, dtype=np.int64), *wanted]))
    return np.split(values, np.cumsum([len(nodes) for nodes in wanted])[:-1])


def _close(found: NDArray[np.float64], expected: NDArray[np.float64]) -> bool:
    scale = np.max(np.abs(expected), initial=0.0, where=np.isfinite(expected))
    return bool(np.allclose(found, expected, rtol=CLOSE, atol=CLOSE * scale, equal_nan=True))
