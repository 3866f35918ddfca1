"""Decide whether numbers on a path raise an error, so that the function has no value there."""

from __future__ import annotations

from symad.errors import WorkbenchError
from symad.tracing.calling.conversions import asks_for_numbers
from symad.tracing.calling.raised import is_certain
from symad.tracing.calling.user_place import met_by_user, raised_by_user, raised_frame
from symad.tracing.values.scalar import Scalar
from symad.tracing.values.traced import AxesError
from symad.tracing.values.whole_values import NoNumberError, OutsideError

# A function has no value where it raises an error, except for these, which show mistakes in the code
_MISTAKES = (TypeError, AttributeError, NameError, LookupError, ImportError, NotImplementedError)
_MATHS = ("math domain error", "expected a ")  # how the math module words its ValueError


def is_of_function(error: Exception) -> bool:
    """Whether the function raises an error itself, on purpose or by a computation with plain numbers."""
    if isinstance(error, (*_MISTAKES, WorkbenchError)):
        return False
    if raised_by_user(error) or isinstance(error, ArithmeticError) or str(error).startswith(_MATHS):
        return True
    frame = raised_frame(error)
    return isinstance(error, ValueError) and frame is not None and is_certain(error, frame)


def is_of_values(error: Exception, *, lengths: bool, no_number: bool) -> bool:
    """Whether whole numbers that were decided on this path cause an error: indices, keys, `lengths`.

    With `no_number`, a value that is no number was used as an index.
    """
    if isinstance(error, KeyError):
        return any(type(key) is Scalar for key in error.args)
    if isinstance(error, NoNumberError | OutsideError) or (no_number and isinstance(error, IndexError)):
        return True
    if not lengths or isinstance(error, WorkbenchError) or asks_for_numbers(error):
        return False
    if isinstance(error, TypeError):  # reduce() of nothing, too few arguments
        return isinstance(error, AxesError) or met_by_user(error)
    return isinstance(error, ValueError | IndexError | StopIteration)
