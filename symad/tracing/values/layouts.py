"""In which order elements stand in memory: it decides which of reshape's and ravel's results are views, as in NumPy.

Results of NumPy's functions keep the order of their operands (order="K"): those of transposed arrays are transposed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[Any]
Nodes = npt.NDArray[np.int64]


IN_C_ORDER = frozenset({  # functions whose results do not keep the order of their operands
    np.linalg.qr, np.linalg.eigh, np.linalg.svd, np.cross, np.select, np.interp, np.take_along_axis, np.fft.rfft,
    np.fft.irfft, np.fft.fft, np.fft.ifft, np.quantile, np.percentile,
})  # fmt: skip


def axes_in_memory(*operands: Numbers) -> tuple[int, ...] | None:
    """Return the axes of what a ufunc makes of operands, from the longest stride to the shortest; None for C order."""
    if all(array.ndim < 2 or array.flags.c_contiguous for array in operands):
        return None
    kept = [np.broadcast_to(np.zeros((), dtype=bool), array.shape) if array.ndim < 2 else array for array in operands]
    strides = _made(kept).strides
    axes = tuple(sorted(range(len(strides)), key=lambda axis: -strides[axis]))
    return None if axes == tuple(range(len(axes))) else axes


def _made(operands: Sequence[Numbers]) -> Numbers:
    """What NumPy makes of arrays of these strides."""
    if len(operands) == 1:
        return np.array(operands[0], copy=True, order="K")
    made: Numbers = np.equal(*operands) if len(operands) == 2 else np.where(*operands[:3])
    return made


def moved(array: Numbers, axes: tuple[int, ...]) -> Numbers:
    """Return an array with its axes in this order, those that it lacks in front of it first."""
    return array.reshape((1,) * (len(axes) - array.ndim) + array.shape).transpose(axes) if array.ndim else array


def moved_back(array: Nodes, axes: tuple[int, ...]) -> Nodes:
    """Undo `moved`."""
    return array.transpose(np.argsort(axes))


def in_order_of(nodes: Nodes, model: Numbers) -> Nodes:
    """Return nodes, in another order in memory if an array of their shape has another one."""
    if nodes.ndim < 2 or (nodes.flags.c_contiguous and model.flags.c_contiguous):
        return nodes
    axes = axes_in_memory(model)
    if axes is None:
        return np.ascontiguousarray(nodes)
    return moved_back(np.ascontiguousarray(nodes.transpose(axes)), axes)


def set_c_order(result: Any) -> None:
    """Let a traced array, or those of a tuple, stand in C order."""
    for part in result if isinstance(result, tuple) else (result,):
        nodes = getattr(part, "nodes", None)
        if isinstance(nodes, np.ndarray) and not nodes.flags.c_contiguous:
            part.nodes = np.ascontiguousarray(nodes)
