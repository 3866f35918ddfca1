"""Injected interrupts: KeyboardInterrupt, or MemoryError, at every line of symad that small calls run.

`python -m tests.support.injected` tries every line that runs, the tests every few; `--signals N` sends so many real
signals instead, at random moments. After each: the user's module is as it was, the next call gives the right numbers,
no trace function is left, and no lock of symad's is held.
"""

from __future__ import annotations

import argparse
import builtins
import gc
import math
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
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


class Intact:
    """What a call must leave as it is, whatever strikes in it."""

    def __init__(self, name: str) -> None:
        self.name, self.call, self.module = name, CALLS[name], sys.modules[__name__]
        self.right, self.names, self.own_import = self.call(), dict(vars(self.module)), builtins.__import__

    def damages(self, place: str) -> Iterator[str]:
        """Yield what is wrong now."""
        if vars(self.module) != self.names or builtins.__import__ is not self.own_import:
            yield f"{self.name}, {place}: the module was changed"
        if sys.gettrace() is not None:
            yield f"{self.name}, {place}: a trace function is left"
            sys.settrace(None)
        yield from (f"{self.name}, {place}: {held}" for held in _locks_held())
        try:
            again = self.call()
        except BaseException as failure:
            yield f"{self.name}, {place}: the next call: {type(failure).__name__}: {failure}"
        else:
            if not np.array_equal(again, self.right):
                yield f"{self.name}, {place}: the next call gives {again}"


def damages(name: str, error: type[BaseException] = KeyboardInterrupt, every: int = 1) -> Iterator[str]:
    """Yield what is wrong after an error at each line, or every few, that a call runs."""
    intact = Intact(name)
    for line in lines_of(intact.call)[::every]:
        injected(intact.call, line, error)
        yield from intact.damages(f"{Path(line[0]).name}:{line[1]}")


def damages_of_signals(name: str, count: int, seed: int = 0) -> Iterator[str]:
    """Yield what is wrong after each of so many interrupts that come while a call runs, at random moments."""
    intact, random, struck = Intact(name), Random(seed), 0
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        start = time.perf_counter()
        intact.call()
        longest = time.perf_counter() - start
        while struck < count:
            delay = random.uniform(0.0, longest) + 1e-6
            try:
                signal.setitimer(signal.ITIMER_REAL, delay)
                intact.call()
                signal.setitimer(signal.ITIMER_REAL, 0.0)
            except KeyboardInterrupt:
                struck += 1
                yield from intact.damages(f"a signal after {delay:.6f} s")
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


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
    """Try every line, or signals."""
    parser = argparse.ArgumentParser(prog="python -m tests.support.injected", description=__doc__)
    parser.add_argument("--signals", type=int, default=0, help="so many for all calls together")
    options = parser.parse_args()
    counts = Counter[str]()
    for error in (KeyboardInterrupt,) if options.signals else (KeyboardInterrupt, MemoryError):
        for name, call in CALLS.items():
            each = options.signals // len(CALLS)
            counts["points"] += each or len(lines_of(call))
            for damage in damages_of_signals(name, each) if each else damages(name, error):
                counts["damaged"] += 1
                print(f"{error.__name__}: {damage}", flush=True)
            gc.collect()
    print(f"{counts['points']:,} points, {counts['damaged']} damaged")
    sys.exit(counts["damaged"] > 0)


if __name__ == "__main__":
    main()
