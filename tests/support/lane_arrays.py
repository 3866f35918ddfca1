"""Lane functions of whole arrays, in the precision of the arrays."""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from codegen.emission.lane_functions import lane_function
from codegen.engine import Library, compile_text
from codegen.functions.lane_table import FORMULAS
from codegen.lanes import Lanes

DRIVER = """
define void @run(ptr %x,ptr %y,i64 %n) nounwind{attributes} {{
begin:
br label %next
next:
%k=phi i64 [0,%begin],[%after,%next]
{loads}
%q=getelementptr {scalar},ptr %y,i64 %k
%r=call {type} @{name}({arguments})
store {type} %r,ptr %q,align {size}
%after=add i64 %k,{width}
%more=icmp ult i64 %after,%n
br i1 %more,label %next,label %end
end:
ret void
}}
"""
LOAD = """%p{c}=getelementptr ptr,ptr %x,i64 {c}
%a{c}=load ptr,ptr %p{c},align 8
%e{c}=getelementptr {scalar},ptr %a{c},i64 %k
%v{c}=load {type},ptr %e{c},align {size}"""


@cache
def library(function: str, lanes: Lanes) -> Library:
    """The function of an array, as machine code."""
    symbols = lane_function(function, lanes)
    operands = range(FORMULAS[function].operands)
    driver = DRIVER.format(
        attributes=lanes.attributes, type=lanes.type, name=symbols[0].name, width=lanes.width, scalar=lanes.scalar,
        size=lanes.size,
        loads="\n".join(LOAD.format(c=c, type=lanes.type, scalar=lanes.scalar, size=lanes.size) for c in operands),
        arguments=",".join(f"{lanes.type} %v{c}" for c in operands),
    )  # fmt: skip
    addresses = {name: address for found in symbols for name, address in found.addresses.items()}
    return compile_text("\n".join([*(found.text for found in symbols), driver]), ("run",), addresses, 0)


def on_array(function: str, width: int, *arguments: NDArray[Any]) -> NDArray[Any]:
    """The function of every number, `width` at a time."""
    size, kind = len(arguments[0]), arguments[0].dtype
    padded = [np.append(x, np.full(-size % width, 0.5, kind)) for x in arguments]
    found = np.full(len(padded[0]), 7.0, kind)
    pointers = (ctypes.c_void_p * len(padded))(*[x.ctypes.data for x in padded])
    run = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)
    lanes = Lanes(width, "float" if kind == np.float32 else "double")
    run(library(function, lanes).addresses["run"])(pointers, found.ctypes.data, len(found))
    return found[:size]
