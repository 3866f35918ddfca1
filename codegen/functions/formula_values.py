"""Number classes for formulas. A formula is written once; the class of its numbers decides what it produces.

With a `MachineNumber` an operation is one of a machine: a row of the machine table (`codegen.ir.machine_rows`), or the
same constructor carried out at once on floats or columns (`codegen.functions.function_rows`). Formulas of lane
functions have numbers of their own (`codegen.functions.lane_values`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any, Self, TypeVar


class Number(ABC):
    """Base class of the numbers of formulas. An operand may be a float, which is a constant."""

    __slots__ = ()

    @abstractmethod
    def put(self, operation: str, *operands: Self | float) -> Self:
        """Return an operation whose first operand is this number."""

    @abstractmethod
    def compare(self, condition: str, other: Self | float) -> Self:
        """Return a comparison, by an LLVM condition; it is false for nan, except `une` and `uge`."""

    @abstractmethod
    def constant(self, value: float) -> Self:
        """Return a constant."""

    def __add__(self, other: Self | float) -> Self:
        return self.put("add", other)

    def __radd__(self, other: float) -> Self:
        return self.constant(other) + self

    def __sub__(self, other: Self | float) -> Self:
        return self.put("sub", other)

    def __rsub__(self, other: float) -> Self:
        return self.constant(other) - self

    def __mul__(self, other: Self | float) -> Self:
        return self.put("mul", other)

    def __rmul__(self, other: float) -> Self:
        return self.constant(other) * self

    def __truediv__(self, other: Self | float) -> Self:
        return self.put("div", other)

    def __rtruediv__(self, other: float) -> Self:
        return self.constant(other) / self

    def __neg__(self) -> Self:
        return self.put("negate")

    def __abs__(self) -> Self:
        return self.put("abs")

    def __lt__(self, other: Self | float) -> Self:
        return self.compare("olt", other)

    def __le__(self, other: Self | float) -> Self:
        return self.compare("ole", other)

    def __gt__(self, other: Self | float) -> Self:
        return self.compare("ogt", other)

    def __ge__(self, other: Self | float) -> Self:
        return self.compare("oge", other)

    def equals(self, other: Self | float) -> Self:
        """Whether two numbers are equal."""
        return self.compare("oeq", other)


N = TypeVar("N", bound=Number)


def where(test: N, first: N | float, second: N | float) -> N:
    """The first value where a test holds, else the second one."""
    return test.put("select", first, second)


def horner(coefficients: Sequence[float], x: N) -> N:
    """c0 + c1 x + c2 x**2 + ..., from the last coefficient on."""
    *others, last = coefficients
    return reduce(lambda total, coefficient: total * x + coefficient, reversed(others), x.constant(last))


class MachineNumber(Number):
    """A number that a machine computes, as a reference into its writer.

    >>> from codegen.ir.machine_rows import Machine
    >>> machine = Machine()
    >>> x = MachineNumber(machine, machine.input(0))
    >>> (-x * x / x).reference, machine.rows
    (-3, [('input', 0), ('mul', 0, 0), ('div', 1, 0)])
    """

    __slots__ = ("machine", "reference")

    machine: Any
    reference: Any

    def __init__(self, machine: Any, reference: Any) -> None:
        self.machine, self.reference = machine, reference

    def constant(self, value: float) -> MachineNumber:
        return self._made(self.machine.const(value))

    def put(self, operation: str, *operands: MachineNumber | float) -> MachineNumber:
        machine = self.machine  # here, and not by the methods below: most of the time of a formula goes by here
        references = [part.reference if isinstance(part, MachineNumber) else machine.const(part) for part in operands]
        return MachineNumber(machine, getattr(machine, operation)(self.reference, *references))

    def compare(self, condition: str, other: MachineNumber | float) -> MachineNumber:
        return self._made(self.machine.compare(condition, self.reference, *self._references([other])))

    def call(self, symbol: str, *others: MachineNumber | float) -> MachineNumber:
        """Return a function of the C library, or of SciPy, by the symbol that kernels use."""
        return self._made(self.machine.call(symbol, [self.reference, *self._references(others)]))

    @property
    def known(self) -> float | None:
        """The value of a constant, None for anything else."""
        value: float | None = self.machine.constant(self.reference)
        return value

    def __and__(self, other: MachineNumber) -> MachineNumber:
        return self._logic("and", other)

    def __or__(self, other: MachineNumber) -> MachineNumber:
        return self._logic("or", other)

    def __xor__(self, other: MachineNumber) -> MachineNumber:
        return self._logic("xor", other)

    def _logic(self, operation: str, other: MachineNumber) -> MachineNumber:
        return self._made(self.machine.logic(operation, self.reference, other.reference))

    def _made(self, reference: Any) -> MachineNumber:
        return MachineNumber(self.machine, reference)

    def _references(self, operands: Sequence[MachineNumber | float]) -> list[Any]:
        const = self.machine.const
        return [operand.reference if isinstance(operand, MachineNumber) else const(operand) for operand in operands]


Formula = Callable[..., MachineNumber]


def lowering(formula: Formula) -> Callable[..., Any]:
    """Return a formula as a function of a machine and of references there.

    >>> from codegen.functions.function_rows import FLOATS
    >>> lowering(lambda u: 1.0 / u)(FLOATS, -0.0)
    -inf
    """

    def lower(machine: Any, *operands: Any) -> Any:
        return formula(*[MachineNumber(machine, operand) for operand in operands]).reference

    return lower


def scipy(name: str, *operands: MachineNumber, output: int = 0) -> MachineNumber:
    """A ufunc of SciPy: its `output`-th result."""
    return operands[0].call(f"scipy.{name}.{len(operands)}.{output}", *operands[1:])


def _function(symbol: str) -> Formula:
    return lambda first, *others: first.call(symbol, *others)


atan2: Formula = _function("atan2")
atanh: Formula = _function("atanh")
copysign: Formula = _function("llvm.copysign.f64")
cos: Formula = _function("llvm.cos.f64")
cosh: Formula = _function("cosh")
exp: Formula = _function("exp")
expm1: Formula = _function("expm1")
floor: Formula = _function("llvm.floor.f64")
fma: Formula = _function("llvm.fma.f64")
fmod: Formula = _function("fmod")
gamma: Formula = _function("tgamma")
hypot: Formula = _function("hypot")
lgamma: Formula = _function("lgamma")
log: Formula = _function("log")
log1p: Formula = _function("log1p")
pow: Formula = _function("pow")
sin: Formula = _function("llvm.sin.f64")
sinh: Formula = _function("sinh")
tan: Formula = _function("tan")


def sqrt(u: MachineNumber) -> MachineNumber:
    """Square root; nan of a negative number."""
    return u.put("sqrt")


def reciprocal(u: MachineNumber) -> MachineNumber:
    """1/u, shared by all its uses."""
    return u.put("reciprocal")


def maximum(u: MachineNumber, v: MachineNumber | float) -> MachineNumber:
    """The larger number; nan if either is nan."""
    return u.put("maximum", v)


def minimum(u: MachineNumber, v: MachineNumber | float) -> MachineNumber:
    """The smaller number; nan if either is nan."""
    return u.put("minimum", v)
