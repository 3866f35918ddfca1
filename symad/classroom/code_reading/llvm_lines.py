"""Execute lines of LLVM IR, scalar and vector, on numbers or on formulas.

A line that is not carried out (a branch, a comparison of formulas, an unknown function) has no value. Lines that use it
have none either, or have a formula in the name of its register.
"""

from __future__ import annotations

import operator
import re
import struct
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import sympy as sp

from codegen.records import dataclass

Lane = Any  # a value of one lane, None if unknown
Lanes = tuple[Lane, ...]

_ASSIGNED = re.compile(r"(%[\w.]+)\s*=\s*(.*)")
_OPERAND = re.compile(r"%[\w.]+|0x[0-9A-F]{16}|<double [^>]*>|zeroinitializer|poison|undef")
_WIDTH = re.compile(r"<(\d+) x double>")
_INDEX = re.compile(r"i32 (\d+)$")
_CALLED = re.compile(r"@(?:llvm\.|symad\.)?(\w+)")
_HEAD = re.compile(r"define internal void @kernel\.0\(")
_KINDS = {
    "load": "from memory", "store": "to memory", "fadd": "+", "fsub": "-", "fmul": "×", "fdiv": "÷", "fneg": "sign",
    "getelementptr": "address", "insertelement": "into a lane", "extractelement": "out of a lane",
    "shufflevector": "between lanes", "extractvalue": "one of two", "fcmp": "comparison", "select": "choice",
    "br": "branch", "phi": "carried", "ret": "back",
}  # fmt: skip
_ARITHMETIC: dict[str, Callable[..., Any]] = {
    "fadd": operator.add, "fsub": operator.sub, "fmul": operator.mul, "fdiv": operator.truediv, "fneg": operator.neg,
    "fma": lambda a, b, c: a * b + c, "fmuladd": lambda a, b, c: a * b + c,
}  # fmt: skip
_OF_NUMBERS: dict[str, Callable[..., Any]] = {
    **_ARITHMETIC, **{relation: getattr(operator, relation) for relation in ("gt", "ge", "lt", "le", "eq", "ne")},
    "select": np.where, "sqrt": np.sqrt, "fabs": np.abs,
    "exp": np.exp, "expm1": np.expm1, "exp2": np.exp2, "log": np.log, "log1p": np.log1p, "log2": np.log2,
    "log10": np.log10, "sin": np.sin, "cos": np.cos, "tan": np.tan, "asin": np.arcsin, "acos": np.arccos,
    "atan": np.arctan, "atan2": np.arctan2, "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh, "asinh": np.arcsinh,
    "acosh": np.arccosh, "atanh": np.arctanh, "pow": np.power, "cbrt": np.cbrt, "hypot": np.hypot,
    "copysign": np.copysign, "floor": np.floor, "ceil": np.ceil, "trunc": np.trunc, "rint": np.rint,
    "nearbyint": np.rint, "maxnum": np.fmax, "minnum": np.fmin, "maximum": np.maximum, "minimum": np.minimum,
}  # fmt: skip


@dataclass(frozen=True)
class RegisterValues:
    """How registers are evaluated: the form of numbers, functions by name, and unknown registers."""

    number: Callable[[float], Any]
    function: Callable[[str], Callable[..., Any] | None]
    unknown: Callable[[str], Any]


def _of_formulas(name: str) -> Callable[..., Any] | None:
    function = _ARITHMETIC.get(name) or {"sqrt": sp.sqrt, "fabs": sp.Abs}.get(name) or getattr(sp, name, None)
    return function if name in _ARITHMETIC or isinstance(function, sp.FunctionClass) or function is sp.sqrt else None


NUMBERS = RegisterValues(float, _OF_NUMBERS.get, lambda register: None)
FORMULAS = RegisterValues(
    sp.Rational, _of_formulas, lambda register: sp.Symbol(f"r_{register.removeprefix('%')}", real=True)
)


def body_of(text: str) -> list[str]:
    """Return the lines of the first function of a kernel's IR, without head and end.

    >>> body_of("define internal void @kernel.0(ptr) {\\nret void\\n}")
    ['ret void']
    """
    lines = text.split("\n")
    first, last = ends(lines)
    return lines[first + 1 : last]


def ends(lines: Sequence[str]) -> tuple[int, int]:
    """Return the line numbers of the head and the end of the first function."""
    first = next(k for k, line in enumerate(lines) if _HEAD.match(line))
    return first, next(k for k in range(first, len(lines)) if lines[k].startswith("}"))


def kind_of_ir(line: str) -> str:
    """Return the effect of a line of IR in a word.

    >>> kind_of_ir("%6=fmul double %5,%5"), kind_of_ir("%9=call double @symad.exp.f64(double %8)")
    ('×', 'exp')
    """
    operation = line.partition("=")[2] if re.match(r"%[\w.]+\s*=", line) else line
    opcode = operation.split(" ")[0]
    called = _CALLED.search(operation) if opcode == "call" else None
    return called[1] if called else _KINDS.get(opcode, opcode)


