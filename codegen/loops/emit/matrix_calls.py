"""Operations on whole arrays as calls of routines (`codegen.functions.matrix_routines`)."""

from __future__ import annotations

from functools import cache

from codegen.emission.emit import Emitted
from codegen.emission.lane_functions import lane_call
from codegen.errors import LoweringError
from codegen.functions.matrix_routines import ROUTINES
from codegen.functions.order_routines import COUNTS
from codegen.functions.routines import MOVES
from codegen.functions.symbols import Symbol, symbol
from codegen.ir.matrix_operation import OWN, MatrixKind, MatrixOperation
from codegen.lanes import SCALAR, Lanes
from codegen.loops.emit.loop_columns import Use
from codegen.loops.emit.loop_text import Frame, Job, Written

BLOCK = 64  # columns that LAPACK changes together
INT = 4  # bytes of a whole number of C
EXACT = 1 << 24  # up to which all whole numbers are floats of 4 bytes

_UNDER: dict[MatrixKind, MatrixKind] = {"log_determinant": "determinant", "insertion_right": "insertion"}


@cache
def _symbols(routine: str, scalar: Lanes) -> dict[str, Symbol]:
    """Return a routine and all that it calls, for a type of numbers."""
    found: dict[str, Symbol] = {}
    waiting = {routine: 0}
    while waiting:
        name, arity = waiting.popitem()
        if name in ROUTINES.written:
            text, calls = ROUTINES.compiled(name, scalar)
            found[name] = Symbol(name, text)
            waiting |= {called: operands for called, operands in calls.items() if called not in found}
        elif name in MOVES:
            found[name] = Symbol(name, MOVES[name])
        elif name.startswith("lanes."):
            found |= {name: lane_call("log", 1, scalar), "log": symbol("log", 1)}
        else:
            found[name] = symbol(name, arity, scalar.type)
    return found


def matrix_call(job: Job, operation: MatrixOperation) -> Written:
    """Return the function of a region that has a library carry out a matrix operation."""
    return _Call(job, operation).emit()


class _Call(Frame):
    """The function in the making."""

    def __init__(self, job: Job, operation: MatrixOperation) -> None:
        super().__init__(job, f"@{job.name}({job.parameters}) noinline nounwind")
        self.operation = operation

    def emit(self) -> Written:
        operation, region = self.operation, self.region
        kind = _UNDER.get(operation.kind, operation.kind)
        uses: list[Use] = [*region.gathers, *region.results]
        pointers = [f"ptr {self.fixed(use)}" for use in uses]
        if operation.kind == "determinant":
            pointers.append("ptr null")
        given, scratch = self.further()
        name = f"{'array' if operation.kind in OWN else 'matrix'}.{kind}"
        self.write(f"call void @{name}({','.join([*pointers, *given])})", "ret void")
        return Written(Emitted([], [self.text()], _symbols(name, self.scalar) | self.symbols), scratch)

    def further(self) -> tuple[list[str], int]:
        """Return what the function takes besides matrices, and how many numbers of memory it needs."""
        operation, (n, *others) = self.operation, self.operation.sizes
        turned = [f"i1 {str(each).lower()}" for each in operation.transposed]
        if operation.kind == "product":
            sizes = [f"i64 {n}", *(f"i64 {size}" for size in others)]
            return [*sizes, *turned, f"{self.scalar.type} {1.0 if self.job.adds(0) else 0.0}"], 0
        if operation.kind in OWN:
            return self.by_places()
        sizes = [f"i64 {size}" for size in operation.sizes]
        if operation.kind == "cholesky":
            return sizes, 0
        if operation.kind == "triangular":
            return [*sizes, turned[0]], 0
        scratch = self.offset("%work", self.job.scratch)
        if operation.kind in ("qr", "eigen", "singular", "exponential"):
            return self.with_memory(scratch, n, others[0] if others else n, sizes)
        order = self.offset(scratch, n * n)
        last = turned[0] if operation.kind == "solve" else f"i1 {str(operation.kind == 'log_determinant').lower()}"
        return [f"ptr {scratch}", f"ptr {order}", *sizes, last], n * n + self.whole(n)

    def by_places(self) -> tuple[list[str], int]:
        """Return the same of an own routine, whose whole numbers have 8 bytes."""
        sizes = [f"i64 {size}" for size in self.operation.sizes]
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

    def with_memory(self, scratch: str, m: int, n: int, sizes: list[str]) -> tuple[list[str], int]:
        """Return the same of what LAPACK needs memory for."""
        if self.operation.kind == "qr":
            return [f"ptr {scratch}", *sizes, f"i64 {BLOCK * n}"], n + BLOCK * n
        if self.operation.kind == "eigen":
            numbers, whole = 1 + 6 * n + 2 * n * n, 3 + 5 * n
            order = self.offset(scratch, numbers)
            given = [f"ptr {scratch}", f"ptr {order}", *sizes, f"i64 {numbers}", f"i64 {whole}"]
            return given, numbers + self.whole(whole)
        if self.operation.kind == "exponential":
            order = self.offset(scratch, 7 * n * n)
            return [f"ptr {scratch}", f"ptr {order}", *sizes], 7 * n * n + self.whole(n)
        n, m = min(m, n), max(m, n)
        numbers = max(4 * n * n + 7 * n, 3 * n + BLOCK * (m + n))
        order = self.offset(scratch, m * n + numbers)
        return [f"ptr {scratch}", f"ptr {order}", *sizes, f"i64 {numbers}"], m * n + numbers + self.whole(8 * n)

    def whole(self, count: int) -> int:
        """How many numbers have room for so many whole numbers of C."""
        return -(-INT * count // self.scalar.size)
