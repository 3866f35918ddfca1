"""All paths of a function through its conditions: it is run once for each, and the results are merged by selects.

A trace on symbols has no numbers for `if` to follow. Each condition that the ones before do not decide is taken to
hold; when the function has returned, the last decision that has not been tried both ways is reversed and the function
runs again, until no decision is left (King 1976, symbolic execution). Derivatives that the function takes are taken on
each path, so those of the merged result are the derivatives of the branch that Python takes.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import optree

from codegen.ir.copy_rows import copy_rows
from symad.errors import ArgumentError, LimitError, TraceError, WorkbenchError
from symad.graph.graph import Graph
from symad.tracing.calling.swallowed import excuse, library_refusal, noted
from symad.tracing.calling.user_place import (
    is_defect,
    library_function,
    raised_by_user,
    raised_place,
    scipy_calls,
    user_place,
)
from symad.tracing.control.implication import Knowledge
from symad.tracing.values.constant_nodes import as_truth
from symad.tracing.values.container_types import NAMESPACE
from symad.tracing.values.node_trees import Tree, merged

MAX_PATHS = 64

# What a function raises is said to have no value there; but for these, which tell of mistakes in the code
_MISTAKES = (TypeError, AttributeError, NameError, LookupError, ImportError, NotImplementedError)
_MATHS = ("math domain error", "expected a ")  # how the math module words its ValueError


@dataclass(frozen=True)
class Decision:
    """A condition (a node without aliases), its outcome, the user's file and line, and SciPy's function there."""

    condition: int
    outcome: bool
    place: str
    library: str = ""


Decisions = tuple[Decision, ...]
_RAISED = object()  # in place of a result: the function has none on this path
UNIONS: dict[type, Callable[[Sequence[Any]], Sequence[Any]]] = {}  # for results whose structure depends on the path


class Paths:
    """The exploration of one function: `decide` answers its conditions, `explore` runs it along every path."""

    def __init__(self, graph: Graph, limit: int, name: str) -> None:
        self._graph, self._limit, self._name = graph, limit, name
        self._without_aliases: dict[int, int] = {}
        self.explored = 0  # paths
        self.raises = False  # whether the function raises on one of them that numbers can take
        self._start(())

    def decide(self, node: int) -> bool:
        """Return the truth value that a condition has on the path being followed.

        LimitError when there are more paths than the limit; TraceError when the function decides differently in
        another run.
        """
        (condition,) = self._stripped([as_truth(self._graph, node)])
        known = self._knowledge.truth(condition)
        if known is not None:
            return known
        decision = Decision(condition, True, user_place(), next(reversed(scipy_calls()), ""))
        if len(self._taken) < len(self._planned):
            planned = self._planned[len(self._taken)]
            if planned.condition != condition:
                raise _unsteady(self._name, planned, decision)
            decision = planned
        self._taken.append(decision)
        if len(self._taken) >= self._limit:  # a path of n decisions branches off at least n others
            raise self._too_many()
        self._knowledge.assume(condition, decision.outcome)
        return decision.outcome

    def explore(self, run: Callable[[], Any], lift: Callable[[Any], Tree]) -> Tree:
        """Run a function along every path and return the merged tree of its results.

        Where the function itself raises an error, but for one of mistakes, or numbers do (1 / 0, math.sqrt(-1)), its
        results are NaN; so they are where it fails or returns None on a path that only NaN takes (after `x < 0` and
        `x >= 0`).
        ArgumentError when the results of two paths differ in structure or shape.
        """
        paths, values = list[Decisions](), list[Any]()
        planned: Decisions | None = ()
        while planned is not None:
            self._start(planned)
            values.append(self._result(run))
            paths.append(tuple(self._taken))
            self.explored = len(paths)
            if len(paths) > self._limit:
                raise self._too_many()
            planned = _next_plan(self._taken)
        if len(paths) == 1:
            return lift(values[0])
        return self._merged(paths, [None if value is _RAISED else lift(value) for value in _aligned(values)])

    def _start(self, planned: Decisions) -> None:
        self._planned, self._taken, self._knowledge = planned, list[Decision](), Knowledge(self._graph)

    def _result(self, run: Callable[[], Any]) -> Any:
        start = noted()
        try:
            value = run()
        except Exception as error:
            if self._has_no_value(error):
                if self._knowledge.leaves_only_nan():
                    excuse(start)
                else:
                    self.raises = True
                return _RAISED
            if self._taken:
                error.add_note(f"This happened on the path where {_text(self._taken)}.")
            library = library_function(error)
            if library and isinstance(error, RuntimeError) and any(d.library == library for d in self._taken):
                raise library_refusal(library, error, raised_place(error)) from error  # no number takes this path
            raise
        return _RAISED if value is None and self._knowledge.leaves_only_nan() else value

    def _has_no_value(self, error: Exception) -> bool:
        """Whether the function itself raised an error on one of its paths, or only NaN can take this path."""
        if isinstance(error, LimitError) or is_defect(error):
            return False
        own = not isinstance(error, (*_MISTAKES, WorkbenchError)) and (
            raised_by_user(error) or isinstance(error, ArithmeticError) or str(error).startswith(_MATHS)
        )
        return bool(self._taken) and (own or self._knowledge.leaves_only_nan())

    def _merged(self, paths: list[Decisions], trees: list[Tree | None]) -> Tree:
        """Merge the results of neighbouring paths, which differ in their last decision, until one is left."""
        whole = [tree for tree in trees if tree is not None]
        if not whole:
            raise ArgumentError(f"{self._name} raises an error on every path", do="call it on numbers to see the error")
        nan = self._graph.number(math.nan)
        stack: list[tuple[Decisions, Tree]] = []
        for path, tree in zip(paths, trees, strict=True):
            tree = whole[0].refill([nan] * len(whole[0].flat)) if tree is None else tree
            self._check_alike(whole[0], tree, paths[0], path)
            stack.append((path, tree.refill(self._stripped(tree.flat))))
            while len(stack) > 1 and stack[-2][0][:-1] == stack[-1][0][:-1]:
                (decisions, holds), (_, fails) = stack[-2:]
                del stack[-2:]
                stack.append((decisions[:-1], merged(self._graph, decisions[-1].condition, holds, fails)))
        return stack[0][1]

    def _check_alike(self, first: Tree, other: Tree, path: Decisions, other_path: Decisions) -> None:
        if first.is_like(other):
            return
        met, expected = (other.shapes, first.shapes) if first.structure == other.structure else (other, first)
        raise ArgumentError(
            f"{self._name} returns {_form(met)} where {_text(other_path)}",
            why=f"it returns {_form(expected)} where {_text(path)}",
            do="return the same structure and shapes on every path",
        )

    def _stripped(self, nodes: Sequence[int]) -> list[int]:
        """Return nodes without aliases: inner levels make new ones in each run, and the values are the same."""
        memo, graph, stack = self._without_aliases, self._graph, list(nodes)
        while stack:
            node = stack[-1]
            operands = graph.operands[node]
            missing = [operand for operand in operands if operand not in memo]
            stack += missing
            if not missing:
                copy_rows(graph, [stack.pop()], graph, memo, lambda leaf: leaf)
        return [memo[node] for node in nodes]

    def _too_many(self) -> LimitError:
        place, count = Counter(decision.place for decision in self._taken).most_common(1)[0]
        return LimitError(
            f"{self._name} has more than {self._limit} paths through its conditions",
            where=place,
            why=f"the condition there was decided {count} times on one path, about different values each time",
            do="for a loop: while_loop with max_steps, or fori_loop; for a choice: cond, np.where, np.maximum; "
            "or raise max_paths",
        )


def _next_plan(taken: Sequence[Decision]) -> Decisions | None:
    """Return the decisions of the next path: the last one that holds is reversed."""
    kept = list(taken)
    while kept and not kept[-1].outcome:
        kept.pop()
    return (*kept[:-1], replace(kept[-1], outcome=False)) if kept else None


def _aligned(values: list[Any]) -> list[Any]:
    """Return results with those parts whose structure depends on the path made alike (sparse matrices)."""
    whole = [k for k, value in enumerate(values) if value is not _RAISED]
    parts = [optree.tree_flatten(values[k], lambda v: type(v) in UNIONS, namespace=NAMESPACE) for k in whole]
    if len({structure for _, structure in parts}) != 1:
        return values
    columns = [list(column) for column in zip(*[leaves for leaves, _ in parts], strict=True)]
    for k, column in enumerate(columns):
        kind = type(column[0])
        if kind in UNIONS and all(type(leaf) is kind for leaf in column):
            columns[k] = list(UNIONS[kind](column))
    made = list(values)
    for k, leaves in zip(whole, zip(*columns, strict=True), strict=True):
        made[k] = optree.tree_unflatten(parts[0][1], leaves)
    return made


def _form(value: Tree | list[tuple[int, ...]]) -> str:
    if isinstance(value, Tree):
        return str(value.structure).removeprefix("PyTreeSpec(").removesuffix(")")
    return ("shape " if len(value) == 1 else "shapes ") + ", ".join(map(str, value))


def _text(decisions: Sequence[Decision]) -> str:
    """Return a path in words."""
    words = [f"the condition at {d.place} {'holds' if d.outcome else 'does not hold'}" for d in decisions[-3:]]
    return ("... " if len(decisions) > 3 else "") + " and ".join(words)


def _unsteady(name: str, planned: Decision, met: Decision) -> TraceError:
    return TraceError(
        f"{name} met another condition when it was run again",
        where=met.place,
        why=f"the run before decided the one at {planned.place} here, so the function depends on more than its inputs",
        do="remove random numbers and changes of state from it, or use np.where",
    )
