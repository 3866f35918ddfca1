"""Values of displayed formulas with 50 digits. This evaluator shares no code with what made the formulas.

Symbols have random values. An undefined function is a sum of sines, so that its derivatives are known.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import sympy as sp
from mpmath import mp
from sympy.core.function import AppliedUndef
from sympy.core.relational import Relational
from sympy.logic.boolalg import BooleanFunction

from codegen import heads
from codegen.functions.intrinsics import intrinsic, supports
from symad.classroom.equality.hyperdual import HyperDual, constant
from symad.display.notation import Pending, Struck, named_partial

DIGITS = 50
_WAVES = 3  # sines that replace an undefined function
_NAMES = (
    "exp log sin cos tan cot sec csc asin acos atan acot asec acsc sinh cosh tanh coth sech csch asinh acosh atanh "
    "acoth asech acsch erf erfc gamma loggamma factorial"
)
ORDINARY: dict[Any, Callable[..., Any]] = {getattr(sp, name): getattr(mp, name) for name in _NAMES.split()}
ORDINARY |= {
    sp.LambertW: mp.lambertw,
    sp.Heaviside: lambda value: (1 + mp.sign(value)) / 2, sp.sinc: lambda value: mp.sin(value) / value,
    heads.cbrt: lambda value: mp.sign(value) * mp.cbrt(abs(value)), heads.log2: lambda value: mp.log(value, 2),
    heads.log10: lambda value: mp.log(value) / mp.log(10), heads.log1p: lambda value: mp.log(1 + value),
    heads.expm1: lambda value: mp.exp(value) - 1, heads.exp2: lambda value: mp.mpf(2) ** value,
    heads.expit: lambda value: 1 / (1 + mp.exp(-value)), heads.softplus: lambda value: mp.log(1 + mp.exp(value)),
    sp.atan2: lambda y, x: mp.atan2(y, x), heads.hypot: lambda a, b: mp.sqrt(a * a + b * b),
    sp.polygamma: lambda order, value: mp.polygamma(int(order), value),
}  # fmt: skip
_RANGES = ((0.3, 1.9), (0.3, 1.9), (0.1, 0.6), (2.0, 6.0), (-0.6, -0.1), (-1.9, -0.3))  # of symbols
_STEPS = (sp.floor, sp.ceiling, sp.sign, sp.Heaviside)

Value = Any  # a HyperDual, or a list of them for a vector


class UnknownValueError(Exception):
    """A part of a formula has no value."""


class IndependentValues:
    """The values of formulas. Symbols without a value are random, undefined functions are sums of sines."""

    def __init__(
        self, known: Mapping[sp.Basic, Value] | None = None, functions: Mapping[str, Any] | None = None, seed: int = 0
    ) -> None:
        self.known: dict[sp.Basic, Value] = dict(known or {})
        self.functions: dict[str, Any] = dict(functions or {})
        self.seed = seed
        self._next_level = 32  # of epsilons for derivatives, apart from those of the page

    def of(self, expression: Any) -> Value:
        """Return the value of an expression; UnknownValueError if a part has none."""
        if expression in self.known:
            return self.known[expression]
        if (special := self.special(expression)) is not None:
            return special
        if expression.is_Symbol:
            self.known[expression] = constant(self._random(expression.name, *_RANGES[self.seed % len(_RANGES)]))
            return self.known[expression]
        if isinstance(expression, Struck):
            return self.of(expression.args[0])
        if expression.is_number and not expression.args:
            return constant(_number(expression))
        if isinstance(expression, sp.Tuple | sp.MatrixBase):
            return [self.of(part) for part in expression]
        if isinstance(expression, sp.Derivative | sp.Subs):
            return self._derivative(expression)
        if isinstance(expression, Pending):
            return self.along([(expression.args[1], 1)], lambda: self.of(expression.args[0]))
        if isinstance(expression, sp.Piecewise):
            return self._piecewise(expression)
        if isinstance(expression, AppliedUndef):
            return self.applied(expression.func.__name__, [self.of(part) for part in expression.args])
        return self._operation(expression, [self.of(part) for part in expression.args])

    def special(self, expression: Any) -> Value:
        """Return the value of an expression that only pages have; None for others."""
        return None

    def _random(self, name: str, low: float, high: float) -> Any:
        return mp.mpf(random.Random(f"{name} {self.seed}").randrange(10**15)) / 10**15 * (high - low) + low

    def applied(self, name: str, arguments: Sequence[HyperDual], orders: Sequence[int] = ()) -> HyperDual:
        """Return a partial derivative of an undefined function."""
        if name in self.functions and not any(orders):
            value: HyperDual = self.functions[name](arguments)
            return value
        total = constant(self._random(name, 0.5, 1.5)) if not any(orders) else constant(0)
        for wave in range(_WAVES):
            slopes = [self._random(f"{name} {wave} {k}", 0.4, 1.3) for k in range(len(arguments))]
            phase = constant(self._random(f"{name} {wave}", 0.0, 3.0) + sum(orders) * mp.pi / 2)
            for slope, argument in zip(slopes, arguments, strict=True):
                phase += constant(slope) * argument
            factor = mp.fprod(slope**order for slope, order in zip(slopes, orders, strict=False))
            total += constant(factor) * phase.under(mp.sin)
        return total

    def along(self, variables: Sequence[tuple[sp.Basic, int]], value: Callable[[], HyperDual]) -> HyperDual:
        """Return the derivative of a value in some variables, each the given number of times."""
        before, mask = dict(self.known), 0
        for variable, times in variables:
            for _ in range(times):
                self._next_level += 1
                mask |= 1 << self._next_level
                self.known[variable] = self.of(variable) + HyperDual({0: mp.mpf(0), 1 << self._next_level: mp.mpf(1)})
        result = value().coefficient(mask)
        self.known = before
        return result

    def _derivative(self, expression: Any) -> HyperDual:
        if (partial := named_partial(expression)) is not None:
            arguments = [self.of(argument) for argument in partial.arguments]
            if partial.function.func.__name__ not in self.functions:
                return self.applied(partial.function.func.__name__, arguments, partial.orders)
            slots = [sp.Dummy() for _ in arguments]
            self.known |= dict(zip(slots, arguments, strict=True))
            counts = list(zip(slots, partial.orders, strict=True))
            return self.along(counts, lambda: self.of(partial.function.func(*slots)))
        if isinstance(expression, sp.Subs):
            before = dict(self.known)
            self.known |= dict(zip(expression.variables, [self.of(point) for point in expression.point], strict=True))
            result: HyperDual = self.of(expression.expr)
            self.known = before
            return result
        if not all(variable.is_Symbol for variable, _ in expression.variable_count):
            raise UnknownValueError(str(expression))
        counts = [(variable, int(count)) for variable, count in expression.variable_count]
        return self.along(counts, lambda: self.of(expression.expr))

    def _piecewise(self, expression: sp.Piecewise) -> Value:
        for value, condition in expression.args:
            if self._holds(condition):
                return self.of(value)
        raise UnknownValueError("a Piecewise without a case that holds")

    def _holds(self, condition: Any) -> bool:
        if condition in (sp.true, sp.false):
            return bool(condition)
        if isinstance(condition, Relational):
            left, right = (self.of(side).real for side in condition.args)
            compared = {"<": left < right, "<=": left <= right, ">": left > right, ">=": left >= right}
            return bool(compared.get(condition.rel_op, (left == right) == (condition.rel_op == "==")))
        if isinstance(condition, BooleanFunction):
            return bool(condition.func(*map(self._holds, condition.args)))
        raise UnknownValueError(str(condition))

    def _operation(self, expression: Any, operands: list[HyperDual]) -> HyperDual:
        head = expression.func
        if any(isinstance(operand, list) for operand in operands):
            raise UnknownValueError(head.__name__)
        if expression.is_Add or expression.is_Mul:
            result = operands[0]
            for operand in operands[1:]:
                result = result + operand if expression.is_Add else result * operand
            return result
        if head is sp.Pow:
            return _power(*operands)
        if head is sp.Abs:
            return operands[0] if operands[0].real >= 0 else -operands[0]
        if head in (sp.Max, sp.Min):
            return (max if head is sp.Max else min)(operands, key=lambda operand: operand.real)
        function: Callable[..., Any] | None = ORDINARY.get(head)
        moving = [place for place, operand in enumerate(operands) if not operand.is_constant]
        if function is None and supports(head) and (not moving or head in _STEPS):
            function = intrinsic(head).reference  # it may have too few digits for its Taylor coefficients
        if function is None or len(moving) > 1:
            raise UnknownValueError(f"{head.__name__} of {len(operands)} arguments")
        if not moving or head in _STEPS:
            return constant(function(*(operand.real for operand in operands)))
        place = moving[0]
        fixed = [operand.real for operand in operands]
        return operands[place].under(lambda value: function(*fixed[:place], value, *fixed[place + 1 :]))


def _power(base: HyperDual, exponent: HyperDual) -> HyperDual:
    if not exponent.is_constant:
        return (exponent * base.under(mp.log)).under(mp.exp)
    power = exponent.real
    whole = int(power) if isinstance(power, mp.mpf) and power == int(power) and abs(power) < 64 else None
    if whole is None or whole < 0:
        return base.under(lambda value: value ** (power if whole is None else whole))
    result = constant(1)
    for _ in range(whole):
        result *= base
    return result


def _number(expression: Any) -> Any:
    """Return a SymPy number as an mpmath number."""
    if expression.is_Rational:
        return mp.mpf(int(expression.p)) / int(expression.q)
    named = {sp.pi: mp.pi, sp.E: mp.e, sp.I: mp.mpc(0, 1), sp.EulerGamma: mp.euler}
    if expression in named:
        return +named[expression]
    if expression.is_Float:
        return mp.mpf(expression._mpf_)
    raise UnknownValueError(str(expression))
