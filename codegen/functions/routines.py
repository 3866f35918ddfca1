"""Routines of kernels, written in a few words of Python: loops, choices and arrays of numbers become LLVM IR.

A routine is a function with annotated parameters: a `real` is a number of the kernel, an `int` has 64 bits, a `bool` is
a truth value; `reals`, `ints` and `ints32` are arrays in memory, `a[k]` is an element and `a[k:]` the array from there
on. It may assign, count (`for k in range(n)`), repeat (`while`, `break`), choose (`if`) and return. Whole numbers are
signed, but `a >> b` and `below(a, b)` are of unsigned ones. Both sides of `x if test else y`, of `and` and of `or`
are evaluated. `other(...)` calls a routine of the same library, `library.other(...)` one of another library;
`blas.gemm(...)` and `lapack.potrf(...)` are Fortran's: what is no array goes by address, "U" is a character, and
LAPACK's last operand, which says what went wrong, is the result.

Nothing is left to an optimiser: what stands in a loop is computed in it.
"""

from __future__ import annotations

import ast
import math
import struct
from collections import defaultdict
from collections.abc import Callable
from functools import cached_property, reduce
from typing import NamedTuple, NoReturn

from codegen.errors import LoweringError
from codegen.lanes import Lanes

LETTERS = {"double": "d", "float": "s"}  # of BLAS and LAPACK
COPIED = "llvm.memcpy.p0.p0.i64"
CLEARED = "llvm.memset.p0.i64"
_ARITHMETIC: dict[type[ast.operator], tuple[str, str]] = {  # of whole numbers, and of real ones
    ast.Add: ("add", "fadd"), ast.Sub: ("sub", "fsub"), ast.Mult: ("mul", "fmul"),
    ast.BitAnd: ("and", ""), ast.BitOr: ("or", ""), ast.LShift: ("shl", ""), ast.RShift: ("lshr", ""),
}  # fmt: skip
_CONDITIONS: dict[type[ast.cmpop], tuple[str, str]] = {
    ast.Eq: ("eq", "oeq"), ast.NotEq: ("ne", "une"), ast.Lt: ("slt", "olt"), ast.LtE: ("sle", "ole"),
    ast.Gt: ("sgt", "ogt"), ast.GtE: ("sge", "oge"),
}  # fmt: skip


class Value(NamedTuple):
    """A value: its IR type, or "*" and that of its elements for an array, and its text."""

    type: str
    text: str

    @property
    def typed(self) -> str:
        """The value as an operand, with its type."""
        return f"{_in_ir(self.type)} {self.text}"


class Compiled(NamedTuple):
    """The IR of a routine, and the functions that it calls, with how many operands each has."""

    text: str
    calls: dict[str, int]


class Routines:
    """Routines by library, with the numbers that they mention, which may depend on the type of a kernel's numbers.

    >>> source = "def half(x: reals, k: int) -> real:\\n return HALF * x[k]"
    >>> print(Routines({"array": source}, lambda scalar: {"HALF": 0.5}).compiled("array.half", Lanes()).text)
    define internal double @array.half(ptr %x,i64 %k) nounwind noinline {
    entry:
     %.1=getelementptr double,ptr %x,i64 %k
     %.2=load double,ptr %.1
     %.3=fmul double 0x3FE0000000000000,%.2
     ret double %.3
    }
    """

    def __init__(self, sources: dict[str, str], numbers: Callable[[str], dict[str, float]]) -> None:
        self.numbers = numbers
        self._sources = sources

    @cached_property
    def written(self) -> dict[str, ast.FunctionDef]:
        """Routines as they are written, by their library's name and their own."""
        bodies = [(library, node) for library, source in self._sources.items() for node in ast.parse(source).body]
        return {f"{library}.{node.name}": node for library, node in bodies if isinstance(node, ast.FunctionDef)}

    def compiled(self, name: str, scalar: Lanes) -> Compiled:
        """Return a routine for a type of numbers."""
        return _Writer(self, name, scalar).compiled()


def _in_ir(kind: str) -> str:
    return "ptr" if kind.startswith("*") else kind


