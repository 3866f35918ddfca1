"""Stand-ins for SciPy's special functions that are plain Python functions.

SciPy's own bodies convert to ordinary arrays, which a traced value refuses; these have the same signatures.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import sympy as sp

import codegen.heads as h
import codegen.special_heads as s
from codegen.ir.program import Head
from symad.graph.builder import Builder
from symad.graph.graph import Graph
from symad.rules.partials import partial
from symad.tracing.numpy.orders import merged_axes
from symad.tracing.numpy.reduce import given, together, traced
from symad.tracing.numpy.registry import stands_in_for
from symad.tracing.numpy.select import applied
from symad.tracing.numpy.ufuncs import UFUNCS
from symad.tracing.values.constant_nodes import constant
from symad.tracing.values.node_builders import Build, composed, function
from symad.tracing.values.traced import refuse_function

# ---- sums of exponentials


def _shift(values: Any) -> Any:
    """A number near the largest value, 0 where that is infinite: rounded, so that its derivative is nothing."""
    largest = np.max(values, axis=-1, keepdims=True)
    return np.where(np.isfinite(largest), np.rint(largest), 0.0)


def _log_sum(rows: Any) -> Any:
    """Logarithms added in pairs: log(exp(a) + exp(b)) keeps the digits of a small sum's logarithm."""
    while rows.shape[-1] > 1:
        half = rows.shape[-1] // 2
        pairs = np.logaddexp(rows[..., :half], rows[..., half : 2 * half])
        rows = np.concatenate([pairs, rows[..., 2 * half :]], axis=-1)
    return rows[..., 0]


@stands_in_for("scipy.special.logsumexp")
def logsumexp(a: Any, axis: Any = None, b: Any = None, keepdims: bool = False, return_sign: bool = False) -> Any:
    """log(sum(b * exp(a))), without overflow; with `return_sign` that of |sum|, and the sign."""
    if b is not None:
        values, weights = np.broadcast_arrays(traced(a), traced(b))
    else:
        values = weights = traced(a)
    rows, kept = merged_axes(np.atleast_1d(values), axis)
    if b is None:
        logarithm, sign = _log_sum(rows), None
    else:
        logarithm, sign = _log_weighted(rows, merged_axes(np.atleast_1d(weights), axis)[0], return_sign)
    shape = kept if keepdims and np.ndim(values) else np.shape(logarithm)
    logarithm = np.reshape(logarithm, shape)
    if not return_sign:
        return logarithm
    return logarithm, np.ones_like(logarithm) if sign is None else np.reshape(sign, shape)


def _log_weighted(rows: Any, weights: Any, signed: bool) -> tuple[Any, Any]:
    used = weights != 0
    shift = _shift(np.where(used, rows, -np.inf))
    total = np.sum(np.where(used, weights * np.exp(rows - shift), 0.0), axis=-1)
    sign = np.sign(total)
    return np.log(np.abs(total) if signed else total) + shift[..., 0], sign


@stands_in_for("scipy.special.softmax")
def softmax(x: Any, axis: Any = None) -> Any:
    """exp(x) / sum(exp(x)), without overflow."""
    values = traced(x)
    powers = np.exp(values - _shift_along(values, axis))
    return powers / np.sum(powers, axis=axis, keepdims=True) if np.ndim(values) else powers / powers


@stands_in_for("scipy.special.log_softmax")
def log_softmax(x: Any, axis: Any = None) -> Any:
    """x - logsumexp(x), without overflow."""
    values = traced(x)
    shifted = values - _shift_along(values, axis)
    return shifted - np.log(np.sum(np.exp(shifted), axis=axis, keepdims=True)) if np.ndim(values) else shifted - shifted


def _shift_along(values: Any, axis: Any) -> Any:
    if not np.ndim(values):
        return values
    rows, kept = merged_axes(values, axis)
    return np.reshape(_shift(rows), kept)


@stands_in_for("scipy.special.softplus")
def softplus(x: Any, **keywords: Any) -> Any:
    """log(1 + exp(x))."""
    return applied(function(h.softplus), x) if not keywords else np.logaddexp(0, x, **keywords)


# ---- Bessel functions, Dirichlet kernel


