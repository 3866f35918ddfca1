"""Orders, places of insertion, gathers and scatters: the IR of a kernel's own routines.

Keys are compared as whole numbers: the bits of a float, turned so that their order is that of the floats, 0.0 and -0.0
are one, and NaN is the largest of all. Few keys are sorted by insertion, more of them by their bytes, the last one
first; where all have the same byte nothing is moved. Both are stable.

Source: Knuth, The Art of Computer Programming 3, 2nd edition (1998): 5.2.1 (insertion), 5.2.5 (radix list sort).
"""

from __future__ import annotations

FEW = 48  # keys that are sorted by insertion
COUNTS = 8 * 256  # of bytes


def key(scalar: str) -> str:
    """Return the function that has the key of a number of a type.

    >>> "bitcast float %plain to i32" in key("float")
    True
    """
    bits = 32 if scalar == "float" else 64
    return f"""
define internal i64 @array.key({scalar} %x) alwaysinline nounwind {{
 %plain=fadd {scalar} %x,0.0
 %bits=bitcast {scalar} %plain to i{bits}
 %sign=ashr i{bits} %bits,{bits - 1}
 %mask=or i{bits} %sign,{-(1 << (bits - 1))}
 %turned=xor i{bits} %bits,%mask
 %key={"zext i32 %turned to i64" if bits == 32 else "or i64 %turned,0"}
 %none=fcmp uno {scalar} %x,%x
 %found=select i1 %none,i64 -1,i64 %key
 ret i64 %found
}}
"""


ORDER = f"""
define internal void @array.order(ptr %x,ptr %p,ptr %scratch,i64 %rows,i64 %n) nounwind noinline {{
entry:
 %size=shl i64 %n,1
 %other=getelementptr i64,ptr %scratch,i64 %size
 %counts=getelementptr i64,ptr %other,i64 %size
 %few=icmp ule i64 %n,{FEW}
 br label %row
row:
 %r=phi i64 [0,%entry],[%r1,%next]
 %first=mul i64 %r,%n
 %keys=getelementptr double,ptr %x,i64 %first
 %places=getelementptr double,ptr %p,i64 %first
 br i1 %few,label %inserted,label %sorted
inserted:
 call void @array.inserted(ptr %keys,ptr %scratch,i64 %n)
 br label %leave
sorted:
 %by=call ptr @array.by_bytes(ptr %keys,ptr %scratch,ptr %other,ptr %counts,i64 %n)
 br label %leave
leave:
 %found=phi ptr [%scratch,%inserted],[%by,%sorted]
 br label %out
out:
 %k=phi i64 [0,%leave],[%k1,%out]
 %two=shl i64 %k,1
 %at=or i64 %two,1
 %from=getelementptr i64,ptr %found,i64 %at
 %index=load i64,ptr %from,align 4
 %number=sitofp i64 %index to double
 %to=getelementptr double,ptr %places,i64 %k
 store double %number,ptr %to
 %k1=add i64 %k,1
 %more=icmp ult i64 %k1,%n
 br i1 %more,label %out,label %next
next:
 %r1=add i64 %r,1
 %again=icmp ult i64 %r1,%rows
 br i1 %again,label %row,label %end
end:
 ret void
}}
"""

INSERTED = """
define internal void @array.inserted(ptr %x,ptr %a,i64 %n) nounwind noinline {
entry:
 br label %each
each:
 %i=phi i64 [0,%entry],[%i1,%put]
 %from=getelementptr double,ptr %x,i64 %i
 %value=load double,ptr %from
 %key=call i64 @array.key(double %value)
 br label %look
look:
 %j=phi i64 [%i,%each],[%j1,%move]
 %front=icmp eq i64 %j,0
 br i1 %front,label %put,label %compare
compare:
 %j1=sub i64 %j,1
 %two=shl i64 %j1,1
 %there=getelementptr i64,ptr %a,i64 %two
 %its=load i64,ptr %there,align 4
 %larger=icmp ugt i64 %its,%key
 br i1 %larger,label %move,label %put
move:
 %second=getelementptr i64,ptr %there,i64 1
 %index=load i64,ptr %second,align 4
 %up=getelementptr i64,ptr %there,i64 2
 %up1=getelementptr i64,ptr %there,i64 3
 store i64 %its,ptr %up,align 4
 store i64 %index,ptr %up1,align 4
 br label %look
put:
 %two1=shl i64 %j,1
 %to=getelementptr i64,ptr %a,i64 %two1
 %to1=getelementptr i64,ptr %to,i64 1
 store i64 %key,ptr %to,align 4
 store i64 %i,ptr %to1,align 4
 %i1=add i64 %i,1
 %more=icmp ult i64 %i1,%n
 br i1 %more,label %each,label %end
end:
 ret void
}
"""

