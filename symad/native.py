"""From a trace to a native kernel: aliases stripped, the rows handed to codegen, containers packed and unpacked."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import update_wrapper
from threading import Lock
from typing import Any, Literal

import numpy as np
import optree
import sympy as sp

import codegen
import symad.tracing.containers as containers
from codegen import Kernel
from codegen.heads import Alias
from codegen.intrinsics import intrinsic
from codegen.kernel import Pack, Unpack
from codegen.program import Head, Input, Output, Program, reachable
from codegen.sparsity import SparsityPattern
from codegen.table import Table
from symad.derivatives.sparse import SparseMatrix
from symad.errors import ArgumentError, LoweringError
from symad.graph.table import Graph
from symad.tracing.container_types import NAMESPACE
from symad.tracing.paths import MAX_PATHS
from symad.tracing.place import located, written_place
from symad.tracing.trace import Trace, trace
from symad.tracing.traced import Traced
from symad.tracing.trees import Tree, paths_of

Tier = Literal["default", "fast"]
Accuracy = Literal["strict", "fast"]
KERNELS = 32  # kernels that one jitted function keeps, least recently used first out


def compile(
    f: Callable[..., Any],
    *example_args: Any,
    tier: Tier = "default",
    accuracy: Accuracy = "strict",
    fma: bool = True,
    max_paths: int = MAX_PATHS,
) -> Kernel:
    """Compile a function to a native kernel for arguments with the structure and shapes of the examples.

    f may be any composition of transforms. The kernel takes and returns what f does, with float64 arrays and floats
    as leaves; a SparseMatrix is returned as its packed data, with the pattern in `kernel.sparsity`, and by
    `kernel.scipy` as a scipy.sparse array.
    `tier="fast"` compiles several times faster to code about half as fast. `fma=False` rounds every product.
    `accuracy="fast"` rewrites sums, products and quotients to fewer operations, which round differently.
    Both branches of an `if` on a traced value are compiled, up to `max_paths` paths (LimitError); where f itself
    raises ValueError, ArithmeticError or AssertionError, the kernel returns NaN. TraceError for other questions that
    only numbers can answer (argmax, a mask, an index), ArgumentError for arguments that are not real numbers.

    >>> import symad as sa
    >>> kernel = compile(sa.hessian(lambda x: x[0] ** 2 * x[1]), np.zeros(2))
    >>> kernel(np.array([2.0, 3.0]))
    array([[6., 4.],
           [4., 0.]])
    """
    traced = trace(f, *example_args, max_paths=max_paths)
    return compile_trace(traced, tier=tier, accuracy=accuracy, fma=fma, name=getattr(f, "__name__", "kernel"))


def compile_trace(
    traced: Trace, *, tier: Tier = "default", accuracy: Accuracy = "strict", fma: bool = True, name: str = "kernel"
) -> Kernel:
    """Compile a trace; see `compile`.

    >>> compile_trace(trace(lambda x, y: x * y, 0.0, 0.0))(2.0, 3.0)
    6.0
    """
    pack, unpack = _containers(traced)
    program = to_program(traced, name)
    return codegen.compile_program(program, tier=tier, accuracy=accuracy, fma=fma, pack=pack, unpack=unpack)


def jit(
    f: Callable[..., Any] | None = None,
    *,
    tier: Tier = "default",
    accuracy: Accuracy = "strict",
    fma: bool = True,
    max_paths: int = MAX_PATHS,
) -> Callable[..., Any]:
    """Compile a function at its first call for each structure and shape of arguments; usable as a decorator.

    The options are those of `compile`. Called inside a transform, on traced values, it is the function itself.

    >>> @jit
    ... def norm2(x):
    ...     return x @ x
    >>> norm2(np.array([3.0, 4.0]))
    25.0
    """
    if f is None:
        return lambda g: jit(g, tier=tier, accuracy=accuracy, fma=fma, max_paths=max_paths)
    function, kernels, lock = f, OrderedDict[Any, Kernel](), Lock()

    def call(*args: Any, **keywords: Any) -> Any:
        if keywords:
            raise ArgumentError(f"keyword {next(iter(keywords))!r}", why="a kernel takes positional arguments")
        leaves, structure = containers.flatten(args)
        if any(isinstance(leaf, Traced) for leaf in leaves):
            return function(*args)  # inside a transform: it is traced like any other function
        key = (structure, tuple(np.shape(leaf) for leaf in leaves))
        with lock:
            kernel = kernels.get(key)
        made = kernel or compile(
            function, *args, tier=tier, accuracy=accuracy, fma=fma, max_paths=max_paths
        )  # unlocked: it may call this one too
        with lock:
            kernels[key] = made
            kernels.move_to_end(key)
            if len(kernels) > KERNELS:
                kernels.popitem(last=False)
        return made(*args)

    return update_wrapper(call, function)


def to_program(traced: Trace, name: str = "kernel") -> Program:
    """Return the Program of a trace: only reachable rows, inputs first, aliases stripped and rows interned anew.

    An output that is the constant 0 becomes a structural zero. ArgumentError names a free symbol that is no input.

    >>> len(to_program(trace(lambda x: np.sin(x) * np.sin(x), 1.0)))
    3
    """
    graph = traced.graph
    table = Table()
    row_of = {node: table.leaf(graph.atoms[node]) for node in traced.inputs.flat}
    lowered: set[Head] = set()
    for node in reachable(graph, traced.outputs.flat):
        if node in row_of:
            continue
        operands = graph.operands[node]
        if graph.heads[node] is Alias:
            row_of[node] = row_of[operands[0]]
        elif operands:
            if graph.heads[node] not in lowered:
                lowered.add(graph.heads[node])
                _check_lowering(graph, node)
            row_of[node] = _interned(table, graph.heads[node], tuple([row_of[operand] for operand in operands]))
        else:
            row_of[node] = table.leaf(_constant(graph, node, traced))
    inputs = _input_arrays(traced)
    outputs = tuple(
        _output(array.shape, [row_of[node] for node in array.ravel().tolist()], table, pattern)
        for array, pattern in zip(traced.outputs.arrays, _patterns(traced), strict=True)
    )
    return Program(table.heads, table.operands, table.atoms, inputs, outputs, name)


def _check_lowering(graph: Graph, node: int) -> None:
    """Raise LoweringError, with the user's line, for a head that codegen does not know."""
    try:
        intrinsic(graph.heads[node])
    except LoweringError as error:
        raise located(error, graph, node) from error


