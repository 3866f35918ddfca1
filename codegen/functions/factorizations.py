"""QR, eigenvalues and singular values by LAPACK: the IR that calls it (see `codegen.functions.linear_algebra`).

All matrices are stored by columns. What is not finite gives NaN: LAPACK's iterations are not made for it.
"""

from __future__ import annotations

NOT_FOUND = """
define internal void @matrix.not_found(ptr %x,i64 %count) nounwind noinline {
entry:
 br label %next
next:
 %k=phi i64 [0,%entry],[%k1,%next]
 %to=getelementptr double,ptr %x,i64 %k
 store double 0x7FF8000000000000,ptr %to
 %k1=add i64 %k,1
 %more=icmp ult i64 %k1,%count
 br i1 %more,label %next,label %end
end:
 ret void
}
"""

FINITE = """
define internal i1 @matrix.finite(ptr %a,i64 %n,i64 %m,i1 %triangle) nounwind noinline {
entry:
 br label %column
column:
 %j=phi i64 [0,%entry],[%j1,%last]
 %sum=phi double [0.0,%entry],[%sum1,%last]
 %first=mul i64 %j,%m
 %from=select i1 %triangle,i64 %j,i64 0
 br label %row
row:
 %i=phi i64 [%from,%column],[%i1,%row]
 %part=phi double [%sum,%column],[%sum1,%row]
 %at=add i64 %first,%i
 %place=getelementptr double,ptr %a,i64 %at
 %value=load double,ptr %place
 %zero=fmul double %value,0.0
 %sum1=fadd double %part,%zero
 %i1=add i64 %i,1
 %further=icmp ult i64 %i1,%m
 br i1 %further,label %row,label %last
last:
 %j1=add i64 %j,1
 %again=icmp ult i64 %j1,%n
 br i1 %again,label %column,label %end
end:
 %right=fcmp oeq double %sum1,0.0
 ret i1 %right
}
"""

QR = """
define internal void @matrix.qr(ptr %a,ptr %q,ptr %r,ptr %scratch,i32 %m,i32 %n,i32 %work) nounwind noinline {
entry:
 %rows=alloca i32
 %columns=alloca i32
 %size=alloca i32
 %info=alloca i32
 store i32 %m,ptr %rows
 store i32 %n,ptr %columns
 store i32 %work,ptr %size
 %m64=sext i32 %m to i64
 %n64=sext i32 %n to i64
 %count=mul i64 %m64,%n64
 %bytes=shl i64 %count,3
 call void @llvm.memcpy.p0.p0.i64(ptr %q,ptr %a,i64 %bytes,i1 false)
 %buffer=getelementptr double,ptr %scratch,i64 %n64
 call void @lapack.dgeqrf(ptr %rows,ptr %columns,ptr %q,ptr %rows,ptr %scratch,ptr %buffer,ptr %size,ptr %info)
 br label %column
column:
 %j=phi i64 [0,%entry],[%j1,%last]
 %first=mul i64 %j,%m64
 %first2=mul i64 %j,%n64
 br label %row
row:
 %i=phi i64 [0,%column],[%i1,%row]
 %at=add i64 %first,%i
 %at2=add i64 %first2,%i
 %from=getelementptr double,ptr %q,i64 %at
 %to=getelementptr double,ptr %r,i64 %at2
 %value=load double,ptr %from
 %above=icmp ule i64 %i,%j
 %kept=select i1 %above,double %value,double 0.0
 store double %kept,ptr %to
 %i1=add i64 %i,1
 %further=icmp ult i64 %i1,%n64
 br i1 %further,label %row,label %last
last:
 %j1=add i64 %j,1
 %again=icmp ult i64 %j1,%n64
 br i1 %again,label %column,label %end
end:
 call void @lapack.dorgqr(ptr %rows,ptr %columns,ptr %columns,ptr %q,ptr %rows,ptr %scratch,ptr %buffer,
  ptr %size,ptr %info)
 ret void
}
"""

EIGEN = """
define internal void @matrix.eigen(ptr %a,ptr %w,ptr %v,ptr %scratch,ptr %order,i32 %n,i32 %work,
  i32 %whole) nounwind noinline {
entry:
 %rows=alloca i32
 %size=alloca i32
 %numbers=alloca i32
 %info=alloca i32
 %vectors=alloca i8
 %lower=alloca i8
 store i32 %n,ptr %rows
 store i32 %work,ptr %size
 store i32 %whole,ptr %numbers
 store i8 86,ptr %vectors
 store i8 76,ptr %lower
 %n64=sext i32 %n to i64
 %count=mul i64 %n64,%n64
 %bytes=shl i64 %count,3
 %finite=call i1 @matrix.finite(ptr %a,i64 %n64,i64 %n64,i1 true)
 br i1 %finite,label %all,label %none
all:
 call void @llvm.memcpy.p0.p0.i64(ptr %v,ptr %a,i64 %bytes,i1 false)
 call void @lapack.dsyevd(ptr %vectors,ptr %lower,ptr %rows,ptr %v,ptr %rows,ptr %w,ptr %scratch,
  ptr %size,ptr %order,ptr %numbers,ptr %info)
 %found=load i32,ptr %info
 %right=icmp eq i32 %found,0
 br i1 %right,label %end,label %none
none:
 call void @matrix.not_found(ptr %w,i64 %n64)
 call void @matrix.not_found(ptr %v,i64 %count)
 br label %end
end:
 ret void
}
"""

SINGULAR = """
define internal void @matrix.singular(ptr %a,ptr %u,ptr %s,ptr %v,ptr %scratch,ptr %order,i32 %m,i32 %n,
  i32 %work) nounwind noinline {
entry:
 %rows=alloca i32
 %columns=alloca i32
 %smaller=alloca i32
 %tall=icmp sgt i32 %m,%n
 %k=select i1 %tall,i32 %n,i32 %m
 store i32 %k,ptr %smaller
 %k64=sext i32 %k to i64
 %size=alloca i32
 %info=alloca i32
 %thin=alloca i8
 store i32 %m,ptr %rows
 store i32 %n,ptr %columns
 store i32 %work,ptr %size
 store i8 83,ptr %thin
 %m64=sext i32 %m to i64
 %n64=sext i32 %n to i64
 %count=mul i64 %m64,%n64
 %first=mul i64 %m64,%k64
 %last=mul i64 %k64,%n64
 %bytes=shl i64 %count,3
 %finite=call i1 @matrix.finite(ptr %a,i64 %n64,i64 %m64,i1 false)
 br i1 %finite,label %all,label %none
all:
 call void @llvm.memcpy.p0.p0.i64(ptr %scratch,ptr %a,i64 %bytes,i1 false)
 %buffer=getelementptr double,ptr %scratch,i64 %count
 call void @lapack.dgesdd(ptr %thin,ptr %rows,ptr %columns,ptr %scratch,ptr %rows,ptr %s,ptr %u,ptr %rows,
  ptr %v,ptr %smaller,ptr %buffer,ptr %size,ptr %order,ptr %info)
 %found=load i32,ptr %info
 %right=icmp eq i32 %found,0
 br i1 %right,label %end,label %none
none:
 call void @matrix.not_found(ptr %u,i64 %first)
 call void @matrix.not_found(ptr %s,i64 %k64)
 call void @matrix.not_found(ptr %v,i64 %last)
 br label %end
end:
 ret void
}
"""
