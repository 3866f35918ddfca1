"""Dense Jacobians and Hessians of array functions, column by column or row by row.

A function called on numbers is linearized once, and the map carries unit vectors as numbers. Inside another level their
images are nodes of its graph.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from codegen.limits import check
from symad.derivatives.array_arithmetic import NodeArithmetic, NumberArithmetic
from symad.derivatives.array_linear import ArrayLinear, InNumbers, Linearization
from symad.derivatives.level import Level
from symad.tracing.values.node_arrays import constants
from symad.tracing.values.node_trees import Nodes, Tree

DEARER = 8  # cost of an array node for each image, in operations on one element with their derivatives

WRITTEN_OUT = frozenset({"solve", "triangular", "determinant", "log_determinant", "cholesky"})  # if need be

WIDE = 64  # elements of the largest array; without one this large, no matrix is made by array nodes

Direction = Literal["auto", "fwd", "rev"]


def array_jacobian(level: Level, result: Tree, direction: Direction | None = "auto") -> Nodes:
    """Return the matrix of nodes (outputs x parameters) of a level that has array nodes.

    "fwd" computes a column for each parameter, "rev" a row for each output, "auto" the fewer of both.
    """
    outputs, parameters = result.nodes, level.parameters.nodes
    linear = _linear(level, result)
    if direction == "rev" or (direction == "auto" and outputs.size < parameters.size):
        return _images(level, linear.transpose(), outputs.size, parameters.size)
    return _images(level, linear, parameters.size, outputs.size).T


def array_hessian(level: Level, gradient: Tree) -> Nodes:
    """Return the Hessian of a scalar result whose gradient is given, as a matrix of nodes: forward over reverse."""
    linear = _linear(level, gradient)
    return _images(level, linear, gradient.nodes.size, gradient.nodes.size)


def _linear(level: Level, result: Tree) -> ArrayLinear:
    linearization = InNumbers if level.scope.parent is None else Linearization
    return linearization(level.build, result.nodes, level.parameters.nodes, level.scope.values).linear()


def _images(level: Level, linear: ArrayLinear, count: int, size: int) -> Nodes:
    """Return the images of unit vectors, one in each row."""
    graph, build = level.scope.graph, level.build
    if level.scope.parent is None:
        return constants(graph, _image_numbers(linear.with_numbers(graph, level.scope.values), count, size))
    by, images = NodeArithmetic(build), np.empty((count, size), dtype=np.int64)
    for k in range(count):
        images[k] = linear.image(by, np.where(np.arange(count) == k, build.one, by.absent))
    return images


def _image_numbers(linear: ArrayLinear, count: int, size: int) -> NDArray[np.float64]:
    by, images = NumberArithmetic(), np.empty((count, size))
    for k in range(count):
        check("computing the columns of a matrix")
        images[k] = linear.image(by, np.where(np.arange(count) == k, 1.0, by.absent))
    return images


def is_cheaper(level: Level, result: Tree, direction: Direction | Literal["hessian"] | None) -> bool:
    """Whether a dense matrix of a level with array nodes is to be made by them, and not element by element."""
    inputs, outputs, arrays = level.parameters.nodes.size, result.nodes.size, level.scope.graph.arrays
    own_nodes = arrays.nodes[level.arrays_before :]
    if any(node.matrix is not None and node.matrix.kind not in WRITTEN_OUT for node in own_nodes):
        return True
    if all(node.size < WIDE for node in own_nodes):
        return False
    images = {"fwd": inputs, "rev": outputs, "hessian": inputs}.get(direction or "auto", min(inputs, outputs))
    return images * len(own_nodes) * DEARER < arrays.operations(level.arrays_before)
