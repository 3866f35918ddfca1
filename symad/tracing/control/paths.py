"""Follow all paths of a function through its conditions: run it once for each, and merge the results.

A trace on symbols has no numbers for `if` to follow. Each condition that earlier ones do not decide is assumed to hold.
When the function has returned, the last decision that has not been tried both ways is reversed and the function runs
again, until no decision is left (King 1976, symbolic execution).

The paths of a differentiated function are followed at that level. They are merged into one result, which is
differentiated once. A choice passes a derivative on under its condition, so the derivatives are those of the branch
that Python takes. Where the function raises an error, its derivatives have no value either: the condition goes to the
paths around, and the final result is NaN there.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial, reduce
from itertools import count
from types import CodeType, FrameType
from typing import Any, NoReturn

import optree

from codegen.ir.copy_rows import copy_rows
from codegen.ir.program import needed
from codegen.limits import check
from codegen.options import check_whole
from symad.errors import ArgumentError, LimitError
from symad.graph.builder import Builder
from symad.reach.reachable_state import ReachableState
from symad.tracing.calling.attempts import reads_loops_of
from symad.tracing.calling.function_names import name_of
from symad.tracing.calling.handlers import is_caught
from symad.tracing.calling.raised import asks_for_numbers, is_of_function, is_of_values
from symad.tracing.calling.recorded_errors import discard_recorded_error, excuse, library_refusal, noted
from symad.tracing.calling.scope import Scope, innermost_scope
from symad.tracing.calling.user_place import (
    called_by_user,
    is_defect,
    library_function,
    raised_place,
    scipy_calls,
    user_frame,
    user_place,
)
from symad.tracing.control.call_results import CallResults, NotFollowedError, Path
from symad.tracing.control.decisions import (
    Decision,
    Decisions,
    EndOfPath,
    Steps,
    UnsteadyError,
    in_words,
    loop_around,
    next_plan,
    too_many,
    too_many_of,
    too_many_recursions,
    unsteady,
)
from symad.tracing.control.implication import Knowledge
from symad.tracing.control.merging import RAISED, Guards, UnlikeResultsError, lifted, of_all_paths
from symad.tracing.values.bounds import Bounds, truth_by_bounds
from symad.tracing.values.constant_nodes import as_truth
from symad.tracing.values.container_types import NAMESPACE
from symad.tracing.values.mask_selection import settled
from symad.tracing.values.node_trees import Tree

MAX_PATHS = 64
MERGED_STEPS = 250  # of loops, for each path that there may be: a step takes a millisecond
RECURSIONS = 32  # calls of a function in itself that end by traced conditions


class Paths:
    """The exploration of one function: `decide` answers its conditions, `explore` runs it along every path.

    Decisions of the exploration `around` hold here too. `of_captured` says whether conditions on captured values are
    decided here. `hidden` says that the user's code sees nothing of the runs. Otherwise it may catch an error on one of
    the paths, which is left to the paths around.
    """

    def __init__(
        self,
        scope: Scope,
        limit: int,
        name: str,
        around: Paths | None = None,
        *,
        of_captured: bool = True,
        hidden: bool = True,
    ) -> None:
        if around is None:
            check_whole("max_paths", limit)
        self._graph = scope.graph
        self.limit, self._name, self._around = int(limit), name, around
        self.of_captured, self._hidden = of_captured, hidden
        self._bare: dict[int, int] = {} if around is None else around._bare  # nodes without any alias
        self._scope = scope
        self.explored = 0  # paths
        self.raises = False  # whether the function raises on one of them that numbers can take
        self.raised: Guards = ()  # under which the function has no value
        self._first_error: Exception | None = None  # of those that the function raises
        self.unlike: ArgumentError | None = None  # the refusal of results that differ in structure or shape
        self.not_followed: set[Any] = set()  # inner calls whose paths are followed here: where in which run
        self._deciding = set[CodeType]()  # the user's code that met conditions
        self._knowledge: Knowledge
        self._met = dict[int, Any]()  # where conditions hold
        self._static: dict[int, Bounds] = {} if around is None else around._static  # of nodes, whatever the path
        self.bounded: dict[str, int] = {} if around is None else around.bounded  # loops that got a bound: their places
        self._merged_steps: count[int] = count(1) if around is None else around._merged_steps
        self._steps_left: count[int] = count(1) if around is None else around._steps_left  # left to the paths around
        self._loops = set[Any]()  # those that were decided
        self._inside: Guards  # under which parts of the run have no value
        self._outside: list[Callable[[], None]] = []  # put back what the run has changed in values from outside
        self._changes_outside = False
        self._start(())

    def decide(self, node: int) -> bool:
        """Return the truth value that a condition has on the path being followed.

        LimitError when there are more paths than the limit; TraceError when the function decides differently in
        another run.
        """
        graph, truth = self._graph, as_truth(self._graph, node)
        copy_rows(graph, needed(graph, [truth], self._bare), graph, self._bare, lambda leaf: leaf)
        condition = self._bare[truth]
        known = self._knowledge.truth(condition)
        known = truth_by_bounds(graph, condition, self._static) if known is None else known
        if known is not None:
            self._count_known()
            return known
        repeated = self._count_step()
        decision = Decision(condition, True, user_place(), next(reversed(scipy_calls()), ""))
        if len(self._taken) < len(self._planned):
            planned = self._planned[len(self._taken)]
            if planned.condition != condition:
                raise unsteady(self._name, planned, decision)
            decision = planned
        self._taken.append(decision)
        self._asked_again = 0
        self._note_deciding(user_frame())
        too_long = len(self._taken) >= self._most  # a path of n decisions branches off at least n others
        if too_long or (repeated >= self.limit.bit_length() and reads_loops_of(self._deciding) and not is_caught()):
            raise too_many(self._name, self.limit, self._taken, self._deciding)
        self._knowledge.assume(condition, decision.outcome)
        return decision.outcome

    @property
    def _most(self) -> int:
        """The bound on paths. Each loop that ends by a value has one more for each of its steps."""
        return self.limit * (1 + len(self._loops))

    def _count_step(self) -> int:
        """Return how often a loop has asked this condition. At the bound of a `while` the path ends without a value."""
        steps, loop = self._steps.count(Paths._value.__code__)
        if loop is not None and loop.is_while:
            self._loops.add(loop)
            if steps > self.limit:
                self.end()
        return steps

    def _count_known(self) -> None:
        """Leave a path in a `while` that asks nothing new: no number may take it, and then nothing ends it."""
        self._asked_again += 1
        if self._asked_again % MAX_PATHS:
            return
        around = loop_around(Paths._value.__code__)
        if around is None or not around[1].is_while:
            return
        if reads_loops_of(self._deciding) and not is_caught():
            raise too_many(self._name, self.limit, self._taken, self._deciding)
        if self._asked_again > self.limit * MERGED_STEPS:
            self.end(self._asked_again)

    def repeats(self) -> None:
        """Note that the user's line asks for an unbounded count. It is followed up to the limit."""
        self._loops.add(user_place())
        self.has_lengths = True

    def count_merged_step(self) -> None:
        """Count a step of a loop with merged steps. Nested loops of that kind may have too many."""
        if next(self._merged_steps) > self.limit * MERGED_STEPS:
            most = self.limit * MERGED_STEPS
            raise too_many_of("steps of loops with conditions inside", self._name, most, self._deciding)

    def unfinished(self, node: int) -> None:
        """Note that a loop has no value where it would exceed its bound, and that the user has to be warned."""
        self.bounded[user_place()] = self.limit
        self.has_no_value((node,), raises=True)

    def changes_outside(self, put_back: Callable[[], None]) -> None:
        """Note that this run changes a value that was made outside of it: then other paths cannot be merged."""
        self._outside.append(put_back)
        self._changes_outside = True

    def _put_back(self) -> None:
        while self._outside:
            self._outside.pop()()

    def end(self, bound: int | None = None) -> NoReturn:
        """End this path without a value at the limit of a count, and note that the user has to be warned."""
        self.bounded[user_place()] = bound or self.limit
        self._ended = True
        raise EndOfPath

    def bounds(self, node: int) -> Bounds:
        """Return the bounds of a node under the conditions of this path."""
        return self._knowledge.bounds(self._bare.get(node, node))

    def _note_deciding(self, frame: FrameType | None) -> None:
        """Note the user's code that asks a condition, with the code around a comprehension or a lambda."""
        while frame is not None and frame.f_code not in self._deciding:
            self._deciding.add(frame.f_code)
            frame = frame.f_back if frame.f_code.co_name.startswith("<") else None

    def explore(self, run: Callable[[], Any], lift: Callable[[Any], Tree]) -> Tree:
        """Run a function along every path and return the merged tree of its results.

        The function has no value where it raises an error itself (mistakes such as TypeError excepted), where plain
        numbers raise one (1 / 0, math.sqrt(-1)), and where it fails or returns None on a path that only NaN takes
        (after `x < 0` and `x >= 0`). `without_value` says where; the tree has arbitrary numbers there (see `with_nan`).
        ArgumentError when the results of two paths differ in structure or shape.
        """
        self.not_followed.clear()
        start = len(self._graph)
        paths, values, raised = list[Decisions](), list[Any](), list[Guards]()
        planned: Decisions | None = ()
        scope = innermost_scope()
        least = None if scope is None or scope.arrays is None else scope.arrays.least
        while planned is not None:
            check(f"following the paths of {self._name}", self._graph.heads)
            self._start(planned)
            if scope is not None and least is not None:
                scope.arrays.least = least  # each run records what the first one did
            values.append(self._value(run))
            paths.append(tuple(self._taken))
            raised.append((None,) if values[-1] is RAISED else self._inside)
            self.explored = len(paths)
            if len(paths) > self._most:
                raise too_many(self._name, self.limit, self._taken, self._deciding)
            planned = next_plan(self._taken)
        self._put_back()
        results = lifted(values, raised, lift)
        if all(result.tree is None for result in results):
            self._raise_without_result()
        try:
            whole = of_all_paths(self._graph, self._name, paths, results, self._plain, start)
        except UnlikeResultsError as error:
            self.unlike = error
            raise
        self.raised = whole.raised
        assert whole.tree is not None
        return whole.tree

    def _raise_without_result(self) -> NoReturn:
        """Raise the error of all paths: inside of another exploration as it is, for that has no value on its path."""
        what, first = f"{self._name} raises an error on every path", self._first_error
        if first is None:
            raise ArgumentError(what, do="call it on numbers to see the error")
        if self._around is not None and self._around._taken:
            raise first
        raise ArgumentError(
            what, where=raised_place(first), why=f"the first is {type(first).__name__}: {first}"
        ) from first

    def next_call(self) -> Any:
        """Return a key of the next call of an inner differentiated function: the same in every run."""
        self._calls += 1
        return self._calls, *((decision.condition, decision.outcome) for decision in self._taken)

    def merge(
        self,
        f: Callable[..., Any],
        args: tuple[Any, ...],
        keywords: dict[str, Any],
        *,
        run: Callable[[], Any] | None = None,
        results: type[CallResults] = CallResults,
        hidden: bool = False,
    ) -> Any:
        """Return the result of a call of the user's function, with its paths merged.

        They are followed by these paths instead if the user's code could tell: if the function changes something
        outside, raises an error, or returns something other than numbers (see `CallResults`).
        """
        self._check_recursion(name_of(f))
        run, call = run or partial(f, *args, **keywords), self.next_call()
        state = None if call in self.not_followed else ReachableState(f, args, keywords, restores=True)
        if state is None or state.unknown:
            return run()
        scope = innermost_scope()
        assert scope is not None
        collected = results(scope, state)
        tree = self.inside(scope, f, lambda: collected.noted(run), collected.lift, state, hidden=hidden)
        if tree is not None:
            return collected.whole(tree)
        if results is not CallResults and next(self._steps_left) > self.limit:
            raise too_many_of("paths through its conditions", self._name, self.limit, self._deciding)
        self.not_followed.add(call)
        return run()

    def _check_recursion(self, name: str) -> None:
        """Refuse a function that calls itself again and again, with a decision in each call."""
        depth, around = 0, self
        while around is not None:
            depth += around._name == name and bool(around._taken)
            around = around._around  # type: ignore[assignment]
        if depth >= RECURSIONS:
            raise too_many_recursions(name, RECURSIONS)

    def inside(
        self,
        scope: Scope,
        f: Callable[..., Any],
        run: Callable[[], Any],
        lift: Callable[[Any], Tree],
        state: ReachableState | None,
        *,
        hidden: bool,
    ) -> Tree | None:
        """Return the merged result of an inner function; None, with its state put back, if user code could tell."""
        scope.paths = paths = Paths(scope, self.limit, name_of(f), self, hidden=hidden)
        try:
            tree = paths.explore(run, lift)
            can_merge = state is None or paths.explored == 1 or state.unchanged()
            if can_merge and not paths._changes_outside:
                self.has_no_value(paths.raised, raises=paths.raises)
                return tree
        except (NotFollowedError, ArgumentError, UnsteadyError) as error:
            if isinstance(error, ArgumentError) and error is not paths.unlike:
                raise
            discard_recorded_error(error)
        finally:
            paths._put_back()
            scope.paths = self
        if state is not None:
            state.restore(user_place())
        return None

    def has_no_value(self, guards: Guards, *, raises: bool = True) -> None:
        """Note that the function has no value on this path under guards.

        A part of it raises there; with `raises` for numbers, not only for NaN.
        """
        self._inside += guards
        self.raises = self.raises or raises

    def without_value(self) -> int | None:
        """Return the condition under which the function has no value, None where it has one everywhere."""
        if not self.raised:
            return None
        condition = reduce(Builder(self._graph).either, self.raised)
        return self._graph.number(True) if condition is None else condition

    def _start(self, planned: Decisions) -> None:
        self._put_back()
        self._planned, self._taken = planned, list[Decision]()
        known = None if self._around is None else self._around._knowledge
        self._knowledge = Knowledge(self._graph, known, self._met)
        self._inside, self._calls = (), 0
        self.has_lengths = False  # whether lengths of arrays were decided on this path
        self.has_no_number = False  # whether a whole number was NaN or out of bounds on this path
        self._steps, self._ended, self._asked_again = Steps(), False, 0

    def _value(self, run: Callable[[], Any]) -> Any:
        start = noted()
        try:
            value = optree.tree_map(settled, run(), none_is_leaf=True, namespace=NAMESPACE)
        except EndOfPath:
            return self._nothing()
        except Exception as error:
            if self._ended:
                return self._nothing()
            if (self._taken or self._planned) and not self._hidden and not isinstance(error, LimitError):
                raise NotFollowedError from error
            if self._has_no_value(error):
                self._first_error = self._first_error or error
                if self._knowledge.leaves_only_nan():
                    excuse(start)
                else:
                    self.raises = True
                return RAISED
            if self._taken and not getattr(error, "__notes__", ()):
                error.add_note(f"This happened on the path where {in_words(self._taken)}.")
            library = library_function(error)
            if library and isinstance(error, RuntimeError) and any(d.library == library for d in self._taken):
                raise library_refusal(library, error, raised_place(error)) from error  # no number takes this path
            raise
        if self._ended:  # the function has caught our exception
            return self._nothing()
        is_none = value is None or (type(value) is Path and value.value is None)
        return RAISED if is_none and self._knowledge.leaves_only_nan() else value

    def _nothing(self) -> Any:
        self.raises = True
        return RAISED

    def _has_no_value(self, error: Exception) -> bool:
        """Whether an error means that the function has no value: it raised the error, or only NaN takes this path."""
        if is_of_values(error, lengths=self.has_lengths, no_number=self.has_no_number):
            return True
        if not self._taken or isinstance(error, LimitError) or is_defect(error) or asks_for_numbers(error):
            return False
        return is_of_function(error) or self._knowledge.leaves_only_nan()

    @cached_property
    def _plain(self) -> dict[int, int]:
        """Nodes without the aliases of closed levels, by node. Aliases of open levels stay."""
        if self._around is not None and self._around._scope is self._scope:
            return self._around._plain
        return {node: node for outer in self._scope.chain() for node in outer.parameters}


def followed(scope: Scope, f: Callable[..., Any], run: Callable[[], Any], lift: Callable[[Any], Tree]) -> Tree:
    """Return the tree of the result of `run`, which calls a function that is differentiated in a scope.

    If an outer function follows paths, those of this function are followed here and merged before differentiation.
    The outer function follows them instead if the user's code could tell (the function changes something outside or
    raises an error on a path), or if paths return different shapes.
    """
    around = scope.paths
    if not isinstance(around, Paths):
        return lift(run())
    call = around.next_call()
    hidden = not called_by_user(Paths._value.__code__)
    state = None if hidden or call in around.not_followed else ReachableState(f, restores=True)
    if call in around.not_followed or (state is not None and state.unknown):
        return lift(run())
    tree = around.inside(scope, f, run, lift, state, hidden=hidden)
    if tree is not None:
        return tree
    around.not_followed.add(call)
    return lift(run())
