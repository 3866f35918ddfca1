"""What every candidate is: a class with `build(problem) -> Evaluator`, and what the classes share."""

from __future__ import annotations

import importlib
import importlib.metadata
from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np

from benchmarks.problems import Matrix, Problem, Vector

Call = Callable[[], object]
Pattern = tuple[Any, Any]


@dataclass(frozen=True)
class Batched:
    """A call for many points, and how to read one row of entries for each from what it left.

    `instructions` are those of one point, with each fused multiply-add counted once, where they are known. Ours have
    two further calls, which are limits of the first one.
    """

    call: Call
    read: Callable[[object], Matrix]
    pattern: Pattern
    instructions: int | None = None
    blocks: Call | None = None  # the same in points that stand side by side
    write: Call | None = None  # into the memory of the results, and nothing else


Batch = Callable[[Matrix, int], Batched]


class TooLargeError(Exception):
    """A candidate gave up on a problem: the message says at which limit, and the report repeats it."""


@dataclass(frozen=True)
class Evaluator:
    """A compiled derivative: how to make its zero-argument call, and how to read the entries from what the call left.

    `read` gives one value for each place of `pattern` (rows, columns). `batch(points, threads)` is for all
    points, one in a row.
    """

    bind: Callable[[Vector], Call]
    read: Callable[[object], Vector]
    pattern: Pattern
    operations: int | None = None
    batch: Batch | None = None
    native: Any = None


@dataclass
class Limits:
    """What a build may cost: seconds of a C compiler, of other compilers, and the memory of a process of its own."""

    seconds: float = 60.0
    trial_seconds: float = 20.0
    gigabytes: float = 12.0


@dataclass
class Candidate:
    """A way to get the derivative of a problem, named after its library."""

    limits: Limits = field(default_factory=Limits)

    name: ClassVar[str]
    package: ClassVar[str]
    form: ClassVar[str] = "packed"
    call: ClassVar[str]
    compiles: ClassVar[bool] = True  # makes machine code
    interruptible: ClassVar[bool] = True  # else a build that may take long is tried in a process of its own
    refused: ClassVar[dict[str, str]] = {}  # problem: why it is not tried
    follows: ClassVar[str] = ""  # another candidate: where that one gave up, this one is not tried

    def __post_init__(self) -> None:
        self.library: Any = importlib.import_module(self.package)
        self.version = importlib.metadata.version(self.package)

    def prepare(self, problem: Problem) -> None:
        """Do what is not timed, because a user has it beforehand."""

    def build(self, problem: Problem) -> Evaluator:
        """Differentiate and compile the problem; everything between the Python function and the first call."""
        raise NotImplementedError


def symbol_array(symbols: Any) -> Any:
    """Return an object array of scalar symbols; filled one by one, because NumPy would try to look inside them."""
    array = np.empty(len(symbols), dtype=object)
    for position, symbol in enumerate(symbols):
        array[position] = symbol
    return array


def elementwise(library: Any) -> SimpleNamespace:
    """Return the namespace the problems need, on object arrays of a library's scalar symbols."""

    def on_arrays(name: str) -> Callable[[Any], Any]:
        scalar = getattr(library, name)
        each = np.frompyfunc(scalar, 1, 1)
        return lambda x: each(x) if isinstance(x, np.ndarray) else scalar(x)

    names = ("exp", "log", "tanh", "sqrt", "sin", "cos")
    shapes = {"sum": np.sum, "roll": np.roll, "concatenate": np.concatenate, "stack": symbol_array}
    return SimpleNamespace(**shapes, **{name: on_arrays(name) for name in names})


def into_buffer(
    run: Callable[[Vector, Vector], object],
    pattern: Pattern,
    operations: int | None,
    batch: Batch | None = None,
    native: Any = None,
) -> Evaluator:
    """Return the evaluator of a candidate that writes packed values into a buffer we own: `run(x, out)`."""
    buffer = np.empty(len(pattern[0]))
    return Evaluator(
        bind=lambda x: lambda: run(x, buffer),
        read=lambda _: buffer,
        pattern=pattern,
        operations=operations,
        batch=batch,
        native=(native, buffer),
    )
