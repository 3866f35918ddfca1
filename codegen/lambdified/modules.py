"""The `modules` of `sympy.lambdify`: which of them native code stands for, and what SymPy's own Python code is for.

Machine code computes what NumPy, SciPy and `math` compute. Other number types (mpmath, SymPy), functions of the user's
own and printers are Python, and SymPy writes that.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import sympy as sp
from sympy.core.function import AppliedUndef

from codegen.errors import FallbackWarning

NATIVE = ("native", "numpy", "scipy", "math")
SCIPY = ["scipy", "numpy"]


def is_native(modules: Any) -> bool:
    """Whether machine code stands for these modules; None is for SymPy what SciPy and NumPy are.

    >>> is_native(None), is_native(["scipy", "numpy"]), is_native("mpmath"), is_native({"sin": abs})
    (True, True, False, False)
    """
    names = [modules] if isinstance(modules, str) else modules
    return modules is None or (
        isinstance(names, list | tuple) and bool(names) and all(isinstance(n, str) and n in NATIVE for n in names)
    )


def keeps_sparse(modules: Any) -> bool:
    """Whether sparse matrices stay sparse: where SciPy is among the modules."""
    return modules in (None, "scipy", "native") or (isinstance(modules, list | tuple) and "scipy" in modules)


def implemented(expressions: list[Any]) -> str:
    """Return the name of a function that has a Python function of the user's behind it, "" where there is none."""
    seen: dict[int, Any] = {}  # alive, so that identities stay what they are
    stack = list(expressions)
    while stack:
        part = stack.pop()
        if id(part) in seen:
            continue
        seen[id(part)] = part
        if isinstance(part, AppliedUndef) and callable(getattr(part, "_imp_", None)):
            return str(part.func)
        stack += getattr(part, "args", ())
    return ""


def by_sympy(args: Any, expressions: Any, modules: Any, **options: Any) -> Callable[..., Any]:
    """Return SymPy's own function."""
    made: Callable[..., Any] = sp.lambdify(args, expressions, modules, **options)
    return made


def tell(why: str | Exception) -> None:
    """Say that SymPy's own Python code is taken."""
    warnings.warn(
        f"lambdify: {why}. SymPy's own Python code evaluates it, which is slower (modules='native' refuses instead)",
        FallbackWarning,
        stacklevel=4,
    )
