"""Kernel routines in a small subset of Python: loops, choices and arrays become LLVM IR.

A routine is a function with annotated parameters: a `real` is a number of the kernel, a `double` one of 64 bits, as an
`int` is; a `bool` is a truth value; `reals`, `doubles`, `ints`, `ints32`, `bytes` and `pointers` are arrays in memory,
`a[k]` is an element and `a[k:]` the array from there on; `ints(a)` reads its memory as another array, and
`room(reals, n)`, outside of loops, is memory of its own. It may assign, count (`for k in range(n)`), repeat (`while`,
`break`), choose (`if`) and return. Whole numbers are signed, but `a >> b` and `below(a, b)` are of unsigned ones. Both
sides of `x if test else y`, of `and` and of `or` are evaluated.

`other(...)` calls a routine of the same library, `library.other(...)` one of another library, and a parameter is called
as a kernel is, or as a function without a result; what has `...` for its body is declared only. Threads share words by
`atomic_load(a)`, `atomic_store(a, n)` (which releases), `atomic_add(a, n)` and `claim(a)`, which acquires a 0 as 1.
`blas.gemm(...)` and `lapack.potrf(...)` are Fortran's: what is no array goes by address, "U" is a character, and
LAPACK's last operand, which says what went wrong, is the result.

Nothing is left to an optimiser: what stands in a loop is computed in it.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping
from functools import cached_property
from typing import NamedTuple

from codegen.functions.routine_values import (
    CLEARED,
    COPIED,
    PAUSE,
    PREFETCHED,
    Expressions,
    Numbers,
    RoutineValue,
    in_ir,
)
from codegen.lanes import Lanes

INTRINSICS = {COPIED: "ptr,ptr,i64,i1", CLEARED: "ptr,i8,i64,i1", PREFETCHED: "ptr,i32,i32,i32", PAUSE: ""}
MOVES = {word: f"declare void @{word}({kinds})" for word, kinds in INTRINSICS.items()}


class Compiled(NamedTuple):
    """The IR of a routine, and the functions that it calls with their numbers of operands."""

    text: str
    calls: dict[str, int]


class Routines:
    """Routines by library, with their constants, which may depend on the number type of a kernel.

    >>> source = "def half(x: reals, k: int) -> real:\\n return HALF * x[k]"
    >>> print(Routines({"array": source}, lambda scalar: {"HALF": 0.5}).compiled("array.half", Lanes()).text)
    define internal double @array.half(ptr %x,i64 %k) nounwind noinline {
    .entry:
     %.1=getelementptr double,ptr %x,i64 %k
     %.2=load double,ptr %.1
     %.3=fmul double 0x3FE0000000000000,%.2
     ret double %.3
    }
    """

    def __init__(self, sources: dict[str, str], numbers: Callable[[str], Numbers]) -> None:
        self._sources, self._numbers = sources, numbers

    @cached_property
    def written(self) -> dict[str, ast.FunctionDef]:
        """Routines as they are written, by their library's name and their own."""
        bodies = [(library, node) for library, source in self._sources.items() for node in ast.parse(source).body]
        functions = [(library, node) for library, node in bodies if isinstance(node, ast.FunctionDef)]
        return {f"{library}.{node.name}".lstrip("."): node for library, node in functions}

    def compiled(self, name: str, scalar: Lanes) -> Compiled:
        """Return a routine for a type of numbers."""
        return _RoutineWriter(self.written, name, scalar, self._numbers(scalar.type)).compiled()

    def text(self, scalar: Lanes, *, public: Collection[str], beside: Collection[str] = ()) -> str:
        """Return all routines as one text without the ones `beside`. The heads of some are public."""
        texts = [self.compiled(name, scalar).text for name in self.written if name not in beside]
        moves = [declared for word, declared in MOVES.items() if any(word in text for text in texts)]
        text = "\n".join([*moves, *texts])
        for head in public:
            text = text.replace(f"define internal {head}", f"define {head}")
        return text


