"""Events of trajectories: SciPy's event functions, and the derivatives of event times."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from codegen.machine.calls.kernel import Kernel
from symad.compiling.native import compile
from symad.doors.callbacks import Array
from symad.errors import ConvergenceError
from symad.transforms.first_order import grad

Function = Callable[..., Any]
SETTINGS = ("terminal", "direction")  # attributes of an event that SciPy reads
STILL = 1e-8  # the speed, relative to that along the trajectory, from which on an event passes 0


class Event:
    """A compiled event function g(t, y, q), with SciPy's attributes of the user's function."""

    g: Function

    def __init__(self, g: Function, given: Function, examples: tuple[Any, ...]) -> None:
        self.g, self._examples = g, examples
        self._settings = {name: getattr(given, name) for name in SETTINGS if hasattr(given, name)}
        self._value: Kernel = compile(g, *examples)

    def of(self, q: Array, start: tuple[tuple[float, float], Array, Function] | None = None) -> Any:
        """Return the event function for SciPy. The first numbers of its states are y.

        With the span, the state and the right-hand side at the start, an event that is 0 there has the sign that it has
        next; so it neither happens nor ends the trajectory there. Without a slope it does not in the first step.
        """
        value, size, begin, first = self._value, self._examples[1].size, np.nan, 0.0
        if start is not None:
            (begin, end), state, right = start
            first = float(value(begin, state[:size], q))
            if first == 0.0:
                in_time, in_state, _ = self._slopes(begin, state[:size], q)
                rate = (in_time + in_state @ right(begin, state)[:size]) * (end - begin)
                first = float(np.copysign(np.finfo(float).tiny, rate)) if rate else np.nan

        def event(t: float, z: Array) -> float:
            return first if t == begin else float(value(t, z[:size], q))

        for name, setting in self._settings.items():
            setattr(event, name, setting)
        return event

    @cached_property
    def _slopes(self) -> Kernel:
        return compile(grad(self.g, argnums=(0, 1, 2)), *self._examples)

    def moves(self, t: float, rows: Array, slope: Array, q: Array, rate: float) -> tuple[Array, Array]:
        """Return the derivatives in the parameters of the time of an event, and of the state then.

        ConvergenceError where g only touches 0, compared to the rate at which it changes along the trajectory: its
        time has no derivative.
        """
        state, first = rows[0], rows[1:]
        in_time, in_state, in_parameters = self._slopes(t, state, q)
        speed = in_time + in_state @ slope
        if not abs(speed) > STILL * rate:
            raise ConvergenceError(
                f"the event at t = {t:g} touches 0, or passes it at no speed", why="its time has no derivative there",
                do="differentiate at other parameters",
            )  # fmt: skip
        of_time = -(first @ in_state + in_parameters) / speed
        return of_time, first + np.outer(of_time, slope)


def moved(
    events: Sequence[Event], solved: Any, right: Function, shape: tuple[int, int], q: Array, begin: tuple[float, Array]
) -> list[tuple[Array, Array]]:
    """Return of each event the derivatives of its times, and of the states then; `begin`: the first time and state."""
    moves = []
    for event, times, states in zip(events, solved.t_events, solved.y_events, strict=True):
        of_each = []
        if len(times):
            value = event.of(q)
            along = [abs(value(t, z)) for t, z in [begin, *zip(solved.t, solved.y.T, strict=True)]]
            rate = max(along) / (max(abs(t - begin[0]) for t in [*solved.t, *times]) or 1.0)
            of_each = [
                event.moves(t, z.reshape(shape)[: 1 + q.size], right(t, z)[: shape[1]], q, rate)
                for t, z in zip(times, states, strict=True)
            ]
        in_time, in_state = [time for time, _ in of_each], [state for _, state in of_each]
        count = len(of_each)
        moves.append((np.array(in_time).reshape(count, q.size), np.array(in_state).reshape(count, q.size, shape[1])))
    return moves
