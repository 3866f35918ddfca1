"""Integrate by CVODE of SUNDIALS through `scikit-sundae`, with exact Jacobians.

CVODE does not see a NaN, and would go on for ever with it: the right-hand side fails where its numbers are not finite,
which CVODE is told by its error flag.
"""

from __future__ import annotations

import ctypes
import importlib
import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from types import SimpleNamespace
from typing import Any

import numpy as np

from symad.doors.callbacks import Array
from symad.errors import ArgumentError
from symad.extras import optional

STEPS = 100_000  # between two times that are asked for


class NotFiniteError(ArithmeticError):
    """The right-hand side, or its Jacobian, is NaN or infinite."""


def integrated_by_cvode(
    right: Callable[[float, Array], Array], jac: Callable[[float, Array], Any], span: tuple[float, float],
    start: Array, by: Any, asked: dict[str, Any],
) -> Any:  # fmt: skip
    """Integrate by CVODE, with the fields of `solve_ivp`; NotFiniteError for a function that is NaN.

    ArgumentError for what it is not asked for here.
    """
    cvode = optional("sksundae.cvode", "the integrator CVODE")
    if asked.get("dense_output"):
        raise ArgumentError(
            "CVODE with a dense solution, as adjoints take it", do='use method="BDF", "Radau" or "LSODA"'
        )
    wanted = asked.get("t_eval")
    matrix = jac(span[0], start)
    sparse = {} if isinstance(matrix, np.ndarray) else {"linsolver": "sparse", "sparsity": _pattern(matrix)}
    events = asked.get("events") or []
    passed = {"eventsfn": _together(events), "num_events": len(events)} if events else {}
    options = {"max_num_steps": STEPS, **sparse, **passed, **by.options}

    def slope(t: float, y: Array, out: Array) -> None:
        out[:] = _finite(right(t, y), "the right-hand side", t)

    def matrix_at(t: float, y: Array, _: Array, out: Array) -> None:
        """Write the Jacobian, of a sparse one the entries column by column."""
        entries = jac(t, y)
        out[...] = _finite(entries if isinstance(entries, np.ndarray) else entries.data, "the Jacobian", t)

    with warnings.catch_warnings():  # that a pattern is for its own differences, which a Jacobian takes the place of
        warnings.filterwarnings("ignore", "Custom sparse Jacobian", UserWarning)
        solver = cvode.CVODE(slope, jacfn=matrix_at, rtol=by.rtol, atol=by.atol_for(start.size), **options)
    with _threads(int(options.get("nthreads") or 1)) if sparse else nullcontext():
        solution = solver.solve(_times(span, wanted), start)
    reached, values = np.asarray(solution.t), np.asarray(solution.y).T
    kept = np.full(reached.size, True) if wanted is None else np.isin(reached, wanted)
    t_events, y_events = _of_each(events, solution)
    return SimpleNamespace(
        t=reached[kept], y=values[:, kept], success=bool(solution.success), status=int(solution.status),
        message=str(solution.message), nfev=int(solution.nfev), njev=int(solution.njev), nlu=int(solution.njev),
        sol=None, t_events=t_events, y_events=y_events,
    )  # fmt: skip


def _together(events: Sequence[Any]) -> Callable[[float, Array, Array], None]:
    """Return one CVODE function of all events, with the attributes that it reads."""

    def values(t: float, y: Array, out: Array) -> None:
        for k, event in enumerate(events):
            out[k] = event(t, y)

    values.terminal = [int(getattr(event, "terminal", False)) for event in events]  # type: ignore[attr-defined]
    values.direction = [int(np.sign(getattr(event, "direction", 0))) for event in events]  # type: ignore[attr-defined]
    return values


def _of_each(events: Sequence[Any], solution: Any) -> tuple[list[Array], list[Array]]:
    """Return the times of each event, and the states then."""
    if solution.t_events is None:
        return [np.empty(0) for _ in events], [np.empty((0, np.shape(solution.y)[1])) for _ in events]
    rows = [np.asarray(solution.i_events)[:, k] != 0 for k in range(len(events))]
    return [np.asarray(solution.t_events)[of] for of in rows], [np.asarray(solution.y_events)[of] for of in rows]


@contextmanager
def _threads(count: int) -> Iterator[None]:
    """Limit the threads of SuperLU_MT. Its OpenMP starts one for each processor otherwise."""
    library = ctypes.CDLL(importlib.import_module("sksundae._cy_cvode").__file__)  # and what it is linked with
    if not hasattr(library, "omp_set_num_threads"):
        yield
        return
    before = library.omp_get_max_threads()
    library.omp_set_num_threads(count)
    try:
        yield
    finally:
        library.omp_set_num_threads(before)


def _finite(values: Array, what: str, t: float) -> Array:
    flat = values.ravel()
    if not math.isfinite(flat.dot(flat)) and not np.isfinite(values).all():  # the sum of squares may be too large
        raise NotFiniteError(f"{what} is NaN or infinite at t = {t:g}")
    return values


def _pattern(matrix: Any) -> Any:
    """Return where a matrix has entries, zeros among them."""
    pattern = matrix.tocsc(copy=True)
    pattern.data = np.ones_like(pattern.data)
    return pattern


def _times(span: tuple[float, float], wanted: Any) -> Array:
    """Return the times for CVODE: the two ends for its own steps, more if they are chosen."""
    if wanted is None:
        return np.array(span)
    between = [time for time in np.asarray(wanted, dtype=np.float64) if time not in span]
    return np.array([span[0], *(between or [(span[0] + span[1]) / 2]), span[1]])
