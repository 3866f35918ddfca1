"""Integration by CVODE of SUNDIALS, through `scikit-sundae`: compiled right-hand sides and their exact Jacobians.

CVODE does not see a NaN, and would go on for ever with it: the right-hand side fails where its numbers are not finite,
which CVODE is told by its error flag.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np

from symad.errors import ArgumentError
from symad.extras import optional
from symad.solving.callbacks import Array

STEPS = 100_000  # between two times that are asked for
REFUSED = {"events": "events", "dense_output": "a dense solution, as adjoints take it"}


class NotFiniteError(ArithmeticError):
    """The right-hand side, or its Jacobian, is NaN or infinite."""


def integrated_by_cvode(
    right: Callable[[float, Array], Array], jac: Callable[[float, Array], Any], span: tuple[float, float],
    start: Array, by: Any, asked: dict[str, Any],
) -> Any:  # fmt: skip
    """Return what CVODE finds, with the fields of `solve_ivp`; NotFiniteError where a function is NaN on the way.

    ArgumentError for what it is not asked for here.
    """
    cvode = optional("sksundae.cvode", "the integrator CVODE")
    for name, what in REFUSED.items():
        if asked.get(name):
            raise ArgumentError(f"CVODE with {what}", do='use method="BDF", "Radau" or "LSODA"')
    times, kept = _times(span, asked.get("t_eval"))
    first = jac(span[0], start)
    sparse = {} if isinstance(first, np.ndarray) else {"linsolver": "sparse", "sparsity": _pattern(first)}
    options = {"max_num_steps": STEPS, **sparse, **by.options}
    calls = _Calls(right, jac)
    with warnings.catch_warnings():  # that a pattern is for its own differences, which a Jacobian takes the place of
        warnings.filterwarnings("ignore", "Custom sparse Jacobian", UserWarning)
        solver = cvode.CVODE(calls.slope, jacfn=calls.matrix, rtol=by.rtol, atol=by.atol_for(start.size), **options)
    found = solver.solve(times, start)
    values = np.asarray(found.y).T
    return SimpleNamespace(
        t=np.asarray(found.t)[kept], y=values[:, kept], success=bool(found.success), status=int(found.status),
        message=str(found.message), nfev=int(found.nfev), njev=int(found.njev), nlu=int(found.njev), sol=None,
        t_events=None, y_events=None,
    )  # fmt: skip


class _Calls:
    """The functions that CVODE calls, which write into its arrays."""

    def __init__(self, right: Callable[[float, Array], Array], jac: Callable[[float, Array], Any]) -> None:
        self.right, self.jac = right, jac

    def slope(self, t: float, y: Array, out: Array) -> None:
        """Write the right-hand side."""
        out[:] = _finite(self.right(t, y), "the right-hand side", t)

    def matrix(self, t: float, y: Array, _: Array, out: Array) -> None:
        """Write its Jacobian, of a sparse one the entries column by column."""
        found = self.jac(t, y)
        out[...] = _finite(found if isinstance(found, np.ndarray) else found.data, "the Jacobian", t)


def _finite(values: Array, what: str, t: float) -> Array:
    if not np.isfinite(values).all():
        raise NotFiniteError(f"{what} is NaN or infinite at t = {t:g}")
    return values


def _pattern(matrix: Any) -> Any:
    """Return where a matrix has entries, zeros among them."""
    found = matrix.tocsc(copy=True)
    found.data = np.ones_like(found.data)
    return found


def _times(span: tuple[float, float], asked: Any) -> tuple[Array, slice]:
    """Return the times of CVODE, more than two where they are chosen, and which of its results are asked for."""
    if asked is None:
        return np.array(span), slice(None)
    times = np.asarray(asked, dtype=np.float64)
    given = times if times.size and times[0] == span[0] else np.append(span[0], times)
    first = given.size - times.size
    if given.size == 2:
        return np.array([given[0], (given[0] + given[1]) / 2, given[1]]), slice(
            2 if first else None, None, None if first else 2
        )
    return given, slice(first, None)
