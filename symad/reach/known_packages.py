"""The package of a file or module, and which modules are pure."""

from __future__ import annotations

import contextlib
import functools
import sys
import sysconfig
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import optree
import sympy as sp

import codegen
import symad.errors

FILES = 4096  # bound of the caches of facts about files
STANDARD = sysconfig.get_path("stdlib")

_PACKAGES = (symad.errors.__file__, codegen.__file__, np.__file__, sp.__file__, optree.__file__)
_BESIDE_NUMPY = Path(np.__file__).absolute().parents[1]
_BESIDE = {  # optional, so not imported; they are installed beside NumPy
    name: str(_BESIDE_NUMPY / name) for name in ("numba", "scipy")
}
_OWN_FOLDERS = (
    *[str(Path(file).absolute().parent) for file in _PACKAGES],
    *[str(Path(file).resolve().parent) for file in _PACKAGES],
    contextlib.__file__,
    *_BESIDE.values(),
)
_WITH_LABELS = tuple(str(_BESIDE_NUMPY / name) for name in ("pandas", "xarray", "pydantic"))
_CONVERTING = tuple(str(_BESIDE_NUMPY / name) for name in ("xarray", "jax"))
_NUMPY = (str(Path(np.__file__).absolute().parent), str(Path(np.__file__).resolve().parent))
_SCIPY = _BESIDE["scipy"]
_OUR_FOLDERS = (*_OWN_FOLDERS[:2], *_OWN_FOLDERS[len(_PACKAGES) : len(_PACKAGES) + 2])  # symad and codegen
_CYTHON = (".pyx", ".pxd", ".pxi", "<stringsource>")
_CYTHONS_OWN = ("__pyx_", "View.MemoryView")

OURS = frozenset({"symad", "codegen"})
PURE = OURS | frozenset({  # packages and modules whose functions compute only from their arguments
    "numpy", "scipy", "sympy", "optree", "math", "cmath", "operator", "_operator", "itertools", "functools",
    "_functools", "collections", "_collections", "_collections_abc", "statistics", "_statistics", "numbers",
    "fractions", "decimal", "_decimal", "heapq", "_heapq", "bisect", "_bisect", "array", "struct", "_struct", "copy",
    "re", "_sre", "json", "_json", "string", "_string", "textwrap", "typing", "types", "abc", "_abc", "enum",
    "dataclasses", "contextlib", "keyword", "colorsys", "copyreg", "datetime", "_datetime", "unicodedata", "difflib",
    "reprlib", "html", "base64", "binascii", "hashlib", "zlib", "typing_extensions", "__future__", "calendar",
    "builtins", "contextvars", "_contextvars", "configparser", "pytest", "_pytest",
})  # fmt: skip
ASK = frozenset({  # modules that read outside state
    "time", "random", "_random", "secrets", "os", "posix", "posixpath", "ntpath", "nt", "genericpath", "io", "_io",
    "pathlib", "uuid", "tempfile", "glob", "shutil", "fileinput",
})  # fmt: skip
EFFECTS = ASK | frozenset({  # and modules with side effects
    "logging", "warnings", "_warnings", "linecache", "traceback", "gc", "_thread", "threading", "concurrent", "queue",
    "multiprocessing", "asyncio", "pprint",
})  # fmt: skip
_TOLD = frozenset({  # names of `os` that read nothing, or whose calls `outside_inputs` notes
    "environ", "environb", "getenv", "getenvb", "putenv", "unsetenv", "path", "fspath", "fsencode", "fsdecode", "sep",
    "stat", "lstat", "access", "getcwd", "readlink", "listdir", "scandir", "walk", "urandom", "getrandom", "open",
    "mkdir", "makedirs", "remove", "unlink", "rename", "replace", "rmdir", "removedirs", "PathLike", "_Environ",
    "write", "close", "join", "split", "basename", "dirname", "splitext", "normpath", "isabs", "abspath", "exists",
    "isfile", "isdir", "getsize", "getmtime", "expanduser", "expandvars", "relpath", "realpath", "commonpath",
})  # fmt: skip
_QUIET = frozenset({  # names of modules with side effects that read nothing
    "debug", "info", "warning", "error", "critical", "exception", "log", "warn", "warn_explicit", "catch_warnings",
    "simplefilter", "filterwarnings", "print_exc", "print_stack", "collect", "Thread", "Lock", "RLock",
    "allocate_lock", "Semaphore", "ThreadPoolExecutor", "ProcessPoolExecutor", "pprint", "Logger", "lock",
})  # fmt: skip
SETTINGS = frozenset({  # functions of NumPy and decimal that return settings of a thread or the process
    "geterr", "getbufsize", "geterrcall", "get_printoptions", "getcontext", "localcontext",
})  # fmt: skip

