"""In strict mode an internal failure is an error. Otherwise a fallback warns.

With SYMAD_STRICT=1 in the environment, as in every test, programs are checked between passes (`codegen.ir.check`), and
an unexpected exception, a failed agreement or a dropped loop raises. Without it, what is slower but right is taken
instead, and a FallbackWarning says so, once for each function and reason.
"""

from __future__ import annotations

import os
import warnings
from collections import OrderedDict
from threading import Lock
from typing import TypeVar

from codegen.errors import FallbackWarning, InvariantError
from codegen.ir.check import check_needed, check_program, check_rolled
from codegen.ir.program import Program
from codegen.ir.region import RolledProgram

Made = TypeVar("Made", Program, RolledProgram)

REMEMBERED = 256  # warnings that are not given again

_told: OrderedDict[tuple[str, str], None] = OrderedDict()  # by function and reason; the last ones
_lock = Lock()


def strict() -> bool:
    """Whether the environment asks for strictness, at this moment.

    >>> strict()
    True
    """
    return os.environ.get("SYMAD_STRICT", "0") not in ("", "0")


def checked(program: Made, after: str, before: Made | None = None, *, needed: bool = False) -> Made:
    """Return a program as it is; with strictness on, InvariantError if a pass has broken it.

    A pass that has left the program `before` as it was is not looked at. After passes that leave out what is not
    `needed`, every operation of the program, or of its bodies, has to be.

    >>> from codegen.expressions.sympy_in import program_from_sympy
    >>> import sympy as sp
    >>> x = sp.Symbol("x")
    >>> len(checked(program_from_sympy([x], [x**2]), "reading SymPy"))
    3
    """
    if program is not before and strict():
        if isinstance(program, Program):
            check_program(program, after)
        else:
            check_rolled(program, after)
        if needed:
            check_needed(program, after)
    return program


def fall_back(function: str, reason: str, error: Exception | None = None) -> None:
    """Say that a slower way is taken for a function, because of something that should not happen.

    With strictness on it raises: the error that was met, or InvariantError. Otherwise it warns, once for each function
    and reason; the last 256 of them are remembered.

    >>> fall_back("energy", "the loops found did not give its values")
    Traceback (most recent call last):
        ...
    codegen.errors.InvariantError: energy: the loops found did not give its values; report it: it is a defect of a pass
    """
    if strict():
        if error is not None:
            raise error
        raise InvariantError(reason, where=function, do="report it: it is a defect of a pass")
    why = reason if error is None else f"{reason} ({type(error).__name__}: {error})"
    if _is_new(function, why):
        warnings.warn(
            f"{function}: {why}; another way is taken, which is slower and gives the same numbers. "
            "Please report it, with the function and what SYMAD_STRICT=1 in the environment shows",
            FallbackWarning, stacklevel=2,
        )  # fmt: skip


def _is_new(function: str, reason: str) -> bool:
    with _lock:
        new = (function, reason) not in _told
        _told[function, reason] = None
        _told.move_to_end((function, reason))
        if len(_told) > REMEMBERED:
            _told.popitem(last=False)
        return new
