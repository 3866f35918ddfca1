"""Agreement: a rolled program and the straight lines that it was found in, at a random point."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from codegen.interpret import evaluate
from codegen.program import Rows
from codegen.regions.evaluate import evaluate_rolled
from codegen.regions.region import RolledProgram
from symad.structure.buffers import Arrays

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
    values = {
        int(node): value
        for (_, nodes), array in zip(arrays.inputs, point, strict=True)
        for node, value in zip(nodes.ravel().tolist(), array.ravel().tolist(), strict=True)
    }
    wanted = [nodes.ravel().tolist() for nodes, _ in arrays.outputs]
    evaluate(rows, [node for nodes in wanted for node in nodes], values)
    return [np.array([float(values[node]) for node in nodes]) for nodes in wanted]


def _close(found: NDArray[np.float64], expected: NDArray[np.float64]) -> bool:
    scale = np.max(np.abs(expected), initial=0.0, where=np.isfinite(expected))
    return bool(np.allclose(found, expected, rtol=CLOSE, atol=CLOSE * scale, equal_nan=True))
