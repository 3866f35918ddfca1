"""Spy plots of the sparsity of a derivative: exact for small matrices, counts in squares for large ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import ceil
from typing import Any, Literal

import numpy as np
import sympy as sp
from numpy.typing import NDArray

import codegen.ir.sparsity as sparsity_pattern
import symad.tracing.values.containers as containers
from codegen.ir.sparsity import SparsityPattern
from codegen.records import dataclass
from symad.classroom.drawing.boxes import count_label, symbol_label
from symad.classroom.drawing.svg import Canvas, text_width
from symad.classroom.formulas.given import given
from symad.classroom.formulas.read import read_formula
from symad.derivatives.in_code import transform_of
from symad.display.document import Document, Paragraph
from symad.display.shown import Shown
from symad.tracing.calling.tracebacks import public_api
from symad.tracing.calling.user_place import refusal
from symad.tracing.trace import trace
from symad.tracing.values.sparse_matrix import SparseMatrix
from symad.transforms.jacobians import sparsity

SQUARES = 100  # on a side, at most
NAMED = 30  # rows or columns that have their names beside them, at most
_FIELD, _LARGEST, _SMALLEST = 560.0, 24.0, 3.0  # pixels: of all squares, of one
_LEVELS = (0.3, 0.5, 0.7, 0.85, 1.0)  # how dark: the k-th from k/5 of the largest count on
_LINES = 40  # of the picture in characters


@dataclass(frozen=True)
class Spy(Shown):
    """The picture of a sparsity pattern. One square stands for `block` rows and columns."""

    pattern: SparsityPattern
    rows: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    name: str = "Matrix"

    @property
    def title(self) -> str:
        return f"{self.name}: where it may be non-zero"

    @property
    def block(self) -> int:
        """Rows and columns per square: 1 for a small matrix."""
        return max(1, ceil(max(self.pattern.shape) / SQUARES))

    def counts(self) -> NDArray[np.int64]:
        """Return the number of entries in each square.

        >>> Spy(SparsityPattern([0, 1], [1, 1], (2, 2))).counts()
        array([[0, 1],
               [0, 1]])
        """
        height, width = (ceil(size / self.block) for size in self.pattern.shape)
        flat = self.pattern.rows // self.block * width + self.pattern.columns // self.block
        return np.bincount(flat, minlength=height * width).reshape(height, width).astype(np.int64)

    @property
    def description(self) -> str:
        """The picture in words."""
        pattern, block = self.pattern, self.block
        height, width = map(count_label, pattern.shape)
        text = f"{self.name}, {height} × {width}: {count_label(pattern.nnz)} of its entries may be non-zero"
        text += f" (density {pattern.density:.3g})"
        if block > 1:
            text += f"; a square is {block} × {block} of them, the darkest has {count_label(int(self.counts().max()))}"
        return text + "."

    def document(self) -> Document:
        height, width = self.pattern.shape
        scale = max(1, ceil(height / (4 * _LINES)), ceil(width / 144))
        text = ""
        if self.pattern.nnz:
            rows, columns = self.pattern
            text = sparsity_pattern.spy(rows, columns, self.pattern.shape, width=max(1, ceil(width / (2 * scale))))
        return (self.canvas().picture(self.description, text), Paragraph(self.description))

    def svg(self) -> str:
        """Return the picture as SVG, for a page."""
        return self.canvas().svg()

    def canvas(self) -> Canvas:
        """Return the picture in shapes: squares in a frame, with numbers or names of rows and columns."""
        counts = self.counts()
        size = min(_LARGEST, max(_SMALLEST, _FIELD / max(1, *counts.shape)))
        height, width = (count * size for count in counts.shape)
        rows, columns = _labels(self.rows, self.pattern.shape[0]), _labels(self.columns, self.pattern.shape[1])
        left = 22 + max((text_width(label, 12) for _, label in rows), default=0.0)
        named = bool(self.columns) and self.pattern.shape[1] <= NAMED
        deep = 16 + max((text_width(label, 12) for _, label in columns), default=0.0) if named else 26.0
        canvas = Canvas(left + width + 16, deep + height + 16)
        for row, label in rows:
            canvas.text(left - 8, deep + (row + 0.5) / self.block * size + 4, label, size=12, anchor="end")
        for column, label in columns:
            x = left + (column + 0.5) / self.block * size
            if named:
                canvas.text(x + 4, deep - 8, label, size=12, anchor="start", turned=-90)
            else:
                canvas.text(x, deep - 8, label, size=12)
        _draw_squares(canvas, counts, size, (left, deep), gap=0.0 if self.block > 1 or size < 6 else 1.0)
        canvas.box(left, deep, width, height, stroke="muted", radius=0, line=1.0)
        return canvas

    def more_forms(self) -> dict[str, Callable[[], str]]:
        return {".svg": lambda: self.canvas().svg(ground=True) + "\n"}

    def _repr_svg_(self) -> str:
        return self.svg()


@public_api
def spy(f: Any, x: Any = None, order: Literal[1, 2] = 1) -> Spy:
    """Return the spy plot of a matrix, or of the derivatives of f at x: the Jacobian, or with order 2 the Hessian.

    f is a function and x its argument, or an expression (or list, or formula as text) and x its symbols; or f is a
    SparsityPattern, a SparseMatrix, an array or a SymPy Matrix, and x is left out. The pattern is exact: outside of it
    there are proved zeros. A function that gives a matrix, `sa.hessian(f)` or one whose result is a SparseMatrix, is
    drawn as that matrix. ArgumentError for other orders, and for an array that is no matrix.

    >>> print(spy(lambda x: x[1:] - x[:-1] ** 2, np.zeros(4)))
    ⠙⠦
    <BLANKLINE>
    Jacobian, 3 × 4: 6 of its entries may be non-zero (density 0.5).
    """
    if order not in (1, 2):
        raise refusal(f"order={order!r}", do="give 1 (Jacobian) or 2 (Hessian)")
    if isinstance(f, SparseMatrix):
        f = f.pattern
    if isinstance(f, SparsityPattern):
        return Spy(f)
    if x is None and isinstance(f, np.ndarray | sp.MatrixBase):
        dense: NDArray[Any] = np.array(f.tolist() if isinstance(f, sp.MatrixBase) else f)
        if dense.ndim != 2:
            raise refusal(f"an array of shape {dense.shape} as a matrix", do="give a matrix")
        rows, columns = np.nonzero(dense)
        return Spy(SparsityPattern(rows, columns, (dense.shape[0], dense.shape[1])))
    problem = given(read_formula(f) if isinstance(f, str) else f, x)
    leaves, structure = containers.flatten(problem.argument)
    point = containers.unflatten(structure, [np.zeros(np.shape(leaf))[()] for leaf in leaves])  # only shapes count
    pattern, name = _of_matrix(problem.function, point) if order == 1 else (None, "")
    if pattern is None:
        pattern, name = sparsity(problem.function, point, order=order), "Hessian" if order == 2 else "Jacobian"
    names = tuple(symbol_label(str(symbol)) for symbol in problem.symbols)
    square = name.startswith("Hessian") and pattern.shape[0] == len(names)
    return Spy(pattern, names if square else (), names if pattern.shape[1] == len(names) else (), name)


def _of_matrix(f: Callable[..., Any], point: Any) -> tuple[SparsityPattern | None, str]:
    """Return the pattern and the name of the matrix that f returns; None if it returns none."""
    recipe = transform_of(f)
    kind = recipe.transform if recipe is not None else ""
    if recipe is not None and kind in ("Hessian", "Jacobian") and not recipe.sparse:
        order: Literal[1, 2] = 2 if kind == "Hessian" else 1
        return sparsity(recipe.function, point, order=order, argnums=recipe.argnums), kind
    outputs = trace(f, point).outputs
    result = containers.unflatten(outputs.structure, outputs.arrays)
    if not isinstance(result, SparseMatrix):
        return None, ""
    triangle = recipe.sparse if recipe is not None else False
    return result.pattern, f"{kind}, {triangle} triangle" if triangle in ("lower", "upper") else kind or "Matrix"


def _labels(names: Sequence[str], count: int) -> list[tuple[int, str]]:
    """Return the labels of rows or columns: their names if they are few, else round numbers."""
    if count <= NAMED and names:
        return list(enumerate(names))
    step = next(s * 10**k for k in range(20) for s in (1, 2, 5) if count <= 10 * s * 10**k)
    return [(number, count_label(number)) for number in range(0, count, step)]


def _draw_squares(
    canvas: Canvas, counts: NDArray[np.int64], size: float, corner: tuple[float, float], gap: float
) -> None:
    """Draw the squares of one shade as one path. Without a gap, neighbours in a row are one rectangle."""
    most = int(counts.max(initial=0))
    shades = np.ceil(counts * len(_LEVELS) / max(1, most)).astype(int)
    for level, opacity in enumerate(_LEVELS, start=1):
        commands = []
        for row, start, end in _runs(shades == level, join=gap == 0):
            x, y = corner[0] + start * size, corner[1] + row * size
            u, v = corner[0] + end * size - gap, y + size - gap
            commands.append(f"M{x:.1f} {y:.1f}L{u:.1f} {y:.1f}L{u:.1f} {v:.1f}L{x:.1f} {v:.1f}Z")
        if commands:
            canvas.path("".join(commands), stroke=None, fill="tangent", opacity=opacity)


def _runs(marked: NDArray[np.bool_], *, join: bool) -> list[tuple[int, int, int]]:
    """Return (row, first column, column after the last) of each marked run."""
    if not join:
        return [(row, column, column + 1) for row, column in zip(*np.nonzero(marked), strict=True)]
    edges = np.diff(np.pad(marked, ((0, 0), (1, 1))).astype(np.int8), axis=1)
    rows, starts = np.nonzero(edges == 1)
    ends = np.nonzero(edges == -1)[1]
    return list(zip(rows.tolist(), starts.tolist(), ends.tolist(), strict=True))
