"""Functions of NumPy and SciPy that are refused by name, each with its reason."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from symad.tracing.numpy.registry import implements, stands_in_for
from symad.tracing.values.constant_nodes import constant
from symad.tracing.values.known_numbers import values_of
from symad.tracing.values.node_operands import holds_traced, nodes_of
from symad.tracing.values.traced import Traced, numpy_name, refuse_function

Function = Callable[..., Any]

# Reason, what to do instead, and the functions.
_REFUSED: tuple[tuple[str, str, tuple[Function, ...]], ...] = (
    (
        "eigenvectors come from an iteration that has no traced form",
        "use np.linalg.eigh of a symmetric matrix; for a simple eigenvalue of another one d(value) = w @ dA @ v, with "
        "left and right eigenvectors and w @ v = 1: give that rule to symad.custom_derivative",
        (np.linalg.eig, np.linalg.eigvals),
    ),
    (
        "the roots are eigenvalues of a matrix",
        "symad.root finds one root, with its derivatives",
        (np.roots,),
    ),
    (
        "it gives complex numbers, and only real functions are differentiated",
        "use np.sort",
        (np.sort_complex,),
    ),
    (
        "a traced value belongs to a running trace",
        "return the value, and save the result",
        (np.save, np.savez, np.savez_compressed, np.savetxt),
    ),
)  # fmt: skip

REASONS: dict[Function, str] = {function: why for why, _, functions in _REFUSED for function in functions}


def _refusing(function: Function, why: str, do: str) -> Function:
    def handler(*args: Any, **keywords: Any) -> Any:
        plain = [_plain(value) for value in args]
        if holds_traced((*plain, *keywords.values())):
            refuse_function(numpy_name(function), why, do)
        return function(*plain, **keywords)

    return handler


def _plain(value: Any) -> Any:
    """Return a traced array of constants as the numbers it holds: nothing in it has a derivative."""
    if not isinstance(value, Traced):
        return value
    nodes = nodes_of(value, value.scope)
    if any(constant(value.scope.graph, node) is None for node in nodes.ravel().tolist()):
        return value
    return values_of(value.scope, nodes)


for _why, _do, _functions in _REFUSED:
    for _function in _functions:
        implements(_function)(_refusing(_function, _why, _do))


_OF_LINALG: dict[str, tuple[str, str]] = {  # functions: the reason, and what to do
    "eig eigvals schur hessenberg qz ordqz rsf2csf cdf2rdf eig_banded eigvals_banded eigh_tridiagonal "
    "eigvalsh_tridiagonal cossin": (
        "it comes from an iteration that has no traced form",
        "of a symmetric matrix np.linalg.eigh has derivatives",
    ),
    "fractional_matrix_power funm signm cosm sinm tanm coshm sinhm tanhm polar": (
        "it has no traced form",
        "of a symmetric matrix write (V * f(w)) @ V.T with w, V = np.linalg.eigh(a)",
    ),
    "lu ldl rq qr_delete qr_insert qr_multiply qr_update": (
        "its factors have no traced form",
        "use lu_factor with lu_solve, cholesky, or np.linalg.qr",
    ),
    "cho_solve_banded": ("it has no traced form", "use solveh_banded"),
    "solve_continuous_are solve_discrete_are": ("it has no traced form", "use symad.root with the equation"),
    "null_space orth subspace_angles orthogonal_procrustes pinvh diagsvd matrix_balance expm_cond expm_frechet": (
        "it has no traced form",
        "write it with np.linalg.svd, np.linalg.pinv, or scipy.linalg.expm",
    ),
}  # fmt: skip
_OF_SPECIAL: dict[str, tuple[str, str]] = {
    "legendre_p": ("it has no traced form", "use scipy.special.eval_legendre"),
    "assoc_legendre_p sph_legendre_p sph_harm_y": ("it has no traced form", "write it with powers, sines and cosines"),
    "factorial2 factorialk": ("it has no traced form", "write it with scipy.special.gamma"),
}


def _refusing_always(name: str, why: str, do: str) -> Function:
    return lambda *args, **keywords: refuse_function(name, why, do)


for _package, _table in (("scipy.linalg", _OF_LINALG), ("scipy.special", _OF_SPECIAL)):
    for _names, (_why, _do) in _table.items():
        for _name in _names.split():
            stands_in_for(f"{_package}.{_name}")(_refusing_always(f"{_package}.{_name}", _why, _do))
