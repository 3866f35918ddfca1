"""Map the arguments of a lambdified call to the arguments of its kernel."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field
from typing import Any

import numpy as np
import sympy as sp
from sympy.core.function import AppliedUndef
from sympy.tensor.array.expressions import ArraySymbol
from sympy.utilities.exceptions import sympy_deprecation_warning

from codegen.errors import ArgumentError
from codegen.expressions.sympy_forms import can_be_input
from codegen.records import dataclass


class CallError(ArgumentError, TypeError):
    """A call has too many arguments, too few, or of another structure."""


class NoArgumentError(ArgumentError, SyntaxError):
    """What cannot be an argument, of which SymPy's code would not be Python."""

    __str__ = BaseException.__str__


_SINGLE = (sp.IndexedBase, sp.MatrixSymbol, ArraySymbol, sp.Function)
_LISTS = (list, tuple, set, frozenset, sp.Tuple, sp.MatrixBase, sp.NDimArray, Iterator)


@dataclass
class Arguments:
    """What a function takes: names, the kernel's arguments, and nested lists that are ragged, which come apart.

    >>> x, y, z = sp.symbols("x y z")
    >>> taken = Arguments.of((x, (y, [z])))
    >>> taken.inputs, taken.apart((1, (2, [3])))
    ([x, y, z], [1, 2, 3])
    """

    names: list[str]
    inputs: list[Any] = field(default_factory=list)
    structures: list[Any] = field(default_factory=list)  # None where the kernel takes the argument as it is
    replaced: dict[Any, Any] = field(default_factory=dict)  # stand-ins of expressions that are arguments

    @classmethod
    def of(cls, args: Any) -> Arguments:
        """Return the arguments of a list, or one that stands alone."""
        if isinstance(args, str):
            raise ArgumentError("a text as arguments", why="no text is evaluated", do="write sp.symbols(text)")
        if isinstance(args, set | frozenset):
            sympy_deprecation_warning(
                "Passing the function arguments to lambdify() as a set is deprecated. Use a list or tuple.",
                deprecated_since_version="1.6.3",
                active_deprecations_target="deprecated-lambdify-arguments-set",
                stacklevel=5,
            )
        single = can_be_input(args) or isinstance(args, _SINGLE)
        if not single and not isinstance(args, _LISTS):
            raise NoArgumentError(
                f"{args} as the arguments",
                why="an argument is a symbol, x(t), a derivative or sin(t), or a list of them",
            )
        arguments = [args] if single else list(args.flat() if isinstance(args, sp.MatrixBase) else args)
        result = cls([])
        for argument in arguments:
            result._add(argument)
        return result

    def _add(self, argument: Any) -> None:
        self.names.append(str(argument) if isinstance(argument, sp.Basic) else f"argument{len(self.names)}")
        if isinstance(argument, sp.Function) and not isinstance(argument, AppliedUndef):
            self.replaced[argument] = argument = sp.Dummy("argument")
        ragged = isinstance(argument, list | tuple | sp.Tuple) and not _is_regular(argument)
        self.structures.append(_structure(argument) if ragged else None)
        self.inputs += _leaves(argument) if ragged else [argument]

    @property
    def plain(self) -> bool:
        """Whether the kernel takes all arguments as they are."""
        return not any(self.structures)

    def apart(self, args: Sequence[Any]) -> list[Any]:
        """Return the kernel's arguments of a call; CallError where there are too many, or others."""
        if len(args) != len(self.names):
            raise CallError(f"{len(args)} arguments", why=f"the function takes {len(self.names)}")
        leaves: list[Any] = []
        for value, structure, name in zip(args, self.structures, self.names, strict=True):
            leaves += [value] if structure is None else _matching(value, structure, name)
        return leaves


def _is_regular(value: Any) -> bool:
    """Whether nested lists have a shape."""
    return len({_shape(item) for item in value}) <= 1 and all(
        _is_regular(item) for item in value if isinstance(item, list | tuple | sp.Tuple)
    )


def _shape(value: Any) -> tuple[int, ...]:
    if isinstance(value, sp.MatrixBase | sp.NDimArray):
        return tuple(value.shape)
    if not isinstance(value, list | tuple | sp.Tuple):
        return ()
    return len(value), *(_shape(value[0]) if len(value) else ())


def _structure(value: Any) -> Any:
    """Return nested lists with None in place of each leaf."""
    return [_structure(item) for item in value] if isinstance(value, list | tuple | sp.Tuple) else None


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, list | tuple | sp.Tuple):
        for item in value:
            yield from _leaves(item)
    else:
        yield value


def _matching(value: Any, structure: Any, name: str) -> list[Any]:
    """Return the leaves of a value of that structure."""
    if structure is None:
        return [value]
    if not isinstance(value, list | tuple | np.ndarray) or len(value) != len(structure):
        raise CallError(f"a value of type {type(value).__name__}", where=name, why=f"it is a list of {len(structure)}")
    return [leaf for item, part in zip(value, structure, strict=True) for leaf in _matching(item, part, name)]
