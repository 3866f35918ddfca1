"""Two versions of exported code, for old and new x86-64 processors. A call selects one.

Without fused multiply-add (`cpu="generic"`) each is a call of `fma`, and a function such as `exp` has some twenty. So
each function has a second version for processors with AVX2 and FMA; the kernel's own name is a function that asks the
processor at its first call, and selects one. Both give the same bits.
"""

from __future__ import annotations

import re

FEATURES = '"target-features"="+avx2,+fma"'
DEFINITION = re.compile(r"^define [^\n]*?@([\w.$-]+)\([^\n]*\{\n.*?^\}\n", re.MULTILINE | re.DOTALL)
NAME = re.compile(r"@([\w.$-]+)")
DISPATCH = """@KERNEL.level=internal global i32 0
define i32 @KERNEL(ptr noalias %in,ptr noalias %out) nounwind {
start:
%known=load atomic i32,ptr @KERNEL.level monotonic,align 4
%is_known=icmp ne i32 %known,0
br i1 %is_known,label %choose,label %ask
ask:
%asked=call i32 @KERNEL.asked()
store atomic i32 %asked,ptr @KERNEL.level monotonic,align 4
br label %choose
choose:
%level=phi i32 [%known,%start],[%asked,%ask]
%modern=icmp eq i32 %level,2
br i1 %modern,label %wide,label %baseline
wide:
%first=call i32 @KERNEL.avx2(ptr %in,ptr %out)
ret i32 %first
baseline:
%second=call i32 @KERNEL.baseline(ptr %in,ptr %out)
ret i32 %second
}
"""
# Bits: FMA 12 and AVX 28 of the processor, 27 where the system tells what it saves, there vectors 1 and 2; AVX2 is 5.
ASKED = """define internal i32 @KERNEL.asked() noinline nounwind {
%zero=call {i32,i32,i32,i32} asm sideeffect "cpuid","={ax},={bx},={cx},={dx},0,2"(i32 0,i32 0)
%highest=extractvalue {i32,i32,i32,i32} %zero,0
%enough=icmp uge i32 %highest,7
br i1 %enough,label %basic,label %no
basic:
%one=call {i32,i32,i32,i32} asm sideeffect "cpuid","={ax},={bx},={cx},={dx},0,2"(i32 1,i32 0)
%named=extractvalue {i32,i32,i32,i32} %one,2
%wanted=and i32 %named,402657280
%has=icmp eq i32 %wanted,402657280
br i1 %has,label %saved,label %no
saved:
%states=call {i32,i32} asm sideeffect "xgetbv","={ax},={dx},{cx}"(i32 0)
%enabled=extractvalue {i32,i32} %states,0
%vectors=and i32 %enabled,6
%kept=icmp eq i32 %vectors,6
br i1 %kept,label %more,label %no
more:
%seven=call {i32,i32,i32,i32} asm sideeffect "cpuid","={ax},={bx},={cx},={dx},0,2"(i32 7,i32 0)
%extended=extractvalue {i32,i32,i32,i32} %seven,1
%avx2=and i32 %extended,32
%last=icmp eq i32 %avx2,32
br i1 %last,label %yes,label %no
yes:
ret i32 2
no:
ret i32 1
}
"""


def in_two_versions(text: str, kernel: str = "kernel", asked: str = ASKED) -> str:
    """Return IR whose function `kernel` calls the version of itself, and of all that it calls, for this processor.

    >>> plain = "define i32 @kernel(ptr %in,ptr %out) nounwind {\\nret i32 0\\n}\\n"
    >>> print(in_two_versions(plain, asked="define i32 @KERNEL.asked() {\\nret i32 2\\n}\\n")[:137])
    define internal i32 @kernel.baseline(ptr %in,ptr %out) nounwind {
    ret i32 0
    }
    define internal i32 @kernel.avx2(ptr %in,ptr %out) nounwind
    """
    definitions = [(match[1], match[0]) for match in DEFINITION.finditer(text)]
    defined = {name for name, _ in definitions}
    rest = DEFINITION.sub("", text)

    def version(body: str, suffix: str, attribute: str) -> str:
        named = NAME.sub(lambda name: f"@{name[1]}.{suffix}" if name[1] in defined else name[0], body)
        head, brace, lines = named.partition("{\n")
        return f"{re.sub('^define (?!internal )', 'define internal ', head)}{attribute}{brace}{lines}"

    copies = [version(body, "baseline", "") for _, body in definitions]
    copies += [version(body, "avx2", f"{FEATURES} ") for _, body in definitions]
    return "".join([*copies, (DISPATCH + asked).replace("KERNEL", kernel), rest])
