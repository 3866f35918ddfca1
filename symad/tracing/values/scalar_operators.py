"""Python's operators on traced numbers.

They are the inner loop of tracing: operands that are Python numbers or traced numbers do not involve NumPy.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from functools import partial
from types import FrameType
from typing import Any

import numpy as np
import sympy as sp

from symad.errors import TraceError
from symad.tracing.calling.scope import Scope, join
from symad.tracing.calling.user_place import is_library, user_place
from symad.tracing.numpy.ufuncs import UFUNCS
from symad.tracing.values.constant_nodes import is_boolean
from symad.tracing.values.object_arrays import check_order
from symad.tracing.values.python_numbers import (
    NUMBERS,
    as_count,
    as_truth,
    check_division,
    check_power,
    is_pythons,
    note_result,
)
from symad.tracing.values.traced import Traced, is_left_to
from symad.tracing.values.whole_numbers import are_whole, keeping_integers

Operator = Callable[..., Any]  # a method of traced numbers
_NUMPY_NUMBERS = frozenset(np.dtype(code).type for code in "?bhilqBHILQefd")
_NO_NUMBERS = (type(None), str, bytes, dict, set, frozenset)
_COUNTING = frozenset({"add", "multiply", "subtract", "negative", "positive", "absolute"})  # not so of NumPy's truths
_SEQUENCES = frozenset({list, tuple, str, bytes, bytearray})


class TracedNumber(Traced):
    """A traced number for operators: its node in the graph of its scope. Immutable."""

    __slots__ = ("node", "scope")

    def __init__(self, node: int, scope: Scope) -> None:
        self.node: int = node
        self.scope = scope


def binary(ufunc: np.ufunc, *, is_reflected: bool = False) -> Operator:
    name = ufunc.__name__
    build, counts = UFUNCS[name], name in _COUNTING

    def method(self: TracedNumber, other: Any) -> Any:
        kind, scope, by_operator, left = type(other), self.scope, True, self.node
        if kind is type(self):
            if other.scope is not scope:
                scope = join(scope, other.scope)
            right = other.node
        elif kind in NUMBERS:
            right = scope.graph.number(other)
        elif is_reflected:
            return NotImplemented if isinstance(other, sp.MatrixBase) else ufunc(other, self)
        elif kind in _NUMPY_NUMBERS:
            right, by_operator = scope.graph.number(other.item()), False
        elif isinstance(other, sp.MatrixBase):
            return NotImplemented  # SymPy's rules for matrices: 2 * M is a matrix, and its * is the matrix product
        else:
            answers = is_left_to(other) or getattr(kind, "__array_ufunc__", True) is None
            return NotImplemented if answers else ufunc(self, other)
        if not scope.open:
            scope.check_open()
        if counts and by_operator and scope.graph.floats:
            left = as_count(scope.graph, left, right)
        if is_reflected:
            left, right = right, left
        node = build(scope.graph, left, right)
        if scope.graph.integers:
            node = keeping_integers(scope.graph, name, node, (left, right))
        if scope.graph.floats:
            operands = (self.node,) if kind in NUMBERS else (self.node, right)
            note_result(scope.graph, node, operands, by_operator=by_operator)
        if node >= scope.graph.placed:
            frame = sys._getframe(1)
            scope.graph.place(sys._getframe(2) if frame.f_code.co_filename == __file__ else frame)  # x**y, x == y
        return type(self)(node, scope)

    return method


reflected = partial(binary, is_reflected=True)  # the left operand is none of ours: a number, or what NumPy converts


def repeating(multiply: Operator, *, reflected: bool = False) -> Operator:
    """* of a whole number, as a plain count, repeats a list, a tuple or a text; that of a float is an error.

    A sequence on the left repeats itself, by `__index__`: `values *= n` changes the list itself.
    """

    def method(self: Any, other: Any) -> Any:
        if type(other) not in _SEQUENCES:
            return multiply(self, other)
        if not are_whole(self.scope.graph, self.node):
            if is_pythons(self.scope.graph, self.node) and not is_library(sys._getframe(1).f_code.co_filename):
                raise TraceError(
                    f"a {type(other).__name__} times a traced float",
                    where=user_place(),
                    why="Python repeats it as often as an int says, and raises a TypeError for a float",
                    do="write np.array(values) * x for products, or give the count as a constant, int(n)",
                )
            return multiply(self, other)
        return NotImplemented if reflected else other * self.__index__()

    return method


def equality(ufunc: np.ufunc) -> Operator:
    """== and != also compare (by identity) with values that are no numbers: None, texts, dicts, sets."""
    compare, equal = binary(ufunc), ufunc is np.equal

    def method(self: Any, other: Any) -> Any:
        if isinstance(other, _NO_NUMBERS):
            return NotImplemented
        if isinstance(other, bool) and is_boolean(self.scope.graph, self.node):
            return (
                self if other is equal else unary(np.logical_not)(self)
            )  # c == True is c: SymPy's Piecewise asks it of its conditions
        result = compare(self, _as_float(other) if type(other) is Decimal else other)
        return _as_pythons(result, sys._getframe(1))

    return method


def _decimal_order(ufunc: np.ufunc, value: Decimal) -> tuple[Operator, float]:
    """Return the comparison with a float that is the one with a decimal number, which Python compares exactly."""
    near = float(value)
    if not math.isfinite(near) or Fraction(near) == Fraction(value):
        return binary(ufunc), near
    is_below = Fraction(near) < Fraction(value)
    if ufunc in (np.less, np.less_equal):
        return binary(np.less_equal if is_below else np.less), near
    return binary(np.greater if is_below else np.greater_equal), near


def _as_float(value: Decimal) -> float:
    """Return the float that a decimal number equals, NaN where there is none."""
    near = float(value)
    return near if not math.isfinite(near) or Fraction(near) == Fraction(value) else math.nan


def _as_pythons(result: Any, frame: FrameType) -> Any:
    """Return True or False where a comparison is one of Python's numbers and its truth is known."""
    if not isinstance(result, TracedNumber) or result.node not in result.scope.graph.floats:
        return result
    return as_truth(result, frame)


