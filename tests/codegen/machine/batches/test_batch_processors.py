"""Batches compiled for older processors than this one: narrower registers, other instructions, the same bits."""

from __future__ import annotations

import platform
import subprocess
import sys
from pathlib import Path

import pytest

PROCESSORS = (
    {"x86-64": "+sse2", "haswell": "+sse2,+avx,+avx2,+fma"}
    if platform.machine().lower() in ("x86_64", "amd64")
    else {"generic": "+neon"}
)
PROGRAM = """
import sys
import numpy as np, sympy as sp
import codegen.engine as engine, codegen.processor as processor

engine.host()  # makes LLVM ready
engine.host = lambda: (sys.argv[1], sys.argv[2])
processor.features = lambda: frozenset(sys.argv[2].replace("+", "").split(","))
from codegen import compile_program, program_from_sympy

symbols = sp.symbols("x0:11")
products = [sp.sin(symbols[k]) * symbols[k + 1] / (symbols[k + 2] ** 2 + 1) for k in range(9)]
program = program_from_sympy([symbols], [products[0], sp.Matrix(3, 3, products), [*symbols, *products]])
for dtype in ("float64", "float32", "complex128"):
    points = np.random.default_rng(0).normal(size=(67, 11)).astype(dtype)
    for lanes in (1, 2, 4, 8, 16):
        kernel = compile_program(program, dtype=dtype, lanes=lanes)
        single = [kernel(point) for point in points]
        for count in (1, 2, 3, 5, 9, 16, 17, 67):
            found = kernel.batch(points[:count])
            turned = tuple(np.asfortranarray(result) for result in found)
            kernel.batch(np.asfortranarray(points[:count]), out=turned)
            for j in range(3):
                want = np.array([values[j] for values in single[:count]], dtype=dtype).tobytes()
                assert found[j].tobytes() == np.ascontiguousarray(turned[j]).tobytes() == want, (dtype, lanes, count)
print(processor.vector_bits())
"""


@pytest.mark.parametrize("name", PROCESSORS)
def test_every_width_on_every_processor(name: str) -> None:
    command = [sys.executable, "-c", PROGRAM, name, PROCESSORS[name]]
    done = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parents[4], check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert int(done.stdout) == (256 if name == "haswell" else 128)
