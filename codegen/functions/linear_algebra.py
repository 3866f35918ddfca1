"""Matrix operations by BLAS and LAPACK: the addresses that SciPy has of them, and the IR that calls them.

SciPy offers C pointers to both libraries in `scipy.linalg.cython_blas` and `cython_lapack`. Their matrices are stored
by columns: one that is stored by rows is its transposed one there, so that a factor U of theirs is L.

Source: Anderson et al., LAPACK Users' Guide, 3rd edition (1999).
"""

from __future__ import annotations

import ctypes
from functools import cache

from codegen.errors import LoweringError
from codegen.functions.libraries import EXTRA

OPERANDS = {
    "blas.{}gemm": 13, "blas.{}trsm": 11, "lapack.{}potrf": 5, "lapack.{}getrf": 6, "lapack.{}getrs": 9,
    "lapack.{}geqrf": 8, "lapack.{}orgqr": 9, "lapack.{}syevd": 11, "lapack.{}gesdd": 14,
}  # fmt: skip
LETTERS = {"double": "d", "float": "s"}
ROUTINES = {name.format(letter): count for name, count in OPERANDS.items() for letter in LETTERS.values()}
SINGLE = {  # what functions of double are written with, and those of float
    "double": "float", "@blas.d": "@blas.s", "@lapack.d": "@lapack.s", ".f64": ".f32", "%count,3": "%count,2",
    "@log(": "@lanes.log.f32(",
}  # fmt: skip


@cache
def routine_address(name: str) -> int:
    """Return the address of a routine; LoweringError names the extra when SciPy is missing.

    >>> not has_library() or routine_address("lapack.dpotrf") > 0
    True
    """
    try:
        from scipy.linalg import cython_blas, cython_lapack  # noqa: PLC0415  (optional extra)
    except ImportError as error:
        raise LoweringError(f"{name} of linear algebra", why="SciPy is not installed", do=EXTRA) from error
    library, routine = name.split(".")
    capsule = (cython_blas if library == "blas" else cython_lapack).__pyx_capi__[routine]
    name_of, pointer_of = ctypes.pythonapi.PyCapsule_GetName, ctypes.pythonapi.PyCapsule_GetPointer
    name_of.restype, name_of.argtypes = ctypes.c_char_p, [ctypes.py_object]
    pointer_of.restype, pointer_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    signature = name_of(capsule)
    if signature is None or b"int *" not in signature or b"64" in signature:
        raise LoweringError(f"{name} of SciPy", why=f"its whole numbers are not C's int: {signature!r}", do="report it")
    return pointer_of(capsule, signature) or 0


@cache
def has_library() -> bool:
    """Whether SciPy is there, with pointers to BLAS and LAPACK.

    >>> has_library() in (True, False)
    True
    """
    try:
        return all(map(routine_address, ROUTINES))
    except LoweringError:
        return False


def in_numbers(text: str, scalar: str) -> str:
    """Return functions of matrices of doubles as those of matrices of another type, with its routines.

    >>> in_numbers("call double @llvm.fabs.f64(double %x)", "float")
    'call float @llvm.fabs.f32(float %x)'
    """
    for word, other in SINGLE.items() if scalar == "float" else ():
        text = text.replace(word, other)
    return text


