"""Select the arguments to differentiate: by position (argnums) or by path (wrt)."""

from __future__ import annotations

import ast
import difflib
from collections.abc import Callable, Sequence
from functools import wraps
from itertools import pairwise
from typing import Any

import numpy as np
import optree

import symad.tracing.values.containers as containers
from codegen.records import dataclass
from symad.errors import ArgumentError
from symad.tracing.calling.function_names import argument_names, name_of
from symad.tracing.values.container_types import NAMESPACE

Function = Callable[..., Any]
Argnums = int | tuple[int, ...]
Paths = str | Sequence[str] | None

_NEAR = 6  # paths that the message for an unknown one lists


class _Default(int):
    """The default of argnums: 0, distinct from an explicit 0."""


FIRST = _Default(0)


@dataclass(frozen=True)
class Selection:
    """A function restricted to the differentiated arguments; their names, and whether a tuple was asked for.

    `others` are the other arguments, None where parts of arguments are differentiated.
    """

    function: Function
    arguments: tuple[Any, ...]
    names: tuple[str, ...]
    several: bool
    others: tuple[Any, ...] | None = None

    def as_asked(self, values: Any) -> Any:
        """Return a tuple with one value for each argument as the caller asked for it: the tuple, or its only value."""
        return values if self.several else values[0]


def select_arguments(
    f: Function, args: tuple[Any, ...], argnums: Argnums, keywords: dict[str, Any], wrt: Paths = None
) -> Selection:
    """Return f as a function of the chosen arguments alone; ArgumentError when there are no such arguments."""
    if wrt is None:
        selection = _by_position(f, args, argnums, keywords)
        if not containers.flatten(selection.arguments)[0]:
            type_names = ", ".join(type(args[k]).__name__ for k in positions_of(argnums, len(args)))
            why = f"there are no numbers in it (it is of type {type_names})"
            raise ArgumentError(f"argnums={argnums!r}", why=why, do="pass numbers, or choose another argument")
        return selection
    if argnums is not FIRST:
        raise ArgumentError(f"argnums={argnums!r} and wrt={wrt!r}", why="both choose arguments", do="give one of them")
    return _by_path(f, args, wrt, keywords)


def _by_position(f: Function, args: tuple[Any, ...], argnums: Argnums, keywords: Any) -> Selection:
    positions = positions_of(argnums, len(args))

    @wraps(f)
    def restricted(*values: Any) -> Any:
        complete = list(args)
        for position, value in zip(positions, values, strict=True):
            complete[position] = value
        return f(*complete, **keywords)

    names = argument_names(f, len(args))
    chosen = tuple(args[k] for k in positions), tuple(names[k] for k in positions)
    others = None if keywords else tuple(value for k, value in enumerate(args) if k not in positions)
    return Selection(restricted, *chosen, isinstance(argnums, tuple), others)


def check_argnums(argnums: Any) -> None:
    """Raise ArgumentError for anything but a position or a tuple of positions, such as the point itself."""
    chosen = argnums if isinstance(argnums, tuple) else (argnums,)
    if not chosen or not all(isinstance(k, int | np.integer) and not isinstance(k, bool) for k in chosen):
        short = argnums is None or isinstance(argnums, bool | str | float | tuple | list)
        raise ArgumentError(
            f"argnums={argnums!r}" if short else f"argnums of type {type(argnums).__name__}",
            why="it says which argument of the function is differentiated, by its position",
            do="give a position or a tuple of them; where to differentiate stands in the call after it: grad(f)(x)",
        )


def positions_of(argnums: Argnums, count: int) -> list[int]:
    """Return the chosen positions, none negative."""
    check_argnums(argnums)
    chosen = argnums if isinstance(argnums, tuple) else (argnums,)
    if not count:
        raise ArgumentError(
            "a call without positional arguments",
            why=f"argnums={argnums!r} is the position of the argument that is differentiated",
            do="give it by position: grad(f)(x)",
        )
    if not all(-count <= position < count for position in chosen):
        raise ArgumentError(
            f"argnums={argnums!r} for a call with {count} positional arguments",
            do="choose one of those; an argument that is passed by keyword is not differentiated",
        )
    positions = [int(position) % count for position in chosen]
    if len(set(positions)) < len(positions):
        raise ArgumentError(f"argnums={argnums!r}", why="one argument is chosen twice, and has only one derivative")
    return positions


@dataclass(frozen=True)
class _ArgumentPart:
    """A part of an argument: the argument's position, the part's value, and where its leaves are among all."""

    position: int
    value: Any
    start: int
    stop: int


