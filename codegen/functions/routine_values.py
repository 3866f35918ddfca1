"""The values of expressions in routines (`codegen.functions.routines`)."""

from __future__ import annotations

import ast
import math
import struct
from collections.abc import Mapping, Sequence
from functools import reduce
from typing import NamedTuple, NoReturn

from codegen.errors import LoweringError
from codegen.lanes import Lanes
from codegen.processor import is_x86_64

LETTERS = {"double": "d", "float": "s"}  # of BLAS and LAPACK
COPIED = "llvm.memcpy.p0.p0.i64"
CLEARED = "llvm.memset.p0.i64"
PREFETCHED = "llvm.prefetch.p0"
PAUSE = "llvm.x86.sse2.pause"
_ARITHMETIC: dict[type[ast.operator], tuple[str, str]] = {  # of whole numbers, and of real ones
    ast.Add: ("add", "fadd"), ast.Sub: ("sub", "fsub"), ast.Mult: ("mul", "fmul"),
    ast.BitAnd: ("and", ""), ast.BitOr: ("or", ""), ast.LShift: ("shl", ""), ast.RShift: ("lshr", ""),
    ast.FloorDiv: ("udiv", ""),
}  # fmt: skip
_CONDITIONS: dict[type[ast.cmpop], tuple[str, str]] = {
    ast.Eq: ("eq", "oeq"), ast.NotEq: ("ne", "une"), ast.Lt: ("slt", "olt"), ast.LtE: ("sle", "ole"),
    ast.Gt: ("sgt", "ogt"), ast.GtE: ("sge", "oge"),
}  # fmt: skip


_SIZES = {"i8": 1, "i32": 4, "i64": 8, "ptr": 8, "float": 4, "double": 8}


Numbers = dict[str, float | str]  # that routines mention; a text is a global


class RoutineValue(NamedTuple):
    """A value: its text and IR type; "*" and the element type for an array."""

    type: str
    text: str

    @property
    def typed(self) -> str:
        """The value as an operand, with its type."""
        return f"{in_ir(self.type)} {self.text}"


def in_ir(kind: str) -> str:
    """Return the IR type of values of a type."""
    return "ptr" if kind.startswith("*") else kind


