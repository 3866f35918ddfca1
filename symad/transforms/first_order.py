"""`grad`, `derivative`, Jacobians, Hessians: a few lines of composition each.

Every transform takes a function and works on numbers, arrays, nested containers of them, SymPy expressions and traced
values; each nests inside each. Names, argument order and `argnums` follow JAX; keyword arguments are passed on as they
are. `wrt` chooses parts of arguments by their paths, as error messages write them: `wrt='params["layer"].weight'`, or
a tuple of paths; everything else is constant.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from typing import Any, Concatenate, Literal, get_args, overload

import numpy as np

from codegen.ir.sparsity import Format
from codegen.options import check_whole
from symad.derivatives import in_code, modes
from symad.derivatives.application import (
    Function,
    call_scalar,
    check_choice,
    check_dense,
    close_blocks,
    close_matrix,
    described,
    in_level_of_arrays_or_elements,
    known_options,
    require_scalar,
    storage_of,
)
from symad.derivatives.in_code import MatrixColumns, TransformRecord, transform_of
from symad.derivatives.kept_traces import KeptTraces
from symad.derivatives.level import FunctionResultError, Level
from symad.derivatives.selection import FIRST, Argnums, Paths, check_argnums, select_arguments
from symad.derivatives.signatures import P, R, T
from symad.errors import ArgumentError
from symad.tracing.calling.function_names import check_function
from symad.tracing.values.sparse_matrix import SparseMatrix, Triangle, triangle_of
from symad.transforms.linear_transforms import jvp as jvp

HessianMode = Literal["auto", "edge", "dyadic", "fwd-rev", "rev-rev", "rev-fwd", "fwd-fwd"]
JacobianMode = Literal["auto", "fwd", "rev", "cross-country"]


@overload
def value_and_grad(f: Callable[Concatenate[T, P], R]) -> Callable[Concatenate[T, P], tuple[R, T]]: ...


@overload
def value_and_grad(f: Callable[P, R], argnums: Argnums, *, wrt: Paths = None) -> Callable[P, tuple[R, Any]]: ...


@overload
def value_and_grad(f: Callable[P, R], *, wrt: Paths) -> Callable[P, tuple[R, Any]]: ...


@known_options
def value_and_grad(f: Function, argnums: Argnums = FIRST, *, wrt: Paths = None) -> Function:
    """Return a function that gives `(f(*args), gradient)` of a scalar f by reverse mode.

    The gradient has the structure of argument `argnums` (by default the first; a tuple of them for a tuple of
    argnums), or of the part chosen by `wrt`. ArgumentError when f is not scalar: a gradient of a vector is not defined,
    see `jacobian` and `vjp`.

    >>> value_and_grad(lambda x: x[0] * x[1])([2.0, 3.0])
    (6.0, [3.0, 2.0])
    >>> value_and_grad(lambda p: p["a"] * p["b"][0], wrt='p["b"]')({"a": 2.0, "b": [3.0]})
    (6.0, [2.0])
    """
    check_argnums(argnums)
    kept = KeptTraces(f)

    def apply(*args: Any, **keywords: Any) -> tuple[Any, Any]:
        chosen = select_arguments(f, args, argnums, keywords, wrt)
        if (written := in_code.gradient(chosen)) is not None:
            return written[0], chosen.as_asked(written[1])
        result = kept.gradient(chosen, lambda level, function: call_scalar(level, function, f))
        return result[0], chosen.as_asked(result[1])

    record = TransformRecord("value and gradient", f, argnums) if wrt is None else None
    return described(apply, f, "value and gradient", record)


@overload
def grad(f: Callable[Concatenate[T, P], Any]) -> Callable[Concatenate[T, P], T]: ...


@overload
def grad(f: Callable[P, Any], argnums: Argnums, *, wrt: Paths = None) -> Callable[P, Any]: ...


@overload
def grad(f: Callable[P, Any], *, wrt: Paths) -> Callable[P, Any]: ...


@known_options
def grad(f: Function, argnums: Argnums = FIRST, *, wrt: Paths = None) -> Function:
    """Return the gradient of a scalar function, by reverse mode; structure and errors as for `value_and_grad`.

    >>> grad(lambda x: (x**2).sum())(np.array([1.0, 2.0]))
    array([2., 4.])
    """
    both = value_and_grad(f, argnums, wrt=wrt)

    def apply(*args: Any, **keywords: Any) -> Any:
        try:
            return both(*args, **keywords)[1]
        except FunctionResultError as error:
            error.unless_from(f)
            if not error.is_single:
                return error.each(f, lambda part: grad(part, argnums, wrt=wrt)(*args, **keywords))
            return lambda *more: grad(wraps(f)(lambda *p: f(*p, **keywords)(*more)), argnums, wrt=wrt)(*args)

    return described(apply, f, "gradient", TransformRecord("gradient", f, argnums) if wrt is None else None)


@known_options
def derivative(f: Callable[P, R], order: int = 1, *, wrt: str | None = None) -> Callable[P, R]:
    """Return the derivative of a function of one scalar, of any order, by nested forward mode.

    f may return arrays, functions (which are then differentiated at each application), or containers of them. With
    `wrt`, f may have any arguments, and the path chooses the scalar. ArgumentError for an argument that is no scalar.

    >>> import sympy
    >>> derivative(lambda x: x**3, order=2)(2.0), derivative(lambda x: sympy.sin(2) * x**2)(sympy.Symbol("x"))
    (12.0, 2*x*sin(2))
    """
    check_whole("order", order, 0)
    if wrt is not None:
        return _derivative_in_part(f, order, wrt)

    def once(g: Function) -> Function:
        def apply(x: Any, **keywords: Any) -> Any:
            if np.ndim(x) != 0:
                raise ArgumentError(
                    f"an argument of shape {np.shape(x)} for derivative",
                    why="derivative takes a function of one scalar",
                    do="use grad, jacobian or jvp",
                )
            return jvp(partial(g, **keywords) if keywords else g, (x,), (1.0 if isinstance(x, float) else 1,))[1]

        return described(apply, g, "derivative", TransformRecord("derivative", g))

    result = f
    for _ in range(order):
        result = once(result)
    return described(result, f, f"derivative of order {order}", transform_of(result)) if order else f


def _derivative_in_part(f: Function, order: int, wrt: str) -> Function:
    if not isinstance(wrt, str):
        raise ArgumentError(f"wrt={wrt!r}", why="derivative takes one scalar, so one path", do="use grad or jacobian")

    def apply(*args: Any, **keywords: Any) -> Any:
        chosen = select_arguments(f, args, FIRST, keywords, wrt)
        return derivative(chosen.function, order)(*chosen.arguments)

    return described(apply, f, f"derivative of order {order}")


@known_options
def jacfwd(f: Callable[P, Any], argnums: Argnums = FIRST, *, wrt: Paths = None) -> Callable[P, Any]:
    """Return the Jacobian by forward mode; for an output of shape s and an argument of shape t it has shape s + t.

    >>> jacfwd(lambda x: np.stack([x[0] * x[1], x[1]]))(np.array([2.0, 3.0]))
    array([[3., 2.],
           [0., 1.]])
    """
    return jacobian(f, argnums, wrt=wrt, mode="fwd")


@known_options
def jacrev(f: Callable[P, Any], argnums: Argnums = FIRST, *, wrt: Paths = None) -> Callable[P, Any]:
    """Return the Jacobian by reverse mode; shapes as for `jacfwd`.

    >>> jacrev(lambda x: np.stack([x[0] * x[1], x[1]]))(np.array([2.0, 3.0]))
    array([[3., 2.],
           [0., 1.]])
    """
    return jacobian(f, argnums, wrt=wrt, mode="rev")


@overload
def jacobian(
    f: Callable[P, Any], argnums: Argnums = FIRST, *, wrt: Paths = None, mode: JacobianMode = "auto",
    sparse: Literal[True], format: Format = "coo",
) -> Callable[P, SparseMatrix]: ...  # fmt: skip


@overload
def jacobian(
    f: Callable[P, Any], argnums: Argnums = FIRST, *, wrt: Paths = None, mode: JacobianMode = "auto",
    sparse: bool = False, format: Format = "coo",
) -> Callable[P, Any]: ...  # fmt: skip


@known_options
def jacobian(
    f: Function,
    argnums: Argnums = FIRST,
    *,
    wrt: Paths = None,
    mode: JacobianMode = "auto",
    sparse: bool = False,
    format: Format = "coo",
) -> Function:
    """Return the Jacobian; `mode="auto"` takes the mode with the fewest operations, which `choices` shows.

    "fwd" takes one forward pass for each input, "rev" one backward pass for each output (both over what depends on it
    only), "cross-country" eliminates the nodes between in the order of least fill. `sparse=True` gives a SparseMatrix
    of shape (outputs, inputs) with the exact pattern over flat inputs and outputs, its entries in the order of `format`
    ("coo", "csr" or "csc"). Source: Griewank and Walther, "Evaluating Derivatives" (2008), chapters 9 and 10.

    >>> jacobian(lambda x: x * x, sparse=True)(np.array([2.0, 3.0])).rows
    array([0, 1])
    >>> import symad as sa
    >>> with sa.choices() as made:
    ...     _ = jacobian(lambda x: np.exp(x.sum() ** 3 * x[0]) * np.ones(9) * x[0])(np.ones(9))
    >>> made[0].chosen, sorted(made[0].operations)
    ('cross-country', ['cross-country', 'fwd', 'rev'])
    """
    check_argnums(argnums)
    check_choice("mode", mode, get_args(JacobianMode))
    check_choice("sparse", sparse, (False, True))
    storage = storage_of(sparse, format)

    def apply(*args: Any, **keywords: Any) -> Any:
        chosen = select_arguments(f, args, argnums, keywords, wrt)
        if mode == "auto" and (written := in_code.matrix(chosen, "Jacobian", sparse, format)) is not None:
            return written

        def made(level: Level) -> Any:
            result = level.call(chosen.function)
            if not sparse:
                check_dense(f, "Jacobian", result.nodes.size, level.parameters.nodes.size)
            if level.has_array_nodes:
                if not modes.is_cheaper(level):
                    return None
                return close_blocks(level, modes.array_jacobian(level, result, direction), result, chosen)
            return close_matrix(level, modes.jacobian_entries(level, result, mode), result, chosen, storage)

        direction = None if sparse or mode == "cross-country" else mode
        return in_level_of_arrays_or_elements(chosen, made, direction is not None)

    columns = None if sparse else _columns(f, argnums)
    record = (
        TransformRecord("Jacobian", f, argnums, sparse, format, columns) if wrt is None and mode == "auto" else None
    )
    return described(apply, f, "Jacobian", record)


@overload
def hessian(
    f: Callable[P, Any], argnums: Argnums = FIRST, *, wrt: Paths = None, mode: HessianMode = "auto",
    sparse: Literal[True, "lower", "upper", "full"], format: Format = "coo",
) -> Callable[P, SparseMatrix]: ...  # fmt: skip


@overload
def hessian(
    f: Callable[P, Any], argnums: Argnums = FIRST, *, wrt: Paths = None, mode: HessianMode = "auto",
    sparse: bool | Triangle = False, format: Format = "coo",
) -> Callable[P, Any]: ...  # fmt: skip


@known_options
def hessian(
    f: Function,
    argnums: Argnums = FIRST,
    *,
    wrt: Paths = None,
    mode: HessianMode = "auto",
    sparse: bool | Triangle = False,
    format: Format = "coo",
) -> Function:
    """Return the Hessian of a scalar function; for an argument of shape s it has shape s + s.

    `mode` names the outer mode first: "fwd-rev" is forward over reverse. "edge" is symmetric edge pushing (Gower and
    Mello 2012), "dyadic" a sum of dyads (Jackson and McCormick 1986); "auto" takes the one with fewer
    operations. `sparse` ("lower", "upper", "full" or True) gives a SparseMatrix with the exact pattern, its entries in
    the order of `format` ("coo", "csr" or "csc"), and never forms anything dense; ArgumentError with a nested mode.

    >>> hessian(lambda x: x[0] ** 2 * x[1])(np.array([2.0, 3.0]))
    array([[6., 4.],
           [4., 0.]])
    """
    check_argnums(argnums)
    check_choice("mode", mode, ("auto", "edge", "dyadic", *_NESTED))
    check_choice("sparse", sparse, (False, True, "lower", "upper", "full"))
    storage = storage_of(sparse, format)
    if mode in _NESTED:
        if sparse:
            raise ArgumentError(f"sparse={sparse!r} with mode={mode!r}", do='use mode="edge", which gives the pattern')
        outer, inner = _NESTED[mode]
        return described(outer(inner(require_scalar(f), argnums, wrt=wrt), argnums, wrt=wrt), f, "Hessian")

    def apply(*args: Any, **keywords: Any) -> Any:
        chosen = select_arguments(f, args, argnums, keywords, wrt)
        if mode == "auto" and (written := in_code.matrix(chosen, "Hessian", sparse, format)) is not None:
            return written

        def made(level: Level) -> Any:
            result = call_scalar(level, chosen.function, f)
            if not sparse:
                check_dense(f, "Hessian", level.parameters.nodes.size, level.parameters.nodes.size)
            if level.has_array_nodes:
                if not modes.is_cheaper(level):
                    return None
                matrix = modes.array_hessian(level, modes.gradient(level, result, nested=True))
                return close_blocks(level, matrix, level.parameters, chosen)
            lower = modes.hessian_entries(level, result, mode)
            return close_matrix(level, triangle_of(lower, sparse), level.parameters, chosen, storage)

        return in_level_of_arrays_or_elements(chosen, made, not sparse and mode == "auto")

    check_function(f)
    columns = None if sparse else _columns(grad(require_scalar(f), argnums), argnums)
    record = TransformRecord("Hessian", f, argnums, sparse, format, columns) if wrt is None and mode == "auto" else None
    return described(apply, f, "Hessian", record)


def _columns(f: Function, argnums: Argnums) -> MatrixColumns | None:
    """Return how the columns of the Jacobian of f in one argument are made."""
    if not isinstance(argnums, int) or argnums < 0:
        return None
    return MatrixColumns(partial(_column, f, argnums), argnums)


def _column(f: Function, argument: int, args: tuple[Any, ...], seed: Any) -> Any:
    """Return the pushforward of f along a seed in one argument: a column of its Jacobian."""

    def of_argument(x: Any) -> Any:
        return f(*args[:argument], x, *args[argument + 1 :])

    return jvp(of_argument, (args[argument],), (seed,))[1]


_NESTED: dict[str, tuple[Callable[..., Function], Callable[..., Function]]] = {
    "fwd-rev": (jacfwd, jacrev),
    "rev-rev": (jacrev, jacrev),
    "rev-fwd": (jacrev, jacfwd),
    "fwd-fwd": (jacfwd, jacfwd),
}
