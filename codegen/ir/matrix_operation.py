"""A matrix operation: a region that one routine computes.

Such a region (`codegen.ir.region`) is run once, and each of its tables has all entries of a matrix, row by row. Its
body only has the dependences of results on operands; the operation is

"product": of stacks of matrices, left (rows x inner) times right (inner x columns).
"cholesky": the lower factor of a matrix, of which the lower triangle is read; zeros above, NaN where there is none.
"triangular", "solve": of a matrix L, of which the lower triangle is read, or of any matrix, the solutions of its linear
systems; the right-hand sides are the rows of the second operand, and the solutions those of the result.
"determinant"; "log_determinant", of its absolute value, and its sign.

An operand that is `transposed` is stored by columns. All matrices of these are, as LAPACK has them, of one of m rows
and n columns, k the smaller number:
"qr", where n <= m: Q (m x n) and R (n x n, zeros below its diagonal).
"singular": U (m x k), the k singular values in descending order, and the transposed V (k x n).
"eigen": of a symmetric matrix, of which the lower triangle is read, its eigenvalues, ascending, and eigenvectors.
"exponential": exp A of a square matrix, by scaling and squaring.
Where an entry that is read is not finite, all results of the last three are NaN.

Operations whose routine is in the kernel; whole numbers are floats:
"order": of r rows of n keys, for each row the stable permutation that sorts it, NaN last.
"insertion", "insertion_right": of n sorted keys and m others, where each of these is inserted before, or after, equals.
"gather": of r rows of n numbers and of m places each, the numbers at these; negative places count from the end, and
places beyond give NaN. "scatter", its adjoint: of r rows of m numbers and their places, the n sums at these.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from inspect import signature
from typing import Literal, get_args

import sympy as sp

from codegen.errors import ArgumentError
from codegen.ir.copy_rows import BodyRows
from codegen.ir.program import Program
from codegen.records import dataclass

MatrixKind = Literal[
    "product", "cholesky", "triangular", "solve", "determinant", "log_determinant", "qr", "eigen", "singular",
    "exponential", "order", "insertion", "insertion_right", "gather", "scatter",
]  # fmt: skip
MATRIX_KINDS: tuple[MatrixKind, ...] = get_args(MatrixKind)
WITHOUT_LOOPS: frozenset[MatrixKind] = frozenset({"eigen", "singular", "exponential"})  # only in LAPACK
# A kernel has the routines of these itself; straight lines of them would compare every element with every other.
OWN: frozenset[MatrixKind] = frozenset({"order", "insertion", "insertion_right", "gather", "scatter"})
CONSTANT: frozenset[MatrixKind] = frozenset({"order", "insertion", "insertion_right"})  # between jumps
MOVING: frozenset[MatrixKind] = frozenset({"gather", "scatter"})  # linear, whatever the places are
# By the sizes: the numbers of entries of operands, and of results.
_ENTRIES: dict[MatrixKind, Callable[..., tuple[tuple[int, ...], tuple[int, ...]]]] = {
    "product": lambda number, rows, inner, columns: (
        (number * rows * inner, number * inner * columns), (number * rows * columns,)
    ),
    "cholesky": lambda n: ((n * n,), (n * n,)),
    "triangular": lambda n, sides: ((n * n, n * sides), (n * sides,)),
    "solve": lambda n, sides: ((n * n, n * sides), (n * sides,)),
    "determinant": lambda n: ((n * n,), (1,)),
    "log_determinant": lambda n: ((n * n,), (1, 1)),
    "qr": lambda m, n: ((m * n,), (m * n, n * n)),
    "eigen": lambda n: ((n * n,), (n, n * n)),
    "singular": lambda m, n: ((m * n,), (m * min(m, n), min(m, n), n * min(m, n))),
    "exponential": lambda n: ((n * n,), (n * n,)),
    "order": lambda rows, n: ((rows * n,), (rows * n,)),
    "insertion": lambda n, m: ((n, m), (m,)),
    "insertion_right": lambda n, m: ((n, m), (m,)),
    "gather": lambda rows, n, m: ((rows * n, rows * m), (rows * m,)),
    "scatter": lambda rows, n, m: ((rows * m, rows * m), (rows * n,)),
}  # fmt: skip
_CUBES = {
    "determinant": 2 / 3, "log_determinant": 2 / 3, "solve": 2 / 3, "cholesky": 1 / 3, "eigen": 9, "exponential": 24,
}  # fmt: skip  # of rows
_FORMULAS = {
    "cholesky": "L, L Lᵀ = {}", "determinant": "det {}", "log_determinant": "log |det {}|", "exponential": "exp {}",
    "qr": "Q, R, Q R = {}", "eigen": "λ, V, V diag(λ) Vᵀ = {}", "singular": "U, σ, V, U diag(σ) Vᵀ = {}",
}  # fmt: skip
_NAMES = {
    "cholesky": "Cholesky factor", "triangular": "triangular solve", "qr": "QR factors",
    "eigen": "eigenvalues and eigenvectors", "singular": "singular values and vectors",
}  # fmt: skip
_OWN_NAMES = {
    "order": "order of {1} keys", "insertion": "places of {1} keys among {0}",
    "insertion_right": "places of {1} keys among {0}, behind equals",
    "gather": "{2} of {1} numbers at computed places", "scatter": "sums of {2} numbers at {1} computed places",
}  # fmt: skip


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
        fits = len(self.sizes) == len(signature(_ENTRIES[self.kind]).parameters) and min(self.sizes) >= 1
        if not fits or (self.kind == "qr" and self.sizes[0] < self.sizes[1]):
            raise ArgumentError(f"a matrix operation {self.kind} of sizes {self.sizes}")

    @property
    def operands(self) -> tuple[int, ...]:
        """The numbers of entries of its operands."""
        return _ENTRIES[self.kind](*self.sizes)[0]

    @property
    def results(self) -> tuple[int, ...]:
        """The numbers of entries of its results."""
        return _ENTRIES[self.kind](*self.sizes)[1]

    @property
    def operations(self) -> int:
        """The number of products and sums, of order n**3 and of right-hand sides."""
        if self.kind == "product":
            number, rows, inner, columns = self.sizes
            return 2 * number * rows * inner * columns
        n, other = self.sizes[0], self.sizes[-1]
        if self.kind in OWN:
            return sum(self.operands) * (n.bit_length() if self.kind.startswith("insertion") else self.steps)
        if self.kind in ("qr", "singular"):
            return (4 if self.kind == "qr" else 20) * n * other * min(n, other)
        sides = other if len(self.sizes) > 1 else 0
        return int(_CUBES.get(self.kind, 0) * n**3) + (1 if self.kind == "triangular" else 2) * n * n * sides

    @property
    def steps(self) -> int:
        """The number of passes over the operands of an order."""
        return 8 if self.kind == "order" else 1

    @property
    def description(self) -> str:
        """Its name and sizes, for messages.

        >>> MatrixOperation("product", (1, 3, 4, 2)).description, MatrixOperation("log_determinant", (5,)).description
        ('product of matrices 3 x 4 and 4 x 2', 'log determinant of a matrix 5 x 5')
        """
        if self.kind in OWN:
            times = f"{self.sizes[0]} times " if self.sizes[0] > 1 and not self.kind.startswith("insertion") else ""
            return times + _OWN_NAMES[self.kind].format(*self.sizes)
        name = _NAMES.get(self.kind, self.kind.replace("_", " "))
        if self.kind in ("qr", "singular"):
            return f"{name} of a matrix {self.sizes[0]} x {self.sizes[1]}"
        if self.kind != "product":
            sides = f", {self.sizes[1]} right-hand side{'s'[: self.sizes[1] != 1]}" if len(self.sizes) > 1 else ""
            return f"{name} of a matrix {self.sizes[0]} x {self.sizes[0]}{sides}"
        number, rows, inner, columns = self.sizes
        return f"{f'{number} times ' if number > 1 else ''}product of matrices {rows} x {inner} and {inner} x {columns}"

    def formula(self, *names: str) -> str:
        """Return the formula of the operation for matrices with these names, whose right-hand sides are rows.

        >>> MatrixOperation("product", (1, 3, 4, 2), (True, False)).formula("A", "B")
        'Aᵀ B'
        >>> MatrixOperation("solve", (3, 1)).formula("A", "b"), MatrixOperation("solve", (3, 2)).formula("A", "B")
        ('A⁻¹ b', 'B A⁻ᵀ')
        """
        if self.kind == "product":
            return " ".join(f"{name}{'ᵀ' * turned}" for name, turned in zip(names, self.transposed, strict=True))
        if self.kind in OWN:
            return f"{self.kind.replace('_', ' ')}({', '.join(names)})"
        if self.kind in _FORMULAS:
            return _FORMULAS[self.kind].format(names[0])
        whole = f"tril({names[0]})" if self.kind == "triangular" else names[0]
        if self.sizes[1] == 1:
            return f"{whole}{'⁻ᵀ' if self.transposed[0] else '⁻¹'} {names[1]}"
        return f"{names[1]} {whole}{'⁻¹' if self.transposed[0] else '⁻ᵀ'}"

    @property
    def body(self) -> Program:
        """The body of its region: the dependences of results on operands, and whether these are smooth."""
        return _body(self.kind, len(self.operands))


@cache
def _body(kind: MatrixKind, operands: int) -> Program:
    rows = BodyRows(operands)
    first, last = rows.slots[0], rows.slots[-1]
    if kind in CONSTANT:
        signs = [rows.row(sp.sign, (slot,)) for slot in rows.slots]
        results = signs if len(signs) == 1 else [rows.canonical(sp.Add, tuple(signs))]
    elif kind in OWN:
        results = [rows.canonical(sp.Mul, (first, rows.row(sp.sign, (last,))))]
    elif kind in ("product", "determinant"):
        results = [rows.canonical(sp.Mul, (first, last))]
    elif kind == "cholesky":
        results = [rows.row(sp.Pow, (first, rows.leaf(sp.Rational(1, 2))))]
    elif kind in ("qr", "eigen", "singular"):  # no formulas: each result depends on all entries, and smoothly
        results = [rows.row(head, (first,)) for head in (sp.sin, sp.cos, sp.atan)[: 2 + (kind == "singular")]]
    elif kind == "exponential":
        results = [rows.row(sp.exp, (first,))]
    elif kind == "log_determinant":
        results = [rows.row(sp.log, (first,)), rows.row(sp.sign, (first,))]
    else:
        results = [rows.canonical(sp.Mul, (last, rows.row(sp.Pow, (first, rows.leaf(sp.Integer(-1))))))]
    return rows.body(results, kind)
