"""The candidates: one class each, with `build(problem) -> Evaluator`. A new peer is one more class in `CANDIDATES`.

A peer's library is imported by name when the peer is asked for, so a missing one is reported and the rest still runs.
Each peer is used the way that is fastest for it; the class says which.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import itertools
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np

from benchmarks.problems import Matrix, Problem, Vector

Pattern = tuple[Any, Any]


@dataclass(frozen=True)
class Evaluator:
    """A compiled Hessian: how to make its zero-argument call, and how to read the matrix from what the call left."""

    bind: Callable[[Vector], Callable[[], object]]
    matrix: Callable[[object], Matrix]
    operations: int | None
    native: Any = None


class Candidate:
    """A way to get the Hessian of a problem, named after its library."""

    name: ClassVar[str]
    package: ClassVar[str]
    form: ClassVar[str] = "packed lower"
    call: ClassVar[str]

    def __init__(self) -> None:
        self.library: Any = importlib.import_module(self.package)
        self.version = importlib.metadata.version(self.package)

    def build(self, problem: Problem) -> Evaluator:
        """Differentiate and compile the problem; everything between the Python function and the first call."""
        raise NotImplementedError


def unpack(values: Vector, pattern: Pattern, size: int) -> Matrix:
    """Return the full symmetric matrix of packed lower-triangle values."""
    rows, columns = pattern
    full = np.zeros((size, size))
    full[rows, columns] = values
    full[columns, rows] = values
    return full


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

    return SimpleNamespace(sum=np.sum, **{name: on_arrays(name) for name in ("exp", "log", "tanh")})


def into_buffer(
    run: Callable[[Vector, Vector], object], pattern: Pattern, size: int, operations: int | None
) -> Evaluator:
    """Return the evaluator of a candidate that writes packed values into a buffer we own: `run(x, out)`."""
    buffer = np.empty(len(pattern[0]))
    return Evaluator(
        bind=lambda x: lambda: run(x, buffer),
        matrix=lambda _: unpack(buffer, pattern, size),
        operations=operations,
    )


class Symad(Candidate):
    """symad: packed lower-triangle non-zeros into a given buffer."""

    name = "symad"
    package = "symad"
    call = "`kernel(x, out=buffer)`"
    tier = "default"

    def build(self, problem: Problem) -> Evaluator:
        return symad_candidate(self.library, problem, self.tier)


class SymadFast(Symad):
    """symad with the tier that compiles fastest."""

    name = "symad fast tier"
    tier = "fast"


def symad_candidate(sa: Any, problem: Problem, tier: str) -> Evaluator:
    """Return symad's evaluator: the only place that knows symad's interface."""
    kernel = sa.compile(sa.hessian(problem.function, sparse="lower"), problem.point, tier=tier)
    rows, columns = kernel.sparsity
    buffer = np.empty(len(rows))
    return Evaluator(
        bind=lambda x: lambda: kernel(x, out=buffer),
        matrix=lambda _: unpack(buffer, (rows, columns), problem.point.size),
        operations=kernel.stats.total,
        native=(kernel, buffer),
    )


class Casadi(Candidate):
    """CasADi SX on its virtual machine, called through `Function.buffer()`: many times faster than the plain call."""

    name = "CasADi SX"
    package = "casadi"
    call = "`Function.buffer()` trigger, bound to x and out"

    def function(self, problem: Problem) -> Any:
        """Return the CasADi function of the lower triangle of the sparse Hessian."""
        ca = self.library
        x = ca.SX.sym("x", problem.point.size)
        primal = problem.function(symbol_array(x.elements()), elementwise(ca))
        lower = ca.tril(ca.hessian(primal, x)[0])
        return ca.Function("hessian", [x], [lower], {"cse": True})

    def build(self, problem: Problem) -> Evaluator:
        function = self.function(problem)
        return self.evaluator(function, self.count_operations(function), problem.point.size)

    def count_operations(self, function: Any) -> int:
        """Return the number of instructions that compute: those that load an input or store an output are not work."""
        moves = {self.library.OP_INPUT, self.library.OP_OUTPUT, self.library.OP_CONST}
        return sum(function.instruction_id(k) not in moves for k in range(function.n_instructions()))

    def evaluator(self, function: Any, operations: int, size: int) -> Evaluator:
        """Bind a CasADi function to buffers."""
        sparsity = function.sparsity_out(0)
        pattern = (np.array(sparsity.row()), np.array(sparsity.get_col()))
        values = np.empty(function.nnz_out(0))
        buffer, trigger = function.buffer()
        trigger.alive = (function, buffer, values)  # the trigger holds bare addresses: it must own what they point to

        def bind(x: Vector) -> Callable[[], object]:
            buffer.set_arg(0, x.data)
            buffer.set_res(0, values.data)
            trigger.point = x
            return trigger  # type: ignore[no-any-return]

        return Evaluator(bind, lambda _: unpack(values, pattern, size), operations)


class CasadiC(Casadi):
    """The C code CasADi generates, compiled by gcc with every speed option, called through the same buffers."""

    name = "CasADi C, gcc"
    call = "as CasADi SX; `gcc -O3 -march=native -ffast-math`"

    def __init__(self) -> None:
        super().__init__()
        banner = subprocess.run(["gcc", "-dumpfullversion"], check=True, capture_output=True, text=True)
        self.version += f", gcc {banner.stdout.strip()}"
        self.serial = itertools.count()

    def build(self, problem: Problem) -> Evaluator:
        function = self.function(problem)
        # A name of its own for every build: the dynamic loader keeps the first library it met under a name.
        stem = f"hessian{next(self.serial)}"
        generator = self.library.CodeGenerator(f"{stem}.c")
        generator.add(function)
        options = ["-O3", "-march=native", "-ffast-math", "-shared", "-fPIC"]
        with tempfile.TemporaryDirectory() as folder:  # once loaded, a library no longer needs its file
            source = Path(generator.generate(f"{folder}/"))
            library = source.with_suffix(".so")
            subprocess.run(["gcc", *options, str(source), "-o", str(library)], check=True)
            external = self.library.external("hessian", str(library))
        return self.evaluator(external, self.count_operations(function), problem.point.size)


class Heyoka(Candidate):
    """heyoka: `diff_tensors` (faster to build and to run here than repeated `diff`), then `cfunc`, default options."""

    name = "heyoka"
    package = "heyoka"
    call = "`cfunc(x, outputs=buffer)`"

    def build(self, problem: Problem) -> Evaluator:
        hy = self.library
        hy.llvm_state.clear_memcache()  # else a second build finds the first one's machine code, even
        hy.llvm_state.set_diskcache_enabled(False)  # that of an earlier run
        size = problem.point.size
        variables = hy.make_vars(*(f"x{i}" for i in range(size)))
        primal = problem.function(symbol_array(variables), elementwise(hy))
        second = hy.diff_tensors([primal], variables, diff_order=2).get_derivatives(2)
        zero = hy.expression(0.0)
        entries = [(np.repeat(range(size), index[1:]), entry) for index, entry in second if entry != zero]
        pattern = (np.array([pair[1] for pair, _ in entries]), np.array([pair[0] for pair, _ in entries]))
        compiled = hy.cfunc([entry for _, entry in entries], variables)
        operations = len(compiled.dc) - size - len(entries)  # the decomposition also lists the inputs and the outputs
        return into_buffer(lambda x, out: compiled(x, outputs=out), pattern, size, operations)


class Symengine(Candidate):
    """SymEngine: symbolic `diff` twice, `Lambdify` with LLVM and cse, called as `unsafe_real` (no argument checks)."""

    name = "SymEngine LLVM"
    package = "symengine"
    call = "`Lambdify(backend='llvm', cse=True).unsafe_real(x, buffer)`"

    def build(self, problem: Problem) -> Evaluator:
        se = self.library
        size = problem.point.size
        variables = se.symbols(f"x:{size}")
        primal = problem.function(symbol_array(variables), elementwise(se))
        entries: dict[tuple[int, int], Any] = {}
        for row, variable in enumerate(variables):
            partial = primal.diff(variable)
            active = partial.free_symbols
            for column in range(row + 1):
                if variables[column] in active and (entry := partial.diff(variables[column])) != 0:
                    entries[row, column] = entry
        pattern = tuple(np.array(indices) for indices in zip(*entries, strict=True))
        compiled = se.Lambdify(variables, list(entries.values()), backend="llvm", cse=True)
        return into_buffer(compiled.unsafe_real, (pattern[0], pattern[1]), size, None)


class Jax(Candidate):
    """JAX: `jit(hessian(f))` in float64 on the processor, with the point already a JAX array."""

    name = "JAX"
    package = "jax"
    form = "dense full"
    call = "`jit(hessian(f))(x).block_until_ready()`, x a JAX array"

    def __init__(self) -> None:
        super().__init__()
        self.library.config.update("jax_enable_x64", True)
        self.library.config.update("jax_platforms", "cpu")
        self.numpy: Any = importlib.import_module("jax.numpy")

    def build(self, problem: Problem) -> Evaluator:
        jax = self.library
        compiled = jax.jit(jax.hessian(lambda x: problem.function(x, self.numpy)))

        def bind(x: Vector) -> Callable[[], object]:
            point = self.numpy.asarray(x)
            return lambda: compiled(point).block_until_ready()

        return Evaluator(bind, lambda result: np.asarray(result), None)


CANDIDATES: dict[str, type[Candidate]] = {
    "symad": Symad,
    "symad-fast": SymadFast,
    "casadi": Casadi,
    "casadi-gcc": CasadiC,
    "heyoka": Heyoka,
    "symengine": Symengine,
    "jax": Jax,
}
OURS = ("symad", "symad-fast")
AHEAD_OF_TIME = ("casadi-gcc",)
