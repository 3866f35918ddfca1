"""`sum_over`: the sum of a function over the pieces of arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import sympy as sp

import symad.tracing.values.containers as containers
from symad.tracing.calling.function_names import argument_names, check_function
from symad.tracing.control.body_shapes import result_shapes
from symad.tracing.control.carries import FlatContainer, added, countable, flat_result, refuse_other_form
from symad.tracing.control.reasons import written_if_possible
from symad.tracing.control.swept_operands import operands_of
from symad.tracing.control.written import written_sum
from symad.tracing.values.node_trees import paths_of


def sum_over(f: Callable[..., Any], *arrays: Any) -> Any:
    """Return the sum of `f(piece of each array)` over the pieces along the first axis, from left to right.

    The arrays, or containers of arrays, have equal lengths; what f returns is summed leaf by leaf, truth values as 0
    and 1. The sum over nothing is 0.0, in the shape that f returns. A range gives integers. In SymPy's notation
    `(k, first, last)` with a symbol k, the result is a `sympy.Sum`; where it is compiled, and the bounds are whole
    numbers, a loop over them.

    >>> from symad import sum_over
    >>> sum_over(lambda x, y: x * y, np.array([1.0, 2.0]), np.array([3.0, 4.0]))
    11.0
    >>> k, n, x = sp.symbols("k n x")
    >>> sum_over(lambda k: x**k, (k, 0, n)), sum_over(lambda k: x**k, range(3))
    (Sum(x**k, (k, 0, n)), x**2 + x + 1)
    """
    check_function(f)
    if len(arrays) == 1 and _is_symbolic_range(arrays[0]):
        return _sum_of_sympy(f, *arrays[0])
    names = paths_of(arrays, argument_names(f, len(arrays)))
    operands = operands_of(arrays, names, [0] * len(names))
    if operands.count == 0:
        tree = result_shapes(f, operands)
        return containers.unflatten(tree.structure, [np.zeros(shape) if shape else 0.0 for shape in tree.shapes])
    with written_if_possible():
        return written_sum(f, operands)
    first = flat_result(f, f(*operands.row(0)))
    total = FlatContainer([countable(leaf) for leaf in first.leaves], first.structure)
    for k in range(1, operands.count):
        result = flat_result(f, f(*operands.row(k)))
        refuse_other_form(f, result, first, k)
        total = added(total, result)
    return total.whole


def _is_symbolic_range(value: Any) -> bool:
    return isinstance(value, tuple) and len(value) == 3 and isinstance(value[0], sp.Symbol | sp.Idx)


def _sum_of_sympy(f: Callable[..., Any], index: sp.Basic, first: Any, last: Any) -> Any:
    """Return a Sum, or in a function that is traced with its loops a loop over known numbers."""
    with written_if_possible():
        if all(isinstance(bound, int | sp.Integer) for bound in (first, last)) and first < last:
            return written_sum(f, operands_of((np.arange(int(first), int(last) + 1),), ["index"], [0]))
    return sp.Sum(sp.sympify(f(index)), (index, first, last))
