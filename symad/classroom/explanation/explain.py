"""`explain`: the stages of any composition of transforms, with roles and levels of every variable."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
import sympy as sp

import symad.tracing.values.containers as containers
from codegen.ir.strictness import fall_back
from symad.classroom.explanation.explanation_document import Explanation
from symad.classroom.explanation.explanation_lines import Book
from symad.classroom.formulas.given import Given, given
from symad.classroom.formulas.targets import formula_at
from symad.derivatives.application import check_choice
from symad.derivatives.level import noting
from symad.derivatives.node_roles import History
from symad.errors import ArgumentError
from symad.graph.graph import Graph
from symad.tracing.calling.attempts import call
from symad.tracing.calling.function_names import argument_names, check_call, name_of
from symad.tracing.calling.scope import open_scope
from symad.tracing.calling.tracebacks import public_api
from symad.tracing.calling.user_place import is_defect, refusal
from symad.tracing.trace import input_symbols, symbols_of, trace
from symad.tracing.values.node_trees import lift, lift_result, paths_of, wrap
from symad.transforms.first_order import grad

Detail = Literal["short", "all"]
Traced: TypeAlias = tuple[Graph, dict[int, sp.Symbol], list[int]]  # with symbols for the arguments, and the results


@public_api
def explain(f: Callable[..., Any] | sp.Expr | str, *args: Any, detail: Detail = "short", at: Any = None) -> Explanation:
    """Return, stage by stage and line by line, the program of f, any composition of transforms, for these shapes.

    From the innermost level out: the program, the linearized program (one row for each operation: its tangent is a sum
    of coefficients times tangents), the transposed program (the same rows backwards), and, where a level around
    differentiates that, the differentiated transposed program. Each variable is marked by letter, level and colour:
    P primal, A parameter of a level (an alias: equal to its argument, never the same), R residual (what a linear map
    keeps of the computation before it), T tangent, C cotangent. Levels are numbered from the outermost. A variable that
    is computed once may have several roles. Then follow the values kept and not kept for reverse sweeps, the operations
    of each stage, and the tapes that other designs of nested reverse mode would need for the same program.

    f may also be a SymPy expression or a formula in a string, with its symbols (or `{symbol: value}`) as the argument.
    A function that needs numbers (a solver, a loop that ends by its values) is shown for the given ones. Long programs
    are folded where they are printed; `lines` and `stages` have all. `.save("page.html")` writes a page. What is kept
    and the tapes of other designs are folded, and opened on a page; `detail="all"` prints them.
    ArgumentError for another `detail`.

    `at`, a point as the function takes its arguments or {name: number}, shows the trace with numbers, as textbooks do:
    values and tangents side by side, or values and then adjoints from the last line up, with local derivatives. Then
    args may be left out; they are only shapes. `line.value` has the number that is printed rounded. Each number is
    confirmed by a second evaluation. ArgumentError at a kink, and where something has no finite derivative.

    >>> import numpy as np
    >>> import symad as sa
    >>> explanation = explain(sa.grad(lambda x: np.sin(x) * x), 1.0)
    >>> for line in explanation.lines:
    ...     print(line.name, "=", line.formula, "|", line.marks)
    v1 = x | parameter 1, residual 1, cotangent 1
    v2 = sin(v1) | primal 1, residual 1
    v4 = cos(v1) | residual 1
    v5 = v1*v4 | cotangent 1
    v6 = v2 + v5 | cotangent 1
    >>> for row in explanation.stages[2].lines:
    ...     print(row.name, "=", row.formula)
    v3_bar = 1
    v2_bar = v1*v3_bar
    v1_bar = v4*v2_bar + v2*v3_bar
    >>> explanation.operations, explanation.primal_operations
    (4, 2)
    """
    check_choice("detail", detail, get_args(Detail))
    if isinstance(f, str | sp.Expr) and not isinstance(f, sp.Lambda):
        formula, argument = (given(f, *args[:1]), None) if at is None else formula_at_point(f, args, at)
        return explain(formula.function, formula.argument, *args[1:], detail=detail, at=argument).named(formula.symbols)
    named, args = args, args if at is None else arguments_at(f, args, at)
    check_call(f, args)
    with noting() as events:
        traced = _on_symbols(f, args)
        graph, symbols, outputs = traced or _at_numbers(f, args)
    book = Book(graph, symbols, History(graph, events))
    name = name_of(f).replace("_of_", " of ") if hasattr(f, "__wrapped__") else name_of(f)
    numbers = [] if at is None else containers.flatten(tuple(args))[0]
    point = [float(number) for leaf in numbers for number in np.ravel(leaf)]
    if point and named:
        names = symbols_of(named, argument_names(f, len(named)))
        book = Book(graph, dict(zip(symbols, names, strict=True)), book.history)
    return Explanation(name, book, tuple(outputs), at_numbers=traced is None, detail=detail, point=point)


def explained_gradient(
    f: Any, args: Sequence[Any], at: Any, split: Callable[[Given], Callable[..., Any]] | None = None
) -> Explanation:
    """Return the trace with numbers of the gradient of a function, or of a formula, which `split` computes in steps."""
    if isinstance(f, str | sp.Expr) and not isinstance(f, sp.Lambda):
        formula, argument = formula_at_point(f, args, at)
        function = formula.function if split is None else split(formula)
        return explain(grad(function), formula.argument, at=(argument,)).named(formula.symbols, str(f))
    args = arguments_at(f, args, at)
    return explain(grad(f, argnums=tuple(range(len(args)))), at=args)


def _on_symbols(f: Callable[..., Any], args: tuple[Any, ...]) -> Traced | None:
    """Trace f along all its paths; None if that fails, as it does for a solver."""
    try:
        traced = trace(f, *args)
    except Exception as error:  # at numbers the same error is met again, or none
        if is_defect(error):
            fall_back(name_of(f), "it cannot be traced along all its paths", error)
        return None
    inputs = traced.inputs.flat
    return traced.graph, {node: traced.graph.atoms[node] for node in inputs}, traced.outputs.flat


def _at_numbers(f: Callable[..., Any], args: tuple[Any, ...]) -> Traced:
    """Run f on the numbers."""
    names = argument_names(f, len(args))
    paths = paths_of(args, names)
    with open_scope(apart=True) as scope:
        lifted = lift(scope, args, paths, differentiable=True)
        inputs = lifted.refill([scope.graph.alias(node) for node in lifted.flat])
        scope.parameters = inputs.nodes
        outputs = lift_result(scope, call(f, lambda: wrap(scope, inputs)), name_of(f))
        named = zip(paths, inputs.arrays, strict=True)
        symbols = [symbol for path, array in named for symbol in input_symbols(path, array.shape)]
        return scope.graph, dict(zip(inputs.flat, symbols, strict=True)), outputs.flat


_FORMS = "give numbers, lists or arrays as the function takes them, or {name: number}"


def formula_at_point(f: Any, args: Sequence[Any], at: Any) -> tuple[Given, Any]:
    """Return a formula as a function of one argument, and that argument at the point: a number or a vector.

    >>> formula_at_point("x*y", (), {"x": 2, "y": 5})[1]
    array([2., 5.])
    """
    variables = args[0] if args else list(at) if isinstance(at, Mapping) else formula_at(str(f), {})[1]
    variables = list(variables) if isinstance(variables, list | tuple | Mapping) else [variables]
    formula = given(f, variables if len(variables) > 1 else variables[0])
    numbers = np.array(arguments_at(list(map(str, formula.symbols)), formula.symbols, at))
    return formula, numbers if np.shape(formula.argument) else numbers[0]


def arguments_at(f: Any, args: Sequence[Any], at: Any) -> tuple[Any, ...]:
    """Return the arguments of a function, or of names, at a point with the shapes of `args`, where there are some.

    >>> arguments_at(lambda x, y: x, (1.0, 1.0), {"y": 5, "x": 2}), arguments_at(lambda x: x, (), [2, 5])
    ((2.0, 5.0), (array([2., 5.]),))
    """
    if isinstance(at, list) and not args:
        try:
            check_call(f, (at,))
        except ArgumentError:  # it takes more than one
            at = tuple(at)
    count = len(f) if isinstance(f, list) else len(args) or (len(at) if isinstance(at, Mapping | tuple) else 1)
    names: list[str] = f if isinstance(f, list) else argument_names(f, count)
    known = {str(key): value for key, value in at.items()} if isinstance(at, Mapping) else {}
    count = count if args or isinstance(at, tuple) or isinstance(f, list) or known.keys() & set(names) else 1
    if known.keys() & set(names):
        if wrong := sorted(known.keys() ^ set(names)):
            why = f"there is no {'number for' if wrong[0] in names else 'variable'} {wrong[0]}"
            raise refusal(f"at={at!r}", why, f"give numbers for {', '.join(names)}")
        parts = [known[name] for name in names]
    else:
        parts = list(at) if isinstance(at, list | tuple | np.ndarray) and (count > 1 or isinstance(at, tuple)) else [at]
    names = names[:count]
    if len(parts) != count:
        raise refusal(f"at={at!r}", f"{len(names)} arguments are asked for: {', '.join(names)}", _FORMS)
    return tuple(_numbers(*those) for those in zip(parts, args or (None,) * count, names, strict=True))


def _numbers(part: Any, arg: Any, name: str) -> Any:
    """Return an argument with floats in it; a list of numbers is a vector. ArgumentError for another shape."""
    try:
        part = np.array(part, dtype=float) if isinstance(part, list) else part
        leaves, structure = containers.flatten(part)
        numbers = [np.asarray(leaf, dtype=float) for leaf in leaves]
    except (TypeError, ValueError):
        numbers = []
    if not numbers or not all(number.size and np.all(np.isfinite(number)) for number in numbers):
        raise refusal(f"at: {name} = {part!r}", "a point has finite numbers, in rows of equal length", _FORMS)
    expected = [np.shape(arg)] if isinstance(arg, list) else list(map(containers.shape_of, containers.flatten(arg)[0]))
    if arg is not None and expected != [number.shape for number in numbers]:
        raise refusal(f"at: {name} = {part!r}", f"the argument that was given has shape {expected[0]}", _FORMS)
    return containers.unflatten(structure, [number if number.ndim else float(number) for number in numbers])
