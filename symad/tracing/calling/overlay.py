"""Run a function without source, whose code cannot be rewritten, with other global names.

It gets global names of its own. They have the current values of the user's names, or their stand-ins. A function of the
user's becomes its rewritten form only if the code does nothing with its name but call it: a rewritten form is another
object. Names that the code binds are bound in the user's module when the code reads one of them or ends.
Code that asks for all global names, or deletes one, runs unchanged.
"""

from __future__ import annotations

import dis
import operator
from collections.abc import Callable
from functools import lru_cache, wraps
from itertools import zip_longest
from types import CellType, CodeType, FunctionType
from typing import Any

from symad.reach.code_facts import codes_of
from symad.tracing.calling.running import copied
from symad.tracing.calling.stand_ins import BUILTINS, original_of, replaced
from symad.tracing.calling.user_place import FILES

_ASKS = frozenset({"globals", "vars", "eval", "exec"})


def overlaid(f: FunctionType, callee: Callable[[Any], Any]) -> Callable[..., Any]:
    """Return a function whose names have stand-ins; f itself if the code could tell."""
    names = _names_of(f.__code__)
    if names is None:
        return f
    called, bound = names
    overlay = _Overlay(f.__globals__, called, bound, callee)
    twin = copied(f, f.__code__, overlay, _closure(f, callee, _called_variables(f.__code__)))
    if not bound:
        return twin

    @wraps(f)
    def call(*args: Any, **keywords: Any) -> Any:
        try:
            return twin(*args, **keywords)
        finally:
            overlay.hand_over()

    return call


def with_forms(f: FunctionType, callee: Callable[[Any], Any]) -> FunctionType:
    """Return a function of ours with the forms of the functions in its closure."""
    closure = _closure(f, callee, frozenset(f.__code__.co_freevars))
    return f if closure is f.__closure__ else copied(f, f.__code__, f.__globals__, closure)


def _closure(f: FunctionType, callee: Callable[[Any], Any], called: frozenset[str]) -> tuple[CellType, ...] | None:
    """Return the variables of enclosing functions, with replacements of the functions in called ones."""
    if not f.__closure__:
        return f.__closure__
    rebound = _rebound(f.__code__)
    cells = zip(f.__code__.co_freevars, f.__closure__, strict=True)
    closure = tuple(cell if name in rebound else _cell_of(cell, callee, name in called) for name, cell in cells)
    return f.__closure__ if all(map(operator.is_, closure, f.__closure__)) else closure


class _Overlay(dict[str, Any]):
    """The user's global names with stand-ins. Its stored content is for code that calls no `__getitem__`."""

    def __init__(
        self, names: dict[str, Any], called: frozenset[str], bound: frozenset[str], callee: Callable[[Any], Any]
    ) -> None:
        super().__init__(names)
        self._names, self._called, self._callee = names, called, callee
        self.update(replaced(names.items()))
        self._bound = {name: self.get(name) for name in bound}  # the values of these names, in the stored form

    def __getitem__(self, name: str) -> Any:
        if name in self._bound:
            self.hand_over()
        if name not in self._names:
            if name not in self._called:
                raise KeyError(name)  # which leads Python to its own
            return BUILTINS[name]
        value = self._names[name]
        if name in self._called and callable(value):
            return self._callee(value)
        return replaced([(name, value)]).get(name, value)

    def hand_over(self) -> None:
        """Bind the user's names to the values that the code has bound."""
        for name, before in self._bound.items():
            value = self.get(name)
            if value is not before:
                self._bound[name] = value
                self._names[name] = original_of(value)


@lru_cache(maxsize=FILES)
def _names_of(code: CodeType) -> tuple[frozenset[str], frozenset[str]] | None:
    """Return the global names that code only calls, and those that it binds; None if it may ask for all of them."""
    called, read, bound = set[str](), set[str](), set[str]()
    for part in codes_of(code):
        steps = list(dis.get_instructions(part))
        for step, after in zip_longest(steps, steps[1:]):
            if step.opname == "DELETE_GLOBAL" or (step.opname == "LOAD_GLOBAL" and step.argval in _ASKS):
                return None
            if step.opname == "STORE_GLOBAL":
                bound.add(step.argval)
            elif step.opname == "LOAD_GLOBAL":
                is_called = (step.arg or 0) & 1 and after.opname not in ("LOAD_ATTR", "LOAD_METHOD")
                (called if is_called else read).add(step.argval)
    return frozenset(called - read), frozenset(bound)


@lru_cache(maxsize=FILES)
def _rebound(code: CodeType) -> frozenset[str]:
    steps = (step for part in codes_of(code) for step in dis.get_instructions(part))
    return frozenset(step.argval for step in steps if step.opname in ("STORE_DEREF", "DELETE_DEREF"))


@lru_cache(maxsize=FILES)
def _called_variables(code: CodeType) -> frozenset[str]:
    """Return the variables of enclosing functions that code only calls."""
    called, read = set[str](), set[str]()
    for part in codes_of(code):
        steps = list(dis.get_instructions(part))
        for before, step, after in zip([None, *steps], steps, [*steps[1:], None], strict=False):
            if step.opname in ("LOAD_DEREF", "LOAD_FROM_DICT_OR_DEREF"):
                beside = (near.opname for near in (before, after) if near is not None)  # after it since Python 3.13
                (called if "PUSH_NULL" in beside else read).add(step.argval)
    return frozenset(called - read)


def _cell_of(cell: CellType, callee: Callable[[Any], Any], is_called: bool) -> CellType:
    """Return a variable with a stand-in for its value; the same one if there is none."""
    try:
        value = cell.cell_contents
    except ValueError:  # nothing is bound to it yet
        return cell
    is_function = is_called and callable(value) and not isinstance(value, type)
    form = callee(value) if is_function else replaced([("", value)]).get("", value)
    return cell if form is value else CellType(form)
