"""IR text of the call gate; words in capitals are filled in by `gate`: numbers, and what depends on their type."""

OBJECTS = """
@PyFloat_Type = external global i8
@PyTuple_Type = external global i8
@PyArray_Type = external global i8
@PyDoubleScalar_Type = external global i8
@descriptor = external global i8
@name_out = external global i8
@name_slow = external global i8
declare ptr @PyObject_GetAttr(ptr,ptr)
declare ptr @PyObject_Vectorcall(ptr,ptr,i64,ptr)
declare void @Py_IncRef(ptr)
declare void @Py_DecRef(ptr)
declare ptr @PyFloat_FromDouble(double)
declare void @PyErr_Clear()
declare ptr @PyTuple_New(i64)
declare i32 @PyTuple_SetItem(ptr,i64,ptr)
declare ptr @PyEval_SaveThread()
declare void @PyEval_RestoreThread(ptr)
declare ptr @PyArray_Empty(i32,ptr,ptr,i32)
"""

# Data pointer of an argument, or null for a surprise. Fields of PyArrayObject: data 16, nd 24, dims 32, descr 56,
# flags 64. The value of a float (or np.float64) stands behind the object header, at 16: NUMBER gives its address, or
# that of %room where it is rounded; one that is too large for that is a surprise, as NumPy has a warning for it.
DATA = """
define internal ptr @data(ptr %object,ptr %entry,i32 %flags,ptr %room) nounwind {
start:
 %type.at=getelementptr i8,ptr %object,i64 8
 %type=load ptr,ptr %type.at,align 8
 %value=getelementptr i8,ptr %object,i64 16
 %rank=load i64,ptr %entry,align 8
 %is.array=icmp eq ptr %type,@PyArray_Type
 br i1 %is.array,label %array,label %scalar
scalar:
 %is.float=icmp eq ptr %type,@PyFloat_Type
 %is.double=icmp eq ptr %type,@PyDoubleScalar_Type
 %is.number=or i1 %is.float,%is.double
 %no.rank=icmp eq i64 %rank,0
 %is.input=icmp eq i32 %flags,READ
 %one=and i1 %is.number,%no.rank
 %both=and i1 %one,%is.input
 br i1 %both,label %number,label %surprise
number:
 NUMBER
array:
 %descr.at=getelementptr i8,ptr %object,i64 56
 %descr=load ptr,ptr %descr.at,align 8
 %is.type=icmp eq ptr %descr,@descriptor
 %flags.at=getelementptr i8,ptr %object,i64 64
 %has=load i32,ptr %flags.at,align 4
 %masked=and i32 %has,%flags
 %fits=icmp eq i32 %masked,%flags
 %nd.at=getelementptr i8,ptr %object,i64 24
 %nd=load i32,ptr %nd.at,align 4
 %nd.wide=sext i32 %nd to i64
 %same.rank=icmp eq i64 %nd.wide,%rank
 %ok1=and i1 %is.type,%fits
 %ok2=and i1 %ok1,%same.rank
 %dims.at=getelementptr i8,ptr %object,i64 32
 %extents=getelementptr i64,ptr %entry,i64 2
 br i1 %ok2,label %shape,label %surprise
shape:
 %dims=load ptr,ptr %dims.at,align 8
 br label %next
next:
 %k=phi i64 [0,%shape],[%k1,%same]
 %more=icmp ult i64 %k,%rank
 br i1 %more,label %extent,label %good
extent:
 %dim.at=getelementptr i64,ptr %dims,i64 %k
 %dim=load i64,ptr %dim.at,align 8
 %want.at=getelementptr i64,ptr %extents,i64 %k
 %want=load i64,ptr %want.at,align 8
 %equal=icmp eq i64 %dim,%want
 br i1 %equal,label %same,label %surprise
same:
 %k1=add i64 %k,1
 br label %next
good:
 %pointer=load ptr,ptr %value,align 8
 ret ptr %pointer
surprise:
 ret ptr null
}
"""

# By the type of numbers: how the gate reads a float, and how a result becomes one.
NUMBER = {
    "double": "ret ptr %value",
    "float": """%wide=load double,ptr %value,align 8
 %narrow=fptrunc double %wide to float
 %back=fpext float %narrow to double
 %lost=fsub double %wide,%back
 %square=fmul double %lost,%lost
 %large=fcmp oeq double %square,0x7FF0000000000000
 br i1 %large,label %surprise,label %rounded
rounded:
 store float %narrow,ptr %room,align 4
 ret ptr %room""",
}
WIDENED = {"double": "bitcast", "float": "fpext"}

