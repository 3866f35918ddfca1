"""Run a function without source, whose code cannot be rewritten, with other global names.

It gets global names of its own. They have the current values of the user's names, or their stand-ins. A function of the
user's becomes its rewritten form only if the code does nothing with its name but call it: a rewritten form is another
object. Names that the code binds are bound in the user's module when the code reads a name or ends.
Code that asks for all global names runs unchanged.
"""

from __future__ import annotations

import dis
import operator
from collections.abc import Callable, Iterable
from functools import lru_cache, wraps
from types import CellType, CodeType, FunctionType
from typing import Any

from symad.reach.code_facts import codes_of, facts_of
from symad.tracing.calling.running import copied
from symad.tracing.calling.stand_ins import BUILTINS, original_of, replaced
from symad.tracing.calling.user_place import FILES

_ASKS = frozenset({"globals", "vars", "eval", "exec"})
_VARIABLES = frozenset({"LOAD_DEREF", "LOAD_FROM_DICT_OR_DEREF"})
_MISSING = object()


def overlaid(f: FunctionType, callee: Callable[[Any], Any]) -> Callable[..., Any]:
    """Return a function whose names have stand-ins; f itself if the code could tell."""
    facts, called = facts_of(f.__code__), _called(f.__code__)
    if any(load.is_global and load.name in _ASKS for load in facts.loads):
        return f
    overlay = _Overlay(f.__globals__, called, facts.stores, callee)
    twin = copied(f, f.__code__, overlay, _closure(f, callee, called))

    @wraps(f)
    def call(*args: Any, **keywords: Any) -> Any:
        try:
            return twin(*args, **keywords)
        finally:
            overlay.hand_over()

    return call if facts.stores else twin


def with_forms(f: FunctionType, callee: Callable[[Any], Any]) -> FunctionType:
    """Return a function of ours with the forms of the functions in its closure."""
    closure = _closure(f, callee, frozenset(f.__code__.co_freevars))
    return (
        f
        if all(map(operator.is_, closure or (), f.__closure__ or ()))
        else copied(f, f.__code__, f.__globals__, closure)
    )


class _Overlay(dict[str, Any]):
    """The user's global names with stand-ins. Its stored content is for code that calls no `__getitem__`."""

    def __init__(
        self, names: dict[str, Any], called: frozenset[str], bound: Iterable[str], callee: Callable[[Any], Any]
    ) -> None:
        super().__init__(names)
        self._names, self._called, self._callee = names, called, callee
        self._bound = {name: self.get(name, _MISSING) for name in bound}  # their values in the stored content

    def __getitem__(self, name: str) -> Any:
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
            value = self._bound[name] = self.get(name, _MISSING)
            if value is _MISSING and before is not _MISSING:
                self._names.pop(name, None)
            elif value is not before:
                self._names[name] = original_of(value)


@lru_cache(maxsize=FILES)
def _called(code: CodeType) -> frozenset[str]:
    """Return the global names, and the variables of enclosing functions, that code only calls."""
    called, read = set[str](), set[str]()
    for part in codes_of(code):
        steps = list(dis.get_instructions(part))
        for k, step in enumerate(steps):
            beside = [near.opname for near in (*steps[max(k - 1, 0) : k], *steps[k + 1 : k + 2])]
            if step.opname == "LOAD_GLOBAL":
                is_called = (step.arg or 0) & 1 and beside[-1] not in ("LOAD_ATTR", "LOAD_METHOD")
            elif step.opname in _VARIABLES:
                is_called = "PUSH_NULL" in beside  # after it since Python 3.13
            else:
                continue
            (called if is_called else read).add(step.argval)
    return frozenset(called - read)


@lru_cache(maxsize=FILES)
def _rebound(code: CodeType) -> frozenset[str]:
    steps = (step for part in codes_of(code) for step in dis.get_instructions(part))
    return frozenset(step.argval for step in steps if step.opname in ("STORE_DEREF", "DELETE_DEREF"))


def _closure(f: FunctionType, callee: Callable[[Any], Any], called: frozenset[str]) -> tuple[CellType, ...] | None:
    """Return the variables of enclosing functions, with replacements of the functions in called ones."""
    if not f.__closure__:
        return f.__closure__
    rebound = _rebound(f.__code__)
    cells = zip(f.__code__.co_freevars, f.__closure__, strict=True)
    return tuple([cell if name in rebound else _cell_of(cell, callee, name in called) for name, cell in cells])


def _cell_of(cell: CellType, callee: Callable[[Any], Any], is_called: bool) -> CellType:
    """Return a variable with a stand-in for its value; the same one if there is none."""
    try:
        value = cell.cell_contents
    except ValueError:  # nothing is bound to it yet
        return cell
    is_function = is_called and callable(value) and not isinstance(value, type)
    form = callee(value) if is_function else replaced([("", value)]).get("", value)
    return cell if form is value else CellType(form)
