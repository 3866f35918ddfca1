"""Export functions and derivatives for CasADi's `external`, up to second order."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np

from codegen.ir.sparsity import SparsityPattern
from codegen.machine.calls.arguments import numbers_of
from codegen.machine.calls.kernel import Kernel
from codegen.machine.exports.c_interface import check_name
from codegen.machine.exports.casadi_functions import CasadiFunction, InputPlace, KernelStep, Slot, Writing
from codegen.machine.exports.export import Exported, export_binding
from symad.compiling.native import compile
from symad.doors.casadi_arrays import arranged, binding, block, no_entries, stored
from symad.errors import ArgumentError
from symad.tracing.calling.function_names import argument_names, check_function, name_of
from symad.transforms.first_order import grad, hessian, jacobian


def export(
    function: Callable[..., Any],
    directory: str | os.PathLike[str],
    *examples: Any,
    abi: Literal["casadi"] = "casadi",
    name: str | None = None,
    cpu: str = "host",
) -> Exported:
    """Write a function with its derivatives into a directory, as a library that another tool loads.

    `abi="casadi"`: `casadi.external(name, library)` has the function's exact sparse first and second derivatives, so
    that it may be part of anything that CasADi solves. Arguments are numbers, vectors or matrices of the shapes of
    `examples`; the result is one of them or a tuple. Matrices are CasADi's: column by column. `cpu` is as of
    `Kernel.export`. ArgumentError for arrays of three dimensions, WorkbenchError without a C compiler.

    >>> import tempfile
    >>> folder = tempfile.mkdtemp()
    >>> made = export(lambda x, a: a * np.sum(x**4), folder, np.ones(3), 2.0, name="quartic")
    >>> sorted(made.files)
    ['casadi', 'cmake', 'header', 'library', 'object', 'pkg-config']
    """
    check_function(function)
    if abi != "casadi":
        raise ArgumentError(f"abi={abi!r}", do='"casadi" is for functions; problems have abi="ipopt" too')
    chosen = check_name(name_of(function) if name is None else name)
    maker = _Derivatives(function, chosen, [numbers_of(example, "an example") for example in examples])
    functions = [maker.values(), maker.jacobian(), maker.jacobian_jacobian(), maker.adjoint(), maker.adjoint_jacobian()]
    called = {step.member for function in functions for step in function.steps}
    members = {symbol: kernel.material for symbol, kernel in maker.members.items() if symbol in called}
    return export_binding(binding(chosen, functions, members), directory, cpu=cpu)


class _Results:
    """The results of a function of CasADi, and the steps that compute them."""

    def __init__(self, function: str) -> None:
        self.function = function
        self.slots, self.steps = list[Slot](), list[KernelStep]()

    def add(self, symbol: str, readings: tuple[InputPlace, ...], entries: tuple[Slot, Writing]) -> None:
        """Add what a kernel computes, if there is anything to compute."""
        slot, writing = entries
        if writing.size:
            writings = (Writing(len(self.slots), writing.size, writing.order),)
            self.steps.append(KernelStep(f"{self.function}_{symbol}", readings, writings))
        self.slots.append(slot)

    def add_absent(self, name: str, rows: int, columns: int) -> None:
        """Add a matrix without entries."""
        self.slots.append(Slot(name, (rows, columns), no_entries(rows, columns)))

    def of(self, prefix: str, arguments: tuple[Slot, ...]) -> CasadiFunction:
        """Return the function of arguments that has these results."""
        return CasadiFunction(prefix + self.function, arguments, tuple(self.slots), tuple(self.steps))


class _Derivatives:
    """The functions that CasADi asks for, and the kernels that they call."""

    def __init__(self, function: Callable[..., Any], name: str, examples: Sequence[Any]) -> None:
        self.function, self.name, self.examples = function, name, examples
        self.members: dict[str, Kernel] = {}
        kernel = self._member("value", compile(self._parts, *examples))
        count = len(kernel.declared.outputs)
        names = ["out"] if count == 1 else [f"out{k}" for k in range(count)]
        self.inputs = stored(kernel.declared.arguments, argument_names(function, len(examples)))
        self.outputs = stored(kernel.declared.outputs, names)
        self.seeds = [np.ones(output.size) for output in self.outputs]
        self.slots = tuple(array.slot() for array in self.inputs)
        self.nominal = tuple(output.absent("out_") for output in self.outputs)
        self.readings = tuple(array.reading(k) for k, array in enumerate(self.inputs))
        first = len(self.inputs) + len(self.outputs)
        self.seeded = (*self.readings, *(output.reading(first + k) for k, output in enumerate(self.outputs)))
        self.adjoint_arguments = (*self.slots, *self.nominal, *(array.slot("adj_") for array in self.outputs))

    def values(self) -> CasadiFunction:
        """Return the function itself."""
        writings = tuple(output.writing(k) for k, output in enumerate(self.outputs))
        step = KernelStep(f"{self.name}_value", self.readings, writings)
        return CasadiFunction(self.name, self.slots, tuple(output.slot() for output in self.outputs), (step,))

    def jacobian(self) -> CasadiFunction:
        """Return the Jacobian: one kernel for each pair of result and argument."""
        results = _Results(self.name)
        for o, rows in enumerate(self.outputs):
            for i, columns in enumerate(self.inputs):
                kernel = compile(jacobian(self._part(o), argnums=i, sparse=True, format="csc"), *self.examples)
                self._member(f"jacobian_{o}_{i}", kernel)
                entries = block(f"jac_{rows.name}_{columns.name}", kernel, rows, columns)
                results.add(f"jacobian_{o}_{i}", self.readings, entries)
        return results.of("jac_", (*self.slots, *self.nominal))

    def jacobian_jacobian(self) -> CasadiFunction:
        """Return the Jacobian of the Jacobian: of each of its matrices, column by column, in each argument."""
        results, matrices = _Results(self.name), list[Slot]()
        for o, rows in enumerate(self.outputs):
            for i, columns in enumerate(self.inputs):
                pattern: SparsityPattern = self.members[f"{self.name}_jacobian_{o}_{i}"].sparsity
                name, size = f"jac_{rows.name}_{columns.name}", rows.size * columns.size
                places = rows.places[pattern.rows] + rows.size * columns.places[pattern.columns]
                matrices.append(Slot(f"out_{name}", (rows.size, columns.size), no_entries(rows.size, columns.size)))
                for j, moved in enumerate(self.inputs):
                    symbol = f"jacobian_{o}_{i}_{j}"
                    entries: SparsityPattern = self._member(symbol, self._slopes_of_entries(o, i, j)).sparsity
                    results.add(symbol, self.readings, arranged(
                        f"jac_{name}_{moved.name}", entries.nnz, places[entries.rows], moved.places[entries.columns],
                        (size, moved.size),
                    ))  # fmt: skip
                for output in self.outputs:
                    results.add_absent(f"jac_{name}_out_{output.name}", size, output.size)
        return results.of("jac_jac_", (*self.slots, *self.nominal, *matrices))

    def _slopes_of_entries(self, o: int, i: int, j: int) -> Kernel:
        matrix = jacobian(self._part(o), argnums=i, sparse=True, format="csc")
        return compile(jacobian(lambda *at: matrix(*at).data, argnums=j, sparse=True, format="csc"), *self.examples)

    def adjoint(self) -> CasadiFunction:
        """Return one cotangent of each argument for one of each result."""
        kernel = compile(grad(self._weighted, argnums=tuple(range(len(self.inputs)))), *self.examples, *self.seeds)
        self._member("adjoint", kernel)
        writings = tuple(argument.writing(k) for k, argument in enumerate(self.inputs))
        step = KernelStep(f"{self.name}_adjoint", self.seeded, writings)
        results = tuple(argument.slot("adj_") for argument in self.inputs)
        return CasadiFunction(f"adj1_{self.name}", self.adjoint_arguments, results, (step,))

    def adjoint_jacobian(self) -> CasadiFunction:
        """Return the Jacobian of the cotangents: the Hessian of weighted results, and Jacobians of them transposed."""
        results = _Results(self.name)
        for i, rows in enumerate(self.inputs):
            for j, columns in enumerate(self.inputs):
                kernel = self._member(f"hessian_{i}_{j}", self._curvature(i, j))
                entries = block(f"jac_adj_{rows.name}_{columns.name}", kernel, rows, columns)
                results.add(f"hessian_{i}_{j}", self.seeded, entries)
            for output in self.outputs:
                results.add_absent(f"jac_adj_{rows.name}_out_{output.name}", rows.size, output.size)
            for o, output in enumerate(self.outputs):
                symbol, name = f"jacobian_{o}_{i}", f"jac_adj_{rows.name}_adj_{output.name}"
                pattern: SparsityPattern = self.members[f"{self.name}_{symbol}"].sparsity
                results.add(symbol, self.readings, arranged(
                    name, pattern.nnz, rows.places[pattern.columns], output.places[pattern.rows],
                    (rows.size, output.size),
                ))  # fmt: skip
        arguments = (*self.adjoint_arguments, *(argument.absent("out_adj_") for argument in self.inputs))
        return results.of("jac_adj1_", arguments)

    def _curvature(self, i: int, j: int) -> Kernel:
        weighted: Any = (
            hessian(self._weighted, argnums=i, sparse="full", format="csc")
            if i == j
            else jacobian(grad(self._weighted, argnums=i), argnums=j, sparse=True, format="csc")
        )
        return compile(weighted, *self.examples, *self.seeds)

    def _parts(self, *arguments: Any) -> tuple[Any, ...]:
        results = self.function(*arguments)
        return tuple(results) if isinstance(results, tuple | list) else (results,)

    def _part(self, number: int) -> Callable[..., Any]:
        return lambda *arguments: np.ravel(self._parts(*arguments)[number])

    def _weighted(self, *arguments: Any) -> Any:
        split = len(self.examples)
        parts = self._parts(*arguments[:split])
        return sum(np.dot(seed, np.ravel(part)) for seed, part in zip(arguments[split:], parts, strict=True))

    def _member(self, symbol: str, kernel: Kernel) -> Kernel:
        self.members[f"{self.name}_{symbol}"] = kernel
        return kernel
