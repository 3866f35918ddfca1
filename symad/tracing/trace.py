"""`trace`: the graph of a function on symbols, as it was written, and the program made of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import optree
import sympy as sp

import symad.tracing.control.stepped_loops  # noqa: F401 (says what runs a loop whose steps are functions)
import symad.tracing.values.containers as containers
from codegen.ir.program import Input, Output, Program, reachable
from codegen.ir.row_table import RowTable
from codegen.ir.sparsity import SparsityPattern
from codegen.ir.strictness import checked
from codegen.loops.loop import Loop
from symad.display.document import Document, Paragraph, Table
from symad.display.notation import counted
from symad.display.shown import Shown
from symad.errors import ArgumentError, LoweringError
from symad.graph.graph import Graph
from symad.graph.sympy_io import Let, to_let
from symad.tracing.calling.attempts import attempted
from symad.tracing.calling.function_names import argument_names, check_call, name_of
from symad.tracing.calling.jitted import traced_form
from symad.tracing.calling.scope import Scope, open_scope
from symad.tracing.calling.tracebacks import public_api
from symad.tracing.calling.user_place import located, user_frame, written_place
from symad.tracing.control.decisions import tell
from symad.tracing.control.merging import with_nan
from symad.tracing.control.paths import MAX_PATHS, Paths
from symad.tracing.control.stale_values import StaleValueCheck
from symad.tracing.values.container_types import NAMESPACE, static_parts
from symad.tracing.values.node_rows import add_rows
from symad.tracing.values.node_trees import (
    Tree,
    expressions,
    input_symbols,
    lift_inputs,
    lift_result,
    paths_of,
    symbols_of,
    wrap,
)
from symad.tracing.values.sparse_matrix import SparseMatrix

SHOWN_OPERATIONS = 2000  # of a trace that is shown line by line


class Trace(Shown):
    """The graph of a function: `inputs` (symbols) and `outputs` are trees of nodes of `graph`.

    Its forms for people (`text`, `latex`, `html`, `save`) are its let form, a line for each value used more than once.

    >>> trace(lambda x, y: x * y + x, 1.0, 2.0)
    <Trace: 2 inputs, 1 output, 2 operations>
    """

    graph: Graph
    names: tuple[str, ...]
    inputs: Tree
    outputs: Tree

    def __init__(
        self,
        graph: Graph,
        names: Sequence[str],
        inputs: Tree,
        outputs: Tree,
        paths: int = 1,
        *,
        raises: bool = False,
        raised: int | None = None,
        whole: Tree | None = None,
        in_body: bool = False,
    ) -> None:
        self.graph, self.names, self.inputs, self.outputs = graph, tuple(names), inputs, outputs
        self.paths = paths  # through the function's conditions, merged in the outputs
        self.raises = raises  # on one of them, where the outputs are NaN
        self.in_body = in_body  # whether the body of a loop raises, for some repetitions
        self.raised = raised  # the condition under which they are, also for want of a result for NaN
        self.whole: Tree = whole or outputs  # the outputs with any numbers there: what derivatives are taken of

    def let(self, symbols: Iterable[sp.Symbol] | None = None) -> Let:
        """Return `(replacements, reduced)` as `sympy.cse` does, in linear time; one entry for each scalar output.

        >>> import numpy as np
        >>> trace(lambda x: np.sin(x) * np.sin(x), 1.0).let()
        ([(x0, sin(x))], [x0*x0])
        """
        return to_let(self.graph, self.outputs.flat, symbols)

    def expr(self) -> Any:
        """Return the result with SymPy expressions as leaves (arrays: object arrays); LimitError when too large.

        >>> trace(lambda x: 2 * x + x, 1.0).expr()
        3*x
        """
        leaves = [expressions(self.graph, array) for array in self.outputs.arrays]
        return containers.unflatten(self.outputs.structure, leaves)

    def count_ops(self) -> int:
        """Return the number of operations of the graph (shared ones once; leaves and aliases not)."""
        return self.graph.count_operations(self.outputs.flat)

    def document(self) -> Document:
        """Return the let form as a table, or the size of a trace that has more lines than are read.

        >>> print(trace(lambda x: (x + 1) * (x + 1), 1.0).text())
        <Trace: 1 input, 1 output, 2 operations>
        <BLANKLINE>
         name     is
        ────────────────
         x0       x + 1
         result   x0·x0
        """
        head = Paragraph(repr(self))
        if self.count_ops() > SHOWN_OPERATIONS:
            return (head, Paragraph(f"More than {SHOWN_OPERATIONS} operations are not shown line by line."))
        replacements, reduced = self.let()
        results = (f"result {k}" if len(reduced) > 1 else "result" for k in range(len(reduced)))
        return (head, Table(("name", "is"), (*replacements, *zip(results, reduced, strict=True))))

    def __repr__(self) -> str:
        sizes = {"input": self.inputs.size, "output": self.outputs.size, "operation": self.count_ops()}
        return f"<Trace: {', '.join(counted(number, noun) for noun, number in sizes.items())}>"

    def __str__(self) -> str:
        return repr(self)

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(repr(self))


class StructuredTrace(Trace):
    """A trace in which loops written down by constructs stand as they are: their results are leaves of the graph.

    `carried_out` has the reasons why others are carried out repetition by repetition, by the user's lines;
    `of_arrays` says whether some are operations on large arrays, `of_small_arrays` whether some are on smaller ones
    that are loops only because their arguments are in even steps.
    """

    loops: list[Loop]
    carried_out: Mapping[str, str]

    of_arrays = False
    of_small_arrays = False

    def __init__(self, traced: Trace, loops: Sequence[Loop], carried_out: Mapping[str, str]) -> None:
        vars(self).update(vars(traced))
        self.loops, self.carried_out = list(loops), carried_out


@public_api
def trace(f: Callable[..., Any], *args: Any, max_paths: int = MAX_PATHS, freeze: bool = False) -> Trace:
    """Trace a function on symbols of the structure and shapes of example arguments.

    The arguments' values are not used: of a condition on a traced value, both branches are traced (`paths.Paths`), and
    LimitError is raised when there are more than `max_paths` paths. ArgumentError for arguments or results that are
    not containers of real numbers. Inside a differentiated function too, the trace
    stands alone: a traced value captured from around it raises TraceError. FrozenValueWarning tells of random numbers,
    the clock, files, the environment and of what the function changes itself, which are constants of the trace, unless
    `freeze` says that this is meant.

    >>> import numpy as np
    >>> trace(lambda x: x @ x, [0.0, 0.0]).expr()
    Traceback (most recent call last):
    ...
    TypeError: unsupported operand type(s) for @: 'list' and 'list'
    >>> trace(lambda x: x @ x, np.zeros(2)).expr()
    x_0**2 + x_1**2
    >>> trace(lambda x: x**2 if x > 0 else -x, 1.0).expr()
    Piecewise((x**2, x > 0), (-x, True))
    """
    watched = None if freeze else StaleValueCheck(f, *static_parts(args))
    traced = _traced(f, args, max_paths, None, {})
    if watched is not None:
        watched.tell(traced, lambda: _traced(f, args, max_paths, None, {}))
    return traced


def trace_ours(f: Callable[..., Any], args: Sequence[Any], names: Sequence[str], max_paths: int) -> Trace:
    """Trace a function that runs none of the user's code: transforms of a trace that is a function again.

    >>> trace_ours(lambda x: x * x, [1.0], ["x"], 1).expr()
    x**2
    """
    with open_scope(apart=True) as scope:
        inputs, is_input = lift_inputs(scope, args, names)
        scope.parameters = inputs.nodes
        return _followed(scope, f, names, inputs, is_input, max_paths, lambda f, run: run(f))


def trace_structured(
    f: Callable[..., Any],
    *args: Any,
    max_paths: int = MAX_PATHS,
    differentiate: Any = None,
    arrays: Callable[[Scope], Any] | None = None,
) -> StructuredTrace:
    """Trace a function as `trace` does, with the bodies of its loops (sum_over, vmap, scan...) traced once each.

    `differentiate` makes rolled programs of derivatives taken in it (`symad.tracing.control.derivative_blocks`),
    `arrays` what writes down operations on large arrays (`symad.tracing.control.array_loops`).

    >>> import numpy as np
    >>> from symad import sum_over
    >>> traced = trace_structured(lambda x: sum_over(lambda u: u * u, x), np.zeros(1000))
    >>> [(loop.count, len(loop.body)) for loop in traced.loops], traced.count_ops()
    ([(1000, 2)], 0)
    """
    loops: dict[Any, Loop] = {}
    carried_out: dict[str, str] = {}
    traced = _traced(f, args, max_paths, loops, carried_out, differentiate, arrays)
    return StructuredTrace(traced, list(loops.values()), carried_out)


def _traced(
    f: Callable[..., Any],
    args: Sequence[Any],
    max_paths: int,
    loops: dict[Any, Loop] | None,
    carried_out: dict[str, str],
    differentiate: Any = None,
    arrays: Callable[[Scope], Any] | None = None,
) -> Trace:
    check_call(f, tuple(args))
    f = traced_form(f)
    names = argument_names(f, len(args))
    with open_scope(apart=True) as scope:
        inputs, is_input = lift_inputs(scope, args, names)
        scope.parameters, scope.loops, scope.carried_out = inputs.nodes, loops, carried_out
        scope.differentiate, scope.arrays = differentiate, None if arrays is None else arrays(scope)
        return _followed(scope, f, names, inputs, is_input, max_paths, attempted)


def _followed(
    scope: Scope,
    f: Callable[..., Any],
    names: Sequence[str],
    inputs: Tree,
    is_input: Callable[[sp.Basic], bool],
    max_paths: int,
    attempt: Callable[[Callable[..., Any], Callable[[Callable[..., Any]], Tree]], Tree],
) -> Trace:
    """Return the trace of a function on inputs of a scope, along all of its paths."""
    scope.graph.place_all(0, user_frame)
    scope.paths = paths = Paths(scope, max_paths, name_of(f))
    whole = attempt(
        f,
        lambda form: paths.explore(
            lambda: form(*wrap(scope, inputs)), lambda result: lift_result(scope, result, name_of(f))
        ),
    )
    tell(paths.bounded, max_paths)
    raised = paths.without_value()
    outputs = with_nan(scope.graph, whole, raised)
    _refuse_namesakes(scope.graph, is_input, inputs, outputs)
    return Trace(
        scope.graph, names, inputs, outputs, paths.explored,
        raises=scope.raises or paths.raises, raised=raised, whole=whole, in_body=scope.raises,
    )  # fmt: skip


def _refuse_namesakes(graph: Graph, is_input: Callable[[sp.Basic], bool], inputs: Tree, outputs: Tree) -> None:
    """Raise ArgumentError for a symbol in the traced function that would be taken for one of its inputs."""
    names = {atom for atom in graph.given_atoms() if is_input(atom)}
    if not names:
        return
    for node in set(reachable(graph, outputs.flat)) - set(inputs.flat):
        if graph.atoms.get(node) in names:
            raise ArgumentError(
                f"the symbol {graph.atoms[node]} in the traced function",
                why="an argument has the same name, and in expressions the two could not be told apart",
                do="rename the symbol or the argument, or pass the symbol in",
            )


__all__ = ["StructuredTrace", "Trace", "input_symbols", "symbols_of", "trace", "trace_structured"]


def to_program(traced: Trace, name: str = "kernel") -> Program:
    """Return the Program of a trace: only reachable rows, inputs first, aliases stripped and rows interned anew.

    An output that is the constant 0 becomes a structural zero. ArgumentError names a free symbol that is no input.

    >>> len(to_program(trace(lambda x: x * x, 1.0)))
    2
    """
    graph = traced.graph
    table = RowTable()
    row_of = {node: table.leaf(graph.atoms[node]) for node in traced.inputs.flat}
    nodes = reachable(graph, traced.outputs.flat)
    add_rows(table, row_of, graph, nodes, lambda node: _constant(graph, node, traced))
    inputs = input_arrays(traced)
    outputs = tuple(
        _output(array.shape, [row_of[node] for node in array.ravel().tolist()], table, pattern)
        for array, pattern in zip(traced.outputs.arrays, patterns_of(traced), strict=True)
    )
    program = Program(table.heads, table.operands, table.atoms, inputs, outputs, name)
    return checked(program, "writing a trace as rows", needed=True)


def with_place(error: LoweringError, traced: Trace) -> LoweringError:
    """Return an error of a later stage with the user's line, where its text starts with the name of a head.

    >>> error = LoweringError("Abs of a complex number")
    >>> with_place(error, trace(lambda x: abs(x), 1.0)).where != ""
    True
    """
    head, graph = error.what.split(" ")[0], traced.graph
    nodes = (node for node in reachable(graph, traced.outputs.flat) if graph.heads[node].__name__ == head)
    node = next(nodes, None)
    return error if node is None else located(error, graph, node)


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


def input_arrays(traced: Trace) -> tuple[Input, ...]:
    """Return the names and shapes of a trace's inputs, as paths: `params["w"]`."""
    names = paths_of(containers.unflatten(traced.inputs.structure, traced.inputs.arrays), traced.names)
    return tuple(Input(name, array.shape) for name, array in zip(names, traced.inputs.arrays, strict=True))


