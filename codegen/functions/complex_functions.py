"""Functions of a complex number as formulas in its real and imaginary part, over the machine table's constructors.

Each takes the machine table and the parts x, y of the operand, and returns the parts of the result. Branch cuts and
signs of zero are those of C and NumPy: an imaginary part of -0 is below the cut.
"""

from __future__ import annotations

import math

from codegen.ir.machine_rows import Machine, Reference

Parts = tuple[Reference, Reference]

LARGEST_EXPONENT = 709.0  # exp overflows soon above; the rest of the exponent is a factor of its own
HUGE, SHRINK = 1e300, 2.0**-10  # the distance of two larger numbers may overflow
TANH_IS_ONE = 22.0  # from here on 1 - tanh(x) is below half a unit in the last place


def multiply(machine: Machine, a: Parts, b: Parts) -> Parts:
    """(a.x + i a.y)(b.x + i b.y)."""
    real = machine.sub(machine.mul(a[0], b[0]), machine.mul(a[1], b[1]))
    return real, machine.add(machine.mul(a[0], b[1]), machine.mul(a[1], b[0]))


def divide(machine: Machine, a: Parts, b: Parts) -> Parts:
    """Smith's quotient, scaled by the larger part of the divisor against overflow; a / 0 is infinite or nan."""
    zero = machine.const(0.0)
    real_is_larger = machine.compare("oge", machine.abs(b[0]), machine.abs(b[1]))
    large = machine.select(real_is_larger, b[0], b[1])
    small = machine.select(real_is_larger, b[1], b[0])
    by_zero = machine.compare("oeq", large, zero)
    ratio = machine.select(by_zero, zero, machine.div(small, large))
    divisor = machine.select(by_zero, machine.abs(large), machine.add(large, machine.mul(small, ratio)))
    first = machine.select(real_is_larger, a[0], a[1])
    second = machine.select(real_is_larger, a[1], a[0])
    real = machine.div(machine.add(first, machine.mul(second, ratio)), divisor)
    imaginary = machine.div(machine.sub(second, machine.mul(first, ratio)), divisor)
    return real, machine.select(real_is_larger, imaginary, machine.negate(imaginary))


def square_root(machine: Machine, x: Reference, y: Reference) -> Parts:
    """sqrt: the larger part without cancellation or overflow, the other one from y = 2 re im."""
    eighth = machine.const(0.125)
    distance = machine.call("hypot", (machine.mul(eighth, x), machine.mul(eighth, y)))
    quarter = machine.sqrt(machine.add(machine.mul(eighth, machine.abs(x)), distance))
    large = machine.mul(machine.const(2.0), quarter)
    quotient = machine.div(machine.mul(machine.const(0.5), y), large)
    special = machine.logic(
        "or",
        machine.compare("oeq", large, machine.const(0.0)),
        machine.compare("oeq", machine.abs(y), machine.const(math.inf)),
    )
    small = machine.select(special, y, quotient)
    left = machine.compare("olt", x, machine.const(0.0))
    signed = machine.call("llvm.copysign.f64", (large, y))
    return machine.select(left, machine.abs(small), large), machine.select(left, signed, small)


def exponential(machine: Machine, x: Reference, y: Reference) -> Parts:
    """e**x (cos y + i sin y), where e**x may overflow and its products not; a real operand stays real."""
    over = machine.compare("ogt", x, machine.const(LARGEST_EXPONENT))
    shift = machine.select(over, machine.const(LARGEST_EXPONENT), machine.const(0.0))
    factor = machine.select(over, machine.const(math.exp(LARGEST_EXPONENT)), machine.const(1.0))
    size = machine.call("exp", (machine.sub(x, shift),))
    real = machine.mul(machine.mul(size, machine.call("llvm.cos.f64", (y,))), factor)
    imaginary = machine.mul(machine.mul(size, machine.call("llvm.sin.f64", (y,))), factor)
    flat = machine.compare("oeq", y, machine.const(0.0))
    return machine.select(flat, machine.mul(size, factor), real), machine.select(flat, y, imaginary)


def logarithm(machine: Machine, x: Reference, y: Reference) -> Parts:
    """log |z| + i arg z; near |z| = 1 by log1p of |z|**2 - 1."""
    a, b = machine.abs(x), machine.abs(y)
    high, low = machine.maximum(a, b), machine.minimum(a, b)
    excess = machine.add(_one_less_square(machine, high), machine.mul(low, low))
    near = machine.mul(machine.const(0.5), machine.call("log1p", (excess,)))
    huge = machine.compare("ogt", high, machine.const(HUGE))
    scale = machine.select(huge, machine.const(SHRINK), machine.const(1.0))
    lost = machine.select(huge, machine.const(-math.log(SHRINK)), machine.const(0.0))
    distance = machine.call("hypot", (machine.mul(scale, x), machine.mul(scale, y)))
    close = machine.logic(
        "and",
        machine.compare("ogt", distance, machine.const(0.71)),
        machine.compare("olt", distance, machine.const(1.73)),
    )
    far = machine.add(machine.call("log", (distance,)), lost)
    return machine.select(close, near, far), machine.call("atan2", (y, x))


def _one_less_square(machine: Machine, u: Reference) -> Reference:
    one = machine.const(1.0)
    return machine.mul(machine.sub(u, one), machine.add(u, one))


