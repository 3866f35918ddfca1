"""Map the arguments of a lambdified call to those of its kernel, and the kernel's outputs to results of the call."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field
from typing import Any

import numpy as np
import sympy as sp
from sympy.core.function import AppliedUndef
from sympy.core.relational import Relational
from sympy.logic.boolalg import BooleanAtom, BooleanFunction
from sympy.tensor.array.expressions import ArraySymbol
from sympy.utilities.exceptions import sympy_deprecation_warning

from codegen.errors import ArgumentError
from codegen.expressions.sympy_forms import can_be_input
from codegen.expressions.sympy_in import entries
from codegen.records import dataclass


class CallError(ArgumentError, TypeError):
    """A call has too many arguments, too few, or of another structure."""


class NoArgumentError(ArgumentError, SyntaxError):
    """What cannot be an argument, of which SymPy's code would not be Python."""

    __str__ = BaseException.__str__


NUMBER, TRUTH, MATRIX = "number", "truth", "matrix"
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


@dataclass(frozen=True)
class Sparse:
    """The places of a sparse matrix, whose entries are one array."""

    rows: tuple[int, ...]
    columns: tuple[int, ...]
    shape: tuple[int, int]

    def of(self, data: Any) -> Any:
        """Return the matrix as `scipy.sparse` has it; ArgumentError at many points."""
        if data.ndim != 1:
            raise ArgumentError(
                "a sparse matrix at many points", why="SciPy's matrices have two axes", do="make it dense: sp.Matrix"
            )
        from scipy.sparse import coo_matrix  # noqa: PLC0415 - optional extra; as sympy.lambdify has it

        return coo_matrix((data, (self.rows, self.columns)), self.shape)


@dataclass
class Results:
    """The outputs that are asked for: all scalars together as one array, then each matrix.

    >>> x = sp.Symbol("x")
    >>> results = Results.of([x, (x > 1, sp.Matrix([x]))], sparse=False)
    >>> results.outputs()
    [[x, x > 1], Matrix([[x]])]
    >>> results.fill((np.array([2.0, 1.0]), np.array([[2.0]])))
    [2.0, (True, array([[2.]]))]
    """

    shape: Any
    scalars: list[Any] = field(default_factory=list)
    matrices: list[Any] = field(default_factory=list)

    @classmethod
    def of(cls, expressions: Any, *, sparse: bool) -> Results:
        """Return what expressions ask for; sparse matrices stay so where that is asked for."""
        results = cls(None)
        results.shape = results._described(expressions, sparse)
        return results

    def _described(self, value: Any, sparse: bool) -> Any:
        """Collect scalars and matrices; return the structure. Depth is that of the user's own lists."""
        if sparse and isinstance(value, sp.SparseMatrix | sp.ImmutableSparseMatrix):
            places = sorted(value.todok())
            self.matrices.append([value[place] for place in places])
            rows, columns = tuple(row for row, _ in places), tuple(column for _, column in places)
            return Sparse(rows, columns, value.shape)
        if isinstance(value, sp.MatrixBase | sp.NDimArray | sp.MatrixExpr | ArraySymbol):
            self.matrices.append(value)
            return MATRIX
        if isinstance(value, list | tuple | sp.Tuple):
            parts = [self._described(item, sparse) for item in value]
            return parts if isinstance(value, list) else tuple(parts)
        self.scalars.append(value)
        truth = isinstance(value, Relational | BooleanAtom | BooleanFunction | bool) and not isinstance(value, sp.ITE)
        return TRUTH if truth else NUMBER

    @property
    def single(self) -> bool:
        """Whether it is one number, truth value or matrix."""
        return isinstance(self.shape, str | Sparse)

    def outputs(self) -> list[Any]:
        """Return the expressions of the kernel's outputs."""
        if self.single:
            return [*self.scalars, *self.matrices]
        return [*([self.scalars] if self.scalars else []), *self.matrices]

    def flat(self) -> list[Any]:
        """Return all scalar expressions, those of matrices too."""
        return [*self.scalars, *(item for matrix in self.matrices for item in _items(matrix))]

    def refilled(self, flat: list[Any]) -> Results:
        """Return the same with other expressions, in the order of `flat`."""
        rest = iter(flat)
        scalars = [next(rest) for _ in self.scalars]
        matrices: list[Any] = []
        for matrix in self.matrices:
            parts = [next(rest) for _ in _items(matrix)]
            matrices.append(parts if isinstance(matrix, list) else sp.Array(parts, matrix.shape))
        return Results(self.shape, scalars, matrices)

    def fill(self, results: Any) -> Any:
        """Return results of a kernel in the structure of the expressions."""
        if self.single:
            return _one(self.shape, results)
        arrays = results if isinstance(results, tuple) else (results,)
        scalars = iter(arrays[0] if self.scalars else ())
        return _filled(self.shape, scalars, iter(arrays[1:] if self.scalars else arrays))

    def __getstate__(self) -> Any:
        return self.shape, bool(self.scalars)  # expressions may be deep, which pickles do not like

    def __setstate__(self, state: Any) -> None:
        self.shape, self.scalars, self.matrices = state[0], [None] * state[1], []


def _items(matrix: Any) -> list[Any]:
    if isinstance(matrix, list):
        return matrix
    return entries(matrix.as_explicit() if isinstance(matrix, sp.MatrixExpr) else matrix)


def _one(shape: Any, value: Any) -> Any:
    if isinstance(shape, Sparse):
        return shape.of(np.asarray(value))
    if shape == MATRIX:  # equal, not identical, after a pickle
        return value
    plain = value.item() if isinstance(value, np.generic | np.ndarray) and value.ndim == 0 else value
    return plain if shape == NUMBER else bool(plain) if np.ndim(plain) == 0 else plain.astype(bool)


def _filled(shape: Any, scalars: Iterator[Any], matrices: Iterator[Any]) -> Any:
    if isinstance(shape, str | Sparse):
        return _one(shape, next(scalars if shape in (NUMBER, TRUTH) else matrices))
    parts = [_filled(part, scalars, matrices) for part in shape]
    return parts if isinstance(shape, list) else tuple(parts)
