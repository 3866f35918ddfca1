"""Injected interrupts: KeyboardInterrupt, or MemoryError, at every line of symad that small calls run.

`python -m tests.support.injected` tries every line that runs, the tests every few. After each: the user's module is as
it was, the next call gives the right numbers, no trace function is left, and no lock of symad's is held.
"""

from __future__ import annotations

import builtins
import gc
import math
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

import codegen
import symad
import symad as sa

FOLDERS = tuple(str(Path(package.__file__).parent) for package in (symad, codegen))
X = np.array([0.3, 0.8])
SCALE = 2.0


def stored(x):
    """Conversions and stores: the call runs again, with stand-ins."""
    y = np.zeros(2)
    y[0], y[1] = math.exp(x[0]) * SCALE, float(x[1])
    return y @ y


def handled(x):
    """A handler: errors are watched."""
    try:
        return math.log(x[0]) * x[1]
    except ValueError:
        return x[0]


def nested(x):
    """A derivative inside a function."""
    return sa.derivative(lambda t: np.sin(t * x[0]) * x[1])(0.5)


CALLS: dict[str, Callable[[], Any]] = {
    "grad": lambda: sa.grad(lambda x: np.sum(x**3))(X),
    "retry": lambda: sa.grad(stored)(X),
    "handler": lambda: sa.grad(handled)(X),
    "nested": lambda: sa.grad(nested)(X),
    "compile": lambda: sa.compile(stored, X)(X),
    "jit": lambda: sa.jit(lambda x: x @ x)(X),
}


def lines_of(call: Callable[[], Any]) -> list[tuple[str, int]]:
    """Return the lines of symad that a call runs, in the order of their first run."""
    lines: dict[tuple[str, int], None] = {}
    _traced(call, lambda frame: lines.setdefault((frame.f_code.co_filename, frame.f_lineno)))
    return list(lines)


def _traced(call: Callable[[], Any], at_line: Callable[[FrameType], Any]) -> Any:
    """Run a call, with a function that is called at each line of symad."""

    def start(frame: FrameType, event: str, _: Any) -> Any:
        return step if frame.f_code.co_filename.startswith(FOLDERS) else None

    def step(frame: FrameType, event: str, _: Any) -> Any:
        if event == "line":
            at_line(frame)
        return step

    sys.settrace(start)
    try:
        return call()
    finally:
        sys.settrace(None)


def injected(call: Callable[[], Any], line: tuple[str, int], error: type[BaseException]) -> bool:
    """Run a call in which an error is raised at the first run of a line; whether it came out."""
    struck = False

    def strike(frame: FrameType) -> None:
        nonlocal struck
        if not struck and (frame.f_code.co_filename, frame.f_lineno) == line:
            struck = True
            raise error

    try:
        _traced(call, strike)
    except error:
        return True
    except Exception as other:  # what symad makes of a MemoryError, or the user's code of either
        if not isinstance(other, MemoryError) and error is MemoryError:
            raise
        return True
    return struck


def damages(name: str, error: type[BaseException] = KeyboardInterrupt, every: int = 1) -> Iterator[str]:
    """Yield what is wrong after an error at each line, or every few, that a call runs."""
    call, module = CALLS[name], sys.modules[__name__]
    right, names, own_import = call(), dict(vars(module)), builtins.__import__
    for line in lines_of(call)[::every]:
        injected(call, line, error)
        place = f"{Path(line[0]).name}:{line[1]}"
        if vars(module) != names or builtins.__import__ is not own_import:
            yield f"{name}, {place}: the module was changed"
        if sys.gettrace() is not None:
            yield f"{name}, {place}: a trace function is left"
            sys.settrace(None)
        yield from (f"{name}, {place}: {held}" for held in _locks_held())
        try:
            again = call()
        except BaseException as failure:
            yield f"{name}, {place}: the next call: {type(failure).__name__}: {failure}"
        else:
            if not np.array_equal(again, right):
                yield f"{name}, {place}: the next call gives {again}"


_LOCKS = (type(threading.Lock()), type(threading.RLock()))


def _locks_held() -> list[str]:
    """Return the locks in modules of symad and codegen that are held."""
    held = []
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] in ("symad", "codegen"):
            for key, value in list(vars(module).items()):
                if (isinstance(value, _LOCKS[0]) and value.locked()) or (
                    isinstance(value, _LOCKS[1]) and value._is_owned()
                ):
                    held.append(f"{name}.{key} is held")
                    value.release()
    return held


def main() -> None:
    """Try every line."""
    counts = Counter[str]()
    for error in (KeyboardInterrupt, MemoryError):
        for name, call in CALLS.items():
            counts["lines"] += len(lines_of(call))
            for damage in damages(name, error):
                counts["damaged"] += 1
                print(f"{error.__name__}: {damage}", flush=True)
            gc.collect()
    print(f"{counts['lines']:,} points, {counts['damaged']} damaged")
    sys.exit(counts["damaged"] > 0)


if __name__ == "__main__":
    main()
