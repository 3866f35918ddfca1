"""`lambdify`: a fast replacement for `sympy.lambdify`, with native code behind it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Unpack, get_args, overload

import sympy as sp
from sympy.printing.codeprinter import PrintMethodNotImplementedError

from codegen.errors import ArgumentError, LoweringError, UnboundSymbolError
from codegen.expressions.sympy_in import program_from_sympy
from codegen.ir.program import Program
from codegen.ir.region import RolledProgram
from codegen.lambdified.docstrings import docstring, shown
from codegen.lambdified.function import Lambdified
from codegen.lambdified.modules import SCIPY, Theirs, implemented, is_native, keeps_sparse, tell
from codegen.lambdified.structures import Arguments, Results
from codegen.loops.loop import StraightError
from codegen.loops.roll import Roll, repeats_enough, roll_program
from codegen.machine.build import compile_program
from codegen.machine.storage.cache import Setting
from codegen.options import OPTIONS, OptionFields, Options, check_names
from codegen.pricing.price import rolled_work, straight_work
from codegen.pricing.price_table import Price, Way, cheapest

Sharing = bool | Callable[..., Any]


class UnboundDerivativeError(UnboundSymbolError, PrintMethodNotImplementedError):  # type: ignore[misc]
    """A derivative has no value: it is no argument, and no printer of SymPy's has code for it."""


@overload
def lambdify(
    args: Any, expressions: Any, modules: None = None, printer: None = None, use_imps: bool = True,
    dummify: bool | None = False, cse: Sharing = False, docstring_limit: int | None = 1000, *,
    roll: Roll = "auto", cache: Setting = None, **options: Unpack[OptionFields],
) -> Lambdified: ...  # fmt: skip


@overload
def lambdify(
    args: Any, expressions: Any, modules: Any, printer: Any = None, use_imps: bool = True,
    dummify: bool | None = False, cse: Sharing = False, docstring_limit: int | None = 1000, *,
    roll: Roll = "auto", cache: Setting = None, **options: Unpack[OptionFields],
) -> Any: ...  # fmt: skip


def lambdify(
    args: Any, expressions: Any, modules: Any = None, printer: Any = None, use_imps: bool = True,
    dummify: bool | None = False, cse: Sharing = False, docstring_limit: int | None = 1000, *,
    roll: Roll = "auto", cache: Setting = None, **options: Unpack[OptionFields],
) -> Any:  # fmt: skip
    """Return a function of numbers or arrays that evaluates SymPy expressions natively.

    `args` is one argument or a list of arguments: symbols, x(t) and its derivatives, (nested) lists or matrices of
    these, an IndexedBase or MatrixSymbol of known shape. `expressions` is a scalar (result: float, of a relation bool),
    a list or tuple, possibly nested (same structure), a matrix (2-D array), or the pair (replacements, reduced) of
    `sympy.cse`. An argument of shape s also takes arrays of shape s + points; all points broadcast.

    SymEngine's objects are taken as SymPy's. Derivatives beside the value: `symad.lambdify`.

    The parameters up to `docstring_limit` are those of `sympy.lambdify`. Machine code stands for the modules "numpy",
    "scipy" and "math" (it knows no ZeroDivisionError: 1/0 is infinity); others ("mpmath", "sympy", "cmath", a dict of
    functions...) and a `printer` are Python, and SymPy's own function is returned. What has no machine code, and what a
    user's function implements (`use_imps`), is evaluated by SymPy's Python code too, with a FallbackWarning;
    `modules="native"` raises LoweringError instead. Equal parts are computed once whatever `cse` says (a function that
    does that is called); names never get in each other's way, so `dummify` has nothing to do.

    The options are those of `Options`, and `cache` that of `compile_program`. `roll` says whether what repeats becomes
    loops, whose code does not grow with the number of repetitions: "auto" where that is cheaper to build and call,
    "always" (ArgumentError with the reason where nothing repeats), or "never". UnboundSymbolError for a symbol that is
    no argument, UnboundDerivativeError for a derivative, LoweringError for a head without a native lowering,
    ArgumentError for a text, which is not evaluated.

    >>> x, y = sp.symbols("x y")
    >>> f = lambdify([x, y], [x + y, sp.Matrix([[x, y]])])
    >>> f(1.0, 2.0)
    [3.0, array([[1., 2.]])]
    >>> lambdify(x, sp.sin(x), "mpmath")(1)
    mpf('0.8414709848078965')
    """
    for name in options.keys() & {"jacobian", "hessian", "sparse"}:
        raise ArgumentError(f"{name}= of codegen.lambdify", why="it knows no derivatives", do="use symad.lambdify")
    check_names(options, OPTIONS | {"roll", "cache"})

    args = by_others(list(args) if isinstance(args, Iterator) else args)
    expressions = by_others(expressions)
    kept = _copied(expressions)  # a matrix may be written later

    theirs = Theirs(
        args, kept, modules,
        {"printer": printer, "use_imps": use_imps, "dummify": dummify or False, "cse": cse,
         "docstring_limit": docstring_limit},
    )  # fmt: skip
    if not is_native(modules) or printer is not None:
        _refuse_options(modules, {**options, **({"roll": roll} if roll != "auto" else {})})
        return theirs.function(None if modules == "native" else modules)
    taken, results, replacements = read(args, expressions, sparse=keeps_sparse(modules))
    if callable(cse):
        replacements, reduced = cse(results.flat())
        results = results.refilled(list(reduced))
        replacements = [pair for pair in replacements if pair[1] is not None]
    try:
        program = program_from_sympy(taken.inputs, results.outputs(), name="lambdified", replacements=replacements)
        kernel = compile_program(_with_loops(program, roll, Options(**options)), cache=cache, **options)
    except (LoweringError, UnboundSymbolError) as error:
        named = implemented(results.flat()) if use_imps else ""
        if modules == "native" or (isinstance(error, UnboundSymbolError) and not named) or replacements:
            if error.what.startswith("Derivative("):
                raise UnboundDerivativeError(error.what, where=error.where, why=error.why, do=error.do) from None
            raise
        tell(f"{named} is a Python function" if named else error)
        return theirs.function(SCIPY if modules is None else modules)
    text = docstring(taken.names, expressions, docstring_limit), shown(expressions, docstring_limit)
    return Lambdified(kernel, taken, results, (text[1], text[0]), theirs, symbolic=modules != "math")


