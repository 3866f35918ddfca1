"""CasADi: SX on its virtual machine, and the C code that it generates."""

from __future__ import annotations

import itertools
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.peers.base import Batched, Call, Candidate, Evaluator, Pattern, TooLargeError, elementwise, symbol_array
from benchmarks.problems import Matrix, Problem, Vector

FLAGS = ("-O3", "-march=native", "-ffast-math")


class Casadi(Candidate):
    """CasADi SX on its virtual machine, called through `Function.buffer()`: many times faster than the plain call."""

    name = "CasADi SX"
    package = "casadi"
    call = "`Function.buffer()` trigger, bound to x and out; batch: `map`"
    compiles = False

    def function(self, problem: Problem) -> Any:
        """Return the CasADi function of the lower triangle of the sparse Hessian, of the gradient or the Jacobian."""
        ca = self.library
        x = ca.SX.sym("x", problem.point.size)
        primal = problem.function(symbol_array(x.elements()), elementwise(ca))
        if problem.kind == "hessian":
            wanted = ca.tril(ca.hessian(primal, x)[0])
        elif problem.kind == "gradient":
            wanted = ca.gradient(primal, x).T
        else:
            wanted = ca.jacobian(ca.vertcat(*primal), x)
        return ca.Function("derivative", [x], [wanted], {"cse": True})

    def build(self, problem: Problem) -> Evaluator:
        function = self.function(problem)
        return self.evaluator(function, self.count_operations(function))

    def count_operations(self, function: Any) -> int:
        """Return the number of instructions that compute: those that load an input or store an output are not work."""
        moves = {self.library.OP_INPUT, self.library.OP_OUTPUT, self.library.OP_CONST}
        return sum(function.instruction_id(k) not in moves for k in range(function.n_instructions()))

    def evaluator(self, function: Any, operations: int) -> Evaluator:
        """Bind a CasADi function to buffers."""
        sparsity = function.sparsity_out(0)
        pattern: Pattern = (np.array(sparsity.row()), np.array(sparsity.get_col()))
        values = np.empty(function.nnz_out(0))
        trigger = Trigger(function, values)

        def batch(points: Matrix, threads: int) -> Batched:
            count = len(points)
            mapped = function.map(count) if threads == 1 else function.map(count, "thread", threads)
            results = np.empty((count, function.nnz_out(0)))  # column-major on CasADi's side: one point after another
            return Batched(Trigger(mapped, results).bind(points), lambda _: results, pattern)

        return Evaluator(trigger.bind, lambda _: values, pattern, operations, batch)


class Trigger:
    """A CasADi function bound to the memory of its argument and result, which it keeps alive."""

    def __init__(self, function: Any, values: Vector) -> None:
        self.buffer, self.trigger = function.buffer()
        self.trigger.alive = (function, self.buffer, values)  # the trigger holds bare addresses
        self.values = values

    def bind(self, x: Vector) -> Call:
        """Return the call without arguments."""
        self.buffer.set_arg(0, x.data)
        self.buffer.set_res(0, self.values.data)
        self.trigger.point = x
        return self.trigger  # type: ignore[no-any-return]


class CasadiC(Casadi):
    """The C code CasADi generates, compiled by gcc with every speed option, called through the same buffers."""

    name = "CasADi C, gcc"
    call = f"as CasADi SX; `gcc {' '.join(FLAGS)}`"
    compiles = True

    def __post_init__(self) -> None:
        super().__post_init__()
        banner = subprocess.run(["gcc", "-dumpfullversion"], check=True, capture_output=True, text=True)
        self.version += f", gcc {banner.stdout.strip()}"
        self.serial = itertools.count()

    def build(self, problem: Problem) -> Evaluator:
        function = self.function(problem)
        # A name of its own for every build: the dynamic loader keeps the first library it met under a name.
        stem = f"derivative{next(self.serial)}"
        generator = self.library.CodeGenerator(f"{stem}.c")
        generator.add(function)
        with tempfile.TemporaryDirectory() as folder:  # once loaded, a library no longer needs its file
            source = Path(generator.generate(f"{folder}/"))
            library = source.with_suffix(".so")
            compiled = source.with_suffix(".o")
            command = ["gcc", *FLAGS, "-fPIC", "-c", str(source), "-o", str(compiled)]
            try:
                subprocess.run(command, check=True, timeout=self.limits.seconds)
                # Linked with -ffast-math, the library would flush subnormal numbers to zero in the whole process.
                subprocess.run(["gcc", "-shared", str(compiled), "-o", str(library)], check=True)
            except subprocess.TimeoutExpired as error:
                raise TooLargeError(f"gcc took over {self.limits.seconds:.0f} s") from error
            external = self.library.external("derivative", str(library))
        return self.evaluator(external, self.count_operations(function))
