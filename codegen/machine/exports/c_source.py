"""C99 source of machine operations, for machines without LLVM: the same order, the same bits.

Numbers are hexadecimal. Functions with our formulas are written out (`c_functions`). Those of the C library are called
through a volatile pointer, because compilers replace calls that they know (gcc makes `pow(x, 2.0)` a product), which
changes bits.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Sequence
from dataclasses import field

from codegen.emission.straight import StraightPlan
from codegen.errors import LoweringError
from codegen.functions.lane_table import FORMULAS
from codegen.ir.machine_rows import LEAVES, TRUTHS, Row
from codegen.ir.operations import EXACT, NEGATED, OPERATIONS, in_table
from codegen.lanes import as_float32
from codegen.machine.exports.c_functions import OTHER_SIGN, own_function
from codegen.machine.exports.c_interface import BESSEL, MATH
from codegen.records import dataclass

STACK_NUMBERS = 8192  # a larger workspace is allocated
WORKSPACE = "w_"  # all names that are made here end with _, and no parameter does

PREAMBLE = """\
#ifdef __FAST_MATH__
#error "compile without -ffast-math: it changes the numbers"
#endif
#if FLT_EVAL_METHOD != 0 && FLT_EVAL_METHOD != 16
#error "compile for arithmetic without excess precision (on 32-bit x86: -msse2 -mfpmath=sse)"
#endif
#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#elif defined(__GNUC__)
#pragma GCC optimize ("fp-contract=off")
#endif
"""
MAXIMUM = """
/* the larger number, NaN if either is NaN, +0 above -0 */
static inline {scalar} {prefix}_maximum_({scalar} a, {scalar} b)
{{
    if (isnan(a) || isnan(b)) return a + b;
    if (a == b) return signbit(a) ? b : a;
    return a > b ? a : b;
}}
"""
MINIMUM = """
/* the smaller number, NaN if either is NaN, -0 below +0 */
static inline {scalar} {prefix}_minimum_({scalar} a, {scalar} b)
{{
    if (isnan(a) || isnan(b)) return a + b;
    if (a == b) return signbit(a) ? a : b;
    return a < b ? a : b;
}}
"""
HELPERS = {"llvm.maximum.f64": ("maximum", MAXIMUM), "llvm.minimum.f64": ("minimum", MINIMUM)}
ROUNDED = {"llvm.sin.f64": "sin", "llvm.cos.f64": "cos"}
EXACT_CALLS = {f"llvm.{name}.f64": name for name in EXACT.values()}


def hexadecimal(value: float, scalar: str = "double") -> str:
    """Return a number as C99 text with all its bits; a float is rounded once, and NaN loses its payload.

    >>> hexadecimal(0.1), hexadecimal(-2.0), hexadecimal(0.1, "float"), hexadecimal(float("inf"))
    ('0x1.999999999999ap-4', '-0x1p+1', '0x1.99999ap-4f', 'INFINITY')
    """
    value = as_float32(value) if scalar == "float" else value
    if math.isnan(value):
        return "NAN"
    if math.isinf(value):
        return "INFINITY" if value > 0 else "-INFINITY"
    mantissa, exponent = value.hex().split("p")
    return f"{mantissa.rstrip('0').rstrip('.') if '.' in mantissa else mantissa}p{exponent}{'f' * (scalar == 'float')}"


@dataclass
class Called:
    """Helpers and functions of the C library that the routines of a file call.

    `prefix` begins all names, `scalar` is the C type of numbers. C functions that are rounded more than once are always
    those of double; with `own`, functions with our formulas are written out.
    """

    prefix: str
    scalar: str = "double"
    own: bool = False
    helpers: dict[str, str] = field(default_factory=dict)
    library: dict[str, int] = field(default_factory=dict)

    def call(self, function: str, operands: Sequence[str]) -> str:
        """Return the C expression of a call; LoweringError for a function that C99 does not have."""
        arguments = ", ".join(operands)
        if function in EXACT_CALLS:
            return f"{EXACT_CALLS[function]}{'f' if self.scalar == 'float' else ''}({arguments})"
        if function in HELPERS:
            name, text = HELPERS[function]
            self.helpers[name] = text.format(prefix=self.prefix, scalar=self.scalar)
            return f"{self.prefix}_{name}_({arguments})"
        if self.own and function in FORMULAS:
            name, texts = own_function(function, self.prefix, self.scalar, hexadecimal)
            self.helpers |= {helper: text for helper, text in texts.items() if helper not in self.helpers}
            return f"{name}({arguments})"
        plain = ROUNDED.get(function, function)
        if MATH.get(plain) != len(operands) and plain not in BESSEL:
            raise LoweringError(f"{function} in C source", why="C99 has no such function", do="export the object file")
        self.library[plain] = len(operands)
        return f"{'(float)' if self.scalar == 'float' else ''}{self.prefix}_{plain}_({arguments})"

    def declarations(self) -> str:
        """Return the preamble of the file, with the called functions."""
        feature = "#define _XOPEN_SOURCE 600\n" if any(name in BESSEL for name in self.library) else ""
        pointers = [
            f"static double (*volatile {self.prefix}_{name}_)({', '.join(['double'] * arity)}) = {name};\n"
            for name, arity in sorted(self.library.items())
        ]
        reason = "\n/* called through volatile pointers, so that no compiler puts other formulas in their place */\n"
        includes = "".join(f"#include <{header}.h>\n" for header in ("float", "math", "stdint", "stdlib", "string"))
        helpers = "".join(self.helpers.values())
        return feature + includes + PREAMBLE + (reason if pointers else "") + "".join(pointers) + helpers


def room(kind: str, name: str, size: int, allocation: str = "malloc({bytes})") -> tuple[list[str], list[str]]:
    """Return the C lines that make room for numbers, on the stack if they are few, and those that give it back.

    >>> room("double", "w", 2), room("float", "w", 9000)[1]
    ((['double w[2];'], []), ['free(w);'])
    """
    if size <= STACK_NUMBERS:
        return [f"{kind} {name}[{max(size, 1)}];"], []
    call = allocation.format(bytes=f"{size} * sizeof({kind})", size=size, kind=kind)
    return [f"{kind} *{name} = {call};", f"if ({name} == NULL) return 1;"], [f"free({name});"]


class RoutineWriter:
    """Writes one static C function, which returns 0, or 1 when the workspace could not be allocated.

    `inputs` and `outputs` are names of arrays, with the sizes of inputs.
    """

    def __init__(
        self, called: Called, name: str, plan: StraightPlan, inputs: Sequence[tuple[str, int]], outputs: Sequence[str]
    ) -> None:
        self.called, self.name, self.plan = called, name, plan
        self.places = [(name, k) for name, size in inputs for k in range(size)]
        self.stores: dict[int, list[tuple[str, int]]] = {}
        for array, position, row in plan.lowered.stores:
            self.stores.setdefault(row, []).append((outputs[array], position))
        self.parameters = {name: f"const {called.scalar} *restrict {name}" for name, _ in inputs}
        self.parameters |= {name: f"{called.scalar} *restrict {name}" for name in outputs}
        self.calls: list[str] = []  # of the chunks, in order
        self.used: set[str] = set()  # arrays that the chunk uses
        self.names: dict[int, str] = {}  # values that the chunk has computed

    def text(self) -> str:
        """Return a function for each chunk, and one that calls them in order."""
        parts = [self.chunk(number, chunk) for number, chunk in enumerate(self.plan.order.chunks)]
        return "\n".join([*parts, self.driver()])

    def chunk(self, number: int, chunk: list[int]) -> str:
        """Return the function of one chunk, whose parameters are the arrays that it uses."""
        rows, slots = self.plan.lowered.rows, self.plan.order.slots
        self.used, self.names = set(), {}
        lines = []
        for index in chunk:
            row = rows[index]
            if row[0] not in LEAVES:
                kind, name = ("int", f"t{index}_") if row[0] in TRUTHS else (self.called.scalar, f"v{index}_")
                lines.append(f"const {kind} {name} = {self.expression(row)};")
                self.names[index] = name
            name = self.operand(index)
            targets = [*self.stores.get(index, ()), *([(WORKSPACE, slots[index])] if index in slots else [])]
            for array, position in targets:
                self.used.add(array)
                lines.append(f"{array}[{position}] = {name};")
        parameters = {**self.parameters, WORKSPACE: f"{self.called.scalar} *restrict {WORKSPACE}"}
        used = [name for name in parameters if name in self.used]
        function = f"{self.name}{number}_"
        self.calls.append(f"{function}({', '.join(used)});")
        head = f"static void {function}({', '.join([parameters[name] for name in used]) or 'void'})"
        return "\n".join([head, "{", *[f"    {line}" for line in lines], "}", ""])

    def expression(self, row: Row) -> str:
        """Return the C expression of an operation."""
        operation, parts = in_table(row)
        operands = [self.operand(index) for index in parts]
        for position in NEGATED.get(operation, ()):
            operands[position] = self.negated(parts[position])
        if row[0] == "call":
            return self.called.call(operation, operands)
        if operation in EXACT or operation in NEGATED:
            return self.called.call(f"llvm.{EXACT.get(operation, 'fma')}.f64", operands)
        if operation == "neg":
            return self.negated(parts[0])
        if operation not in OPERATIONS:
            raise LoweringError(f"the operation {row[0]!r} in C source", do="export the object file")
        return OPERATIONS[operation].c.format(*operands, n=self.called.scalar)

    def negated(self, index: int) -> str:
        """Return -v; a fused multiply-add gets the other sign (see `OTHER_SIGN`)."""
        name = self.operand(index)
        if self.plan.lowered.rows[index][0] not in NEGATED:
            return f"-{name}"
        return self.called.call("llvm.copysign.f64", [name, OTHER_SIGN.format(name, self.called.scalar)])

    def operand(self, index: int) -> str:
        """Return the C expression of an operand: a value of this chunk, a constant, an input or a workspace value."""
        name = self.names.get(index)
        if name is not None:
            return name
        row = self.plan.lowered.rows[index]
        if row[0] == "const":
            (value,) = struct.unpack(">d", row[1])
            text = hexadecimal(value, self.called.scalar)
            return f"({text})" if text.startswith("-") else text
        if row[0] in ("true", "false"):
            return "1" if row[0] == "true" else "0"
        slots = self.plan.order.slots
        array, position = self.places[row[1]] if row[0] == "input" else (WORKSPACE, slots[index])
        self.used.add(array)
        return f"({array}[{position}] != 0.0)" if row[0] in TRUTHS else f"{array}[{position}]"

    def driver(self) -> str:
        """Return the function that calls the chunks, with the workspace."""
        size, kind = self.plan.workspace, self.called.scalar
        unused = [name for name in self.parameters if not any(re.search(rf"\b{name}\b", call) for call in self.calls)]
        lines = [f"(void){name};" for name in unused]
        lines += self.calls
        before, after = room(kind, WORKSPACE, size) if size else ([], [])
        lines = [*before, *lines, *after]
        head = f"static int {self.name}({', '.join(self.parameters.values()) or 'void'})"
        return "\n".join([head, "{", *[f"    {line}" for line in lines], "    return 0;", "}", ""])
