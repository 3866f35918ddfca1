"""Detect values that a trace read or changed outside the function and that a kernel would keep.

A function that may do so is traced a second time and watched. Random draws, files, environment variables, the date and
questions for files always warn. The clock and mutated state warn only if the second trace differs, so memoization and
timing do not warn. Python's profiler sees such inputs everywhere: in the user's code, and in packages that it calls.
Inputs that Python's own library reads for itself (a log's time, an imported module) do not count.
"""

from __future__ import annotations

import datetime
import dis
import io
import logging
import os
import random
import sys
import time
import warnings
from collections.abc import Callable, Collection, Sequence
from inspect import unwrap
from types import CodeType, FrameType
from typing import Any, Literal

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
from symad.tracing.calling.recorded_errors import discard_recorded_error
from symad.tracing.calling.user_place import is_installed, is_library, is_ours, is_standard, line_of, segment_at

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


@dataclass(frozen=True)
class OutsideInput:
    """An input and its place: kind, file, line and text; `names` are those of its module. Line 0 if it is not known."""

    kind: str
    file: str = "<unknown>"
    line: int = 0
    text: str = ""
    names: dict[str, Any] | None = None


class StaleValueCheck:
    """A function before its trace, and the state that it reads."""

    def __init__(self, f: Callable[..., Any], *static: Any) -> None:
        self._f, self._static = f, static
        self._before = self._state()
        self._suspect = bool(self._before[0].asks or self._before[0].unknown)

    def _state(self) -> tuple[ReachableState, tuple[Any, ...]]:
        state = ReachableState(self._f, *self._static, largest=LARGEST)
        return state, generator_states() if state.asks else ()

    def tell(self, traced: Any, retrace: Callable[[], Any]) -> None:
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
            self._warn(asked)
        changed = _changed(before, written)
        if RANDOM in changed.values() and not any(asked.kind == "random" for asked in seen):
            self._warn(_drawn_at(noted) or self._used_at("random", traced.graph, node))
        elif node is not None and not seen:
            more = f" ({', '.join(list(changed)[:NAMED])})"
            used = self._used_at("state" if changed else "other", traced.graph, node)
            self._warn(used, more * bool(changed))

    def _used_at(self, kind: str, graph: Graph, node: int | None) -> OutsideInput:
        """Return the line that used the differing value; the line of the function if that is not known."""
        function = unwrap(self._f)
        code, line = getattr(function, "__code__", None), 0
        instruction = graph.instruction_of(node) if node is not None and node >= 0 else None
        if instruction is not None and not is_library(instruction[0].co_filename):
            code, line = instruction[0], line_of(*instruction)
        names = getattr(function, "__globals__", None)
        place = () if code is None else (code.co_filename, line or code.co_firstlineno, "", names)
        return OutsideInput(kind, *place)

    def _warn(self, met: OutsideInput, more: str = "") -> None:
        event, why, do = _WORDS[met.kind]
        shown = more or (met.text and f" ('{met.text}')")
        message = str(WorkbenchError(f"{name_of(unwrap(self._f))} {event}{shown}", why=why, do=do))
        names = {} if met.names is None else met.names
        warnings.warn_explicit(
            message, FrozenValueWarning, met.file, met.line, names.get("__name__", met.file),
            names.setdefault("__warningregistry__", {}),
        )  # fmt: skip


def _changed(before: tuple[ReachableState, tuple[Any, ...]], left: Collection[int] = ()) -> dict[str, str]:
    """Return the changed state: what it is, by its name. Lists in `left` are only written."""
    read, states = before
    changes = read.differences(left)
    if read.runs_out:
        changes["an iterator"] = "an iterator"
    return changes | ({RANDOM: RANDOM} if states and generator_states() != states else {})


def _first_difference(first: Any, second: Any) -> int | None:
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


def _drawn_at(noted: noting_inputs) -> OutsideInput | None:
    """Return the first line of the executed code that asks one of NumPy's generators for numbers."""
    for code, names in noted.code:
        before: Any = None
        for step in dis.get_instructions(code):
            if step.argval in _DRAWS and (before == "random" or isinstance(names.get(str(before)), _GENERATORS)):
                at = code, step.offset
                return OutsideInput("random", code.co_filename, line_of(*at), segment_at(*at), names)
            before = step.argval
    return None


Kind = Literal["random", "clock", "now", "date", "file", "path", "environment"]

