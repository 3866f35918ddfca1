"""Native kernels: compile a function, or let `jit` do so at the first call."""

from __future__ import annotations

import typing
from collections import OrderedDict
from collections.abc import Callable
from functools import update_wrapper
from threading import Lock
from typing import Any

import numpy as np

import codegen
import symad.tracing.values.containers as containers
from codegen import Kernel
from codegen.ir.program import Program
from codegen.limits import limits
from codegen.machine.calls.compiled import Pack, Unpack
from codegen.machine.storage.cache import Setting
from codegen.options import OptionFields
from symad.compiling.kernel_containers import ArgumentsApart, ResultTogether
from symad.compiling.rolling import Roll, Rolled, rolled
from symad.compiling.strategy import Strategy, choose
from symad.derivatives.loops.checkpoints import Checkpoints
from symad.derivatives.loops.contraction import SAVED, windowed
from symad.errors import ArgumentError, LoweringError
from symad.tracing.calling.function_names import name_of
from symad.tracing.control.paths import MAX_PATHS
from symad.tracing.to_program import skeleton, sparse_leaves, to_program, with_place
from symad.tracing.trace import Trace
from symad.tracing.values.complex_points import complex_points
from symad.tracing.values.sparse_matrix import SparseMatrix
from symad.tracing.values.traced import Traced


class CompileFields(OptionFields, total=False):
    """The keywords of `compile`."""

    strategy: Strategy
    roll: Roll
    checkpoints: Checkpoints
    max_paths: int
    max_ops: int | None
    max_seconds: float | None
    cache: Setting


KERNELS = 32  # kernels that one jitted function keeps, least recently used first out


def compile(
    f: Callable[..., Any],
    *example_args: Any,
    strategy: Strategy = "auto",
    roll: Roll = "auto",
    checkpoints: Checkpoints = "all",
    max_paths: int = MAX_PATHS,
    max_ops: int | None = None,
    max_seconds: float | None = None,
    cache: Setting = None,
    **options: typing.Unpack[OptionFields],
) -> Kernel:
    """Compile a function to a native kernel for arguments with the structure and shapes of the examples.

    f may be any composition of transforms. The kernel takes and returns what f does, with float64 arrays and floats
    as leaves; a SparseMatrix is returned as its packed data, with the pattern in `kernel.sparsity`, and by
    `kernel.scipy` as a scipy.sparse array.

    Options (see `codegen.options.Options`): `tier="fast"` generates code several times faster, about half as fast,
    `tier="auto"` starts with that and swaps the other in when it is ready, with the same bits; `accuracy="fast"`
    allows rewriting to fewer operations and vector functions, which round differently; `fma=False` rounds every
    product. `strategy` is "straight" (an operation for every entry), "sweep" (a dense Hessian or Jacobian column by
    column in vector lanes) or "auto", which counts operations and takes the cheaper one; `choices` shows it.
    `roll` says whether what repeats becomes loops, whose bodies are differentiated once ("auto": where that is cheaper,
    "always", "never"; `loops` shows what repeats); a sum in a loop is added up in another order. `checkpoints` says
    what reverse mode keeps of a loop whose repetitions need each other: "all" of them, about "sqrt" of their number, or
    next to "none" (see `symad.derivatives.loops.checkpoints`; `kernel.stats.workspace` is what it comes to).
    `threads` is how many threads share long loops, without a change of a bit.
    `dtype` is the type of arguments, results and arithmetic: "float64", "float32", or "complex128" for analytic
    functions, which are traced with real numbers (complex examples give their shapes).
    LimitError stops work on more than `max_ops` operations, or after `max_seconds`: both are looked at for every 4096
    operations and between parts. `cache` keeps machine code on disk: True, False, a folder, or None for what the
    environment variable SYMAD_CACHE says (see `codegen.machine.storage.cache.chosen`).

    Both branches of an `if` on a traced value are compiled, up to `max_paths` paths (LimitError); where f itself
    raises ValueError, ArithmeticError or AssertionError, the kernel returns NaN. TraceError for other questions that
    only numbers can answer (argmax, a mask, an index), ArgumentError for arguments that are not real numbers.

    >>> import symad as sa
    >>> kernel = compile(sa.hessian(lambda x: x[0] ** 2 * x[1]), np.zeros(2))
    >>> kernel(np.array([2.0, 3.0]))
    array([[6., 4.],
           [4., 0.]])
    """
    if options.get("dtype", "float64") != "float64":
        example_args = _real(example_args)
    with limits(max_ops, max_seconds), complex_points(options.get("dtype") == "complex128"):
        found = _rolled(f, example_args, roll, strategy, max_paths, checkpoints, options)
        if isinstance(found, Rolled):
            return compile_rolled(found, cache=cache, **options)
        if isinstance(found, Trace):
            return compile_trace(found, name=name_of(f), cache=cache, **options)
        if options.get("dtype", "float64") != "float64" and strategy == "auto":
            strategy = "straight"
        chosen = choose(f, example_args, strategy, max_paths, found)
        if isinstance(chosen, Program):
            return codegen.compile_program(chosen, cache=cache, **options)
        return compile_trace(chosen, name=name_of(f), cache=cache, **options)


