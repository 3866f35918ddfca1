"""The coefficients of f(x + eps_1 v + eps_2 w + ...) as nodes: one forward level for each epsilon, on the graph.

F -> F|eps=0 + eps dF/deps|eps=0, first for eps_1, then for eps_2 of all that is there, and so on. A direction that has
a direction of its own (x + eps_1 v + eps_2 w + eps_1 eps_2 u) is a parameter of the later level.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from symad.derivatives.level import Level
from symad.derivatives.linear import Row, between, linearize
from symad.errors import LimitError
from symad.teaching.expansion.epsilon import Levels
from symad.tracing.calling.user_place import user_place

NODES = 1_000_000  # of the graph; each level multiplies them by up to 3


@dataclass(frozen=True)
class Stage:
    """What one level does: the rows it differentiates, and the eps-part of each of their targets and parameters."""

    level: int
    rows: tuple[Row, ...]
    parts: dict[int, int | None]


@dataclass(frozen=True)
class Levelled:
    """Nodes of all coefficients (for each set of levels one list, None for a structural zero), and the stages."""

    coefficients: dict[Levels, list[int | None]]
    stages: tuple[Stage, ...]


def levelled(
    level: Level, outputs: Sequence[int], directions: Mapping[Levels, Sequence[int | None]], count: int
) -> Levelled:
    """Differentiate outputs along directions, level by level; LimitError where the graph outgrows all bounds.

    `directions[(1, 2)]` has the coefficient of eps_1 eps_2 of each parameter.
    """
    build = level.build
    seeds = {levels: _held(level, nodes, levels, directions) for levels, nodes in directions.items()}
    found: dict[Levels, list[int | None]] = {(): list(outputs)}
    stages = []
    for k in range(1, count + 1):
        moved = _moved(level, seeds, k)
        present = [node for nodes in found.values() for node in nodes if node is not None]
        lines = between(build, present, list(moved))
        linear = linearize(build, [*present, *lines], list(moved))
        tangents = linear.apply(build, list(moved.values()))
        pushed = iter(tangents)
        for chosen in list(found):
            found[(*chosen, k)] = [None if node is None else next(pushed) for node in found[chosen]]
        stages.append(Stage(k, linear.rows, {**moved, **dict(zip(lines, pushed, strict=True))}))
        _check_size(level, k, count)
    return Levelled({tuple(sorted(levels)): nodes for levels, nodes in found.items()}, tuple(stages))


def _held(
    level: Level, nodes: Sequence[int | None], levels: Levels, directions: Mapping[Levels, Sequence[int | None]]
) -> list[int | None]:
    """Return a direction's nodes; as parameters of their own where a later level moves them."""
    if not any(later[: len(levels)] == levels and len(later) > len(levels) for later in directions):
        return list(nodes)
    zero = level.build.zero
    return [level.scope.graph.alias(zero if node is None else node) for node in nodes]


def _moved(level: Level, seeds: Mapping[Levels, Sequence[int | None]], k: int) -> dict[int, int | None]:
    """Return what the level k moves, and by what: x by its direction, a direction v by the direction of v."""
    moved: dict[int, int | None] = dict(zip(level.parameters.flat, seeds[(k,)], strict=True))
    for levels, nodes in seeds.items():
        if len(levels) > 1 and levels[-1] == k:
            below = seeds[levels[:-1]]
            moved |= {held: node for held, node in zip(below, nodes, strict=True) if held is not None}
    return moved


def _check_size(level: Level, k: int, count: int) -> None:
    size = len(level.scope.graph)
    if k < count and size > NODES:
        raise LimitError(
            f"the expansion has {size} nodes after {k} of {count} levels",
            where=user_place(),
            why=f"every level can make it three times as large, and the bound is {NODES}",
            do="take fewer levels, or use taylor or mixed_derivative, which keep one coefficient of each order",
        )
