"""`while_loop`: repeat a body while a condition on its carry holds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import sympy as sp

from symad.errors import TraceError
from symad.tracing.calling.function_names import check_function, name_of
from symad.tracing.calling.user_place import refusal, user_place
from symad.tracing.control.branches import cond as choose, truth
from symad.tracing.control.carries import FlatContainer, carry_of, is_real, next_carry
from symad.tracing.control.reasons import written_if_possible
from symad.tracing.control.swept_operands import operands_of, whole_number
from symad.tracing.control.written import written_chain, written_search

Body = Callable[[Any], Any]


def while_loop(cond: Callable[[Any], Any], body: Body, init: Any, max_steps: int | None = None) -> Any:
    """Return the first of init, body(init), body(body(init)), ... for which the condition does not hold.

    The loop ends after `max_steps` steps at the latest. On numbers, also inside a transform, it works like Python's
    `while`. On symbols (compile, trace, SymPy) the number of steps is not known. With `max_steps`, that many are
    executed: after the condition has failed, selects pass the carry on unchanged, and the unused results of the body
    contribute to no derivative. Without it, only compile has such a loop, and no reverse mode goes through it. The
    carry keeps its structure and shapes. ArgumentError for a negative `max_steps`.

    >>> from symad import while_loop
    >>> while_loop(lambda x: x**2 > 2.000001, lambda x: (x + 2 / x) / 2, 2.0)
    1.4142135623746899
    """
    check_function(cond, ("carry",))
    check_function(body, ("carry",))
    limit = None if max_steps is None else whole_number(max_steps, "max_steps")
    if limit is not None and limit < 0:
        raise refusal(f"max_steps={limit}", why="a number of steps is not negative")
    carry = carry_of(init, "init")
    with written_if_possible():
        return _search(cond, body, carry) if limit is None else _masked_chain(cond, body, carry, limit)
    steps, running = 0, True
    while running and (limit is None or steps < limit):
        carry, running = next_step(cond, body, carry, bounded=limit is not None)
        steps += 1
    return carry.whole


def next_step(
    cond: Callable[[Any], Any], body: Body, carry: FlatContainer, *, bounded: bool
) -> tuple[FlatContainer, bool]:
    """Return the carry after one more step, and whether there may be another one."""
    holds = predicate_of(cond, carry)
    known = truth(holds)
    if known is None and not bounded:
        raise TraceError(
            f"the number of steps of a while_loop depends on a symbolic value ({name_of(cond)})",
            where=user_place(),
            why="without numbers there is no telling when the loop ends",
            do="give max_steps, the number of steps after which it has ended in any case, or call the function on "
            "numbers",
        )
    if known is None:
        return masked_step(holds, body, carry), True
    return (step(body, carry), True) if known else (carry, False)


def _search(cond: Callable[[Any], Any], body: Body, carry: FlatContainer) -> Any:
    """Return the carry at which the condition fails, by a loop that stops there."""

    def masked(before: Any) -> tuple[Any, Any]:
        after, _ = next_step(cond, body, carry_of(before, "init"), bounded=True)
        return after.whole, np.logical_not(predicate_of(cond, after))

    return written_search(body, masked, carry, cond)


def _masked_chain(cond: Callable[[Any], Any], body: Body, carry: FlatContainer, limit: int) -> Any:
    def masked(before: Any, _: Any) -> tuple[Any, Any]:
        return next_step(cond, body, carry_of(before, "init"), bounded=True)[0].whole, None

    nothing = operands_of((None,), [], [], limit)
    return written_chain(body, masked, carry, nothing, cond)[0]


def step(body: Body, carry: FlatContainer) -> FlatContainer:
    """Return the next carry."""
    return next_carry(body, body(carry.refill(carry.leaves)), carry)


def masked_step(holds: Any, body: Body, carry: FlatContainer) -> FlatContainer:
    """Return the next carry where the condition holds, the carry itself elsewhere."""

    def stepped(value: Any) -> Any:
        after = step(body, carry)
        return after.refill(after.leaves)

    return next_carry(body, choose(holds, stepped, lambda value: value, carry.refill(carry.leaves)), carry)


def predicate_of(cond: Callable[[Any], Any], carry: FlatContainer) -> Any:
    """Return the condition on a carry; ArgumentError unless it is one truth value."""
    holds = cond(carry.refill(carry.leaves))
    if holds is None or np.shape(holds) != () or not (is_real(holds) or isinstance(holds, sp.Basic)):
        raise refusal(
            f"{name_of(cond)} returned {'None' if holds is None else f'a value of shape {np.shape(holds)}'}",
            why="the condition of while_loop is one truth value",
            do="use np.any or np.all for a condition on all elements",
        )
    return holds
