"""`compile` and `jit`: native kernels of functions."""

from __future__ import annotations

import typing
import warnings
from collections import OrderedDict
from collections.abc import Callable
from functools import partial, update_wrapper
from threading import Lock
from typing import Any

import numpy as np

import codegen
import symad.tracing.values.containers as containers
from codegen import Kernel
from codegen.collector import fewer_collections
from codegen.ir.program import Program
from codegen.lanes import Dtype
from codegen.later import OldName
from codegen.limits import limits
from codegen.loops.optimise.contraction import SAVED, contracted
from codegen.loops.roll import Roll
from codegen.machine.calls.compiled import Pack, Unpack
from codegen.machine.kernel_text import LISTING
from codegen.machine.storage.cache import Setting
from codegen.options import Accuracy, OptionFields, check_names
from codegen.stages import carried_out, compilation, stage
from symad.compiling.candidates import Rolled
from symad.compiling.kernel_containers import ArgumentsApart, ResultTogether
from symad.compiling.plan import CompilationPlan, Strategy
from symad.compiling.planning import plan
from symad.compiling.static_arguments import STATIC, Instances, Roots, Variants
from symad.derivatives.loops.checkpoints import Checkpoints
from symad.derivatives.signatures import P, R
from symad.errors import LoweringError, UnknownStateWarning, WorkbenchError
from symad.reach.reachable_state import ReachableState
from symad.tracing.calling.function_names import name_of, positional
from symad.tracing.calling.memory import telling
from symad.tracing.calling.tracebacks import leave_out_ours, public_api
from symad.tracing.calling.transformed_function import Transformed
from symad.tracing.calling.user_place import line_of, user_frame
from symad.tracing.control.paths import MAX_PATHS
from symad.tracing.trace import Trace, skeleton, sparse_leaves, to_program, with_place
from symad.tracing.values.container_types import static_parts
from symad.tracing.values.sparse_matrix import SparseMatrix
from symad.tracing.values.traced import Traced


class NativeFields(typing.TypedDict, total=False):
    """The options of machine code; those of `codegen` that change neither bits nor what a kernel takes are its own."""

    tier: typing.Literal["default", "fast", "auto"]
    accuracy: Accuracy
    fma: bool
    dtype: Dtype
    threads: int


class CompileFields(NativeFields, total=False):
    """The keywords of `compile`."""

    strategy: Strategy
    roll: Roll
    checkpoints: Checkpoints
    max_paths: int
    freeze: bool
    max_ops: int | None
    max_seconds: float | None
    max_bytes: float | None
    cache: Setting


NAMES = frozenset(CompileFields.__annotations__)
OLD_OPTIONS = {"chunk": "chunk=", "lanes": "lanes=", "tier": 'tier="llvm"'}
_OLD = OldName("the call without it: no bit depends on it", "")
_NUMBERS = frozenset({float, int, np.float64, np.float32, np.int64, np.int32})  # one kernel for all of them
KERNELS = 32  # kernels that one jitted function keeps, least recently used first out


