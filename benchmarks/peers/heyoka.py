"""heyoka: expressions and tensors of derivatives, compiled by LLVM as a `cfunc`."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from benchmarks.peers.base import Batched, Candidate, Evaluator, Pattern, elementwise, into_buffer, symbol_array
from benchmarks.problems import Matrix, Problem


class Heyoka(Candidate):
    """heyoka: `diff_tensors` (faster to build and to run here than repeated `diff`), then `cfunc`, default options."""

    name = "heyoka"
    package = "heyoka"
    call = "`cfunc(x, outputs=buffer)`; batch: the same with arrays (variables, points)"
    interruptible = False
    options: ClassVar[dict[str, Any]] = {}

    def build(self, problem: Problem) -> Evaluator:
        hy = self.library
        hy.llvm_state.clear_memcache()  # else a second build finds the first one's machine code, even
        hy.llvm_state.set_diskcache_enabled(False)  # that of an earlier run
        variables = hy.make_vars(*(f"x{i}" for i in range(problem.point.size)))
        primal = problem.function(symbol_array(variables), elementwise(hy))
        entries, pattern = self.derivative(problem, primal, variables)
        compiled = hy.cfunc(entries, variables, **self.options)
        # the decomposition also lists the inputs and the outputs
        operations = len(compiled.dc) - len(variables) - len(entries)

        def batch(points: Matrix, threads: int) -> Batched:
            columns, results = np.ascontiguousarray(points.T), np.empty((len(entries), len(points)))
            hy.set_nthreads(threads)
            return Batched(lambda: compiled(columns, outputs=results), lambda _: results.T, pattern)

        return into_buffer(lambda x, out: compiled(x, outputs=out), pattern, operations, batch)

    def derivative(self, problem: Problem, primal: Any, variables: Any) -> tuple[list[Any], Pattern]:
        """Return the entries that are not 0, and where they stand."""
        hy = self.library
        order = 2 if problem.kind == "hessian" else 1
        outputs = list(primal) if problem.kind == "jacobian" else [primal]
        tensor = hy.diff_tensors(outputs, variables, diff_order=order).get_derivatives(order)
        zero, entries, places = hy.expression(0.0), [], []
        for index, entry in tensor:
            if entry != zero:
                wanted = np.repeat(range(len(variables)), index[1:])
                places.append((wanted[-1], wanted[0]) if order == 2 else (index[0], wanted[0]))
                entries.append(entry)
        rows, columns = np.array(places).T
        return entries, (rows, columns)


class HeyokaFast(Heyoka):
    """heyoka with `fast_math=True`."""

    name = "heyoka, fast_math"
    call = "as heyoka; `cfunc(..., fast_math=True)`"
    follows = "heyoka"
    options: ClassVar[dict[str, Any]] = {"fast_math": True}