def compile_trace(
    traced: Trace, *, name: str = "kernel", cache: Setting = None, **options: typing.Unpack[OptionFields]
) -> Kernel:
    """Compile a trace; see `compile`.

    >>> from symad.tracing.trace import trace
    >>> compile_trace(trace(lambda x, y: x * y, 0.0, 0.0))(2.0, 3.0)
    6.0
    """
    pack, unpack = _containers(traced, skeleton(traced))
    try:
        return codegen.compile_program(to_program(traced, name), pack=pack, unpack=unpack, cache=cache, **options)
    except LoweringError as error:
        placed = with_place(error, traced)
        if placed is error:
            raise
        raise placed from error


def compile_rolled(found: Rolled, *, cache: Setting = None, **options: typing.Unpack[OptionFields]) -> Kernel:
    """Compile a rolled program; see `compile`.

    >>> from symad.compiling.rolling import rolled
    >>> found = rolled(lambda x: np.sum(np.sin(x) * x), (np.zeros(200),), "always")
    >>> assert isinstance(found, Rolled)
    >>> compile_rolled(found).stats.strategy
    'rolled'
    """
    pack, unpack = _containers(found.primal.traced, found.result)
    program = windowed(found.program, SAVED if found.checkpoints == "all" else 1)
    return codegen.compile_program(program, pack=pack, unpack=unpack, cache=cache, **options)


def jit(f: Callable[..., Any] | None = None, **options: typing.Unpack[CompileFields]) -> Callable[..., Any]:
    """Compile a function at its first call for each structure and shape of arguments; usable as a decorator.

    The options are those of `compile`. Called inside a transform, on traced values, it is the function itself.

    >>> @jit
    ... def norm2(x):
    ...     return x @ x
    >>> norm2(np.array([3.0, 4.0]))
    25.0
    """
    if f is None:
        return lambda g: jit(g, **options)
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
        if kernel is None:  # unlocked: compiling it may call this function too
            kernel = compile(function, *args, **options)
        with lock:
            kernels[key] = kernel
            kernels.move_to_end(key)
            if len(kernels) > KERNELS:
                kernels.popitem(last=False)
        return kernel(*args) if kernel.sparsity is None else kernel.with_matrices(SparseMatrix, *args)

    return update_wrapper(call, function)


def _real(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Arguments with the real parts of complex leaves."""
    leaves, structure = containers.flatten(args)
    real: tuple[Any, ...] = containers.unflatten(structure, [np.real(u) if np.iscomplexobj(u) else u for u in leaves])
    return real


def _rolled(
    f: Callable[..., Any],
    args: tuple[Any, ...],
    roll: Roll,
    strategy: Strategy,
    max_paths: int,
    checkpoints: Checkpoints,
    options: OptionFields,
) -> Rolled | Trace | Program | None:
    """Return f as a rolled program, or what is known of it where it is compiled without loops."""
    number = options.get("dtype", "float64")
    without = {
        f"strategy={strategy!r}": strategy != "auto", f"dtype={number!r}": number != "float64",
        f"roll={roll!r}": roll == "never",
    }  # fmt: skip
    reasons = [option for option, holds in without.items() if holds]
    asked = {f"roll={roll!r}": roll == "always", f"checkpoints={checkpoints!r}": checkpoints != "all"}
    for option in (option for option, holds in asked.items() if holds and reasons):
        raise ArgumentError(
            f"{option} with {reasons[0]}",
            why="loops are written for float64, and straight lines or a sweep have none",
            do="leave out one of the two",
        )
    return None if reasons else rolled(f, args, "always" if any(asked.values()) else roll, max_paths, checkpoints)


def _containers(traced: Trace, result: Any) -> tuple[Pack | None, Unpack | None]:
    """Return how a kernel takes its arguments and result apart; None where they are plain arrays or floats.

    A SparseMatrix is one leaf of the result, in whose place the kernel has the packed data.
    """
    plain_inputs = traced.inputs.structure == containers.flatten((0,) * len(traced.names))[1]
    structure = sparse_leaves(result)[1]
    return (
        None if plain_inputs else ArgumentsApart(traced.inputs.structure),
        None if _is_leaf(result) or _flat(result) else ResultTogether(structure),
    )


def _is_leaf(result: Any) -> bool:
    return isinstance(result, float | SparseMatrix)


def _flat(result: Any) -> bool:
    return type(result) is tuple and len(result) > 1 and all(map(_is_leaf, result))
