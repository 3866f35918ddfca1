"""Traced values that are Python's own float, int or bool, not NumPy's numbers.

A float argument is one, and so are the results of operators and `math` on such numbers. Then `1 / x` raises
ZeroDivisionError, and `x > 0` is True or False itself. An element of an array follows NumPy. A graph notes which nodes
are floats of Python.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from types import FrameType
from typing import Any

import numpy as np
import numpy.typing as npt

from symad.graph.graph import Graph
from symad.reach.code_facts import facts_of
from symad.tracing.calling.handlers import is_caught
from symad.tracing.calling.recorded_errors import innermost_watch
from symad.tracing.calling.scope import Scope
from symad.tracing.calling.user_place import is_library, is_symad, user_frame
from symad.tracing.numpy.ufuncs import UFUNCS
from symad.tracing.values.constant_nodes import as_number, constant, is_boolean
from symad.tracing.values.known_numbers import is_symbolic, known_truth, truth_of

NUMBERS = frozenset({int, float, bool})


def note_arguments(graph: Graph, leaves: Sequence[Any], arrays: Iterable[npt.NDArray[np.int64]]) -> None:
    """Note which nodes of arguments are Python's numbers, by their values."""
    for leaf, nodes in zip(leaves, arrays, strict=True):
        if type(leaf) in (float, int) or (not nodes.ndim and getattr(leaf, "node", None) in graph.floats):
            graph.floats.add(int(nodes))


def is_pythons(graph: Graph, node: int) -> bool:
    """Whether a node is a number of Python's."""
    return node in graph.floats or (node in graph.integers and node not in graph.numpys)


def note_result(graph: Graph, result: int, operands: Sequence[int], *, by_operator: bool = True) -> None:
    """Note whether the result of an operator or a ufunc is a number of Python's.

    >>> graph = Graph()
    >>> x, y = graph.number(0.5), graph.number(0.25)
    >>> x, y = graph.alias(x), graph.alias(y)
    >>> graph.floats.add(x)
    >>> for name, operands in (("negative", (x,)), ("add", (x, y))):
    ...     result = UFUNCS[name](graph, *operands)
    ...     note_result(graph, result, operands)
    ...     result in graph.floats
    True
    False
    """
    if result in operands or result in graph.atoms:
        return
    if by_operator and all(is_pythons(graph, node) for node in operands):
        graph.floats.add(result)
    else:
        graph.floats.discard(result)


def as_count(graph: Graph, node: int, other: int) -> int:
    """Return an operand of an operator whose other one is given: True of Python is the int 1, that of NumPy is not."""
    if node not in graph.floats or not is_boolean(graph, node):
        return node
    if not (is_pythons(graph, other) or other in graph.atoms):
        return node
    count = as_number(graph, node)
    graph.integers.add(count)
    return count


def as_pythons(value: Any, *, own: bool = False) -> Any:
    """Return a traced number as one of Python's, a float or a truth value; its node is `own` if nothing else has it."""
    node = getattr(value, "node", None)
    if node is None:
        return value
    graph = value.scope.graph
    if is_pythons(graph, node) or constant(graph, node) is not None:
        return value
    number = value if own else type(value)(graph.alias(node), value.scope)
    graph.floats.add(number.node)
    return as_truth(number, user_frame()) if is_boolean(graph, node) else number


def raises_where(scope: Scope, condition: int) -> bool:
    """Whether Python raises an error at this point of the code, if it does so where a condition holds.

    If all paths are followed, it is a path inside a handler of the user's; otherwise infinity or NaN is the value.
    Symbolic expressions are for points where it does not hold.
    """
    if scope.deciding() is None:
        return bool(known_truth(scope, condition))
    return (not is_symbolic(scope, condition) or is_caught()) and truth_of(scope, condition)


def check_division(scope: Scope, divisor: int, frame: FrameType) -> None:
    """Raise ZeroDivisionError where Python does, in user code; divmod is an operator of ours."""
    user = frame.f_back if frame.f_code.co_name in ("__divmod__", "__rdivmod__") else frame
    if user is None or is_library(user.f_code.co_filename):
        return
    if raises_where(scope, UFUNCS["equal"](scope.graph, divisor, scope.graph.number(0))):
        raise ZeroDivisionError("float division by zero")


