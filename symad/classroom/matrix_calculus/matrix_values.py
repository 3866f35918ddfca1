"""Values of formulas of matrices with 60 digits, at random matrices of several sizes.

They share nothing with the rules of differentials: a derivative comes from values of the question alone, by central
differences.
"""

from __future__ import annotations

import operator
import random
from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from itertools import pairwise, product
from typing import Any

import sympy as sp
from mpmath import mp

from symad.classroom.matrix_calculus.matrix_formulas import ONES, Shapes, is_number, repeated
from symad.display.notation import Determinant, Norm, NumberOf, Trace, Transposed
from symad.tracing.calling.user_place import refusal

DIGITS = 60
_STEP = mp.mpf(10) ** -20
_AGREED = mp.mpf(10) ** -25
_SINGULAR = mp.mpf(10) ** -30
PLANS = ((3,), (2,), (4,), (2, 3, 4), (4, 2, 3))  # sizes of the random matrices, by which different sizes take turns
Names = Mapping[str, Any]


def shape(value: Any) -> tuple[int, int] | None:
    """Return rows and columns; None for a number."""
    return (value.rows, value.cols) if isinstance(value, mp.matrix) else None


def random_values(names: Iterable[str], shapes: Shapes, plan: Sequence[int], said: Mapping[str, str]) -> dict[str, Any]:
    """Return random values for letters: matrices, columns, numbers; I is the unit matrix."""
    letters = sorted({*names, "I"})
    sizes = sorted({size for name in letters for size in shapes.letter(name)} - {"1"})
    of_size = {"1": 1, **{size: plan[k % len(plan)] for k, size in enumerate(sizes)}}
    source, values = random.Random(len(plan) + plan[0]), dict[str, Any]()
    for name in letters:
        rows, columns = (of_size[size] for size in shapes.letter(name))
        known = {"I": mp.eye(rows), ONES.name: mp.ones(rows, columns)}
        value = known.get(name, mp.matrix(rows, columns))
        for j, k in product(range(rows), range(columns)) if name not in known else ():
            value[j, k] = mp.mpf(source.randrange(-(10**9), 10**9)) / 10**9 + 2 * (j == k)
        if said.get(name) == "symmetric":
            value = (value + value.T) / 2
        if said.get(name) == "sum 1":
            value /= mp.fsum(value)
        values[name] = value[0, 0] if is_number(name) else value
    return values


def value_of(part: Any, names: Names, where: str) -> Any:
    """Return the value of a formula; ArgumentError where its shapes do not fit."""
    if part.is_number and not part.args:
        if not part.is_real:
            _refuse("a number that is not real", where)
        return mp.mpf(sp.N(part, DIGITS))
    if part.is_Symbol:
        return names[part.name]
    parts = [base for argument in part.args for base in repeated(argument)] if part.is_Mul else part.args
    values = [value_of(argument, names, where) for argument in parts]
    if part.is_Add:
        if len({shape(value) for value in values}) > 1:
            _refuse("a sum of two shapes", where)
        return reduce(operator.add, values)
    if part.is_Mul:
        return _product(values, where)
    if part.is_Pow:
        return _power(values[0], values[1], where)
    if isinstance(part, Trace | Determinant) and len(set(shape(values[0]) or (1, 1))) > 1:
        _refuse(f"{part.func.__name__} of another shape", where)
    return _applied(part, values[0], where)


def _determinant(value: Any) -> Any:
    if abs(determinant := mp.det(value)) < _SINGULAR:
        raise ZeroDivisionError  # of sizes for which it is 0 everywhere
    return determinant


def _softmax(value: Any) -> Any:
    powers = value.apply(mp.exp)
    return powers / mp.fsum(powers)


_OF_MATRICES: dict[str, Any] = {
    "Transposed": lambda value: value.T, "Determinant": _determinant, "Total": mp.fsum, "softmax": _softmax,
    "Trace": lambda value: mp.fsum(value[k, k] for k in range(value.rows)),
    "Norm": lambda value: mp.sqrt(mp.fsum(entry**2 for entry in value)), "diag": lambda value: mp.diag(list(value)),
}  # fmt: skip


def _applied(part: Any, value: Any, where: str) -> Any:
    """Return the value of a function of a matrix, or of each of its entries."""
    name = part.func.__name__
    if shape(value) is not None and name in _OF_MATRICES:
        return _OF_MATRICES[name](value)
    if isinstance(part, Transposed | NumberOf):
        return abs(value) if isinstance(part, Norm) else value

    def in_entry(entry: Any) -> Any:
        number = sp.Float(mp.log(abs(entry)), DIGITS) if name == "log" else part.func(sp.Float(entry, DIGITS))
        if not number.is_real or not number.is_number:
            _refuse(f"{name} of a number", where)
        return mp.mpf(number)

    return in_entry(value) if shape(value) is None else value.apply(in_entry)


def _refuse(what: str, where: str) -> None:
    raise refusal(f"{what} ({where})", do="write sums and products of matrices whose shapes fit")


def _power(base: Any, exponent: Any, where: str) -> Any:
    if shape(exponent) is not None or (shape(base) is not None and (base.rows != base.cols or exponent % 1)):
        _refuse("an exponent", where)
    return base ** (exponent if shape(base) is None else int(exponent))


def _product(values: Sequence[Any], where: str) -> Any:
    """Return a product of numbers and matrices. A row times a column is a number: b (x^T a)."""
    scale, factors = mp.mpf(1), list[Any]()
    for value in values:
        if shape(value) is None:
            scale *= value
        elif factors and (factors[-1].rows, value.cols) == (1, 1) and factors[-1].cols == value.rows:
            scale *= (factors.pop() * value)[0, 0]
        else:
            factors.append(value)
    for left, right in pairwise(factors):
        if left.cols != right.rows:
            _refuse("a product whose shapes do not fit", where)
    whole = reduce(operator.mul, factors, scale)
    return whole[0, 0] if shape(whole) == (1, 1) else whole


def change(f: sp.Expr, names: Names, x: str, along: Any) -> Any:
    """Return the change of a formula in a direction by a central difference."""
    up, down = (value_of(f, {**names, x: names[x] + sign * _STEP * along}, "the question") for sign in (1, -1))
    return (up - down) * (1 / (2 * _STEP))


def derivative(f: sp.Expr, names: Names, x: str) -> Any:
    """Return the derivative of a number in the shape of x, or of a column in a column; refuse others."""
    variable, value = names[x], value_of(f, names, "the question")
    if shape(value) is not None and (value.cols, variable.cols) != (1, 1):
        raise refusal("the derivative of a matrix in a matrix", do=f"write the differential, with d{x} in it")
    rows, columns = (variable.rows, variable.cols) if shape(value) is None else (value.rows, variable.rows)
    slopes = mp.matrix(rows, columns)
    for j, k in product(range(variable.rows), range(variable.cols)):
        unit = mp.zeros(variable.rows, variable.cols)
        unit[j, k] = 1
        place = (j, k) if shape(value) is None else (slice(None), j)
        slopes[place] = change(f, names, x, unit)
    return slopes


def are_equal(left: Any, right: Any) -> bool:
    """Whether two values are equal to 25 digits, which is what differences have."""
    if shape(left) != shape(right):
        return False
    pairs = zip(left, right, strict=True) if shape(left) else [(left, right)]
    return all(abs(a - b) <= _AGREED * (1 + abs(b)) for a, b in pairs)
