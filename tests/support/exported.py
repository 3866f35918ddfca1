"""Helpers for tests of exported kernels: compile, run, call as C does, and compare bits."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from codegen.machine.exports.export import SUFFIX, driver

STRICT = ["-Wall", "-Wextra", "-Werror", "-pedantic", "-std=c99"]
LEVELS = [["-O0"], ["-O2"], ["-O3", "-march=native"], ["-std=gnu17", "-O3", "-march=native"]]


MISSING = "no C compiler (cc, gcc, clang) on this machine: apt-get install gcc libc6-dev"
needs_compiler = pytest.mark.skipif(driver() is None, reason=MISSING)


def compiler() -> list[str]:
    """Return the command of the C compiler; the test is skipped where there is none."""
    command = driver()
    if command is None:
        pytest.skip(MISSING)
    return command


def build(folder: Path, output: str, *arguments: str) -> Path:
    done = subprocess.run(
        [*compiler(), *arguments, "-lm", "-o", output], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    return folder / output


def run(path: Path) -> str:
    return subprocess.run([str(path)], cwd=path.parent, capture_output=True, text=True, check=False).stdout


def evaluate(path: Path, name: str, kernel: Any, arrays: list[Any]) -> list[Any]:
    """Call a function of a shared library as C does."""
    outputs = [np.full(output.shape, 7.0, kernel.options.dtype) for output in kernel.program.outputs]
    function = getattr(ctypes.CDLL(str(path)), name)
    pointers = [ctypes.c_void_p(array.ctypes.data) for array in (*arrays, *outputs)]
    assert function(*pointers) == 0
    return outputs


def bits(array: Any) -> Any:
    """The bits of float64, with one NaN for all."""
    return np.where(np.isnan(array), np.nan, np.asarray(array, dtype=float)).view(np.int64)


def libraries(folder: Path, name: str) -> list[Path]:
    """The shared library, the object file and the source at several levels, each as a library of its own."""
    made = [folder / f"lib{name}{SUFFIX}", build(folder, "object.so", "-shared", f"{name}.o")]
    flags = ["-shared", "-fPIC", "-ffp-contract=off"]
    return made + [build(folder, f"source{k}.so", *flags, *level, f"{name}.c") for k, level in enumerate(LEVELS)]


def check_bits(kernel: Any, folder: Path, points: list[list[Any]], **options: Any) -> None:
    kernel.export(folder, "f", **options)
    for library in libraries(folder, "f"):
        for point in points:
            found = kernel(*point)
            expected = found if isinstance(found, tuple) else (found,)
            for wanted, got in zip(expected, evaluate(library, "f", kernel, point), strict=True):
                assert np.array_equal(bits(wanted), bits(got)), library.name