_CLOCKS = ("monotonic", "perf_counter", "process_time", "thread_time", "time")
_DATES = ("ctime", "gmtime", "localtime", "strftime")  # of now, where nothing is given
_BUILTINS: dict[Any, Kind] = {
    **{getattr(time, name): "clock" for word in _CLOCKS for name in (word, f"{word}_ns")},
    **{getattr(time, name): "clock" for name in ("clock_gettime", "clock_gettime_ns") if hasattr(time, name)},
    **{getattr(time, name): "date" for name in _DATES},
    **dict.fromkeys((io.open, os.open, os.listdir, os.scandir, input), "file"),
    **dict.fromkeys((os.stat, os.lstat, os.access, os.getcwd, os.readlink), "path"),
    **{getattr(os, name): "random" for name in ("urandom", "getrandom") if hasattr(os, name)},
}
_ENVIRONMENT = frozenset(id(method.__code__) for method in (type(os.environ).__getitem__, type(os.environ).__iter__))
_SEED = id(random.Random.seed.__code__)
_FOR_ITSELF = frozenset({  # modules of Python's library whose inputs their callers do not see
    "asyncio", "concurrent", "doctest", "importlib", "inspect", "linecache", "logging", "multiprocessing", "queue",
    "sched", "tempfile", "threading", "tokenize", "traceback", "unittest", "uuid", "warnings",
})  # fmt: skip


class noting_inputs:
    """A block that notes the outside inputs of this thread; none are noted if another profiler is running.

    >>> with noting_inputs() as noted:
    ...     drawn, early = random.random() < 1, time.time() > 0
    >>> [found.kind for found in noted.inputs]
    ['random', 'clock']
    """

    def __init__(self) -> None:
        self._found: dict[tuple[Kind, str, int], OutsideInput] = {}
        self._seeded: list[random.Random] = []
        self._run = dict[int, tuple[CodeType, dict[str, Any]]]()

    @property
    def inputs(self) -> list[OutsideInput]:
        """The inputs, each line once. A file that is opened may have been looked for before."""
        opened = {place[1:] for place in self._found if place[0] == "file"}
        return [asked for place, asked in self._found.items() if place[0] != "path" or place[1:] not in opened]

    @property
    def code(self) -> list[tuple[CodeType, dict[str, Any]]]:
        """The user's code that was executed, with its global names."""
        return [(code, names) for code, names in self._run.values() if not is_installed(code.co_filename)]

    def __enter__(self) -> noting_inputs:
        self._notes = sys.getprofile() is None
        if self._notes:
            sys.setprofile(self._event)
        return self

    def __exit__(self, *_: object) -> None:
        if self._notes:
            sys.setprofile(None)

    def _event(self, frame: FrameType, event: str, value: Any) -> None:
        if event == "c_call":
            kind = _kind_of(value)
            owner = getattr(value, "__self__", None)
            if kind is not None and not any(owner is generator for generator in self._seeded):
                self._note(kind, frame)
        elif event == "call":
            code = frame.f_code
            if id(code) not in self._run:
                self._run[id(code)] = code, frame.f_globals
            if id(code) in _ENVIRONMENT:
                self._note("environment", frame)
            elif id(code) == _SEED:
                if frame.f_locals.get("a") is not None:
                    self._seeded.append(frame.f_locals["self"])  # with a seed, every run draws the same numbers
                else:
                    self._note("random", frame)

    def _note(self, kind: Kind, frame: FrameType) -> None:
        caller = _responsible_frame(frame)
        if caller is None or (kind == "environment" and is_installed(caller.f_code.co_filename)):
            return  # a package's own settings
        place = kind, caller.f_code.co_filename, line_of(caller.f_code, caller.f_lasti)
        if place not in self._found:
            text = segment_at(caller.f_code, caller.f_lasti)
            if kind != "date" or text.endswith("()") or ("strftime(" in text and "," not in text):
                self._found[place] = OutsideInput(*place, text, caller.f_globals)


def _kind_of(function: Any) -> Kind | None:
    """Return the kind of input that a builtin function reads, None if its result is always the same."""
    name, owner = getattr(function, "__name__", ""), getattr(function, "__self__", None)
    if name in ("random", "getrandbits") and isinstance(owner, random.Random):
        return "random"
    if name in ("now", "today", "utcnow") and isinstance(owner, type) and issubclass(owner, datetime.date):
        return "now" if name != "today" or issubclass(owner, datetime.datetime) else "date"
    try:
        return _BUILTINS.get(function)
    except TypeError:  # a method of an unhashable object
        return None


def _responsible_frame(frame: FrameType | None) -> FrameType | None:
    """Return the frame of the user's code, or of a package, that asked; None if a library did so for itself."""
    module = ""
    while frame is not None:
        file = frame.f_code.co_filename
        if is_standard(file):
            module = str(frame.f_globals.get("__name__", "")).partition(".")[0]
            if file.startswith("<frozen importlib"):
                return None
        elif is_ours(file):
            return None
        elif not is_library(file):
            return None if module in _FOR_ITSELF else frame
        frame = frame.f_back
    return None