def check_power(scope: Scope, base: int, exponent: int, power: int, frame: FrameType) -> None:
    """Raise the error of a power of floats: of zero to a negative exponent, or of a result that is too large."""
    if is_library(frame.f_code.co_filename):
        return
    graph, known = scope.graph, constant(scope.graph, exponent)
    negative = UFUNCS["less"](graph, exponent, graph.number(0))
    zero = UFUNCS["equal"](graph, base, graph.number(0))
    if (known is None or known < 0) and raises_where(scope, UFUNCS["logical_and"](graph, zero, negative)):
        raise ZeroDivisionError("0.0 cannot be raised to a negative power")
    finite = UFUNCS["logical_and"](graph, UFUNCS["isfinite"](graph, base), UFUNCS["isfinite"](graph, exponent))
    if raises_where(scope, UFUNCS["logical_and"](graph, UFUNCS["isinf"](graph, power), finite)):
        raise OverflowError(34, "Numerical result out of range")


def check_rounding(scope: Scope, node: int) -> None:
    """Raise the error of int(x), round(x) and math.floor(x) for NaN and infinities."""
    graph = scope.graph
    if raises_where(scope, UFUNCS["isnan"](graph, node)):
        math.floor(math.nan)
    if raises_where(scope, UFUNCS["isinf"](graph, node)):
        math.floor(math.inf)


_SPLITTER = 2.0**27 + 1  # splits a double into two halves whose products are exact (Dekker 1971)
_LARGEST_ROUNDED = 2.0**53  # what is larger in units of the last decimal has no decimals behind it
_EXACT_POWERS = 22  # 10.0**22 is the last power of ten that is a double


def rounded_to(x: Any, digits: int) -> Any:
    """Return round(x, digits) of a float of Python's: x itself is rounded, where NumPy rounds x * 10**digits.

    So 2.675, which is a little less than that, becomes 2.67, though 2.675 * 100 is rounded to 267.5.
    """
    if abs(digits) > _EXACT_POWERS:
        return np.round(x, digits)
    x = type(x)(x.scope.graph.stopped(x.node), x.scope)
    power = 10.0 ** abs(digits)
    scaled = x * power if digits > 0 else x / power
    rest = (
        _product_error(x, power, scaled)
        if digits > 0
        else x - scaled * power - _product_error(scaled, power, scaled * power)
    )
    below = np.floor(scaled)
    in_the_middle = (scaled - below == 0.5) & (rest != 0)
    nearest = np.copysign(np.where(in_the_middle, below + np.where(rest > 0, 1.0, 0.0), np.rint(scaled)), x)
    rounded = nearest / power if digits > 0 else nearest * power
    return as_pythons(np.where(np.abs(scaled) < _LARGEST_ROUNDED, rounded, x))


def _product_error(a: Any, b: float, product: Any) -> Any:
    """Return a * b - product, exactly."""
    (high, low), (upper, lower) = _halves(a), _halves(b)
    return ((high * upper - product) + high * lower + low * upper) + low * lower


def _halves(number: Any) -> tuple[Any, Any]:
    large = _SPLITTER * number
    high = large - (large - number)
    return high, number - high


def as_truth(value: Any, frame: FrameType | None) -> Any:
    """Return the truth value of a comparison of Python's numbers.

    On numbers it is True or False. If paths are followed it stays traced, unless code that may get it asks whether
    something `is True`, as `match` does: then it is a path.
    """
    scope, node = value.scope, value.node
    if frame is None or is_library(frame.f_code.co_filename) or not is_boolean(scope.graph, node):
        return value
    if scope.deciding() is None:
        truth = known_truth(scope, node)
        return value if truth is None else truth
    if not is_symbolic(scope, node) or _may_ask_for_identity(frame):
        return truth_of(scope, node)
    return value


def _may_ask_for_identity(frame: FrameType) -> bool:
    """Whether code of the run, or one of a frame's callers, compares something with True or False by `is`."""
    watch = innermost_watch()
    if watch is not None and watch.asks_for_identity:
        return True
    caller: FrameType | None = frame
    while caller is not None and not is_symad(caller.f_code.co_filename):
        if facts_of(caller.f_code).asks_for_identity:
            return True
        caller = caller.f_back
    return False
