"""The errors of both storeys. Each says what happened, where, why, and what to do."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from codegen.visible import visible


class WorkbenchError(Exception):
    """Base class of every error that symad and codegen raise on purpose.

    `what` was met, `where` (the user's file and line, a node or an argument path), `why` it cannot be done, and what
    to `do` about it; the parts that are known are joined into one message, in which all characters can be seen.

    >>> print(WorkbenchError("a string was returned", where="model.py:3", why="not real", do="return a number"))
    model.py:3: a string was returned: not real; return a number

    `listeners` hear of every error when it is made: one that never comes out has been swallowed. `of_tracing` tells
    those that plain numbers would not have met.
    """

    what: str
    where: str
    why: str
    do: str

    listeners: ClassVar[list[Callable[[WorkbenchError], None]]] = []
    of_tracing: ClassVar[bool] = True

    def __init__(self, what: str, *, where: str = "", why: str = "", do: str = "") -> None:
        self.what, self.where, self.why, self.do = what, where, why, do
        message = f"{where}: {what}" if where else what
        message += f": {why}" if why else ""
        message += f"; {do}" if do else ""
        super().__init__(visible(message))
        for listener in self.listeners:
            listener(self)


class LoweringError(WorkbenchError):
    """A head has no native lowering (or its optional library is missing)."""


class ArgumentError(WorkbenchError, ValueError):
    """A kernel or transform argument has the wrong shape, dtype, structure or value."""

    of_tracing = False


class UnboundSymbolError(WorkbenchError):
    """A symbol has no value: it is no argument of the program and was given no number."""

    of_tracing = False


class LimitError(WorkbenchError):
    """A limit (operations, seconds, tree size) was reached."""


class MemoryLimitError(LimitError):
    """A request needs more memory than a limit allows. None of it has been allocated."""


class WorkspaceError(WorkbenchError, MemoryError):
    """There is no memory for an array, or for a kernel's workspace."""


class DeviceError(WorkbenchError):
    """A GPU is missing, or its driver refuses a call."""

    of_tracing = False


class NotInstalledError(WorkbenchError):
    """A library that is needed here is not installed."""


class InvariantError(WorkbenchError):
    """A program breaks an invariant that passes rely on. The pass before it has a defect, not the user's function."""


class FallbackWarning(UserWarning):
    """An internal defect led to a slower path. The numbers are right; please report it."""


class CacheWarning(RuntimeWarning):
    """The disk cache is not used, or an entry of it was not: kernels are compiled anew."""
