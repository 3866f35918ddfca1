"""Operations on whole arrays as calls: of BLAS and LAPACK (`codegen.functions.linear_algebra`), and of own routines."""

from __future__ import annotations

import codegen.functions.exponentials as exponentials
import codegen.functions.factorizations as factorizations
import codegen.functions.linear_algebra as library
import codegen.functions.order_routines as routines
from codegen.emission.emit import Emitted
from codegen.functions.symbols import Symbol, symbol
from codegen.ir.matrix_operation import OWN, MatrixKind, MatrixOperation
from codegen.loops.emit.loop_columns import Use
from codegen.loops.emit.loop_text import Frame, Job, Written

BLOCK = 64  # columns that LAPACK changes together

_CLEARED = Symbol("llvm.memset.p0.i64", "declare void @llvm.memset.p0.i64(ptr,i8,i64,i1)")
_KEY, _PLACE = Symbol("array.key", routines.KEY), Symbol("array.place", routines.PLACE)
_COPIED = Symbol("llvm.memcpy.p0.p0.i64", "declare void @llvm.memcpy.p0.p0.i64(ptr,ptr,i64,i1)")
_NOT_FOUND = Symbol("matrix.not_found", factorizations.NOT_FOUND)
_FINITE = Symbol("matrix.finite", factorizations.FINITE)
_FACTORIZED = Symbol("matrix.factorized", library.FACTORIZED)
_WHOLE: dict[MatrixKind, tuple[tuple[Symbol, ...], tuple[str, ...]]] = {  # functions, and the routines that they call
    "product": ((Symbol("matrix.product", library.PRODUCT),), ("blas.dgemm",)),
    "cholesky": ((Symbol("matrix.cholesky", library.CHOLESKY),), ("lapack.dpotrf",)),
    "triangular": ((Symbol("matrix.triangular", library.TRIANGULAR), _COPIED), ("blas.dtrsm",)),
    "solve": (
        (Symbol("matrix.solve", library.SOLVE), _COPIED, _FACTORIZED), ("lapack.dgetrf", "lapack.dgetrs"),
    ),
    "determinant": (
        (Symbol("matrix.determinant", library.DETERMINANT), _COPIED, _FACTORIZED), ("lapack.dgetrf", "log"),
    ),
    "qr": ((Symbol("matrix.qr", factorizations.QR), _COPIED), ("lapack.dgeqrf", "lapack.dorgqr")),
    "eigen": ((Symbol("matrix.eigen", factorizations.EIGEN), _COPIED, _FINITE, _NOT_FOUND), ("lapack.dsyevd",)),
    "singular": (
        (Symbol("matrix.singular", factorizations.SINGULAR), _COPIED, _FINITE, _NOT_FOUND), ("lapack.dgesdd",),
    ),
    "exponential": (
        (
            Symbol("matrix.exponential", exponentials.EXPONENTIAL), Symbol("matrix.combined", exponentials.COMBINED),
            Symbol("matrix.power", exponentials.POWER), Symbol("matrix.largest_row", exponentials.LARGEST_ROW),
            Symbol("matrix.product", library.PRODUCT), Symbol("matrix.solve", library.SOLVE),
            _COPIED, _FACTORIZED, _NOT_FOUND,
        ),
        ("blas.dgemm", "lapack.dgetrf", "lapack.dgetrs"),
    ),
    "order": (
        (
            Symbol("array.order", routines.ORDER), Symbol("array.inserted", routines.INSERTED),
            Symbol("array.by_bytes", routines.BY_BYTES), _KEY, _CLEARED,
        ),
        (),
    ),
    "insertion": ((Symbol("array.insertion", routines.INSERTION), _KEY), ()),
    "gather": ((Symbol("array.gather", routines.GATHER), _PLACE), ()),
    "scatter": ((Symbol("array.scatter", routines.SCATTER), _PLACE, _CLEARED), ()),
}  # fmt: skip
_UNDER: dict[MatrixKind, MatrixKind] = {"log_determinant": "determinant", "insertion_right": "insertion"}


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
        functions, routines = _WHOLE[kind]
        symbols = {found.name: found for found in functions} | {name: symbol(name, 1) for name in routines}
        if kind in ("determinant", "exponential"):
            symbols |= {found.name: found for found in _INTRINSICS}
        return Written(Emitted([], [self.text()], symbols | self.symbols), scratch)

    def further(self) -> tuple[list[str], int]:
        """Return what the function takes besides matrices, and how many numbers of memory it needs."""
        operation, (n, *others) = self.operation, self.operation.sizes
        turned = [f"i1 {str(each).lower()}" for each in operation.transposed]
        if operation.kind == "product":
            sizes = [f"i64 {n}", *(f"i32 {size}" for size in others)]
            return [*sizes, *turned, f"double {1.0 if self.job.adds(0) else 0.0}"], 0
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
        return [f"ptr {scratch}", f"ptr {order}", *sizes, last], n * n + -(-n // 2)

    def by_places(self) -> tuple[list[str], int]:
        """Return the same of an own routine."""
        sizes = [f"i64 {size}" for size in self.operation.sizes]
        if self.operation.kind == "order":
            scratch = self.offset("%work", self.job.scratch)
            return [f"ptr {scratch}", *sizes], 4 * self.operation.sizes[1] + routines.COUNTS
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
            return given, numbers + -(-whole // 2)
        if self.operation.kind == "exponential":
            order = self.offset(scratch, 7 * n * n)
            return [f"ptr {scratch}", f"ptr {order}", *sizes], 7 * n * n + -(-n // 2)
        n, m = min(m, n), max(m, n)
        numbers = max(4 * n * n + 7 * n, 3 * n + BLOCK * (m + n))
        order = self.offset(scratch, m * n + numbers)
        return [f"ptr {scratch}", f"ptr {order}", *sizes, f"i32 {numbers}"], m * n + numbers + 4 * n


_INTRINSICS = tuple(
    Symbol(name, f"declare double @{name}({operands})")
    for name, operands in (("llvm.fabs.f64", "double"), ("llvm.copysign.f64", "double,double"))
)
