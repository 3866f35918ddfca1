"""Addresses of BLAS and LAPACK in SciPy, for `codegen.functions.matrix_routines`.

SciPy offers C pointers to both libraries in `scipy.linalg.cython_blas` and `cython_lapack`.

Source: Anderson et al., LAPACK Users' Guide, 3rd edition (1999).
"""

from __future__ import annotations

import ctypes
import sys
from functools import cache
from importlib import import_module
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from types import ModuleType

from codegen.errors import LoweringError
from codegen.functions.libraries import EXTRA
from codegen.functions.routine_values import LETTERS

OPERANDS = {
    "blas.{}gemm": 13, "blas.{}gemv": 11, "blas.{}trsm": 11, "lapack.{}potrf": 5, "lapack.{}getrf": 6,
    "lapack.{}getrs": 9, "lapack.{}geqrf": 8, "lapack.{}orgqr": 9, "lapack.{}syevd": 11, "lapack.{}gesdd": 14,
}  # fmt: skip
ROUTINES = {name.format(letter): count for name, count in OPERANDS.items() for letter in LETTERS.values()}


@cache
def routine_address(name: str) -> int:
    """Return the address of a routine; LoweringError names the extra when SciPy is missing.

    >>> not has_library() or routine_address("lapack.dpotrf") > 0
    True
    """
    library, routine = name.split(".")
    try:
        capsule = pointers(f"scipy.linalg.cython_{library}").__pyx_capi__[routine]
    except ImportError as error:
        raise LoweringError(f"{name} of linear algebra", why="SciPy is not installed", do=EXTRA) from error
    name_of, pointer_of = ctypes.pythonapi.PyCapsule_GetName, ctypes.pythonapi.PyCapsule_GetPointer
    name_of.restype, name_of.argtypes = ctypes.c_char_p, [ctypes.py_object]
    pointer_of.restype, pointer_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    signature = name_of(capsule)
    if signature is None or b"int *" not in signature or b"64" in signature:
        raise LoweringError(f"{name} of SciPy", why=f"its whole numbers are not C's int: {signature!r}", do="report it")
    return pointer_of(capsule, signature) or 0


@cache
def pointers(name: str) -> ModuleType:
    """Return a module of C pointers, without the rest of `scipy.linalg`, which takes 0.15 s to import.

    Whoever imports it later gets it by the ordinary way, from the same file.
    """
    if name in sys.modules:
        return sys.modules[name]
    folders = [f"{folder}/linalg" for folder in import_module("scipy").__path__]
    spec = PathFinder.find_spec(name, folders)
    if spec is None or spec.loader is None:
        return import_module(name)
    try:
        module = module_from_spec(spec)
        spec.loader.exec_module(module)
    finally:
        sys.modules.pop(name, None)  # Cython enters it, and its package would not have it as an attribute
    return module


@cache
def has_library() -> bool:
    """Whether SciPy is there, with pointers to BLAS and LAPACK.

    >>> has_library() in (True, False)
    True
    """
    try:
        return all(map(routine_address, ROUTINES))
    except LoweringError:
        return False