def by_others(value: Any) -> Any:
    """Return objects of SymEngine, also those in lists and matrices, as SymPy's; anything else as it is.

    >>> by_others([sp.Symbol("x"), 1])
    [x, 1]
    """
    if type(value) in (list, tuple):
        return type(value)(map(by_others, value))
    return value._sympy_() if hasattr(value, "_sympy_") and not isinstance(value, sp.Basic) else value


def read(args: Any, expressions: Any, *, sparse: bool = False) -> tuple[Arguments, Results, list[tuple[Any, Any]]]:
    """Return the arguments of a function, its results, and the replacements of `sympy.cse`.

    >>> x, y = sp.symbols("x y")
    >>> taken, results, replacements = read([x], ([(y, x**2)], [y + 1]))
    >>> taken.inputs, results.flat(), replacements
    ([x], [y + 1], [(y, x**2)])
    """
    taken = Arguments.of(args)
    outputs, replacements = _expressions(expressions, taken)
    _refuse_text(outputs)
    return taken, Results.of(outputs, sparse=sparse), list(replacements)


def _expressions(expressions: Any, taken: Arguments) -> tuple[Any, Any]:
    """Return the expressions, and the replacements of `sympy.cse`."""
    if taken.replaced:
        expressions = _substituted(expressions, taken.replaced)
    if not (isinstance(expressions, tuple) and len(expressions) == 2 and isinstance(expressions[0], list)):
        return expressions, ()
    pairs = expressions[0]
    known = set(map(str, taken.names))
    if (
        pairs
        and all(isinstance(pair, tuple) and len(pair) == 2 for pair in pairs)
        and not any(str(symbol) in known for symbol, _ in pairs)
        and all(getattr(symbol, "is_Symbol", False) for symbol, _ in pairs)
    ):
        reduced = expressions[1]
        return reduced[0] if len(reduced) == 1 and isinstance(reduced[0], sp.MatrixBase) else reduced, pairs
    return expressions, ()


def _copied(expressions: Any) -> Any:
    if isinstance(expressions, list | tuple):
        parts = list(map(_copied, expressions))
        return parts if isinstance(expressions, list) else tuple(parts)
    return expressions.copy() if isinstance(expressions, sp.MatrixBase) else expressions


def _substituted(expressions: Any, replaced: dict[Any, Any]) -> Any:
    if isinstance(expressions, list | tuple):
        parts = [_substituted(part, replaced) for part in expressions]
        return parts if isinstance(expressions, list) else tuple(parts)
    return sp.sympify(expressions).xreplace(replaced)


def _refuse_text(expressions: Any) -> None:
    parts = [expressions]
    while parts:
        part = parts.pop()
        if isinstance(part, str):
            raise ArgumentError(f"the text {part!r}", why="no text is evaluated", do="write sp.sympify(text)")
        parts += part if isinstance(part, list | tuple) else ()


def _refuse_options(modules: Any, options: dict[str, Any]) -> None:
    if options:
        raise ArgumentError(
            f"{next(iter(options))}=... with modules={modules!r} or a printer", why="it is for machine code",
            do="leave one of them out",
        )  # fmt: skip


def _with_loops(program: Program, roll: Roll, options: Options) -> Program | RolledProgram:
    """Return the program as loops where they are asked for, or cost less."""
    if roll not in get_args(Roll):
        raise ArgumentError(f"roll={roll!r}", do=f"use one of {', '.join(get_args(Roll))}")
    if options.number.parts > 1 and roll == "always":
        raise ArgumentError(
            f'roll="always" with dtype={options.dtype!r}', why="loops are written for real numbers", do="leave one out"
        )
    if roll == "never" or options.number.parts > 1:
        return program
    try:
        rolled = roll_program(program)
    except StraightError as reason:
        if roll == "always":
            raise ArgumentError('roll="always"', why=str(reason), do="leave the option out") from None
        return program
    prices: dict[Way, Price] = {
        "straight": straight_work(program).price,
        "rolled": rolled_work(rolled, len(program)).price,
    }
    worth_it = repeats_enough(rolled) and cheapest(prices) == "rolled"
    return rolled if roll == "always" or worth_it else program
