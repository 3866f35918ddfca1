"""Exponentials of matrices: scaling, an approximant of degree 13 and squaring, as IR that calls BLAS and LAPACK.

Powers of a matrix say how much it has to be scaled: their norms may be far smaller than those of the matrix are.

Source: Al-Mohy and Higham, "A new scaling and squaring algorithm for the matrix exponential" (2009).
"""

from __future__ import annotations

import math
import struct

from codegen.lanes import as_float32

PADE = [math.factorial(26 - k) * math.comb(13, k) // math.factorial(13) for k in range(14)]  # of the exponential
BOUND = 4.25  # of the roots of the norms of powers of a matrix, up to which its approximant is exact to rounding
ERROR = 2.0**53 / (math.comb(26, 13) * math.factorial(27))  # of the approximant, for each unit of the 27th power
UNITS = {"double": 2.0**53, "float": 2.0**24}  # in a number
LARGEST = {"double": 1e300, "float": 1e30}  # norm of a matrix

COMBINED = """
define internal void @matrix.combined(ptr %to,ptr %x,double %cx,ptr %y,double %cy,ptr %z,double %cz,double %diagonal,
  i64 %n) nounwind noinline {
entry:
 %count=mul i64 %n,%n
 %step=add i64 %n,1
 br label %next
next:
 %k=phi i64 [0,%entry],[%k1,%next]
 %px=getelementptr double,ptr %x,i64 %k
 %py=getelementptr double,ptr %y,i64 %k
 %pz=getelementptr double,ptr %z,i64 %k
 %pto=getelementptr double,ptr %to,i64 %k
 %vx=load double,ptr %px
 %vy=load double,ptr %py
 %vz=load double,ptr %pz
 %tx=fmul double %vx,%cx
 %ty=fmul double %vy,%cy
 %tz=fmul double %vz,%cz
 %rest=urem i64 %k,%step
 %own=icmp eq i64 %rest,0
 %one=select i1 %own,double %diagonal,double 0.0
 %s1=fadd double %tx,%ty
 %s2=fadd double %s1,%tz
 %s3=fadd double %s2,%one
 store double %s3,ptr %pto
 %k1=add i64 %k,1
 %more=icmp ult i64 %k1,%count
 br i1 %more,label %next,label %end
end:
 ret void
}
"""

LARGEST_ROW = """
define internal double @matrix.largest_row(ptr %a,i64 %n) nounwind noinline {
entry:
 br label %row
row:
 %i=phi i64 [0,%entry],[%i1,%last]
 %largest=phi double [0.0,%entry],[%largest1,%last]
 %first=mul i64 %i,%n
 br label %column
column:
 %j=phi i64 [0,%row],[%j1,%column]
 %sum=phi double [0.0,%row],[%sum1,%column]
 %at=add i64 %first,%j
 %place=getelementptr double,ptr %a,i64 %at
 %value=load double,ptr %place
 %size=call double @llvm.fabs.f64(double %value)
 %sum1=fadd double %sum,%size
 %j1=add i64 %j,1
 %further=icmp ult i64 %j1,%n
 br i1 %further,label %column,label %last
last:
 %larger=fcmp ogt double %sum1,%largest
 %nan=fcmp uno double %sum1,%sum1
 %taken=or i1 %larger,%nan
 %largest1=select i1 %taken,double %sum1,double %largest
 %i1=add i64 %i,1
 %again=icmp ult i64 %i1,%n
 br i1 %again,label %row,label %end
end:
 ret double %largest1
}
"""

POWER = """
define internal double @matrix.power(ptr %a,ptr %v,ptr %w,i64 %n) nounwind noinline {
entry:
 br label %start
start:
 %i0=phi i64 [0,%entry],[%i01,%start]
 %p0=getelementptr double,ptr %v,i64 %i0
 store double 1.0,ptr %p0
 %i01=add i64 %i0,1
 %begun=icmp ult i64 %i01,%n
 br i1 %begun,label %start,label %times
times:
 %k=phi i64 [0,%start],[%k1,%copied]
 br label %row
row:
 %i=phi i64 [0,%times],[%i1,%last]
 %first=mul i64 %i,%n
 br label %column
column:
 %j=phi i64 [0,%row],[%j1,%column]
 %sum=phi double [0.0,%row],[%sum1,%column]
 %at=add i64 %first,%j
 %place=getelementptr double,ptr %a,i64 %at
 %value=load double,ptr %place
 %size=call double @llvm.fabs.f64(double %value)
 %pv=getelementptr double,ptr %v,i64 %j
 %entry_v=load double,ptr %pv
 %term=fmul double %size,%entry_v
 %sum1=fadd double %sum,%term
 %j1=add i64 %j,1
 %further=icmp ult i64 %j1,%n
 br i1 %further,label %column,label %last
last:
 %pw=getelementptr double,ptr %w,i64 %i
 store double %sum1,ptr %pw
 %i1=add i64 %i,1
 %again=icmp ult i64 %i1,%n
 br i1 %again,label %row,label %copy
copy:
 %c=phi i64 [0,%last],[%c1,%copy]
 %largest=phi double [0.0,%last],[%largest1,%copy]
 %pc=getelementptr double,ptr %w,i64 %c
 %vc=load double,ptr %pc
 %pd=getelementptr double,ptr %v,i64 %c
 store double %vc,ptr %pd
 %larger=fcmp ogt double %vc,%largest
 %largest1=select i1 %larger,double %vc,double %largest
 %c1=add i64 %c,1
 %copying=icmp ult i64 %c1,%n
 br i1 %copying,label %copy,label %copied
copied:
 %k1=add i64 %k,1
 %more=icmp ult i64 %k1,27
 br i1 %more,label %times,label %end
end:
 ret double %largest1
}
"""


def exponential(scalar: str) -> str:
    """Return the function for matrices of a type of numbers, in the words of double: coefficients are rounded once.

    >>> "64764752532480000" in exponential("double"), exponential("float").count("double") > 0
    (False, True)
    """
    numbers = {f"b{k}": _exact(coefficient, scalar) for k, coefficient in enumerate(PADE)}

    def of(text: str) -> str:
        return numbers.get(text, text)

    def sum_of(to: str, terms: str, diagonal: str = "0.0") -> str:
        """Combine matrices: "b7*B6 ..."; b7 is a coefficient of the approximant."""
        parts = [term.split("*") for term in terms.split()]
        parts += [["0.0", parts[0][1]]] * (3 - len(parts))
        given = ",".join(f"ptr %{name},double {of(factor)}" for factor, name in parts)
        return f" call void @matrix.combined(ptr %{to},{given},double {of(diagonal)},i64 %n64)"

    powers = [sum_of("B", "%f*a"), _product("B", "B", "B2"), _product("B2", "B2", "B4"), _product("B4", "B2", "B6")]
    approximant = [
        sum_of("B", "%g*B"), sum_of("B2", "%g2*B2"), sum_of("B4", "%g4*B4"), sum_of("B6", "%g6*B6"),
        sum_of("T", "b13*B6 b11*B4 b9*B2"), _product("B6", "T", "U"), sum_of("T", "b7*B6 b5*B4 b3*B2", "b1"),
        sum_of("T", "1.0*T 1.0*U"), _product("B", "T", "U"),
        sum_of("T", "b12*B6 b10*B4 b8*B2"), _product("B6", "T", "B"), sum_of("T", "b6*B6 b4*B4 b2*B2", "b0"),
        sum_of("B", "1.0*B 1.0*T"), sum_of("B2", "1.0*B -1.0*U"), sum_of("B4", "1.0*B 1.0*U"),
    ]  # fmt: skip
    text = EXPONENTIAL.replace("POWERS", "\n".join(powers)).replace("APPROXIMANT", "\n".join(approximant))
    units, largest = UNITS[scalar], LARGEST[scalar]
    for word, number in (
        ("BOUND4", BOUND**4), ("BOUND6", BOUND**6), ("ERROR", ERROR * units / UNITS["double"]), ("LARGEST", largest),
    ):  # fmt: skip
        text = text.replace(word, _exact(number, scalar))
    return text


def _exact(number: float, scalar: str) -> str:
    """Return a number as LLVM reads it without rounding."""
    number = as_float32(number) if scalar == "float" else number
    return f"0x{struct.unpack('<Q', struct.pack('<d', number))[0]:016X}"


def _product(left: str, right: str, to: str) -> str:
    sizes = "i64 1,i32 %n,i32 %n,i32 %n,i1 false,i1 false,double 0.0"
    return f" call void @matrix.product(ptr %{left},ptr %{right},ptr %{to},{sizes})"


# POWERS, APPROXIMANT and the numbers are filled in by `exponential`
EXPONENTIAL = """
define internal void @matrix.exponential(ptr %a,ptr %x,ptr %B,ptr %order,i32 %n) nounwind noinline {
entry:
 %n64=sext i32 %n to i64
 %count=mul i64 %n64,%n64
 %bytes=shl i64 %count,3
 %B2=getelementptr double,ptr %B,i64 %count
 %B4=getelementptr double,ptr %B2,i64 %count
 %B6=getelementptr double,ptr %B4,i64 %count
 %T=getelementptr double,ptr %B6,i64 %count
 %U=getelementptr double,ptr %T,i64 %count
 %factors=getelementptr double,ptr %U,i64 %count
 %norm=call double @matrix.largest_row(ptr %a,i64 %n64)
 %finite=fcmp olt double %norm,LARGEST
 br i1 %finite,label %scale,label %none
scale:
 %e=phi i64 [0,%entry],[%e1,%more]
 %left=phi double [%norm,%entry],[%half,%more]
 %f=phi double [1.0,%entry],[%f1,%more]
 %large=fcmp oge double %left,1.0
 br i1 %large,label %more,label %scaled
more:
 %e1=add i64 %e,1
 %half=fmul double %left,0.5
 %f1=fmul double %f,0.5
 br label %scale
scaled:
POWERS
 %four=call double @matrix.largest_row(ptr %B4,i64 %n64)
 %six=call double @matrix.largest_row(ptr %B6,i64 %n64)
 %power=call double @matrix.power(ptr %B,ptr %T,ptr %U,i64 %n64)
 %further=fmul double %power,ERROR
 br label %less
less:
 %s=phi i64 [%e,%scaled],[%s1,%lessened]
 %g=phi double [1.0,%scaled],[%h,%lessened]
 %some=icmp ugt i64 %s,0
 %h=fmul double %g,2.0
 %h2=fmul double %h,%h
 %h4=fmul double %h2,%h2
 %h6=fmul double %h4,%h2
 %h12=fmul double %h6,%h6
 %h24=fmul double %h12,%h12
 %h26=fmul double %h24,%h2
 %four1=fmul double %four,%h4
 %six1=fmul double %six,%h6
 %further1=fmul double %further,%h26
 %right4=fcmp ole double %four1,BOUND4
 %right6=fcmp ole double %six1,BOUND6
 %right26=fcmp ole double %further1,%left
 %right0=and i1 %some,%right4
 %right1=and i1 %right0,%right6
 %right2=and i1 %right1,%right26
 br i1 %right2,label %lessened,label %found
lessened:
 %s1=sub i64 %s,1
 br label %less
found:
 %g2=fmul double %g,%g
 %g4=fmul double %g2,%g2
 %g6=fmul double %g4,%g2
APPROXIMANT
 call void @matrix.solve(ptr %B2,ptr %B4,ptr %x,ptr %factors,ptr %order,i32 %n,i32 %n,i1 true)
 br label %square
square:
 %k=phi i64 [%s,%found],[%k1,%again]
 %done=icmp eq i64 %k,0
 br i1 %done,label %end,label %again
again:
 call void @matrix.product(ptr %x,ptr %x,ptr %T,i64 1,i32 %n,i32 %n,i32 %n,i1 false,i1 false,double 0.0)
 call void @llvm.memcpy.p0.p0.i64(ptr %x,ptr %T,i64 %bytes,i1 false)
 %k1=sub i64 %k,1
 br label %square
none:
 call void @matrix.not_found(ptr %x,i64 %count)
 br label %end
end:
 ret void
}
"""
