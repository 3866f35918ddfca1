"""Roles: what each node is to the levels that a computation went through, noted while `noting` is open.

A node may have several: in reverse mode x * 1 is x, so a primal is the cotangent of another one, and a residual too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Literal, get_args

from symad.graph.table import Graph

Kind = Literal["parameter", "residual", "tangent", "cotangent"]
_KINDS: tuple[Kind, ...] = get_args(Kind)


@dataclass(frozen=True)
class Role:
    """What a node is to one level; levels are counted from the outermost, which is 1."""

    level: int
    kind: Kind

    def __str__(self) -> str:
        return f"{self.kind} {self.level}"

    def __lt__(self, other: Role) -> bool:
        return (self.level, _KINDS.index(self.kind)) < (other.level, _KINDS.index(other.kind))


Notes = dict[tuple[int, int], set[Role]]  # by graph (its identity) and node
_notes: ContextVar[Notes | None] = ContextVar("symad_roles", default=None)


@contextmanager
def noting() -> Iterator[Notes]:
    """Collect the roles of nodes in this block."""
    notes: Notes = {}
    token = _notes.set(notes)
    try:
        yield notes
    finally:
        _notes.reset(token)


def note(graph: Graph, nodes: Iterable[int], kind: Kind, level: int, start: int | None = None) -> None:
    """Note a role of nodes, where somebody asked for it; and of all nodes from `start` on that have none."""
    notes = _notes.get()
    if notes is None:
        return
    for node in nodes:
        notes.setdefault((id(graph), node), set()).add(Role(level, kind))
    for node in range(len(graph) if start is None else start, len(graph)):
        notes.setdefault((id(graph), node), {Role(level, kind)})
