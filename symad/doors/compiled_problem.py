"""A compiled problem: kernels, bounds and parameters, without functions; `load`, which reads one, or a kernel."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from codegen.limits import limits
from codegen.machine.calls.arguments import numbers_of
from codegen.machine.calls.kernel import Kernel
from codegen.machine.stored_kernels import load_kernel
from symad import doors
from symad.doors.callbacks import Array, Bounds, Callbacks, Kernels, Progress, Request, Solution, bounds_of
from symad.doors.saved_problems import Saved, is_problem, read_problem, restored, write_problem
from symad.doors.with_ipopt import solved_by_ipopt
from symad.doors.with_scipy import Method, solved_by_scipy
from symad.errors import ArgumentError

if TYPE_CHECKING:
    from codegen.machine.exports.export import Exported
    from codegen.machine.storage.cache import Setting
    from symad.doors.exported_problems import Abi

SolverName = Literal[Method, "ipopt"]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.ndarray | np.generic)


def key_of(examples: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the key of kernels: the shapes of x and parameters; of containers their structure and the shapes in it.

    >>> key_of((np.zeros(2), {"a": 1.0}))
    ((2,), ("PyTreeSpec({'a': *})", ()))
    """
    return tuple([np.shape(value) if _is_number(value) else _key_of(value) for value in examples])


def _key_of(container: Any) -> tuple[Any, ...]:
    leaves, structure = doors.flatten(container)
    if len(leaves) == 1 and leaves[0] is container:
        return doors.shape_of(container)
    return str(structure), *map(doors.shape_of, leaves)