# Whether [start, start + bytes) meets any of `count` arrays.
OVERLAPS = """
define internal i1 @overlaps(ptr %start,i64 %bytes,ptr %pointers,ptr %entries,i64 %count) nounwind {
begin:
 %low=ptrtoint ptr %start to i64
 %high=add i64 %low,%bytes
 br label %next
next:
 %k=phi i64 [0,%begin],[%k1,%apart]
 %more=icmp ult i64 %k,%count
 br i1 %more,label %look,label %none
look:
 %at=getelementptr ptr,ptr %pointers,i64 %k
 %other=load i64,ptr %at,align 8
 %offset=mul i64 %k,ENTRY
 %offset1=add i64 %offset,1
 %size.at=getelementptr i64,ptr %entries,i64 %offset1
 %size=load i64,ptr %size.at,align 8
 %other.high=add i64 %other,%size
 %c1=icmp ult i64 %other,%high
 %c2=icmp ult i64 %low,%other.high
 %meet=and i1 %c1,%c2
 br i1 %meet,label %found,label %apart
apart:
 %k1=add i64 %k,1
 br label %next
found:
 ret i1 true
none:
 ret i1 false
}
"""

RUN = """
define internal i32 @run(ptr %table,ptr %inputs,ptr %outputs) nounwind {
 %address=load ptr,ptr %table,align 8
 %release.at=getelementptr i64,ptr %table,i64 3
 %release=load i64,ptr %release.at,align 8
 %hold=icmp eq i64 %release,0
 br i1 %hold,label %short,label %long
short:
 %status=call i32 %address(ptr %inputs,ptr %outputs)
 ret i32 %status
long:
 %thread=call ptr @PyEval_SaveThread()
 %later=call i32 %address(ptr %inputs,ptr %outputs)
 call void @PyEval_RestoreThread(ptr %thread)
 ret i32 %later
}
define internal void @release(ptr %objects,i64 %count) nounwind {
begin:
 br label %next
next:
 %k=phi i64 [0,%begin],[%k1,%drop]
 %more=icmp ult i64 %k,%count
 br i1 %more,label %drop,label %end
drop:
 %at=getelementptr ptr,ptr %objects,i64 %k
 %object=load ptr,ptr %at,align 8
 call void @Py_DecRef(ptr %object)
 %k1=add i64 %k,1
 br label %next
end:
 ret void
}
define ptr @slow(ptr %self,ptr %args,i64 %nargsf,ptr %kw) nounwind {
 %method=call ptr @PyObject_GetAttr(ptr %self,ptr @name_slow)
 %missing=icmp eq ptr %method,null
 br i1 %missing,label %fail,label %go
go:
 %result=call ptr @PyObject_Vectorcall(ptr %method,ptr %args,i64 %nargsf,ptr %kw)
 call void @Py_DecRef(ptr %method)
 ret ptr %result
fail:
 ret ptr null
}
"""