def order(ufunc: np.ufunc, sign: str) -> Operator:
    """<, <=, >, >=. Compiled code that compares may be NumPy's, in a loop over objects."""
    compare = binary(ufunc)

    def method(self: TracedNumber, other: Any) -> Any:
        check_order(sys._getframe(1), self.scope, self.node, other, sign)
        if type(other) is Decimal:
            compare_float, near = _decimal_order(ufunc, other)
            return compare_float(self, near)
        return _as_pythons(compare(self, other), sys._getframe(1))

    return method


def division(operator: Operator, *, reflected: bool = False) -> Operator:
    """A division, which raises Python's error at zero for Python's numbers."""

    def method(self: TracedNumber, other: Any) -> Any:
        scope = self.scope
        if is_pythons(scope.graph, self.node) and (right := _pythons_node(self, other)) is not None:
            check_division(scope, self.node if reflected else right, sys._getframe(1))
        return operator(self, other)

    return method


def power(raise_to: Operator, *, reflected: bool = False) -> Operator:
    """**, and pow() with two arguments, with Python's errors for Python's numbers."""

    def method(self: TracedNumber, other: Any, modulus: Any = None) -> Any:
        if modulus is not None:
            return NotImplemented
        result, scope = raise_to(self, other), self.scope
        if is_pythons(scope.graph, self.node) and (right := _pythons_node(self, other)) is not None:
            operands = (right, self.node) if reflected else (self.node, right)
            check_power(scope, *operands, result.node, sys._getframe(1))
        return result

    return method


def _pythons_node(number: TracedNumber, other: Any) -> int | None:
    """Return the node of the other operand if it is a number of Python's, else None."""
    graph = number.scope.graph
    if type(other) in NUMBERS:
        return graph.number(other)
    if type(other) is not type(number) or other.scope.graph is not graph:
        return None
    return other.node if is_pythons(graph, other.node) else None


def unary(ufunc: np.ufunc) -> Operator:
    name = ufunc.__name__
    build, counts = UFUNCS[name], name in _COUNTING

    def method(self: TracedNumber) -> TracedNumber:
        scope, operand = self.scope, self.node
        if not scope.open:
            scope.check_open()
        if counts and scope.graph.floats:
            operand = as_count(scope.graph, operand, operand)
        node = build(scope.graph, operand)
        if scope.graph.integers:
            node = keeping_integers(scope.graph, name, node, (operand,))
        if scope.graph.floats:
            note_result(scope.graph, node, (self.node,))
        if node >= scope.graph.placed:
            scope.graph.place(sys._getframe(1))
        return type(self)(node, scope)

    return method


def bitwise(ufunc: np.ufunc) -> Operator:
    """An operator of truth values, and of the bits of whole numbers."""
    of_truths = binary(ufunc) if ufunc.__name__ in UFUNCS else None

    def method(self: TracedNumber, other: Any) -> Any:
        if of_truths is not None and is_boolean(self.scope.graph, self.node):
            return of_truths(self, other)
        return ufunc(self, other)

    return method


def swapped(ufunc: np.ufunc) -> Operator:
    return lambda self, other: ufunc(other, self)
