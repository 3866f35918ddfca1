"""Four wrong designs of nested derivatives, each small and complete.

Nothing here is part of symad's transforms, and `import symad` does not import it. Each maker below returns a function
`d(f, a)` that gives f'(a) correctly if derivatives are not nested, and a famous wrong number for some nested ones;
tests/symad/derivatives/test_confusion.py has the table, and a fifth: the first two with what makes them right.

| maker | what it leaves out | what goes wrong |
|---|---|---|
| `tagless` | all levels share one epsilon | the inner derivative takes the outer perturbation for its own |
| `shared_tag` | one tag for all uses of a returned function | "amazing bug": its second use meets its own epsilon |
| `no_alias` | the inner parameter is the caller's variable | a captured x and an argument equal to x become one |
| `one_tape` | levels share a tape, its adjoints and its on/off switch | gradients missing, or left over from within |
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import sympy as sp

Derivative = Callable[[Callable[..., Any], Any], Any]


class _DualArithmetic:
    """The operators of dual numbers and tape variables, and the answers that NumPy asks for."""

    __slots__ = ()

    def __neg__(self) -> Any:
        return self * -1.0  # type: ignore[operator]

    def __sub__(self, other: Any) -> Any:
        return self + other * -1.0

    def __rsub__(self, other: Any) -> Any:
        return -self + other

    def __truediv__(self, other: Any) -> Any:
        return self * applied("reciprocal", other)

    def __rtruediv__(self, other: Any) -> Any:
        return applied("reciprocal", self) * other

    def __pow__(self, exponent: int) -> Any:
        if not isinstance(exponent, int):
            return NotImplemented
        return math.prod([self] * exponent) if exponent >= 0 else applied("reciprocal", self**-exponent)

    def __getattr__(self, name: str) -> Any:
        """Return `.exp()`, `.sin()`..., which `np.exp` and similar functions call."""
        if name not in FUNCTIONS:
            raise AttributeError(name)
        return lambda: applied(name, self)


class Dual(_DualArithmetic):
    """A number `primal + tangent * epsilon[tag]`; both parts may be dual numbers with lower tags."""

    __slots__ = ("primal", "tag", "tangent")

    primal: Any
    tangent: Any
    tag: int

    def __init__(self, primal: Any, tangent: Any, tag: int) -> None:
        self.primal, self.tangent, self.tag = primal, tangent, tag

    def __add__(self, other: Any) -> Any:
        tag = _highest(self, other)
        (a, da), (b, db) = _split(self, tag), _split(other, tag)
        return Dual(a + b, da + db, tag)

    def __mul__(self, other: Any) -> Any:
        tag = _highest(self, other)
        (a, da), (b, db) = _split(self, tag), _split(other, tag)
        return Dual(a * b, da * b + a * db, tag)

    __radd__, __rmul__ = __add__, __mul__


# name: (the function of a number, its derivative at u where the function has this value)
FUNCTIONS: dict[str, tuple[Callable[[Any], Any], Callable[[Any, Any], Any]]] = {
    "reciprocal": (lambda u: 1 / u, lambda u, value: -(value * value)),
    "exp": (math.exp, lambda u, value: value),
    "log": (math.log, lambda u, value: 1 / u),
    "sqrt": (math.sqrt, lambda u, value: 0.5 / value),
    "sin": (math.sin, lambda u, value: applied("cos", u)),
    "cos": (math.cos, lambda u, value: -applied("sin", u)),
    "tanh": (math.tanh, lambda u, value: 1.0 - value * value),
}


def applied(name: str, number: Any) -> Any:
    """Apply a function to a number of any design below, by the chain rule.

    >>> applied("log", Dual(2.0, 1.0, 0)).tangent
    0.5
    """
    value_of, slope_of = FUNCTIONS[name]
    if isinstance(number, Dual):
        value = applied(name, number.primal)
        return Dual(value, slope_of(number.primal, value) * number.tangent, number.tag)
    if isinstance(number, Variable):
        plain = value_of(number.value)
        return number.tape.record(plain, (number, slope_of(number.value, plain)))
    if isinstance(number, sp.Basic) and name != "reciprocal":
        return getattr(sp, name)(number)
    return value_of(number)


def tagless() -> Derivative:
    """Return forward mode in which every level has the same epsilon.

    >>> d = tagless()
    >>> d(lambda x: x * d(lambda y: x + y, 1.0), 1.0)  # right: 1
    2.0
    """
    return lambda f, a: tangent(f(Dual(a, 1.0, 0)), 0)


def shared_tag() -> Derivative:
    """Return forward mode with one tag for each derivative, shared by all uses of a returned function.

    >>> d = shared_tag()
    >>> shifted = d(lambda u: lambda g: lambda a: g(a + u), 0.0)
    >>> shifted(shifted(lambda t: t * t))(1.0)  # right: 2
    0.0
    """
    tags = itertools.count()

    def derivative(f: Callable[..., Any], a: Any) -> Any:
        tag = next(tags)
        return tangent(f(Dual(a, 1.0, tag)), tag)

    return derivative


def no_alias() -> Derivative:
    """Return symbolic differentiation in which a variable as argument is its own parameter.

    >>> d = no_alias()
    >>> d(lambda x: x * d(lambda y: x * y, x), 3.0)  # right: 6
    12.0
    """

    def derivative(f: Callable[..., Any], a: Any) -> Any:
        parameter = a if isinstance(a, sp.Symbol) else sp.Dummy()
        slope = sp.diff(f(parameter), parameter).subs(parameter, a)
        return float(slope) if slope.is_number else slope

    return derivative


class Variable(_DualArithmetic):
    """A number on a tape, with a place for its adjoint."""

    __slots__ = ("adjoint", "tape", "value")

    value: float
    tape: Tape
    adjoint: float

    def __init__(self, value: float, tape: Tape) -> None:
        self.value, self.tape, self.adjoint = value, tape, 0.0

    def __add__(self, other: Any) -> Variable:
        return self.tape.record(self.value + _value(other), (self, 1.0), (other, 1.0))

    def __mul__(self, other: Any) -> Variable:
        return self.tape.record(self.value * _value(other), (self, _value(other)), (other, self.value))

    __radd__, __rmul__ = __add__, __mul__


class Tape:
    """One list of operations, written while `recording`."""

    __slots__ = ("operations", "recording")

    def __init__(self) -> None:
        self.operations: list[tuple[Variable, tuple[tuple[Any, float], ...]]] = []
        self.recording: bool = False

    def record(self, value: float, *inputs: tuple[Any, float]) -> Variable:
        """Return a variable for the result of an operation with these inputs and partial derivatives."""
        result = Variable(value, self)
        if self.recording:
            self.operations.append((result, inputs))
        return result

    def sweep(self, result: Any) -> None:
        """Run backward from a result, adding to the adjoint of every variable on the tape."""
        if isinstance(result, Variable):
            result.adjoint += 1.0
        for output, inputs in reversed(self.operations):
            for variable, partial in inputs:
                if isinstance(variable, Variable):
                    variable.adjoint += output.adjoint * partial


def one_tape() -> Derivative:
    """Return reverse mode with one tape. Every derivative switches it on, sweeps, empties and switches it off.

    >>> d = one_tape()
    >>> d(lambda x: x * d(lambda y: x * y, 1.0), 4.0)  # right: 8
    1.0
    """
    tape = Tape()

    def derivative(f: Callable[..., Any], a: Any) -> float:
        tape.recording = True
        parameter = Variable(_value(a), tape)
        tape.sweep(f(parameter))
        tape.operations.clear()
        tape.recording = False
        return parameter.adjoint

    return derivative


def _value(number: Any) -> float:
    return number.value if isinstance(number, Variable) else float(number)


def _highest(*numbers: Any) -> int:
    return max(number.tag for number in numbers if isinstance(number, Dual))


def _split(number: Any, tag: int) -> tuple[Any, Any]:
    return (number.primal, number.tangent) if isinstance(number, Dual) and number.tag == tag else (number, 0.0)


def primal(number: Any) -> float:
    """Return a number without any epsilon.

    >>> primal(Dual(Dual(2.0, 1.0, 0), 1.0, 1))
    2.0
    """
    while isinstance(number, Dual):
        number = number.primal
    return float(number)


def tangent(result: Any, tag: int) -> Any:
    """Return the coefficient of an epsilon. Epsilons of higher tags belong to other levels and stay."""
    if callable(result):
        return lambda *more: tangent(result(*more), tag)
    if isinstance(result, Dual) and result.tag > tag:
        return Dual(tangent(result.primal, tag), tangent(result.tangent, tag), result.tag)
    return _split(result, tag)[1]
