"""`cond`: one of two functions. `scan`, `fori_loop` and `while_loop`: a body with a carry.

`cond` calls the function that is taken on numbers; on symbols both, merged leaf by leaf.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import sympy as sp

import symad.tracing.values.containers as containers
from symad.errors import TraceError, UnknownStateWarning
from symad.reach.reachable_state import ReachableState
from symad.tracing.calling.function_names import check_function, name_of
from symad.tracing.calling.scope import Scope, open_scope
from symad.tracing.calling.user_place import refusal, user_place
from symad.tracing.control.carries import (
    FlatContainer,
    Operands,
    carry_of,
    flat_result,
    is_real,
    next_carry,
    operands_of,
    refuse_other_form,
    result_shapes,
    stacked,
    whole_number,
)
from symad.tracing.control.merging import merged
from symad.tracing.control.reasons import written_if_possible
from symad.tracing.control.written import written_chain, written_search
from symad.tracing.numpy.select import known
from symad.tracing.values.node_operands import nodes_of, scope_of
from symad.tracing.values.node_trees import Tree, expressions, lift_result, wrap
from symad.tracing.values.traced import Traced

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
        tree = result_shapes(f, operands, carry.filled(carry.arrays), may_be_none=True)
        result = containers.unflatten(tree.structure, [np.zeros((0, *shape)) for shape in tree.shapes])
        return carry.whole, pair_of(f, result)[1]
    with written_if_possible():
        return written_chain(f, lambda before, x: pair_of(f, f(before, x)), carry, operands, reverse=reverse)
    ys: list[FlatContainer] = []
    for k in range(operands.count):
        (x,) = operands.row(operands.count - 1 - k if reverse else k)
        value, y = pair_of(f, f(carry.filled(carry.arrays), x))
        carry = next_carry(f, value, carry)
        ys.append(flat_result(f, y, may_be_none=True))
        refuse_other_form(f, ys[-1], ys[0], k)
    columns = zip(*[y.arrays for y in (reversed(ys) if reverse else ys)], strict=True)
    return carry.whole, ys[0].filled([stacked(column) for column in columns])


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
        carry = next_carry(body, body(k, carry.filled(carry.arrays)), carry)
    return carry.whole


def _operands(xs: Any, length: Any) -> Operands:
    count = None if length is None else whole_number(length, "length")
    if count is not None and count < 0:
        raise refusal(f"length={count}", why="a body cannot be repeated less than 0 times")
    if xs is None and count is None:
        raise refusal("scan without xs and length", do="give one of them")
    names = containers.paths(xs, "xs")
    return operands_of((xs,), names, [0] * len(names), count)


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

    return written_search(body, masked, carry, body, cond)


def _masked_chain(cond: Callable[[Any], Any], body: Body, carry: FlatContainer, limit: int) -> Any:
    def masked(before: Any, _: Any) -> tuple[Any, Any]:
        return next_step(cond, body, carry_of(before, "init"), bounded=True)[0].whole, None

    nothing = operands_of((None,), [], [], limit)
    return written_chain(body, masked, carry, nothing, cond)[0]


def step(body: Body, carry: FlatContainer) -> FlatContainer:
    """Return the next carry."""
    return next_carry(body, body(carry.filled(carry.arrays)), carry)


def masked_step(holds: Any, body: Body, carry: FlatContainer) -> FlatContainer:
    """Return the next carry where the condition holds, the carry itself elsewhere."""

    def stepped(value: Any) -> Any:
        after = step(body, carry)
        return after.filled(after.arrays)

    return next_carry(body, cond(holds, stepped, lambda value: value, carry.filled(carry.arrays)), carry)


def predicate_of(cond: Callable[[Any], Any], carry: FlatContainer) -> Any:
    """Return the condition on a carry; ArgumentError unless it is one truth value."""
    holds = cond(carry.filled(carry.arrays))
    if holds is None or np.shape(holds) != () or not (is_real(holds) or isinstance(holds, sp.Basic)):
        raise refusal(
            f"{name_of(cond)} returned {'None' if holds is None else f'a value of shape {np.shape(holds)}'}",
            why="the condition of while_loop is one truth value",
            do="use np.any or np.all for a condition on all elements",
        )
    return holds


Function = Callable[..., Any]


def cond(predicate: Any, if_true: Function, if_false: Function, *operands: Any) -> Any:
    """Return `if_true(*operands)` where the predicate holds, else `if_false(*operands)`.

    Where the predicate has a value (numbers, also inside a transform), only that branch is called. On symbols (compile,
    trace, SymPy) each branch is called once, and the results, which must have the same structure and shapes, are merged
    by selects: the branch not taken never contributes a NaN, at any order. Unlike `if`, whose paths are explored one by
    one, k conditions in a row cost 2 k calls and not 2**k. ArgumentError for a predicate that is no scalar, for results
    that differ in form, and on symbols for a branch that changes something outside of it.

    >>> import symad as sa
    >>> f = lambda x: cond(x > 0, lambda u: u**0.5, lambda u: 0.0, x)
    >>> f(4.0), sa.grad(f)(4.0), sa.compile(sa.grad(f), 1.0)(-4.0)
    (2.0, 0.25, 0.0)
    >>> cond(sp.Symbol("x") > 0, lambda: 1, lambda: 2)
    Piecewise((1, x > 0), (2, True))
    """
    check_function(if_true)
    check_function(if_false)
    if np.shape(predicate) != ():
        raise refusal(
            f"a predicate of shape {np.shape(predicate)} for cond",
            why="cond takes one of two branches, for all elements",
            do="use np.where for a choice of each element",
        )
    taken = truth(predicate)
    if taken is not None:
        return (if_true if taken else if_false)(*operands)
    results = _called(if_true, operands), _called(if_false, operands)
    leaves = [leaf for result in results for leaf in containers.flatten(result)[0]]
    if isinstance(predicate, Traced) or any(isinstance(leaf, Traced) for leaf in leaves):
        scope = scope_of(predicate, *leaves)
        return wrap(scope, _merged(scope, predicate, results, (if_true, if_false)))
    with open_scope(apart=True) as scope:
        tree = _merged(scope, predicate, results, (if_true, if_false))
        return containers.unflatten(tree.structure, [expressions(scope.graph, array) for array in tree.arrays])


def _called(branch: Function, operands: tuple[Any, ...]) -> Any:
    """Return the result of a branch, which is called whatever the predicate is: so it must not change anything."""
    state = ReachableState(branch, *operands, restores=True)
    result = branch(*operands)
    for obstacle in state.unknown[:1]:
        message = f"a branch of cond ({name_of(branch)}) uses {obstacle.reason}: changes of that are not seen"
        warnings.warn_explicit(f"{message}, and both branches are called", UnknownStateWarning, *obstacle.place)
    if state.unchanged():
        return result
    changed = next(iter(state.differences()), "something")
    state.restore(user_place())
    raise refusal(
        f"a branch of cond ({name_of(branch)}) that changes {changed}",
        why="on symbols both branches are called, whatever the predicate is",
        do="return from the branch what it computes, or write an `if`",
    )


def truth(predicate: Any) -> bool | None:
    """Return the truth value that a predicate has, None when it depends on a symbol."""
    if isinstance(predicate, Traced):
        plain = known(predicate)
        return None if plain is None else bool(plain)
    if isinstance(predicate, sp.Basic) and predicate.free_symbols:
        return None
    return bool(predicate)


def _merged(scope: Scope, predicate: Any, results: tuple[Any, Any], branches: tuple[Function, Function]) -> Tree:
    holds, fails = (lift_result(scope, *pair) for pair in zip(results, map(name_of, branches), strict=True))
    if not holds.is_like(fails):
        first, second = (f"{tree.structure} of shapes {tree.shapes}" for tree in (holds, fails))
        raise refusal(
            f"the branches of cond return {first} and {second}",
            why=f"what {name_of(branches[0])} and {name_of(branches[1])} return is merged leaf by leaf",
            do="return the same structure and shapes from both",
        )
    return merged(scope.graph, int(nodes_of(predicate, scope)), holds, fails)
