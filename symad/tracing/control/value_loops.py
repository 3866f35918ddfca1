"""Loops of solvers in kernels. They have values, but no derivatives.

Their results get derivatives by a rule (an implicit function, an integral), so such a loop may stand in a function that
is differentiated. Where loops are recorded it stops when it is done; elsewhere its steps are unrolled.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np

from symad.tracing.calling.scope import Scope, innermost_scope
from symad.tracing.control.carries import FlatContainer, carry_of, next_carry
from symad.tracing.control.reasons import NotOneBodyError
from symad.tracing.control.written_bodies import body_of, result_of, write_down
from symad.tracing.values.constant_nodes import as_truth
from symad.tracing.values.containers import from_nodes
from symad.tracing.values.node_trees import Tree

Step = Callable[[Any], tuple[Any, Any]]


def repeated(step: Step, initial: Any, limit: int, *reached: Any) -> Any:
    """Return the carry after the first `step(carry) -> (carry, done)` that is done, or after `limit` steps.

    `reached` are the functions that the steps call. The carry must not be differentiated.
    """
    carry = carry_of(initial, "the beginning")
    scope = innermost_scope()
    around = () if scope is None or scope.gather is not None else scope.chain()
    home = next((outer for outer in around if outer.loops is not None), None)  # not through derivatives inside
    if home is not None:
        with suppress(NotOneBodyError):
            return _written(step, carry, limit, home, reached)
    going: Any = True
    for _ in range(limit):
        after, done = step(carry.refill(carry.leaves))
        following = next_carry(step, after, carry)
        pairs = zip(following.leaves, carry.leaves, strict=True)
        carry = FlatContainer([np.where(going, new, old) for new, old in pairs], carry.structure)
        going = np.logical_and(going, np.logical_not(done))
    return carry.whole


def _written(step: Step, carry: FlatContainer, limit: int, home: Scope, reached: tuple[Any, ...]) -> Any:
    """Return the carry after the last repetition of a recorded loop."""

    def run() -> tuple[Any, Any]:
        after, done = step(first())
        return next_carry(step, after, carry).whole, done

    with body_of(limit, *reached, home=home) as body:
        first = body.carry(carry)
        tree = result_of(step, body.inner, run, of_captured=True)
        *arrays, last = tree.arrays
        stop = as_truth(body.scope.graph, int(last))
        ends = [node for array in arrays for node in array.ravel().tolist()]
        nodes, _ = write_down(body, ends, (), "last", stop, numbers=True)
    refilled = Tree(None, arrays).refill(nodes).arrays
    return carry.refill([from_nodes(array, body.scope) for array in refilled])
