"""Kernels as Ops of PyTensor and PyMC. Their gradients are such Ops at every order."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, update_wrapper
from typing import Any

import numpy as np

from symad.doors.differentiable_kernels import DifferentiableKernel, differentiable, real_array
from symad.doors.flat_functions import other_shapes
from symad.errors import ArgumentError
from symad.extras import optional

Function = Callable[..., Any]


def to_pytensor(f: Function, *examples: Any) -> Function:
    """Return a function of PyTensor's variables that writes f down as an Op, for arguments of the examples' shapes.

    `pytensor.grad`, also of a gradient, `pullback`, `pushforward`, `jacobian`, `hessian` and `vectorize_graph` work on
    it; in numba's mode, the default of PyTensor 3, machine code calls the kernel. So any function that compiles is a
    likelihood of PyMC. Arguments and results may be containers; variables are float64, with the axes of the examples;
    arrays and numbers are made such. ArgumentError for others, and without PyTensor (the extra `pytensor`).

    >>> import pytensor, symad as sa
    >>> f = sa.to_pytensor(lambda x: np.sum(np.sin(x) * x[0]), np.zeros(2))
    >>> x = pytensor.tensor.dvector("x")
    >>> slope = pytensor.function([x], pytensor.grad(f(2 * x) ** 2, x), mode="FAST_COMPILE")
    >>> slope(np.array([0.5, 0.0])).round(4)
    array([4.6509, 3.3659])
    """
    optional("pytensor", "a function for PyTensor")
    flat, order = differentiable(f, examples, "PyTensor")
    op = op_of(order)

    def called(*args: Any, **keywords: Any) -> Any:
        return flat.together(op(*flat.apart(args, keywords)))

    return update_wrapper(called, f)


class KernelOp:
    """A PyTensor Op that calls a kernel. It is equal to itself alone."""

    pytensor: Any

    def __init__(self, order: DifferentiableKernel) -> None:
        self.order = order
        self.gufunc_signature = order.kernel.signature
        self._products: dict[DifferentiableKernel, Any] = {}

    def __str__(self) -> str:
        return f"Kernel{{{self.order.name}}}"

    def __reduce__(self) -> tuple[Any, ...]:
        return op_of, (self.order,)

    def make_node(self, *inputs: Any) -> Any:
        """Return the node of a call; ArgumentError for arguments that do not fit."""
        given = [self._variable(value, k) for k, value in enumerate(inputs)]
        _check(given, self.order)
        outputs = [self.pytensor.tensor.tensor(dtype="float64", shape=shape) for shape in self.order.shapes]
        return self.pytensor.graph.basic.Apply(self, given, outputs)

    def _variable(self, value: Any, number: int) -> Any:
        """Return an argument as a float64 variable; ArgumentError for other variables."""
        tensor = self.pytensor.tensor
        if not isinstance(value, self.pytensor.graph.basic.Variable):
            return tensor.as_tensor_variable(real_array(value, number))
        if isinstance(value.type, tensor.TensorType) and value.type.dtype == "float64":
            return value
        raise ArgumentError(
            f"argument {number}: {value} of type {value.type}", why="kernels take dense tensors of float64",
            do='convert it: x.astype("float64")',
        )  # fmt: skip

    def perform(self, node: Any, inputs: Any, output_storage: Any) -> None:
        """Evaluate the kernel."""
        results = self.order.kernel(*inputs)
        for place, result in zip(output_storage, results if len(output_storage) > 1 else (results,), strict=True):
            place[0] = np.asarray(result)

    def infer_shape(self, fgraph: Any, node: Any, input_shapes: Any) -> list[tuple[int, ...]]:
        """Return the shapes of the results."""
        return list(self.order.shapes)

    def connection_pattern(self, node: Any) -> list[list[bool]]:
        """Return which results depend on which arguments. Constants are left out, so that they get no gradients."""
        return [[self._moves(value)] * len(node.outputs) for value in node.inputs]

    def pullback(self, inputs: Any, outputs: Any, cotangents: Any) -> list[Any]:
        """Return the cotangents of the arguments."""
        wanted = tuple(k for k, value in enumerate(inputs) if self._moves(value))
        slopes = [
            self.pytensor.tensor.zeros_like(output) if self._disconnected(slope) else slope
            for output, slope in zip(outputs, cotangents, strict=True)
        ]
        of_wanted = iter(self._product(self.order.pullback(wanted), [*inputs, *slopes]))
        nothing = self.pytensor.gradient.DisconnectedType()
        return [next(of_wanted) if k in wanted else nothing() for k in range(len(inputs))]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        """Return the tangents of the results."""
        moving = tuple(
            k for k, tangent in enumerate(tangents) if tangent is not None and not self._disconnected(tangent)
        )
        return self._product(self.order.pushforward(moving), [*inputs, *(tangents[k] for k in moving)])

    def L_op(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:  # noqa: N802
        """The name of `pullback` before PyTensor 3."""
        return self.pullback(inputs, outputs, output_grads)

    def R_op(self, inputs: Any, eval_points: Any) -> list[Any]:  # noqa: N802
        """The name of `pushforward` before PyTensor 3."""
        return self.pushforward(inputs, None, eval_points)

    def _product(self, order: DifferentiableKernel, given: list[Any]) -> list[Any]:
        if order not in self._products:
            self._products[order] = op_of(order)
        return list(self._products[order](*given, return_list=True))

    def _moves(self, value: Any) -> bool:
        return not isinstance(value, self.pytensor.graph.basic.Constant)

    def _disconnected(self, value: Any) -> bool:
        return isinstance(value.type, self.pytensor.gradient.DisconnectedType)


def op_of(order: DifferentiableKernel) -> Any:
    """Return an Op of PyTensor for a kernel."""
    return _op_type(optional("pytensor", "a function for PyTensor"))(order)


@cache
def _op_type(pytensor: Any) -> type:
    op_type = type("KernelOp", (KernelOp, pytensor.graph.op.Op), {"pytensor": pytensor})
    numba = optional("pytensor.link.numba.dispatch.basic", "PyTensor's mode for numba")
    optional("symad.doors.pytensor_in_numba", "PyTensor's mode for numba").register(numba, op_type)
    return op_type


def _check(given: list[Any], order: DifferentiableKernel) -> None:
    """Raise ArgumentError for shapes that differ from those of the examples."""
    shapes = [tuple(value.type.shape) for value in given]
    fits = len(shapes) == order.arguments and all(
        len(told) == len(shape) and all(n in (None, m) for n, m in zip(told, shape, strict=True))
        for told, shape in zip(shapes, order.argument_shapes, strict=False)
    )
    if not fits:
        do = "use pytensor.graph.replace.vectorize_graph for many points"
        raise other_shapes(shapes, order.argument_shapes, do)
