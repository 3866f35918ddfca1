"""BLAS and LAPACK of SciPy: their pointers come without the rest of `scipy.linalg`, which others import as ever."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytest.importorskip("scipy")

PROGRAM = """
import sys
from codegen.functions.libraries import has_library, routine_address
assert has_library()
assert "scipy.linalg" not in sys.modules, "all of it was imported"
assert "scipy.linalg.cython_blas" not in sys.modules, "its package would not have it"
import scipy.linalg
import scipy.linalg.cython_lapack
from scipy.linalg import cython_blas
assert scipy.linalg.cython_blas is cython_blas and "dgemm" in cython_blas.__pyx_capi__
assert scipy.linalg.solve([[2.0]], [1.0])[0] == 0.5
print(routine_address("blas.dgemm") > 0)
"""

LATER = """
import scipy.linalg.cython_blas
from codegen.functions.libraries import has_library
print(has_library())
"""


@pytest.mark.parametrize("program", [PROGRAM, LATER], ids=["alone", "after SciPy's"])
def test_pointers_alone(program):
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=600)
    assert (found.stdout, found.stderr) == ("True\n", "")