@public_api
def compile(
    f: Callable[..., Any],
    *example_args: Any,
    strategy: Strategy = "auto",
    roll: Roll = "auto",
    checkpoints: Checkpoints = "all",
    max_paths: int = MAX_PATHS,
    freeze: bool = False,
    max_ops: int | None = None,
    max_seconds: float | None = None,
    max_bytes: float | None = None,
    cache: Setting = None,
    **options: typing.Unpack[NativeFields],
) -> Kernel:
    """Compile a function to a native kernel for arguments with the structure and shapes of the examples.

    f may be any composition of transforms. The kernel takes and returns what f does, with float64 arrays and floats
    as leaves; a SparseMatrix is returned as its packed data, with the pattern in `kernel.sparsity`, and by
    `kernel.scipy` as a scipy.sparse array.

    Options (see `codegen.options.Options`): `tier="fast"` generates code of loops faster, which runs more slowly,
    `tier="auto"` starts with that and swaps the other in when it is ready, with the same bits; `accuracy="fast"`
    allows rewriting to fewer operations and vector functions, which round differently; `fma=False` rounds every
    product. `strategy` is "straight" (an operation for every entry), "sweep" (a dense Hessian or Jacobian column by
    column in vector lanes) or "auto", which prices every way and takes the cheapest one; `plan` shows it, and does
    everything but compile, `choices` and `kernel.stats.plan` have it afterwards.
    `roll` says whether what repeats becomes loops, whose bodies are differentiated once ("auto": where that is cheaper,
    "always", "never"; `loops` shows what repeats); a sum in a loop is added up in another order. `checkpoints` says
    what reverse mode keeps of a loop whose repetitions need each other: "all" of them, about "sqrt" of their number, or
    next to "none" (see `symad.derivatives.loops.checkpoints`; `kernel.stats.workspace` is what it comes to).
    `threads` is how many threads share long loops, without a change of a bit.
    `dtype` is the type of arguments, results and arithmetic: "float64", "float32" (also in loops and matrix
    operations), or "complex128" for analytic functions, which are traced with real numbers (complex examples give their
    shapes) and compiled without loops.
    LimitError stops work on more than `max_ops` operations, or after `max_seconds`: both are looked at for every 4096
    operations and between parts. An array, a table, a result or the kernel's workspace of more than `max_bytes` is
    refused (LimitError) before the memory is asked for; where there is none, WorkspaceError (a MemoryError) says so.
    `cache` keeps machine code on disk: True, False, a folder, or None for what the environment variable SYMAD_CACHE
    says (see `codegen.machine.storage.cache.chosen`).

    Both branches of an `if` on a traced value are compiled, up to `max_paths` paths (LimitError); where f itself
    raises an error, the kernel returns NaN, but mistakes (TypeError, LookupError...) come out. TraceError for questions
    that only numbers can answer, ArgumentError for arguments that are not real numbers.

    >>> import symad as sa
    >>> kernel = compile(sa.hessian(lambda x: x[0] ** 2 * x[1]), np.zeros(2))
    >>> kernel(np.array([2.0, 3.0]))
    array([[6., 4.],
           [4., 0.]])
    """
    _check_options(options)
    with limits(max_ops, max_seconds, max_bytes), telling(), fewer_collections(), compilation(name_of(f), LISTING):
        planned = plan(
            f, *example_args, strategy=strategy, roll=roll, checkpoints=checkpoints, max_paths=max_paths,
            freeze=freeze, dtype=options.get("dtype", "float64"),
        )  # fmt: skip
        return carry_out(planned, cache=cache, **options)


def _check_options(options: typing.Mapping[str, Any]) -> None:
    """Raise ArgumentError for an option that there is not; warn of those that go, at the user's line."""
    check_names(options, NAMES | OLD_OPTIONS.keys())
    for name in OLD_OPTIONS.keys() & options.keys():
        frame = user_frame()
        if frame is not None and (name != "tier" or options[name] == "llvm"):
            names = frame.f_globals
            warnings.warn_explicit(
                _OLD.message(OLD_OPTIONS[name]), DeprecationWarning, frame.f_code.co_filename,
                line_of(frame.f_code, frame.f_lasti), names.get("__name__"),
                names.setdefault("__warningregistry__", {}),
            )  # fmt: skip


def carry_out(planned: CompilationPlan, *, cache: Setting = None, **options: typing.Unpack[OptionFields]) -> Kernel:
    """Compile what a plan has chosen; see `compile`. The kernel keeps the plan in its statistics.

    >>> kernel = carry_out(plan(lambda x, y: x * y, 0.0, 0.0))
    >>> kernel(2.0, 3.0), kernel.stats.plan.chosen
    (6.0, 'straight')
    """
    chosen, kept = planned.candidate, planned.summary()
    if chosen.rolled is not None:
        return compile_rolled(chosen.rolled, cache=cache, planned=kept, **options)
    assert chosen.program is not None
    if chosen.traced is None:
        return codegen.compile_program(chosen.program, cache=cache, planned=kept, **options)
    return compile_trace(chosen.traced, chosen.program, kept, cache=cache, **options)


