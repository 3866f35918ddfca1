"""Native Lambert W on the two real branches: a starting value and four Halley steps, without a loop.

Source: R. M. Corless et al., On the Lambert W function, Adv. Comput. Math. 5 (1996); the starting value for u > 0 is
that of Iacono and Boyd, Adv. Comput. Math. 43 (2017). Near the branch point -1/e the series in
p = sqrt(2 (e u + 1)) is used, with e in two parts, since e u + 1 cancels there.
"""

from __future__ import annotations

import math
from functools import reduce

from codegen.errors import LoweringError
from codegen.ir.machine_rows import Machine, Reference

E_LOW = 1.4456468917292502e-16  # e - float(e)
BRANCH_SERIES = (
    -1.0, 1.0, -1 / 3, 11 / 72, -43 / 540, 769 / 17280, -221 / 8505, 680863 / 43545600, -1963 / 204120,
    226287557 / 37623398400,
)  # fmt: skip
HALLEY_STEPS = 4


def lambert(machine: Machine, u: Reference, branch: Reference | None = None) -> Reference:
    """Lower the real Lambert W of branch 0 or -1 (a constant); LoweringError for other branches."""
    k = 0.0 if branch is None else machine.constant(branch)
    if k not in (0.0, -1.0):
        raise LoweringError(f"LambertW on branch {k}", why="only 0 and -1 are real", do="use branch 0 or -1")
    one = machine.const(1.0)
    turned = machine.call("llvm.fma.f64", (machine.const(math.e), u, one))
    turned = machine.add(turned, machine.mul(machine.const(E_LOW), u))
    p = machine.sqrt(machine.mul(machine.const(2.0), turned))
    p = ~p if k else p
    series = _horner(machine, p, BRANCH_SERIES)
    start = _lower_start(machine, u) if k else _principal_start(machine, u)
    start = machine.select(machine.compare("olt", u, machine.const(-0.25)), series, start)
    refined = start
    for _ in range(HALLEY_STEPS):
        refined = _halley(machine, u, refined)
    near = machine.compare("olt", turned, machine.const(1e-3))
    return machine.select(near, series, _edges(machine, u, refined, k or 0.0))


def _edges(machine: Machine, u: Reference, w: Reference, k: float) -> Reference:
    """W0(inf) = inf, W-1(-0) = -inf; W-1 has no real value above zero."""
    if not k:
        fixed = machine.logic(
            "or", machine.compare("oeq", u, machine.const(math.inf)), machine.compare("oeq", u, machine.const(0.0))
        )
        return machine.select(fixed, u, w)
    zero = machine.const(0.0)
    inside = machine.select(machine.compare("oeq", u, zero), machine.const(-math.inf), w)
    return machine.select(machine.compare("ogt", u, zero), machine.const(math.nan), inside)


def _principal_start(machine: Machine, u: Reference) -> Reference:
    """log1p(u) (1 - log1p(log1p(u)) / (2 + log1p(u)))."""
    first = machine.call("log1p", (u,))
    second = machine.call("log1p", (first,))
    quotient = machine.div(second, machine.add(machine.const(2.0), first))
    return machine.mul(first, machine.sub(machine.const(1.0), quotient))


def _lower_start(machine: Machine, u: Reference) -> Reference:
    """L1 - L2 + L2/L1 with L1 = log(-u), L2 = log(-L1)."""
    first = machine.call("log", (~u,))
    second = machine.call("log", (~first,))
    return machine.add(machine.sub(first, second), machine.div(second, first))


def _halley(machine: Machine, u: Reference, w: Reference) -> Reference:
    """w - f / (e^w (w + 1) - (w + 2) f / (2 w + 2)) with f = w e^w - u."""
    power = machine.call("exp", (w,))
    error = machine.sub(machine.mul(w, power), u)
    above = machine.add(w, machine.const(1.0))
    bend = machine.div(machine.mul(machine.add(w, machine.const(2.0)), error), machine.mul(machine.const(2.0), above))
    return machine.sub(w, machine.div(error, machine.sub(machine.mul(power, above), bend)))


def _horner(machine: Machine, p: Reference, coefficients: tuple[float, ...]) -> Reference:
    constants = [machine.const(value) for value in reversed(coefficients)]
    return reduce(lambda total, constant: machine.add(machine.mul(total, p), constant), constants)
