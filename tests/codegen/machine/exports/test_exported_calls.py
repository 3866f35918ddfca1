"""Every kernel that the tables of calls build, exported: object file and C source have its bits, or it is refused.

Sums in loops are compared up to the last bits.
"""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import symad as sa
from tests.support.call_table import Row
from tests.support.exported import STRICT, build, compiler, needs_compiler, run
from tests.support.exported_calls import check_exports, exported_rows

ROWS = exported_rows()
SAMPLE = ROWS[::60]
PLACES = np.linspace(0.0, 1.0, 7)
OWN: dict[str, Any] = {  # the operations on arrays that a kernel carries out itself
    "sort": np.sort, "argsort": lambda x: np.argsort(x) * 1.0, "in order": lambda x: x[np.argsort(x)],
    "median": np.median, "slope of a median": sa.grad(np.median), "quantile": lambda x: np.quantile(x, 0.3),
    "partition": lambda x: np.partition(x, 2)[2], "largest": lambda x: x[np.argmax(x)],
    "places": lambda x: x[(x % 3).astype(int)], "one place": lambda x: x[int(x[0] % 3)],
    "table": lambda x: PLACES[(x % 3).astype(int)], "searchsorted": lambda x: np.searchsorted(PLACES, x) * 1.0,
    "searchsorted, right": lambda x: np.searchsorted(PLACES, x, "right") * 1.0,
    "digitize": lambda x: np.digitize(x, PLACES) * x, "ranks": lambda x: np.argsort(np.argsort(x)) * x,
    "Jacobian of sort": sa.jacobian(lambda x: np.sort(x) ** 2), "rows": lambda x: np.sort(x[:4].reshape(2, 2), axis=1),
    "slope of places": sa.grad(lambda x: np.sum(x[(x % 3).astype(int)] ** 2)),
}  # fmt: skip


@needs_compiler
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("size", [5, 70, 200])
@pytest.mark.thinned
def test_orders_and_places_have_the_same_bits_in_c(size: int, dtype: Any, tmp_path: Path) -> None:
    x = np.random.default_rng(0).uniform(0.1, 2.0, size).astype(dtype)
    odd = x.copy()
    odd[1:5] = np.nan, 0.0, -0.0, odd[0]
    for number, (name, function) in enumerate(OWN.items()):
        kernel = sa.compile(function, x, dtype=dtype, tier="fast")
        kernel.export(tmp_path, f"f{number}", points=[(x,), (odd,), (-x,)], library=False)
        for form in ("c", "o"):
            files = f"f{number}_test.c", f"f{number}.{form}"
            path = build(tmp_path, f"t{number}{form}", *STRICT, "-O2", "-ffp-contract=off", *files)
            assert run(path) == "ok\n", (name, form)


def counted(x: Any) -> Any:
    """A histogram with weights: each store asks for each place, and the next one asks for all of them again."""
    bins = np.zeros(8)
    for value in x:
        bins[min(max(int(value * 2), 0), 7)] += value
    return bins


@needs_compiler
def test_chains_of_conditions_are_compiled_in_a_second(tmp_path: Path) -> None:
    """Chains of & and | took gcc 12 hours."""
    x = np.array([0.3, 0.5, 0.6, 0.7, 0.8])
    kernel = sa.compile(lambda x: sa.grad(lambda z: np.sum(counted(z)))(x), x, roll="never")
    kernel.export(tmp_path, "f", points=[(x,), (-x,)], library=False)
    command = [*compiler(), *STRICT, "-O2", "-ffp-contract=off", "f_test.c", "f.c", "-lm", "-o", "t"]
    subprocess.run(command, cwd=tmp_path, timeout=60, check=True)
    assert run(tmp_path / "t") == "ok\n"


@needs_compiler
@pytest.mark.parametrize("row", SAMPLE, ids=lambda row: row.text)
def test_exports_of_some_calls(row: Row, tmp_path: Path) -> None:
    check_exports(row, "float64", tmp_path)


@needs_compiler
@pytest.mark.wide
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.text)
def test_exports_of_all_calls(row: Row, dtype: Any, tmp_path: Path) -> None:
    check_exports(row, dtype, tmp_path)
