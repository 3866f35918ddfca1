"""Functions of one number on all lanes at once: LLVM IR of the formulas of `codegen.functions.lane_formulas`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache

from codegen.emission.lane_calls import lane_call
from codegen.emission.lanes import Lanes
from codegen.engine import has_fma
from codegen.functions.lane_formulas import FORMULAS
from codegen.functions.lane_values import Value, Writer, bits_of
from codegen.functions.symbols import Symbol, symbol

# {0}, {1}... are the operands, {n} the type of numbers, {w} that of words, {t} that of truth values
OPERATIONS = {
    "add": "fadd {n} {0},{1}", "sub": "fsub {n} {0},{1}", "mul": "fmul {n} {0},{1}", "div": "fdiv {n} {0},{1}",
    "neg": "fneg {n} {0}", "olt": "fcmp olt {n} {0},{1}", "ogt": "fcmp ogt {n} {0},{1}", "oge": "fcmp oge {n} {0},{1}",
    "oeq": "fcmp oeq {n} {0},{1}", "select": "select {t} {0},{n} {1},{n} {2}",
    "bits": "bitcast {n} {0} to {w}", "of_bits": "bitcast {w} {0} to {n}", "iadd": "add {w} {0},{1}",
    "and": "and {w} {0},{1}", "or": "or {w} {0},{1}", "xor": "xor {w} {0},{1}", "shl": "shl {w} {0},{1}",
    "lshr": "lshr {w} {0},{1}", "equal": "icmp eq {w} {0},{1}",
}  # fmt: skip
INTRINSICS = {"abs": ("llvm.fabs", 1), "fma": ("llvm.fma", 3), "copysign": ("llvm.copysign", 2)}


class LaneWriter(Writer):
    """Writes IR on lanes; `needed` are the functions that it calls."""

    def __init__(self, lanes: Lanes) -> None:
        self.lanes = lanes
        self.types = {"n": lanes.type, "w": f"<{lanes.width} x i64>", "t": lanes.truth}
        self.lines: list[str] = []
        self.needed: dict[str, Symbol] = {}

    def number(self, value: float) -> str:
        return self.lanes.splat(f"0x{bits_of(value) % 2**64:016X}")

    def word(self, value: int) -> str:
        return self.lanes.splat(str(value), "i64")

    def put(self, operation: str, operands: Sequence[str]) -> str:
        if operation in INTRINSICS:
            stem, arity = INTRINSICS[operation]
            return self.call(symbol(f"{stem}.{self.lanes.suffix}", arity, self.lanes.type), self.lanes.type, operands)
        return self.write(OPERATIONS[operation].format(*operands, **self.types))

    def call(self, function: Symbol, result: str, operands: Sequence[str], kind: str = "n") -> str:
        """Call a function of numbers, or of another kind."""
        self.needed[function.name] = function
        arguments = ",".join(f"{self.types[kind]} {operand}" for operand in operands)
        return self.write(f"call {result} @{function.name}({arguments})")

    def write(self, instruction: str) -> str:
        name = f"%v{len(self.lines)}"
        self.lines.append(f"{name}={instruction}")
        return name


def on_lanes(function: str, arity: int, lanes: Lanes, *, formulas: bool) -> tuple[Symbol, ...]:
    """Return what computes a function of doubles on all lanes, and then all that it calls.

    With `formulas`, functions that have one here; the others call the C library for one lane after the other, as all do
    on a processor without fused multiply-adds.

    >>> [on_lanes("exp", 1, Lanes(4), formulas=formulas)[0].name for formulas in (True, False)]
    ['symad.exp.v4f64', 'lanes.exp.v4f64']
    """
    if formulas and function in FORMULAS and lanes.scalar == "double" and has_fma():
        return lane_function(function, lanes)
    return lane_call(function, arity, lanes), symbol(function, arity)


@cache
def lane_function(function: str, lanes: Lanes) -> tuple[Symbol, ...]:
    """Return the function of vectors of doubles that computes `function`, and then all that it calls.

    >>> lane_function("exp", Lanes(4))[0].name
    'symad.exp.v4f64'
    """
    found = FORMULAS[function]
    name = f"symad.{function.removeprefix('llvm.').removesuffix('.f64')}.{lanes.suffix}"
    writer = LaneWriter(lanes)
    result = found.formula(Value(writer, "%x")).text
    if found.largest < math.inf:
        result = _or_of_library(writer, function, found.largest, result)
    head = f"define internal {lanes.type} @{name}({lanes.type} %x) noinline nounwind{lanes.attributes} {{"
    text = "\n".join([head, "begin:", *writer.lines, f"ret {lanes.type} {result}", "}"])
    return Symbol(name, text), *writer.needed.values()


def _or_of_library(writer: LaneWriter, function: str, largest: float, result: str) -> str:
    """Ask the C library for the lanes whose arguments are too large, where there is any."""
    lanes = writer.lanes
    outside = (abs(Value(writer, "%x")) >= largest).text
    reduce = f"llvm.vector.reduce.or.v{lanes.width}i1"
    any_lane = writer.call(Symbol(reduce, f"declare i1 @{reduce}({lanes.truth})"), "i1", [outside], "t")
    writer.lines += [f"br i1 {any_lane},label %huge,label %end", "huge:"]
    asked = writer.call(lane_call(function, 1, lanes), lanes.type, ["%x"])
    chosen = writer.put("select", [outside, asked, result])
    writer.needed[function] = symbol(function, 1)
    writer.lines += ["br label %end", "end:"]
    return writer.write(f"phi {lanes.type} [{result},%begin],[{chosen},%huge]")
