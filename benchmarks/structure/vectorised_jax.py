"""JAX as an expert writes it: `vmap` of the derivative of a body, banded and block matrices by hand, `scan` for steps.

Every function here is given the point as a JAX array and gives packed values with the pattern beside it, but
Lennard-Jones, whose matrix is dense: the sum of 3 x 3 blocks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.peers.base import Call, Evaluator, Pattern
from benchmarks.peers.jax import Jax
from benchmarks.problems import Vector
from benchmarks.structure.cases import Case
from benchmarks.structure.flat_peers import row_pattern
from benchmarks.structure.problems import LEFT, RIGHT, momentum_step, settings
from benchmarks.structure.terms import Terms

Way = tuple[Callable[[Any], Any], Pattern]


class VectorisedJax(Jax):
    """JAX in float64 on the processor, vectorised by hand."""

    name = "JAX by hand"
    call = "`jit(...)(x).block_until_ready()`, x a JAX array"

    def build(self, problem: Any) -> Evaluator:
        case: Case = problem
        by_hand = {"lj": self.atoms, "ro": self.chain, "lo": self.logistic, "re": self.reaction, "mo": self.steps}
        way = by_hand.get(case.name[:2], self.bodies if case.family.terms else self.network)
        function, pattern = way(case)
        compiled = self.library.jit(function)

        def bind(x: Vector) -> Call:
            point = self.numpy.asarray(x)
            return lambda: compiled(point).block_until_ready()

        return Evaluator(bind, lambda result: np.asarray(result).ravel(), pattern, None)

    def atoms(self, case: Case) -> Way:
        """Return gradient or dense Hessian of all pairs at once, from derivatives in the difference of two places."""
        jax, jnp, size = self.library, self.numpy, case.point.size
        atoms = size // 3
        same = jnp.eye(atoms, dtype=bool)

        def pair(d: Any) -> Any:
            inverse_sixth = 1 / jnp.sum(d * d) ** 3
            return 4 * (inverse_sixth**2 - inverse_sixth)

        def blocks(x: Any, derivative: Any) -> Any:
            places = x.reshape(-1, 3)
            apart = places[:, None] - places[None] + same[:, :, None]  # not 0 for an atom and itself
            found = jax.vmap(jax.vmap(derivative))(apart)
            return jnp.where(same.reshape(atoms, atoms, *[1] * (found.ndim - 2)), 0.0, found)

        def hessian(x: Any) -> Any:
            off = blocks(x, jax.hessian(pair))
            diagonal = jnp.arange(atoms)
            full = (-off).at[diagonal, diagonal].set(off.sum(1))
            return full.transpose(0, 2, 1, 3).reshape(size, size)

        if case.kind == "hessian":
            rows, columns = np.indices((size, size)).reshape(2, -1)
            return hessian, (rows, columns)
        return lambda x: blocks(x, jax.grad(pair)).sum(1).ravel(), row_pattern(size)

    def chain(self, case: Case) -> Way:
        """Return the diagonal and what is below it, from the 2 x 2 Hessians of the links."""
        jax, jnp, size = self.library, self.numpy, case.point.size

        def link(a: Any, b: Any) -> Any:
            return 100 * (b - a**2) ** 2 + (1 - a) ** 2

        second = jax.vmap(jax.hessian(link, (0, 1)))

        def packed(x: Any) -> Any:
            (aa, _), (ba, bb) = second(x[:-1], x[1:])
            zero = jnp.zeros(1)
            return jnp.concatenate([jnp.concatenate([aa, zero]) + jnp.concatenate([zero, bb]), ba])

        places = np.arange(size)
        return packed, (np.hstack([places, places[1:]]), np.hstack([places, places[:-1]]))

    def logistic(self, case: Case) -> Way:
        """Return value, gradient or Hessian by products with the data."""
        jax, jnp, size = self.library, self.numpy, case.point.size
        terms = (case.family.terms or tuple)()[0]
        data, labels = jnp.asarray(terms.constants[:, :-1]), jnp.asarray(terms.constants[:, -1])

        def loss(margin: Any) -> Any:
            return jnp.log(1 + jnp.exp(-margin))

        bend = jax.vmap(jax.grad(jax.grad(loss)))
        if case.kind == "hessian":
            rows, columns = np.indices((size, size)).reshape(2, -1)
            return lambda w: data.T @ (bend(labels * (data @ w))[:, None] * data), (rows, columns)

        def value(w: Any) -> Any:
            return jnp.sum(loss(labels * (data @ w)))

        return (value, row_pattern(1)) if case.kind == "value" else (jax.grad(value), row_pattern(size))

    def reaction(self, case: Case) -> Way:
        """Return the residual by shifted arrays, or the Jacobian: one derivative for each point, the rest is known."""
        jnp, size = self.numpy, case.point.size
        side, line = round(size**0.5), case.name.startswith("reaction1d")
        rate = 0.01 * (size**2 if line else side**2)

        def residual_1d(u: Any) -> Any:
            middle = u[1:-1]
            inner = rate * (u[:-2] - 2 * middle + u[2:]) + middle - middle**3
            return jnp.concatenate([u[:1] - LEFT, inner, u[-1:] - RIGHT])

        def residual_2d(x: Any) -> Any:
            u = x.reshape(side, side)
            down, right = u[1:] - u[:-1], u[:, 1:] - u[:, :-1]
            flow = jnp.pad(down, ((0, 1), (0, 0))) - jnp.pad(down, ((1, 0), (0, 0)))
            flow = flow + jnp.pad(right, ((0, 0), (0, 1))) - jnp.pad(right, ((0, 0), (1, 0)))
            return (rate * flow + u - u**3).ravel()

        if case.kind == "value":
            return (residual_1d if line else residual_2d), row_pattern(size)
        return self.stencil(case)

    def stencil(self, case: Case) -> Way:
        """Return the Jacobian as its diagonal, which moves with u, and its constant entries."""
        jnp, size = self.numpy, case.point.size
        groups = (case.family.terms or tuple)()
        rows = np.concatenate([np.repeat(np.asarray(g.rows), g.index.shape[1]) for g in groups])
        columns = np.concatenate([g.index.ravel() for g in groups])
        fixed = case.right(np.zeros(size))  # at 0 the reaction's slope is 1 in every point where there is one
        moving = np.flatnonzero(rows == columns)
        values = np.zeros(len(rows))
        values[:] = fixed.values[np.searchsorted(fixed.places, rows * size + columns)]
        reacts = np.ones(size)
        if case.name.startswith("reaction1d"):
            reacts[[0, -1]] = 0
        start, where, places = jnp.asarray(values), jnp.asarray(moving), jnp.asarray(rows[moving])
        slope = jnp.asarray(-3.0 * reacts)
        return lambda u: start.at[where].add((slope * u * u)[places]), (rows, columns)

    def steps(self, case: Case) -> Way:
        """Return the loss after all steps of a `scan`, or its derivatives."""
        jax, size, steps = self.library, case.point.size, case.family.steps

        def trained(point: Any) -> Any:
            rate, momentum, *start = settings(point)

            def step(state: Any, _: Any) -> Any:
                return momentum_step(rate, momentum, *state), None

            state = [self.numpy.asarray(number, dtype=float) for number in (0.0, 0.0, *start)]
            (_, _, x, y), _ = jax.lax.scan(step, tuple(state), None, steps)
            return 100 * (y - x * x) ** 2 + (1 - x) ** 2

        if case.kind == "tangent":
            first = self.numpy.ones(1)
            return lambda x: jax.jvp(trained, (x,), (first,))[1], row_pattern(1)
        return (trained, row_pattern(1)) if case.kind == "value" else (jax.grad(trained), row_pattern(size))

    def network(self, case: Case) -> Way:
        """Return the gradient of the network, or its Hessian times the second half of the point."""
        jax, half = self.library, case.family.point.size
        gradient = jax.grad(lambda x: case.function(x, self.numpy))
        if case.kind == "gradient":
            return gradient, row_pattern(half)
        return lambda z: jax.jvp(gradient, (z[:half],), (z[half:],))[1], row_pattern(half)

    def bodies(self, case: Case) -> Way:
        """Return `vmap` of the derivatives of all bodies, added up by `.at[].add`."""
        jnp, size = self.numpy, case.point.size
        groups = [self.mapped(case.kind, group, size) for group in (case.family.terms or tuple)()]
        keys = np.concatenate([keys for _, keys in groups])
        places, target = np.unique(keys, return_inverse=True)
        where = jnp.asarray(target)

        def packed(x: Any) -> Any:
            return jnp.zeros(len(places)).at[where].add(jnp.concatenate([run(x).ravel() for run, _ in groups]))

        return packed, (places // size, places % size)

    def mapped(self, kind: str, terms: Terms, size: int) -> tuple[Callable[[Any], Any], Any]:
        """Return the function that gives the derivatives of all copies of one body, and row * size + column of each."""
        jax, jnp = self.library, self.numpy
        index, constants = jnp.asarray(terms.index), jnp.asarray(terms.constants)

        def body(u: Any, c: Any) -> Any:
            return terms.body(u, c, jnp)

        if kind == "value":
            return lambda x: jax.vmap(body)(x[index], constants).sum(), np.zeros(1, dtype=np.int64)
        if kind == "gradient":
            return lambda x: jax.vmap(jax.grad(body))(x[index], constants), terms.index.ravel()
        low = np.tril_indices(terms.index.shape[1])
        ends = terms.index[:, low[0]], terms.index[:, low[1]]
        keys = np.maximum(*ends) * size + np.minimum(*ends)
        return lambda x: jax.vmap(jax.hessian(body))(x[index], constants)[:, low[0], low[1]], keys.ravel()