def _output(shape: tuple[int, ...], rows: Sequence[int], table: RowTable, pattern: SparsityPattern | None) -> Output:
    positions = [k for k, row in enumerate(rows) if not _is_zero(table.atoms.get(row))]
    if len(positions) == len(rows):
        return Output(shape, tuple(rows), pattern=pattern)
    return Output(shape, tuple(rows[k] for k in positions), tuple(positions), pattern)


def _is_zero(atom: sp.Basic | None) -> bool:
    """Whether a leaf is the number 0 or 0.0; -0.0 is an atom of its own."""
    return isinstance(atom, sp.Number) and atom.is_zero is True


def skeleton(traced: Trace) -> Any:
    """The result's containers with 0.0 for each array."""
    return containers.unflatten(traced.outputs.structure, [0.0] * len(traced.outputs.arrays))


def sparse_leaves(result: Any) -> tuple[list[Any], Any]:
    """Flatten a skeleton without taking apart the sparse matrices in it."""
    return optree.tree_flatten(result, lambda value: isinstance(value, SparseMatrix), namespace=NAMESPACE)


def patterns_of(traced: Trace) -> list[SparsityPattern | None]:
    """Return the pattern of each output that is the data of a sparse matrix, None for others."""
    leaves = sparse_leaves(skeleton(traced))[0]
    return [leaf.pattern if isinstance(leaf, SparseMatrix) else None for leaf in leaves]
