"""Map kernel outputs to the results of a lambdified function: scalars, matrices, nested lists."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field
from typing import Any

import numpy as np
import sympy as sp
from sympy.core.relational import Relational
from sympy.logic.boolalg import BooleanAtom, BooleanFunction
from sympy.tensor.array.expressions import ArraySymbol

from codegen.errors import ArgumentError
from codegen.expressions.sympy_in import entries
from codegen.records import dataclass

NUMBER, TRUTH, MATRIX = "number", "truth", "matrix"


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
