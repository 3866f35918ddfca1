"""Dense Jacobians and Hessians of functions on arrays, column by column or row by row, where arrays are array nodes.

A function that is called on numbers is linearized once; each unit vector is then carried through the map on a graph of
its own, with the numbers of its coefficients, and is forgotten. Inside another level the columns stay on its graph.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from codegen.limits import check
from symad.derivatives.array_linear import ArrayLinear, array_linearize
from symad.derivatives.array_rows import ABSENT
from symad.derivatives.level import Level
from symad.graph.array_values import values_of_array
from symad.graph.builder import Builder
from symad.tracing.calling.scope import open_scope
from symad.tracing.control.array_graph import array_graph
from symad.tracing.values.node_arrays import constants
from symad.tracing.values.node_trees import Nodes, Tree

MOST_NODES = 10_000_000  # of images, on one graph
DEARER = 8  # times what an operation on one element costs, with its derivatives, an array node costs for each image

Direction = Literal["auto", "fwd", "rev"]


def array_jacobian(level: Level, result: Tree, direction: Direction | None = "auto") -> Nodes:
    """Return the matrix of nodes (outputs x parameters) of a level that has array nodes.

    "fwd" makes a column for each parameter, "rev" a row for each output; "auto" takes what there is less of.
    """
    outputs, parameters = result.nodes, level.parameters.nodes
    linear = array_linearize(level.build, outputs, parameters, level.scope.values)
    if direction == "rev" or (direction == "auto" and outputs.size < parameters.size):
        return _images(level, linear.transpose(), outputs.size, parameters.size)
    return _images(level, linear, parameters.size, outputs.size).T


def array_hessian(level: Level, gradient: Tree) -> Nodes:
    """Return the Hessian of a scalar result whose gradient is given, as a matrix of nodes: forward over reverse."""
    linear = array_linearize(level.build, gradient.nodes, level.parameters.nodes, level.scope.values)
    return _images(level, linear, gradient.nodes.size, gradient.nodes.size)


def _images(level: Level, linear: ArrayLinear, count: int, size: int) -> Nodes:
    """Return the images of unit vectors, one in each row."""
    if level.scope.parent is None:
        return constants(level.scope.graph, _image_numbers(level, linear, count, size))
    build, found = level.build, np.empty((count, size), dtype=np.int64)
    for k in range(count):
        image = linear.apply(build, np.where(np.arange(count) == k, build.one, ABSENT))
        found[k] = np.where(image < 0, build.zero, image)
    return found


def _image_numbers(level: Level, linear: ArrayLinear, count: int, size: int) -> NDArray[np.float64]:
    """Return the numbers of these images."""
    graph, values = level.scope.graph, level.scope.values
    coefficients = [values_of_array(graph, nodes, values) for nodes in linear.coefficients()]
    found, k = np.empty((count, size)), 0
    while k < count:
        with open_scope(apart=True) as scope:
            arrays, scope.arrays = scope.graph.arrays, array_graph(scope)
            build = Builder(scope.graph)
            moved = linear.with_coefficients([constants(scope.graph, numbers) for numbers in coefficients])
            kept, most = len(arrays.nodes), len(scope.graph) + MOST_NODES
            while k < count and len(scope.graph) < most:
                check("computing the columns of a matrix", graph.heads)
                image = moved.apply(build, np.where(np.arange(count) == k, build.one, ABSENT))
                found[k] = values_of_array(scope.graph, np.where(image < 0, build.zero, image), scope.values)
                arrays.release(kept)
                k += 1
    return found


def pays(level: Level, result: Tree, direction: Direction | Literal["hessian"] | None) -> bool:
    """Whether a dense matrix of a level with array nodes is to be made by them, and not element by element."""
    inputs, outputs, arrays = level.parameters.nodes.size, result.nodes.size, level.scope.graph.arrays
    images = {"fwd": inputs, "rev": outputs, "hessian": inputs}.get(direction or "auto", min(inputs, outputs))
    own = len(arrays.nodes) - level.arrays_before
    return images * own * DEARER < arrays.operations(level.arrays_before)