BY_BYTES = f"""
define internal ptr @array.by_bytes(ptr %x,ptr %a,ptr %b,ptr %counts,i64 %n) nounwind noinline {{
entry:
 call void @llvm.memset.p0.i64(ptr %counts,i8 0,i64 {8 * COUNTS},i1 false)
 br label %each
each:
 %i=phi i64 [0,%entry],[%i1,%counted]
 %from=getelementptr double,ptr %x,i64 %i
 %value=load double,ptr %from
 %key=call i64 @array.key(double %value)
 %two=shl i64 %i,1
 %to=getelementptr i64,ptr %a,i64 %two
 %to1=getelementptr i64,ptr %to,i64 1
 store i64 %key,ptr %to,align 4
 store i64 %i,ptr %to1,align 4
 br label %count
count:
 %d=phi i64 [0,%each],[%d1,%count]
 %shift=shl i64 %d,3
 %moved=lshr i64 %key,%shift
 %byte=and i64 %moved,255
 %table=shl i64 %d,8
 %at=or i64 %table,%byte
 %place=getelementptr i64,ptr %counts,i64 %at
 %number=load i64,ptr %place,align 4
 %number1=add i64 %number,1
 store i64 %number1,ptr %place,align 4
 %d1=add i64 %d,1
 %bytes=icmp ult i64 %d1,8
 br i1 %bytes,label %count,label %counted
counted:
 %i1=add i64 %i,1
 %more=icmp ult i64 %i1,%n
 br i1 %more,label %each,label %pass
pass:
 %e=phi i64 [0,%counted],[%e1,%passed]
 %source=phi ptr [%a,%counted],[%source1,%passed]
 %target=phi ptr [%b,%counted],[%target1,%passed]
 %shift2=shl i64 %e,3
 %offset=shl i64 %e,8
 %starts=getelementptr i64,ptr %counts,i64 %offset
 %any=load i64,ptr %source,align 4
 %any1=lshr i64 %any,%shift2
 %any2=and i64 %any1,255
 %any3=getelementptr i64,ptr %starts,i64 %any2
 %same=load i64,ptr %any3,align 4
 %all=icmp eq i64 %same,%n
 br i1 %all,label %passed,label %sum
sum:
 %c=phi i64 [0,%pass],[%c1,%sum]
 %total=phi i64 [0,%pass],[%total1,%sum]
 %start=getelementptr i64,ptr %starts,i64 %c
 %size=load i64,ptr %start,align 4
 store i64 %total,ptr %start,align 4
 %total1=add i64 %total,%size
 %c1=add i64 %c,1
 %left=icmp ult i64 %c1,256
 br i1 %left,label %sum,label %move
move:
 %m=phi i64 [0,%sum],[%m1,%move]
 %m2=shl i64 %m,1
 %source0=getelementptr i64,ptr %source,i64 %m2
 %source2=getelementptr i64,ptr %source0,i64 1
 %its=load i64,ptr %source0,align 4
 %index=load i64,ptr %source2,align 4
 %its1=lshr i64 %its,%shift2
 %its2=and i64 %its1,255
 %its3=getelementptr i64,ptr %starts,i64 %its2
 %where=load i64,ptr %its3,align 4
 %where1=add i64 %where,1
 store i64 %where1,ptr %its3,align 4
 %where2=shl i64 %where,1
 %target0=getelementptr i64,ptr %target,i64 %where2
 %target2=getelementptr i64,ptr %target0,i64 1
 store i64 %its,ptr %target0,align 4
 store i64 %index,ptr %target2,align 4
 %m1=add i64 %m,1
 %further=icmp ult i64 %m1,%n
 br i1 %further,label %move,label %passed
passed:
 %source1=phi ptr [%source,%pass],[%target,%move]
 %target1=phi ptr [%target,%pass],[%source,%move]
 %e1=add i64 %e,1
 %again=icmp ult i64 %e1,8
 br i1 %again,label %pass,label %end
end:
 ret ptr %source1
}}
"""

