"""Derivatives of higher order: Taylor coefficients, partial derivatives of one order, Laplacians.

As in `symad.transforms.first_order`, everything takes numbers, arrays, SymPy expressions and traced values, and nests
with every other transform. Where `mode="auto"` has several ways, it counts the operations of each and takes the
cheapest; `symad.choices()` shows the counts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal, get_args, overload

import numpy as np

import symad.tracing.values.containers as containers
from codegen.options import check_whole
from symad.derivatives import in_code
from symad.derivatives.application import (
    Function,
    as_tuple,
    call_scalar,
    check_choice,
    described,
    fitting,
    known_options,
)
from symad.derivatives.interpolation import MixedPartials, interpolation_matrix, multi_indices, place_of
from symad.derivatives.level import Level, open_level
from symad.derivatives.modes import operations_of
from symad.derivatives.selection import FIRST, Argnums, Paths, Selection, select_arguments
from symad.derivatives.signatures import P, R
from symad.derivatives.taylor import derivatives_along, pushed_forward, taylor_coefficients
from symad.derivatives.tensor import (
    SymmetricTensor,
    TaylorPolynomial,
    biharmonics,
    coordinates,
    dense,
    laplacians,
    polynomial_parts,
    tensor_entries,
)
from symad.errors import ArgumentError, LimitError
from symad.graph.builder import Builder
from symad.tracing.calling.function_names import argument_names
from symad.tracing.calling.tracebacks import public_api
from symad.tracing.values.node_trees import Tree
from symad.transforms.first_order import JacobianMode, grad
from symad.transforms.linear_transforms import jvp

PartialsMode = Literal["auto", "fwd", "rev", "cross-country", "interpolation", "taylor", "nested"]
LaplacianMode = Literal["auto", "collapsed", "hessian", "nested", "taylor"]
PolynomialMode = Literal["auto", "forward", "reverse"]
Operator = Callable[[Builder, Sequence[int], Sequence[int]], Sequence[int | None]]

LARGEST_SYSTEM = 3_000  # unknowns of a dense linear system
LARGEST_FACTORIAL = 170  # 171! is no float


@overload
def taylor(
    f: Callable[..., R], primals: Sequence[Any], tangents: Sequence[Any], order: int, *,
    curve: Sequence[Sequence[Any]] = (),
) -> tuple[R, ...]: ...  # fmt: skip


@overload
def taylor(
    f: Callable[..., Any], primals: Sequence[Any], tangents: None, order: int, *, mode: PolynomialMode = "auto"
) -> TaylorPolynomial: ...


@public_api
def taylor(
    f: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any] | None, order: int, *,
    curve: Sequence[Sequence[Any]] = (), mode: PolynomialMode = "auto",
) -> tuple[Any, ...] | TaylorPolynomial:  # fmt: skip
    """Return the Taylor coefficients `(a_0, ..., a_order)` of t -> f(x + v t), each with the structure of f's result.

    `primals` (x) and `tangents` (v) are as for `jvp`. a_k is the coefficient of t**k, the k-th derivative over k!, so
    that a_1 is jvp's result, and nothing overflows at order 171. `curve` has the further coefficients of a path
    x + v t + curve[0] t**2 + ... that is not straight, each as `tangents`. RuleError for a function whose derivative is
    not known. Source: Griewank and Walther, "Evaluating Derivatives" (2008), chapter 13.

    `tangents=None` means all directions: the result is the full TaylorPolynomial around x, one array. It has value,
    gradient, Hessian... and is called at other points. For order 2, `mode="forward"` pushes value, gradient and Hessian
    through every operation, "reverse" takes gradient and Hessian of each result by a reverse sweep. ArgumentError for
    "forward" with another order, and for options of the other form.

    >>> taylor(np.exp, (0.0,), (1.0,), 4)
    (1.0, 1.0, 0.5, 0.16666666666666666, 0.041666666666666664)
    >>> taylor(lambda x: x * x, (1.0,), (1.0,), 3, curve=[(1.0,)])
    (1.0, 2.0, 3.0, 2.0)
    >>> p = taylor(lambda x: np.exp(x[0]) * x[1], (np.array([0.0, 1.0]),), None, 2)
    >>> p.parts[2].tolist(), float(p(np.array([0.1, 1.0])))
    ([[1.0, 1.0], [1.0, 0.0]], 1.105)
    """
    check_whole("order", order, 0)
    primals, curve = as_tuple(primals, "primals"), as_tuple(curve, "curve")
    if tangents is None:
        if curve:
            raise ArgumentError("curve without tangents", why="a path has a direction", do="give tangents")
        return _polynomial(f, primals, order, mode)
    if mode != "auto":
        raise ArgumentError(f"mode={mode!r} with tangents", do="leave it out, or give tangents=None")
    rows = [as_tuple(tangents, "tangents"), *(as_tuple(row, f"curve[{k}]") for k, row in enumerate(curve))]
    written = None if curve else in_code.coefficients(f, primals, rows[0], order)
    if written is not None:
        return written
    with open_level(primals, argument_names(f, len(primals))) as level:
        names = ["tangents", *(f"curve[{k}]" for k in range(len(curve)))]
        path = [fitting(level.scope, level.parameters, row, name).flat for row, name in zip(rows, names, strict=True)]
        result = level.call(f)
        coefficients = taylor_coefficients(level.build, result.flat, level.parameters.flat, path, order)
        return level.close(*(_filled(level, result, nodes) for nodes in coefficients))


def _polynomial(f: Function, primals: tuple[Any, ...], degree: int, mode: str) -> TaylorPolynomial:
    check_choice("mode", mode, get_args(PolynomialMode))
    if mode == "forward" and degree != 2:
        raise ArgumentError(f'mode="forward" with order={degree}', why="it pushes polynomials of degree 2")
    with open_level(primals, argument_names(f, len(primals))) as level:
        shape = _one_shape(level)
        result = level.call(f)
        return TaylorPolynomial(primals[0], level.close(result, *polynomial_parts(level, result, shape, degree, mode)))


@public_api
def hvp(f: Function, primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
    """Return the Hessian-vector product of a scalar f along tangents, forward over reverse, no matrix formed.

    The result has the structure of the only primal, or is a tuple with one entry for each of several primals.

    >>> hvp(lambda x: x[0] ** 2 * x[1], (np.array([2.0, 3.0]),), (np.array([1.0, 0.0]),))
    array([6., 4.])
    """
    primals = as_tuple(primals, "primals")
    return jvp(grad(f, 0 if len(primals) == 1 else tuple(range(len(primals)))), primals, tangents)[1]


@overload
def partials(
    f: Callable[P, R], order: int, argnums: Argnums = FIRST, *, wrt: Paths = None, along: Any,
    mode: Literal["auto", "taylor", "nested"] = "auto",
) -> Callable[P, R]: ...  # fmt: skip


@overload
def partials(
    f: Callable[P, R], order: Sequence[int], argnums: Argnums = FIRST, *, wrt: Paths = None
) -> Callable[P, R]: ...


@overload
def partials(
    f: Callable[P, Any], order: int, argnums: Argnums = FIRST, *, wrt: Paths = None, sparse: Literal[True],
    mode: JacobianMode = "auto",
) -> Callable[P, SymmetricTensor]: ...  # fmt: skip


@overload
def partials(
    f: Callable[P, Any], order: int, argnums: Argnums = FIRST, *, wrt: Paths = None, mode: Literal["interpolation"]
) -> Callable[P, MixedPartials]: ...


@overload
def partials(
    f: Callable[P, Any], order: int, argnums: Argnums = FIRST, *, wrt: Paths = None, sparse: bool = False,
    mode: JacobianMode = "auto",
) -> Callable[P, Any]: ...  # fmt: skip


@known_options
def partials(
    f: Function, order: int | Sequence[int], argnums: Argnums = FIRST, *, wrt: Paths = None, along: Any = None,
    sparse: bool = False, mode: PartialsMode = "auto",
) -> Function:  # fmt: skip
    """Return the partial derivatives of one order: all of them, one of them, or those along a direction.

    All: for a result of shape s and one array of shape t, an array of shape s + t*order. `sparse=True` (f scalar) gives
    a SymmetricTensor with the exact pattern over the flat input; nothing dense is made. Each entry is made once, for
    i <= j <= k. `mode` says how the Hessian's entries are differentiated again, see `jacobian`.

    One: with flat numbers of inputs as `order`, (0, 0, 2) is twice in the first and once in the third. The result has
    the structure of f's result, and takes one forward pass for each number.

    Along a direction: `along=v`, in the structure of the chosen arguments, gives the derivative of t -> f(x + v t) at
    t = 0; for order 2 that is v^T H v. "taylor" takes k! times the Taylor coefficient, "nested" forward mode over
    forward mode over ...

    `mode="interpolation"` (f scalar) gives a MixedPartials: all derivatives, solved for from Taylor
    coefficients along directions, beside the exact ones, with error and condition number. Source: Griewank, Utke,
    Walther, "Evaluating higher derivative tensors by forward propagation of univariate Taylor series" (2000).
    ArgumentError for options that do not go together, and for inputs that there are not.

    >>> x = np.array([2.0, 3.0])
    >>> partials(lambda x: x[0] ** 2 * x[1], 3)(x).tolist()
    [[[0.0, 2.0], [2.0, 0.0]], [[2.0, 0.0], [0.0, 0.0]]]
    >>> partials(lambda x: x[0] ** 2 * x[1], (0, 1))(x), partials(lambda x: x[0] ** 2 * x[1], 2, along=np.ones(2))(x)
    (4.0, 14.0)
    >>> partials(lambda x: (x**4).sum(), 3, sparse=True)(x).indices.tolist()
    [[0, 1], [0, 1], [0, 1]]
    >>> found = partials(lambda x: x[0] ** 2 * x[1], 2, mode="interpolation")(x)
    >>> found, found.exact, found.error < 1e-12
    (<MixedPartials: 3 of order 2, condition number 2.3>, array([6., 4., 0.]), True)
    """
    what, modes, taken = _form(f, order, along, sparse, mode)
    check_choice("mode", mode, modes)
    check_choice("sparse", sparse, (False, True))
    if sparse and taken.func is not _all:
        raise ArgumentError("sparse=True", why="it is for all derivatives of an order", do="leave it out")
    return described(lambda *args, **keywords: taken(select_arguments(f, args, argnums, keywords, wrt)), f, what)


def _form(
    f: Function, order: int | Sequence[int], along: Any, sparse: bool, mode: str
) -> tuple[str, tuple[str, ...], partial[Any]]:
    """Return what is asked of `partials`: its name, the modes that it has, and a function of the selected arguments."""
    if isinstance(order, Sequence | np.ndarray) and not isinstance(order, str):
        if along is not None:
            raise ArgumentError(f"order={order!r} with along", why="both choose directions", do="give one of them")
        return f"mixed derivative of order {len(order)}", ("auto",), partial(_mixed, indices=order)
    if along is not None:
        check_whole("order", order, 0)
        what = f"derivative of order {order} along a direction"
        return what, ("auto", "taylor", "nested"), partial(_along, tangents=along, order=order, mode=mode)
    check_whole("order", order, 1)
    taken = partial(_all, f=f, order=order, sparse=sparse, mode=mode)
    if mode == "interpolation":
        taken = partial(_interpolated, f=f, order=order)
    return f"partial derivatives of order {order}", (*get_args(JacobianMode), "interpolation"), taken


def _all(chosen: Selection, f: Function, order: int, sparse: bool, mode: str) -> Any:
    with open_level(chosen.arguments, chosen.names) as level:
        shape = _one_shape(level)
        result = call_scalar(level, chosen.function, f) if sparse else level.call(chosen.function)
        entries_of_results = [tensor_entries(level, node, order, mode) for node in result.flat]
        if not sparse:
            return level.close(dense(level, result, entries_of_results, shape, order))[0]
        (entries,) = entries_of_results
        (data,) = level.close(_vector(level, list(entries.values())))
        return SymmetricTensor(data, coordinates(entries, order), (math.prod(shape),) * order)


def _mixed(chosen: Selection, indices: Sequence[int]) -> Any:
    with open_level(chosen.arguments, chosen.names) as level:
        result = level.call(chosen.function)
        derivative: list[int | None] = list(result.flat)
        for seed in _axes(level, indices):
            derivative = pushed_forward(level.build, derivative, level.parameters.flat, seed)
        return level.close(_filled(level, result, derivative))[0]


def _along(chosen: Selection, tangents: Any, order: int, mode: str) -> Any:
    directions = as_tuple(tangents, "along") if chosen.several else (tangents,)
    written = (
        in_code.along(chosen.function, chosen.arguments, directions, order, chosen.names) if mode == "auto" else None
    )
    if written is not None:
        return written[-1]
    if order > LARGEST_FACTORIAL:
        raise ArgumentError(
            f"order={order}", why=f"beyond {LARGEST_FACTORIAL}, k! is larger than any float", do="use taylor"
        )
    with open_level(chosen.arguments, chosen.names) as level:
        result = level.call(chosen.function)
        seeds = fitting(level.scope, level.parameters, directions, "along").flat
        derivatives = derivatives_along(level.build, result.flat, level.parameters.flat, seeds, order, mode)
        return level.close(_filled(level, result, derivatives))[0]


def _interpolated(chosen: Selection, f: Function, order: int) -> MixedPartials:
    with open_level(chosen.arguments, chosen.names) as level:
        indices = _checked_indices(math.prod(_one_shape(level)), order)
        output = call_scalar(level, chosen.function, f)
        along = [_coefficient_along(level, output, direction, order) for direction in indices]
        entries = tensor_entries(level, output.flat[0], order)
        exact = [entries.get(place_of(index)) for index in indices]
        counted = {"interpolation": along, "tensor": exact}.items()
        operations = {name: operations_of(level.build.graph, nodes, level.parameters.flat) for name, nodes in counted}
        coefficients, values = level.close(_vector(level, along), _vector(level, exact))
    interpolated = np.linalg.solve(interpolation_matrix(indices), coefficients)
    return MixedPartials(indices, coefficients, interpolated, values, operations)


@known_options
def laplacian(
    f: Callable[P, R], argnums: Argnums = FIRST, *, wrt: Paths = None, power: Literal[1, 2] = 1,
    mode: LaplacianMode = "auto",
) -> Callable[P, R]:  # fmt: skip
    """Return the sum of the second derivatives in every input, of each element of f's result.

    "collapsed" carries value, gradient and Laplacian through every operation, "hessian" takes the diagonal of the
    Hessian. `power=2` is the Laplacian of the Laplacian, the biharmonic operator: "nested" takes the collapsed
    Laplacian twice, "taylor" the Taylor coefficients of order 4 along e_i and e_i +- e_j. Source: Li et al. (2023),
    "forward Laplacian"; Dangel et al., "Collapsing Taylor mode automatic differentiation" (2025).

    >>> laplacian(lambda x: (x**3).sum())(np.array([1.0, 2.0]))
    18.0
    >>> laplacian(lambda x: (x[0] * x[1]) ** 2, power=2)(np.array([1.0, 2.0]))
    8.0
    """
    check_choice("power", power, (1, 2))
    check_choice("mode", mode, ("auto", "collapsed", "hessian") if power == 1 else ("auto", "nested", "taylor"))
    operator: Operator = partial(laplacians if power == 1 else biharmonics, mode=mode)
    what = "Laplacian" if power == 1 else "biharmonic operator"
    return described(lambda *a, **k: _of_outputs(select_arguments(f, a, argnums, k, wrt), operator), f, what)


def _of_outputs(chosen: Selection, operator: Operator) -> Any:
    """Return what an operator makes of each element of a function's result."""
    with open_level(chosen.arguments, chosen.names) as level:
        result = level.call(chosen.function)
        nodes = operator(level.build, result.flat, level.parameters.flat)
        return level.close(_filled(level, result, nodes))[0]