def _by_path(f: Function, args: tuple[Any, ...], wrt: str | Sequence[str], keywords: dict[str, Any]) -> Selection:
    """Select parts of arguments by their paths; everything else keeps the caller's values."""
    several = isinstance(wrt, list | tuple)
    written = [steps_of(path) for path in (wrt if several else (wrt,))]  # type: ignore[arg-type]  # steps_of checks
    paths = ["".join(steps) for steps in written]
    names = argument_names(f, len(args))
    parts = [_part(args, names, steps, f, keywords) for steps in written]
    _check_apart(parts, paths)

    @wraps(f)
    def restricted(*values: Any) -> Any:
        complete = list(args)
        for position in {part.position for part in parts}:
            leaves, structure = containers.flatten(args[position])
            for part, value in zip(parts, values, strict=True):
                if part.position == position:
                    leaves[part.start : part.stop] = containers.flatten(value)[0]
            complete[position] = containers.unflatten(structure, leaves)
        return f(*complete, **keywords)

    return Selection(restricted, tuple(part.value for part in parts), tuple(paths), several)


def steps_of(path: str) -> list[str]:
    """Return a path as error messages write it, taken apart into the argument's name and its steps.

    Only names, attributes and literal keys are read; nothing is evaluated.

    >>> steps_of("params['layer_1'].weight[0]")
    ['params', '["layer_1"]', '.weight', '[0]']
    """
    steps: list[str] = []
    try:
        node = ast.parse(path.strip(), mode="eval").body
        while not isinstance(node, ast.Name):
            if isinstance(node, ast.Attribute):
                entry: Any = optree.GetAttrEntry(node.attr, object, optree.PyTreeKind.CUSTOM)
            elif isinstance(node, ast.Subscript):
                entry = optree.MappingEntry(ast.literal_eval(node.slice), dict, optree.PyTreeKind.DICT)
            else:
                raise ValueError
            steps.append(containers.step(entry))
            node = node.value
    except (SyntaxError, ValueError, TypeError, AttributeError, RecursionError) as error:
        raise ArgumentError(
            f"wrt={path!r}", why="it is no path", do="write it as in 'x', 'params.weight' or 'params[\"layer\"][0]'"
        ) from error
    return [node.id, *reversed(steps)]


def _part(
    args: tuple[Any, ...], names: Sequence[str], steps: Sequence[str], f: Function, keywords: dict[str, Any]
) -> _ArgumentPart:
    """Follow the steps of a path down into an argument, one container at a time."""
    if steps[0] not in names:
        raise _no_path(steps, f, args, names, keywords)
    position = names.index(steps[0])
    value, start = args[position], 0
    containers.flatten(value)  # which registers the dataclasses in it
    for step in steps[1:]:
        below = _children(value)
        if step not in below:
            raise _no_path(steps, f, args, names, keywords)
        for other, child in below.items():
            if other == step:
                value = child
                break
            start += len(containers.flatten(child)[0])
    count = len(containers.flatten(value)[0])
    if not count:
        raise ArgumentError(f"wrt={''.join(steps)!r}", why="there are no numbers in it", do="choose another part")
    return _ArgumentPart(position, value, start, start + count)


def _children(value: Any) -> dict[str, Any]:
    """Return the parts of a container by their steps, none for a leaf."""
    accessors = optree.tree_accessors(
        value, is_leaf=lambda part: part is not value, none_is_leaf=True, namespace=NAMESPACE
    )
    if not all(accessors):
        return {}
    children = optree.tree_leaves(value, is_leaf=lambda part: part is not value, none_is_leaf=True, namespace=NAMESPACE)
    return {containers.step(accessor[0]): child for accessor, child in zip(accessors, children, strict=True)}


def _check_apart(parts: Sequence[_ArgumentPart], paths: Sequence[str]) -> None:
    if not parts:
        raise ArgumentError("wrt=()", do="give a path, or a tuple of paths")
    ordered = sorted(range(len(parts)), key=lambda k: (parts[k].position, parts[k].start, parts[k].stop))
    for before, after in pairwise(ordered):
        if parts[before].position == parts[after].position and parts[after].start < parts[before].stop:
            raise ArgumentError(
                f"wrt={paths[before]!r} and {paths[after]!r}",
                why="a number is chosen twice, and has only one derivative",
            )


def _no_path(
    steps: Sequence[str], f: Function, args: tuple[Any, ...], names: Sequence[str], keywords: dict[str, Any]
) -> ArgumentError:
    path = "".join(steps)
    known = [*names, *(leaf for arg, name in zip(args, names, strict=True) for leaf in containers.paths(arg, name))]
    known = list(dict.fromkeys(known))
    near = difflib.get_close_matches(path, known, n=_NEAR, cutoff=0.4) or known[:_NEAR]
    why = f"no argument of {name_of(f)} has such a part" if steps[0] in names else f"{name_of(f)} has no such argument"
    if steps[0] in keywords:
        why = f"{steps[0]} was passed by keyword, and only positional arguments are differentiated"
    return ArgumentError(f"wrt={path!r}", why=why, do="near paths are " + ", ".join(near))
