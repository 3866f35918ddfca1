"""External functions that kernels call: libm, LLVM intrinsics, inner loops of SciPy's ufuncs, threads.

Kernels name them by symbol; addresses are given to the linker, so that no address stands in the IR text.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Mapping
from functools import cache
from types import MappingProxyType
from typing import NamedTuple

from codegen.errors import LoweringError
from codegen.functions.libraries import ROUTINES, c_address, routine_address, scipy_ufunc
from codegen.functions.workers import DECLARATION, PARALLEL, parallel_address

# PyUFuncObject (numpy/ufuncobject.h): the fields behind the object header, part of NumPy's stable C-API.
UFUNC_FUNCTIONS, UFUNC_DATA, UFUNC_ENTRY = 32, 40, 8


class Symbol(NamedTuple):
    """A function that a kernel calls: its IR declaration or definition, and the addresses that it needs."""

    name: str
    text: str
    addresses: Mapping[str, int] = MappingProxyType({})


@cache
def symbol(name: str, arity: int, kind: str = "double") -> Symbol:
    """Return the symbol `name` with `arity` operands of IR type `kind`; LoweringError if no library has it.

    >>> symbol("tanh", 1).text
    'declare double @tanh(double) nounwind'
    """
    if name == PARALLEL:
        return Symbol(name, DECLARATION, {name: parallel_address()})
    if name in ROUTINES:
        declaration = f"declare void @{name}({','.join(['ptr'] * ROUTINES[name])}) nounwind"
        return Symbol(name, declaration, {name: routine_address(name)})
    if name.startswith("scipy."):
        return _ufunc_loop(name)
    declaration = f"declare {kind} @{name}({','.join([kind] * arity)}) nounwind"
    return Symbol(name, declaration, {} if name.startswith("llvm.") else {name: c_address(name)})


def addresses_of(names: Iterable[str]) -> dict[str, int]:
    """Return the addresses that symbols of these names need."""
    return {name: address for symbol_name in names for name, address in symbol(symbol_name, 0).addresses.items()}


def _ufunc_loop(name: str) -> Symbol:
    """A wrapper around the double loop of a SciPy ufunc, called with one point and steps of zero."""
    _, ufunc_name, arity, output = name.split(".")
    ufunc = scipy_ufunc(ufunc_name)
    wanted = "d" * ufunc.nin + "->" + "d" * ufunc.nout
    if wanted not in ufunc.types or int(arity) != ufunc.nin:
        raise LoweringError(f"SciPy's {ufunc_name}", why=f"it has no loop {wanted}", do="check the operands")
    entry = ufunc.types.index(wanted)
    functions, data = (
        ctypes.c_void_p.from_address(id(ufunc) + offset).value or 0 for offset in (UFUNC_FUNCTIONS, UFUNC_DATA)
    )
    loop, extra = (ctypes.c_void_p.from_address(start + UFUNC_ENTRY * entry).value or 0 for start in (functions, data))
    return Symbol(
        name, _wrapper(name, int(arity), ufunc.nout, int(output)), {f"{name}.loop": loop, f"{name}.data": extra}
    )


def _wrapper(name: str, arity: int, results: int, output: int) -> str:
    """IR of the wrapper: the operands and results live on the stack, the loop gets pointers to them."""
    count = arity + results
    operands = ",".join(f"double %x{k}" for k in range(arity))
    lines = [
        f"@{name}.data = external global i8",
        f"declare void @{name}.loop(ptr,ptr,ptr,ptr)",
        f"define internal double @{name}({operands}) noinline nounwind {{",
        f" %v=alloca [{count} x double],align 8",
        f" %p=alloca [{count} x ptr],align 8",
        f" %s=alloca [{count} x i64],align 8",
        " %n=alloca i64,align 8",
        " store i64 1,ptr %n,align 8",
    ]
    for k in range(count):
        lines += [
            f" %v{k}=getelementptr double,ptr %v,i64 {k}",
            f" %p{k}=getelementptr ptr,ptr %p,i64 {k}",
            f" %s{k}=getelementptr i64,ptr %s,i64 {k}",
            f" store ptr %v{k},ptr %p{k},align 8",
            f" store i64 0,ptr %s{k},align 8",
        ]
        if k < arity:
            lines.append(f" store double %x{k},ptr %v{k},align 8")
    lines += [
        f" call void @{name}.loop(ptr %p,ptr %n,ptr %s,ptr @{name}.data)",
        f" %r=load double,ptr %v{arity + output},align 8",
        " ret double %r",
        "}",
    ]
    return "\n".join(lines)