INSERTION = """
define internal void @array.insertion(ptr %a,ptr %x,ptr %y,i64 %n,i64 %m,i1 %right) nounwind noinline {
entry:
 br label %each
each:
 %i=phi i64 [0,%entry],[%i1,%found]
 %from=getelementptr double,ptr %x,i64 %i
 %value=load double,ptr %from
 %key=call i64 @array.key(double %value)
 br label %half
half:
 %low=phi i64 [0,%each],[%low1,%half]
 %high=phi i64 [%n,%each],[%high1,%half]
 %both=add i64 %low,%high
 %middle=lshr i64 %both,1
 %there=getelementptr double,ptr %a,i64 %middle
 %other=load double,ptr %there
 %its=call i64 @array.key(double %other)
 %less=icmp ult i64 %its,%key
 %equal=icmp eq i64 %its,%key
 %also=and i1 %equal,%right
 %before=or i1 %less,%also
 %behind=add i64 %middle,1
 %low1=select i1 %before,i64 %behind,i64 %low
 %high1=select i1 %before,i64 %high,i64 %middle
 %more=icmp ult i64 %low1,%high1
 br i1 %more,label %half,label %found
found:
 %number=sitofp i64 %low1 to double
 %to=getelementptr double,ptr %y,i64 %i
 store double %number,ptr %to
 %i1=add i64 %i,1
 %again=icmp ult i64 %i1,%m
 br i1 %again,label %each,label %end
end:
 ret void
}
"""

PLACE = """
define internal i64 @array.place(double %p,double %n) alwaysinline nounwind {
 %negative=fcmp olt double %p,0.0
 %turned=fadd double %p,%n
 %place=select i1 %negative,double %turned,double %p
 %above=fcmp oge double %place,0.0
 %below=fcmp olt double %place,%n
 %inside=and i1 %above,%below
 %safe=select i1 %inside,double %place,double 0.0
 %whole=fptosi double %safe to i64
 %found=select i1 %inside,i64 %whole,i64 -1
 ret i64 %found
}
"""

GATHER = """
define internal void @array.gather(ptr %x,ptr %p,ptr %y,i64 %rows,i64 %n,i64 %m,i1 %adds) nounwind noinline {
entry:
 %size=sitofp i64 %n to double
 br label %row
row:
 %r=phi i64 [0,%entry],[%r1,%next]
 %first=mul i64 %r,%n
 %start=mul i64 %r,%m
 %numbers=getelementptr double,ptr %x,i64 %first
 br label %each
each:
 %k=phi i64 [0,%row],[%k1,%each]
 %at=add i64 %start,%k
 %from=getelementptr double,ptr %p,i64 %at
 %to=getelementptr double,ptr %y,i64 %at
 %number=load double,ptr %from
 %place=call i64 @array.place(double %number,double %size)
 %outside=icmp slt i64 %place,0
 %safe=select i1 %outside,i64 0,i64 %place
 %there=getelementptr double,ptr %numbers,i64 %safe
 %read=load double,ptr %there
 %value=select i1 %outside,double 0x7FF8000000000000,double %read
 %before=load double,ptr %to
 %sum=fadd double %before,%value
 %left=select i1 %adds,double %sum,double %value
 store double %left,ptr %to
 %k1=add i64 %k,1
 %more=icmp ult i64 %k1,%m
 br i1 %more,label %each,label %next
next:
 %r1=add i64 %r,1
 %again=icmp ult i64 %r1,%rows
 br i1 %again,label %row,label %end
end:
 ret void
}
"""

SCATTER = """
define internal void @array.scatter(ptr %x,ptr %p,ptr %y,i64 %rows,i64 %n,i64 %m,i1 %adds) nounwind noinline {
entry:
 %size=sitofp i64 %n to double
 %count=mul i64 %rows,%n
 %bytes=shl i64 %count,3
 br i1 %adds,label %row,label %clear
clear:
 call void @llvm.memset.p0.i64(ptr %y,i8 0,i64 %bytes,i1 false)
 br label %row
row:
 %r=phi i64 [0,%entry],[0,%clear],[%r1,%next]
 %first=mul i64 %r,%n
 %start=mul i64 %r,%m
 %numbers=getelementptr double,ptr %y,i64 %first
 br label %each
each:
 %k=phi i64 [0,%row],[%k1,%added]
 %at=add i64 %start,%k
 %from=getelementptr double,ptr %p,i64 %at
 %number=load double,ptr %from
 %place=call i64 @array.place(double %number,double %size)
 %outside=icmp slt i64 %place,0
 br i1 %outside,label %added,label %inside
inside:
 %given=getelementptr double,ptr %x,i64 %at
 %value=load double,ptr %given
 %there=getelementptr double,ptr %numbers,i64 %place
 %before=load double,ptr %there
 %sum=fadd double %before,%value
 store double %sum,ptr %there
 br label %added
added:
 %k1=add i64 %k,1
 %more=icmp ult i64 %k1,%m
 br i1 %more,label %each,label %next
next:
 %r1=add i64 %r,1
 %again=icmp ult i64 %r1,%rows
 br i1 %again,label %row,label %end
end:
 ret void
}
"""
