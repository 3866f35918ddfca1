"""Detect values that a trace read or changed outside the function and that a kernel would keep.

A function that may do so is traced a second time and watched (`outside_inputs`). Random draws, files, environment
variables, the date and questions for files always warn. The clock and mutated state warn only if the second trace
differs, so memoization and timing do not warn.
"""

from __future__ import annotations

import dis
import logging
import random
import warnings
from collections.abc import Callable, Collection, Sequence
from inspect import unwrap
from typing import Any, Protocol

import numpy as np
import sympy as sp
from numpy.typing import NDArray

from codegen.ir.lazy_atoms import floats_of
from codegen.ir.program import Program
from codegen.ir.row_table import RowTable
from codegen.loops.loop import Loop, RolledBlock
from codegen.machine.storage.portable import rolled_data
from codegen.records import dataclass
from symad.errors import FrozenValueWarning, WorkbenchError
from symad.graph.graph import Graph
from symad.reach.object_classes import RANDOM
from symad.reach.reachable_state import ReachableState, generator_states
from symad.reach.strict_key import same_bytes
from symad.tracing.calling.function_names import name_of
from symad.tracing.calling.outside_inputs import noting_inputs
from symad.tracing.calling.recorded_errors import discard_recorded_error
from symad.tracing.calling.user_place import is_library, line_of, segment_at
from symad.tracing.values.node_trees import Tree

LOG = logging.getLogger("symad")
LARGEST = 2**16  # bytes of an array that is looked at for changes
NAMED = 3  # of what has changed
UNKNOWN = -1  # a node that differs, but not which

_SAID: dict[str, tuple[str, str, str]] = {
    "random": (
        "draws a random number",
        "it is drawn while the function is traced, and is a constant from then on",
        "pass it as an argument, or say freeze=True to keep the one that was drawn",
    ),
    "clock": (
        "reads the clock",
        "the time is that of tracing, and a constant from then on",
        "pass it as an argument, or say freeze=True to keep that time",
    ),
    "date": (
        "reads the date",
        "the date is that of tracing, and a constant from then on",
        "pass it as an argument, or say freeze=True to keep that date",
    ),
    "file": (
        "opens a file",
        "it is opened while the function is traced, and what was read is a constant from then on",
        "read it outside, and pass what is in it as an argument; or say freeze=True to keep what was read",
    ),
    "path": (
        "asks for a file or a folder",
        "the answer is that of tracing, and a constant from then on",
        "ask outside, and pass the answer as an argument; or say freeze=True to keep it",
    ),
    "environment": (
        "reads the environment",
        "the variable is read while the function is traced, and a constant from then on",
        "pass its value as an argument, or say freeze=True to keep what was read",
    ),
    "state": (
        "changes what it reads",
        "each call of it finds something else, and what was made of it keeps what one of them found",
        "pass it as an argument and return it, or say freeze=True to keep what was found",
    ),
    "other": (
        "computes something else each time it is traced",
        "what was made of it keeps what it computed once",
        "pass what differs as an argument, or say freeze=True to keep what was found",
    ),
}  # fmt: skip
_SAID["now"] = _SAID["clock"]
_GENERATORS = (np.random.Generator, np.random.RandomState, random.Random)
_DRAWS = frozenset(name for kind in _GENERATORS for name in dir(kind) if not name.startswith("_"))


class Traced(Protocol):
    """A trace, as far as two of them are compared; `loops` where there are some."""

    graph: Graph
    outputs: Tree


@dataclass(frozen=True)
class _Place:
    """A line of the user's, and the names of its module; line 0 of an unknown file where it is not known."""

    file: str = "<unknown>"
    line: int = 0
    text: str = ""
    names: dict[str, Any] | None = None

    @property
    def shown(self) -> str:
        """Its text, for a message."""
        return self.text and f" ('{self.text}')"


class StaleValueCheck:
    """A function that is about to be traced, and what it reads before that."""

    def __init__(self, f: Callable[..., Any], *static: Any) -> None:
        self._f, self._static = f, static
        self._before = self._state()
        self._suspect = bool(self._before[0].asks or self._before[0].unknown)

    def _state(self) -> tuple[ReachableState, tuple[Any, ...]]:
        state = ReachableState(self._f, *self._static, largest=LARGEST)
        return state, generator_states() if state.asks else ()

    def tell(self, traced: Traced, again: Callable[[], Traced]) -> None:
        """Warn (FrozenValueWarning) of what a trace has kept as it was; `again` traces the function once more."""
        if not (self._suspect or _changed(self._before)):
            return
        left = self._before[0].only_written()
        if not (self._suspect or _changed(self._before, left)):
            return
        before = self._state() if _changed(self._before) else self._before
        with noting_inputs() as noted:
            try:
                node = _first_difference(traced, again())
            except Exception as error:
                discard_recorded_error(error)
                LOG.debug("%s is not traced once more: %s", name_of(self._f), error)
                node = UNKNOWN
        seen = [each for each in noted.inputs if each.kind != "clock" or node is not None]
        for each in seen:
            self._warn(each.kind, _Place(each.file, each.line, each.text, each.names))
        changed = _changed(before, left)
        if RANDOM in changed.values() and not any(each.kind == "random" for each in seen):
            self._warn("random", _drawn_at(noted) or self._used_at(traced.graph, node))
        elif node is not None and not seen:
            more = f" ({', '.join(list(changed)[:NAMED])})"
            self._warn("state" if changed else "other", self._used_at(traced.graph, node), more * bool(changed))

    def _used_at(self, graph: Graph, node: int | None) -> _Place:
        """Return the line that has used what differs, that of the function where it is not known."""
        function = unwrap(self._f)
        code, line = getattr(function, "__code__", None), 0
        found = graph.instruction_of(node) if node is not None and node >= 0 else None
        if found is not None and not is_library(found[0].co_filename):
            code, line = found[0], line_of(*found)
        names = getattr(function, "__globals__", None)
        return _Place() if code is None else _Place(code.co_filename, line or code.co_firstlineno, "", names)

    def _warn(self, kind: str, place: _Place, more: str = "") -> None:
        what, why, do = _SAID[kind]
        said = str(WorkbenchError(f"{name_of(unwrap(self._f))} {what}{more or place.shown}", why=why, do=do))
        names = {} if place.names is None else place.names
        warnings.warn_explicit(
            said, FrozenValueWarning, place.file, place.line, names.get("__name__", place.file),
            names.setdefault("__warningregistry__", {}),
        )  # fmt: skip