class _RoutineWriter(Expressions):
    """A routine under construction, block by block."""

    def __init__(self, written: Mapping[str, ast.FunctionDef], name: str, scalar: Lanes, numbers: Numbers) -> None:
        super().__init__(written, name, scalar, numbers)
        self.function = written[name]
        self.result = self.result_of(self.function)
        self.label: str | None = ".entry"  # of the block in the making; None behind its end
        self.ways: dict[str, list[tuple[str, dict[str, RoutineValue]]]] = defaultdict(list)  # to blocks that come later
        self.exits: list[str] = []  # of the loops around this place

    def compiled(self) -> Compiled:
        kinds = [self.kind_of(parameter.annotation) for parameter in self.function.args.args]
        if _is_declaration(self.function):
            return Compiled(f"declare {in_ir(self.result)} @{self.name}({','.join(map(in_ir, kinds))}) nounwind", {})
        names = [parameter.arg for parameter in self.function.args.args]
        self.variables = {name: RoutineValue(kind, f"%{name}") for name, kind in zip(names, kinds, strict=True)}
        given = ",".join(value.typed for value in self.variables.values())
        self.carry_out(self.function.body)
        if self.label is not None:
            self.lines.append(" ret void")
        head = f"define internal {in_ir(self.result)} @{self.name}({given}) nounwind noinline {{"
        return Compiled("\n".join([head, ".entry:", *self.memory, *self.lines, "}"]), self.calls)

    # blocks

    def go(self, label: str) -> None:
        """End the current block, if it has not ended, by a jump to another one."""
        if self.label is not None:
            self.lines.append(f" br label %{label}")
            self.ways[label].append((self.label, self.variables))
            self.label = None

    def fork(self, test: RoutineValue, first: str, second: str) -> None:
        """End the current block by a conditional jump."""
        self.lines.append(f" br {test.typed},label %{first},label %{second}")
        for label in (first, second):
            self.ways[label].append((self.label or "", self.variables))

    def begin(self, label: str) -> None:
        """Begin a block, with a phi for each variable whose value differs among the predecessors."""
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
        return [f".{word}{self.count}" for word in words]

    # statements

    def carry_out(self, statements: list[ast.stmt]) -> None:
        for statement in statements:
            if self.label is None:
                self.refuse(statement)
            match statement:
                case ast.Expr(ast.Constant(str())):
                    pass  # a docstring
                case ast.Expr(ast.Call() as call):
                    self.call(call, "void")
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
                    is_pointer = self.result == "ptr"
                    result = (
                        self.call(value, "ptr") if isinstance(value, ast.Call) and is_pointer else self.value(value)
                    )
                    self.lines.append(f" ret {(self.as_int32(result) if self.result == 'i32' else result).typed}")
                    self.label = None
                case _:
                    self.refuse(statement)

    def assign(self, target: ast.expr, value: ast.expr) -> None:
        pairs = [(target, value)]
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
            pairs = list(zip(target.elts, value.elts, strict=True))
        for (to, _), result in zip(pairs, [self.value(expression) for _, expression in pairs], strict=True):
            match to:
                case ast.Name(name):
                    self.set(name, result)
                case ast.Subscript(array, index):
                    self.store(result, self.element(self.value(array), self.value(index)))
                case _:
                    self.refuse(to)

    def choose(self, test: RoutineValue, first: list[ast.stmt], second: list[ast.stmt]) -> None:
        then, otherwise, end = self.labels("then", "else", "end")
        self.fork(test, then, otherwise)
        for label, statements in ((then, first), (otherwise, second)):
            self.begin(label)
            self.carry_out(statements)
            self.go(end)
        self.begin(end)

    def repeat(self, loop: ast.While | ast.For) -> None:
        """Write a loop. Each variable that it changes starts as a phi, which is completed at the end."""
        head, inside, end = self.labels("loop", "body", "after")
        counter, limit = self.counted(loop) if isinstance(loop, ast.For) else ("", RoutineValue("i64", "0"))
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

    def counted(self, loop: ast.For) -> tuple[str, RoutineValue]:
        """Set the counter of a loop to its start; return its name and its end."""
        match loop:
            case ast.For(ast.Name(name), ast.Call(ast.Name("range"), [*start, end])):
                self.set(name, self.value(start[0]) if start else RoutineValue("i64", "0"))
                return name, self.value(end)
        self.refuse(loop.iter)

    def set(self, name: str, value: RoutineValue) -> None:
        self.variables = self.variables | {name: value}  # the ways to other blocks keep what they have


def _phi(name: str, kind: str, ways: list[tuple[str, dict[str, RoutineValue]]]) -> str:
    return f"phi {in_ir(kind)} " + ",".join(f"[{variables[name].text},%{label}]" for label, variables in ways)


def _is_declaration(function: ast.FunctionDef) -> bool:
    match function.body:
        case [ast.Expr(ast.Constant(value))]:
            return value is ...
    return False
