"""Formulas of functions in C: the bits of machine code, at common, hard and special arguments."""

from __future__ import annotations

import ctypes
from pathlib import Path

import numpy as np
import pytest

from codegen.functions.lane_table import FORMULAS
from codegen.machine.exports.c_source import Called
from tests.support.exported import STRICT, build, needs_compiler
from tests.support.lane_arrays import on_array

LOOP = """
void run_{number}(const {scalar} *x, const {scalar} *y, {scalar} *z, int n)
{{
    for (int k = 0; k < n; k++) z[k] = {call};
    (void)y;
}}
"""
ENDS = [0.0, -0.0, 1.0, -1.0, 0.5, -2.0, 3.0, np.inf, -np.inf, np.nan, 1e-45, 1e-310, -1e38, 1e300, -745.0, 709.5, 1e22]


def source(scalar: str) -> str:
    """A function on arrays for each of the table."""
    called = Called("f", scalar, own=True)
    operands = {name: ["x[k]", "y[k]"][: found.operands] for name, found in FORMULAS.items()}
    calls = [called.call(name, given) for name, given in operands.items()]
    heads = [f"void run_{k}(const {scalar} *x, const {scalar} *y, {scalar} *z, int n);" for k in range(len(calls))]
    loops = [LOOP.format(number=k, scalar=scalar, call=call) for k, call in enumerate(calls)]
    return "\n".join([called.declarations(), *heads, *loops])


@needs_compiler
@pytest.mark.parametrize("scalar", ["double", "float"])
@pytest.mark.parametrize("level", [["-O0"], ["-O2"], ["-O3", "-march=native"]], ids="".join)
def test_bits(scalar: str, level: list[str], tmp_path: Path) -> None:
    (tmp_path / "functions.c").write_text(source(scalar), encoding="utf-8")
    library = build(tmp_path, "f.so", *STRICT, "-shared", "-fPIC", "-ffp-contract=off", *level, "functions.c")
    loaded = ctypes.CDLL(str(library))
    random = np.random.default_rng(0)
    largest = 1023 if scalar == "double" else 127
    sizes = random.choice([-1, 1], (2, 2000)) * np.exp2(random.uniform(-largest - 30, largest, (2, 2000)))
    pairs = np.meshgrid(ENDS, ENDS)
    with np.errstate(over="ignore"):
        x, y = (
            np.concatenate([random.uniform(-4, 4, 2000), random.uniform(0, 1, 500), sizes[k], pairs[k].ravel()]).astype(
                scalar if scalar == "double" else np.float32
            )
            for k in range(2)
        )
    for number, (name, found) in enumerate(FORMULAS.items()):
        z = np.empty_like(x)
        getattr(loaded, f"run_{number}")(*(ctypes.c_void_p(array.ctypes.data) for array in (x, y, z)), len(x))
        wanted = on_array(name, 1, *(x, y)[: found.operands])
        np.testing.assert_array_equal(z, wanted, err_msg=name)
        np.testing.assert_array_equal(np.signbit(z[z == 0]), np.signbit(wanted[z == 0]), err_msg=name)