def logarithm_of_one_plus(machine: Machine, x: Reference, y: Reference) -> Parts:
    """log(1 + z), exact to the last digits for small z."""
    shifted = machine.add(x, machine.const(1.0))
    square = machine.mul(y, y)
    excess = machine.add(machine.mul(x, machine.add(x, machine.const(2.0))), square)
    near = machine.mul(machine.const(0.5), machine.call("log1p", (excess,)))
    far, angle = logarithm(machine, shifted, y)
    small = machine.compare("olt", machine.maximum(machine.abs(x), machine.abs(y)), machine.const(0.5))
    return machine.select(small, near, far), angle


def exponential_less_one(machine: Machine, x: Reference, y: Reference) -> Parts:
    """exp(z) - 1: expm1(x) cos y + (cos y - 1), exact to the last digits for small z."""
    half = machine.call("llvm.sin.f64", (machine.mul(machine.const(0.5), y),))
    versine = machine.mul(machine.const(2.0), machine.mul(half, half))
    shrunk = machine.mul(machine.call("expm1", (x,)), machine.call("llvm.cos.f64", (y,)))
    _, imaginary = exponential(machine, x, y)
    flat = machine.compare("oeq", y, machine.const(0.0))
    return machine.select(flat, machine.call("expm1", (x,)), machine.sub(shrunk, versine)), imaginary


def sine(machine: Machine, x: Reference, y: Reference) -> Parts:
    """sin x cosh y + i cos x sinh y."""
    return (
        _product(machine, machine.call("llvm.sin.f64", (x,)), machine.call("cosh", (y,))),
        machine.mul(machine.call("llvm.cos.f64", (x,)), machine.call("sinh", (y,))),
    )


def cosine(machine: Machine, x: Reference, y: Reference) -> Parts:
    """cos x cosh y - i sin x sinh y."""
    return (
        machine.mul(machine.call("llvm.cos.f64", (x,)), machine.call("cosh", (y,))),
        machine.negate(_product(machine, machine.call("llvm.sin.f64", (x,)), machine.call("sinh", (y,)))),
    )


def _product(machine: Machine, u: Reference, v: Reference) -> Reference:
    """u v, 0 for u = 0 even where v has overflowed."""
    flat = machine.compare("oeq", u, machine.const(0.0))
    bounded = machine.minimum(machine.abs(v), machine.const(1.0))
    return machine.select(flat, machine.mul(u, machine.call("llvm.copysign.f64", (bounded, v))), machine.mul(u, v))


def hyperbolic_sine(machine: Machine, x: Reference, y: Reference) -> Parts:
    """sinh x cos y + i cosh x sin y."""
    imaginary, real = sine(machine, y, x)
    return real, imaginary


def hyperbolic_cosine(machine: Machine, x: Reference, y: Reference) -> Parts:
    """cosh x cos y + i sinh x sin y."""
    real, imaginary = cosine(machine, y, x)
    return real, machine.negate(imaginary)


def hyperbolic_tangent(machine: Machine, x: Reference, y: Reference) -> Parts:
    """Kahan's formula: no cancellation near the zeros and poles; +-1 and a tail where sinh would overflow."""
    one, t = machine.const(1.0), machine.call("tan", (y,))
    beta = machine.add(one, machine.mul(t, t))
    s = machine.call("sinh", (x,))
    rho = machine.sqrt(machine.add(one, machine.mul(s, s)))
    divisor = machine.add(one, machine.mul(beta, machine.mul(s, s)))
    real = machine.div(machine.mul(beta, machine.mul(rho, s)), divisor)
    imaginary = machine.div(t, divisor)
    decay = machine.call("exp", (machine.negate(machine.abs(x)),))
    turn = machine.mul(machine.call("llvm.sin.f64", (y,)), machine.call("llvm.cos.f64", (y,)))
    tail = machine.mul(machine.const(4.0), machine.mul(turn, machine.mul(decay, decay)))
    far = machine.compare("oge", machine.abs(x), machine.const(TANH_IS_ONE))
    sign = machine.call("llvm.copysign.f64", (one, x))
    return machine.select(far, sign, real), machine.select(far, tail, imaginary)


def tangent(machine: Machine, x: Reference, y: Reference) -> Parts:
    """tan z = -i tanh(i z)."""
    imaginary, real = hyperbolic_tangent(machine, y, x)
    return real, imaginary


def power(machine: Machine, base: Parts, exponent: Parts) -> Parts:
    """exp(w log z); z**0 is 1, and 0**w is 0 where the real part of w is positive."""
    zero, one = machine.const(0.0), machine.const(1.0)
    real, imaginary = exponential(machine, *multiply(machine, exponent, logarithm(machine, *base)))
    flat = machine.compare("oeq", exponent[1], zero)
    none = machine.logic("and", flat, machine.compare("oeq", exponent[0], zero))
    nothing = machine.logic("and", machine.compare("oeq", base[0], zero), machine.compare("oeq", base[1], zero))
    vanishes = machine.logic("and", nothing, machine.compare("ogt", exponent[0], zero))
    at_zero = machine.select(vanishes, zero, real), machine.select(vanishes, zero, imaginary)
    return machine.select(none, one, at_zero[0]), machine.select(none, zero, at_zero[1])