PRODUCT = """
define internal void @matrix.product(ptr %a,ptr %b,ptr %c,i64 %number,i32 %rows,i32 %inner,
  i32 %columns,i1 %ta,i1 %tb,double %beta) nounwind noinline {
entry:
 %m=alloca i32
 %n=alloca i32
 %k=alloca i32
 %lda=alloca i32
 %ldb=alloca i32
 %opa=alloca i8
 %opb=alloca i8
 %one=alloca double
 %more=alloca double
 store i32 %columns,ptr %m
 store i32 %rows,ptr %n
 store i32 %inner,ptr %k
 %la=select i1 %ta,i32 %rows,i32 %inner
 %lb=select i1 %tb,i32 %inner,i32 %columns
 store i32 %la,ptr %lda
 store i32 %lb,ptr %ldb
 %oa=select i1 %ta,i8 84,i8 78
 %ob=select i1 %tb,i8 84,i8 78
 store i8 %oa,ptr %opa
 store i8 %ob,ptr %opb
 store double 1.0,ptr %one
 store double %beta,ptr %more
 %r64=sext i32 %rows to i64
 %i64=sext i32 %inner to i64
 %c64=sext i32 %columns to i64
 %ea=mul i64 %r64,%i64
 %eb=mul i64 %i64,%c64
 %ec=mul i64 %r64,%c64
 br label %next
next:
 %s=phi i64 [0,%entry],[%s1,%next]
 %pa0=mul i64 %s,%ea
 %pb0=mul i64 %s,%eb
 %pc0=mul i64 %s,%ec
 %pa=getelementptr double,ptr %a,i64 %pa0
 %pb=getelementptr double,ptr %b,i64 %pb0
 %pc=getelementptr double,ptr %c,i64 %pc0
 call void @blas.dgemm(ptr %opb,ptr %opa,ptr %m,ptr %n,ptr %k,ptr %one,ptr %pb,ptr %ldb,ptr %pa,
  ptr %lda,ptr %more,ptr %pc,ptr %m)
 %s1=add i64 %s,1
 %again=icmp ult i64 %s1,%number
 br i1 %again,label %next,label %end
end:
 ret void
}
"""

CHOLESKY = """
define internal void @matrix.cholesky(ptr %a,ptr %l,i32 %n) nounwind noinline {
entry:
 %size=alloca i32
 %info=alloca i32
 %upper=alloca i8
 store i32 %n,ptr %size
 store i8 85,ptr %upper
 %rows=sext i32 %n to i64
 call void @matrix.lower(ptr %a,ptr %l,i64 %rows,double 1.0)
 call void @lapack.dpotrf(ptr %upper,ptr %size,ptr %l,ptr %size,ptr %info)
 %found=load i32,ptr %info
 %right=icmp eq i32 %found,0
 br i1 %right,label %end,label %none
none:
 call void @matrix.lower(ptr %a,ptr %l,i64 %rows,double 0x7FF8000000000000)
 br label %end
end:
 ret void
}
define internal void @matrix.lower(ptr %a,ptr %l,i64 %n,double %factor) nounwind noinline {
entry:
 %plain=fcmp oeq double %factor,1.0
 br label %row
row:
 %i=phi i64 [0,%entry],[%i1,%last]
 %first=mul i64 %i,%n
 br label %column
column:
 %j=phi i64 [0,%row],[%j1,%column]
 %at=add i64 %first,%j
 %from=getelementptr double,ptr %a,i64 %at
 %to=getelementptr double,ptr %l,i64 %at
 %value=load double,ptr %from
 %scaled=select i1 %plain,double %value,double %factor
 %below=icmp ule i64 %j,%i
 %kept=select i1 %below,double %scaled,double 0.0
 store double %kept,ptr %to
 %j1=add i64 %j,1
 %further=icmp ult i64 %j1,%n
 br i1 %further,label %column,label %last
last:
 %i1=add i64 %i,1
 %again=icmp ult i64 %i1,%n
 br i1 %again,label %row,label %end
end:
 ret void
}
"""

TRIANGULAR = """
define internal void @matrix.triangular(ptr %l,ptr %b,ptr %x,i32 %n,i32 %m,i1 %transposed) nounwind noinline {
 %rows=alloca i32
 %sides=alloca i32
 %options=alloca [4 x i8]
 %one=alloca double
 store i32 %n,ptr %rows
 store i32 %m,ptr %sides
 store double 1.0,ptr %one
 %upper=getelementptr i8,ptr %options,i64 1
 %how=getelementptr i8,ptr %options,i64 2
 %unit=getelementptr i8,ptr %options,i64 3
 store i8 76,ptr %options
 store i8 85,ptr %upper
 %turned=select i1 %transposed,i8 78,i8 84
 store i8 %turned,ptr %how
 store i8 78,ptr %unit
 %n64=sext i32 %n to i64
 %m64=sext i32 %m to i64
 %count=mul i64 %n64,%m64
 %bytes=shl i64 %count,3
 call void @llvm.memcpy.p0.p0.i64(ptr %x,ptr %b,i64 %bytes,i1 false)
 call void @blas.dtrsm(ptr %options,ptr %upper,ptr %how,ptr %unit,ptr %rows,ptr %sides,ptr %one,
  ptr %l,ptr %rows,ptr %x,ptr %rows)
 ret void
}
"""

