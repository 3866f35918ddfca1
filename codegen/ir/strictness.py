"""In strict mode an internal failure is an error. Otherwise a fallback warns.

With SYMAD_STRICT=1 in the environment, as in every test, programs are checked between passes (`codegen.ir.check`), and
an unexpected exception, a failed agreement or a dropped loop raises. Without it, a slower fallback is used, with a
FallbackWarning once for each function and reason.
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

Checked = TypeVar("Checked", Program, RolledProgram)

REMEMBERED = 256  # warnings that are not given again

_warned: OrderedDict[tuple[str, str], None] = OrderedDict()  # by function and reason; the last ones
_lock = Lock()


def strict() -> bool:
    """Whether the environment asks for strictness, at this moment.

    >>> strict()
    True
    """
    return os.environ.get("SYMAD_STRICT", "0") not in ("", "0")


def checked(program: Checked, after: str, before: Checked | None = None, *, needed: bool = False) -> Checked:
    """Return a program unchanged; with strictness on, InvariantError if a pass has broken it.

    A pass that returned the program `before` is not checked. After passes that remove dead code, every operation of
    the program, or of its bodies, has to be `needed`.

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
    """Warn that a slower fallback is used for a function, because of a defect.

    With strictness on, raise the error, or InvariantError. Otherwise warn, once for each function and reason; the last
    256 of them are remembered.

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
        new = (function, reason) not in _warned
        _warned[function, reason] = None
        _warned.move_to_end((function, reason))
        if len(_warned) > REMEMBERED:
            _warned.popitem(last=False)
        return new