def _changed(before: tuple[ReachableState, tuple[Any, ...]], left: Collection[int] = ()) -> dict[str, str]:
    """Return what is not as it was: what each is, by its name; lists in `left` are only written."""
    read, states = before
    found = read.differences(left)
    if read.runs_out:
        found["an iterator"] = "an iterator"
    return found | ({RANDOM: RANDOM} if states and generator_states() != states else {})


def _first_difference(one: Traced, other: Traced) -> int | None:
    """Return a node in which two traces differ, UNKNOWN where it is in a loop, None where there is none."""
    loops, others = (tuple(getattr(each, "loops", ())) for each in (one, other))
    if len(loops) != len(others) or not all(map(_are_same, loops, others)):
        return UNKNOWN
    roots = [_flat(each.outputs.nodes, of) for each, of in ((one, loops), (other, others))]
    return (
        UNKNOWN
        if len(roots[0]) != len(roots[1])
        else _first_pair(one.graph, other.graph, list(zip(*roots, strict=True)))
    )


def _flat(outputs: NDArray[Any], loops: Sequence[Loop]) -> list[int]:
    """Return the nodes that a trace needs: its outputs, and what its loops read."""
    columns = [outputs, *(column for loop in loops for column in loop.nodes_read)]
    return [node for column in columns for node in np.ravel(column).tolist()]


def _first_pair(a: RowTable | Program, b: RowTable | Program, waiting: list[tuple[int, int]]) -> int | None:
    """Return a row of one table that is not what its partner in another table is, None where there is none."""
    seen = set[tuple[int, int]]()
    leaves: list[tuple[int, int]] = []
    while waiting:
        pair = waiting.pop()
        if pair in seen:
            continue
        seen.add(pair)
        node, other = pair
        operands, others = a.operands[node], b.operands[other]
        if a.heads[node] is not b.heads[other] or len(operands) != len(others):
            return node
        if operands:
            waiting += zip(operands, others, strict=True)
        else:
            leaves.append(pair)
    return _first_leaf(a, b, np.array(leaves, dtype=np.int64).reshape(-1, 2))


def _first_leaf(a: RowTable | Program, b: RowTable | Program, pairs: NDArray[np.int64]) -> int | None:
    """Return a leaf of one table that is another number than its partner, None where there is none."""
    (lazy, numbers), (also, others) = floats_of(a.atoms, pairs[:, 0]), floats_of(b.atoms, pairs[:, 1])
    if not np.array_equal(lazy, also):
        return UNKNOWN
    apart = pairs[lazy, 0][numbers.view(np.int64) != others.view(np.int64)]
    if apart.size:
        return int(apart[0])
    atoms = ((node, a.atoms.get(node), b.atoms.get(other)) for node, other in pairs[~lazy].tolist())
    return next((node for node, atom, twin in atoms if atom != twin and not isinstance(atom, sp.Symbol)), None)


def _are_same(loop: Loop, other: Loop) -> bool:
    """Whether two loops compute the same."""
    if type(loop) is not type(other) or loop.count != other.count or len(loop.reads) != len(other.reads):
        return False
    if not all(map(_same_array, loop.reads, other.reads)):
        return False
    if isinstance(loop, RolledBlock) and isinstance(other, RolledBlock):
        (header, arrays), (header_again, arrays_again) = rolled_data(loop.program), rolled_data(other.program)
        return bool(header == header_again) and all(map(_same_array, arrays, arrays_again))
    rows = range(len(loop.body.heads))
    return (
        len(rows) == len(other.body.heads)
        and _first_pair(loop.body, other.body, list(zip(rows, rows, strict=True))) is None
    )


def _same_array(one: NDArray[Any], other: NDArray[Any]) -> bool:
    return one.shape == other.shape and one.dtype == other.dtype and same_bytes(one, other)


def _drawn_at(noted: noting_inputs) -> _Place | None:
    """Return the first line of the code that was run that asks one of NumPy's generators for numbers."""
    for code, names in noted.code:
        before: Any = None
        for step in dis.get_instructions(code):
            if step.argval in _DRAWS and (before == "random" or isinstance(names.get(str(before)), _GENERATORS)):
                at = code, step.offset
                return _Place(code.co_filename, line_of(*at), segment_at(*at), names)
            before = step.argval
    return None
