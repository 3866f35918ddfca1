"""mode="auto": every way is written down on the graph, the operations are counted, and the cheapest way is kept.

What was not kept stays on the graph unused, and costs nothing later. `choices()` shows what was chosen, and the counts.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Protocol, TypeVar

from symad.graph.graph import Graph

T = TypeVar("T")
LOG = logging.getLogger("symad")


@dataclass(frozen=True)
class Choice:
    """What was computed, the way that was taken, and the operations of every way that was looked at.

    A way that is given up as soon as it needs more operations than another counts those that it needed until then.
    """

    what: str
    chosen: str
    operations: Mapping[str, int]

    def __str__(self) -> str:
        counts = ", ".join(f"{name} {count}" for name, count in self.operations.items())
        return f"{self.what}: {self.chosen}; operations: {counts}"


class Chosen(Protocol):
    """What a choice says of itself: a `Choice`, or the `CompilationPlan` of a kernel."""

    @property
    def what(self) -> str: ...

    @property
    def chosen(self) -> str: ...

    @property
    def operations(self) -> Mapping[str, int]: ...


_made: ContextVar[list[Chosen] | None] = ContextVar("symad_choices", default=None)


@contextmanager
def choices() -> Iterator[list[Chosen]]:
    """Give a list that collects what `mode="auto"` chooses in this block, with the operations of the alternatives.

    What `compile` chooses is a `CompilationPlan`, whose `operations` are those that each way carries out in a call.

    >>> import numpy as np
    >>> import symad as sa
    >>> with choices() as made:
    ...     sa.laplacian(lambda x: np.exp(x[0] * x[1]))(np.ones(2))
    5.43656365691809
    >>> made
    [Choice(what='Laplacian', chosen='collapsed', operations={'collapsed': 6, 'hessian': 7})]
    """
    made: list[Chosen] = []
    token = _made.set(made)
    try:
        yield made
    finally:
        _made.reset(token)


def cheapest(
    graph: Graph,
    what: str,
    ways: Mapping[str, Callable[[], T]],
    given: Sequence[int],
    mode: str = "auto",
    nodes_of: Callable[[T], Iterable[int | None]] = iter,  # type: ignore[assignment]
) -> T:
    """Return what the way with the fewest operations beyond the given nodes makes (of a tie, the first).

    Any other mode than "auto" is the name of a way, and only that one is tried.
    """
    made = {name: way() for name, way in ways.items() if mode in ("auto", name)}
    operations = {name: operations_of(graph, nodes_of(found), given) for name, found in made.items()}
    chosen = min(operations, key=operations.__getitem__)
    record(Choice(what, chosen, operations))
    return made[chosen]


def record(choice: Chosen) -> None:
    """Give a choice to `choices`, where that is listening, and to the log."""
    LOG.info("%s", choice)
    if (listener := _made.get()) is not None:
        listener.append(choice)


def operations_of(graph: Graph, nodes: Iterable[int | None], given: Sequence[int]) -> int:
    """Return how many operations nodes need beyond the given ones; a structural zero needs none."""
    return graph.count_operations([node for node in nodes if node is not None], given)