def _coefficient_along(level: Level, output: Tree, direction: Sequence[int], order: int) -> int | None:
    """Return the last Taylor coefficient of a scalar along a direction of whole numbers."""
    seeds = [level.build.number(part) if part else None for part in direction]
    return taylor_coefficients(level.build, output.flat, level.parameters.flat, [seeds], order)[-1][0]


def _axes(level: Level, indices: Sequence[int]) -> list[list[int | None]]:
    """Return the unit vectors of these flat numbers of parameters; ArgumentError if there is no such parameter."""
    size = len(level.parameters.flat)
    for index in indices:
        if isinstance(index, bool) or not isinstance(index, int | np.integer) or not -size <= index < size:
            raise ArgumentError(f"index {index!r}", why=f"the argument has {size} numbers, counted from 0")
    return [[level.build.one if k == index % size else None for k in range(size)] for index in indices]


def _checked_indices(size: int, order: int) -> tuple[tuple[int, ...], ...]:
    unknowns = math.comb(size + order - 1, order)
    if unknowns > LARGEST_SYSTEM:
        raise LimitError(
            f"a linear system of {unknowns} unknowns", why=f"the limit is {LARGEST_SYSTEM}", do="use another mode"
        )
    return multi_indices(size, order)


def _one_shape(level: Level) -> tuple[int, ...]:
    """Return the shape of the only argument; ArgumentError for a container."""
    if len(level.parameters.arrays) != 1:
        raise ArgumentError(
            f"an argument with {len(level.parameters.arrays)} arrays",
            why="the axes of all derivatives are those of one array",
            do="choose one of them by wrt, or put them into one array",
        )
    return level.parameters.arrays[0].shape


def _vector(level: Level, nodes: Sequence[int | None]) -> Tree:
    """Return nodes as one array; a structural zero becomes the number 0."""
    filled = [level.build.zero if node is None else node for node in nodes]
    return Tree(containers.flatten(0)[1], [np.array(filled, dtype=np.int64)])


def _filled(level: Level, result: Tree, nodes: Sequence[int | None]) -> Tree:
    """Return nodes in the structure of a result; a structural zero becomes the number 0."""
    return result.refill([level.build.zero if node is None else node for node in nodes])
