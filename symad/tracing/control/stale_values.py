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
from symad.reach.strict_key import same
from symad.tracing.calling.function_names import name_of
from symad.tracing.calling.outside_inputs import noting_inputs
from symad.tracing.calling.recorded_errors import discard_recorded_error
from symad.tracing.calling.user_place import is_library, line_of, segment_at
from symad.tracing.values.node_trees import Tree

LOG = logging.getLogger("symad")
LARGEST = 2**16  # bytes of an array that is compared
NAMED = 3  # changed objects in a message
UNKNOWN = -1  # a node that differs, but not which

_WORDS: dict[str, tuple[str, str, str]] = {
    "random": ("draws a random number",
        "it is drawn while the function is traced, and is a constant from then on",
        "pass it as an argument, or say freeze=True to keep the one that was drawn"),
    "clock": ("reads the clock",
        "the time is that of tracing, and a constant from then on",
        "pass it as an argument, or say freeze=True to keep that time"),
    "date": ("reads the date",
        "the date is that of tracing, and a constant from then on",
        "pass it as an argument, or say freeze=True to keep that date"),
    "file": ("opens a file",
        "it is opened while the function is traced, and what was read is a constant from then on",
        "read it outside, and pass what is in it as an argument; or say freeze=True to keep what was read"),
    "path": ("asks for a file or a folder",
        "the answer is that of tracing, and a constant from then on",
        "ask outside, and pass the answer as an argument; or say freeze=True to keep it"),
    "environment": ("reads the environment",
        "the variable is read while the function is traced, and a constant from then on",
        "pass its value as an argument, or say freeze=True to keep what was read"),
    "state": ("changes what it reads",
        "each call of it finds something else, and what was made of it keeps what one of them found",
        "pass it as an argument and return it, or say freeze=True to keep what was found"),
    "other": ("computes something else each time it is traced",
        "what was made of it keeps what it computed once",
        "pass what differs as an argument, or say freeze=True to keep what was found"),
}  # fmt: skip
_WORDS["now"] = _WORDS["clock"]
_GENERATORS = (np.random.Generator, np.random.RandomState, random.Random)
_DRAWS = frozenset(name for kind in _GENERATORS for name in dir(kind) if not name.startswith("_"))


class Traced(Protocol):
    """The parts of a trace that are compared; `loops` where there are some."""

    graph: Graph
    outputs: Tree


@dataclass(frozen=True)
class _Place:
    """A line of the user's, and the global names of its module; line 0 of an unknown file if it is not known."""

    file: str = "<unknown>"
    line: int = 0
    text: str = ""
    names: dict[str, Any] | None = None

    @property
    def shown(self) -> str:
        """Its text, for a message."""
        return self.text and f" ('{self.text}')"


