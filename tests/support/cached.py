"""Programs whose kernels are cached, and what is looked at of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import sympy as sp

from codegen import Kernel, program_from_sympy
from codegen.ir.program import Program

X, Y = sp.symbols("x y")
POINT = (0.7, 1.3)


def program_of(number: int = 0) -> Program:
    return program_from_sympy([X, Y], [sp.sin(X) * Y + number, [X**3, sp.exp(Y)]], name=f"f{number}")


def bits(kernel: Kernel, *point: Any) -> bytes:
    results = kernel(*(point or POINT))
    return b"".join(np.asarray(result).tobytes() for result in (results if isinstance(results, tuple) else [results]))


def files(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.symad"))
