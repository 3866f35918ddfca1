"""Exports of the kernels that the tables of calls build: compiled by a C compiler, and compared bit by bit."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import symad as sa
import tests.support.numpy_table as numpy_table
import tests.support.scipy_table as scipy_table
from codegen.errors import LimitError, LoweringError
from symad.errors import BoundWarning
from tests.support.call_table import Row
from tests.support.exported import STRICT, build, run

OPTIMIZED = ["-O1", "-ffp-contract=off", "-march=native", "-Wno-unused-function"]


def exported_rows() -> list[Row]:
    """The calls that have kernels, of both tables."""
    return [row for row in (*numpy_table.rows(), *scipy_table.rows()) if row.expected == "symbols"]


def kernels(row: Row, dtype: Any) -> Iterator[Any]:
    """Kernels of a call, and of its derivative in a direction."""

    def directional(*point: Any) -> Any:
        return sa.jvp(row.function, point, [np.ones(np.shape(value)) for value in row.values])[1]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BoundWarning)
        for function in (row.function, directional):
            yield sa.compile(function, *row.values, dtype=dtype, tier="fast")


def check_exports(row: Row, dtype: Any, folder: Path) -> str:
    """Compare the object file and the C source of a call with its kernel; return what was compared or why not."""
    told = []
    for number, kernel in enumerate(kernels(row, dtype)):
        name = f"f{number}"
        points = [tuple(np.asarray(value, dtype) for value in row.values)]
        try:
            made = kernel.export(
                folder, name, points=None if _has_containers(kernel, points) else points, library=False
            )
        except (LoweringError, LimitError) as error:
            told.append(f"refused: {error}")
            continue
        forms = ["o"] + ["c"] * ("source" in made.files)
        for form in forms:
            path = build(folder, f"tested{number}{form}", *STRICT, *OPTIMIZED, f"{name}_test.c", f"{name}.{form}")
            assert run(path) == "ok\n", (row.text, form, dtype, run(path))
        told.append(", ".join(forms))
    return "; ".join(told)


def _has_containers(kernel: Any, points: Any) -> bool:
    return len(kernel.program.arguments) != len(points[0])
