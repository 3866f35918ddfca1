"""The `modules` parameter of `sympy.lambdify`: native code, or SymPy's own Python code.

Machine code replaces NumPy, SciPy and `math`. For other number types (mpmath, SymPy), functions of the user and
printers, SymPy writes Python code.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cached_property
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
    seen: dict[int, Any] = {}  # alive, so that identities stay unique
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


class Theirs:
    """SymPy's own functions of some expressions, which are made when they are asked for."""

    def __init__(self, args: Any, expressions: Any, modules: Any, options: dict[str, Any]) -> None:
        self.modules: Any = modules
        self._given: tuple[Any, Any, dict[str, Any]] = args, expressions, options
        self._made: dict[str, Callable[..., Any]] = {}

    @cached_property
    def scipy(self) -> Callable[..., Any]:
        """SymPy's function of NumPy and SciPy."""
        return self.function(SCIPY)

    def function(self, modules: Any) -> Callable[..., Any]:
        """Return SymPy's function for some modules."""
        key = repr(modules)
        if key not in self._made:
            args, expressions, options = self._given
            self._made[key] = sp.lambdify(args, expressions, modules, **options)
        return self._made[key]

    def __reduce__(self) -> Any:
        return Theirs, (self._given[0], self._given[1], self.modules, self._given[2])


def tell(why: str | Exception) -> None:
    """Say that SymPy's own Python code is taken."""
    warnings.warn(
        f"lambdify: {why}. SymPy's own Python code evaluates it, which is slower (modules='native' refuses instead)",
        FallbackWarning,
        stacklevel=4,
    )
