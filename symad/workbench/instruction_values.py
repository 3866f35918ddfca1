"""The numbers that lines of LLVM IR compute at a few points: straight-line code, scalars and vectors, carried out.

What a line computes is recognised by these numbers among the values of the graph (`links`). A line that is not carried
out - a branch, a comparison, a function that is not in the table - has none, nor has what is made of it.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]
Lane = Numbers | float | None  # the numbers of one lane at all points, or one for all of them
Lanes = tuple[Lane, ...]

_ASSIGNED = re.compile(r"(%[\w.]+)\s*=\s*(.*)")
_OPERAND = re.compile(r"%[\w.]+|0x[0-9A-F]{16}|<double [^>]*>|zeroinitializer|poison|undef")
_WIDTH = re.compile(r"<(\d+) x double>")
_INDEX = re.compile(r"i32 (\d+)$")
_CALLED = re.compile(r"@(?:llvm\.|symad\.)?(\w+)")
_BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "fadd": np.add, "fsub": np.subtract, "fmul": np.multiply, "fdiv": np.divide,
}  # fmt: skip
_RELATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "gt": np.greater, "ge": np.greater_equal, "lt": np.less, "le": np.less_equal, "eq": np.equal, "ne": np.not_equal,
}  # fmt: skip
_CALLS: dict[str, Callable[..., Any]] = {
    "fma": lambda a, b, c: a * b + c, "fmuladd": lambda a, b, c: a * b + c, "sqrt": np.sqrt, "fabs": np.abs,
    "exp": np.exp, "expm1": np.expm1, "exp2": np.exp2, "log": np.log, "log1p": np.log1p, "log2": np.log2,
    "log10": np.log10, "sin": np.sin, "cos": np.cos, "tan": np.tan, "asin": np.arcsin, "acos": np.arccos,
    "atan": np.arctan, "atan2": np.arctan2, "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh, "asinh": np.arcsinh,
    "acosh": np.arccosh, "atanh": np.arctanh, "pow": np.power, "cbrt": np.cbrt, "hypot": np.hypot,
    "copysign": np.copysign, "floor": np.floor, "ceil": np.ceil, "trunc": np.trunc, "rint": np.rint,
    "nearbyint": np.rint, "maxnum": np.fmax, "minnum": np.fmin, "maximum": np.maximum, "minimum": np.minimum,
}  # fmt: skip


class Machine:
    """The registers of straight-line IR; `inputs` has the numbers of each argument's elements at all points.

    >>> machine = Machine([[np.array([2.0, 3.0])]])
    >>> [machine.line(text) for text in ("%3=load double,ptr %0,align 8", "%4=fmul double %3,%3")][-1]
    (array([4., 9.]),)
    """

    def __init__(self, inputs: Sequence[Sequence[Numbers]]) -> None:
        self.inputs = {f"%{k}": list(part) for k, part in enumerate(inputs)}
        self.places: dict[str, tuple[str, int]] = {}
        self.registers: dict[str, Lanes] = {}

    def line(self, text: str) -> Lanes:
        """Carry out a line; return what it computes or stores, an entry for each lane, none where that is no number."""
        assigned = _ASSIGNED.match(text.strip())
        name, operation = (assigned[1], assigned[2]) if assigned else ("", text.strip())
        opcode = operation.split(" ")[0]
        if opcode == "getelementptr":
            self.places[name] = (_OPERAND.findall(operation)[0], int(operation.rpartition(" ")[2]))
            return ()
        with np.errstate(all="ignore"):
            found = self._computed(opcode, operation)
        if name:
            self.registers[name] = found
        return found

    def _computed(self, opcode: str, operation: str) -> Lanes:
        operands = _OPERAND.findall(operation)
        if opcode == "load":
            return self._loaded(operands[0], _width(operation))
        if opcode == "store":
            return self._value(operands[0], _width(operation))
        if opcode in _BINARY:
            return self._each(_BINARY[opcode], operands, _width(operation))
        if opcode == "fneg":
            return self._each(np.negative, operands, _width(operation))
        if opcode == "fcmp":
            return self._compared(operation.split(" ")[1], operands, _width(operation))
        if opcode == "select":
            return self._each(np.where, operands, _width(operation))
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
        called = _CALLED.search(operation)
        if called is None:
            return ()
        operands = _OPERAND.findall(operation[called.end() :])
        if called[1] == "sincos":
            return self._each(np.sin, operands, width) + self._each(np.cos, operands, width)
        return self._each(_CALLS[called[1]], operands, width) if called[1] in _CALLS else ()

    def _compared(self, relation: str, operands: list[str], width: int) -> Lanes:
        return self._each(_RELATIONS[relation[1:]], operands, width) if relation[1:] in _RELATIONS else ()

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

    def _each(self, function: Callable[..., Any], operands: Sequence[str], width: int) -> Lanes:
        values = [self._value(operand, width) for operand in operands]
        if any(len(value) != width for value in values):
            return ()
        lanes = zip(*values, strict=True)
        return tuple(None if any(part is None for part in lane) else function(*lane) for lane in lanes)

    def _value(self, operand: str, width: int) -> Lanes:
        if operand in self.registers:
            return self.registers[operand]
        if operand.startswith("0x"):
            return (_number(operand),) * width
        if operand.startswith("<"):
            return tuple(_number(part) for part in re.findall(r"0x[0-9A-F]{16}", operand))
        if operand == "zeroinitializer":
            return (0.0,) * width
        return (None,) * width


def _width(operation: str) -> int:
    """Return how many lanes the first type of an operation has."""
    found = _WIDTH.search(operation)
    first = operation.find(" double")
    return int(found[1]) if found and (first < 0 or found.start() <= first) else 1


def _number(written: str) -> float:
    return float(struct.unpack(">d", bytes.fromhex(written[2:]))[0])