class Expressions:
    """A routine under construction. A variable is the value last assigned to it."""

    kinds: dict[str, str]
    count: int
    written: Mapping[str, ast.FunctionDef]
    name: str
    scalar: Lanes

    def __init__(self, written: Mapping[str, ast.FunctionDef], name: str, scalar: Lanes, numbers: Numbers) -> None:
        self.written, self.name, self.scalar = written, name, scalar
        arrays = {"bytes": "*i8", "ints": "*i64", "ints32": "*i32", "doubles": "*double", "pointers": "*ptr"}
        self.kinds = {"int": "i64", "int32": "i32", "bool": "i1", "double": "double", "pointer": "ptr", **arrays}
        self.kinds |= {"real": scalar.type, "reals": f"*{scalar.type}"}
        known = numbers | {"nan": math.nan, "inf": math.inf, "null": "null"}
        self.constants: dict[str, RoutineValue] = {given: self.number(number) for given, number in known.items()}
        self.variables: dict[str, RoutineValue] = {}
        self.lines: list[str] = []
        self.memory: list[str] = []  # of what goes by address
        self.calls: dict[str, int] = {}
        self.count = 0

    def result_of(self, function: ast.FunctionDef) -> str:
        return "void" if function.returns is None else self.kind_of(function.returns)

    def kind_of(self, annotation: ast.expr | None) -> str:
        return self.kinds[annotation.id] if isinstance(annotation, ast.Name) else self.refuse(annotation)

    def refuse(self, node: ast.AST | None) -> NoReturn:
        written = "a parameter without a type" if node is None else ast.unparse(node)
        raise LoweringError(f"{written!r} in the routine {self.name}", why="routines cannot say it", do="report it")

    def put(self, kind: str, text: str) -> RoutineValue:
        """Write an operation down; return its value."""
        self.count += 1
        self.lines.append(f" %.{self.count}={text}")
        return RoutineValue(kind, f"%.{self.count}")

    def put_line(self, text: str) -> RoutineValue:
        """Write an operation down that has no value."""
        self.lines.append(f" {text}")
        return RoutineValue("void", "")

    def number(self, number: float | str) -> RoutineValue:
        if isinstance(number, str):
            return RoutineValue("ptr", number)
        if isinstance(number, int):
            return RoutineValue("i64", str(number))
        return RoutineValue(self.scalar.type, self.scalar.constant(struct.pack(">d", number)))

    def value(self, node: ast.expr) -> RoutineValue:
        match node:
            case ast.Name(name):
                known = self.variables.get(name) or self.constants.get(name)
                return known or RoutineValue("ptr", f"@{self.full_name(name)}")  # of another routine
            case ast.Constant(bool() as truth):
                return RoutineValue("i1", str(truth).lower())
            case ast.Constant(int() | float() as number):
                return self.number(number)
            case ast.Constant(str() as letter):
                return RoutineValue("i8", str(ord(letter)))
            case ast.UnaryOp(operation, operand):
                return self.unary(operation, self.value(operand), node)
            case ast.BinOp(left, operation, right):
                return self.binary(operation, self.value(left), self.value(right), node)
            case ast.BoolOp(operator, operands):
                word = "and" if isinstance(operator, ast.And) else "or"
                return reduce(lambda a, b: self.put("i1", f"{word} {a.typed},{b.text}"), map(self.value, operands))
            case ast.Compare(left, [condition], [right]):
                return self.compare(*_CONDITIONS[type(condition)], self.value(left), self.value(right))
            case ast.IfExp(test, first, second):
                chosen, *either = (self.value(part) for part in (test, first, second))
                return self.put(either[0].type, f"select {chosen.typed},{either[0].typed},{either[1].typed}")
            case ast.Subscript(array, ast.Slice(ast.expr() as start, None, None)):
                return self.element(self.value(array), self.value(start))
            case ast.Subscript(array, index):
                return self.load(self.element(self.value(array), self.value(index)))
            case ast.Call():
                return self.call(node)
        self.refuse(node)

    def unary(self, operation: ast.unaryop, operand: RoutineValue, node: ast.expr) -> RoutineValue:
        match operation, operand.type:
            case ast.USub(), "i64":
                return self.put("i64", f"sub i64 0,{operand.text}")
            case ast.USub(), _:
                return self.put(operand.type, f"fneg {operand.typed}")
            case (ast.Invert(), "i64") | (ast.Not(), "i1"):
                return self.put(operand.type, f"xor {operand.typed},-1")
        self.refuse(node)

    def binary(self, operation: ast.operator, left: RoutineValue, right: RoutineValue, node: ast.expr) -> RoutineValue:
        word = _ARITHMETIC.get(type(operation), ("", ""))[left.type != "i64"]
        if left.type != right.type or not word:
            self.refuse(node)
        return self.put(left.type, f"{word} {left.typed},{right.text}")

    def compare(self, whole: str, real: str, left: RoutineValue, right: RoutineValue) -> RoutineValue:
        word = f"fcmp {real}" if left.type in ("double", "float") else f"icmp {whole}"
        return self.put("i1", f"{word} {left.typed},{right.text}")

    # memory

    def element(self, array: RoutineValue, index: RoutineValue) -> RoutineValue:
        return self.put(array.type, f"getelementptr {array.type[1:]},{array.typed},{index.typed}")

    def load(self, place: RoutineValue) -> RoutineValue:
        kind = place.type[1:]
        return self.as_int(self.put(kind, f"load {kind},{place.typed}{_alignment(kind)}"))

    def store(self, value: RoutineValue, place: RoutineValue) -> None:
        value = self.as_int32(value) if place.type == "*i32" else value
        self.lines.append(f" store {value.typed},{place.typed}{_alignment(value.type)}")

    # calls

    def full_name(self, word: str) -> str:
        """Return the name of a routine of the same library."""
        return f"{self.name.rpartition('.')[0]}.{word}".lstrip(".")

    def call(self, node: ast.Call, result: str = "i32") -> RoutineValue:
        """Write a call down; a function that is a variable returns an int of 32 bits, or `result`."""
        match node:
            case ast.Call(ast.Name("room"), [ast.Name(kind), size]):
                return self.put(self.kinds[kind], f"alloca {self.kinds[kind][1:]},{self.value(size).typed},align 8")
        given = [self.value(argument) for argument in node.args]
        match node.func:
            case ast.Name(word) if word in self.variables:
                return self.put_call_of(result, self.variables[word].text, given)
            case ast.Name(word):
                name = self.full_name(word)
                return self.routine(name, given) if name in self.written else self.word(word, given, node)
            case ast.Attribute(ast.Name("blas" | "lapack" as library), word):
                return self.fortran(f"{library}.{LETTERS[self.scalar.type]}{word}", given)
            case ast.Attribute(ast.Name(library), word):
                return self.routine(f"{library}.{word}", given)
        self.refuse(node)

    def routine(self, name: str, given: list[RoutineValue]) -> RoutineValue:
        """Call another routine, or a function that is declared only; C's ints have 32 bits."""
        function = self.written[name]
        kinds = [self.kind_of(parameter.annotation) for parameter in function.args.args]
        operands = [self.as_int32(value) if kind == "i32" else value for kind, value in zip(kinds, given, strict=True)]
        return self.put_call(self.result_of(function), name, *operands)

    def put_call(self, kind: str, name: str, *given: RoutineValue) -> RoutineValue:
        self.calls[name] = len(given)
        return self.put_call_of(kind, f"@{name}", given)

    def put_call_of(self, kind: str, name: str, given: Sequence[RoutineValue]) -> RoutineValue:
        text = f"call {in_ir(kind)} {name}({','.join(value.typed for value in given)})"
        return self.put_line(text) if kind == "void" else self.as_int(self.put(kind, text))

    def word(self, word: str, given: list[RoutineValue], node: ast.Call) -> RoutineValue:
        """Execute a call that any routine may use: conversions, functions, copying and clearing memory."""
        kind, whole = self.scalar.type, f"i{8 * self.scalar.size}"
        match word, given:
            case _, [array] if word in self.kinds and in_ir(array.type) == "ptr":
                return RoutineValue(self.kinds[word], array.text)
            case "address", [array]:
                return self.put("i64", f"ptrtoint {array.typed} to i64")
            case "int", [number]:
                return self.put("i64", f"fptosi {number.typed} to i64")
            case "real" | "double", [number]:
                return self.as_real(number, kind if word == "real" else "double")
            case "bits", [number]:
                return self.as_int(self.put(whole, f"bitcast {number.typed} to {whole}"))
            case "below", [left, right]:
                return self.compare("ult", "", left, right)
            case "log", [number]:
                return self.put_call(kind, "log" if kind == "double" else f"lanes.log.{self.scalar.suffix}", number)
            case "fabs" | "copysign", _:
                return self.put_call(kind, f"llvm.{word}.{self.scalar.suffix}", *given)
            case "copy" | "clear", [to, *origin, count]:
                size = self.put("i64", f"mul {count.typed},{_SIZES[to.type[1:]]}")
                moved = [to, *(origin or [RoutineValue("i8", "0")]), size, RoutineValue("i1", "false")]
                return self.put_call("void", COPIED if origin else CLEARED, *moved)
            case "fence", []:
                return self.put_line("fence seq_cst")
            case "pause", []:
                return self.put_call("void", PAUSE) if is_x86_64() else RoutineValue("void", "")
            case "prefetch", [to]:
                return self.put_call("void", PREFETCHED, to, *(RoutineValue("i32", number) for number in "131"))
            case "atomic_load", [place]:
                return self.put("i64", f"load atomic i64,{place.typed} monotonic,align 8")
            case "atomic_store", [place, number]:
                return self.put_line(f"store atomic {number.typed},{place.typed} release,align 8")
            case "atomic_add", [place, number]:
                return self.put("i64", f"atomicrmw add {place.typed},{number.typed} monotonic")
            case "claim", [place]:
                pair = self.put("{i64,i1}", f"cmpxchg {place.typed},i64 0,i64 1 acquire monotonic")
                return self.put("i1", f"extractvalue {pair.typed},1")
        self.refuse(node)

    def fortran(self, name: str, given: list[RoutineValue]) -> RoutineValue:
        """Call a routine of BLAS or LAPACK. Its arguments have the same address in every call."""
        places: dict[RoutineValue, RoutineValue] = {}
        for value in given:
            if not value.type.startswith("*") and value not in places:
                stored = self.as_int32(value)
                places[value] = self.reserved(stored.type)
                self.lines.append(f" store {stored.typed},{places[value].typed}")
        operands = [places.get(value, value) for value in given]
        if name.startswith("blas."):
            return self.put_call("void", name, *operands)
        self.put_call("void", name, *operands, info := self.reserved("i32"))
        return self.load(info)

    def reserved(self, kind: str) -> RoutineValue:
        self.count += 1
        self.memory.append(f" %.m{self.count}=alloca {kind},align 8")
        return RoutineValue(f"*{kind}", f"%.m{self.count}")

    def as_int(self, value: RoutineValue) -> RoutineValue:
        """Widen a whole number of 32 bits to 64."""
        return self.put("i64", f"sext {value.typed} to i64") if value.type == "i32" else value

    def as_int32(self, value: RoutineValue) -> RoutineValue:
        return self.put("i32", f"trunc {value.typed} to i32") if value.type == "i64" else value

    def as_real(self, value: RoutineValue, kind: str) -> RoutineValue:
        word = {"i64": "sitofp", "double": "fptrunc", "float": "fpext"}[value.type]
        return value if value.type == kind else self.put(kind, f"{word} {value.typed} to {kind}")


def _alignment(kind: str) -> str:
    """Whole numbers of 64 bits also stand between floats of 32 bits."""
    return ",align 4" if kind == "i64" else ""
