"""The whole number behind a traced value, where Python needs one: an index, a count, a key.

On numbers it follows the value. If all paths of a function are followed, each possible number is a path: those between
the bounds of the node, among the places of the indexed container.
"""

from __future__ import annotations

import linecache
import math
import sys
from collections.abc import Mapping, Sequence
from types import FrameType
from typing import Any

from symad.tracing.calling.handlers import is_caught
from symad.tracing.calling.recorded_errors import discard_recorded_error, innermost_watch
from symad.tracing.calling.scope import Scope
from symad.tracing.calling.subscripts import places_of, subscripted
from symad.tracing.calling.user_place import is_installed, is_library, line_of, user_place
from symad.tracing.numpy.ufuncs import UFUNCS
from symad.tracing.values.bounds import Bounds, bounds_of
from symad.tracing.values.known_numbers import SymbolicValueError, is_symbolic, truth_of, value_of
from symad.tracing.values.traced import IndexNumberError, Traced, refuse_number
from symad.tracing.values.whole_numbers import is_integer


class NoNumberError(ValueError):
    """A whole number is NaN, on a path of its own, which has no value."""


class OutsideError(IndexError):
    """An index is out of bounds, on a path of its own."""


def whole_of(scope: Scope, node: int, kind: str, *, is_index: bool = False, at_once: bool = False) -> int:
    """Return the whole number of a node on the current path; the errors above if it has none.

    `kind` names the question in a refusal; an index is one of the places in its container. A run without stand-ins is
    first repeated with them, unless `at_once`: they keep int(x) and elements of arrays traced.
    """
    paths = scope.deciding()
    if paths is None or not is_symbolic(scope, node):
        return int(value_of(scope, node, kind))
    if not at_once:
        _try_stand_ins(kind)
    paths.has_lengths = True
    bounds = bounds_of(scope.graph, node, paths.bounds)
    container = subscripted() if is_index else None
    inside = places_of(container) if container is not None and not isinstance(container, Mapping) else None
    endless = inside is None and math.isinf(bounds.high - bounds.low)
    if endless:
        paths.repeats()
    if bounds.nan and (endless or inside) and truth_of(scope, UFUNCS["isnan"](scope.graph, node)):
        paths.has_no_number = True
        raise NoNumberError(f"{kind} of NaN")
    places = _nearest(bounds, paths.limit) if endless else _candidates(bounds, inside, paths.limit, kind)
    for place in places:
        if _is_place(scope, node, place, bounds) or (place == bounds.high and inside is None and not bounds.nan):
            return place
    if endless:
        paths.end()
    paths.has_no_number = True  # NumPy replaces these errors when it asks for an index
    if inside is None:
        raise NoNumberError(f"{kind} of NaN")
    raise OutsideError(f"{type(container).__name__} index out of range")


def text_of(scope: Scope, node: int, specification: str, frame: FrameType) -> str | None:
    """Return the text of a whole number that user code makes in a frame, on the current path.

    None if no paths are followed, for other numbers, and for text that is only printed or part of an error.
    """
    paths, file = scope.deciding(), frame.f_code.co_filename
    if paths is None or is_library(file) or is_installed(file) or not is_integer(scope.graph, node):
        return None
    text = linecache.getline(file, line_of(frame.f_code, frame.f_lasti)).lstrip()
    if text.startswith(_MESSAGES) or not is_symbolic(scope, node):
        return None
    return format(whole_of(scope, node, "the text of a traced whole number"), specification)


_MESSAGES = ("print(", "raise ", "assert ", "log", "warnings.")  # beginnings of lines that only print a text


def no_value_where(condition: Any, error: NoNumberError | OutsideError) -> None:
    """Note that there is no value where a traced condition holds, for which NumPy raises an error."""
    if isinstance(condition, Traced):
        no_value_at(condition.scope, int(condition.node), error)  # type: ignore[attr-defined]


def no_value_at(scope: Scope, node: int, error: NoNumberError | OutsideError) -> None:
    """Note that there is no value where the condition of a node holds, for which NumPy raises an error.

    Inside a handler of the user's both outcomes are paths, and the error is raised on one of them.
    """
    paths = scope.deciding()
    if paths is None:
        return
    if not is_caught():
        paths.has_no_value((node,))
    elif paths.decide(node):
        if (refusal := sys.exception()) is not None:  # of plain numbers: why this is asked
            discard_recorded_error(refusal)
        raise error


def key_hash(scope: Scope, node: int) -> int:
    """Return the hash of the mapping key that equals a whole number, on the current path."""
    paths = scope.deciding()
    if paths is None or not is_symbolic(scope, node):
        return hash(value_of(scope, node))
    _try_stand_ins(_KEY)
    bounds = bounds_of(scope.graph, node, paths.bounds)
    container = subscripted()
    inside = places_of(container) if isinstance(container, Mapping) else None
    for place in _candidates(bounds, inside, paths.limit, _KEY):
        if _is_place(scope, node, place, bounds):
            return hash(place)
    if inside is None:
        raise NoNumberError(f"{_KEY} is NaN")
    return hash(object())  # of no key


_KEY = "a traced number as a key"


def _try_stand_ins(kind: str) -> None:
    watch = innermost_watch()
    if watch is not None and not watch.makes_arrays:
        refuse_number(kind, _INSTEAD, IndexNumberError)


def _is_place(scope: Scope, node: int, place: int, bounds: Bounds) -> bool:
    if bounds.low == place == bounds.high and not bounds.nan:
        return True
    return truth_of(scope, UFUNCS["equal"](scope.graph, node, scope.graph.number(place)))


def _nearest(bounds: Bounds, count: int) -> Sequence[int]:
    """Return `count` whole numbers from the finite bound, or from 0 in both directions."""
    if not math.isinf(bounds.low):
        return range(math.ceil(bounds.low), math.ceil(bounds.low) + count)
    if not math.isinf(bounds.high):
        return range(math.floor(bounds.high), math.floor(bounds.high) - count, -1)
    return [*range(count - count // 2), *range(-1, -1 - count // 2, -1)]


def _candidates(bounds: Bounds, inside: Sequence[int] | None, limit: int, kind: str) -> Sequence[int]:
    if inside is not None:
        return [place for place in inside if bounds.low <= place <= bounds.high]
    if math.isinf(bounds.low) or math.isinf(bounds.high):
        raise SymbolicValueError(
            f"{kind} was asked for",
            where=user_place(),
            why="it depends on the arguments and has no bounds, and each whole number that it can be is a path",
            do=f"bound it: min(int(x), n), or np.clip(int(x), low, high); {_INSTEAD}",
        )
    low, high = math.ceil(bounds.low), math.floor(bounds.high)
    if high - low >= limit:
        raise SymbolicValueError(
            f"{kind} was asked for",
            where=user_place(),
            why=f"it depends on the arguments and can be {high - low + 1} numbers, each a path, of which there may be "
            f"{limit}",
            do=f"{_INSTEAD}; or raise max_paths",
        )
    return range(low, high + 1)


_INSTEAD = "look values up in an array, np.array(table)[k], choose by np.where, or repeat by fori_loop and while_loop"
