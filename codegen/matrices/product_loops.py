"""Matrix products as nests: some rows a round, in blocks of terms, over all columns.

A symmetric product has only the blocks on and below the diagonal, with the sums of a block in registers. That is twice
as quick as a library, which computes all of it.

A block of rows and terms reads each number of the matrix on the right once for all its rows, and adds to each number of
the product once for all its terms. Terms are added from left to right in each block, and then block by block.

Source: Goto and van de Geijn, "Anatomy of high-performance matrix multiplication", ACM Trans. Math. Softw. 34 (2008).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache, partial, reduce

import numpy as np
import sympy as sp

from codegen.ir.copy_rows import BodyRows
from codegen.ir.program import Input, Output, Program
from codegen.ir.region import Buffer, Gather, Nest, Region, Result, RolledProgram
from codegen.ir.tables import Affine, Places, Table as Tables, table

ROWS, TERMS = 4, 4  # of a block: its numbers fit into registers
SIDE = 5  # of a block of sums: ten numbers make 25 products


def sums_of_products(rows: int, terms: int) -> Program:
    """Return the products of `rows` rows with one column, added from left to right; slots are the rows, the column.

    >>> body = sums_of_products(2, 3)
    >>> len(body.inputs), len(body.outputs), sum(map(bool, body.operands))
    (9, 2, 10)
    """
    body, sums = BodyRows((rows + 1) * terms), list[int]()
    column = body.slots[rows * terms :]
    for row in range(rows):
        pairs = zip(body.slots[row * terms : (row + 1) * terms], column, strict=True)
        sums.append(reduce(partial(body.pair, sp.Add), [body.pair(sp.Mul, *pair) for pair in pairs]))
    return body.body(sums)


def matrix_product(number: int, rows: int, inner: int, columns: int) -> RolledProgram:
    """Return the products of some matrices, stacks of rows.

    >>> program = matrix_product(1, 9, 6, 3)
    >>> [(nest.count, [(step.count, len(step.results)) for step in nest.steps]) for nest in program.steps]
    [(2, [(3, 4), (3, 4)]), (1, [(3, 1), (3, 1)])]
    """
    sizes = number * rows * inner, number * inner * columns, number * rows * columns

    def region(first: int, height: int, start: int, blocks: int, terms: int) -> Region:
        """Return the loop over some blocks of terms, and all columns, of the first rows of a block."""
        block, column = (axis.ravel() for axis in np.indices((blocks, columns)))
        inside = start + block * terms

        def moving(places: Places, matrix: int, row: int) -> Tables:
            return replace(table(places), shifts=(matrix, row) if number > 1 else (row,))

        def left(place: Places) -> Tables:
            return moving(place, rows * inner, height * inner)

        def product(place: Places) -> Tables:
            return moving(place, rows * columns, height * columns)

        block_rows = range(first, first + height)
        reads = [Gather(0, left(row * inner + inside + k)) for row in block_rows for k in range(terms)]
        reads += [Gather(1, moving((inside + k) * columns + column, inner * columns, 0)) for k in range(terms)]
        results = [Result(k, 2, product(row * columns + column), "add") for k, row in enumerate(block_rows)]
        return Region(sums_of_products(height, terms), blocks * columns, tuple(reads), tuple(results))

    nests = tuple(
        Nest(rounds, tuple(region(first, height, *block) for block in _blocks(inner, TERMS)))
        for first, rounds, height in _blocks(rows, ROWS)
    )
    buffers = Buffer("input", sizes[0]), Buffer("input", sizes[1]), Buffer("output", sizes[2])
    inputs = Input("matrix_0", sizes[:1]), Input("matrix_1", sizes[1:2])
    steps = nests if number == 1 else (Nest(number, nests),)
    return RolledProgram(inputs, (Output(sizes[2:], ()),), buffers, steps, "matrix product")


def lower_products(left: Gather, right: Gather, rows: int, inner: int, product: int) -> list[Nest]:
    """Return the nests that add the products of two lists of rows, of pairs whose first row is not before the second.

    All rows have `inner` numbers, and those of a list are side by side.

    >>> whole = Gather(0, Affine(0, 1, 84))
    >>> [nest.count for nest in lower_products(whole, whole, 12, 7, 1)]
    [2, 1, 2, 1]
    """

    def nest(number: int, first: tuple[int, int, int], second: tuple[int, int, int]) -> Nest:
        (i, height, down), (j, width, along) = first, second
        places = [((i + k) * inner, down * inner, left) for k in range(height)]
        places += [((j + k) * inner, along * inner, right) for k in range(width)]
        reads = [Gather(use.buffer, Affine(use.table.first + at, 1, inner, (shift,))) for at, shift, use in places]
        shifts = (down * rows + along,)
        ends = [(i + a) * rows + j + b for a in range(height) for b in range(width)]
        results = tuple(Result(k, product, Affine(end, 0, inner, shifts), "add") for k, end in enumerate(ends))
        return Nest(number, (Region(_all_products(height, width), inner, tuple(reads), results),))

    whole, rest = divmod(rows, SIDE)
    last = whole * SIDE
    nests = [nest(whole - k, (k * SIDE, SIDE, SIDE), (0, SIDE, SIDE)) for k in range(whole)]
    if rest and whole:
        nests.append(nest(whole, (last, rest, 0), (0, SIDE, SIDE)))
    if rest:
        nests.append(nest(1, (last, rest, 0), (last, rest, 0)))
    return nests


@cache
def _all_products(rows: int, columns: int) -> Program:
    """Return the body of the products of each of some slots with each of others."""
    body = BodyRows(rows + columns)
    return body.body([body.pair(sp.Mul, a, b) for a in body.slots[:rows] for b in body.slots[rows:]])


def _blocks(size: int, width: int) -> Iterator[tuple[int, int, int]]:
    """Return the begin, number and width of blocks: whole ones, and a rest.

    >>> list(_blocks(9, 4)), list(_blocks(3, 4))
    ([(0, 2, 4), (8, 1, 1)], [(0, 1, 3)])
    """
    if size >= width:
        yield 0, size // width, width
    if size % width:
        yield size - size % width, 1, size % width
