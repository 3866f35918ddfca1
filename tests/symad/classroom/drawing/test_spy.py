"""Spy plots show every entry where it is, and count them where squares stand for many."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest
import sympy as sp

import symad as sa
from codegen.ir.sparsity import SparsityPattern
from symad.classroom.drawing.spy import Spy, spy
from symad.errors import ArgumentError
from symad.tracing.values.sparse_matrix import SparseMatrix
from symad.transforms.jacobians import sparsity


def laplacian(u):
    """Return the energy of a 2-D grid."""
    u = u.reshape(12, 12)
    return np.sum((u[1:] - u[:-1]) ** 2) + np.sum((u[:, 1:] - u[:, :-1]) ** 2)


def area_of(svg: str) -> float:
    """Return the area of all squares."""
    corners = re.findall(r"M([\d.]+) ([\d.]+)L([\d.]+) [\d.]+L[\d.]+ ([\d.]+)L", svg)
    return sum((float(u) - float(x)) * (float(v) - float(y)) for x, y, u, v in corners)


def test_squares_are_where_the_entries_are() -> None:
    pattern = SparsityPattern([0, 0, 1, 3], [0, 2, 1, 4], (4, 5))
    picture = Spy(pattern)
    assert np.array_equal(picture.counts(), pattern.toarray())
    found = [tuple(map(float, pair)) for pair in re.findall(r"M([\d.]+) ([\d.]+)L", picture.svg())]
    frame = ET.fromstring(picture.svg()).findall("{*}rect")[-1]
    left, top = float(frame.get("x", "")), float(frame.get("y", ""))
    places = {(round((y - top) / 24), round((x - left) / 24)) for x, y in found}
    assert places == set(zip(pattern.rows.tolist(), pattern.columns.tolist(), strict=True))


def test_the_hessian_of_a_grid_has_five_diagonals() -> None:
    picture = spy(laplacian, np.zeros(144), order=2)
    dense = np.zeros((12, 12, 12, 12), dtype=bool)
    for i, j in np.ndindex(12, 12):
        for k, l in ((i, j), (i + 1, j), (i - 1, j), (i, j + 1), (i, j - 1)):
            if 0 <= k < 12 and 0 <= l < 12:
                dense[i, j, k, l] = True
    assert np.array_equal(picture.pattern.toarray(), dense.reshape(144, 144))
    assert picture.pattern.nnz == 144 + 4 * 12 * 11
    assert "144 × 144: 672 of its entries may be non-zero" in picture.description
    assert picture.counts().sum() == 672
    assert picture.block == 2


@pytest.mark.parametrize("shape", [(1, 1), (100, 100), (101, 7), (1000, 333), (3, 250)], ids=str)
def test_counts_in_squares_are_those_of_the_dense_matrix(shape: tuple[int, int]) -> None:
    random = np.random.default_rng(5)
    dense = random.random(shape) < 0.07
    dense[0, 0] = True
    picture = Spy(SparsityPattern(*np.nonzero(dense), shape))
    b = picture.block
    counts = picture.counts()
    for row, column in np.ndindex(counts.shape):
        assert counts[row, column] == dense[row * b : row * b + b, column * b : column * b + b].sum()
    assert max(counts.shape) <= 100
    ET.fromstring(picture.svg())


def test_a_hundred_thousand_rows_are_binned() -> None:
    n = 100_000
    rows, columns = np.repeat(np.arange(n), 2), np.repeat(np.arange(n), 2) + np.tile([0, 1], n)
    picture = Spy(SparsityPattern(rows[:-1], columns[:-1], (n, n)))
    assert picture.block == 1000
    assert picture.counts().sum() == 2 * n - 1
    assert picture.counts()[0, :3].tolist() == [1999, 1, 0]
    assert len(picture.svg()) < 30_000
    assert "a square is 1000 × 1000 of them, the darkest has 1 999." in picture.description
    assert len(picture.text(80).splitlines()) < 50


def test_runs_of_squares_cover_the_same_area() -> None:
    dense = np.random.default_rng(2).random((100, 100)) < 0.5
    dense = np.kron(dense, np.ones((2, 2), dtype=bool))
    picture = Spy(SparsityPattern(*np.nonzero(dense), dense.shape))
    assert area_of(picture.svg()) == pytest.approx(dense.sum() / 4 * 5.6**2, rel=0.02)


def test_what_may_be_given() -> None:
    x, y, z = sp.symbols("x y z")
    pattern = SparsityPattern([0, 1], [0, 1], (2, 2))
    for same in (pattern, SparseMatrix(np.ones(2), pattern), np.eye(2), sp.eye(2), sp.Matrix([[x, 0], [0, y]])):
        assert np.array_equal(spy(same).pattern.toarray(), np.eye(2, dtype=bool))
    hessian = spy(x**2 * y + z, [x, y, z], order=2)
    assert hessian.pattern.toarray().tolist() == [[True, True, False], [True, False, False], [False, False, False]]
    assert hessian.rows == hessian.columns == ("x", "y", "z")
    assert spy("x^2 y + z", ["x", "y", "z"], order=2).pattern == hessian.pattern
    assert spy([x * y, z], [x, y, z]).pattern.toarray().tolist() == [[True, True, False], [False, False, True]]


def test_a_function_that_gives_a_matrix_is_drawn_as_that_matrix() -> None:
    def chain(x):
        return np.sum(x[1:] ** 2 * x[:-1])

    x, full = np.ones(5), sparsity(chain, np.ones(5), order=2).toarray()
    for transform, name, expected in (
        (sa.hessian(chain, sparse="lower"), "Hessian, lower triangle", np.tril(full)),
        (sa.hessian(chain, sparse="upper", format="csc"), "Hessian, upper triangle", np.triu(full)),
        (sa.hessian(chain, sparse=True), "Hessian", full),
        (sa.hessian(chain), "Hessian", full),
        (sa.jacobian(lambda x: x[1:] * x[:-1], sparse=True), "Jacobian", np.eye(4, 5) + np.eye(4, 5, k=1) > 0),
        (sa.jacobian(lambda x: x[1:] * x[:-1]), "Jacobian", np.eye(4, 5) + np.eye(4, 5, k=1) > 0),
        (lambda x: sa.hessian(chain, sparse=True)(x), "Matrix", full),
    ):
        picture = spy(transform, x)
        assert (picture.pattern.toarray() == expected).all()
        assert picture.name == name
        assert len(picture.columns) == 5
        assert len(picture.rows) == (5 if name.startswith("Hessian") else 0)


def test_an_empty_matrix_is_a_frame() -> None:
    picture = Spy(SparsityPattern([], [], (3, 0)))
    ET.fromstring(picture.svg())
    assert "0 of its entries may be non-zero" in picture.text(80)


def test_what_may_not_be_given() -> None:
    for wrong in (lambda: spy(np.zeros(3)), lambda: spy(np.sin, 1.0, order=3), lambda: spy(7, 1.0)):
        with pytest.raises(ArgumentError):
            wrong()


def test_forms(tmp_path) -> None:
    picture = spy(laplacian, np.zeros(144), order=2)
    for suffix in (".svg", ".html", ".tex", ".txt"):
        assert picture.save(tmp_path / f"spy{suffix}").stat().st_size > 100
    assert "tikzpicture" in picture.latex()
    assert picture._repr_svg_() in picture.html()
