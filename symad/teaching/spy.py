"""Sparsity patterns as text: eight matrix entries in one braille character."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

_DOTS = np.array([[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]])
_BLANK = 0x2800


def spy(rows: ArrayLike, columns: ArrayLike, shape: tuple[int, int], *, width: int = 72) -> str:
    """Return a picture of a sparsity pattern, at most `width` characters wide.

    One dot is one entry while the pattern fits; beyond that one dot stands for a square block with any entry in it.

    >>> print(spy([0, 1, 2, 3], [0, 1, 2, 3], (4, 4)))
    ⠑⢄
    """
    scale = max(1, -(-shape[1] // (2 * width)))
    dots = np.zeros((-(-shape[0] // scale), -(-shape[1] // scale)), dtype=bool)
    dots[np.asarray(rows, dtype=int) // scale, np.asarray(columns, dtype=int) // scale] = True
    height, breadth = -(-dots.shape[0] // 4), -(-dots.shape[1] // 2)
    padded = np.zeros((4 * height, 2 * breadth), dtype=bool)
    padded[: dots.shape[0], : dots.shape[1]] = dots
    cells = (padded.reshape(height, 4, breadth, 2) * _DOTS[None, :, None, :]).sum(axis=(1, 3))
    return "\n".join("".join(chr(_BLANK + int(cell)) for cell in line) for line in cells)
