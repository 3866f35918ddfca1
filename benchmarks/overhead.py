"""Section "overhead": what a call costs when the work is next to nothing: a Hessian of two variables."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict
from itertools import repeat
from typing import Any

import numpy as np

from benchmarks.peers import Evaluator
from benchmarks.problems import Vector, two_variables
from benchmarks.session import Session
from benchmarks.tables import table
from benchmarks.timing import Quartiles, no_garbage_collection

Loop = Callable[[int], float]

LEFT_OUT = ("symad-fast", "symad-tier", "heyoka-fast")  # the same call as the candidates of that name


def empty_loop(number: int) -> float:
    """Return the seconds of a loop that does nothing: what is taken off the others."""
    start = time.perf_counter()
    for _ in repeat(None, number):
        pass
    return time.perf_counter() - start


def kernel_loop(kernel: Any, x: Vector, out: Vector) -> Loop:
    """Time `kernel(x, out=out)` written out in the loop, with no function around it."""

    def loop(number: int) -> float:
        start = time.perf_counter()
        for _ in repeat(None, number):
            kernel(x, out=out)
        return time.perf_counter() - start

    return loop


def ctypes_loop(kernel: Any, x: Vector, out: Vector) -> Loop:
    """Time the kernel's machine code, `int kernel(double **inputs, double **outputs)`, through ctypes.

    The tables of pointers are made beforehand, so that only the call is timed.
    """
    native = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)(kernel.address)
    tables = [(ctypes.c_void_p * 1)(array.ctypes.data) for array in (x, out)]
    inputs, outputs = (ctypes.c_void_p(ctypes.addressof(pointers)) for pointers in tables)

    def loop(number: int, kept: object = (kernel, tables)) -> float:
        start = time.perf_counter()
        for _ in repeat(None, number):
            native(inputs, outputs)
        return time.perf_counter() - start

    return loop


def trigger_loop(trigger: Callable[[], object]) -> Loop:
    """Time a call without arguments."""

    def loop(number: int) -> float:
        start = time.perf_counter()
        for _ in repeat(None, number):
            trigger()
        return time.perf_counter() - start

    return loop


def loops(evaluators: Mapping[str, Evaluator], x: Vector) -> dict[str, Loop]:
    """Return the loops to compare, by the name of their line."""
    chosen: dict[str, Loop] = {}
    for name, evaluator in evaluators.items():
        if name == "symad":
            kernel, out = evaluator.native
            chosen["symad: `kernel(x, out=out)`"] = kernel_loop(kernel, x, out)
            chosen["symad: ctypes on the same machine code"] = ctypes_loop(kernel, x, out)
        elif name in ("casadi", "casadi-gcc"):
            chosen[f"{name}: buffer trigger"] = trigger_loop(evaluator.bind(x))
        else:
            chosen[f"{name}: through a closure"] = trigger_loop(evaluator.bind(x))
    return chosen


def section(session: Session) -> str:
    """Measure nanoseconds per call of the tiny Hessian, loop overhead removed, interleaved as the rest."""
    session.say("overhead")
    problem = two_variables()
    x = np.ascontiguousarray(problem.point)
    made = {name: session.built(session.candidates[name], problem, name) for name in session.candidates}
    chosen = loops({name: pair[0] for name, pair in made.items() if pair and name not in LEFT_OUT}, x)
    numbers = {name: max(1, round(3000 * session.seconds / loop(1000))) for name, loop in chosen.items()}
    samples: dict[str, list[float]] = {name: [] for name in chosen}
    with no_garbage_collection():
        for _ in range(session.rounds):
            for name, loop in chosen.items():
                loop(1)
                samples[name].append((loop(numbers[name]) - empty_loop(numbers[name])) / numbers[name] * 1e9)
    spread = {name: Quartiles.of(sample) for name, sample in samples.items()}
    session.data["overhead"] = {name: asdict(ns) for name, ns in spread.items()}
    rows = [
        [name, f"{ns.median:.0f}", f"{ns.low:.0f} to {ns.high:.0f}"]
        for name, ns in sorted(spread.items(), key=lambda item: item[1].median)
    ]
    return f"The Hessian of {problem.title}.\n\n{table(('call', 'ns', 'quartiles'), rows)}"