class Machine:
    """The registers of straight-line IR. `inputs` has the values of each argument's elements.

    >>> machine = Machine([[np.array([2.0, 3.0])]])
    >>> [machine.line(text) for text in ("%3=load double,ptr %0,align 8", "%4=fmul double %3,%3")][-1]
    (array([4., 9.]),)
    """

    def __init__(self, inputs: Sequence[Sequence[Any]], values: RegisterValues = NUMBERS) -> None:
        self.inputs, self.values = {f"%{k}": list(part) for k, part in enumerate(inputs)}, values
        self.places: dict[str, tuple[str, int]] = {}
        self.registers: dict[str, Lanes] = {}

    def line(self, text: str) -> Lanes:
        """Carry out a line. Return its computed or stored values, one for each lane, none if there are none."""
        assigned = _ASSIGNED.match(text.strip())
        name, operation = (assigned[1], assigned[2]) if assigned else ("", text.strip())
        opcode = operation.split(" ")[0]
        if opcode == "getelementptr":
            self.places[name] = (_OPERAND.findall(operation)[0], int(operation.rpartition(" ")[2]))
            return ()
        with np.errstate(all="ignore"):
            lanes = self._computed(opcode, operation)
        lanes = tuple(self.values.unknown(name) if lane is None else lane for lane in lanes)
        if name:
            self.registers[name] = lanes
        return lanes

    def _computed(self, opcode: str, operation: str) -> Lanes:
        operands = _OPERAND.findall(operation)
        if opcode == "load":
            return self._loaded(operands[0], _width(operation))
        if opcode == "store":
            return self._value(operands[0], _width(operation))
        if opcode in ("fadd", "fsub", "fmul", "fdiv", "fneg", "select"):
            return self._each(opcode, operands, _width(operation))
        if opcode == "fcmp":
            return self._each(operation.split(" ")[1][1:], operands, _width(operation))
        if opcode == "extractvalue":
            both = self._value(operands[0], 0)
            half, part = len(both) // 2, int(operation.rpartition(",")[2])
            return both[part * half : (part + 1) * half]
        if opcode == "call":
            return self._called(operation, _width(operation))
        if opcode in ("insertelement", "extractelement", "shufflevector"):
            return self._moved(opcode, operation, operands)
        return ()

    def _loaded(self, pointer: str, width: int) -> Lanes:
        base, start = self.places.get(pointer, (pointer, 0))
        numbers = self.inputs.get(base, [])
        return tuple(numbers[k] if k < len(numbers) else None for k in range(start, start + width))

    def _called(self, operation: str, width: int) -> Lanes:
        if (called := _CALLED.search(operation)) is None:
            return ()
        operands = _OPERAND.findall(operation[called.end() :])
        if called[1] == "sincos":
            return self._each("sin", operands, width) + self._each("cos", operands, width)
        return self._each(called[1], operands, width)

    def _moved(self, opcode: str, operation: str, operands: list[str]) -> Lanes:
        width = _width(operation)
        vector = self._value(operands[0], width)
        index = _INDEX.search(operation)
        if opcode == "shufflevector":
            lanes = vector + self._value(operands[1], width)
            mask = operation.rpartition("x i32> ")[2]
            count = int(re.findall(r"<(\d+) x i32>", operation)[-1])
            picked = [0] * count if mask == "zeroinitializer" else [int(k) for k in re.findall(r"i32 (\d+)", mask)]
            return tuple(lanes[k] if k < len(lanes) else None for k in picked)
        if index is None or int(index[1]) >= len(vector):
            return ()
        if opcode == "extractelement":
            return (vector[int(index[1])],)
        put = (self._value(operands[1], 1) or (None,))[0]
        return tuple(put if k == int(index[1]) else lane for k, lane in enumerate(vector))

    def _each(self, name: str, operands: Sequence[str], width: int) -> Lanes:
        function = self.values.function(name)
        values = [self._value(operand, width) for operand in operands]
        if function is None or any(len(value) != width for value in values):
            return (None,) * width
        lanes = zip(*values, strict=True)
        return tuple(None if any(part is None for part in lane) else function(*lane) for lane in lanes)

    def _value(self, operand: str, width: int) -> Lanes:
        if operand in self.registers:
            return self.registers[operand]
        if operand.startswith(("0x", "<")):
            written = re.findall(r"0x([0-9A-F]{16})", operand)
            numbers = tuple(self.values.number(struct.unpack(">d", bytes.fromhex(digits))[0]) for digits in written)
            return numbers * (width if operand.startswith("0x") else 1)
        return (self.values.number(0.0) if operand == "zeroinitializer" else self.values.unknown(operand),) * width


def _width(operation: str) -> int:
    """Return the number of lanes of an operation's first type."""
    match = _WIDTH.search(operation)
    first = operation.find(" double")
    return int(match[1]) if match and (first < 0 or match.start() <= first) else 1