class StaleValueCheck:
    """A function before its trace, and the state that it reads."""

    def __init__(self, f: Callable[..., Any], *static: Any) -> None:
        self._f, self._static = f, static
        self._before = self._state()
        self._suspect = bool(self._before[0].asks or self._before[0].unknown)

    def _state(self) -> tuple[ReachableState, tuple[Any, ...]]:
        state = ReachableState(self._f, *self._static, largest=LARGEST)
        return state, generator_states() if state.asks else ()

    def tell(self, traced: Traced, retrace: Callable[[], Traced]) -> None:
        """Warn (FrozenValueWarning) about values that a trace has frozen; `again` traces the function once more."""
        if not (self._suspect or _changed(self._before)):
            return
        written = self._before[0].only_written()
        if not (self._suspect or _changed(self._before, written)):
            return
        before = self._state() if _changed(self._before) else self._before
        with noting_inputs() as noted:
            try:
                node = _first_difference(traced, retrace())
            except Exception as error:
                discard_recorded_error(error)
                LOG.debug("%s is not traced once more: %s", name_of(self._f), error)
                node = UNKNOWN
        seen = [asked for asked in noted.inputs if asked.kind != "clock" or node is not None]
        for asked in seen:
            self._warn(asked.kind, _Place(asked.file, asked.line, asked.text, asked.names))
        changed = _changed(before, written)
        if RANDOM in changed.values() and not any(asked.kind == "random" for asked in seen):
            self._warn("random", _drawn_at(noted) or self._used_at(traced.graph, node))
        elif node is not None and not seen:
            more = f" ({', '.join(list(changed)[:NAMED])})"
            self._warn("state" if changed else "other", self._used_at(traced.graph, node), more * bool(changed))

    def _used_at(self, graph: Graph, node: int | None) -> _Place:
        """Return the line that used the differing value; the line of the function if that is not known."""
        function = unwrap(self._f)
        code, line = getattr(function, "__code__", None), 0
        instruction = graph.instruction_of(node) if node is not None and node >= 0 else None
        if instruction is not None and not is_library(instruction[0].co_filename):
            code, line = instruction[0], line_of(*instruction)
        names = getattr(function, "__globals__", None)
        return _Place() if code is None else _Place(code.co_filename, line or code.co_firstlineno, "", names)

    def _warn(self, kind: str, place: _Place, more: str = "") -> None:
        event, why, do = _WORDS[kind]
        message = str(WorkbenchError(f"{name_of(unwrap(self._f))} {event}{more or place.shown}", why=why, do=do))
        names = {} if place.names is None else place.names
        warnings.warn_explicit(
            message, FrozenValueWarning, place.file, place.line, names.get("__name__", place.file),
            names.setdefault("__warningregistry__", {}),
        )  # fmt: skip


def _changed(before: tuple[ReachableState, tuple[Any, ...]], left: Collection[int] = ()) -> dict[str, str]:
    """Return the changed state: what it is, by its name. Lists in `left` are only written."""
    read, states = before
    changes = read.differences(left)
    if read.runs_out:
        changes["an iterator"] = "an iterator"
    return changes | ({RANDOM: RANDOM} if states and generator_states() != states else {})


def _first_difference(first: Traced, second: Traced) -> int | None:
    """Return a node in which two traces differ, UNKNOWN if it is in a loop, None if there is none."""
    loops, others = (tuple(getattr(traced, "loops", ())) for traced in (first, second))
    if len(loops) != len(others) or not all(map(_are_same, loops, others)):
        return UNKNOWN
    roots, partners = _flat(first.outputs.nodes, loops), _flat(second.outputs.nodes, others)
    if len(roots) != len(partners):
        return UNKNOWN
    return _first_pair(first.graph, second.graph, list(zip(roots, partners, strict=True)))


def _flat(outputs: NDArray[Any], loops: Sequence[Loop]) -> list[int]:
    """Return the nodes that a trace needs: its outputs, and the nodes that its loops read."""
    columns = [outputs, *(column for loop in loops for column in loop.nodes_read)]
    return [node for column in columns for node in np.ravel(column).tolist()]


def _first_pair(a: RowTable | Program, b: RowTable | Program, waiting: list[tuple[int, int]]) -> int | None:
    """Return a row that differs from its partner in another table, None if there is none."""
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
    """Return a leaf whose number differs from that of its partner, None if there is none."""
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
    if not all(map(same, loop.reads, other.reads)):
        return False
    if isinstance(loop, RolledBlock) and isinstance(other, RolledBlock):
        (header, arrays), (header_again, arrays_again) = rolled_data(loop.program), rolled_data(other.program)
        return bool(header == header_again) and all(map(same, arrays, arrays_again))
    rows = range(len(loop.body.heads))
    return (
        len(rows) == len(other.body.heads)
        and _first_pair(loop.body, other.body, list(zip(rows, rows, strict=True))) is None
    )


def _drawn_at(noted: noting_inputs) -> _Place | None:
    """Return the first line of the executed code that asks one of NumPy's generators for numbers."""
    for code, names in noted.code:
        before: Any = None
        for step in dis.get_instructions(code):
            if step.argval in _DRAWS and (before == "random" or isinstance(names.get(str(before)), _GENERATORS)):
                at = code, step.offset
                return _Place(code.co_filename, line_of(*at), segment_at(*at), names)
            before = step.argval
    return None