class CompiledProblem:
    """The result of `symad.load(folder)`: the kernels of a problem, for the shapes they were compiled for.

    >>> import tempfile
    >>> import symad as sa
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     sa.Problem(lambda x: np.sum((x - 3) ** 2)).save(folder, np.zeros(2))
    ...     loaded = sa.load(folder)
    >>> loaded.minimize(np.zeros(2)).x.round(6)
    array([3., 3.])
    """

    parameters: tuple[Any, ...]
    bounds: tuple[Any, Any]
    constraint_bounds: tuple[Any, Any]

    def __init__(self, saved: Saved) -> None:
        self.parameters, self.bounds, self.constraint_bounds = saved.parameters, saved.bounds, saved.constraint_bounds
        self._kernels: dict[Any, Kernels] = dict(saved.kernels)  # of each shape that was met

    def kernels(self, x: Any, *parameters: Any) -> Kernels:
        """Return the kernels of a solver for the shapes of arguments. The first call compiles them.

        >>> import symad as sa
        >>> made = sa.Problem(lambda x: np.sum(x**4), lambda x: x[1:] * x[:-1]).kernels(np.ones(3))
        >>> made.gradient(np.ones(3)), made.hessian.sparsity.nnz
        (array([4., 4., 4.]), 5)
        """
        examples = (numbers_of(x, "x0"), *(parameters or self.parameters))
        key = key_of(examples)
        if key not in self._kernels:
            self._kernels[key] = self._compiled(*examples)
        return self._kernels[key]

    def compiled_kernels(self) -> list[Kernel]:
        """Return every kernel that there is, for all shapes."""
        return [kernel for kernels in self._kernels.values() for kernel in kernels if kernel is not None]

    def _compiled(self, *examples: Any) -> Kernels:
        """Return kernels for other shapes, of which there are none here."""
        shapes = " or ".join(", ".join(map(str, shapes)) for shapes in self._kernels)
        raise ArgumentError(
            f"x and parameters of shapes {', '.join(map(str, key_of(examples)))}",
            why=f"a loaded problem has kernels for {shapes}, and no functions to make others of",
            do="make the problem of its functions",
        )

    def save(self, folder: str | os.PathLike[str], *examples: Any, code: bool = True) -> None:
        """Write all kernels that were compiled, and those for examples of x and parameters, into a folder.

        `symad.load(folder)` reads it: nothing is traced or differentiated again. Bounds and parameters are saved too,
        and the functions are not: what is loaded solves problems of the same shapes. A process that is killed leaves
        the problem that was there before, or the new one. `code` is as of `Kernel.save`. ArgumentError where nothing
        was compiled, or the folder cannot be written.

        >>> import tempfile
        >>> import symad as sa
        >>> nearest = sa.Problem(lambda x, a: np.sum((x - a) ** 2), bounds=(0, 1), parameters=(2.0,))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     nearest.save(folder, np.zeros(2))
        ...     sa.load(folder).minimize(np.zeros(2), solver="l-bfgs-b").x
        array([1., 1.])
        """
        if examples:
            self.kernels(*examples)
        if not self._kernels:
            raise ArgumentError(
                "nothing was compiled", do="give an example of x and of the parameters: save(folder, x)"
            )
        saved = Saved(self.bounds, self.constraint_bounds, self.parameters, self._kernels)
        write_problem(folder, saved, code=code)

    def minimize(
        self,
        x0: Any,
        *parameters: Any,
        solver: SolverName = "trust-constr",
        multipliers: Any = None,
        tolerance: float | None = None,
        max_iterations: int | None = None,
        options: Mapping[str, Any] | None = None,
        progress: Progress | None = None,
    ) -> Solution:
        """Solve from x0 with "ipopt" (the extra `ipopt`) or a method of `scipy.optimize`.

        `multipliers` of the constraints, or the solution of a problem nearby, let Ipopt start warm; `options` go to the
        solver as they are; `progress(iteration, value, violation)` is called after each iteration. What the solver says
        of its end is in the solution: an infeasible problem, or too many iterations, raise nothing. ArgumentError for
        bounds that cross, hold NaN or do not fit, for a solver that has no bounds or constraints, or that is not
        installed.

        >>> import symad as sa
        >>> problem = sa.Problem(lambda x, a: np.sum((x - a) ** 2), bounds=(0.0, 1.0))
        >>> problem.minimize(np.ones(2), np.array([0.5, 2.0]), solver="l-bfgs-b").x.round(6)
        array([0.5, 1. ])
        """
        asked = Request(multipliers, tolerance, max_iterations, options or {}, progress)
        return self._found(x0, parameters, solver, asked)[0]

    def export(
        self,
        directory: str | os.PathLike[str],
        x0: Any,
        *parameters: Any,
        abi: Abi,
        name: str = "nlp",
        cpu: str = "host",
    ) -> Exported:
        """Write the problem into a directory, as a library that a solver in another language links or loads.

        `abi="ipopt"`: the callbacks of Ipopt's C interface with bounds, patterns and the start, and a program that
        solves it. `abi="casadi"`: `casadi.nlpsol("solver", "ipopt", library)`, with all parameters in one vector `p`,
        if the name is "nlp"; bounds are arguments there, and a loaded problem takes `no_nlp_grad=True` and
        `calc_lam_p=False`. `cpu` is as of `Kernel.export`. WorkbenchError without a C compiler, LoweringError for
        functions that no C library has.

        >>> import tempfile
        >>> import symad as sa
        >>> problem = sa.Problem(lambda x: np.sum((x - 3) ** 2), bounds=(0, 2))
        >>> sorted(problem.export(tempfile.mkdtemp(), np.zeros(2), abi="ipopt", name="nearest").files)
        ['cmake', 'example', 'header', 'ipopt', 'library', 'object', 'pkg-config']
        """
        start, callbacks = self._at(x0, parameters)
        given, leaves = callbacks.parameters, callbacks.leaves
        if len(leaves) != len(given) or any(a is not b for a, b in zip(leaves, given, strict=True)):
            raise ArgumentError("containers of parameters in an export", do="give parameters that are arrays")
        box, ends = self._bounds(callbacks.shape, callbacks.kernels.rows)
        slopes = self._slopes(callbacks) if abi == "casadi" else None
        return doors.export_problem(callbacks, start, box, ends, slopes, directory, abi=abi, name=name, cpu=cpu)

    def _at(self, x0: Any, parameters: tuple[Any, ...]) -> tuple[Array, Callbacks]:
        """Return the start, flat, and the callbacks."""
        start, given = np.array(numbers_of(x0, "x0")), parameters or self.parameters
        leaves = given if all(map(_is_number, given)) else tuple(doors.flatten(given)[0])
        return start.ravel(), Callbacks(self.kernels(start, *given), start.shape, given, leaves)

    def _slopes(self, callbacks: Callbacks) -> Kernel | None:
        """Return the gradients of the Lagrangian in x and in all parameters, None without functions."""
        return None

    def _bounds(self, shape: tuple[int, ...], rows: int) -> tuple[Bounds, Bounds]:
        return bounds_of(self.bounds, shape, "bounds"), bounds_of(self.constraint_bounds, (rows,), "constraint_bounds")

    def _found(
        self, x0: Any, parameters: tuple[Any, ...], solver: SolverName, asked: Request
    ) -> tuple[Solution, Callbacks]:
        names = [*get_args(Method), "ipopt"]
        if solver not in names:
            raise ArgumentError(f"solver={solver!r}", do=f"use one of {', '.join(names)}")
        asked.check()
        start, callbacks = self._at(x0, parameters)
        box, ends = self._bounds(callbacks.shape, callbacks.kernels.rows)
        solve = solved_by_ipopt if solver == "ipopt" else solved_by_scipy
        return solve(solver, callbacks, start, box, ends, asked), callbacks


def load(
    path: str | os.PathLike[str],
    *,
    cache: Setting = None,
    max_ops: int | None = None,
    max_seconds: float | None = None,
    max_bytes: float | None = None,
) -> Any:
    """Return the kernel that `kernel.save(path)` wrote, or the problem of `problem.save(folder)`, for this machine.

    The files are data: nothing of them is run, and what is damaged, no kernel's or problem's, or written by a newer
    version is refused (ArgumentError). `cache`, `max_ops`, `max_seconds` and `max_bytes` are those of `compile`: with a
    cache machine code is there at once the second time, and limits (LimitError) keep the program of a stranger from
    compiling for hours.

    >>> import tempfile
    >>> import symad as sa
    >>> kernel = sa.compile(lambda p: {"twice": 2 * p["a"]}, {"a": 1.0})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     kernel.save(f"{folder}/twice.symad")
    ...     sa.load(f"{folder}/twice.symad")({"a": 4.0})
    {'twice': 8.0}
    """
    with limits(max_ops, max_seconds, max_bytes):
        if is_problem(path):
            return CompiledProblem(read_problem(Path(path), cache))
        return load_kernel(path, cache=cache, restore=restored)
