"""Call a function on all lanes: by a formula of `codegen.functions.lane_table`, or by the C library lane by lane.

With formulas no library is called: hard arguments of a formula go to another function of ours, of all lanes or of one
number. So the text at one lane is also that of a GPU, and has the same bits there.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import cache

from codegen.functions.lane_formats import DOUBLE, SINGLE
from codegen.functions.lane_formulas import sine_and_cosine
from codegen.functions.lane_table import FORMULAS
from codegen.functions.lane_values import LaneOperationWriter, LaneValue
from codegen.functions.libraries import vector_symbol
from codegen.functions.symbols import Symbol, symbol
from codegen.ir.machine_rows import Row, code_of
from codegen.ir.operations import EXACT, OPERATIONS
from codegen.lanes import SCALAR, Lanes
from codegen.processor import has_fma
from codegen.stages import allowed

SINE_AND_COSINE = ("llvm.sin.f64", "llvm.cos.f64")


@cache
def in_ir(operation: str, lanes: Lanes) -> str:
    """Return how LLVM writes an operation on lanes, with places for the operands.

    >>> in_ir("olt", Lanes(4))
    'fcmp olt <4 x double> {0},{1}'
    """
    types = {"n": lanes.type, "w": lanes.word, "t": lanes.truth, "true": lanes.splat("true", "i1")}
    return OPERATIONS[operation].llvm.format("{0}", "{1}", "{2}", **types)


class LaneWriter(LaneOperationWriter):
    """Writes IR on lanes; `needed` are the functions that it calls."""

    lanes: Lanes

    def __init__(self, lanes: Lanes, operands: int = 1) -> None:
        self.lanes, self.format = lanes, SINGLE if lanes.scalar == "float" else DOUBLE
        self.operands: list[LaneValue] = [LaneValue(self, f"%x{k}") for k in range(operands)]
        self.types: dict[str, str] = {"n": lanes.type, "w": lanes.word, "t": lanes.truth}
        self.lines: list[str] = []
        self.needed: dict[str, Symbol] = {}

    def number(self, value: float) -> str:
        return self.lanes.constant(struct.pack(">d", value))

    def word(self, value: int) -> str:
        return self.lanes.splat(str(value), f"i{self.format.bits}")

    def put(self, operation: str, operands: Sequence[str]) -> str:
        if operation in EXACT:
            function = symbol(f"llvm.{EXACT[operation]}.{self.lanes.suffix}", len(operands), self.lanes.type)
            return self.call(function, self.lanes.type, operands)
        if operation == "funnel":
            funnel = Symbol("llvm.fshl.i64", "declare i64 @llvm.fshl.i64(i64,i64,i64)")
            return self.call(funnel, self.lanes.word, operands, "w")
        return self.write(in_ir(operation, self.lanes).format(*operands))

    def call(self, function: Symbol, result: str, operands: Sequence[str], kind: str = "n") -> str:
        """Call a function of numbers, or of another kind."""
        self.needed[function.name] = function
        arguments = ",".join(f"{self.types[kind]} {operand}" for operand in operands)
        return self.write(f"call {result} @{function.name}({arguments})")

    def entry(self, name: str, table: Sequence[int], place: str) -> str:
        words = ",".join(f"i64 {entry}" for entry in table)
        self.needed[name] = Symbol(name, f"@{name}=internal constant [{len(table)} x i64] [{words}],align 8")
        return self.write(f"load i64,ptr {self.write(f'getelementptr i64,ptr @{name},i64 {place}')},align 8")

    def write(self, instruction: str) -> str:
        name = f"%v{len(self.lines)}"
        self.lines.append(f"{name}={instruction}")
        return name

    def function(self, name: str, kind: str, end: Sequence[str]) -> tuple[Symbol, ...]:
        """Return the lines as a function with the given end, and then all its callees."""
        parameters = ",".join(f"{self.lanes.type} {operand.text}" for operand in self.operands)
        head = f"define internal {kind} @{name}({parameters}) noinline nounwind{self.lanes.attributes} {{"
        return Symbol(name, "\n".join([head, "begin:", *self.lines, *end, "}"])), *self.needed.values()


def own_functions(rows: Sequence[Row], lanes: Lanes, *, fast: bool) -> bool:
    """Whether operations call the functions here, on this machine; with accuracy "fast", only for several lanes.

    >>> own_functions([("input", 0), ("call", "exp", 0)], SCALAR, fast=True)
    False
    """
    possible = has_fma() and (lanes.width > 1 or not fast)
    return possible and ("call" not in map(code_of, rows) or allowed("lane-functions"))


def own_symbol(function: str, lanes: int) -> str | None:
    """Return the function itself, if it has a formula here: any number of lanes has the bits of one.

    >>> own_symbol("exp", 4), own_symbol("tgamma", 4)
    ('exp', None)
    """
    return function if function in FORMULAS else None


def on_lanes(function: str, arity: int, lanes: Lanes, *, formulas: bool, library: bool) -> tuple[Symbol, ...]:
    """Return the function of all lanes for a function, and then all its callees.

    LLVM's exact operations work on all lanes. With `library`, functions of double are those of the vector libm, with
    `formulas` the formulas here, which need fused multiply-adds; the others call the C library for one lane after the
    other: its functions of double, whose results are rounded to float32.

    >>> [on_lanes("exp", 1, Lanes(4), formulas=own, library=False)[0].name for own in (True, False)]
    ['symad.exp.v4f64', 'lanes.exp.v4f64']
    >>> [on_lanes("exp", 1, SCALAR, formulas=own, library=False)[0].name for own in (True, False)]
    ['symad.exp.f64', 'exp']
    """
    if function.startswith("llvm.") and function not in SINE_AND_COSINE:
        return (symbol(function.removesuffix("f64") + lanes.suffix, arity, lanes.type),)
    vector = vector_symbol(function, lanes.width) if library and lanes.scalar == "double" else None
    if vector is not None:
        return (symbol(vector, arity, lanes.type),)
    if formulas and function in FORMULAS:
        return lane_function(function, lanes)
    if lanes == SCALAR:
        return (symbol(function, arity),)
    return lane_call(function, arity, lanes), symbol(function, arity)


@cache
def lane_function(function: str, lanes: Lanes) -> tuple[Symbol, ...]:
    """Return the function of lanes that computes `function`, and then all its callees.

    >>> lane_function("exp", Lanes(4))[0].name, lane_function("exp", Lanes(1, "float"))[0].name
    ('symad.exp.v4f64', 'symad.exp.f32')
    """
    formula = FORMULAS[function]
    writer = LaneWriter(lanes, formula.operands)
    (result,) = _with_hard(writer, (function,), [formula.formula(*writer.operands).text])
    return writer.function(f"symad.{_plain(function)}.{lanes.suffix}", lanes.type, [f"ret {lanes.type} {result}"])


@cache
def hard_function(function: str, lanes: Lanes) -> tuple[Symbol, ...]:
    """Return the function for hard arguments of the formula of `function`, and then all its callees.

    >>> [called.name for called in hard_function("llvm.sin.f64", Lanes(4))[:2]], hard_function("exp", Lanes(4))[0].name
    (['lanes.symad.sin.hard.f64.v4f64', 'symad.sin.hard.f64'], 'symad.exp.hard.v4f64')
    """
    formula = FORMULAS[function]
    assert formula.hard is not None
    own = SCALAR if formula.hard.alone else lanes
    writer = LaneWriter(own, formula.operands)
    result = formula.hard.formula(*writer.operands).text
    name = f"symad.{_plain(function)}.hard.{own.suffix}"
    symbols = writer.function(name, own.type, [f"ret {own.type} {result}"])
    return symbols if own == lanes else (lane_call(name, formula.operands, lanes), *symbols)


def _plain(function: str) -> str:
    return function.removeprefix("llvm.").removesuffix(".f64")


@cache
def sine_and_cosine_of_lanes(lanes: Lanes) -> tuple[Symbol, ...]:
    """Return the function of vectors that computes sine and cosine at once, with the bits of the single functions.

    >>> sine_and_cosine_of_lanes(Lanes(4))[0].name
    'symad.sincos.v4f64'
    """
    writer = LaneWriter(lanes)
    parts = [part.text for part in sine_and_cosine(*writer.operands)]
    sine, cosine = _with_hard(writer, SINE_AND_COSINE, parts)
    kind = pair_of(lanes)
    end = [f"%sine=insertvalue {kind} poison,{lanes.type} {sine},0",
           f"%both=insertvalue {kind} %sine,{lanes.type} {cosine},1", f"ret {kind} %both"]  # fmt: skip
    return writer.function(f"symad.sincos.{lanes.suffix}", kind, end)


def pair_of(lanes: Lanes) -> str:
    return f"{{{lanes.type},{lanes.type}}}"


def angles_of_both(rows: Sequence[Row]) -> set[int]:
    """Return the rows whose sine and cosine are both among the rows.

    >>> angles_of_both([("input", 0), ("call", "llvm.sin.f64", 0), ("call", "llvm.cos.f64", 0)])
    {0}
    """
    angles = [{row[2] for row in rows if row[:2] == ("call", function)} for function in SINE_AND_COSINE]
    return set.intersection(*angles)


def _with_hard(writer: LaneWriter, functions: Sequence[str], results: Sequence[str]) -> Sequence[str]:
    """Replace results of hard arguments, where there are any."""
    lanes, hard, operands = writer.lanes, FORMULAS[functions[0]].hard, [operand.text for operand in writer.operands]
    if hard is None:
        return results
    outside = any_lane = hard.test(*writer.operands).text
    if lanes.width > 1:
        reduce = f"llvm.vector.reduce.or.v{lanes.width}i1"
        any_lane = writer.call(Symbol(reduce, f"declare i1 @{reduce}({lanes.truth})"), "i1", [outside], "t")
    writer.lines += [f"br i1 {any_lane},label %hard,label %end", "hard:"]
    chosen = []
    for function, result in zip(functions, results, strict=True):
        called, *others = hard_function(function, lanes)
        exact = writer.call(called, lanes.type, operands)
        chosen.append(exact if lanes.width == 1 else writer.put("select", [outside, exact, result]))
        writer.needed |= {other.name: other for other in others}
    writer.lines += ["br label %end", "end:"]
    pairs = zip(results, chosen, strict=True)
    return [writer.write(f"phi {lanes.type} [{result},%begin],[{other},%hard]") for result, other in pairs]


@cache
def lane_call(function: str, arity: int, lanes: Lanes) -> Symbol:
    """Return a function of lanes that calls a function of double for one lane after the other.

    A float32 is widened for the call, and the result is rounded once. The vectors go through memory, so that a call
    needs no registers of the caller.

    >>> lane_call("exp", 1, Lanes(8)).name
    'lanes.exp.v8f64'
    """
    name = f"lanes.{function}.{lanes.suffix}"
    operands = range(arity)
    parameters = ",".join(f"{lanes.type} %x{k}" for k in operands)
    if lanes.width == 1:
        return Symbol(name, _widened(name, function, parameters, arity))
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


def _widened(name: str, function: str, parameters: str, arity: int) -> str:
    operands = range(arity)
    lines = [f"define internal float @{name}({parameters}) alwaysinline nounwind {{"]
    lines += [f"%v{k}=fpext float %x{k} to double" for k in operands]
    lines += [f"%value=call double @{function}({','.join(f'double %v{k}' for k in operands)})"]
    return "\n".join([*lines, "%result=fptrunc double %value to float", "ret float %result", "}"])


def _load(name: str, pointer: str, lanes: Lanes) -> list[str]:
    if lanes.scalar == "double":
        return [f"{name}=load double,ptr {pointer},align 8"]
    return [f"{name}.narrow=load float,ptr {pointer},align 4", f"{name}=fpext float {name}.narrow to double"]


def _store(name: str, pointer: str, lanes: Lanes) -> list[str]:
    if lanes.scalar == "double":
        return [f"store double {name},ptr {pointer},align 8"]
    return [f"{name}.narrow=fptrunc double {name} to float", f"store float {name}.narrow,ptr {pointer},align 4"]
