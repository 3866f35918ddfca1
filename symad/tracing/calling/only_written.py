"""Only written: lists and sets that a function adds to and never looks at: what it keeps for others is not state."""

from __future__ import annotations

import dis
import types
from collections.abc import Iterator
from typing import Any

from symad.tracing.calling.outside_words import Reached, codes_of

_ADDS = frozenset({"append", "appendleft", "extend", "add"})
_LOADS = frozenset({
    "LOAD_GLOBAL", "LOAD_NAME", "LOAD_DEREF", "LOAD_CLASSDEREF", "LOAD_FAST", "LOAD_FAST_CHECK", "LOAD_ATTR",
    "LOAD_METHOD",
})  # fmt: skip


def only_written(*roots: Any) -> set[int]:
    """Return the ids of the lists and sets whose names code only adds to.

    >>> seen, total = [], []
    >>> def f(x):
    ...     seen.append(x)
    ...     total.append(x)
    ...     return sum(total)
    >>> only_written(f) == {id(seen)}
    True
    """
    reached = Reached(roots)
    reached.asks()
    written, read = set[str](), set[str]()
    for function in reached.functions:
        for code in codes_of(function.__code__):
            for name, adds in _uses(code):
                (written if adds else read).add(name)
    named = [pair for function in reached.functions for pair in _names_of(function)]
    named += [pair for members in reached.members for pair in members.items()]
    containers = [(name, id(value)) for name, value in named if isinstance(value, list | set)]
    looked_at = {number for name, number in containers if name in read}
    return {number for name, number in containers if name in written} - looked_at


def _uses(code: types.CodeType) -> Iterator[tuple[str, bool]]:
    """Yield the names that code loads, and whether it does so to add to what they stand for."""
    steps = list(dis.get_instructions(code))
    for k, step in enumerate(steps):
        if step.opname in _LOADS and isinstance(step.argval, str):
            after = steps[k + 1] if k + 1 < len(steps) else step
            yield step.argval, after.opname in ("LOAD_ATTR", "LOAD_METHOD") and after.argval in _ADDS


def _names_of(f: types.FunctionType) -> Iterator[tuple[str, Any]]:
    """Yield what the variables around a function, its global names and its defaults stand for."""
    for name, cell in zip(f.__code__.co_freevars, f.__closure__ or (), strict=True):
        try:
            yield name, cell.cell_contents
        except ValueError:  # nothing is bound to it
            continue
    names = {name for code in codes_of(f.__code__) for name in code.co_names}
    yield from ((name, f.__globals__[name]) for name in names if name in f.__globals__)
    defaults = f.__defaults__ or ()
    count = f.__code__.co_argcount
    yield from zip(f.__code__.co_varnames[count - len(defaults) : count], defaults, strict=True)
    yield from (f.__kwdefaults__ or {}).items()
