"""Replay the trace of a function on new numbers of the same shapes instead of running the function.

Its trace has no numbers in it but those of the arguments, and its gradient is a part of it: with others, the same
operations are carried out, one call of NumPy each. That holds where running the function would do the same again:

- all that it can read is known and has not changed since, and it has no side effects (`symad.reach`); large arrays are
  read again (`symad.derivatives.live_arrays`);
- what it asked of numbers while it ran (`if`, `argmax`, `float(...)`, a pivot, a guard of an inner derivative) has the
  same answers as then: each is asked again.

Else it is run, as at the first call. The second call with the same shapes keeps the trace.
"""

from __future__ import annotations

import logging
import sys
from collections import OrderedDict
from collections.abc import Callable, Sequence
from threading import Lock, RLock
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

import symad.tracing.values.containers as containers
from codegen.limits import bytes_are_limited
from codegen.records import dataclass
from symad.derivatives import modes
from symad.derivatives.level import Level, in_level, is_noting, open_level
from symad.derivatives.live_arrays import LiveArrays
from symad.derivatives.selection import Selection
from symad.errors import InvariantError, RuleError
from symad.graph.array_operands import Asked, Nodes, OperandAccess
from symad.graph.array_values import read, schedule_again, values_of_array
from symad.reach.reachable_state import ReachableState, generator_states
from symad.reach.strict_key import same_bytes
from symad.tracing.calling.function_names import name_of
from symad.tracing.calling.recorded_errors import discard_recorded_error
from symad.tracing.calling.scope import innermost_scope
from symad.tracing.values.container_types import static_parts
from symad.tracing.values.node_operands import SymbolMetArraysError
from symad.tracing.values.node_trees import Tree

LOG = logging.getLogger("symad")

TRACES = 8  # of one function: bound of those that are kept, keyed by structure, shapes and kinds of the arguments
COMPARED = 2**18  # bytes that are compared in the time that an operation takes to trace
ROWS = 16  # nodes that are traced in that time, where they are no arrays
LARGEST = 2**20  # nodes of a trace without arrays: some hundred MB
MISSES = 8  # calls with other answers, more than with the same, after which a function is run each time

Called: TypeAlias = Callable[[Level, Callable[..., Any]], Tree]  # runs a function in a level
Leaves: TypeAlias = Sequence[Any]


class KeptTraces:
    """The traces of one function, by the structure, shapes and kinds of its arguments."""

    def __init__(self, f: Callable[..., Any]) -> None:
        self._f = f
        self._kept = OrderedDict[Any, _Kept | str]()  # or why there is none
        self._lock = RLock()

    def gradient(self, chosen: Selection, called: Called) -> tuple[Any, Any]:
        """Return value and gradient of the function that `called` runs in a level; by a kept trace, if there is one."""

        def run(level: Level) -> tuple[Any, ...]:
            result = called(level, chosen.function)
            return level.close(result, modes.gradient(level, result))

        return self._kept_gradient(chosen, called) or in_level(chosen.arguments, chosen.names, run)

    def _kept_gradient(self, chosen: Selection, called: Called) -> tuple[Any, Any] | None:
        """Return value and gradient by a trace that is kept, or while it is; None where the function is to be run."""
        if chosen.others is None or _is_watched():
            return None
        leaves, structure = containers.flatten_exactly(chosen.arguments)
        others, around = containers.flatten_exactly(chosen.others)
        if not (all(map(_is_number, leaves)) and all(map(_is_known, others))):
            return None
        key = structure, tuple(map(np.shape, leaves)), around, tuple([(type(leaf), np.shape(leaf)) for leaf in others])
        with self._lock:
            trace = self._kept.get(key)
            if trace is None:
                self._note(key, _ONCE)
        if isinstance(trace, _Kept):
            answer = trace.gradient(leaves, others)
            if trace.misses > MISSES + trace.hits:
                self._note(key, "what it asks of numbers has other answers each time")
            return answer
        return self._keep(key, chosen, others, called) if trace is _ONCE else None

    def _note(self, key: Any, kept: _Kept | str) -> None:
        """Note a trace, or why there is none."""
        with self._lock:
            self._kept[key] = kept
            self._kept.move_to_end(key)
            if len(self._kept) > TRACES:
                self._kept.popitem(last=False)
        if kept is not _ONCE:
            LOG.debug("the trace of %s is %s", name_of(self._f), "kept" if isinstance(kept, _Kept) else f"not: {kept}")

    def _keep(self, key: Any, chosen: Selection, others: Leaves, called: Called) -> tuple[Any, Any] | None:
        """Return value and gradient, and keep the trace for the next call, if it may be."""
        read = ReachableState(self._f, *static_parts(chosen.others))
        if reason := _reason(read):
            self._note(key, reason)
            return None
        generators = generator_states()
        try:
            result, traced = _traced(chosen, called)
        except SymbolMetArraysError as error:
            discard_recorded_error(error)
            self._note(key, "it has symbols")
            return None
        size = read.bytes + sum(leaf.nbytes for leaf in others if _is_array(leaf))
        if not (read.unchanged() and generator_states() == generators):
            self._note(key, "it changes what it reads")
        elif not traced.arrays and traced.nodes > LARGEST:
            self._note(key, f"it has {traced.nodes:,} nodes")
        elif size <= traced.compared:
            self._note(key, _Kept(traced, read, others))
        else:
            kept = self._with_live_arrays(chosen, others, called, result, read)
            self._note(key, kept or f"{size:,} bytes that it reads would be compared at each call")
        return result

    def _with_live_arrays(
        self, chosen: Selection, others: Leaves, called: Called, right: tuple[Any, Any], read: ReachableState
    ) -> _Kept | None:
        """Return a trace that reads the large arrays at each call; None where that is not the same, or not enough."""
        live = LiveArrays(chosen.function)
        size = read.bytes - live.bytes + sum(leaf.nbytes for leaf in others if _is_array(leaf))
        if not live.arrays:
            return None
        try:
            result, traced = _traced(chosen, called, live)
        except InvariantError:
            raise
        except Exception as error:  # a traced array may lack a feature of an array
            discard_recorded_error(error)
            LOG.debug("%s does not run with traced arrays in place of large ones: %s", name_of(self._f), error)
            return None
        if size > traced.compared or traced.read_otherwise != size or not _are_same(result, right):
            return None
        left = frozenset(map(id, live.arrays))
        return _Kept(traced, ReachableState(self._f, *static_parts(chosen.others), left=left), others)