def compile_trace(
    traced: Trace,
    program: Program | None = None,
    planned: CompilationPlan | None = None,
    *,
    cache: Setting = None,
    **options: typing.Unpack[OptionFields],
) -> Kernel:
    """Compile a trace, whose program may be given; see `compile`.

    >>> from symad.tracing.trace import trace
    >>> compile_trace(trace(lambda x, y: x * y, 0.0, 0.0))(2.0, 3.0)
    6.0
    """
    program = to_program(traced) if program is None else program
    pack, unpack = _containers(traced, skeleton(traced))
    stage("graph", traced.text)
    try:
        return codegen.compile_program(program, pack=pack, unpack=unpack, cache=cache, planned=planned, **options)
    except LoweringError as error:
        placed = with_place(error, traced)
        if placed is error:
            raise
        raise placed from error


def compile_rolled(
    rolled: Rolled,
    *,
    cache: Setting = None,
    planned: CompilationPlan | None = None,
    **options: typing.Unpack[OptionFields],
) -> Kernel:
    """Compile a rolled program; see `compile`."""
    pack, unpack = _containers(rolled.primal.traced, rolled.result)
    saved = SAVED if rolled.checkpoints == "all" else 1
    program = carried_out("contraction", lambda program: contracted(program, saved), rolled.program)
    return codegen.compile_program(program, pack=pack, unpack=unpack, cache=cache, planned=planned, **options)


@typing.overload
def jit(f: Callable[P, R], **options: typing.Unpack[CompileFields]) -> Callable[P, R]: ...


@typing.overload
def jit(f: None = None, **options: typing.Unpack[CompileFields]) -> Callable[[Callable[P, R]], Callable[P, R]]: ...


def jit(f: Callable[..., Any] | None = None, **options: typing.Unpack[CompileFields]) -> Callable[..., Any]:
    """Compile a function at its first call for each structure and shape of arguments; usable as a decorator.

    The options are those of `compile`. Called inside a transform, on traced values, it is the function itself.
    Numbers are taken as floats; truth values, enumerations and classes beside them are static: each has kernels of its
    own, True others than 1. What else the function reads - static fields, variables around it, global names, the
    text of the functions that it calls - is compared at each call, with its types; where it has changed, the function
    is compiled again. UnknownStateWarning, once, where it reads something that cannot be compared.

    On a method, an instance that is a container (a dataclass) is an argument like others. Any other one is static: the
    key of its kernels is the object itself, and its attributes are compared at each call like what a function reads. It
    is not kept alive by them, unless its attributes lead back to it: then until 32 others were called.

    >>> @jit
    ... def norm2(x):
    ...     return x @ x
    >>> norm2(np.array([3.0, 4.0]))
    25.0
    """
    _check_options(options)
    if f is None:
        return lambda g: jit(g, **options)
    transformed = Transformed.of(_jitted(f, options, lambda: ()), f)
    update_wrapper(transformed, f)
    transformed.made_by = jit, (f,), dict(options)
    return transformed