FACTORIZED = """
define internal i32 @matrix.factorized(ptr %a,ptr %scratch,ptr %order,i32 %n) nounwind noinline {
 %rows=alloca i32
 %info=alloca i32
 store i32 %n,ptr %rows
 %n64=sext i32 %n to i64
 %count=mul i64 %n64,%n64
 %bytes=shl i64 %count,3
 call void @llvm.memcpy.p0.p0.i64(ptr %scratch,ptr %a,i64 %bytes,i1 false)
 call void @lapack.dgetrf(ptr %rows,ptr %rows,ptr %scratch,ptr %rows,ptr %order,ptr %info)
 %found=load i32,ptr %info
 ret i32 %found
}
"""

SOLVE = """
define internal void @matrix.solve(ptr %a,ptr %b,ptr %x,ptr %scratch,ptr %order,i32 %n,i32 %m,
  i1 %transposed) nounwind noinline {
entry:
 %rows=alloca i32
 %sides=alloca i32
 %info=alloca i32
 %how=alloca i8
 store i32 %n,ptr %rows
 store i32 %m,ptr %sides
 %turned=select i1 %transposed,i8 78,i8 84
 store i8 %turned,ptr %how
 %n64=sext i32 %n to i64
 %m64=sext i32 %m to i64
 %count=mul i64 %n64,%m64
 %found=call i32 @matrix.factorized(ptr %a,ptr %scratch,ptr %order,i32 %n)
 %right=icmp eq i32 %found,0
 br i1 %right,label %solved,label %none
solved:
 %bytes=shl i64 %count,3
 call void @llvm.memcpy.p0.p0.i64(ptr %x,ptr %b,i64 %bytes,i1 false)
 call void @lapack.dgetrs(ptr %how,ptr %rows,ptr %sides,ptr %scratch,ptr %rows,ptr %order,ptr %x,
  ptr %rows,ptr %info)
 br label %end
none:
 %k=phi i64 [0,%entry],[%k1,%none]
 %to=getelementptr double,ptr %x,i64 %k
 store double 0x7FF8000000000000,ptr %to
 %k1=add i64 %k,1
 %more=icmp ult i64 %k1,%count
 br i1 %more,label %none,label %end
end:
 ret void
}
"""

DETERMINANT = """
define internal void @matrix.determinant(ptr %a,ptr %found,ptr %sign,ptr %scratch,ptr %order,i32 %n,
  i1 %logarithm) nounwind noinline {
entry:
 %n64=sext i32 %n to i64
 %step=add i64 %n64,1
 %info=call i32 @matrix.factorized(ptr %a,ptr %scratch,ptr %order,i32 %n)
 br label %loop
loop:
 %k=phi i64 [0,%entry],[%k1,%next]
 %product=phi double [1.0,%entry],[%product1,%next]
 %sum=phi double [0.0,%entry],[%sum1,%next]
 %k1=add i64 %k,1
 %place=mul i64 %k,%step
 %p=getelementptr double,ptr %scratch,i64 %place
 %pivot=load double,ptr %p
 %q=getelementptr i32,ptr %order,i64 %k
 %row=load i32,ptr %q
 %here=trunc i64 %k1 to i32
 %same=icmp eq i32 %row,%here
 %swapped=fneg double %pivot
 %factor=select i1 %same,double %pivot,double %swapped
 br i1 %logarithm,label %signs,label %values
values:
 br label %next
signs:
 %size=call double @llvm.fabs.f64(double %pivot)
 %log=call double @log(double %size)
 %unit=call double @llvm.copysign.f64(double 1.0,double %factor)
 %zero=fcmp oeq double %pivot,0.0
 %ordered=fcmp ord double %pivot,%pivot
 %there=select i1 %zero,double 0.0,double %unit
 %side=select i1 %ordered,double %there,double %pivot
 br label %next
next:
 %times=phi double [%factor,%values],[%side,%signs]
 %plus=phi double [0.0,%values],[%log,%signs]
 %product1=fmul double %product,%times
 %sum1=fadd double %sum,%plus
 %more=icmp ult i64 %k1,%n64
 br i1 %more,label %loop,label %end
end:
 %result=select i1 %logarithm,double %sum1,double %product1
 store double %result,ptr %found
 br i1 %logarithm,label %both,label %done
both:
 store double %product1,ptr %sign
 br label %done
done:
 ret void
}
"""