EFFECT_NAMES = frozenset({  # names with effects in the pure packages
    "datasets", "dump", "dumps_to", "fromfile", "genfromtxt", "io", "load", "loadmat", "loadtxt", "memmap", "random",
    "rvs", "save", "savemat", "savetxt", "savez", "savez_compressed", "set_printoptions", "seterr", "seterrcall",
    "setbufsize", "test", "tofile", "now", "today", "utcnow", "default_rng", "RandomState", "random_state", "getrandom",
})  # fmt: skip
DOING = frozenset({"dump", "save", "savemat", "savetxt", "savez", "savez_compressed", "set_printoptions", "seterr",
                   "seterrcall", "setbufsize", "test", "tofile"})  # fmt: skip
EFFECT_METHODS = frozenset({"rvs", "tofile", "dump", "now", "today", "utcnow", "random_state"})  # of any object
HEAVY = frozenset({"pandas", "xarray", "torch", "jax", "jaxlib", "tensorflow", "polars", "h5py", "dask", "pydantic"})
HEAVY_CODE = HEAVY | {"mpmath"}  # packages whose functions reach thousands of others
_MODULE_OF, _FLAGS_OF = (type.__dict__[name].__get__ for name in ("__module__", "__flags__"))


@functools.lru_cache(maxsize=FILES)
def is_library(file: str) -> bool:
    """Whether a file belongs to symad, codegen, optree, NumPy, SymPy, SciPy or numba, or is compiled code.

    Cython's frames have relative file names. Stand-ins in their modules would let traced values into typed arguments.
    """
    return file.startswith(_OWN_FOLDERS) or file.endswith(_CYTHON) or file.startswith(_CYTHONS_OWN)


def _within(folders: str | tuple[str, ...]) -> Callable[[str], bool]:
    """Return whether a file is in one of some folders."""
    return lambda file: file.startswith(folders)


is_symad = _within(_OUR_FOLDERS)  # or codegen
is_numpy, is_scipy = _within(_NUMPY), _within(_SCIPY)
has_labels = _within(_WITH_LABELS)  # packages that hold a user's numbers in objects of their own
converts_numbers = _within(_CONVERTING)  # packages that convert NumPy's numbers to arrays of their own


def is_ours(file: str) -> bool:
    """Whether a file belongs to symad, codegen, or SymPy."""
    return file.startswith(_OWN_FOLDERS) and not is_numpy(file) and not is_scipy(file)


@functools.lru_cache(maxsize=FILES)
def is_installed(file: str) -> bool:
    """Whether a file belongs to Python's own library or to an installed package.

    >>> is_installed(contextlib.__file__), is_installed("model.py")
    (True, False)
    """
    return file.startswith((STANDARD, "<frozen ")) or "site-packages" in file or "dist-packages" in file


def is_standard(file: str) -> bool:
    """Whether a file belongs to Python's own library.

    >>> is_standard(contextlib.__file__), is_standard(optree.__file__)
    (True, False)
    """
    return is_installed(file) and "-packages" not in file


def is_pure(module: str) -> bool:
    """Whether the functions of a module compute only from their arguments.

    >>> is_pure("numpy.linalg"), is_pure("numpy.random"), is_pure("model")
    (True, False, False)
    """
    return module.partition(".")[0] in PURE and not module.startswith("numpy.random")


def has_effects(module: str) -> bool:
    """Whether a module reads or changes outside state.

    >>> has_effects("os.path"), has_effects("numpy.random._generator"), has_effects("model")
    (True, True, False)
    """
    return module.partition(".")[0] in EFFECTS or module.startswith("numpy.random")


def asks(module: str) -> bool:
    """Whether a module reads outside state.

    >>> asks("time"), asks("numpy.random"), asks("logging")
    (True, True, False)
    """
    return module.partition(".")[0] in ASK or module.startswith("numpy.random")


def is_told(module: str, name: str) -> bool:
    """Whether a name of a module reads no outside state, or `jit` notes its reads.

    >>> is_told("os", "stat"), is_told("os", "umask"), is_told("logging", "info"), is_told("gc", "isenabled")
    (True, False, True, False)
    """
    if module in ("os", "posix", "nt"):
        return name in _TOLD
    return asks(module) or name in _QUIET


def module_of(kind: type) -> str:
    """Return the name of the module of a class, "" where its owner gave it another one than it is in."""
    name: Any = _MODULE_OF(kind)
    if type(name) is not str:
        return ""
    module = sys.modules.get(name)
    if not (is_pure(name) or has_effects(name)) or not _FLAGS_OF(kind) & (1 << 9):
        return name
    file = getattr(module, "__file__", None) if type(module) is types.ModuleType else None
    return name if module is None or file is None or is_installed(file) or is_library(file) else ""


def is_trusted_code(file: str, module: Any) -> bool:
    """Whether a function of a file, with the global names of a module, computes only from its arguments."""
    if is_library(file):
        return not (type(module) is str and has_effects(module))
    return is_installed(file) and type(module) is str and is_pure(module)
