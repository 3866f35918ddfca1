"""`cond`: one of two functions. On numbers the one that is taken, on symbols both, merged leaf by leaf."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import sympy as sp

import symad.tracing.values.containers as containers
from symad.errors import UnknownStateWarning
from symad.reach.reachable_state import ReachableState
from symad.tracing.calling.function_names import check_function, name_of
from symad.tracing.calling.scope import Scope, open_scope
from symad.tracing.calling.user_place import refusal, user_place
from symad.tracing.control.merging import merged
from symad.tracing.numpy.select import known
from symad.tracing.values.node_operands import nodes_of, scope_of
from symad.tracing.values.node_trees import Tree, expressions, lift_result, wrap
from symad.tracing.values.traced import Traced

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