_ONCE = "it was called once"


@dataclass(frozen=True)
class _Traced:
    """The trace of a level: value and gradient, questions about numbers, and nodes of live arrays."""

    level: Level
    trees: tuple[Tree, Tree]
    asked: Sequence[Asked]
    live: Sequence[tuple[Nodes, NDArray[np.float64]]]
    read_otherwise: int  # bytes that the function with live arrays still reads, and are compared

    @property
    def arrays(self) -> int:
        return len(self.level.scope.graph.arrays.nodes)

    @property
    def nodes(self) -> int:
        return len(self.level.scope.graph)

    @property
    def compared(self) -> int:
        """Bytes that are compared in the time that tracing takes."""
        return COMPARED * (self.arrays or self.nodes // ROWS)


def _traced(chosen: Selection, called: Called, live: LiveArrays | None = None) -> tuple[tuple[Any, Any], _Traced]:
    """Return value and gradient, and their trace; with live arrays, which have nodes of their own."""
    with open_level(chosen.arguments, chosen.names, arrays=True) as level:
        asked: list[Asked] = []
        graph, before = level.scope.graph, len(level.scope.graph.arrays.nodes)
        graph.arrays.asked = asked
        try:
            nodes, function = ([], chosen.function) if live is None else live.traced(level.scope)
            around = 0 if live is None else ReachableState(function, *static_parts(chosen.others)).bytes
            result = called(level, function)
            arrays = len(graph.arrays.nodes) > before + 2 * len(nodes)
            trees = result, (modes.gradient_for_any_numbers if arrays else modes.gradient)(level, result)
        finally:
            graph.arrays.asked = None
        pairs = list(zip(nodes, () if live is None else live.arrays, strict=True))
        (value, gradient) = level.close(*trees)
        return (value, gradient), _Traced(level, trees, asked, pairs, around)


class _Kept:
    """A trace and its dependencies. `_lock`: during a call the numbers are stored with the graph."""

    def __init__(self, traced: _Traced, read: ReachableState, others: Leaves) -> None:
        self.hits, self.misses = 0, 0
        level = traced.level
        self._level, self._graph, self._values = level, level.scope.graph, level.scope.values
        self._result, self._gradient = traced.trees
        self._asked, self._live, self._state = traced.asked, traced.live, read
        self._others = [leaf.copy() if _is_array(leaf) else leaf for leaf in others]
        self._lock = Lock()
        self._forget()
        self._enter([np.zeros(shape) for shape in level.parameters.shapes])
        results = [*(tree.nodes for tree in traced.trees), *(nodes.ravel() for nodes, *_ in self._asked)]
        inputs = [*level.parameters.arrays, *(nodes for nodes, _ in self._live)]
        self._schedule = schedule_again(self._graph, results, inputs, self._values)
        self._readings = [[self._graph.arrays.reading(nodes) for nodes in tree.arrays] for tree in traced.trees]
        self._forget()

    def gradient(self, leaves: Leaves, others: Leaves) -> tuple[Any, Any] | None:
        """Return value and gradient; None where the function is to be run."""
        if not self._lock.acquire(blocking=False):
            return None
        try:
            as_it_was = all(map(_same, others, self._others)) and self._state.unchanged()
            as_it_was = as_it_was and all(_is_read(array, nodes) for nodes, array in self._live)
            result = self._computed(leaves) if as_it_was else None
        except (
            np.linalg.LinAlgError,
            RuleError,
            MemoryError,
        ):  # raised again, with the user's line, where the function is run
            result = None
        finally:
            self._forget()
            self._lock.release()
        self.hits, self.misses = self.hits + (result is not None), self.misses + (result is None)
        return result

    def _computed(self, leaves: Leaves) -> tuple[Any, Any] | None:
        self._enter(leaves)
        self._schedule.carry_out(self._graph, self._values)
        for nodes, question, answer in self._asked:
            if not _same(values_of_array(self._graph, nodes, self._values, question), answer):
                return None
        value, gradient = (
            tree.filled([part if part.ndim else part.item() for part in map(self._numbers_of, readings)])
            for tree, readings in zip((self._result, self._gradient), self._readings, strict=True)
        )
        return value, gradient

    def _numbers_of(self, reading: OperandAccess) -> NDArray[np.float64]:
        return np.array(np.broadcast_to(read(self._graph, reading, self._values), reading.shape), dtype=np.float64)

    def _enter(self, leaves: Leaves) -> None:
        """Give the parameters their numbers."""
        for nodes, leaf in zip(self._level.parameters.arrays, leaves, strict=True):
            array = self._graph.arrays.at(int(nodes.flat[0])) if nodes.size else None
            if array is not None:
                self._graph.arrays.values[array.first] = np.array(leaf, dtype=np.float64).ravel()
            else:
                self._values.update(zip(nodes.ravel().tolist(), np.ravel(leaf).tolist(), strict=True))
        for nodes, numbers in self._live:
            self._graph.arrays.values[int(nodes.flat[0])] = numbers.ravel()

    def _forget(self) -> None:
        self._values.clear()
        self._graph.arrays.values.clear()


def _is_watched() -> bool:
    """Whether others see how a function is run: a trace around it, a debugger, a listener, a limit on its arrays."""
    return innermost_scope() is not None or is_noting() or sys.gettrace() is not None or bytes_are_limited()


def _reason(read: ReachableState) -> str:
    """Return why no trace is kept of a function that reads this, "" if it may be."""
    if read.effects:
        return f"{read.effects[0].what} may have side effects"
    if read.unknown:
        return f"{read.unknown[0].reason}, whose state is not known"
    return "it keeps results of its own" if read.keeps_results else ""


def _is_number(leaf: Any) -> bool:
    return type(leaf) is float or (type(leaf) is np.ndarray and leaf.dtype == np.float64)


def _is_known(leaf: Any) -> bool:
    return type(leaf) in (int, float, bool, str) or isinstance(leaf, np.generic) or _is_array(leaf)


def _is_array(leaf: Any) -> bool:
    return type(leaf) is np.ndarray and not leaf.dtype.hasobject


def _is_read(array: NDArray[Any], nodes: Nodes) -> bool:
    """Whether an array still has the shape and type with which it was traced: both can be set."""
    return array.shape == nodes.shape and array.dtype == np.float64


def _are_same(result: tuple[Any, Any], right: tuple[Any, Any]) -> bool:
    return all(map(_same, containers.flatten(result)[0], containers.flatten(right)[0]))


def _same(now: Any, before: Any) -> bool:
    if isinstance(now, str):
        return bool(now == before)
    after, two = np.asarray(now), np.asarray(before)
    return after.shape == two.shape and after.dtype == two.dtype and same_bytes(after, two)
