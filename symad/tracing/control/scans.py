"""`scan` and `fori_loop`: a body with a carry."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import symad.tracing.values.containers as containers
from symad.tracing.calling.function_names import check_function, name_of
from symad.tracing.calling.user_place import refusal
from symad.tracing.control.body_shapes import result_shapes
from symad.tracing.control.carries import FlatContainer, carry_of, flat_result, next_carry, refuse_other_form, stacked
from symad.tracing.control.reasons import written_if_possible
from symad.tracing.control.swept_operands import Operands, operands_of, whole_number
from symad.tracing.control.written import written_chain

Body = Callable[..., Any]


def scan(f: Body, init: Any, xs: Any = None, length: Any = None, reverse: bool = False) -> tuple[Any, Any]:
    """Carry `f(carry, x) -> (carry, y)` through the pieces of xs; return the last carry and all y, stacked.

    xs is an array or a container of arrays, whose pieces along the first axis are the x, or None: then f is called
    `length` times with x = None. With `reverse=True` the last piece comes first, and each y has the place of its x.
    The carry keeps its structure and shapes; integers in it become floats.

    >>> from symad import scan
    >>> scan(lambda total, x: (total + x, total), 0.0, np.array([1.0, 2.0, 3.0]))
    (6.0, array([0., 1., 3.]))
    """
    check_function(f, ("carry", "x"))
    carry = carry_of(init, "init")
    operands = _operands(xs, length)
    if operands.count == 0:
        tree = result_shapes(f, operands, carry.refill(carry.leaves), may_be_none=True)
        result = containers.unflatten(tree.structure, [np.zeros((0, *shape)) for shape in tree.shapes])
        return carry.whole, pair_of(f, result)[1]
    with written_if_possible():
        return written_chain(f, lambda before, x: pair_of(f, f(before, x)), carry, operands, reverse=reverse)
    ys: list[FlatContainer] = []
    for k in range(operands.count):
        (x,) = operands.row(operands.count - 1 - k if reverse else k)
        value, y = pair_of(f, f(carry.refill(carry.leaves), x))
        carry = next_carry(f, value, carry)
        ys.append(flat_result(f, y, may_be_none=True))
        refuse_other_form(f, ys[-1], ys[0], k)
    columns = zip(*[y.leaves for y in (reversed(ys) if reverse else ys)], strict=True)
    return carry.whole, ys[0].refill([stacked(column) for column in columns])


def pair_of(f: Body, value: Any) -> tuple[Any, Any]:
    """Return the result of a scan's body as carry and y; ArgumentError for anything but a pair."""
    if not isinstance(value, tuple | list) or len(value) != 2:
        raise refusal(
            f"{name_of(f)} returned {'a number' if np.ndim(value) == 0 else 'no pair'} to scan",
            why="the body of a scan returns a pair: the next carry, and y",
            do="return (carry, y), or (carry, None)",
        )
    return value[0], value[1]


def fori_loop(lower: Any, upper: Any, body: Body, init: Any) -> Any:
    """Return the carry after `carry = body(k, carry)` for k from lower to upper - 1; init where upper <= lower.

    The bounds are whole numbers known while tracing. The carry keeps its structure and shapes; integers in it become
    floats.

    >>> from symad import fori_loop
    >>> fori_loop(1, 5, lambda k, product: k * product, 1.0)
    24.0
    """
    check_function(body, ("k", "carry"))
    first, last = whole_number(lower, "lower"), whole_number(upper, "upper")
    carry, counter = carry_of(init, "init"), operands_of((np.arange(first, last),), ["k"], [0])
    with written_if_possible():
        return written_chain(body, lambda before, k: (body(k, before), None), carry, counter)[0]
    for k in range(first, last):
        carry = next_carry(body, body(k, carry.refill(carry.leaves)), carry)
    return carry.whole


def _operands(xs: Any, length: Any) -> Operands:
    count = None if length is None else whole_number(length, "length")
    if count is not None and count < 0:
        raise refusal(f"length={count}", why="a body cannot be repeated less than 0 times")
    if xs is None and count is None:
        raise refusal("scan without xs and length", do="give one of them")
    names = containers.paths(xs, "xs")
    return operands_of((xs,), names, [0] * len(names), count)
