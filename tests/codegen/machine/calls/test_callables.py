"""Kernels as C functions: ctypes, cffi, numba, and SciPy's low-level callables, which keep the machine code alive."""

from __future__ import annotations

import ctypes
import gc
import math
import subprocess
import sys
import weakref
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import cffi
import numba
import numpy as np
import pytest
import sympy as sp
from scipy import LowLevelCallable, ndimage
from scipy.integrate import nquad, quad

from codegen import ArgumentError, compile_program, program_from_sympy
from tests.support.exported import STRICT, build, needs_compiler

X, Y, A, B = sp.symbols("x y a b")
CELLS = sp.symbols("c:9")
LINE = sp.symbols("l:12")
IMAGE = np.random.default_rng(0).normal(size=(10, 10))


def kernel_of(inputs: Any, outputs: Any) -> Any:
    return compile_program(program_from_sympy(inputs, outputs))


def collected(reference: Any) -> bool:
    """Whether an object is gone, after SciPy's reference cycle has been collected."""
    gc.collect()
    return reference() is None


def test_plain_convention() -> None:
    kernel = kernel_of([X, (Y, A)], [X * Y + A, (X - Y, sp.sin(A))])
    arrays = [np.array(0.5), np.array([2.0, 3.0]), np.empty(()), np.empty(2)]
    pointers = [ctypes.c_void_p(array.ctypes.data) for array in arrays]
    prototype = ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_void_p] * 4)
    for function in (kernel.ctypes, prototype(kernel.c_address)):
        arrays[2][...], arrays[3][...] = 0.0, 0.0
        assert function(*pointers) == 0
        assert arrays[2] == 4.0
        assert arrays[3].tolist() == [-1.5, math.sin(3.0)]
    assert kernel.c_address == kernel.c_address == ctypes.cast(kernel.ctypes, ctypes.c_void_p).value


def test_the_ctypes_function_keeps_the_code_alive() -> None:
    kernel = kernel_of([X], [sp.exp(X)])
    function, library = kernel.ctypes, weakref.ref(kernel._compiled.library)
    del kernel
    assert not collected(library)
    point, result = np.array(1.0), np.empty(())
    assert function(point.ctypes, result.ctypes) == 0
    assert result == math.exp(1.0)
    del function
    assert collected(library)


def test_a_function_keeps_the_code_that_it_was_made_for() -> None:
    """With tier="auto" a kernel takes other machine code some time later."""
    kernel = compile_program(program_from_sympy([X], [sp.exp(X)]), tier="auto")
    first = weakref.ref(kernel._compiled.library)
    kernel.ctypes  # noqa: B018 (the entry is made here, perhaps for the first code)
    assert kernel.wait()
    function, callback = kernel.ctypes, kernel.low_level_callable()
    assert kernel.tier == "default"
    del kernel
    gc.collect()
    result = np.empty(())
    assert function(np.array(1.0).ctypes, result.ctypes) == 0
    assert result == callback.function(1, (ctypes.c_double * 1)(1.0)) == math.exp(1.0)
    del function, callback
    assert collected(first)


def test_threads_get_one_address() -> None:
    kernel = kernel_of([X], [sp.exp(X)])
    with ThreadPoolExecutor(8) as pool:
        addresses = list(pool.map(lambda _: kernel.c_address, range(16)))
    assert len(set(addresses)) == 1


def test_cffi() -> None:
    kernel = kernel_of([(X, Y)], [(X * Y, X + Y)])
    ffi = cffi.FFI()
    function = ffi.cast("int (*)(const double *, double *)", kernel.c_address)
    result = np.empty(2)
    assert function(ffi.new("double[]", [2.0, 3.0]), ffi.from_buffer("double[]", result)) == 0
    assert result.tolist() == [6.0, 5.0]


