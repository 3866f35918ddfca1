"""Derivatives of higher order: Taylor coefficients, directional derivatives, tensors, Laplacians.

As in `symad.transforms.first_order`, everything takes numbers, arrays, SymPy expressions and traced values, and nests
with every other transform. Where `mode="auto"` has several ways, it counts the operations of each and takes the
cheapest; `symad.choices()` shows the counts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal, overload

import numpy as np

import symad.tracing.values.containers as containers
from codegen.options import check_whole
from symad.derivatives import in_code
from symad.derivatives.application import Function, as_tuple, call_scalar, check_choice, fitting
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
from symad.tracing.calling.function_names import argument_names
from symad.tracing.calling.tracebacks import public_api
from symad.tracing.values.node_trees import Tree
from symad.transforms.first_order import JacobianMode, grad
from symad.transforms.linear_transforms import jvp
from symad.transforms.transformed import described, known_options

DirectionalMode = Literal["auto", "taylor", "nested"]
LaplacianMode = Literal["auto", "collapsed", "hessian"]
BiharmonicMode = Literal["auto", "nested", "taylor"]
PolynomialMode = Literal["auto", "forward", "reverse"]

LARGEST_SYSTEM = 3_000  # unknowns of a dense linear system
LARGEST_FACTORIAL = 170  # 171! is no float


@public_api
def taylor(
    f: Callable[..., R], primals: Sequence[Any], tangents: Sequence[Any], order: int, *,
    curve: Sequence[Sequence[Any]] = (),
) -> tuple[R, ...]:  # fmt: skip
    """Return the Taylor coefficients `(a_0, ..., a_order)` of t -> f(x + v t), each with the structure of f's result.

    `primals` (x) and `tangents` (v) are as for `jvp`. a_k is the coefficient of t**k, the k-th derivative over k!, so
    that a_1 is jvp's result, and nothing overflows at order 171. `curve` has the further coefficients of a path
    x + v t + curve[0] t**2 + ... that is not straight, each as `tangents`. RuleError for a function whose derivative is
    not known. Source: Griewank and Walther, "Evaluating Derivatives" (2008), chapter 13.

    >>> taylor(np.exp, (0.0,), (1.0,), 4)
    (1.0, 1.0, 0.5, 0.16666666666666666, 0.041666666666666664)
    >>> taylor(lambda x: x * x, (1.0,), (1.0,), 3, curve=[(1.0,)])
    (1.0, 2.0, 3.0, 2.0)
    """
    check_whole("order", order, 0)
    primals = as_tuple(primals, "primals")
    curve = as_tuple(curve, "curve")
    written = None if curve else in_code.coefficients(f, primals, as_tuple(tangents, "tangents"), order)
    if written is not None:
        return written
    rows = [as_tuple(tangents, "tangents"), *(as_tuple(row, f"curve[{k}]") for k, row in enumerate(curve))]
    with open_level(primals, argument_names(f, len(primals))) as level:
        names = ["tangents", *(f"curve[{k}]" for k in range(len(curve)))]
        path = [fitting(level.scope, level.parameters, row, name).flat for row, name in zip(rows, names, strict=True)]
        result = level.call(f)
        found = taylor_coefficients(level.build, result.flat, level.parameters.flat, path, order)
        return level.close(*(_filled(level, result, nodes) for nodes in found))


@public_api
def derivative_along(
    f: Callable[..., R], primals: Sequence[Any], tangents: Sequence[Any], order: int, *, mode: DirectionalMode = "auto"
) -> R:
    """Return the derivative of an order of t -> f(x + v t) at t = 0; primals and tangents as for `jvp`.

    "taylor" takes k! times the Taylor coefficient, "nested" forward mode over forward mode over ...

    >>> derivative_along(lambda x: x[0] ** 3 * x[1], (np.array([1.0, 2.0]),), (np.array([1.0, 0.0]),), 3)
    12.0
    """
    check_whole("order", order, 0)
    primals = as_tuple(primals, "primals")
    written = in_code.along(f, primals, as_tuple(tangents, "tangents"), order) if mode == "auto" else None
    if written is not None:
        last: R = written[-1]
        return last
    with open_level(primals, argument_names(f, len(primals))) as level:
        found: R = _along(level, level.call(f), as_tuple(tangents, "tangents"), order, mode)
        return found


@public_api
def hvp(f: Function, primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
    """Return the Hessian-vector product of a scalar f along tangents, forward over reverse, no matrix formed.

    The result has the structure of the only primal, or is a tuple with one entry for each of several primals.

    >>> hvp(lambda x: x[0] ** 2 * x[1], (np.array([2.0, 3.0]),), (np.array([1.0, 0.0]),))
    array([6., 4.])
    """
    primals = as_tuple(primals, "primals")
    return jvp(grad(f, 0 if len(primals) == 1 else tuple(range(len(primals)))), primals, tangents)[1]


@public_api
def vhv(f: Callable[..., R], primals: Sequence[Any], tangents: Sequence[Any], *, mode: DirectionalMode = "auto") -> R:
    """Return v^T H v of a scalar function, the second derivative along v; no matrix is formed. See `hvp` for H v.

    >>> vhv(lambda x: x[0] ** 2 * x[1], (np.array([2.0, 3.0]),), (np.array([1.0, 1.0]),))
    14.0
    """
    primals = as_tuple(primals, "primals")
    written = in_code.along(f, primals, as_tuple(tangents, "tangents"), 2, scalar=True) if mode == "auto" else None
    if written is not None:
        last: R = written[-1]
        return last
    with open_level(primals, argument_names(f, len(primals))) as level:
        found: R = _along(level, call_scalar(level, f, f), as_tuple(tangents, "tangents"), 2, mode)
        return found


@known_options
def mixed_derivative(
    f: Callable[P, R], indices: Sequence[int], argnums: Argnums = FIRST, *, wrt: Paths = None
) -> Callable[P, R]:
    """Return the partial derivative of f in the inputs of these flat numbers, one forward pass for each, in turn.

    The result has the structure of f's result. ArgumentError for indices that are no numbers of inputs.

    >>> mixed_derivative(np.prod, (0, 1, 2, 3))(np.array([2.0, 3.0, 5.0, 7.0]))
    1.0
    """
    if not isinstance(indices, Sequence | np.ndarray):
        raise ArgumentError(f"indices of type {type(indices).__name__}", do="give a tuple of numbers of inputs: (0, 1)")

    def apply(*args: Any, **keywords: Any) -> Any:
        chosen = select_arguments(f, args, argnums, keywords, wrt)
        with open_level(chosen.arguments, chosen.names) as level:
            result = level.call(chosen.function)
            found: list[int | None] = list(result.flat)
            for seed in _axes(level, indices):
                found = pushed_forward(level.build, found, level.parameters.flat, seed)
            return level.close(_filled(level, result, found))[0]

    return described(apply, f, f"mixed derivative of order {len(indices)}")


@overload
def derivative_tensor(
    f: Callable[P, Any], order: int, argnums: Argnums = FIRST, *, wrt: Paths = None, mode: JacobianMode = "auto",
    sparse: Literal[True],
) -> Callable[P, SymmetricTensor]: ...  # fmt: skip


@overload
def derivative_tensor(
    f: Callable[P, Any], order: int, argnums: Argnums = FIRST, *, wrt: Paths = None, mode: JacobianMode = "auto",
    sparse: bool = False,
) -> Callable[P, Any]: ...  # fmt: skip


@known_options
def derivative_tensor(
    f: Function, order: int, argnums: Argnums = FIRST, *, wrt: Paths = None, mode: JacobianMode = "auto",
    sparse: bool = False,
) -> Function:  # fmt: skip
    """Return all derivatives of one order >= 1: for a result of shape s and one array of shape t, of shape s + t*order.

    `sparse=True` (f scalar) gives a SymmetricTensor with the exact pattern over the flat input; nothing dense is made.
    Each entry is made once, for i <= j <= k. `mode` says how the Hessian's entries are differentiated again, see
    `jacobian`.

    >>> derivative_tensor(lambda x: x[0] ** 2 * x[1], 3)(np.array([2.0, 3.0])).tolist()
    [[[0.0, 2.0], [2.0, 0.0]], [[2.0, 0.0], [0.0, 0.0]]]
    >>> derivative_tensor(lambda x: (x**4).sum(), 3, sparse=True)(np.array([1.0, 2.0])).indices
    array([[0, 1],
           [0, 1],
           [0, 1]])
    """
    check_whole("order", order, 1)
    check_choice("mode", mode, ("auto", "fwd", "rev", "cross-country"))

    def apply(*args: Any, **keywords: Any) -> Any:
        chosen = select_arguments(f, args, argnums, keywords, wrt)
        with open_level(chosen.arguments, chosen.names) as level:
            shape = _one_shape(level)
            result = call_scalar(level, chosen.function, f) if sparse else level.call(chosen.function)
            found = [tensor_entries(level, node, order, mode) for node in result.flat]
            if not sparse:
                return level.close(dense(level, result, found, shape, order))[0]
            (entries,) = found
            (data,) = level.close(_vector(level, list(entries.values())))
            return SymmetricTensor(data, coordinates(entries, order), (math.prod(shape),) * order)

    return described(apply, f, f"derivative tensor of order {order}")


@public_api
def mixed_partials(f: Function, x: Any, order: int) -> MixedPartials:
    """Return all partial derivatives of one order of a scalar f, interpolated from directional Taylor coefficients.

    The result shows the linear system, its condition number, and beside it the exact derivatives (the entries of
    `derivative_tensor`) with the error of the interpolated ones. x is one number or array, numbered flat. LimitError
    for a system of more than 3000 unknowns. Source: Griewank, Utke, Walther, "Evaluating higher derivative tensors by
    forward propagation of univariate Taylor series" (2000).

    >>> found = mixed_partials(lambda x: x[0] ** 2 * x[1], np.array([2.0, 3.0]), 2)
    >>> found.multi_indices, found.exact
    (((2, 0), (1, 1), (0, 2)), array([6., 4., 0.]))
    >>> found, found.error < 1e-12
    (<MixedPartials: 3 of order 2, condition number 2.3>, True)
    """
    check_whole("order", order, 1)
    with open_level((x,), argument_names(f, 1)) as level:
        size = math.prod(_one_shape(level))
        indices = _checked_indices(size, order)
        output = call_scalar(level, f, f)
        along = [_coefficient_along(level, output, direction, order) for direction in indices]
        entries = tensor_entries(level, output.flat[0], order)
        exact = [entries.get(place_of(index)) for index in indices]
        counted = {"interpolation": along, "tensor": exact}.items()
        operations = {name: operations_of(level.build.graph, nodes, level.parameters.flat) for name, nodes in counted}
        coefficients, values = level.close(_vector(level, along), _vector(level, exact))
    interpolated = np.linalg.solve(interpolation_matrix(indices), coefficients)
    return MixedPartials(indices, coefficients, interpolated, values, operations)


@public_api
def taylor_polynomial(f: Function, x: Any, degree: int = 2, *, mode: PolynomialMode = "auto") -> TaylorPolynomial:
    """Return the full Taylor polynomial of f around x: value, gradient, Hessian..., callable at other points.

    For degree 2, "forward" pushes value, gradient and Hessian through every operation, from (x_i, e_i, 0); "reverse"
    takes gradient and Hessian of each result by a reverse sweep. x is one number or array. ArgumentError for "forward"
    with another degree.

    >>> p = taylor_polynomial(lambda x: np.exp(x[0]) * x[1], np.array([0.0, 1.0]))
    >>> p.parts[2], float(p(np.array([0.1, 1.0])))
    (array([[1., 1.],
           [1., 0.]]), 1.105)
    """
    check_whole("degree", degree, 0)
    check_choice("mode", mode, ("auto", "forward", "reverse"))
    if mode == "forward" and degree != 2:
        raise ArgumentError(f'mode="forward" with degree={degree}', why="it pushes polynomials of degree 2")
    with open_level((x,), argument_names(f, 1)) as level:
        shape = _one_shape(level)
        result = level.call(f)
        return TaylorPolynomial(x, level.close(result, *polynomial_parts(level, result, shape, degree, mode)))


@known_options
def laplacian(
    f: Callable[P, R], argnums: Argnums = FIRST, *, wrt: Paths = None, mode: LaplacianMode = "auto"
) -> Callable[P, R]:
    """Return the sum of the second derivatives in every input, of each element of f's result.

    "collapsed" carries value, gradient and Laplacian through every operation, "hessian" takes the diagonal of the
    Hessian. Source: Li et al. (2023), "forward Laplacian"; Dangel et al., "Collapsing Taylor mode automatic
    differentiation" (2025).

    >>> laplacian(lambda x: (x**3).sum())(np.array([1.0, 2.0]))
    18.0
    """
    check_choice("mode", mode, ("auto", "collapsed", "hessian"))
    operator = partial(laplacians, mode=mode)
    return described(lambda *a, **k: _of_outputs(select_arguments(f, a, argnums, k, wrt), operator), f, "Laplacian")


@known_options
def biharmonic(
    f: Callable[P, R], argnums: Argnums = FIRST, *, wrt: Paths = None, mode: BiharmonicMode = "auto"
) -> Callable[P, R]:
    """Return the Laplacian of the Laplacian, of each element of f's result.

    "nested" takes the collapsed Laplacian twice, "taylor" the Taylor coefficients of order 4 along e_i and e_i +- e_j.

    >>> biharmonic(lambda x: (x[0] * x[1]) ** 2)(np.array([1.0, 2.0]))
    8.0
    """
    check_choice("mode", mode, ("auto", "nested", "taylor"))
    operator, what = partial(biharmonics, mode=mode), "biharmonic operator"
    return described(lambda *a, **k: _of_outputs(select_arguments(f, a, argnums, k, wrt), operator), f, what)


def _of_outputs(chosen: Selection, operator: Callable[..., Sequence[int | None]]) -> Any:
    """Return what an operator makes of each element of a function's result."""
    with open_level(chosen.arguments, chosen.names) as level:
        result = level.call(chosen.function)
        found = operator(level.build, result.flat, level.parameters.flat)
        return level.close(_filled(level, result, found))[0]


def _along(level: Level, result: Tree, tangents: tuple[Any, ...], order: int, mode: str) -> Any:
    check_choice("mode", mode, ("auto", "taylor", "nested"))
    if order > LARGEST_FACTORIAL:
        raise ArgumentError(
            f"order={order}", why=f"beyond {LARGEST_FACTORIAL}, k! is larger than any float", do="use taylor"
        )
    seeds = fitting(level.scope, level.parameters, tangents, "tangents").flat
    found = derivatives_along(level.build, result.flat, level.parameters.flat, seeds, order, mode)
    return level.close(_filled(level, result, found))[0]


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
            f"a linear system of {unknowns} unknowns", why=f"the limit is {LARGEST_SYSTEM}", do="use derivative_tensor"
        )
    return multi_indices(size, order)


def _one_shape(level: Level) -> tuple[int, ...]:
    """Return the shape of the only argument; ArgumentError for a container."""
    if len(level.parameters.arrays) != 1:
        raise ArgumentError(
            f"an argument with {len(level.parameters.arrays)} arrays",
            why="the axes of a derivative tensor are those of one array",
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
