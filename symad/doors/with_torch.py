"""Kernels as PyTorch functions. Their derivatives of every order are kernels too."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, update_wrapper
from inspect import signature
from typing import Any

import numpy as np

from symad.doors.callbacks import Array
from symad.doors.differentiable_kernels import DifferentiableKernel, differentiable, real_array
from symad.doors.flat_functions import other_shapes
from symad.errors import ArgumentError
from symad.extras import optional

Function = Callable[..., Any]


def to_torch(f: Function, *examples: Any) -> Function:
    """Return a function of PyTorch's tensors that evaluates f by a kernel, for arguments of the examples' shapes.

    `backward`, also through a gradient (`create_graph=True`), `torch.func.grad`, `vjp`, `jvp`, `jacrev`, `jacfwd`,
    `hessian` and `vmap` (which is one batch of the kernel, on as many threads as PyTorch has) work on it as on any
    other function. Arguments and results may be containers. Tensors are float64 in the memory of the processor; numbers
    and arrays are made such. ArgumentError for others, and without PyTorch (the extra `torch`).

    >>> import torch, symad as sa
    >>> f = sa.to_torch(lambda x: np.sum(np.sin(x) * x[0]), np.zeros(2))
    >>> x = torch.tensor([0.5, 0.0], dtype=torch.float64, requires_grad=True)
    >>> (f(2 * x) ** 2).backward()
    >>> x.grad.round(decimals=4)
    tensor([4.6509, 3.3659], dtype=torch.float64)
    """
    torch = optional("torch", "a function for PyTorch")
    flat, order = differentiable(f, examples, "PyTorch")
    evaluate = _evaluated(torch)
    shapes = order.argument_shapes

    def called(*args: Any, **keywords: Any) -> Any:
        given = [_tensor(torch, value, k) for k, value in enumerate(flat.apart(args, keywords))]
        if (told := tuple(tuple(value.shape) for value in given)) != shapes:
            raise other_shapes(told, shapes, "use torch.func.vmap for many points")
        results = evaluate(torch, order, 0, *given)
        return flat.together(results if len(order.shapes) > 1 else results[0])

    return update_wrapper(torch.compiler.disable(called), f)


def _tensor(torch: Any, value: Any, number: int) -> Any:
    """Return an argument as a float64 tensor in memory; ArgumentError for other tensors."""
    if not isinstance(value, torch.Tensor):
        return torch.from_numpy(real_array(value, number))
    if value.dtype is torch.float64 and value.device.type == "cpu" and value.layout is torch.strided:
        return value
    raise ArgumentError(
        f"argument {number}: a tensor of {value.dtype} on {value.device}, {value.layout}",
        why="kernels take float64 in the memory of the processor", do="convert it: x.to('cpu', torch.float64)",
    )  # fmt: skip


class Evaluated:
    """A `torch.autograd.Function` call: torch, the order, the number of leading axes, all arguments.

    All arguments have the same leading axes, those of `torch.func.vmap`.
    """

    @staticmethod
    def forward(*inputs: Any) -> Any:
        """Return the results as tensors."""
        torch, order, leading, *args = inputs
        return tuple(map(torch.from_numpy, _numbers(torch, order, leading, args)))

    @staticmethod
    def setup_context(context: Any, inputs: Any, output: Any) -> None:
        """Keep the inputs of derivatives."""
        context.torch, context.order, context.leading, *args = inputs
        context.save_for_backward(*args)
        context.save_for_forward(*args)

    @staticmethod
    def backward(context: Any, *slopes: Any) -> Any:
        """Return the cotangents of the arguments that need them."""
        args = context.saved_tensors
        wanted = tuple(k for k in range(len(args)) if context.needs_input_grad[k + 3])
        evaluate, pullback = _evaluated(context.torch), context.order.pullback(wanted)
        pulled = iter(evaluate(context.torch, pullback, context.leading, *args, *slopes))
        return None, None, None, *(next(pulled) if k in wanted else None for k in range(len(args)))

    @staticmethod
    def jvp(context: Any, *tangents: Any) -> Any:
        """Return the tangents of the results."""
        moving = tuple(k for k, tangent in enumerate(tangents[3:]) if tangent is not None)
        evaluate, pushforward = _evaluated(context.torch), context.order.pushforward(moving)
        along = [tangents[3 + k] for k in moving]
        return evaluate(context.torch, pushforward, context.leading, *context.saved_tensors, *along)

    @staticmethod
    def vmap(info: Any, axes: Any, torch: Any, order: DifferentiableKernel, leading: int, *args: Any) -> Any:
        """Return the results for many points: one more leading axis."""
        spread = [
            value.expand(info.batch_size, *value.shape) if axis is None else value.movedim(axis, 0)
            for value, axis in zip(args, axes[3:], strict=True)
        ]
        results = _evaluated(torch)(torch, order, leading + 1, *spread)
        return results, (0,) * len(results)


@cache
def _evaluated(torch: Any) -> Function:
    evaluated_type: Any = type("Evaluated", (Evaluated, torch.autograd.Function), {})
    evaluated_type.forward.__signature__ = signature(evaluated_type.forward)  # which PyTorch asks for at each call
    evaluate: Function = evaluated_type.apply
    return evaluate


def _numbers(torch: Any, order: DifferentiableKernel, leading: int, args: Sequence[Any]) -> list[Array]:
    """Return the results as arrays; an argument that is the same for all points is given once."""
    given = [_array(value) for value in args]
    axes = given[0].shape[:leading] if given else ()
    if leading:
        given = [array if any(array.strides[:leading]) or not array.size else array[(0,) * leading] for array in given]
        values = order.kernel.batch(*given, threads=torch.get_num_threads())
    else:
        values = order.kernel(*given)
    results = values if isinstance(values, tuple) else (values,)
    return [
        np.asarray(result) if np.shape(result) == (*axes, *shape) else np.broadcast_to(result, (*axes, *shape)).copy()
        for result, shape in zip(results, order.shapes, strict=True)
    ]


def _array(value: Any) -> Array:
    try:
        array: Array = value.numpy(force=True)
    except RuntimeError as error:
        raise ArgumentError(
            "a tensor without numbers of its own", why=str(error),
            do="use torch.func (vmap, jacrev, hessian) in place of vectorize=True and is_grads_batched=True",
        ) from error  # fmt: skip
    return array