class _Writer:
    """A routine in the making: a variable is the value that was assigned to it last on the way to this place."""

    def __init__(self, routines: Routines, name: str, scalar: Lanes) -> None:
        self.routines, self.name, self.scalar = routines, name, scalar
        self.kinds = {"int": "i64", "bool": "i1", "ints": "*i64", "ints32": "*i32"}
        self.kinds |= {"real": scalar.type, "reals": f"*{scalar.type}"}
        numbers = routines.numbers(scalar.type) | {"nan": math.nan}
        self.constants = {given: self.number(number) for given, number in numbers.items()}
        self.variables: dict[str, Value] = {}
        self.label: str | None = "entry"  # of the block in the making; None behind its end
        self.ways: dict[str, list[tuple[str, dict[str, Value]]]] = defaultdict(list)  # to blocks that come later
        self.exits: list[str] = []  # of the loops around this place
        self.lines: list[str] = []
        self.memory: list[str] = []  # of what goes by address
        self.calls: dict[str, int] = {}
        self.count = 0

    def compiled(self) -> Compiled:
        function = self.routines.written[self.name]
        parameters = [Value(self.kind_of(each.annotation), f"%{each.arg}") for each in function.args.args]
        self.variables = {value.text[1:]: value for value in parameters}
        self.carry_out(function.body)
        if self.label is not None:
            self.lines.append(" ret void")
        given = ",".join(value.typed for value in parameters)
        head = f"define internal {_in_ir(self.result_of(function))} @{self.name}({given}) nounwind noinline {{"
        return Compiled("\n".join([head, "entry:", *self.memory, *self.lines, "}"]), self.calls)

    def result_of(self, function: ast.FunctionDef) -> str:
        return "void" if function.returns is None else self.kind_of(function.returns)

    def kind_of(self, annotation: ast.expr | None) -> str:
        return self.kinds[annotation.id] if isinstance(annotation, ast.Name) else self.refuse(annotation)

    def refuse(self, node: ast.AST | None) -> NoReturn:
        written = "a parameter without a type" if node is None else ast.unparse(node)
        raise LoweringError(f"{written!r} in the routine {self.name}", why="routines cannot say it", do="report it")

    # blocks

    def go(self, label: str) -> None:
        """End the block in the making, if it has not ended yet: go to another one."""
        if self.label is not None:
            self.lines.append(f" br label %{label}")
            self.ways[label].append((self.label, self.variables))
            self.label = None

    def fork(self, test: Value, first: str, second: str) -> None:
        """End the block in the making: go to one of two."""
        self.lines.append(f" br {test.typed},label %{first},label %{second}")
        for label in (first, second):
            self.ways[label].append((self.label or "", self.variables))

    def begin(self, label: str) -> None:
        """Begin a block with the variables of all ways to it: a phi for what they have different values of."""
        ways = self.ways.pop(label, [])
        self.label = label if ways else None
        if not ways:
            return
        self.lines.append(f"{label}:")
        self.variables = dict(ways[0][1])
        for name, value in ways[0][1].items():
            if not all(name in variables for _, variables in ways):
                del self.variables[name]
            elif any(variables[name] != value for _, variables in ways):
                self.variables[name] = self.put(value.type, _phi(name, value.type, ways))

    def labels(self, *words: str) -> list[str]:
        self.count += 1
        return [f"{word}{self.count}" for word in words]

    # statements

    def carry_out(self, statements: list[ast.stmt]) -> None:
        for statement in statements:
            if self.label is None:
                self.refuse(statement)
            match statement:
                case ast.Expr(ast.Constant(str())):
                    pass  # a docstring
                case ast.Expr(ast.Call() as call):
                    self.call(call)
                case ast.Assign([target], value):
                    self.assign(target, value)
                case ast.AugAssign(ast.Subscript(array, index) as target, operation, value):
                    place = self.element(self.value(array), self.value(index))
                    self.store(self.binary(operation, self.load(place), self.value(value), target), place)
                case ast.AugAssign(ast.Name(name) as target, operation, value):
                    self.set(name, self.binary(operation, self.variables[name], self.value(value), target))
                case ast.If(test, first, second):
                    self.choose(self.value(test), first, second)
                case ast.While() | ast.For():
                    self.repeat(statement)
                case ast.Break():
                    self.go(self.exits[-1])
                case ast.Return(ast.expr() as value):
                    self.lines.append(f" ret {self.value(value).typed}")
                    self.label = None
                case _:
                    self.refuse(statement)

    def assign(self, target: ast.expr, value: ast.expr) -> None:
        pairs = [(target, value)]
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
            pairs = list(zip(target.elts, value.elts, strict=True))
        for (to, _), found in zip(pairs, [self.value(each) for _, each in pairs], strict=True):
            match to:
                case ast.Name(name):
                    self.set(name, found)
                case ast.Subscript(array, index):
                    self.store(found, self.element(self.value(array), self.value(index)))
                case _:
                    self.refuse(to)

    def choose(self, test: Value, first: list[ast.stmt], second: list[ast.stmt]) -> None:
        then, otherwise, end = self.labels("then", "else", "end")
        self.fork(test, then, otherwise)
        for label, statements in ((then, first), (otherwise, second)):
            self.begin(label)
            self.carry_out(statements)
            self.go(end)
        self.begin(end)

    def repeat(self, loop: ast.While | ast.For) -> None:
        """Repeat: what the loop changes begins with a phi, which is known when its end is."""
        head, inside, end = self.labels("loop", "body", "after")
        counter, limit = self.counted(loop) if isinstance(loop, ast.For) else ("", Value("i64", "0"))
        nodes = [node for node in ast.walk(loop) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]
        changed = {node.id for node in nodes} & self.variables.keys()
        self.go(head)
        ways = self.ways.pop(head)
        self.lines.append(f"{head}:")
        self.label, at = head, len(self.lines)
        phis = {name: self.put(value.type, "") for name, value in self.variables.items() if name in changed}
        self.variables = self.variables | phis
        test = self.compare("slt", "", self.variables[counter], limit) if counter else None
        self.fork(test or self.value(loop.test), inside, end)  # type: ignore[union-attr]
        self.begin(inside)
        self.exits.append(end)
        self.carry_out(loop.body)
        if counter and self.label is not None:
            self.set(counter, self.put("i64", f"add {phis[counter].typed},1"))
        self.go(head)
        ways += self.ways.pop(head, [])
        for k, (name, phi) in enumerate(phis.items()):
            self.lines[at + k] = f" {phi.text}={_phi(name, phi.type, ways)}"
        self.begin(self.exits.pop())

    def counted(self, loop: ast.For) -> tuple[str, Value]:
        """Set the counter of a loop to its start; return its name and its end."""
        match loop:
            case ast.For(ast.Name(name), ast.Call(ast.Name("range"), [*start, end])):
                self.set(name, self.value(start[0]) if start else Value("i64", "0"))
                return name, self.value(end)
        self.refuse(loop.iter)

    def set(self, name: str, value: Value) -> None:
        self.variables = self.variables | {name: value}  # the ways to other blocks keep what they have

    # values

    def put(self, kind: str, text: str) -> Value:
        """Write an operation down; return its value."""
        self.count += 1
        self.lines.append(f" %.{self.count}={text}")
        return Value(kind, f"%.{self.count}")

    def number(self, number: float) -> Value:
        if isinstance(number, int):
            return Value("i64", str(number))
        return Value(self.scalar.type, self.scalar.constant(struct.pack(">d", number)))

    def value(self, node: ast.expr) -> Value:
        match node:
            case ast.Name(name):
                return self.variables[name] if name in self.variables else self.constants[name]
            case ast.Constant(bool() as truth):
                return Value("i1", str(truth).lower())
            case ast.Constant(int() | float() as number):
                return self.number(number)
            case ast.Constant(str() as letter):
                return Value("i8", str(ord(letter)))
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
                chosen, *either = (self.value(each) for each in (test, first, second))
                return self.put(either[0].type, f"select {chosen.typed},{either[0].typed},{either[1].typed}")
            case ast.Subscript(array, ast.Slice(ast.expr() as start, None, None)):
                return self.element(self.value(array), self.value(start))
            case ast.Subscript(array, index):
                return self.load(self.element(self.value(array), self.value(index)))
            case ast.Call():
                return self.call(node)
        self.refuse(node)

    def unary(self, operation: ast.unaryop, operand: Value, node: ast.expr) -> Value:
        match operation, operand.type:
            case ast.USub(), "i64":
                return self.put("i64", f"sub i64 0,{operand.text}")
            case ast.USub(), _:
                return self.put(operand.type, f"fneg {operand.typed}")
            case (ast.Invert(), "i64") | (ast.Not(), "i1"):
                return self.put(operand.type, f"xor {operand.typed},-1")
        self.refuse(node)

    def binary(self, operation: ast.operator, left: Value, right: Value, node: ast.expr) -> Value:
        word = _ARITHMETIC.get(type(operation), ("", ""))[left.type != "i64"]
        if left.type != right.type or not word:
            self.refuse(node)
        return self.put(left.type, f"{word} {left.typed},{right.text}")

    def compare(self, whole: str, real: str, left: Value, right: Value) -> Value:
        word = f"icmp {whole}" if left.type == "i64" else f"fcmp {real}"
        return self.put("i1", f"{word} {left.typed},{right.text}")

    # memory and calls

    def element(self, array: Value, index: Value) -> Value:
        return self.put(array.type, f"getelementptr {array.type[1:]},{array.typed},{index.typed}")

    def load(self, place: Value) -> Value:
        kind = place.type[1:]
        found = self.put(kind, f"load {kind},{place.typed}{_alignment(kind)}")
        return self.put("i64", f"sext {found.typed} to i64") if kind == "i32" else found

    def store(self, value: Value, place: Value) -> None:
        self.lines.append(f" store {value.typed},{place.typed}{_alignment(value.type)}")

    def call(self, node: ast.Call) -> Value:
        given = [self.value(each) for each in node.args]
        match node.func:
            case ast.Name(word):
                name = f"{self.name.split('.')[0]}.{word}"
                return self.routine(name, given) if name in self.routines.written else self.word(word, given, node)
            case ast.Attribute(ast.Name("blas" | "lapack" as library), word):
                return self.fortran(f"{library}.{LETTERS[self.scalar.type]}{word}", given)
            case ast.Attribute(ast.Name(library), word):
                return self.routine(f"{library}.{word}", given)
        self.refuse(node)

    def routine(self, name: str, given: list[Value]) -> Value:
        return self.put_call(self.result_of(self.routines.written[name]), name, *given)

    def put_call(self, kind: str, name: str, *given: Value) -> Value:
        self.calls[name] = len(given)
        text = f"call {_in_ir(kind)} @{name}({','.join(value.typed for value in given)})"
        if kind != "void":
            return self.put(kind, text)
        self.lines.append(f" {text}")
        return Value("void", "")

    def word(self, word: str, given: list[Value], node: ast.Call) -> Value:
        """Carry out what any routine may call: conversions, functions, memory that is copied or cleared."""
        kind, whole = self.scalar.type, f"i{8 * self.scalar.size}"
        match word, given:
            case "int", [number]:
                return self.put("i64", f"fptosi {number.typed} to i64")
            case "real", [number]:
                return self.put(kind, f"sitofp {number.typed} to {kind}")
            case "bits", [number]:
                found = self.put(whole, f"bitcast {number.typed} to {whole}")
                return found if whole == "i64" else self.put("i64", f"sext {found.typed} to i64")
            case "below", [left, right]:
                return self.compare("ult", "", left, right)
            case "log", [number]:
                return self.put_call(kind, "log" if kind == "double" else f"lanes.log.{self.scalar.suffix}", number)
            case "fabs" | "copysign", _:
                return self.put_call(kind, f"llvm.{word}.{self.scalar.suffix}", *given)
            case "copy" | "clear", [to, *origin, count]:
                size = self.put("i64", f"mul {count.typed},{8 if to.type == '*i64' else self.scalar.size}")
                moved = [to, *(origin or [Value("i8", "0")]), size, Value("i1", "false")]
                return self.put_call("void", COPIED if origin else CLEARED, *moved)
        self.refuse(node)

    def fortran(self, name: str, given: list[Value]) -> Value:
        """Call a routine of BLAS or LAPACK; what is stored for it is at the same address in every call."""
        places: dict[Value, Value] = {}
        for value in given:
            if not value.type.startswith("*") and value not in places:
                stored = self.put("i32", f"trunc {value.typed} to i32") if value.type == "i64" else value
                places[value] = self.reserved(stored.type)
                self.lines.append(f" store {stored.typed},{places[value].typed}")
        operands = [places.get(value, value) for value in given]
        if name.startswith("blas."):
            return self.put_call("void", name, *operands)
        self.put_call("void", name, *operands, info := self.reserved("i32"))
        return self.load(info)

    def reserved(self, kind: str) -> Value:
        self.count += 1
        self.memory.append(f" %m{self.count}=alloca {kind}")
        return Value(f"*{kind}", f"%m{self.count}")


def _alignment(kind: str) -> str:
    """Whole numbers of 64 bits also stand between floats of 32 bits."""
    return ",align 4" if kind == "i64" else ""


def _phi(name: str, kind: str, ways: list[tuple[str, dict[str, Value]]]) -> str:
    return f"phi {_in_ir(kind)} " + ",".join(f"[{variables[name].text},%{label}]" for label, variables in ways)
