"""Number types: what kernels compute with, in NumPy's words and in LLVM's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from codegen.lanes import Lanes

Dtype = Literal["float64", "float32", "complex128"]


@dataclass(frozen=True, slots=True)
class NumberType:
    """A number in memory: `parts` machine numbers of IR type `scalar`; arrays of the dtype kinds can be converted."""

    name: Dtype
    dtype: np.dtype[Any]
    scalar: str
    parts: int
    kinds: str

    def lanes(self, width: int = 1) -> Lanes:
        """Lanes of this type's machine numbers."""
        return Lanes(width, self.scalar)


FLOAT64 = NumberType("float64", np.dtype(np.float64), "double", 1, "biuf")
FLOAT32 = NumberType("float32", np.dtype(np.float32), "float", 1, "biuf")
COMPLEX128 = NumberType("complex128", np.dtype(np.complex128), "double", 2, "biufc")
NUMBER_TYPES: dict[str, NumberType] = {found.name: found for found in (FLOAT64, FLOAT32, COMPLEX128)}
