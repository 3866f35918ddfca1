"""`ode`: SciPy's integrators with our derivatives."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from codegen.errors import UnboundSymbolError
from codegen.machine.calls.arguments import numbers_of, refuse_rules
from codegen.machine.exports.export import Exported
from codegen.records import dataclass
from symad.derivatives.implicit import TOLERANCE, Equation, solve
from symad.derivatives.solvers import newton
from symad.doors.adjoint import require_success, value_and_gradient
from symad.doors.callbacks import Array
from symad.doors.events import Event, moved
from symad.doors.flat_functions import FlatParameters
from symad.doors.flows import flow
from symad.doors.systems import System, export_system
from symad.doors.with_solve_ivp import Integrator, Method, integrated
from symad.errors import ArgumentError, ConvergenceError, TraceError
from symad.tracing.calling.function_names import check_function, name_of
from symad.tracing.calling.running import callee
from symad.tracing.calling.user_place import user_place
from symad.tracing.values.containers import flatten, unflatten
from symad.tracing.values.known_numbers import SymbolicValueError
from symad.tracing.values.node_operands import holds_traced
from symad.tracing.values.traced import Traced

Function = Callable[..., Any]


@dataclass(frozen=True, eq=False)
class Trajectory:
    """An integrator's result, with the names of SciPy's `solve_ivp`. The last axis is that of times.

    `sensitivities` are the derivatives of y in the numbers of all parameters, one behind the other (an axis before that
    of times), `second_sensitivities` the second ones (two axes); None where they were not asked for. Of each event
    there are its times, the states then (an axis of occurrences first), and the derivatives of both (an axis of
    parameters second). `status`, `success` and `message` are the integrator's own.

    >>> import symad as sa
    >>> found = sa.ode(lambda t, y, k: -k * y, [1.0], (2.0,)).solve((0.0, 1.0), times=[1.0], sensitivities=1)
    >>> found.success, found.y.round(6), found.sensitivities.round(6)
    (True, array([[0.135335]]), array([[[-0.135335]]]))
    """

    t: Array
    y: Array
    sensitivities: Array | None
    second_sensitivities: Array | None
    t_events: list[Array]
    y_events: list[Array]
    t_event_sensitivities: list[Array]
    y_event_sensitivities: list[Array]
    success: bool
    status: int
    message: str
    nfev: int
    njev: int
    nlu: int
    method: str


class InitialValueProblem:
    """The result of `ode`: a differential system with its initial value."""

    parameters: tuple[Any, ...]
    shape: tuple[int, ...]

    def __init__(
        self, f: Function, y0: Any, parameters: tuple[Any, ...] = (), *, mass: Any = None,
        events: Sequence[Function] | Function = (),
    ) -> None:  # fmt: skip
        self._laid = laid = FlatParameters.of(parameters)
        check_function(f, ["t", "y", *_names(parameters)])
        if callable(y0):
            check_function(y0, _names(parameters))
        self.parameters = parameters
        begin = y0 if callable(y0) else _constant(y0)
        q = np.asarray(laid.flat(parameters), dtype=np.float64)
        start = _as_array(begin(*laid.split(q)))
        self.shape = start.shape
        right = partial(_flat_right, f, laid, self.shape, _mass(mass, laid, q, start.size))
        self._system = System(right, partial(_beginning, begin, laid), start.size, q)
        given = (events,) if callable(events) else tuple(events)
        examples = 0.0, np.ravel(start), q
        self._events = [Event(self._flat_event(g), g, examples) for g in given]

    def _flat_event(self, g: Function) -> Function:
        check_function(g, ["t", "y", *_names(self.parameters)])
        return partial(_event, g, self._laid, self.shape)

    def export(
        self, directory: str | os.PathLike[str], *parameters: Any, abi: str = "cvode", name: str = "ode",
        cpu: str = "host",
    ) -> Exported:  # fmt: skip
        """Write the right-hand side and its Jacobian into a directory, as functions that CVODE of SUNDIALS calls.

        A state or slope that is NaN or infinite makes them return 1, which CVODE takes for a step that was too long.
        WorkbenchError without a C compiler. `cpu` is as of `Kernel.export`.

        >>> import tempfile
        >>> made = ode(lambda t, y, k: -k * y, [1.0], (4.0,)).export(tempfile.mkdtemp(), name="decay")
        >>> sorted(made.files)
        ['cmake', 'cvode', 'header', 'library', 'object', 'pkg-config']
        """
        q = self._numbers(parameters)
        start = self._system.start(0, q)
        return export_system(self._system.kernels(0), start.ravel(), q, directory, abi=abi, name=name, cpu=cpu)

    def solve(
        self, span: tuple[float, float], *parameters: Any, method: Method | None = None, times: Any = None,
        sensitivities: int = 0, rtol: float = 1e-8, atol: Any = 1e-10, options: Mapping[str, Any] | None = None,
    ) -> Trajectory:  # fmt: skip
        """Return the trajectory from span[0] to span[1] at `times`, or at the integrator's own steps.

        `method` and `options` are those of `scipy.integrate.solve_ivp`; without a method it is "LSODA" below 100
        numbers (sensitivities count), and "BDF" beyond, which factorizes sparse matrices. `sensitivities=1` integrates
        the variational equations along, 2 the second ones too; they are under error control like y. What the
        integrator says of its end is in the result. An event that is 0 at the start happens when it passes 0 again.
        ArgumentError for a state or a right-hand side that is NaN at the
        start, ConvergenceError where SciPy stops with an error, as for a Jacobian of NaN.

        >>> found = ode(lambda t, y, k: [y[1], -k * y[0]], [1.0, 0.0], (4.0,)).solve((0.0, 1.0), times=[0.5, 1.0])
        >>> found.y[0].round(6)  # cos 2t
        array([ 0.540302, -0.416147])
        """
        if sensitivities not in (0, 1, 2):
            raise ArgumentError(f"sensitivities={sensitivities!r}", do="ask for 0, 1 or 2; `solution` has every order")
        q = self._numbers(parameters)
        if sensitivities:
            self._require_parameters()
        by = Integrator(method, rtol, atol, options or {})
        kernels, rows = self._system.kernels(sensitivities), self._system.sensitivities(sensitivities)
        start, ends = self._system.start(sensitivities, q), _span(span)
        trajectory = integrated(
            kernels, q, ends, start, by, t_eval=None if times is None else _times(times),
            events=[event.of(q, (ends, start, kernels.of(q))) for event in self._events] or None,
        )  # fmt: skip
        trajectory.t_events, trajectory.y_events = (
            [np.asarray(values) for values in every or ()] for every in (trajectory.t_events, trajectory.y_events)
        )
        moves = moved(self._events, trajectory, kernels.of(q), rows.shape, q, (ends[0], start)) if sensitivities else []
        every = np.asarray(trajectory.y).reshape(*rows.shape, -1)

        def of_order(order: int) -> Array | None:
            if order > sensitivities:
                return None
            values = np.moveaxis(every[rows.rows(order)], order, 0)  # numbers of y first
            return values.reshape(*self.shape, *values.shape[1:])

        y = of_order(0)
        assert y is not None
        return Trajectory(
            trajectory.t, y, of_order(1), of_order(2), trajectory.t_events,
            [np.reshape(z, (len(z), *rows.shape))[:, 0].reshape(len(z), *self.shape) for z in trajectory.y_events],
            [time for time, _ in moves], [state.reshape(*state.shape[:2], *self.shape) for _, state in moves],
            bool(trajectory.success), int(trajectory.status), str(trajectory.message), int(trajectory.nfev),
            int(trajectory.njev), int(trajectory.nlu), trajectory.method,
        )  # fmt: skip

    def solution(
        self, times: Any, *parameters: Any, method: Method | None = None, rtol: float = 1e-8, atol: Any = 1e-10,
        options: Mapping[str, Any] | None = None,
    ) -> Any:  # fmt: skip
        """Return y at each of `times`, of which the first is that of y0; differentiable in times and parameters.

        Derivatives of every order are those of the variational equations, integrated to the same tolerances; so a fit
        has a gradient and a Hessian. ConvergenceError where the integrator fails, ArgumentError for times out of order,
        TraceError when compiled: an integrator needs numbers (`scan` over steps of a fixed length compiles).

        >>> import symad as sa
        >>> decay = ode(lambda t, y, k: -k * y, [1.0], (2.0,))
        >>> at_one = lambda k: decay.solution([0.0, 1.0], k)[1, 0]
        >>> [round(float(sa.derivative(at_one, order)(2.0)), 6) for order in range(4)]
        [0.135335, -0.135335, 0.135335, -0.135335]
        """
        by = Integrator(method, rtol, atol, options or {})
        q = self._laid.flat(parameters or self.parameters)
        rows = self._rows(times, q, by)
        return np.reshape(rows[:, 0], (len(rows), *self.shape))

    def _rows(self, times: Any, q: Any, by: Integrator) -> Any:
        moving = holds_traced([times])
        if not moving and not (times := _times(times)).size:
            raise ArgumentError("no times", do="give some, of which the first is that of y0")
        try:
            if holds_traced([times[0]]):  # the beginning moves
                since = np.stack([time - times[0] for time in times])
                return flow(self._system.shifted(), 0, by)(since, np.append(q, times[0]))
            return flow(self._system, 0, by)(np.stack(list(times)) if moving else times, q)
        except (SymbolicValueError, UnboundSymbolError) as error:
            raise TraceError(
                "the solution of a differential equation was asked for at symbolic values", where=user_place(),
                why="an integrator needs numbers, and a kernel or a SymPy expression has none",
                do="take derivatives at numbers; to compile, write steps of a fixed method as a loop (sa.scan)",
            ) from error  # fmt: skip

    def event_time(
        self, span: tuple[float, float], *parameters: Any, event: int = 0, occurrence: int = 0,
        method: Method | None = None, rtol: float = 1e-8, atol: Any = 1e-10, options: Mapping[str, Any] | None = None,
    ) -> Any:  # fmt: skip
        """Return the time at which an event happens in a span, differentiable in the parameters at every order.

        `occurrence` counts from 0, -1 is the last one. ConvergenceError where it does not happen so often.

        >>> import symad as sa
        >>> fall = ode(lambda t, y, h: [y[1], -9.81], lambda h: [h, 0.0], (5.0,), events=lambda t, y, h: y[0])
        >>> hits = lambda h: fall.event_time((0.0, 10.0), h)
        >>> round(hits(5.0), 6), round(sa.grad(hits)(5.0), 6)  # sqrt(2 h / g), and half of it by h
        (1.009638, 0.100964)
        """
        if not 0 <= event < len(self._events):
            raise ArgumentError(f"event={event}", why=f"there are {len(self._events)} events, counted from 0")
        by = Integrator(method, rtol, atol, options or {})
        q, g = self._laid.flat(parameters or self.parameters), self._events[event].g

        def residual(t: Any, q: Any) -> Any:
            return g(t, self._rows([span[0], t], q, by)[-1, 0], q)

        def found(equation: Equation, start: Any) -> Any:
            values = self._laid.split(equation.plain[0])
            told = self.solve(span, *values, method=method, rtol=rtol, atol=atol, options=options)
            require_success(told)
            times = told.t_events[event]
            if not -len(times) <= occurrence < len(times):
                raise ConvergenceError(
                    f"event {event} happens {len(times)} times between t = {span[0]:g} and {told.t[-1]:g}",
                    why=f"occurrence {occurrence} was asked for, counted from 0", do="integrate further",
                )  # fmt: skip
            return newton(equation.residual, float(times[occurrence]))

        return solve(residual, float(span[1]), (q,), found, TOLERANCE)

    def value_and_grad(
        self, objective: Function, times: Any, *parameters: Any, method: Method | None = None, rtol: float = 1e-8,
        atol: Any = 1e-10, options: Mapping[str, Any] | None = None,
    ) -> tuple[float, Any]:  # fmt: skip
        """Return `objective(y, *parameters)` of y at `times`, and its gradient in the parameters by the adjoint system.

        y has an axis of times first, as `solution` gives it. The adjoint system runs backwards and costs about as much
        for a thousand parameters as for one; it reads y between steps from the integrator's own interpolation. The
        gradient is like the parameter, or a tuple where there are several. Errors as for `solution`.
        Source: Cao, Li, Petzold and Serban, "Adjoint sensitivity analysis for differential-algebraic equations" (2003).

        >>> decay = ode(lambda t, y, k: -k * y, [1.0], (2.0,))
        >>> value, slope = decay.value_and_grad(lambda y, k: np.sum(y**2), [0.0, 1.0])
        >>> round(value, 6), round(slope, 6)  # 1 + exp(-2k), and -2 exp(-2k)
        (1.018316, -0.036631)
        """
        self._require_parameters()
        q, by = self._numbers(parameters), Integrator(method, rtol, atol, options or {})
        value, slope = value_and_gradient(
            self._system,
            lambda y, q: objective(np.reshape(y, (len(y), *self.shape)), *self._laid.split(q)),
            _times(times), q, by,
        )  # fmt: skip
        slopes = self._laid.split(slope, number=float)
        return value, slopes[0] if len(slopes) == 1 else slopes

    def functions(self, *parameters: Any) -> tuple[Function, Function]:
        """Return the right-hand side and its Jacobian as functions of (t, y), flat: `fun` and `jac` of SciPy's solvers.

        >>> right, jacobian = ode(lambda t, y: [y[1], -y[0]], [1.0, 0.0]).functions()
        >>> right(0.0, np.array([1.0, 2.0])), jacobian(0.0, np.zeros(2))
        (array([ 2., -1.]), array([[ 0.,  1.],
               [-1.,  0.]]))
        """
        q, kernels = self._numbers(parameters), self._system.kernels(0)
        return kernels.of(q), kernels.jacobian_of(q, sparse=True)

    def _require_parameters(self) -> None:
        if not self._laid.size:
            raise ArgumentError("derivatives without parameters", do="give the system parameters")

    def _numbers(self, parameters: tuple[Any, ...]) -> Array:
        return np.asarray(self._laid.flat(parameters or self.parameters), dtype=np.float64)


def ode(
    f: Function, y0: Any, parameters: tuple[Any, ...] = (), *, mass: Any = None,
    events: Sequence[Function] | Function = (),
) -> InitialValueProblem:  # fmt: skip
    """Return the initial value problem `mass y' = f(t, y, *parameters)`, `y = y0` at the beginning.

    f returns an array like y0, or a list. y0 is an array, or a function of the parameters that returns one: where it is
    to be differentiated, it is a parameter itself, or made of them. `mass` is a matrix, the diagonal of one, or a
    function of the parameters that returns either. `events` are functions g(t, y, *parameters) that pass 0, with
    SciPy's attributes `terminal` and `direction`. Right-hand sides, Jacobians and variational equations are compiled
    when they are first needed, and serve all values of the parameters. ArgumentError for shapes that do not fit, and
    for a mass matrix that is singular (a differential-algebraic system).

    >>> robertson = ode(
    ...     lambda t, y, k: [-k[0] * y[0] + k[1] * y[1] * y[2], k[0] * y[0] - k[1] * y[1] * y[2] - k[2] * y[1] ** 2,
    ...                      k[2] * y[1] ** 2],
    ...     [1.0, 0.0, 0.0], (np.array([0.04, 1e4, 3e7]),))
    >>> found = robertson.solve((0.0, 40.0), sensitivities=1)
    >>> found.y[:, -1].round(5), found.sensitivities[:, 0, -1].round(3)
    (array([7.1583e-01, 1.0000e-05, 2.8416e-01]), array([-4.248,  0.   ,  4.248]))
    """
    return InitialValueProblem(f, y0, parameters, mass=mass, events=events)


def odeint(
    f: Function, y0: Any, times: Any, *parameters: Any, args: tuple[Any, ...] = (), tfirst: bool = False,
    method: Method | None = None, rtol: float = 1e-8, atol: Any = 1e-10, options: Mapping[str, Any] | None = None,
) -> Any:  # fmt: skip
    """Return the solution of y' = f(y, t, *parameters) at `times`, of which the first is that of y0.

    The order of arguments is that of SciPy's and JAX's `odeint`; with `tfirst=True` it is f(t, y, *parameters), as for
    `ode`. Parameters are further arguments, or a tuple `args`.

    The solution is differentiable at every order in y0, times and parameters: `ode(...).solution(times)`, which says
    what it raises. f is compiled at each call; `ode` keeps what it compiled. What f captures has no derivative: give it
    as a parameter. ArgumentError for f whose first argument is called t or time, without `tfirst`.

    >>> import symad as sa
    >>> pendulum = lambda y, t, length: [y[1], -9.81 / length * np.sin(y[0])]
    >>> sa.jacobian(lambda length: sa.odeint(pendulum, [0.1, 0.0], [0.0, 1.0], length))(1.0).round(4)
    array([[ 0.    ,  0.    ],
           [ 0.0018, -0.4879]])
    """
    check_function(f, [*("t", "y")[:: 1 if tfirst else -1], *_names((*parameters, *args))])
    if not tfirst:
        _check_order(f)
    start = y0 if isinstance(y0, Traced) else np.asarray(_stacked(y0))
    leaves, structure = flatten((start, *parameters, *args))
    problem = ode(
        lambda t, y, y0, *parameters: f(t, y, *parameters) if tfirst else f(y, t, *parameters), lambda y0, *_: y0,
        unflatten(structure, [np.ones(np.shape(leaf)) for leaf in leaves]),
    )  # fmt: skip
    return problem.solution(times, start, *parameters, *args, method=method, rtol=rtol, atol=atol, options=options)


def _names(parameters: tuple[Any, ...]) -> list[str]:
    return [f"parameter_{k}" for k in range(len(parameters))]


def _times(times: Any) -> Array:
    """Return plain times; ArgumentError unless they are a list of numbers."""
    try:
        numbers = numbers_of(times, "times")
    except ArgumentError as error:
        raise ArgumentError(f"times={times!r:.80}", why=str(error), do="give a list of numbers") from error
    if numbers.ndim != 1 or np.isnan(numbers).any():
        raise ArgumentError(f"times={times!r:.80}", do="give a list of numbers, none of them NaN")
    return numbers


def _check_order(f: Function) -> None:
    """Refuse a function that takes the time first, as its name for it says."""
    names = list(inspect.signature(f).parameters)[:2]
    if len(names) == 2 and names[0].lower() in ("t", "time"):
        raise ArgumentError(
            f"{name_of(f)}({', '.join(names)}, ...) takes the time first", why="odeint calls f(y, t), as SciPy does",
            do="exchange the two arguments, or give tfirst=True",
        )  # fmt: skip


def _stacked(value: Any) -> Any:
    refuse_rules(value, "y0")
    return np.stack([_stacked(part) for part in value]) if isinstance(value, list | tuple) else value


def _constant(y0: Any) -> Function:
    values = np.asarray(y0, dtype=np.float64) if holds_traced([y0]) else numbers_of(y0, "y0")
    return partial(_constantly, values)


def _constantly(values: Array, *_: Any) -> Array:
    return values


def _beginning(begin: Function, laid: FlatParameters, q: Any) -> Any:
    return _as_array(callee(begin)(*laid.split(q)))


def _event(g: Function, laid: FlatParameters, shape: tuple[int, ...], t: Any, y: Any, q: Any) -> Any:
    return callee(g)(t, np.reshape(y, shape), *laid.split(q))


def _as_array(value: Any) -> Any:
    return _stacked(value) if isinstance(value, list | tuple) else value


def _flat_right(
    f: Function, laid: FlatParameters, shape: tuple[int, ...], mass: Function | None, t: Any, y: Any, q: Any
) -> Any:
    """Return the right-hand side at flat states and parameters; ArgumentError for another shape than that of y."""
    slope = _as_array(callee(f)(t, np.reshape(y, shape), *laid.split(q)))
    if np.shape(slope) != shape:
        raise ArgumentError(
            f"{name_of(f)} returns shape {np.shape(slope)}", why=f"the state has shape {shape}",
            do="return the derivative of each number of y",
        )  # fmt: skip
    flat = np.ravel(slope)
    if mass is None:
        return flat
    matrix = mass(q)
    return flat / matrix if np.ndim(matrix) == 1 else np.linalg.solve(matrix, flat)


def _mass(mass: Any, laid: FlatParameters, q: Array, size: int) -> Function | None:
    """Return the mass matrix or its diagonal as a function of flat parameters, None without one."""
    if mass is None:
        return None
    matrix_of = mass if callable(mass) else _constant(mass)
    numbers = np.asarray(_as_array(matrix_of(*laid.split(q))), dtype=np.float64)
    if numbers.shape not in ((size,), (size, size)):
        raise ArgumentError(f"a mass matrix of shape {numbers.shape}", why=f"the state has {size} numbers")
    matrix = np.diag(numbers) if numbers.ndim == 1 else numbers
    if np.linalg.matrix_rank(matrix) < size:
        raise ArgumentError(
            "a singular mass matrix", why="the system has algebraic equations, and integrators of SciPy have none",
            do="solve these for their unknowns (sa.root), and integrate the rest",
        )  # fmt: skip
    return partial(_beginning, matrix_of, laid)


def _span(span: tuple[float, float]) -> tuple[float, float]:
    refuse_rules(span, "span")
    try:
        start, end = map(float, span)
    except (TypeError, ValueError) as error:
        raise ArgumentError(f"span={span!r}", do="give two times, the first and the last") from error
    if not (np.isfinite(start) and np.isfinite(end)):
        raise ArgumentError(f"span={span!r}", why="an integrator goes from one time to another")
    return start, end
