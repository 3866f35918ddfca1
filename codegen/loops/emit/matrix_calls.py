"""Operations on whole arrays as calls: of BLAS and LAPACK (`codegen.functions.linear_algebra`), and of own routines."""

from __future__ import annotations

from functools import cache

import codegen.functions.exponentials as exponentials
import codegen.functions.factorizations as factorizations
import codegen.functions.linear_algebra as library
import codegen.functions.order_routines as own
from codegen.emission.emit import Emitted
from codegen.emission.lane_functions import lane_call
from codegen.errors import LoweringError
from codegen.functions.symbols import Symbol, symbol
from codegen.ir.matrix_operation import OWN, MatrixKind, MatrixOperation
from codegen.lanes import SCALAR, Lanes
from codegen.loops.emit.loop_columns import Use
from codegen.loops.emit.loop_text import Frame, Job, Written

BLOCK = 64  # columns that LAPACK changes together
INT = 4  # bytes of a whole number of C
EXACT = 1 << 24  # up to which all whole numbers are floats of 4 bytes

_COPIED = "llvm.memcpy.p0.p0.i64"
_CLEARED = "llvm.memset.p0.i64"
_TEXTS = {
    _CLEARED: f"declare void @{_CLEARED}(ptr,i8,i64,i1)",
    _COPIED: f"declare void @{_COPIED}(ptr,ptr,i64,i1)",
    "matrix.not_found": factorizations.NOT_FOUND,
    "matrix.finite": factorizations.FINITE,
    "matrix.factorized": library.FACTORIZED,
    "matrix.product": library.PRODUCT,
    "matrix.cholesky": library.CHOLESKY,
    "matrix.triangular": library.TRIANGULAR,
    "matrix.solve": library.SOLVE,
    "matrix.determinant": library.DETERMINANT,
    "matrix.qr": factorizations.QR,
    "matrix.eigen": factorizations.EIGEN,
    "matrix.singular": factorizations.SINGULAR,
    "matrix.combined": exponentials.COMBINED,
    "matrix.power": exponentials.POWER,
    "matrix.largest_row": exponentials.LARGEST_ROW,
    "array.order": own.ORDER,
    "array.inserted": own.INSERTED,
    "array.by_bytes": own.BY_BYTES,
    "array.insertion": own.INSERTION,
    "array.place": own.PLACE,
    "array.gather": own.GATHER,
    "array.scatter": own.SCATTER,
}
_NEEDED: dict[MatrixKind, tuple[tuple[str, ...], tuple[str, ...]]] = {  # functions, and the routines that they call
    "product": (("matrix.product",), ("blas.{}gemm",)),
    "cholesky": (("matrix.cholesky",), ("lapack.{}potrf",)),
    "triangular": (("matrix.triangular", _COPIED), ("blas.{}trsm",)),
    "solve": (("matrix.solve", _COPIED, "matrix.factorized"), ("lapack.{}getrf", "lapack.{}getrs")),
    "determinant": (("matrix.determinant", _COPIED, "matrix.factorized"), ("lapack.{}getrf", "log")),
    "qr": (("matrix.qr", _COPIED), ("lapack.{}geqrf", "lapack.{}orgqr")),
    "eigen": (("matrix.eigen", _COPIED, "matrix.finite", "matrix.not_found"), ("lapack.{}syevd",)),
    "singular": (("matrix.singular", _COPIED, "matrix.finite", "matrix.not_found"), ("lapack.{}gesdd",)),
    "exponential": (
        (
            "matrix.exponential", "matrix.combined", "matrix.power", "matrix.largest_row", "matrix.product",
            "matrix.solve", _COPIED, "matrix.factorized", "matrix.not_found",
        ),
        ("blas.{}gemm", "lapack.{}getrf", "lapack.{}getrs"),
    ),
    "order": (("array.order", "array.inserted", "array.by_bytes", "array.key", _CLEARED), ()),
    "insertion": (("array.insertion", "array.key"), ()),
    "gather": (("array.gather", "array.place"), ()),
    "scatter": (("array.scatter", "array.place", _CLEARED), ()),
}  # fmt: skip
_UNDER: dict[MatrixKind, MatrixKind] = {"log_determinant": "determinant", "insertion_right": "insertion"}


@cache
def _symbols(kind: MatrixKind, scalar: Lanes) -> dict[str, Symbol]:
    """Return what a matrix operation calls, in a type of numbers."""
    functions, routines = _NEEDED[kind]
    texts = _TEXTS | {"matrix.exponential": exponentials.exponential(scalar.type), "array.key": own.key(scalar.type)}
    found = [Symbol(name, library.in_numbers(texts[name], scalar.type)) for name in functions]
    found += [symbol(name.format(library.LETTERS[scalar.type]), 1) for name in routines]
    if kind in ("determinant", "exponential"):
        found += [symbol(f"llvm.{name}.{scalar.suffix}", arity, scalar.type) for name, arity in _INTRINSICS.items()]
    if "log" in routines and scalar != SCALAR:
        found.append(lane_call("log", 1, scalar))
    return {one.name: one for one in found}


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
        return Written(Emitted([], [self.text()], _symbols(kind, self.scalar) | self.symbols), scratch)

    def further(self) -> tuple[list[str], int]:
        """Return what the function takes besides matrices, and how many numbers of memory it needs."""
        operation, (n, *others) = self.operation, self.operation.sizes
        turned = [f"i1 {str(each).lower()}" for each in operation.transposed]
        if operation.kind == "product":
            sizes = [f"i64 {n}", *(f"i32 {size}" for size in others)]
            return [*sizes, *turned, f"{self.scalar.type} {1.0 if self.job.adds(0) else 0.0}"], 0
        if operation.kind in OWN:
            return self.by_places()
        sizes = [f"i32 {size}" for size in operation.sizes]
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
            return [f"ptr {scratch}", *sizes], self.whole(2 * (4 * self.operation.sizes[1] + own.COUNTS))
        marked = self.job.adds(0) if self.operation.kind in ("gather", "scatter") else "right" in self.operation.kind
        return [*sizes, f"i1 {str(marked).lower()}"], 0

    def with_memory(self, scratch: str, m: int, n: int, sizes: list[str]) -> tuple[list[str], int]:
        """Return the same of what LAPACK needs memory for."""
        if self.operation.kind == "qr":
            return [f"ptr {scratch}", *sizes, f"i32 {BLOCK * n}"], n + BLOCK * n
        if self.operation.kind == "eigen":
            numbers, whole = 1 + 6 * n + 2 * n * n, 3 + 5 * n
            order = self.offset(scratch, numbers)
            given = [f"ptr {scratch}", f"ptr {order}", *sizes, f"i32 {numbers}", f"i32 {whole}"]
            return given, numbers + self.whole(whole)
        if self.operation.kind == "exponential":
            order = self.offset(scratch, 7 * n * n)
            return [f"ptr {scratch}", f"ptr {order}", *sizes], 7 * n * n + self.whole(n)
        n, m = min(m, n), max(m, n)
        numbers = max(4 * n * n + 7 * n, 3 * n + BLOCK * (m + n))
        order = self.offset(scratch, m * n + numbers)
        return [f"ptr {scratch}", f"ptr {order}", *sizes, f"i32 {numbers}"], m * n + numbers + self.whole(8 * n)

    def whole(self, count: int) -> int:
        """How many numbers have room for so many whole numbers of C."""
        return -(-INT * count // self.scalar.size)


_INTRINSICS = {"fabs": 1, "copysign": 2}
