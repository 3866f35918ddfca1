"""Write matrix operations as calls of routines (`codegen.functions.matrix_routines`)."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from codegen.emission.emit import Emitted
from codegen.emission.lane_functions import lane_call
from codegen.errors import LoweringError
from codegen.functions.matrix_routines import COUNTS, ROUTINES
from codegen.functions.routines import MOVES
from codegen.functions.symbols import Symbol, symbol
from codegen.ir.matrix_operation import OWN, MatrixKind, MatrixOperation
from codegen.lanes import SCALAR, Lanes
from codegen.loops.emit.loop_text import Frame, Job, Written

BLOCK = 64  # columns that LAPACK changes together
EXACT = 1 << 24  # up to which all whole numbers are floats of 4 bytes

# By the sizes: the numbers of memory that a routine needs, of those whose count LAPACK gets, and of C's integers.
_MEMORY: dict[MatrixKind, Callable[..., tuple[int, int, int]]] = {
    "solve": lambda n, m: (n * n, 0, n),
    "determinant": lambda n: (n * n, 0, n),
    "log_determinant": lambda n: (n * n, 0, n),
    "qr": lambda m, n: (n, BLOCK * n, 0),
    "eigen": lambda n: (0, 1 + 6 * n + 2 * n * n, 3 + 5 * n),
    "singular": lambda m, n: (
        m * n, max(4 * min(m, n) ** 2 + 7 * min(m, n), 3 * min(m, n) + BLOCK * (m + n)), 8 * min(m, n)
    ),
    "exponential": lambda n: (7 * n * n, 0, n),
}  # fmt: skip


@cache
def _symbols(routine: str, scalar: Lanes) -> dict[str, Symbol]:
    """Return a routine and all its callees, for a type of numbers."""
    symbols: dict[str, Symbol] = {}
    waiting = {routine: 0}
    while waiting:
        name, arity = waiting.popitem()
        if name in ROUTINES.written:
            text, calls = ROUTINES.compiled(name, scalar)
            symbols[name] = Symbol(name, text)
            waiting |= {called: operands for called, operands in calls.items() if called not in symbols}
        elif name in MOVES:
            symbols[name] = Symbol(name, MOVES[name])
        elif name.startswith("lanes."):
            symbols |= {name: lane_call("log", 1, scalar), "log": symbol("log", 1)}
        else:
            symbols[name] = symbol(name, arity, scalar.type)
    return symbols


class MatrixCall(Frame):
    """The function of a region that calls a routine for a matrix operation, under construction."""

    def __init__(self, job: Job, operation: MatrixOperation) -> None:
        super().__init__(job, f"@{job.name}({job.parameters}) noinline nounwind")
        self.operation = operation

    def emit(self) -> Written:
        operation, region = self.operation, self.region
        kind = {"log_determinant": "determinant", "insertion_right": "insertion"}.get(operation.kind, operation.kind)
        pointers = [f"ptr {self.fixed(use)}" for use in region.uses]
        if operation.kind == "determinant":
            pointers.append("ptr null")
        arguments, scratch = self.arguments()
        name = f"{'array' if operation.kind in OWN else 'matrix'}.{kind}"
        self.write(f"call void @{name}({','.join([*pointers, *arguments])})", "ret void")
        return Written(Emitted([], [self.text()], _symbols(name, self.scalar) | self.symbols), scratch)

    def arguments(self) -> tuple[list[str], int]:
        """Return the arguments besides matrices, and how many numbers of memory the routine needs."""
        kind, turned = self.operation.kind, [f"i1 {str(flag).lower()}" for flag in self.operation.transposed]
        sizes = [f"i64 {size}" for size in self.operation.sizes]
        if kind == "product":
            return [*sizes, *turned, f"{self.scalar.type} {1.0 if self.job.adds(0) else 0.0}"], 0
        if kind in OWN:
            return self.by_places(sizes)
        own, work, whole = _MEMORY[kind](*self.operation.sizes) if kind in _MEMORY else (0, 0, 0)
        memory, counts = [], [work] * bool(work) + [whole] * (kind == "eigen")
        if own + work:
            scratch = self.offset("%work", self.job.scratch)
            memory = [f"ptr {scratch}", *([f"ptr {self.offset(scratch, own + work)}"] if whole else [])]
        flags = {"determinant": ["i1 false"], "log_determinant": ["i1 true"]}
        last = turned[:1] if kind in ("solve", "triangular") else flags.get(kind, [])
        return [*memory, *sizes, *(f"i64 {number}" for number in counts), *last], own + work + self.whole(whole)

    def by_places(self, sizes: list[str]) -> tuple[list[str], int]:
        """Return the same for one of our own routines, whose whole numbers have 8 bytes."""
        largest = max(self.operation.sizes)
        if self.scalar != SCALAR and largest > EXACT:
            raise LoweringError(
                f"the {self.operation.description} in float32",
                why=f"its places are floats, which are whole numbers up to {EXACT} only",
                do='compile it with dtype="float64"',
            )
        if self.operation.kind == "order":
            scratch = self.offset("%work", self.job.scratch)
            return [f"ptr {scratch}", *sizes], self.whole(2 * (4 * self.operation.sizes[1] + COUNTS))
        marked = self.job.adds(0) if self.operation.kind in ("gather", "scatter") else "right" in self.operation.kind
        return [*sizes, f"i1 {str(marked).lower()}"], 0

    def whole(self, count: int) -> int:
        """Return how many numbers have room for `count` integers of C, of 4 bytes each."""
        return -(-4 * count // self.scalar.size)
