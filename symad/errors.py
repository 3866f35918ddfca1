"""symad's errors. One base class; each says what happened, where, why, and what to do."""

from __future__ import annotations

from codegen.errors import (
    ArgumentError,
    CacheWarning,
    DeviceError,
    FallbackWarning,
    InvariantError,
    LimitError,
    LoweringError,
    MemoryLimitError,
    NotInstalledError,
    WorkbenchError,
    WorkspaceError,
)

__all__ = [
    "ArgumentError", "BoundWarning", "CacheWarning", "ConvergenceError", "DeviceError", "EscapedValueError",
    "FallbackWarning", "FrozenValueWarning", "InvariantError", "LimitError", "LoweringError", "MemoryLimitError",
    "NotInstalledError", "NotationWarning", "NumbaWarning", "RuleError", "TraceError", "UncompiledWarning",
    "UnknownStateWarning", "WorkbenchError", "WorkspaceError",
]  # fmt: skip


class TraceError(WorkbenchError, TypeError):
    """A traced value was asked for something it cannot give: a float, a truth value, an unsupported function."""


class EscapedValueError(WorkbenchError):
    """A traced value was used after the derivative level it belongs to was closed."""


class RuleError(WorkbenchError):
    """A head has no derivative with respect to one of its arguments."""


class ConvergenceError(WorkbenchError, ArithmeticError):
    """A solver returned no solution: its derivatives would be those of nothing."""

    of_tracing = False


class BoundWarning(UserWarning):
    """A loop that ends by a traced value got a bound, beyond which a kernel returns NaN."""


class FrozenValueWarning(UserWarning):
    """What was made of a function keeps what it asked of the world, or changed, while it was traced."""


class NumbaWarning(UserWarning):
    """The Python function is traced that a function compiled by numba was made of."""


class UncompiledWarning(UserWarning):
    """A transform of a function was called many times on numbers, where `jit` would compile it once."""


class UnknownStateWarning(UserWarning):
    """A function given to `jit`, or a branch of `cond`, uses something whose changes are not seen."""


class NotationWarning(UserWarning):
    """What was taken for granted in reading a formula: a decimal comma."""
