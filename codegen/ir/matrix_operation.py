"""Operations on whole matrices: what a region runs where a library of linear algebra has one routine for it.

Such a region (`codegen.ir.region`) is run once, and each of its tables has all entries of a matrix, row by row. Its
body only says which results depend on which operands; what is computed, the operation says.

"product": of stacks of matrices, left (rows x inner) times right (inner x columns).
"cholesky": the lower factor of a matrix, of which the lower triangle is read; zeros above, NaN where there is none.
"triangular", "solve": of a matrix L, of which the lower triangle is read, or of any matrix, the solutions of its linear
systems; the right-hand sides are the rows of the second operand, and the solutions those of the result.
"determinant"; "log_determinant", of its absolute value, and its sign.

An operand that is `transposed` is stored by columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Literal, get_args

import sympy as sp

from codegen.errors import ArgumentError
from codegen.ir.copy_rows import body_of
from codegen.ir.program import Program
from codegen.ir.row_table import Table

MatrixKind = Literal["product", "cholesky", "triangular", "solve", "determinant", "log_determinant"]
MATRIX_KINDS: tuple[MatrixKind, ...] = get_args(MatrixKind)


@dataclass(frozen=True)
class MatrixOperation:
    """An operation and its sizes; of a product (number, rows, inner, columns), else the rows and right-hand sides.

    >>> MatrixOperation("solve", (3, 2)).operands, MatrixOperation("solve", (3, 2)).results
    ((9, 6), (6,))
    """

    kind: MatrixKind
    sizes: tuple[int, ...]
    transposed: tuple[bool, bool] = (False, False)  # of a product both operands, else the first

    def __post_init__(self) -> None:
        wanted = 4 if self.kind == "product" else 2 if self.kind in ("triangular", "solve") else 1
        if len(self.sizes) != wanted or min(self.sizes) < 1:
            raise ArgumentError(f"a matrix operation {self.kind} of sizes {self.sizes}")

    @property
    def operands(self) -> tuple[int, ...]:
        """The numbers of entries of its operands."""
        if self.kind == "product":
            number, rows, inner, columns = self.sizes
            return number * rows * inner, number * inner * columns
        n = self.sizes[0]
        return (n * n, n * self.sizes[1]) if len(self.sizes) > 1 else (n * n,)

    @property
    def results(self) -> tuple[int, ...]:
        """The numbers of entries of its results."""
        if self.kind == "product":
            number, rows, _, columns = self.sizes
            return (number * rows * columns,)
        n = self.sizes[0]
        by_kind = {"cholesky": (n * n,), "determinant": (1,), "log_determinant": (1, 1)}
        return by_kind[self.kind] if self.kind in by_kind else (n * self.sizes[1],)

    @property
    def operations(self) -> int:
        """How many products and sums it carries out, those of order n**3 and those of right-hand sides."""
        if self.kind == "product":
            number, rows, inner, columns = self.sizes
            return 2 * number * rows * inner * columns
        n, sides = self.sizes[0], self.sizes[1] if len(self.sizes) > 1 else 0
        if self.kind == "cholesky":
            return n**3 // 3
        return n * n * sides if self.kind == "triangular" else 2 * n**3 // 3 + 2 * n * n * sides

    @property
    def description(self) -> str:
        """What it is, for people.

        >>> MatrixOperation("product", (1, 3, 4, 2)).description, MatrixOperation("log_determinant", (5,)).description
        ('product of matrices 3 x 4 and 4 x 2', 'log determinant of a matrix 5 x 5')
        """
        what = {"cholesky": "Cholesky factor", "triangular": "triangular solve"}.get(
            self.kind, self.kind.replace("_", " ")
        )
        if self.kind != "product":
            sides = f", {self.sizes[1]} right-hand side{'s'[: self.sizes[1] != 1]}" if len(self.sizes) > 1 else ""
            return f"{what} of a matrix {self.sizes[0]} x {self.sizes[0]}{sides}"
        number, rows, inner, columns = self.sizes
        return f"{f'{number} times ' if number > 1 else ''}product of matrices {rows} x {inner} and {inner} x {columns}"

    def formula(self, *names: str) -> str:
        """Return what it computes of matrices with these names, whose right-hand sides are rows.

        >>> MatrixOperation("product", (1, 3, 4, 2), (True, False)).formula("A", "B")
        'Aᵀ B'
        >>> MatrixOperation("solve", (3, 1)).formula("A", "b"), MatrixOperation("solve", (3, 2)).formula("A", "B")
        ('A⁻¹ b', 'B A⁻ᵀ')
        """
        if self.kind == "product":
            return " ".join(f"{name}{'ᵀ' * turned}" for name, turned in zip(names, self.transposed, strict=True))
        if self.kind == "cholesky":
            return f"L, L Lᵀ = {names[0]}"
        if self.kind == "determinant":
            return f"det {names[0]}"
        if self.kind == "log_determinant":
            return f"log |det {names[0]}|"
        whole = f"tril({names[0]})" if self.kind == "triangular" else names[0]
        if self.sizes[1] == 1:
            return f"{whole}{'⁻ᵀ' if self.transposed[0] else '⁻¹'} {names[1]}"
        return f"{names[1]} {whole}{'⁻¹' if self.transposed[0] else '⁻ᵀ'}"

    @property
    def body(self) -> Program:
        """The body of its region: which results depend on which operands, and whether smoothly."""
        return _body(self.kind)


@cache
def _body(kind: MatrixKind) -> Program:
    rows = Table()
    slots = [
        rows.leaf(sp.Symbol(f"slot_{k}", real=True)) for k in range(1 + (kind in ("product", "triangular", "solve")))
    ]
    first, last = slots[0], slots[-1]
    if kind in ("product", "determinant"):
        results = [rows.canonical(sp.Mul, (first, last))]
    elif kind == "cholesky":
        results = [rows.row(sp.Pow, (first, rows.leaf(sp.Rational(1, 2))))]
    elif kind == "log_determinant":
        results = [rows.row(sp.log, (first,)), rows.row(sp.sign, (first,))]
    else:
        results = [rows.canonical(sp.Mul, (last, rows.row(sp.Pow, (first, rows.leaf(sp.Integer(-1))))))]
    return body_of(rows, (f"slot_{k}" for k in range(len(slots))), results, kind)
