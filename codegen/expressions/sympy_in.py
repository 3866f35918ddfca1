"""Make a program from SymPy expressions by an iterative walk, linear in shared subexpressions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import Any

import sympy as sp

from codegen.errors import ArgumentError, UnboundSymbolError
from codegen.expressions.sympy_forms import Form, array_of, can_be_input, is_array_symbol, is_input_head, read_form
from codegen.ir.program import Head, Input, Output, Program
from codegen.ir.row_table import COMMUTATIVE, RowTable

Leaf = Callable[[sp.Basic], int]
Node = Callable[[Head, tuple[int, ...]], int]
Read = Callable[[sp.Basic], Form | None]


def walk(
    expressions: Sequence[sp.Basic], leaf: Leaf, node: Node, *, binary: bool = False, read: Read | None = None
) -> list[int]:
    """Convert expressions bottom-up: `leaf(atom)` and `node(head, operands)` are called once per distinct object.

    Shared sub-expressions are recognised by identity, so the cost is linear in the number of objects in memory, at
    any depth. A Piecewise is flattened to value, condition, value, condition... With `binary=True` sums, products,
    Max, Min and connectives become left-associated pairs, and a Piecewise of many branches nested ones of two. `read`
    (see `read_form`) says how some objects are read; without it every object is taken as it is.

    >>> x = sp.Dummy("x")  # a symbol of that name may be another object, which SymPy keeps
    >>> rows = []
    >>> def add(*row):
    ...     rows.append(row)
    ...     return len(rows) - 1
    >>> walk([sp.sin(x) * x], add, add)
    [2]
    >>> rows[2] == (sp.Mul, (0, 1))
    True
    """
    memo: dict[int, int] = {}
    alive: list[object] = []  # identities stay valid only while the objects live
    stack: list[Any] = list(reversed(expressions))
    build = _binary_node(leaf, node, memo) if binary else node
    while stack:
        expression = stack.pop()
        if expression is None:
            expression, head, children = stack.pop()
            rows = tuple([memo[id(child)] for child in children])
            memo[id(expression)] = rows[0] if head is None else build(head, rows)
        elif id(expression) not in memo:
            alive.append(expression)
            form = None if read is None else read(expression)
            head, children = (expression.func, _children(expression)) if form is None else form
            if children:
                alive.append(children)
                stack += ((expression, head, children), None)
                stack += [child for child in reversed(children) if id(child) not in memo]
            else:
                memo[id(expression)] = leaf(expression)
    return [memo[id(expression)] for expression in expressions]


def program_from_sympy(
    args: Sequence[Any],
    expressions: Sequence[Any],
    *,
    name: str = "kernel",
    replacements: Sequence[tuple[sp.Symbol, sp.Basic]] = (),
) -> Program:
    """Return the Program that computes `expressions` from `args`.

    `replacements` are symbols with their values, which may hold those before them: the first part of what `sympy.cse`
    gives.

    Each argument is a symbol, x[0], x(t) or a derivative of x(t) (a scalar input), or a nested list, tuple, Matrix or
    Array of them, an IndexedBase or MatrixSymbol (an input array of that shape). Each expression is likewise a scalar,
    a nested list (an array) or a Matrix (2-D array). ArgumentError for an argument that is nothing of this, appears
    twice or is ragged; UnboundSymbolError for a symbol or function of time that is no argument.

    >>> x, y = sp.symbols("x y")
    >>> program = program_from_sympy([(x, y)], [x * y, sp.Matrix([[x, 0]])])
    >>> [array.shape for array in program.inputs], [array.shape for array in program.outputs]
    ([(2,)], [(), (1, 2)])
    """
    table = _Bound()
    inputs: list[Input] = []
    for position, argument in enumerate(args):
        shape, symbols = flattened(argument, f"argument {position}")
        inputs.append(Input(str(argument) if shape == () else f"argument{position}", shape))
        for symbol in symbols:
            table.add_input(symbol, position)
    for symbol, value in replacements:
        (table.let[symbol],) = walk([sp.sympify(value)], table.leaf, table.row, read=table.read)
    shaped = [flattened(expression, f"expression {k}") for k, expression in enumerate(expressions)]
    rows = iter(walk([item for _, items in shaped for item in items], table.leaf, table.row, read=table.read))
    outputs = tuple(Output(shape, _take(rows, len(items))) for shape, items in shaped)
    return Program(table.heads, table.operands, table.atoms, tuple(inputs), outputs, name)


class _Bound(RowTable):
    """A table whose symbols are all arguments, or stand for rows (`let`)."""

    def __init__(self) -> None:
        super().__init__()
        self.let: dict[sp.Basic, int] = {}

    def add_input(self, symbol: sp.Basic, position: int) -> None:
        if not can_be_input(symbol) or self.has(symbol):
            raise ArgumentError(
                f"{symbol} in argument {position}", why="an argument is made of distinct symbols", do="use sp.Symbol"
            )
        super().leaf(symbol)

    def leaf(self, atom: sp.Basic) -> int:
        """Return the leaf of an atom; UnboundSymbolError for a symbol that is no argument."""
        if atom in self.let:
            return self.let[atom]
        if getattr(atom, "is_symbol", False) and not self.has(atom):
            raise _unbound(f"symbol {atom}")
        return super().leaf(atom)

    def read(self, expression: sp.Basic) -> Form | None:
        """Return how an object is read: x(t), its derivatives and x[0] are arguments."""
        if is_input_head(type(expression)) or (expression.args and getattr(expression, "is_symbol", False)):
            if self.has(expression):
                return None, ()
            if can_be_input(expression):
                raise _unbound(str(expression))
        return read_form(expression)


def _unbound(what: str) -> UnboundSymbolError:
    return UnboundSymbolError(what, why="it is no argument of the function", do="add it to args")


def _children(expression: sp.Basic) -> tuple[sp.Basic, ...]:
    """Operands of an expression; those of a Piecewise without its pairs."""
    children: tuple[sp.Basic, ...] = expression.args
    if children and expression.func is sp.Piecewise:
        return tuple(part for pair in children for part in pair.args)
    return children


def _binary_node(leaf: Leaf, node: Node, memo: dict[int, int]) -> Node:
    def build(head: Head, operands: tuple[int, ...]) -> int:
        if head in COMMUTATIVE and len(operands) > 2:
            total = operands[0]
            for operand in operands[1:]:
                total = node(head, (total, operand))
            return total
        if head is sp.Piecewise and len(operands) > 2:
            if id(sp.true) not in memo:
                memo[id(sp.true)] = leaf(sp.true)
            return _nested_piecewise(operands, memo[id(sp.true)], node)
        return node(head, operands)

    return build


def _nested_piecewise(operands: tuple[int, ...], true: int, node: Node) -> int:
    value, condition = operands[-2:]
    rest = value if condition == true else node(sp.Piecewise, (value, condition))
    for k in range(len(operands) - 4, -1, -2):
        rest = node(sp.Piecewise, (operands[k], operands[k + 1], rest, true))
    return rest


def flattened(value: Any, where: str) -> tuple[tuple[int, ...], list[sp.Basic]]:
    """Shape and flat items (C order) of a scalar, a nested sequence or a matrix, level by level."""
    shape: tuple[int, ...] = ()
    items = [value]
    while any(isinstance(item, _ARRAYS) or is_array_symbol(item) for item in items):
        parts = [_parts(item) for item in items]
        if len({part_shape for part_shape, _ in parts}) != 1:
            raise ArgumentError("a ragged nested list", where=where, do="give every row the same length")
        shape += parts[0][0]
        items = [item for _, part in parts for item in part]
    return shape, [item if isinstance(item, sp.Basic) else sp.sympify(item) for item in items]


_ARRAYS = (list, tuple, sp.MatrixBase, sp.NDimArray, sp.Tuple, sp.MatrixExpr, sp.IndexedBase)


def _parts(item: Any) -> tuple[tuple[int, ...], list[Any]]:
    if isinstance(item, sp.MatrixBase | sp.NDimArray):
        return item.shape, entries(item)
    if isinstance(item, list | tuple | sp.Tuple):
        return (len(item),), list(item)
    return array_of(item) or ((-1,), [item])


def entries(array: Any) -> list[sp.Basic]:
    """Return the entries of a SymPy matrix or array in C order.

    >>> entries(sp.Array([[1, 2], [3, 4]])), entries(sp.Matrix([5, 6]))
    ([1, 2, 3, 4], [5, 6])
    """
    if isinstance(array, sp.MatrixBase):
        return list(array.flat())
    return [array[index] for index in product(*map(range, array.shape))]


def _take(rows: Iterator[int], count: int) -> tuple[int, ...]:
    return tuple(next(rows) for _ in range(count))