GATE = """
define ptr @gate(ptr %self,ptr %args,i64 %nargsf,ptr %kw) nounwind {
begin:
 %inputs=alloca [MOST x ptr],align 8
 %outputs=alloca [MOST x ptr],align 8
 %numbers=alloca [MOST x SCALAR],align 8
 %table.at=getelementptr i8,ptr %self,i64 TABLE
 %table=load ptr,ptr %table.at,align 8
 %n.in.at=getelementptr i64,ptr %table,i64 1
 %n.in=load i64,ptr %n.in.at,align 8
 %n.out.at=getelementptr i64,ptr %table,i64 2
 %n.out=load i64,ptr %n.out.at,align 8
 %entries=getelementptr i64,ptr %table,i64 HEADER
 %skip=mul i64 %n.in,ENTRY
 %out.entries=getelementptr i64,ptr %entries,i64 %skip
 %nargs=and i64 %nargsf,9223372036854775807
 %count.ok=icmp eq i64 %nargs,%n.in
 br i1 %count.ok,label %keywords,label %slow
keywords:
 %no.keywords=icmp eq ptr %kw,null
 br i1 %no.keywords,label %arguments,label %keyword.count
keyword.count:
 %kw.size.at=getelementptr i8,ptr %kw,i64 16
 %kw.size=load i64,ptr %kw.size.at,align 8
 %kw.one=icmp eq i64 %kw.size,1
 br i1 %kw.one,label %keyword.name,label %slow
keyword.name:
 %kw.name.at=getelementptr i8,ptr %kw,i64 24
 %kw.name=load ptr,ptr %kw.name.at,align 8
 %kw.out=icmp eq ptr %kw.name,@name_out
 br i1 %kw.out,label %arguments,label %slow
arguments:
 br label %next.in
next.in:
 %k=phi i64 [0,%arguments],[%k1,%good.in]
 %more.in=icmp ult i64 %k,%n.in
 br i1 %more.in,label %one.in,label %results
one.in:
 %arg.at=getelementptr ptr,ptr %args,i64 %k
 %arg=load ptr,ptr %arg.at,align 8
 %e.off=mul i64 %k,ENTRY
 %e=getelementptr i64,ptr %entries,i64 %e.off
 %room=getelementptr SCALAR,ptr %numbers,i64 %k
 %in.data=call ptr @data(ptr %arg,ptr %e,i32 READ,ptr %room)
 %in.bad=icmp eq ptr %in.data,null
 br i1 %in.bad,label %slow,label %good.in
good.in:
 %in.at=getelementptr ptr,ptr %inputs,i64 %k
 store ptr %in.data,ptr %in.at,align 8
 %k1=add i64 %k,1
 br label %next.in
results:
 %single=icmp eq i64 %n.out,1
 br i1 %no.keywords,label %fresh,label %given

given:
 %out.at=getelementptr ptr,ptr %args,i64 %n.in
 %out=load ptr,ptr %out.at,align 8
 br i1 %single,label %items.ready,label %tuple
tuple:
 %out.type.at=getelementptr i8,ptr %out,i64 8
 %out.type=load ptr,ptr %out.type.at,align 8
 %is.tuple=icmp eq ptr %out.type,@PyTuple_Type
 br i1 %is.tuple,label %tuple.size,label %slow
tuple.size:
 %size.at=getelementptr i8,ptr %out,i64 16
 %size=load i64,ptr %size.at,align 8
 %size.ok=icmp eq i64 %size,%n.out
 %tuple.items=getelementptr i8,ptr %out,i64 24
 br i1 %size.ok,label %items.ready,label %slow
items.ready:
 %items=phi ptr [%out.at,%given],[%tuple.items,%tuple.size]
 br label %next.out
next.out:
 %j=phi i64 [0,%items.ready],[%j1,%good.out]
 %more.out=icmp ult i64 %j,%n.out
 br i1 %more.out,label %one.out,label %into
one.out:
 %item.at=getelementptr ptr,ptr %items,i64 %j
 %item=load ptr,ptr %item.at,align 8
 %o.off=mul i64 %j,ENTRY
 %o.e=getelementptr i64,ptr %out.entries,i64 %o.off
 %o.data=call ptr @data(ptr %item,ptr %o.e,i32 WRITE,ptr null)
 %o.bad=icmp eq ptr %o.data,null
 br i1 %o.bad,label %slow,label %check.inputs
check.inputs:
 %o.bytes.at=getelementptr i64,ptr %o.e,i64 1
 %o.bytes=load i64,ptr %o.bytes.at,align 8
 %meets.in=call i1 @overlaps(ptr %o.data,i64 %o.bytes,ptr %inputs,ptr %entries,i64 %n.in)
 br i1 %meets.in,label %slow,label %check.outputs
check.outputs:
 %meets.out=call i1 @overlaps(ptr %o.data,i64 %o.bytes,ptr %outputs,ptr %out.entries,i64 %j)
 br i1 %meets.out,label %slow,label %good.out
good.out:
 %o.at=getelementptr ptr,ptr %outputs,i64 %j
 store ptr %o.data,ptr %o.at,align 8
 %j1=add i64 %j,1
 br label %next.out
into:
 %status=call i32 @run(ptr %table,ptr %inputs,ptr %outputs)
 %failed=icmp ne i32 %status,0
 br i1 %failed,label %slow,label %return.out
return.out:
 call void @Py_IncRef(ptr %out)
 ret ptr %out

fresh:
 %objects=alloca [MOST x ptr],align 8
 %scalars=alloca [MOST x SCALAR],align 8
 br label %next.new
next.new:
 %i=phi i64 [0,%fresh],[%i1,%made]
 %more.new=icmp ult i64 %i,%n.out
 br i1 %more.new,label %one.new,label %compute
one.new:
 %n.off=mul i64 %i,ENTRY
 %n.e=getelementptr i64,ptr %out.entries,i64 %n.off
 %n.rank=load i64,ptr %n.e,align 8
 %is.scalar=icmp eq i64 %n.rank,0
 %scalar.at=getelementptr SCALAR,ptr %scalars,i64 %i
 br i1 %is.scalar,label %made,label %allocate
allocate:
 call void @Py_IncRef(ptr @descriptor)
 %n.dims=getelementptr i64,ptr %n.e,i64 2
 %n.rank32=trunc i64 %n.rank to i32
 %array=call ptr @PyArray_Empty(i32 %n.rank32,ptr %n.dims,ptr @descriptor,i32 0)
 %no.array=icmp eq ptr %array,null
 br i1 %no.array,label %give.up,label %allocated
allocated:
 %array.data.at=getelementptr i8,ptr %array,i64 16
 %array.data=load ptr,ptr %array.data.at,align 8
 br label %made
made:
 %object=phi ptr [null,%one.new],[%array,%allocated]
 %n.data=phi ptr [%scalar.at,%one.new],[%array.data,%allocated]
 %object.at=getelementptr ptr,ptr %objects,i64 %i
 store ptr %object,ptr %object.at,align 8
 %n.at=getelementptr ptr,ptr %outputs,i64 %i
 store ptr %n.data,ptr %n.at,align 8
 %i1=add i64 %i,1
 br label %next.new
give.up:
 call void @release(ptr %objects,i64 %i)
 call void @PyErr_Clear()
 br label %slow
compute:
 %status2=call i32 @run(ptr %table,ptr %inputs,ptr %outputs)
 %failed2=icmp ne i32 %status2,0
 br i1 %failed2,label %retry,label %next.box
retry:
 call void @release(ptr %objects,i64 %n.out)
 br label %slow
next.box:
 %b=phi i64 [0,%compute],[%b1,%boxed]
 %more.box=icmp ult i64 %b,%n.out
 br i1 %more.box,label %one.box,label %finish
one.box:
 %b.at=getelementptr ptr,ptr %objects,i64 %b
 %b.object=load ptr,ptr %b.at,align 8
 %unboxed=icmp eq ptr %b.object,null
 br i1 %unboxed,label %box,label %boxed
box:
 %b.value.at=getelementptr SCALAR,ptr %scalars,i64 %b
 %b.value=load SCALAR,ptr %b.value.at,align 4
 %b.wide=WIDENED SCALAR %b.value to double
 %b.float=call ptr @PyFloat_FromDouble(double %b.wide)
 store ptr %b.float,ptr %b.at,align 8
 %no.float=icmp eq ptr %b.float,null
 br i1 %no.float,label %out.of.memory,label %boxed
boxed:
 %b1=add i64 %b,1
 br label %next.box
finish:
 br i1 %single,label %return.one,label %make.tuple
return.one:
 %only=load ptr,ptr %objects,align 8
 ret ptr %only
make.tuple:
 %result=call ptr @PyTuple_New(i64 %n.out)
 %no.tuple=icmp eq ptr %result,null
 br i1 %no.tuple,label %out.of.memory,label %next.item
next.item:
 %t=phi i64 [0,%make.tuple],[%t1,%one.item]
 %more.item=icmp ult i64 %t,%n.out
 br i1 %more.item,label %one.item,label %return.tuple
one.item:
 %t.at=getelementptr ptr,ptr %objects,i64 %t
 %t.object=load ptr,ptr %t.at,align 8
 %ignored=call i32 @PyTuple_SetItem(ptr %result,i64 %t,ptr %t.object)
 %t1=add i64 %t,1
 br label %next.item
return.tuple:
 ret ptr %result
out.of.memory:
 call void @release(ptr %objects,i64 %n.out)
 ret ptr null
slow:
 %slow.result=call ptr @slow(ptr %self,ptr %args,i64 %nargsf,ptr %kw)
 ret ptr %slow.result
}
"""
