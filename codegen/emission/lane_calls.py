"""Functions of one number, called for every lane of a vector in turn."""

from __future__ import annotations

from functools import cache

from codegen.functions.symbols import Symbol
from codegen.lanes import Lanes


@cache
def lane_call(function: str, arity: int, lanes: Lanes) -> Symbol:
    """Return a function of vectors that calls a function of double for one lane after the other.

    A float32 is widened for the call, and the result is rounded once. The vectors go through memory: so a call costs
    the same whatever else the caller holds in registers.

    >>> lane_call("exp", 1, Lanes(8)).name
    'lanes.exp.v8f64'
    """
    name = f"lanes.{function}.{lanes.suffix}"
    operands = range(arity)
    parameters = ",".join(f"{lanes.type} %x{k}" for k in operands)
    lines = [
        f"define internal {lanes.type} @{name}({parameters}) noinline nounwind{lanes.attributes} {{",
        "begin:",
        f"%y=alloca {lanes.type},align 64",
        *[f"%a{k}=alloca {lanes.type},align 64" for k in operands],
        *[f"store {lanes.type} %x{k},ptr %a{k},align 64" for k in operands],
        "br label %next",
        "next:",
        "%lane=phi i64 [0,%begin],[%after,%next]",
    ]
    for k in operands:
        lines += [f"%p{k}=getelementptr {lanes.scalar},ptr %a{k},i64 %lane", *_load(f"%v{k}", f"%p{k}", lanes)]
    arguments = ",".join(f"double %v{k}" for k in operands)
    lines += [
        f"%value=call double @{function}({arguments})",
        f"%q=getelementptr {lanes.scalar},ptr %y,i64 %lane",
        *_store("%value", "%q", lanes),
        "%after=add i64 %lane,1",
        f"%more=icmp ult i64 %after,{lanes.width}",
        "br i1 %more,label %next,label %end",
        "end:",
        f"%result=load {lanes.type},ptr %y,align 64",
        f"ret {lanes.type} %result",
        "}",
    ]
    return Symbol(name, "\n".join(lines))


def _load(name: str, pointer: str, lanes: Lanes) -> list[str]:
    if lanes.scalar == "double":
        return [f"{name}=load double,ptr {pointer},align 8"]
    return [f"{name}.narrow=load float,ptr {pointer},align 4", f"{name}=fpext float {name}.narrow to double"]


def _store(name: str, pointer: str, lanes: Lanes) -> list[str]:
    if lanes.scalar == "double":
        return [f"store double {name},ptr {pointer},align 8"]
    return [f"{name}.narrow=fptrunc double {name} to float", f"store float {name}.narrow,ptr {pointer},align 4"]
