"""Identities: the quick question whether names still stand for the same objects, asked at each call of a kernel.

Most of what a function reads are names of modules, functions and numbers. Where one of them stands for another object,
the slow comparison decides (see `Surroundings`): two objects may be equal.
"""

from __future__ import annotations

from types import CellType, CodeType, FunctionType
from typing import Any


class Identities:
    """Which objects stood where: in namespaces, in variables of enclosing functions, in functions; empty dicts.

    >>> space, functions = {"a": 2.0}, Identities()
    >>> functions.in_space(space, "a")
    >>> functions.hold(), space.update(a=3.0), functions.hold()
    (True, None, False)
    """

    def __init__(self) -> None:
        self._spaces: list[tuple[dict[str, Any], str, Any]] = []
        self._asked: set[tuple[int, str]] = set()  # names in namespaces, by the ids of these
        self._cells: list[tuple[CellType, Any]] = []
        self._functions: list[tuple[FunctionType, CodeType, Any, Any]] = []
        self._empty: list[Any] = []

    def in_space(self, space: dict[str, Any], name: str) -> None:
        """Note what a name stands for, or that it stands for nothing."""
        if (id(space), name) not in self._asked:
            self._asked.add((id(space), name))
            self._spaces.append((space, name, space.get(name)))

    def in_cell(self, cell: CellType) -> None:
        """Note the value of a variable of an enclosing function."""
        self._cells.append((cell, cell.cell_contents))

    def of_function(self, f: FunctionType) -> None:
        """Note the code of a function and the values of its arguments that are left out."""
        self._functions.append((f, f.__code__, f.__defaults__, f.__kwdefaults__))

    def empty(self, container: Any) -> None:
        """Note that there is nothing in a dict, which is most functions' own."""
        self._empty.append(container)

    def hold(self) -> bool:
        """Whether all is as it was noted."""
        for space, name, value in self._spaces:
            if space.get(name) is not value:
                return False
        for f, code, defaults, keywords in self._functions:
            if f.__code__ is not code or f.__defaults__ is not defaults or f.__kwdefaults__ is not keywords:
                return False
        try:
            for cell, value in self._cells:
                if cell.cell_contents is not value:
                    return False
        except ValueError:  # nothing is bound to it any more
            return False
        for container in self._empty:  # noqa: SIM110 - `any` takes half as long again
            if container:
                return False
        return True