def _interned(table: Table, head: Head, operands: tuple[int, ...]) -> int:
    """Return a row; a commutative pair is sorted anew, because aliases that were apart may now be one row."""
    if head in (sp.Add, sp.Mul) and len(operands) == 2 and operands[0] > operands[1]:
        operands = (operands[1], operands[0])
    return table.row(head, operands)


def _constant(graph: Graph, node: int, traced: Trace) -> sp.Basic:
    atom = graph.atoms[node]
    if isinstance(atom, sp.Symbol):
        raise ArgumentError(
            f"the free symbol {atom} in the traced function",
            where=written_place(graph, node),
            why=f"it is not one of the arguments ({', '.join(traced.names)}), so the kernel has no value for it",
            do="pass it as an argument or substitute a number",
        )
    return atom


def _input_arrays(traced: Trace) -> tuple[Input, ...]:
    names = paths_of(containers.unflatten(traced.inputs.structure, traced.inputs.arrays), traced.names)
    return tuple(Input(name, array.shape) for name, array in zip(names, traced.inputs.arrays, strict=True))


def _output(shape: tuple[int, ...], rows: Sequence[int], table: Table, pattern: SparsityPattern | None) -> Output:
    positions = [k for k, row in enumerate(rows) if not _is_zero(table.atoms.get(row))]
    if len(positions) == len(rows):
        return Output(shape, tuple(rows), pattern=pattern)
    return Output(shape, tuple(rows[k] for k in positions), tuple(positions), pattern)


def _is_zero(atom: sp.Basic | None) -> bool:
    """Whether a leaf is the number 0 or 0.0; -0.0 is an atom of its own."""
    return isinstance(atom, sp.Number) and atom.is_zero is True


def _containers(traced: Trace) -> tuple[Pack | None, Unpack | None]:
    """Return how a kernel takes its arguments and result apart; None where they are plain arrays or floats.

    A SparseMatrix is one leaf of the result, in whose place the kernel has the packed data.
    """
    plain_inputs = traced.inputs.structure == containers.flatten((0,) * len(traced.names))[1]
    result = _skeleton(traced)
    structure = _sparse_leaves(result)[1]
    return (
        None if plain_inputs else _packer(traced.inputs),
        None if _is_leaf(result) or _flat(result) else lambda arrays: containers.unflatten(structure, arrays),
    )


def _skeleton(traced: Trace) -> Any:
    """The result's containers with 0.0 for each array."""
    return containers.unflatten(traced.outputs.structure, [0.0] * len(traced.outputs.arrays))


def _sparse_leaves(result: Any) -> tuple[list[Any], Any]:
    """Flatten a skeleton without taking apart the sparse matrices in it."""
    return optree.tree_flatten(result, lambda value: isinstance(value, SparseMatrix), namespace=NAMESPACE)


def _patterns(traced: Trace) -> list[SparsityPattern | None]:
    leaves = _sparse_leaves(_skeleton(traced))[0]
    return [leaf.pattern if isinstance(leaf, SparseMatrix) else None for leaf in leaves]


def _is_leaf(result: Any) -> bool:
    return isinstance(result, float | SparseMatrix)


def _flat(result: Any) -> bool:
    return type(result) is tuple and len(result) > 1 and all(map(_is_leaf, result))


def _packer(inputs: Tree) -> Pack:
    def pack(args: tuple[Any, ...], keywords: dict[str, Any]) -> list[Any]:
        if keywords:
            raise ArgumentError(f"keyword {next(iter(keywords))!r}", why="arguments are positional")
        leaves, structure = containers.flatten(args)
        if structure != inputs.structure:
            raise ArgumentError(f"arguments of structure {structure}", why=f"the kernel takes {inputs.structure}")
        return leaves

    return pack