def _spherical(head: Head) -> Callable[..., Any]:
    slope = _slope(head)

    def handler(n: Any, z: Any, derivative: bool = False) -> Any:
        return applied(composed(slope) if derivative else function(head), n, z)

    return handler


def _slope(head: Head) -> Build:
    """The derivative of head(n, u) in u, as a function of its own."""

    def build(graph: Graph, n: int, u: int) -> int:
        slope = partial(Builder(graph), head, (n, u), graph.node(head, n, u), 1)
        return graph.number(0) if slope is None else slope

    return composed(build)


for _name, _head in (("jn", s.spherical_jn), ("yn", s.spherical_yn), ("in", s.spherical_in), ("kn", s.spherical_kn)):
    stands_in_for(f"scipy.special.spherical_{_name}")(_spherical(_head))


@stands_in_for("scipy.special.diric")
def diric(x: Any, n: Any) -> Any:
    """The Dirichlet kernel sin(n x/2) / (n sin(x/2)) = U_(n-1)(cos(x/2)) / n; n is a number."""
    return applied(function(sp.chebyshevu), n - 1, np.cos(traced(x) / 2)) / n


# ---- gamma functions and counting


def _polygamma(graph: Graph, order: int, u: int) -> int:
    """The n-th derivative of digamma; the order is a number."""
    n = constant(graph, order)
    if n is None or n != int(n) or n < 0:
        why = "its order has to be a number: 0, 1, 2..."
        refuse_function("scipy.special.polygamma", why, "pass the order as a number")
    return graph.node(sp.polygamma, graph.number(int(n)), u) if n else graph.node(sp.digamma, u)


stands_in_for("scipy.special.polygamma")(lambda n, x: applied(composed(_polygamma), n, x))
# the real branches 0 and -1: real, and nan where SciPy's value is complex
stands_in_for("scipy.special.lambertw")(lambda z, k=0, tol=1e-8: applied(UFUNCS["_lambertw"], z, k, 0))


@stands_in_for("scipy.special.zeta")
def zeta(x: Any, q: Any = None, out: Any = None) -> Any:
    """Riemann's zeta function, or Hurwitz's with q."""
    if out is not None:
        refuse_function("scipy.special.zeta", "out= is not supported", "use the returned value")
    return applied(function(sp.zeta), x, *given(q=q).values())


@stands_in_for("scipy.special.comb")
def comb(N: Any, k: Any, *, exact: bool = False, repetition: bool = False) -> Any:  # noqa: N803 (SciPy's name)
    """The number of combinations, by gamma functions; 0 outside 0 <= k <= N."""
    if exact:
        refuse_function("scipy.special.comb", "exact=True counts in Python's integers", "use exact=False")
    N, k = together(N, k)
    if repetition:  # SciPy makes only this count 0 or 1 by hand
        return np.where((k == 0) & (N >= 0), 1.0, applied(function(sp.binomial), N + k - 1, k))
    return np.where((k <= N) & (N >= 0) & (k >= 0), applied(function(sp.binomial), N, k), 0.0)


@stands_in_for("scipy.special.perm")
def perm(N: Any, k: Any, exact: bool = False) -> Any:  # noqa: N803 (SciPy's name)
    """The number of arrangements of k of N things, by gamma functions; 0 outside 0 <= k <= N."""
    if exact:
        refuse_function("scipy.special.perm", "exact=True counts in Python's integers", "use exact=False")
    N, k = together(N, k)
    return np.where((k <= N) & (N >= 0) & (k >= 0), applied(UFUNCS["poch"], N - k + 1, k), 0.0)


@stands_in_for("scipy.special.factorial")
def factorial(n: Any, exact: bool = False, extend: str = "zero") -> Any:
    """gamma(n + 1), and 0 below zero."""
    if exact or extend != "zero":
        why = "exact=True and extend='complex' have no real derivative"
        refuse_function("scipy.special.factorial", why, "use exact=False")
    n = traced(n)
    return np.where(n < 0, 0.0, applied(function(sp.factorial), n))


@stands_in_for("scipy.special.multigammaln")
def multigammaln(a: Any, d: int) -> Any:
    """Logarithm of the multivariate gamma function of dimension d."""
    start = d * (d - 1) * 0.25 * math.log(math.pi)
    return sum((applied(UFUNCS["gammaln"], traced(a) - 0.5 * j) for j in range(d)), start)
