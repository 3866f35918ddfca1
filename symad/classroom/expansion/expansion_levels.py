"""The coefficients of f(x + eps_1 v + eps_2 w + ...) as nodes, by one forward level for each epsilon.

F -> F|eps=0 + eps dF/deps|eps=0, first for eps_1, then for eps_2 of the result, and so on. A direction with a direction
of its own (x + eps_1 v + eps_2 w + eps_1 eps_2 u) is a parameter of the later level.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import sympy as sp

import symad.tracing.values.containers as containers
from codegen.records import dataclass
from symad.classroom.expansion.epsilon import Levels
from symad.classroom.formulas.read import read_formula
from symad.derivatives.level import Epsilon, Level
from symad.derivatives.linear import Row, between, linearize
from symad.errors import LimitError
from symad.tracing.calling.user_place import refusal, user_place

MOST_LEVELS = 10  # 1024 coefficients
_WAYS = "a list with one direction for each level, or a dict {(1,): v, (2,): w, (1, 2): u}"


def by_levels(argument: Any, directions: Any, order: int | None) -> dict[Levels, list[Any]]:
    """Return the directions by their sets of levels, with one entry for each number of the argument.

    >>> by_levels(1.0, ["v", 2], None)
    {(1,): [v], (2,): [2]}
    >>> by_levels([1.0, 2.0], [3.0, 4.0], 2)
    {(1,): [3.0, 4.0], (2,): [3.0, 4.0]}
    """
    if order is not None:
        by_key = _repeated(argument, directions, order)
    elif isinstance(directions, Mapping):
        by_key = {_levels(key): direction for key, direction in directions.items()}
    elif isinstance(directions, list | tuple):
        by_key = {(k,): direction for k, direction in enumerate(directions, 1)}
    else:
        by_key = {(1,): directions}
    count = max((max(levels) for levels in by_key), default=0)
    _check_count(count)
    fitted = {levels: _fitted(argument, direction, levels) for levels, direction in by_key.items()}
    needed = [(k,) for k in range(1, count + 1)] + [key[:size] for key in fitted for size in range(1, len(key))]
    for levels in needed:
        fitted.setdefault(levels, [0] * len(next(iter(fitted.values()))))
    return dict(sorted(fitted.items(), key=lambda item: (len(item[0]), item[0])))


def seeds(level: Level, directions: Mapping[Levels, Sequence[Any]]) -> dict[Levels, list[int | None]]:
    """Return directions as nodes. The number 0 becomes a structural zero."""
    return {levels: [_node(level, part, levels) for part in parts] for levels, parts in directions.items()}


def _node(level: Level, part: Any, levels: Levels) -> int | None:
    if isinstance(part, int | float | np.number | sp.Number) and part == 0:
        return None
    if isinstance(part, int | float | np.number) and part == 1:
        return level.build.one
    return int(containers.to_nodes(part, level.scope, path=_named(levels)))


def _repeated(argument: Any, direction: Any, order: int) -> dict[Levels, Any]:
    if isinstance(order, bool) or not isinstance(order, int) or order < 1:
        raise refusal(f"order={order!r}", "it says how often one direction is taken", "give an integer >= 1")
    if isinstance(direction, list | tuple) and len(direction) == 1 and np.ndim(argument) == 0:
        (direction,) = direction
    return dict.fromkeys(((k,) for k in range(1, min(order, MOST_LEVELS + 1) + 1)), direction)


def _levels(key: Any) -> Levels:
    """Return the key of a direction: (1, 2), 1, or a product of epsilons."""
    if isinstance(key, sp.Expr) and all(isinstance(factor, Epsilon) for factor in sp.Mul.make_args(key)):
        key = [int(factor.name.rpartition("_")[2]) for factor in sp.Mul.make_args(key)]
    levels = (key,) if isinstance(key, int) else tuple(key) if isinstance(key, tuple | list | frozenset | set) else ()
    if not levels or any(isinstance(k, bool) or not isinstance(k, int) or k < 1 for k in levels):
        raise refusal(f"a direction for {key!r}", "levels are counted from 1", f"give {_WAYS}")
    if len(set(levels)) < len(levels):
        raise refusal(f"a direction for {key!r}", "the square of an epsilon is 0", "name each level once")
    return tuple(sorted(levels))


def _check_count(count: int) -> None:
    if count == 0:
        raise refusal("no direction", "every level moves the argument along one", f"give {_WAYS}")
    if count > MOST_LEVELS:
        raise refusal(
            f"{count} levels" if count > MOST_LEVELS + 1 else f"more than {MOST_LEVELS} levels",
            f"{count} levels have 2**{count} = {2**count} coefficients; the bound is {2**MOST_LEVELS}",
            "use taylor for one direction, partials or nested jvp for one coefficient",
        )


def _fitted(argument: Any, direction: Any, levels: Levels) -> list[Any]:
    """Return a direction's entries; ArgumentError if its structure or shapes differ from the argument's."""
    read = _read(direction)
    leaves, structure = containers.flatten(argument)
    shapes = [np.shape(leaf) for leaf in leaves]
    parts, own_structure = containers.flatten(read)
    if own_structure == structure and [np.shape(part) for part in parts] == shapes:
        return [item for part in parts for item in _items(part)]
    whole = np.asarray(read, dtype=object) if not isinstance(read, Mapping) else None
    if whole is not None and whole.shape == (shapes[0] if len(leaves) == 1 else np.shape(argument)):
        return list(whole.ravel().tolist())
    expected = f"has shape {shapes[0]}" if len(leaves) == 1 else f"has structure {structure}"
    shape = f"of shape {whole.shape}" if whole is not None else f"of structure {own_structure}"
    do = "give the directions as a list, also a single one" if len(levels) == 1 else "give it the shape of x"
    raise refusal(f"{_named(levels)} {shape}", f"the argument {expected}", do)


def _read(direction: Any) -> Any:
    """Return a direction with its texts parsed as SymPy expressions."""
    if isinstance(direction, str):
        return read_formula(direction)
    if isinstance(direction, list | tuple):
        return type(direction)(_read(part) for part in direction) if type(direction) in (list, tuple) else direction
    if isinstance(direction, sp.MatrixBase | sp.NDimArray):
        return np.array(direction.tolist(), dtype=object)
    return direction


def _items(part: Any) -> list[Any]:
    return list(np.asarray(part, dtype=object).ravel().tolist()) if np.shape(part) else [part]


def _named(levels: Levels) -> str:
    return "the direction of " + " ".join(f"eps_{k}" for k in levels)


NODES = 1_000_000  # of the graph; each level multiplies its size by up to 3


@dataclass(frozen=True)
class Stage:
    """The work of one level: the differentiated rows, and the epsilon parts of their targets and parameters."""

    level: int
    rows: tuple[Row, ...]
    parts: dict[int, int | None]


@dataclass(frozen=True)
class Levelled:
    """The nodes of all coefficients (one list per set of levels, None for a structural zero), and the stages."""

    coefficients: dict[Levels, list[int | None]]
    stages: tuple[Stage, ...]


def levelled(
    level: Level, outputs: Sequence[int], directions: Mapping[Levels, Sequence[int | None]], count: int
) -> Levelled:
    """Differentiate outputs along directions, level by level; LimitError if the graph grows too large.

    `directions[(1, 2)]` has the coefficient of eps_1 eps_2 of each parameter.
    """
    build = level.build
    seeds = {levels: _as_parameters(level, nodes, levels, directions) for levels, nodes in directions.items()}
    coefficients: dict[Levels, list[int | None]] = {(): list(outputs)}
    stages = []
    for k in range(1, count + 1):
        moved = _moved(level, seeds, k)
        present = [node for nodes in coefficients.values() for node in nodes if node is not None]
        lines = between(build, present, list(moved))
        linear = linearize(build, [*present, *lines], list(moved), quotients=False)
        tangents = linear.apply(build, list(moved.values()))
        pushed = iter(tangents)
        for chosen in list(coefficients):
            coefficients[(*chosen, k)] = [None if node is None else next(pushed) for node in coefficients[chosen]]
        stages.append(Stage(k, linear.rows, {**moved, **dict(zip(lines, pushed, strict=True))}))
        _check_size(level, k, count)
    return Levelled({tuple(sorted(levels)): nodes for levels, nodes in coefficients.items()}, tuple(stages))


def _as_parameters(
    level: Level, nodes: Sequence[int | None], levels: Levels, directions: Mapping[Levels, Sequence[int | None]]
) -> list[int | None]:
    """Return a direction's nodes, as new parameters if a later level moves them."""
    if not any(later[: len(levels)] == levels and len(later) > len(levels) for later in directions):
        return list(nodes)
    zero = level.build.zero
    return [level.scope.graph.alias(zero if node is None else node) for node in nodes]


def _moved(level: Level, seeds: Mapping[Levels, Sequence[int | None]], k: int) -> dict[int, int | None]:
    """Return the parameters that level k moves and their directions: x, and directions of earlier levels."""
    moved: dict[int, int | None] = dict(zip(level.parameters.flat, seeds[(k,)], strict=True))
    for levels, nodes in seeds.items():
        if len(levels) > 1 and levels[-1] == k:
            below = seeds[levels[:-1]]
            moved |= {parameter: node for parameter, node in zip(below, nodes, strict=True) if parameter is not None}
    return moved


def _check_size(level: Level, k: int, count: int) -> None:
    size = len(level.scope.graph)
    if k < count and size > NODES:
        raise LimitError(
            f"the expansion has {size} nodes after {k} of {count} levels",
            where=user_place(),
            why=f"every level can make it three times as large, and the bound is {NODES}",
            do="take fewer levels, or use taylor or partials, which keep one coefficient of each order",
        )
