"""IR text of a copy past the caches: results too large for them are written in whole lines, one after the other."""

from __future__ import annotations

STREAM = """
define internal void @stream(ptr %to,ptr %from,i64 %bytes) noinline nounwind ATTRIBUTES {
begin:
 %address=ptrtoint ptr %to to i64
 %negative=sub i64 0,%address
 %gap=and i64 %negative,63
 %short=icmp ult i64 %bytes,%gap
 %head=select i1 %short,i64 %bytes,i64 %gap
 %rest=sub i64 %bytes,%head
 %whole=and i64 %rest,-64
 %tail=add i64 %head,%whole
 call void @llvm.memcpy.p0.p0.i64(ptr %to,ptr %from,i64 %head,i1 false)
 br label %next
next:
 %k=phi i64 [%head,%begin],[%k.next,%line]
 %more=icmp ult i64 %k,%tail
 br i1 %more,label %line,label %end
line:
 %source=getelementptr i8,ptr %from,i64 %k
 %target=getelementptr i8,ptr %to,i64 %k
 %value=load <16 x i32>,ptr %source,align 4
 store <16 x i32> %value,ptr %target,align 64,!nontemporal !0
 %k.next=add i64 %k,64
 br label %next
end:
 %left=sub i64 %bytes,%tail
 %last.source=getelementptr i8,ptr %from,i64 %tail
 %last.target=getelementptr i8,ptr %to,i64 %tail
 call void @llvm.memcpy.p0.p0.i64(ptr %last.target,ptr %last.source,i64 %left,i1 false)
 ret void
}
declare void @llvm.memcpy.p0.p0.i64(ptr,ptr,i64,i1)
!0=!{i32 1}
"""


def stream_text(attributes: str) -> str:
    """Return the function `stream(to, from, bytes)`, with attributes for the width of registers.

    >>> "nontemporal" in stream_text("")
    True
    """
    return STREAM.replace("ATTRIBUTES", attributes)