def test_numba_calls_kernels_on_arrays_and_on_numbers() -> None:
    kernel = kernel_of([(X, Y), A], [(X * A, sp.tanh(Y), X - Y)])
    function = kernel.ctypes
    number = kernel_of([X], [sp.exp(-(X**2))]).low_level_callable("double (double)").function

    @numba.njit
    def rows(points: Any, factor: Any) -> Any:
        found = np.empty((len(points), 3))
        for k in range(len(points)):
            function(points[k].ctypes, factor.ctypes, found[k].ctypes)
        return found

    @numba.njit
    def total(count: int) -> float:
        found = 0.0
        for k in range(count):
            found += number(k / count)
        return found

    points = np.random.default_rng(1).normal(size=(50, 2))
    wanted = np.array([kernel(point, 0.7) for point in points])
    del kernel
    gc.collect()
    assert np.array_equal(rows(points, np.array(0.7)), wanted)
    assert abs(total(1000) / 1000 - math.sqrt(math.pi) / 2 * math.erf(1.0)) < 1e-3
    assert kernel_of([X], [X + 1])(2.0) == 3.0  # both compilers go on working


@pytest.mark.parametrize("first", ["numba", "codegen"])
def test_numba_and_symad_work_in_one_process_in_either_order(first: str) -> None:
    """Both initialise the same LLVM."""
    ours = "import sympy, codegen; x = sympy.Symbol('x'); assert codegen.lambdify([x], sympy.sin(x))(0.0) == 0"
    theirs = "import numba; assert numba.njit(lambda x: x + 1)(1) == 2"
    lines = [ours, theirs, ours] if first == "codegen" else [theirs, ours, theirs]
    done = subprocess.run([sys.executable, "-c", "\n".join(lines)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("signature", [None, "double (double)", "double(int,double*)", "double (double, void *)"])
def test_quad(signature: str | None) -> None:
    kernel = kernel_of([X], [sp.exp(-(X**2))])
    library = weakref.ref(kernel._compiled.library)
    function = kernel.low_level_callable(signature)
    assert isinstance(function, LowLevelCallable)
    del kernel
    assert not collected(library)
    assert quad(function, -np.inf, np.inf)[0] == pytest.approx(math.sqrt(math.pi), rel=1e-10)
    del function
    assert collected(library)


def test_quad_with_arguments_and_user_data() -> None:
    kernel = kernel_of([X, A, (B, Y)], [A * X**B + Y])
    assert quad(kernel.low_level_callable(), 0, 1, args=(6.0, 2.0, 1.0))[0] == pytest.approx(3.0)
    data = [2.0, 1.0]
    function = kernel.low_level_callable(None, data)
    data[0] = 99.0  # the values were copied
    del kernel
    gc.collect()
    assert quad(function, 0, 1, args=(6.0,))[0] == pytest.approx(3.0)
    scalar = kernel_of([X, A, (B, Y)], [A * X**B + Y]).low_level_callable("double (double, void *)", 6.0, [2.0, 1.0])
    assert quad(scalar, 0, 1)[0] == pytest.approx(3.0)


@pytest.mark.parametrize("dtype", ["float32", "complex128"])
def test_kernels_of_other_numbers_are_refused(dtype: Any) -> None:
    kernel = compile_program(program_from_sympy([X], [2 * X]), dtype=dtype)
    with pytest.raises(ArgumentError, match=f"a {dtype} kernel as LowLevelCallable: SciPy passes float64"):
        kernel.low_level_callable()
    point, result = np.array(3.0, dtype=dtype), np.empty((), dtype=dtype)
    assert kernel.ctypes(point.ctypes, result.ctypes) == 0
    assert result == 6.0


def test_a_wrong_number_of_arguments_gives_nan() -> None:
    function = kernel_of([X, A], [X * A]).low_level_callable()
    assert math.isnan(function.function(3, (ctypes.c_double * 3)(1.0, 2.0, 3.0)))
    assert quad(function, 0, 1, args=(4.0,))[0] == pytest.approx(2.0)


def test_nquad() -> None:
    function = kernel_of([X, (Y, A)], [X * Y**2 + A]).low_level_callable()
    assert nquad(function, [[0, 1], [0, 3]], args=(1.0,))[0] == pytest.approx(4.5 + 3.0)
    bound = kernel_of([X, Y, A], [X * Y**2 + A]).low_level_callable(None, 1.0)
    assert nquad(bound, [[0, 1], [0, 3]])[0] == pytest.approx(7.5)


def test_generic_filter() -> None:
    kernel = kernel_of([CELLS], [sp.Max(*CELLS) - sp.Min(*CELLS)])
    function = kernel.low_level_callable("int (double *, npy_intp, double *, void *)")
    wanted = ndimage.maximum_filter(IMAGE, 3) - ndimage.minimum_filter(IMAGE, 3)
    assert np.array_equal(ndimage.generic_filter(IMAGE, function, size=3), wanted)
    with pytest.raises(RuntimeError, match="filter function"):
        ndimage.generic_filter(IMAGE, function, size=5)
    weighted = kernel_of([CELLS, (A, B)], [A * CELLS[0] + B * CELLS[8]])
    bound = weighted.low_level_callable("int (double *, intptr_t, double *, void *)", [2.0, -1.0])
    weights = np.zeros((3, 3))
    weights[0, 0], weights[2, 2] = 2.0, -1.0
    np.testing.assert_allclose(ndimage.generic_filter(IMAGE, bound, size=3), ndimage.correlate(IMAGE, weights))


def test_generic_filter1d() -> None:
    second = tuple(LINE[k] - 2 * LINE[k + 1] + LINE[k + 2] for k in range(10))
    function = kernel_of([LINE], [second]).low_level_callable("int (double*, npy_intp, double*, npy_intp, void*)")
    wanted = ndimage.convolve1d(IMAGE, [1.0, -2.0, 1.0])
    np.testing.assert_allclose(ndimage.generic_filter1d(IMAGE, function, 3), wanted, atol=1e-14)
    with pytest.raises(RuntimeError, match="line processing"):
        ndimage.generic_filter1d(IMAGE, function, 5)


def test_geometric_transform() -> None:
    kernel = kernel_of([(X, Y), A], [(X * A, Y - 0.5)])
    function = kernel.low_level_callable("int (npy_intp *, double *, int, int, void *)", 0.75)
    wanted = ndimage.geometric_transform(IMAGE, lambda place: (place[0] * 0.75, place[1] - 0.5))
    assert np.array_equal(ndimage.geometric_transform(IMAGE, function), wanted)
    with pytest.raises(RuntimeError, match="mapping"):
        ndimage.geometric_transform(IMAGE[0], function)


WRAPPERS = """
#include <stddef.h>
#include "bell.h"
#include "range.h"
double integrand(double x)
{
    double y;
    return bell(&x, &y) == 0 ? y : 0.0;
}
int cells(double *buffer, ptrdiff_t count, double *result, void *data)
{
    (void)data;
    return count == range_argument0_size && range(buffer, result) == 0;
}
"""


@needs_compiler
def test_an_exported_library_in_quad_ndimage_and_numba(tmp_path: Path) -> None:
    """The files alone, as any program in C uses them; the kernels are gone."""
    kernel_of([X], [sp.exp(-(X**2))]).export(tmp_path, "bell")
    library = kernel_of([CELLS], [sp.Max(*CELLS) - sp.Min(*CELLS)]).export(tmp_path, "range").files["library"]
    (tmp_path / "wrappers.c").write_text(WRAPPERS)
    flags = [*STRICT, "-shared", "-fPIC", "wrappers.c", "-L.", "-lbell", "-lrange", f"-Wl,-rpath,{tmp_path}"]
    made = ctypes.CDLL(str(build(tmp_path, "wrappers.so", *flags)))
    made.integrand.restype, made.integrand.argtypes = ctypes.c_double, [ctypes.c_double]
    assert quad(LowLevelCallable(made.integrand), -np.inf, np.inf)[0] == pytest.approx(math.sqrt(math.pi), rel=1e-10)
    cells = LowLevelCallable(made.cells, signature="int (double *, npy_intp, double *, void *)")
    wanted = ndimage.maximum_filter(IMAGE, 3) - ndimage.minimum_filter(IMAGE, 3)
    assert np.array_equal(ndimage.generic_filter(IMAGE, cells, size=3), wanted)
    function = ctypes.CDLL(str(library)).range
    function.argtypes = [ctypes.c_void_p, ctypes.c_void_p]

    @numba.njit
    def both(values: Any, result: Any) -> int:
        return function(values.ctypes, result.ctypes)

    result = np.empty(())
    assert both(np.arange(9.0), result) == 0
    assert result == 8.0


@pytest.mark.parametrize(
    ("inputs", "outputs", "signature", "data", "message"),
    [
        ([X], [X], "double (float)", [], r"no convention of SciPy's or Ipopt's; .*'double \(double\)' \(quad\)"),
        ([X, Y], [X], "double (double)", [], r"one number as input; these fit: 'double \(double, void \*\)' with 1"),
        ([(X, Y)], [X], "double (double)", [], r"these fit: 'double \(int, double \*\)' \(quad, nquad\)"),
        ([X], [(X, X)], None, [], r"one number as result; these fit: .*generic_filter1d\)"),
        ([X, Y], [X], "double (double)", [1.0], r"no user data \(void \*\)"),
        ([X], [X], None, [1.0, 2.0], "the kernel has 1 inputs"),
        ([X, (Y, A)], [X], None, [1.0], r"argument 1 \(argument1\): shape \(\)"),
        ([X], [X, X], "double (double)", [], "one number as result"),
        ([X], [X], 5, [], "it is a text in C"),
    ],
)
def test_shapes_that_do_not_fit_are_refused(
    inputs: Any, outputs: Any, signature: str | None, data: list[Any], message: str
) -> None:
    with pytest.raises(ArgumentError, match=message):
        kernel_of(inputs, outputs).low_level_callable(signature, *data)


@pytest.mark.parametrize("encoded", [True, False])
def test_ipopts_conventions_pass_every_argument(encoded: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Called as Ipopt does: lengths are checked, weights stand behind the user data, a lone Hessian is multiplied."""
    pytest.importorskip("scipy")
    if not encoded:
        monkeypatch.setattr("codegen.machine.calls.conventions.is_x86_64_linux", lambda: False)
    x, a, m, s = sp.symbols("x:2"), sp.symbols("a:2"), sp.symbols("m:1"), sp.Symbol("s")
    bent = compile_program(program_from_sympy([x, a, m, s], [[s * x[0] + m[0] * a[1], x[1] * a[0]]]))
    lone = compile_program(program_from_sympy([x, a], [[x[0] * a[1], x[1] * a[0]]]))
    signature = "bool (int, double *, double, int, double *, int, double *, void *)"
    point, weights, data = np.array([2.0, 3.0]), np.array([7.0]), np.array([5.0, 11.0])
    for kernel, expected in ((bent, [0.5 * 2 + 7 * 11, 15.0]), (lone, [0.5 * 22, 0.5 * 15])):
        function, out = kernel.low_level_callable(signature, data).function, np.zeros(2)
        pointers = [array.ctypes.data_as(ctypes.POINTER(ctypes.c_double)) for array in (point, weights, out, data)]
        given, multipliers, target, user = pointers
        assert function(2, given, 0.5, 1, multipliers, 2, target, ctypes.cast(user, ctypes.c_void_p))
        assert out.tolist() == expected
        assert not function(3, given, 0.5, 1, multipliers, 2, target, ctypes.cast(user, ctypes.c_void_p))
        assert not function(2, given, 0.5, 1, multipliers, 3, target, ctypes.cast(user, ctypes.c_void_p))
