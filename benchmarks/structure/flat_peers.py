"""Peers that see scalar operations only: CasADi's machine and its C code, heyoka, SymEngine.

They are the candidates of `benchmarks.peers`, taught the other derivatives that the rows ask for.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.peers.base import Evaluator, Pattern, elementwise, symbol_array
from benchmarks.peers.casadi import Casadi, CasadiC
from benchmarks.peers.heyoka import Heyoka
from benchmarks.peers.symengine import Entries, Symengine


def row_pattern(size: int) -> Pattern:
    """Return the places of a vector."""
    return np.zeros(size, dtype=int), np.arange(size)


class FlatCasadi(Casadi):
    """CasADi SX on its virtual machine."""

    def function(self, problem: Any) -> Any:
        """Return the CasADi function of the derivative."""
        ca = self.library
        x = ca.SX.sym("x", problem.point.size)
        symbols = symbol_array(x.elements())
        if problem.kind in ("hessian", "gradient", "jacobian"):
            return super().function(problem)
        if problem.kind == "product":
            half, direction = x[: x.numel() // 2], x[x.numel() // 2 :]
            primal = problem.function(symbols[: len(symbols) // 2], elementwise(ca))
            wanted = ca.jtimes(ca.gradient(primal, half), half, direction).T
        else:
            primal = problem.function(symbols, elementwise(ca))
            primal = ca.horzcat(*primal) if isinstance(primal, np.ndarray) else primal
            wanted = primal if problem.kind == "value" else ca.jtimes(primal, x, ca.DM(1))
        return ca.Function("derivative", [x], [ca.densify(wanted)], {"cse": True})


class FlatCasadiC(CasadiC, FlatCasadi):
    """The C code of the same function, compiled by gcc."""


class FlatHeyoka(Heyoka):
    """heyoka's `cfunc` of the same derivatives."""

    def derivative(self, problem: Any, primal: Any, variables: Any) -> tuple[list[Any], Pattern]:
        """Return the entries that are not 0, and where they stand."""
        hy = self.library
        if problem.kind == "value":
            values = list(np.atleast_1d(primal))
            return values, row_pattern(len(values))
        if problem.kind == "tangent":
            return list(hy.diff_tensors([primal], variables[:1], diff_order=1).gradient), row_pattern(1)
        if problem.kind == "product":
            half = len(variables) // 2
            x, direction = variables[:half], variables[half:]
            slopes = hy.diff_tensors([primal], x, diff_order=1).gradient
            along = hy.sum([slope * part for slope, part in zip(slopes, direction, strict=True)])
            return list(hy.diff_tensors([along], x, diff_order=1).gradient), row_pattern(half)
        return super().derivative(problem, primal, variables)

    def build(self, problem: Any) -> Evaluator:
        return super().build(_halved(problem))


class FlatSymengine(Symengine):
    """SymEngine's `Lambdify` of the same derivatives."""

    def derivative(self, problem: Any, primal: Any, variables: Any) -> Entries:
        """Return the entries that are not 0, by their places."""
        if problem.kind == "value":
            return {(0, column): value for column, value in enumerate(np.atleast_1d(primal))}
        if problem.kind == "tangent":
            return {(0, 0): primal.diff(variables[0])}
        if problem.kind == "product":
            half = len(variables) // 2
            along = sum(primal.diff(variables[k]) * variables[half + k] for k in range(half))
            return {(0, k): along.diff(variables[k]) for k in range(half)}
        return super().derivative(problem, primal, variables)

    def build(self, problem: Any) -> Evaluator:
        return super().build(_halved(problem))


class _Halved:
    """A product's case, its function reading the first half of the point."""

    def __init__(self, case: Any) -> None:
        self.name, self.kind, self.point = case.name, case.kind, case.point
        self.function = lambda x, xp: case.function(x[: len(x) // 2], xp)


def _halved(problem: Any) -> Any:
    return _Halved(problem) if problem.kind == "product" else problem
