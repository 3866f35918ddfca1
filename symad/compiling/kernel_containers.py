"""Flatten and rebuild the containers of a kernel, by objects that pickles and files can hold."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import symad.tracing.values.containers as containers
from codegen.ir.program import Declared
from codegen.machine.calls.compiled import Pack, Unpack
from symad.errors import ArgumentError

LEAF = 0  # stands for an array in a file
PLAIN_KEYS = (str, int, bool, float, type(None))


class _Structured:
    """A container's structure; it pickles as the container with a 0.0 in place of each array."""

    __slots__ = ("structure",)

    def __init__(self, structure: containers.Structure) -> None:
        self.structure: containers.Structure = structure

    def __reduce__(self) -> tuple[Any, ...]:
        return _of_example, (type(self), self._example())

    def portable(self, name: str) -> Any:
        """Return the container as data for a file; ArgumentError for a type that is no plain data."""
        return _described(self._example(), name)

    def _example(self) -> Any:
        return containers.unflatten(self.structure, [0.0] * self.structure.num_leaves)


def _of_example(kind: type[_Structured], example: Any) -> _Structured:
    return kind(containers.flatten(example)[1])


class ArgumentsApart(_Structured):
    """Takes the arguments of a call apart; ArgumentError for those of another structure. The kernel knows the names."""

    __slots__ = ()
    by_position = True

    def __call__(self, args: tuple[Any, ...], keywords: dict[str, Any]) -> list[Any]:
        leaves, structure = containers.flatten(args)
        containers.check_structure(structure, self.structure, "the kernel takes")
        return leaves


class ResultTogether(_Structured):
    """Puts the arrays of a result together."""

    __slots__ = ()

    def __call__(self, arrays: Sequence[Any]) -> Any:
        return containers.unflatten(self.structure, arrays)


def _described(value: Any, name: str) -> Any:
    kind = type(value)
    if value is None:
        return None
    if kind is float:
        return LEAF
    if kind in (tuple, list):
        return {kind.__name__: [_described(part, name) for part in value]}
    if kind is dict and all(map(_is_plain, value)):
        return {"dict": [[key, _described(part, name)] for key, part in value.items()]}
    raise ArgumentError(
        f"{name} with a container of type {kind.__name__}"
        + (" with other keys than texts and finite numbers" if kind is dict else ""),
        why="a kernel's file holds tuples, lists, dicts and None, and no classes",
        do="pickle the kernel, or compile a function of these",
    )


def _is_plain(key: Any) -> bool:
    return type(key) in PLAIN_KEYS and not (type(key) is float and not math.isfinite(key))


def _example_of(data: Any) -> Any:
    if data is None:
        return None
    if data == LEAF:
        return 0.0
    if type(data) is not dict:
        raise TypeError(f"{type(data).__name__} in place of a container")
    ((kind, parts),) = data.items()
    if kind == "dict":
        examples = {key: _example_of(part) for key, part in parts}
        if len(examples) != len(parts) or not all(map(_is_plain, examples)):
            raise ValueError("a dict with keys twice, or of another type")
        return examples
    return {"tuple": tuple, "list": list}[kind](map(_example_of, parts))


def restored(data: Any, declared: Declared) -> tuple[Pack | None, Unpack | None]:
    """Return the containers in a file; ValueError, TypeError or KeyError for data that `portable` never writes."""
    pack, unpack = (
        None if data[name] is None else _checked(kind(containers.flatten(_example_of(data[name]))[1]), arrays)
        for name, kind, arrays in (
            ("arguments", ArgumentsApart, declared.arguments), ("result", ResultTogether, declared.outputs),
        )
    )  # fmt: skip
    return pack, unpack


def _checked(container: Any, arrays: Sequence[Any]) -> Any:
    if container.structure.num_leaves != len(arrays):
        raise ValueError(f"containers of {container.structure.num_leaves} arrays for {len(arrays)}")
    return container
