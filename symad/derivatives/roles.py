"""Roles: what the levels of a computation did, step by step, noted while `noting` is open and never otherwise.

What a node is to a level (parameter, residual, tangent, cotangent) follows from these steps:
`symad.derivatives.node_roles` reads them. A pass says what it did by one call of `note`, whose details are what it has
in its hands anyway.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from types import FrameType
from typing import Any, Literal

from symad.graph.graph import Graph
from symad.tracing.calling.user_place import is_library

Kind = Literal["tangent", "cotangent"]
Step = Literal["opened", "called", "closed", "linearized", "carried", "residual", "eliminated"]

_INNER = {"described", "open_level", "Level", "require_scalar", "note", "jit"}
_MODULES = ("symad.tracing", "symad.derivatives.linear")  # where no transform is


@dataclass(frozen=True, eq=False)
class Event:
    """One step of a level: it made the nodes from `start` to `end`; `transform` is the function that opened a level."""

    step: Step
    graph: Graph
    level: int
    start: int
    end: int
    transform: str
    detail: tuple[Any, ...]


_events: ContextVar[list[Event] | None] = ContextVar("symad_events", default=None)


@contextmanager
def noting() -> Iterator[list[Event]]:
    """Collect the steps of derivatives in this block.

    >>> with noting() as events:
    ...     note("linearized", Graph(), 1, 0)
    >>> events[0].step, events[0].level
    ('linearized', 1)
    """
    events: list[Event] = []
    token = _events.set(events)
    try:
        yield events
    finally:
        _events.reset(token)


def note(step: Step, graph: Graph, level: int, start: int, *detail: Any) -> None:
    """Note a step of a level, where somebody listens; levels are counted from the outermost, which is 1."""
    events = _events.get()
    if events is not None:
        transform = _transform() if step == "opened" else ""
        events.append(Event(step, graph, level, start, len(graph), transform, detail))


def _transform() -> str:
    """Return what opened a level: the outermost function of ours, up to the user's code or the level around."""
    name = ""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and is_library(frame.f_code.co_filename):
        module, top = frame.f_globals.get("__name__", ""), frame.f_code.co_qualname.partition(".")[0]
        if module == "symad.tracing.calling.shadows":
            break  # a level calls its function there
        if module.startswith("symad.") and not module.startswith(_MODULES):
            name = name if top in _INNER or top.startswith("_") else top
        frame = frame.f_back
    return name
