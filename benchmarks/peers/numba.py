"""Numba: SymPy's derivatives after SymPy's `cse`, printed as one Python function and compiled by `numba.njit`."""

from __future__ import annotations

import importlib
from typing import Any, ClassVar

import numpy as np
import sympy as sp

from benchmarks.peers.base import Batched, Candidate, Evaluator, elementwise, into_buffer, symbol_array
from benchmarks.problems import Matrix, Problem

TOO_DEEP = "SymPy and LLVM took 25 s or more when tried, because SymPy's expressions share nothing"

SOURCE = """
def derivative(x, out):
{lines}

def batch(points, results):
    for k in numba.prange(points.shape[0]):
        compiled(points[k], results[k])
"""


class Numba(Candidate):
    """What `sympy.lambdify` users do for speed: `diff`, `cse`, and `numba.njit(fastmath=True)` of the printed code."""

    name = "SymPy cse, numba"
    package = "numba"
    call = "`njit(fastmath=True)` function of (x, buffer); batch: `prange`"
    interruptible = False
    refused: ClassVar[dict[str, str]] = dict.fromkeys(
        ("rosenbrock1000", "rosenbrock10000", "lj10", "lj20", "mlp8", "mlp64", "lj20gradient", "brusselator32"),
        TOO_DEEP,
    )

    def build(self, problem: Problem) -> Evaluator:
        nb = self.library
        symbols = sp.symbols(f"x:{problem.point.size}", real=True)
        primal = problem.function(symbol_array(symbols), elementwise(sp))
        entries = self.derivative(problem, primal, symbols)
        source = printed(symbols, list(entries.values()))
        space: dict[str, Any] = {"numba": nb, "math": importlib.import_module("math")}
        exec(source, space)
        compiled = space["compiled"] = nb.njit(fastmath=True)(space["derivative"])
        parallel = nb.njit(fastmath=True, parallel=True)(space["batch"])
        rows, columns = np.array(list(entries)).T

        def batch(points: Matrix, threads: int) -> Batched:
            results = np.empty((len(points), len(entries)))
            nb.set_num_threads(min(threads, nb.config.NUMBA_NUM_THREADS))
            return Batched(lambda: parallel(points, results), lambda _: results, (rows, columns))

        return into_buffer(compiled, (rows, columns), None, batch)

    def derivative(self, problem: Problem, primal: Any, symbols: Any) -> dict[tuple[int, int], Any]:
        """Return the entries that are not 0, by their places."""
        outputs = primal if problem.kind == "jacobian" else [primal]
        first = {
            (row, column): output.diff(symbol)
            for row, output in enumerate(outputs)
            for column, symbol in enumerate(symbols)
        }
        if problem.kind == "hessian":
            first = {
                (row, column): partial.diff(symbols[column])
                for (_, row), partial in first.items()
                for column in range(row + 1)
            }
        return {place: entry for place, entry in first.items() if entry != 0}


def printed(symbols: Any, entries: list[Any]) -> str:
    """Return the source of the function that writes all entries."""
    shared, reduced = sp.cse(entries, order="none")
    lines = [f"{symbol} = x[{k}]" for k, symbol in enumerate(symbols)]
    lines += [f"{name} = {sp.pycode(value)}" for name, value in shared]
    lines += [f"out[{k}] = {sp.pycode(value)}" for k, value in enumerate(reduced)]
    return SOURCE.format(lines="\n".join("    " + line for line in lines))
