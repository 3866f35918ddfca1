"""CasADi told by hand what repeats: `map` over bodies with sparse assembly, matrices for networks, `fold` for steps."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.peers.base import Evaluator, Pattern
from benchmarks.peers.casadi import Casadi, Trigger
from benchmarks.problems import network_layers
from benchmarks.structure.cases import WIDTHS, Case
from benchmarks.structure.entries import entries
from benchmarks.structure.flat_peers import row_pattern
from benchmarks.structure.problems import momentum_step, settings
from benchmarks.structure.terms import Integers, Terms


class MappedCasadi(Casadi):
    """CasADi MX over SX bodies, as its users write repetition; the results are assembled by a sparse product."""

    name = "CasADi map"
    call = "`Function.buffer()` trigger of `map`, `fold` or matrix expressions"

    def build(self, problem: Any) -> Evaluator:
        ca, case = self.library, problem
        x = ca.MX.sym("x", case.point.size)
        if case.family.terms is not None:
            wanted, pattern = self.assembled(case, x)
        elif case.family.steps:
            wanted, pattern = self.folded(case, x)
        else:
            wanted, pattern = self.network(case, x)
        function = ca.Function("derivative", [x], [ca.densify(ca.vec(wanted))])
        values = np.empty(function.nnz_out(0))
        return Evaluator(Trigger(function, values).bind, lambda _: values, pattern, None)

    def assembled(self, case: Case, x: Any) -> tuple[Any, Pattern]:
        """Return the packed derivative of a sum, or of a vector, of bodies."""
        ca = self.library
        groups = [self.mapped(case.kind, group, x) for group in (case.family.terms or tuple)()]
        rows, columns = (np.concatenate([group[k] for group in groups]) for k in (1, 2))
        values = ca.vertcat(*[ca.vec(group[0]) for group in groups])
        size = case.point.size
        places = entries(rows, columns, np.zeros(len(rows)), size, lower=False).places
        target = np.searchsorted(places, rows * size + columns)
        pattern: Pattern = (places // size, places % size)
        if len(places) == len(target) and (target == np.arange(len(target))).all():
            return values, pattern
        shape = ca.Sparsity.triplet(len(places), len(target), target.tolist(), list(range(len(target))))
        return ca.mtimes(ca.DM(shape, 1.0), values), pattern

    def mapped(self, kind: str, terms: Terms, x: Any) -> tuple[Any, Integers, Integers]:
        """Return the results of all copies of a body, and their places; shared inputs and sums are left to `map`."""
        ca, slots = self.library, terms.index.shape[1]
        u, c = ca.SX.sym("u", slots), ca.SX.sym("c", terms.constants.shape[1])
        value = terms.body(ca.vertsplit(u), ca.vertsplit(c) if c.numel() else [], ca)
        low = np.tril_indices(slots)
        if kind == "hessian":
            wanted = ca.densify(ca.hessian(value, u)[0])
            wanted = ca.vertcat(*[wanted[int(i), int(j)] for i, j in zip(*low, strict=True)])
        else:
            wanted = value if kind == "value" else ca.densify(ca.gradient(value, u))
        body = ca.Function("body", [u, c], [wanted], {"cse": True})
        shared = bool((terms.index == terms.index[0]).all()) and terms.count > 1
        summed = terms.rows is None and (shared or kind == "value")
        given = x[terms.index[0].tolist()] if shared else ca.reshape(x[terms.index.ravel().tolist()], slots, -1)
        run = body.map("all", "serial", terms.count, [0] if shared else [], [0] if summed else [])
        index = terms.index[:1] if summed else terms.index
        return run(given, ca.DM(terms.constants.T)), *_places(kind, terms, index, low)

    def folded(self, case: Case, x: Any) -> tuple[Any, Pattern]:
        """Return the derivative of the loss after all steps."""
        ca = self.library
        state, given = ca.SX.sym("state", 4), ca.SX.sym("given", 2)
        after = momentum_step(given[0], given[1], *(state[k] for k in range(4)))
        step = ca.Function("step", [state, given], [ca.vertcat(*after)], {"cse": True})
        steps = case.family.steps
        rate, momentum, *start = settings(ca.vertsplit(x))
        end = step.fold(steps)(ca.vertcat(0, 0, *start), ca.repmat(ca.vertcat(rate, momentum), 1, steps))
        loss = 100 * (end[3] - end[2] * end[2]) ** 2 + (1 - end[2]) ** 2
        if case.kind == "value":
            return loss, row_pattern(1)
        if case.kind == "tangent":
            return ca.jtimes(loss, x, ca.DM(1)), row_pattern(1)
        return ca.gradient(loss, x), row_pattern(4)

    def network(self, case: Case, x: Any) -> tuple[Any, Pattern]:
        """Return the gradient of the network, or its Hessian times the second half of x, in matrix expressions."""
        ca = self.library
        size, layers = WIDTHS[0], network_layers(WIDTHS)
        inputs, direction = ca.MX.sym("inputs", size), ca.MX.sym("direction", size)
        passed = inputs
        for number, (weight, bias) in enumerate(layers):
            passed = ca.mtimes(ca.DM(weight), passed) + ca.DM(bias)
            passed = ca.tanh(passed) if number + 1 < len(layers) else passed
        slope = ca.gradient(passed, inputs)
        if case.kind == "gradient":
            return ca.Function("slope", [inputs], [slope])(x), row_pattern(size)
        product = ca.Function("product", [inputs, direction], [ca.jtimes(slope, inputs, direction)])
        return product(x[:size], x[size:]), row_pattern(size)


def _places(kind: str, terms: Terms, index: Integers, low: Any) -> tuple[Integers, Integers]:
    """Return rows and columns of the results of all copies, copy by copy."""
    if kind == "hessian":
        ends = index[:, low[0]], index[:, low[1]]
        return np.maximum(*ends).ravel(), np.minimum(*ends).ravel()
    if kind == "value":
        place = np.zeros(len(index), dtype=np.int64) if terms.rows is None else terms.rows
        return np.zeros_like(place), place
    rows = np.zeros(len(index), dtype=np.int64) if terms.rows is None else terms.rows
    return np.broadcast_to(rows[:, None], index.shape).ravel(), index.ravel()
