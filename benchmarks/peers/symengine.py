"""SymEngine: symbolic differentiation, compiled by LLVM."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.peers.base import Candidate, Evaluator, elementwise, into_buffer, symbol_array
from benchmarks.problems import Problem

Entries = dict[tuple[int, int], Any]


class Symengine(Candidate):
    """SymEngine: symbolic `diff`, `Lambdify` with LLVM and cse, called as `unsafe_real` (no argument checks)."""

    name = "SymEngine LLVM"
    package = "symengine"
    call = "`Lambdify(backend='llvm', cse=True).unsafe_real(x, buffer)`"
    interruptible = False

    def build(self, problem: Problem) -> Evaluator:
        se = self.library
        variables = se.symbols(f"x:{problem.point.size}")
        primal = problem.function(symbol_array(variables), elementwise(se))
        entries = self.derivative(problem, primal, variables)
        rows, columns = np.array(list(entries)).T
        compiled = se.Lambdify(variables, list(entries.values()), backend="llvm", cse=True)
        return into_buffer(compiled.unsafe_real, (rows, columns), None)

    def derivative(self, problem: Problem, primal: Any, variables: Any) -> Entries:
        """Return the entries that are not 0, by their places."""
        position = {variable: k for k, variable in enumerate(variables)}
        outputs = primal if problem.kind == "jacobian" else [primal]
        entries: Entries = {}
        for row, output in enumerate(outputs):
            for column in sorted(position[symbol] for symbol in output.free_symbols):
                if (entry := output.diff(variables[column])) != 0:
                    entries[row, column] = entry
        if problem.kind != "hessian":
            return entries
        second: Entries = {}
        for (_, row), partial in entries.items():
            for column in sorted(position[symbol] for symbol in partial.free_symbols):
                if column <= row and (entry := partial.diff(variables[column])) != 0:
                    second[row, column] = entry
        return second