def _jitted(function: Callable[..., Any], options: CompileFields, read_too: Roots) -> Callable[..., Any]:
    """Return a jitted function, which also compares the values of `read_too` at each call."""
    kernels = _Kernels(function, options, read_too)
    variants = Variants(function, lambda bound: _jitted(bound, options, read_too), KERNELS)
    instances = Instances(function, lambda bound, roots: _jitted(bound, options, roots), KERNELS)

    def call(*args: Any, **keywords: Any) -> Any:
        if keywords:
            args = positional(function, args, keywords, "a kernel knows its arguments by their positions")
        entry = kernels.at_hand.get(_types_of(args))
        if entry is not None and entry[1].unchanged():
            return entry[0](*args)
        leaves, structure = containers.flatten_exactly(args)
        if any(isinstance(leaf, Traced) for leaf in leaves):
            return function(*args)  # inside a transform: it is traced like any other function
        if args and instances.takes(args[0]):
            return instances.of(args[0])(*args[1:])
        static = {k: arg for k, arg in enumerate(args) if isinstance(arg, STATIC)}
        if 0 < len(static) < len(args):
            return variants.of(static)(*[arg for k, arg in enumerate(args) if k not in static])
        try:
            run = kernels.of((structure, tuple(map(_kind, leaves))), args)
        except Exception as error:
            leave_out_ours(error)
            raise
        return run(*args)

    return update_wrapper(call, function)


class _Kernels:
    """The kernels of a jitted function for the latest kinds of arguments, each with the state that it read."""

    def __init__(self, function: Callable[..., Any], options: CompileFields, read_too: Roots) -> None:
        self._function, self._options, self._read_too = function, options, read_too
        self._kernels: OrderedDict[Any, tuple[Callable[..., Any], ReachableState]] = OrderedDict()
        self.at_hand: dict[Any, tuple[Callable[..., Any], ReachableState]] = {}  # entries of plain arguments
        self._lock = Lock()
        self._warns = not options.get("freeze", False)

    def of(self, key: Any, args: tuple[Any, ...]) -> Callable[..., Any]:
        """Return the kernel for arguments of a kind, which is compiled where there is none or something has changed."""
        with self._lock:
            entry = self._kernels.get(key)
        if entry is None or not entry[1].unchanged():
            kernel = compile(self._function, *args, **self._options)  # unlocked: it may call this function too
            read = ReachableState(self._function, *self._read_too(), *static_parts(args))
            if read.unknown and self._warns:
                self._warns = False
                _warn(self._function, read)
            entry = kernel if kernel.sparsity is None else partial(kernel.with_matrices, SparseMatrix), read
        with self._lock:
            if key not in self._kernels or len(self.at_hand) >= KERNELS:
                self.at_hand = {}  # entries return when they are used
            self._kernels[key] = entry
            self._kernels.move_to_end(key)
            if len(self._kernels) > KERNELS:
                self._kernels.popitem(last=False)
            if all(map(_is_plain, args)):
                self.at_hand[_types_of(args)] = entry
        return entry[0]


def _types_of(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return a quick key of plain arguments, finer than their key."""
    met: list[Any] = []
    for arg in args:
        if type(arg) is np.ndarray:
            met.append(arg.shape)
            met.append(arg.dtype)
        else:
            met.append(type(arg))
    return tuple(met)


def _is_plain(arg: Any) -> bool:
    return type(arg) in _NUMBERS or (type(arg) is np.ndarray and arg.dtype.kind != "O")


def _kind(leaf: Any) -> Any:
    """The key of a leaf for `compile`: its shape, and its type."""
    if type(leaf) in _NUMBERS:
        return ()
    return containers.shape_of(leaf), type(leaf), leaf.dtype.kind if isinstance(leaf, np.ndarray) else ""


def _warn(function: Callable[..., Any], read: ReachableState) -> None:
    """Warn that changes of something that a function reads are not seen."""
    obstacle = read.unknown[0]
    file, line = obstacle.place
    said = WorkbenchError(
        f"{name_of(function)} reads what jit cannot compare: {obstacle.reason}",
        where=f"{file}:{line}" if line else "",
        why="its kernel keeps what was read when it was compiled",
        do="pass it as an argument; or say freeze=True, or use symad.compile, to keep it",
    )
    warnings.warn_explicit(str(said), UnknownStateWarning, file, line, registry={})


def _containers(traced: Trace, result: Any) -> tuple[Pack | None, Unpack | None]:
    """Return how a kernel packs its arguments and unpacks its result; None where they are plain arrays or floats.

    A SparseMatrix is one leaf of the result: the kernel returns its packed data there.
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
